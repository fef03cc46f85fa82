//! From a binding and an input to the request that is sent.

use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value};
use url::Url;

use super::body;
use super::config::{Settings, is_http, take_credentials};
use super::engine::RequestBody;
use super::path::{Target, target};
use super::{invalid, media, pointer, style};
use crate::{CallError, HttpBinding, HttpParameter, OperationKind, ParameterLocation};

#[cfg(test)]
mod tests;

/// Headers that the client writes itself; OpenAPI (3.1, section 4.8.12.2) and RFC 9110 leave them to no parameter.
const OWN: &[&str] = &[
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What a query cannot hold as it is.
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'\'').add(b'\\').add(b'^');

/// The request of an operation for an input.
///
/// # Errors
/// A `VALIDATION_ERROR` that names the part of the input that cannot be sent, an `EXECUTION_ERROR` if the binding is to
/// blame.
pub(super) fn encode(
    binding: &HttpBinding,
    kind: OperationKind,
    settings: &Settings,
    input: &Value,
) -> Result<Request<RequestBody>, CallError> {
    let empty = Map::new();
    let input = match input {
        Value::Object(members) => members,
        Value::Null => &empty,
        _ => return Err(invalid("", "the input is not an object")),
    };
    let url = url(binding, settings, input)?;
    let method = Method::from_bytes(binding.method.as_bytes())
        .map_err(|_| CallError::execution(format!("`{}` is no HTTP method", binding.method.escape_debug())))?;
    let mut headers = headers(binding, settings, input)?;
    let accept = media::accept(binding, kind);
    if kind == OperationKind::Subscription {
        headers.insert(ACCEPT, accept);
    } else {
        headers.entry(ACCEPT).or_insert(accept);
    }
    headers.remove(CONTENT_TYPE);
    let mut body = RequestBody::default();
    if let Some(encoded) = body::encode(binding, input)? {
        headers.insert(CONTENT_TYPE, encoded.content_type);
        body = encoded.bytes.into();
    } else if [Method::POST, Method::PUT, Method::PATCH].contains(&method) {
        // Some servers insist on it (RFC 9110, section 8.6).
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    if let Some((name, value)) = &settings.auth {
        headers.insert(name.clone(), value.clone());
    }
    request(method, &url, headers, body)
}

/// A request from its parts.
pub(super) fn request(
    method: Method,
    url: &Url,
    headers: HeaderMap,
    body: RequestBody,
) -> Result<Request<RequestBody>, CallError> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() =
        url.as_str().parse().map_err(|error| CallError::execution(format!("the URL cannot be requested: {error}")))?;
    *request.headers_mut() = headers;
    Ok(request)
}

fn url(binding: &HttpBinding, settings: &Settings, input: &Map<String, Value>) -> Result<Url, CallError> {
    let mut url = base(binding, settings)?;
    let Target { path, query: fixed } = target(binding, input)?;
    let base_path = url.path().trim_end_matches('/');
    let path = match path.as_str() {
        "" if !base_path.is_empty() => url.path().to_owned(),
        path => format!("{base_path}{}{path}", if path.starts_with('/') { "" } else { "/" }),
    };
    url.set_path(&path);
    if url.path() != path {
        // Everything is escaped already, so a parser that reads something else into it must not be followed.
        return Err(CallError::execution("the path is not what the URL would be read as"));
    }

    let escape = |text: &str| utf8_percent_encode(text, QUERY).to_string();
    let mut pairs: Vec<String> = url.query().map(escape).into_iter().collect();
    if !fixed.is_empty() {
        pairs.push(escape(&fixed));
    }
    for (parameter, value) in given(binding, ParameterLocation::Query, input) {
        pairs.extend(style::query(parameter, value));
    }
    url.set_query((!pairs.is_empty()).then(|| pairs.join("&")).as_deref());
    url.set_fragment(None);
    Ok(url)
}

/// The URL that the path is below.
fn base(binding: &HttpBinding, settings: &Settings) -> Result<Url, CallError> {
    if let Some(url) = &settings.base_url {
        return Ok(url.clone());
    }
    let Some(server) = binding.server.as_deref() else {
        return Err(CallError::execution("no base URL is set, and the operation names no server"));
    };
    match Url::parse(server) {
        Ok(mut url) if is_http(&url) => {
            // A document does not say who the caller is.
            let _ = take_credentials(&mut url);
            Ok(url)
        }
        Err(url::ParseError::RelativeUrlWithoutBase) => Err(CallError::execution(format!(
            "the operation's server `{}` is relative: set a base URL",
            server.escape_debug()
        ))),
        _ => Err(CallError::execution(format!(
            "the operation's server `{}` is no http or https URL",
            server.escape_debug()
        ))),
    }
}

fn headers(binding: &HttpBinding, settings: &Settings, input: &Map<String, Value>) -> Result<HeaderMap, CallError> {
    let mut headers = settings.headers.clone();
    for (parameter, value) in given(binding, ParameterLocation::Header, input) {
        if OWN.iter().any(|own| parameter.name.eq_ignore_ascii_case(own)) {
            continue;
        }
        let Some(text) = style::header(parameter, value) else { continue };
        let name = HeaderName::from_bytes(parameter.name.as_bytes())
            .map_err(|_| CallError::execution(format!("`{}` is no header name", parameter.name.escape_debug())))?;
        let value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
            let message = format!("the header `{name}` cannot carry control characters");
            invalid(&pointer(&parameter.property), message)
        })?;
        headers.insert(name, value);
    }
    let mut cookies = Vec::new();
    for (parameter, value) in given(binding, ParameterLocation::Cookie, input) {
        cookies.extend(style::cookie(parameter, value));
    }
    if !cookies.is_empty() {
        let own = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok().map(str::to_owned));
        let all: Vec<_> = own.chain(cookies).collect();
        let mut value =
            HeaderValue::from_str(&all.join("; ")).map_err(|_| CallError::execution("a cookie cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(COOKIE, value);
    }
    Ok(headers)
}

/// The parameters of a location that the input has a value for.
fn given<'a>(
    binding: &'a HttpBinding,
    location: ParameterLocation,
    input: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'a HttpParameter, &'a Value)> {
    let here = binding.parameters.iter().filter(move |parameter| parameter.location == location);
    here.filter_map(|parameter| input.get(parameter.property.as_ref()).map(|value| (parameter, value)))
}
