//! Subscriptions: turns a response that is an event stream into items.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use http::{HeaderValue, Method};
use http_body_util::BodyExt;
use serde_core::de::IgnoredAny;
use serde_json::{Map, Value};

use super::engine::{EngineResponse, ResponseBody, failure};
use super::exchange::{Exchange, LAST_EVENT_ID};
use super::lines::{self, Framing};
use super::media::{self, Described, EVENT_STREAM};
use super::response::{meta, of_item, read, status_error};
use super::retry::{Reconnect, may_pass};
use super::send::limited;
use super::settings::Settings;
use crate::http::sse::{SseEvent, SseParser};
use crate::model::media::essence;
use crate::pointer;
use crate::{CallError, Definitions, EventMeta, HttpMeta, OperationSpec, Payload, PayloadStream, ResponseEnvelope};

#[cfg(test)]
mod tests;

/// How the data of an event is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Data {
    /// As JSON; other data becomes an `Err` item when it is decoded.
    Json,
    /// As JSON if it parses, else as text.
    Any,
    /// As text, unless it is a JSON string.
    Text,
}

impl Data {
    /// How to read items, by the schema of the subscription's output.
    pub(super) fn of(spec: &OperationSpec) -> Self {
        if spec.output.is_any() {
            return Self::Any;
        }
        spec.output.to_value().map_or(Self::Any, |schema| Self::of_schema(&schema, &spec.definitions, 16))
    }

    /// How to read the property `data` of whole events, by its schema.
    fn of_whole(spec: &OperationSpec) -> Self {
        let mut found = Vec::new();
        if let Ok(schema) = spec.output.to_value() {
            Self::data_schemas(&schema, &spec.definitions, 16, &mut found);
        }
        Self::either(found.into_iter())
    }

    fn data_schemas(schema: &Value, definitions: &Definitions, depth: usize, found: &mut Vec<Self>) {
        let Some(depth) = depth.checked_sub(1) else { return };
        if let Some(data) = schema.get("properties").and_then(|properties| properties.get("data")) {
            found.push(Self::of_schema(data, definitions, depth));
        }
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let name = pointer::unescaped(name.strip_prefix(pointer::DEFINITIONS).unwrap_or(name));
            if let Some(schema) = definitions.get(&name).and_then(|definition| definition.schema.to_value().ok()) {
                Self::data_schemas(&schema, definitions, depth, found);
            }
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let parts = schema.get(keyword).and_then(Value::as_array);
            parts.into_iter().flatten().for_each(|part| Self::data_schemas(part, definitions, depth, found));
        }
    }

    fn of_schema(schema: &Value, definitions: &Definitions, depth: usize) -> Self {
        let Some(depth) = depth.checked_sub(1) else { return Self::Any };
        let Some(schema) = schema.as_object() else { return Self::Any };
        let inner = |schema: &Value| Self::of_schema(schema, definitions, depth);
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let name = pointer::unescaped(name.strip_prefix(pointer::DEFINITIONS).unwrap_or(name));
            let definition = definitions.get(&name).and_then(|definition| definition.schema.to_value().ok());
            return definition.map_or(Self::Any, |schema| inner(&schema));
        }
        match schema.get("type") {
            Some(Value::String(kind)) => return if kind == "string" { Self::Text } else { Self::Json },
            Some(Value::Array(kinds)) => {
                let others = kinds.iter().filter(|kind| *kind != "null").map(|kind| kind == "string");
                return Self::either(others.map(|text| if text { Self::Text } else { Self::Json }));
            }
            _ => {}
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return Self::either(values.iter().map(|value| if value.is_string() { Self::Text } else { Self::Json }));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(variants)) = schema.get(keyword) {
                let null = |schema: &&Value| schema.get("type").is_some_and(|kind| kind == "null");
                return Self::either(variants.iter().filter(|schema| !null(schema)).map(inner));
            }
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            return parts.iter().map(inner).find(|data| *data != Self::Any).unwrap_or(Self::Any);
        }
        if schema.contains_key("properties") || schema.contains_key("items") { Self::Json } else { Self::Any }
    }

    fn either(mut variants: impl Iterator<Item = Self>) -> Self {
        let Some(first) = variants.next() else { return Self::Any };
        if variants.all(|variant| variant == first) { first } else { Self::Any }
    }

    /// The data of an event; `None` if the event is empty.
    fn read(self, text: String) -> Option<Payload> {
        let is_json = || serde_json::from_str::<IgnoredAny>(&text).is_ok();
        match self {
            Self::Text if text.starts_with('"') && is_json() => Some(Payload::Json(text.into())),
            Self::Text => Some(Payload::Value(Value::String(text))),
            // Some servers keep a connection alive with empty events.
            _ if text.trim().is_empty() => None,
            Self::Any if !is_json() => Some(Payload::Value(Value::String(text))),
            Self::Any | Self::Json => Some(Payload::Json(text.into())),
        }
    }
}

/// How the items of a subscription are read.
pub(super) struct Items {
    described: Described,
    data: Data,
    /// How the data is read where an item is the whole event.
    whole: Option<Data>,
}

impl Items {
    pub(super) fn of(spec: &OperationSpec) -> Self {
        let whole = spec.http().is_some_and(|binding| binding.responses.iter().any(|response| response.whole_event));
        Self {
            described: spec.http().map(Described::new).unwrap_or_default(),
            data: Data::of(spec),
            whole: whole.then(|| Data::of_whole(spec)),
        }
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
            item.insert("retry".to_owned(), u64::try_from(retry.as_millis()).unwrap_or(u64::MAX).into());
        }
        Some(Payload::Value(Value::Object(item)))
    }
}

fn essence_of(response: &EngineResponse) -> String {
    let content_type = response.headers().get(http::header::CONTENT_TYPE);
    essence(content_type.and_then(|value| value.to_str().ok()).unwrap_or_default())
}

/// Reads the response to a subscription; repeating the exchange reopens the stream.
///
/// A response of JSON gives one item, and one with status 204 gives none; any other response is an error.
///
/// # Errors
/// If the status is not a success, or the response is of another type.
pub(super) async fn open(
    response: EngineResponse,
    items: Items,
    exchange: Exchange,
) -> Result<PayloadStream, CallError> {
    let settings = exchange.settings.clone();
    let essence = essence_of(&response);
    if response.status().is_success() && essence == EVENT_STREAM {
        return Ok(events(response, items, exchange));
    }
    if response.status().is_success()
        && let Some(framing) = Framing::of(&essence)
    {
        return Ok(lines::items(response, framing, settings.max_event, settings.idle_timeout));
    }
    if response.status().is_success() && !media::is_json(&essence) && response.status() != 204 {
        let found = if essence.is_empty() { "no content type".to_owned() } else { format!("`{essence}`") };
        let (parts, body) = response.into_parts();
        let details = status_error(meta(&parts), body, settings.max_response).await.details().clone();
        let message = format!("the server answered a subscription with {found}, not with an event stream");
        return Err(CallError::execution(message).with_details(details));
    }
    let envelope = read(response, &items.described, settings.max_response).await?;
    let nothing = matches!(envelope.data, Payload::Value(Value::Null));
    let items: VecDeque<_> = if nothing { VecDeque::new() } else { [Ok(envelope)].into() };
    Ok(stream::iter(items).boxed())
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

/// A connection that lasted this long resets the back-off.
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

/// What is needed to reopen a stream.
struct Reopen {
    exchange: Exchange,
    reconnect: Reconnect,
    /// How many tries in a row brought no event.
    in_vain: usize,
    /// The growth of the delay. An event halves it, and only a connection that lasts a while resets it: a server that
    /// ends each connection after one event is not asked again and again.
    backoff: usize,
    opened: Instant,
    /// The delay that the server asked for last.
    retry: Option<Duration>,
}

fn stream_meta(response: &http::response::Parts) -> HttpMeta {
    let mut meta = meta(response);
    meta.content_type = EVENT_STREAM.to_owned();
    meta
}

fn events(response: EngineResponse, items: Items, exchange: Exchange) -> PayloadStream {
    let parser = parser(&exchange.settings);
    let idle = exchange.settings.idle_timeout;
    let reconnect = exchange.settings.reconnect.clone().filter(|_| exchange.request.method() == Method::GET);
    let reopen = reconnect.map(|reconnect| Reopen {
        exchange,
        reconnect,
        in_vain: 0,
        backoff: 0,
        opened: Instant::now(),
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
                if let Some(item) = self.item(event) {
                    return Some(Ok(item));
                }
            }
            if let Some(error) = self.error.take() {
                self.ended = true;
                return Some(Err(error));
            }
            if self.ended {
                return None;
            }
            match self.body.frame().await.map(|frame| frame.map(http_body::Frame::into_data)) {
                None => self.reopened(None).await,
                // Data before an error is returned first.
                Some(Ok(Ok(data))) => self.error = self.parser.push(&data).err().map(Into::into),
                Some(Ok(Err(_trailers))) => {}
                Some(Err(error)) => {
                    self.reopened(Some(failure("the event stream broke off", &*error).transient())).await
                }
            }
        }
    }

    /// Reopens the stream, if configured. If it cannot, the stream ends, with an error if there is one.
    async fn reopened(&mut self, mut error: Option<CallError>) {
        let id = self.parser.last_event_id().to_owned();
        let retry = self.parser.retry();
        if let Some(reopen) = &mut self.reopen
            && reopen.opened.elapsed() >= STABLE
        {
            reopen.backoff = 0;
        }
        while let Some(reopen) = self.reopen.as_mut().filter(|reopen| reopen.in_vain < reopen.reconnect.tries) {
            reopen.retry = retry.or(reopen.retry);
            let delay = reopen.reconnect.delay(reopen.backoff, reopen.retry);
            reopen.in_vain = reopen.in_vain.saturating_add(1);
            reopen.backoff = reopen.backoff.saturating_add(1);
            tracing::debug!(?delay, tries = reopen.in_vain, "the event stream is opened again");
            tokio::time::sleep(delay).await;
            match reopen.open(&id).await {
                Ok(response) if response.status().is_success() && essence_of(&response) == EVENT_STREAM => {
                    let (parts, body) = response.into_parts();
                    self.meta = stream_meta(&parts);
                    self.body = body.with_idle_timeout(reopen.exchange.settings.idle_timeout);
                    reopen.opened = Instant::now();
                    self.parser = parser(&reopen.exchange.settings).with_last_event_id(id);
                    return;
                }
                // There is nothing more to come (WHATWG HTML, section 9.2.5).
                Ok(response) if response.status() == 204 => {
                    error = None;
                    break;
                }
                Ok(response) => {
                    let passes = may_pass(response.status());
                    let limit = reopen.exchange.settings.max_response;
                    let (parts, body) = response.into_parts();
                    // A server that never says why would have the subscription wait without end.
                    let body = body.with_idle_timeout(reopen.exchange.settings.idle_timeout);
                    error = Some(status_error(meta(&parts), body, limit).await);
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
    async fn open(&mut self, last_event_id: &str) -> Result<EngineResponse, CallError> {
        // An id that no header can hold is not sent: the server then chooses where the stream starts.
        if let Ok(id) = HeaderValue::from_bytes(last_event_id.as_bytes())
            && !id.is_empty()
        {
            self.exchange.request.headers_mut().insert(LAST_EVENT_ID, id);
            self.exchange.goes_on = true;
        }
        // The call's deadline covered its first response only.
        self.exchange.deadline = None;
        limited(self.exchange.settings.clone().timeout, self.exchange.run()).await
    }
}
