//! Clients are told when the tools change.

use ops_runtime::Registry;
use ops_runtime::access::Identity;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::mcp::McpServer;
use ops_runtime::spec::OperationSpec;
use serde_json::json;

use crate::client::{Client, REVISIONS};
use crate::fixture::{Sell, echo, registry};
use crate::http::Ask;
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

/// An operation that returns its id.
fn its_id(id: &'static str) -> Registration {
    Registration::new(OperationSpec::query(id), Handler::dynamic(move |_, _| async move { Ok(json!(id)) }))
}

/// Both ids would get the name `files_backup_delete`.
#[tokio::test]
async fn a_name_never_leads_to_another_operation() {
    const SHARED: &str = "files_backup_delete";
    const BOTH: [&str; 2] = ["files_backup_delete_928fe8a8", "files_backup_delete_e3ae0e0a"];
    let (old, new) = ("files_backup.delete", "files.backup_delete");
    let registry = Registry::new();
    registry.register(its_id(old)).unwrap();
    let service = McpServer::new(registry.clone()).into_service();
    let begin = || Ask::new(&service, REVISIONS[0]);
    let of = |session: &str| begin().with("mcp-session-id", session);
    let listed = async |ask: Ask| {
        let answer = ask.send("tools/list", json!({})).await.message();
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // The id of the operation, or the code of the error.
    let ran = async |ask: Ask, tool: &str| {
        let answer = ask.send("tools/call", json!({ "name": tool, "arguments": {} })).await.message();
        answer.pointer("/result/content/0/text").or_else(|| answer.pointer("/error/code")).cloned().unwrap()
    };
    let early = begin().initialize().await;
    assert_eq!(listed(of(&early)).await, [SHARED]);
    registry.register(its_id(new)).unwrap();
    let late = begin().initialize().await;
    assert_eq!(listed(of(&late)).await, BOTH);
    let askers: [&dyn Fn() -> Ask; 3] = [&|| of(&early), &|| of(&late), &|| Ask::new(&service, REVISIONS[1])];
    for ask in askers {
        for (tool, id) in [(SHARED, old), (BOTH[0], old), (BOTH[1], new)] {
            assert_eq!(ran(ask(), tool).await, id, "{tool}");
        }
    }
    registry.remove(old).unwrap();
    assert_eq!(listed(of(&early)).await, [BOTH[1]]);
    for tool in [SHARED, BOTH[0]] {
        assert_eq!(ran(of(&early), tool).await, json!(-32602), "{tool}");
    }
    registry.register(its_id(old)).unwrap();
    assert_eq!(listed(of(&early)).await, BOTH);
    assert_eq!(ran(of(&early), SHARED).await, old);
    // The names are the same after a restart.
    let mut client = Client::connect(McpServer::new(registry), REVISIONS[0]).await;
    assert_eq!(names(&mut client).await, BOTH);
    let unknown = client.request("tools/call", json!({ "name": SHARED, "arguments": {} })).await;
    assert_eq!(unknown["error"]["code"], -32602);
}
