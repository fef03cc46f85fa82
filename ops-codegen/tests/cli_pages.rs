//! The commands of the README and of the book run as they stand, as far as they need no network.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// What commands of the pages name and a reader has: documents, a script, two versions, an `ops.toml`.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ops-pages-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    for example in ["quickstart", "contacts"] {
        fs::create_dir_all(folder.join("examples").join(example)).unwrap();
    }
    for (from, to) in [
        ("examples/quickstart/shop.yaml", "examples/quickstart/shop.yaml"),
        ("examples/contacts/contacts.yaml", "examples/contacts/contacts.yaml"),
        ("examples/quickstart/shop.yaml", "shop.yaml"),
        ("examples/contacts/contacts.yaml", "contacts.yaml"),
        ("examples/quickstart/shop.yaml", "old.yaml"),
        ("examples/quickstart/shop.yaml", "new.yaml"),
        ("tests/book/files.json", "git.json"),
    ] {
        fs::copy(root().join(from), folder.join(to)).unwrap();
    }
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("src/lib.rs"), "").unwrap();
    fs::write(folder.join("tidy.js"), "await ops.contacts.deleteContact({ id: 7 });\nreturn 'gone';\n").unwrap();
    fs::write(folder.join("ops.toml"), "[generate]\nout = \"src/api\"\n\n[documents.shop]\npath = \"shop.yaml\"\n")
        .unwrap();
    folder
}

/// The words of a command, of which some stand in single quotes.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in command.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            c => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Runs a command in a folder; `> FILE` at its end is where its output goes.
fn run(folder: &Path, command: &str) -> Output {
    let (command, file) = command.split_once(" > ").map_or((command, None), |(command, file)| (command, Some(file)));
    let output = Command::new(env!("CARGO_BIN_EXE_ops"))
        .args(&words(command)[1..])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if let Some(file) = file {
        fs::write(folder.join(file.trim()), &output.stdout).unwrap();
    }
    output
}

/// A server that ends with the test.
struct Server {
    child: Child,
    /// Stays open, so that the server can write to it.
    _output: BufReader<ChildStdout>,
}

impl Server {
    /// Starts a server over HTTP, and waits until it listens.
    fn start(folder: &Path, command: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ops"))
            .args(&words(command)[1..])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let server = Self { child, _output: output };
        assert!(line.starts_with("http://"), "`{command}`: {line}");
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The commands of a page's shell blocks.
fn commands(page: &str) -> Vec<String> {
    let (mut commands, mut inside) = (Vec::new(), false);
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside && line.starts_with("ops ") {
            commands.push(line.split(" #").next().unwrap().trim().to_owned());
        }
    }
    commands
}

/// True if a command needs what a test has not: a network, another program, or a client that goes on.
fn needs_others(command: &str) -> bool {
    [
        "https://",
        "http://",
        "npx",
        "uvx",
        "mcp.json",
        "git.git_status",
        "ops update",
        "--http",
        "github.json",
        "ops jobs",
    ]
    .iter()
    .any(|word| command.contains(word))
}

#[test]
fn each_command_that_needs_no_network_runs() {
    let mut pages = vec![root().join("README.md")];
    let how_to = fs::read_dir(root().join("docs/src/how-to")).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(how_to);
    let folder = folder("how-to");
    // What `--check` compares with.
    for command in ["ops generate", "ops generate examples/quickstart -o src/apis --include 'shop.show*'"] {
        let output = run(&folder, command);
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut count = 0;
    for page in pages {
        for command in commands(&fs::read_to_string(&page).unwrap()) {
            if needs_others(&command) {
                continue;
            }
            let output = run(&folder, &command);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{}: `{command}`: {said}", page.display());
            assert!(!said.contains("panicked"), "`{command}`: {said}");
            // A server over stdio prints what it serves. Then it ends, since its input has ended.
            let is_server = command.starts_with("ops serve") && !command.contains("--print-config");
            assert!(!is_server || said.ends_with("; 0 diagnostics\n"), "`{command}`: {said}");
            count += 1;
        }
    }
    assert!(count > 9, "{count} commands were run");
    println!("{count} commands");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_start_for_models_runs() {
    let folder = folder("model");
    // A free address in place of that of the page, which is kept from others until the server starts.
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let free = held.local_addr().unwrap().to_string();
    let mut held = Some(held);
    let page = fs::read_to_string(root().join("docs/src/start/model.md")).unwrap().replace("127.0.0.1:4011", &free);
    let gateway = page.split_once("```toml\n").unwrap().1.split_once("```").unwrap().0;
    assert!(gateway.contains(&free), "{gateway}");
    fs::write(folder.join("gateway.toml"), gateway).unwrap();
    fs::write(folder.join("contacts.token"), "any\n").unwrap();
    let commands = commands(&page);
    let (mut servers, mut outputs) = (Vec::new(), Vec::new());
    for command in &commands {
        if command.contains(" --http ") {
            drop(held.take());
            servers.push(Server::start(&folder, command));
            continue;
        }
        let output = run(&folder, command);
        assert!(output.status.success(), "`{command}`: {}", String::from_utf8_lossy(&output.stderr));
        outputs.push(String::from_utf8(output.stdout).unwrap());
    }
    let [_, tools, found, shown, called, waits, _, listed] = &outputs[..] else { panic!("{commands:?}: {outputs:?}") };
    assert!(["search", "describe", "call"].iter().all(|tool| tools.contains(tool)), "{tools}");
    assert!(found.contains("contacts.updateContact"), "{found}");
    assert!(shown.contains("phone"), "{shown}");
    assert!(called.contains("items"), "{called}");
    assert!(waits.contains("This call waits.") && waits.contains("123"), "{waits}");
    // The API of the contacts was called, which needs the token.
    assert_eq!(servers.len(), 1);
    assert!(listed.contains("items"), "{listed}");
    fs::remove_dir_all(folder).unwrap();
}
