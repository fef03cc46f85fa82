//! Real documents: each generates, each output compiles without a warning, and no operation is lost in silence.
//!
//! The documents are those of the directory in `OPS_SPECS`: the ones that its `SMOKE.txt` names, or else the small ones. If
//! `OPS_SPECS` is not set, they are our own.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ops_codegen::{Builder, Module};
use ops_tests::corpus;
use ops_tests::folder::{Folder, target};
use ops_tests::program::cargo;

fn documents() -> Vec<PathBuf> {
    let directory = corpus::directory("OPS_SPECS", "openapi");
    corpus::smoke(&directory, &corpus::files(&directory, &["json", "yaml", "yml"]))
}

fn generate(path: &Path) -> Result<Module, ops_codegen::Error> {
    Builder::new().openapi(path).generate().map(|mut modules| modules.remove(0))
}

#[test]
fn every_document_generates_and_compiles_without_a_warning() {
    let package = Folder::new(corpus::root(), "smoke").unwrap();
    std::fs::create_dir_all(package.join("src")).unwrap();
    let mut lib = String::from("//! Generated modules.\n#![deny(warnings, missing_docs)]\n");
    let mut count = 0;
    for path in documents() {
        let module = generate(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let operations = corpus::operations(&corpus::parse(&path));
        let told: String = module.generated.diagnostics.iter().map(|told| format!("{told}\n")).collect();
        let lost = corpus::lost(&operations, &module.generated.source, &told);
        assert!(lost.is_empty(), "{}: neither generated nor told to be left out: {lost:#?}", path.display());
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
    let output = cargo()
        .args(["check", "--quiet", "--offline", "--target-dir"])
        .arg(target(corpus::root()))
        .current_dir(&*package)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
