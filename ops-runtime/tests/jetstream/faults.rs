//! Servers that are killed.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use ops_runtime::durable::engine::Engine;
use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
use ops_runtime::durable::{Jobs, Schedule, SubmitOptions, Worker};
use ops_runtime::{Registry, operation};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::engine::{done, job};
use crate::servers::{Servers, Settings};

/// Twice a number.
#[operation(namespace = "test", kind = query)]
async fn twice(number: i64) -> i64 {
    2 * number
}

/// Jobs that were delivered and delayed come back after each server was killed, once, and nothing that ended runs again.
#[tokio::test]
async fn a_killed_server_loses_nothing() {
    for count in [1, 3] {
        let mut servers = Servers::start(count, "always").await;
        let engine = servers.engine(JetStreamConfig::new().with_lease(Duration::from_secs(3))).await;
        let mut later = job(2, 9_999);
        later.not_before = Some(engine.now() + 12_000);
        engine.submit(&later).await.unwrap();
        for number in 0..40 {
            engine.submit(&job((number % 4) as u16, number)).await.unwrap();
        }
        let mut ended = HashSet::new();
        let mut killed = 0;
        while ended.len() < 41 {
            if killed < count && ended.len() >= 10 * (killed + 1) {
                servers.kill(killed);
                servers.restart(killed).await;
                killed += 1;
            }
            for delivery in engine.pull("jobs", 4, Duration::from_secs(1)).await.unwrap_or_default() {
                if delivery.job.id == later.id {
                    assert!(engine.now() >= later.not_before.unwrap());
                }
                let end = done(&engine, &delivery.job, "1");
                if engine.end(&delivery, &end).await.unwrap() {
                    assert!(ended.insert(delivery.job.id), "ended twice");
                }
            }
        }
        // Jobs whose acknowledgements were lost come again, and are found to have ended.
        assert!(engine.pull("jobs", 4, Duration::from_secs(6)).await.unwrap().is_empty());
        let stats = engine.stats("jobs").await.unwrap();
        assert_eq!((stats.open, stats.dead), (0, 0));
    }
}

/// Streams that are gone are made again by the processes that run, and so are consumers. Their jobs are lost.
#[tokio::test]
async fn what_is_gone_is_made_again() {
    const LEASE: Duration = Duration::from_secs(120);
    let mut servers = Servers::start(1, "always").await;
    let engine = servers.engine(JetStreamConfig::new().with_memory_storage().with_lease(LEASE)).await;
    let jobs = Jobs::new(engine);
    let registry = Registry::new();
    registry.register(Twice).unwrap();
    let worker = Worker::new(jobs.clone(), registry).start();
    let client = async_nats::connect(servers.url()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    for fault in ["nothing", "the server starts again", "a stream is removed", "a consumer is removed"] {
        match fault {
            "the server starts again" => {
                servers.kill(0);
                servers.restart(0).await;
            }
            "a stream is removed" => drop(context.delete_stream("ops-queue-jobs").await.unwrap()),
            "a consumer is removed" => {
                let stream = context.get_stream("ops-queue-jobs").await.unwrap();
                stream.delete_consumer("lane-0").await.unwrap();
            }
            _ => {}
        }
        let start = Instant::now();
        // Of several tenants, so that all lanes have some.
        for tenant in 0..9 {
            let options = SubmitOptions::new().with_tenant(tenant.to_string());
            let job = jobs.submit_by_id("test.twice", json!({ "number": tenant }), options).await.unwrap();
            assert_eq!(job.result().await.unwrap().data, 2 * tenant, "{fault}");
        }
        assert!(start.elapsed() < LEASE, "{fault}: {:?}: they wait for a lease", start.elapsed());
        let hourly = Schedule::every(Duration::from_secs(3_600));
        jobs.schedule_by_id("a", hourly, "test.twice", json!({ "number": 1 }), SubmitOptions::new()).await.unwrap();
        assert_eq!(jobs.schedules().await.unwrap().len(), 1, "{fault}");
    }
    worker.stop().await;
}

/// Who listens to a job's progress does so until it has ended, though the server is away for longer than requests are repeated.
#[tokio::test]
async fn progress_outlasts_the_server() {
    let mut servers = Servers::start(1, "always").await;
    let engine = servers.engine(JetStreamConfig::new().with_request_timeout(Duration::from_secs(3))).await;
    let jobs = Jobs::new(engine);
    let job = jobs.submit_by_id("test.twice", json!({ "number": 1 }), SubmitOptions::new()).await.unwrap();
    let mut reports = job.progress().await.unwrap();
    servers.kill(0);
    assert!(timeout(Duration::from_secs(12), reports.next()).await.is_err(), "the stream has ended");
    servers.restart(0).await;
    // The connection is made again.
    while job.cancel().await.is_err() {
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(timeout(Duration::from_secs(60), reports.next()).await.unwrap(), None);
}

/// A cluster that knows fewer servers than there are replicas makes no stream; this is so when it has just started.
#[tokio::test]
async fn a_server_that_joins_late_is_waited_for() {
    const FEWER: &str = "if there are fewer servers than replicas, start more";
    let settings = || {
        let mut settings = Settings { late: 1, ..Settings::new(3, "2m") };
        let third = format!(", \"nats://127.0.0.1:{}\"", settings.ports[2][1]);
        for cluster in &mut settings.clusters[..2] {
            *cluster = cluster.replace(&third, "");
        }
        settings
    };
    let mut servers = Servers::with(settings).await;
    let url = servers.url();
    let connect = async |config| JetStream::connect(&url, config).await?.submit(&job(0, 1)).await;
    let mut error = String::new();
    // Until the two have chosen who leads them, the error says only that.
    for _ in 0..5 {
        let impatient = JetStreamConfig::new().with_request_timeout(Duration::from_secs(12));
        error = connect(impatient).await.unwrap_err().to_string();
        if error.contains(FEWER) {
            break;
        }
    }
    assert!(error.contains(FEWER), "{error}");
    let patient = JetStreamConfig::new().with_request_timeout(Duration::from_secs(120));
    let late = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        servers.restart(2).await;
    };
    let (submitted, ()) = tokio::join!(connect(patient), late);
    submitted.unwrap();
}

/// A server one of whose ports another process has is not taken for one that runs, whichever it is; nor is one that was there.
#[tokio::test]
async fn a_port_that_another_has() {
    for place in 0..3 {
        let mut settings = Settings::new(2, "2m");
        let port = settings.ports[1][place];
        // The listener that keeps the port stays, and accepts connections.
        let at = settings.held.iter().position(|held| held.local_addr().unwrap().port() == port).unwrap();
        let other = settings.held.swap_remove(at);
        assert!(Servers::tried(settings).await.is_none(), "{place}");
        drop(other);
    }
    let mut servers = Servers::start(1, "2m").await;
    let process = servers.processes();
    servers.kill(0);
    servers.restart(0).await;
    assert_ne!(servers.processes(), process);
}

/// That is told at once, and not after the time for which requests are retried.
#[tokio::test]
async fn a_server_without_jetstream() {
    let servers = Servers::with(|| Settings { jetstream: false, ..Settings::new(1, "2m") }).await;
    let start = Instant::now();
    let config = JetStreamConfig::new().with_replicas(1).with_request_timeout(Duration::from_secs(60));
    let error = JetStream::connect(&servers.url(), config).await.map(drop).unwrap_err();
    assert_eq!(error.message(), "this server has no JetStream: start it with `--jetstream`");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// Those of its cluster that have it may be away.
#[tokio::test]
async fn a_server_without_jetstream_in_a_cluster() {
    let servers = Servers::with(|| Settings { jetstream: false, ..Settings::new(2, "2m") }).await;
    let start = Instant::now();
    let config = JetStreamConfig::new().with_replicas(1).with_request_timeout(Duration::from_secs(4));
    let error = JetStream::connect(&servers.url(), config).await.map(drop).unwrap_err();
    assert!(!error.message().contains("has no JetStream"), "{error}");
    assert!(start.elapsed() >= Duration::from_secs(3), "{:?}", start.elapsed());
}
