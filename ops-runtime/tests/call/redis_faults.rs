//! What is of Redis only: workers that stop, requests that nobody starts, and a server that refuses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::join_all;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::call::redis::{Redis, RedisConfig};
use ops_runtime::call::{CallHandler, Remote};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{CallError, ErrorCode, Operation, Registry};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, cmd};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::harness::{LONG, eventually, limited, stopped};
use crate::operations::{Add, AddInput, Count, CountInput, Probe, Wait, WaitInput, registry};
use crate::proxy::Proxy;
use crate::redis::{bare, config};
use crate::servers::Server;

/// The stream of requests for `test.wait`.
pub(crate) const STREAM: &str = "ops:call:test.wait";

pub(crate) fn at(server: &Server, config: RedisConfig) -> Redis {
    Redis::new(&format!("redis://{}", server.address()), config).unwrap()
}

pub(crate) fn quick(lost_after: u64) -> RedisConfig {
    config(Duration::from_millis(lost_after)).with_heartbeat(Duration::from_millis(100))
}

pub(crate) fn waiting(remote: &Remote, milliseconds: u64) -> JoinHandle<Result<String, CallError>> {
    let (remote, input) = (remote.clone(), WaitInput { key: "w".to_owned(), milliseconds });
    tokio::spawn(async move { Ok(remote.execute::<Wait>(input).await?.data) })
}

pub(crate) async fn run<T: FromRedisValue>(connection: &mut MultiplexedConnection, command: &Cmd) -> T {
    command.query_async(connection).await.unwrap()
}

/// Announces a worker of `test.wait` that takes no requests.
pub(crate) async fn announce_idle_worker(connection: &mut MultiplexedConnection) {
    let spec = serde_json::to_string(<Wait as Operation>::SPEC).unwrap();
    for command in [
        &["XGROUP", "CREATE", STREAM, "workers", "0", "MKSTREAM"][..],
        &["HSET", "ops:serves:idle", "worker", "idle", "test.wait", &spec],
        &["SADD", "ops:workers", "idle"],
    ] {
        let _: redis::Value = run(connection, cmd(command[0]).arg(&command[1..])).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_stops_speaks_until_it_is_done() {
    limited(async {
        let server = Server::redis(&[]).await;
        let probe = Arc::new(Probe::default());
        // What the worker does not renew expires after 8.4 s, and what it does not report is given up after 4.5 s.
        let worker = at(&server, quick(700)).serve(CallHandler::new(registry(&probe))).await.unwrap();
        let remote = at(&server, quick(3_000)).remote().await.unwrap();
        let call = waiting(&remote, LONG);
        let mut items = remote.subscribe::<Count>(CountInput { to: 1_000 }).await.unwrap();
        assert_eq!(items.next().await.unwrap().unwrap().data, 0);
        eventually("both run", || probe.alive() == 2).await;
        let stopping = tokio::spawn(worker.stop());
        tokio::time::sleep(Duration::from_secs(10)).await;
        for n in 1..1_000 {
            assert_eq!(items.next().await.unwrap().unwrap().data, n);
        }
        assert!(items.next().await.is_none());
        probe.let_go();
        assert_eq!(call.await.unwrap().unwrap(), "w");
        stopping.await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_dropped_says_so() {
    limited(async {
        let server = Server::redis(&[]).await;
        let slow = || config(Duration::from_secs(20));
        for stops in [false, true] {
            let probe = Arc::new(Probe::default());
            let worker = at(&server, slow()).serve(CallHandler::new(registry(&probe))).await.unwrap();
            let remote = at(&server, slow()).remote().await.unwrap();
            // It has said something before.
            for n in 0..20 {
                assert_eq!(remote.execute::<Add>(AddInput { a: n, b: 1 }).await.unwrap().data, n + 1);
            }
            let call = waiting(&remote, 600_000);
            eventually("it runs", || probe.alive() == 1).await;
            let begun = Instant::now();
            if stops {
                // Nobody waits any longer for it to be done.
                tokio::time::timeout(Duration::from_millis(1_500), worker.stop()).await.unwrap_err();
            } else {
                drop(worker);
            }
            let error = call.await.unwrap().unwrap_err();
            assert_eq!((error.code(), error.message()), (&ErrorCode::Aborted, "the worker gave up the call"));
            assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_given_up_while_it_is_written_is_withdrawn() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        announce_idle_worker(&mut connection).await;
        let proxy = Proxy::start(server.address()).await;
        let remote = Redis::new(&format!("redis://{}", proxy.address()), config(Duration::from_secs(3))).unwrap();
        let remote = remote.remote().await.unwrap();
        proxy.delay(Duration::from_millis(300));
        let call = waiting(&remote, 1);
        eventually("it is on its way", || remote.in_flight() == 1).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        call.abort();
        let _ = call.await;
        // Written, and then taken back.
        for n in 0.. {
            let last: Vec<(String, redis::Value)> =
                run(&mut connection, cmd("XREVRANGE").arg(STREAM).arg("+").arg("-").arg("COUNT").arg(1)).await;
            let info: std::collections::HashMap<String, redis::Value> =
                run(&mut connection, cmd("XINFO").arg("STREAM").arg(STREAM)).await;
            if last.is_empty() && info["entries-added"] == redis::Value::Int(1) {
                break;
            }
            assert!(n < 500, "a request that nobody waits for is left: {info:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_requests_are_found_among_many_that_wait() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        announce_idle_worker(&mut connection).await;
        let remote = at(&server, quick(500)).remote().await.unwrap();
        let calls: Vec<_> = (0..2_500).map(|_| waiting(&remote, 1)).collect();
        let mut written: Vec<(String, redis::Value)> = Vec::new();
        while written.len() < 2_500 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            written = run(&mut connection, cmd("XRANGE").arg(STREAM).arg("-").arg("+")).await;
        }
        // Every fifth is taken by somebody who dies.
        let taken: Vec<_> = written.iter().step_by(5).map(|(id, _)| id).collect();
        let _: i64 = run(&mut connection, cmd("XDEL").arg(STREAM).arg(taken)).await;
        eventually("those that are lost are given up", || remote.in_flight() == 2_000).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(remote.in_flight(), 2_000, "the others wait");
        calls.iter().for_each(JoinHandle::abort);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_is_told_as_such() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        let probe = Arc::new(Probe::default());
        let worker =
            at(&server, config(Duration::from_secs(3))).serve(CallHandler::new(registry(&probe))).await.unwrap();
        let remote = at(&server, config(Duration::from_secs(3))).remote().await.unwrap();
        let _: () = run(&mut connection, cmd("ACL").arg("SETUSER").arg("default").arg("-xadd")).await;
        let error = remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::ExecutionError, "{error}");
        assert!(error.message().contains("NOPERM"), "{error}");
        let _: () = run(&mut connection, cmd("ACL").arg("SETUSER").arg("default").arg("+xadd")).await;
        assert_eq!(remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
        worker.stop().await;
    })
    .await;
}

/// A caller that may only read which workers there are leaves it to others to remove those that are gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_may_not_remove_lost_workers() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        let worker = at(&server, quick(60_000)).serve(CallHandler::new(registry(&Arc::default()))).await.unwrap();
        for rule in ["on", ">secret", "~*", "&*", "+@all", "-srem"] {
            let _: () = run(&mut connection, cmd("ACL").arg("SETUSER").arg("caller").arg(rule)).await;
        }
        let _: i64 = run(&mut connection, cmd("SADD").arg("ops:workers").arg("deadbeef")).await;
        let url = format!("redis://caller:secret@{}", server.address());
        let config = quick(60_000).with_response_retention(Duration::from_millis(300));
        let remote = Redis::new(&url, config).unwrap().remote().await.unwrap();
        // Longer than a caller that is not reached waits.
        assert_eq!(waiting(&remote, 2_000).await.unwrap().unwrap(), "w");
        assert_eq!(remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
        worker.stop().await;
    })
    .await;
}

/// Calls that run go on. Those whose responses can no longer arrive are given up one by one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_caller_may_not_do_is_no_lost_connection() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        let worker = at(&server, quick(60_000)).serve(CallHandler::new(registry(&Arc::default()))).await.unwrap();
        let mut caller = async |rule: &str| {
            let set: () = run(&mut connection, cmd("ACL").arg("SETUSER").arg("caller").arg(rule)).await;
            set
        };
        for rule in ["on", ">secret", "~*", "&*", "+@all"] {
            caller(rule).await;
        }
        let url = format!("redis://caller:secret@{}", server.address());
        let config = quick(3_000).with_response_retention(Duration::from_millis(300));
        let remote = Redis::new(&url, config).unwrap().remote().await.unwrap();
        // It can no longer look for workers.
        caller("-smembers").await;
        // Longer than a caller that is not reached waits.
        assert_eq!(waiting(&remote, 2_000).await.unwrap().unwrap(), "w");
        // Nor can it renew its stream, which expires.
        caller("-pexpire").await;
        let error = waiting(&remote, LONG).await.unwrap().unwrap_err();
        let message = "no worker says that it runs the call: its worker or the answer is lost";
        assert_eq!((error.code(), error.message()), (&ErrorCode::Aborted, message));
        worker.stop().await;
    })
    .await;
}

/// Without the credit that the server does not take, the worker would never send another item. What it is told of others is
/// theirs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_ends_when_the_server_refuses_its_credit() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        let probe = Arc::new(Probe::default());
        let worker =
            at(&server, config(Duration::from_secs(3))).serve(CallHandler::new(registry(&probe))).await.unwrap();
        let mut caller = async |rule: &str| {
            let set: () = run(&mut connection, cmd("ACL").arg("SETUSER").arg("caller").arg(rule)).await;
            set
        };
        for rule in ["on", ">secret", "~*", "&*", "+@all"] {
            caller(rule).await;
        }
        let url = format!("redis://caller:secret@{}", server.address());
        let remote = Redis::new(&url, config(Duration::from_secs(3))).unwrap().remote().await.unwrap();
        let subscribe = async || {
            let mut items = remote.subscribe::<Count>(CountInput { to: 1_000 }).await.unwrap();
            assert_eq!(items.next().await.unwrap().unwrap().data, 0);
            items
        };
        let (mut items, mut others, left) = (subscribe().await, subscribe().await, subscribe().await);
        // The worker sends what it has credit for, and waits for more.
        let (mut made, mut looks) = (0, 0);
        while looks < 10 {
            looks = if made == probe.made() { looks + 1 } else { 0 };
            made = probe.made();
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        caller("-xadd").await;
        drop(left);
        let mut last = Ok(0);
        while let (Ok(_), Some(item)) = (&last, items.next().await) {
            last = item.map(|item| item.data);
        }
        caller("+xadd").await;
        let error = last.expect_err("it ends by an error");
        assert!(error.message().contains("NOPERM"), "{error}");
        for n in 1..1_000 {
            assert_eq!(others.next().await.unwrap().unwrap().data, n);
        }
        assert!(others.next().await.is_none());
        worker.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_a_worker_was_given_and_did_not_get_outlives_it() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        let probe = Arc::new(Probe::default());
        let serve =
            async |config: RedisConfig| at(&server, config).serve(CallHandler::new(registry(&probe))).await.unwrap();
        let worker = serve(config(Duration::from_secs(3)).with_max_running(1)).await;
        let remote = at(&server, config(Duration::from_secs(3))).remote().await.unwrap();
        // It reads no more while this runs.
        let first = waiting(&remote, LONG);
        eventually("it runs", || worker.running() == 1).await;
        let ids: Vec<String> = run(&mut connection, cmd("SMEMBERS").arg("ops:workers")).await;
        let lost = waiting(&remote, 1);
        // The server gives the worker another request, and the reply gets lost.
        for n in 0.. {
            let mut give = cmd("XREADGROUP");
            give.arg("GROUP").arg("workers").arg(&ids[0]).arg("STREAMS").arg(STREAM).arg(">");
            if run::<redis::Value>(&mut connection, &give).await != redis::Value::Nil {
                break;
            }
            assert!(n < 500, "the request was never written");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let other = serve(config(Duration::from_secs(3))).await;
        stopped(&probe, worker.stop()).await;
        assert_eq!(first.await.unwrap().unwrap(), "w");
        let lost = tokio::time::timeout(Duration::from_secs(30), lost).await.expect("the call waits for ever");
        assert_eq!(lost.unwrap().unwrap(), "w");
        other.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_not_gone_because_the_server_does_not_say_where_it_is() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        announce_idle_worker(&mut connection).await;
        let remote = at(&server, quick(3_000)).remote().await.unwrap();
        let call = waiting(&remote, 1);
        let _: () = run(&mut connection, cmd("ACL").arg("SETUSER").arg("default").arg("-xrange")).await;
        // It has refused that twice.
        for n in 0.. {
            let told: String = run(&mut connection, cmd("INFO").arg("commandstats")).await;
            let mut told = told.lines().filter(|line| line.starts_with("cmdstat_xrange:"));
            if told.any(|line| !line.contains("rejected_calls=0") && !line.contains("rejected_calls=1,")) {
                break;
            }
            assert!(n < 1_000, "nobody has looked");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let _: () = run(&mut connection, cmd("ACL").arg("SETUSER").arg("default").arg("+xrange")).await;
        tokio::time::sleep(Duration::from_millis(2_000)).await;
        assert_eq!(remote.in_flight(), 1, "it is there, and waits");
        let worker = at(&server, quick(500)).serve(CallHandler::new(registry(&Arc::default()))).await.unwrap();
        assert_eq!(call.await.unwrap().unwrap(), "w");
        worker.stop().await;
    })
    .await;
}

/// What the server refuses for good is told, not waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_the_server_never_tells_of_is_given_up() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        announce_idle_worker(&mut connection).await;
        let remote = at(&server, quick(500)).remote().await.unwrap();
        let _: () = run(&mut connection, cmd("ACL").arg("SETUSER").arg("default").arg("-xrange")).await;
        let error = waiting(&remote, 1).await.unwrap().unwrap_err();
        assert_eq!(*error.code(), ErrorCode::ExecutionError, "{error}");
        assert!(error.message().contains("XRANGE") && error.message().contains("NOPERM"), "{error}");
        // Nobody starts it.
        for n in 0.. {
            if run::<usize>(&mut connection, cmd("XLEN").arg(STREAM)).await == 0 {
                break;
            }
            assert!(n < 500, "the request is left");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// The test operations, and `slow.text`, which gives a text of so many bytes after a while.
fn with_texts() -> Registry {
    let registry = registry(&Arc::default());
    let handler = Handler::dynamic(|input: Value, _| async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok(json!("x".repeat(usize::try_from(input.as_u64().unwrap()).unwrap())))
    });
    let spec = OperationSpec::new(OperationKind::Query, "slow", "text").unwrap();
    registry.register(Registration::new(spec, handler)).unwrap();
    registry
}

/// Answers that have piled up are written in parts, each of which comes in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn much_is_written_over_a_slow_connection() {
    limited(async {
        let server = Server::redis(&[]).await;
        let proxy = Proxy::start(server.address()).await;
        let slow = Redis::new(&format!("redis://{}", proxy.address()), quick(1_500)).unwrap();
        let worker = slow.serve(CallHandler::new(with_texts())).await.unwrap();
        let remote = at(&server, quick(20_000)).remote().await.unwrap();
        // 8 MB take 2.7 s, and the server has 2 s for an answer.
        proxy.slow(3_000_000);
        let calls = (0..40).map(|_| remote.call("slow.text", json!(200_000)));
        for answer in join_all(calls).await {
            assert_eq!(answer.unwrap().data.as_str().unwrap().len(), 200_000);
        }
        proxy.resume();
        worker.stop().await;
    })
    .await;
}

/// How often a command was run.
async fn runs(connection: &mut MultiplexedConnection, command: &str) -> u64 {
    let told: String = run(connection, cmd("INFO").arg("commandstats")).await;
    let line = told.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

/// A worker that changes often is looked at a few times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_come_together_are_looked_at_together() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        announce_idle_worker(&mut connection).await;
        let remote = at(&server, quick(3_000)).remote().await.unwrap();
        let before = runs(&mut connection, "hgetall").await;
        let spec = serde_json::to_string(<Add as Operation>::SPEC).unwrap();
        let mut commands = redis::pipe();
        commands.atomic().cmd("HSET").arg("ops:serves:idle").arg("test.add").arg(spec);
        for _ in 0..400 {
            commands.cmd("XADD").arg("ops:changes").arg("*").arg("from").arg("idle");
        }
        let _: redis::Value = commands.query_async(&mut connection).await.unwrap();
        eventually("it is known", || remote.list().len() == 2).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let looks = runs(&mut connection, "hgetall").await - before;
        assert!(looks <= 100, "it was looked at {looks} times");
    })
    .await;
}

/// A worker that stops says so after all else that it says of what it serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_stops_while_it_announces() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        let proxy = Proxy::start(server.address()).await;
        let seldom = config(Duration::from_secs(60)).with_heartbeat(Duration::from_secs(20));
        let worker = Redis::new(&format!("redis://{}", proxy.address()), seldom).unwrap();
        let worker = worker.serve(CallHandler::new(registry(&Arc::default()))).await.unwrap();
        proxy.delay(Duration::from_millis(200));
        // The server has lost what there was, which the worker makes anew when it reads.
        let _: () = run(&mut connection, &cmd("FLUSHALL")).await;
        for n in 0.. {
            if run::<i64>(&mut connection, cmd("EXISTS").arg(STREAM)).await == 1 {
                break;
            }
            assert!(n < 3_000, "nothing is made anew");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        worker.stop().await;
        let left: Vec<String> = run(&mut connection, cmd("KEYS").arg("ops:serves:*")).await;
        assert_eq!(left, [""; 0]);
    })
    .await;
}

/// The caller hears at once of an answer that the server does not take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_the_server_refuses() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        // Nothing is given up for its silence.
        let patient = || config(Duration::from_secs(100)).with_max_message(8 << 20);
        let worker = at(&server, patient()).serve(CallHandler::new(with_texts())).await.unwrap();
        let remote = at(&server, patient()).remote().await.unwrap();
        assert_eq!(remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
        // There is room for small answers, and none for a large one.
        let memory: String = run(&mut connection, cmd("INFO").arg("memory")).await;
        let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
        let most = used.trim().parse::<u64>().unwrap() + (5 << 20);
        let _: () = run(&mut connection, cmd("CONFIG").arg("SET").arg("maxmemory").arg(most)).await;
        let begun = Instant::now();
        let error = remote.call("slow.text", json!(7 << 20)).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::ExecutionError, "{error}");
        assert!(error.message().contains("cannot be delivered") && error.message().contains("OOM"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());
        assert_eq!(remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
        worker.stop().await;
    })
    .await;
}
