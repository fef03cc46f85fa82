//! The documents that a test reads: those of a directory named by an environment variable, else our own.

use std::collections::BTreeMap;
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

/// The files that a list names, one a line, by their name with or without its ending.
///
/// # Errors
/// If an entry names none of them: of the documents that are asked for, one is not there.
pub fn named(list: &str, files: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let (named, missing) = matched(list, files);
    match missing[..] {
        _ if named.is_empty() => Err("the list names no document that is there".to_owned()),
        [] => Ok(named),
        _ => Err(format!("the list names documents that are not there: {}", missing.join(", "))),
    }
}

/// The files that a list names, and the entries that name none.
pub fn matched<'l>(list: &'l str, files: &[PathBuf]) -> (Vec<PathBuf>, Vec<&'l str>) {
    let entries = list.lines().map(|line| line.split('#').next().unwrap_or(line).trim());
    let entries: Vec<&str> = entries.filter(|entry| !entry.is_empty()).collect();
    let is = |file: &Path, entry: &str| {
        let parts = [file.file_name(), file.file_stem()];
        parts.iter().flatten().any(|part| *part == entry)
    };
    let named = files.iter().filter(|file| entries.iter().any(|entry| is(file, entry))).cloned().collect();
    let missing = entries.into_iter().filter(|entry| !files.iter().any(|file| is(file, entry))).collect();
    (named, missing)
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
#[derive(Debug)]
pub struct Operation {
    /// The JSON pointer to it, by way of its path.
    pub pointer: String,
    /// The JSON pointer to where it stands: another one, if its path item is a reference.
    pub place: String,
    /// Its method, in upper case.
    pub method: String,
    /// Its path.
    pub path: String,
}

impl Operation {
    /// Whether one of these diagnostics, as they are printed, says that this operation was left out.
    ///
    /// Others may stand at its place, or below it: an operation of which a part is missing must still be there.
    pub fn is_left_out(&self, told: &str) -> bool {
        let this = format!("warning: `{} {}` was left out", self.method, self.path);
        let path = format!("  = the path `{}` was left out", self.path);
        let lines: Vec<&str> = told.lines().collect();
        let mut blocks = lines.windows(3);
        blocks.any(|block| {
            let [message, at, help] = block else { return false };
            let is_at = |pointer: &str| {
                let place = at.strip_prefix("  at ").unwrap_or_default();
                place.strip_suffix(pointer).is_some_and(|document| document.is_empty() || document.ends_with(' '))
            };
            let above = |pointer: &str| pointer.rsplit_once('/').is_some_and(|(above, _)| is_at(above));
            *message == this && (is_at(&self.pointer) || is_at(&self.place))
                || message.starts_with("warning: ") && *help == path && above(&self.pointer)
        })
    }
}

/// Every operation of a document, those of path items that are references within it included.
pub fn operations(document: &Value) -> Vec<Operation> {
    const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
    let mut operations: Vec<Operation> = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        // Extensions of the standard stand beside the paths.
        if path.starts_with("x-") {
            continue;
        }
        let own = format!("/paths/{}", path.replace('~', "~0").replace('/', "~1"));
        let pointer = item.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        let target = pointer.and_then(|pointer| Some((pointer, document.pointer(pointer)?)));
        // What stands beside a reference goes before what it leads to.
        for (above, item) in [(own.as_str(), item)].into_iter().chain(target) {
            for (key, _) in item.as_object().into_iter().flatten().filter(|(_, operation)| operation.is_object()) {
                let pointer = format!("{own}/{key}");
                if METHODS.contains(&key.as_str()) && !operations.iter().any(|other| other.pointer == pointer) {
                    let (place, method) = (format!("{above}/{key}"), key.to_uppercase());
                    operations.push(Operation { pointer, place, method, path: path.clone() });
                }
            }
        }
    }
    operations
}

/// How often a generated module sends a request for each of these operations less than the document has it, if it does:
/// the operations that are lost, which no diagnostic says to be left out.
pub fn lost<'o>(operations: &'o [Operation], source: &str, told: &str) -> Vec<&'o Operation> {
    // Long calls are broken over lines.
    let squeezed = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let source = squeezed(source);
    let mut wanted: BTreeMap<String, Vec<&Operation>> = BTreeMap::new();
    for operation in operations.iter().filter(|operation| !operation.is_left_out(told)) {
        // A fragment tells operations apart in the document, and is no part of a request.
        let path = operation.path.split('#').next().unwrap_or_default();
        let request = |path: &str| squeezed(&format!("HttpBinding::new({:?},{path:?}", operation.method));
        // Some write `:id` for `{id}`.
        let forms = [request(path), request(&with_braces(path))];
        let form = forms.iter().find(|form| source.contains(form.as_str())).unwrap_or(&forms[0]);
        wanted.entry(form.clone()).or_default().push(operation);
    }
    let is_lost =
        |(request, operations): &(String, Vec<&Operation>)| source.matches(request).count() < operations.len();
    wanted.into_iter().filter(is_lost).flat_map(|(_, operations)| operations).collect()
}

/// The path with `{id}` for each segment `:id`.
fn with_braces(path: &str) -> String {
    let segment = |segment: &str| match segment.strip_prefix(':') {
        Some(name) => format!("{{{name}}}"),
        None => segment.to_owned(),
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_that_names_nothing_is_told() {
        let files = ["a/pets.yaml", "a/shop.json", "b/shop.yaml"].map(PathBuf::from);
        let named = |list: &str| named(list, &files).map(|named| named.len());
        assert_eq!(named("# all\npets # of ours\n\nshop.json\n"), Ok(2));
        assert_eq!(named("shop"), Ok(2));
        assert!(named("pets\nshops\npet").is_err_and(|error| error.ends_with(": shops, pet")));
        for nothing in ["", "# nothing\n", "shops"] {
            assert!(named(nothing).is_err(), "{nothing}");
        }
    }

    #[test]
    fn only_what_says_so_is_left_out() {
        let document = json!({
            "paths": {
                "/a": { "get": {}, "x-post": {}, "parameters": [], "put": 7 },
                "/b": { "$ref": "#/components/pathItems/B", "get": {} },
                "x-c": { "get": {} },
            },
            "components": { "pathItems": { "B": { "get": {}, "post": {} } } },
        });
        let operations = operations(&document);
        let pointers: Vec<(&str, &str)> = operations.iter().map(|o| (o.pointer.as_str(), o.place.as_str())).collect();
        let (at_a, at_b) = ("/paths/~1a/get", "/paths/~1b/get");
        assert_eq!(pointers, [(at_a, at_a), (at_b, at_b), ("/paths/~1b/post", "/components/pathItems/B/post")]);
        let left_out = |told: &str| operations.iter().map(|operation| operation.is_left_out(told)).collect::<Vec<_>>();
        let said = |message: &str, at: &str, help: &str| {
            format!("note: x\n  at y\nwarning: {message}\n  at {at}\n  = {help}\n")
        };
        assert_eq!(left_out(&said("`GET /a` was left out", "x.json:1:2 /paths/~1a/get", "y")), [true, false, false]);
        assert_eq!(left_out(&said("`GET /a` was left out", "/paths/~1a/get", "y")), [true, false, false]);
        let at = "x.json:1:2 /components/pathItems/B/post";
        assert_eq!(left_out(&said("`POST /b` was left out", at, "y")), [false, false, true]);
        assert_eq!(
            left_out(&said("nowhere", "x.json:1:2 /paths/~1b", "the path `/b` was left out")),
            [false, true, true]
        );
        for (message, at, help) in [
            ("no `operationId`", "x.json:1:2 /paths/~1a/get", "it is called `get_a`"),
            ("a parameter without `name`", "x.json:1:2 /paths/~1a/get", "it was left out"),
            ("a parameter without `name`", "x.json:1:2 /paths/~1a/get/parameters/0", "it was left out"),
            ("`GET /a` was left out", "x.json:1:2 /paths/~1b/get", "y"),
            ("`GET /a` was left out", "x.json:1:2 /paths/~1a/get/more", "y"),
            ("`GET /a` was left out", "x.json:1:2 /x/paths/~1a/get", "y"),
            ("`GET /a` was left out, in part", "x.json:1:2 /paths/~1a/get", "y"),
            ("nowhere", "x.json:1:2 /paths/~1a/get", "the path `/a` was left out"),
        ] {
            assert_eq!(left_out(&said(message, at, help)), [false; 3], "{message} {at}");
        }
        let source = "HttpBinding::new(\"GET\", \"/a\") HttpBinding::new(\n    \"GET\",\n    \"/b\",\n)";
        let names = |told: &str| lost(&operations, source, told).iter().map(|o| o.pointer.as_str()).collect::<Vec<_>>();
        assert_eq!(names(""), ["/paths/~1b/post"]);
        assert_eq!(names(&said("`POST /b` was left out", at, "y")), [""; 0]);
        assert_eq!(names(&said("a parameter without `name`", at, "it was left out")), ["/paths/~1b/post"]);
    }
}
