//! Makes modules from the command line, with documents from any place.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use ops_codegen::config::{Config, NAME};
use ops_codegen::{Builder, Module};
use ops_runtime::adapter::Registration;
use ops_runtime::openapi::{Imported, from_openapi_source, from_openapi_url};
use ops_runtime::spec::{Api, Diagnostic, OperationSpec, Severity};
use ops_runtime::{CallError, HttpClient, HttpConfig, mcp, openapi};
use serde_json::Value;

use crate::arguments::Choice;
use crate::credentials::Lack;
use crate::failure::Failure;
use crate::places::placed;
use crate::report::Reporter;
use crate::server::holds_tools;
use crate::stream::{is_stream, label, read_stream};

/// The reader takes the title as the namespace of a document with this name.
pub(crate) const UNNAMED: &str = "openapi";

/// The `ops.toml` that is named, or, if nothing is, that of this folder; `None` if documents are named.
pub(crate) fn configured(specs: &[String]) -> Result<Option<Config>, Failure> {
    let path = match specs {
        [] if !Path::new(NAME).exists() => {
            let message =
                format!("there is no `{NAME}` here: name a document, or write the file; `ops add` begins one");
            return Err(Failure::Usage(message));
        }
        [] => NAME,
        [one] if is_list(one) => one,
        specs if specs.iter().any(|spec| is_list(spec)) => {
            let message = format!("`{NAME}` names its documents: name it alone");
            return Err(Failure::Usage(message));
        }
        _ => return Ok(None),
    };
    let config = Config::read(path).map_err(Failure::config)?;
    if config.documents.is_empty() {
        return Err(Failure::Usage(format!("`{path}` names no documents: `ops add` fetches one")));
    }
    Ok(Some(config))
}

/// True if a file names documents, as `ops.toml` does.
pub(crate) fn is_list(spec: &str) -> bool {
    !is_url(spec) && Path::new(spec).extension().is_some_and(|ending| ending == "toml")
}

/// True for a file that names documents, or a folder of them.
pub(crate) fn holds_documents(spec: &str) -> bool {
    is_list(spec) || Path::new(spec).is_dir()
}

/// Generates a module for each document, and a reporter that can show their lines.
pub(crate) fn modules(specs: &[String], choice: &Choice) -> Result<(Vec<Module>, Reporter), Failure> {
    if let Some(config) = configured(specs)? {
        return modules_of(&config, choice);
    }
    let mut sources = Sources::default();
    if choice.namespace.is_some() && specs.len() > 1 {
        let message =
            "`--namespace` names the namespace of one document, and there are several: generate them one by one";
        return Err(Failure::Usage(message.to_owned()));
    }
    if let Some(twice) = specs.iter().enumerate().find(|(at, spec)| specs.iter().take(*at).any(|other| other == *spec))
    {
        return Err(Failure::Usage(format!("`{}` is named twice", shown(twice.1))));
    }
    for spec in specs {
        sources.document(spec, choice)?;
    }
    sources.generate(choice)
}

/// Generates a module for each document of a configuration.
pub(crate) fn modules_of(config: &Config, choice: &Choice) -> Result<(Vec<Module>, Reporter), Failure> {
    if choice.namespace.is_some() {
        let message = "`--namespace` is for a document on the command line: here the documents have names";
        return Err(Failure::Usage(message.to_owned()));
    }
    // Patterns on the command line have no place in the file.
    let is_of_file = choice.include.is_empty() && choice.exclude.is_empty() && choice.explicit_null.is_empty();
    let generated = Sources { builder: config.builder(), ..Sources::default() }.generate(choice);
    generated
        .map_err(|failure| match failure {
            // They are named already, so another name is what helps.
            Failure::Usage(message) => {
                let hint = format!(": rename one of the documents in `{}`", config.path.display());
                Failure::Usage(message.replace(crate::advice::OF_ONE_NAMESPACE, &hint))
            }
            other => other,
        })
        .map_err(|failure| if is_of_file { placed(failure, &config.path) } else { failure })
}

/// The diagnostics of files of folders that could not be read.
pub(crate) fn unreadable(modules: &[Module]) -> impl Iterator<Item = &Diagnostic> {
    let diagnostics = modules.iter().flat_map(|module| &module.generated.diagnostics);
    diagnostics.filter(|diagnostic| diagnostic.severity == Severity::Error)
}

/// The documents and operations that modules are generated from.
#[derive(Default)]
pub(crate) struct Sources {
    builder: Builder,
    reporter: Reporter,
    /// The names of documents that are no files, by namespace.
    labels: BTreeMap<String, String>,
}

impl Sources {
    fn document(&mut self, spec: &str, choice: &Choice) -> Result<(), Failure> {
        if !is_stream(spec) && !is_url(spec) {
            let builder = std::mem::take(&mut self.builder);
            self.builder = if Path::new(spec).is_dir() { builder.dir(spec) } else { builder.document(spec) };
            if let Some(namespace) = &choice.namespace {
                self.builder = std::mem::take(&mut self.builder).with_namespace(namespace);
            }
            return Ok(());
        }
        let (read, label) = if is_stream(spec) {
            let text = read_stream(spec)?;
            let read = match openapi::parse(&text) {
                Ok(list) if mcp::is_tool_list(&list) => tools(&list, choice.namespace.as_deref()),
                _ => import_text(text.clone(), label(spec), config(choice)).map(operations),
            };
            self.reporter = std::mem::take(&mut self.reporter).with_text(label(spec), Some(text));
            (read?, label(spec).to_owned())
        } else {
            (at_url(spec, choice)?, shown(spec))
        };
        self.add(read, choice.namespace.as_deref(), label);
        Ok(())
    }

    /// Adds operations that were read, and the name of their source.
    pub(crate) fn add(&mut self, read: (Api, Vec<Diagnostic>), namespace: Option<&str>, label: String) {
        let (api, diagnostics) = read;
        let own = api.operations.iter().chain(&api.webhooks).next().map(|spec| spec.namespace().to_owned());
        let namespace = namespace.map(str::to_owned).or(own).unwrap_or_else(|| "api".to_owned());
        self.labels.insert(namespace.clone(), label);
        self.builder = std::mem::take(&mut self.builder).api(namespace, api, diagnostics);
    }

    /// Generates the modules of the chosen operations.
    pub(crate) fn generate(self, choice: &Choice) -> Result<(Vec<Module>, Reporter), Failure> {
        let builder = choice.include.iter().fold(self.builder, Builder::include);
        let builder = choice.exclude.iter().fold(builder, Builder::exclude);
        let builder = choice.explicit_null.iter().fold(builder, Builder::with_explicit_null);
        let mut modules = builder.generate().map_err(Failure::generating)?;
        for module in &mut modules {
            let label = self.labels.get(&module.namespace);
            for diagnostic in module.generated.diagnostics.iter_mut().filter(|d| d.document.is_none()) {
                diagnostic.document = label.cloned();
            }
        }
        Ok((modules, self.reporter))
    }
}

fn config(choice: &Choice) -> HttpConfig {
    let config = HttpConfig::new().with_timeout(Duration::from_secs(60));
    match &choice.namespace {
        Some(namespace) => config.with_namespace(namespace),
        None => config,
    }
}

fn operations(imported: Imported) -> (Api, Vec<Diagnostic>) {
    let operations: Vec<_> = imported.registrations.iter().map(|r| r.spec().clone()).collect();
    let definitions = operations.iter().chain(&imported.webhooks).next().map(|spec| spec.definitions.clone());
    let api = Api::new(definitions.unwrap_or_default(), operations).with_webhooks(imported.webhooks);
    (api, imported.diagnostics)
}

/// The operations of a list of tools.
pub(crate) fn tools(list: &Value, namespace: Option<&str>) -> Result<(Api, Vec<Diagnostic>), Failure> {
    let mut options = mcp::ReadOptions::new();
    options.namespace = namespace.map(str::to_owned);
    mcp::read(list, &options).map_err(|error| Failure::Unreadable(vec![error]))
}

/// The operations of the document or the list of tools at a URL.
fn at_url(spec: &str, choice: &Choice) -> Result<(Api, Vec<Diagnostic>), Failure> {
    let (runtime, location) = (runtime()?, shown(spec));
    let refused = match runtime.block_on(import_url(spec, config(choice))) {
        Ok(imported) => return Ok(operations(imported)),
        Err(refused) => refused,
    };
    // The message is a whole diagnostic if there was a text. Only a list of tools is read as one: for any other text, the
    // reader of APIs has the better error.
    let has_text = refused.message().starts_with("error: ");
    let text = if has_text { runtime.block_on(openapi::fetch(spec, config(choice))).ok() } else { None };
    let Some(text) = text.filter(|text| holds_tools(text)) else {
        return Err(unfetched(&refused, &location, &Lack::of_document()));
    };
    let mut options = mcp::ReadOptions::new();
    options.namespace.clone_from(&choice.namespace);
    let read = mcp::load(&location, &BTreeMap::from([(location.clone(), text)]), &options);
    read.map_err(|error| Failure::Unreadable(vec![error]))
}

/// The failure to fetch or read the document at a URL. If the server asks for credentials, it says which option sends them.
pub(crate) fn unfetched(error: &CallError, location: &str, lack: &Lack) -> Failure {
    lack.beside(error, Failure::importing(error, location))
}

/// Reads the document at a URL, and binds its operations.
async fn import_url(spec: &str, config: HttpConfig) -> Result<Imported, CallError> {
    let mut imported = from_openapi_url(spec, config).await?;
    for document in imported.diagnostics.iter_mut().filter_map(|diagnostic| diagnostic.document.as_mut()) {
        *document = shown(document);
    }
    Ok(imported)
}

/// Reads a document from a file, a URL or a stream, and binds its operations. `lack` is the advice if the server refuses to
/// send the document.
fn import(spec: &str, config: HttpConfig, lack: &Lack) -> Result<Imported, Failure> {
    if is_url(spec) {
        let imported = runtime()?.block_on(import_url(spec, config));
        return imported.map_err(|error| unfetched(&error, &shown(spec), lack));
    }
    if !is_stream(spec) {
        let imported = ops_runtime::openapi::from_openapi_file(spec, config);
        return imported.map_err(|error| Failure::importing(&error, spec));
    }
    import_text(read_stream(spec)?, label(spec), config)
}

/// Operations that are bound, and those beside them that no URL leads to: tools of MCP servers, and specs.
#[derive(Default)]
pub(crate) struct Bound {
    pub(crate) registrations: Vec<Registration>,
    pub(crate) others: Vec<OperationSpec>,
    /// The ids of all operations that the documents have, chosen or not.
    pub(crate) ids: Vec<String>,
    /// How many files of folders could not be read, and were reported.
    pub(crate) unreadable: usize,
}

/// Reads a document, those of a folder or those that an `ops.toml` names, and binds their operations.
pub(crate) fn bound(spec: &str, config: HttpConfig, lack: &Lack) -> Result<Bound, Failure> {
    if !holds_documents(spec) {
        let registrations = import(spec, config, lack)?.registrations;
        let ids = registrations.iter().map(|registration| registration.spec().id.to_string()).collect();
        return Ok(Bound { registrations, ids, ..Bound::default() });
    }
    let (modules, mut reporter) = modules(&[spec.to_owned()], &Choice::default())?;
    let unreadable: Vec<Diagnostic> = unreadable(&modules).cloned().collect();
    reporter.print_list(&unreadable);
    let ids = modules.iter().flat_map(|module| module.ids.clone()).collect();
    let operations = modules.into_iter().flat_map(|module| module.operations);
    let (bound, others): (Vec<OperationSpec>, _) = operations.partition(|spec| spec.http().is_some());
    let registrations = HttpClient::new(config).and_then(|client| client.bind(bound));
    let registrations = registrations.map_err(|error| Failure::importing(&error, spec))?;
    Ok(Bound { registrations, others, ids, unreadable: unreadable.len() })
}

fn import_text(text: String, label: &str, config: HttpConfig) -> Result<Imported, Failure> {
    let source = BTreeMap::from([(UNNAMED.to_owned(), text)]);
    let imported = from_openapi_source(UNNAMED, &source, config);
    let mut imported = imported.map_err(|error| Failure::importing_as(&error, UNNAMED, label))?;
    for diagnostic in imported.diagnostics.iter_mut().filter(|d| d.document.as_deref() == Some(UNNAMED)) {
        diagnostic.document = Some(label.to_owned());
    }
    Ok(imported)
}

pub(crate) fn is_url(spec: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|scheme| spec.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme)))
}

/// A location without user, password and query of a URL.
pub(crate) fn shown(spec: &str) -> String {
    match url::Url::parse(spec) {
        Ok(mut url) if is_url(spec) => {
            // They fail only for URLs without a host.
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.set_query(None);
            url.into()
        }
        _ => spec.to_owned(),
    }
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::Failed(format!("the network cannot be used: {error}")))
}
