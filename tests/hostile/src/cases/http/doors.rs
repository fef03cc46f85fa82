//! Where servers lead a client, and what it takes there.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ops_runtime::CallError;
use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::http::{HttpClient, HttpConfig};
use ops_runtime::mcp::{McpClient, McpConfig, McpOAuth, McpServerConfig};
use ops_runtime::spec::OperationSpec;
use serde_json::json;

use crate::peer::{Asked, close, respond, serve};
use crate::{Outcome, block_on};

fn told<T: std::fmt::Debug>(came: Result<T, CallError>, what: &str) -> Outcome {
    match came {
        Err(error) if error.message().contains(what) => Ok(error.message().to_owned()),
        came => Err(format!("{:.300}", format!("{came:?}"))),
    }
}

/// A 308 to another port: what was meant for the service stays there.
pub(super) fn redirected_body(_: usize) -> Outcome {
    let stolen = Arc::new(AtomicUsize::new(0));
    let seen = stolen.clone();
    let thief = serve(move |asked, _, stream| {
        seen.fetch_add(asked.body.len(), Ordering::SeqCst);
        respond(stream, "200 OK", "", b"")
    });
    let thief = thief.map_err(|error| error.to_string())?;
    let url =
        serve(move |_, _, stream| respond(stream, "308 Permanent Redirect", &format!("location: {thief}\r\n"), b""));
    let config = HttpConfig::new().with_base_url(url.map_err(|error| error.to_string())?);
    let client = HttpClient::new(config).map_err(|error| error.to_string())?;
    let binding = HttpBinding::new("POST", "/x").with_bodies(const { &[HttpBody::new("application/json")] });
    client.add([OperationSpec::mutation("t.x").with_http(binding)]).map_err(|error| error.to_string())?;
    let came = block_on(client.call("t.x", json!({ "body": "secret" })));
    if stolen.load(Ordering::SeqCst) > 0 {
        return Err("the body was sent on".to_owned());
    }
    told(came, "with_bodies_to_other_origins")
}

/// A redirect to the metadata of the cloud.
pub(super) fn redirected_inside(_: usize) -> Outcome {
    let url = serve(|_, _, stream| {
        respond(stream, "302 Found", "location: http://169.254.169.254/latest/meta-data/iam\r\n", b"")
    });
    let config = HttpConfig::new().with_base_url(url.map_err(|error| error.to_string())?);
    let client = HttpClient::new(config.with_timeout(Duration::from_secs(30))).map_err(|error| error.to_string())?;
    let spec = OperationSpec::query("t.x").with_http(HttpBinding::new("GET", "/x"));
    client.add([spec]).map_err(|error| error.to_string())?;
    told(block_on(client.call("t.x", json!({}))), "with_destinations")
}

/// The paths that were asked for.
type Seen = Arc<Mutex<Vec<String>>>;

/// An MCP server that wants authorization, and names what the function says.
fn guarded(metadata: fn(&str) -> String, authorization: fn(&str) -> String) -> Result<(String, Seen), String> {
    let paths = Arc::new(Mutex::new(Vec::new()));
    let seen = paths.clone();
    let url = serve(move |asked: &Asked, url: &str, stream: &mut TcpStream| {
        let path = asked.line.split(' ').nth(1).unwrap_or_default().to_owned();
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
        let json = "content-type: application/json\r\n";
        if path.starts_with("/.well-known/oauth-protected-resource") {
            let resource = json!({ "resource": format!("{url}/mcp"), "authorization_servers": [metadata(url)] });
            return respond(stream, "200 OK", json, resource.to_string().as_bytes());
        }
        if path.starts_with("/.well-known/oauth-authorization-server") {
            let server = json!({
                "issuer": url, "authorization_endpoint": authorization(url), "token_endpoint": format!("{url}/token"),
                "registration_endpoint": format!("{url}/register"), "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            });
            return respond(stream, "200 OK", json, server.to_string().as_bytes());
        }
        if path == "/register" {
            return respond(
                stream,
                "201 Created",
                json,
                br#"{"client_id":"c","redirect_uris":["http://127.0.0.1:1/x"]}"#,
            );
        }
        if path == "/mcp" {
            let challenge = format!(
                "www-authenticate: Bearer resource_metadata=\"{url}/.well-known/oauth-protected-resource\"\r\n"
            );
            return respond(stream, "401 Unauthorized", &challenge, b"");
        }
        respond(stream, "404 Not Found", "", b"")
    });
    Ok((url.map_err(|error| error.to_string())?, paths))
}

fn authorize(url: &str) -> (Result<(), CallError>, Vec<String>) {
    let opened = Arc::new(Mutex::new(Vec::new()));
    let seen = opened.clone();
    let oauth = McpOAuth::new("http://127.0.0.1:1/callback").with_prompt(move |url| {
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(url);
        async { Err(CallError::execution("the user does not agree")) }
    });
    let config =
        McpServerConfig::http(format!("{url}/mcp")).with_oauth(oauth).with_connect_timeout(Duration::from_secs(20));
    let came = block_on(McpClient::connect(config)).map(|_| ());
    let opened = opened.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (came, opened)
}

/// Metadata with an authorization endpoint that a browser must not open.
pub(super) fn opened(_: usize) -> Outcome {
    let mut said = String::new();
    for endpoint in [
        |_: &str| "file:///etc/passwd".to_owned(),
        |_: &str| "javascript:alert(1)".to_owned(),
        |_: &str| "http://login.example/authorize".to_owned(),
    ] {
        let (url, _) = guarded(str::to_owned, endpoint)?;
        let (came, opened) = authorize(&url);
        if !opened.is_empty() {
            return Err(format!("the user was sent to {opened:?}"));
        }
        said = told(came, "neither `https`, nor `http` on this machine")?;
    }
    let (url, _) = guarded(str::to_owned, |url| format!("{url}/authorize"))?;
    let (came, opened) = authorize(&url);
    if opened.len() == 1 { Ok(said) } else { Err(format!("the user was not asked: {came:?}")) }
}

/// Metadata that sends the client to the cloud's own.
pub(super) fn metadata_inside(_: usize) -> Outcome {
    let (url, paths) = guarded(|_| "http://169.254.169.254/tenant".to_owned(), str::to_owned)?;
    let (came, opened) = authorize(&url);
    if !opened.is_empty() {
        return Err(format!("the user was sent to {opened:?}"));
    }
    let asked = paths.lock().unwrap_or_else(PoisonError::into_inner).len();
    match came {
        Err(error) => Ok(format!("{asked} requests: {error}")),
        Ok(()) => Err("connected".to_owned()),
    }
}

/// Metadata that goes on and on.
pub(super) fn endless_metadata(size: usize) -> Outcome {
    let url = serve(move |asked: &Asked, url: &str, stream: &mut TcpStream| {
        if asked.line.contains(".well-known") {
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n")?;
            for _ in 0..size / 65_536 {
                stream.write_all(&[b' '; 65_536])?;
            }
            return close();
        }
        let challenge =
            format!("www-authenticate: Bearer resource_metadata=\"{url}/.well-known/oauth-protected-resource\"\r\n");
        respond(stream, "401 Unauthorized", &challenge, b"")
    });
    let (came, opened) = authorize(&url.map_err(|error| error.to_string())?);
    match came {
        Err(error) if opened.is_empty() => Ok(error.message().to_owned()),
        came => Err(format!("{came:?} {opened:?}")),
    }
}

/// What variables hold shows in no error, and in no `Debug`.
pub(super) fn secrets(_: usize) -> Outcome {
    const SECRET: &str = "s3cr3t";
    let field = |key: &str, value: &str| format!(r#"{{ "mcpServers": {{ "a": {{ {key}: {value} }} }} }}"#);
    let fields = [
        field("\"type\"", "\"${S}\", \"url\": \"https://a.example\""),
        field("\"command\"", "\"${S}\""),
        field("\"command\"", "\"x\", \"cwd\": \"/none/${S}\""),
        field("\"command\"", "\"x\", \"args\": [\"${S}\", {}]"),
        field("\"url\"", "\"${S}\""),
        field("\"url\"", "\"https://${S}/x\""),
        field("\"url\"", "\"https://127.0.0.1:1/\", \"headers\": { \"a\": \"${S}\\n\" }"),
        field("\"url\"", "\"https://127.0.0.1:1/\", \"auth\": \"${S}\\n\""),
    ];
    for text in fields {
        let look_up = |name: &str| (name == "S").then(|| SECRET.to_owned());
        let config = McpConfig::from_json_with(&text, look_up).map_err(|error| error.to_string())?;
        let mut said = format!("{config:?}");
        match config.server("a") {
            Err(error) => said.push_str(&format!("{error} {error:?}")),
            Ok(server) => {
                let server = server.clone().with_connect_timeout(Duration::from_secs(3));
                said.push_str(&format!("{server:?}"));
                if let Err(error) = block_on(McpClient::connect(server)) {
                    said.push_str(&format!("{error} {error:?}"));
                }
            }
        }
        if said.contains(SECRET) {
            return Err(format!("{text}: {said}"));
        }
    }
    Ok("no secret".to_owned())
}
