//! Reads every OpenAPI document of a folder: `OPS_SPECS`, or the fixtures.
//!
//! No document may fail, and every operation of each must be read or named in a diagnostic. `OPS_ONLY` picks documents
//! by a part of their name, `OPS_SHOW` prints their diagnostics, and `OPS_NAMES` the names of all that was read.
#![cfg(feature = "openapi")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::source::FileSource;
use ops_runtime::{Api, Diagnostic, Severity};
use serde_json::Value;

const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

fn folder() -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/openapi");
    std::env::var_os("OPS_SPECS").map_or(fixtures, PathBuf::from)
}

fn documents(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_document = |path: &PathBuf| path.extension().is_some_and(|e| e == "json" || e == "yaml" || e == "yml");
    let mut documents: Vec<_> = entries.filter(is_document).collect();
    documents.sort();
    documents
}

/// The methods of paths that are neither in the API nor named in a warning.
fn unaccounted(document: &Value, api: &Api, diagnostics: &[Diagnostic]) -> Vec<String> {
    let read: BTreeSet<_> =
        api.operations.iter().map(|o| o.http().unwrap()).map(|http| (&*http.method, &*http.path)).collect();
    let warned: BTreeSet<_> =
        diagnostics.iter().filter(|d| d.severity == Severity::Warning).map(|d| d.pointer.as_str()).collect();
    let mut missing = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for method in METHODS.iter().filter(|method| item.get(method).is_some()) {
            let pointer = format!("/paths/{}/{method}", path.replace('~', "~0").replace('/', "~1"));
            let sent = path.split('#').next().unwrap();
            if !read.contains(&(method.to_uppercase().as_str(), sent)) && !warned.contains(pointer.as_str()) {
                missing.push(pointer);
            }
        }
    }
    missing
}

#[test]
fn every_document_is_read() {
    let folder = folder();
    let documents = documents(&folder);
    let (mut failures, mut operations) = (Vec::new(), 0);
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
        operations += api.operations.len();
        let ids: BTreeSet<_> = api.operations.iter().map(|operation| &operation.id).collect();
        assert_eq!(ids.len(), api.operations.len(), "{name}: ids are not unique");
        let document = openapi::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
        let missing = unaccounted(&document, &api, &diagnostics);
        failures.extend(missing.iter().map(|at| format!("{name}: {at} is missing")));
    }
    println!("{} documents of {}: {operations} operations", documents.len(), folder.display());
    assert!(!documents.is_empty(), "no documents in {}", folder.display());
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
