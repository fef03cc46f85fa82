//! Servers that are killed.

use std::collections::HashSet;
use std::time::Duration;

use ops_runtime::durable::engine::Engine;
use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};

use crate::engine::{done, job};
use crate::servers::{Servers, Settings};

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

/// A cluster that knows fewer servers than there are replicas makes no stream; this is so when it has just started.
#[tokio::test]
async fn a_server_that_joins_late_is_waited_for() {
    let mut settings = Settings { late: 1, ..Settings::new(3, "2m") };
    let third = format!(", \"nats://127.0.0.1:{}\"", settings.ports[2][1]);
    for cluster in &mut settings.clusters[..2] {
        *cluster = cluster.replace(&third, "");
    }
    let mut servers = Servers::with(settings).await;
    let url = servers.url();
    let connect = async |config| JetStream::connect(&url, config).await?.submit(&job(0, 1)).await;
    let error = connect(JetStreamConfig::new().with_patience(Duration::from_secs(12))).await.unwrap_err().to_string();
    assert!(error.contains("if there are fewer servers than replicas, start more"), "{error}");
    let late = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        servers.restart(2).await;
    };
    let (submitted, ()) = tokio::join!(connect(JetStreamConfig::new()), late);
    submitted.unwrap();
}
