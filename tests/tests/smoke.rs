//! Real documents: each generates, each output compiles without a warning, and no operation is lost in silence.
//!
//! The documents are those of the directory in `OPS_SPECS`, of which a `SMOKE.txt` names the ones that are compiled;
//! unset, our own.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ops_codegen::{Builder, Module};
use ops_tests::corpus;

/// The documents to compile: those that `SMOKE.txt` names, else all.
fn documents() -> Vec<PathBuf> {
    let directory = corpus::directory("OPS_SPECS", "openapi");
    let files = corpus::files(&directory, &["json", "yaml", "yml"]);
    let Ok(list) = std::fs::read_to_string(directory.join("SMOKE.txt")) else {
        // Our own hostile documents are there to be refused.
        return files.into_iter().filter(|path| generate(path).is_ok()).collect();
    };
    let names: BTreeSet<_> = list.split_whitespace().collect();
    let named =
        |path: &PathBuf| path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| names.contains(stem));
    let chosen: Vec<_> = files.into_iter().filter(named).collect();
    assert_eq!(chosen.len(), names.len(), "SMOKE.txt names documents that are not there");
    chosen
}

fn generate(path: &Path) -> Result<Module, ops_codegen::Error> {
    Builder::new().openapi(path).generate().map(|mut modules| modules.remove(0))
}

#[test]
fn every_document_generates_and_compiles_without_a_warning() {
    let package = corpus::root().join("target/smoke");
    std::fs::create_dir_all(package.join("src")).unwrap();
    let mut lib = String::from("//! Generated modules.\n#![deny(warnings, missing_docs)]\n");
    let mut count = 0;
    for path in documents() {
        let module = generate(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let operations = corpus::operations(&corpus::parse(&path));
        for operation in &operations {
            let request = format!("HttpBinding::new({:?}, {:?})", operation.method, operation.path);
            let there = module.generated.source.contains(&request);
            let named = module.generated.diagnostics.iter().any(|d| d.pointer.starts_with(&operation.pointer));
            assert!(there || named, "{}: {} is neither there nor named", path.display(), operation.pointer);
        }
        let (lines, diagnostics) = (module.generated.source.lines().count(), module.generated.diagnostics.len());
        let name = path.file_name().unwrap().to_string_lossy();
        println!("{name}: {} operations, {diagnostics} diagnostics, {lines} lines", operations.len());
        std::fs::write(package.join(format!("src/m{count}.rs")), &module.generated.source).unwrap();
        writeln!(lib, "/// {name}.\npub mod m{count};").unwrap();
        count += 1;
    }
    assert!(count > 0, "nothing was compiled");
    let runtime = corpus::root().join("ops-runtime");
    let manifest = format!(
        "[package]\nname = \"smoke\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nops-runtime = {{ path = {runtime:?}, default-features = false, features = [\"macros\"] }}\n\n[workspace]\n"
    );
    std::fs::write(package.join("Cargo.toml"), manifest).unwrap();
    std::fs::copy(corpus::root().join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
    std::fs::write(package.join("src/lib.rs"), lib).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline", "--target-dir"])
        .arg(corpus::root().join("target/smoke-target"))
        .current_dir(&package)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
