//! Commands whose reader goes away, as `| head -1` does: the work is done, and its status is told. And documents that come by
//! a pipe, as `<(git show main:api.yaml)` gives one.

mod folder;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use folder::{Folder, SHOP};

/// Runs a command whose standard input is a pipe with a text, and gives its exit status and all that it prints.
fn piped(folder: &Folder, arguments: &[&str], text: &str) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.args(arguments).current_dir(&folder.0);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Who refuses it does not read it.
    _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let output = child.wait_with_output().unwrap();
    let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), told.concat())
}

/// Runs a command with a closed standard output, and gives its exit status and its standard error.
fn unread(folder: &Folder, arguments: &[&str]) -> (i32, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.args(arguments).current_dir(&folder.0).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_comparison_has_its_verdict() {
    let folder = Folder::new("pipe-diff");
    folder.write("old.yaml", SHOP);
    folder.write("new.yaml", &SHOP.replace("required: [id, name]", "required: [id]"));
    for json in [&[][..], &["--json"]] {
        let (status, told) = unread(&folder, &[&["diff", "old.yaml", "new.yaml"], json].concat());
        assert!(status == 1 && told.contains("breaks callers"), "{status}: {told}");
    }
    assert_eq!(unread(&folder, &["diff", "old.yaml", "old.yaml"]).0, 0);
    // What could not be read is told, and decides.
    folder.write("apis/shop.yaml", SHOP);
    folder.write("apis/bad.yaml", "a: [");
    for command in [&["inspect", "apis"][..], &["generate", "apis", "-o", "-"]] {
        let (status, told) = unread(&folder, command);
        assert!(status == 3 && told.contains("apis/bad.yaml"), "{command:?}: {status}: {told}");
    }
}

#[test]
fn all_documents_are_updated() {
    let folder = Folder::new("pipe-update");
    for name in ["a", "b", "c"] {
        folder.write(&format!("from/{name}.yaml"), SHOP);
        folder.good(&["add", &format!("from/{name}.yaml")]);
        folder.write(&format!("from/{name}.yaml"), &SHOP.replace("required: [id, name]", "required: [id]"));
    }
    let (status, told) = unread(&folder, &["update", "--check"]);
    assert!(status == 1 && told.contains("run the command without `--check`"), "{status}: {told}");
    let (status, told) = unread(&folder, &["update"]);
    assert_eq!(status, 0, "{told}");
    for name in ["a", "b", "c"] {
        assert_eq!(folder.read(&format!("{name}.yaml")), folder.read(&format!("from/{name}.yaml")), "{told}");
    }
    folder.good(&["update", "--check"]);
}

#[test]
fn a_snapshot_is_compared() {
    let folder = Folder::new("pipe-snapshot");
    folder.write("maths.json", r#"{"tools":[{"name":"double","inputSchema":{"type":"object"}}]}"#);
    folder.write("old.json", r#"{"tools":[{"name":"treble","inputSchema":{"type":"object"}}]}"#);
    let server = ["--", env!("CARGO_BIN_EXE_ops"), "serve", "maths.json", "--mock", "--mcp", "stdio", "--tools", "all"];
    let check = [&["snapshot", "--check", "-o", "old.json"][..], &server].concat();
    let (status, told) = unread(&folder, &check);
    assert!(status == 1 && told.contains("break callers"), "{status}: {told}");
}

/// Starts a mock server whose listing has no reader. True if it answers before it ends.
fn mock_answers(folder: &Folder) -> bool {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.args(["serve", "shop.yaml", "--mock", "--http", &address]).current_dir(&folder.0);
    let mut child = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    let ask = || {
        let mut socket = TcpStream::connect(&address)?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        socket.write_all(b"GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut response = String::new();
        socket.read_to_string(&mut response).map(|_| response)
    };
    let until = Instant::now() + Duration::from_secs(60);
    let mut answers = false;
    while !answers && Instant::now() < until && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
        answers = ask().is_ok_and(|response| response.starts_with("HTTP/1.1 204 "));
    }
    _ = child.kill();
    child.wait().unwrap();
    answers
}

#[test]
fn a_mock_server_answers_without_a_reader_of_its_listing() {
    let folder = Folder::new("pipe-mock");
    folder.write("shop.yaml", SHOP);
    // If another process takes the port before the server does, the server ends, and another port is tried.
    assert!((0..3).any(|_| mock_answers(&folder)));
}

#[cfg(target_os = "linux")]
#[test]
fn a_comparison_that_cannot_be_written_has_no_verdict() {
    let folder = Folder::new("pipe-full");
    folder.write("old.yaml", SHOP);
    folder.write("new.yaml", &SHOP.replace("required: [id, name]", "required: [id]"));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    let output = command.args(["diff", "old.yaml", "new.yaml"]).current_dir(&folder.0).stdout(full).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && told.contains("the output cannot be written"), "{told}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_a_document() {
    let folder = Folder::new("pipe-in");
    folder.write("new.yaml", &SHOP.replace("required: [id, name]", "required: [id]"));
    let tools = r#"{"tools":[{"name":"double","inputSchema":{"type":"object"}}]}"#;
    let servers = r#"{"mcpServers":{"one":{"command":"/no/such/program"}}}"#;
    let nowhere = ["--base-url", "http://127.0.0.1:9"];
    for (arguments, text, status, says) in [
        (&["diff", "PIPE", "new.yaml"][..], SHOP, 1, "of which 1 breaks callers"),
        (&["diff", "new.yaml", "PIPE"], SHOP, 1, "break"),
        (&["diff", "PIPE", "PIPE"], SHOP, 2, "cannot be both versions"),
        (&["call", "PIPE"], SHOP, 2, "name an operation"),
        (&["inspect", "PIPE"], SHOP, 0, "showPet"),
        (&["inspect", "PIPE", "showPet"], SHOP, 0, "showPet"),
        (&["inspect", "PIPE", "showPet", "--exclude", "showPet"], SHOP, 2, "is left out by"),
        (&["generate", "PIPE", "-o", "-"], SHOP, 0, "pub struct ShowPet;"),
        (&["call", "PIPE", "showPet", "petId=1", nowhere[0], nowhere[1]], SHOP, 1, "error: "),
        (&["inspect", "PIPE"], tools, 0, "double"),
        (&["call", "PIPE", "double"], tools, 2, "is a snapshot"),
        // The commands of a configuration run only if it is called one.
        (
            &["inspect", "PIPE"],
            servers,
            2,
            "`PIPE` names MCP servers, and nothing that comes by a pipe is started unasked",
        ),
        (&["call", "PIPE", "one.double"], servers, 2, "`PIPE` names MCP servers"),
        (&["call", "PIPE", "one.double", "--help"], servers, 2, "`PIPE` names MCP servers"),
        (&["inspect", "--config", "PIPE"], servers, 1, "/no/such/program"),
        (&["call", "one.double", "--config", "PIPE"], servers, 1, "/no/such/program"),
        (&["serve", "PIPE"], SHOP, 2, "can be read only once"),
        (&["inspect", "PIPE"], "a: [", 3, "PIPE"),
        // The place of a fault, and its line, which cannot be read again.
        (&["inspect", "PIPE"], "{\n  a: [}", 3, "--> PIPE:2:"),
        (&["inspect", "PIPE"], "{\n  a: [}", 3, "2 |   a: [}"),
        (&["serve", "PIPE", "--mock"], "{\n  a: [}", 3, "--> PIPE:2:"),
        (&["inspect", "PIPE"], "", 3, "not an OpenAPI document: it is empty\n"),
    ] {
        for pipe in ["-", "/dev/stdin"] {
            let arguments: Vec<&str> = arguments.iter().map(|word| if *word == "PIPE" { pipe } else { word }).collect();
            let says = says.replace("PIPE", if pipe == "-" { "<stdin>" } else { pipe });
            let (found, told) = piped(&folder, &arguments, text);
            assert!(found == status && told.contains(&says), "{arguments:?}: {found}: {told}");
        }
    }
}
