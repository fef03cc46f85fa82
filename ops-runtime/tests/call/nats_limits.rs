//! What others can make a worker or a caller send to a NATS server, which closes a connection that sends too long a line.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::call::CallHandler;
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{ErrorCode, Registry};
use serde_json::{Value, json};

use crate::harness::{eventually, limited};
use crate::log::Log;
use crate::nats::{bare, connect};
use crate::operations::{COUNT, registry};
use crate::servers::Server;

/// The longest subject of a caller or a worker, and the longest of an operation.
const LONGEST: usize = 1_536;
const LONGEST_OPERATION: usize = 3_072;

/// How long it takes at most until a lost connection is noticed.
const SOON: Duration = Duration::from_secs(2);

/// A subscription shows if its worker or its caller has lost the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subjects_of_others_that_are_too_long() {
    limited(async {
        let server = Server::nats(&[]).await;
        let handler = CallHandler::new(registry(&Arc::default()));
        let worker = connect(server.address(), 4_000).await.serve(handler).await.unwrap();
        let remote = connect(server.address(), 4_000).await.remote().await.unwrap();
        eventually("the operations are announced", || remote.list().len() == COUNT).await;
        let mut items = remote.stream("test.silent_after", json!({ "items": 1 })).await.unwrap();
        assert_eq!(items.next().await.unwrap().unwrap().data, 0);
        let client = bare(&server).await;
        // The longest is answered, and no longer one is.
        let inbox = |bytes: usize| format!("inbox.{}", "x".repeat(bytes - "inbox.".len()));
        let payload = json!({ "requestId": "1", "operationId": "test.about", "input": {} });
        let request = json!({ "type": "call.requested", "id": "1", "payload": payload }).to_string();
        for (bytes, is_answered) in [(LONGEST, true), (LONGEST + 1, false), (4_000, false)] {
            for (subject, text) in [("ops.call.test.about", request.clone()), ("ops.discover", String::new())] {
                let mut answers = client.subscribe(inbox(bytes)).await.unwrap();
                client.publish_with_reply(subject, inbox(bytes), text.into()).await.unwrap();
                // What comes is waited for, even on a busy machine, but less long than the whole case may take.
                let patience = if is_answered { Duration::from_secs(30) } else { SOON };
                let answer = tokio::time::timeout(patience, answers.next()).await;
                assert_eq!(answer.is_ok(), is_answered, "{subject} {bytes}");
            }
        }
        // Each caller would ask such a worker what it serves.
        let announcer = format!("ops.worker.{}.0.1.x", "w".repeat(4_030));
        let announcement = r#"{"type":"link.announce","payload":{}}"#;
        client.publish_with_reply("ops.announce", announcer, announcement.into()).await.unwrap();
        tokio::time::timeout(SOON, items.next()).await.expect_err("a connection was lost");
        assert_eq!(remote.call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap().data, 3);
        drop(items);
        worker.stop().await;
    })
    .await;
}

/// An operation whose subject has so many bytes.
fn operation(bytes: usize) -> OperationSpec {
    let name = "x".repeat(bytes - "ops.call.long.".len());
    OperationSpec::new(OperationKind::Query, "long", &name).unwrap()
}

/// The client would connect again for ever, and subscribe to it each time.
#[tokio::test]
async fn operations_whose_subjects_are_too_long() {
    limited(async {
        let (log, _guard) = Log::start();
        let server = Server::nats(&[]).await;
        let own = registry(&Arc::default());
        let spec = |bytes: usize| if bytes < 4_000 { operation(bytes) } else { wide() };
        for bytes in [LONGEST_OPERATION, LONGEST_OPERATION + 1, 4_100] {
            let handler = Handler::dynamic(|input: Value, _| async move { Ok(input) });
            own.register(Registration::new(spec(bytes), handler)).unwrap();
        }
        let worker = connect(server.address(), 4_000).await.serve(CallHandler::new(own.clone())).await.unwrap();
        let remote = connect(server.address(), 4_000).await.remote().await.unwrap();
        eventually("the others are announced", || remote.list().len() == COUNT + 1).await;
        assert_eq!(log.with("its subject is too long").len(), 2);
        // The warning is not repeated with each announcement, but after the operation was removed and added again.
        let away = spec(LONGEST_OPERATION + 1);
        for (is_there, warnings) in [(true, 2), (false, 2), (true, 3)] {
            own.remove(&away.id);
            if is_there {
                let handler = Handler::dynamic(|input: Value, _| async move { Ok(input) });
                own.register(Registration::new(away.clone(), handler)).unwrap();
            }
            worker.announce().await.unwrap();
            assert_eq!(log.with("its subject is too long").len(), warnings, "{is_there}");
        }
        let bound = Registry::new();
        let specs = [LONGEST_OPERATION, LONGEST_OPERATION + 1, 4_100].map(spec);
        let ids = specs.clone().map(|spec| spec.id);
        bound.register_all(remote.bind(specs).unwrap()).unwrap();
        for _ in 0..2 {
            assert_eq!(bound.call(&ids[0], json!(7)).await.unwrap().data, 7);
            for id in &ids[1..] {
                let error = bound.call(id, json!(7)).await.unwrap_err();
                assert_eq!(*error.code(), ErrorCode::ExecutionError, "{error}");
                assert_eq!(error.details()["limit"], LONGEST_OPERATION);
            }
            tokio::time::sleep(SOON).await;
        }
        worker.stop().await;
    })
    .await;
}

/// Each character takes nine bytes of a subject.
fn wide() -> OperationSpec {
    OperationSpec::new(OperationKind::Query, "long", &"\u{4e00}".repeat(455)).unwrap()
}

/// A report that names very many requests makes no more aborts than there is room for.
#[tokio::test]
async fn a_report_of_very_many_requests() {
    limited(async {
        const ROOM: usize = 4 << 20;
        let server = Server::nats(&[]).await;
        let client = bare(&server).await;
        let mut requests = client.subscribe("ops.call.far.op").await.unwrap();
        let mut control = client.subscribe("ops.worker.w.>").await.unwrap();
        client.flush().await.unwrap();
        let remote = connect(server.address(), 4_000).await.remote().await.unwrap();
        let bound = Registry::new();
        let spec = OperationSpec::new(OperationKind::Query, "far", "op").unwrap();
        bound.register_all(remote.bind([spec]).unwrap()).unwrap();
        let call = tokio::spawn(async move { bound.call("far.op", json!({})).await });
        let reply = requests.next().await.unwrap().reply.unwrap();
        let (inbox, _) = reply.as_str().rsplit_once('.').unwrap();
        let report = json!({ "type": "link.running", "payload": { "requestIds": vec![""; 300_000] } });
        let (to, worker) = (format!("{inbox}.link"), "ops.worker.w.0.0.x");
        client.publish_with_reply(to, worker, report.to_string().into()).await.unwrap();
        let first = control.next().await.unwrap();
        let mut aborts = 1;
        while let Ok(Some(next)) = tokio::time::timeout(SOON, control.next()).await {
            assert_eq!(next.payload, first.payload);
            aborts += 1;
        }
        assert_eq!(aborts, ROOM.div_ceil(first.subject.len() + first.payload.len()));
        call.abort();
    })
    .await;
}

/// A caller may send any number of messages that can't be read, and large ones.
#[tokio::test]
async fn messages_that_can_not_be_read() {
    limited(async {
        let (log, _guard) = Log::start();
        let server = Server::nats(&[]).await;
        let handler = CallHandler::new(registry(&Arc::default()));
        let worker = connect(server.address(), 4_000).await.serve(handler).await.unwrap();
        let client = bare(&server).await;
        for _ in 0..150 {
            client.publish("ops.call.test.about", "{".into()).await.unwrap();
        }
        let payload = json!({ "requestId": "1", "operationId": "x".repeat(100_000), "input": {} });
        let request = json!({ "type": "call.requested", "id": "1", "payload": payload }).to_string();
        let answer = client.request("ops.call.test.about", request.into()).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
        let named = "x".repeat(200);
        let why = format!("malformed call.requested: it names another operation than its subject: `{named}..`");
        assert_eq!(answer["payload"]["message"], why);
        assert_eq!(log.with("says not where its answer goes").len(), 100);
        worker.stop().await;
    })
    .await;
}
