//! The documents behind a gateway: APIs, which are called, and lists of tools, which are only shown.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::documents::dir::dir_namespaces;
use crate::documents::openapi::{self, ReadOptions};
use crate::documents::source::FileSource;
use crate::http::import::{from_openapi_file, from_openapi_url};
use crate::{
    BoxFuture, CallError, Context, Diagnostic, Endpoint, Handler, HttpClient, HttpConfig, OperationSpec, Payload,
    Registration, ResponseEnvelope, Value,
};

/// A document that is read when the gateway is built.
pub(super) struct Document {
    /// A path or a URL.
    pub(super) location: String,
    pub(super) config: HttpConfig,
    /// True if its operations are answered with examples.
    pub(super) is_mock: bool,
}

/// What a document gave.
pub(super) struct Read {
    pub(super) operations: Vec<Registration>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// What became of a document, beside its location.
pub(super) type Outcome = (String, Result<Read, CallError>);

impl Document {
    fn is_url(&self) -> bool {
        self.location.starts_with("https://") || self.location.starts_with("http://")
    }

    fn read(self) -> Result<Read, CallError> {
        let Self { location, config, is_mock } = self;
        let mut tools = crate::mcp::ReadOptions::new();
        tools.namespace = config.namespace().map(str::to_owned);
        let api = if is_mock {
            let client = rehearsing(config)?;
            let mut options = ReadOptions::new().with_examples();
            options.namespace.clone_from(&tools.namespace);
            openapi::load(&location, &FileSource::new(), &options)
                .map(|(api, told)| (client.bind_examples(api.compacted().operations), told))
                .map_err(CallError::from)
        } else {
            from_openapi_file(&location, config).map(|imported| (imported.registrations, imported.diagnostics))
        };
        let refused = match api {
            Ok((operations, diagnostics)) => return Ok(Read { operations, diagnostics }),
            Err(refused) => refused,
        };
        // Only a list of tools is read as one: of any other file, the reader of APIs knows what is wrong.
        let (api, diagnostics) = crate::mcp::load(&location, &FileSource::new(), &tools).map_err(|_| refused)?;
        let operations = api.compacted().operations;
        let operations = if is_mock {
            mocked(operations)
        } else {
            operations.into_iter().map(|spec| Registration::new(spec, Handler::endpoint(Unconnected))).collect()
        };
        Ok(Read { operations, diagnostics })
    }

    /// Fetches the document and reads it.
    async fn fetch(self) -> Outcome {
        let Self { location, config, is_mock } = self;
        let read = match from_openapi_url(&location, config.clone()).await {
            Ok(imported) if is_mock => rehearsing(config).map(|client| {
                let specs = imported.registrations.iter().map(|registration| registration.spec().clone());
                Read { operations: client.bind_examples(specs), diagnostics: imported.diagnostics }
            }),
            Ok(imported) => Ok(Read { operations: imported.registrations, diagnostics: imported.diagnostics }),
            Err(error) => Err(error),
        };
        (location, read)
    }
}

/// A tool of a server that is not there.
struct Unconnected;

impl Endpoint for Unconnected {
    fn call(
        &self,
        spec: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let message = format!("`{}` is known by a list of tools alone: its MCP server is not connected", spec.id);
        Box::pin(ready(Err(CallError::new("NOT_CONNECTED", message))))
    }
}

/// A client whose operations are answered with examples: nothing is sent, so that a document need not name a server.
fn rehearsing(config: HttpConfig) -> Result<HttpClient, CallError> {
    HttpClient::new(config.with_base_url("http://localhost"))
}

fn mocked(specs: Vec<OperationSpec>) -> Vec<Registration> {
    specs.into_iter().map(crate::mock::examples).collect()
}

/// Reads documents, each under a namespace of its own; the results are in the order of the documents.
///
/// # Errors
/// If the runtime is shutting down.
pub(super) async fn read(mut documents: Vec<Document>, from_env: bool) -> Result<Vec<Outcome>, CallError> {
    name(&mut documents);
    for document in documents.iter_mut().filter(|_| from_env) {
        if let Some(prefix) = document.config.namespace().map(variable) {
            document.config = std::mem::take(&mut document.config).with_credentials_from_env(prefix);
        }
    }
    let (urls, files): (Vec<_>, Vec<_>) =
        documents.into_iter().enumerate().partition(|(_, document)| document.is_url());
    let reading = tokio::task::spawn_blocking(move || read_files(files));
    let fetched = urls.into_iter().map(|(index, document)| async move { (index, document.fetch().await) });
    let mut outcomes: BTreeMap<usize, Outcome> = futures_util::future::join_all(fetched).await.into_iter().collect();
    outcomes.extend(reading.await.map_err(|error| CallError::execution(error.to_string()))?);
    Ok(outcomes.into_values().collect())
}

/// Gives a namespace to each file that has none: that of its name, longer if several would have the same, with the name of
/// the folder if the whole names are alike.
fn name(documents: &mut [Document]) {
    let mut taken: BTreeSet<String> =
        documents.iter().filter_map(|document| document.config.namespace()).map(str::to_lowercase).collect();
    let unnamed: Vec<&mut Document> =
        documents.iter_mut().filter(|document| document.config.namespace().is_none() && !document.is_url()).collect();
    let paths: Vec<PathBuf> = unnamed.iter().map(|document| PathBuf::from(&document.location)).collect();
    let files: Vec<PathBuf> = paths.iter().map(|path| path.file_name().unwrap_or_default().into()).collect();
    let names = dir_namespaces(Path::new(""), &files, |_| true);
    for ((document, path), name) in unnamed.into_iter().zip(&paths).zip(names) {
        let folder = path.parent().and_then(Path::file_name).filter(|_| !name.is_unique);
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
        document.config = std::mem::take(&mut document.config).with_namespace(unique);
    }
}

/// The beginning of the names of environment variables that hold the credentials of a namespace: `MY_SHOP` of `my-shop`.
fn variable(namespace: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    namespace.chars().map(plain).collect()
}

/// Reads files on all processors, of which this thread is one: allocators keep memory for each thread. Blocks the thread.
fn read_files(mut files: Vec<(usize, Document)>) -> BTreeMap<usize, Outcome> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(files.len());
    let size = |document: &Document| std::fs::metadata(&document.location).map_or(0, |file| file.len());
    // The largest first, so that no thread is left with it at the end.
    files.sort_by_key(|(_, document)| std::cmp::Reverse(size(document)));
    let queue = Mutex::new(VecDeque::from(files));
    let read = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((index, document)) = next else { return };
            let outcome = (document.location.clone(), document.read());
            read.lock().unwrap_or_else(PoisonError::into_inner).insert(index, outcome);
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
