//! Directories of descriptions: their documents, by the content of the files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ops_runtime::mcp;
use ops_runtime::openapi::{self, FileNamespace, dir_namespaces};
use ops_runtime::spec::{Api, Definition, Definitions, Diagnostic, OperationSpec, Schema};
use serde_json::Value;

use crate::Error;

/// How deep folders may be nested.
const DEPTH: usize = 32;

/// The kind of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    OpenApi,
    /// A list of an MCP server's tools.
    Tools,
    /// Either kind, by its content.
    Any,
}

/// The content of a file in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An OpenAPI document.
    OpenApi,
    /// A list of an MCP server's tools.
    Tools,
    /// The spec of an operation.
    Spec,
    /// Anything else.
    Unknown,
}

/// The contents of a directory.
#[derive(Default)]
pub(crate) struct Contents {
    /// OpenAPI documents and lists of tools.
    pub(crate) documents: Vec<(PathBuf, Form)>,
    /// Their namespaces.
    pub(crate) namespaces: Vec<FileNamespace>,
    /// The operations of the spec files, by namespace.
    pub(crate) specs: BTreeMap<String, Specs>,
    /// Files of unknown content; they may be parts of documents, which is known only when those are read.
    pub(crate) unknown: Vec<(PathBuf, Diagnostic)>,
    /// Files and folders that cannot be read, and files whose content is known but wrong.
    pub(crate) skipped: Vec<Diagnostic>,
}

/// The operations of spec files with one namespace.
#[derive(Default)]
pub(crate) struct Specs {
    pub(crate) files: Vec<PathBuf>,
    operations: Vec<OperationSpec>,
    definitions: BTreeMap<String, Value>,
}

impl Specs {
    pub(crate) fn into_api(self) -> Api {
        let definitions = self.definitions.into_iter().map(|(name, schema)| Definition::from_value(name, schema));
        Api::new(Definitions::new(definitions.collect()), self.operations)
    }

    fn add(&mut self, path: &Path, spec: OperationSpec, definitions: BTreeMap<String, Value>) -> Result<(), String> {
        if self.operations.iter().any(|other| other.id == spec.id) {
            return Err(format!("another file describes the operation `{}`", spec.id));
        }
        let differs = |(name, schema): &(&String, &Value)| self.definitions.get(*name).is_some_and(|d| d != *schema);
        if let Some((name, _)) = definitions.iter().find(differs) {
            return Err(format!("its definition `{name}` is not the one of another file in its namespace"));
        }
        self.definitions.extend(definitions);
        self.operations.push(spec);
        self.files.push(path.to_owned());
        Ok(())
    }
}

/// Reads every file of a directory, in the order of their paths.
pub(crate) fn contents(directory: &Path) -> Result<Contents, Error> {
    let Files { paths, unread } = files(directory)?;
    let mut contents = Contents::default();
    contents.skipped.extend(unread.into_iter().map(|(folder, error)| {
        let unread = Diagnostic::error("", format!("the folder cannot be read: {error}"));
        unread.with_help("the folder was skipped").with_document(folder.to_string_lossy())
    }));
    for path in paths {
        look(path, &mut contents);
    }
    let documents: Vec<PathBuf> = contents.documents.iter().map(|(path, _)| path.clone()).collect();
    contents.namespaces = dir_namespaces(directory, &documents, |_| true).collect();
    Ok(contents)
}

/// The files of a directory.
#[derive(Default)]
pub struct Files {
    /// The files with the ending of JSON or YAML, in the order of their paths.
    pub paths: Vec<PathBuf>,
    /// The folders below that cannot be read, and why.
    pub unread: Vec<(PathBuf, std::io::Error)>,
}

/// Finds the files of a directory and those below it.
///
/// Hidden files and folders are ignored, as is `node_modules`, and links to folders are not followed.
///
/// # Errors
/// If the directory itself cannot be read.
pub fn files(directory: &Path) -> Result<Files, Error> {
    let mut files = Files::default();
    walk(directory, 0, &mut files).map_err(|error| Error::io(directory, error))?;
    files.paths.sort();
    Ok(files)
}

fn walk(folder: &Path, depth: usize, files: &mut Files) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if name.to_string_lossy().starts_with('.') || name == "node_modules" {
            continue;
        }
        if entry.file_type()?.is_dir() && depth < DEPTH {
            if let Err(error) = walk(&path, depth + 1, files) {
                files.unread.push((path, error));
            }
        } else if path.is_file() && path.extension().is_some_and(|e| e == "json" || e == "yaml" || e == "yml") {
            files.paths.push(path);
        }
    }
    Ok(())
}

fn look(path: PathBuf, contents: &mut Contents) {
    let location = path.to_string_lossy().into_owned();
    let skipped = |diagnostic: Diagnostic| {
        let diagnostic =
            if diagnostic.help.is_none() { diagnostic.with_help("the file was skipped") } else { diagnostic };
        diagnostic.with_document(&location)
    };
    let value = match std::fs::read_to_string(&path).map_err(|error| error.to_string()) {
        Ok(text) => openapi::parse(&text),
        Err(error) => Err(Diagnostic::error("", format!("the file cannot be read: {error}"))),
    };
    let value = match value {
        Ok(value) => value,
        Err(diagnostic) => return contents.skipped.push(skipped(diagnostic)),
    };
    match kind(&value) {
        Kind::OpenApi => contents.documents.push((path, Form::OpenApi)),
        Kind::Tools => contents.documents.push((path, Form::Tools)),
        Kind::Spec => {
            if let Err(message) = spec(&path, value, &mut contents.specs) {
                contents.skipped.push(skipped(Diagnostic::error("", message)));
            }
        }
        Kind::Unknown => {
            let message = "the file is neither an OpenAPI document nor a list of tools nor the spec of an operation";
            contents.unknown.push((path.clone(), skipped(Diagnostic::warning("", message))));
        }
    }
}

/// The kind of a file's content.
pub fn kind(value: &Value) -> Kind {
    let has = |key: &str| value.get(key).is_some();
    if has("openapi") || has("swagger") {
        Kind::OpenApi
    } else if mcp::is_tool_list(value) {
        Kind::Tools
    } else if has("namespace") && has("name") && has("inputSchema") {
        Kind::Spec
    } else {
        Kind::Unknown
    }
}

/// Reads the spec of an operation, and takes the definitions out of its schemas.
fn spec(path: &Path, value: Value, specs: &mut BTreeMap<String, Specs>) -> Result<(), String> {
    let spec: Result<OperationSpec, _> = serde_json::from_value(value);
    let mut spec = spec.map_err(|error| format!("the spec of the operation is wrong: {error}"))?;
    let mut definitions = BTreeMap::new();
    let errors = spec.errors.to_mut().iter_mut().map(|error| &mut error.schema);
    for schema in [&mut spec.input, &mut spec.output].into_iter().chain(errors) {
        let mut json = schema.to_value().map_err(|error| error.to_string())?.into_owned();
        let Some(Value::Object(own)) = json.as_object_mut().and_then(|object| object.remove("$defs")) else { continue };
        for (name, definition) in own {
            if definitions.get(&name).is_some_and(|other| *other != definition) {
                return Err(format!("two of its schemas have different definitions `{name}`"));
            }
            definitions.insert(name, definition);
        }
        *schema = Schema::from(json);
    }
    specs.entry(spec.namespace().to_owned()).or_default().add(path, spec, definitions)
}

/// A namespace also names a file, so it must not lead out of a folder.
///
/// # Errors
/// If the text is no namespace.
pub fn check_namespace(namespace: &str) -> Result<(), Error> {
    if namespace.is_empty() || !namespace.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) {
        let message = format!("`{namespace}` is no namespace: use letters, digits, `_` and `-`");
        return Err(Error::Settings(message));
    }
    Ok(())
}
