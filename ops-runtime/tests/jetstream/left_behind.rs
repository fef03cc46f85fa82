//! What processes leave behind that died, or that are of earlier versions.

use std::time::Duration;

use ops_runtime::CallError;
use ops_runtime::durable::engine::{Engine, Listed};
use ops_runtime::durable::record::{DeadLetter, Ended, Outcome, Stored, Tries};

use crate::engine::{config, done, each, id, job, nothing, pull_one, result};
use crate::servers::Servers;

/// Tries with an error that is nested too deep to be read, as earlier versions wrote them.
#[tokio::test]
async fn tries_that_cannot_be_read() {
    let servers = Servers::start(1, "always").await;
    let engine = servers.engine(config()).await;
    let client = async_nats::connect(servers.url()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let (first, second) = (job(0, 1), job(0, 2));
    for job in [&first, &second] {
        engine.submit(job).await.unwrap();
        let (open, close) = ("[".repeat(126), "]".repeat(126));
        let error = format!(r#"{{"code":"EXECUTION_ERROR","message":"no","details":{open}{close}}}"#);
        let text = format!(r#"{{"attempts":2,"history":[{{"attempt":1,"at":1,"error":{error}}}]}}"#);
        context.publish(format!("ops.queue.{}.try", job.id), text.into()).await.unwrap().await.unwrap();
        let Some(Stored::Open { tries, .. }) = engine.read(&job.id).await.unwrap() else { panic!("it is open") };
        assert_eq!((tries.attempts, tries.history.len()), (2, 0));
    }
    assert_eq!(engine.list("jobs", Listed::Due, None, 9).await.unwrap().jobs.len(), 2);
    let cancelled = Ended::new(&first, engine.now(), 2, Outcome::Cancelled);
    assert!(engine.close(&first.id, &cancelled).await.unwrap());
    // The job does not come back for ever.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let delivery = pull_one(&engine).await;
    assert_eq!((&delivery.job.id, delivery.tries.attempts), (&second.id, 2));
    assert!(engine.end(&delivery, &done(&engine, &second, "1")).await.unwrap());
    // One that can't be read at all is left out of lists.
    let (text, subject) = ("{}", format!("ops.queue.{}.end.dead", id(0, 3)));
    context.publish(subject, text.into()).await.unwrap().await.unwrap();
    assert_eq!(engine.list("jobs", Listed::Dead, None, 9).await.unwrap().jobs.len(), 0);
    assert_eq!(engine.list("jobs", Listed::Ended, None, 9).await.unwrap().jobs.len(), 2);
    nothing(&engine, Duration::from_secs(3)).await;
}

/// A job that was cancelled does not start when its delay is over, though who cancelled it could remove nothing.
#[tokio::test]
async fn a_delay_that_ends_behind_the_ending() {
    each(async |servers| {
        let engine = servers.engine(config()).await;
        let client = async_nats::connect(servers.url().split(',').next().unwrap()).await.unwrap();
        let context = async_nats::jetstream::new(client);
        let (fires, again) = (job(0, 1), job(0, 2));
        for (mut later, delay) in [(fires.clone(), 3_000), (again.clone(), 60_000)] {
            later.not_before = Some(engine.now() + delay);
            assert!(engine.submit(&later).await.unwrap().is_none());
            // The ending alone, as of a process that died behind it.
            let cancelled = Ended::new(&later, engine.now(), 0, Outcome::Cancelled);
            let text = serde_json::to_vec(&cancelled).unwrap();
            context.publish(format!("ops.queue.{}.end.done", later.id), text.into()).await.unwrap().await.unwrap();
        }
        let cancelled =
            |stored| matches!(stored, Some(Stored::Ended(ended)) if matches!(ended.outcome, Outcome::Cancelled));
        assert!(cancelled(engine.read(&again.id).await.unwrap()));
        assert_eq!(engine.stats("jobs").await.unwrap().open, 2);
        // Who cancels it again removes what is left.
        assert!(!engine.close(&again.id, &done(&engine, &again, "1")).await.unwrap());
        assert_eq!(engine.stats("jobs").await.unwrap().open, 1);
        nothing(&engine, Duration::from_secs(5)).await;
        assert!(cancelled(engine.read(&fires.id).await.unwrap()));
        assert_eq!(engine.stats("jobs").await.unwrap().open, 0);

        // A dead letter does not stop it, since it may be of an earlier life. The worker's own is the only one that stays.
        let mut late = job(0, 6);
        late.not_before = Some(engine.now() + 3_000);
        assert!(engine.submit(&late).await.unwrap().is_none());
        let letter = DeadLetter::new(late.clone(), engine.now(), Tries::default(), CallError::execution("no"));
        let dead = Ended::new(&late, engine.now(), 0, Outcome::Dead(Box::new(letter)));
        let text = serde_json::to_vec(&dead).unwrap();
        context.publish(format!("ops.queue.{}.end.dead", late.id), text.into()).await.unwrap().await.unwrap();
        let delivery = pull_one(&engine).await;
        assert_eq!(delivery.job.id, late.id);
        assert!(engine.end(&delivery, &dead).await.unwrap());
        let letters = engine.list("jobs", Listed::Dead, None, 9).await.unwrap().jobs;
        assert_eq!(letters.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), [late.id.clone()]);
        assert!(engine.discard(&late.id).await.unwrap());
        assert!(engine.read(&late.id).await.unwrap().is_none());

        // The ending of an earlier life, which a server that has just become the leader may still have, is none of this one.
        let mut next = job(0, 5);
        next.submitted = 7;
        for (part, text) in
            [("end.done", serde_json::to_vec(&done(&engine, &job(0, 5), "1"))), ("job", serde_json::to_vec(&next))]
        {
            let subject = format!("ops.queue.{}.{part}", next.id);
            context.publish(subject, text.unwrap().into()).await.unwrap().await.unwrap();
        }
        let delivery = pull_one(&engine).await;
        assert!(engine.extend(&delivery).await.unwrap());
        assert!(engine.end(&delivery, &done(&engine, &next, "2")).await.unwrap());
        assert_eq!(result(engine.read(&next.id).await.unwrap()), "2");

        // A worker that has one all the same, as of an earlier version, loses it, and changes nothing.
        for (number, is_extended) in [(3, true), (4, false)] {
            let job = job(0, number);
            let ended = Ended::new(&job, engine.now(), 0, Outcome::Cancelled);
            let parts = [("end.done", serde_json::to_vec(&ended)), ("job", serde_json::to_vec(&job))];
            for (part, text) in parts {
                let subject = format!("ops.queue.{}.{part}", job.id);
                context.publish(subject, text.unwrap().into()).await.unwrap().await.unwrap();
            }
            let delivery = pull_one(&engine).await;
            if is_extended {
                assert!(!engine.extend(&delivery).await.unwrap());
                assert!(!engine.close(&job.id, &done(&engine, &job, "1")).await.unwrap());
            } else {
                assert!(!engine.end(&delivery, &done(&engine, &job, "1")).await.unwrap());
                tokio::time::sleep(Duration::from_millis(500)).await;
                assert!(cancelled(engine.read(&job.id).await.unwrap()));
            }
        }
    })
    .await;
}

/// An ending is there as long as its job may come again, however short its retention is.
#[tokio::test]
async fn an_ending_outlasts_its_job() {
    let servers = Servers::start(1, "always").await;
    let engine = servers.engine(config()).await;
    let client = async_nats::connect(servers.url()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let mut first = job(0, 1);
    first.retention = 1_000;
    engine.submit(&first).await.unwrap();
    assert_eq!(pull_one(&engine).await.job.id, first.id);
    // Of a worker whose acknowledgement is lost: the job comes again after the lease of 2 s.
    assert!(engine.close(&first.id, &done(&engine, &first, "1")).await.unwrap());
    let text = serde_json::to_vec(&first).unwrap();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    context.publish(format!("ops.queue.{}.job", first.id), text.into()).await.unwrap().await.unwrap();
    let delivery = pull_one(&engine).await;
    assert!(!engine.end(&delivery, &done(&engine, &first, "2")).await.unwrap());
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(result(engine.read(&first.id).await.unwrap()), "1");
}
