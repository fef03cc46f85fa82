//! Subscriptions, and calls that are cancelled.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::mcp::{McpServer, McpServerOptions};
use ops_runtime::registry::Progress;
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{CallError, Context, Registry};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::client::{Client, PATIENCE, REVISIONS};
use crate::fixture::server;

#[tokio::test]
async fn items_are_progress_and_the_answer_has_them_all() {
    for revision in REVISIONS {
        let mut client = Client::connect(server(), revision).await;
        let meta = json!({ "progressToken": "p" });
        let params = json!({ "name": "math_count", "arguments": { "to": 3 }, "_meta": meta });
        let result = client.request("tools/call", params).await["result"].clone();
        let told: Vec<_> = client.notifications.drain(..).map(|message| message["params"].clone()).collect();
        let expected = |n: u32| json!({ "progressToken": "p", "progress": f64::from(n), "message": n.to_string() });
        assert_eq!(told, [expected(1), expected(2), expected(3)]);
        let structured = if revision < "2026" { json!({ "result": [1, 2, 3] }) } else { json!([1, 2, 3]) };
        assert_eq!(result["structuredContent"], structured);
        assert_eq!(result["content"], json!([{ "type": "text", "text": "[1,2,3]" }]));
        // Nobody asked.
        client.call("math_count", json!({ "to": 3 })).await;
        assert!(client.notifications.is_empty());
    }
}

#[tokio::test]
async fn reports_come_before_the_answer() {
    let handler = Handler::dynamic(|_, context: Context| async move {
        context.report(Progress::new(1.0).with_total(2.0).with_message("half"));
        tokio::task::yield_now().await;
        context.report(Progress::new(2.0).with_total(2.0));
        Ok(json!({}))
    });
    let mut client = Client::connect(with(OperationKind::Mutation, handler), REVISIONS[0]).await;
    let params = json!({ "name": "demo_run", "arguments": {}, "_meta": { "progressToken": 7 } });
    client.request("tools/call", params).await;
    let told: Vec<_> = client.notifications.drain(..).map(|message| message["params"].clone()).collect();
    let first = json!({ "progressToken": 7, "progress": 1.0, "total": 2.0, "message": "half" });
    assert_eq!(told, [first, json!({ "progressToken": 7, "progress": 2.0, "total": 2.0 })]);
    // Nobody asked.
    client.call("demo_run", json!({})).await;
    assert!(client.notifications.is_empty());
}

#[tokio::test]
async fn what_is_collected_is_bounded() {
    for (items, bytes) in [(5, usize::MAX), (usize::MAX, 11)] {
        let mut options = McpServerOptions::default();
        (options.max_items, options.max_bytes) = (items, bytes);
        let mut client = Client::connect(server().with_options(options), REVISIONS[1]).await;
        let result = client.call("math_count", json!({ "to": u32::MAX })).await;
        assert_eq!(result["structuredContent"], json!([1, 2, 3, 4, 5]));
        assert_eq!(result["_meta"]["ops/truncated"], true);
        assert_eq!(result["content"][1]["text"], "Stopped after 5 items; there may be more.");
        assert_eq!(client.call("math_count", json!({ "to": 5 })).await["_meta"].get("ops/truncated"), None);
    }
}

#[tokio::test]
async fn an_item_that_breaks_the_promised_schema_is_a_failed_one() {
    let feed = |_, _| async {
        let items = [json!({ "n": 1 }), json!({ "n": "one" }), json!({ "n": 2 })];
        Ok(stream::iter(items.map(Ok::<_, CallError>)))
    };
    let output = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let spec =
        OperationSpec::new(OperationKind::Subscription, "demo", "run").unwrap().with_output(Schema::from(output));
    let registry = Registry::new();
    registry.register(Registration::new(spec, Handler::dynamic_stream(feed))).unwrap();
    let mut client = Client::connect(McpServer::new(registry), REVISIONS[0]).await;
    let result = client.call("demo_run", json!({})).await;
    let errors = &result["_meta"]["ops/errors"];
    assert_eq!(errors.as_array().map(Vec::len), Some(1), "{result}");
    assert_eq!((&errors[0]["index"], &errors[0]["code"]), (&json!(1), &json!("VALIDATION_ERROR")));
    let content = result["content"].as_array().unwrap();
    assert_eq!(content.last().unwrap()["text"], r#"[{"n":1},{"n":2}]"#);
    assert_eq!((result.get("structuredContent"), &result["isError"]), (None, &json!(true)));
}

#[tokio::test]
async fn what_is_full_waits_for_no_more() {
    // Five items, and then nothing for a long time.
    let feed =
        |_, _| async { Ok(stream::iter((1..=5).map(|n| Ok::<_, CallError>(json!(n)))).chain(stream::pending())) };
    for (items, bytes, expected) in
        [(5, usize::MAX, json!([1, 2, 3, 4, 5])), (1, usize::MAX, json!([1])), (usize::MAX, 11, json!([1, 2, 3, 4, 5]))]
    {
        let options = McpServerOptions::default().with_max_items(items).with_max_bytes(bytes);
        let server = with(OperationKind::Subscription, Handler::dynamic_stream(feed)).with_options(options);
        let mut client = Client::connect(server, REVISIONS[1]).await;
        let result = client.call("demo_run", json!({})).await;
        assert_eq!((&result["structuredContent"], &result["_meta"]["ops/truncated"]), (&expected, &json!(true)));
    }
}

#[tokio::test]
async fn what_reaches_the_timeout_of_its_call_is_cut() {
    // Two items, and then nothing.
    let feed = |_, _| async { Ok(stream::iter([1, 2].map(|n| Ok::<_, CallError>(json!(n)))).chain(stream::pending())) };
    let options = McpServerOptions::default().with_timeout(Duration::from_millis(300));
    for (revision, expected) in REVISIONS.into_iter().zip([json!({ "result": [1, 2] }), json!([1, 2])]) {
        let server = with(OperationKind::Subscription, Handler::dynamic_stream(feed)).with_options(options.clone());
        let mut client = Client::connect(server, revision).await;
        let result = client.call("demo_run", json!({})).await;
        assert_eq!((&result["structuredContent"], &result["isError"]), (&expected, &json!(false)), "{result}");
        assert_eq!(result["_meta"]["ops/truncated"], true);
        assert_eq!(result["content"][1]["text"], "Stopped after 2 items; there may be more.");
    }
    // That of something else is a failure.
    let failing = |_, _| async { Ok(stream::iter([Ok(json!(1)), Err(CallError::new("TIMEOUT", "no answer"))])) };
    let options = options.with_timeout(PATIENCE);
    let server = with(OperationKind::Subscription, Handler::dynamic_stream(failing)).with_options(options);
    let result = Client::connect(server, REVISIONS[1]).await.call("demo_run", json!({})).await;
    assert_eq!((&result["isError"], &result["_meta"]["ops/error"]["code"]), (&json!(true), &json!("TIMEOUT")));
}

#[tokio::test]
async fn what_ends_soon_after_its_last_item_is_whole() {
    // Five items, whose end comes a little later, as it does over a network.
    let feed = |_, _| async {
        let end = stream::once(tokio::time::sleep(Duration::from_millis(10))).filter_map(|()| std::future::ready(None));
        Ok(stream::iter((1..=5).map(|n| Ok::<_, CallError>(json!(n)))).chain(end))
    };
    for (items, bytes) in [(5, usize::MAX), (usize::MAX, 11)] {
        let options = McpServerOptions::default().with_max_items(items).with_max_bytes(bytes);
        let server = with(OperationKind::Subscription, Handler::dynamic_stream(feed)).with_options(options);
        let mut client = Client::connect(server, REVISIONS[1]).await;
        let result = client.call("demo_run", json!({})).await;
        assert_eq!(result["structuredContent"], json!([1, 2, 3, 4, 5]));
        assert_eq!(result["_meta"].get("ops/truncated"), None);
    }
}

pub(crate) fn with(kind: OperationKind, handler: Handler) -> McpServer {
    let registry = Registry::new();
    let spec = OperationSpec::new(kind, "demo", "run").unwrap();
    registry.register(Registration::new(spec, handler)).unwrap();
    McpServer::new(registry)
}

#[tokio::test]
async fn errors_among_the_items_hide_none_of_them() {
    let items = |_, _| async {
        let failed = || Err(CallError::new("BAD", "no item"));
        Ok(stream::iter([Ok(json!(1)), failed(), Ok(json!(2)), failed()]))
    };
    let mut client =
        Client::connect(with(OperationKind::Subscription, Handler::dynamic_stream(items)), REVISIONS[0]).await;
    let result = client.call("demo_run", json!({})).await;
    assert_eq!(result["isError"], true);
    let texts: Vec<_> = result["content"].as_array().unwrap().iter().map(|block| &block["text"]).collect();
    assert_eq!(texts, ["BAD: no item", "BAD: no item", "[1,2]"]);
}

#[tokio::test]
async fn items_that_fail_are_told_in_their_place() {
    let items = |_, _| async {
        let failed = || Err(CallError::new("BAD", "no item").with_details(json!({ "raw": "{" })));
        let secret = Err(CallError::execution("the password is hunter2"));
        Ok(stream::iter([failed(), Ok(json!("one")), failed(), secret, Ok(json!({ "n": 2 })), failed()]))
    };
    let serve = || with(OperationKind::Subscription, Handler::dynamic_stream(items));
    for revision in REVISIONS {
        let mut client = Client::connect(serve(), revision).await;
        let params = json!({ "name": "demo_run", "arguments": {}, "_meta": { "progressToken": "p" } });
        let result = client.request("tools/call", params).await["result"].clone();
        let bad = "BAD: no item\n{\"raw\":\"{\"}";
        let told: Vec<_> = client.notifications.drain(..).map(|message| message["params"].clone()).collect();
        assert_eq!(told.iter().map(|told| &told["progress"]).collect::<Vec<_>>(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let said: Vec<_> = told.iter().map(|told| told["message"].as_str().unwrap()).collect();
        assert_eq!([said[0], said[1], said[2], said[4], said[5]], [bad, "one", bad, "{\"n\":2}", bad]);
        assert_eq!((&result["isError"], result.get("structuredContent")), (&json!(true), None));
        let errors = result["_meta"]["ops/errors"].as_array().unwrap();
        let places: Vec<_> = errors.iter().map(|error| error["index"].as_u64().unwrap()).collect();
        assert_eq!(places, [0, 2, 3, 5]);
        assert_eq!(errors[1], json!({ "code": "BAD", "message": "no item", "details": { "raw": "{" }, "index": 2 }));
        assert_eq!(result["_meta"]["ops/error"]["code"], "BAD");
        let texts: Vec<_> = result["content"].as_array().unwrap().iter().map(|block| &block["text"]).collect();
        assert_eq!((texts.len(), texts[0], texts[4]), (5, &json!(bad), &json!(r#"["one",{"n":2}]"#)));
        // No number that is made at random has this text.
        assert!(!format!("{told:?}{result}").contains("hunter2"), "what is not for callers is told to nobody");
    }
}

#[tokio::test]
async fn what_is_collected_is_bounded_with_items_that_fail() {
    let failing = |_, _| async {
        let item = |n: u64| if n.is_multiple_of(2) { Err(CallError::new("BAD", "x".repeat(20))) } else { Ok(json!(n)) };
        Ok(stream::iter((0..).map(item)))
    };
    for (items, bytes, places) in [(5, usize::MAX, vec![0, 2, 4]), (usize::MAX, 60, vec![0, 2]), (9, 5, vec![0])] {
        let mut options = McpServerOptions::default();
        (options.max_items, options.max_bytes) = (items, bytes);
        let server = with(OperationKind::Subscription, Handler::dynamic_stream(failing)).with_options(options);
        let mut client = Client::connect(server, REVISIONS[1]).await;
        let result = client.call("demo_run", json!({})).await;
        let errors = result["_meta"]["ops/errors"].as_array().unwrap();
        assert_eq!(errors.iter().map(|error| error["index"].as_u64().unwrap()).collect::<Vec<_>>(), places);
        assert_eq!(result["_meta"]["ops/truncated"], true);
        let last = result["content"].as_array().unwrap().last().unwrap();
        assert!(last["text"].as_str().unwrap().starts_with("Stopped after "), "{last}");
    }
}

/// Tells when it is dropped.
struct Tell(Arc<Notify>);

impl Drop for Tell {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A handler that never ends, and tells when it began and when it was dropped.
pub(crate) fn endless(streams: bool) -> (McpServer, Arc<Notify>, Arc<Notify>) {
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (begun.clone(), dropped.clone());
    if streams {
        let handler = Handler::dynamic_stream(move |_, _| {
            let (begun, tell) = (begun.clone(), Tell(dropped.clone()));
            async move {
                begun.notify_one();
                Ok(stream::pending::<Result<Value, CallError>>().map(move |item| (&tell, item).1))
            }
        });
        return (with(OperationKind::Subscription, handler), signals.0, signals.1);
    }
    let handler = Handler::dynamic(move |_, _| {
        let (begun, tell) = (begun.clone(), Tell(dropped.clone()));
        async move {
            begun.notify_one();
            let _tell = tell;
            std::future::pending().await
        }
    });
    (with(OperationKind::Query, handler), signals.0, signals.1)
}

pub(crate) async fn soon(notify: &Notify) {
    tokio::time::timeout(PATIENCE, notify.notified()).await.expect("in time");
}

#[tokio::test]
async fn a_cancelled_call_drops_its_handler() {
    for revision in REVISIONS {
        for streams in [false, true] {
            let (server, begun, dropped) = endless(streams);
            let mut client = Client::connect(server, revision).await;
            let id = client.send("tools/call", json!({ "name": "demo_run", "arguments": {} })).await;
            soon(&begun).await;
            client.notify("notifications/cancelled", json!({ "requestId": id })).await;
            soon(&dropped).await;
            // Nobody is told, and the connection goes on.
            client.request("tools/list", json!({})).await;
            assert!(client.notifications.is_empty());
        }
    }
}

// The SDK gives calls a few seconds to end; here, they pass at once.
#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_ends_its_calls() {
    for revision in REVISIONS {
        let (server, begun, dropped) = endless(false);
        let mut client = Client::connect(server, revision).await;
        client.send("tools/call", json!({ "name": "demo_run", "arguments": {} })).await;
        soon(&begun).await;
        let running = client.close();
        soon(&dropped).await;
        running.await.unwrap().unwrap();
    }
}

// The time that the server waits for is not waited for here: it passes at once.
#[tokio::test(start_paused = true)]
async fn what_is_told_of_a_call_does_not_hold_up_its_answer_after_the_end_of_the_input() {
    let reporting = || {
        with(
            OperationKind::Mutation,
            Handler::dynamic(|_, context: Context| async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                for step in 1..=3 {
                    context.report(Progress::new(f64::from(step)));
                    tokio::task::yield_now().await;
                }
                Ok(json!("done"))
            }),
        )
    };
    let items = |_, _| async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok(stream::iter((1..=3).map(|n| Ok::<_, CallError>(json!(n)))))
    };
    let streaming = || with(OperationKind::Subscription, Handler::dynamic_stream(items));
    for (server, text) in [(reporting(), "done"), (streaming(), "[1,2,3]")] {
        let mut client = Client::connect(server, REVISIONS[0]).await;
        let params = json!({ "name": "demo_run", "arguments": {}, "_meta": { "progressToken": 1 } });
        let id = client.send("tools/call", params).await;
        client.end().await;
        let answer = client.answer(id).await;
        assert_eq!(answer["result"]["content"][0]["text"], text, "{answer}");
    }
}
