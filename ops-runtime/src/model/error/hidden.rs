//! Errors without the secrets that a server may have said again in them.

#[cfg(any(feature = "http", feature = "mcp"))]
use std::borrow::Cow;

#[cfg(any(feature = "http", feature = "mcp"))]
use serde_json::Value;

use super::CallError;
use crate::model::secrets::Kept;
#[cfg(any(feature = "http", feature = "mcp"))]
use crate::model::secrets::Secrets;

impl CallError {
    /// The error without the secrets that are kept, wherever they stand in it.
    #[cfg_attr(
        not(any(feature = "http", feature = "mcp")),
        allow(unused_variables, reason = "without other servers there is nothing to hide")
    )]
    pub(crate) fn without_kept(self, kept: &Kept) -> Self {
        #[cfg(any(feature = "http", feature = "mcp"))]
        if kept.is_some() {
            return self.without(&kept.secrets());
        }
        self
    }

    /// The error without the secrets, wherever they stand in it.
    #[cfg(any(feature = "http", feature = "mcp"))]
    pub(crate) fn without(mut self, secrets: &Secrets) -> Self {
        if secrets.is_empty() {
            return self;
        }
        if let Cow::Owned(hidden) = secrets.text(&self.0.message) {
            self.0.message = Cow::Owned(hidden);
        }
        let details = &mut self.0.details;
        // What was cut off may end within a secret.
        if details.get("truncated") == Some(&Value::Bool(true)) {
            for name in ["body", "raw"] {
                if let Some(Value::String(text)) = details.get_mut(name) {
                    secrets.end(text);
                }
            }
        }
        secrets.value(details);
        self
    }
}
