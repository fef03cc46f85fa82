//! Times of schedules, and the jobs that they submit.

use std::collections::HashMap;

use super::due::submit_all;
use super::*;
use crate::durable::in_memory::InMemory;

#[tokio::test]
async fn a_schedule_that_goes_while_its_job_is_submitted() {
    let jobs = Jobs::in_memory();
    let far = |hours: u64| Schedule::every(Duration::from_secs(hours * 3_600));
    let set = async |name: &str, hours| {
        jobs.schedule_by_id(name, far(hours), "test.any", Value::Null, SubmitOptions::new()).await.unwrap();
    };
    for (name, hours) in [("stays", 1), ("replaced", 1), ("removed", 1)] {
        set(name, hours).await;
    }
    let read = jobs.schedules().await.unwrap();
    // With a time that is not submitted yet.
    let now = jobs.engine().now() + 4_000_000;
    set("replaced", 2).await;
    assert!(jobs.unschedule("removed").await.unwrap());
    assert_eq!(jobs.stats("jobs").await.unwrap().open, 2);
    submit_all(&jobs, read, &mut HashMap::new(), now).await;
    assert_eq!(jobs.stats("jobs").await.unwrap().open, 3);
}

/// A worker whose clock is a little ahead has submitted the time after next.
#[tokio::test]
async fn a_worker_whose_clock_is_ahead() {
    let jobs = Jobs::in_memory();
    let set = async |hours: u64| {
        let every = Schedule::every(Duration::from_secs(hours * 3_600));
        jobs.schedule_by_id("a", every, "test.any", Value::Null, SubmitOptions::new()).await.unwrap();
        let schedule = jobs.schedules().await.unwrap().remove(0);
        let next = schedule.next(jobs.engine().now()).unwrap();
        submit_all(&jobs, vec![schedule], &mut HashMap::new(), next).await;
        assert_eq!(jobs.stats("jobs").await.unwrap().open, 2, "{hours}");
    };
    set(1).await;
    // It is replaced, and then removed.
    set(2).await;
    assert!(jobs.unschedule("a").await.unwrap());
    assert_eq!(jobs.stats("jobs").await.unwrap().open, 0);
}

#[test]
fn next_times() {
    // 2026-01-01T00:00:00Z, a Thursday.
    const NEW_YEAR: u64 = 1_767_225_600_000;
    const DAY: u64 = 24 * 60 * 60 * 1000;
    for (pattern, after, expected) in [
        ("0 0 * * *", NEW_YEAR, Some(NEW_YEAR + DAY)),
        ("0 0 * * *", NEW_YEAR - 1, Some(NEW_YEAR)),
        ("30 8 * * MON-FRI", NEW_YEAR + 2 * DAY, Some(NEW_YEAR + 4 * DAY + (8 * 60 + 30) * 60_000)),
        ("*/10 * * * * *", NEW_YEAR + 1, Some(NEW_YEAR + 10_000)),
        ("0 0 30 2 *", NEW_YEAR, None),
        ("@every 90000ms", NEW_YEAR + 7, Some(NEW_YEAR + 7 + 90_000)),
    ] {
        let schedule: Schedule = pattern.parse().unwrap();
        assert_eq!(schedule.next(NEW_YEAR + 7, after), expected, "{pattern}");
        assert_eq!(schedule.to_string(), pattern);
    }
    assert_eq!(Schedule::every(SHORTEST).next(1_000, u64::MAX), None);
    assert_eq!(Schedule::every(SHORTEST).next(1_000, 5_500), Some(6_000));
    assert_eq!(Schedule::every(Duration::ZERO), Schedule::every(SHORTEST));
    for (pattern, now, expected) in [
        ("0 0 * * *", NEW_YEAR + 3 * DAY, vec![NEW_YEAR + 3 * DAY, NEW_YEAR + 2 * DAY]),
        ("0 0 * * *", NEW_YEAR + DAY + 5, vec![NEW_YEAR + DAY]),
        ("@every 1000ms", NEW_YEAR + 2_001, vec![NEW_YEAR + 2_000, NEW_YEAR + 1_000]),
        ("@every 1000ms", NEW_YEAR + 9_000, vec![NEW_YEAR + 9_000, NEW_YEAR + 8_000]),
        ("@every 1000ms", NEW_YEAR + 999, vec![]),
        ("@every 1000ms", 0, vec![]),
    ] {
        let id = "jobs.0.0123456789abcdef0123456789abcdef".parse().unwrap();
        let job = JobRecord::new(id, "test.any", RawValue::NULL.to_owned());
        let record = ScheduleRecord { name: "a".into(), when: pattern.into(), since: NEW_YEAR, job };
        assert_eq!(record.passed(now, 2), expected, "{pattern} {now}");
    }
}

#[test]
fn the_time_of_a_job_counts_from_its_own() {
    let id = "jobs.0.0123456789abcdef0123456789abcdef".parse().unwrap();
    let mut job = JobRecord::new(id, "test.any", RawValue::NULL.to_owned());
    (job.submitted, job.deadline) = (1_000, Some(4_000));
    let record = ScheduleRecord { name: "a".into(), when: "@every 1000ms".into(), since: 1_000, job };
    let job = record.job_at(9_000);
    assert_eq!((job.submitted, job.not_before, job.deadline), (9_000, Some(9_000), Some(12_000)));
}

/// A program that sets its schedules at each start changes none, even if the timeout of their jobs is endless.
#[tokio::test(start_paused = true)]
async fn a_timeout_without_end_is_the_same_at_each_start() {
    let jobs = Jobs::in_memory();
    let set = async || {
        let daily = Schedule::every(Duration::from_secs(24 * 3_600));
        let options = SubmitOptions::new().with_timeout(Duration::MAX);
        jobs.schedule_by_id("a", daily, "test.any", Value::Null, options).await.unwrap();
        jobs.schedules().await.unwrap().remove(0)
    };
    let made = set().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let again = set().await;
    assert_eq!((again.since, again.job.submitted), (made.since, made.job.submitted));
    assert_eq!((made.job.deadline, made.job_at(made.since + 1).deadline), (Some(u64::MAX), Some(u64::MAX)));
}

#[test]
fn what_is_no_schedule() {
    for text in
        ["", "* * *", "61 * * * *", "0 0 8 24 12 * 2026", "@every 5", "@every -1ms", "every day", &"* ".repeat(300)]
    {
        assert_eq!(text.parse::<Schedule>().unwrap_err().code(), &ErrorCode::ValidationError, "{text}");
    }
}

/// Earlier versions took patterns with a year.
#[tokio::test]
async fn a_stored_schedule_with_a_year_goes_on_and_is_removed() {
    // 2099-12-24T08:00:00Z.
    const LAST: u64 = 4_101_782_400_000;
    let jobs = Jobs::in_memory();
    let id = "jobs.0.0123456789abcdef0123456789abcdef".parse().unwrap();
    let job = JobRecord::new(id, "test.any", RawValue::NULL.to_owned());
    let record = ScheduleRecord { name: "a".into(), when: "0 0 8 24 12 * 2099".into(), since: 1_000, job };
    assert!(jobs.engine().keep_schedule(&record, None).await.unwrap());
    let now = jobs.engine().now();
    assert_eq!((record.next(now), record.next(LAST)), (Some(LAST), None));
    assert_eq!((record.passed(LAST - 1, 2), record.passed(LAST, 2)), (vec![], vec![LAST]));
    submit_all(&jobs, vec![record], &mut HashMap::new(), now).await;
    assert_eq!(jobs.stats("jobs").await.unwrap().open, 1);
    assert!(jobs.unschedule("a").await.unwrap());
    assert_eq!(jobs.stats("jobs").await.unwrap().open, 0);
}

/// A schedule that is replaced, or removed and set again, within a millisecond has its next time nevertheless.
#[tokio::test(start_paused = true)]
async fn schedules_of_one_millisecond() {
    let engine = InMemory::new();
    let (here, there) = (Jobs::new(engine.clone()), Jobs::new(engine));
    let set = async |jobs: &Jobs, input: u64| {
        let nightly = Schedule::cron("0 3 * * *").unwrap();
        jobs.schedule_by_id("nightly", nightly, "test.any", input.into(), SubmitOptions::new()).await.unwrap();
        assert_eq!(jobs.stats("jobs").await.unwrap().open, 1, "{input}");
    };
    set(&here, 1).await;
    set(&here, 2).await;
    assert!(here.unschedule("nightly").await.unwrap());
    assert_eq!(here.stats("jobs").await.unwrap().open, 0);
    set(&here, 2).await;
    assert!(here.unschedule("nightly").await.unwrap());
    // By two processes.
    tokio::time::sleep(Duration::from_secs(60)).await;
    set(&here, 3).await;
    set(&there, 4).await;
    set(&there, 5).await;
    set(&here, 6).await;
    // One with another name has the same times.
    let minutely = || Schedule::every(Duration::from_secs(60));
    for name in ["a", "b"] {
        there.schedule_by_id(name, minutely(), "test.any", Value::Null, SubmitOptions::new()).await.unwrap();
    }
    let since: Vec<_> = there.schedules().await.unwrap().into_iter().map(|schedule| schedule.since).collect();
    assert_eq!(since[0], since[1]);
}

/// The time of a schedule that was made while the clock was wrong delays none that replaces it.
#[tokio::test]
async fn a_schedule_of_a_wrong_clock_is_replaced() {
    let jobs = Jobs::in_memory();
    let set = async |seconds| {
        let every = Schedule::every(Duration::from_secs(seconds));
        jobs.schedule_by_id("a", every, "test.any", Value::Null, SubmitOptions::new()).await.unwrap();
        jobs.schedules().await.unwrap().remove(0)
    };
    let made = set(60).await;
    let mut wrong = made.clone();
    wrong.since += 1_000_000_000;
    assert!(jobs.engine().keep_schedule(&wrong, Some(&made)).await.unwrap());
    let replaced = set(120).await;
    let since = replaced.since - made.since;
    assert!(since < 60_000, "{since}");
}
