//! From what was typed to modules: documents wherever they lie.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use ops_codegen::{Builder, Module};
use ops_runtime::http::{Imported, from_openapi_source, from_openapi_url};
use ops_runtime::{Api, HttpConfig};

use crate::arguments::Choice;
use crate::failure::Failure;
use crate::report::Reporter;

/// What a document from standard input is called in messages.
pub(crate) const STDIN: &str = "<stdin>";

/// The reader takes the title for the namespace of a document with this name.
const UNNAMED: &str = "openapi";

/// Generates a module for each document, and a reporter that can show their lines.
pub(crate) fn modules(specs: &[String], choice: &Choice) -> Result<(Vec<Module>, Reporter), Failure> {
    let mut builder = Builder::new();
    let mut reporter = Reporter::new();
    let mut labels = BTreeMap::new();
    if choice.namespace.is_some() && specs.len() > 1 {
        let message =
            "`--namespace` names the namespace of one document, and there are several: generate them one by one";
        return Err(Failure::Usage(message.to_owned()));
    }
    for spec in specs {
        if spec == "-" || is_url(spec) {
            let mut config = HttpConfig::new().with_timeout(Duration::from_secs(60));
            if let Some(namespace) = &choice.namespace {
                config = config.with_namespace(namespace);
            }
            let (imported, text) = import(spec, config)?;
            let operations: Vec<_> = imported.registrations.iter().map(|r| r.spec().clone()).collect();
            let definitions = operations.first().map(|spec| spec.definitions.clone()).unwrap_or_default();
            let namespace = operations.first().map(|spec| spec.namespace().to_owned());
            let namespace = choice.namespace.clone().or(namespace).unwrap_or_else(|| "api".to_owned());
            labels.insert(namespace.clone(), if spec == "-" { STDIN.to_owned() } else { shown(spec) });
            builder = builder.api(namespace, Api::new(definitions, operations), imported.diagnostics);
            if spec == "-" {
                reporter = reporter.with_text(STDIN, text);
            }
        } else {
            builder = if Path::new(spec).is_dir() { builder.dir(spec) } else { builder.document(spec) };
            if let Some(namespace) = &choice.namespace {
                builder = builder.namespace(namespace);
            }
        }
    }
    builder = choice.include.iter().fold(builder, Builder::include);
    builder = choice.exclude.iter().fold(builder, Builder::exclude);
    let mut modules = builder.generate().map_err(Failure::generating)?;
    for module in &mut modules {
        let label = labels.get(&module.namespace);
        for diagnostic in module.generated.diagnostics.iter_mut().filter(|d| d.document.is_none()) {
            diagnostic.document = label.cloned();
        }
    }
    Ok((modules, reporter))
}

/// Reads a document from a file, a URL or standard input, and binds its operations; with its text if it is no file.
pub(crate) fn import(spec: &str, config: HttpConfig) -> Result<(Imported, Option<String>), Failure> {
    if is_url(spec) {
        let imported = runtime()?.block_on(from_openapi_url(spec, config));
        let mut imported = imported.map_err(|error| Failure::importing(&error, &shown(spec)))?;
        for document in imported.diagnostics.iter_mut().filter_map(|diagnostic| diagnostic.document.as_mut()) {
            *document = shown(document);
        }
        return Ok((imported, None));
    }
    if spec != "-" {
        let imported = ops_runtime::from_openapi_file(spec, config);
        return Ok((imported.map_err(|error| Failure::importing(&error, spec))?, None));
    }
    let mut text = String::new();
    if let Err(error) = std::io::stdin().read_to_string(&mut text) {
        let message = format!("standard input cannot be read: {error}");
        return Err(Failure::Unreadable(vec![ops_runtime::Diagnostic::error("", message)]));
    }
    let source = BTreeMap::from([(UNNAMED.to_owned(), text)]);
    let imported = from_openapi_source(UNNAMED, &source, config);
    let mut imported = imported.map_err(|error| Failure::importing(&error, STDIN))?;
    for diagnostic in imported.diagnostics.iter_mut().filter(|d| d.document.as_deref() == Some(UNNAMED)) {
        diagnostic.document = Some(STDIN.to_owned());
    }
    Ok((imported, source.into_values().next()))
}

pub(crate) fn is_url(spec: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|scheme| spec.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme)))
}

/// A location without the user, the password and the query that a URL may hold.
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
