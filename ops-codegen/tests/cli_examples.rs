//! The example in Rust that `ops inspect` shows of an operation compiles as it stands, for every operation of two documents.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn ops(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_ops")).args(arguments).output().unwrap();
    serde_json::from_slice(&succeeded(output).stdout).unwrap()
}

fn succeeded(output: Output) -> Output {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn the_example_of_every_operation_compiles() {
    let package = root().join("target/examples");
    std::fs::create_dir_all(package.join("src")).unwrap();
    let mut lib = String::from("#![allow(deprecated, unused)]\n");
    let mut count = 0;
    for (namespace, file) in [
        ("petshop", "tests/fixtures/openapi/petshop.yaml"),
        ("styles", "tests/fixtures/openapi/styles.yaml"),
        ("requests", "ops-codegen/tests/golden/requests.json"),
        ("unions", "ops-codegen/tests/golden/unions.json"),
        ("type", "tests/fixtures/openapi/swagger_forms.yaml"),
    ] {
        let document = root().join(file);
        let document = document.to_str().unwrap();
        let modules = ops_codegen::Builder::new().openapi(document).with_namespace(namespace).generate().unwrap();
        let module = if namespace == "type" { "type_" } else { namespace };
        lib.push_str(&format!("pub mod {module} {{\n{}\n}}\n", modules[0].generated.source));
        for spec in &modules[0].operations {
            let shown = ops(&["inspect", "--namespace", namespace, document, &spec.id, "--json"]);
            let example = shown["example"]["rust"].as_str().unwrap();
            assert!(!example.contains("todo!"), "{}: {example}", spec.id);
            let (import, call) = example.split_once('\n').unwrap();
            lib.push_str(&format!(
                "async fn call_{count}(client: &impl ops_runtime::Caller) -> Result<(), ops_runtime::CallError> {{\n    \
                 use crate::{};\n    {call};\n    Ok(())\n}}\n",
                import.strip_prefix("use ").unwrap().trim_end_matches(';')
            ));
            count += 1;
        }
    }
    assert!(count > 20, "{count} examples");
    println!("{count} examples");
    std::fs::write(package.join("src/lib.rs"), lib).unwrap();
    let runtime = root().join("ops-runtime");
    let manifest = format!(
        "[package]\nname = \"examples\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         ops-runtime = {{ path = {runtime:?}, default-features = false, features = [\"registry\"] }}\n\
         serde_json = \"1\"\n\n[workspace]\n"
    );
    std::fs::write(package.join("Cargo.toml"), manifest).unwrap();
    std::fs::copy(root().join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
    let check = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline", "--target-dir"])
        .arg(root().join("target/examples-target"))
        .current_dir(&package)
        .output();
    succeeded(check.unwrap());
}
