//! The command `ops` with MCP servers: real ones, which `tests/peers/install` installs.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// A folder of its own for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-mcp-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

struct Ran {
    status: i32,
    stdout: String,
    stderr: String,
}

impl Ran {
    #[track_caller]
    fn good(self) -> String {
        assert_eq!(self.status, 0, "{}", self.stderr);
        self.stdout
    }

    #[track_caller]
    fn json(self) -> Value {
        serde_json::from_str(&self.good()).unwrap()
    }

    /// The message of a failure.
    #[track_caller]
    fn failed(self, status: i32) -> String {
        assert_eq!(self.status, status, "{}{}", self.stdout, self.stderr);
        self.stderr
    }
}

fn ops(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    let output = command.args(arguments).current_dir(folder).env("SHOP_TOKEN", "s3cr3t").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let ran = Ran { status: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) };
    assert!(!ran.stderr.contains("s3cr3t") && !ran.stdout.contains("s3cr3t"), "no secret shows");
    ran
}

/// Runs a command with the server `everything` behind it.
fn with_everything(folder: &Path, arguments: &[&str]) -> Ran {
    let script = script();
    ops(folder, &[arguments, &["--", "node", &script]].concat())
}

/// The server `everything`, of npm.
fn script() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/peers/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    assert!(script.exists(), "{} is missing: run tests/peers/install", script.display());
    script.to_str().unwrap().to_owned()
}

/// A configuration of two servers that are one, and of one that is not used.
fn config(folder: &Path) {
    let server = json!({ "command": "node", "args": [script()] });
    let mut other = server.clone();
    other["disabled"] = true.into();
    let servers = json!({ "every.thing": server, "second": server, "third": other });
    std::fs::write(folder.join("mcp.json"), json!({ "mcpServers": servers }).to_string()).unwrap();
}

#[test]
fn a_snapshot_is_written_compared_and_generated_from() {
    let folder = folder("snapshot");
    let said = with_everything(&folder, &["snapshot", "-o", "everything.json"]);
    assert!(said.stderr.starts_with("everything.json: "), "{}", said.stderr);
    said.good();
    let text = std::fs::read_to_string(folder.join("everything.json")).unwrap();
    let snapshot: Value = serde_json::from_str(&text).unwrap();
    let tools = snapshot["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && names.contains(&"echo") && names.len() > 5, "{names:?}");
    assert_eq!(snapshot["serverInfo"]["name"], "mcp-servers/everything");
    assert_eq!(with_everything(&folder, &["snapshot"]).good(), text, "a snapshot does not change by itself");

    // As it was.
    assert_eq!(with_everything(&folder, &["snapshot", "--check", "-o", "everything.json"]).good(), "");
    // The committed snapshot is of a server that asked for less, and gave more.
    let mut old = snapshot.clone();
    for tool in old["tools"].as_array_mut().unwrap() {
        match tool["name"].as_str().unwrap() {
            "echo" => {
                tool["inputSchema"]["required"] = json!([]);
                tool["description"] = "Said it otherwise".into();
            }
            "get-structured-content" => tool["outputSchema"]["properties"]["wind"] = json!({ "type": "number" }),
            _ => {}
        }
    }
    old["tools"].as_array_mut().unwrap().push(json!({ "name": "gone", "inputSchema": {} }));
    std::fs::write(folder.join("old.json"), old.to_string()).unwrap();
    let ran = with_everything(&folder, &["snapshot", "--check", "-o", "old.json"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            "change: `echo` /description: the description changed",
            "breaking: `echo` /inputSchema/properties/message: it is required now",
            "change: `get-structured-content` /outputSchema/properties/wind: the property is gone",
            "breaking: `gone`: the tool is gone",
        ]
    );
    assert!(ran.failed(1).contains("4 changes, of which 2 break callers"));

    let out = folder.join("out");
    let said = ops(&folder, &["generate", "everything.json", "-o", "out"]);
    assert!(said.stderr.contains(&format!("{} operations", names.len())), "{}", said.stderr);
    said.good();
    let module = std::fs::read_to_string(out.join("everything.rs")).unwrap();
    assert!(module.contains("ops::McpBinding::new(\"get-structured-content\", ops::McpOutput::Structured)"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn tools_are_inspected_and_called() {
    let folder = folder("call");
    with_everything(&folder, &["snapshot", "-o", "everything.json"]).good();
    let table = with_everything(&folder, &["inspect", "--namespace", "demo"]).good();
    assert!(
        table.contains("demo.echo") && table.contains("message: string") && table.contains("content blocks"),
        "{table}"
    );
    let of_file = ops(&folder, &["inspect", "everything.json", "--json"]).json();
    let of_server = with_everything(&folder, &["inspect", "--json", "--namespace", "everything"]).json();
    assert_eq!(of_file["modules"][0]["operations"], of_server["modules"][0]["operations"]);

    let answer = with_everything(&folder, &["call", "echo", "message=hello"]).json();
    assert_eq!(answer["data"], json!([{ "type": "text", "text": "Echo: hello" }]));
    assert_eq!(answer["meta"]["source"], "mcp");
    let said = with_everything(&folder, &["call", "--text", "echo", "message=a\t\u{1b}[1m\"b\"\n"]).good();
    assert_eq!(said, "Echo: a\t\u{1b}[1m\"b\"\n", "to a program, as it is");
    // What is no text is JSON, as without its envelope.
    let structured = ["get-structured-content", "location=Chicago"];
    let json =
        with_everything(&folder, &[&["call", "--text", "everything.json"], structured.as_slice()].concat()).json();
    assert!(json["temperature"].is_number());
    assert!(with_everything(&folder, &["call", "--text", "--raw", "echo"]).failed(2).contains("--raw"));
    // By its id, with the schemas of the snapshot.
    let weather =
        with_everything(&folder, &["call", "--raw", "everything.json", "get-structured-content", "location=Chicago"]);
    assert!(weather.json()["temperature"].is_number());
    let sum = with_everything(&folder, &["call", "--raw", "get-sum", "--input", r#"{"a": 40}"#, "b=2"]).good();
    assert!(sum.contains("42"), "{sum}");

    assert!(with_everything(&folder, &["call", "echo"]).failed(2).contains("message"));
    assert!(
        with_everything(&folder, &["call", "ech"])
            .failed(2)
            .contains("the server has no operation `ech`: did you mean `echo`?")
    );
    assert!(ops(&folder, &["call", "everything.json", "echo", "message=x"]).failed(2).contains("name its server"));
    assert!(ops(&folder, &["snapshot"]).failed(2).contains("name one server"));
    let unknown = with_everything(&folder, &["call", "echo", "mesage=x"]).failed(2);
    assert!(unknown.contains("unknown argument `mesage`: did you mean `message`?"), "{unknown}");
    let exits = ops(&folder, &["call", "x", "--", "sh", "-c", "echo boom >&2; exit 3"]).failed(1);
    assert!(exits.contains("exit status: 3") && exits.contains("boom"), "{exits}");
    std::fs::write(folder.join("own.json"), r#"{"mine":true}"#).unwrap();
    let kept = with_everything(&folder, &["snapshot", "-o", "own.json"]).failed(1);
    assert!(kept.contains("--force") && kept.contains("own.json"), "{kept}");
    assert_eq!(std::fs::read_to_string(folder.join("own.json")).unwrap(), r#"{"mine":true}"#);
    with_everything(&folder, &["snapshot", "-o", "own.json", "--force"]).good();
    with_everything(&folder, &["snapshot", "-o", "own.json"]).good();
    assert!(ops(&folder, &["call", "echo", "--", "/no/such/program"]).failed(1).contains("/no/such/program"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn servers_of_a_configuration() {
    let folder = folder("config");
    config(&folder);
    let ran = ops(&folder, &["inspect", "mcp.json", "--json"]);
    let modules = ran.json()["modules"].clone();
    let namespaces: Vec<_> = modules.as_array().unwrap().iter().map(|module| module["namespace"].clone()).collect();
    assert_eq!(namespaces, ["every_thing", "second"]);
    let of_one = ops(&folder, &["inspect", "mcp.json", "--server", "second", "--include", "echo", "--json"]).json();
    assert_eq!(of_one["modules"][0]["operations"].as_array().unwrap().len(), 1);

    for arguments in [
        ["mcp.json", "every_thing.echo", "message=x"].as_slice(),
        &["mcp.json", "echo", "message=x", "--server", "second"],
        &["echo", "message=x", "--config", "mcp.json", "--server", "every.thing"],
    ] {
        let answer = ops(&folder, &[&["call", "--raw"], arguments].concat()).json();
        assert_eq!(answer[0]["text"], "Echo: x", "{arguments:?}");
    }
    assert!(ops(&folder, &["call", "mcp.json", "echo", "message=x"]).failed(2).contains("which server has `echo`?"));
    assert!(ops(&folder, &["call", "mcp.json", "echo", "--server", "fourth"]).failed(2).contains("fourth"));

    // A server that does not start hides no other, and is told; so is one of two that has the operation that is asked for.
    let mut servers: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("mcp.json")).unwrap()).unwrap();
    servers["mcpServers"]["dead"] = json!({ "command": "/no/such/program" });
    std::fs::write(folder.join("half.json"), servers.to_string()).unwrap();
    let half = ops(&folder, &["inspect", "half.json"]);
    assert!(half.stdout.contains("second.echo"), "{}", half.stdout);
    assert!(half.failed(1).contains("`dead`: "));
    ops(&folder, &["inspect", "half.json", "second.echo"]).good();
    let unknown = ops(&folder, &["inspect", "half.json", "dead.ech"]).failed(2);
    assert!(unknown.contains("`dead`: ") && unknown.contains("no operation `dead.ech`"), "{unknown}");
    let dead = ops(&folder, &["inspect", "half.json", "--server", "dead"]).failed(1);
    assert!(dead.contains("`dead`: ") && dead.contains("/no/such/program"), "{dead}");

    // So it is with one that the file has wrong, and one that is not used need not be right.
    servers["mcpServers"]["dead"] = json!({ "command": "x", "env": { "TOKEN": "${OPS_NO_SUCH}" } });
    servers["mcpServers"]["old"] = json!({ "disabled": true });
    std::fs::write(folder.join("wrong.json"), servers.to_string()).unwrap();
    let wrong = ops(&folder, &["snapshot", "--config", "wrong.json", "-o", "of-wrong"]).failed(1);
    assert!(wrong.contains("`dead`") && wrong.contains("`OPS_NO_SUCH` is not set"), "{wrong}");
    assert!(folder.join("of-wrong/second.json").exists() && !folder.join("of-wrong/dead.json").exists());
    ops(&folder, &["call", "wrong.json", "second.echo", "message=x"]).good();
    let dead = ops(&folder, &["call", "wrong.json", "dead.echo", "message=x"]).failed(2);
    assert!(dead.contains("`OPS_NO_SUCH` is not set") && !dead.contains("`old`"), "{dead}");

    ops(&folder, &["snapshot", "--config", "mcp.json", "-o", "tools"]).good();
    let read = |name: &str| std::fs::read_to_string(folder.join("tools").join(name)).unwrap();
    assert_eq!(read("every_thing.json"), read("second.json"));
    assert!(!folder.join("tools/third.json").exists(), "what is disabled is left alone");
    ops(&folder, &["snapshot", "--config", "mcp.json", "-o", "tools", "--check"]).good();
    assert!(ops(&folder, &["snapshot", "--config", "mcp.json"]).failed(2).contains("2 servers"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// The server over HTTP, which ends with it.
struct Listening(Child);

impl Drop for Listening {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// The server over HTTP, and its port; `None` if it ends at once, as it does if another program has taken the port.
fn listening() -> Option<(Listening, u16)> {
    // A port that was free a moment ago: the server takes no other way to choose one.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("node");
    command.args([script().as_str(), "streamableHttp"]).env("PORT", port.to_string());
    let mut server = Listening(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(server.0.stderr.take().unwrap()).lines();
    let listens = lines.any(|line| line.unwrap().contains("listening on port"));
    std::thread::spawn(move || lines.for_each(drop));
    // It says so in any case, just before it ends.
    std::thread::sleep(Duration::from_millis(200));
    (listens && server.0.try_wait().unwrap().is_none()).then_some((server, port))
}

#[test]
fn a_server_at_a_url() {
    let folder = folder("url");
    let (server, port) = (0..3).find_map(|_| listening()).expect("the server ended, three times");
    let url = format!("http://127.0.0.1:{port}/mcp");
    let bearer = ["--bearer-env", "SHOP_TOKEN"];
    ops(&folder, &[["snapshot", "--url", &url, "-o", "http.json"].as_slice(), &bearer].concat()).good();
    let answer = ops(&folder, &[["call", "--raw", "echo", "message=far", "--url", &url].as_slice(), &bearer].concat());
    assert_eq!(answer.json()[0]["text"], "Echo: far");
    let table = ops(&folder, &["inspect", "--url", &url]).good();
    assert!(table.contains("mcp_servers_everything.echo"), "{table}");
    assert!(ops(&folder, &["inspect", "--url", "nowhere"]).failed(2).contains("no URL"));
    drop(server);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_a_server_lists_cannot_control_a_terminal() {
    let folder = folder("terminal");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/mcp/faulty.py");
    let environment = json!({ "FAULTY": "remote", "REMOTE": "https://x.example/\u{9b}2J\u{202e}" });
    let server = json!({ "command": "python3", "args": ["-S", script], "env": environment });
    std::fs::write(folder.join("mcp.json"), json!({ "mcpServers": { "faulty": server } }).to_string()).unwrap();
    let shown = ops(&folder, &["snapshot", "--config", "mcp.json"]).good();
    assert!(shown.contains(r"https://x.example/\u009b2J\u202e") && !shown.contains('\u{9b}'), "{shown}");
    // It is the same snapshot.
    std::fs::write(folder.join("shown.json"), shown).unwrap();
    ops(&folder, &["snapshot", "--config", "mcp.json", "-o", "shown.json", "--check"]).good();
    std::fs::remove_dir_all(folder).unwrap();
}
