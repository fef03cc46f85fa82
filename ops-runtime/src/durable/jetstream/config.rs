//! The configuration of the engine on NATS `JetStream`.

use std::fmt;
use std::time::Duration;

use crate::CallError;
use crate::durable::engine::EngineLimits;
use crate::nats::{Access, login_setters};

/// The settings of [`JetStream`](super::JetStream); the defaults favour safety.
#[derive(Clone)]
pub struct JetStreamConfig {
    pub(super) prefix: String,
    pub(super) access: Access,
    pub(super) replicas: usize,
    pub(super) in_memory: bool,
    /// True if streams are neither made nor compared.
    pub(super) as_found: bool,
    pub(super) limits: EngineLimits,
    pub(super) request_timeout: Duration,
}

impl JetStreamConfig {
    /// Three replicas in files, four lanes, a lease of 30 seconds, inputs and results of up to 512 KiB, the credentials
    /// of the URL if it has any.
    pub fn new() -> Self {
        Self {
            prefix: "ops".to_owned(),
            access: Access::default(),
            replicas: 3,
            in_memory: false,
            as_found: false,
            limits: EngineLimits::DEFAULT.with_lanes(4),
            request_timeout: Duration::from_secs(30),
        }
    }

    /// Sets the first part of all subjects and names of streams; `ops` by default.
    ///
    /// Engines that share jobs have the same prefix. It may have several tokens, joined by dots.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    login_setters!("JetStream::connect");

    /// Sets how many servers store each job; 3 by default, 1 to 5.
    ///
    /// A single server requires 1, which must be set explicitly: then a job is lost with the disk of that server.
    #[must_use]
    pub fn with_replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    /// Stores jobs in the memory of the servers instead of files. Jobs are lost with a majority of the replicas.
    #[must_use]
    pub fn with_memory_storage(mut self) -> Self {
        self.in_memory = true;
        self
    }

    /// Uses the streams as they are: makes none, and compares no settings.
    ///
    /// For tools that inspect and manage jobs without knowing the configuration of the system. Connecting fails if
    /// nothing is stored under the prefix. Workers and submitters should not use it, and state the settings that they
    /// rely on.
    #[must_use]
    pub fn with_streams_as_found(mut self) -> Self {
        self.as_found = true;
        self
    }

    /// Sets the number of lanes of a queue; 4 by default, at least 1.
    ///
    /// A lane is a consumer on the server, and with replicas a Raft group of its own. Engines that share jobs have the
    /// same number. It can grow, but not shrink while there are jobs. The lane of a tenant depends on it and is part of
    /// the ids of jobs, so a key that was submitted before the number grew may make another job afterwards.
    #[must_use]
    pub fn with_lanes(mut self, lanes: u16) -> Self {
        self.limits = self.limits.with_lanes(lanes);
        self
    }

    /// Sets how long a worker keeps a job without extending its lease; 30 seconds by default, at least 1 second.
    ///
    /// With replicas, set two seconds or more if running steps are to be cancelled when their job is no longer stored. A
    /// missing job is looked up for half a second, and each lookup must end within a third of a lease.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.limits = self.limits.with_lease(lease.max(Duration::from_secs(1)));
        self
    }

    /// Sets the maximum size in bytes of an input as JSON; 512 KiB by default.
    ///
    /// The server's `max_payload` (1 MiB by default) has to be twice as much.
    #[must_use]
    pub fn with_max_input(mut self, bytes: usize) -> Self {
        self.limits = self.limits.with_max_input(bytes);
        self
    }

    /// Sets the maximum size in bytes of a result as JSON; 512 KiB by default. The server's limit applies as for
    /// inputs.
    #[must_use]
    pub fn with_max_result(mut self, bytes: usize) -> Self {
        self.limits = self.limits.with_max_result(bytes);
        self
    }

    /// Sets how long a request is retried while the server cannot be used; 30 seconds by default.
    #[must_use]
    pub fn with_request_timeout(mut self, request_timeout: Duration) -> Self {
        self.request_timeout = request_timeout;
        self
    }

    /// Checks the settings.
    pub(super) fn check(&self) -> Result<(), CallError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let is_token = |token: &str| !token.is_empty() && token.bytes().all(is_plain);
        if !self.prefix.split('.').all(is_token) {
            let rule = "use ASCII letters, digits, `_` and `-`, in parts joined by dots";
            return Err(CallError::execution(format!("the prefix {:?} can't begin subjects: {rule}", self.prefix)));
        }
        if !(1..=5).contains(&self.replicas) {
            return Err(CallError::execution(format!("{} replicas: JetStream has 1 to 5", self.replicas)));
        }
        Ok(())
    }
}

impl Default for JetStreamConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for JetStreamConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JetStreamConfig")
            .field("prefix", &self.prefix)
            .field("access", &self.access)
            .field("replicas", &self.replicas)
            .field("in_memory", &self.in_memory)
            .field("as_found", &self.as_found)
            .field("limits", &self.limits)
            .field("request_timeout", &self.request_timeout)
            .finish()
    }
}
