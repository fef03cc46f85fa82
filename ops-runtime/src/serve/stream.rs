//! Subscriptions as responses: server-sent events, or JSON texts on lines.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::header::{CACHE_CONTROL, HeaderName};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::accept::Accept;
use super::limits::Taken;
use super::problem::Problem;
use super::response::respond;
use super::undeclared::Undeclared;
use crate::model::media::{EVENTS, EVENTS_END, Media, NDJSON, essence};
use crate::model::request_id::RequestId;
use crate::run::pipeline::EnvelopeStream;
use crate::run::redact;
use crate::{CallError, ErrorCode, HttpBinding, ResponseEnvelope, SpecRef, StatusRange};

/// The header with the id of the last event that a client has received (WHATWG HTML, section 9.2).
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// How the items of a stream are written.
#[derive(Debug, Clone)]
pub(super) struct Framing {
    status: StatusCode,
    media: Media,
    content_type: String,
    /// True if an item is the whole event, and not only its data.
    is_whole: bool,
    /// True if an event with `[DONE]` is the end of the stream.
    tells_end: bool,
}

impl Framing {
    /// As the binding describes it, or as the client accepts it: events, unless it lists another kind.
    pub(super) fn of(binding: Option<&HttpBinding>, accept: &Accept) -> Self {
        let responses = binding.into_iter().flat_map(|binding| binding.responses.iter());
        let described = responses.filter_map(|response| {
            let content_type = response.content_type.as_deref()?;
            let media = Media::of(content_type);
            media.is_stream().then(|| Self {
                status: success(response.status),
                media,
                content_type: content_type.to_owned(),
                is_whole: response.whole_event,
                tells_end: false,
            })
        });
        let described: Vec<Self> = described.collect();
        let weight = |framing: &Self| accept.weight(&essence(&framing.content_type));
        let best = described.iter().map(weight).max();
        if let Some(framing) = described.iter().find(|framing| Some(weight(framing)) == best) {
            return framing.clone();
        }
        let own = |media, content_type: &str, tells_end| Self {
            status: StatusCode::OK,
            media,
            content_type: content_type.to_owned(),
            is_whole: false,
            tells_end,
        };
        let named = |kind: &str| accept.names(kind).then(|| accept.weight(kind));
        let lines = [NDJSON, "application/ndjson", "application/jsonl"].into_iter().filter_map(named).max();
        if named(EVENTS) >= lines { own(Media::Events, EVENTS, true) } else { own(Media::Lines, NDJSON, false) }
    }

    fn is_events(&self) -> bool {
        self.media == Media::Events
    }

    fn text(&self, text: &str) -> String {
        match self.media {
            Media::Sequence => format!("\u{1e}{text}\n"),
            _ => format!("{text}\n"),
        }
    }

    /// The text of an item. If it is an event without an id of its own, its id is the next number, if there is one.
    fn item(&self, envelope: ResponseEnvelope<Value>, number: &mut Option<u64>) -> String {
        if !self.is_events() {
            return self.text(&envelope.data.to_string());
        }
        // The event that a handler or another server has set.
        let own = envelope.meta.as_http().and_then(|meta| meta.event.clone());
        let member = |name: &str| envelope.data.get(name).filter(|_| self.is_whole);
        // `null` stands for a field that is left out. Data may be `null`: without it, clients ignore the event.
        let whole = |name: &str| member(name).filter(|value| !value.is_null()).map(plain);
        let id = whole("id").or_else(|| own.as_ref().map(|own| own.id.clone()).filter(|id| !id.is_empty()));
        *number = if id.is_some() { None } else { number.map(|number| number.wrapping_add(1)) };
        let name = whole("event").or_else(|| own.map(|own| own.kind).filter(|kind| kind != "message"));
        let retry = whole("retry");
        let data =
            if self.is_whole { member("data").map(plain).unwrap_or_default() } else { envelope.data.to_string() };
        event(name.as_deref(), id.or_else(|| number.map(|number| number.to_string())), retry, &data)
    }

    /// The text that says that the stream is over, so that clients do not open it again. Where the document describes the events,
    /// each event is an item, so the text is a comment.
    fn end(&self, may_go_on: bool) -> Option<String> {
        match self.tells_end {
            true => Some("data: [DONE]\n\n".to_owned()),
            false => (self.is_events() && !may_go_on).then(|| format!("{EVENTS_END}\n\n")),
        }
    }

    /// What keeps a silent stream open, and shows that its client is gone: readers skip it.
    fn silence(&self) -> &'static str {
        match self.media {
            Media::Events => ":\n\n",
            // Several separators in a row are one (RFC 7464, section 2.1).
            Media::Sequence => "\u{1e}",
            _ => "\n",
        }
    }

    fn failure(&self, problem: &Problem, request: &str) -> String {
        let text = problem.to_json(request).to_string();
        if self.is_events() {
            event(Some("error"), None, None, &text)
        } else {
            self.text(&format!("{{\"error\":{text}}}"))
        }
    }
}

/// The status of a stream for which this is described. Browsers read events at 200 only (WHATWG HTML, section 9.2.2), and its
/// items tell clients no status, so a range is 200, also beside another response.
fn success(status: StatusRange) -> StatusCode {
    let StatusRange::Exact(status) = status else { return StatusCode::OK };
    StatusCode::from_u16(status).ok().filter(StatusCode::is_success).unwrap_or(StatusCode::OK)
}

/// A member of a whole event as a field.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// An event; characters that would end a field are left out.
fn event(name: Option<&str>, id: Option<String>, retry: Option<String>, data: &str) -> String {
    let mut text = String::new();
    let mut field = |name: &str, value: &str| {
        let value: String = value.chars().filter(|c| !matches!(c, '\r' | '\n' | '\0')).collect();
        text.push_str(&format!("{name}: {value}\n"));
    };
    if let Some(name) = name {
        field("event", name);
    }
    if let Some(id) = id {
        field("id", &id);
    }
    if let Some(retry) = retry {
        field("retry", &retry);
    }
    for line in data.replace("\r\n", "\n").split(['\n', '\r']) {
        field("data", line);
    }
    text.push('\n');
    text
}

/// The id of the last event that a client has received.
pub(super) fn last_event(headers: &HeaderMap) -> Option<String> {
    // Browsers send it in UTF-8, which `to_str` refuses.
    headers.get(LAST_EVENT_ID).and_then(|id| std::str::from_utf8(id.as_bytes()).ok()).map(str::to_owned)
}

/// The data for making a stream of items a response.
pub(super) struct Streaming {
    pub(super) framing: Framing,
    pub(super) spec: SpecRef,
    pub(super) request: RequestId,
    pub(super) is_foreign: bool,
    pub(super) expose: bool,
    pub(super) keep_alive: Duration,
    pub(super) last_event: Option<String>,
    pub(super) cancel: CancellationToken,
    pub(super) undeclared: Option<Arc<Undeclared>>,
    /// Counts the stream as open.
    pub(super) _permit: Taken,
}

/// The stream as it is sent.
struct Sent {
    items: EnvelopeStream<Value>,
    streaming: Streaming,
    /// The number of the last item, which is its id. `None` once an item has an id of its own, also before the client
    /// reconnected: a number after it would hide where the handler can continue.
    number: Option<u64>,
    /// True if the last item is an error that may pass: the stream may go on when it is opened again.
    may_go_on: bool,
    is_over: bool,
}

impl Streaming {
    /// The response of a subscription. Dropping its body ends the subscription.
    pub(super) fn response(self, items: EnvelopeStream<Value>) -> Response<Body> {
        let (status, content_type) = (self.framing.status, self.framing.content_type.clone());
        // Ids continue after the last received one. One that is not a number is the handler's own.
        let number = match self.last_event.as_deref() {
            None | Some("") => Some(0),
            Some(id) => id.parse().ok(),
        };
        let sent = Sent { items, streaming: self, number, may_go_on: false, is_over: false };
        let texts = stream::unfold(sent, |mut sent| async move {
            let text = sent.next().await?;
            Some((Ok::<_, Infallible>(Bytes::from(text)), sent))
        });
        let mut response = respond(status, &content_type, Body::from_stream(texts));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

impl Sent {
    /// The next text of the stream.
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        let Streaming { framing, keep_alive, cancel, .. } = &self.streaming;
        let waiting = async {
            match keep_alive.is_zero() {
                true => Ok(self.items.next().await),
                false => timeout(*keep_alive, self.items.next()).await,
            }
        };
        let Some(next) = cancel.run_until_cancelled(waiting).await else {
            self.is_over = true;
            // Without it, a client would take the items so far for all.
            let error = CallError::new(ErrorCode::Aborted, "the server shuts down: there may be more items");
            let problem = Problem::of_error(&error.retryable(), &self.streaming.spec);
            return Some(framing.failure(&problem, &self.streaming.request));
        };
        if let Ok(Some(item)) = &next {
            self.may_go_on = item.as_ref().is_err_and(CallError::is_retryable);
        }
        Some(match next {
            Err(_silence) => framing.silence().to_owned(),
            Ok(Some(Ok(envelope))) => framing.item(envelope, &mut self.number),
            Ok(Some(Err(error))) => framing.failure(&self.streaming.problem(error), &self.streaming.request),
            Ok(None) => {
                self.is_over = true;
                framing.end(self.may_go_on)?
            }
        })
    }
}

impl Streaming {
    fn problem(&self, error: CallError) -> Problem {
        if let Some(undeclared) = &self.undeclared {
            undeclared.tell(&error, &self.spec);
        }
        Problem::of_result(&error, &self.spec, &self.request).unwrap_or_else(|| {
            let error = redact::public(error, &self.spec, &self.request, self.is_foreign, self.expose);
            Problem::of_error(&error, &self.spec)
        })
    }
}
