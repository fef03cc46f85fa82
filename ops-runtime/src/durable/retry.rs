//! Which failures are retried.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::model::retry::may_pass;
use crate::{CallError, ErrorCode, RetryPolicy};

/// Decides which errors are retried.
impl RetryPolicy {
    /// True if an error is worth another attempt.
    pub fn repeats(&self, error: &CallError) -> bool {
        match error.code() {
            // The identity of the job. One that its handler has chosen, or this process at its hub, may be accepted later.
            ErrorCode::AccessDenied if !error.refuses_program() => false,
            // The call was carried out, and its result can't be passed on.
            _ if error.is_lasting() => false,
            // A known operation that no worker serves now.
            ErrorCode::OperationNotFound => error.is_retryable(),
            // With `raw`, it is about a response, such as the page of a proxy, and may pass. Else the input is invalid.
            ErrorCode::ValidationError if error.details().get("raw").is_none() => false,
            code if self.codes.contains(code.as_str()) => true,
            ErrorCode::ExecutionError => match error.details().get("statusCode").and_then(Value::as_u64) {
                Some(status) => may_pass(status),
                None => true,
            },
            ErrorCode::UnknownError | ErrorCode::Timeout | ErrorCode::Aborted | ErrorCode::AccessDenied => true,
            _ => false,
        }
    }
}

/// The longest duration that is counted, a hundred years: servers store times as nanoseconds in 64 bits.
pub(super) const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// When a duration is over; never if it is above [`LONGEST`].
pub(super) fn after(duration: Duration) -> Instant {
    Instant::now() + duration.min(LONGEST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_repeated() {
        let policy = RetryPolicy::default().with_code("BUSY").with_code("VALIDATION_ERROR");
        let status = |status: u64| CallError::execution("x").with_details(json!({ "statusCode": status }));
        let misfit = CallError::new(ErrorCode::ValidationError, "x")
            .with_details(json!({ "statusCode": 200, "violations": [], "raw": "<html>" }));
        assert!(!RetryPolicy::default().repeats(&misfit));
        for (error, expected) in [
            (CallError::execution("x"), true),
            (CallError::new(ErrorCode::Timeout, "x"), true),
            (CallError::new(ErrorCode::Aborted, "x"), true),
            (CallError::new(ErrorCode::UnknownError, "x"), true),
            (CallError::new("BUSY", "x"), true),
            (CallError::new("TAKEN", "x"), false),
            (CallError::new(ErrorCode::ToolError, "x"), false),
            (CallError::new(ErrorCode::ValidationError, "x"), false),
            (misfit, true),
            (CallError::new(ErrorCode::AccessDenied, "x"), false),
            (CallError::new(ErrorCode::AccessDenied, "x").refusing_program(), true),
            (CallError::new(ErrorCode::OperationNotFound, "x"), false),
            (CallError::new(ErrorCode::OperationNotFound, "x").retryable(), true),
            (status(503), true),
            (status(429), true),
            (status(529), true),
            (status(501), false),
            (status(404), false),
            (CallError::execution("x").lasting(), false),
            (CallError::new("BUSY", "x").with_details(json!({ "by": "ann" })).lasting(), false),
        ] {
            assert_eq!(policy.repeats(&error), expected, "{error:?}");
        }
    }
}
