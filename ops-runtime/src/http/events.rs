//! Subscriptions: a response that is an event stream, as the items that it carries.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::config::Settings;
use super::engine::{EngineResponse, failure};
use super::media::{self, Described, EVENT_STREAM, essence};
use super::response::{meta, read, status_error};
use crate::sse::{SseEvent, SseParser};
use crate::{CallError, Definitions, EventMeta, HttpMeta, OperationSpec, Payload, PayloadStream, ResponseEnvelope};

#[cfg(test)]
mod tests;

/// How the data of an event is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Data {
    /// As JSON; what isn't becomes an `Err` item when it is given its type.
    Json,
    /// As JSON if it is, else as text.
    Any,
    /// As text, unless it is a JSON string.
    Text,
}

impl Data {
    /// What the schema of a subscription's items calls for.
    pub(super) fn of(spec: &OperationSpec) -> Self {
        if spec.output.is_any() {
            return Self::Any;
        }
        spec.output.to_value().map_or(Self::Any, |schema| Self::of_schema(&schema, &spec.definitions, 16))
    }

    fn of_schema(schema: &Value, definitions: &Definitions, depth: usize) -> Self {
        let Some(depth) = depth.checked_sub(1) else { return Self::Any };
        let Some(schema) = schema.as_object() else { return Self::Any };
        let inner = |schema: &Value| Self::of_schema(schema, definitions, depth);
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let name = name.strip_prefix("#/$defs/").unwrap_or(name).replace("~1", "/").replace("~0", "~");
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

    /// The data of an event; `None` if there is none to give.
    fn read(self, text: String) -> Option<Payload> {
        let is_json = || serde_json::from_str::<IgnoredAny>(&text).is_ok();
        match self {
            Self::Text if text.starts_with('"') && is_json() => Some(Payload::Json(text.into())),
            Self::Text => Some(Payload::Value(Value::String(text))),
            // Some servers keep a connection alive with events that say nothing.
            _ if text.trim().is_empty() => None,
            Self::Any if !is_json() => Some(Payload::Value(Value::String(text))),
            Self::Any | Self::Json => Some(Payload::Json(text.into())),
        }
    }
}

/// Reads the response to a subscription.
///
/// A server that answers with JSON gives one item, and one that says that there is nothing (204) none; any other answer
/// is an error.
///
/// # Errors
/// If the status is not a success, or the response is of another type.
pub(super) async fn open(
    response: EngineResponse,
    data: Data,
    described: &Described,
    settings: &Settings,
) -> Result<PayloadStream, CallError> {
    let essence = {
        let content_type = response.headers().get(http::header::CONTENT_TYPE);
        essence(content_type.and_then(|value| value.to_str().ok()).unwrap_or_default())
    };
    if response.status().is_success() && essence == EVENT_STREAM {
        return Ok(events(response, data, parser(settings)));
    }
    if response.status().is_success() && !media::is_json(&essence) && response.status() != 204 {
        let found = if essence.is_empty() { "no content type".to_owned() } else { format!("`{essence}`") };
        let (parts, body) = response.into_parts();
        let details = status_error(meta(&parts), body, settings.max_response).await.details().clone();
        let message = format!("the server answered a subscription with {found}, not with an event stream");
        return Err(CallError::execution(message).with_details(details));
    }
    let envelope = read(response, described, settings.max_response).await?;
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

/// The state of a subscription between two items.
struct Source {
    body: http_body_util::combinators::UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>,
    parser: SseParser,
    meta: HttpMeta,
    data: Data,
    error: Option<CallError>,
    ended: bool,
}

fn events(response: EngineResponse, data: Data, parser: SseParser) -> PayloadStream {
    let (parts, body) = response.into_parts();
    let mut meta = meta(&parts);
    meta.content_type = EVENT_STREAM.to_owned();
    let source = Source { body, parser, meta, data, error: None, ended: false };
    stream::unfold(source, |mut source| async move { source.next().await.map(|item| (item, source)) }).boxed()
}

impl Source {
    async fn next(&mut self) -> Option<Result<ResponseEnvelope<Payload>, CallError>> {
        loop {
            while let Some(event) = self.parser.next_event() {
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
                None => return None,
                // What came before an error is given first.
                Some(Ok(Ok(data))) => self.error = self.parser.push(&data).err().map(Into::into),
                Some(Ok(Err(_trailers))) => {}
                Some(Err(error)) => self.error = Some(failure("the event stream broke off", &*error)),
            }
        }
    }

    fn item(&self, event: SseEvent) -> Option<ResponseEnvelope<Payload>> {
        let payload = self.data.read(event.data)?;
        let mut meta = self.meta.clone();
        meta.event = Some(EventMeta::new(event.kind, event.id));
        Some(ResponseEnvelope::http(payload, meta))
    }
}
