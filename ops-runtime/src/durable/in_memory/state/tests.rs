//! What the state keeps.

use serde_json::value::RawValue;

use super::*;
use crate::durable::record::{DeadLetter, Outcome};
use crate::{CallError, ErrorCode};

fn job(number: usize, retention: u64) -> JobRecord {
    let id = format!("jobs.0.{number:032x}").parse().unwrap();
    let mut job = JobRecord::new(id, "test.any", RawValue::NULL.to_owned());
    (job.submitted, job.retention) = (100, retention);
    job
}

fn ended(job: &JobRecord, at: u64, outcome: Outcome) -> Ended {
    Ended::new(job, at, 1, outcome)
}

fn failed() -> Outcome {
    Outcome::Failed(CallError::new(ErrorCode::ExecutionError, "as it should"))
}

/// How many entries each part has: jobs, steps, what expires, waiters, listeners, and the parts of the queue.
fn lengths(state: &State) -> [usize; 8] {
    let State { jobs, queues, steps, ends, schedules: _, waiting, listening, number: _ } = state;
    let Queue { lanes, last: _, leased, dead } = &queues["jobs"];
    let of_queue = [lanes.len(), leased.len(), dead.len()];
    let [lanes, leased, dead] = of_queue;
    [jobs.len(), steps.len(), ends.len(), waiting.len(), listening.len(), lanes, leased, dead]
}

/// What is kept ends with its retention, so that memory is flat.
#[test]
fn nothing_is_kept_for_ever() {
    let mut state = State::default();
    for number in 0..500 {
        let job = job(number, 1_000);
        assert!(state.submit(&job).is_none());
        assert!(state.watch(&job.id).is_some() && state.listen(&job.id).is_some());
        assert_eq!(state.keep_step(&job.id, "step", "1", 1_200), "1");
    }
    assert_eq!(lengths(&state), [500, 500, 500, 500, 500, 1, 0, 0]);
    let Taken::Jobs(taken) = state.take("jobs", 500, 100, 1_000) else { panic!("nothing is due") };
    assert_eq!(lengths(&state), [500, 500, 500, 500, 500, 0, 500, 0]);
    for delivery in &taken {
        let end = ended(&delivery.job, 200, Outcome::Cancelled);
        assert!(state.end_delivered(delivery, &end));
    }
    assert_eq!(lengths(&state), [500, 500, 1_000, 0, 0, 0, 0, 0]);
    state.forget(1_199);
    assert_eq!(lengths(&state), [500, 500, 1_000, 0, 0, 0, 0, 0]);
    state.forget(1_200);
    assert_eq!(lengths(&state), [0; 8]);
}

/// A job that is discarded or retried leaves nothing behind, whatever its retention was.
#[test]
fn what_is_removed_is_gone() {
    let mut state = State::default();
    let close = |state: &mut State, job: &JobRecord, outcome: Outcome| {
        assert!(state.close(&job.id, &ended(job, 200, outcome)));
    };
    for retention in [1_000, u64::MAX] {
        let job = job(1, retention);
        assert!(state.submit(&job).is_none());
        close(&mut state, &job, failed());
        assert_eq!(lengths(&state), [1, 0, 1, 0, 0, 0, 0, 0]);
        assert!(state.retry(&job));
        assert_eq!(lengths(&state), [1, 0, 0, 0, 0, 1, 0, 0]);
        let letter = DeadLetter::new(job.clone(), 200, Tries::default(), CallError::execution("as it should"));
        close(&mut state, &job, Outcome::Dead(Box::new(letter)));
        assert_eq!(lengths(&state), [1, 0, 0, 0, 0, 0, 0, 1]);
        assert!(state.retry(&job));
        close(&mut state, &job, Outcome::Cancelled);
        assert!(state.discard(&job.id));
        assert_eq!(lengths(&state), [0; 8]);
    }
}

/// A page of a list looks at a limited number of jobs, so a page may be empty although more follow.
#[test]
fn a_page_looks_at_so_many_jobs() {
    let mut state = State::default();
    for number in 0..=LOOKED_AT {
        let job = job(number, 1_000);
        assert!(state.submit(&job).is_none());
        if number < LOOKED_AT {
            assert!(state.close(&job.id, &ended(&job, 200, Outcome::Cancelled)));
        }
    }
    let first = state.list("jobs", Listed::Due, None, 100, 200);
    assert_eq!((first.jobs.len(), &first.next), (0, &Some(job(LOOKED_AT - 1, 0).id.to_string())));
    let second = state.list("jobs", Listed::Due, first.next.as_deref(), 100, 200);
    let ids: Vec<_> = second.jobs.into_iter().map(|(id, _)| id).collect();
    assert_eq!((ids, second.next), (vec![job(LOOKED_AT, 0).id], None));
    // All of them, in pages that are full but for the last.
    let (mut sizes, mut after) = (Vec::new(), None);
    loop {
        let page = state.list("jobs", Listed::Ended, after.as_deref(), 4_000, 200);
        sizes.push(page.jobs.len());
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [4_000, 4_000, 2_000]);
}
