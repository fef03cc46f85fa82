//! `cargo fmt` and `ops generate` in one crate: neither undoes what the other did, whichever runs first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ops_runtime::openapi::{self, ReadOptions};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Documents of more bytes take long to generate from in a debug build.
const LARGEST: u64 = 200_000;

/// True if a file has operations, so that generated code can differ in its format.
fn has_operations(file: &Path) -> bool {
    let value = openapi::parse(&std::fs::read_to_string(file).unwrap_or_default()).unwrap_or_default();
    openapi::read(&value, &ReadOptions::new()).is_ok_and(|(api, _)| !api.operations.is_empty())
}

/// A folder of copies of our own documents, and of those of the directory that `OPS_SPECS` names.
fn documents(folder: &Path) -> PathBuf {
    let documents = folder.join("documents");
    let own = root().join("tests/fixtures/openapi");
    let specs = std::env::var_os("OPS_SPECS").map(PathBuf::from);
    for (name, from) in [("own", Some(own)), ("specs", specs)] {
        std::fs::create_dir_all(documents.join(name)).unwrap();
        for path in from.iter().flat_map(|from| std::fs::read_dir(from).unwrap()).map(|entry| entry.unwrap().path()) {
            let is_document =
                path.extension().is_some_and(|ending| ["json", "yaml", "yml"].iter().any(|it| ending == *it));
            if is_document && path.metadata().unwrap().len() < LARGEST && has_operations(&path) {
                std::fs::copy(&path, documents.join(name).join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    documents
}

fn generate(documents: &Path, out: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.arg("generate").arg(documents).arg("-o").arg(out).args(more).output().unwrap()
}

fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn formatted_files_are_left_alone() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("format-{}", std::process::id()));
    let documents = documents(&folder);
    // Without a configuration, and with this project's.
    for (name, configuration) in [("default", "/dev/null".into()), ("ours", root().join("rustfmt.toml"))] {
        let out = folder.join(name);
        let output = generate(&documents, &out, &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let generated = files(&out);
        let told = "`rustfmt` is missing: `rustup component add rustfmt`";
        let mut rustfmt = Command::new("rustfmt");
        let rustfmt = rustfmt.args(["--edition", "2024", "--config-path"]).arg(configuration).args(generated.keys());
        assert!(rustfmt.output().expect(told).status.success());
        let formatted = files(&out);
        let changed = generated.iter().filter(|(path, text)| formatted[*path] != **text).count();
        assert_eq!(changed, generated.len(), "`rustfmt` has left something as it was: nothing is tested by it");

        let check = generate(&documents, &out, &["--check"]);
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
        assert!(generate(&documents, &out, &[]).status.success());
        assert!(files(&out) == formatted, "what is formatted stays as it is, byte for byte");

        // What has changed is found in a formatted file, and written anew.
        let (path, text) = formatted.iter().find(|(path, _)| path.ends_with("own_petshop.rs")).unwrap();
        assert!(text.contains("pub struct Pet {"));
        std::fs::write(path, text.replacen("pub struct Pet {", "pub struct Bird {", 1)).unwrap();
        let check = generate(&documents, &out, &["--check"]);
        let said = String::from_utf8_lossy(&check.stderr);
        assert_eq!(check.status.code(), Some(1));
        assert!(said.contains("own_petshop.rs differs") && said.matches(" differs").count() == 1, "{said}");
        assert!(generate(&documents, &out, &[]).status.success());
        assert_eq!(std::fs::read_to_string(path).unwrap(), generated[path]);
    }
    std::fs::remove_dir_all(folder).unwrap();
}
