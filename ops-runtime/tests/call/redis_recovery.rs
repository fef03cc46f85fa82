//! What heals by itself over Redis: failovers, lost connections, and workers that come back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ops_runtime::call::redis::{Redis, RedisConfig};
use ops_runtime::call::{CallHandler, Remote};
use ops_runtime::{CallError, CallOptions, ErrorCode, Registry};
use redis::aio::MultiplexedConnection;
use redis::cmd;
use redis::streams::StreamInfoConsumersReply;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::harness::{LONG, eventually, limited};
use crate::operations::{Add, AddInput, COUNT, Probe, Wait, WaitInput, registry};
use crate::proxy::Proxy;
use crate::redis::{bare, config};
use crate::redis_faults::{STREAM, announce_idle_worker, at, quick, run, waiting};
use crate::servers::Server;

pub(crate) fn through(proxy: &Proxy, config: RedisConfig) -> Redis {
    Redis::new(&format!("redis://{}", proxy.address()), config).unwrap()
}

/// The old primary keeps its connections open, answers reads, and refuses every write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_becomes_a_replica() {
    limited(async {
        let (old, new) = (Server::redis(&[]).await, Server::redis(&["--repl-diskless-sync-delay", "0"]).await);
        let proxy = Proxy::start(old.address()).await;
        let worker =
            through(&proxy, quick(1_000)).serve(CallHandler::new(registry(&Default::default()))).await.unwrap();
        let remote = through(&proxy, quick(1_000)).remote().await.unwrap();
        assert_eq!(remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
        proxy.redirect(new.address());
        let mut connection = bare(&old).await;
        let primary = new.address();
        let _: () = run(&mut connection, cmd("REPLICAOF").arg(primary.ip().to_string()).arg(primary.port())).await;
        for n in 0.. {
            let options = CallOptions::new().with_timeout(Duration::from_secs(5));
            match remote.execute_with::<Add>(AddInput { a: n, b: 1 }, options).await {
                Ok(sum) => {
                    assert_eq!(sum.data, n + 1);
                    break;
                }
                Err(error) => assert!(n < 200, "calls still fail: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        worker.stop().await;
    })
    .await;
}

/// Removes the worker that is not idle from the set, and waits until it is back.
async fn remove_and_await(connection: &mut MultiplexedConnection) {
    let ids: Vec<String> = run(connection, cmd("SMEMBERS").arg("ops:workers")).await;
    let id = ids.iter().find(|id| *id != "idle").unwrap();
    let _: i64 = run(connection, cmd("SREM").arg("ops:workers").arg(id)).await;
    for n in 0.. {
        if run::<i64>(connection, cmd("SISMEMBER").arg("ops:workers").arg(id)).await == 1 {
            break;
        }
        assert!(n < 500, "the worker is not in the set");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A caller that has seen its hash expire may remove it from the set just when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_was_removed_from_the_set_adds_itself_again() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        // Because of it, the set stays when the other is removed.
        announce_idle_worker(&mut connection).await;
        let worker = at(&server, quick(3_000)).serve(CallHandler::new(registry(&Default::default()))).await.unwrap();
        let remote = at(&server, quick(3_000)).remote().await.unwrap();
        eventually("it is served", || remote.list().len() == COUNT).await;
        remove_and_await(&mut connection).await;
        eventually("it is served again", || remote.list().len() == COUNT).await;
        assert_eq!(remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
        worker.stop().await;
    })
    .await;
}

/// The rest of the heartbeat in which it is added again may fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_was_removed_from_the_set_says_so_later() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        announce_idle_worker(&mut connection).await;
        let worker = at(&server, quick(3_000)).serve(CallHandler::new(registry(&Default::default()))).await.unwrap();
        let _: () = run(&mut connection, cmd("ACL").arg("SETUSER").arg("default").arg("-time")).await;
        remove_and_await(&mut connection).await;
        let before: usize = run(&mut connection, cmd("XLEN").arg("ops:changes")).await;
        let _: () = run(&mut connection, cmd("ACL").arg("SETUSER").arg("default").arg("+time")).await;
        for n in 0.. {
            if run::<usize>(&mut connection, cmd("XLEN").arg("ops:changes")).await > before {
                break;
            }
            assert!(n < 500, "callers are not told that the worker is back");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        worker.stop().await;
    })
    .await;
}

/// Waits until so many requests are in the stream.
async fn until_waiting(connection: &mut MultiplexedConnection, count: usize) {
    for n in 0.. {
        let waits: usize = run(connection, cmd("XLEN").arg(STREAM)).await;
        if waits == count {
            break;
        }
        assert!(n < 1_000, "{waits} requests wait, and not {count}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A call whose caller knows where its request is. The request of another call, which stays, shows it: a caller writes it
/// only when it has heard of the one before.
async fn written(remote: &Remote, connection: &mut MultiplexedConnection) -> JoinHandle<Result<String, CallError>> {
    let call = waiting(remote, 1);
    until_waiting(connection, 1).await;
    drop(waiting(remote, 1));
    until_waiting(connection, 2).await;
    call
}

/// The connection is open, and every write is refused, while a failover goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_withdrawn_after_a_failover() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        announce_idle_worker(&mut connection).await;
        let remote = at(&server, config(Duration::from_secs(3))).remote().await.unwrap();
        let call = written(&remote, &mut connection).await;
        let _: () = run(&mut connection, cmd("REPLICAOF").arg("127.0.0.1").arg(1)).await;
        call.abort();
        let _ = call.await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let _: () = run(&mut connection, cmd("REPLICAOF").arg("NO").arg("ONE")).await;
        until_waiting(&mut connection, 1).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_withdrawn_when_the_connection_is_back() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        announce_idle_worker(&mut connection).await;
        let proxy = Proxy::start(server.address()).await;
        let remote = through(&proxy, config(Duration::from_secs(3))).remote().await.unwrap();
        let call = written(&remote, &mut connection).await;
        proxy.close();
        tokio::time::sleep(Duration::from_millis(100)).await;
        call.abort();
        let _ = call.await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        proxy.resume();
        until_waiting(&mut connection, 1).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_says_why_there_is_no_connection() {
    limited(async {
        let mut server = Server::redis(&[]).await;
        let worker = at(&server, quick(3_000)).serve(CallHandler::new(registry(&Default::default()))).await.unwrap();
        let remote = at(&server, quick(3_000).with_connect_timeout(Duration::from_secs(1))).remote().await.unwrap();
        eventually("it is served", || remote.list().len() == COUNT).await;
        server.kill();
        for n in 0.. {
            let error = remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap_err();
            assert_eq!(*error.code(), ErrorCode::Aborted, "{error}");
            if error.message().starts_with("there is no connection to the broker: the Redis server can't be used: ") {
                break;
            }
            assert!(n < 100, "{error}");
        }
        server.restart().await;
        eventually("it is served again", || remote.list().len() == COUNT).await;
        drop(worker);
    })
    .await;
}

/// A time that is too long is as good as none.
#[tokio::test]
async fn times_without_a_limit() {
    limited(async {
        let server = Server::redis(&[]).await;
        let ever = Duration::MAX;
        let config = RedisConfig::new().with_heartbeat(ever).with_lost_after(ever);
        let config = config.with_response_retention(ever).with_connect_timeout(ever);
        let worker = at(&server, config.clone()).serve(CallHandler::new(registry(&Default::default()))).await.unwrap();
        let remote = at(&server, config).remote().await.unwrap();
        assert_eq!(remote.call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap().data, 3);
        worker.stop().await;
    })
    .await;
}

/// The consumers of the stream of `test.add`.
async fn consumers(connection: &mut MultiplexedConnection) -> Vec<String> {
    let group = cmd("XINFO").arg(&["CONSUMERS", "ops:call:test.add", "workers"]).take();
    let consumers = run::<StreamInfoConsumersReply>(connection, &group).await.consumers;
    consumers.into_iter().map(|consumer| consumer.name).collect()
}

/// A worker that crashed leaves a consumer, which others remove once it was given nothing for long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_of_lost_workers_are_removed() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        let registry = Registry::new();
        registry.register(Add).unwrap();
        // What is long depends on it: 24 s.
        let config = quick(400).with_heartbeat(Duration::from_millis(50));
        let worker = at(&server, config).serve(CallHandler::new(registry)).await.unwrap();
        let stream = "ops:call:test.add";
        let _: i64 = run(&mut connection, cmd("XGROUP").arg(&["CREATECONSUMER", stream, "workers", "lost"])).await;
        let begun = Instant::now();
        while consumers(&mut connection).await.iter().any(|name| name == "lost") {
            assert!(begun.elapsed() < Duration::from_secs(80), "it is left");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(begun.elapsed() > Duration::from_secs(20), "it was removed after {:?}", begun.elapsed());
        worker.stop().await;
    })
    .await;
}

/// A worker that is dropped is no longer a consumer, as if it was stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_dropped_leaves_its_groups() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        let worker = at(&server, quick(3_000)).serve(CallHandler::new(registry(&Default::default()))).await.unwrap();
        let remote = at(&server, quick(3_000)).remote().await.unwrap();
        // Not every version of the server knows a consumer before it is given something.
        assert_eq!(remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
        assert_eq!(consumers(&mut connection).await.len(), 1);
        drop(worker);
        let begun = Instant::now();
        while !consumers(&mut connection).await.is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(10), "its consumer is left");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// Each time that a worker is not heard of is judged by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_silent_twice() {
    limited(async {
        let server = Server::redis(&[]).await;
        let (probe, proxy) = (Arc::new(Probe::default()), Proxy::start(server.address()).await);
        let worker = through(&proxy, quick(30_000)).serve(CallHandler::new(registry(&probe))).await.unwrap();
        let remote = at(&server, quick(4_000)).remote().await.unwrap();
        let call = waiting(&remote, LONG);
        eventually("it runs", || probe.alive() == 1).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        for _ in 0..2 {
            // It is missed after 4 s, and would be given up after 6 s.
            proxy.stall();
            tokio::time::sleep(Duration::from_secs(5)).await;
            proxy.resume();
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(remote.in_flight(), 1, "the call is given up");
        }
        probe.let_go();
        assert_eq!(call.await.unwrap().unwrap(), "w");
        worker.stop().await;
    })
    .await;
}

/// After an outage, a worker may be back later than its caller.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_is_back_first_waits_for_its_worker() {
    limited(async {
        let server = Server::redis(&[]).await;
        let probe = Arc::new(Probe::default());
        let (to_worker, to_caller) = (Proxy::start(server.address()).await, Proxy::start(server.address()).await);
        let worker = through(&to_worker, quick(30_000)).serve(CallHandler::new(registry(&probe))).await.unwrap();
        let config = quick(4_000).with_response_retention(Duration::from_secs(60));
        let remote = through(&to_caller, config).remote().await.unwrap();
        let call = waiting(&remote, LONG);
        eventually("it runs", || probe.alive() == 1).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        to_worker.stall();
        to_caller.close();
        tokio::time::sleep(Duration::from_secs(5)).await;
        to_caller.resume();
        // Told when there is a connection again.
        let error = remote.call("test.lost", json!({})).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::OperationNotFound, "{error}");
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(remote.in_flight(), 1, "the call is given up");
        to_worker.resume();
        probe.let_go();
        assert_eq!(call.await.unwrap().unwrap(), "w");
        worker.stop().await;
    })
    .await;
}

/// The caller has read nothing but the workers yet, and no worker has reported the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_loses_its_connection_at_once_waits_for_its_worker() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        announce_idle_worker(&mut connection).await;
        let proxy = Proxy::start(server.address()).await;
        let config = quick(4_000).with_response_retention(Duration::from_secs(60));
        let remote = through(&proxy, config).remote().await.unwrap();
        let call = waiting(&remote, LONG);
        until_waiting(&mut connection, 1).await;
        // Less than its first read takes.
        tokio::time::sleep(Duration::from_millis(200)).await;
        proxy.close();
        // As if a worker had started the call.
        let trimmed: i64 = run(&mut connection, cmd("XTRIM").arg(STREAM).arg("MAXLEN").arg(0)).await;
        assert_eq!(trimmed, 1);
        tokio::time::sleep(Duration::from_secs(5)).await;
        proxy.resume();
        let error = remote.call("test.lost", json!({})).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::OperationNotFound, "{error}");
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(remote.in_flight(), 1, "the call is given up");
        // It is given up later, since no worker ever reports it.
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(*error.code(), ErrorCode::Aborted, "{error}");
    })
    .await;
}

/// The ids of entries are times of the server's clock. What replaces a server may have one that is behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_begin_again_at_an_earlier_time() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        let probe = Arc::new(Probe::default());
        let worker = at(&server, quick(3_000)).serve(CallHandler::new(registry(&probe))).await.unwrap();
        let remote = at(&server, quick(3_000)).remote().await.unwrap();
        let calls = async || {
            assert_eq!(remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
            let call = waiting(&remote, LONG);
            eventually("it runs", || probe.alive() == 1).await;
            call.abort();
            eventually("it is aborted", || probe.alive() == 0).await;
        };
        calls().await;
        let mut keys: Vec<String> = run(&mut connection, cmd("KEYS").arg("ops:caller:*")).await;
        keys.extend(run::<Vec<String>>(&mut connection, cmd("KEYS").arg("ops:worker:*")).await);
        assert_eq!(keys.len(), 2);
        // All that follows in these streams is of later than in an hour.
        let (now, _): (u64, u64) = run(&mut connection, &cmd("TIME")).await;
        let later = format!("{}-0", (now + 3_600) * 1_000);
        for key in &keys {
            let _: String = run(&mut connection, cmd("XADD").arg(key).arg(&later).arg("from").arg("me")).await;
        }
        calls().await;
        let _: usize = run(&mut connection, cmd("DEL").arg(&keys)).await;
        for n in 0.. {
            if run::<usize>(&mut connection, cmd("EXISTS").arg(&keys)).await == 2 {
                break;
            }
            assert!(n < 500, "they are not made again");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        calls().await;
        worker.stop().await;
    })
    .await;
}

/// A caller says at each heartbeat that its stream is still needed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_are_kept_from_heartbeat_to_heartbeat() {
    limited(async {
        let server = Server::redis(&[]).await;
        let worker = at(&server, quick(5_000)).serve(CallHandler::new(registry(&Default::default()))).await.unwrap();
        let config = config(Duration::from_secs(5)).with_heartbeat(Duration::from_millis(1_500));
        let remote = at(&server, config.with_response_retention(Duration::ZERO)).remote().await.unwrap();
        assert_eq!(remote.info().response_retention, Duration::from_millis(4_500));
        for _ in 0..10 {
            assert_eq!(waiting(&remote, 400).await.unwrap().unwrap(), "w");
        }
        worker.stop().await;
    })
    .await;
}

/// While the server stands still, requests wait. Those whose callers have gone are never written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_for_the_server_are_written_as_they_are_then() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        announce_idle_worker(&mut connection).await;
        let proxy = Proxy::start(server.address()).await;
        let remote = through(&proxy, quick(10_000)).remote().await.unwrap();
        let first = waiting(&remote, 1);
        until_waiting(&mut connection, 1).await;
        // What is written next is in the stream, and all else waits for the server to say so.
        proxy.mute();
        let next = waiting(&remote, 1);
        until_waiting(&mut connection, 2).await;
        let wait = |key: &str, timeout: Duration| {
            let (remote, input) = (remote.clone(), WaitInput { key: key.to_owned(), milliseconds: 1 });
            let options = CallOptions::new().with_timeout(timeout);
            tokio::spawn(async move { remote.execute_with::<Wait>(input, options).await.map(|done| done.data) })
        };
        let error = wait("late", Duration::from_millis(300)).await.unwrap().unwrap_err();
        assert_eq!(*error.code(), ErrorCode::Timeout, "{error}");
        let dropped = waiting(&remote, 1);
        let patient = wait("patient", Duration::from_secs(60));
        eventually("they wait", || remote.in_flight() == 4).await;
        dropped.abort();
        tokio::time::sleep(Duration::from_secs(1)).await;
        proxy.resume();
        until_waiting(&mut connection, 3).await;
        let read: Vec<(String, HashMap<String, String>)> =
            run(&mut connection, cmd("XRANGE").arg(STREAM).arg("-").arg("+")).await;
        let frames: Vec<Value> =
            read.iter().map(|(_, fields)| serde_json::from_str(&fields["frame"]).unwrap()).collect();
        let keys: Vec<&Value> = frames.iter().map(|frame| &frame["payload"]["input"]["key"]).collect();
        assert_eq!(keys, ["w", "w", "patient"]);
        let left = frames[2]["payload"]["timeLeft"].as_u64().unwrap();
        assert!((50_000..=59_000).contains(&left), "{left}");
        first.abort();
        next.abort();
        patient.abort();
        // Withdrawn, and none comes after them.
        until_waiting(&mut connection, 0).await;
        let info: HashMap<String, redis::Value> = run(&mut connection, cmd("XINFO").arg("STREAM").arg(STREAM)).await;
        assert_eq!(info["entries-added"], redis::Value::Int(3));
    })
    .await;
}
