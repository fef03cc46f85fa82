//! The workspace of the typed program: a package for each document, one with what they share, and the program.

use std::fs;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::Source;
use crate::corpus;

/// The package that runs one operation of any type.
const KIT: &str = include_str!("kit.txt");

/// The program, but for the list of its packages.
const PROGRAM: &str = include_str!("program.txt");

/// So much of a compiler's output is told.
const SHOWN: usize = 2_000;

/// Generates and compiles; gives the program, and why some documents are not in it.
pub(super) async fn build(sources: &[Source]) -> Result<(PathBuf, Vec<(String, String)>), String> {
    let folder = corpus::root().join("target/requests");
    let mut failures = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for source in sources {
        match library(&folder, source) {
            Ok(()) => names.push(&source.namespace),
            Err(error) => failures.push((source.namespace.clone(), error)),
        }
    }
    loop {
        if names.is_empty() {
            return Err(format!("nothing to compile: {failures:?}"));
        }
        workspace(&folder, &names).map_err(|error| format!("{}: {error}", folder.display()))?;
        let Err(said) = compile(&folder).await else { return Ok((target().join("debug/requests-typed"), failures)) };
        // What does not compile fails for itself; the others are still to run.
        let is_broken = |name: &&&str| said.contains(&format!("could not compile `{name}`"));
        let broken: Vec<&str> = names.iter().filter(is_broken).copied().collect();
        if broken.is_empty() {
            return Err(format!("the typed program does not build: {}", beginning(&said)));
        }
        names.retain(|name| !broken.contains(name));
        let why = |name: &str| format!("the generated code does not compile: {}", about(&said, name));
        failures.extend(broken.iter().map(|name| ((*name).to_owned(), why(name))));
    }
}

/// Writes the package of a document.
fn library(folder: &Path, source: &Source) -> Result<(), String> {
    let module = ops_codegen::Builder::new().openapi(&source.path).with_namespace(&source.namespace).generate();
    let module = module.map_err(|error| error.to_string())?.pop().ok_or("no module")?;
    let text = &module.generated.source;
    let operations = text.lines().filter_map(|line| {
        let (kind, name) = line.trim().strip_prefix("impl ops::")?.strip_suffix(" {}")?.split_once(" for super::")?;
        let run = match kind {
            "Call" => "call",
            "Subscribe" => "subscribe",
            _ => return None,
        };
        Some(format!("    (<{name} as ops::Operation>::SPEC, requests_kit::{run}::<{name}>),\n"))
    });
    let operations: String = operations.collect();
    let text = format!(
        "{text}\n/// How each operation is run.\n\
         pub static OPERATIONS: &[(&ops::OperationSpec, requests_kit::Run)] = &[\n{operations}];\n"
    );
    let dependencies = "requests-kit.workspace = true\nops-runtime.workspace = true\n";
    package(folder, &source.namespace, dependencies, "src/lib.rs", &text).map_err(|error| error.to_string())
}

fn package(folder: &Path, name: &str, dependencies: &str, file: &str, text: &str) -> std::io::Result<()> {
    let folder = folder.join(name);
    fs::create_dir_all(folder.join("src"))?;
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n[dependencies]\n{dependencies}"
    );
    // What has not changed need not be compiled again.
    write(&folder.join("Cargo.toml"), &manifest)?;
    write(&folder.join(file), text)
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    ops_codegen::write_if_changed(path, text).map(|_| ()).map_err(|error| std::io::Error::other(error.to_string()))
}

/// Writes the workspace: with the dependencies and the profile of the tests, so that what is compiled serves both.
fn workspace(folder: &Path, names: &[&str]) -> std::io::Result<()> {
    let root = corpus::root();
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let tests = fs::read_to_string(root.join("tests/Cargo.toml"))?;
    let own = |name: &str| format!("path = {:?}", root.join(name).display().to_string());
    let shared = ["ops-macros", "ops-runtime", "ops-codegen"]
        .iter()
        .fold(section(&manifest, "workspace.dependencies"), |text, name| {
            text.replace(&format!("path = {name:?}"), &own(name))
        });
    let all = ["requests-kit", "requests-typed"].into_iter().chain(names.iter().copied());
    let members: Vec<String> = all.clone().map(|name| format!("{name:?}")).collect();
    let local: String =
        names.iter().chain(&["requests-kit"]).map(|name| format!("{name} = {{ path = {name:?} }}\n")).collect();
    let profiles: String = all.map(|name| format!("[profile.dev.package.{name}]\ndebug = false\n")).collect();
    let profile = section(&manifest, "profile.dev");
    let text = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{}]\n\n[workspace.dependencies]\n{shared}{local}\n\
         [profile.dev]\n{profile}\n{profiles}",
        members.join(", ")
    );
    fs::create_dir_all(folder)?;
    write(&folder.join("Cargo.toml"), &text)?;
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let dependencies = section(&tests, "dependencies");
    let dependencies = dependencies.lines().filter(|line| !line.starts_with("ops-codegen"));
    let dependencies: String = dependencies.map(|line| format!("{line}\n")).collect();
    package(folder, "requests-kit", &dependencies, "src/lib.rs", KIT)?;
    let used: String = names.iter().map(|name| format!("{name}.workspace = true\n")).collect();
    let list: String = names.iter().map(|name| format!("        {name}::OPERATIONS,\n")).collect();
    let used = format!("requests-kit.workspace = true\n{used}");
    package(folder, "requests-typed", &used, "src/main.rs", &PROGRAM.replace("        // OPERATIONS\n", &list))
}

/// The lines of a manifest below a header.
fn section(manifest: &str, name: &str) -> String {
    let lines = manifest.lines().skip_while(|line| *line != format!("[{name}]")).skip(1);
    lines.take_while(|line| !line.starts_with('[')).map(|line| format!("{line}\n")).collect()
}

async fn compile(folder: &Path) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from);
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--offline", "--keep-going", "--package", "requests-typed", "--target-dir"]);
    command.arg(target()).current_dir(folder).env("CARGO_INCREMENTAL", "0").env("RUSTFLAGS", rustflags());
    let output = command.kill_on_drop(true).output().await.map_err(|error| format!("cargo: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// The flags that the tests are compiled with: others would compile all dependencies again.
fn rustflags() -> String {
    std::env::var("RUSTFLAGS").unwrap_or_default()
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| corpus::root().join("target"), PathBuf::from)
}

/// What a compiler said about a package.
fn about(said: &str, name: &str) -> String {
    let place = format!("{name}/src");
    let blocks = said.split("\n\n").filter(|block| block.contains(&place));
    let text = blocks.collect::<Vec<_>>().join("\n\n");
    beginning(if text.is_empty() { said } else { &text })
}

fn beginning(text: &str) -> String {
    text.trim().chars().take(SHOWN).collect()
}
