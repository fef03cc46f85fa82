//! Servers that fail in every way, and may say again what they were sent.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Response, StatusCode};
use ops_runtime::mcp::McpServerConfig;
use serde_json::{Value, json};

use super::secret;

/// What came in, as text.
async fn told(request: Request) -> String {
    let mut text = format!("{} {}", request.method(), request.uri());
    for (name, value) in request.headers() {
        let _ = write!(text, "; {name}: {}", value.to_str().unwrap_or_default());
    }
    let body = axum::body::to_bytes(request.into_body(), 1 << 16).await.unwrap();
    format!("{text}; {}", String::from_utf8_lossy(&body))
}

fn response(status: u16, headers: &[(&str, &str)], body: String) -> Response<Body> {
    let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Body::from(body)).unwrap()
}

/// The text with all but letters and digits as `%XX`, of everything if `all`.
fn percent(text: &str, all: bool) -> String {
    let byte = |b: u8| if b.is_ascii_alphanumeric() && !all { char::from(b).to_string() } else { format!("%{b:02X}") };
    text.bytes().map(byte).collect()
}

/// The first secret of a text, if it is a word that a server can make something else of.
fn word(text: &str) -> String {
    let found = text.find("hush-").map_or("", |at| &text[at..]);
    let word: String = found.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    if word.ends_with("-5e1f") { word } else { "nothing".to_owned() }
}

/// A server that fails in every way, and may repeat what it was sent. Beside its address is what it has seen.
pub(crate) async fn upstream(repeats: bool) -> (String, Arc<Mutex<String>>) {
    let seen = Arc::new(Mutex::new(String::new()));
    let noted = seen.clone();
    let answer = move |request: Request| {
        let noted = noted.clone();
        async move {
            let path = request.uri().path().to_owned();
            let text = told(request).await;
            noted.lock().unwrap().push_str(&text);
            answer(&path, if repeats { text } else { "nothing".to_owned() })
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    (address, seen)
}

fn answer(path: &str, text: String) -> Response<Body> {
    let word = word(&text);
    let json = [("content-type", "application/json"), ("x-told", text.as_str()), ("set-cookie", text.as_str())];
    // Again, as servers write what they say: in other encodings, one in another.
    let quoted = json!({
        "error": "invalid_grant", "error_description": text, "told": text,
        "more": [percent(&text, false), percent(&text, true), percent(&percent(&text, false), false),
            json!({ "in": json!([text]).to_string() }).to_string()],
        (word.clone()): { "number": [text.clone()] },
    })
    .to_string();
    match path.rsplit('/').next().unwrap_or_default() {
        "token" => {
            let minted = json!({ "access_token": secret("minted"), "token_type": "bearer", "expires_in": 60 });
            response(200, &json[..1], minted.to_string())
        }
        // The code of the refusal is shown, as it is one of the standard's.
        "refuses" => response(400, &json[..1], json!({ "error": word, "error_description": text }).to_string()),
        "moves" => {
            let location = format!("http://127.0.0.1:1/{}?{}", percent(&text, false), percent(&text, false));
            response(302, &[("location", &location)], text)
        }
        "astray" => response(302, &[("location", &format!("{word}:elsewhere"))], text),
        "unlike" => response(200, &[("content-type", &format!("text/{word}"))], text),
        "garbage" => response(200, &json[..1], format!("{{\"told\": {text}")),
        "other" => response(200, &json[..1], quoted),
        "names" => response(200, &json[..1], json!({ "number": "x", (word): 1, "also": 2 }).to_string()),
        "denied" => response(401, &[("www-authenticate", &format!("Bearer realm=\"{text}\""))], quoted),
        _ => response(500, &json, quoted),
    }
}

/// What the server of [`upstream`] does at paths of these names.
pub(crate) const WAYS: [&str; 8] = ["fails", "moves", "astray", "unlike", "garbage", "other", "names", "denied"];

/// A document whose operations ask for that credential.
pub(crate) fn document(scheme: &Value) -> String {
    let get = |way: &&str| {
        let schema =
            json!({ "type": "object", "required": ["number"], "properties": { "number": { "type": "integer" } } });
        let responses =
            json!({ "200": { "description": "It", "content": { "application/json": { "schema": schema } } } });
        let get = json!({ "operationId": way, "responses": responses });
        (format!("/{way}"), json!({ "get": get }))
    };
    let paths: serde_json::Map<String, Value> = WAYS.iter().map(get).collect();
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "T", "version": "1" }, "paths": paths,
        "components": { "securitySchemes": { "own": scheme } }, "security": [{ "own": [] }],
    });
    document.to_string()
}

/// The tools of [`child`].
pub(crate) const TOOLS: [&str; 4] = ["dies", "refuses", "reports", "babbles"];

/// A child that dies at its start or fails when a tool is called, and may tell its environment then.
pub(crate) fn child(at_start: bool, repeats: bool) -> McpServerConfig {
    let program = r#"
import json, os, sys, urllib.parse
key = os.environ["KEY"] if os.environ["REPEATS"] == "yes" else "none"
def die():
    sys.stderr.write("KEY=" + key + " " + urllib.parse.quote(key) + "\n"); sys.stderr.flush(); os._exit(3)
def say(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
if os.environ["AT_START"] == "yes": die()
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "instructions": "use " + key}
        say({"id": id, "result": {**result, "serverInfo": {"name": "c", "version": key}}})
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ["dies", "refuses", "reports", "babbles"]]
        say({"id": id, "result": {"tools": tools}})
    elif method == "tools/call":
        name = message["params"]["name"]
        if name == "dies": die()
        if name == "refuses": say({"id": id, "error": {"code": -32000, "message": "no " + key, "data": {key: [key]}}})
        content = [{"type": "text", "text": "no " + key}]
        if name == "reports": say({"id": id, "result": {"content": content, "isError": True}})
        if name == "babbles":
            say({"method": "notifications/message", "params": {"level": "error", "data": key}})
            print(key, flush=True)
            say({"id": id, "result": [key]})
    elif id is not None: say({"id": id, "error": {"code": -32601, "message": "no " + key}})
"#;
    let config = McpServerConfig::stdio("python3", ["-c", program]).with_env("KEY", secret("mcp-env"));
    let says = |yes: bool| if yes { "yes" } else { "no" };
    config.with_env("AT_START", says(at_start)).with_env("REPEATS", says(repeats))
}
