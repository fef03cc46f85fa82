//! A call in a shell as an example, which the command takes as it stands.

use std::path::Path;

use ops_codegen::Module;
use ops_runtime::binding::{HttpBinding, SecurityKind, SecurityScheme};
use ops_runtime::spec::OperationSpec;
use serde_json::Value;

use super::required;
use crate::arguments::InspectArguments;
use crate::input::{add, kinds, views};
use crate::modules::{holds_documents, is_url};
use crate::server::is_config;
use crate::shell::{is_option, quoted};

/// The server in an example if the document names none.
const HOST: &str = "https://example.com";

/// A call by this command; `None` for an operation that can only be called by the program that has it.
pub(super) fn shell(spec: &OperationSpec, modules: &[Module], arguments: &InspectArguments) -> Option<String> {
    let (document, _) = arguments.sources();
    let mut words = vec!["ops".to_owned(), "call".to_owned()];
    let mut last = Vec::new();
    match document {
        _ if spec.http().is_none() && spec.mcp().is_none() => return None,
        // A file of servers, by which the id finds the server.
        Some(file) if matches!(is_config(file), Ok(true)) => words.extend([quoted(file), operation(spec, true)?]),
        Some(document) if spec.mcp().is_some() => {
            words.extend([quoted(&snapshot(spec, modules, document)), operation(spec, false)?]);
            last.push("-- COMMAND".to_owned());
        }
        Some(document) => {
            words.extend([quoted(document), operation(spec, holds_documents(document))?]);
        }
        None => {
            let is_file = arguments.server.config.is_some() && arguments.choice.namespace.is_none();
            // Before the tool of a server may stand a file, which would be read.
            words.push(operation(spec, is_file || Path::new(spec.name()).exists())?);
            last = server(arguments);
        }
    }
    words.extend(input(spec));
    if let Some(http) = spec.http() {
        words.extend(base_url(http, document.unwrap_or_default()));
        words.extend(credentials(spec, http));
    }
    words.extend(last);
    Some(words.join(" "))
}

/// The operation by its name; by its id if that is asked for, or if the name would be an option. `None` if both would be.
fn operation(spec: &OperationSpec, by_id: bool) -> Option<String> {
    let names = [spec.name(), &*spec.id];
    names.into_iter().skip(usize::from(by_id)).find(|name| !is_option(name)).map(quoted)
}

/// The file of a snapshot: a tool of a folder or of `ops.toml` has one of its own.
fn snapshot(spec: &OperationSpec, modules: &[Module], document: &str) -> String {
    let own = modules.iter().filter(|_| holds_documents(document)).find(|module| module.namespace == spec.namespace());
    let file = own.and_then(|module| module.files.first()).map(|file| file.to_string_lossy().into_owned());
    file.unwrap_or_else(|| document.to_owned())
}

/// How the server was named.
fn server(arguments: &InspectArguments) -> Vec<String> {
    let (server, credentials) = (&arguments.server, &arguments.credentials);
    let mut words = Vec::new();
    let mut option = |name: &str, value: &str| words.push(format!("{name} {}", quoted(value)));
    if let Some(url) = &server.url {
        option("--url", url);
    }
    if let Some(file) = &server.config {
        option("--config", &file.to_string_lossy());
    }
    if let Some(name) = &server.server {
        option("--server", name);
    }
    if let Some(name) = &credentials.bearer_env {
        option("--bearer-env", name);
    }
    if let Some(file) = &credentials.bearer_file {
        option("--bearer-file", &file.to_string_lossy());
    }
    if !server.program.is_empty() {
        words.push("--".to_owned());
        words.extend(server.program.iter().map(|word| quoted(word)));
    }
    words
}

/// The server, if the document names none, or one that credentials are not sent to unasked.
fn base_url(http: &HttpBinding, document: &str) -> Option<String> {
    let server = http.server.as_deref().unwrap_or_default();
    let is_foreign = is_url(document) && !http.security.is_empty();
    match is_url(server) {
        true if is_foreign && !server.contains(['{', '}']) => Some(format!("--base-url {}", quoted(server))),
        true if !is_foreign => None,
        _ => Some(format!("--base-url {HOST}")),
    }
}

/// The options of the first way to authenticate that options can express; none if a call needs no credentials.
fn credentials(spec: &OperationSpec, http: &HttpBinding) -> Vec<String> {
    if http.security.iter().any(|way| way.schemes.is_empty()) {
        return Vec::new();
    }
    let prefix: String = spec
        .namespace()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    let token = format!("--bearer-env {prefix}_TOKEN");
    let option = |scheme: &SecurityScheme| match &scheme.kind {
        SecurityKind::Bearer | SecurityKind::OAuth2 { .. } | SecurityKind::OpenIdConnect { .. } => Some(token.clone()),
        SecurityKind::Basic | SecurityKind::ApiKey { .. } => Some(format!("--credentials-env {prefix}")),
        _ => None,
    };
    let way = |schemes: &[SecurityScheme]| schemes.iter().map(option).collect::<Option<Vec<String>>>();
    let mut options = http.security.iter().find_map(|one| way(&one.schemes)).unwrap_or_default();
    // One option is for all the schemes that it can be for.
    options.sort_unstable();
    options.dedup();
    options
}

/// What the operation requires: as pairs if they say it, or else as JSON.
///
/// The document chooses names and values. A name that begins with a hyphen would be an option, and a value that begins
/// with `@` the name of a file: neither is read as a pair here, nor shown as one.
fn input(spec: &OperationSpec) -> Vec<String> {
    let Some(input) = required::input(spec) else { return Vec::new() };
    let Ok(schema) = spec.input_schema() else { return Vec::new() };
    let mut pairs = Vec::new();
    flatten("", &input, &views(vec![&schema], &schema), &schema, &mut pairs);
    let is_safe = pairs.iter().all(|pair| !is_option(pair) && !pair.contains("=@"));
    let mut read = Value::Object(serde_json::Map::new());
    let is_read = is_safe && add(&mut read, &pairs, &schema).is_ok() && read == input;
    match is_read {
        true => pairs.iter().map(|pair| quoted(pair)).collect(),
        false => vec!["--input".to_owned(), quoted(&input.to_string())],
    }
}

/// The pairs for an object: a pair for each property, those of objects in it included.
fn flatten(path: &str, value: &Value, schemas: &[&Value], root: &Value, pairs: &mut Vec<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let found = schemas.iter().filter_map(|schema| schema.get("properties")?.get(name)).collect();
        let found = views(found, root);
        match value {
            Value::Object(members) if !members.is_empty() => flatten(&path, value, &found, root, pairs),
            Value::Array(items) if !items.is_empty() && items.iter().all(is_plain) => {
                pairs.extend(items.iter().map(|item| format!("{path}={}", text(item))));
            }
            Value::String(own) if kinds(&found).is_empty() && serde_json::from_str::<Value>(own).is_ok() => {
                pairs.push(format!("{path}={value}"));
            }
            value => pairs.push(format!("{path}={}", text(value))),
        }
    }
}

fn is_plain(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
