//! Reads every OpenAPI document of a folder: `OPS_SPECS`, or the fixtures.
//!
//! No document may fail, and every operation of each must be read, or a warning must say that it was left out. Files that are no
//! documents are skipped, and printed. `OPS_ONLY` picks documents by a part of their name, `OPS_SHOW` prints their diagnostics,
//! and `OPS_NAMES` the ids of all operations and the names of all definitions.
#![cfg(feature = "openapi")]

#[path = "../../tests/src/corpus/document.rs"]
#[allow(unreachable_pub, reason = "it is public in the library of the tests")]
mod document;
#[path = "../../tests/src/corpus/known.rs"]
#[allow(dead_code, unreachable_pub, reason = "the other tests need more of it")]
mod known;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use ops_runtime::binding::HttpBinding;
use ops_runtime::openapi::FileSource;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Api, Diagnostic, Severity};
use serde_json::Value;

const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

fn folder() -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/openapi");
    std::env::var_os("OPS_SPECS").map_or(fixtures, PathBuf::from)
}

fn documents(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let ending = |path: &PathBuf| path.extension().is_some_and(|e| e == "json" || e == "yaml" || e == "yml");
    let (mut documents, others): (Vec<_>, Vec<_>) = entries.filter(ending).partition(|path| is_document(path));
    documents.sort();
    println!("{} files are no documents: {others:?}", others.len());
    documents
}

/// True if a file must be readable: it is in `tests/known.txt`, or its content says that it is a document.
///
/// `tests/corpus` decides about files that we cannot parse: there, another library tells if they are JSON or YAML.
fn is_document(path: &Path) -> bool {
    let read = || openapi::parse(&std::fs::read_to_string(path).unwrap_or_default()).ok();
    known::is_known(path) || read().is_some_and(|value| document::is_document(&value))
}

/// The operations that are neither in the API nor said to be left out; those that only a fragment tells apart are counted.
fn unaccounted(document: &Value, api: &Api, diagnostics: &[Diagnostic]) -> Vec<String> {
    let is_left_out = |method: &str, path: &str, places: &[String]| {
        let message = format!("`{method} {path}` was left out");
        let mut warnings = diagnostics.iter().filter(|d| d.severity == Severity::Warning);
        warnings.any(|warning| warning.message == message && places.contains(&warning.pointer))
    };
    let mut wanted: BTreeMap<(String, &str), Vec<String>> = BTreeMap::new();
    let paths = document["paths"].as_object().into_iter().flatten();
    for (path, own) in paths.filter(|(path, _)| !path.starts_with("x-")) {
        let pointer = format!("/paths/{}", path.replace('~', "~0").replace('/', "~1"));
        // What stands beside a reference goes before what it leads to.
        let target = own["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        let shared = target.and_then(|target| document.pointer(target)).unwrap_or(&Value::Null);
        for method in METHODS.iter().filter(|method| own[**method].is_object() || shared[**method].is_object()) {
            let upper = method.to_uppercase();
            let places = [Some(pointer.as_str()), target].map(|at| format!("{}/{method}", at.unwrap_or_default()));
            if !is_left_out(&upper, path, &places) {
                let sent = path.split('#').next().unwrap();
                wanted.entry((upper, sent)).or_default().push(format!("{pointer}/{method}"));
            }
        }
    }
    // Some write `:id` for `{id}`, or leave out the first slash.
    let braced = |path: &str| {
        let path = if path.starts_with('/') { path } else { &format!("/{path}") };
        let name = |segment: &str| segment.strip_prefix(':').map(|name| format!("{{{name}}}"));
        path.split('/').map(|part| name(part).unwrap_or_else(|| part.to_owned())).collect::<Vec<_>>().join("/")
    };
    let read = |method: &str, path: &str| {
        let paths = [path.to_owned(), braced(path)];
        let same = |http: &HttpBinding| http.method == method && paths.iter().any(|path| http.path == *path);
        api.operations.iter().filter(|operation| operation.http().is_some_and(same)).count()
    };
    let lost = wanted.into_iter().filter(|((method, path), pointers)| read(method, path) < pointers.len());
    lost.flat_map(|(_, pointers)| pointers).collect()
}

#[test]
fn every_document_is_read() {
    let folder = folder();
    let documents = documents(&folder);
    let (mut failures, mut read, mut operations) = (Vec::new(), 0, 0);
    for path in &documents {
        let name = path.file_name().unwrap().to_string_lossy();
        if std::env::var("OPS_ONLY").is_ok_and(|only| !name.contains(&only)) {
            continue;
        }
        let start = Instant::now();
        let (api, diagnostics) = match openapi::load(&path.to_string_lossy(), &FileSource::new(), &ReadOptions::new()) {
            Ok(read) => read,
            Err(error) => {
                failures.push(error.to_string());
                continue;
            }
        };
        let time = start.elapsed();
        let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
        println!(
            "{name}: {} operations, {} definitions, {} warnings, {} notes, {time:?}",
            api.operations.len(),
            api.definitions.as_slice().len(),
            count(Severity::Warning),
            count(Severity::Note),
        );
        if std::env::var_os("OPS_SHOW").is_some() {
            diagnostics.iter().for_each(|diagnostic| println!("{diagnostic}"));
        }
        if std::env::var_os("OPS_NAMES").is_some() {
            api.operations.iter().for_each(|operation| println!("{name} {:?} {}", operation.kind, operation.id));
            api.definitions.as_slice().iter().for_each(|definition| println!("{name} definition {}", definition.name));
        }
        read += 1;
        operations += api.operations.len();
        let ids: BTreeSet<_> = api.operations.iter().map(|operation| &operation.id).collect();
        assert_eq!(ids.len(), api.operations.len(), "{name}: ids are not unique");
        let document = openapi::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
        let missing = unaccounted(&document, &api, &diagnostics);
        failures.extend(missing.iter().map(|at| format!("{name}: {at} is missing")));
    }
    println!("{read} of {} documents of {}: {operations} operations", documents.len(), folder.display());
    assert!(read + failures.len() > 0 && operations > 0, "nothing was read of {}", folder.display());
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// Imported operations keep their schemas as text, which says what was read to the byte.
#[cfg(feature = "http")]
#[test]
fn what_is_imported_is_what_was_read() {
    use ops_runtime::HttpConfig;
    use ops_runtime::openapi::from_openapi_file;
    use ops_runtime::spec::{Definitions, OperationSpec, Schema};

    let text = |schema: &Schema| schema.to_value().unwrap().to_string();
    let table = |definitions: &Definitions| -> Vec<(String, String)> {
        definitions.as_slice().iter().map(|own| (own.name.to_string(), text(&own.schema))).collect()
    };
    let alone = |spec: &OperationSpec| {
        let mut spec = spec.clone();
        spec.definitions = Definitions::EMPTY;
        spec
    };
    let mut compared = 0;
    for path in documents(&folder()) {
        let path = path.to_string_lossy();
        let options = ReadOptions::new().with_namespace(openapi::file_namespace(Path::new(&*path)));
        let (api, _) = openapi::load(&path, &FileSource::new(), &options).unwrap();
        let imported = from_openapi_file(&path, HttpConfig::new()).unwrap();
        let specs =
            imported.registrations.iter().map(ops_runtime::adapter::Registration::spec).chain(&imported.webhooks);
        let read: Vec<&OperationSpec> = api.operations.iter().chain(&api.webhooks).collect();
        let specs: Vec<&OperationSpec> = specs.collect();
        assert_eq!(specs.len(), read.len(), "{path}");
        if let Some(first) = specs.first() {
            assert!(specs.iter().all(|spec| spec.definitions.same_table(&first.definitions)), "{path}");
            assert_eq!(table(&first.definitions), table(&api.definitions), "{path}");
        }
        for (own, read) in specs.into_iter().zip(read) {
            let own_texts = [&own.input, &own.output].into_iter().chain(own.errors.iter().map(|error| &error.schema));
            let read_texts =
                [&read.input, &read.output].into_iter().chain(read.errors.iter().map(|error| &error.schema));
            assert!(own_texts.map(text).eq(read_texts.map(text)), "{path}: {}", read.id);
            assert_eq!(alone(own), alone(read), "{path}");
            compared += 1;
        }
    }
    assert!(compared > 0);
}
