//! The documents that a test reads: those of a directory named by an environment variable, else our own.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The root of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are below the root")
}

/// The directory that the variable names, else `tests/fixtures/<default>`; a relative one is below the root.
pub fn directory(variable: &str, default: &str) -> PathBuf {
    match std::env::var_os(variable) {
        Some(directory) => root().join(directory),
        None => root().join("tests/fixtures").join(default),
    }
}

/// The files of the directory with one of these extensions, in the order of their names.
///
/// Prints the directory and the count, so that a test log says what was read.
///
/// # Panics
/// If the directory can't be read or holds no such file: a test of nothing must not pass.
pub fn files(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("the directory stays").path())
        .filter(|path| path.extension().is_some_and(|have| extensions.iter().any(|want| have == *want)))
        .collect();
    files.sort();
    println!("{}: {} files", directory.display(), files.len());
    assert!(!files.is_empty(), "no files in {}", directory.display());
    files
}

/// A document, read by a library that has nothing to do with the project.
///
/// # Panics
/// If it is neither JSON nor YAML.
pub fn parse(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text)
        .or_else(|_| serde_yaml_ng::from_str(&text))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// An operation as a document has it.
pub struct Operation {
    /// The JSON pointer to it.
    pub pointer: String,
    /// Its method, in upper case.
    pub method: String,
    /// Its path.
    pub path: String,
}

/// Every operation of a document.
pub fn operations(document: &Value) -> Vec<Operation> {
    const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
    let paths = document["paths"].as_object().into_iter().flatten();
    let items = paths.flat_map(|(path, item)| item.as_object().into_iter().flatten().map(move |(key, _)| (path, key)));
    items
        .filter(|(_, method)| METHODS.contains(&method.as_str()))
        .map(|(path, method)| Operation {
            pointer: format!("/paths/{}/{method}", path.replace('~', "~0").replace('/', "~1")),
            method: method.to_uppercase(),
            path: path.clone(),
        })
        .collect()
}
