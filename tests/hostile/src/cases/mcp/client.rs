//! Servers at a URL.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ops_runtime::mcp::{McpClient, McpServerConfig};
use serde_json::{Value, json};

use crate::peer::{Asked, close, events, respond, serve};
use crate::{Outcome, block_on};

/// A server of the revision 2025-11-25 with one tool. `stream` writes the session's own stream, `call` the answer to a call.
fn server(
    stream: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    call: impl Fn(&Value, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> Result<McpServerConfig, String> {
    let url = serve(move |asked: &Asked, _: &str, out: &mut TcpStream| {
        if asked.line.starts_with("GET") {
            return stream(out);
        }
        let request: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
        let id = request.get("id").cloned().unwrap_or_default();
        let result = match request.get("method").and_then(Value::as_str).unwrap_or_default() {
            "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "t", "version": "1" } }),
            "tools/list" => json!({ "tools": [{ "name": "x", "inputSchema": { "type": "object" } }] }),
            "tools/call" => return call(&id, out),
            _ if id.is_null() || request.get("method").is_none() => return respond(out, "202 Accepted", "", b""),
            _ => return respond(out, "400 Bad Request", "", b""),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
        respond(out, "200 OK", "content-type: application/json\r\nmcp-session-id: s\r\n", answer.as_bytes())
    });
    Ok(McpServerConfig::http(url.map_err(|error| error.to_string())?).with_namespace("t"))
}

fn result(id: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } }).to_string()
}

/// A server that ends the session's stream at once, says `retry: 0`, and breaks off every second one.
pub(super) fn reopened(seconds: usize) -> Outcome {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let config = server(
        move |out| {
            let now = counted.fetch_add(1, Ordering::SeqCst);
            if now.is_multiple_of(2) {
                events(out, "")?;
            } else {
                write!(out, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 1000\r\n\r\n")?;
            }
            write!(out, "retry: 0\nid: {now}\ndata:\n\n")?;
            close()
        },
        |id, out| respond(out, "200 OK", "content-type: application/json\r\n", result(id).as_bytes()),
    )?;
    let begun = Instant::now();
    block_on(async {
        let client = McpClient::connect(config).await.map_err(|error| error.to_string())?;
        tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
        client.call("t.x", json!({})).await.map_err(|error| error.to_string())?;
        let count = count.load(Ordering::SeqCst);
        // Of the time that it took, which is longer on a busy machine.
        if count as u64 <= 18 + 2 * begun.elapsed().as_secs() {
            Ok(format!("{count} streams"))
        } else {
            Err(format!("{count} streams"))
        }
    })
}

/// Requests of the server's in the middle of a call, each of which costs an answer of its own.
pub(super) fn asked(size: usize) -> Outcome {
    let config = server(
        |out| respond(out, "405 Method Not Allowed", "allow: POST\r\n", b""),
        move |id, out| {
            events(out, "")?;
            for number in 0..size / 60 {
                write!(out, "data: {{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"ping\"}}\n\n")?;
            }
            write!(out, "data: {}\n\n", result(id))?;
            close()
        },
    )?;
    block_on(async {
        let client = McpClient::connect(config).await.map_err(|error| error.to_string())?;
        let came = client.call("t.x", json!({})).await.map_err(|error| error.to_string())?;
        Ok(format!("answered: {}", came.data))
    })
}
