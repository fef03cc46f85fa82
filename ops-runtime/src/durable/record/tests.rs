//! What earlier and later versions read of the records of this one.

use serde_json::json;

use super::*;
use crate::ErrorCode;

#[test]
fn records_are_read_back() {
    let id = "jobs.7.0123456789abcdef0123456789abcdef".parse().unwrap();
    let mut job = JobRecord::new(id, "shop.buy", RawValue::from_string(r#"{"n": 1}"#.to_owned()).unwrap());
    let least = json!({
        "format": 1, "id": "jobs.7.0123456789abcdef0123456789abcdef", "operation": "shop.buy", "input": { "n": 1 },
        "submitted": 0, "retention": 86_400_000,
    });
    assert_eq!(serde_json::to_value(&job).unwrap(), least);
    job.identity = Some(Identity::new("ann").with_token("hush"));
    job.retry = Some(RetryPolicy::new(5).with_code("BUSY"));
    (job.deadline, job.trusted) = (Some(7), true);
    let mut tries = Tries { attempts: 1, ..Tries::default() };
    let error = CallError::new(ErrorCode::Timeout, "late").with_operation("shop.pay");
    tries.history.push(FailedAttempt::new(1, 5, error.clone()));
    let letter = DeadLetter::new(job.clone(), 6, tries, error.clone());
    let ended = Ended::new(&job, 6, 1, Outcome::Dead(Box::new(letter)));
    let text = serde_json::to_string(&ended).unwrap();
    assert!(!text.contains("hush"));
    let read: Ended = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    assert_eq!((read.owner.as_deref(), read.failed.as_deref()), (Some("ann"), Some("shop.pay")));
    let Outcome::Dead(letter) = read.outcome else { panic!("it is dead") };
    assert_eq!((letter.job.retry, letter.job.input.get()), (job.retry, r#"{"n": 1}"#));
    assert_eq!((letter.history[0].error.clone(), letter.error), (error.clone(), error));
}

#[test]
fn tries_of_an_earlier_version_have_no_unbegun_passes() {
    let tries = Tries { passes: 2, ..Tries::default() };
    let text = r#"{"attempts":0,"passes":2}"#;
    assert_eq!(serde_json::to_string(&tries).unwrap(), text);
    let read: Tries = serde_json::from_str(text).unwrap();
    assert_eq!((read.unbegun, read), (0, tries));
}

#[test]
fn failed_jobs_are_kept_whole() {
    let id = "jobs.7.0123456789abcdef0123456789abcdef".parse().unwrap();
    let mut job = JobRecord::new(id, "shop.buy", RawValue::from_string(r#"{"n":1}"#.to_owned()).unwrap());
    assert_eq!(job.idempotency_key(), "0123456789abcdef0123456789abcdef");
    (job.key, job.nonce) = (Some("k".to_owned()), "1".to_owned());
    let first = job.idempotency_key().into_owned();
    job.nonce = "2".to_owned();
    assert!(first != job.idempotency_key() && first.len() == job.id.token().len());
    let kept = |outcome| {
        let text = serde_json::to_string(&Ended::new(&job, 6, 1, outcome)).unwrap();
        let ended: Ended = serde_json::from_str(&text).unwrap();
        (text, Stored::Ended(Box::new(ended)))
    };
    let (text, stored) = kept(Outcome::Failed(CallError::new("TAKEN", "no")));
    assert_eq!((text.matches(r#""key":"k""#).count(), stored.key()), (1, Some("k")));
    let Stored::Ended(ended) = stored else { panic!("it has ended") };
    assert_eq!(ended.job.unwrap().input.get(), r#"{"n":1}"#);
    let (text, stored) = kept(Outcome::Cancelled);
    assert_eq!((text.contains("input"), stored.key()), (false, Some("k")));
    // As an earlier version wrote it.
    let text =
        r#"{"operation":"a.b","at":1,"attempts":1,"retention":9,"outcome":{"failed":{"code":"X","message":""}}}"#;
    let ended: Ended = serde_json::from_str(text).unwrap();
    assert!(ended.job.is_none() && ended.can_be_retried() && ended.can_be_discarded());
}

#[test]
fn steps_know_their_job() {
    let of = |token: char, nonce: &str| {
        let id = format!("jobs.7.{}", token.to_string().repeat(32)).parse().unwrap();
        let mut job = JobRecord::new(id, "shop.buy", RawValue::NULL.to_owned());
        job.nonce = nonce.to_owned();
        job
    };
    let open = |nonce: &str| Stored::Open { job: Box::new(of('b', nonce)), tries: Tries::default() };
    let ended = |nonce: &str| Stored::Ended(Box::new(Ended::new(&of('b', nonce), 6, 0, Outcome::Cancelled)));
    let mut step = of('a', "9");
    (step.parent, step.parent_nonce) = (Some(of('b', "1").id), "1".to_owned());
    let text = serde_json::to_string(&step).unwrap();
    let step: JobRecord = serde_json::from_str(&text).unwrap();
    // An earlier version stored no nonce of a job that has ended.
    for (job, is_its_own) in [
        (open("1"), true),
        (open("2"), false),
        (open(""), false),
        (ended("1"), true),
        (ended("2"), false),
        (ended(""), true),
    ] {
        assert_eq!(step.is_step_of(&job), is_its_own, "{job:?}");
    }
    // Nor of the job of a step.
    let step: JobRecord = serde_json::from_str(&text.replace(r#","parentNonce":"1""#, "")).unwrap();
    assert!(step.parent_nonce.is_empty() && step.is_step_of(&open("2")) && step.is_step_of(&ended("2")));
}

#[test]
fn an_ending_outlasts_the_start_of_its_job() {
    let id = "jobs.7.0123456789abcdef0123456789abcdef".parse().unwrap();
    let mut job = JobRecord::new(id, "shop.buy", RawValue::NULL.to_owned());
    job.retention = 10;
    // Ended before it could start, of a schedule before its own time, and after it could start.
    for (submitted, not_before, at, kept) in
        [(100, Some(170), 120, 60), (170, Some(170), 120, 60), (100, Some(170), 180, 10), (100, None, 120, 10)]
    {
        (job.submitted, job.not_before) = (submitted, not_before);
        assert_eq!(Ended::new(&job, at, 0, Outcome::Cancelled).retention, kept, "{submitted} {not_before:?} {at}");
    }
}

/// A server hides the text of an error from its clients, or shows it, depending on these marks.
#[test]
fn an_ending_keeps_the_marks_of_its_error() {
    let id = "jobs.7.0123456789abcdef0123456789abcdef".parse().unwrap();
    let job = JobRecord::new(id, "shop.buy", RawValue::NULL.to_owned());
    let late = || CallError::new(ErrorCode::Timeout, "late");
    // As it is, and cut.
    for most in [1_000, 3] {
        for (error, json) in [
            (late(), None),
            (late().by_this_process(), Some(json!({ "byThisProcess": true }))),
            (late().refusing_program(), Some(json!({ "refusesProgram": true }))),
        ] {
            let marks = (error.is_by_this_process(), error.refuses_program());
            let outcome = Outcome::Failed(bounded(error, most));
            let text = serde_json::to_string(&Ended::new(&job, 6, 1, outcome)).unwrap();
            let stored: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(stored.get("marks"), json.as_ref(), "{text}");
            let ended: Ended = serde_json::from_str(&text).unwrap();
            let read = ended.marks.put_on(ended.outcome.error().unwrap().clone());
            assert_eq!((read.is_by_this_process(), read.refuses_program()), marks, "{text}");
        }
    }
}
