//! A client that shows each message as it is on the wire, of either era of the protocol.

use std::time::Duration;

use ops_runtime::mcp::McpServer;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

/// How long a message may take; far longer than it does.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The revision before requests stood alone, and the one since.
pub(crate) const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

pub(crate) struct Client {
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    revision: &'static str,
    capabilities: Value,
    /// What the server says that it can do.
    pub(crate) server_capabilities: Value,
    next: u64,
    /// What came that was no answer.
    pub(crate) notifications: Vec<Value>,
    /// Runs until the client goes away.
    server: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Client {
    /// Connects as a client of that revision does.
    pub(crate) async fn connect(server: McpServer, revision: &'static str) -> Self {
        Self::connect_with(server, revision, json!({})).await
    }

    /// Connects as a client that can do so much.
    pub(crate) async fn connect_with(server: McpServer, revision: &'static str, capabilities: Value) -> Self {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(far);
        let server = tokio::spawn(server.serve(read, write));
        let (read, write) = tokio::io::split(near);
        let read = BufReader::new(read).lines();
        let mut client = Self {
            read,
            write,
            revision,
            capabilities,
            server_capabilities: Value::Null,
            next: 1,
            notifications: Vec::new(),
            server,
        };
        if revision < "2026-07-28" {
            let info = json!({ "name": "test", "version": "1" });
            let params =
                json!({ "protocolVersion": revision, "capabilities": client.capabilities, "clientInfo": info });
            let answer = client.request("initialize", params).await;
            assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
            client.server_capabilities = answer["result"]["capabilities"].clone();
            client.notify("notifications/initialized", json!({})).await;
        } else {
            let answer = client.request("server/discover", json!({})).await;
            assert!(answer["result"]["supportedVersions"].as_array().unwrap().contains(&json!(revision)), "{answer}");
            client.server_capabilities = answer["result"]["capabilities"].clone();
        }
        client
    }

    /// Goes away, and gives what the server did then.
    pub(crate) fn close(self) -> tokio::task::JoinHandle<std::io::Result<()>> {
        self.server
    }

    /// Ends the input of the server, and still reads what it sends.
    pub(crate) async fn end(&mut self) {
        self.write.shutdown().await.unwrap();
    }

    async fn write(&mut self, message: Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.write(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Sends a request, and gives its id.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        if self.revision >= "2026-07-28" {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(self.revision);
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
            let capabilities = &mut params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
            if capabilities.is_null() {
                capabilities.clone_from(&self.capabilities);
            }
        }
        self.write(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    /// Answers a request of the server.
    pub(crate) async fn respond(&mut self, id: &Value, result: Value) {
        self.write(json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
    }

    /// Refuses a request of the server.
    #[allow(dead_code, reason = "the tests of the gateway need it")]
    pub(crate) async fn refuse(&mut self, id: &Value, message: &str) {
        self.write(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": message } })).await;
    }

    pub(crate) async fn receive(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.read.next_line()).await.expect("a message in time");
        serde_json::from_str(&line.unwrap().expect("a message")).unwrap()
    }

    /// The answer with that id; what comes before is kept.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.notifications.push(message);
        }
    }

    /// The next notification, unless one is kept.
    pub(crate) async fn notification(&mut self) -> Value {
        if self.notifications.is_empty() { self.receive().await } else { self.notifications.remove(0) }
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Calls a tool, and gives its result.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        answer.get("result").unwrap_or_else(|| panic!("{answer}")).clone()
    }
}
