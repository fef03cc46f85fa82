//! What a worker and a caller take of a Redis server at a time, and what they keep for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::call::CallHandler;
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{ErrorCode, Registry};
use redis::cmd;
use serde_json::{Value, json};

use crate::harness::{LONG, eventually, limited};
use crate::operations::{COUNT, Probe, Wait, WaitInput, registry};
use crate::proxy::Proxy;
use crate::redis::bare;
use crate::redis_faults::{STREAM, announce_idle_worker, at, quick, run, waiting};
use crate::redis_recovery::through;
use crate::servers::Server;

/// How many operations a worker with many of them has.
const MANY: usize = 12;

/// How many handlers run, and how many have run at a time.
#[derive(Default)]
struct Load {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// So many operations that give back what they get, so many milliseconds later.
fn many(count: usize, milliseconds: u64, load: &Arc<Load>) -> Registry {
    let registry = Registry::new();
    for n in 0..count {
        let load = load.clone();
        let handler = Handler::dynamic(move |input: Value, _| {
            let load = load.clone();
            async move {
                load.most.fetch_max(load.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                load.now.fetch_sub(1, Ordering::SeqCst);
                Ok(input)
            }
        });
        let spec = OperationSpec::new(OperationKind::Query, "many", &format!("n{n}")).unwrap();
        registry.register(Registration::new(spec, handler)).unwrap();
    }
    registry
}

/// The server gives a number of requests of each operation, and the limit is for all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_of_many_operations_runs_no_more_than_it_may() {
    limited(async {
        for most in [1, 5, 20] {
            let (server, load) = (Server::redis(&[]).await, Arc::new(Load::default()));
            let config = quick(3_000).with_max_running(most);
            // The more may run, the longer they do: time enough to start that many.
            let registry = many(MANY, 15 * most as u64, &load);
            let worker = at(&server, config).serve(CallHandler::new(registry)).await.unwrap();
            let remote = at(&server, quick(3_000)).remote().await.unwrap();
            let calls = (0..10 * MANY).map(|n| {
                let remote = remote.clone();
                tokio::spawn(async move { remote.call(&format!("many.n{}", n % MANY), json!(n)).await })
            });
            for (n, call) in join_all(calls).await.into_iter().enumerate() {
                assert_eq!(call.unwrap().unwrap().data, n);
            }
            assert_eq!(load.most.load(Ordering::SeqCst), most);
            worker.stop().await;
        }
    })
    .await;
}

/// An operation for which many requests wait leaves the others their turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_operation_gets_its_turn() {
    limited(async {
        let (server, load) = (Server::redis(&[]).await, Arc::new(Load::default()));
        let config = quick(3_000).with_max_running(1);
        let worker = at(&server, config).serve(CallHandler::new(many(MANY, 30, &load))).await.unwrap();
        let remote = at(&server, quick(3_000)).remote().await.unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        let calls: Vec<_> = (0..200)
            .map(|n| {
                let (remote, done) = (remote.clone(), done.clone());
                tokio::spawn(async move {
                    assert_eq!(remote.call("many.n0", json!(n)).await.unwrap().data, n);
                    done.fetch_add(1, Ordering::SeqCst);
                })
            })
            .collect();
        eventually("they run", || done.load(Ordering::SeqCst) > 10).await;
        for n in 1..MANY {
            let before = done.load(Ordering::SeqCst);
            assert_eq!(remote.call(&format!("many.n{n}"), json!(n)).await.unwrap().data, n);
            let between = done.load(Ordering::SeqCst) - before;
            assert!(between <= 20, "{between} others were first");
        }
        assert!(done.load(Ordering::SeqCst) < 200, "nothing was in the way");
        for call in calls {
            call.await.unwrap();
        }
        worker.stop().await;
    })
    .await;
}

/// How often the server has run a command.
async fn runs(connection: &mut redis::aio::MultiplexedConnection, command: &str) -> usize {
    let told: String = run(connection, cmd("INFO").arg("commandstats")).await;
    let name = format!("cmdstat_{command}:calls=");
    let calls = told.lines().find_map(|line| line.strip_prefix(&*name)?.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

/// Those without requests take no room and no time from one that has some, be they many or one after another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_among_many_is_read_no_more_often_than_it_has_requests() {
    limited(async {
        let (server, load) = (Server::redis(&[]).await, Arc::new(Load::default()));
        let mut connection = bare(&server).await;
        let config = quick(3_000).with_max_running(4);
        let worker = at(&server, config).serve(CallHandler::new(many(200, 20, &load))).await.unwrap();
        let remote = at(&server, quick(3_000)).remote().await.unwrap();
        let before = runs(&mut connection, "xreadgroup").await;
        let calls = (0..100).map(|n| {
            let remote = remote.clone();
            tokio::spawn(async move { remote.call("many.n150", json!(n)).await })
        });
        for (n, call) in join_all(calls).await.into_iter().enumerate() {
            assert_eq!(call.unwrap().unwrap().data, n);
        }
        let at_once = runs(&mut connection, "xreadgroup").await - before;
        assert!(at_once < 200, "{at_once} reads for 100 requests");
        for n in 0..50 {
            assert_eq!(remote.call("many.n150", json!(n)).await.unwrap().data, n);
        }
        let in_turn = runs(&mut connection, "xreadgroup").await - before - at_once;
        assert!(in_turn < 200, "{in_turn} reads for 50 requests");
        assert!(load.most.load(Ordering::SeqCst) <= 4);
        worker.stop().await;
    })
    .await;
}

/// A worker that has room for one request looks for those of lost workers in all of its operations at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_of_a_worker_of_many_operations_are_in_time() {
    limited(async {
        let (server, load) = (Server::redis(&[]).await, Arc::new(Load::default()));
        let proxy = Proxy::start(server.address()).await;
        let config = quick(3_000).with_max_running(1);
        let worker = through(&proxy, config).serve(CallHandler::new(many(200, 0, &load))).await.unwrap();
        let remote = at(&server, quick(3_000)).remote().await.unwrap();
        // A round trip for each operation would take 8 s.
        proxy.delay(Duration::from_millis(20));
        for _ in 0..80 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(remote.list().len(), 200);
        }
        proxy.resume();
        worker.stop().await;
    })
    .await;
}

/// Also if there is room for one at a time, and if some of them are in the stream no longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_lost_worker_was_given_is_taken_over() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        announce_idle_worker(&mut connection).await;
        let remote = at(&server, quick(3_000)).remote().await.unwrap();
        let calls: Vec<_> = (0..6).map(|_| waiting(&remote, 1)).collect();
        let mut written: Vec<(String, redis::Value)> = Vec::new();
        while written.len() < 6 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            written = run(&mut connection, cmd("XRANGE").arg(STREAM).arg("-").arg("+")).await;
        }
        let mut give = cmd("XREADGROUP");
        give.arg("GROUP").arg("workers").arg("lost").arg("STREAMS").arg(STREAM).arg(">");
        let _: redis::Value = run(&mut connection, &give).await;
        let withdrawn: Vec<_> = written.iter().take(3).map(|(id, _)| id).collect();
        let _: i64 = run(&mut connection, cmd("XDEL").arg(STREAM).arg(withdrawn)).await;
        let probe = Arc::new(Probe::default());
        let config = quick(500).with_max_running(1);
        let worker = at(&server, config).serve(CallHandler::new(registry(&probe))).await.unwrap();
        let (mut done, mut lost) = (0, 0);
        for call in calls {
            match call.await.unwrap() {
                Ok(_) => done += 1,
                Err(error) => {
                    assert_eq!(*error.code(), ErrorCode::Aborted, "{error}");
                    lost += 1;
                }
            }
        }
        assert_eq!((done, lost, probe.starts()["w"]), (3, 3, 3));
        let pending: Vec<redis::Value> = run(&mut connection, cmd("XPENDING").arg(STREAM).arg("workers")).await;
        assert_eq!(pending[0], redis::Value::Int(0));
        worker.stop().await;
    })
    .await;
}

/// A small request runs even while other callers hold all of the memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_requests_run_while_other_callers_hold_all_memory() {
    limited(async {
        let (server, probe) = (Server::redis(&[]).await, Arc::new(Probe::default()));
        let handler = CallHandler::new(registry(&probe)).with_max_bytes(1 << 20, 1 << 20);
        let worker = at(&server, quick(3_000)).serve(handler).await.unwrap();
        let large = at(&server, quick(3_000)).remote().await.unwrap();
        let small = at(&server, quick(3_000)).remote().await.unwrap();
        let calls = (0..5).map(|n| {
            let (remote, key) = (large.clone(), n.to_string().repeat(200_000));
            tokio::spawn(async move { remote.execute::<Wait>(WaitInput { key, milliseconds: LONG }).await })
        });
        let calls: Vec<_> = calls.collect();
        eventually("they run", || probe.alive() == 5).await;
        let text = json!("x".repeat(60_000));
        assert_eq!(small.call("test.echo", json!({ "value": text })).await.unwrap().data, text);
        let error = large.call("test.echo", json!({ "value": text })).await.unwrap_err();
        assert_eq!(error.details()["limit"], 1 << 20);
        probe.let_go();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap().data.len(), 200_000);
        }
        worker.stop().await;
    })
    .await;
}

/// Requests that hold half of the memory may run for long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_lost_worker_was_given_is_taken_over_while_half_of_the_memory_is_used() {
    limited(async {
        let (server, probe) = (Server::redis(&[]).await, Arc::new(Probe::default()));
        let mut connection = bare(&server).await;
        let handler = CallHandler::new(registry(&probe)).with_max_bytes(1 << 20, 1 << 20);
        let worker = at(&server, quick(3_000)).serve(handler).await.unwrap();
        let remote = at(&server, quick(3_000)).remote().await.unwrap();
        let calls = (0..3).map(|n| {
            let (remote, key) = (remote.clone(), n.to_string().repeat(200_000));
            tokio::spawn(async move { remote.execute::<Wait>(WaitInput { key, milliseconds: LONG }).await })
        });
        let calls: Vec<_> = calls.collect();
        eventually("they run", || probe.alive() == 3).await;
        // The worker takes nothing for 5 s now.
        let call = waiting(&remote, 1);
        let mut written: i64 = 0;
        while written == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            written = run(&mut connection, cmd("XLEN").arg(STREAM)).await;
        }
        let mut give = cmd("XREADGROUP");
        give.arg("GROUP").arg("workers").arg("lost").arg("STREAMS").arg(STREAM).arg(">");
        let given: redis::Value = run(&mut connection, &give).await;
        assert_ne!(given, redis::Value::Nil);
        assert_eq!(call.await.unwrap().unwrap(), "w");
        assert_eq!((probe.alive(), written), (3, 1));
        probe.let_go();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap().data.len(), 200_000);
        }
        worker.stop().await;
    })
    .await;
}

/// The number of entries that were added to a stream.
async fn added(connection: &mut redis::aio::MultiplexedConnection, key: &str) -> i64 {
    let info: HashMap<String, redis::Value> = run(connection, cmd("XINFO").arg("STREAM").arg(key)).await;
    match info["entries-added"] {
        redis::Value::Int(added) => added,
        ref other => panic!("{other:?}"),
    }
}

/// A report that is not written is not followed by others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_do_not_pile_up_without_a_connection() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        let (probe, proxy) = (Arc::new(Probe::default()), Proxy::start(server.address()).await);
        let config = || quick(60_000).with_heartbeat(Duration::from_millis(50));
        let worker = through(&proxy, config()).serve(CallHandler::new(registry(&probe))).await.unwrap();
        let remote = at(&server, config()).remote().await.unwrap();
        let call = waiting(&remote, LONG);
        eventually("it runs", || probe.alive() == 1).await;
        let keys: Vec<String> = run(&mut connection, cmd("KEYS").arg("ops:caller:*")).await;
        proxy.close();
        tokio::time::sleep(Duration::from_secs(4)).await;
        let before = added(&mut connection, &keys[0]).await;
        proxy.resume();
        let mut written = 0;
        for n in 0.. {
            written = added(&mut connection, &keys[0]).await - before;
            if written > 0 {
                break;
            }
            assert!(n < 3_000, "it is not reported");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(written < 20, "{written} reports have piled up");
        probe.let_go();
        assert_eq!(call.await.unwrap().unwrap(), "w");
        worker.stop().await;
    })
    .await;
}

/// What callers say has piled up: more than can be read at once before the connection counts as lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_to_a_worker_are_read_in_parts() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        let (probe, proxy) = (Arc::new(Probe::default()), Proxy::start(server.address()).await);
        let worker = through(&proxy, quick(1_500)).serve(CallHandler::new(registry(&probe))).await.unwrap();
        let remote = at(&server, quick(60_000)).remote().await.unwrap();
        let call = waiting(&remote, LONG);
        eventually("it runs", || probe.alive() == 1).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let keys: Vec<String> = run(&mut connection, cmd("KEYS").arg("ops:worker:*")).await;
        // 3 MB pass in a second, and the server has 2 s for an answer.
        proxy.delay(Duration::from_millis(5));
        let large = "x".repeat(1 << 20);
        for _ in 0..16 {
            let mut add = cmd("XADD");
            add.arg(&keys[0]).arg("*").arg("frame").arg(&large).arg("from").arg("me");
            let _: String = run(&mut connection, &add).await;
        }
        call.abort();
        eventually("the abort is read", || probe.alive() == 0).await;
        proxy.resume();
        worker.stop().await;
    })
    .await;
}

/// An entry that takes longer to arrive than the connection waits for it is in the way of all that follow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_end_whose_answers_can_never_be_read() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        let (probe, proxy) = (Arc::new(Probe::default()), Proxy::start(server.address()).await);
        let worker = at(&server, quick(60_000)).serve(CallHandler::new(registry(&probe))).await.unwrap();
        let config = quick(2_000).with_response_retention(Duration::from_secs(100));
        let remote = through(&proxy, config).remote().await.unwrap();
        let call = waiting(&remote, LONG);
        eventually("it runs", || probe.alive() == 1).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let keys: Vec<String> = run(&mut connection, cmd("KEYS").arg("ops:caller:*")).await;
        // 3 MB pass in a second, and the server has 2.5 s for an answer.
        proxy.delay(Duration::from_millis(5));
        let mut add = cmd("XADD");
        add.arg(&keys[0]).arg("*").arg("frame").arg("x".repeat(16 << 20)).arg("from").arg("me");
        let _: String = run(&mut connection, &add).await;
        let call = tokio::time::timeout(Duration::from_secs(60), call).await.expect("the call waits for ever");
        let error = call.unwrap().unwrap_err();
        assert_eq!(*error.code(), ErrorCode::Aborted, "{error}");
        assert!(error.message().starts_with("no worker says that it runs the call"), "{error}");
        proxy.resume();
        probe.let_go();
        worker.stop().await;
    })
    .await;
}

/// A program that may write keys can announce more than a caller has memory for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_announces_too_much_is_not_read() {
    limited(async {
        let server = Server::redis(&[]).await;
        let mut connection = bare(&server).await;
        let worker = at(&server, quick(30_000)).serve(CallHandler::new(registry(&Arc::default()))).await.unwrap();
        let spec = OperationSpec::new(OperationKind::Query, "too", "much").unwrap();
        let spec = serde_json::to_string(&spec).unwrap();
        // What the server allocates for it is 1 MiB.
        let large = "x".repeat((1 << 20) - 4_096);
        let _: i64 = run(&mut connection, cmd("HSET").arg(&["ops:serves:large", "too.much", &spec])).await;
        for n in 0..130 {
            let _: i64 = run(&mut connection, cmd("HSET").arg("ops:serves:large").arg(n).arg(&large)).await;
        }
        let _: i64 = run(&mut connection, cmd("SADD").arg(&["ops:workers", "large"])).await;
        let remote = at(&server, quick(30_000)).remote().await.unwrap();
        assert_eq!(remote.list().len(), COUNT);
        // With less, it is read.
        for n in 0..10 {
            let _: i64 = run(&mut connection, cmd("HDEL").arg("ops:serves:large").arg(n)).await;
        }
        eventually("it is served", || remote.list().len() == COUNT + 1).await;
        worker.stop().await;
    })
    .await;
}
