//! Sending a request and following redirects, which never carry credentials to other origins.

use http::header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, Method, Request, StatusCode};
use url::Url;

use super::RequestBody;
use super::address::{is_http, same_origin};
use super::auth::{Applied, take_credentials};
use super::destinations::Home;
use super::engine::{EngineResponse, SendError};
use super::send::{Label, Sent, request, send_led, send_one};
use super::settings::Settings;
use crate::CallError;

/// The headers that another host receives; besides them it gets only the body.
///
/// It lists harmless headers rather than credentials: any header of the caller's may hold some.
const HARMLESS: &[HeaderName] = &[ACCEPT, ACCEPT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT];

/// A response and its URL, which differs from the request's after a redirect.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) response: EngineResponse,
    /// `None` if no redirect was followed.
    #[cfg_attr(not(feature = "openapi"), allow(dead_code, reason = "only documents care where they are"))]
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

/// Sends a request, and the ones that redirects ask for (RFC 9110, section 15.4).
///
/// Like a browser, it turns POST into GET after 301 and 302, and every method but HEAD after 303; 307 and 308 keep
/// method and body. After a redirect to another scheme, host or port, only harmless headers are sent, and a key in the
/// query is removed. A body is sent to another origin only if the configuration allows it. The configuration's
/// [`Destinations`](super::Destinations) decide about other hosts.
///
/// # Errors
/// If the transport fails, if a redirect is invalid or one too many, or if it needs a stream or a pipe that was already sent.
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
        let response = send_led(settings, led, next, label, sent).await?;
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
        if !settings.bodies_to_other_origins && !body.is_empty() && !same_origin(&from, &to) && !is_upgrade(&from, &to)
        {
            let host = crate::model::text::readable(to.host_str().unwrap_or_default(), 200);
            let message = format!(
                "the server redirected a request with a body to another origin (`{host}`): allow it by \
                 `with_bodies_to_other_origins`"
            );
            return Err(CallError::execution(message).into());
        }
        at_home = at_home && same_origin(&from, &to);
        if at_home {
            credentials.put_query(&mut to);
        } else {
            headers = harmless(&headers);
            credentials.take_query(&mut to);
        }
        next = request(method, &to, headers, body)?;
        url = Some(to);
    }
    Err(CallError::execution(format!("the server redirected more than {} times", settings.redirects)).into())
}

/// Where the response redirects to; `None` for any other response.
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

// The message does not show the URL: it may hold secrets.
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
    headers.remove(CONTENT_TYPE);
    headers.remove(CONTENT_LENGTH);
    (Method::GET, headers, RequestBody::default())
}

/// True if the URLs differ only by `http` and `https`, on the same host and their default ports.
fn is_upgrade(from: &Url, to: &Url) -> bool {
    let default = |url: &Url| url.port().is_none();
    (from.scheme(), to.scheme()) == ("http", "https") && from.host() == to.host() && default(from) && default(to)
}

pub(super) fn harmless(headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in HARMLESS {
        for value in headers.get_all(name) {
            kept.append(name, value.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests;
