//! Subscriptions: turns a response that is an event stream into items.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, stream};
use http::HeaderValue;
use http::header::CONTENT_ENCODING;
use http::response::Parts;
use http_body_util::{BodyExt, Empty};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::coding::{coding, not_decoded};
use super::data::{self, Data};
use super::engine::{EngineResponse, ResponseBody, failure};
use super::exchange::Exchange;
use super::lines::{self, Framing};
use super::media::{self, Described};
use super::problem::Codes;
use super::reconnect::Reconnect;
use super::redirect::LAST_EVENT_ID;
use super::response::{meta, of_item, read, status_error};
use super::retry::{is_safe, may_pass, retry_after};
use super::send::limited;
use super::settings::Settings;
use crate::http::sse::{SseEvent, SseParser};
use crate::model::clock::millis;
use crate::model::media::{EVENTS, Media, essence};
use crate::{CallError, ErrorCode, EventMeta, HttpMeta, OperationSpec, Payload, PayloadStream, ResponseEnvelope};

#[cfg(test)]
mod tests;

/// How the items of a subscription are read.
pub(super) struct Items {
    described: Described,
    data: Data,
    /// How the data are read if an item is the whole event.
    whole: Option<Data>,
    codes: Codes,
    /// True if the document describes errors as items of the stream.
    has_errors: bool,
}

impl Items {
    pub(super) fn of(spec: &OperationSpec) -> Self {
        let whole = spec.http().is_some_and(|binding| binding.responses.iter().any(|response| response.whole_event));
        Self {
            described: Described::new(spec),
            data: data::data(spec),
            whole: whole.then(|| data::data_of_whole(spec)),
            codes: Codes::of(spec),
            has_errors: whole && data::has_errors(spec),
        }
    }

    /// The error of an event that stands for a failed item.
    fn error(&self, event: &SseEvent, meta: &HttpMeta) -> Option<CallError> {
        if self.has_errors { None } else { self.codes.event(event, meta) }
    }

    /// The item of an event; `None` if the event is empty.
    fn read(&self, event: SseEvent) -> Option<Payload> {
        let Some(data) = self.whole else { return self.data.read(event.data) };
        let data = match data.read(event.data)? {
            Payload::Value(value) => value,
            // Data that should be JSON and is not is passed on as text: decoding it reports the error.
            Payload::Json(text) => serde_json::from_slice(&text)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&text).into_owned())),
            Payload::Raw(_) | Payload::Body(_) => return None,
        };
        let mut item = Map::from_iter([("event".to_owned(), Value::String(event.kind)), ("data".to_owned(), data)]);
        if !event.id.is_empty() {
            item.insert("id".to_owned(), Value::String(event.id));
        }
        if let Some(retry) = event.retry {
            item.insert("retry".to_owned(), millis(retry).into());
        }
        Some(Payload::Value(Value::Object(item)))
    }
}

fn essence_of(response: &EngineResponse) -> String {
    let content_type = response.headers().get(http::header::CONTENT_TYPE);
    essence(content_type.and_then(|value| value.to_str().ok()).unwrap_or_default())
}

/// Refuses a stream that is compressed: nothing in it would be an item, and nothing an error.
fn decoded(response: &EngineResponse) -> Result<(), CallError> {
    let header = response.headers().get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    match coding(header) {
        Some(coding) if response.status().is_success() && Media::of(&essence_of(response)).is_stream() => {
            Err(not_decoded(coding))
        }
        _ => Ok(()),
    }
}

/// Makes the items of an opened subscription from its exchange. Repeating the exchange reopens an event stream.
pub(super) type Opened = Box<dyn FnOnce(Exchange) -> PayloadStream + Send>;

/// Reads the response to a subscription.
///
/// A JSON response has one item, and one with status 204 has none; any other response is an error.
///
/// # Errors
/// If the status is not a success, or the response has another type.
pub(super) async fn open(response: EngineResponse, items: Items, settings: &Settings) -> Result<Opened, CallError> {
    let essence = essence_of(&response);
    decoded(&response)?;
    if response.status().is_success() && essence == EVENTS {
        return Ok(Box::new(|exchange| events(response, items, exchange)));
    }
    if response.status().is_success()
        && let Some(framing) = Framing::of(&essence)
    {
        let items = lines::items(response, framing, items.codes, settings);
        return Ok(Box::new(|_| items));
    }
    if response.status().is_success() && !media::is_json(&essence) && response.status() != 204 {
        let (parts, body) = response.into_parts();
        return Err(refused(&parts, body, settings.max_response).await);
    }
    let envelope = read(response, &items.described, settings.max_response).await;
    let envelope = envelope.map_err(|error| items.codes.named(error))?;
    let nothing = matches!(envelope.data, Payload::Value(Value::Null));
    let items: VecDeque<_> = if nothing { VecDeque::new() } else { [Ok(envelope)].into() };
    Ok(Box::new(|_| stream::iter(items).boxed()))
}

/// The error of a response that is not a stream: of its status, or of its content type if it is a success.
async fn refused(parts: &Parts, body: ResponseBody, limit: usize) -> CallError {
    let essence = essence(&meta(parts).content_type);
    let error = status_error(parts, body, limit).await;
    if !parts.status.is_success() {
        return error;
    }
    let found = if essence.is_empty() { "no content type".to_owned() } else { format!("`{essence}`") };
    let message = format!("the server answered a subscription with {found}, not with an event stream");
    CallError::execution(message).with_details(error.details().clone())
}

fn parser(settings: &Settings) -> SseParser {
    let mut parser = SseParser::new();
    if let Some(bytes) = settings.max_line {
        parser = parser.with_max_line(bytes);
    }
    if let Some(bytes) = settings.max_event {
        parser = parser.with_max_event(bytes);
    }
    parser
}

/// A connection that lasted this long was not made in vain, though no event came. It resets the back-off and the number of
/// tries. The silence before an idle timeout is not part of it.
const STABLE: Duration = Duration::from_secs(10);

/// The state of a subscription between two items.
struct Source {
    body: ResponseBody,
    parser: SseParser,
    meta: HttpMeta,
    items: Items,
    error: Option<CallError>,
    ended: bool,
    reopen: Option<Reopen>,
}

/// The data for reopening a stream.
struct Reopen {
    exchange: Exchange,
    reconnect: Reconnect,
    /// How many attempts in a row had no event.
    in_vain: usize,
    /// The growth of the delay. An event halves it, and only a connection that lasts a while resets it, so that a
    /// server that ends each connection after one event is not asked again and again.
    backoff: usize,
    opened: Instant,
    /// When the last piece came over the connection, or when it was opened.
    heard: Instant,
    /// The delay that the server last requested.
    retry: Option<Duration>,
}

/// The error of a stream that is opened no more.
fn no_event(tries: usize) -> CallError {
    CallError::execution(format!(
        "the event stream ended, and {tries} tries in a row to go on with it brought no event: raise \
         `Reconnect::with_max_attempts` if it is to be opened more often"
    ))
}

fn stream_meta(response: &Parts) -> HttpMeta {
    let mut meta = meta(response);
    meta.content_type = EVENTS.to_owned();
    meta
}

fn events(response: EngineResponse, items: Items, exchange: Exchange) -> PayloadStream {
    let parser = parser(&exchange.settings);
    let idle = exchange.settings.idle_timeout;
    let is_query = is_safe(exchange.request.method()) && exchange.request.body().is_repeatable();
    let reconnect = exchange.settings.reconnect.clone().filter(|_| is_query);
    let now = Instant::now();
    let reopen = reconnect.map(|reconnect| Reopen {
        exchange,
        reconnect,
        in_vain: 0,
        backoff: 0,
        opened: now,
        heard: now,
        retry: None,
    });
    let (parts, body) = response.into_parts();
    let body = body.with_idle_timeout(idle);
    let meta = stream_meta(&parts);
    let source = Source { body, parser, meta, items, error: None, ended: false, reopen };
    stream::unfold(source, |mut source| async move { source.next().await.map(|item| (item, source)) }).boxed()
}

impl Source {
    async fn next(&mut self) -> Option<Result<ResponseEnvelope<Payload>, CallError>> {
        loop {
            while let Some(event) = self.parser.next_event() {
                if let Some(reopen) = &mut self.reopen
                    && std::mem::take(&mut reopen.in_vain) > 0
                {
                    reopen.backoff /= 2;
                }
                if event.data.trim() == "[DONE]" {
                    return None;
                }
                if let Some(error) = self.items.error(&event, &self.meta) {
                    return Some(Err(error));
                }
                if let Some(item) = self.item(event) {
                    return Some(Ok(item));
                }
            }
            if let Some(error) = self.error.take() {
                self.ended = true;
                return Some(Err(error));
            }
            if self.ended || self.parser.is_over() {
                return None;
            }
            match self.body.frame().await.map(|frame| frame.map(http_body::Frame::into_data)) {
                None => self.reopened(None).await,
                Some(Ok(Ok(data))) => {
                    if let Some(reopen) = &mut self.reopen {
                        reopen.heard = Instant::now();
                    }
                    // Data before an error is returned first.
                    self.error = self.parser.push(&data).err().map(Into::into);
                }
                Some(Ok(Err(_trailers))) => {}
                Some(Err(error)) => {
                    self.reopened(Some(failure("the event stream broke off", &*error).transient())).await
                }
            }
        }
    }

    /// Reopens the stream, if configured. If it cannot, the stream ends, with an error if there is one.
    async fn reopened(&mut self, mut error: Option<CallError>) {
        // Closes the connection: the server may not notice that it is over, and some servers allow only one for each caller.
        self.body = ResponseBody::new(Empty::new());
        let id = self.parser.last_event_id().to_owned();
        let retry = self.parser.retry();
        if let Some(reopen) = &mut self.reopen
            && reopen.lasted(error.as_ref()) >= STABLE
        {
            (reopen.backoff, reopen.in_vain) = (0, 0);
        }
        // A stream that ends again and again is given up, which its reader must not take for its end.
        if let Some(reopen) = &self.reopen
            && reopen.in_vain >= reopen.reconnect.tries
            && reopen.in_vain > 0
        {
            error.get_or_insert_with(|| no_event(reopen.in_vain));
        }
        // What the last error asked for by `Retry-After`, which counts for the next try only.
        let mut asked: Option<Duration> = None;
        while let Some(reopen) = self.reopen.as_mut().filter(|reopen| reopen.in_vain < reopen.reconnect.tries) {
            reopen.retry = retry.or(reopen.retry);
            let delay = reopen.reconnect.delay(reopen.backoff, asked.take().max(reopen.retry));
            reopen.in_vain = reopen.in_vain.saturating_add(1);
            reopen.backoff = reopen.backoff.saturating_add(1);
            tracing::debug!(?delay, tries = reopen.in_vain, "the event stream is opened again");
            tokio::time::sleep(delay).await;
            match reopen.open(&id).await {
                Ok(response) if response.status().is_success() && essence_of(&response) == EVENTS => {
                    let (parts, body) = response.into_parts();
                    self.meta = stream_meta(&parts);
                    self.body = body.with_idle_timeout(reopen.exchange.settings.idle_timeout);
                    reopen.opened = Instant::now();
                    reopen.heard = reopen.opened;
                    self.parser = parser(&reopen.exchange.settings).with_last_event_id(id);
                    return;
                }
                // The stream has ended (WHATWG HTML, section 9.2.5).
                Ok(response) if response.status() == 204 => {
                    error = None;
                    break;
                }
                Ok(response) => {
                    let passes = may_pass(response.status());
                    asked = retry_after(response.headers(), SystemTime::now());
                    let limit = reopen.exchange.settings.max_response;
                    let (parts, body) = response.into_parts();
                    // If the server does not send the reason, the subscription must not wait for ever.
                    let body = body.with_idle_timeout(reopen.exchange.settings.idle_timeout);
                    error = Some(self.items.codes.named(refused(&parts, body, limit).await));
                    if !passes {
                        break;
                    }
                }
                Err(failed) => error = Some(failed),
            }
        }
        self.ended = true;
        self.error = error;
    }

    fn item(&mut self, event: SseEvent) -> Option<ResponseEnvelope<Payload>> {
        let meta = EventMeta::new(event.kind.clone(), event.id.clone());
        let payload = self.items.read(event)?;
        let mut facts = of_item(&mut self.meta);
        facts.event = Some(meta);
        Some(ResponseEnvelope::http(payload, facts))
    }
}

impl Reopen {
    /// How long the connection lasted that has just ended, with this error if there is one.
    fn lasted(&self, error: Option<&CallError>) -> Duration {
        // A server that accepts connections and then says nothing would otherwise be asked for ever.
        let was_silent = error.is_some_and(|error| *error.code() == ErrorCode::Timeout);
        let end = if was_silent { self.heard } else { Instant::now() };
        end.duration_since(self.opened)
    }

    async fn open(&mut self, last_event_id: &str) -> Result<EngineResponse, CallError> {
        let headers = self.exchange.request.headers_mut();
        match HeaderValue::from_bytes(last_event_id.as_bytes()) {
            Ok(id) if !id.is_empty() => {
                headers.insert(LAST_EVENT_ID, id);
                self.exchange.goes_on = true;
            }
            // If a server clears its id, or a header cannot contain the id, the server chooses where the stream starts:
            // not after an event that it no longer refers to.
            _ if self.exchange.goes_on => drop(headers.remove(LAST_EVENT_ID)),
            _ => {}
        }
        // The call's deadline applied only to its first response.
        self.exchange.deadline = None;
        let response = limited(self.exchange.settings.clone().timeout, self.exchange.run()).await?;
        decoded(&response).map(|()| response)
    }
}
