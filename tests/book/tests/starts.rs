//! The starts work as they stand: each is done in a folder of its own, with the files and the dependencies that the page shows.

#[path = "../../src/folder.rs"]
pub mod folder;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use folder::{Folder, target};
use ops_tests_book::pages::{blocks, root};

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

/// Does what a page says up to `cargo run`: the program that comes of it, with another address than that of the page.
fn made(page: &str, name: &str, files: &[&str], documents: &[&str], address: (&str, &str)) -> PathBuf {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let root = fs::canonicalize(root()).unwrap();
    let folder = Folder::new(&root, &format!("starts/{name}")).unwrap();
    fs::create_dir_all(folder.join("src")).unwrap();
    let dependencies = file(&text, "Cargo.toml").replace("\"../ops/", &format!("\"{}/", root.display()));
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{dependencies}\n[workspace]\n\n[profile.dev]\n\
         debug = \"line-tables-only\"\n[profile.dev.package.\"*\"]\ndebug = false\n"
    );
    ops_codegen::write_if_changed(&folder.join("Cargo.toml"), &manifest).unwrap();
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    for name in files {
        ops_codegen::write_if_changed(&folder.join(name), &file(&text, name).replace(address.0, address.1)).unwrap();
    }
    for document in documents {
        let from = root.join(document);
        ops_codegen::write_if_changed(&folder.join(from.file_name().unwrap()), &fs::read_to_string(&from).unwrap())
            .unwrap();
    }
    let target = target(&root);
    let output = Command::new(root.join("tests/cargo"))
        .args(["build", "--quiet", "--offline", "--target-dir"])
        .arg(&target)
        .current_dir(&*folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // Not even a warning: readers would see it, too.
    assert!(output.status.success() && said.is_empty(), "{page}: {said}");
    target.join("debug").join(name)
}

fn printed(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// An address that is free.
fn free() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn call_an_api() {
    let address = free();
    let page = "docs/src/start/api.md";
    let files = ["build.rs", "src/main.rs"];
    let program = made(page, "shop-client", &files, &["examples/quickstart/shop.yaml"], ("127.0.0.1:4010", &address));
    let build = Command::new(root().join("tests/build")).arg("quickstart").status();
    assert!(build.unwrap().success());
    let shop = program.with_file_name("quickstart");
    let mut shop = Running(Command::new(shop).args(["serve", &address]).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(shop.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, format!("http://{address}\n"));
    let shown = blocks(&fs::read_to_string(root().join(page)).unwrap()).into_iter().find(|block| block.info == "text");
    assert_eq!(printed(&program, &[]), shown.unwrap().text);
}

#[test]
fn run_work_across_processes() {
    let server = root().join("tests/peers/.venv/bin/nats-server");
    assert!(server.exists(), "tests/peers/install installs the NATS server");
    let address = free();
    let program = made("docs/src/start/work.md", "parcels", &["src/main.rs"], &[], ("127.0.0.1:4222", &address));
    let store = std::env::temp_dir().join(format!("book-jobs-{}", std::process::id()));
    let (host, port) = address.split_once(':').unwrap();
    let mut nats = Command::new(server);
    nats.args(["--addr", host, "--port", port, "--jetstream", "--store_dir"]).arg(&store);
    let _nats = Running(nats.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    for _ in 0..100 {
        if std::net::TcpStream::connect(&address).is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let work = || Running(Command::new(&program).arg("work").spawn().unwrap());
    let first = work();
    let id = printed(&program, &["submit", "12"]);
    assert_eq!(id, printed(&program, &["submit", "12"]));
    let result = printed(&program, &["result", id.trim()]);
    assert!(result.starts_with("label 12, packed by process "), "{result}");

    // The worker that runs a job dies, and another one ends it.
    let id = printed(&program, &["submit", "13"]);
    std::thread::sleep(Duration::from_millis(1_000));
    drop(first);
    let second = work();
    let result = printed(&program, &["result", id.trim()]);
    assert_eq!(result, format!("label 13, packed by process {}\n", second.0.id()));
    drop(second);
    fs::remove_dir_all(store).unwrap();
}
