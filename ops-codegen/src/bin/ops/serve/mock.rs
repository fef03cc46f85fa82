//! `ops serve --mock`: responds to a document's requests over HTTP with examples.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use ops_runtime::openapi::{FileSource, Source, file_namespace};
use ops_runtime::serve::HttpServer;
use ops_runtime::spec::{Api, Diagnostic, OperationSpec};
use ops_runtime::{HttpClient, HttpConfig, Registry, mcp, openapi};
use tokio::net::TcpListener;

use super::credentials::Credentials;
use crate::arguments::ServeArguments;
use crate::credentials::Lack;
use crate::failure::Failure;
use crate::modules::{UNNAMED, is_url, runtime, shown, unfetched};
use crate::patterns::{Patterns, joined};
use crate::progress::Progress;
use crate::report::{Reporter, line, print};
use crate::server::{holds_tools, is_tools};
use crate::stream::{is_stream, label, read_stream};

pub(super) fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    refuse(arguments)?;
    let addr = arguments.http.as_deref().unwrap_or(super::ADDRESS);
    let progress = Progress::start("reading");
    let operations = read(arguments)?;
    drop(progress);
    let registry = Registry::new();
    let credentials = Credentials::of(&operations);
    let served: Vec<OperationSpec> = operations.iter().map(|spec| credentials.asked_for(spec)).collect();
    // Nothing is sent, but a request that would be refused before it is sent is refused.
    let client = HttpClient::new(HttpConfig::new().with_base_url("http://localhost"));
    let client = client.map_err(|error| Failure::Failed(error.message().to_owned()))?;
    let registered = registry.register_all(client.bind_examples(served));
    registered.map_err(|error| Failure::Failed(error.to_string()))?;
    runtime()?.block_on(async {
        let unusable = |error: std::io::Error| {
            let message = format!("`{addr}` cannot be listened at: {error}; `--http 127.0.0.1:0` takes a free port");
            Failure::Failed(message)
        };
        let listener = TcpListener::bind(addr).await.map_err(unusable)?;
        let url = format!("http://{}", listener.local_addr().map_err(unusable)?);
        print(&listing(&url, &operations))?;
        let server = HttpServer::new(registry).with_authenticator(credentials).with_docs();
        server.serve_listener(listener).await.map_err(|error| Failure::Failed(format!("the server stopped: {error}")))
    })
}

/// Refuses options that have no effect if nothing is called: an ignored rule protects nothing.
fn refuse(arguments: &ServeArguments) -> Result<(), Failure> {
    let rules = arguments.rules.each().map(|(name, patterns)| (name, !patterns.is_empty()));
    let others = [
        ("--audit", arguments.audit.is_some()),
        ("--journal", arguments.journal.is_some()),
        ("--base-url", arguments.base_url.is_some()),
        ("credentials", arguments.credentials.is_given()),
    ];
    let given = rules.into_iter().chain(others);
    let given: Vec<&str> = given.filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect();
    if given.is_empty() {
        return Ok(());
    }
    let message = format!(
        "a mock server over HTTP calls nothing and asks nobody, so it has no use for {}: leave operations out by `--exclude`, or serve MCP by `--mcp`",
        given.join(", ")
    );
    Err(Failure::Usage(message))
}

/// Keeps the operations that the options select.
fn chosen(operations: Vec<OperationSpec>, arguments: &ServeArguments) -> Result<Vec<OperationSpec>, Failure> {
    let ServeArguments { include, exclude, read_only, .. } = arguments;
    let patterns = Patterns::new([("--include", &include[..]), ("--exclude", exclude)]);
    let idle = patterns.without_effect(&operations);
    if !idle.is_empty() {
        return Err(Failure::Usage(joined(&idle)));
    }
    let any = |patterns: &[String], spec: &OperationSpec| patterns.iter().any(|pattern| spec.matches(pattern));
    let is_chosen = |spec: &OperationSpec| {
        (include.is_empty() || any(include, spec)) && !any(exclude, spec) && !(*read_only && spec.may_change())
    };
    Ok(operations.into_iter().filter(is_chosen).collect())
}

/// The source of a document, and true if that is a list of tools. Documents to which a document at a URL refers are not
/// fetched.
fn source(spec: &str) -> Result<(String, Box<dyn Source>, bool), Failure> {
    let (location, text) = if is_url(spec) {
        let text = runtime()?.block_on(openapi::fetch(spec, HttpConfig::new()));
        (shown(spec), text.map_err(|error| unfetched(&error, &shown(spec), &Lack::of_document()))?)
    } else if is_stream(spec) {
        (UNNAMED.to_owned(), read_stream(spec)?)
    } else {
        return Ok((spec.to_owned(), Box::new(FileSource::new()), is_tools(spec)));
    };
    let is_tools = holds_tools(&text);
    Ok((location.clone(), Box::new(BTreeMap::from([(location, text)])), is_tools))
}

/// The operations of the document. The reader's diagnostics go to standard error.
fn read(arguments: &ServeArguments) -> Result<Vec<OperationSpec>, Failure> {
    let ServeArguments { spec, namespace, .. } = arguments;
    let [spec] = spec.as_slice() else {
        return Err(Failure::Usage("`--mock` over HTTP serves one document: name one, or pass `--mcp`".to_owned()));
    };
    let (location, source, is_tools) = source(spec)?;
    let own = || (!is_url(spec) && !is_stream(spec)).then(|| file_namespace(Path::new(spec)));
    let namespace = namespace.clone().or_else(own);
    let read = if is_tools {
        let mut options = mcp::ReadOptions::new();
        options.namespace = namespace;
        mcp::load(&location, &*source, &options)
    } else {
        let mut options = openapi::ReadOptions::new().with_examples();
        options.namespace = namespace;
        openapi::load(&location, &*source, &options)
    };
    let unreadable = |mut error: Diagnostic| {
        if is_stream(spec) && error.document.as_deref() == Some(UNNAMED) {
            error.document = Some(label(spec).to_owned());
        }
        Failure::Unreadable(vec![error])
    };
    let (Api { operations, .. }, diagnostics) = read.map_err(unreadable)?;
    let mut reporter = Reporter::default();
    let count = diagnostics.len();
    diagnostics.iter().for_each(|diagnostic| reporter.count(diagnostic));
    if count > 0 {
        let told = format!("{}: `ops inspect` shows them", reporter.total(operations.len()));
        // If standard error is closed, there is no way to report it.
        let _ = writeln!(std::io::stderr().lock(), "{told}");
    }
    let operations = chosen(operations, arguments)?;
    if operations.is_empty() {
        return Err(Failure::Usage(format!("`{}` has no operations to serve", shown(spec))));
    }
    Ok(operations)
}

/// The address of the server, and its paths.
fn listing(url: &str, operations: &[OperationSpec]) -> String {
    let count = operations.len();
    let mut text = format!("{url} answers {count} operation{} with examples\n\n", if count == 1 { "" } else { "s" });
    for spec in operations {
        let (method, path) = match spec.http() {
            Some(http) => (http.method.as_ref(), http.path.to_string()),
            None => ("POST", format!("/operations/{}/{}", spec.namespace(), spec.name())),
        };
        text.push_str(line(&format!("  {method:7} {path}  {}", spec.name())).trim_end());
        text.push('\n');
    }
    text.push_str("\nGET     /docs is a page of them\n");
    text.push_str(
        "POST    /operations/{namespace}/{name} has each of them by its name; `Prefer: code=404` chooses a response\n",
    );
    text
}
