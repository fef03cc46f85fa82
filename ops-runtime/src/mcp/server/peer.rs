//! Questions of a handler to the client that called its tool.
//!
//! Before 2026-07-28 a question is a request of the server to the client. Since then servers send no requests: the call
//! ends with the questions, and the client repeats it with the answers. So the handler is dropped where it asks, and
//! runs again from its start with the answers available. What was asked and answered in earlier rounds is in the request's
//! state, which the client echoes; it is signed, for one caller, tool and arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ErrorData, InputRequests, InputRequiredResult, InputResponses,
    RequestStateCodec, SealOptions,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use super::question::{capability, checked, declared, declares, input_request, is_answer, send, unsupported};
#[cfg(feature = "durable")]
use super::tasks::JobPeer;
use super::tool::StructuredContent;
use crate::model::hex::hex;
use crate::model::lock::lock;
use crate::model::random;
use crate::{CallError, Context, ErrorCode};

/// How long a client may take to answer.
const STATE_TTL: Duration = Duration::from_secs(3_600);

/// The error for a state that cannot be opened: the same for all reasons, so that it tells a forger nothing.
const BAD_STATE: &str = "this `requestState` is more than an hour old, or was not given by this server for this call. What \
                         the call did before it asked stays done: call the tool again without the state only if it may begin \
                         anew";

/// The client that called a tool, which a handler can ask while the call lasts.
///
/// A client of 2026-07-28 answers by calling the tool again, within an hour, and the handler repeats everything that it
/// did before it asked: so ask first. An answer is found by its key, method and parameters.
///
/// ```
/// use ops_runtime::mcp::McpPeer;
/// use ops_runtime::{CallError, Context};
/// use serde_json::json;
///
/// async fn delete(context: &Context) -> Result<&'static str, CallError> {
///     if let Some(peer) = McpPeer::of(context).filter(|peer| peer.supports("elicitation")) {
///         let schema = json!({ "type": "object", "properties": { "sure": { "type": "boolean" } } });
///         let params = json!({ "message": "Delete everything?", "requestedSchema": schema });
///         let answer = peer.ask("sure", "elicitation/create", params).await?;
///         if answer["content"]["sure"] != true {
///             return Ok("nothing was deleted");
///         }
///     }
///     Ok("all is gone")
/// }
/// ```
#[derive(Clone)]
pub struct McpPeer(Way);

/// How the client is reached.
#[derive(Clone)]
enum Way {
    Request(RequestPeer),
    /// Not at all, since the client answers by repeating the request: that would run a whole program again.
    #[cfg(all(feature = "gateway", feature = "program"))]
    Program(RequestPeer),
    /// By the task that the client reads.
    #[cfg(feature = "durable")]
    Task(JobPeer),
}

impl McpPeer {
    /// Finds the client that called the tool of this handler. For a nested call, it is the client of the outer tool, and
    /// for a step, that of the task. A job that a handler submits has no client.
    pub fn of(context: &Context) -> Option<Self> {
        if let Some(peer) = context.extension::<Self>() {
            return Some(peer.clone());
        }
        #[cfg(feature = "durable")]
        if let Some(peer) = JobPeer::of(context) {
            return Some(Self(Way::Task(peer)));
        }
        None
    }

    /// True if the client declared that capability: `elicitation` (forms), `elicitation.url` (URLs that the user opens),
    /// `sampling`, `sampling.tools` (its model may be given tools), `sampling.context` or `roots`.
    pub fn supports(&self, capability: &str) -> bool {
        match &self.0 {
            Way::Request(peer) => peer.supports(capability),
            #[cfg(all(feature = "gateway", feature = "program"))]
            Way::Program(peer) => peer.supports(capability),
            #[cfg(feature = "durable")]
            Way::Task(peer) => peer.supports(capability),
        }
    }

    /// The client as the calls of a program see it that runs in this call. `None` if they see the same.
    ///
    /// A client that answers by repeating its request would repeat the whole program, with the calls that it has made.
    /// Such a client is still seen, so that a handler which asks before it changes something does not go on unasked:
    /// its question fails.
    #[cfg(all(feature = "gateway", feature = "program"))]
    pub(crate) fn for_program(context: &Context) -> Option<Self> {
        match &context.extension::<Self>()?.0 {
            Way::Request(peer) if peer.repeats() => Some(Self(Way::Program(peer.clone()))),
            _ => None,
        }
    }

    /// True if the client answers by repeating its request.
    #[cfg(all(feature = "gateway", feature = "program"))]
    pub(crate) fn repeats(&self) -> bool {
        matches!(&self.0, Way::Request(peer) if peer.repeats())
    }

    /// The keys of the questions of earlier rounds of this call, from a client of 2026-07-28. Each has its answer, if that is
    /// valid for the method.
    #[cfg(all(feature = "gateway", feature = "program"))]
    pub(crate) fn earlier(&self, method: &str) -> impl Iterator<Item = (&str, Option<&Value>)> {
        let known = match &self.0 {
            Way::Request(peer) => Some(&peer.0.known),
            Way::Program(_) => None,
            #[cfg(feature = "durable")]
            Way::Task(_) => None,
        };
        known.into_iter().flat_map(move |Rounds { answers, asked }| {
            // A client may send answers, but not the state with the questions.
            let others = answers.keys().filter(move |key| !asked.contains_key(*key));
            let answer = move |key: &String| answers.get(key).filter(|answer| is_answer(method, answer));
            asked.keys().chain(others).map(move |key| (key.as_str(), answer(key)))
        })
    }

    /// Asks the client, and waits for its answer: `elicitation/create`, `sampling/createMessage` or `roots/list`, with
    /// parameters and result as the protocol describes them.
    ///
    /// The key, the method and the parameters identify the question if the handler runs again: then it gets the answer that
    /// was given, as long as all three are the same. Within a run, each `ask` is a question of its own.
    ///
    /// Before 2026-07-28, a question is withdrawn (`notifications/cancelled`) if its answer does not come in time, or if the
    /// call ends before. Over HTTP, the withdrawal is not sent on the stream of the call, but on that of the server's own
    /// messages (GET). A client that has not opened that stream does not learn of it.
    ///
    /// # Errors
    /// If the client does not support that, if the parameters are not those of the method or have more than 100 levels, or
    /// if the client refuses. With the code `UNSUPPORTED` also if the handler runs as a step of a task (`Context::once`), or
    /// if a program of a gateway called it for a client of 2026-07-28. With the code `ABORTED` if a task that the handler has
    /// spawned asks, and the call of a client of 2026-07-28 ends before the answer.
    pub async fn ask(&self, key: &str, method: &str, params: Value) -> Result<Value, CallError> {
        let Some(capability) = capability(method, &params) else {
            return Err(CallError::execution(format!("`{method}` is nothing that a client can be asked")));
        };
        match &self.0 {
            Way::Request(peer) => peer.ask(key, method, capability, params).await,
            #[cfg(all(feature = "gateway", feature = "program"))]
            Way::Program(_) => Err(in_program(method)),
            // Boxed, so that others are not as large.
            #[cfg(feature = "durable")]
            Way::Task(peer) => Box::pin(peer.ask(key, method, capability, params)).await,
        }
    }
}

impl fmt::Debug for McpPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("McpPeer");
        match &self.0 {
            Way::Request(peer) => shown.field("request", &peer.0.request.id),
            #[cfg(all(feature = "gateway", feature = "program"))]
            Way::Program(peer) => shown.field("program", &peer.0.request.id),
            #[cfg(feature = "durable")]
            Way::Task(peer) => shown.field("task", peer.id()),
        };
        shown.finish_non_exhaustive()
    }
}

/// The error of a question that a handler asks below a program.
#[cfg(all(feature = "gateway", feature = "program"))]
fn in_program(method: &str) -> CallError {
    let message = format!(
        "`{method}` is not possible in a program: this client answers by repeating its request, which would run the \
         program again. Whoever runs this server can offer the operation by the tools `search`, `describe` and `call`, \
         which call it by itself"
    );
    CallError::new("UNSUPPORTED", message)
}

/// The client of a request in flight.
#[derive(Clone)]
pub(super) struct RequestPeer(Arc<Inner>);

struct Inner {
    request: RequestContext<RoleServer>,
    known: Rounds,
    /// How long to wait for an answer within the same call.
    patience: Duration,
    asked: Mutex<Asked>,
    /// Wakes the call to read the new question.
    call: AtomicWaker,
    /// Notified when the call has ended.
    ended: Notify,
}

/// What a call has asked and what was answered, over all its rounds, by the keys that the client sees.
#[derive(Default)]
pub(super) struct Rounds {
    answers: InputResponses,
    /// The digest of each question.
    asked: BTreeMap<String, String>,
}

/// The questions of a call.
#[derive(Default)]
struct Asked {
    requests: InputRequests,
    missing: Option<ClientCapabilities>,
    /// The digests of all questions so far.
    digests: BTreeMap<String, String>,
    /// The keys of those that this run of the handler has asked.
    used: BTreeSet<String>,
    /// True if the call has ended.
    has_ended: bool,
}

impl Asked {
    /// The key for the client of a question with this key: the one that the question had in an earlier round. Another
    /// question has another key, so that no answer counts for a question that the user was not shown.
    fn key(&mut self, key: &str, digest: String) -> String {
        let numbered = (2..).map(|number: usize| format!("{key}#{number}"));
        let is_own =
            |own: &String| !self.used.contains(own) && self.digests.get(own).is_none_or(|known| *known == digest);
        let own = std::iter::once(key.to_owned()).chain(numbered).find(is_own).unwrap_or_else(|| key.to_owned());
        self.digests.insert(own.clone(), digest);
        self.used.insert(own.clone());
        own
    }
}

/// Tells questions apart.
fn digest(key: &str, method: &str, params: &Value) -> String {
    let mut question = json!([key, method, params]);
    // The order of members does not matter.
    question.sort_all_objects();
    hex(Sha256::digest(question.to_string()).get(..).unwrap_or_default())
}

impl RequestPeer {
    pub(super) fn new(request: RequestContext<RoleServer>, known: Rounds, patience: Duration) -> Self {
        let asked = Mutex::new(Asked { digests: known.asked.clone(), ..Asked::default() });
        Self(Arc::new(Inner { request, known, patience, asked, call: AtomicWaker::new(), ended: Notify::new() }))
    }

    /// The client for handlers.
    pub(super) fn shown(&self) -> McpPeer {
        McpPeer(Way::Request(self.clone()))
    }

    pub(super) fn request(&self) -> &RequestContext<RoleServer> {
        &self.0.request
    }

    fn supports(&self, capability: &str) -> bool {
        let declared = self.0.request.client_capabilities().and_then(|all| serde_json::to_value(all).ok());
        declared.is_some_and(|all| declares(&all, capability))
    }

    /// True if the client answers by repeating its request.
    fn repeats(&self) -> bool {
        StructuredContent::of(self.0.request.protocol_version().as_ref()) == StructuredContent::Any
    }

    async fn ask(&self, key: &str, method: &str, capability: &str, params: Value) -> Result<Value, CallError> {
        if !self.repeats() {
            checked(method, &params)?;
            if !self.supports(capability) {
                return Err(unsupported(capability));
            }
            return Ok(send(&self.0.request.peer, method, params, self.0.patience).await?);
        }
        let digest = digest(key, method, &params);
        let request = input_request(method, params)?;
        let is_supported = self.supports(capability);
        let unanswered = || if is_supported { after_end(method) } else { unsupported(capability) };
        let ended = {
            let mut asked = lock(&self.0.asked);
            let key = asked.key(key, digest);
            if let Some(answer) = self.0.known.answers.get(&key).filter(|answer| is_answer(method, answer)) {
                return Ok(answer.clone());
            }
            if asked.has_ended {
                return Err(unanswered());
            }
            if is_supported {
                asked.requests.insert(key, request);
            } else {
                asked.missing = serde_json::from_value(declared(capability)).ok();
            }
            // Created before the lock is released, so that it is notified however soon the call ends.
            self.0.ended.notified()
        };
        self.0.call.wake();
        // This future ends with the call, unless the handler asks in a task of its own.
        ended.await;
        Err(unanswered())
    }

    /// Runs a call until it has ended, or until it waits for an answer that a later call will have.
    // Not an async fn, whose future would hold the call twice.
    pub(super) fn until_asked<T>(
        &self,
        mut call: Pin<&mut impl Future<Output = T>>,
    ) -> impl Future<Output = Result<T, Question>> {
        let running = Running(&self.0);
        poll_fn(move |task| {
            if let Poll::Ready(done) = call.as_mut().poll(task) {
                return Poll::Ready(Ok(done));
            }
            // This moves the whole of it into the closure, so that it is dropped with the future.
            let running = &running;
            // Registered before the check, so that any later question wakes the call.
            running.0.call.register(task.waker());
            let mut asked = lock(&running.0.asked);
            let requests = std::mem::take(&mut asked.requests);
            match asked.missing.take() {
                Some(capabilities) => Poll::Ready(Err(Question::Unsupported(capabilities))),
                None if requests.is_empty() => Poll::Pending,
                None => Poll::Ready(Err(Question::Requests(requests))),
            }
        })
    }

    /// The result of a call that waits for answers.
    pub(super) fn question(
        &self,
        question: Question,
        states: &States,
        about: &[u8],
    ) -> Result<InputRequiredResult, ErrorData> {
        match question {
            Question::Unsupported(capabilities) => Err(ErrorData::missing_required_client_capability(capabilities)),
            Question::Requests(requests) => {
                let state = states.seal(&self.0.known.answers, &lock(&self.0.asked).digests, about)?;
                let mut result = InputRequiredResult::from_request_state(state);
                result.input_requests = Some(requests);
                Ok(result)
            }
        }
    }
}

/// The error of a question whose call has ended before the question was asked or answered.
fn after_end(method: &str) -> CallError {
    CallError::new(ErrorCode::Aborted, format!("`{method}` has no answer: the call has ended"))
}

/// A call that runs. When this is dropped, the questions of its tasks end.
struct Running<'a>(&'a Inner);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        lock(&self.0.asked).has_ended = true;
        self.0.ended.notify_waiters();
    }
}

/// The end of a call that asks, instead of a result.
pub(super) enum Question {
    Requests(InputRequests),
    Unsupported(ClientCapabilities),
}

/// The state of calls that wait for answers, which their clients keep.
pub(super) struct States(RequestStateCodec);

impl States {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self(RequestStateCodec::new_unchecked(key))
    }

    /// States with a random key.
    pub(super) fn random() -> Self {
        Self::new(random::bytes())
    }

    fn seal(
        &self,
        answers: &InputResponses,
        asked: &BTreeMap<String, String>,
        about: &[u8],
    ) -> Result<String, ErrorData> {
        let options = SealOptions::new().associated_data(about).ttl(STATE_TTL);
        self.0
            .seal_json_with(&json!({ "answers": answers, "asked": asked }), &options)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// What a call has asked so far, and the answers: those in its state, and its own.
    pub(super) fn rounds(&self, request: &mut CallToolRequestParams, about: &[u8]) -> Result<Rounds, ErrorData> {
        let mut known = Rounds::default();
        if let Some(state) = request.request_state.take() {
            let mut state: Value = self.0.open_json_with(&state, about).map_err(|error| {
                tracing::debug!(%error, "the state of a call cannot be used");
                ErrorData::invalid_params(BAD_STATE, None)
            })?;
            // An earlier version gave other members: then its questions are asked again.
            let mut member = |name: &str| state.get_mut(name).map(Value::take).unwrap_or_default();
            known.answers = serde_json::from_value(member("answers")).unwrap_or_default();
            known.asked = serde_json::from_value(member("asked")).unwrap_or_default();
        }
        known.answers.extend(request.input_responses.take().unwrap_or_default());
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_the_key_of_its_earlier_round() {
        let of = |message: &str| digest("sure", "elicitation/create", &json!({ "message": message }));
        let digests = [("sure", of("a")), ("sure#2", of("b"))].map(|(key, digest)| (key.to_owned(), digest));
        let mut asked = Asked { digests: digests.into(), ..Asked::default() };
        for (message, expected) in [("b", "sure#2"), ("c", "sure#3"), ("a", "sure"), ("a", "sure#4"), ("c", "sure#5")] {
            assert_eq!(asked.key("sure", of(message)), expected);
        }
    }

    #[test]
    fn a_state_that_has_expired_is_not_called_forged() {
        let states = States::new([7; 32]);
        let seal = |ttl: Duration| {
            let options = SealOptions::new().associated_data(b"a").ttl(ttl);
            states.0.seal_json_with(&json!({}), &options).unwrap()
        };
        let (fresh, expired) = (seal(STATE_TTL), seal(Duration::ZERO));
        // The time is compared in milliseconds.
        std::thread::sleep(Duration::from_millis(5));
        for (state, about, expected) in
            [(&fresh, b"a", None), (&expired, b"a", Some(BAD_STATE)), (&fresh, b"b", Some(BAD_STATE))]
        {
            let mut request = CallToolRequestParams::new("ask").with_request_state(state.clone());
            let refused = states.rounds(&mut request, about).err().map(|error| error.message);
            assert_eq!(refused.as_deref(), expected, "{state} for {about:?}");
        }
    }

    #[test]
    fn questions_are_told_apart() {
        let (ask, create) = ("elicitation/create", "sampling/createMessage");
        let params = json!({ "message": "a", "mode": "form" });
        let known = digest("sure", ask, &params);
        assert_eq!(digest("sure", ask, &json!({ "mode": "form", "message": "a" })), known);
        for (key, method, params) in [
            ("sure#2", ask, &params),
            ("sure", create, &params),
            ("sure", ask, &json!({ "message": "b", "mode": "form" })),
        ] {
            assert_ne!(digest(key, method, params), known, "{key} {method} {params}");
        }
    }
}
