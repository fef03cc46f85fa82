//! The suite over Redis, with a server of its own for each case.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ops_runtime::Registry;
use ops_runtime::access::Identity;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::call::redis::{Redis, RedisConfig, RedisWorker};
use ops_runtime::call::{CallHandler, PeerAuth, Remote};
use ops_runtime::spec::{OperationKind, OperationSpec};

use serde_json::{Value, json};

use crate::harness::{Harness, Working, eventually, limited};
use crate::operations::{ADD_IS_NOT_SERVED, Probe, Twice, TwiceInput, Wait, WaitInput, add_twice, registry};
use crate::proxy::Proxy;
use crate::servers::{Remotely, Server};

/// Quicker than usual, and still slow enough for a busy machine.
pub(crate) fn config(lost_after: Duration) -> RedisConfig {
    RedisConfig::new()
        .with_peer_auth(PeerAuth::trusted())
        .with_heartbeat(Duration::from_millis(200))
        .with_lost_after(lost_after)
        .with_response_retention(Duration::from_secs(6))
        .with_max_message(256 << 10)
}

pub(crate) fn at(address: std::net::SocketAddr, lost_after: u64) -> Redis {
    Redis::new(&format!("redis://{address}"), config(Duration::from_millis(lost_after))).unwrap()
}

/// With the time after which what is silent is lost, in milliseconds.
pub(crate) struct RedisHarness<const LOST_AFTER: u64 = 3000> {
    server: Server,
    /// Between the server and callers.
    to_callers: Proxy,
}

impl<const LOST_AFTER: u64> Harness for RedisHarness<LOST_AFTER> {
    const NAME: &'static str = "redis";

    type Worker = Remotely<RedisWorker>;

    async fn start() -> Self {
        let server = Server::redis(&[]).await;
        Self { to_callers: Proxy::start(server.address()).await, server }
    }

    async fn worker(&self, handler: CallHandler) -> Self::Worker {
        let proxy = Proxy::start(self.server.address()).await;
        let worker = at(proxy.address(), LOST_AFTER).serve(handler).await.unwrap();
        Remotely { worker, proxy }
    }

    async fn caller(&self) -> Remote {
        at(self.to_callers.address(), LOST_AFTER).remote().await.unwrap()
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

impl Working for Remotely<RedisWorker> {
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
        drop(self.proxy);
        drop(self.worker);
    }
}

impl crate::broker_faults::Brokered for RedisHarness {
    type Worker = RedisWorker;

    const TAKEN: Option<usize> = None;

    async fn server() -> Server {
        Server::redis(&[]).await
    }

    async fn serve(address: std::net::SocketAddr, handler: CallHandler) -> RedisWorker {
        at(address, 3_000).serve(handler).await.unwrap()
    }

    async fn remote(address: std::net::SocketAddr) -> Remote {
        at(address, 3_000).remote().await.unwrap()
    }

    fn running(worker: &RedisWorker) -> usize {
        worker.running()
    }
}

pub(crate) async fn bare(server: &Server) -> ::redis::aio::MultiplexedConnection {
    let client = ::redis::Client::open(format!("redis://{}", server.address())).unwrap();
    let config = ::redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(60)));
    client.get_multiplexed_async_connection_with_config(&config).await.unwrap()
}

type Entries = Vec<(String, Vec<(String, HashMap<String, String>)>)>;

/// Adds a text as a request for `test.about` by the caller `me`, and reads what comes next.
async fn ask(connection: &mut ::redis::aio::MultiplexedConnection, last: &mut String, text: &str) -> Value {
    let mut command = ::redis::cmd("XADD");
    command.arg("ops:call:test.about").arg("NOMKSTREAM").arg("*").arg("frame").arg(text).arg("from").arg("me");
    let _: String = command.query_async(connection).await.unwrap();
    let mut command = ::redis::cmd("XREAD");
    command.arg("COUNT").arg(1).arg("BLOCK").arg(30_000).arg("STREAMS").arg("ops:caller:me").arg(&*last);
    let read: Entries = command.query_async(connection).await.unwrap();
    let (id, fields) = &read[0].1[0];
    last.clone_from(id);
    serde_json::from_str(&fields["frame"]).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anybody_can_ask_and_nobody_can_lie() {
    let server = Server::redis(&[]).await;
    let probe = Arc::new(Probe::default());
    // A worker that believes nobody.
    let worker = Redis::new(
        &format!("redis://{}", server.address()),
        config(Duration::from_secs(3)).with_peer_auth(PeerAuth::anonymous()),
    )
    .unwrap();
    let worker = worker.serve(CallHandler::new(registry(&probe))).await.unwrap();
    let mut connection = bare(&server).await;
    let mut last: String =
        ::redis::cmd("XADD").arg(&["ops:caller:me", "*", "from", "me"]).query_async(&mut connection).await.unwrap();
    let request = |id: &str, more: Value| {
        let mut payload = json!({ "requestId": id, "operationId": "test.about", "input": {} });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "type": "call.requested", "id": id, "payload": payload, "newer": [1] }).to_string()
    };
    let answer = ask(&mut connection, &mut last, &request("any id", json!({}))).await;
    assert_eq!((&answer["type"], &answer["id"]), (&json!("call.responded"), &json!("any id")));
    // Who it says it is does not count.
    let claims = json!({ "identity": { "id": "ann", "scopes": ["vault:open"] } });
    let answer = ask(&mut connection, &mut last, &request("1", claims)).await;
    assert_eq!(answer["payload"]["output"]["data"]["identity"], Value::Null);
    let malformed = r#"{"type":"call.requested","id":"2","payload":{}}"#;
    let answer = ask(&mut connection, &mut last, malformed).await;
    assert_eq!((&answer["id"], &answer["payload"]["code"]), (&json!("2"), &json!("VALIDATION_ERROR")));
    // What cannot be answered is passed over: truncated, of a newer version, without a caller, not even text.
    for (frame, from) in
        [("{", "me"), (r#"{"type":"link.sing","payload":{}}"#, "me"), (&*request("3", json!({})), "nobody")]
    {
        for key in ["ops:call:test.about", "ops:changes"] {
            let mut command = ::redis::cmd("XADD");
            command.arg(key).arg("*").arg("frame").arg(frame).arg("from").arg(from);
            let _: String = command.query_async(&mut connection).await.unwrap();
        }
    }
    let mut command = ::redis::cmd("XADD");
    let _: String = command
        .arg("ops:call:test.about")
        .arg("*")
        .arg("frame")
        .arg(&b"\xff"[..])
        .query_async(&mut connection)
        .await
        .unwrap();
    let answer = ask(&mut connection, &mut last, &request("4", json!({}))).await;
    assert_eq!((&answer["type"], &answer["id"]), (&json!("call.responded"), &json!("4")));
    eventually("no task is left", || worker.running() == 0).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_has_started_is_taken_over() {
    let server = Server::redis(&[]).await;
    let mut connection = bare(&server).await;
    // A worker that is given a request, and dies before it starts it.
    let spec = serde_json::to_string(<Wait as ops_runtime::Operation>::SPEC).unwrap();
    for command in [
        &["XGROUP", "CREATE", "ops:call:test.wait", "workers", "0", "MKSTREAM"][..],
        &["HSET", "ops:serves:dead", "worker", "dead", "test.wait", &spec],
        &["SADD", "ops:workers", "dead"],
    ] {
        let _: ::redis::Value = ::redis::cmd(command[0]).arg(&command[1..]).query_async(&mut connection).await.unwrap();
    }
    let remote = at(server.address(), 3_000).remote().await.unwrap();
    let call = tokio::spawn(async move {
        let input = WaitInput { key: "taken".to_owned(), milliseconds: 1 };
        remote.execute::<Wait>(input).await.unwrap().data
    });
    let mut command = ::redis::cmd("XREADGROUP");
    command.arg(&["GROUP", "workers", "dead", "COUNT", "1", "BLOCK", "30000", "STREAMS", "ops:call:test.wait", ">"]);
    let read: Entries = command.query_async(&mut connection).await.unwrap();
    assert_eq!(read[0].1.len(), 1);
    // Another takes it over, once.
    let probe = Arc::new(Probe::default());
    let worker = at(server.address(), 3_000).serve(CallHandler::new(registry(&probe))).await.unwrap();
    assert_eq!(call.await.unwrap(), "taken");
    assert_eq!(probe.starts()["taken"], 1);
    let removed: i64 =
        ::redis::cmd("XDEL").arg("ops:call:test.wait").arg(&read[0].1[0].0).query_async(&mut connection).await.unwrap();
    assert_eq!(removed, 0, "whoever comes too late finds nothing to start");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_behind() {
    let server = Server::redis(&[]).await;
    let short = config(Duration::from_millis(800)).with_heartbeat(Duration::from_millis(100));
    let short = || short.clone().with_response_retention(Duration::from_secs(1));
    let redis = || Redis::new(&format!("redis://{}", server.address()), short()).unwrap();
    let worker = redis().serve(CallHandler::new(registry(&Arc::new(Probe::default())))).await.unwrap();
    let remote = redis().remote().await.unwrap();
    assert_eq!(remote.call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap().data, 3);
    worker.stop().await;
    drop(remote);
    let mut connection = bare(&server).await;
    for _ in 0..3_000 {
        let keys: Vec<String> = ::redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
        if keys.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("keys are left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_not_be_told_is_told_later() {
    let server = Server::redis(&[]).await;
    let mut connection = bare(&server).await;
    let registry = registry(&Arc::new(Probe::default()));
    let worker = at(server.address(), 3_000).serve(CallHandler::new(registry.clone())).await.unwrap();
    let remote = at(server.address(), 3_000).remote().await.unwrap();
    let serves = |id: &str| remote.list().iter().any(|spec| spec.id == id);
    eventually("it is served", || serves("test.add") && serves("test.wait")).await;
    // The server refuses for a while, and meanwhile one operation comes and another goes.
    let refuse = |rule: &'static str| {
        let mut command = ::redis::cmd("ACL");
        command.arg("SETUSER").arg("default").arg(rule);
        command
    };
    let _: () = refuse("-hset").query_async(&mut connection).await.unwrap();
    registry.remove("test.wait").unwrap();
    let later = OperationSpec::new(OperationKind::Query, "test", "later").unwrap();
    let handler = Handler::dynamic(|input: Value, _| async move { Ok(input) });
    registry.register(Registration::new(later, handler)).unwrap();
    worker.announce().await.unwrap_err();
    let _: () = refuse("+hset").query_async(&mut connection).await.unwrap();
    eventually("the change is told", || serves("test.later") && !serves("test.wait")).await;
    assert_eq!(remote.call("test.later", json!(1)).await.unwrap().data, 1);
    worker.stop().await;
}

/// Otherwise, its calls would wait for each other in its own stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_does_not_serve_what_it_calls_over_its_server() {
    limited(async {
        let (server, calling) = (Server::redis(&[]).await, Registry::new());
        let redis = at(server.address(), 3_000);
        let near = redis.remote().await.unwrap();
        add_twice(&calling, &near);
        let worker = redis.serve(CallHandler::new(calling)).await.unwrap();
        let remote = at(server.address(), 3_000).remote().await.unwrap();
        assert_eq!(remote.list().iter().map(|spec| spec.id.to_string()).collect::<Vec<_>>(), ["test.twice"]);
        let error = remote.execute::<Twice>(TwiceInput { n: 4 }).await.unwrap_err();
        assert_eq!(error.message(), ADD_IS_NOT_SERVED);
        let adding = at(server.address(), 3_000).serve(CallHandler::new(registry(&Arc::default()))).await.unwrap();
        eventually("it is known", || near.list().iter().any(|spec| spec.id == "test.add")).await;
        assert_eq!(remote.execute::<Twice>(TwiceInput { n: 4 }).await.unwrap().data, 8);
        adding.stop().await;
        worker.stop().await;
    })
    .await;
}
