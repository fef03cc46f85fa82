//! The configuration of a connection to a NATS server.

use std::fmt;

use crate::call::PeerAuth;
use crate::call::broker::{Pace, broker_setters};
use crate::call::peer_specs::MAX_ANNOUNCED;
use crate::nats::{Access, login_setters};

/// How to connect, and which callers to trust.
///
/// With callers that are trusted ([`PeerAuth::trusted`]), the server's permissions must ensure that only they can publish
/// requests.
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

    broker_setters!("a worker, a caller or a request");
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
            .field("access", &self.access)
            .field("peers", &self.auth)
            .field("pace", &self.pace)
            .finish()
    }
}
