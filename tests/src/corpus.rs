//! The documents that a test reads: those of a directory named by an environment variable, else our own.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// The stack, in bytes, on which documents are read.
const STACK: usize = 512 * 1024 * 1024;

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

/// Every file with the ending of JSON or YAML in a directory and below, in the order of their paths.
///
/// Folders called `unreadable` hold what is there to be refused, and are left out.
///
/// # Errors
/// If a folder can't be read.
pub fn below(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                open.extend((path.file_name() != Some("unreadable".as_ref())).then_some(path));
            } else if path.extension().is_some_and(|have| ["json", "yaml", "yml"].iter().any(|want| have == *want)) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A document, read by a library that has nothing to do with the project.
///
/// # Panics
/// If it is neither JSON nor YAML.
pub fn parse(path: &Path) -> Value {
    try_parse(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A document, read by a library that has nothing to do with the project.
///
/// # Errors
/// If it is neither JSON nor YAML.
pub fn try_parse(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    json(text)
        .or_else(|_| serde_yaml_ng::from_str(text))
        // The library knows no integers beyond 64 bits.
        .or_else(|_| serde_yaml_ng::from_str(&without_large_integers(text)))
        .map_err(|error| error.to_string())
}

/// JSON of any depth, read where the stack is large.
fn json(text: &str) -> Result<Value, serde_json::Error> {
    let read = || {
        let mut reader = serde_json::Deserializer::from_str(text);
        reader.disable_recursion_limit();
        let value = Value::deserialize(&mut reader)?;
        reader.end().map(|()| value)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, read);
        let joined = thread.map(std::thread::ScopedJoinHandle::join);
        joined.expect("a thread can be started").expect("the stack is large enough")
    })
}

fn without_large_integers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut digits = 0;
    for c in text.chars() {
        digits = if c.is_ascii_digit() { digits + 1 } else { 0 };
        if digits < 19 {
            out.push(c);
        }
    }
    out
}

/// The files that a list names, one a line, by their name with or without its ending; if it names none of them, those of
/// at most `small` bytes.
pub fn named(list: &str, files: &[PathBuf], small: u64) -> Vec<PathBuf> {
    let names: Vec<&str> = list.lines().map(|line| line.split('#').next().unwrap_or(line).trim()).collect();
    let is_named = |file: &&PathBuf| {
        let parts = [file.file_name(), file.file_stem()];
        parts.iter().flatten().filter_map(|part| part.to_str()).any(|part| names.contains(&part))
    };
    let named: Vec<PathBuf> = files.iter().filter(is_named).cloned().collect();
    let is_small = |file: &&PathBuf| std::fs::metadata(file).is_ok_and(|file| file.len() <= small);
    if named.is_empty() { files.iter().filter(is_small).cloned().collect() } else { named }
}

/// Whether a value is an API document: it says of which version.
pub fn is_document(value: &Value) -> bool {
    value.get("openapi").is_some() || value.get("swagger").is_some()
}

/// The tools of a value, if it is the list of an MCP server's tools, or an answer that holds one.
pub fn tools(value: &Value) -> Option<&Vec<Value>> {
    let tools = value.get("tools").or_else(|| value.get("result")?.get("tools")).unwrap_or(value).as_array()?;
    let is_tool = |tool: &Value| tool.get("name").is_some() && tool.get("inputSchema").is_some();
    tools.iter().any(is_tool).then_some(tools)
}

/// An operation as a document has it.
pub struct Operation {
    /// The JSON pointer to it, by way of its path.
    pub pointer: String,
    /// Its method, in upper case.
    pub method: String,
    /// Its path.
    pub path: String,
}

/// Every operation of a document, those of path items that are references within it included.
pub fn operations(document: &Value) -> Vec<Operation> {
    const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
    let paths = document["paths"].as_object().into_iter().flatten();
    // Extensions of the standard stand beside the paths.
    let paths = paths.filter(|(path, _)| !path.starts_with("x-"));
    let items = paths.flat_map(|(path, item)| {
        let target = item.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        let target = target.and_then(|pointer| document.pointer(pointer));
        let members = item.as_object().into_iter().chain(target.and_then(Value::as_object)).flatten();
        members.filter(|(_, operation)| operation.is_object()).map(move |(key, _)| (path, key))
    });
    items
        .filter(|(_, method)| METHODS.contains(&method.as_str()))
        .map(|(path, method)| Operation {
            pointer: format!("/paths/{}/{method}", path.replace('~', "~0").replace('/', "~1")),
            method: method.to_uppercase(),
            path: path.clone(),
        })
        .collect()
}
