//! What a served operation costs beside the same tool by `rmcp`'s macros: `cargo bench -p ops-runtime --all-features
//! --bench mcp_server`.
//!
//! One client of `rmcp` calls both over pipes in memory, in turns, one call at a time and many at once. Prints calls a
//! second, medians, and the ratio, which is to be 0.9 at least. With `--only operation|macros COUNT` it calls one of them
//! so often, to be counted under callgrind: a busy machine does not change instructions.

use std::time::Instant;

use futures_util::future::join_all;
use ops_runtime::mcp::McpServer;
use ops_runtime::{Registry, operation};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Sum {
    sum: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Report {
    rows: Vec<Row>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Row {
    id: i64,
    name: String,
    tags: Vec<String>,
    price: Option<f64>,
}

fn rows(count: i64) -> Report {
    let row = |id| Row { id, name: format!("row {id}"), tags: vec!["a".into(), "b".into()], price: Some(1.5) };
    Report { rows: (0..count).map(row).collect() }
}

#[operation(namespace = "bench", kind = query)]
async fn add(a: i64, b: i64) -> Sum {
    Sum { sum: a + b }
}

#[operation(namespace = "bench", name = "report", kind = query)]
async fn make_report(count: i64) -> Report {
    rows(count)
}

#[derive(Deserialize, JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    count: i64,
}

struct Macros {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Macros {
    #[tool(name = "bench_add")]
    async fn add(&self, Parameters(Pair { a, b }): Parameters<Pair>) -> Json<Sum> {
        Json(Sum { sum: a + b })
    }

    #[tool(name = "bench_report")]
    async fn report(&self, Parameters(Count { count }): Parameters<Count>) -> Json<Report> {
        Json(rows(count))
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Macros {}

type Client = RunningService<RoleClient, ()>;

async fn ours() -> Client {
    let registry = Registry::new();
    registry.register(Add).expect("it is new");
    registry.register(MakeReport).expect("it is new");
    let (near, far) = tokio::io::duplex(1 << 20);
    let (read, write) = tokio::io::split(far);
    tokio::spawn(McpServer::new(registry).serve(read, write));
    ().serve(near).await.expect("the server is there")
}

async fn theirs() -> Client {
    let (near, far) = tokio::io::duplex(1 << 20);
    tokio::spawn(async move {
        let server = Macros { tool_router: Macros::tool_router() }.serve(far).await.expect("the client is there");
        server.waiting().await
    });
    ().serve(near).await.expect("the server is there")
}

async fn call(client: &Client, tool: &'static str, arguments: serde_json::Value) {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let result = client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await.expect("a result");
    assert!(result.is_error != Some(true) && result.structured_content.is_some(), "{result:?}");
}

/// Calls a second.
async fn rate(client: &Client, tool: &'static str, arguments: &serde_json::Value, calls: usize, at_once: usize) -> f64 {
    let started = Instant::now();
    for _ in 0..calls / at_once {
        join_all((0..at_once).map(|_| call(client, tool, arguments.clone()))).await;
    }
    calls as f64 / started.elapsed().as_secs_f64()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    const ROUNDS: usize = 31;
    let arguments: Vec<_> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--only") {
        let client = if arguments[at + 1] == "macros" { theirs().await } else { ours().await };
        for _ in 0..arguments[at + 2].parse().expect("a count") {
            call(&client, "bench_add", json!({ "a": 1, "b": 2 })).await;
        }
        return;
    }
    let clients = [ours().await, theirs().await];
    println!("{:<28}{:>12}{:>12}{:>8}", "", "operation", "macros", "ratio");
    for (name, tool, arguments, calls, at_once) in [
        ("add", "bench_add", json!({ "a": 1, "b": 2 }), 1_000, 1),
        ("add, 50 at once", "bench_add", json!({ "a": 1, "b": 2 }), 1_000, 50),
        ("report of 10 rows", "bench_report", json!({ "count": 10 }), 500, 1),
        ("report of 500 rows", "bench_report", json!({ "count": 500 }), 20, 1),
    ] {
        let mut rates = [Vec::new(), Vec::new()];
        let mut ratios = Vec::new();
        for number in 0..ROUNDS {
            let mut round = [0.0; 2];
            // Each goes first as often as the other.
            for of in [number % 2, (number + 1) % 2] {
                round[of] = rate(&clients[of], tool, &arguments, calls, at_once).await;
            }
            rates[0].push(round[0]);
            rates[1].push(round[1]);
            ratios.push(round[0] / round[1]);
        }
        let [ours, theirs] = rates.map(median);
        println!("{name:<28}{ours:>12.0}{theirs:>12.0}{:>8.2}", median(ratios));
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
