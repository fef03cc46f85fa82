//! The configuration of a connection to a NATS server.

use std::fmt;
use std::time::Duration;

use crate::call::broker::Pace;
use crate::call::peer_specs::MAX_ANNOUNCED;
use crate::call::{LONGEST, PeerAuth};
use crate::nats::{Access, login_setters};

/// How to connect, and which callers to trust.
///
/// ```
/// use std::time::Duration;
/// use ops_runtime::call::nats::NatsConfig;
///
/// let config = NatsConfig::new().with_user("ann", "s3cret").with_heartbeat(Duration::from_millis(500));
/// assert!(!format!("{config:?}").contains("s3cret"));
/// ```
#[derive(Clone)]
pub struct NatsConfig {
    pub(super) prefix: String,
    pub(super) access: Access,
    pub(super) auth: PeerAuth,
    pub(super) pace: Pace,
    pub(super) max_announced: usize,
}

impl NatsConfig {
    /// The default configuration: credentials only from the URL, and anonymous callers.
    pub fn new() -> Self {
        Self {
            prefix: "ops".to_owned(),
            access: Access::default(),
            auth: PeerAuth::anonymous(),
            pace: Pace::default(),
            max_announced: MAX_ANNOUNCED,
        }
    }

    /// Sets the first tokens of all subjects; `ops` by default.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    login_setters!("Nats::connect");

    /// Sets the identity that the workers of this process give to every caller that can reach the broker; anonymous by
    /// default.
    ///
    /// [`PeerAuth::trusted`] believes the identity in each request. Then the server's permissions must ensure that only
    /// trusted callers can publish requests.
    #[must_use]
    pub fn with_peer_auth(mut self, auth: PeerAuth) -> Self {
        self.auth = auth;
        self
    }

    /// Sets how often workers send heartbeats, with the requests that they run; every second by default.
    #[must_use]
    pub fn with_heartbeat(mut self, interval: Duration) -> Self {
        self.pace.heartbeat = interval.clamp(Duration::from_millis(10), LONGEST);
        self
    }

    /// Sets after how much silence a worker, a caller or a request is given up; 5 s by default. At least three
    /// heartbeats.
    #[must_use]
    pub fn with_lost_after(mut self, silence: Duration) -> Self {
        self.pace.lost_after = silence.min(LONGEST);
        self
    }

    /// Sets how long a call waits for a connection; 10 s by default.
    #[must_use]
    pub fn with_connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.pace.connect_timeout = connect_timeout.min(LONGEST);
        self
    }

    /// Limits the memory for the specs that one worker announces, in bytes; 32 MiB by default. All workers together may
    /// take four times as much. Specs beyond the limit, and any spec above 1 MiB, are kept without their schemas.
    #[must_use]
    pub fn with_max_announced(mut self, bytes: usize) -> Self {
        self.max_announced = bytes;
        self
    }

    pub(super) fn pace(&self) -> Pace {
        Pace { lost_after: self.pace.lost_after.max(self.pace.heartbeat * 3), ..self.pace }
    }
}

impl Default for NatsConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for NatsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsConfig")
            .field("prefix", &self.prefix)
            .field("login", &self.access)
            .field("peers", &self.auth)
            .field("pace", &self.pace)
            .finish()
    }
}
