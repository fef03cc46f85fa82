//! Loads documents at run time: reads them and binds them to a client.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Mutex;

use serde_core::Serialize;
use url::Url;

use super::address::same_origin;
use super::{HttpClient, HttpConfig};
use crate::documents::openapi::{self, ReadOptions};
use crate::documents::source::{FileSource, Source, SourceError};
use crate::model::lock::lock;
use crate::{Api, Binding, BoxFuture, CallError, Diagnostic, OperationSpec, Registration};

/// Limit of the rounds of fetching referenced documents.
const ROUNDS: usize = 16;

/// The operations of a document, for registration, with the reader's diagnostics.
#[derive(Clone)]
#[must_use = "operations do nothing until they are given to `Registry::register_all`"]
pub struct Imported {
    /// The operations, with handlers that send their requests.
    pub registrations: Vec<Registration>,
    /// The requests that the API sends, webhooks and callbacks; the output of each is what it sends.
    pub webhooks: Vec<OperationSpec>,
    /// Parts that were left out, or that were read in a way that the document's author may not have meant.
    pub diagnostics: Vec<Diagnostic>,
    /// What to set, if operations need credentials, and the configuration has none that suffice for any of them.
    ///
    /// `None` if the configuration has headers of its own, since they may be credentials.
    pub without_credentials: Option<String>,
}

impl fmt::Debug for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Imported")
            .field("operations", &self.registrations.len())
            .field("webhooks", &self.webhooks.len())
            .field("diagnostics", &self.diagnostics)
            .field("without_credentials", &self.without_credentials)
            .finish_non_exhaustive()
    }
}

impl IntoIterator for Imported {
    type Item = Registration;
    type IntoIter = std::vec::IntoIter<Registration>;

    fn into_iter(self) -> Self::IntoIter {
        self.registrations.into_iter()
    }
}

/// Reads the operations of an OpenAPI document, given as JSON or YAML text.
///
/// ```
/// use ops_runtime::{HttpConfig, Registry};
/// use ops_runtime::openapi::from_openapi;
///
/// let document = r#"{
///     "openapi": "3.1.0",
///     "info": { "title": "Pets", "version": "1.0.0" },
///     "paths": { "/pets": { "get": { "operationId": "listPets", "responses": { "200": { "description": "All" } } } } }
/// }"#;
/// let config = HttpConfig::new().with_namespace("pets").with_base_url("https://pets.example.com");
/// let registry = Registry::new();
/// registry.register_all(from_openapi(document, config)?)?;
/// assert!(registry.spec("pets.listPets").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the text is not an OpenAPI document, or if the configuration is invalid. References to other documents are not
/// followed; a diagnostic says so.
#[doc(alias = "FromOpenAPI")]
pub fn from_openapi(document: &str, config: HttpConfig) -> Result<Imported, CallError> {
    const NAME: &str = "document";
    let source = BTreeMap::from([(NAME.to_owned(), document.to_owned())]);
    from_openapi_source(NAME, &source, config)
}

/// Reads the operations of an OpenAPI document that is a value: anything that serialises to one, such as
/// `openapiv3::OpenAPI`, the document of `utoipa`, or a `serde_json::Value`.
///
/// Operations and properties have the order in which the value writes them. References to other documents are not
/// followed, because a value has no location; a diagnostic says so. For a document of several parts, pass their texts
/// to [`from_openapi_source`].
///
/// ```
/// use ops_runtime::HttpConfig;
/// use ops_runtime::openapi::from_openapi_value;
///
/// let mut document = serde_json::json!({
///     "openapi": "3.1.0",
///     "info": { "title": "Pets", "version": "1.0.0" },
///     "paths": { "/pets": { "get": { "responses": { "200": { "description": "All" } } } } }
/// });
/// document["paths"]["/pets"]["get"]["operationId"] = "listPets".into();
/// let imported = from_openapi_value(&document, HttpConfig::new().with_namespace("pets"))?;
/// assert_eq!(imported.registrations[0].spec().id, "pets.listPets");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the value cannot be written as JSON, if it is not an OpenAPI document, or if the configuration is invalid.
pub fn from_openapi_value(document: &impl Serialize, config: HttpConfig) -> Result<Imported, CallError> {
    let value = serde_json::to_value(document)
        .map_err(|error| CallError::execution(format!("the document can't be written as JSON: {error}")))?;
    let (api, diagnostics) = openapi::read(&value, &options(&config))?;
    bind(api, diagnostics, &HttpClient::new(config)?)
}

/// Reads the operations of the OpenAPI document in a file, and of the files in its folder to which it refers.
///
/// Without a namespace in the configuration, theirs is [`file_namespace`](openapi::file_namespace), as in a module that is
/// generated from the file.
///
/// # Errors
/// If the file cannot be read or is not an OpenAPI document, or if the configuration is invalid.
pub fn from_openapi_file(path: &str, config: HttpConfig) -> Result<Imported, CallError> {
    let mut options = options(&config);
    options.namespace.get_or_insert_with(|| openapi::file_namespace(Path::new(path)));
    let (api, diagnostics) = openapi::load(path, &FileSource::new(), &options)?;
    bind(api, diagnostics, &HttpClient::new(config)?)
}

/// Reads the operations of the OpenAPI document that a source has at a location.
///
/// # Errors
/// If there is no such document, if it is not an OpenAPI document, or if the configuration is invalid.
pub fn from_openapi_source(location: &str, source: &dyn Source, config: HttpConfig) -> Result<Imported, CallError> {
    let (api, diagnostics) = openapi::load(location, source, &options(&config))?;
    bind(api, diagnostics, &HttpClient::new(config)?)
}

/// Reads the operations of the OpenAPI document at a URL, and of those on the same host to which it refers.
///
/// References are followed only within the origin of the document, including redirects. At most
/// [`ReadOptions::max_documents`] are fetched, each within the configuration's timeout (10 minutes by default, and 60 seconds
/// if it is `None`). All documents together may have as many bytes as one response ([`HttpConfig::with_max_response`], 64 MB).
/// A user and a password in the URL are sent only to its origin, also for the documents that it refers to.
///
/// Without a base URL in the configuration, operations are called at the servers in the document; relative ones are
/// resolved against the document's own URL. The document then decides where credentials are sent: set a base URL for
/// documents that you do not trust.
///
/// # Errors
/// If the document cannot be fetched or is not an OpenAPI document, or if the configuration is invalid.
pub fn from_openapi_url(url: &str, config: HttpConfig) -> BoxFuture<'_, Result<Imported, CallError>> {
    Box::pin(import(url, config))
}

async fn import(url: &str, config: HttpConfig) -> Result<Imported, CallError> {
    let options = options(&config);
    let client = HttpClient::new(config)?;
    let document = client.fetch(url).await?;
    let (root, secrets) = (document.url, document.secrets);
    let mut left = options.max_bytes.min(client.checked().settings.max_response).saturating_sub(document.text.len());
    let mut asked = 1;
    let mut fetched = Fetched { texts: BTreeMap::from([(root.clone(), Ok(document.text))]), wanted: Mutex::default() };
    let mut rounds = 0;
    let (mut api, mut diagnostics) = loop {
        let read = openapi::load(&root, &fetched, &options);
        let wanted = std::mem::take(&mut *lock(&fetched.wanted));
        rounds += 1;
        if wanted.is_empty() || rounds > ROUNDS {
            // A server may have repeated what it was sent, as a document.
            break read.map_err(|error| CallError::from(error).without_kept(&secrets))?;
        }
        for location in wanted {
            // A document that cannot be fetched affects only references to it; it still counts towards the limit.
            let text = if asked == options.max_documents {
                Err(format!("the description has more than {asked} documents"))
            } else if left == 0 {
                Err("the documents are too large together: raise `HttpConfig::with_max_response`".to_owned())
            } else {
                asked += 1;
                let part = with_user_of(url, &location);
                let fetched = client.fetch_part(&part, left).await.map(|document| document.text);
                fetched.map_err(|error| error.message().to_owned())
            };
            left = left.saturating_sub(text.as_ref().map_or(0, String::len));
            fetched.texts.insert(location, text);
        }
    };
    if let Ok(root) = Url::parse(&root) {
        api.operations.iter_mut().for_each(|operation| locate(&mut operation.binding, &root));
    }
    if !diagnostics.is_empty() {
        let secrets = secrets.secrets();
        diagnostics = diagnostics.into_iter().map(|diagnostic| secrets.diagnostic(diagnostic)).collect();
    }
    bind(api, diagnostics, &client)
}

/// The location of a part with the user and the password of the first document's URL, if it is on the same origin: relative
/// references keep them (RFC 3986, section 5.2.2), but the location was resolved without.
fn with_user_of<'l>(first: &str, location: &'l str) -> Cow<'l, str> {
    let (Ok(first), Ok(mut part)) = (Url::parse(first), Url::parse(location)) else { return location.into() };
    let has_user = |url: &Url| !url.username().is_empty() || url.password().is_some();
    if !has_user(&first) || has_user(&part) || !same_origin(&first, &part) {
        return location.into();
    }
    // They fail only for URLs without a host.
    let _ = part.set_username(first.username());
    let _ = part.set_password(first.password());
    Cow::Owned(part.into())
}

/// Fetches the text of a document at a URL, and nothing that it refers to.
///
/// # Errors
/// If the URL is not http or https, if the document cannot be fetched, or if the configuration is invalid.
pub fn fetch(url: &str, config: HttpConfig) -> BoxFuture<'_, Result<String, CallError>> {
    Box::pin(async move { Ok(HttpClient::new(config)?.fetch(url).await?.text) })
}

fn options(config: &HttpConfig) -> ReadOptions {
    match config.namespace() {
        Some(namespace) => ReadOptions::new().with_namespace(namespace),
        None => ReadOptions::new(),
    }
}

fn bind(api: Api, diagnostics: Vec<Diagnostic>, client: &HttpClient) -> Result<Imported, CallError> {
    // Most operations of a large document are never called.
    let Api { operations, webhooks, .. } = api.compacted();
    let without_credentials = client.without_credentials(&operations);
    Ok(Imported { registrations: client.registrations(operations), webhooks, diagnostics, without_credentials })
}

/// Resolves a relative server URL against the document's URL.
fn locate(binding: &mut Binding, document: &Url) {
    if let Binding::Http(http) = binding {
        let server = http.server.as_deref().unwrap_or("/");
        if server.starts_with('{') || (server.contains('{') && server.contains("://")) {
            // It can be resolved only once its variables have values.
            return;
        }
        if let Ok(server) = document.join(server) {
            // Variables in the path must stay unescaped.
            http.server = Some(Cow::Owned(server.as_str().replace("%7B", "{").replace("%7D", "}")));
        }
    }
}

/// Fetched documents or their errors, and the locations that a reading requested but that are missing.
struct Fetched {
    texts: BTreeMap<String, Result<String, String>>,
    wanted: Mutex<BTreeSet<String>>,
}

impl Source for Fetched {
    fn read(&self, location: &str, root: &str) -> Result<String, SourceError> {
        if let Some(text) = self.texts.get(location) {
            return text.clone().map_err(SourceError::new);
        }
        let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
        if origin(location).is_none() || origin(location) != origin(root) {
            return Err(SourceError::new(format!("`{location}` is on another host, and is not fetched")));
        }
        lock(&self.wanted).insert(location.to_owned());
        Err(SourceError::new(format!("`{location}` is not fetched yet")))
    }

    fn resolve(&self, base: &str, reference: &str) -> String {
        match Url::parse(base).and_then(|base| base.join(reference)) {
            Ok(url) => url.into(),
            Err(_) => reference.to_owned(),
        }
    }
}

impl From<Diagnostic> for CallError {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::execution(diagnostic.to_string())
    }
}
