//! Handlers that ask the client that called them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ops_runtime::access::Identity;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::mcp::{McpPeer, McpServer};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{CallError, Context, Registry};
use serde_json::{Value, json};

use crate::client::{Client, REVISIONS};

async fn name(context: &Context, key: &str) -> Result<String, CallError> {
    let peer = McpPeer::of(context).ok_or_else(|| CallError::new("NO_CLIENT", "nobody to ask"))?;
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let answer = peer.ask(key, "elicitation/create", json!({ "message": key, "requestedSchema": schema })).await?;
    Ok(answer["content"]["name"].as_str().unwrap_or("nobody").to_owned())
}

/// A registry with an operation that asks twice, one after the other, and counts how often it runs.
fn registry() -> (Registry, Arc<AtomicUsize>) {
    let registry = Registry::new();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let handler = Handler::dynamic(move |_, context| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Ok(json!([name(&context, "first").await?, name(&context, "second").await?])) }
    });
    for other in ["ask", "other"] {
        let spec = OperationSpec::new(OperationKind::Query, "demo", other).unwrap();
        registry.register(Registration::new(spec, handler.clone())).unwrap();
    }
    (registry, runs)
}

/// The parameters of a call by a client that can be asked.
fn call(tool: &str, more: Value) -> Value {
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    let mut params = json!({ "name": tool, "arguments": {}, "_meta": meta });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

fn accept(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

#[tokio::test]
async fn answers_come_with_another_call() {
    let (registry, runs) = registry();
    let mut client = Client::connect(McpServer::new(registry), REVISIONS[1]).await;
    let first = client.request("tools/call", call("demo_ask", json!({}))).await["result"].clone();
    assert_eq!(first["resultType"], "input_required", "{first}");
    assert_eq!(first["inputRequests"]["first"]["params"]["message"], "first");
    let answer = json!({ "requestState": first["requestState"], "inputResponses": { "first": accept("Ann") } });
    let second = client.request("tools/call", call("demo_ask", answer)).await["result"].clone();
    assert_eq!(second["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["second"]);
    // The first answer is in the state.
    let answer = json!({ "requestState": second["requestState"], "inputResponses": { "second": accept("Bob") } });
    let done = client.request("tools/call", call("demo_ask", answer)).await["result"].clone();
    assert_eq!(done["structuredContent"], json!(["Ann", "Bob"]), "{done}");
    assert_eq!(runs.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_state_is_good_for_what_it_was_given_for() {
    let (registry, _) = registry();
    let server = |who: &str| McpServer::new(registry.clone()).with_identity(Identity::new(who)).with_state_key([7; 32]);
    let mut client = Client::connect(server("ann"), REVISIONS[1]).await;
    let first = client.request("tools/call", call("demo_ask", json!({}))).await["result"].clone();
    let answer = json!({ "requestState": first["requestState"], "inputResponses": { "first": accept("Ann") } });
    // With the same key, another server can go on.
    let mut client = Client::connect(server("ann"), REVISIONS[1]).await;
    let second = client.request("tools/call", call("demo_ask", answer.clone())).await;
    assert_eq!(second["result"]["resultType"], "input_required", "{second}");
    let error = client.request("tools/call", call("demo_other", answer.clone())).await["error"].clone();
    assert_eq!(error["code"], -32602, "another tool: {error}");
    let mut client = Client::connect(server("bob"), REVISIONS[1]).await;
    let error = client.request("tools/call", call("demo_ask", answer.clone())).await["error"].clone();
    assert_eq!(error["code"], -32602, "another caller: {error}");
    let (registry, _) = self::registry();
    let mut client = Client::connect(McpServer::new(registry), REVISIONS[1]).await;
    let error = client.request("tools/call", call("demo_ask", answer)).await["error"].clone();
    assert_eq!(error["code"], -32602, "another key: {error}");
}

#[tokio::test]
async fn who_can_not_be_asked() {
    let (registry, _) = registry();
    let mut client = Client::connect(McpServer::new(registry.clone()), REVISIONS[0]).await;
    let result = client.call("demo_ask", json!({})).await;
    assert_eq!(result["_meta"]["ops/error"]["code"], "UNSUPPORTED", "{result}");
    let mut client = Client::connect(McpServer::new(registry.clone()), REVISIONS[1]).await;
    let params = json!({ "name": "demo_ask", "arguments": {} });
    let error = client.request("tools/call", params).await["error"].clone();
    assert_eq!(error["data"]["requiredCapabilities"], json!({ "elicitation": {} }), "{error}");
    let error = registry.call("demo.ask", json!({})).await.unwrap_err();
    assert_eq!(error.code().as_str(), "NO_CLIENT");
}
