//! The options of a submit.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use crate::model::clock::millis;
use crate::{CallError, ErrorCode, RetryPolicy};

/// How long an ending is kept at least, so that waiters can read it.
const MIN_RETENTION: Duration = Duration::from_secs(1);
/// How long an ending is kept by default.
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// The options of a submit.
///
/// ```
/// use std::time::Duration;
/// use ops_runtime::durable::{RetryPolicy, SubmitOptions};
///
/// let options = SubmitOptions::new()
///     .with_key("order-12")
///     .with_delay(Duration::from_secs(60))
///     .with_timeout(Duration::from_secs(3600))
///     .with_retry(RetryPolicy::new(5));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SubmitOptions {
    /// The idempotency key: a repeated submit attaches to the first. It counts per operation, tenant and identity.
    pub key: Option<String>,
    /// When the job may start; `None` for at once.
    pub start: Option<When>,
    /// The deadline over all attempts.
    pub deadline: Option<When>,
    /// How long its ending is kept.
    pub retention: Option<Duration>,
    /// When and how often failures are retried.
    pub retry: Option<RetryPolicy>,
    /// The tenant of the job. The jobs of a tenant do not delay those of others, unless they share a lane.
    pub tenant: Option<String>,
    /// Metadata for the handler.
    pub metadata: Map<String, Value>,
}

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// So long after the submit, by the engine's clock.
    After(Duration),
    /// At that time.
    At(SystemTime),
}

impl When {
    /// Milliseconds since the Unix epoch.
    pub(super) fn millis(self, now: u64) -> u64 {
        match self {
            Self::After(delay) => now.saturating_add(millis(delay)),
            Self::At(time) => millis(time.duration_since(UNIX_EPOCH).unwrap_or_default()),
        }
    }
}

/// The error of a start that is too late for any engine.
pub(super) fn too_late(operation: &str) -> CallError {
    let message = format!("the job of `{operation}` would start in more than a hundred years");
    CallError::new(ErrorCode::ValidationError, message)
}

impl SubmitOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the key: a repeated submit with the same input attaches to the first, until the retention of its ending has
    /// expired. A submit with a key that is empty or blank is refused.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Starts the job after a delay, which counts from the submit: at most a hundred years.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.start = Some(When::After(delay));
        self
    }

    /// Starts the job at that time, at most a hundred years from now.
    #[must_use]
    pub fn with_start(mut self, at: SystemTime) -> Self {
        self.start = Some(When::At(at));
        self
    }

    /// Sets the deadline, from the submit, over all attempts. A job that has not ended by then becomes a dead letter.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.deadline = Some(When::After(timeout));
        self
    }

    /// Sets the deadline over all attempts. A job that has not ended by then becomes a dead letter.
    #[must_use]
    pub fn with_deadline(mut self, at: SystemTime) -> Self {
        self.deadline = Some(When::At(at));
        self
    }

    /// Sets how long the ending is kept, and with it the key; a day by default, at least a second, and on `JetStream`
    /// at least three leases of workers (90 seconds by default). A dead letter is kept until it is retried or
    /// discarded. A job that failed or was cancelled can be [discarded](crate::durable::AnyJob::discard) before, too.
    #[must_use]
    pub fn with_retention(mut self, retention: Duration) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Sets when and how often failures are retried, in place of the policy of [`Jobs`](super::Jobs) or of the
    /// operation.
    #[must_use]
    pub fn with_retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Sets the tenant of the job. The jobs of a tenant do not delay those of others, unless they share a lane: a queue
    /// has [several lanes](crate::durable::engine::EngineLimits::lanes), and each tenant is in one of them.
    #[must_use]
    pub fn with_tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Adds metadata for the handler under a key: [`Context::metadata`](crate::Context::metadata).
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    pub(super) fn retention_millis(&self) -> u64 {
        millis(self.retention.unwrap_or(RETENTION).max(MIN_RETENTION))
    }
}
