//! Fetching documents by URL.

use std::sync::Arc;
use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method, Request};
use url::Url;

use super::HttpClient;
use super::RequestBody;
use super::address::{is_http, same_origin};
use super::auth::{Applied, Plan, take_credentials};
use super::coding::{coding, not_decoded};
use super::config::Checked;
use super::engine::SendError;
use super::redirect::{Answer, harmless, location, send, target};
use super::response::{self, Collected, Deadline, collect};
use super::secrets::Carried;
use super::send::{Label, Sent, limited, request, send_one};
use super::settings::Settings;
use crate::model::secrets::{Kept, looks_like_key, names_a_secret};
use crate::run::context::deadline_after;
use crate::{BoxFuture, CallError};

impl HttpClient {
    /// Fetches a document by its URL.
    ///
    /// The service's headers and credentials are sent only if the URL is on the service's own host.
    ///
    /// # Errors
    /// If the URL is not http or https, or if there is no document.
    pub(crate) async fn fetch(&self, url: &str) -> Result<Document, CallError> {
        let checked = self.checked();
        let settings = &checked.settings;
        limited(timeout(settings), fetch(checked, url, Reach::Anywhere, settings.max_response)).await
    }

    /// Fetches a document to which another refers, with at most so many bytes.
    ///
    /// Redirects are followed only within the origin: a document must not lead to another host.
    ///
    /// # Errors
    /// Those of [`fetch`](Self::fetch), and if a redirect leads to another origin.
    pub(crate) async fn fetch_part(&self, url: &str, limit: usize) -> Result<Document, CallError> {
        let checked = self.checked();
        let limit = limit.min(checked.settings.max_response);
        limited(timeout(&checked.settings), fetch(checked, url, Reach::Origin, limit)).await
    }
}

/// The timeout for one document if the timeout of the configuration is `None`.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The timeout for one document; `None` if none is set and there is no runtime to measure time.
fn timeout(settings: &Settings) -> Option<Duration> {
    settings.timeout.or_else(|| tokio::runtime::Handle::try_current().is_ok().then_some(TIMEOUT))
}

/// The destinations that redirects may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Anywhere,
    Origin,
}

/// A fetched document.
#[derive(Debug)]
pub(crate) struct Document {
    /// The text, as UTF-8.
    pub(crate) text: String,
    /// Its URL after redirects; relative references in the document are resolved against it.
    pub(crate) url: String,
    /// The secrets of the request.
    pub(crate) secrets: Kept,
}

fn fetch<'a>(
    checked: &'a Checked,
    url: &'a str,
    reach: Reach,
    limit: usize,
) -> BoxFuture<'a, Result<Document, CallError>> {
    Box::pin(async move {
        let settings = &checked.settings;
        let mut url = Url::parse(url)
            .ok()
            .filter(is_http)
            .ok_or_else(|| CallError::execution("the document's URL is no http or https URL"))?;
        let own = take_credentials(&mut url)?;
        let own: HeaderMap = own.map(|own| own.to_header()).transpose()?.flatten().into_iter().collect();
        let is_home = settings.base_url.as_ref().is_some_and(|base| same_origin(base, &url));
        let plan = if is_home { checked.credentials.of_documents() } else { Plan::default() };
        let carried = Carried::new(checked, plan, own, Some(keys_of(&url)));
        let fetched = fetch_with(&carried, url, is_home, reach, limit).await;
        fetched.map_err(|error| carried.error(error))
    })
}

/// The URL of a document, reduced to what is probably secret. The path is left out, because messages and diagnostics name the
/// document by it. So is a part of the query, because its words may also occur in the document.
fn keys_of(url: &Url) -> Url {
    let is_secret =
        |pair: &&str| pair.split_once('=').is_some_and(|(name, value)| names_a_secret(name) || looks_like_key(value));
    let query: Vec<&str> = url.query().unwrap_or_default().split('&').filter(is_secret).collect();
    let mut keys = url.clone();
    keys.set_path("");
    keys.set_query(Some(&query.join("&")));
    keys
}

async fn fetch_with(
    carried: &Arc<Carried>,
    url: Url,
    is_home: bool,
    reach: Reach,
    limit: usize,
) -> Result<Document, CallError> {
    let settings = &carried.settings;
    let deadline = timeout(settings).and_then(deadline_after);
    let mut headers = if is_home { settings.headers.clone() } else { harmless(&settings.headers) };
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json, application/yaml, */*;q=0.5"));
    let mut request = request(Method::GET, &url, headers, RequestBody::default())?;
    let credentials = carried.apply(None).await?;
    credentials.put(&mut request, &carried.own)?;
    request.headers_mut().extend(carried.own.clone());
    let sent = match reach {
        Reach::Anywhere => send(settings, request, &credentials, &Label::default(), &mut Sent::default()).await,
        Reach::Origin => send_within(settings, request, &url, &credentials).await,
    };
    let answer = sent.map_err(|failed| failed.error)?;
    let url = answer.url.unwrap_or(url).to_string();
    let (mut parts, body) = answer.response.into_parts();
    if !parts.status.is_success() {
        if let Some(deadline) = deadline {
            parts.extensions.insert(Deadline(deadline));
        }
        return Err(response::status_error(&parts, body, settings.max_response).await);
    }
    let meta = response::meta(&parts);
    if let Some(coding) = coding(meta.header("content-encoding")) {
        return Err(not_decoded(coding));
    }
    match collect(body, limit).await {
        Collected::Whole(bytes) => {
            let text = response::decode(&meta, &bytes);
            Ok(Document { text, url, secrets: carried.kept() })
        }
        Collected::Cut(_) => Err(response::too_large(limit)),
        Collected::Broken(_, error) => Err(error),
    }
}

/// Sends a request, and follows redirects within its origin.
async fn send_within(
    settings: &Settings,
    first: Request<RequestBody>,
    url: &Url,
    credentials: &Applied,
) -> Result<Answer, SendError> {
    let headers = first.headers().clone();
    let (mut next, mut at) = (first, url.clone());
    for _ in 0..=settings.redirects {
        let response = send_one(settings, next, &Label::default(), &mut Sent::default()).await?;
        let Some(location) = location(&response) else { return Ok(Answer { response, url: Some(at), at_home: true }) };
        let mut to = target(&at, &location?)?;
        if !same_origin(url, &to) {
            let message = "the server redirected to another host, where documents are not fetched from by reference";
            return Err(CallError::execution(message).into());
        }
        credentials.add_query(&mut to);
        next = request(Method::GET, &to, headers.clone(), RequestBody::default())?;
        at = to;
    }
    Err(CallError::execution(format!("the server redirected more than {} times", settings.redirects)).into())
}
