//! When and how often a failure is tried again.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallError, ErrorCode};

/// When and how often a failed attempt is repeated.
///
/// The wait before a repetition grows by a factor, up to a maximum, and is shortened by up to a fifth at random, so that
/// jobs that failed together do not come back together. A worker that dies while it runs a job fails that attempt.
///
/// ```
/// use std::time::Duration;
/// use ops_runtime::durable::RetryPolicy;
///
/// let policy = RetryPolicy::new(5).with_backoff(Duration::from_secs(1), Duration::from_secs(60)).with_code("BUSY");
/// assert_eq!(policy.wait_after(3), Duration::from_secs(4));
/// ```
///
/// # What is repeated
///
/// `EXECUTION_ERROR`, `UNKNOWN_ERROR`, `TIMEOUT` and `ABORTED`, and codes that are added. Of the errors of HTTP responses,
/// only statuses from 500, 408, 425 and 429. Never `VALIDATION_ERROR`, `ACCESS_DENIED` and `OPERATION_NOT_FOUND`: no
/// repetition changes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How many attempts there are in all; at least 1.
    pub attempts: u32,
    /// The wait before the second attempt, in milliseconds.
    pub first_wait: u64,
    /// The longest wait, in milliseconds.
    pub max_wait: u64,
    /// By what each wait is longer than the one before.
    pub factor: u32,
    /// Codes that are repeated beside the default ones, such as one that the operation declares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
}

impl RetryPolicy {
    /// Three attempts, with waits of 1 second and 2 seconds.
    pub const DEFAULT: Self = Self::new(3);

    /// So many attempts in all, with the default waits: 1 second, twice as long each time, up to 5 minutes.
    pub const fn new(attempts: u32) -> Self {
        let attempts = if attempts == 0 { 1 } else { attempts };
        Self { attempts, first_wait: 1_000, max_wait: 300_000, factor: 2, codes: Vec::new() }
    }

    /// One attempt: what fails, or whose worker dies, is not run again by itself.
    pub const fn once() -> Self {
        Self::new(1)
    }

    /// Sets the first and the longest wait.
    #[must_use]
    pub fn with_backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first_wait = millis(first);
        self.max_wait = millis(longest).max(self.first_wait);
        self
    }

    /// Sets by what each wait is longer than the one before; at least 1.
    #[must_use]
    pub fn with_factor(mut self, factor: u32) -> Self {
        self.factor = factor.max(1);
        self
    }

    /// Repeats errors of this code, too.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.codes.push(code.into());
        self
    }

    /// The wait after the failure of that attempt, before it is shortened at random.
    pub fn wait_after(&self, attempt: u32) -> Duration {
        let factor = u64::from(self.factor.max(1)).saturating_pow(attempt.saturating_sub(1));
        Duration::from_millis(self.first_wait.saturating_mul(factor).min(self.max_wait))
    }

    /// True if an error is worth another attempt.
    pub fn repeats(&self, error: &CallError) -> bool {
        match error.code() {
            ErrorCode::ValidationError | ErrorCode::AccessDenied | ErrorCode::OperationNotFound => false,
            code if self.codes.iter().any(|own| own == code.as_str()) => true,
            ErrorCode::ExecutionError => match error.details().get("statusCode").and_then(Value::as_u64) {
                Some(status) => status >= 500 || matches!(status, 408 | 425 | 429),
                None => true,
            },
            ErrorCode::UnknownError | ErrorCode::Timeout | ErrorCode::Aborted => true,
            _ => false,
        }
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Self::DEFAULT
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A duration in milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn waits_grow_up_to_a_maximum() {
        let policy = RetryPolicy::new(9).with_backoff(Duration::from_millis(100), Duration::from_secs(1));
        let waits: Vec<_> = (1..=6).map(|attempt| policy.wait_after(attempt).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(policy.wait_after(u32::MAX), Duration::from_secs(1));
        assert_eq!(policy.with_factor(0).wait_after(5), Duration::from_millis(100));
        assert_eq!(RetryPolicy::new(0).attempts, 1);
    }

    #[test]
    fn what_is_repeated() {
        let policy = RetryPolicy::default().with_code("BUSY").with_code("VALIDATION_ERROR");
        let status = |status: u64| CallError::execution("x").with_details(json!({ "statusCode": status }));
        for (error, expected) in [
            (CallError::execution("x"), true),
            (CallError::new(ErrorCode::Timeout, "x"), true),
            (CallError::new(ErrorCode::Aborted, "x"), true),
            (CallError::new(ErrorCode::UnknownError, "x"), true),
            (CallError::new("BUSY", "x"), true),
            (CallError::new("TAKEN", "x"), false),
            (CallError::new(ErrorCode::ToolError, "x"), false),
            (CallError::new(ErrorCode::ValidationError, "x"), false),
            (CallError::new(ErrorCode::AccessDenied, "x"), false),
            (CallError::new(ErrorCode::OperationNotFound, "x"), false),
            (status(503), true),
            (status(429), true),
            (status(404), false),
        ] {
            assert_eq!(policy.repeats(&error), expected, "{error:?}");
        }
    }
}
