//! The suite over NATS, with a server of its own for each case.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use ops_runtime::access::Identity;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::call::nats::{Nats, NatsConfig, NatsWorker};
use ops_runtime::call::{CallHandler, PeerAuth, Remote};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{ErrorCode, Registry};
use serde_json::{Value, json};

use crate::harness::{Harness, Working, eventually, limited};
use crate::log::Log;
use crate::operations::{ADD_IS_NOT_SERVED, Probe, Twice, TwiceInput, Wait, WaitInput, add_twice, registry};
use crate::proxy::Proxy;
use crate::servers::{Remotely, Server};

/// Quicker than usual, and still slow enough for a busy machine.
pub(crate) fn config(lost_after: Duration) -> NatsConfig {
    NatsConfig::new()
        .with_peer_auth(PeerAuth::trusted())
        .with_heartbeat(Duration::from_millis(200))
        .with_lost_after(lost_after)
}

pub(crate) async fn connect(address: std::net::SocketAddr, lost_after: u64) -> Nats {
    let config = config(Duration::from_millis(lost_after));
    Nats::connect(&format!("nats://{address}"), config).await.unwrap()
}

/// With the time after which what is silent is lost, in milliseconds.
pub(crate) struct NatsHarness<const LOST_AFTER: u64 = 4000> {
    server: Server,
    /// Between the server and callers.
    to_callers: Proxy,
}

impl<const LOST_AFTER: u64> Harness for NatsHarness<LOST_AFTER> {
    const NAME: &'static str = "nats";

    type Worker = Remotely<NatsWorker>;

    async fn start() -> Self {
        let server = Server::nats(&[]).await;
        Self { to_callers: Proxy::start(server.address()).await, server }
    }

    async fn worker(&self, handler: CallHandler) -> Self::Worker {
        let proxy = Proxy::start(self.server.address()).await;
        let worker = connect(proxy.address(), LOST_AFTER).await.serve(handler).await.unwrap();
        Remotely { worker, proxy }
    }

    async fn caller(&self) -> Remote {
        connect(self.to_callers.address(), LOST_AFTER).await.remote().await.unwrap()
    }

    async fn disturb(&self, choice: u64) {
        if choice.is_multiple_of(2) {
            self.to_callers.cut();
        } else {
            self.to_callers.stall();
            tokio::time::sleep(Duration::from_millis(choice)).await;
            self.to_callers.resume();
        }
    }

    fn identity_of(claimed: Option<Identity>) -> Option<Identity> {
        claimed
    }
}

impl Working for Remotely<NatsWorker> {
    fn running(&self) -> usize {
        self.worker.running()
    }

    async fn announce(&self) {
        self.worker.announce().await.unwrap();
    }

    async fn stop(self) {
        self.worker.stop().await;
    }

    async fn kill(self) {
        // Nothing of it arrives any more, not even its last words.
        self.proxy.stall();
        drop(self.worker);
        drop(self.proxy);
    }
}

impl crate::broker_faults::Brokered for NatsHarness {
    type Worker = NatsWorker;

    const TAKEN: Option<usize> = Some(16_384);

    async fn server() -> Server {
        Server::nats(&[]).await
    }

    async fn serve(address: std::net::SocketAddr, handler: CallHandler) -> NatsWorker {
        connect(address, 4_000).await.serve(handler).await.unwrap()
    }

    async fn remote(address: std::net::SocketAddr) -> Remote {
        connect(address, 4_000).await.remote().await.unwrap()
    }

    fn running(worker: &NatsWorker) -> usize {
        worker.running()
    }
}

/// Of several servers joined by commas, one that is there is enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_servers() {
    let server = Server::nats(&[]).await;
    let probe = Arc::new(Probe::default());
    let urls = format!("nats://127.0.0.1:9, nats://{}", server.address());
    let nats = Nats::connect(&urls, NatsConfig::new()).await.unwrap();
    let worker = nats.serve(CallHandler::new(registry(&probe))).await.unwrap();
    let remote = Nats::connect(&urls, NatsConfig::new()).await.unwrap().remote().await.unwrap();
    assert_eq!(remote.call("test.about", json!({})).await.unwrap().data["identity"], Value::Null);
    worker.stop().await;
    let error = Nats::connect(",", NatsConfig::new()).await.unwrap_err();
    assert!(error.message().contains("no NATS server is named"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_announcement_that_was_lost_is_asked_for() {
    let server = Server::nats(&[]).await;
    let proxy = Proxy::start(server.address()).await;
    let registry = registry(&Arc::new(Probe::default()));
    let worker =
        Arc::new(connect(proxy.address(), 4_000).await.serve(CallHandler::new(registry.clone())).await.unwrap());
    let remote = connect(server.address(), 4_000).await.remote().await.unwrap();
    let serves = |id: &str| remote.list().iter().any(|spec| spec.id == id);
    eventually("it is served", || serves("test.add") && serves("test.wait")).await;
    // What is on its way when the connection breaks is lost.
    proxy.stall();
    registry.remove("test.wait").unwrap();
    let announcing = tokio::spawn(async move { worker.announce().await.map(|()| worker) });
    tokio::time::sleep(Duration::from_millis(300)).await;
    proxy.cut();
    proxy.resume();
    eventually("it is known to be withdrawn", || !serves("test.wait")).await;
    assert!(serves("test.add"));
    drop(announcing.await);
}

pub(crate) async fn bare(server: &Server) -> async_nats::Client {
    async_nats::connect(format!("nats://{}", server.address())).await.unwrap()
}

/// Publishes a text as a request for `test.about`, and reads the answer.
async fn ask(client: &async_nats::Client, text: &str) -> Value {
    let answer = client.request("ops.call.test.about", text.to_owned().into()).await.unwrap();
    serde_json::from_slice(&answer.payload).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anybody_can_ask_and_nobody_can_lie() {
    let server = Server::nats(&[]).await;
    let probe = Arc::new(Probe::default());
    // A worker that believes nobody.
    let nats = Nats::connect(&format!("nats://{}", server.address()), NatsConfig::new()).await.unwrap();
    let worker = nats.serve(CallHandler::new(registry(&probe))).await.unwrap();
    let client = bare(&server).await;
    let request = |id: &str, operation: &str, more: Value| {
        let mut payload = json!({ "requestId": id, "operationId": operation, "input": {} });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "type": "call.requested", "id": id, "payload": payload, "newer": [1] }).to_string()
    };
    let answer = ask(&client, &request("any id", "test.about", json!({}))).await;
    assert_eq!((&answer["type"], &answer["id"]), (&json!("call.responded"), &json!("any id")));
    // Who it says it is does not count.
    let claims = json!({ "identity": { "id": "ann", "scopes": ["vault:open"] } });
    let answer = ask(&client, &request("1", "test.about", claims)).await;
    assert_eq!(answer["payload"]["output"]["data"]["identity"], Value::Null);
    // The server's permissions are about subjects: a request says what its subject says.
    let answer = ask(&client, &request("2", "test.secret", json!({}))).await;
    assert_eq!((&answer["type"], &answer["payload"]["code"]), (&json!("call.error"), &json!("VALIDATION_ERROR")));
    // Malformed, truncated, of a newer version, not even text.
    let truncated = request("3", "test.about", json!({}));
    for text in ["", "[]", "{", r#"{"type":"call.requested","id":"3","payload":{}}"#, &truncated[..truncated.len() - 4]]
    {
        assert_eq!(ask(&client, text).await["payload"]["code"], "VALIDATION_ERROR", "{text}");
    }
    client.publish("ops.call.test.about", "{}".into()).await.unwrap();
    for subject in ["ops.call.test.about", "ops.discover", "ops.announce"] {
        for bytes in [&b"\xff\xfe"[..], b"{\"type\":\"link.sing\",\"payload\":{}}"] {
            client.publish_with_reply(subject, "nowhere.at.all", bytes.into()).await.unwrap();
        }
    }
    let answer = ask(&client, &request("4", "test.about", json!({}))).await;
    assert_eq!(answer["type"], "call.responded");
    eventually("no task is left", || worker.running() == 0).await;
    worker.stop().await;
}

/// Subscriptions end when their connection is lost. Those that wait for the next one have lost no items.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_that_wait_for_a_connection() {
    limited(async {
        let server = Server::nats(&[]).await;
        let handler = CallHandler::new(registry(&Arc::default()));
        let worker = connect(server.address(), 4_000).await.serve(handler).await.unwrap();
        let proxy = Proxy::start(server.address()).await;
        let remote = connect(proxy.address(), 4_000).await.remote().await.unwrap();
        for _ in 0..3 {
            let mut items = remote.stream("test.silent_after", json!({ "items": 1 })).await.unwrap();
            assert_eq!(items.next().await.unwrap().unwrap().data, 0);
            proxy.close();
            let error = items.next().await.unwrap().unwrap_err();
            assert_eq!(error.message(), "the connection was lost, and items may be");
            let waiting = (0..100).map(|_| {
                let remote = remote.clone();
                tokio::spawn(async move {
                    let items = remote.stream("test.count", json!({ "to": 100 })).await.unwrap();
                    items.map(|item| item.unwrap().data).collect::<Vec<_>>().await
                })
            });
            let waiting: Vec<_> = waiting.collect();
            tokio::time::sleep(Duration::from_millis(100)).await;
            proxy.resume();
            for items in waiting {
                assert!(items.await.unwrap().into_iter().eq((0..100).map(Value::from)));
            }
        }
        worker.stop().await;
    })
    .await;
}

/// A subscriber with an inbox of its own that reads one item and goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_that_goes_without_a_word() {
    limited(async {
        let server = Server::nats(&[]).await;
        let probe = Arc::new(Probe::default());
        let worker = connect(server.address(), 4_000).await.serve(CallHandler::new(registry(&probe))).await.unwrap();
        let client = bare(&server).await;
        let mut inbox = client.subscribe("inbox.of.one").await.unwrap();
        inbox.unsubscribe_after(1).await.unwrap();
        let payload = json!({ "requestId": "1", "operationId": "test.count", "input": { "to": 1_000_000 } });
        let request = json!({ "type": "call.requested", "id": "1", "payload": payload }).to_string();
        client.publish_with_reply("ops.call.test.count", "inbox.of.one", request.into()).await.unwrap();
        let item = inbox.next().await.unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&item.payload).unwrap()["type"], "call.responded");
        eventually("no task is left", || worker.running() == 0).await;
        eventually("no handler is left", || probe.alive() == 0).await;
        worker.stop().await;
    })
    .await;
}

/// What has arrived while the caller's program stood still is read before a call is given up.
#[tokio::test]
async fn a_caller_that_stood_still() {
    limited(async {
        let server = Server::nats(&[]).await;
        let (address, probe) = (server.address(), Arc::new(Probe::default()));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (serving, served) = tokio::sync::oneshot::channel();
        let handler = CallHandler::new(registry(&probe));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let worker = connect(address, 4_000).await.serve(handler).await.unwrap();
                serving.send(()).unwrap();
                let _ = stopped.await;
                worker.stop().await;
            });
        });
        served.await.unwrap();
        let remote = connect(address, 4_000).await.remote().await.unwrap();
        let input = WaitInput { key: "w".to_owned(), milliseconds: 3_000 };
        let call = tokio::spawn(async move { remote.execute::<Wait>(input).await });
        eventually("it runs", || probe.alive() == 1).await;
        // Its worker has reported it by then.
        tokio::time::sleep(Duration::from_secs(1)).await;
        std::thread::sleep(Duration::from_secs(7));
        assert_eq!(call.await.unwrap().unwrap().data, "w");
        drop(stop);
    })
    .await;
}

/// Whoever does not wait for a caller leaves nothing of it behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_nobody_waits_for() {
    limited(async {
        let server = Server::nats(&[]).await;
        let mut nats = connect(server.address(), 4_000).await;
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let (before, mut given_up) = (tasks(), 0);
        while given_up < 10 {
            let asking = tokio::spawn({
                let nats = nats.clone();
                async move { nats.remote().await.map(drop) }
            });
            // It has tasks of its own before it knows what is served, which takes 100 ms.
            eventually("it has begun", || asking.is_finished() || tasks() > before + 1).await;
            asking.abort();
            if asking.await.is_err() {
                eventually("its tasks end", || tasks() <= before).await;
                given_up += 1;
            } else {
                // It was quicker, and its connection keeps it.
                nats = connect(server.address(), 4_000).await;
                eventually("the old one's tasks end", || tasks() <= before).await;
            }
        }
    })
    .await;
}

/// What could not be announced is announced the next time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_announcement_that_nobody_waits_for() {
    let mut server = Server::nats(&[]).await;
    let registry = Registry::new();
    let operation = |name: &str| {
        let spec = OperationSpec::new(OperationKind::Query, "many", name).unwrap();
        Registration::new(spec, Handler::dynamic(|input: Value, _| async move { Ok(input) }))
    };
    registry.register(operation("first")).unwrap();
    let worker = connect(server.address(), 4_000).await.serve(CallHandler::new(registry.clone())).await.unwrap();
    server.kill();
    // Without a connection, the client takes some commands and no more.
    for n in 0..3_000 {
        registry.register(operation(&format!("n{n}"))).unwrap();
    }
    tokio::time::timeout(Duration::from_secs(1), worker.announce()).await.unwrap_err();
    registry.remove("many.n0").unwrap();
    server.restart().await;
    worker.announce().await.unwrap();
    let remote = connect(server.address(), 4_000).await.remote().await.unwrap();
    let serves = |id: &str| remote.list().iter().any(|spec| spec.id == id);
    eventually("all of it is told", || serves("many.n2999") && serves("many.n1") && !serves("many.n0")).await;
    for name in ["first", "n1", "n2999"] {
        assert_eq!(remote.call(&format!("many.{name}"), json!(7)).await.unwrap().data, 7, "{name}");
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_that_is_dropped_says_so() {
    drops_say_so().await;
}

/// Its messages may have left the queue, and not the client, when the connection would be dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_dropped_says_so_on_several_threads() {
    drops_say_so().await;
}

/// Drops and stops workers that hold the last reference to their connection: their callers are told at once.
async fn drops_say_so() {
    limited(async {
        let server = Server::nats(&[]).await;
        for stops in [false, true] {
            let probe = Arc::new(Probe::default());
            let handler = CallHandler::new(registry(&probe));
            let worker = connect(server.address(), 20_000).await.serve(handler).await.unwrap();
            let remote = connect(server.address(), 20_000).await.remote().await.unwrap();
            let calling = remote.clone();
            let input = WaitInput { key: "w".to_owned(), milliseconds: 600_000 };
            let call = tokio::spawn(async move { calling.execute::<Wait>(input).await });
            eventually("it runs", || probe.alive() == 1).await;
            let begun = Instant::now();
            if stops {
                // Nobody waits any longer for it to be done.
                tokio::time::timeout(Duration::from_millis(500), worker.stop()).await.unwrap_err();
            } else {
                drop(worker);
            }
            let error = call.await.unwrap().unwrap_err();
            assert_eq!((error.code(), error.message()), (&ErrorCode::Aborted, "the worker gave up the call"));
            eventually("nothing is served", || remote.list().is_empty()).await;
            assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
        }
    })
    .await;
}

/// The server says it to the connection, and not to the call.
#[tokio::test]
async fn what_the_server_forbids_is_logged() {
    limited(async {
        let (log, _guard) = Log::start();
        let permissions = r#"permissions: { publish: { deny: ["ops.call.test.add"] } }"#;
        let rules = format!("authorization {{ users: [ {{ user: ann, password: secret, {permissions} }} ] }}\n");
        let server = Server::nats_of(rules).await;
        let config = config(Duration::from_secs(1)).with_user("ann", "secret");
        let nats = Nats::connect(&format!("nats://{}", server.address()), config).await.unwrap();
        let worker = nats.serve(CallHandler::new(registry(&Arc::default()))).await.unwrap();
        let remote = nats.remote().await.unwrap();
        for _ in 0..2 {
            let error = remote.call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap_err();
            assert_eq!(*error.code(), ErrorCode::Aborted, "{error}");
        }
        let told = log.with("ops.call.test.add");
        assert!(told.len() == 1 && told[0].contains("Permissions Violation"), "{told:?}");
        worker.stop().await;
    })
    .await;
}

/// A time that is too long is as good as none.
#[tokio::test]
async fn times_without_a_limit() {
    limited(async {
        let server = Server::nats(&[]).await;
        let ever = Duration::MAX;
        let config = NatsConfig::new().with_heartbeat(ever).with_lost_after(ever).with_connect_timeout(ever);
        let nats = Nats::connect(&format!("nats://{}", server.address()), config).await.unwrap();
        let worker = nats.serve(CallHandler::new(registry(&Arc::default()))).await.unwrap();
        let remote = nats.remote().await.unwrap();
        assert_eq!(remote.call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap().data, 3);
        worker.stop().await;
    })
    .await;
}

/// Otherwise, its calls would come back to it, without end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_does_not_serve_what_it_calls_over_its_connection() {
    limited(async {
        let (server, calling) = (Server::nats(&[]).await, Registry::new());
        let nats = connect(server.address(), 4_000).await;
        let near = nats.remote().await.unwrap();
        add_twice(&calling, &near);
        let worker = nats.serve(CallHandler::new(calling)).await.unwrap();
        let remote = connect(server.address(), 4_000).await.remote().await.unwrap();
        assert_eq!(remote.list().iter().map(|spec| spec.id.to_string()).collect::<Vec<_>>(), ["test.twice"]);
        let error = remote.execute::<Twice>(TwiceInput { n: 4 }).await.unwrap_err();
        assert_eq!(error.message(), ADD_IS_NOT_SERVED);
        let other = connect(server.address(), 4_000).await;
        let adding = other.serve(CallHandler::new(registry(&Arc::default()))).await.unwrap();
        eventually("it is known", || near.list().iter().any(|spec| spec.id == "test.add")).await;
        assert_eq!(remote.execute::<Twice>(TwiceInput { n: 4 }).await.unwrap().data, 8);
        adding.stop().await;
        worker.stop().await;
    })
    .await;
}
