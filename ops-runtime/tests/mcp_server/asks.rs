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
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use crate::client::{Client, PATIENCE, REVISIONS};
use crate::http::Ask;

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

/// A form with members that the SDK's types do not have.
pub(crate) fn form() -> Value {
    let properties = json!({
        "code": { "type": "string", "pattern": "^[0-9]{6}$" },
        "even": { "type": "number", "exclusiveMinimum": 0.25, "multipleOf": 2 },
        "size": { "type": "string", "oneOf": [{ "const": "s", "title": "Small", "description": "30 cm" }] },
    });
    let schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    json!({ "message": "Your code?", "requestedSchema": schema, "x-more": [1.5], "_meta": { "x-own": 7 } })
}

#[tokio::test]
async fn a_question_is_sent_as_its_handler_gave_it() {
    let handler = Handler::dynamic(|_, context: Context| async move {
        let peer = McpPeer::of(&context).unwrap();
        let roots = peer.ask("roots", "roots/list", Value::Null);
        let (asked, roots) = tokio::try_join!(peer.ask("code", "elicitation/create", form()), roots)?;
        Ok(json!([asked["content"]["name"], roots["roots"]]))
    });
    let registry = Registry::new();
    let spec = OperationSpec::new(OperationKind::Query, "demo", "run").unwrap();
    registry.register(Registration::new(spec, handler)).unwrap();
    let capable = json!({ "elicitation": {}, "roots": {} });

    let mut client = Client::connect_with(McpServer::new(registry.clone()), REVISIONS[0], capable.clone()).await;
    let id = client.send("tools/call", json!({ "name": "demo_run", "arguments": {} })).await;
    let mut asked = [client.notification().await, client.notification().await];
    asked.sort_by_key(|asked| asked["method"].to_string());
    for (asked, expected) in asked.iter_mut().zip([form(), json!({ "_meta": {} })]) {
        // The SDK adds one to every request.
        let token = asked["params"]["_meta"].as_object_mut().unwrap().remove("progressToken");
        assert_eq!((token.is_some(), &asked["params"]), (true, &expected), "{asked}");
    }
    client.respond(&asked[0]["id"], accept("Ann")).await;
    client.respond(&asked[1]["id"], json!({ "roots": [] })).await;
    assert_eq!(client.answer(id).await["result"]["content"][0]["text"], r#"["Ann",[]]"#);

    // Both questions are in one result, which has no other revision of them.
    let expected = json!({
        "code": { "method": "elicitation/create", "params": form() },
        "roots": { "method": "roots/list" },
    });
    let mut client = Client::connect_with(McpServer::new(registry.clone()), REVISIONS[1], capable.clone()).await;
    let call = json!({ "name": "demo_run", "arguments": {} });
    let told = client.request("tools/call", call.clone()).await["result"].clone();
    assert_eq!((&told["resultType"], &told["inputRequests"]), (&json!("input_required"), &expected), "{told}");
    let service = McpServer::new(registry).into_service();
    let mut call = call;
    call["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": capable });
    let told = Ask::new(&service, REVISIONS[1]).send("tools/call", call).await.message()["result"].clone();
    assert_eq!((&told["resultType"], &told["inputRequests"]), (&json!("input_required"), &expected), "{told}");
}

/// A question with a URL has an id before 2026-07-28, and hosts refuse one without. Nothing else is added.
#[tokio::test]
async fn a_question_with_a_url_has_an_id_where_hosts_require_it() {
    let handler = Handler::dynamic(|input: Value, context: Context| async move {
        let peer = McpPeer::of(&context).unwrap();
        Ok(peer.ask("log-in", "elicitation/create", input).await?["action"].take())
    });
    let registry = Registry::new();
    let spec = OperationSpec::new(OperationKind::Query, "demo", "run").unwrap();
    registry.register(Registration::new(spec, handler)).unwrap();
    let capable = json!({ "elicitation": { "url": {} } });
    let given = json!({ "mode": "url", "message": "Log in", "url": "https://x.test/log-in" });
    let mut own = given.clone();
    own["elicitationId"] = json!("own");

    let mut client = Client::connect_with(McpServer::new(registry.clone()), REVISIONS[0], capable.clone()).await;
    let mut ids = Vec::new();
    for given in [&given, &given, &own] {
        let id = client.send("tools/call", json!({ "name": "demo_run", "arguments": given })).await;
        let mut asked = client.notification().await;
        client.respond(&asked["id"], json!({ "action": "accept" })).await;
        assert_eq!(client.answer(id).await["result"]["content"][0]["text"], "accept");
        // The SDK adds `_meta` to every request.
        asked["params"].as_object_mut().unwrap().remove("_meta");
        ids.push(asked["params"]["elicitationId"].as_str().unwrap().to_owned());
        let mut expected = given.clone();
        expected["elicitationId"] = json!(ids.last());
        assert_eq!(asked["params"], expected);
    }
    assert!(ids[0] != ids[1] && ids[..2].iter().all(|id| id.len() == 32), "{ids:?}");
    assert_eq!(ids[2], "own");

    let mut client = Client::connect_with(McpServer::new(registry), REVISIONS[1], capable).await;
    let told = client.request("tools/call", json!({ "name": "demo_run", "arguments": given })).await["result"].clone();
    let expected = json!({ "log-in": { "method": "elicitation/create", "params": given } });
    assert_eq!(told["inputRequests"], expected, "{told}");
}

/// Parameters of more than 100 levels are refused in all revisions, because readers of JSON refuse them, too.
#[tokio::test]
async fn the_parameters_of_a_question_are_not_nested_without_end() {
    let nested = |levels: usize| {
        let more = (2..=levels).fold(json!(1), |inner, _| json!([inner]));
        json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} }, "x-more": more })
    };
    let handler = Handler::dynamic(move |input: Value, context: Context| async move {
        let levels = usize::try_from(input["levels"].as_u64().unwrap()).unwrap();
        let asked = McpPeer::of(&context).unwrap().ask("deep", "elicitation/create", nested(levels)).await;
        Ok(asked.map_or_else(|error| json!(error.message()), |_| json!("answered")))
    });
    let registry = Registry::new();
    let spec = OperationSpec::new(OperationKind::Query, "demo", "run").unwrap();
    registry.register(Registration::new(spec, handler)).unwrap();
    for revision in REVISIONS {
        let server = McpServer::new(registry.clone());
        let mut client = Client::connect_with(server, revision, json!({ "elicitation": {} })).await;
        for levels in [101, 200] {
            let told = client.call("demo_run", json!({ "levels": levels })).await;
            let expected = "the parameters of `elicitation/create` are nested in more than 100 levels";
            assert_eq!(told["content"][0]["text"], expected, "{told}");
        }
    }
    let service = McpServer::new(registry).into_service();
    let deep = call("demo_run", json!({ "arguments": { "levels": 100 } }));
    let told = Ask::new(&service, REVISIONS[1]).send("tools/call", deep).await.message()["result"].clone();
    let expected = json!({ "deep": { "method": "elicitation/create", "params": nested(100) } });
    assert_eq!(told["inputRequests"], expected, "{told}");
}

/// The work of a call may be in a task of its own, which goes on when the call ends.
#[tokio::test]
async fn a_question_of_a_spawned_task_ends_with_its_call() {
    let (ends, mut ended) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    let handler = Handler::dynamic(move |input: Value, context| {
        let (ends, wait) = (ends.clone(), wait.clone());
        async move {
            let is_late = input["late"] == true;
            let asking = tokio::spawn(async move {
                if is_late {
                    wait.notified().await;
                }
                let answered = name(&context, "first").await;
                ends.send(answered.clone()).unwrap();
                answered
            });
            Ok(if is_late { json!("asks later") } else { json!(asking.await.unwrap()?) })
        }
    });
    let registry = Registry::new();
    let spec = OperationSpec::new(OperationKind::Query, "demo", "run").unwrap();
    registry.register(Registration::new(spec, handler)).unwrap();
    let mut client = Client::connect(McpServer::new(registry), REVISIONS[1]).await;
    let mut end = async || timeout(PATIENCE, ended.recv()).await.expect("an end in time").unwrap();
    let failure = |ended: Result<String, CallError>| {
        let error = ended.unwrap_err();
        (error.code().to_string(), error.message().to_owned())
    };
    let over = ("ABORTED".to_owned(), "`elicitation/create` has no answer: the call has ended".to_owned());
    let first = client.request("tools/call", call("demo_run", json!({}))).await["result"].clone();
    assert_eq!(first["resultType"], "input_required", "{first}");
    assert_eq!(failure(end().await), over);
    let answer = json!({ "requestState": first["requestState"], "inputResponses": { "first": accept("Ann") } });
    let done = client.request("tools/call", call("demo_run", answer)).await["result"].clone();
    assert_eq!((&done["structuredContent"], end().await), (&json!("Ann"), Ok("Ann".to_owned())), "{done}");
    // It asks when its call is over.
    let late = call("demo_run", json!({ "arguments": { "late": true } }));
    assert_eq!(client.request("tools/call", late).await["result"]["structuredContent"], "asks later");
    go.notify_one();
    assert_eq!(failure(end().await), over);
    // A client that can't be asked at all, during its call and after it.
    let unable = ("UNSUPPORTED".to_owned(), "the client does not support elicitation".to_owned());
    let error = client.request("tools/call", json!({ "name": "demo_run", "arguments": {} })).await["error"].clone();
    assert_eq!(error["data"]["requiredCapabilities"], json!({ "elicitation": {} }), "{error}");
    assert_eq!(failure(end().await), unable);
    let late = json!({ "name": "demo_run", "arguments": { "late": true } });
    assert_eq!(client.request("tools/call", late).await["result"]["structuredContent"], "asks later");
    go.notify_one();
    assert_eq!(failure(end().await), unable);
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
