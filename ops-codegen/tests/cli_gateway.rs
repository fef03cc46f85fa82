//! `ops serve --mcp`: documents behind a few tools, as a host's child and over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

#[path = "cli_gateway/credentials.rs"]
mod credentials;
#[path = "cli_gateway/over_http.rs"]
mod over_http;
#[path = "cli_gateway/told.rs"]
mod told;

const SECRET: &str = "s3cr3t-of-the-shop";

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("gateway-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A document of so many operations.
fn document(operations: usize) -> String {
    let path = |n: usize| {
        let responses = json!({ "200": { "description": "It", "content": { "application/json": {
            "schema": { "type": "object", "properties": { "number": { "type": "integer", "examples": [n] } } } } } } });
        let get = json!({ "operationId": format!("showThing{n}"), "summary": format!("Shows thing {n}"), "responses": responses });
        let delete = json!({ "operationId": format!("removeThing{n}"), "summary": format!("Removes thing {n}"),
            "responses": { "204": { "description": "Gone" } } });
        (format!("/things/{n}"), json!({ "get": get, "delete": delete }))
    };
    let paths: serde_json::Map<String, Value> = (0..operations / 2).map(path).collect();
    json!({ "openapi": "3.1.0", "info": { "title": "Things", "version": "1" }, "paths": paths }).to_string()
}

struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next: u64,
}

impl Host {
    fn start(arguments: &[&str], folder: &Path) -> Self {
        Self::start_with(arguments, folder, &[("SHOP_SECRET", SECRET)])
    }

    fn start_with(arguments: &[&str], folder: &Path, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        command.arg("serve").args(arguments).current_dir(folder).envs(variables.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut host = Self { child, stdin, stdout, next: 0 };
        let info = json!({ "name": "test", "version": "1" });
        host.request("initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info }));
        host.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        host
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the command has ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.next {
                return message["result"].clone();
            }
        }
    }

    fn tools(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", json!({}));
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
    }
}

impl Host {
    /// Goes away as hosts do, and waits until the command has ended.
    fn close(mut self) {
        self.stdin = None;
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_host_gets_few_tools() {
    let folder = folder("tools");
    std::fs::write(folder.join("few.json"), document(4)).unwrap();
    std::fs::write(folder.join("many.json"), document(60)).unwrap();
    for (arguments, tools) in [
        (
            &["few.json", "--mock", "--mcp", "stdio"][..],
            &["few_removeThing0", "few_removeThing1", "few_showThing0", "few_showThing1"][..],
        ),
        (&["few.json", "--mock", "--mcp", "stdio", "--read-only"], &["few_showThing0", "few_showThing1"]),
        (&["few.json", "--mock", "--mcp", "stdio", "--include", "*1", "--exclude", "DELETE *"], &["few_showThing1"]),
        (&["many.json"], &["call", "describe", "search"]),
        (&["many.json", "--tools", "code"], &["describe", "execute", "search"]),
        (&[".", "--tools", "search"], &["call", "describe", "search"]),
    ] {
        assert_eq!(Host::start(arguments, &folder).tools(), tools, "{arguments:?}");
    }
}

#[test]
fn a_model_works_over_two_documents() {
    let folder = folder("two");
    std::fs::write(folder.join("shop.json"), document(60)).unwrap();
    // Of the same name in another folder.
    std::fs::create_dir_all(folder.join("old")).unwrap();
    std::fs::write(folder.join("old/shop.json"), document(60)).unwrap();
    let mut host = Host::start(&["shop.json", "old/shop.json", "--mock", "--tools", "search"], &folder);
    let found = host.call("search", json!({ "query": "show thing 7", "limit": 2 }));
    assert!(found.contains("shop.showThing7: Shows thing 7") && found.contains("old_shop.showThing7"), "{found}");
    assert_eq!(host.call("call", json!({ "id": "old_shop.showThing7" })), r#"{"number":7}"#);
    assert!(host.call("call", json!({ "id": "shop.removeThing7" })).starts_with("This call waits."));
    drop(host);
    let mut host =
        Host::start(&["shop.json", "--mock", "--tools", "code", "--allow", "DELETE *", "--deny", "*8"], &folder);
    let code = "await ops.shop.removeThing7(); try { await ops.shop.showThing8() } catch (error) { return error.code }";
    assert_eq!(host.call("execute", json!({ "code": code })), "ACCESS_DENIED");
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_ends_though_its_audit_log_fails() {
    let folder = folder("full");
    std::fs::write(folder.join("shop.json"), document(4)).unwrap();
    let arguments = ["shop.json", "--mock", "--tools", "search", "--audit", "/dev/full"];
    let mut host = Host::start(&arguments, &folder);
    assert_eq!(host.call("call", json!({ "id": "shop.showThing1" })), r#"{"number":1}"#);
    let begun = std::time::Instant::now();
    host.stdin = None;
    while host.child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "the command has not ended");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_program_goes_on_after_its_server_was_killed() {
    let folder = folder("journal");
    std::fs::write(folder.join("shop.json"), document(4)).unwrap();
    let arguments = ["shop.json", "--mock", "--tools", "code", "--journal", "programs", "--audit", "calls.jsonl"];
    // The first of two changes is agreed to beforehand.
    let arguments = [&arguments[..], &["--allow", "shop.removeThing0"]].concat();
    let code = "await ops.shop.removeThing0(); await ops.shop.removeThing1(); return 'both are gone'";
    let mut host = Host::start(&arguments, &folder);
    let waits = host.call("execute", json!({ "code": code }));
    // Calls do not wait for the log. A kill before its line is written would lose the line, and say nothing of the call.
    let log = || std::fs::read_to_string(folder.join("calls.jsonl")).unwrap_or_default();
    let begun = std::time::Instant::now();
    while !log().contains("\"shop.removeThing0\"") {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "the call is not in the log: {}", log());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    drop(host);
    let between =
        |start: &str, end: &str| waits.split_once(start).and_then(|(_, rest)| rest.split_once(end)).unwrap().0;
    let (program, call) = (between("\"resume\": \"", "\""), between("(key ", ")"));
    let mut host = Host::start(&arguments, &folder);
    let done = host.call("execute", json!({ "code": code, "resume": program, "approve": [call] }));
    assert_eq!(done, "both are gone", "{waits}");
    host.close();
    let audit = log();
    let calls: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for id in ["shop.removeThing0", "shop.removeThing1"] {
        let made = calls.iter().filter(|call| call["operation"] == id && call["outcome"] == "ok");
        assert_eq!(made.count(), 1, "{id}: {audit}");
    }
    // Without a journal, nothing is known of the program, and nobody is told that it did nothing.
    let mut other = Host::start(&arguments[..4], &folder);
    let unknown = other.call("execute", json!({ "code": code, "resume": program, "approve": [call] }));
    assert!(unknown.contains("has made stays"), "{unknown}");
}

/// Answers each request with 1 if it has the secret, and gives the address.
fn echo() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while reader.read_line(&mut request).unwrap() > 2 {}
            let body = json!({ "number": usize::from(request.contains(SECRET)) }).to_string();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).unwrap();
        }
    });
    address
}

#[test]
fn a_mock_takes_what_the_service_would_be_sent() {
    let folder = folder("rehearsed");
    std::fs::write(folder.join("shop.json"), document(60)).unwrap();
    let mut host = Host::start(&["shop.json", "--mock", "--tools", "search"], &folder);
    // Nobody is asked about a call that would not be made, and each mistake is told.
    let input = json!({ "nmae": 1, "size": 2 });
    let refused = host.call("call", json!({ "id": "shop.removeThing7", "input": input }));
    assert!(refused.starts_with("VALIDATION_ERROR: `nmae` is not in the input"), "{refused}");
    assert!(refused.contains("\n- /nmae: ") && refused.contains("\n- /size: "), "{refused}");
    assert!(host.call("call", json!({ "id": "shop.removeThing7" })).starts_with("This call waits."));
}

#[test]
fn a_mock_calls_no_server() {
    let folder = folder("mock-servers");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/mcp/faulty.py");
    let servers = json!({ "mcpServers": { "faulty": { "command": "python3", "args": ["-S", script] } } });
    std::fs::write(folder.join("servers.json"), servers.to_string()).unwrap();
    for mock in [&["--mock"][..], &[]] {
        let arguments = [&["servers.json", "--tools", "search", "--allow", "*"], mock].concat();
        let mut host = Host::start(&arguments, &folder);
        // The server would exit.
        let answer = host.call("call", json!({ "id": "faulty.exit", "input": {} }));
        assert_eq!(answer.starts_with("EXECUTION_ERROR"), mock.is_empty(), "{answer}");
    }
}

/// The command over HTTP, with what it told before it listened, and after it.
struct Listener {
    child: Child,
    address: String,
    told: Vec<String>,
    log: Arc<Mutex<String>>,
}

impl Listener {
    fn start(arguments: &[&str], folder: &Path) -> Self {
        Self::start_with(arguments, folder, &[])
    }

    fn start_with(arguments: &[&str], folder: &Path, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        command.arg("serve").args(arguments).args(["--http", "127.0.0.1:0"]).current_dir(folder);
        command.envs(variables.iter().copied()).env("ANN_TOKEN", "anns-own-token");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let (mut told, mut address) = (Vec::new(), None);
        for line in &mut lines {
            if let Some(rest) = line.strip_prefix("http://") {
                address = Some(rest.replace("/docs", ""));
                break;
            }
            told.push(line);
        }
        // What it tells later is read, so that it can tell it.
        let log = Arc::<Mutex<String>>::default();
        let kept = log.clone();
        std::thread::spawn(move || lines.for_each(|line| kept.lock().unwrap().push_str(&(line + "\n"))));
        Self { child, address: address.unwrap_or_else(|| panic!("{told:?}")), told, log }
    }

    /// Waits until the log has a text, and gives the line with it.
    fn logged(&self, text: &str) -> String {
        let begun = std::time::Instant::now();
        loop {
            let log = self.log.lock().unwrap().clone();
            if let Some(line) = log.lines().find(|line| line.contains(text)) {
                return line.to_owned();
            }
            assert!(begun.elapsed() < std::time::Duration::from_secs(30), "no `{text}` in the log: {log}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Sends a request without a body, and gives the whole answer.
    fn ask(&self, line: &str, headers: &str) -> String {
        let mut stream = std::net::TcpStream::connect(&self.address).unwrap();
        write!(stream, "{line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Asks the command to end, as a supervisor does.
    #[cfg(unix)]
    fn end(&self) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
