//! What clients are asked.

use std::time::Duration;

use rmcp::model::{CancelledNotificationParam, ElicitResult, InputRequest, RequestId, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions, RoleServer, ServiceError};
use serde_core::Deserialize;
use serde_json::{Value, json};

use crate::{CallError, ErrorCode};

/// Why a client's answer is not there.
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

impl From<ServiceError> for Unanswered {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(_) | ServiceError::UnexpectedResponse => Self::Refused(CallError::from_error(error)),
            _ => Self::Lost(CallError::from_error(error)),
        }
    }
}

/// Sends a request to a client, and waits for its answer. One that nobody waits for any more is withdrawn.
pub(super) async fn send(
    peer: &Peer<RoleServer>,
    request: ServerRequest,
    patience: Duration,
) -> Result<Value, Unanswered> {
    let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    let mut open = Open { peer, id: Some(sent.id.clone()) };
    let answer = tokio::time::timeout(patience, sent.await_response()).await.map_err(|_| {
        let message = format!("the client did not answer within {patience:?} (`ask_timeout`)");
        Unanswered::Lost(CallError::new(ErrorCode::Timeout, message))
    })?;
    open.id = None;
    serde_json::to_value(answer?).map_err(|error| Unanswered::Refused(CallError::from_error(error)))
}

/// A question that waits for its answer. If it is dropped before, the client is told, so that its user is not asked for nothing
/// (MCP specification, "Lifecycle", on timeouts), and the SDK forgets the request.
struct Open<'a> {
    peer: &'a Peer<RoleServer>,
    id: Option<RequestId>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (peer, reason) = (self.peer.clone(), "nobody waits for the answer any more".to_owned());
        // Its sending is not waited for: a client that reads nothing would hold up the call.
        runtime.spawn(async move {
            let told = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), Some(reason))).await;
            if let Err(error) = told {
                tracing::debug!(%error, "a question could not be withdrawn");
            }
        });
    }
}

/// A question as the protocol has it.
pub(super) fn input_request(method: &str, params: Value) -> Result<InputRequest, CallError> {
    InputRequest::deserialize(json!({ "method": method, "params": params })).map_err(|error| {
        CallError::execution(format!("the parameters of `{method}` are not what the protocol asks for: {error}"))
    })
}

pub(super) fn unsupported(capability: &str) -> CallError {
    CallError::new("UNSUPPORTED", format!("the client does not support {capability}"))
}

/// What clients can be asked by, as handlers name it.
#[cfg(any(test, feature = "durable"))]
pub(super) const CAPABILITIES: [&str; 6] = [FORM, URL, SAMPLING, TOOLS, "sampling.context", "roots"];

/// Forms, which the protocol calls `elicitation.form`, and which are meant by `elicitation` alone.
const FORM: &str = "elicitation";
const URL: &str = "elicitation.url";

const SAMPLING: &str = "sampling";
/// Sampling by a model that may call tools.
const TOOLS: &str = "sampling.tools";

/// What a client has to support to be asked that. `None` for what clients are not asked.
pub(super) fn capability(method: &str, params: &Value) -> Option<&'static str> {
    match method {
        "elicitation/create" if params.get("mode").is_some_and(|mode| mode == "url") => Some(URL),
        "elicitation/create" => Some(FORM),
        // Clients without the capability must not be sent these (MCP 2025-11-25, "Sampling").
        "sampling/createMessage" if has(params, "tools") || has(params, "toolChoice") => Some(TOOLS),
        "sampling/createMessage" => Some(SAMPLING),
        "roots/list" => Some("roots"),
        _ => None,
    }
}

fn has(value: &Value, name: &str) -> bool {
    value.get(name).is_some_and(|member| !member.is_null())
}

/// True if a client declares a capability, by the capabilities as the protocol has them.
pub(super) fn declares(all: &Value, capability: &str) -> bool {
    let mut names = capability.split('.');
    let declared = names.try_fold(all, |above, name| above.get(name).filter(|value| !value.is_null()));
    match capability {
        // A client that declares one mode alone must not be asked by the other (MCP 2025-11-25, "Elicitation").
        FORM => declared.is_some_and(|modes| has(modes, "form") || !has(modes, "url")),
        _ => declared.is_some(),
    }
}

/// The capability as the protocol has it.
pub(super) fn declared(capability: &str) -> Value {
    capability.rsplit('.').fold(json!({}), |below, name| json!({ name: below }))
}

/// True if a value is an answer to that method; if not, the question is asked again.
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

    #[test]
    fn a_client_is_sent_tools_for_its_model_if_it_declares_them() {
        for (all, sampling, tools, context) in [
            (json!({}), false, false, false),
            (json!({ "sampling": {} }), true, false, false),
            (json!({ "sampling": { "tools": null, "context": {} } }), true, false, true),
            (json!({ "sampling": { "tools": {} } }), true, true, false),
        ] {
            let found = [SAMPLING, TOOLS, "sampling.context"].map(|capability| declares(&all, capability));
            assert_eq!(found, [sampling, tools, context], "{all}");
        }
        assert_eq!(declared(TOOLS), json!({ "sampling": { "tools": {} } }));
        for (params, needed) in [
            (json!({ "messages": [], "maxTokens": 1 }), SAMPLING),
            (json!({ "tools": null, "includeContext": "thisServer" }), SAMPLING),
            (json!({ "tools": [] }), TOOLS),
            (json!({ "toolChoice": { "mode": "none" } }), TOOLS),
        ] {
            assert_eq!(capability("sampling/createMessage", &params), Some(needed), "{params}");
        }
    }
}
