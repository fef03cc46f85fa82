//! Questions to clients.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use memchr::memmem;
use rmcp::model::{
    CancelledNotificationParam, CustomRequest, CustomResult, ElicitResult, InputRequest, JsonRpcMessage, MetaObject,
    RequestId, RequestMetaObject, ServerJsonRpcMessage, ServerRequest, ServerResult, TaskStatus,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleServer, ServiceError};
use serde_core::Deserialize;
use serde_json::{Map, Value, json};

use crate::model::random;
use crate::{CallError, ErrorCode};

/// The member of a question's `_meta` that has the parameters as the handler gave them.
const GIVEN: &str = "ops/given-params";

/// How deep the parameters of a question may be nested. A message or a stored question has a few levels around them, and
/// `serde_json` reads 127 levels of a text.
const MAX_DEPTH: usize = 100;

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

impl From<ServiceError> for Unanswered {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(_) | ServiceError::UnexpectedResponse => Self::Refused(CallError::from_error(error)),
            _ => Self::Lost(CallError::from_error(error)),
        }
    }
}

/// Sends a question to a client of a revision before 2026-07-28, with these parameters, and waits for its answer. A question
/// that is no longer awaited is withdrawn.
pub(super) async fn send(
    peer: &Peer<RoleServer>,
    method: &str,
    params: Value,
    patience: Duration,
) -> Result<Value, Unanswered> {
    let params = Some(identified(method, params)).filter(|params| !params.is_null());
    let request = ServerRequest::CustomRequest(CustomRequest::new(method, params));
    let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    let mut open = Open { peer, id: Some(sent.id.clone()) };
    let answer = tokio::time::timeout(patience, sent.await_response()).await.map_err(|_| {
        let message = format!("the client did not answer within {patience:?} (`ask_timeout`)");
        Unanswered::Lost(CallError::new(ErrorCode::Timeout, message))
    })?;
    open.id = None;
    serde_json::to_value(answer?).map_err(|error| Unanswered::Refused(CallError::from_error(error)))
}

/// Gives a question with a URL an id if its handler gave none: these revisions require it, and hosts refuse a question without
/// one.
fn identified(method: &str, mut params: Value) -> Value {
    if capability(method, &params) == Some(URL)
        && let Some(members) = params.as_object_mut()
    {
        members.entry("elicitationId").or_insert_with(|| random::key().into());
    }
    params
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

/// A question in the form of the protocol, for a result.
///
/// The SDK's types are only the check: they drop what they do not know, such as the `pattern` of a text. So the parameters
/// are beside the typed ones, as a member of `_meta`, until the result is sent ([`as_given`], [`as_given_over_http`]).
///
/// # Errors
/// If the parameters are not those of the method.
pub(super) fn input_request(method: &str, params: Value) -> Result<InputRequest, CallError> {
    let mut request = checked(method, &params)?;
    let extensions = match &mut request {
        InputRequest::Elicitation(request) => &mut request.extensions,
        InputRequest::CreateMessage(request) => &mut request.extensions,
        InputRequest::ListRoots(request) => &mut request.extensions,
        _ => return Err(CallError::execution(format!("`{method}` is nothing that a client can be asked"))),
    };
    extensions.insert(RequestMetaObject(MetaObject(Map::from_iter([(GIVEN.to_owned(), params)]))));
    Ok(request)
}

/// Checks the parameters of a question.
pub(super) fn checked(method: &str, params: &Value) -> Result<InputRequest, CallError> {
    if is_deeper(params, MAX_DEPTH) {
        let message = format!("the parameters of `{method}` are nested in more than {MAX_DEPTH} levels");
        return Err(CallError::execution(message));
    }
    InputRequest::deserialize(json!({ "method": method, "params": params })).map_err(|error| {
        CallError::execution(format!("the parameters of `{method}` are not what the protocol asks for: {error}"))
    })
}

/// True if a value has more than this number of levels of lists and objects.
fn is_deeper(value: &Value, levels: usize) -> bool {
    match (value, levels.checked_sub(1)) {
        (Value::Array(_) | Value::Object(_), None) => true,
        (Value::Array(items), Some(below)) => items.iter().any(|item| is_deeper(item, below)),
        (Value::Object(members), Some(below)) => members.values().any(|member| is_deeper(member, below)),
        _ => false,
    }
}

/// A message whose questions have the parameters that their handlers gave.
pub(super) fn as_given(message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    match message {
        JsonRpcMessage::Response(mut response) => {
            let may_ask = match &response.result {
                ServerResult::InputRequiredResult(_) => true,
                ServerResult::GetTaskResult(result) => result.task.status() == TaskStatus::InputRequired,
                _ => false,
            };
            if may_ask
                && let Ok(mut told) = serde_json::to_value(&response.result)
                && restore(&mut told)
            {
                response.result = ServerResult::CustomResult(CustomResult(told));
            }
            JsonRpcMessage::Response(response)
        }
        other => other,
    }
}

/// [`as_given`] for an event, as the SDK writes it.
pub(super) fn as_given_over_http(event: Bytes) -> Bytes {
    // Most events are no questions.
    if memmem::find(&event, GIVEN.as_bytes()).is_none() {
        return event;
    }
    let Ok(text) = std::str::from_utf8(&event) else { return event };
    let lines = text.split_inclusive('\n').map(|line| {
        let message = line.strip_prefix("data:").unwrap_or_default();
        let mut message: Value = serde_json::from_str(message).unwrap_or_default();
        match message.get_mut("result").is_some_and(restore) {
            true => Cow::Owned(format!("data: {message}\n")),
            false => Cow::Borrowed(line),
        }
    });
    Bytes::from(lines.collect::<String>())
}

/// Gives the questions in a result the parameters that their handlers gave. False if there are none.
fn restore(result: &mut Value) -> bool {
    let requests = result.get_mut("inputRequests").and_then(Value::as_object_mut);
    let mut is_changed = false;
    for request in requests.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
        let meta = request.get_mut("params").and_then(|params| params.get_mut("_meta"));
        let Some(given) = meta.and_then(|meta| meta.get_mut(GIVEN)).map(Value::take) else { continue };
        is_changed = true;
        match given {
            Value::Null => _ = request.shift_remove("params"),
            params => _ = request.insert("params".to_owned(), params),
        }
    }
    is_changed
}

pub(super) fn unsupported(capability: &str) -> CallError {
    CallError::new("UNSUPPORTED", format!("the client does not support {capability}"))
}

/// The capabilities of clients, in the names for handlers.
#[cfg(any(test, feature = "durable"))]
pub(super) const CAPABILITIES: [&str; 6] = [FORM, URL, SAMPLING, TOOLS, "sampling.context", "roots"];

/// Forms, which are `elicitation.form` in the protocol, and implied by `elicitation` alone.
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

/// The capability in the form of the protocol.
pub(super) fn declared(capability: &str) -> Value {
    capability.rsplit('.').fold(json!({}), |below, name| json!({ name: below }))
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
