//! What a typed call of an MCP tool costs beside rmcp's own call of the same server, over stdio.
//!
//! The aim is at most 1.1 times the median. The two take turns, so that both meet the machine as it is.

use std::time::{Duration, Instant};

use ops_runtime::binding::{McpBinding, McpOutput};
use ops_runtime::mcp::{McpClient, McpServerConfig};
use ops_runtime::spec::OperationSpec;
use ops_runtime::{Call, Operation};
use rmcp::model::CallToolRequestParams;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleClient, ServiceExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

const ROUNDS: usize = 200;
const CALLS: usize = 50;

#[derive(Serialize, Deserialize)]
struct AddInput {
    a: i64,
    b: i64,
}

struct Add;

impl Operation for Add {
    type Input = AddInput;
    type Output = i64;
    const SPEC: &'static OperationSpec =
        &OperationSpec::query("calculator.add").with_mcp(McpBinding::new("add", McpOutput::Wrapped));
}

impl Call for Add {}

/// The server: this program, started with an argument.
async fn serve() {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut output = tokio::io::stdout();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).expect("a message");
        let Some(id) = message.get("id") else { continue };
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "calculator", "version": "1" },
            }),
            Some("tools/list") => json!({ "tools": [{
                "name": "add",
                "inputSchema": { "type": "object", "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } } },
                "outputSchema": { "type": "object", "properties": { "result": { "type": "integer" } }, "required": ["result"] },
            }] }),
            Some("tools/call") => {
                let arguments = &message["params"]["arguments"];
                let sum = arguments["a"].as_i64().unwrap_or_default() + arguments["b"].as_i64().unwrap_or_default();
                let text = json!({ "type": "text", "text": format!("{{\"result\":{sum}}}") });
                json!({ "content": [text], "structuredContent": { "result": sum } })
            }
            _ => Value::Null,
        };
        let answer = match result {
            Value::Null => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no" } }),
            result => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        };
        output.write_all(format!("{answer}\n").as_bytes()).await.expect("a reader");
        output.flush().await.expect("a reader");
    }
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    if std::env::args().any(|argument| argument == "serve") {
        return runtime.block_on(serve());
    }
    let ratio = runtime.block_on(compare());
    assert!(ratio <= 1.1, "a typed call costs {ratio:.2} times rmcp's own");
}

async fn compare() -> f64 {
    let this = std::env::current_exe().expect("this program");
    let this = this.to_str().expect("a name");
    let ours = McpClient::connect(McpServerConfig::stdio(this, ["serve"])).await.expect("a connection");
    let mut child = tokio::process::Command::new(this)
        .arg("serve")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a child");
    let (input, output) = (child.stdin.take().expect("stdin"), child.stdout.take().expect("stdout"));
    let theirs = ().serve(AsyncRwTransport::<RoleClient, _, _>::new_client(output, input)).await.expect("a connection");
    let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let start = Instant::now();
        for b in 0..CALLS {
            let sum = ours.execute::<Add>(AddInput { a: 1, b: b as i64 }).await.expect("an answer");
            assert_eq!(sum.data, 1 + b as i64);
        }
        let middle = Instant::now();
        for b in 0..CALLS {
            let arguments = json!({ "a": 1, "b": b }).as_object().cloned().unwrap_or_default();
            let result = theirs.call_tool(CallToolRequestParams::new("add").with_arguments(arguments)).await;
            let result = result.expect("an answer").structured_content.expect("structured content");
            let sum: i64 = serde_json::from_value(result["result"].clone()).expect("a number");
            assert_eq!(sum, 1 + b as i64);
        }
        // The first rounds warm up.
        if round >= ROUNDS / 10 {
            our_times.push(middle - start);
            their_times.push(middle.elapsed());
        }
    }
    let (ours_p50, theirs_p50) = (median(&mut our_times), median(&mut their_times));
    let ratio = ours_p50.as_secs_f64() / theirs_p50.as_secs_f64();
    println!("typed call {ours_p50:?}, rmcp's own {theirs_p50:?}, ratio {ratio:.3}");
    ours.close().await;
    let _ = theirs.cancel().await;
    let _ = child.wait().await;
    ratio
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default() / u32::try_from(CALLS).unwrap_or(1)
}
