//! Documents by their URL.

use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderValue, Method};
use url::Url;

use super::HttpClient;
use super::RequestBody;
use super::auth::Applied;
use super::client::limited;
use super::config::{Settings, is_http, take_credentials};
use super::exchange::{Label, Sent};
use super::redirect::{harmless, same_origin, send};
use super::request::request;
use super::response::{self, Collected, collect};
use crate::CallError;

impl HttpClient {
    /// Fetches a document by its URL.
    ///
    /// The service's headers and credentials go along only if the URL is of the service's own host.
    ///
    /// # Errors
    /// If the URL is not one of http or https, or if there is no document.
    pub(crate) async fn fetch(&self, url: &str) -> Result<Document, CallError> {
        let settings = self.settings();
        limited(settings.timeout, fetch(settings, url)).await
    }
}

/// A document that was fetched.
#[derive(Debug)]
pub(crate) struct Document {
    /// The text, as UTF-8.
    pub(crate) text: String,
    /// The URL that gave it, after redirects; relative references of the document start there.
    pub(crate) url: String,
}

async fn fetch(settings: &Settings, url: &str) -> Result<Document, CallError> {
    let mut url = Url::parse(url)
        .ok()
        .filter(is_http)
        .ok_or_else(|| CallError::execution("the document's URL is no http or https URL"))?;
    let own = take_credentials(&mut url)?;
    let mut headers = settings.headers.clone();
    let mut credentials = Applied::default();
    if settings.base_url.as_ref().is_some_and(|base| same_origin(base, &url)) {
        credentials = settings.credentials.of_documents().apply(settings, None).await?;
    } else {
        headers = harmless(&headers);
    }
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json, application/yaml, */*;q=0.5"));
    let mut request = request(Method::GET, &url, headers, RequestBody::default())?;
    credentials.put(&mut request)?;
    if let Some((_, value)) = own.map(|own| own.to_header()).transpose()?.flatten() {
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    let sent = send(settings, request, &credentials, &Label::default(), &mut Sent::default()).await;
    let answer = sent.map_err(|failed| failed.error)?;
    let url = answer.url.unwrap_or(url).to_string();
    let (parts, body) = answer.response.into_parts();
    let meta = response::meta(&parts);
    if !parts.status.is_success() {
        return Err(response::status_error(meta, body, settings.max_response).await);
    }
    match collect(body, settings.max_response).await {
        Collected::Whole(bytes) => {
            let text = response::decode(&meta, &bytes);
            Ok(Document { text, url })
        }
        Collected::Cut(_) => Err(response::too_large(settings.max_response)),
        Collected::Broken(error) => Err(error),
    }
}
