//! From a binding and an input to the request that is sent.

use std::borrow::Cow;

use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value};
use url::Url;

use super::address::is_http;
use super::auth::take_credentials;
use super::body::{self, Input, schema};
use super::cookies::{cookies, set_in};
use super::idempotency;
use super::pairs;
use super::path::{Target, target};
use super::per_call::{PerCall, replace};
use super::send::request;
use super::settings::Settings;
use super::style::{self, Escape};
use super::{RequestBody, invalid, media, pointer, server};
use crate::model::binding::is_reserved_header;
use crate::model::binding::template::{Piece, parameter, pieces};
use crate::run::schemas::undeclared;
use crate::{Bodies, CallError, HttpBinding, HttpBody, HttpParameter, OperationKind, OperationSpec, ParameterLocation};

#[cfg(test)]
mod tests;

/// The longest URL that the types of a request hold, in bytes.
const MAX_URL: usize = u16::MAX as usize - 1;

/// Characters that are escaped in a query.
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'\'').add(b'\\').add(b'^');

/// The request of an operation for an input, without credentials.
///
/// # Errors
/// A `VALIDATION_ERROR` that names the part of the input that cannot be sent, or an `EXECUTION_ERROR` if the binding is
/// invalid.
pub(super) fn encode(
    spec: &OperationSpec,
    binding: &HttpBinding,
    settings: &Settings,
    input: &Value,
    bodies: &Bodies,
    options: &PerCall,
) -> Result<Request<RequestBody>, CallError> {
    let empty = Map::new();
    let members = match input {
        Value::Object(members) => members,
        Value::Null => &empty,
        _ => return Err(invalid("", "the input is not an object")),
    };
    refuse_others(spec, binding, members)?;
    let input = Input { spec, members, bodies };
    let parameters = parameters(binding, input)?;
    let url = url(spec, binding, settings, options, &parameters)?;
    if url.as_str().len() > MAX_URL {
        let message = format!("the input makes a URL of more than {MAX_URL} bytes, which cannot be requested");
        return Err(invalid("", message));
    }
    let method = Method::from_bytes(binding.method.as_bytes())
        .map_err(|_| CallError::execution(format!("`{}` is no HTTP method", binding.method.escape_debug())))?;
    let mut headers = headers(spec, binding, settings, options, &parameters)?;
    idempotency_key(spec, binding, options, &parameters, &mut headers)?;
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
    }
    if body.is_empty() && [Method::POST, Method::PUT, Method::PATCH].contains(&method) {
        // Some servers require it (RFC 9110, section 8.6).
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    request(method, &url, headers, body)
}

/// Refuses input members that have no place in the request, so that none is dropped silently.
fn refuse_others(spec: &OperationSpec, binding: &HttpBinding, members: &Map<String, Value>) -> Result<(), CallError> {
    if binding.bodies.iter().any(HttpBody::is_rest) {
        return Ok(());
    }
    let others: Vec<String> = members.keys().filter(|name| !binding.places(name)).map(|name| pointer(name)).collect();
    if others.is_empty() {
        return Ok(());
    }
    let parameters = binding.parameters.iter().filter(|parameter| parameter.fixed.is_none());
    let bodies = binding.bodies.iter().map(|body| &*body.property);
    let known: Vec<&str> = parameters.map(|parameter| &*parameter.property).chain(bodies).collect();
    Err(undeclared(&spec.id, &others, &known))
}

/// The input for parameters, those included that stand in the path alone: bodies are replaced by their JSON, for only a
/// request body can be streamed.
fn parameters<'a>(binding: &HttpBinding, input: Input<'a>) -> Result<Cow<'a, Map<String, Value>>, CallError> {
    if input.bodies.is_empty() {
        return Ok(Cow::Borrowed(input.members));
    }
    let mut resolved = Map::new();
    let mut in_query = false;
    let placed = pieces(&binding.path).filter_map(|piece| {
        in_query |= piece == Piece::Query;
        match piece {
            Piece::Parameter(name) => Some(parameter(binding, name, in_query).property.clone()),
            _ => None,
        }
    });
    for property in binding.parameters.iter().map(|parameter| parameter.property.clone()).chain(placed) {
        if let Some(value) = input.members.get(property.as_ref()) {
            resolved.insert(property.into_owned(), input.json(value)?.into_owned());
        }
    }
    Ok(Cow::Owned(resolved))
}

fn url(
    spec: &OperationSpec,
    binding: &HttpBinding,
    settings: &Settings,
    options: &PerCall,
    input: &Map<String, Value>,
) -> Result<Url, CallError> {
    let mut url = base(binding, settings, options)?;
    let Target { path, query: fixed, placed } = target(spec, binding, input)?;
    let base_path = url.path().trim_end_matches('/');
    let path = match path.as_str() {
        "" if !base_path.is_empty() => url.path().to_owned(),
        path => format!("{base_path}{}{path}", if path.starts_with('/') { "" } else { "/" }),
    };
    url.set_path(&path);
    if url.path() != path {
        // Everything is escaped already, so a URL that the parser reads differently must not be used.
        return Err(CallError::execution("the path is not what the URL would be read as"));
    }

    let escape = |text: &str| utf8_percent_encode(text, QUERY).to_string();
    let mut pairs: Vec<String> = url.query().map(escape).into_iter().collect();
    if !fixed.is_empty() {
        pairs.push(escape(&fixed));
    }
    let queries = given(binding, ParameterLocation::Query, input);
    let queries = queries.filter(|(parameter, _)| !placed.contains(&parameter.name));
    let write: pairs::Write = |parameter, value| {
        style::refuse_torn(parameter, value, &pointer(&parameter.property), Escape::in_query(parameter))?;
        Ok(style::query(parameter, value))
    };
    pairs::add(spec, binding, &placed, queries, write, &mut pairs)?;
    for (parameter, value) in given(binding, ParameterLocation::QueryString, input) {
        pairs.extend(style::query_string(parameter, &value).iter().map(|text| escape(text)));
    }
    url.set_query((!pairs.is_empty()).then(|| pairs.join("&")).as_deref());
    url.set_fragment(None);
    Ok(url)
}

/// The URL that the path is appended to.
fn base(binding: &HttpBinding, settings: &Settings, options: &PerCall) -> Result<Url, CallError> {
    options.base_url.clone().map_or_else(|| api(binding, settings), Ok)
}

/// The URL of the API: the client's base URL, or else the operation's server.
pub(super) fn api(binding: &HttpBinding, settings: &Settings) -> Result<Url, CallError> {
    if let Some(url) = &settings.base_url {
        return Ok(url.clone());
    }
    let Some(server) = binding.server.as_deref() else {
        return Err(CallError::execution(
            "no base URL is set, and the operation names no server: set one with `with_base_url`",
        ));
    };
    let server = server::filled(server, &binding.server_variables, &settings.server_variables.set)?;
    match Url::parse(&server) {
        Ok(mut url) if is_http(&url) => {
            // Credentials in a document's URL are not used.
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

fn headers(
    spec: &OperationSpec,
    binding: &HttpBinding,
    settings: &Settings,
    options: &PerCall,
    input: &Map<String, Value>,
) -> Result<HeaderMap, CallError> {
    let mut headers = settings.headers.clone();
    for (parameter, value) in given(binding, ParameterLocation::Header, input) {
        if is_reserved_header(&parameter.name) {
            continue;
        }
        style::refuse_torn(parameter, &value, &pointer(&parameter.property), Escape::None)?;
        let Some(text) = style::header(parameter, &value) else {
            if !value.is_null() {
                schema::refuse_replaced(spec, "", &parameter.property, &value)?;
            }
            continue;
        };
        let name = HeaderName::from_bytes(parameter.name.as_bytes())
            .map_err(|_| CallError::execution(format!("`{}` is no header name", parameter.name.escape_debug())))?;
        let value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
            let message = format!("the header `{name}` cannot carry control characters");
            invalid(&pointer(&parameter.property), message)
        })?;
        // They are no part of the value (RFC 9110, section 5.5), so the server would get another one.
        if text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']) {
            let message = format!("the header `{name}` cannot carry blanks at the ends of its value");
            return Err(invalid(&pointer(&parameter.property), message));
        }
        headers.insert(name, value);
    }
    replace(&mut headers, &options.headers, |name| name == COOKIE);
    let parameters = given(binding, ParameterLocation::Cookie, input);
    let mut pairs = Vec::new();
    pairs::add(spec, binding, &[], parameters, |parameter, value| Ok(style::cookie(parameter, value)), &mut pairs)?;
    // Many servers take the first of two cookies with one name, so only one is sent: the call's, or else the parameter's.
    let own: Vec<&str> = cookies(&options.headers).collect();
    let of_input = pairs.iter().map(String::as_str).filter(|pair| !set_in(own.iter().copied(), pair));
    let set: Vec<&str> = own.iter().copied().chain(of_input).collect();
    if !set.is_empty() {
        let kept = cookies(&headers).filter(|pair| !set_in(set.iter().copied(), pair));
        let all: Vec<&str> = kept.chain(set.iter().copied()).collect();
        let mut value = HeaderValue::from_bytes(all.join("; ").as_bytes())
            .map_err(|_| CallError::execution("a cookie cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(COOKIE, value);
    }
    Ok(headers)
}

/// Adds the idempotency key of the call, or that of its job.
///
/// # Errors
/// A `VALIDATION_ERROR` if the operation has no parameter for the key, or if the input has another key.
fn idempotency_key(
    spec: &OperationSpec,
    binding: &HttpBinding,
    options: &PerCall,
    input: &Map<String, Value>,
    headers: &mut HeaderMap,
) -> Result<(), CallError> {
    let Some(parameter) = idempotency::parameter(binding) else {
        return match options.idempotency_key {
            None => Ok(()),
            Some(_) => Err(invalid(
                "/idempotencyKey",
                format!(
                    "`{}` has no header parameter for an idempotency key, so a retry might be carried out twice: if the \
                     server takes a key all the same, send it by `with_header`; if repeating does no harm, say so by \
                     `Retry::with_idempotent`",
                    spec.id
                ),
            )),
        };
    };
    let name = HeaderName::from_bytes(parameter.name.as_bytes())
        .map_err(|_| CallError::execution(format!("`{}` is no header name", parameter.name.escape_debug())))?;
    // A key without characters is none.
    let is_set = headers.get(&name).is_some_and(|key| !idempotency::is_blank(key));
    let by_input = is_set && input.get(parameter.property.as_ref()).is_some_and(|value| !value.is_null());
    let key = match &options.idempotency_key {
        Some(key) if options.headers.get_all(&name).iter().any(|other| other != key) => {
            let message = "`with_header` and `with_idempotency_key` have different keys: leave one out";
            return Err(invalid("/headers", message));
        }
        Some(key) if by_input && headers.get(&name) != Some(key) => {
            let message = "the input and `with_idempotency_key` have different keys: leave one out";
            return Err(invalid(&pointer(&parameter.property), message));
        }
        Some(key) => Some(key.clone()),
        // What the call itself puts into the header stands, whatever it is.
        None if is_set || options.headers.contains_key(&name) => None,
        None => options.job_key.clone(),
    };
    if let Some(key) = key {
        headers.insert(name, key);
    }
    Ok(())
}

/// The parameters of a location that the input, or the binding itself, has a value for.
fn given<'a>(
    binding: &'a HttpBinding,
    location: ParameterLocation,
    input: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'a HttpParameter, Cow<'a, Value>)> + Clone {
    let here = binding.parameters.iter().filter(move |parameter| parameter.location == location);
    here.filter_map(|parameter| match &parameter.fixed {
        Some(fixed) => Some((parameter, Cow::Owned(fixed.to_value()))),
        None => input.get(parameter.property.as_ref()).map(|value| (parameter, Cow::Borrowed(value))),
    })
}
