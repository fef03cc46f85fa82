//! How a connection over pipes begins.

use ops_runtime::mcp::McpServer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{PATIENCE, REVISIONS};
use crate::fixture::server;

/// Sends messages, ends the input, and gives the server's answers by their ids.
async fn answers(server: McpServer, messages: &[Value]) -> Vec<Value> {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(far);
    let serving = tokio::spawn(server.serve(read, write));
    let (mut read, mut write) = tokio::io::split(near);
    for message in messages {
        write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    write.shutdown().await.unwrap();
    let mut text = String::new();
    tokio::time::timeout(PATIENCE, read.read_to_string(&mut text)).await.expect("in time").unwrap();
    serving.await.unwrap().unwrap();
    let mut answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

/// A client that no longer waits for its probe says so, and then begins a session.
#[tokio::test]
async fn only_requests_count_before_the_first() {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": REVISIONS[1],
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": REVISIONS[0], "capabilities": {}, "clientInfo": info });
    let request = |id: u64, method: &str, params: Value| {
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        message["params"] = params;
        message
    };
    let cancelled =
        |id: u64| json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    let messages = [
        cancelled(0),
        request(1, "server/discover", json!({ "_meta": meta })),
        cancelled(1),
        json!({ "jsonrpc": "2.0", "id": 7, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": 7, "error": { "code": -32603, "message": "no" } }),
        request(2, "ping", json!({})),
        cancelled(2),
        // Refused, since nothing has begun.
        request(3, "tools/list", json!({})),
        cancelled(3),
        request(4, "initialize", params),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        request(5, "tools/list", json!({})),
    ];
    #[cfg(feature = "durable")]
    let servers = [server(), server().with_tasks(ops_runtime::durable::Jobs::in_memory())];
    #[cfg(not(feature = "durable"))]
    let servers = [server()];
    for server in servers {
        let answers = answers(server, &messages).await;
        let ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, [1, 2, 3, 4, 5], "{answers:?}");
        let has_result: Vec<_> = answers.iter().map(|answer| answer.get("result").is_some()).collect();
        assert_eq!(has_result, [true, true, false, true, true], "{answers:?}");
        assert_eq!(answers[3]["result"]["protocolVersion"], REVISIONS[0]);
    }
}
