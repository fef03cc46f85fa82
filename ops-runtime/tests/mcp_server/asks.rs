//! Handlers that ask the client that called them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ops_runtime::access::Identity;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::mcp::{McpPeer, McpServer, McpServerOptions};
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

/// The user says yes to what was shown, and to nothing else: neither to another question under the same key, nor to the same
/// one when it comes again, nor to one whose text is another when the handler runs again.
#[tokio::test]
async fn an_answer_counts_for_its_own_question() {
    let texts = Arc::new(Mutex::new(vec!["delete a", "delete b", "delete b"]));
    let own = texts.clone();
    let handler = Handler::dynamic(move |_, context: Context| {
        let texts = own.lock().unwrap().clone();
        async move {
            let peer = McpPeer::of(&context).unwrap();
            let mut answers = Vec::new();
            for text in texts {
                let schema = json!({ "type": "object", "properties": {} });
                let params = json!({ "message": text, "requestedSchema": schema });
                let answer = peer.ask("sure", "elicitation/create", params).await?;
                answers.push(json!([text, answer["content"]["name"]]));
            }
            Ok(json!(answers))
        }
    });
    let registry = Registry::new();
    let spec = OperationSpec::new(OperationKind::Mutation, "demo", "delete").unwrap();
    registry.register(Registration::new(spec, handler)).unwrap();
    let mut client = Client::connect(McpServer::new(registry), REVISIONS[1]).await;
    let ask = async |client: &mut Client, more: Value, answer: &str| {
        let asked = client.request("tools/call", call("demo_delete", more)).await["result"].clone();
        let requests = asked["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}"));
        assert_eq!(requests.len(), 1, "{asked}");
        let (key, request) = requests.iter().next().unwrap();
        let answers = json!({ key: accept(answer) });
        let more = json!({ "requestState": asked["requestState"], "inputResponses": answers });
        (key.clone(), request["params"]["message"].as_str().unwrap().to_owned(), more)
    };
    let mut more = json!({});
    for (key, text, answer) in [("sure", "delete a", "1"), ("sure#2", "delete b", "2"), ("sure#3", "delete b", "3")] {
        let asked = ask(&mut client, more, answer).await;
        assert_eq!((asked.0.as_str(), asked.1.as_str()), (key, text));
        more = asked.2;
    }
    let done = client.request("tools/call", call("demo_delete", more)).await["result"].clone();
    let expected = json!([["delete a", "1"], ["delete b", "2"], ["delete b", "3"]]);
    assert_eq!(done["structuredContent"], expected, "{done}");

    let (_, _, more) = ask(&mut client, json!({}), "yes").await;
    *texts.lock().unwrap() = vec!["delete everything"];
    let (key, text, more) = ask(&mut client, more, "no").await;
    assert_eq!((key.as_str(), text.as_str()), ("sure#2", "delete everything"));
    let done = client.request("tools/call", call("demo_delete", more)).await["result"].clone();
    assert_eq!(done["structuredContent"], json!([["delete everything", "no"]]), "{done}");
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
    // The error does not tell the client to repeat a call that may have changed something.
    let told = "this `requestState` is more than an hour old, or was not given by this server for this call. What the call \
                did before it asked stays done: call the tool again without the state only if it may begin anew";
    assert_eq!(error["message"], told);
}

/// What the client is asked next is withdrawn.
async fn is_withdrawn(client: &mut Client) {
    let asked = client.notification().await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let withdrawn = client.notification().await;
    assert_eq!(withdrawn["method"], "notifications/cancelled", "{withdrawn}");
    assert_eq!(withdrawn["params"]["requestId"], asked["id"], "{withdrawn}");
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_is_withdrawn() {
    let connect = |options: McpServerOptions| {
        let server = McpServer::new(registry().0).with_options(options);
        Client::connect_with(server, REVISIONS[0], json!({ "elicitation": {} }))
    };
    // The answer does not come in time.
    let mut client = connect(McpServerOptions::default().with_ask_timeout(Duration::from_millis(50))).await;
    let result = client.call("demo_ask", json!({})).await;
    assert_eq!(result["_meta"]["ops/error"]["code"], "TIMEOUT", "{result}");
    is_withdrawn(&mut client).await;
    // The client itself does not wait for the call.
    let mut client = connect(McpServerOptions::default()).await;
    let id = client.send("tools/call", json!({ "name": "demo_ask", "arguments": {} })).await;
    let asked = client.notification().await;
    client.notify("notifications/cancelled", json!({ "requestId": id })).await;
    client.notifications.push(asked);
    is_withdrawn(&mut client).await;
    // One that is answered is not withdrawn.
    let mut client = connect(McpServerOptions::default()).await;
    let id = client.send("tools/call", json!({ "name": "demo_ask", "arguments": {} })).await;
    for name in ["Ann", "Bob"] {
        let asked = client.notification().await;
        client.respond(&asked["id"], accept(name)).await;
    }
    assert_eq!(client.answer(id).await["result"]["content"][0]["text"], r#"["Ann","Bob"]"#);
    client.request("tools/list", json!({})).await;
    assert!(client.notifications.is_empty(), "{:?}", client.notifications);
}

#[tokio::test]
async fn a_model_is_given_tools_if_the_client_says_so() {
    let handler = Handler::dynamic(|_, context: Context| async move {
        let peer = McpPeer::of(&context).unwrap();
        let tool = json!({ "name": "look", "inputSchema": { "type": "object" } });
        let params = json!({ "messages": [], "maxTokens": 9, "tools": [tool] });
        let asked = peer.ask("look", "sampling/createMessage", params).await;
        Ok(json!([peer.supports("sampling.tools"), asked.map_err(|error| error.code().to_string()).err()]))
    });
    let registry = Registry::new();
    let spec = OperationSpec::new(OperationKind::Query, "demo", "sample").unwrap();
    registry.register(Registration::new(spec, handler)).unwrap();
    let connect = |sampling: Value| {
        Client::connect_with(McpServer::new(registry.clone()), REVISIONS[0], json!({ "sampling": sampling }))
    };
    let mut client = connect(json!({})).await;
    let told = client.call("demo_sample", json!({})).await["content"][0]["text"].clone();
    assert_eq!((told, client.notifications.len()), (json!(r#"[false,"UNSUPPORTED"]"#), 0));
    let mut client = connect(json!({ "tools": {} })).await;
    let id = client.send("tools/call", json!({ "name": "demo_sample", "arguments": {} })).await;
    let asked = client.notification().await;
    assert_eq!(asked["params"]["tools"][0]["name"], "look", "{asked}");
    let text = json!({ "type": "text", "text": "seen" });
    client.respond(&asked["id"], json!({ "role": "assistant", "content": text, "model": "m" })).await;
    assert_eq!(client.answer(id).await["result"]["content"][0]["text"], "[true,null]");
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
