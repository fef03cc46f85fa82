//! The crate of a reader who does what the README says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ops_tests::corpus::root;

use crate::Place;
use crate::blocks::{Block, Readme};

/// The manifest around the README's dependencies: what the text below the program names is in a feature.
const MANIFEST: &str = r#"[package]
name = "readme"
version = "0.0.0"
edition = "2024"
publish = false
build = "build/main.rs"

[features]
snippets = ["dep:axum", "dep:futures-util", "ops-runtime/openapi", "ops-runtime/gateway", "ops-runtime/http-server", "ops-runtime/mcp", "ops-runtime/mcp-server", "ops-runtime/program", "ops-runtime/webhooks", "ops-runtime/websocket"]

[[bin]]
name = "program"
path = "src/program.rs"

[[bin]]
name = "snippets"
path = "src/snippets.rs"
required-features = ["snippets"]

# DEPENDENCIES

[dependencies.axum]
version = "0.8"
default-features = false
optional = true

[dependencies.futures-util]
version = "0.3"
default-features = false
optional = true

[workspace]

# As the project has it, so that dependencies are compiled once.
[profile.dev]
debug = "line-tables-only"
[profile.dev.package."*"]
debug = false
"#;

/// The build script: the README's for its first document, the same for the others.
const BUILD: &str = r#"mod readme {
    include!("../build.rs");

    pub(super) fn run() -> Result<(), ops_codegen::Error> {
        main()
    }
}

use ops_codegen::Builder;

fn main() -> Result<(), ops_codegen::Error> {
    readme::run()?;
    Builder::new().openapi("archive.yaml").openapi("payments.yaml").build()?;
    Builder::new().openapi("shop.yaml").with_server().with_namespace("store").build()?;
    MCP
}
"#;

/// The README's build script for a snapshot of MCP tools.
const MCP: &str = "Builder::new().mcp(\"files.json\").build()";

/// The program that has the snippets as modules; they warn of nothing but what they leave unused.
const SNIPPETS: &str = r#"#![deny(warnings)]
#![allow(dead_code, unused_variables)]

mod archive {
    ops_runtime::include_operations!("archive");
}
mod payments {
    ops_runtime::include_operations!("payments");
}
mod shop {
    ops_runtime::include_operations!("shop");
}
mod store {
    ops_runtime::include_operations!("store");
}
mod sums {
    /// An operation that is none of the README's.
    #[ops_runtime::operation(namespace = "sums", kind = query)]
    pub(crate) async fn add(a: i64, b: i64) -> i64 {
        a + b
    }
}

fn main() {}

"#;

/// Writes and compiles the crate.
///
/// # Errors
/// What the compiler says.
pub(crate) fn check(readme: &Readme, snippets: &[(&Block, &str, Place)]) -> Result<(), String> {
    let folder = root().join("target/readme");
    let documents = ["quickstart/shop.yaml", "streaming/archive.yaml", "payments/payments.yaml"];
    for document in documents.map(|name| root().join("examples").join(name)) {
        copy(&document, &folder);
    }
    copy(&root().join("tests/tests/readme/files.json"), &folder);
    copy(&root().join("Cargo.lock"), &folder);
    let [dependencies] = readme.blocks("toml").filter(|it| it.first() == "[dependencies]").collect::<Vec<_>>()[..]
    else {
        panic!("README.md shows other than one block of dependencies")
    };
    // The README's crate is beside a clone; this one is inside.
    let dependencies = dependencies.text.replace("\"../ops/", &format!("\"{}/", root().display()));
    write(&folder.join("Cargo.toml"), &MANIFEST.replace("# DEPENDENCIES\n", &dependencies));
    assert!(readme.prose.contains(MCP), "README.md no longer says `{MCP}`");
    write(&folder.join("build/main.rs"), &BUILD.replace("MCP", MCP));
    let mut modules = SNIPPETS.to_owned();
    for (snippet, name, place) in snippets {
        let above = "\n".repeat(snippet.line - 1);
        let (path, text) = match place {
            Place::BuildScript => ("build.rs".to_owned(), format!("{above}{}", snippet.text)),
            Place::Program => (format!("src/{name}.rs"), format!("{above}{}", snippet.text)),
            Place::Body(uses, arguments) => {
                modules.push_str(&format!("mod {name};\n"));
                let uses = if uses.is_empty() { String::new() } else { format!("use {{{uses}}}; ") };
                let head = format!("{uses}async fn run({arguments}) -> Result<(), Box<dyn std::error::Error>> {{");
                // The line above the first is that of the function.
                (format!("src/{name}.rs"), format!("{}{head}\n{}Ok(()) }}\n", &above[1..], snippet.text))
            }
        };
        write(&folder.join(path), &text);
    }
    write(&folder.join("src/snippets.rs"), &modules);
    // The program first, as its readers have it: with the features that they were told.
    cargo(&folder, &["--bin", "program"])?;
    cargo(&folder, &["--features", "snippets"])
}

fn cargo(folder: &Path, arguments: &[&str]) -> Result<(), String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let output = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline", "--target-dir"])
        .arg(target)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Not even a warning: readers would see it, too.
    if output.status.success() && said.is_empty() { Ok(()) } else { Err(said) }
}

/// Writes a file unless it is as it should be: what has not changed need not be compiled again.
fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    ops_codegen::write_if_changed(path, text).unwrap();
}

fn copy(file: &Path, folder: &Path) {
    write(&folder.join(file.file_name().unwrap()), &fs::read_to_string(file).unwrap());
}
