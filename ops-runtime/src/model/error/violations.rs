//! Violations: the places at which an input is invalid.

use serde_json::{Value, json};

use super::{CallError, ErrorCode};
use crate::Text;

/// A violation, at a JSON pointer.
pub(crate) fn violation(pointer: &str, message: &str) -> Value {
    json!({ "pointer": pointer, "message": message })
}

impl CallError {
    /// A `VALIDATION_ERROR` with its violations.
    pub(crate) fn invalid(message: impl Into<Text>, violations: Vec<Value>) -> Self {
        Self::new(ErrorCode::ValidationError, message).with_details(json!({ "violations": violations }))
    }

    /// The violations in the details.
    pub(crate) fn violations(&self) -> &[Value] {
        self.0.details.get("violations").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }
}
