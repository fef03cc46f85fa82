//! From a binding and an input to the request that is sent.

use std::borrow::Cow;

use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value};
use url::Url;

use super::body::{self, Input};
use super::config::{Settings, is_http, take_credentials};
use super::path::{Target, target};
use super::{RequestBody, invalid, media, pointer, server, style};
use crate::body::handover::Parcels;
use crate::{CallError, HttpBinding, HttpParameter, OperationKind, OperationSpec, ParameterLocation};

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

/// Whether no parameter may be this header.
pub(super) fn is_own(name: &str) -> bool {
    OWN.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// What a query cannot hold as it is.
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'\'').add(b'\\').add(b'^');

/// The request of an operation for an input, but for credentials.
///
/// # Errors
/// A `VALIDATION_ERROR` that names the part of the input that cannot be sent, an `EXECUTION_ERROR` if the binding is to
/// blame.
pub(super) fn encode(
    spec: &OperationSpec,
    binding: &HttpBinding,
    settings: &Settings,
    input: &Value,
    bodies: &Parcels,
) -> Result<Request<RequestBody>, CallError> {
    let empty = Map::new();
    let members = match input {
        Value::Object(members) => members,
        Value::Null => &empty,
        _ => return Err(invalid("", "the input is not an object")),
    };
    let input = Input { spec, members, bodies };
    let parameters = parameters(binding, input)?;
    let url = url(binding, settings, &parameters)?;
    let method = Method::from_bytes(binding.method.as_bytes())
        .map_err(|_| CallError::execution(format!("`{}` is no HTTP method", binding.method.escape_debug())))?;
    let mut headers = headers(binding, settings, &parameters)?;
    let accept = media::accept(binding, spec.kind);
    if spec.kind == OperationKind::Subscription {
        headers.insert(ACCEPT, accept);
    } else {
        headers.entry(ACCEPT).or_insert(accept);
    }
    headers.remove(CONTENT_TYPE);
    let mut body = RequestBody::default();
    if let Some(encoded) = body::encode(binding, input)? {
        headers.insert(CONTENT_TYPE, encoded.content_type);
        body = encoded.body;
    } else if [Method::POST, Method::PUT, Method::PATCH].contains(&method) {
        // Some servers insist on it (RFC 9110, section 8.6).
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    request(method, &url, headers, body)
}

/// The input as parameters see it: with the JSON of bodies, which only a request body can stream.
fn parameters<'a>(binding: &HttpBinding, input: Input<'a>) -> Result<Cow<'a, Map<String, Value>>, CallError> {
    if input.bodies.is_empty() {
        return Ok(Cow::Borrowed(input.members));
    }
    let mut resolved = Map::new();
    for parameter in binding.parameters.iter() {
        if let Some(value) = input.members.get(parameter.property.as_ref()) {
            resolved.insert(parameter.property.clone().into_owned(), input.resolve(value)?.into_owned());
        }
    }
    Ok(Cow::Owned(resolved))
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
    for (parameter, value) in given(binding, ParameterLocation::QueryString, input) {
        pairs.extend(style::query_string(parameter, value).iter().map(|text| escape(text)));
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
    let server = server::filled(server, &binding.server_variables, &settings.server_variables)?;
    match Url::parse(&server) {
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
        if is_own(&parameter.name) {
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
