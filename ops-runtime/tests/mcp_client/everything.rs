//! The server `everything`, over stdio.

use ops_runtime::mcp::McpClient;
use serde_json::json;

use crate::peers::everything;

#[tokio::test]
async fn tools_are_listed_and_called() {
    let client = McpClient::connect(everything()).await.unwrap();
    eprintln!("{:?}", client.server_info());
    eprintln!("{:?}", client.operations().iter().map(|o| o.id.to_string()).collect::<Vec<_>>());
    let answer = client.call("everything.echo", json!({ "message": "hello" })).await.unwrap();
    assert_eq!(answer.data, json!([{ "type": "text", "text": "Echo: hello" }]));
    client.close().await;
}
