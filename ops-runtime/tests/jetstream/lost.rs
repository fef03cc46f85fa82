//! Workers that have lost a job to another.

use std::process::Command;
use std::time::Duration;

use async_nats::jetstream::message::StreamMessage;
use ops_runtime::durable::JobId;
use ops_runtime::durable::engine::Engine;
use ops_runtime::durable::jetstream::JetStreamConfig;
use ops_runtime::durable::record::{Ended, Outcome, Stored, Tries};

use crate::engine::{done, each, job, pull_one, result};
use crate::servers::Servers;

/// Long enough that a slow machine extends it in time.
const LEASE: Duration = Duration::from_secs(6);

/// The attempts that failed, by number.
fn tries(attempts: u32) -> Tries {
    let mut tries = Tries::default();
    tries.attempts = attempts;
    tries
}

/// The messages of the servers, past the engine.
async fn context(servers: &Servers) -> async_nats::jetstream::Context {
    async_nats::jetstream::new(async_nats::connect(servers.url().split(',').next().unwrap()).await.unwrap())
}

/// The last message about a job.
async fn last(context: &async_nats::jetstream::Context, id: &JobId) -> StreamMessage {
    let stream = context.get_stream("ops-queue-jobs").await.unwrap();
    stream.get_last_raw_message_by_subject(&format!("ops.queue.{id}.>")).await.unwrap()
}

/// A worker whose lease is over gives its job back: the worker that has the job now keeps it, and the first one's record of
/// its attempts is not stored.
#[tokio::test]
async fn what_is_given_back_too_late() {
    let servers = Servers::start(1, "always").await;
    let connect = || servers.engine(JetStreamConfig::new().with_lease(LEASE));
    let (slow, quick) = (connect().await, connect().await);
    let job = job(0, 1);
    slow.submit(&job).await.unwrap();
    let lost = pull_one(&slow).await;
    let delivery = pull_one(&quick).await;
    assert_eq!(delivery.deliveries, 2);
    tokio::time::sleep(LEASE / 2).await;
    assert!(quick.extend(&delivery).await.unwrap());
    slow.again(&lost, &tries(7), Duration::ZERO).await.unwrap();
    let third = connect().await;
    assert!(third.pull("jobs", 1, Duration::from_secs(2)).await.unwrap().is_empty());
    let Some(Stored::Open { tries: kept, .. }) = quick.read(&job.id).await.unwrap() else { panic!("it is open") };
    assert_eq!(kept, Tries::default());
    assert!(quick.extend(&delivery).await.unwrap());
    assert!(quick.end(&delivery, &done(&quick, &job, "1")).await.unwrap());
}

/// The tries of a worker that lost the job may arrive late, since writes are repeated. Those of the one that has it count.
#[tokio::test]
async fn tries_of_a_lost_job_are_replaced() {
    let servers = Servers::start(1, "always").await;
    let engine = servers.engine(JetStreamConfig::new().with_lease(Duration::from_secs(60))).await;
    let context = context(&servers).await;
    let job = job(0, 1);
    engine.submit(&job).await.unwrap();
    let delivery = pull_one(&engine).await;
    let late = serde_json::to_vec(&tries(1)).unwrap();
    context.publish(format!("ops.queue.{}.try", job.id), late.into()).await.unwrap().await.unwrap();
    engine.again(&delivery, &tries(2), Duration::ZERO).await.unwrap();
    let again = pull_one(&engine).await;
    assert_eq!((again.deliveries, &again.tries), (2, &tries(2)));
    assert!(engine.end(&again, &done(&engine, &job, "1")).await.unwrap());
}

/// Tries behind the ending of their job would make it seem open.
#[tokio::test]
async fn tries_of_a_job_that_has_ended() {
    let servers = Servers::start(1, "always").await;
    let connect = || servers.engine(JetStreamConfig::new().with_lease(Duration::from_secs(60)));
    let (engine, other) = (connect().await, connect().await);
    let job = job(0, 1);
    engine.submit(&job).await.unwrap();
    let delivery = pull_one(&engine).await;
    // Nobody listens here for jobs that are closed, so the lease stays.
    assert!(other.close(&job.id, &Ended::new(&job, other.now(), 0, Outcome::Cancelled)).await.unwrap());
    engine.again(&delivery, &tries(1), Duration::ZERO).await.unwrap();
    let last = last(&context(&servers).await, &job.id).await;
    assert!(last.subject.ends_with(".end.done"), "{}", last.subject);
}

/// A server that has just become the leader may not show anything of a job for a moment: its tries are written all the same.
#[tokio::test]
async fn tries_of_a_job_that_a_cluster_does_not_show_yet() {
    let servers = Servers::start(3, "2m").await;
    let engine = servers.engine(JetStreamConfig::new().with_lease(Duration::from_secs(60))).await;
    let context = context(&servers).await;
    // It is read again for half a second, which a slow machine may need to show it, but not each time.
    for number in 1..=10 {
        let job = job(0, number);
        engine.submit(&job).await.unwrap();
        let delivery = pull_one(&engine).await;
        let stream = context.get_stream("ops-queue-jobs").await.unwrap();
        stream.purge().filter(format!("ops.queue.{}.>", job.id)).await.unwrap();
        let shown = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let text = serde_json::to_vec(&tries(1)).unwrap();
            context.publish(format!("ops.queue.{}.try", job.id), text.into()).await.unwrap().await.unwrap();
        };
        let tries = tries(2);
        let (given_back, ()) = tokio::join!(engine.again(&delivery, &tries, Duration::ZERO), shown);
        given_back.unwrap();
        let kept: Tries = serde_json::from_slice(&last(&context, &job.id).await.payload).unwrap();
        if kept == tries {
            return;
        }
    }
    panic!("they were never written");
}

/// A server that has just become the leader may show only what an earlier run has left, and not yet the job that a worker
/// has. The worker's result is not given up: it is written when the job is there.
#[tokio::test]
async fn an_ending_of_a_job_that_a_cluster_does_not_show_yet() {
    let servers = Servers::start(1, "always").await;
    let connect = || servers.engine(JetStreamConfig::new().with_lease(Duration::from_secs(60)));
    let (engine, other) = (connect().await, connect().await);
    let context = context(&servers).await;
    // The queue must be there.
    assert!(engine.pull("jobs", 1, Duration::ZERO).await.unwrap().is_empty());
    let stream = context.get_stream("ops-queue-jobs").await.unwrap();
    // The schedule of a delayed job may write it twice.
    for (number, not_before) in [(1, None), (2, Some(1))] {
        let (first, mut next) = (job(0, number), job(0, number));
        (next.submitted, next.not_before) = (7, not_before);
        let put = async |part: &str, text: Vec<u8>| {
            let subject = format!("ops.queue.{}.{part}", next.id);
            context.publish(subject, text.into()).await.unwrap().await.unwrap().sequence
        };
        let text = serde_json::to_vec(&next).unwrap();
        put("end.done", serde_json::to_vec(&done(&engine, &first, "1")).unwrap()).await;
        let place = put("job", text.clone()).await;
        let delivery = pull_one(&engine).await;
        assert!(stream.delete_message(place).await.unwrap());
        // This process has no lease, like one whose lease is over.
        let ended = done(&other, &next, "2");
        let refused = other.end(&delivery, &ended).await.unwrap_err();
        assert!(refused.message().contains("changes all the time"), "{refused}");
        if not_before.is_some() {
            put("job", text).await;
            assert!(other.end(&delivery, &ended).await.unwrap());
            assert_eq!(result(other.read(&next.id).await.unwrap()), "2");
        }
    }
}

/// A cluster that shows nothing of a job for half a second has nothing of it: its worker does not keep it.
#[tokio::test]
async fn a_lease_of_a_job_that_is_gone() {
    each(async |servers| {
        let engine = servers.engine(JetStreamConfig::new().with_lease(Duration::from_secs(60))).await;
        let context = context(servers).await;
        let job = job(0, 1);
        engine.submit(&job).await.unwrap();
        let delivery = pull_one(&engine).await;
        assert!(engine.extend(&delivery).await.unwrap());
        let stream = context.get_stream("ops-queue-jobs").await.unwrap();
        stream.purge().filter(format!("ops.queue.{}.>", job.id)).await.unwrap();
        assert!(!engine.extend(&delivery).await.unwrap());
    })
    .await;
}

/// A job whose lookup took long has a whole lease when a worker gets it, and no other worker gets it meanwhile.
#[tokio::test]
async fn a_lookup_that_takes_long() {
    let servers = Servers::start(1, "2m").await;
    let connect = || servers.engine(JetStreamConfig::new().with_lease(LEASE));
    let (engine, other) = (connect().await, connect().await);
    let signal = |name: &str| {
        let process = servers.processes()[0].to_string();
        assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
    };
    let job = job(0, 1);
    engine.submit(&job).await.unwrap();
    let delivery = pull_one(&engine).await;
    // It comes again while this process reads nothing, and the server stops before the job is looked up.
    engine.again(&delivery, &tries(1), Duration::from_millis(500)).await.unwrap();
    assert!(engine.pull("jobs", 1, Duration::ZERO).await.unwrap().is_empty());
    tokio::time::sleep(Duration::from_millis(50)).await;
    std::thread::sleep(Duration::from_secs(1));
    signal("-STOP");
    let goes_on = async {
        // Longer than a third of the lease, and not so long that the connection counts as lost.
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        signal("-CONT");
    };
    let (delivery, ()) = tokio::join!(pull_one(&engine), goes_on);
    assert_eq!((delivery.deliveries, &delivery.tries), (2, &tries(1)));
    // The first lease would be over by the end of this.
    assert!(other.pull("jobs", 1, LEASE / 3 * 2).await.unwrap().is_empty());
    assert!(engine.end(&delivery, &done(&engine, &job, "1")).await.unwrap());
}
