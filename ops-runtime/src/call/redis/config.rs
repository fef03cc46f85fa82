//! The configuration of a Redis server.

use std::fmt;
use std::time::Duration;

use super::keys::Keys;
use crate::call::broker::{Pace, broker_setters};
use crate::call::peer_specs::MAX_ANNOUNCED;
use crate::call::tls::Trust;
use crate::call::{LONGEST, PeerAuth};

/// How to use a server, and which callers to trust.
///
/// ```
/// use std::time::Duration;
/// use ops_runtime::call::redis::RedisConfig;
///
/// let config = RedisConfig::new().with_prefix("shop").with_response_retention(Duration::from_secs(60));
/// ```
#[derive(Clone)]
pub struct RedisConfig {
    pub(super) keys: Keys,
    pub(super) trust: Trust,
    pub(super) auth: PeerAuth,
    pub(super) pace: Pace,
    pub(super) response_retention: Duration,
    pub(super) max_message: usize,
    pub(super) max_waiting: usize,
    pub(super) concurrency: usize,
    pub(super) max_unread: usize,
    pub(super) max_announced: usize,
}

impl RedisConfig {
    /// The default configuration: keys begin with `ops`, and callers are anonymous.
    pub fn new() -> Self {
        Self {
            keys: Keys("ops".to_owned()),
            trust: Trust::default(),
            auth: PeerAuth::anonymous(),
            pace: Pace::default(),
            response_retention: Duration::from_secs(30),
            max_message: 4 << 20,
            max_waiting: 100_000,
            concurrency: 1_024,
            max_unread: 256 << 20,
            max_announced: MAX_ANNOUNCED,
        }
    }

    /// Sets the first part of all keys; `ops` by default.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.keys = Keys(prefix.into());
        self
    }

    /// Trusts the root certificates of a PEM text for `rediss://`, in place of those of the system. A text without any, and
    /// an address without encryption, are refused by [`Redis::new`](super::Redis::new).
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_root_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.trust = Trust::only(pem.as_ref());
        self
    }

    broker_setters!("a worker or a request");

    /// Sets how long responses wait for a disconnected caller, and calls for their responses; 30 s by default. At least
    /// three heartbeats, since a caller says at each heartbeat that it is still there.
    #[must_use]
    pub fn with_response_retention(mut self, time: Duration) -> Self {
        self.response_retention = time.clamp(Duration::from_millis(100), LONGEST);
        self
    }

    /// How long responses wait for a disconnected caller.
    pub(super) fn retention(&self) -> Duration {
        self.response_retention.max(self.pace.heartbeat * 3)
    }

    /// Sets the largest message, in bytes; 4 MiB by default.
    #[must_use]
    pub fn with_max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// Limits how many requests for one operation wait for a worker, approximately; 100,000 by default. Beyond, the
    /// oldest are removed, and their calls fail with `ABORTED`.
    #[must_use]
    pub fn with_max_waiting(mut self, requests: usize) -> Self {
        self.max_waiting = requests;
        self
    }

    /// Limits the unread responses of a caller in the server's memory, in bytes; 256 MiB by default. Beyond it, a
    /// worker deletes the caller's stream, and its calls fail with `ABORTED`.
    #[must_use]
    pub fn with_max_unread(mut self, bytes: usize) -> Self {
        self.max_unread = bytes;
        self
    }

    /// Sets how many requests a worker runs at a time, approximately; 1,024 by default. Further requests wait for a
    /// worker.
    #[must_use]
    pub fn with_max_running(mut self, requests: usize) -> Self {
        self.concurrency = requests.max(1);
        self
    }
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("keys", &self.keys)
            .field("peers", &self.auth)
            .field("pace", &self.pace)
            .field("response_retention", &self.response_retention)
            .field("max_message", &self.max_message)
            .finish_non_exhaustive()
    }
}
