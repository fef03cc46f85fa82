//! Requests of a server to the user during a call: elicitation, sampling and roots.
//!
//! Servers of 2025-11-25 and before send requests of their own. Those of 2026-07-28 respond to the call with their
//! requests (`InputRequiredResult`), and the call is repeated with the answers. Both end in [`Asks::answer`].

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ElicitationCapability, FormElicitationCapability, RootsCapabilities, SamplingCapability,
    TASKS_EXTENSION_ID, UrlElicitationCapability,
};
use serde_json::{Map, Value, json};

use crate::model::futures::BoxFuture;
use crate::{CallError, ErrorCode};

/// Limit of the requests in one response to a call.
const MAX_REQUESTS: usize = 32;

/// The code of the error of a call that needs URLs to be visited first (2025-11-25, `URLElicitationRequiredError`).
const URL_ELICITATION_REQUIRED: i64 = -32042;

/// A question of a server to the user (MCP specification, `ElicitRequest`).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Elicitation {
    /// The text for the user.
    pub message: String,
    /// How the user is to answer.
    pub mode: ElicitationMode,
    /// The parameters as the server sent them.
    pub params: Map<String, Value>,
}

/// How a user is to answer an [`Elicitation`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationMode {
    /// By values for a form: the JSON Schema of an object of strings, numbers, booleans and enums.
    Form(Value),
    /// By visiting a URL, `https` or on this machine: others are declined. Show it before it is opened: it may lead
    /// anywhere. Accept it when the user is done there: some servers carry out nothing before that, and their call is
    /// repeated, once. If it is too early then, the call fails with the server's error.
    Url(String),
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationAnswer {
    /// Accepted, with the values of the form; `null` for a URL.
    Accept(Value),
    /// Declined.
    Decline,
    /// Cancelled: neither accepted nor declined.
    Cancel,
}

impl Elicitation {
    fn read(params: Map<String, Value>) -> Self {
        let text = |key: &str| params.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mode = match params.get("mode").and_then(Value::as_str) {
            Some("url") => ElicitationMode::Url(text("url")),
            _ => ElicitationMode::Form(params.get("requestedSchema").cloned().unwrap_or_default()),
        };
        Self { message: text("message"), mode, params }
    }

    /// The form's default values, for a program that accepts them.
    pub fn defaults(&self) -> Value {
        let ElicitationMode::Form(schema) = &self.mode else { return Value::Null };
        let properties = schema.get("properties").and_then(Value::as_object);
        let defaults = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, property)| Some((name.clone(), property.get("default")?.clone())));
        Value::Object(defaults.collect())
    }
}

impl ElicitationAnswer {
    fn into_json(self) -> Value {
        match self {
            Self::Accept(Value::Null) => json!({ "action": "accept" }),
            Self::Accept(content) => json!({ "action": "accept", "content": content }),
            Self::Decline => json!({ "action": "decline" }),
            Self::Cancel => json!({ "action": "cancel" }),
        }
    }
}

/// True if a URL is `https`, or `http` on this machine.
fn may_be_opened(url: &str) -> bool {
    let has = |prefix: &str| url.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    if has("https://") {
        return true;
    }
    let Some(rest) = url.get("http://".len()..).filter(|_| has("http://")) else { return false };
    // Some parsers end the authority at a `\`, others include it. The part before an `@` is not the host.
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_port =
        |port: &str| port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    ["localhost", "127.0.0.1", "[::1]"]
        .iter()
        .any(|host| authority.strip_prefix(host).is_some_and(|port| port.is_empty() || is_port(port)))
}

/// The elicitations in the details of an error.
fn elicitations(details: &Value) -> &[Value] {
    details.pointer("/data/elicitations").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A function of the program that answers.
pub(in crate::mcp) struct Answerer<I, O>(pub(in crate::mcp) Arc<dyn Fn(I) -> BoxFuture<'static, O> + Send + Sync>);

impl<I, O> Clone for Answerer<I, O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The functions that answer requests of servers.
#[derive(Clone, Default)]
pub(in crate::mcp) struct Asks {
    pub(in crate::mcp) elicitation: Option<Answerer<Elicitation, ElicitationAnswer>>,
    pub(in crate::mcp) sampling: Option<Answerer<Value, Result<Value, CallError>>>,
    pub(in crate::mcp) roots: Option<Vec<String>>,
}

impl Asks {
    /// The kinds of requests that servers may send.
    pub(in crate::mcp) fn capabilities(&self) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::default();
        if self.elicitation.is_some() {
            let elicitation = ElicitationCapability::new().with_form(FormElicitationCapability::default());
            capabilities.elicitation = Some(elicitation.with_url(UrlElicitationCapability::default()));
        }
        capabilities.sampling = self.sampling.is_some().then(SamplingCapability::default);
        capabilities.roots = self.roots.is_some().then(RootsCapabilities::default);
        // The response to a call may be a task: since 2026-07-28, as this extension.
        capabilities.extensions = Some([(TASKS_EXTENSION_ID.to_owned(), Map::new())].into());
        capabilities
    }

    /// Answers one request of a server: the result, or the code and the message of a JSON-RPC error.
    pub(in crate::mcp) async fn answer(&self, method: &str, params: Value) -> Result<Value, (i32, String)> {
        match method {
            "elicitation/create" => {
                let Value::Object(params) = params else {
                    return Err((-32602, "`params` is not an object".to_owned()));
                };
                let request = Elicitation::read(params);
                match &self.elicitation {
                    // A URL that a browser must not open is not shown to the user.
                    _ if matches!(&request.mode, ElicitationMode::Url(url) if !may_be_opened(url)) => {
                        tracing::warn!(
                            "a server asked to have a URL visited that is neither `https` nor of this machine"
                        );
                        Ok(ElicitationAnswer::Decline.into_json())
                    }
                    Some(answer) => Ok((answer.0)(request).await.into_json()),
                    None => Ok(ElicitationAnswer::Decline.into_json()),
                }
            }
            "sampling/createMessage" => match &self.sampling {
                Some(answer) => (answer.0)(params).await.map_err(|error| (-1, error.message().to_owned())),
                None => Err((-32601, "this client has no language model".to_owned())),
            },
            "roots/list" => {
                let roots = self.roots.iter().flatten().map(|uri| json!({ "uri": uri }));
                Ok(json!({ "roots": roots.collect::<Vec<_>>() }))
            }
            _ => Err((-32601, format!("`{method}` is nothing that this client does"))),
        }
    }

    /// True if these are the details of an error by which a server demands that the user visits URLs, and then that the
    /// call is repeated; and if there is someone to ask.
    pub(in crate::mcp) fn demands_visit(&self, details: &Value) -> bool {
        let is_url = |params: &Value| params.get("mode").is_some_and(|mode| mode == "url");
        self.elicitation.is_some()
            && details.get("code").and_then(Value::as_i64) == Some(URL_ELICITATION_REQUIRED)
            && (1..=MAX_REQUESTS).contains(&elicitations(details).len())
            && elicitations(details).iter().all(is_url)
    }

    /// Asks the user to visit the URLs in the details of such an error. True if the user accepts all.
    pub(in crate::mcp) async fn visits(&self, details: &Value) -> bool {
        for params in elicitations(details) {
            let answer = self.answer("elicitation/create", params.clone()).await;
            if !answer.is_ok_and(|answer| answer.get("action").is_some_and(|action| action == "accept")) {
                return false;
            }
        }
        true
    }

    /// Answers all requests of a call, by the names that the server gave them.
    pub(in crate::mcp) async fn answer_all(
        &self,
        requests: &Map<String, Value>,
    ) -> Result<Map<String, Value>, CallError> {
        if requests.len() > MAX_REQUESTS {
            let message = format!("the tool asks for {} answers at once, more than {MAX_REQUESTS}", requests.len());
            return Err(CallError::new(ErrorCode::ExecutionError, message));
        }
        let mut answers = Map::new();
        for (name, request) in requests {
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
            let params = request.get("params").cloned().unwrap_or_else(|| json!({}));
            let answer = self.answer(method, params).await.map_err(|(_, message)| {
                let details = json!({ "request": name, "method": method });
                CallError::new(
                    ErrorCode::ExecutionError,
                    format!("the tool needs an answer that there is not: {message}"),
                )
                .with_details(details)
            })?;
            answers.insert(name.clone(), answer);
        }
        Ok(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_nobody_answers_is_declined() {
        let asks = Asks::default();
        assert_eq!(
            asks.answer("elicitation/create", json!({ "message": "?" })).await,
            Ok(json!({ "action": "decline" }))
        );
        assert_eq!(asks.answer("roots/list", Value::Null).await, Ok(json!({ "roots": [] })));
        assert_eq!(asks.answer("sampling/createMessage", json!({})).await.unwrap_err().0, -32601);
        assert_eq!(asks.answer("tasks/get", json!({})).await.unwrap_err().0, -32601);
        let capabilities = serde_json::to_value(asks.capabilities()).unwrap();
        assert_eq!(capabilities, json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }));
    }

    #[tokio::test]
    async fn what_a_browser_must_not_open_is_declined() {
        let yes = |_: Elicitation| -> BoxFuture<'static, ElicitationAnswer> {
            Box::pin(std::future::ready(ElicitationAnswer::Accept(Value::Null)))
        };
        let asks = Asks { elicitation: Some(Answerer(Arc::new(yes))), ..Asks::default() };
        for (url, expected) in [
            ("https://a.example/x", "accept"),
            ("HTTPS://a.example/x", "accept"),
            ("http://localhost:8080/x", "accept"),
            ("http://[::1]:80/x", "accept"),
            ("http://127.0.0.1?x=a@b", "accept"),
            ("http://a.example/x", "decline"),
            ("http://127.0.0.1@a.example/x", "decline"),
            ("http://localhost\\@a.example/x", "decline"),
            ("http://localhost:x@a.example/", "decline"),
            ("http://127.0.0.1:80@a.example", "decline"),
            ("http://[::1]:x@a.example", "decline"),
            ("http://[::1].a.example/", "decline"),
            ("http://localhost.a.example/", "decline"),
            ("file:///etc/passwd", "decline"),
            ("javascript:alert(1)", "decline"),
            ("", "decline"),
        ] {
            let params = json!({ "message": "?", "mode": "url", "url": url });
            assert_eq!(asks.answer("elicitation/create", params).await.unwrap()["action"], expected, "{url}");
        }
    }

    #[test]
    fn elicitations_are_read() {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer", "default": 7 }, "t": { "type": "string" } } });
        let Value::Object(params) = json!({ "message": "How many?", "requestedSchema": schema }) else {
            unreachable!()
        };
        let form = Elicitation::read(params);
        assert_eq!((form.message.as_str(), &form.mode), ("How many?", &ElicitationMode::Form(schema)));
        assert_eq!(form.defaults(), json!({ "n": 7 }));
        let Value::Object(params) = json!({ "message": "Visit", "mode": "url", "url": "https://a.example" }) else {
            unreachable!()
        };
        assert_eq!(Elicitation::read(params).mode, ElicitationMode::Url("https://a.example".to_owned()));
    }
}
