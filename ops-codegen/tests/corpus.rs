//! Generates from every document of a folder: `OPS_SPECS`, or the fixtures.
//!
//! No document may fail but for what its reader refuses, and every operation that was read is in the module. The command
//! `tests/corpus` compiles them, too.

use std::path::{Path, PathBuf};

use ops_codegen::{Builder, Error, Module};
use ops_runtime::openapi::{ReadOptions, load};
use ops_runtime::source::FileSource;

fn documents() -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/openapi");
    let folder = std::env::var_os("OPS_SPECS").map_or(fixtures, PathBuf::from);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let ending = |path: &PathBuf| path.extension().is_some_and(|e| e == "json" || e == "yaml" || e == "yml");
    let only = std::env::var("OPS_ONLY").unwrap_or_default();
    let mut documents: Vec<_> = entries.filter(ending).filter(|path| path.to_string_lossy().contains(&only)).collect();
    documents.sort();
    documents
}

fn generate(document: &Path) -> Option<Module> {
    match Builder::new().openapi(document).generate() {
        Ok(modules) => modules.into_iter().next(),
        Err(Error::Document { diagnostics }) => {
            assert!(diagnostics.iter().all(|diagnostic| !diagnostic.message.is_empty()));
            None
        }
        Err(error) => panic!("{}: {error}", document.display()),
    }
}

#[test]
fn every_document_gives_a_module() {
    let documents = documents();
    assert!(!documents.is_empty());
    for document in &documents {
        let Some(module) = generate(document) else { continue };
        let (api, _) = load(&document.display().to_string(), &FileSource::new(), &ReadOptions::new()).unwrap();
        let statics = module.generated.source.matches("\nstatic ").count();
        let definitions = usize::from(module.generated.source.contains("\nstatic DEFINITIONS"));
        let named = module.generated.diagnostics.iter().filter(|d| d.message.contains("a second operation")).count();
        assert_eq!(statics - definitions + named, api.operations.len(), "{}", document.display());
    }
}
