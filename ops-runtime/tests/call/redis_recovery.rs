//! What heals by itself over Redis: failovers, lost connections, and workers that come back.

use std::time::Duration;

use ops_runtime::call::CallHandler;
use ops_runtime::call::redis::{Redis, RedisConfig};
use ops_runtime::{CallOptions, ErrorCode};
use redis::cmd;
use serde_json::json;

use crate::harness::{eventually, limited};
use crate::operations::{Add, AddInput, COUNT, registry};
use crate::proxy::Proxy;
use crate::redis::{bare, config};
use crate::redis_faults::{STREAM, announce_idle_worker, at, quick, run, waiting};
use crate::servers::Server;

fn through(proxy: &Proxy, config: RedisConfig) -> Redis {
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
        let ids: Vec<String> = run(&mut connection, cmd("SMEMBERS").arg("ops:workers")).await;
        let id = ids.iter().find(|id| *id != "idle").unwrap();
        let _: i64 = run(&mut connection, cmd("SREM").arg("ops:workers").arg(id)).await;
        for n in 0.. {
            if run::<i64>(&mut connection, cmd("SISMEMBER").arg("ops:workers").arg(id)).await == 1 {
                break;
            }
            assert!(n < 500, "the worker is not in the set");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        eventually("it is served again", || remote.list().len() == COUNT).await;
        assert_eq!(remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
        worker.stop().await;
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
        let call = waiting(&remote, 1);
        let mut waits: usize = 0;
        for _ in 0..500 {
            waits = run(&mut connection, cmd("XLEN").arg(STREAM)).await;
            if waits == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(waits, 1, "the request was never written");
        // The caller has heard of it.
        tokio::time::sleep(Duration::from_millis(300)).await;
        proxy.close();
        tokio::time::sleep(Duration::from_millis(100)).await;
        call.abort();
        let _ = call.await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        proxy.resume();
        for n in 0.. {
            if run::<usize>(&mut connection, cmd("XLEN").arg(STREAM)).await == 0 {
                break;
            }
            assert!(n < 1_000, "a request that nobody waits for is left");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
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
        let config = config.with_answers_survive(ever).with_connect_timeout(ever);
        let worker = at(&server, config.clone()).serve(CallHandler::new(registry(&Default::default()))).await.unwrap();
        let remote = at(&server, config).remote().await.unwrap();
        assert_eq!(remote.call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap().data, 3);
        worker.stop().await;
    })
    .await;
}
