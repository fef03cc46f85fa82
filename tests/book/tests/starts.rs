//! The starts, the tutorial and the README work as they stand: each is done in a folder of its own, with the files and the
//! dependencies that the page shows.

#[path = "../../src/folder.rs"]
pub mod folder;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use folder::{Folder, target};
use ops_tests_book::pages::{blocks, expand, root, source};

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The text of the block after a line that begins with a file's name between backticks.
fn file(page: &str, name: &str) -> String {
    let at = page.find(&format!("\n`{name}`")).unwrap_or_else(|| panic!("the page does not show {name}"));
    blocks(&page[at..]).into_iter().next().unwrap().text
}

/// A package in a folder of its own, with the dependencies that a page shows.
struct Package {
    folder: Folder,
    /// The root of the repository, without `..`.
    root: PathBuf,
}

impl Package {
    fn new(name: &str, page: &str) -> Self {
        let root = fs::canonicalize(root()).unwrap();
        let folder = Folder::new(&root, &format!("starts/{name}")).unwrap();
        let dependencies = file(page, "Cargo.toml").replace("\"../ops/", &format!("\"{}/", root.display()));
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{dependencies}\n[workspace]\n\n[profile.dev]\n\
             debug = \"line-tables-only\"\n[profile.dev.package.\"*\"]\ndebug = false\n"
        );
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        let package = Self { folder, root };
        package.write("Cargo.toml", &manifest);
        package
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        ops_codegen::write_if_changed(&path, text).unwrap();
    }

    /// Copies a file of the repository.
    fn copy(&self, from: &str, to: &str) {
        self.write(to, &fs::read_to_string(self.root.join(from)).unwrap());
    }

    /// Where Cargo puts the programs of the package. An example may have programs of the same names.
    fn programs(&self) -> PathBuf {
        self.folder.join("target")
    }

    /// Runs Cargo, and returns what it prints. All but the programs is built where everything else is.
    fn cargo(&self, command: &str, arguments: &[&str]) -> String {
        let output = Command::new(self.root.join("tests/cargo"))
            .args([command, "--quiet", "--offline", "--target-dir"])
            .arg(self.programs())
            .args(arguments)
            .env("CARGO_BUILD_BUILD_DIR", target(&self.root))
            .current_dir(&*self.folder)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // Not even a warning: readers would see it, too.
        assert!(output.status.success() && said.is_empty(), "cargo {command} {arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Adds the blocks of a page to the files that it names at the beginning of a line.
    fn add(&self, page: &str) {
        for (at, _) in page.match_indices("\n`") {
            let Some((name, _)) = page[at + 2..].split_once('`') else { continue };
            if name == "build.rs" || name.starts_with("src/") {
                let earlier = fs::read_to_string(self.folder.join(name)).unwrap_or_default();
                let block = blocks(&page[at..]).into_iter().next().unwrap();
                self.write(name, &format!("{earlier}{}\n", block.text));
            }
        }
    }
}

/// Does what a page says up to `cargo run`: the program that comes of it, with another address than that of the page.
fn made(page: &str, name: &str, files: &[&str], documents: &[&str], address: (&str, &str)) -> PathBuf {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let package = Package::new(name, &text);
    for name in files {
        package.write(name, &file(&text, name).replace(address.0, address.1));
    }
    for document in documents {
        package.copy(document, Path::new(document).file_name().unwrap().to_str().unwrap());
    }
    package.cargo("build", &[]);
    package.programs().join("debug").join(name)
}

/// What a program prints, which has two minutes for it.
fn printed(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new("timeout").arg("120").arg(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {}: {said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// A free address, and what keeps it from others until the server that gets it is started.
fn free() -> (TcpListener, String) {
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap().to_string();
    (held, address)
}

#[test]
fn call_an_api() {
    let (held, address) = free();
    let page = "docs/src/start/api.md";
    let files = ["build.rs", "src/main.rs"];
    let program = made(page, "shop-client", &files, &["examples/quickstart/shop.yaml"], ("127.0.0.1:4010", &address));
    let build = Command::new(root().join("tests/build")).arg("quickstart").status();
    assert!(build.unwrap().success());
    let shop = target(&fs::canonicalize(root()).unwrap()).join("debug/quickstart");
    drop(held);
    let mut shop = Running(Command::new(shop).args(["serve", &address]).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(shop.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, format!("http://{address}\n"));
    let shown = blocks(&fs::read_to_string(root().join(page)).unwrap()).into_iter().find(|block| block.info == "text");
    assert_eq!(printed(&program, &[]), shown.unwrap().text);
}

/// Each chapter compiles with what the earlier ones have added, and its program prints what the page shows.
#[test]
fn the_tutorial_in_a_crate_of_its_own() {
    let package = Package::new("tutorial", &fs::read_to_string(source().join("tutorial/index.md")).unwrap());
    // What an earlier run left.
    let _ = fs::remove_dir_all(package.folder.join("src"));
    let _ = fs::remove_file(package.folder.join("build.rs"));
    package.copy("examples/tutorial/rates.yaml", "rates.yaml");
    package.copy("examples/tutorial/src/bank.rs", "src/bank.rs");
    for chapter in ["function", "api", "test", "http", "mcp", "workers", "jobs"] {
        let path = format!("tutorial/{chapter}.md");
        let page = expand(&path, &fs::read_to_string(source().join(&path)).unwrap()).unwrap();
        package.add(&page);
        match chapter {
            "function" | "api" | "jobs" => {
                let shown = blocks(&page).into_iter().find(|block| block.is("text")).unwrap();
                assert_eq!(package.cargo("run", &["-p", "tutorial", "--bin", chapter]), shown.text, "{chapter}");
            }
            "test" => drop(package.cargo("test", &["-p", "tutorial", "--lib"])),
            _ => drop(package.cargo("build", &[])),
        }
    }
}

/// The snippet of the README is the body of a program with the dependencies above it.
#[test]
fn the_readme() {
    let page = fs::read_to_string(root().join("README.md")).unwrap();
    let snippet = blocks(&page).into_iter().find(|block| block.is("rust")).unwrap().text;
    let package = Package::new("readme", &page);
    let start = fs::read_to_string(root().join("docs/src/start/api.md")).unwrap();
    package.write("build.rs", &file(&start, "build.rs"));
    package.copy("examples/quickstart/shop.yaml", "shop.yaml");
    // The snippet does nothing with the results of its calls.
    let program = format!(
        "#![allow(unused_variables)]\n\nops_runtime::include_operations!(pub mod shop = \"shop\");\n\n#[tokio::main]\n\
         async fn main() -> Result<(), Box<dyn std::error::Error>> {{\n{snippet}Ok(())\n}}\n"
    );
    package.write("src/main.rs", &program);
    package.cargo("check", &[]);
}

#[test]
fn run_work_across_processes() {
    let server = root().join("tests/peers/.venv/bin/nats-server");
    assert!(server.exists(), "tests/peers/install installs the NATS server");
    let (held, address) = free();
    let program = made("docs/src/start/work.md", "parcels", &["src/main.rs"], &[], ("127.0.0.1:4222", &address));
    let store = std::env::temp_dir().join(format!("book-jobs-{}", std::process::id()));
    let (host, port) = address.split_once(':').unwrap();
    let mut nats = Command::new(server);
    nats.args(["--addr", host, "--port", port, "--jetstream", "--store_dir"]).arg(&store);
    drop(held);
    let _nats = Running(nats.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let begun = Instant::now();
    while TcpStream::connect(&address).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the NATS server does not listen at {address}");
        std::thread::sleep(Duration::from_millis(50));
    }
    // A worker, and the lines that it prints. All are read, so that it never waits for a reader.
    let work = || {
        let mut child = Command::new(&program).arg("work").stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let (sender, lines_read) = mpsc::channel();
        std::thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
        (Running(child), lines_read)
    };
    let (first, printed_by_first) = work();
    let id = printed(&program, &["submit", "12"]);
    assert_eq!(id, printed(&program, &["submit", "12"]));
    let result = printed(&program, &["result", id.trim()]);
    assert!(result.starts_with("label 12, packed by process "), "{result}");

    // The worker that runs a job dies, and another one ends it. It dies as soon as it has begun: the job takes two seconds.
    let id = printed(&program, &["submit", "13"]);
    let limit = Duration::from_secs(60);
    while printed_by_first.recv_timeout(limit).expect("the worker takes the job") != "printing label 13" {}
    drop(first);
    let (second, _) = work();
    let result = printed(&program, &["result", id.trim()]);
    assert_eq!(result, format!("label 13, packed by process {}\n", second.0.id()));
    drop(second);
    fs::remove_dir_all(store).unwrap();
}
