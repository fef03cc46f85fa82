//! Calls that somebody has to agree to.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};

use ops_runtime::access::CallPolicy;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::gateway::{AuditEntry, AuditLog, AuditOptions, CallerLimits, Gateway, Tools};
use ops_runtime::http::{HttpClient, HttpConfig};
use ops_runtime::mcp::McpPeer;
use ops_runtime::spec::{ErrorDefinition, OperationSpec, Schema};
use ops_runtime::{CallError, Context, Registry};
use serde_json::{Value, json};

use crate::client::{Client, REVISIONS};
use crate::fixture::{Shop, owner, text, texts};

pub(crate) fn rename() -> Value {
    json!({ "id": "shop.renamePet", "input": { "petId": 7, "name": "Max" } })
}

/// The parameters of `call` by a client that can be asked.
pub(crate) fn asked(arguments: Value, more: Value) -> Value {
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    let mut params = json!({ "name": "call", "arguments": arguments, "_meta": meta });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

#[tokio::test]
async fn a_client_asks_its_user() {
    for (action, renamed, told) in [
        ("accept", 1, r#"{"renamed":"Max"}"#),
        ("decline", 0, "the user declined"),
        ("cancel", 0, "did not agree to it, nor refuse it"),
    ] {
        let shop = Shop::new();
        let gateway = shop.gateway().build().await.unwrap();
        let mut client = Client::connect(gateway.owned_mcp_server(), REVISIONS[1]).await;
        let question = client.request("tools/call", asked(rename(), json!({}))).await["result"].clone();
        assert_eq!(question["resultType"], "input_required", "{question}");
        let requests = question["inputRequests"].as_object().unwrap();
        let (key, request) = requests.iter().next().unwrap();
        let message = request["params"]["message"].as_str().unwrap();
        assert!(message.starts_with("May `shop.renamePet` be called? Gives a pet another name.\n\n{"), "{message}");
        assert!(message.contains("\"name\": \"Max\""), "{message}");
        assert_eq!(shop.renamed(), 0);
        let answers = json!({ key: { "action": action } });
        let answer = json!({ "requestState": question["requestState"], "inputResponses": answers });
        let done = client.request("tools/call", asked(rename(), answer)).await["result"].clone();
        assert!(text(&done).contains(told), "{action}: {done}");
        assert_eq!(shop.renamed(), renamed, "{action}");
    }
}

/// A handler may ask under any key: a yes to the gateway's question is none to the handler's.
#[tokio::test]
async fn an_approval_answers_no_question_of_a_handler() {
    static PURGE: OperationSpec = OperationSpec::mutation("shop.purge");
    let shop = Shop::new();
    let purge = |_: Value, context: Context| async move {
        let peer = McpPeer::of(&context).unwrap();
        let schema = json!({ "type": "object", "properties": {} });
        let params = json!({ "message": "This deletes 400 files.", "requestedSchema": schema });
        let answer = peer.ask("approval", "elicitation/create", params).await?;
        Ok::<_, CallError>(answer["action"].clone())
    };
    shop.registry.register(Registration::new(&PURGE, Handler::dynamic(purge))).unwrap();
    let gateway = shop.gateway().build().await.unwrap();
    let mut client = Client::connect(gateway.owned_mcp_server(), REVISIONS[1]).await;
    let arguments = json!({ "id": "shop.purge" });
    let mut more = json!({});
    for message in ["May `shop.purge` be called?", "This deletes 400 files."] {
        let question = client.request("tools/call", asked(arguments.clone(), more)).await["result"].clone();
        assert_eq!(question["resultType"], "input_required", "{message}: {question}");
        let requests = question["inputRequests"].as_object().unwrap();
        let (key, request) = requests.iter().next().unwrap();
        assert!(request["params"]["message"].as_str().unwrap().starts_with(message), "{request}");
        let answers = json!({ key: { "action": "accept" } });
        more = json!({ "requestState": question["requestState"], "inputResponses": answers });
    }
    let done = client.request("tools/call", asked(arguments, more)).await["result"].clone();
    assert_eq!(text(&done), "accept", "{done}");
}

#[tokio::test]
async fn an_answer_asks_where_the_client_cannot() {
    let shop = Shop::new();
    let gateway = shop.gateway().build().await.unwrap();
    let mut client = owner(&gateway).await;
    let waits = client.call("call", rename()).await;
    let (_, key) = text(&waits).split_once("\"approval\": \"").unwrap();
    let (key, _) = key.split_once('"').unwrap();
    assert!(text(&waits).starts_with("This call waits."));
    assert_eq!(shop.renamed(), 0);
    let refused =
        |answer: &str| answer.starts_with("The approval is not one of") && answer.contains("This call waits.");
    // Another input, and another key, are other calls.
    let mut other = rename();
    other["input"]["name"] = json!("Tom");
    other["approval"] = json!(key);
    assert!(refused(text(&client.call("call", other).await)));
    let mut agreed = rename();
    agreed["approval"] = json!("0");
    assert!(refused(text(&client.call("call", agreed.clone()).await)));
    assert_eq!(shop.renamed(), 0);
    agreed["approval"] = json!(key);
    // The same input, its names in another order.
    let names = agreed["input"].as_object().unwrap().clone();
    assert!(names.len() > 1);
    agreed["input"] = names.into_iter().rev().collect::<serde_json::Map<_, _>>().into();
    assert_eq!(text(&client.call("call", agreed.clone()).await), r#"{"renamed":"Max"}"#);
    // Once.
    assert!(refused(text(&client.call("call", agreed).await)));
    assert_eq!(shop.renamed(), 1);
}

/// An operation may have an error of the code by which the gateway says that a call needs approval.
#[tokio::test]
async fn an_error_of_an_operation_is_no_question() {
    static PAY: OperationSpec =
        OperationSpec::mutation("bank.pay").with_errors(const { &[ErrorDefinition::new("APPROVAL_NEEDED")] });
    for policy in [CallPolicy::new().with_allow("*"), CallPolicy::new()] {
        let (shop, paid) = (Shop::new(), Arc::new(AtomicUsize::new(0)));
        let counted = paid.clone();
        let pay = move |_: Value, _: Context| {
            counted.fetch_add(1, SeqCst);
            async {
                let error = CallError::new("APPROVAL_NEEDED", "a manager has to sign");
                Err::<Value, _>(error.with_details(json!({ "request": 17 })))
            }
        };
        shop.registry.register(Registration::new(&PAY, Handler::dynamic(pay))).unwrap();
        let gateway = shop.gateway().with_policy(policy).build().await.unwrap();
        let mut client = owner(&gateway).await;
        let mut answer = client.call("call", json!({ "id": "bank.pay" })).await;
        let key = texts(&answer)[0].split_once("\"approval\": \"").map(|(_, rest)| {
            let (key, _) = rest.split_once('"').unwrap();
            key.to_owned()
        });
        if let Some(key) = key {
            assert_eq!(paid.load(SeqCst), 0);
            answer = client.call("call", json!({ "id": "bank.pay", "approval": key })).await;
        }
        assert_eq!(texts(&answer), ["APPROVAL_NEEDED: a manager has to sign", r#"{"request":17}"#], "{answer}");
        assert_eq!((&answer["isError"], paid.load(SeqCst)), (&json!(true), 1), "{answer}");
    }
}

#[tokio::test]
async fn nobody_is_asked_about_what_the_client_would_refuse() {
    let bodies = const { &[HttpBody::new("application/octet-stream").with_property("body")] };
    let input =
        Schema::text(r#"{ "type": "object", "required": ["body"], "properties": { "body": { "type": "string" } } }"#);
    let spec = OperationSpec::mutation("files.put").with_input(input);
    let spec = spec.with_http(HttpBinding::new("PUT", "/files").with_bodies(bodies));
    let files = HttpClient::new(HttpConfig::new().with_base_url("http://files.test")).unwrap();
    let registry = Registry::new();
    registry.register_all(files.bind_examples([spec])).unwrap();
    for tools in [Tools::Search, Tools::Code] {
        let gateway = Gateway::builder().with_registry(registry.clone()).with_tools(tools).build().await.unwrap();
        let mut client = Client::connect(gateway.owned_mcp_server(), REVISIONS[1]).await;
        for (input, told) in [
            (json!({ "body": "%%%" }), &["/body"][..]),
            (json!({ "body": "aGk=", "boddy": 1 }), &["/boddy"]),
            // What is missing is the schema's to tell, and what is misspelt the client's: both at once.
            (json!({ "boddy": "aGk=" }), &["body", "/boddy", "did you mean `body`?"]),
            (json!({ "body": 1, "name": "x" }), &["/body", "/name"]),
            (json!({ "body": "aGk=" }), &[]),
        ] {
            let params = match tools {
                Tools::Code => {
                    let code =
                        format!("try {{ await ops.files.put({input}) }} catch (error) {{ return error.details }}");
                    let mut params = asked(json!({ "code": code }), json!({}));
                    params["name"] = json!("execute");
                    params
                }
                _ => asked(json!({ "id": "files.put", "input": input }), json!({})),
            };
            let answer = client.request("tools/call", params).await["result"].clone();
            let is_asked = answer["resultType"] == "input_required";
            assert_eq!(is_asked, told.is_empty(), "{input}: {answer}");
            for told in told {
                assert!(text(&answer).contains(told), "{input}: {told} in {answer}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_does_not_ask_if_only_clients_may() {
    let shop = Shop::new();
    let gateway = shop.gateway().with_approval_by_client_only().build().await.unwrap();
    let refused = owner(&gateway).await.call("call", rename()).await;
    assert!(text(&refused).starts_with("APPROVAL_NEEDED: "), "{refused}");
    assert_eq!((shop.renamed(), &refused["isError"]), (0, &json!(true)));
}

#[tokio::test]
async fn a_policy_holds_whichever_way_a_call_comes() {
    for tools in [Tools::Search, Tools::All] {
        let shop = Shop::new();
        let policy = CallPolicy::new().with_allow("shop.renamePet").with_deny("shop.show*");
        let gateway = shop.gateway().with_tools(tools).with_policy(policy).build().await.unwrap();
        let mut client = owner(&gateway).await;
        let call = |id: &str, input: Value| match tools {
            Tools::All => (id.replace('.', "_"), input),
            _ => ("call".to_owned(), json!({ "id": id, "input": input })),
        };
        let (tool, input) = call("shop.showPet", json!({ "petId": 7 }));
        let refused = client.call(&tool, input).await;
        assert!(text(&refused).starts_with("ACCESS_DENIED: "), "{refused}");
        let (tool, input) = call("shop.renamePet", json!({ "petId": 7, "name": "Max" }));
        assert_eq!(text(&client.call(&tool, input).await), r#"{"renamed":"Max"}"#);
        let error = gateway.registry().call("shop.showPet", json!({ "petId": 7 })).await.unwrap_err();
        assert_eq!(error.code().as_str(), "ACCESS_DENIED");
        assert_eq!(shop.renamed(), 1);
        if tools == Tools::Search {
            // A model sees it before it tries, and of nothing else.
            let found = client.call("search", json!({ "query": "pet" })).await;
            let marked: Vec<&str> = text(&found).lines().filter(|line| line.contains("(denied by")).collect();
            assert_eq!(marked.len(), 1, "{found}");
            assert!(marked[0].starts_with("shop.showPet (denied by the policy of this gateway): "), "{found}");
            for (id, is_denied) in [("shop.showPet", true), ("shop.renamePet", false)] {
                let described = client.call("describe", json!({ "id": id })).await;
                assert_eq!(text(&described).starts_with("// This may not be called"), is_denied, "{described}");
            }
        }
    }
    let misspelt = Shop::new().gateway().with_policy(CallPolicy::new().with_deny("DELTE *")).build().await.unwrap_err();
    assert!(misspelt.message().contains("did you mean `DELETE`?"), "{misspelt}");
    // A document may have any method. What could not be read may have this one.
    static BATCH: OperationSpec = OperationSpec::mutation("shop.batch").with_http(HttpBinding::new("BATCH", "/pets"));
    let policy = CallPolicy::new().with_deny("BATCH *");
    let shop = Shop::new();
    shop.registry.register(Registration::new(&BATCH, Handler::dynamic(|_, _| async { Ok(Value::Null) }))).unwrap();
    let gateway = shop.gateway().with_policy(policy.clone()).build().await.unwrap();
    let error = gateway.registry().call("shop.batch", json!({})).await.unwrap_err();
    assert_eq!(error.code().as_str(), "ACCESS_DENIED");
    let lacking = Shop::new().gateway().with_document("nowhere.yaml", HttpConfig::new()).with_policy(policy);
    assert_eq!(lacking.build().await.unwrap().failures().len(), 1);
    // But no document makes these right.
    for (pattern, told) in
        [("", "the pattern is empty"), ("delte *", "did you mean `DELETE`?"), ("- /pets", "is no method")]
    {
        let policy = CallPolicy::new().with_deny(pattern);
        let lacking = Shop::new().gateway().with_document("nowhere.yaml", HttpConfig::new()).with_policy(policy);
        let error = lacking.build().await.unwrap_err();
        assert_eq!(error.code().as_str(), "VALIDATION_ERROR", "{pattern}");
        assert!(error.message().contains(told), "{pattern}: {error}");
    }
}

/// The key of a call that waits.
pub(crate) fn key(waits: &Value) -> &str {
    let (_, key) = text(waits).split_once("\"approval\": \"").unwrap_or_else(|| panic!("{waits}"));
    key.split_once('"').unwrap().0
}

#[tokio::test]
async fn a_user_has_more_time_than_the_operation() {
    static CLEAN: OperationSpec = OperationSpec::mutation("shop.clean").with_timeout(Duration::from_secs(2));
    let shop = Shop::new();
    let clean = |input: Value, _| async move {
        tokio::time::sleep(Duration::from_millis(input["ms"].as_u64().unwrap())).await;
        Ok(json!("clean"))
    };
    shop.registry.register(Registration::new(&CLEAN, Handler::dynamic(clean))).unwrap();
    let gateway = shop.gateway().build().await.unwrap();
    let can_ask = json!({ "elicitation": {} });
    let mut client = Client::connect_with(gateway.owned_mcp_server(), REVISIONS[0], can_ask).await;
    for (ms, told) in [(0, "clean"), (5_000, "TIMEOUT: ")] {
        let arguments = json!({ "id": "shop.clean", "input": { "ms": ms } });
        let call = client.send("tools/call", json!({ "name": "call", "arguments": arguments })).await;
        let question = client.receive().await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        tokio::time::sleep(Duration::from_millis(2_200)).await;
        client.respond(&question["id"], json!({ "action": "accept" })).await;
        let answer = client.answer(call).await["result"].clone();
        assert!(text(&answer).starts_with(told), "{answer}");
    }
    // Neither does it wait for its turn in its own time.
    let limits = CallerLimits::new().with_max_in_flight(1).with_max_waiting(10, Duration::from_secs(30));
    let policy = CallPolicy::new().with_allow("*");
    let gateway = shop.gateway().with_tools(Tools::All).with_policy(policy).with_limits(limits);
    let gateway = gateway.build().await.unwrap();
    // Nor behind another gateway.
    let outer =
        Gateway::builder().with_registry(gateway.registry().clone()).with_policy(CallPolicy::new().with_allow("*"));
    let outer = outer.build().await.unwrap();
    for registry in [&gateway.tools(), gateway.registry(), outer.registry()] {
        let call = || registry.call("shop.clean", json!({ "ms": 1_200 }));
        let (one, two) = futures_util::join!(call(), call());
        assert_eq!((one.unwrap().data, two.unwrap().data), (json!("clean"), json!("clean")));
    }
}

#[tokio::test]
async fn a_yes_is_kept_if_the_call_was_not_made() {
    let (shop, fails) = (Shop::new(), Arc::new(AtomicBool::new(false)));
    let failing = fails.clone();
    let sink = move |_: &AuditEntry| if failing.load(SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) };
    let log = AuditLog::to_sink(AuditOptions::new().with_required(), sink).unwrap();
    let gateway = shop.gateway().with_audit(log).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let mut agreed = rename();
    agreed["approval"] = json!(key(&client.call("call", rename()).await));
    for is_failing in [true, false] {
        fails.store(is_failing, SeqCst);
        // Until the log knows.
        let (show, began) = (json!({ "id": "shop.showPet", "input": { "petId": 7 } }), Instant::now());
        while client.call("call", show.clone()).await["isError"] != is_failing {
            assert!(began.elapsed() < Duration::from_secs(60), "the log does not know");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let answer = client.call("call", agreed.clone()).await;
        let told = if is_failing { "the audit log cannot be written" } else { r#"{"renamed":"Max"}"# };
        assert!(text(&answer).contains(told), "{answer}");
    }
    // Once.
    assert!(text(&client.call("call", agreed).await).starts_with("The approval is not one of"));
    assert_eq!(shop.renamed(), 1);
}

/// A gateway with `zoo.tidy`, which renames two pets by calls through another gateway.
async fn nested(shop: &Shop) -> Gateway {
    static TIDY: OperationSpec = OperationSpec::mutation("zoo.tidy");
    let inner = shop.gateway().with_tools(Tools::All).build().await.unwrap();
    // An operation of another gateway, which calls one of the first.
    let registry = inner.tools();
    let tidy = |_, context: Context| async move {
        for name in ["Max", "Tom"] {
            let renamed = context.env().call("shop.renamePet", json!({ "petId": 7, "name": name })).await;
            if let Err(error) = renamed {
                return Ok(json!(error.code().as_str()));
            }
        }
        Ok::<_, CallError>(json!("tidy"))
    };
    registry.register(Registration::new(&TIDY, Handler::dynamic(tidy))).unwrap();
    Gateway::builder().with_registry(registry).with_tools(Tools::Search).build().await.unwrap()
}

#[tokio::test]
async fn a_yes_is_not_one_to_further_calls() {
    let shop = Shop::new();
    let outer = nested(&shop).await;
    let mut client = owner(&outer).await;
    let mut call = json!({ "id": "zoo.tidy" });
    call["approval"] = json!(key(&client.call("call", call.clone()).await));
    let answer = client.call("call", call).await;
    assert_eq!((text(&answer), shop.renamed()), ("APPROVAL_NEEDED", 0), "{answer}");
}

/// The user sees each call before it is made, also where all answers come with one request.
#[tokio::test]
async fn each_call_has_a_question_of_its_own() {
    let shop = Shop::new();
    let outer = nested(&shop).await;
    let mut client = Client::connect(outer.owned_mcp_server(), REVISIONS[1]).await;
    let (arguments, mut more) = (json!({ "id": "zoo.tidy" }), json!({}));
    for (id, shown, renamed) in
        [("zoo.tidy", "", 0), ("shop.renamePet", "\"name\": \"Max\"", 0), ("shop.renamePet", "\"name\": \"Tom\"", 1)]
    {
        let question = client.request("tools/call", asked(arguments.clone(), more)).await["result"].clone();
        assert_eq!(question["resultType"], "input_required", "{id} {shown}: {question}");
        let (key, request) = question["inputRequests"].as_object().unwrap().iter().next().unwrap();
        let message = request["params"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("May `{id}` be called?")) && message.contains(shown), "{message}");
        assert_eq!(shop.renamed(), renamed, "{message}");
        let answers = json!({ key: { "action": "accept" } });
        more = json!({ "requestState": question["requestState"], "inputResponses": answers });
    }
    let done = client.request("tools/call", asked(arguments, more)).await["result"].clone();
    assert_eq!(text(&done), "tidy", "{done}");
}

#[tokio::test]
async fn a_model_of_this_process_waits_too() {
    let shop = Shop::new();
    let gateway = shop.gateway().build().await.unwrap();
    let tools = gateway.tools();
    let said = async |arguments: Value| {
        let answer = tools.call("gateway.call", arguments).await.unwrap();
        answer.meta.as_mcp().unwrap().content[0].as_text().unwrap().to_owned()
    };
    let waits = said(rename()).await;
    assert!(waits.starts_with("This call waits."), "{waits}");
    assert_eq!(shop.renamed(), 0);
    let (_, key) = waits.split_once("\"approval\": \"").unwrap();
    let mut agreed = rename();
    agreed["approval"] = json!(key.split_once('"').unwrap().0);
    assert_eq!(said(agreed).await, r#"{"renamed":"Max"}"#);
    assert_eq!(shop.renamed(), 1);
    let strict = shop.gateway().with_approval_by_client_only().build().await.unwrap();
    let refused = strict.tools().call("gateway.call", rename()).await.unwrap();
    let refused = refused.meta.as_mcp().unwrap().content[0].as_text().unwrap().to_owned();
    assert!(refused.starts_with("APPROVAL_NEEDED: `shop.renamePet` changes something"), "{refused}");
    // Where there is a tool for each operation, too.
    for tools in [Tools::Auto, Tools::All] {
        let all = shop.gateway().with_tools(tools).build().await.unwrap().tools();
        let input = json!({ "petId": 7, "name": "Max" });
        let refused = all.call("shop.renamePet", input).await.unwrap_err();
        assert_eq!(refused.code().as_str(), "APPROVAL_NEEDED", "{refused}");
        assert_eq!(
            all.call("shop.showPet", json!({ "petId": 7 })).await.unwrap().data,
            json!({ "id": 7, "name": "Rex" })
        );
    }
    assert_eq!(shop.renamed(), 1);
    // Whoever is no model says itself what is to be done.
    gateway.registry().call("shop.renamePet", json!({ "petId": 7, "name": "Tom" })).await.unwrap();
    assert_eq!(shop.renamed(), 2);
}

#[tokio::test]
async fn a_client_without_forms_is_not_asked_by_one() {
    let shop = Shop::new();
    let gateway = shop.gateway().build().await.unwrap();
    let urls = json!({ "elicitation": { "url": {} } });
    let mut client = Client::connect_with(gateway.owned_mcp_server(), REVISIONS[0], urls).await;
    let waits = client.call("call", rename()).await;
    assert!(text(&waits).starts_with("This call waits."), "{waits}");
}

/// A `POST` whose response is a stream may change as much as any other.
#[tokio::test]
async fn a_stream_that_may_change_something_needs_consent() {
    static RUN: OperationSpec = OperationSpec::subscription("shop.startRun")
        .with_description("Starts a run.")
        .with_http(HttpBinding::new("POST", "/runs"));
    static ASK: OperationSpec = OperationSpec::subscription("shop.askModel")
        .with_description("Asks a model.")
        .with_http(HttpBinding::new("POST", "/questions"))
        .with_changes(false);
    let (shop, begun) = (Shop::new(), Arc::new(AtomicUsize::new(0)));
    for spec in [&RUN, &ASK] {
        let begun = begun.clone();
        let items = move |_, _| {
            let number = begun.fetch_add(1, SeqCst) + 1;
            async move { Ok(futures_util::stream::iter([Ok(json!(number))])) }
        };
        shop.registry.register(Registration::new(spec, Handler::dynamic_stream(items))).unwrap();
    }
    let gateway = shop.gateway().build().await.unwrap();
    let mut client = owner(&gateway).await;
    let found = client.call("search", json!({ "query": "start a run" })).await;
    assert!(text(&found).contains("shop.startRun (streams, changes): Starts a run."), "{found}");
    let found = client.call("search", json!({ "query": "ask a model" })).await;
    assert!(text(&found).contains("shop.askModel (streams): Asks a model."), "{found}");
    let waits = client.call("call", json!({ "id": "shop.startRun" })).await;
    assert!(text(&waits).starts_with("This call waits."), "{waits}");
    assert_eq!(begun.load(SeqCst), 0);
    assert_eq!(text(&client.call("call", json!({ "id": "shop.askModel" })).await), "[1]");

    let reading = shop.gateway().read_only().build().await.unwrap();
    let listed: Vec<_> = reading.registry().list().iter().map(|spec| spec.id.to_string()).collect();
    assert!(!listed.contains(&"shop.startRun".to_owned()), "{listed:?}");
    assert!(listed.contains(&"shop.askModel".to_owned()), "{listed:?}");

    // A program that fails after such a call reports the call.
    let policy = CallPolicy::new().with_allow("shop.startRun");
    let gateway = shop.gateway().with_tools(Tools::Code).with_policy(policy).build().await.unwrap();
    let code = "await ops.shop.askModel({}); await ops.shop.startRun({}); throw new Error('later')";
    let failed = owner(&gateway).await.call("execute", json!({ "code": code })).await;
    assert!(text(&failed).contains("stays done: `shop.startRun` (1)."), "{failed}");
    assert_eq!(begun.load(SeqCst), 3);
}
