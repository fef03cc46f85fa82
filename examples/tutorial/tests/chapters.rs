//! The programs of the chapters do what the book says.

use std::process::Stdio;

use ops_runtime::mcp::{McpClient, McpServerConfig};
use ops_runtime::{HttpClient, HttpConfig};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// What a program prints.
async fn printed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Starts a program that goes on; its first line.
async fn started(program: &str, arguments: &[&str]) -> (Child, String) {
    let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let line = BufReader::new(child.stdout.take().unwrap()).lines().next_line().await.unwrap().unwrap();
    (child, line)
}

/// The block that a page shows below "It prints".
fn shown(page: &str) -> String {
    let path = format!("{}/../../docs/src/tutorial/{page}.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let block = text.split("```text\n").nth(1).unwrap();
    block.split("```").next().unwrap().to_owned()
}

#[tokio::test]
async fn programs_that_end() {
    assert_eq!(printed(env!("CARGO_BIN_EXE_function"), &[]).await, shown("function"));
    assert_eq!(printed(env!("CARGO_BIN_EXE_api"), &[]).await, shown("api"));
    assert_eq!(printed(env!("CARGO_BIN_EXE_jobs"), &[]).await, shown("jobs"));
}

#[tokio::test]
async fn the_http_server() {
    let (_server, line) = started(env!("CARGO_BIN_EXE_http"), &["127.0.0.1:0"]).await;
    let url = line.strip_suffix("/docs").unwrap();
    let config = HttpConfig::new().with_namespace("post").with_base_url(url);
    let document = ops_runtime::openapi::from_openapi_url(&format!("{url}/openapi.json"), config).await.unwrap();
    assert!(document.into_iter().any(|registration| registration.spec().id.contains("quote")));
    let rate = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let rate = rate.execute::<tutorial::rates::ShowRate>("USD".to_owned()).await.unwrap();
    assert_eq!(rate.data.rate, 1.17);
}

#[tokio::test]
async fn the_mcp_server() {
    let no_arguments: [&str; 0] = [];
    let client = McpClient::connect(McpServerConfig::stdio(env!("CARGO_BIN_EXE_mcp"), no_arguments)).await.unwrap();
    let price = client.call("post.post_quote", json!({ "kilograms": 2.0, "currency": "CHF" })).await.unwrap();
    assert_eq!(price.data, 5.73);
    client.close().await;
}

#[tokio::test]
async fn the_workers() {
    let program = env!("CARGO_BIN_EXE_remote");
    let (_hub, url) = started(program, &["hub", "127.0.0.1:0"]).await;
    let _worker = Command::new(program).args(["worker", &url]).kill_on_drop(true).spawn().unwrap();
    // Until the worker has announced what it serves, the call fails.
    for _ in 0..200 {
        let output = Command::new(program).args(["call", &url]).output().await.unwrap();
        if output.status.success() {
            assert_eq!(String::from_utf8_lossy(&output.stdout), shown("workers"));
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("no worker answered");
}
