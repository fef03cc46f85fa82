//! Clients are told when the tools change.

use ops_runtime::access::Identity;
use ops_runtime::mcp::McpServer;
use serde_json::json;

use crate::client::{Client, REVISIONS};
use crate::fixture::{Sell, echo, registry};
use crate::tools::names;

#[tokio::test]
async fn before_2026_they_are_told_in_any_case() {
    let registry = registry();
    let mut client =
        Client::connect(McpServer::new(registry.clone()).with_namespaces(["math", "new"]), REVISIONS[0]).await;
    assert_eq!(names(&mut client).await, ["math_add", "math_count"]);
    // What is not served is no change.
    registry.register(echo("other.one", json!({}), json!({}))).unwrap();
    registry.register(echo("new.one", json!({}), json!({}))).unwrap();
    assert_eq!(client.notification().await["method"], "notifications/tools/list_changed");
    assert_eq!(names(&mut client).await, ["math_add", "math_count", "new_one"]);
    assert_eq!(client.call("new_one", json!({ "x": 1 })).await["structuredContent"], json!({ "x": 1 }));
    registry.remove("new.one").unwrap();
    assert_eq!(client.notification().await["method"], "notifications/tools/list_changed");
    assert_eq!(names(&mut client).await, ["math_add", "math_count"]);
    assert!(client.notifications.is_empty(), "{:?}", client.notifications);
}

#[tokio::test]
async fn since_2026_they_listen() {
    let registry = registry();
    let mut client = Client::connect(McpServer::new(registry.clone()), REVISIONS[1]).await;
    let filter = json!({ "toolsListChanged": true, "promptsListChanged": true });
    let id = client.send("subscriptions/listen", json!({ "notifications": filter })).await;
    let acknowledged = client.notification().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], json!({ "toolsListChanged": true }));
    registry.register(echo("new.one", json!({}), json!({}))).unwrap();
    let changed = client.notification().await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    client.notify("notifications/cancelled", json!({ "requestId": id })).await;
    registry.remove("new.one").unwrap();
    assert!(!names(&mut client).await.contains(&"new_one".to_owned()));
}

#[tokio::test]
async fn what_the_caller_does_not_see_is_no_change() {
    let registry = registry();
    registry.remove("shop.sell").unwrap();
    let server = McpServer::new(registry.clone()).with_identity(Identity::new("ann"));
    let mut client = Client::connect(server, REVISIONS[0]).await;
    registry.register(Sell).unwrap();
    registry.register(echo("new.one", json!({}), json!({}))).unwrap();
    assert_eq!(client.notification().await["method"], "notifications/tools/list_changed");
    client.request("tools/list", json!({})).await;
    assert!(client.notifications.is_empty());
}
