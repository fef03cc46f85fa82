//! `ops serve`: the command answers requests of a document with examples.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const DOCUMENT: &str = r##"
openapi: 3.1.0
info: { title: Shop, version: 1.0.0 }
components:
  securitySchemes:
    token: { type: http, scheme: bearer }
    key: { type: apiKey, in: query, name: key }
    session: { type: apiKey, in: cookie, name: sid }
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties: { id: { type: integer, minimum: 5 }, name: { type: string, example: Rex } }
paths:
  /pets/{petId}:
    get:
      operationId: showPet
      parameters:
        - { name: petId, in: path, required: true, schema: { type: integer } }
        - { name: limit, in: query, schema: { type: integer, maximum: 3 } }
      responses:
        200: { description: x, content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } } }
        404: { description: x, content: { application/json: { schema: { type: object, required: [title], properties: { title: { type: string } } }, examples: { first: { value: { title: gone } } } } } }
    delete:
      operationId: removePet
      security: [{ token: [] }, { key: [], session: [] }]
      parameters: [{ name: petId, in: path, required: true, schema: { type: integer } }]
      responses: { 204: { description: gone } }
  /unread:
    put: { operationId: unread, security: [{ misspelt: [] }], responses: { 204: { description: x } } }
    delete: { operationId: halfRead, security: [{ key: [], misspelt: [] }], responses: { 204: { description: x } } }
  /arrivals:
    get:
      operationId: arrivals
      responses: { 200: { description: x, content: { text/event-stream: { schema: { $ref: "#/components/schemas/Pet" } } } } }
"##;

fn file(name: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("serve-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// The whole response to a request that names the address as its host.
#[cfg(target_os = "linux")]
fn by_address(address: &str, request: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    let text = format!("{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    socket.write_all(text.as_bytes()).unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).unwrap();
    response
}

/// The command, until it is dropped.
struct Served {
    child: Child,
    address: String,
    /// What it said before it answered.
    said: String,
}

impl Served {
    fn start(document: &Path) -> Self {
        Self::start_at(document, "127.0.0.1:0")
    }

    fn start_at(document: &Path, address: &str) -> Self {
        Self::start_with(document, &["--addr", address])
    }

    fn start_with(document: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
        command.arg("serve").arg(document).arg("--mock").args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = String::new();
        while !said.contains("Prefer") {
            said.push_str(&(lines.next().unwrap().unwrap() + "\n"));
        }
        let address = said.split("http://").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        Self { child, address, said }
    }

    /// The whole response to a request without a body.
    fn ask(&self, request: &str, headers: &str) -> String {
        self.send(request, headers, "")
    }

    fn send(&self, request: &str, headers: &str, body: &str) -> String {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        let text = format!("{request} HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\n{body}");
        socket.write_all(text.as_bytes()).unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).unwrap();
        response
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_document_is_answered_with_examples() {
    let served = Served::start(&file("shop.yaml", DOCUMENT));
    assert!(served.said.contains("answers 5 operations with examples"), "{}", served.said);
    assert!(served.said.contains("  DELETE  /pets/{petId}  removePet\n"), "{}", served.said);
    let table: [(&str, &str, u16, &str); 21] = [
        ("GET /pets/7", "", 200, r#"{"id":5,"name":"Rex"}"#),
        ("GET /pets/7", "Prefer: code=404\r\n", 404, r#"{"title":"gone"}"#),
        ("GET /pets/7", "Prefer: code=418\r\n", 400, r#""code":"NOT_DESCRIBED""#),
        ("GET /operations/shop/showPet?input=%7B%22petId%22:1%7D", "", 200, r#"{"id":5,"name":"Rex"}"#),
        ("GET /arrivals", "", 200, "id: 3\ndata: {\"id\":5,\"name\":\"Rex\"}\n\n"),
        // Nothing is there, or not by this method.
        ("GET /pet/7", "", 404, r#""status":404"#),
        ("PATCH /pets/7", "", 405, r#""status":405"#),
        // Two violations at once.
        ("GET /pets/x?limit=4", "", 422, r#""pointer":"/petId""#),
        ("GET /pets/x?limit=4", "", 422, r#""pointer":"/limit""#),
        // Any credentials of a kind that the operation asks for, and all of those that go together.
        ("DELETE /pets/7", "", 401, "www-authenticate: ApiKey in=\"query\", name=\"key\""),
        ("GET /docs", "", 200, "<!doctype html>"),
        ("DELETE /pets/7", "Authorization: Bearer x\r\n", 204, ""),
        ("DELETE /pets/7", "Authorization: Basic x\r\n", 401, ""),
        ("DELETE /pets/7?key=1", "", 403, ""),
        ("DELETE /pets/7?key=1", "Cookie: a=b; sid=2\r\n", 204, ""),
        ("DELETE /pets/7?key=", "Cookie: sid=\r\n", 401, ""),
        ("DELETE /pets/x?key=1", "Cookie: sid=2\r\n", 422, "/petId"),
        // Credentials that the document does not describe are not checked.
        ("PUT /unread", "", 204, ""),
        ("PUT /unread", "Authorization: Bearer x\r\n", 204, ""),
        ("DELETE /unread", "", 401, "www-authenticate: ApiKey in=\"query\", name=\"key\""),
        ("DELETE /unread?key=1", "", 204, ""),
    ];
    for (request, headers, status, part) in table {
        let response = served.ask(request, headers);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{request} {headers}: {response}");
        assert!(response.contains(part), "{request} {headers}: {response}");
    }
}

#[test]
fn a_read_only_server_has_no_stream_that_may_change_something() {
    let stream =
        "responses: { 200: { description: x, content: { text/event-stream: { schema: { type: integer } } } } }";
    let document = format!(
        "openapi: 3.1.0\ninfo: {{ title: x, version: '1' }}\npaths:\n  \
         /runs:\n    post: {{ operationId: run, {stream} }}\n  \
         /questions:\n    post: {{ operationId: ask, x-ops-kind: query, {stream} }}\n  \
         /arrivals:\n    get: {{ operationId: arrivals, {stream} }}\n"
    );
    let served = Served::start_with(&file("streams.yaml", &document), &["--addr", "127.0.0.1:0", "--read-only"]);
    assert!(served.said.contains("answers 2 operations with examples"), "{}", served.said);
    for (request, status) in [("POST /runs", 404), ("POST /questions", 200), ("GET /arrivals", 200)] {
        let response = served.ask(request, "");
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {response}");
    }
}

#[test]
fn the_namespace_is_that_of_the_file() {
    let served = Served::start(&file("Pet-shop.v2.yaml", DOCUMENT));
    let response = served.ask("GET /operations/Pet-shop/showPet?input=%7B%22petId%22:1%7D", "");
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
}

#[test]
fn a_snapshot_of_tools_is_answered_by_name() {
    let tools = r#"{"tools":[{"name":"add","inputSchema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},
        "outputSchema":{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}}]}"#;
    let served = Served::start(&file("sums.json", tools));
    assert!(served.said.contains("  POST    /operations/sums/add  add\n"), "{}", served.said);
    let send = |body: &str| {
        let headers = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        served.send("POST /operations/sums/add", &headers, body)
    };
    let response = send(r#"{"a":1}"#);
    assert!(response.starts_with("HTTP/1.1 200 ") && response.ends_with(r#"{"sum":1}"#), "{response}");
    let response = send(r#"{"a":"x"}"#);
    assert!(response.starts_with("HTTP/1.1 422 ") && response.contains(r#""pointer":"/a""#), "{response}");
}

#[test]
fn what_cannot_be_served_says_why() {
    let shop = file("shop2.yaml", DOCUMENT);
    let empty = file("empty.yaml", "openapi: 3.1.0\ninfo: { title: x, version: '1' }\npaths: {}\n");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_ops")).arg("serve").args(arguments).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (shop, empty) = (shop.to_str().unwrap(), empty.to_str().unwrap());
    for (arguments, status, part) in [
        (&[empty, "--mock"][..], 2, "has no operations to serve"),
        (&[shop, empty, "--mock"], 2, "serves one document: name one, or pass `--mcp`"),
        (&["no/such.yaml", "--mock"], 3, "no/such.yaml"),
        (&[shop, "--mock", "--addr", &address], 1, "takes a free port"),
        (&[shop, "--mock", "--addr", "x"], 1, "`x` cannot be listened at"),
        (&[shop, "--mock", "--deny", "*", "--audit", "calls.jsonl"], 2, "no use for --deny, --audit"),
        (&[shop, "--mock", "--bearer-env", "NOT_SET"], 2, "no use for credentials"),
        (&[shop, "--mock", "--include", "showPets"], 2, "matches no operation: did you mean `showPet`?"),
    ] {
        let (code, text) = run(arguments);
        assert!(code == status && text.contains(part), "{arguments:?}: {code} {text}");
    }
}

/// Each address that begins with 127 is the local host. Debian gives a machine's own name 127.0.1.1.
#[cfg(target_os = "linux")]
#[test]
fn any_loopback_address_is_a_host() {
    let document = file("shop3.yaml", DOCUMENT);
    let served = Served::start_at(&document, "127.0.1.1:0");
    let response = by_address(&served.address, "GET /pets/7");
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");

    let mut command = Command::new(env!("CARGO_BIN_EXE_ops"));
    command.arg("serve").arg(&document).args(["--mock", "--mcp", "http", "--http", "127.0.1.1:0"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.find_map(|line| Some(line.strip_prefix("http://")?.strip_suffix("/mcp")?.to_owned()));
    // What it tells later is read, so that it can tell it.
    std::thread::spawn(move || lines.for_each(drop));
    let (address, said) = (address.unwrap(), String::new());
    let served = Served { child, address, said };
    let response = by_address(&served.address, "GET /docs");
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    let response = by_address(&served.address, "GET /mcp");
    assert!(!response.starts_with("HTTP/1.1 403 "), "{response}");
}

/// Neither the path of the command nor that of a file has to be text.
#[cfg(target_os = "linux")]
#[test]
fn a_configuration_of_paths_that_are_no_text_is_refused() {
    let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"caf\xe9");
    let folder = file("shop4.yaml", DOCUMENT).parent().unwrap().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("shop.yaml"), DOCUMENT).unwrap();
    let own = folder.join("ops");
    let _ = std::fs::remove_file(&own);
    std::fs::hard_link(env!("CARGO_BIN_EXE_ops"), &own).unwrap();
    let root = Path::new("/");
    for (command, here, document) in [
        (Path::new(env!("CARGO_BIN_EXE_ops")), &*folder, PathBuf::from("shop.yaml")),
        (&*own, root, file("shop5.yaml", DOCUMENT)),
    ] {
        let mut command = Command::new(command);
        command.arg("serve").arg(document).args(["--mock", "--tools", "search", "--print-config"]).current_dir(here);
        let output = command.output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("caf\u{fffd}") && told.contains("is not UTF-8"), "{told}");
    }
}

#[test]
fn a_snapshot_at_a_url_is_answered_with_examples() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/maths.json", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let tools = r#"{"tools":[{"name":"double","inputSchema":{"type":"object"}}]}"#;
        let (mut socket, _) = listener.accept().unwrap();
        assert!(socket.read(&mut [0; 4096]).unwrap() > 0);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", tools.len());
        socket.write_all((head + tools).as_bytes()).unwrap();
    });
    let served = Served::start(Path::new(&url));
    assert!(served.said.contains("POST    /operations/maths/double  double"), "{}", served.said);
}
