//! What a user of MCP servers does, from the snapshot to the typed call: `ops snapshot` asks each of five real servers, a
//! crate with a `build.rs` makes types of the snapshots, and calls the servers with them.

#[path = "../../tests/src/folder.rs"]
pub mod folder;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use folder::{Folder, target};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The command line of a server that `tests/peers/install` has installed.
fn server(of: &str, arguments: &[&str]) -> Vec<String> {
    let peers = root().join("tests/peers");
    let (program, first) = match of.strip_prefix("mcp-") {
        Some(_) => (peers.join(".venv/bin").join(of), None),
        None => {
            let script = peers.join("node_modules/@modelcontextprotocol").join(of).join("dist/index.js");
            ("node".into(), Some(script))
        }
    };
    let named = first.as_ref().unwrap_or(&program);
    assert!(named.exists(), "{} is missing: run tests/peers/install", named.display());
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    [text(program)].into_iter().chain(first.map(text)).chain(arguments).collect()
}

/// The crate of a user, without its snapshots.
fn package() -> Folder {
    let package = Folder::new(&root(), "live").unwrap();
    let _ = std::fs::remove_dir_all(&*package);
    std::fs::create_dir_all(package.join("src")).unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live");
    std::fs::copy(sources.join("user.rs"), package.join("src/main.rs")).unwrap();
    std::fs::copy(sources.join("build.rs"), package.join("build.rs")).unwrap();
    std::fs::copy(root().join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
    let (runtime, codegen) = (root().join("ops-runtime"), root().join("ops-codegen"));
    let manifest = format!(
        "[package]\nname = \"live\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nfutures-util = \"0.3\"\n\
         ops-runtime = {{ path = {runtime:?}, features = [\"mcp-http\"] }}\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n\n\
         [build-dependencies]\nops-codegen = {{ path = {codegen:?} }}\n\n\
         [profile.dev]\ndebug = false\n\n[workspace]\n"
    );
    std::fs::write(package.join("Cargo.toml"), manifest).unwrap();
    package
}

#[test]
fn a_snapshot_becomes_types_that_call_the_server() {
    let package = package();
    let folder = package.join("folder");
    std::fs::create_dir(&folder).unwrap();
    for line in ["init -q", "config user.name Ann", "config user.email ann@example.com"] {
        let status = Command::new("git").args(line.split(' ')).current_dir(&folder).status().unwrap();
        assert!(status.success());
    }
    let place = folder.to_str().unwrap();
    let servers = [
        ("everything", server("server-everything", &[])),
        ("files", server("server-filesystem", &[place])),
        ("memory", server("server-memory", &[])),
        ("time", server("mcp-server-time", &["--local-timezone", "UTC"])),
        ("git", server("mcp-server-git", &[])),
    ];
    let mut user = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cargo"));
    for (name, line) in &servers {
        let snapshot = Command::new(env!("CARGO_BIN_EXE_ops"))
            .args(["snapshot", "-o", &format!("{name}.json"), "--"])
            .args(line)
            .current_dir(&*package)
            .output()
            .unwrap();
        assert!(snapshot.status.success(), "{name}: {}", String::from_utf8_lossy(&snapshot.stderr));
        user.env(name.to_uppercase(), line.join("\n"));
    }

    // The same server once more, over HTTP, at a port that was free a moment ago. If another program has taken it, the server
    // says that it listens, and ends.
    let [(_, line), ..] = &servers;
    let serve = || {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let mut serving = Command::new(&line[0]);
        serving.args(&line[1..]).arg("streamableHttp").env("PORT", &port).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut serving = serving.spawn().unwrap();
        let mut lines = BufReader::new(serving.stderr.take().unwrap()).lines();
        let listens = lines.any(|line| line.unwrap().contains("listening on port"));
        // What it says from now on is read, so that it does not wait for that.
        std::thread::spawn(move || lines.for_each(drop));
        std::thread::sleep(Duration::from_millis(200));
        (listens && serving.try_wait().unwrap().is_none()).then_some((serving, port))
    };
    let (mut serving, port) = (0..3).find_map(|_| serve()).expect("the server ended, three times");

    let output = user
        .args(["run", "--quiet", "--offline", "--target-dir"])
        .arg(target(&root()))
        .current_dir(&*package)
        .env("EVERYTHING_URL", format!("http://127.0.0.1:{port}/mcp"))
        .env("FOLDER", place)
        .env("MEMORY_FILE_PATH", package.join("memory.jsonl"))
        .output();
    serving.kill().unwrap();
    serving.wait().unwrap();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "all called\n");
}
