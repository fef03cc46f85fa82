//! The documents behind a gateway: APIs, which are called, and lists of tools, which are only shown.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use url::Url;

use crate::documents::dir::dir_namespaces;
use crate::documents::openapi::{self, ReadOptions};
use crate::documents::source::FileSource;
use crate::http::import::{Imported, from_openapi_source, from_openapi_url};
use crate::mcp::McpConfig;
use crate::model::lock::lock;
use crate::{
    BoxFuture, CallError, Context, Diagnostic, Endpoint, Handler, HttpClient, HttpConfig, OperationSpec, Payload,
    Registration, ResponseEnvelope, Value,
};

/// A document that is read when the gateway is built.
pub(super) struct Document {
    /// A path or a URL.
    pub(super) location: String,
    pub(super) config: HttpConfig,
    /// True if its operations return examples.
    pub(super) is_mock: bool,
    /// The folder within which its references are followed. `None` for its own folder.
    pub(super) within: Option<PathBuf>,
}

/// The result of reading a document.
pub(super) struct Read {
    pub(super) operations: Vec<Registration>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// What to set, if operations need credentials and have none.
    pub(super) without_credentials: Option<String>,
}

impl Read {
    /// Operations that need no credentials.
    fn of(operations: Vec<Registration>, diagnostics: Vec<Diagnostic>) -> Self {
        Self { operations, diagnostics, without_credentials: None }
    }
}

impl From<Imported> for Read {
    fn from(imported: Imported) -> Self {
        let Imported { registrations, diagnostics, without_credentials, .. } = imported;
        Self { operations: registrations, diagnostics, without_credentials }
    }
}

/// The result for a document, with its location.
pub(super) type Outcome = (String, Result<Read, CallError>);

/// The parts of all documents. Each but the operations has the location of its document.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) operations: Vec<Registration>,
    pub(super) diagnostics: Vec<(String, Diagnostic)>,
    pub(super) failures: Vec<(String, CallError)>,
    pub(super) without_credentials: Vec<(String, String)>,
}

/// Collects the parts of documents. A document without operations counts as a failure, too.
pub(super) fn collect(outcomes: Vec<Outcome>) -> Collected {
    let mut all = Collected::default();
    for (location, read) in outcomes {
        match read {
            Ok(read) => {
                if read.operations.is_empty() {
                    all.failures.push((location.clone(), CallError::execution("it describes no operations")));
                }
                all.operations.extend(read.operations);
                all.without_credentials.extend(read.without_credentials.map(|told| (location.clone(), told)));
                all.diagnostics.extend(read.diagnostics.into_iter().map(|told| (location.clone(), told)));
            }
            Err(error) => all.failures.push((location, error)),
        }
    }
    all
}

impl Document {
    pub(super) fn new(location: String, config: HttpConfig, is_mock: bool) -> Self {
        Self { location, config, is_mock, within: None }
    }

    fn is_url(&self) -> bool {
        let scheme = self.location.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| ["http", "https"].iter().any(|own| scheme.eq_ignore_ascii_case(own)))
    }

    /// The namespace in its configuration, in the form of ids, in lower case.
    fn namespace(&self) -> Option<String> {
        effective(self.config.namespace())
    }

    fn read(self) -> Result<Read, CallError> {
        let Self { location, config, is_mock, within } = self;
        let source = within.into_iter().fold(FileSource::new(), FileSource::within);
        let mut tools = crate::mcp::ReadOptions::new();
        tools.namespace = config.namespace().map(str::to_owned);
        let api = if is_mock {
            let client = rehearsing(config)?;
            let mut options = ReadOptions::new().with_examples();
            options.namespace.clone_from(&tools.namespace);
            openapi::load(&location, &source, &options)
                .map(|(api, told)| Read::of(client.bind_examples(api.compacted().operations), told))
                .map_err(CallError::from)
        } else {
            // Each file has a namespace by now.
            from_openapi_source(&location, &source, config).map(Read::from)
        };
        let refused = match api {
            Ok(read) => return Ok(read),
            Err(refused) => refused,
        };
        // Only a list of tools is read as one: for any other file, the reader of APIs has the better error.
        let (api, diagnostics) = crate::mcp::load(&location, &source, &tools).map_err(|_| refused)?;
        let operations = api.compacted().operations;
        let operations = if is_mock {
            mocked(operations)
        } else {
            operations.into_iter().map(|spec| Registration::new(spec, Handler::endpoint(Unconnected))).collect()
        };
        Ok(Read::of(operations, diagnostics))
    }

    /// Fetches the document and reads it.
    async fn fetch(self) -> Outcome {
        let Self { location, config, is_mock, .. } = self;
        let imported = from_openapi_url(&location, config.clone()).await;
        let read = match imported {
            Ok(imported) if is_mock => rehearsing(config).map(|client| {
                let specs = imported.registrations.iter().map(|registration| registration.spec().clone());
                Read::of(client.bind_examples(specs), imported.diagnostics)
            }),
            Ok(imported) => {
                keeps_credentials(&location, &config, &imported.registrations).map(|()| Read::from(imported))
            }
            Err(error) => Err(error),
        };
        (location, read)
    }
}

/// Refuses a document from the network whose credentials would be sent to another host than its own: without a base
/// URL, the document itself names the servers of its operations.
fn keeps_credentials(location: &str, config: &HttpConfig, operations: &[Registration]) -> Result<(), CallError> {
    let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
    let own = origin(location);
    // The value of a variable may be anything, including a host.
    let is_own = |server: &str| own.is_some() && has_plain_host(server) && origin(server) == own;
    let bindings = operations.iter().filter_map(|operation| operation.spec().http());
    let mut servers = bindings.filter(|http| config.proves_anywhere(http)).filter_map(|http| http.server.as_deref());
    match servers.find(|server| !is_own(server)) {
        None => Ok(()),
        Some(server) => Err(CallError::execution(format!(
            "the document sends calls, and your credentials with them, to `{}`, which is another host than its own: set that \
             as the base URL if you trust it",
            server.escape_debug()
        ))),
    }
}

/// True if the host of a URL is plain: without variables, and without user information, which may look like a host.
fn has_plain_host(url: &str) -> bool {
    let host = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#', '\\']).next());
    host.is_some_and(|host| !host.contains(['{', '}', '@']))
}

/// The handler of tools without a server.
struct Unconnected;

impl Endpoint for Unconnected {
    fn call(
        &self,
        spec: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let message = format!(
            "`{}` can't be called: only a snapshot of its MCP server is configured. Configure the server itself, by `[mcp]` \
             of the gateway's file, an `mcpServers` file, or `with_mcp_servers`",
            spec.id
        );
        Box::pin(ready(Err(CallError::new("NOT_CONNECTED", message))))
    }
}

/// A client whose operations return examples: nothing is sent, so a document need not name a server.
fn rehearsing(config: HttpConfig) -> Result<HttpClient, CallError> {
    HttpClient::new(config.with_base_url("http://localhost"))
}

fn mocked(specs: Vec<OperationSpec>) -> Vec<Registration> {
    specs.into_iter().map(crate::mock::examples).collect()
}

/// A namespace in the form of ids, in lower case; `None` if the configuration has none.
fn effective(namespace: Option<&str>) -> Option<String> {
    namespace.filter(|name| !name.is_empty()).map(|name| name.replace('.', "_").to_lowercase())
}

/// The namespaces of the servers of a configuration, in the form of [`Taken`].
pub(super) fn namespaces_of_servers(config: &McpConfig) -> impl Iterator<Item = String> {
    config.names().filter_map(move |name| namespace_of_server(config, name))
}

fn namespace_of_server(config: &McpConfig, name: &str) -> Option<String> {
    let configured = config.server(name).ok().and_then(|server| server.namespace.as_deref());
    effective(configured.or(Some(name)))
}

/// Refuses each server with the namespace of a named document or of another server: the rules for one would hold for
/// both.
pub(super) fn with_own_namespaces(mut config: McpConfig, documents: &[Document]) -> McpConfig {
    let named = documents.iter().filter_map(|document| Some((document.namespace()?, &document.location)));
    let mut owners: BTreeMap<String, String> =
        named.map(|(namespace, location)| (namespace, format!("the document `{location}`"))).collect();
    let names: Vec<String> = config.names().filter(|name| !config.is_disabled(name)).map(str::to_owned).collect();
    for name in names {
        let Some(namespace) = namespace_of_server(&config, &name) else { continue };
        match owners.get(&namespace) {
            None => {
                owners.insert(namespace, format!("the server `{name}`"));
            }
            Some(owner) => {
                let message = format!(
                    "its namespace `{namespace}` is also that of {owner}, and rules for one would hold for both: give one \
                     another name"
                );
                config = config.with_refused(name, CallError::execution(message));
            }
        }
    }
    config
}

/// Namespaces that are taken by others than documents, in the form of ids, in lower case.
pub(super) struct Taken {
    /// Of MCP servers.
    pub(super) others: BTreeSet<String>,
    /// Of the program's own operations: a file name may be the same, but no document may choose it.
    pub(super) own: BTreeSet<String>,
}

/// Reads documents, each with a namespace of its own; the results are in the order of the documents.
///
/// # Errors
/// If the runtime is shutting down.
pub(super) async fn read(
    mut documents: Vec<Document>,
    taken: Taken,
    from_env: bool,
) -> Result<Vec<Outcome>, CallError> {
    let mut all = name(&mut documents, taken.others);
    all.extend(taken.own);
    if from_env {
        give_credentials(&mut documents);
    }
    let named: Vec<bool> = documents.iter().map(|document| document.namespace().is_some()).collect();
    let (urls, files): (Vec<_>, Vec<_>) =
        documents.into_iter().enumerate().partition(|(_, document)| document.is_url());
    let reading = tokio::task::spawn_blocking(move || read_files(files));
    let fetched = urls.into_iter().map(|(index, document)| async move { (index, document.fetch().await) });
    let mut outcomes: BTreeMap<usize, Outcome> = futures_util::future::join_all(fetched).await.into_iter().collect();
    outcomes.extend(reading.await.map_err(|error| CallError::execution(error.to_string()))?);
    let named_by_itself = outcomes.iter_mut().filter(|(index, _)| named.get(**index) == Some(&false));
    for (_, (_, read)) in named_by_itself {
        check_namespace(read, &mut all);
    }
    Ok(outcomes.into_values().collect())
}

/// Refuses a document that chose the namespace of another: patterns for that one would match it, too.
fn check_namespace(read: &mut Result<Read, CallError>, taken: &mut BTreeSet<String>) {
    let Ok(document) = read else { return };
    let operations = document.operations.iter();
    let own: BTreeSet<String> = operations.map(|operation| operation.spec().namespace().to_lowercase()).collect();
    match own.iter().find(|own| taken.contains(*own)) {
        Some(own) => {
            *read = Err(CallError::execution(format!(
                "it calls itself `{own}`, and so does another document or server: give it a namespace"
            )));
        }
        None => taken.extend(own),
    }
}

/// Gives each file without a namespace that of its name. If several would have the same, it is made longer, with the
/// name of the folder if the file names are equal. Returns all that are taken, in lower case.
fn name(documents: &mut [Document], mut taken: BTreeSet<String>) -> BTreeSet<String> {
    taken.extend(documents.iter().filter_map(Document::namespace));
    let unnamed: Vec<&mut Document> =
        documents.iter_mut().filter(|document| document.namespace().is_none() && !document.is_url()).collect();
    let paths: Vec<PathBuf> = unnamed.iter().map(|document| PathBuf::from(&document.location)).collect();
    let files: Vec<PathBuf> = paths.iter().map(|path| path.file_name().unwrap_or_default().into()).collect();
    let names = dir_namespaces(Path::new(""), &files, |_| true);
    for ((document, path), name) in unnamed.into_iter().zip(&paths).zip(names) {
        let folder = path.parent().and_then(Path::file_name).filter(|_| !name.is_unique);
        let name_alone = name.short.clone();
        let name = match folder {
            Some(folder) => format!("{}_{}", folder.to_string_lossy().replace('.', "_"), name.short),
            None if name.is_unique => name.name,
            None => name.short,
        };
        let mut unique = name.clone();
        let mut number = 2;
        while !taken.insert(unique.to_lowercase()) {
            unique = format!("{name}_{number}");
            number += 1;
        }
        if unique != name_alone {
            // Patterns and credentials for its name would not apply to it.
            tracing::warn!(
                document = document.location,
                namespace = unique,
                "other documents have the name `{name_alone}` as well: this one's namespace is longer"
            );
        }
        document.config = std::mem::take(&mut document.config).with_namespace(unique);
    }
    taken
}

/// Gives each document the credentials of the environment that are for its namespace, and for no other document's.
fn give_credentials(documents: &mut [Document]) {
    fn names_of(document: &Document) -> Option<(String, String)> {
        Some((variable(document.config.namespace()?), document.namespace()?))
    }
    let all: Vec<(String, String)> = documents.iter().filter_map(names_of).collect();
    let prefixes: Vec<String> = all.iter().map(|(prefix, _)| prefix.clone()).collect();
    for document in documents {
        let Some((prefix, namespace)) = names_of(document) else { continue };
        match all.iter().find(|(other, owner)| *other == prefix && *owner != namespace) {
            // It is ambiguous which document is meant.
            Some((_, other)) => tracing::warn!(
                document = document.location,
                "the variables `{prefix}_..` would be the credentials of `{namespace}` and of `{other}`, so neither has them: \
                 configure them, or give one another namespace"
            ),
            None => {
                let config = std::mem::take(&mut document.config);
                document.config = config.with_own_credentials_from_env(&prefix, &prefixes);
            }
        }
    }
}

/// The prefix of environment variables with the credentials of a namespace: `MY_SHOP` for `my-shop`.
fn variable(namespace: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    namespace.chars().map(plain).collect()
}

/// Reads files on all processors, including this thread, since allocators keep memory for each thread. Blocks the
/// thread.
fn read_files(mut files: Vec<(usize, Document)>) -> BTreeMap<usize, Outcome> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(files.len());
    let size = |document: &Document| std::fs::metadata(&document.location).map_or(0, |file| file.len());
    // The largest first, so that no thread is left with it at the end.
    files.sort_by_key(|(_, document)| std::cmp::Reverse(size(document)));
    let queue = Mutex::new(VecDeque::from(files));
    let read = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let next = lock(&queue).pop_front();
            let Some((index, document)) = next else { return };
            let outcome = (document.location.clone(), document.read());
            lock(&read).insert(index, outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    read.into_inner().unwrap_or_else(PoisonError::into_inner)
}
