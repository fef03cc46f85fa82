//! Questions to clients.

use std::time::Duration;

use rmcp::model::{ElicitResult, InputRequest, ServerRequest};
use rmcp::service::{Peer, RoleServer, ServiceError};
use serde_core::Deserialize;
use serde_json::{Value, json};

use crate::{CallError, ErrorCode};

/// The reason why there is no answer.
pub(super) enum Unanswered {
    /// The client refused the request.
    Refused(CallError),
    /// It did not answer in time, or the connection ended.
    Lost(CallError),
}

impl From<Unanswered> for CallError {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Refused(error) | Unanswered::Lost(error) => error,
        }
    }
}

/// Sends a request to a client, and waits for its answer.
pub(super) async fn send(
    peer: &Peer<RoleServer>,
    request: ServerRequest,
    patience: Duration,
) -> Result<Value, Unanswered> {
    let answer = tokio::time::timeout(patience, peer.send_request(request)).await;
    let answer = answer.map_err(|_| {
        let message = format!("the client did not answer within {patience:?} (`ask_timeout`)");
        Unanswered::Lost(CallError::new(ErrorCode::Timeout, message))
    })?;
    let answer = answer.map_err(|error| match error {
        ServiceError::McpError(_) | ServiceError::UnexpectedResponse => {
            Unanswered::Refused(CallError::from_error(error))
        }
        _ => Unanswered::Lost(CallError::from_error(error)),
    })?;
    serde_json::to_value(answer).map_err(|error| Unanswered::Refused(CallError::from_error(error)))
}

/// A question in the form of the protocol.
pub(super) fn input_request(method: &str, params: Value) -> Result<InputRequest, CallError> {
    InputRequest::deserialize(json!({ "method": method, "params": params })).map_err(|error| {
        CallError::execution(format!("the parameters of `{method}` are not what the protocol asks for: {error}"))
    })
}

pub(super) fn unsupported(capability: &str) -> CallError {
    CallError::new("UNSUPPORTED", format!("the client does not support {capability}"))
}

/// The capabilities of clients, in the names for handlers.
#[cfg(any(test, feature = "durable"))]
pub(super) const CAPABILITIES: [&str; 4] = [FORM, URL, "sampling", "roots"];

/// Forms, which are `elicitation.form` in the protocol, and implied by `elicitation` alone.
const FORM: &str = "elicitation";
const URL: &str = "elicitation.url";

/// The capability that a client needs for a question. `None` for a method that is not a question.
pub(super) fn capability(method: &str, params: &Value) -> Option<&'static str> {
    match method {
        "elicitation/create" if params.get("mode").is_some_and(|mode| mode == "url") => Some(URL),
        "elicitation/create" => Some(FORM),
        "sampling/createMessage" => Some("sampling"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}

/// True if a client declares a capability, in the form of the protocol.
pub(super) fn declares(all: &Value, capability: &str) -> bool {
    let declared = |name: &str| all.get(name).filter(|value| !value.is_null());
    match capability {
        // A client that declares only one mode must not be asked in the other (MCP 2025-11-25, "Elicitation").
        FORM => declared("elicitation").is_some_and(|modes| modes.get("form").is_some() || modes.get("url").is_none()),
        URL => declared("elicitation").is_some_and(|modes| modes.get("url").is_some()),
        other => declared(other).is_some(),
    }
}

/// The capability in the form of the protocol.
pub(super) fn declared(capability: &str) -> Value {
    match capability {
        URL => json!({ "elicitation": { "url": {} } }),
        other => json!({ other: {} }),
    }
}

/// True if a value is a valid answer for that method; if not, the question is asked again.
pub(super) fn is_answer(method: &str, answer: &Value) -> bool {
    match method {
        "elicitation/create" => ElicitResult::deserialize(answer).is_ok(),
        "sampling/createMessage" => answer.get("role").is_some() && answer.get("content").is_some(),
        _ => answer.get("roots").is_some_and(Value::is_array),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_asked_in_the_modes_that_it_declares() {
        for (declared, form, url) in [
            (json!({}), false, false),
            (json!({ "elicitation": null }), false, false),
            (json!({ "elicitation": {} }), true, false),
            (json!({ "elicitation": { "form": {} } }), true, false),
            (json!({ "elicitation": { "url": {} } }), false, true),
            (json!({ "elicitation": { "form": {}, "url": {} } }), true, true),
        ] {
            assert_eq!((declares(&declared, FORM), declares(&declared, URL)), (form, url), "{declared}");
        }
        for capability in CAPABILITIES {
            assert!(declares(&super::declared(capability), capability), "{capability}");
        }
        assert_eq!(capability("elicitation/create", &json!({ "mode": "url" })), Some(URL));
        assert_eq!(capability("elicitation/create", &json!({ "mode": "form" })), Some(FORM));
    }
}
