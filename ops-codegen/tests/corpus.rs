//! Generates from every document of a folder: `OPS_SPECS`, or the fixtures.
//!
//! Every document must generate, and every operation that was read is in the module. `OPS_ONLY` picks documents by a part
//! of their name. The command `tests/corpus` compiles them, too.

use std::path::{Path, PathBuf};

use ops_codegen::Builder;
use ops_runtime::openapi::FileSource;
use ops_runtime::openapi::{ReadOptions, load};
use ops_runtime::spec::Diagnostic;

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

/// The module of a document, of which every operation that is read is there.
fn check(document: &Path) -> Result<(), String> {
    let modules = Builder::new().openapi(document).generate().map_err(|error| error.to_string())?;
    let [module] = &modules[..] else { return Err(format!("{} modules", modules.len())) };
    let (api, _) = load(&document.display().to_string(), &FileSource::new(), &ReadOptions::new())
        .map_err(|error| error.to_string())?;
    let statics = module.generated.source.matches("\nstatic ").count();
    let definitions = usize::from(module.generated.source.contains("\nstatic DEFINITIONS"));
    let is_left_out = |told: &&Diagnostic| told.help.as_deref() == Some("the operation is left out");
    let left_out = module.generated.diagnostics.iter().filter(is_left_out).count();
    match (statics - definitions + left_out, api.operations.len()) {
        (there, read) if there == read => Ok(()),
        (there, read) => Err(format!("{there} operations of {read}")),
    }
}

#[test]
fn every_document_gives_a_module() {
    let documents = documents();
    let failures = documents.iter().filter_map(|path| Some(format!("{}: {}", path.display(), check(path).err()?)));
    let failures: Vec<String> = failures.collect();
    println!("{} of {} documents generated", documents.len() - failures.len(), documents.len());
    assert!(!documents.is_empty(), "no documents");
    assert!(failures.is_empty(), "{} do not generate:\n{}", failures.len(), failures.join("\n"));
}
