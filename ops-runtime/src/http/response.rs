//! From a response to an envelope or an error.

use std::borrow::Cow;
use std::io;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8};
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt, future};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName, SET_COOKIE};
use http::response::Parts;
use http::{HeaderMap, HeaderValue};
use http_body::Body;
use http_body_util::BodyExt;
use serde_core::de::IgnoredAny;
use serde_json::{Value, json};

use super::coding::{coding, not_decoded};
use super::engine::{BoxError, EngineResponse, ResponseBody, failure};
use super::media::{self, Described, Form, charset};
use crate::model::binding::{Expected, foreign_type};
use crate::model::body::pieces::Pieces;
use crate::model::media::{EVENTS, JSON, Media, OCTETS, essence};
use crate::model::parameters::{self, parameter};
use crate::model::secrets::Kept;
use crate::run::context::now;
use crate::run::pipeline::misplaced;
use crate::{Body as Streamed, BoxFuture, CallError, HttpMeta, HttpResponse, Payload, ResponseEnvelope};

#[cfg(test)]
mod tests;

/// How much of the body of an error is kept, in bytes.
const MAX_ERROR: usize = 1024 * 1024;

/// How much of an unexpected stream is read, and for how long, to show it in an error.
const MAX_BEGINNING: usize = 4 * 1024;
const LONGEST_BEGINNING: Duration = Duration::from_secs(1);

/// How much of a response of another type than bytes is kept, to show it in an error.
const MAX_FOREIGN: usize = 64 * 1024;

/// How long the body of an error may take before the part that has arrived is used: its status is known already, but it may
/// name the error.
const TOTAL: Duration = Duration::from_secs(10);

/// The deadline of the call, in the response's extensions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(pub(super) Instant);

/// How long the body of an error may take. It is at most half of the time that the call has left, or else the call
/// would end without the status.
fn time_for_error(parts: &Parts) -> Duration {
    let deadline = parts.extensions.get::<Deadline>();
    deadline.map_or(TOTAL, |deadline| TOTAL.min(deadline.0.saturating_duration_since(now()) / 2))
}

/// How often the request was repeated, in the response's extensions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retries(pub(super) u32);

/// What the error of a response says beside its status, in the response's extensions.
#[derive(Debug, Clone)]
pub(super) struct Remark(pub(super) String);

/// The metadata of a response.
pub(super) fn meta(parts: &Parts) -> HttpMeta {
    let content_type = parts.headers.get(CONTENT_TYPE).map(text).unwrap_or_default();
    let mut meta = HttpMeta::received(parts.status.as_u16(), content_type);
    meta.retries = parts.extensions.get::<Retries>().map(|retries| retries.0.into()).filter(|retries| *retries > 0);
    meta.secrets = parts.extensions.get::<Kept>().cloned().unwrap_or_default();
    for name in parts.headers.keys() {
        if name == SET_COOKIE {
            meta.set_cookie.extend(parts.headers.get_all(name).iter().map(text));
        } else if let Some(value) = field(&parts.headers, name) {
            meta.headers.insert(name.as_str().to_owned(), value);
        }
    }
    meta
}

/// The value of a header, its lines as one (RFC 9110, section 5.3). Those of `Set-Cookie` must stay apart.
pub(crate) fn field(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut lines = headers.get_all(name).iter().map(text);
    let mut joined = lines.next()?;
    for line in lines {
        joined.push_str(", ");
        joined.push_str(&line);
    }
    Some(joined)
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Limit of the headers that are copied into every item of a stream, in bytes; larger ones are only in the first item.
const MAX_HEADERS: usize = 16 * 1024;

/// The metadata of a response for one item of its stream.
pub(super) fn of_item(meta: &mut HttpMeta) -> HttpMeta {
    let facts = meta.clone();
    let length = |text: &String| text.len();
    let headers = meta.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
    if headers + meta.set_cookie.iter().map(length).sum::<usize>() > MAX_HEADERS {
        meta.headers.clear();
        meta.set_cookie.clear();
    }
    facts
}

/// Reads a response that is not a stream.
///
/// # Errors
/// If its status is not a success, if its body is too large, or if the connection breaks.
pub(super) fn read(
    response: EngineResponse,
    described: &Described,
    limit: usize,
) -> BoxFuture<'_, Result<ResponseEnvelope<Payload>, CallError>> {
    Box::pin(async move {
        let (parts, body) = response.into_parts();
        if !parts.status.is_success() {
            return Err(status_error(&parts, body, limit).await);
        }
        let meta = meta(&parts);
        if Media::of(&meta.content_type) == Media::Events {
            // An empty body is not compressed, whatever the header says.
            if let Some(coding) =
                coding(meta.header("content-encoding")).filter(|_| body.size_hint().exact() != Some(0))
            {
                return Err(not_decoded(coding));
            }
            // The whole body is read only if it may be the data, such as a text. Otherwise, the stream is refused or dropped, and
            // it may have no end.
            let only_json = described.only_json(meta.status_code);
            if only_json.is_some() || !described.may_be_text(meta.status_code) {
                let (text, is_whole) = beginning(body).await;
                let text = Value::String(decode(&meta, &text));
                // The policy `Cast` accepts any content type, and would use the beginning as if it were the whole body.
                return match only_json.filter(|_| !is_whole) {
                    Some(expected) => Err(misplaced(&meta.into(), &expected, EVENTS, text, true)),
                    None => Ok(ResponseEnvelope::http(Payload::Value(text), meta)),
                };
            }
        }
        match collect(body, limit).await {
            Collected::Whole(bytes) => match coding(meta.header("content-encoding")).filter(|_| !bytes.is_empty()) {
                Some(coding) if !is_bytes(&meta, described) => Err(not_decoded(coding)),
                // Bytes stay as they came.
                Some(_) => Ok(ResponseEnvelope::http(base64(&bytes), meta)),
                None => Ok(ResponseEnvelope::http(payload(&meta, described, bytes), meta)),
            },
            Collected::Cut(_) => Err(too_large(limit)),
            Collected::Broken(_, error) => Err(error),
        }
    })
}

/// Streams a response's body, for an operation whose output is bytes; `failed` completes the error of a body that breaks off.
///
/// # Errors
/// If its status is not a success.
pub(super) async fn stream(
    response: EngineResponse,
    described: &[HttpResponse],
    limit: usize,
    idle: Option<Duration>,
    failed: impl Fn(CallError) -> CallError + Send + 'static,
) -> Result<ResponseEnvelope<Payload>, CallError> {
    let (parts, body) = response.into_parts();
    if !parts.status.is_success() {
        return Err(status_error(&parts, body, limit).await);
    }
    let meta = meta(&parts);
    let body = body.with_idle_timeout(idle);
    let length = body.size_hint().exact();
    let broke_off = move |error: BoxError| failed(failure("the response broke off", &*error).transient());
    let data = body.into_data_stream().map_err(move |error| io::Error::other(broke_off(error)));
    let data = data.try_filter(|piece| future::ready(!piece.is_empty())).boxed();
    // An unexpected response is shown in an error.
    let is_foreign = foreign_type(described, meta.status_code, &meta.content_type, Expected::Bytes).is_some();
    let mut streamed = if is_foreign { begun(data).await } else { Streamed::stream(data) };
    if let Some(length) = length {
        streamed = streamed.with_length(length);
    }
    if !meta.content_type.is_empty() {
        streamed = streamed.with_content_type(meta.content_type.as_str());
    }
    if let Some(name) = parts.headers.get(CONTENT_DISPOSITION).and_then(|value| file_name(value.as_bytes())) {
        streamed = streamed.with_file_name(name);
    }
    Ok(ResponseEnvelope::http(Payload::Body(streamed), meta))
}

/// A body that is in memory if it is small.
async fn begun(mut data: BoxStream<'static, io::Result<Bytes>>) -> Streamed {
    let (mut pieces, mut length) = (Vec::new(), 0);
    while length <= MAX_FOREIGN {
        match data.next().await {
            Some(Ok(piece)) => {
                length += piece.len();
                pieces.push(piece);
            }
            Some(Err(error)) => {
                return Streamed::stream(stream::iter(pieces.into_iter().map(Ok).chain([Err(error)])));
            }
            None => return Streamed::from(pieces.concat()),
        }
    }
    Streamed::stream(stream::iter(pieces.into_iter().map(Ok)).chain(data))
}

/// The file name of a download (RFC 6266), without folders.
fn file_name(disposition: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(disposition);
    let extended = parameter(&text, "filename*").and_then(|value| {
        let (charset, rest) = value.split_once('\'')?;
        let (_, value) = rest.split_once('\'')?;
        let value = percent_encoding::percent_decode_str(value).decode_utf8().ok()?;
        charset.eq_ignore_ascii_case("utf-8").then(|| value.into_owned())
    });
    let name = extended.map(Cow::Owned).or_else(|| parameter(&text, "filename"))?;
    parameters::file_name(&name).map(str::to_owned)
}

pub(super) fn too_large(limit: usize) -> CallError {
    CallError::execution(format!("the response is larger than {limit} bytes: raise `with_max_response`")).lasting()
}

/// The result of reading a body.
pub(super) enum Collected {
    /// All of it.
    Whole(Bytes),
    /// As much as the limit allows.
    Cut(Bytes),
    /// The part that arrived before the connection broke.
    Broken(Bytes, CallError),
}

/// Reads a body up to a limit, and nothing beyond it.
pub(super) async fn collect<B>(mut body: B, limit: usize) -> Collected
where
    B: Body<Data = Bytes, Error = Box<dyn std::error::Error + Send + Sync>> + Unpin,
{
    let mut pieces = Pieces::default();
    while let Some(frame) = body.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => pieces.push(data),
            Ok(Err(_trailers)) => {}
            Err(error) => {
                let error = failure("the response broke off", &*error).transient();
                return Collected::Broken(pieces.into_bytes(), error);
            }
        }
        if pieces.len() > limit {
            let mut read = pieces.into_bytes();
            read.truncate(limit);
            return Collected::Cut(read);
        }
    }
    Collected::Whole(pieces.into_bytes())
}

/// The data of a success.
///
/// The server's content type decides, with three exceptions. If the document describes only bytes, by content types or by
/// the schema of the output, the body is bytes. If it describes JSON and the response has no specific type (none,
/// `text/plain` or `application/octet-stream`), a body that is JSON is read as JSON, unless the output is text
/// ([`Described::is_read_as_json`]). An empty body is `null` unless the document describes text or bytes.
fn payload(meta: &HttpMeta, described: &Described, bytes: Bytes) -> Payload {
    let essence = essence(&meta.content_type);
    let forms = described.forms(meta.status_code);
    let all = |wanted: Form| forms.clone().next().is_some() && forms.clone().all(|form| form == wanted);
    let is_bytes = all(Form::Bytes) || described.is_bytes(meta.status_code);
    if bytes.is_empty() {
        let empty = meta.status_code != 204 && (all(Form::Text) || is_bytes);
        return Payload::Value(if empty { Value::String(String::new()) } else { Value::Null });
    }
    if is_bytes {
        return base64(&bytes);
    }
    let vague = matches!(essence.as_str(), "" | "text/plain" | OCTETS);
    match media::form(&essence) {
        Form::Json => return Payload::Json(json_text(meta, bytes)),
        form if vague => {
            let json = forms.clone().any(|form| form == Form::Json) || (essence.is_empty() && !all(Form::Text));
            if json {
                let text = json_text(meta, bytes.clone());
                if serde_json::from_slice::<IgnoredAny>(&text).is_ok() {
                    if described.is_read_as_json(meta.status_code, &essence, &text) {
                        return Payload::Json(text);
                    }
                    if forms.clone().all(|form| form != Form::Bytes) {
                        return text_of(meta, &bytes);
                    }
                }
            }
            let text = form == Form::Text || essence.is_empty() || all(Form::Text);
            if form == Form::Text || (text && std::str::from_utf8(&bytes).is_ok()) {
                return text_of(meta, &bytes);
            }
        }
        Form::Text => return text_of(meta, &bytes),
        Form::Bytes => {}
    }
    base64(&bytes)
}

/// True if a response of a coding that was not decoded is to be bytes: as such it was described, or it says so itself.
fn is_bytes(meta: &HttpMeta, described: &Described) -> bool {
    if described.is_bytes(meta.status_code) {
        return true;
    }
    let mut forms = described.forms(meta.status_code).peekable();
    let essence = essence(&meta.content_type);
    if forms.peek().is_some() {
        return forms.all(|form| form == Form::Bytes);
    }
    !essence.is_empty() && media::form(&essence) == Form::Bytes
}

fn base64(bytes: &Bytes) -> Payload {
    Payload::Value(Value::String(STANDARD.encode(bytes)))
}

fn text_of(meta: &HttpMeta, bytes: &[u8]) -> Payload {
    Payload::Value(Value::String(decode(meta, bytes)))
}

/// The text in the charset of the response, UTF-8 by default; invalid bytes become U+FFFD.
pub(super) fn decode(meta: &HttpMeta, bytes: &[u8]) -> String {
    encoding(meta).decode(bytes).0.into_owned()
}

fn encoding(meta: &HttpMeta) -> &'static Encoding {
    charset(&meta.content_type).and_then(|label| Encoding::for_label(label.as_bytes())).unwrap_or(UTF_8)
}

/// The beginning of an unexpected stream, which may never end, and true if it is all of it.
async fn beginning<B>(mut body: B) -> (Vec<u8>, bool)
where
    B: Body<Data = Bytes, Error = Box<dyn std::error::Error + Send + Sync>> + Unpin,
{
    let mut read = Vec::new();
    let until = tokio::time::Instant::now() + LONGEST_BEGINNING;
    let mut has_ended = false;
    while read.len() <= MAX_BEGINNING {
        let next = tokio::time::timeout_at(until, body.frame()).await;
        has_ended = matches!(next, Ok(None));
        let Ok(Some(Ok(frame))) = next else { break };
        if let Ok(data) = frame.into_data() {
            read.extend_from_slice(&data);
        }
    }
    read.truncate(MAX_BEGINNING);
    (read, has_ended)
}

/// JSON in the form for a parser: UTF-8 without a byte order mark (RFC 8259, section 8.1).
fn json_text(meta: &HttpMeta, bytes: Bytes) -> Bytes {
    if encoding(meta) != UTF_8 {
        return decode(meta, &bytes).into();
    }
    if bytes.starts_with(b"\xEF\xBB\xBF") { bytes.slice(3..) } else { bytes }
}

/// The error of a status that is not a success, with as much of the body as can be read in time.
pub(super) fn status_error(parts: &Parts, body: ResponseBody, limit: usize) -> BoxFuture<'_, CallError> {
    Box::pin(async move {
        let meta = meta(parts);
        let body = body.with_total(time_for_error(parts));
        let (bytes, cut) = match collect(body, limit.min(MAX_ERROR)).await {
            Collected::Whole(bytes) => (bytes, false),
            Collected::Cut(bytes) | Collected::Broken(bytes, _) => (bytes, true),
        };
        let status = meta.status_code;
        let coding = coding(meta.header("content-encoding")).filter(|_| !bytes.is_empty());
        let body = if coding.is_some() { Value::Null } else { error_value(&meta, &bytes, cut) };
        let mut details = json!({
            "statusCode": status,
            "headers": meta.headers,
            "contentType": meta.content_type,
            "body": body,
        });
        if let Some(details) = details.as_object_mut() {
            if cut {
                details.insert("truncated".to_owned(), Value::Bool(true));
            }
            if let Some(retries) = meta.retries {
                details.insert("retries".to_owned(), retries.into());
            }
        }
        let remark = parts.extensions.get::<Remark>().map(|Remark(text)| format!(": {text}"));
        let reason = format!("{}{}", reason(status), remark.unwrap_or_default());
        let message = match coding {
            Some(coding) => format!("{reason}, and {}", not_decoded(coding).message()),
            None => reason,
        };
        CallError::execution(message).with_details(details)
    })
}

fn error_value(meta: &HttpMeta, bytes: &Bytes, cut: bool) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    let essence = essence(&meta.content_type);
    let may_be_json = media::is_json(&essence)
        || (!essence.contains("html")
            && bytes.iter().find(|b| !b.is_ascii_whitespace()).is_some_and(|b| b"{[".contains(b)));
    if may_be_json && !cut {
        let text = json_text(meta, bytes.clone());
        if let Ok(value) = serde_json::from_slice(&text) {
            return value;
        }
    }
    Value::String(decode(meta, bytes))
}

/// The error of a client for a response with this status and body, for tests with a
/// [`MockCaller`](crate::mock::MockCaller).
///
/// ```
/// use ops_runtime::http::error_of;
/// use serde_json::json;
///
/// let error = error_of(409, json!({ "by": "ann" })).with_header("Retry-After", "30");
/// assert_eq!((error.message(), error.status()), ("HTTP 409: Conflict", Some(409)));
/// assert_eq!(error.header("retry-after"), Some("30"));
/// ```
pub fn error_of(status: u16, body: Value) -> CallError {
    let details = json!({ "statusCode": status, "headers": {}, "contentType": JSON, "body": body });
    CallError::execution(reason(status)).with_details(details)
}

fn reason(status: u16) -> String {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    reason.map_or_else(|| format!("HTTP {status}"), |reason| format!("HTTP {status}: {reason}"))
}
