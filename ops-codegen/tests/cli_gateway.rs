//! `ops serve --mcp`: documents behind a few tools, as a host's child and over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

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
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        command.arg("serve").args(arguments).current_dir(folder).env("SHOP_SECRET", SECRET);
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
fn a_configuration_names_documents_credentials_and_rules() {
    let folder = folder("config");
    std::fs::write(folder.join("things.json"), document(60)).unwrap();
    let config = format!(
        "tools = \"search\"\nexclude = [\"*9\"]\n\n[apis.shop]\nspec = \"things.json\"\nbase-url = \"http://{}\"\n\
         token = {{ env = \"SHOP_SECRET\" }}\n\n[policy]\ndeny = [\"DELETE *\"]\n\n[audit]\nfile = \"calls.jsonl\"\n",
        echo()
    );
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    let mut host = Host::start(&["--config", "gateway.toml"], &folder);
    let answer = host.call("call", json!({ "id": "shop.showThing7" }));
    assert_eq!(answer, r#"{"number":1}"#);
    assert!(host.call("call", json!({ "id": "shop.showThing9" })).starts_with("There is no operation"));
    assert!(host.call("call", json!({ "id": "shop.removeThing7" })).starts_with("ACCESS_DENIED"));
    host.close();
    let log = std::fs::read_to_string(folder.join("calls.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = lines.iter().map(|line| (line["operation"].clone(), line["outcome"].clone())).collect();
    assert_eq!(told, [(json!("shop.showThing7"), json!("ok")), (json!("shop.removeThing7"), json!("ACCESS_DENIED"))]);
    assert!(!log.contains(SECRET));
}

/// Answers `POST /token` with a token for the one that came, and all else with 1 if it has that token. Each request is kept.
fn exchanging(kept: Arc<Mutex<Vec<String>>>) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let start = head.len();
                if reader.read_line(&mut head).unwrap() <= 2 {
                    break;
                }
                let line = head[start..].to_lowercase();
                length = line.strip_prefix("content-length:").map_or(length, |length| length.trim().parse().unwrap());
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer = if head.starts_with("POST /token ") {
                json!({ "access_token": "for-the-shop", "token_type": "Bearer",
                    "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "expires_in": 600 })
            } else {
                json!({ "number": usize::from(head.contains("authorization: Bearer for-the-shop\r\n")) })
            };
            kept.lock().unwrap().push(format!("{head}{}", String::from_utf8(body).unwrap()));
            let answer = answer.to_string();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}", answer.len()).unwrap();
        }
    });
    address
}

/// Calls an operation over HTTP, and gives the whole answer.
fn post(address: &str, operation: &str, token: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let path = operation.replace('.', "/");
    write!(stream, "POST /operations/{path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_callers_token_is_exchanged() {
    let folder = folder("exchange");
    std::fs::write(folder.join("things.json"), document(60)).unwrap();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let upstream = exchanging(kept.clone());
    let config = format!(
        "[apis.shop]\nspec = \"things.json\"\nbase-url = \"http://{upstream}\"\n\
         caller-token = {{ exchange = {{ token-url = \"http://{upstream}/token\", client-id = \"gateway\", \
         client-secret = {{ env = \"SHOP_SECRET\" }}, audience = \"https://shop.example.com\" }} }}\n\n\
         [callers.ann]\ntoken = {{ env = \"ANN_TOKEN\" }}\n"
    );
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.args(["serve", "--config", "gateway.toml", "--http", "127.0.0.1:0"]).current_dir(&folder);
    command.env("SHOP_SECRET", SECRET).env("ANN_TOKEN", "anns-own-token").stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let address = told.map(|line| line.strip_prefix("http://").map(|rest| rest.replace("/docs", "")));
    let address = address.flatten().next().unwrap();

    let answer = post(&address, "shop.showThing7", "anns-own-token");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#"{"number":1}"#), "{answer}");
    // Once is enough for this caller; whoever is no caller reaches nothing.
    assert!(post(&address, "shop.showThing7", "anns-own-token").contains(r#"{"number":1}"#));
    let refused = post(&address, "shop.showThing7", "for-the-shop");
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let _ = child.kill();
    let _ = child.wait();

    let kept = kept.lock().unwrap();
    let lines: Vec<&str> = kept.iter().map(|request| request.lines().next().unwrap()).collect();
    assert_eq!(lines, ["POST /token HTTP/1.1", "GET /things/7 HTTP/1.1", "GET /things/7 HTTP/1.1"]);
    let form = kept[0].rsplit("\r\n").next().unwrap();
    assert!(form.contains("subject_token=anns-own-token&"), "{form}");
    assert!(form.contains("audience=https%3A%2F%2Fshop.example.com"), "{form}");
    assert!(!form.contains(SECRET) && kept[0].contains("authorization: Basic "), "{}", kept[0]);
    assert!(kept[1..].iter().all(|request| !request.contains("anns-own-token")));
}

#[test]
fn a_host_starts_what_its_configuration_says() {
    let folder = folder("host");
    std::fs::write(folder.join("shop.json"), document(60)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    // What is no path stays as it is, also if a folder has that name.
    std::fs::create_dir_all(folder.join("removeThing3")).unwrap();
    let arguments = [
        "serve",
        "shop.json",
        "--mock",
        "--tools",
        "search",
        "--allow=removeThing3",
        "--audit",
        "calls.jsonl",
        "--print-config",
    ];
    let output = command.args(arguments).current_dir(&folder).output().unwrap();
    let config: Value = serde_json::from_slice(&output.stdout).unwrap();
    let server = &config["mcpServers"]["ops"];
    assert_eq!(server["command"], env!("CARGO_BIN_EXE_ops"));
    let arguments: Vec<&str> = server["args"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    let audit = folder.canonicalize().unwrap().join("calls.jsonl");
    assert_eq!(
        arguments[2..],
        ["--mock", "--tools", "search", "--allow=removeThing3", "--audit", audit.to_str().unwrap()]
    );
    // From anywhere.
    let mut host = Host::start(&arguments[1..], Path::new("/"));
    assert_eq!(host.call("call", json!({ "id": "shop.showThing3" })), r#"{"number":3}"#);
}

/// An argument that no JSON can hold is told.
#[cfg(unix)]
#[test]
fn a_configuration_holds_text_only() {
    let folder = folder("bytes");
    std::fs::write(folder.join("shop.json"), document(3)).unwrap();
    let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"caf\xe9");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.args(["serve", "shop.json", "--print-config", "--audit"]).arg(name).current_dir(&folder);
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("`caf\u{fffd}` is not UTF-8"), "{stderr}");
}

/// Starts the command, ends its input, and gives what it told.
fn told(arguments: &[&str], folder: &Path) -> String {
    told_with(arguments, folder, ("UNUSED", ""))
}

/// The same, with a variable in its environment.
fn told_with(arguments: &[&str], folder: &Path, (name, value): (&str, &str)) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.arg("serve").args(arguments).current_dir(folder).env(name, value);
    let output = command.stdin(Stdio::null()).output().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn credentials_that_are_missing_are_told() {
    let folder = folder("unset");
    let mut shop: Value = serde_json::from_str(&document(4)).unwrap();
    shop["components"] = json!({ "securitySchemes": {
        "shopToken": { "type": "http", "scheme": "bearer" }, "card": { "type": "mutualTLS" } } });
    shop["security"] = json!([{ "shopToken": [] }]);
    // For everybody, and for who has a certificate, which the document's reader cannot know.
    shop["paths"]["/things/0"]["get"]["security"] = json!([]);
    shop["paths"]["/things/1"]["get"]["security"] = json!([{ "card": [] }]);
    std::fs::write(folder.join("shop.json"), shop.to_string()).unwrap();
    let lacking = "warning: shop.json: 2 operations need credentials, such as `shopToken`, and they are not set: set \
                   `SHOP_SHOP_TOKEN` or `SHOP_TOKEN`\n4 operations; 0 diagnostics\n";
    // A blank variable is no token, and that of another document is not either.
    for (variable, expected) in [
        (("SHOP_TOKEN", "  "), lacking),
        (("STORE_TOKEN", SECRET), lacking),
        (("SHOP_TOKEN", SECRET), "4 operations; 0 diagnostics\n"),
        (("SHOP_SHOP_TOKEN", SECRET), "4 operations; 0 diagnostics\n"),
    ] {
        assert_eq!(
            told_with(&["shop.json", "--base-url", "http://x.test"], &folder, variable),
            expected,
            "{variable:?}"
        );
    }
    // Two faults at once: what is set has a misspelt name, and the environment has nothing.
    let config =
        "[apis.shop]\nspec = 'shop.json'\nbase-url = 'http://x.test'\ncredentials = { shopTokn = { env = 'OWN' } }\n";
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    let said = told_with(&["--config", "gateway.toml", "--mcp", "stdio"], &folder, ("OWN", SECRET));
    assert!(said.contains("some for `shopTokn`, which no operation names: did you mean `shopToken`?"), "{said}");
    assert!(!said.contains(SECRET), "{said}");
    // A token is no key.
    shop["components"]["securitySchemes"]["shopToken"] = json!({ "type": "apiKey", "in": "query", "name": "k" });
    std::fs::write(folder.join("keyed.json"), shop.to_string()).unwrap();
    let config = "[apis.keyed]\nspec = 'keyed.json'\nbase-url = 'http://x.test'\ntoken = { env = 'OWN' }\n";
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    let said = told_with(&["--config", "gateway.toml", "--mcp", "stdio"], &folder, ("OWN", SECRET));
    let kind = "and those that are set are of another kind: set `KEYED_SHOP_TOKEN` or `KEYED_API_KEY`\n";
    assert!(said.contains(kind), "{said}");
    // Nothing is sent by a mock, and a header may hold what the document does not know.
    for more in ["--mock", "--header=X-Key: k"] {
        assert!(
            !told(&["shop.json", "--base-url", "http://x.test", "--mcp", "stdio", more], &folder)
                .contains("credentials"),
            "{more}"
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_command_that_its_own_servers_start_ends() {
    let folder = folder("itself");
    std::fs::write(folder.join("shop.json"), document(4)).unwrap();
    let own = json!({ "command": env!("CARGO_BIN_EXE_ops"), "args": ["serve", "--config", folder.join("gateway.toml"), "--mcp", "stdio"] });
    std::fs::write(folder.join(".mcp.json"), json!({ "mcpServers": { "ops": own } }).to_string()).unwrap();
    let config = "[apis.shop]\nspec = 'shop.json'\nbase-url = 'http://x.test'\n[mcp]\nconfig = '.mcp.json'\n";
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    let said = told(&["--config", "gateway.toml", "--mcp", "stdio"], &folder);
    assert!(said.contains("`.mcp.json` names a server that is this very command"), "{said}");
    // The rest is served all the same.
    assert!(said.contains("\n4 operations;"), "{said}");
    // A folder's hidden files are not meant.
    assert_eq!(told(&[".", "--base-url", "http://x.test"], &folder), "4 operations; 0 diagnostics\n");
}

#[test]
fn what_has_no_effect_is_told() {
    let folder = folder("idle");
    std::fs::write(folder.join("shop.json"), document(4)).unwrap();
    std::fs::write(folder.join("none.json"), "[]").unwrap();
    let config = "[apis.shop]\nspec = 'shop.json'\n[policy]\ndeny = ['shop.remveThing0']\n";
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    // A rule that protects nothing is none to start with; a filter that is idle does no harm.
    let said = told(&["--config", "gateway.toml", "--exclude", "tag:admin", "--mcp", "stdio", "--mock"], &folder);
    let rule = "`[policy] deny` has `shop.remveThing0`, which matches no operation: did you mean `shop.removeThing0`";
    assert!(said.starts_with("error: ") && said.contains(rule) && said.contains("`tag:admin`"), "{said}");
    let said = told(&["shop.json", "--exclude", "tag:admin", "--mock", "--mcp", "stdio"], &folder);
    for expected in ["warning: `--exclude` has `tag:admin`, which matches no operation\n", "4 operations, answered"] {
        assert!(said.contains(expected), "{said}");
    }
    // A server that is not asked may have what the pattern means.
    std::fs::write(folder.join("servers.json"), r#"{ "mcpServers": { "x": { "command": "true" } } }"#).unwrap();
    std::fs::write(folder.join("gateway.toml"), format!("{config}[mcp]\nconfig = 'servers.json'\n")).unwrap();
    let said = told(&["--config", "gateway.toml", "--print-config"], &folder);
    assert!(said.starts_with(&format!("warning: {rule}")) && said.contains("not asked here)"), "{said}");
    let said = told(&["shop.json", "none.json"], &folder);
    assert!(said.contains("none.json: it describes no operations") && said.contains("4 operations;"), "{said}");
}

/// A host starts the command with few variables: those of callers over HTTP are not among them.
#[test]
fn over_a_pipe_no_token_of_a_caller_is_needed() {
    let folder = folder("pipe");
    std::fs::write(folder.join("shop.json"), document(4)).unwrap();
    let config = "[apis.shop]\nspec = 'shop.json'\n[callers.ann]\ntoken = { env = 'OPS_NO_SUCH' }\n";
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    let said = told(&["--config", "gateway.toml"], &folder);
    assert!(said.contains("4 operations; ") && !said.contains("OPS_NO_SUCH"), "{said}");
    let said = told(&["--config", "gateway.toml", "--http", "127.0.0.1:0"], &folder);
    assert!(said.contains("`callers.ann.token`: the environment variable `OPS_NO_SUCH` is not set"), "{said}");
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
fn what_cannot_be_served_says_why() {
    let folder = folder("wrong");
    std::fs::write(folder.join("empty.json"), r#"{"mcpServers":{}}"#).unwrap();
    std::fs::write(folder.join("typo.json"), r#"{"mcpServers":{"x":{"comand":"x"}}}"#).unwrap();
    std::fs::write(folder.join("a.json"), document(4)).unwrap();
    std::fs::write(folder.join("b.json"), document(4)).unwrap();
    let file = |text: &str| std::fs::write(folder.join("gateway.toml"), text).unwrap();
    for (config, arguments, status, said) in [
        ("", &["a.json", "b.json", "--base-url", "http://x"][..], 2, "for one document, and there are several"),
        ("", &["none.json"], 3, "none.json"),
        (
            "",
            &["a.json", "none.json", "no.json", "--print-config"],
            2,
            "`none.json` does not exist; `no.json` does not",
        ),
        ("", &["ab.json", "--print-config"], 2, "`ab.json` does not exist: did you mean `a.json`"),
        (
            "",
            &["a.json", "gateway.toml", "--print-config"],
            2,
            "`gateway.toml` is no document: pass the file of a gateway by `--config`",
        ),
        ("tool = 'all'", &["a.json", "--config", "gateway.toml", "--print-config"], 2, "unknown field `tool`"),
        (
            "",
            &["a.json", "--deny", "a.nothing", "--print-config"],
            2,
            "`--deny` has `a.nothing`, which matches no operation",
        ),
        (
            "",
            &["a.json", "--deny", "DELTE *"],
            2,
            "`--deny` has `DELTE *`: `DELTE` is no method: did you mean `DELETE`?",
        ),
        (
            "",
            &["a.json", "--include", "nothing"],
            2,
            "no operations to serve: `--include` has `nothing`, which matches",
        ),
        ("", &["a.json", "empty.json"], 2, "`empty.json` names no server"),
        ("", &["a.json", "typo.json"], 2, "`typo.json`: "),
        ("", &["a.json", "--bearer-file", "gateway.toml"], 2, "`gateway.toml` is empty"),
        ("", &["a.json", "--mock", "--print-config"], 2, "`--tools search`"),
        ("", &["a.json", "--mcp", "http", "--print-config"], 2, "it would serve HTTP"),
        ("tool = 'all'", &["--config", "gateway.toml"], 2, "unknown field `tool`"),
        // Two faults at once: the secret is asked for first.
        (
            "[apis.a]\nspec = 'none.json'\ntoken = { env = 'OPS_NO_SUCH' }",
            &["--config", "gateway.toml"],
            2,
            "`gateway.toml`, `apis.a.token`: the environment variable `OPS_NO_SUCH` is not set",
        ),
        ("", &["a.json", "--http", "0.0.0.0:0"], 2, "name who may"),
        (
            "[apis.a]\nspec = 'a.json'\ntoken = { file = 'a.json' }\ncaller-token = 'pass-on'",
            &["--config", "gateway.toml"],
            2,
            "`a` has `token` and `caller-token`",
        ),
        (
            "[apis.a]\nspec = 'a.json'\ncaller-token = { exchange = { token-url = 'https://x', client-secret = { file = 'a.json' } } }",
            &["--config", "gateway.toml"],
            2,
            "has `client-secret`, but no `client-id`",
        ),
        (
            "[jwt]\nissuer = 'https://x'\naudience = 'y'\n[callers.ann]\ntoken = { file = 'a.json' }",
            &["a.json", "--config", "gateway.toml"],
            2,
            "`[jwt]` and `[callers]`",
        ),
        (
            "[jwt]\nissuer = 'https://x'\naudience = 'y'\n[callers.ann]\ntoken = { env = 'OPS_NO_SUCH' }",
            &["a.json", "--config", "gateway.toml", "--print-config"],
            2,
            "`[jwt]` and `[callers]`",
        ),
        ("[jwt]\nissuer = 'http://x.test'\naudience = 'y'", &["a.json", "--config", "gateway.toml"], 2, "`[jwt]`: "),
        ("", &["a.json", "--http", "x"], 1, "`x` cannot be listened at"),
    ] {
        file(config);
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        let output = command.arg("serve").args(arguments).current_dir(&folder).stdin(Stdio::null()).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(said), "{arguments:?}: {told}");
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {told}");
    }
}

/// The command over HTTP, with what it told before it listened.
struct Listener {
    child: Child,
    address: String,
    told: Vec<String>,
}

impl Listener {
    fn start(arguments: &[&str], folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        command.arg("serve").args(arguments).args(["--http", "127.0.0.1:0"]).current_dir(folder);
        command.env("ANN_TOKEN", "anns-own-token").stdin(Stdio::null()).stdout(Stdio::null());
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
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address: address.unwrap_or_else(|| panic!("{told:?}")), told }
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

#[test]
fn only_callers_call() {
    let folder = folder("callers");
    std::fs::write(folder.join("things.json"), document(4)).unwrap();
    let config = format!(
        "hosts = ['tools.example.com', '127.0.0.1']\norigins = ['https://app.example.com']\n[apis.shop]\nspec = 'things.json'\nbase-url = 'http://{}'\n\
         [callers.ann]\ntoken = {{ env = 'ANN_TOKEN' }}\n",
        echo()
    );
    std::fs::write(folder.join("gateway.toml"), config).unwrap();
    let server = Listener::start(&["--config", "gateway.toml", "--mcp", "http"], &folder);
    let token = "Authorization: Bearer anns-own-token\r\n";
    // The document asks for nothing; the gateway's own credentials are used all the same.
    for (line, headers, status) in [
        ("GET /things/1", String::new(), 401),
        ("POST /operations/shop/removeThing1", String::new(), 401),
        ("DELETE /things/1", "Authorization: Bearer other\r\n".to_owned(), 401),
        ("GET /things/1", token.to_owned(), 200),
        ("GET /openapi.json", String::new(), 200),
        ("GET /healthz", String::new(), 200),
        // By the names that the configuration has, and no others.
        ("GET /things/1", format!("{token}Host: evil.example\r\n"), 400),
    ] {
        let answer = server.ask(line, &headers);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line} {headers}: {answer}");
    }
    // Pages of the origin ask before they send anything.
    for path in ["/things/1", "/mcp"] {
        for (origin, is_let_in) in [("https://app.example.com", true), ("https://evil.example", false)] {
            let headers = format!("Origin: {origin}\r\nAccess-Control-Request-Method: POST\r\n");
            let answer = server.ask(&format!("OPTIONS {path}"), &headers);
            let allowed = answer.contains(&format!("access-control-allow-origin: {origin}\r\n"));
            assert_eq!(allowed, is_let_in, "{path}: {answer}");
            // What they send then is taken as well.
            let answer = server.ask(&format!("POST {path}"), &format!("{token}Origin: {origin}\r\n"));
            assert_eq!(!answer.starts_with("HTTP/1.1 403 "), is_let_in, "{path}: {answer}");
        }
    }
    for path in ["/things/1", "/mcp"] {
        for (host, is_known) in [("tools.example.com", true), ("tools.example.com:8443", true), ("evil.example", false)]
        {
            let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{token}\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert_eq!(!answer.starts_with("HTTP/1.1 403 "), is_known, "{path} {host}: {answer}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_server_that_is_asked_to_end_answers_first() {
    let folder = folder("ends");
    std::fs::write(folder.join("things.json"), document(4)).unwrap();
    // A service that answers after the server was asked to end.
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = service.local_addr().unwrap();
    let base = format!("http://{address}");
    let arguments = ["things.json", "--base-url", &base, "--audit", "calls.jsonl", "--mcp", "http"];
    let mut server = Listener::start(&arguments, &folder);
    let request = {
        let address = server.address.clone();
        std::thread::spawn(move || {
            let mut stream = std::net::TcpStream::connect(&address).unwrap();
            write!(stream, "DELETE /things/1 HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        })
    };
    let (mut stream, _) = service.accept().unwrap();
    let mut head = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
    assert!(head.next().unwrap().starts_with("DELETE /things/1 "));
    server.end();
    std::thread::sleep(std::time::Duration::from_millis(500));
    stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").unwrap();
    drop(stream);
    assert!(request.join().unwrap().starts_with("HTTP/1.1 204 "));
    assert!(server.child.wait().unwrap().success());
    let log = std::fs::read_to_string(folder.join("calls.jsonl")).unwrap();
    let line: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!((&line["operation"], &line["outcome"]), (&json!("things.removeThing1"), &json!("ok")), "{log}");
}

#[test]
fn documents_of_one_name_or_one_path_are_told() {
    let folder = folder("alike");
    std::fs::write(folder.join("a.json"), document(4)).unwrap();
    std::fs::write(folder.join("a.yaml"), document(2)).unwrap();
    std::fs::write(folder.join("bad.json"), "{").unwrap();
    let mut server = Listener::start(&[".", "--mock", "--mcp", "http"], &folder);
    let begun = server.told.join("\n");
    for expected in ["namespace is longer", "a_yaml", "a_json", "bad.json"] {
        assert!(begun.contains(expected), "{expected}: {begun}");
    }
    // Two have this path.
    assert!(
        server.ask("DELETE /things/0", "").contains("/operations/a_json/removeThing0, /operations/a_yaml/removeThing0")
    );
    assert!(server.ask("DELETE /things/1", "").starts_with("HTTP/1.1 204 "));
    // A rule for the short name would protect nothing; that `bad.json` may have it is told, and the rest is served.
    let said = told(&["a.json", "a.yaml", "--deny", "a.removeThing0", "--mock", "--mcp", "stdio"], &folder);
    assert!(
        said.contains("`--deny` has `a.removeThing0`, which matches no operation") && !said.contains("operations,"),
        "{said}"
    );
    #[cfg(unix)]
    {
        server.end();
        assert_eq!(server.child.wait().unwrap().code(), Some(3));
    }
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
