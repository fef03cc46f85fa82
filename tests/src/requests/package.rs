//! A workspace of generated code: a package for each document, one with what they share, and a program that runs them.

use std::fs;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::corpus;
use crate::folder::{Folder, target};
use crate::program::cargo;

/// So much of a compiler's output is told.
const SHOWN: usize = 2_000;

/// A program that runs generated code.
#[derive(Debug)]
pub(super) struct Program {
    /// The folder below `target`, and the start of the names of its packages.
    pub(super) name: &'static str,
    /// The source of the package that all others use: `NAME-kit`.
    pub(super) kit: &'static str,
    /// The source of the program, but for the list of what the packages have.
    pub(super) main: &'static str,
    /// The static of each package that the program lists.
    pub(super) listed: &'static str,
}

/// The package of a document.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) source: String,
    /// Its build script, which uses `ops-codegen`, if it has one.
    pub(super) build_script: Option<String>,
}

impl Program {
    /// Compiles; gives the program, and why some documents are not in it.
    pub(super) async fn build(&self, packages: &[Package]) -> Result<(PathBuf, Vec<(String, String)>), String> {
        let folder = Folder::new(corpus::root(), self.name).map_err(|error| format!("{}: {error}", self.name))?;
        let told = |error: std::io::Error| format!("{}: {error}", folder.display());
        packages.iter().try_for_each(|package| self.library(&folder, package)).map_err(told)?;
        let mut names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
        let mut failures = Vec::new();
        loop {
            if names.is_empty() {
                return Err(format!("nothing to compile: {failures:?}"));
            }
            self.workspace(&folder, &names).map_err(told)?;
            let Err(said) = self.compile(&folder).await else {
                return Ok((target(corpus::root()).join("debug").join(format!("{}-run", self.name)), failures));
            };
            // What does not compile fails for itself; the others are still to run.
            let is_broken = |name: &&&str| {
                let script = format!("failed to run custom build command for `{name} ");
                said.contains(&format!("could not compile `{name}`")) || said.contains(&script)
            };
            let broken: Vec<&str> = names.iter().filter(is_broken).copied().collect();
            if broken.is_empty() {
                return Err(format!("the program does not build: {}", beginning(&said)));
            }
            names.retain(|name| !broken.contains(name));
            let why = |name: &str| format!("it does not compile: {}", about(&said, name));
            failures.extend(broken.iter().map(|name| ((*name).to_owned(), why(name))));
        }
    }

    fn library(&self, folder: &Path, package: &Package) -> std::io::Result<()> {
        let mut dependencies = format!("{}-kit.workspace = true\nops-runtime.workspace = true\n", self.name);
        if let Some(script) = &package.build_script {
            dependencies.push_str("\n[build-dependencies]\nops-codegen.workspace = true\n");
            write(&folder.join(&package.name).join("build.rs"), script)?;
        }
        write_package(folder, &package.name, &dependencies, "src/lib.rs", &package.source)
    }

    /// Writes the workspace: with the dependencies and the profile of the tests, so that what is compiled serves both.
    fn workspace(&self, folder: &Path, names: &[&str]) -> std::io::Result<()> {
        let root = corpus::root();
        let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
        let tests = fs::read_to_string(root.join("tests/Cargo.toml"))?;
        let own = |name: &str| format!("path = {:?}", root.join(name).display().to_string());
        let shared = ["ops-macros", "ops-runtime", "ops-codegen"]
            .iter()
            .fold(section(&manifest, "workspace.dependencies"), |text, name| {
                text.replace(&format!("path = {name:?}"), &own(name))
            });
        let (kit, run) = (format!("{}-kit", self.name), format!("{}-run", self.name));
        let all = [kit.as_str(), run.as_str()].into_iter().chain(names.iter().copied());
        let members: Vec<String> = all.clone().map(|name| format!("{name:?}")).collect();
        let local: String =
            names.iter().chain(&[kit.as_str()]).map(|name| format!("{name} = {{ path = {name:?} }}\n")).collect();
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
        write_package(folder, &kit, &dependencies, "src/lib.rs", self.kit)?;
        let used: String = names.iter().map(|name| format!("{name}.workspace = true\n")).collect();
        let list: String = names.iter().map(|name| format!("        {name}::{},\n", self.listed)).collect();
        let used = format!("{kit}.workspace = true\n{used}");
        write_package(folder, &run, &used, "src/main.rs", &self.main.replace("        // LISTED\n", &list))
    }

    async fn compile(&self, folder: &Path) -> Result<(), String> {
        let mut command = Command::from(cargo());
        command.args(["build", "--quiet", "--offline", "--keep-going", "--package"]).arg(format!("{}-run", self.name));
        command.arg("--target-dir").arg(target(corpus::root()));
        command.current_dir(folder).env("CARGO_INCREMENTAL", "0").env("RUSTFLAGS", rustflags());
        let output = command.kill_on_drop(true).output().await.map_err(|error| format!("cargo: {error}"))?;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    }
}

fn write_package(folder: &Path, name: &str, dependencies: &str, file: &str, text: &str) -> std::io::Result<()> {
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

/// The lines of a manifest below a header.
fn section(manifest: &str, name: &str) -> String {
    let lines = manifest.lines().skip_while(|line| *line != format!("[{name}]")).skip(1);
    lines.take_while(|line| !line.starts_with('[')).map(|line| format!("{line}\n")).collect()
}

/// The flags that the tests are compiled with: others would compile all dependencies again.
fn rustflags() -> String {
    std::env::var("RUSTFLAGS").unwrap_or_default()
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
