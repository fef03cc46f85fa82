//! Intercepts the messages between rmcp and the server, for both transports.
//!
//! rmcp decodes a result into one of many types, and drops what it does not know. So responses to calls and lists are
//! taken out here unchanged, and rmcp only learns that there is a response. Progress is taken out, too: rmcp passes
//! each notification to a task of its own, which would change their order. Messages that rmcp cannot handle are
//! removed: responses to no request, and invalid responses of old servers to `server/discover`.

// With explicit paths, so that a fuzz target can include this file as a module.
#[path = "interceptor/discovery.rs"]
mod discovery;
#[path = "interceptor/questions.rs"]
mod questions;
#[path = "interceptor/slot.rs"]
mod slot;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetExtensions, GetMeta, NumberOrString,
    ProgressToken, RequestId, ServerJsonRpcMessage, ServerResult,
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Notify;

pub(super) use self::discovery::{STATELESS, legacy};
use self::discovery::{reports_changes, unknown};
use self::questions::{MAX_ASKED, Questions};
pub(super) use self::slot::{Answer, RpcError, Slot};
use crate::Progress;
use crate::model::lock::lock;
use crate::model::separators::separators;

/// How many lines of standard error are kept, to explain why a server did not start.
pub(super) const LAST_WORDS: usize = 10;

/// How many characters of such a line are kept.
const LAST_LINE: usize = 500;

/// Limit of the id of a request of the server, in bytes.
const MAX_ID: usize = 256;

/// The least number of bytes that a value of a list counts for: in memory it takes more than its text.
const VALUE: usize = 32;

/// Limit of the bytes of a kept error of the server.
const MAX_ERROR: usize = 1024 * 1024;

/// The connection to one server, as its transport sees it.
pub(super) struct Interceptor {
    /// A weak reference to itself, for parts that have to report their end.
    me: Weak<Self>,
    /// The name of the server in errors and logs.
    pub(super) server: Arc<str>,
    pending: Mutex<HashMap<i64, Pending>>,
    /// Why the connection ended.
    end: OnceLock<String>,
    /// True if the server does not know the newest revision.
    is_old: AtomicBool,
    /// True if the server declares that it reports changes of its tools in the session.
    reports_changes: AtomicBool,
    last_words: Mutex<VecDeque<String>>,
    /// True if the response to a ping is an HTTP request of its own.
    over_http: AtomicBool,
    /// The requests of the server without a response, and its questions to the user.
    pub(super) questions: Questions,
    /// The pings without one, if the queue for writing is bounded: every ping gets a response.
    pings: Mutex<HashSet<NumberOrString>>,
    /// Notified when a ping gets its response.
    ponged: Notify,
}

/// A request without a response, or whose call may still report progress.
///
/// The slot of a call belongs to its caller: when that is gone, so are the call and its entry.
enum Pending {
    Discover,
    Initialize,
    /// A request whose response only rmcp needs, such as a subscription.
    Other,
    Call(Weak<Slot>),
    /// A call with a response. If the response is a task, its progress continues under the number of the call.
    Answered(Weak<Slot>),
}

/// The parts of a server's message that are needed here.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// A member that may be `null`. It is not missing then.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams {
    progress_token: Value,
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

/// What rmcp gets of a message.
pub(super) enum Verdict {
    /// All of it.
    Pass,
    /// That the request has a response.
    Answered(i64),
    /// That the request failed.
    Failed(i64, ErrorData),
    /// Nothing: it is a child's ping, to which the transport responds.
    Ping(NumberOrString),
    /// Nothing.
    Drop,
}

impl Interceptor {
    pub(super) fn new(server: impl Into<Arc<str>>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            server: server.into(),
            pending: Mutex::default(),
            end: OnceLock::new(),
            is_old: AtomicBool::new(false),
            reports_changes: AtomicBool::new(false),
            last_words: Mutex::default(),
            over_http: AtomicBool::new(false),
            questions: Questions::default(),
            pings: Mutex::default(),
            ponged: Notify::new(),
        })
    }

    /// From now on, every response to the server is an HTTP request of its own.
    #[cfg(feature = "mcp-http")]
    pub(super) fn over_http(&self) {
        self.over_http.store(true, Ordering::Relaxed);
    }

    /// Number of calls and lists without a response.
    pub(super) fn pending(&self) -> usize {
        lock(&self.pending).values().filter(|pending| matches!(pending, Pending::Call(_))).count()
    }

    /// Sets why the connection ended; the first reason counts.
    pub(super) fn end(&self, reason: impl Into<String>) {
        let _ = self.end.set(reason.into());
    }

    /// The reason why the connection ended, if known.
    pub(super) fn reason(&self) -> Option<&str> {
        self.end.get().map(String::as_str)
    }

    /// Keeps a line that the server wrote to standard error.
    pub(super) fn said(&self, line: &str) {
        let mut words = lock(&self.last_words);
        if words.len() == LAST_WORDS {
            words.pop_front();
        }
        words.push_back(crate::model::text::readable(line, LAST_LINE));
    }

    /// The last lines on standard error.
    pub(super) fn last_words(&self) -> String {
        Vec::from(lock(&self.last_words).clone()).join("\n")
    }

    /// Forgets a request whose caller is gone.
    pub(super) fn forget(&self, id: i64) {
        lock(&self.pending).remove(&id);
    }

    /// Forgets a request that will have no response. One that has one may still report progress.
    pub(super) fn give_up(&self, id: i64) {
        let mut pending = lock(&self.pending);
        if !matches!(pending.get(&id), Some(Pending::Answered(_))) {
            pending.remove(&id);
        }
    }

    /// Takes note of a message that is about to be sent.
    pub(super) fn outbound(&self, message: &mut ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let NumberOrString::Number(id) = request.id else { return };
                let pending = match &request.request {
                    ClientRequest::DiscoverRequest(_) => Pending::Discover,
                    ClientRequest::InitializeRequest(_) => Pending::Initialize,
                    other => match other.extensions().get::<Arc<Slot>>() {
                        Some(slot) => {
                            slot.sent(self.me.clone(), id);
                            Pending::Call(Arc::downgrade(slot))
                        }
                        None => Pending::Other,
                    },
                };
                if matches!(pending, Pending::Call(_)) {
                    // One number for the request and its progress.
                    request.request.get_meta_mut().set_progress_token(ProgressToken(NumberOrString::Number(id)));
                }
                lock(&self.pending).insert(id, pending);
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(NumberOrString::Number(id)) = &cancelled.params.request_id
                {
                    self.forget(*id);
                }
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {}
        }
    }

    /// Takes note of a response to the server that is about to be sent. False if its request is not open any more: its
    /// session is lost, or the server has cancelled it.
    pub(super) fn replies(&self, message: &ClientJsonRpcMessage) -> bool {
        answers(message).is_none_or(|id| self.questions.end(id))
    }

    /// Notes that a message is being written to the server, and is no longer queued.
    pub(super) fn sent(&self, message: &ClientJsonRpcMessage) {
        if let Some(id) = answers(message)
            && lock(&self.pings).remove(id)
        {
            self.ponged.notify_one();
        }
    }

    /// True if so many pings of the server have no response that reading from it must pause.
    pub(super) fn is_behind(&self) -> bool {
        lock(&self.pings).len() >= MAX_ASKED
    }

    /// Waits until enough pings have a response.
    pub(super) async fn caught_up(&self) {
        while self.is_behind() {
            self.ponged.notified().await;
        }
    }

    /// True unless the message is a request of ours whose caller is gone.
    pub(super) fn is_wanted(&self, message: &ClientJsonRpcMessage) -> bool {
        match message {
            ClientJsonRpcMessage::Request(request) => match request.id {
                NumberOrString::Number(id) => lock(&self.pending).contains_key(&id),
                NumberOrString::String(_) => true,
            },
            _ => true,
        }
    }

    /// Passes on or drops a request or notification of the server: too many concurrent requests are dropped.
    fn heard(&self, id: Option<&RawValue>, method: &str, params: Option<&RawValue>) -> Verdict {
        #[derive(Deserialize)]
        struct Cancelled {
            #[serde(rename = "requestId")]
            id: NumberOrString,
        }
        let Some(id) = id.filter(|id| id.get() != "null") else {
            if method == "notifications/cancelled"
                && let Some(Ok(cancelled)) = params.map(|params| serde_json::from_str::<Cancelled>(params.get()))
            {
                // A cancelled ping gets its response anyway; rmcp would not report the cancellation.
                if lock(&self.pings).contains(&cancelled.id) {
                    return Verdict::Drop;
                }
                // rmcp drops the response to it.
                self.questions.end(&cancelled.id);
            }
            return if method == "notifications/progress" { self.progress(params) } else { Verdict::Pass };
        };
        let id = (id.get().len() <= MAX_ID).then(|| serde_json::from_str::<NumberOrString>(id.get()).ok()).flatten();
        let is_bounded = method == "ping" && !self.over_http.load(Ordering::Relaxed);
        let verdict = id.and_then(|id| {
            if is_bounded {
                // No limit for pings here: reading pauses instead.
                lock(&self.pings).insert(id.clone()).then_some(Verdict::Ping(id))
            } else {
                self.questions.begin(id, params).then_some(Verdict::Pass)
            }
        });
        verdict.unwrap_or_else(|| {
            let open = self.questions.len();
            tracing::warn!(server = %self.server, open, "a request of the server's is dropped: too many, or not a new id");
            Verdict::Drop
        })
    }

    /// Takes our part out of a server's message, and returns what rmcp gets of it.
    ///
    /// # Errors
    /// If it is not a JSON object, or not a JSON-RPC message.
    pub(super) fn inbound(&self, text: &str) -> Result<Verdict, serde_json::Error> {
        let mut frame: Frame<'_> = serde_json::from_str(text)?;
        // Some servers write a result of `null` beside an error. It counts as no result.
        if frame.error.is_some() && frame.result.is_some_and(|result| result.get() == "null") {
            frame.result = None;
        }
        if let Some(method) = &frame.method {
            return Ok(self.heard(frame.id, method, frame.params));
        }
        // While the client connects, an error without an id belongs to the only pending request.
        let id = frame.id.and_then(number).or_else(|| frame.error.and_then(|_| self.connecting()));
        let Some(id) = id else { return Ok(self.stray(text)) };
        let pending = self.answered(id);
        Ok(match pending {
            None | Some(Pending::Answered(_)) => self.stray(text),
            Some(Pending::Other) => Verdict::Pass,
            Some(Pending::Initialize) => {
                self.reports_changes.store(frame.result.is_some_and(reports_changes), Ordering::Release);
                Verdict::Pass
            }
            Some(Pending::Discover) => {
                let RpcError { code, message, data } = read_error(frame.error);
                let unknown = unknown(frame.result, &code, &message, &data);
                self.is_old.store(unknown.is_some(), Ordering::Release);
                unknown.map_or(Verdict::Pass, |error| Verdict::Failed(id, error))
            }
            Some(Pending::Call(slot)) => {
                let Some(slot) = slot.upgrade() else { return Ok(self.stray(text)) };
                let mut shared = slot.shared;
                slot.fill(match (frame.result, frame.error) {
                    (Some(result), _) if slot.room.is_some_and(|room| cost(result.get()) > room) => {
                        shared = false;
                        Answer::TooLarge
                    }
                    (Some(result), _) => Answer::Result(result.to_owned()),
                    (None, error) => Answer::Error(read_error(error)),
                });
                if shared { Verdict::Pass } else { Verdict::Answered(id) }
            }
        })
    }

    /// The request of a response. Calls that may still report progress stay, and accept no second response.
    fn answered(&self, id: i64) -> Option<Pending> {
        let mut pending = lock(&self.pending);
        let found = pending.remove(&id)?;
        if let Pending::Call(slot) | Pending::Answered(slot) = &found {
            pending.insert(id, Pending::Answered(slot.clone()));
        }
        Some(found)
    }

    /// Stops waiting for the response to `server/discover`: old servers may send none.
    pub(super) fn give_up_discovery(&self) -> Option<ServerJsonRpcMessage> {
        let mut pending = lock(&self.pending);
        let id = pending.iter().find(|(_, pending)| matches!(pending, Pending::Discover)).map(|(id, _)| *id)?;
        pending.remove(&id);
        self.is_old.store(true, Ordering::Release);
        Some(failed(id, legacy("no answer")))
    }

    /// True if the server does not know the newest revision.
    #[cfg(feature = "mcp-http")]
    pub(super) fn is_old(&self) -> bool {
        self.is_old.load(Ordering::Acquire)
    }

    /// True if the server declares that it reports changes of its tools in the session.
    #[cfg(feature = "mcp-http")]
    pub(super) fn reports_changes(&self) -> bool {
        self.reports_changes.load(Ordering::Acquire)
    }

    /// True while the server has not sent its supported revisions.
    pub(super) fn discovering(&self) -> bool {
        lock(&self.pending).values().any(|pending| matches!(pending, Pending::Discover))
    }

    /// The request that is pending while the client connects.
    fn connecting(&self) -> Option<i64> {
        let pending = lock(&self.pending);
        let connects = |pending: &Pending| matches!(pending, Pending::Discover | Pending::Initialize);
        pending.iter().find(|(_, pending)| connects(pending)).map(|(id, _)| *id)
    }

    fn progress(&self, params: Option<&RawValue>) -> Verdict {
        let Some(params) = params else { return Verdict::Drop };
        let Ok(params) = serde_json::from_str::<ProgressParams>(params.get()) else {
            tracing::debug!(server = %self.server, "progress that can't be read");
            return Verdict::Drop;
        };
        let id = match &params.progress_token {
            Value::String(token) => token.parse().ok(),
            token => token.as_i64(),
        };
        let slot = id.and_then(|id| match lock(&self.pending).get(&id) {
            Some(Pending::Call(slot) | Pending::Answered(slot)) => slot.upgrade(),
            _ => None,
        });
        if let Some(slot) = slot {
            let ProgressParams { progress, total, message, .. } = params;
            let mut report = Progress::new(progress);
            (report.total, report.message) = (total, message);
            slot.report(report);
        }
        Verdict::Drop
    }

    fn stray(&self, text: &str) -> Verdict {
        tracing::debug!(server = %self.server, bytes = text.len(), "an answer to no request that is waiting is dropped");
        Verdict::Drop
    }
}

/// The number of bytes that a text counts for: its length, or more if it has many small values.
pub(super) fn cost(text: &str) -> usize {
    text.len().max(separators(text.as_bytes()).saturating_mul(VALUE))
}

/// The server's request to which a message responds.
fn answers(message: &ClientJsonRpcMessage) -> Option<&NumberOrString> {
    match message {
        ClientJsonRpcMessage::Response(response) => Some(&response.id),
        ClientJsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

/// The message that passes a verdict to rmcp.
pub(super) fn decode(verdict: Verdict, text: &str) -> Result<Option<ServerJsonRpcMessage>, serde_json::Error> {
    match verdict {
        Verdict::Pass => serde_json::from_str(text).map(Some),
        Verdict::Answered(id) => {
            Ok(Some(ServerJsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(id))))
        }
        Verdict::Failed(id, error) => Ok(Some(failed(id, error))),
        Verdict::Ping(_) | Verdict::Drop => Ok(None),
    }
}

/// A failed request, in the form of rmcp.
pub(super) fn failed(id: i64, error: ErrorData) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(error, Some(RequestId::Number(id)))
}

fn read_error(error: Option<&RawValue>) -> RpcError {
    let text = error.map_or("null", RawValue::get);
    if text.len() > MAX_ERROR {
        return RpcError {
            code: Value::Null,
            message: Value::String(format!("an error of {} bytes, which is too large to keep", text.len())),
            data: Value::Null,
        };
    }
    serde_json::from_str(text).unwrap_or_else(|_| RpcError {
        code: Value::Null,
        message: Value::Null,
        data: serde_json::from_str(text).unwrap_or_default(),
    })
}

/// An id of ours: a number, which some servers return as text.
fn number(id: &RawValue) -> Option<i64> {
    let text = id.get();
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).parse().ok()
}
