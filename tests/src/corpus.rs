//! The documents that a test reads: those of a directory named by an environment variable, else our own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

mod document;
mod known;

pub use document::is_document;
pub use known::{below, choose, entries, is_known, is_own, label, matched};

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

/// True if a file holds a document of an API. If not, prints that it is passed over, and why.
///
/// If another library cannot parse a file either, the file is skipped. But a known file counts as a document in any case, so
/// that the test fails if it cannot be read.
pub fn holds_document(file: &Path) -> bool {
    let why = match try_parse(file) {
        Ok(value) if is_document(&value) => return true,
        Ok(_) => "no document of an API".to_owned(),
        Err(_) if is_known(file) => return true,
        Err(error) => format!("neither JSON nor YAML: {error}"),
    };
    println!("{}: passed over: {why}", file.display());
    false
}

/// The size of the largest small documents, in bytes.
const SMALL: u64 = 60_000;

/// The documents of a directory to compile: those that its `SMOKE.txt` names, or else the small ones.
///
/// If the directory has no small documents, it is the smallest one.
pub fn smoke(directory: &Path, files: &[PathBuf]) -> Vec<PathBuf> {
    let list = std::fs::read_to_string(directory.join("SMOKE.txt")).unwrap_or_default();
    let (named, missing) = matched(&list.split_whitespace().collect::<Vec<_>>(), files);
    if !missing.is_empty() {
        println!("SMOKE.txt names documents that are not there: {}", missing.join(", "));
    }
    if !named.is_empty() {
        return named;
    }
    let size = |file: &PathBuf| file.metadata().map_or(u64::MAX, |data| data.len());
    let mut documents: Vec<PathBuf> = files.iter().filter(|file| holds_document(file)).cloned().collect();
    documents.sort_by_key(size);
    let small = documents.iter().take_while(|file| size(file) <= SMALL).count();
    documents.truncate(small.max(1));
    documents.sort();
    documents
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
        // Some write `:id` for `{id}`, or leave out the first slash.
        let forms = [request(path), request(&with_braces(path))];
        let form = forms.iter().find(|form| source.contains(form.as_str())).unwrap_or(&forms[0]);
        wanted.entry(form.clone()).or_default().push(operation);
    }
    let is_lost =
        |(request, operations): &(String, Vec<&Operation>)| source.matches(request).count() < operations.len();
    wanted.into_iter().filter(is_lost).flat_map(|(_, operations)| operations).collect()
}

/// The path as it is sent, with `{id}` for each segment `:id`.
fn with_braces(path: &str) -> String {
    let path = if path.starts_with('/') { path } else { &format!("/{path}") };
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

    fn text(path: &str) -> String {
        std::fs::read_to_string(root().join(path)).unwrap()
    }

    #[test]
    fn what_a_list_names_is_taken_and_others_instead_of_what_is_not_there() {
        let files = ["a/pets.yaml", "a/shop.json", "b/shop.yaml"].map(PathBuf::from);
        let choose =
            |list: &str| choose(&entries(list), &files, |file| file.extension().is_some_and(|end| end == "yaml"));
        let chosen = |at: &[usize]| Ok(at.iter().map(|at| files[*at].clone()).collect::<Vec<_>>());
        assert_eq!(choose("# all\npets # of ours\n\nshop.json\n"), chosen(&[0, 1]));
        assert_eq!(choose("shop"), chosen(&[1, 2]));
        // A known document that is missing is replaced by another document. An unknown name is an error.
        assert_eq!(choose("shop.json\nollama"), chosen(&[0, 1]));
        assert_eq!(choose("ollama.yaml\nmuseum\nopenai"), chosen(&[0, 2]));
        assert!(choose("pets\nollamas\npet\nmuseum").is_err_and(|error| error.ends_with(": ollamas, pet")));
        assert_eq!(choose("# nothing\n"), chosen(&[]));
    }

    #[test]
    fn only_what_the_lists_were_made_for_is_known() {
        let folder = crate::folder::target(root()).join("known");
        std::fs::create_dir_all(folder.join("openapi")).unwrap();
        let write = |name: &str, size: usize| {
            let file = folder.join(name);
            std::fs::write(&file, " ".repeat(size)).unwrap();
            is_known(&file)
        };
        assert!(write("museum.yaml", 23_137));
        assert!(
            !write("museum.yaml", 23_138) && !write("museum.json", 23_137) && !write("openapi/swagger.yaml", 1_000)
        );
        std::fs::remove_dir_all(&folder).unwrap();
        let own = root().join("tests/fixtures/openapi/swagger.yaml");
        assert!(is_known(&own) && !is_known(Path::new("tests/fixtures/openapi/gone.yaml")));
        assert_eq!([label(&own), label(Path::new("a/swagger.yaml"))], ["own/swagger", "swagger"]);
    }

    #[test]
    fn every_list_is_about_documents_that_are_known() {
        let own: Vec<PathBuf> = ["openapi", "mcp/tools"]
            .iter()
            .flat_map(|folder| below(&root().join("tests/fixtures").join(folder)).unwrap())
            .collect();
        let known: Vec<PathBuf> = known::known().map(|(name, _)| name.to_owned()).collect();
        let all = [own.clone(), known.clone()].concat();
        for list in ["tests/corpus.txt", "tests/wire-few.txt", "tests/hand-few.txt"] {
            assert_eq!(matched(&entries(&text(list)), &all).1, [""; 0], "{list}");
        }
        for list in ["tests/wire.txt", "tests/requests.txt", "tests/hand.txt", "tests/serve.txt"] {
            for line in text(list).lines().filter(|line| !line.starts_with('#')) {
                let document = line.split(" | ").next().unwrap();
                let is_there = match document.strip_prefix("own/") {
                    Some(name) => matched(&[name], &own).1.is_empty(),
                    None => matched(&[document], &known).1.is_empty(),
                };
                assert!(is_there, "{list}: {line}");
            }
        }
        // Ids of operations begin with the name of a file up to its first dot, or with its whole name, with `_` for dots.
        let begins = |file: &PathBuf| {
            let stem = file.file_stem().unwrap().to_str().unwrap();
            [stem.replace('.', "_"), stem.split('.').next().unwrap().to_owned()]
        };
        let namespaces: std::collections::BTreeSet<String> = all.iter().flat_map(begins).collect();
        for list in ["dev", "held", "held2", "held3", "held4", "drawn", "drawn2", "hard", "own"] {
            let text = text(&format!("tests/fixtures/search/{list}.tsv"));
            for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
                let ids = line.split('\t').nth(1).unwrap().split(',');
                let unknown: Vec<&str> =
                    ids.filter(|id| !namespaces.contains(id.trim().split('.').next().unwrap())).collect();
                assert_eq!(unknown, [""; 0], "{list}");
            }
        }
    }

    #[test]
    fn what_cannot_be_read_as_an_api_is_no_document() {
        let unreadable = root().join("tests/fixtures/openapi/unreadable");
        for file in files(&unreadable, &["json", "yaml"]) {
            assert!(!try_parse(&file).is_ok_and(|value| is_document(&value)), "{}", file.display());
        }
        for file in below(&root().join("tests/fixtures/openapi")).unwrap() {
            assert!(holds_document(&file), "{}", file.display());
        }
        assert!(is_document(&json!({ "openapi": 3.1, "webhooks": {} })) && !is_document(&json!({ "openapi": 3.1 })));
        assert!(!is_document(&json!({ "swagger": "1.2", "paths": {} })));
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
