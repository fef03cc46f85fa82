//! Sending a request and following redirects, which never carry credentials to other origins.

use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING,
    CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_RANGE, CONTENT_TYPE, COOKIE, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, LOCATION, PROXY_AUTHORIZATION,
    RANGE, USER_AGENT,
};
use http::{HeaderMap, HeaderName, Method, Request, StatusCode};
use url::Url;

use super::RequestBody;
use super::address::{is_http, same_origin};
use super::auth::{Applied, take_credentials};
use super::destinations::Home;
use super::engine::{EngineResponse, SendError};
use super::idempotency::is_idempotency_header;
use super::per_call::frames;
use super::retry::is_safe;
use super::send::{Label, Sent, request, send_led, send_one};
use super::settings::Settings;
use super::trace::is_of_trace;
use crate::CallError;

/// The header with which a stream of events continues (WHATWG HTML, section 9.2.5).
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The headers that another host receives, beside those of the body, conditions, and the keys for which
/// `is_idempotency_header` is true.
///
/// It lists headers that hold no credential by their standards rather than credentials, since any other header of the
/// caller may contain credentials.
static HARMLESS: [HeaderName; 9] = [
    ACCEPT,
    ACCEPT_ENCODING,
    ACCEPT_LANGUAGE,
    CACHE_CONTROL,
    IF_RANGE,
    LAST_EVENT_ID,
    HeaderName::from_static("prefer"),
    RANGE,
    USER_AGENT,
];

/// The headers that hold credentials by their standards.
const CREDENTIALS: &[HeaderName] = &[AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION];

/// The headers that describe the body, which go with it. A server that checks a digest refuses a request without the
/// body of that digest.
static OF_BODY: [HeaderName; 12] = [
    CONTENT_DISPOSITION,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_LENGTH,
    CONTENT_LOCATION,
    CONTENT_RANGE,
    CONTENT_TYPE,
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("repr-digest"),
    LAST_MODIFIED,
];

/// The conditions of a request, which are about what it changes.
const CONDITIONS: &[HeaderName] = &[IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE];

/// A response and its URL, which differs from the request's after a redirect.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) response: EngineResponse,
    /// `None` if no redirect was followed.
    pub(super) url: Option<Url>,
    /// True if all redirects stayed on the request's own origin, so that the response is to the credentials.
    pub(super) at_home: bool,
}

impl Answer {
    pub(super) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }
}

/// Sends a request, and follows redirects (RFC 9110, section 15.4).
///
/// Like a browser, it turns POST into GET after 301 and 302, and every method except HEAD after 303; 307 and 308 keep
/// method and body. After a redirect to another scheme, host or port, no credentials are sent, and a key in the query is
/// removed. Nor are other headers that may hold credentials, except from `http` to `https` of the same host. A body is
/// sent to another origin only if the configuration allows it. The configuration's
/// [`Destinations`](super::Destinations) decide about other hosts.
///
/// # Errors
/// If the transport fails, if a redirect is invalid or one too many, if it needs a stream or a pipe that was already sent,
/// or if another origin would get a request that may change something without one of its headers, or without cookies that
/// are no credentials of the client's.
pub(super) async fn send(
    settings: &Settings,
    first: Request<RequestBody>,
    credentials: &Applied,
    label: &Label,
    sent: &mut Sent,
) -> Result<Answer, SendError> {
    if settings.redirects == 0 {
        let response = send_one(settings, first, label, sent).await?;
        return Ok(Answer { response, url: None, at_home: true });
    }
    let mut next = first;
    let mut url: Option<Url> = None;
    let mut home: Option<Url> = None;
    let mut at_home = true;
    for _ in 0..=settings.redirects {
        let uri = next.uri().clone();
        let (method, headers, body) = (next.method().clone(), next.headers().clone(), next.body().clone());
        let led = home.as_ref().filter(|home| url.as_ref().is_some_and(|url| url.host() != home.host()));
        let sending = send_led(settings, led, next, label, sent).await;
        // The server that redirected it may have carried it out before.
        let response = sending
            .map_err(|failed| SendError { may_have_arrived: failed.may_have_arrived || url.is_some(), ..failed })?;
        let Some(location) = location(&response) else { return Ok(Answer { response, url, at_home }) };
        let from = match url {
            Some(url) => url,
            None => Url::parse(&uri.to_string()).map_err(|_| leads_nowhere())?,
        };
        let mut to = target(&from, &location?)?;
        let (method, mut headers, body) = rewrite(response.status(), method, headers, body);
        if !body.is_repeatable() {
            let message = "the server redirected a body that is a stream or a pipe, which can be sent once only";
            return Err(CallError::execution(message).into());
        }
        let home = home.get_or_insert_with(|| from.clone());
        settings.destinations.check(&Home::of(home), &to).await?;
        let is_other = !same_origin(&from, &to) && !is_upgrade(&from, &to);
        if !settings.bodies_to_other_origins && !body.is_empty() && is_other {
            let message = format!(
                "the server redirected a request with a body to another origin (`{}`): allow it by \
                 `with_bodies_to_other_origins`",
                host_of(&to)
            );
            return Err(CallError::execution(message).into());
        }
        at_home = at_home && same_origin(&from, &to);
        if at_home {
            credentials.add_query(&mut to);
        } else {
            credentials.take_query(&mut to);
            // Other cookies may say what the request does, as other headers may.
            if !credentials.has_all_cookies(&headers) {
                refuse_lost(&method, &COOKIE, &to)?;
            }
            headers = only(&headers, |name| !CREDENTIALS.contains(name) && !credentials.has_header(name));
            if is_other {
                // Headers about the trace or the connection do not say what the request does.
                let is_needed = |name: &HeaderName| !(is_harmless(name) || is_of_trace(name) || frames(name));
                if let Some(name) = headers.keys().find(|name| is_needed(name)) {
                    refuse_lost(&method, name, &to)?;
                }
                headers = harmless(&headers);
            }
        }
        next = request(method, &to, headers, body)?;
        url = Some(to);
    }
    Err(CallError::execution(format!("the server redirected more than {} times", settings.redirects)).into())
}

/// The target of a redirect; `None` for any other response.
pub(super) fn location(response: &EngineResponse) -> Option<Result<String, CallError>> {
    let redirects = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    let value = response.headers().get(LOCATION).filter(|_| redirects.contains(&response.status()))?;
    Some(std::str::from_utf8(value.as_bytes()).map(str::to_owned).map_err(|_| leads_nowhere()))
}

pub(super) fn target(from: &Url, location: &str) -> Result<Url, CallError> {
    let mut to = from.join(location).map_err(|_| leads_nowhere())?;
    if !is_http(&to) {
        return Err(CallError::execution(format!("the server redirected to a URL of scheme `{}`", to.scheme())));
    }
    // Credentials in a server's URL are not used.
    let _ = take_credentials(&mut to);
    to.set_fragment(None);
    Ok(to)
}

// The message does not show the URL, since it may contain secrets.
fn leads_nowhere() -> CallError {
    CallError::execution("the server redirected to something that is not a URL")
}

fn rewrite(
    status: StatusCode,
    method: Method,
    mut headers: HeaderMap,
    body: RequestBody,
) -> (Method, HeaderMap, RequestBody) {
    let to_get = match status {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => method == Method::POST,
        StatusCode::SEE_OTHER => method != Method::HEAD,
        _ => false,
    };
    if !to_get {
        return (method, headers, body);
    }
    let was_get = method == Method::GET;
    let conditions = CONDITIONS.iter().filter(|_| !was_get);
    for name in OF_BODY.iter().chain(conditions) {
        headers.remove(name);
    }
    (Method::GET, headers, RequestBody::default())
}

/// True if the URLs differ only by `http` and `https`, on the same host and their default ports.
fn is_upgrade(from: &Url, to: &Url) -> bool {
    let default = |url: &Url| url.port().is_none();
    (from.scheme(), to.scheme()) == ("http", "https") && from.host() == to.host() && default(from) && default(to)
}

/// The host of a URL, for messages.
fn host_of(url: &Url) -> String {
    crate::model::text::readable(url.host_str().unwrap_or_default(), 200)
}

/// Refuses to send a request to another origin without this header, which may say what it does, such as `X-Dry-Run`.
///
/// A request that changes nothing does no harm without it: downloads are often redirected to the host of a storage.
fn refuse_lost(method: &Method, name: &HeaderName, to: &Url) -> Result<(), CallError> {
    if is_safe(method) {
        return Ok(());
    }
    let host = host_of(to);
    Err(CallError::execution(format!(
        "the server redirected a {method} to another origin (`{host}`), which does not get the header `{name}`, as it may \
         hold a credential; the request may do something else without it, and was not sent on: set the base URL that the \
         service has now, if you trust it"
    )))
}

fn is_harmless(name: &HeaderName) -> bool {
    let listed = [&HARMLESS[..], &OF_BODY[..], CONDITIONS];
    listed.iter().any(|names| names.contains(name)) || is_idempotency_header(name.as_str())
}

/// The headers that another origin may receive.
pub(super) fn harmless(headers: &HeaderMap) -> HeaderMap {
    only(headers, is_harmless)
}

/// The headers with these names.
fn only(headers: &HeaderMap, has: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, value) in headers {
        if has(name) {
            kept.append(name, value.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests;
