//! What the audit log says of calls that fail.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use ops_runtime::access::Identity;
use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, PayloadStream, Registration};
use ops_runtime::gateway::{AuditEntry, AuditLog, AuditOptions, CallerLimits, Gateway, Tools};
use ops_runtime::mcp::McpServerOptions;
use ops_runtime::registry::CancelToken;
use ops_runtime::spec::{ErrorDefinition, OperationSpec, Schema};
use ops_runtime::{CallError, CallOptions, Context, Registry, ResponseEnvelope};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::client::{Client, REVISIONS};
use crate::fixture::{Shop, owner, text};

/// The entries of a log.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<Value>>>);

impl Kept {
    pub(crate) fn log(&self) -> AuditLog {
        let kept = self.0.clone();
        let keep = move |entry: &AuditEntry| {
            kept.lock().unwrap().push(entry.to_json());
            Ok(())
        };
        AuditLog::to_sink(AuditOptions::new(), keep).unwrap()
    }

    /// The outcomes of the calls that have ended, each with its operation.
    pub(crate) async fn outcomes(&self, gateway: &Gateway) -> Vec<String> {
        let told =
            |entry: Value| format!("{} {}", entry["operation"].as_str().unwrap(), entry["outcome"].as_str().unwrap());
        self.entries(gateway).await.into_iter().map(told).collect()
    }

    /// What was logged of the calls that have ended since it was last read.
    pub(crate) async fn entries(&self, gateway: &Gateway) -> Vec<Value> {
        gateway.flush().await;
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

static WAIT: OperationSpec = OperationSpec::query("shop.wait");
static SLOW: OperationSpec = OperationSpec::query("shop.slow").with_timeout(Duration::from_millis(50));
static PANIC: OperationSpec = OperationSpec::query("shop.panic");
static SELL: OperationSpec = OperationSpec::query("shop.sell").with_errors(const { &[ErrorDefinition::new("SOLD")] });

/// Adds operations that fail in many ways.
fn add_failing(registry: &Registry) {
    let wait = |_, _| async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        Ok(json!(null))
    };
    let sold = |_, _| async { Err(CallError::execution("SOLD: an hour ago")) };
    let panic = |_, _| async { panic!("as a handler may") };
    registry.register(Registration::new(&WAIT, Handler::dynamic(wait))).unwrap();
    registry.register(Registration::new(&SLOW, Handler::dynamic(wait))).unwrap();
    registry.register(Registration::new(&PANIC, Handler::dynamic(panic))).unwrap();
    registry.register(Registration::new(&SELL, Handler::dynamic(sold))).unwrap();
}

#[tokio::test]
async fn an_outcome_is_the_code_that_the_caller_gets() {
    let (shop, kept) = (Shop::new(), Kept::default());
    add_failing(&shop.registry);
    let limits = CallerLimits::new().with_max_in_flight(1).with_max_waiting(10, Duration::from_secs(30));
    let gateway = shop.gateway().with_limits(limits).with_audit(kept.log()).build().await.unwrap();
    let soon = || CallOptions::new().with_timeout(Duration::from_millis(50));
    for (id, code, options) in [
        ("shop.wait", "TIMEOUT", soon()),
        ("shop.slow", "TIMEOUT", CallOptions::new()),
        ("shop.panic", "UNKNOWN_ERROR", CallOptions::new()),
        ("shop.sell", "SOLD", CallOptions::new()),
    ] {
        let error = gateway.registry().call_with(id, json!({}), options).await.unwrap_err();
        assert_eq!(error.code().as_str(), code, "{id}");
        assert_eq!(kept.outcomes(&gateway).await, [format!("{id} {code}")]);
    }
    // One that waits for another call until its caller gives up; the other is dropped.
    let other = gateway.registry().call("shop.wait", json!({}));
    let late = gateway.registry().call_with("shop.panic", json!({}), soon());
    tokio::select! {
        biased;
        ended = other => panic!("{ended:?}"),
        ended = late => assert_eq!(ended.unwrap_err().code().as_str(), "TIMEOUT"),
    }
    let mut outcomes = kept.outcomes(&gateway).await;
    outcomes.sort();
    assert_eq!(outcomes, ["shop.panic TIMEOUT", "shop.wait ABORTED"]);
}

/// A server that gives the same text to every call.
struct Gives(&'static str);

impl Endpoint for Gives {
    fn call(
        &self,
        spec: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let text = Payload::Json(Bytes::from_static(self.0.as_bytes()));
        let envelope = ResponseEnvelope::local(text, spec.id.clone());
        Box::pin(async move { Ok(envelope) })
    }
}

/// A feed of these items, each as the text that came.
struct Feed(&'static [Result<&'static str, &'static str>]);

impl Endpoint for Feed {
    fn call(
        &self,
        _: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        Box::pin(async { Err(CallError::execution("it is a feed")) })
    }

    fn subscribe(
        &self,
        spec: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        let id = spec.id.clone();
        let items = self.0.iter().map(move |item| match *item {
            Ok(text) => Ok(ResponseEnvelope::local(Payload::Json(Bytes::from_static(text.as_bytes())), id.clone())),
            Err(code) => Err(CallError::new(code, "it failed")),
        });
        let items: PayloadStream = Box::pin(futures_util::stream::iter(items));
        Box::pin(async move { Ok(items) })
    }
}

#[tokio::test]
async fn the_outcome_of_a_subscription_is_that_of_its_last_item() {
    static FEED: OperationSpec = OperationSpec::subscription("shop.feed");
    let cases: [(&'static [_], &str); 7] = [
        (&[Ok("1"), Ok("2")], "ok"),
        (&[], "ok"),
        (&[Ok("1"), Err("GONE")], "GONE"),
        (&[Ok("1"), Err("GONE"), Ok("2")], "ok"),
        // The model gets the error of the first one.
        (&[Err("GONE"), Ok("2")], "GONE"),
        (&[Ok("{nonsense")], "VALIDATION_ERROR"),
        (&[Ok("1"), Ok("{nonsense")], "VALIDATION_ERROR"),
    ];
    for (items, outcome) in cases {
        let (shop, kept) = (Shop::new(), Kept::default());
        shop.registry.register(Registration::new(&FEED, Handler::endpoint(Feed(items)))).unwrap();
        let gateway = shop.gateway().with_audit(kept.log()).build().await.unwrap();
        owner(&gateway).await.call("call", json!({ "id": "shop.feed" })).await;
        assert_eq!(kept.outcomes(&gateway).await, [format!("shop.feed {outcome}")], "{items:?}");
    }
}

#[tokio::test]
async fn a_subscription_whose_reader_leaves_is_ok() {
    static SILENT: OperationSpec = OperationSpec::subscription("shop.silent");
    static ENDLESS: OperationSpec = OperationSpec::subscription("shop.endless");
    let (shop, kept) = (Shop::new(), Kept::default());
    let silent = |_, _| async { Ok(futures_util::stream::pending()) };
    let endless = |_, _| async { Ok(futures_util::stream::repeat_with(|| Ok(json!(1)))) };
    shop.registry.register(Registration::new(&SILENT, Handler::dynamic_stream(silent))).unwrap();
    shop.registry.register(Registration::new(&ENDLESS, Handler::dynamic_stream(endless))).unwrap();
    let gateway = shop.gateway().with_audit(kept.log()).build().await.unwrap();
    drop(gateway.registry().stream("shop.silent", json!({})).await.unwrap());
    assert_eq!(kept.outcomes(&gateway).await, ["shop.silent ok"]);
    let mut items = gateway.registry().stream("shop.endless", json!({})).await.unwrap();
    assert_eq!(items.next().await.unwrap().unwrap().data, 1);
    assert_eq!(kept.outcomes(&gateway).await, [""; 0]);
    drop(items);
    assert_eq!(kept.outcomes(&gateway).await, ["shop.endless ok"]);
}

#[tokio::test]
async fn a_subscription_that_its_deadline_or_its_token_ends_is_not_ok() {
    static ONE: OperationSpec = OperationSpec::subscription("shop.one");
    let (shop, kept) = (Shop::new(), Kept::default());
    let one = |_, _| async { Ok(futures_util::stream::iter([Ok(json!(1))]).chain(futures_util::stream::pending())) };
    shop.registry.register(Registration::new(&ONE, Handler::dynamic_stream(one))).unwrap();
    let soon = Duration::from_millis(50);
    let gateway = shop.gateway().with_audit(kept.log()).build().await.unwrap();
    let cancel = CancelToken::new();
    for (options, code) in [
        (CallOptions::new().with_timeout(soon), "TIMEOUT"),
        (CallOptions::new().with_cancel(cancel.clone()), "ABORTED"),
    ] {
        let mut items = gateway.registry().stream_with("shop.one", json!({}), options).await.unwrap();
        assert_eq!(items.next().await.unwrap().unwrap().data, 1);
        if code == "ABORTED" {
            cancel.cancel();
        }
        assert_eq!(items.next().await.unwrap().unwrap_err().code().as_str(), code);
        assert_eq!(kept.outcomes(&gateway).await, [format!("shop.one {code}")]);
    }
    let server = McpServerOptions::default().with_timeout(soon);
    let gateway = shop.gateway().with_options(server).with_audit(kept.log()).build().await.unwrap();
    owner(&gateway).await.call("call", json!({ "id": "shop.one" })).await;
    assert_eq!(kept.outcomes(&gateway).await, ["shop.one TIMEOUT"]);
}

static COUNT: OperationSpec = OperationSpec::query("shop.count")
    .with_output(Schema::text(r#"{"type":"object","required":["pets"],"properties":{"pets":{"type":"integer"}}}"#));

#[tokio::test]
async fn a_result_that_its_caller_does_not_get_is_no_ok() {
    for (text, by_id, by_tool) in [
        ("{ \"pets\": 7 }", "ok", "ok"),
        (r#"{"pets":NaN}"#, "VALIDATION_ERROR", "VALIDATION_ERROR"),
        ("[1, 2]", "VALIDATION_ERROR", "VALIDATION_ERROR"),
        // The caller by id gets it with a warning; the tool has promised its schema.
        (r#"{"pets":"seven"}"#, "ok", "VALIDATION_ERROR"),
    ] {
        let (shop, kept) = (Shop::new(), Kept::default());
        shop.registry.register(Registration::new(&COUNT, Handler::endpoint(Gives(text)))).unwrap();
        let gateway = shop.gateway().with_tools(Tools::All).with_audit(kept.log()).build().await.unwrap();
        let called = gateway.registry().call("shop.count", json!({})).await;
        assert_eq!(called.is_ok(), by_id == "ok", "{text}: {called:?}");
        assert_eq!(kept.outcomes(&gateway).await, [format!("shop.count {by_id}")], "{text}");
        let answer = owner(&gateway).await.call("shop_count", json!({})).await;
        assert_eq!(answer["isError"] == true, by_tool != "ok", "{text}: {answer}");
        assert_eq!(kept.outcomes(&gateway).await, [format!("shop.count {by_tool}")], "{text}");
    }
}

#[tokio::test]
async fn a_text_has_the_size_with_which_it_came() {
    let (shop, kept) = (Shop::new(), Kept::default());
    let text = "{ \"pets\": 7 }";
    shop.registry.register(Registration::new(&COUNT, Handler::endpoint(Gives(text)))).unwrap();
    let gateway = shop.gateway().with_audit(kept.log()).build().await.unwrap();
    gateway.registry().call("shop.count", json!({})).await.unwrap();
    gateway.flush().await;
    assert_eq!(kept.0.lock().unwrap()[0]["outputBytes"], text.len());
}

#[tokio::test]
async fn a_call_that_is_refused_is_told_whichever_way_it_comes() {
    let (shop, kept) = (Shop::new(), Kept::default());
    let gateway = shop.gateway().with_tools(Tools::All).with_audit(kept.log()).build().await.unwrap();
    let (wrong, refused) = (json!({ "petId": 0 }), ["shop.showPet VALIDATION_ERROR"]);

    let answer = owner(&gateway).await.call("shop_showPet", wrong.clone()).await;
    assert!(text(&answer).starts_with("VALIDATION_ERROR"), "{answer}");
    assert_eq!(kept.outcomes(&gateway).await, refused);
    for registry in [&gateway.tools(), gateway.registry()] {
        registry.call("shop.showPet", wrong.clone()).await.unwrap_err();
        assert_eq!(kept.outcomes(&gateway).await, refused);
        let error = registry.scoped(Identity::new("bob")).call("books.total", json!({})).await.unwrap_err();
        assert_eq!(error.code().as_str(), "ACCESS_DENIED");
        assert_eq!(kept.outcomes(&gateway).await, ["books.total ACCESS_DENIED"]);
        // A check of an input is no call.
        registry.check_input("shop.showPet", &wrong).unwrap_err();
        assert_eq!(kept.outcomes(&gateway).await, [""; 0]);
    }
}

#[cfg(feature = "http-server")]
#[tokio::test]
async fn a_call_that_is_refused_over_http_is_told() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let (shop, kept) = (Shop::new(), Kept::default());
    let gateway = shop.gateway().with_audit(kept.log()).build().await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(gateway.http_server().serve_listener(listener));
    for (path, body, status, told) in [
        ("shop/showPet", r#"{"petId":0}"#, 422, "shop.showPet VALIDATION_ERROR"),
        ("books/total", "{}", 401, "books.total ACCESS_DENIED"),
    ] {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let head = format!("POST /operations/{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
        let length = body.len();
        let rest = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(format!("{head}{rest}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert_eq!(kept.outcomes(&gateway).await, [told], "{answer}");
    }
}

/// The key of a program that waits, and that of the first of its calls.
fn keys(waits: &str) -> (String, String) {
    let part = |before: &str, after: char| waits.split_once(before).unwrap().1.split(after).next().unwrap().to_owned();
    (part("\"resume\": \"", '"'), part("(key ", ')'))
}

#[tokio::test]
async fn a_call_of_a_program_that_is_not_agreed_to_is_told() {
    let (shop, kept) = (Shop::new(), Kept::default());
    let gateway = shop.gateway().with_tools(Tools::Code).with_audit(kept.log()).build().await.unwrap();
    let told = async || {
        gateway.flush().await;
        let entries = std::mem::take(&mut *kept.0.lock().unwrap());
        let told = entries.iter().map(|entry| {
            assert_eq!((&entry["operation"], &entry["connection"]), (&json!("shop.renamePet"), &json!("owner")));
            format!("{} {}", entry["outcome"].as_str().unwrap(), entry["approval"]["state"].as_str().unwrap())
        });
        told.collect::<Vec<_>>()
    };
    let code = "await ops.shop.renamePet({ petId: 7, name: 'Max' })";
    // The model says what the user said.
    let mut client = owner(&gateway).await;
    let waits = client.call("execute", json!({ "code": code })).await;
    assert_eq!(told().await, ["APPROVAL_NEEDED asked"]);
    let (key, ask) = keys(text(&waits));
    client.call("execute", json!({ "code": code, "resume": key, "decline": [ask] })).await;
    assert_eq!(told().await, ["ACCESS_DENIED denied"]);
    // The client asks its user.
    let form = json!({ "elicitation": {} });
    let mut client = Client::connect_with(gateway.owned_mcp_server(), REVISIONS[0], form.clone()).await;
    for (action, expected) in
        [(Some("accept"), "ok approved"), (Some("decline"), "ACCESS_DENIED denied"), (None, "EXECUTION_ERROR asked")]
    {
        let id = client.send("tools/call", json!({ "name": "execute", "arguments": { "code": code } })).await;
        let question = client.receive().await["id"].clone();
        match action {
            Some(action) => client.respond(&question, json!({ "action": action })).await,
            None => client.refuse(&question, "there is no screen").await,
        }
        client.answer(id).await;
        assert_eq!(told().await, [expected]);
    }
    // The answer comes with another call.
    let mut client = Client::connect_with(gateway.owned_mcp_server(), REVISIONS[1], form).await;
    let asked = client.call("execute", json!({ "code": code })).await;
    assert_eq!(told().await, ["ABORTED asked"]);
    let question = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let answers = json!({ question: { "action": "decline" } });
    let mut params = json!({ "name": "execute", "arguments": { "code": code }, "inputResponses": answers });
    params["requestState"] = asked["requestState"].clone();
    client.request("tools/call", params).await;
    assert_eq!(told().await, ["ACCESS_DENIED denied"]);
}

#[tokio::test]
async fn a_refusal_that_no_program_has_taken_is_not_told() {
    let (shop, kept) = (Shop::new(), Kept::default());
    let gateway = shop.gateway().with_tools(Tools::Code).with_audit(kept.log()).build().await.unwrap();
    let code = "await ops.shop.renamePet({ petId: 7, name: 'Max' })";
    let mut client = owner(&gateway).await;
    let waits = client.call("execute", json!({ "code": code })).await;
    let (key, ask) = keys(text(&waits));
    assert_eq!(kept.outcomes(&gateway).await, ["shop.renamePet APPROVAL_NEEDED"]);
    let other = json!({ "code": format!("{code};"), "resume": key, "decline": [ask] });
    let differs = client.call("execute", other).await;
    assert!(text(&differs).contains("It still waits"), "{differs}");
    assert_eq!(kept.outcomes(&gateway).await, [""; 0]);
    client.call("execute", json!({ "code": code, "resume": key, "approve": [ask] })).await;
    assert_eq!((kept.outcomes(&gateway).await, shop.renamed()), (vec!["shop.renamePet ok".to_owned()], 1));
}

#[tokio::test]
async fn a_refusal_is_told_once_even_if_its_program_is_aborted() {
    static HANG: OperationSpec = OperationSpec::query("shop.hang");
    let (shop, kept, begun) = (Shop::new(), Kept::default(), Arc::new(Notify::new()));
    let begins = begun.clone();
    let hang = move |_, _| {
        begins.notify_one();
        futures_util::future::pending::<Result<Value, CallError>>()
    };
    shop.registry.register(Registration::new(&HANG, Handler::dynamic(hang))).unwrap();
    let gateway = shop.gateway().with_tools(Tools::Code).with_audit(kept.log()).build().await.unwrap();
    let tools = gateway.tools();
    let code = "try { await ops.shop.renamePet({ petId: 7, name: 'Max' }) } catch { await ops.shop.hang() }";
    let waits = tools.call("gateway.execute", json!({ "code": code })).await.unwrap();
    let (key, ask) = keys(waits.meta.as_mcp().unwrap().content[0].as_text().unwrap());
    assert_eq!(kept.outcomes(&gateway).await, ["shop.renamePet APPROVAL_NEEDED"]);
    for outcomes in [&["shop.renamePet ACCESS_DENIED", "shop.hang ABORTED"][..], &["shop.hang ABORTED"]] {
        let input = json!({ "code": code, "resume": key, "decline": [ask] });
        tokio::select! {
            ended = tools.call("gateway.execute", input) => panic!("{ended:?}"),
            () = begun.notified() => {}
        }
        assert_eq!(kept.outcomes(&gateway).await, outcomes);
    }
}

#[tokio::test]
async fn the_owner_is_told_from_unknown_callers() {
    for tools in [Tools::All, Tools::Search] {
        let (shop, kept) = (Shop::new(), Kept::default());
        let gateway = shop.gateway().with_tools(tools).with_audit(kept.log()).build().await.unwrap();
        let (tool, arguments) = match tools {
            Tools::All => ("shop_showPet", json!({ "petId": 7 })),
            _ => ("call", json!({ "id": "shop.showPet", "input": { "petId": 7 } })),
        };
        owner(&gateway).await.call(tool, arguments).await;
        gateway.registry().call("shop.showPet", json!({ "petId": 7 })).await.unwrap();
        gateway.flush().await;
        let entries = std::mem::take(&mut *kept.0.lock().unwrap());
        let told: Vec<_> = entries.iter().map(|entry| (&entry["connection"], &entry["caller"])).collect();
        assert_eq!(told, [(&json!("owner"), &Value::Null), (&Value::Null, &Value::Null)], "{tools:?}");
    }
}
