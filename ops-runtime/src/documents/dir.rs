//! Directories of documents.

// An error ends the reading of a directory, so nothing is gained by keeping it small.
#![allow(clippy::result_large_err)]

mod namespace;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use self::namespace::{FileNamespace, dir_namespaces, file_namespace};
use super::openapi::document::{Documents, Limits, Parsed};
use super::openapi::reader::Names;
use super::openapi::{ReadOptions, read_documents};
use crate::documents::source::{FileSource, Source};
#[cfg(feature = "mcp-schema")]
use crate::documents::tools;
use crate::{Api, Diagnostic, OperationSpec, Severity};

/// How many folders deep documents are looked for, and how many files are visited.
const MAX_DEPTH: usize = 32;
const MAX_FILES: usize = 20_000;

/// The documents of a directory.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Directory {
    /// The APIs, each with its namespace, in the order of their files.
    pub apis: Vec<(String, Api)>,
    /// What was left out, and why.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that were read.
    pub files: Vec<PathBuf>,
}

/// Reads all documents of a directory and the directories in it: OpenAPI documents, and the JSON of operations.
///
/// Files called `.json`, `.yaml` or `.yml` are read by their content: an OpenAPI document, an [`OperationSpec`], or a
/// list of these; with the feature `mcp-schema` also the list of an MCP server's tools. Other files are skipped, and
/// named in a diagnostic unless a document refers to them. References are followed within the directory.
///
/// The namespace of a document is its path below the directory without the ending, with `_` between the parts:
/// `v1/pets.json` is `v1_pets`. [`dir_namespaces`] tells documents apart that would have the same; a diagnostic names
/// them. `options.namespace` is not used. Operations that are files of their own keep their namespaces.
///
/// # Errors
/// If there is no such directory.
#[doc(alias = "scanOperations")]
pub fn load_dir(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Directory, Diagnostic> {
    let folder = path.as_ref();
    let mut walk = Walk::new(folder)?;
    walk.folder(folder, 0);
    let mut loader = Loader {
        source: FileSource::new().within(folder),
        options: options.clone(),
        namespaces: namespaces(folder, &walk.files, options),
        taken: Names::default(),
        ids: BTreeSet::new(),
        others: Vec::new(),
        directory: Directory { diagnostics: walk.diagnostics, ..Directory::default() },
    };
    for file in &walk.files {
        loader.file(file);
    }
    Ok(loader.finish())
}

/// Finds the files.
struct Walk {
    root: PathBuf,
    /// The folders that were entered, by their real paths: a link may lead back to one.
    entered: BTreeSet<PathBuf>,
    files: Vec<PathBuf>,
    diagnostics: Vec<Diagnostic>,
}

impl Walk {
    fn new(folder: &Path) -> Result<Self, Diagnostic> {
        let failed = |message: String| Diagnostic::error("", message).with_document(folder.display().to_string());
        let root = folder.canonicalize().map_err(|error| failed(format!("cannot read the directory: {error}")))?;
        if !root.is_dir() {
            return Err(failed("not a directory".to_owned()));
        }
        Ok(Self { root, entered: BTreeSet::new(), files: Vec::new(), diagnostics: Vec::new() })
    }

    fn folder(&mut self, folder: &Path, depth: usize) {
        match folder.canonicalize() {
            Ok(real) if !self.entered.insert(real.clone()) => return,
            Ok(_) => {}
            Err(error) => return self.warn(folder, format!("cannot be read: {error}")),
        }
        if depth > MAX_DEPTH {
            return self.warn(folder, format!("more than {MAX_DEPTH} folders deep"));
        }
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.warn(folder, format!("cannot be read: {error}")),
        };
        let mut entries: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        // File systems list entries in any order.
        entries.sort();
        for path in entries {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with('.') || name == "node_modules" {
                continue;
            }
            if path.is_dir() {
                if self.is_inside(&path) {
                    self.folder(&path, depth + 1);
                }
            } else if is_document(&path) && self.is_inside(&path) {
                if !path.is_file() {
                    // A pipe may never end.
                    self.warn(&path, "not a file");
                    continue;
                }
                if self.files.len() >= MAX_FILES {
                    return self.warn(&path, format!("more than {MAX_FILES} files"));
                }
                self.files.push(path);
            }
        }
    }

    fn is_inside(&mut self, path: &Path) -> bool {
        let is_inside = path.canonicalize().is_ok_and(|real| real.starts_with(&self.root));
        if !is_inside {
            self.warn(path, "a link that leads nowhere or out of the directory");
        }
        is_inside
    }

    fn warn(&mut self, path: &Path, message: impl Into<String>) {
        let warning = Diagnostic::warning("", message).with_help("it was skipped");
        self.diagnostics.push(warning.with_document(path.display().to_string()));
    }
}

fn is_document(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    ["json", "yaml", "yml"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Reads the files.
struct Loader {
    source: FileSource,
    options: ReadOptions,
    /// The namespaces that the files have if they are documents.
    namespaces: BTreeMap<PathBuf, FileNamespace>,
    taken: Names,
    ids: BTreeSet<String>,
    /// Files that are no documents themselves.
    others: Vec<PathBuf>,
    directory: Directory,
}

impl Loader {
    fn file(&mut self, file: &Path) {
        let location = file.to_string_lossy().replace('\\', "/");
        let failed = |diagnostic: Diagnostic| skipped(diagnostic, &location);
        let limit = self.options.max_bytes;
        let read = match file.metadata() {
            Ok(data) if data.len() > limit as u64 => Err(format!("more than {limit} bytes")),
            _ => self.source.read(&location, &location).map_err(|error| error.message),
        };
        let read = read.map_err(|message| Diagnostic::error("", message));
        let parsed = match read.and_then(Parsed::new) {
            Ok(parsed) => parsed,
            Err(error) => return self.directory.diagnostics.push(failed(error)),
        };
        let value = &parsed.value;
        #[cfg(feature = "mcp-schema")]
        if tools::is_tool_list(value) {
            let namespace = self.namespace(file, &location);
            let (api, told) = match tools::read(value, &tools::ReadOptions::new().with_namespace(&namespace)) {
                Ok(read) => read,
                Err(error) => return self.directory.diagnostics.push(failed(error)),
            };
            let mut diagnostics = parsed.diagnostics.clone();
            diagnostics.extend(told);
            diagnostics.iter_mut().for_each(|diagnostic| diagnostic.document = Some(location.clone()));
            return self.take(namespace, &location, Ok((api, diagnostics)));
        }
        if is_api(value) {
            self.document(file, &location, parsed);
        } else if let Some(specs) = operations(value) {
            let single = !value.is_array();
            for (at, spec) in specs.into_iter().enumerate() {
                let pointer = if single { String::new() } else { format!("/{at}") };
                if let Err(message) = self.operation(spec) {
                    self.directory.diagnostics.push(failed(Diagnostic::error(pointer, message)));
                }
            }
        } else {
            self.others.push(PathBuf::from(location));
        }
    }

    fn document(&mut self, file: &Path, location: &str, parsed: Parsed) {
        let namespace = self.namespace(file, location);
        let options = self.options.clone().with_namespace(&namespace);
        let mut diagnostics = Vec::new();
        let documents = Documents::load_parsed(location, parsed, &self.source, Limits::of(&options), &mut diagnostics);
        let read = documents.and_then(|documents| read_documents(&documents, &options, diagnostics));
        self.take(namespace, location, read);
    }

    /// The namespace of a document; numbered if even whole file names are the same.
    fn namespace(&mut self, file: &Path, location: &str) -> String {
        let Some(place) = self.namespaces.get(file) else { return String::new() };
        let (mut namespace, mut told) = (place.name.clone(), place.diagnostic(location));
        if !self.taken.take(&namespace.to_lowercase()) {
            namespace = self.taken.allot(&namespace.to_lowercase());
        }
        // No error here, because every document is read anyway.
        if let Some(told) = told.as_mut().filter(|told| told.severity == Severity::Error) {
            told.severity = Severity::Warning;
            told.help = Some(format!("this one has the namespace `{namespace}`"));
        }
        self.directory.diagnostics.extend(told);
        namespace
    }

    /// Adds what was read from a file.
    fn take(&mut self, namespace: String, location: &str, read: Result<(Api, Vec<Diagnostic>), Diagnostic>) {
        match read {
            Ok((api, diagnostics)) => {
                self.directory.diagnostics.extend(diagnostics);
                let Api { definitions, operations, webhooks } = api;
                let (known, new): (Vec<_>, Vec<_>) =
                    operations.into_iter().partition(|operation| self.ids.contains(operation.id.as_ref()));
                for operation in known {
                    let warning = Diagnostic::warning("", format!("there is an operation `{}` already", operation.id));
                    self.directory.diagnostics.push(warning.with_document(location).with_help("this one was left out"));
                }
                self.ids.extend(new.iter().map(|operation| operation.id.clone().into_owned()));
                let api = Api::new(definitions, new).with_webhooks(webhooks);
                match self.directory.apis.iter_mut().find(|(name, _)| *name == namespace) {
                    // Operations that are files of their own came first; they need no definitions of others.
                    Some((_, known)) => {
                        known.definitions = api.definitions;
                        known.operations.extend(api.operations);
                        known.webhooks.extend(api.webhooks);
                    }
                    None => self.directory.apis.push((namespace, api)),
                }
            }
            Err(error) => {
                self.directory.diagnostics.push(skipped(error, location));
            }
        }
    }

    fn operation(&mut self, spec: &Value) -> Result<(), String> {
        let spec: OperationSpec =
            serde_json::from_value(spec.clone()).map_err(|error| format!("not the JSON of an operation: {error}"))?;
        if !self.ids.insert(spec.id.clone().into_owned()) {
            return Err(format!("there is an operation `{}` already", spec.id));
        }
        let namespace = spec.namespace().to_owned();
        match self.directory.apis.iter_mut().find(|(name, _)| *name == namespace) {
            Some((_, api)) => api.operations.push(spec),
            None => {
                let api = Api { operations: vec![spec], ..Api::default() };
                self.directory.apis.push((namespace, api));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Directory {
        let mut read = self.source.files();
        // Every file is read to see what it holds; those that a document refers to need no note.
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let referred: BTreeSet<PathBuf> = self.source.referred().iter().map(real).collect();
        for file in self.others.iter().filter(|file| !referred.contains(&real(file))) {
            let note = Diagnostic::note("", "neither an OpenAPI document nor the JSON of an operation");
            let note = note.with_help("it was skipped").with_document(file.display().to_string());
            self.directory.diagnostics.push(note);
        }
        read.sort();
        self.directory.files = read;
        self.directory
    }
}

/// The diagnostic for a file that was skipped.
fn skipped(diagnostic: Diagnostic, location: &str) -> Diagnostic {
    let help = match &diagnostic.help {
        Some(help) => format!("it was skipped: {help}"),
        None => "it was skipped".to_owned(),
    };
    diagnostic.with_document(location).with_help(help)
}

/// The operations in a value; `None` if it holds none.
fn operations(value: &Value) -> Option<Vec<&Value>> {
    let is_spec = |value: &Value| value.get("inputSchema").is_some() && value.get("namespace").is_some();
    match value {
        Value::Array(items) if items.first().is_some_and(is_spec) => Some(items.iter().collect()),
        value if is_spec(value) => Some(vec![value]),
        _ => None,
    }
}

/// True if a value is a document with a namespace of its own.
fn is_api(value: &Value) -> bool {
    #[cfg(feature = "mcp-schema")]
    if tools::is_tool_list(value) {
        return true;
    }
    value.get("openapi").is_some() || value.get("swagger").is_some()
}

/// The namespaces that the files of a directory have if they are documents.
fn namespaces(folder: &Path, files: &[PathBuf], options: &ReadOptions) -> BTreeMap<PathBuf, FileNamespace> {
    let is_document = |at: usize| {
        let size = |file: &PathBuf| file.metadata().is_ok_and(|data| data.len() <= options.max_bytes as u64);
        let text = files.get(at).filter(|file| size(file)).and_then(|file| std::fs::read_to_string(file).ok());
        text.and_then(|text| super::openapi::parse(&text).ok()).is_some_and(|value| is_api(&value))
    };
    files.iter().cloned().zip(dir_namespaces(folder, files, is_document)).collect()
}
