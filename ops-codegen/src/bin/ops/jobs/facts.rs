//! What is shown of a job.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ops_runtime::CallError;
use ops_runtime::durable::JobId;
use ops_runtime::durable::record::{DeadLetter, Ended, FailedAttempt, JobRecord, Outcome, Stored, Tries};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::report::{self, cut, line};

/// The most characters of a text in a table: of an error, and of the id of an operation.
const TEXT: usize = 72;

/// What is known of a job.
pub(super) struct Facts {
    id: JobId,
    operation: String,
    state: &'static str,
    attempts: u32,
    /// The job as it was submitted. `None` if it is done or was cancelled.
    job: Option<Box<JobRecord>>,
    key: Option<String>,
    submitted: Option<u64>,
    /// How often workers gave it back: they lack its operation, ended, or it waited for steps.
    given_back: u32,
    next: Option<u64>,
    ended: Option<u64>,
    error: Option<CallError>,
    history: Vec<FailedAttempt>,
    result: Option<Box<RawValue>>,
    owner: Option<String>,
}

impl Facts {
    pub(super) fn of(id: JobId, stored: Stored, now: SystemTime) -> Self {
        let key = stored.key().map(str::to_owned);
        let facts = match stored {
            Stored::Open { job, tries } => Self::of_open(job, tries, now),
            Stored::Ended(ended) => Self::of_ended(id, *ended),
            _ => Self::unknown(id),
        };
        Self { key, ..facts }
    }

    fn of_open(job: Box<JobRecord>, tries: Tries, now: SystemTime) -> Self {
        let is_delayed = job.not_before.is_some_and(|start| time(start) > now);
        let state = match (tries.next, is_delayed) {
            (Some(_), _) => "retrying",
            (None, true) => "delayed",
            (None, false) => "queued",
        };
        Self {
            operation: job.operation.clone(),
            state,
            attempts: tries.attempts,
            submitted: Some(job.submitted),
            given_back: tries.passes,
            next: tries.next,
            error: tries.history.last().map(|failed| failed.error.clone()),
            history: tries.history,
            owner: job.owner().map(str::to_owned),
            job: Some(job.clone()),
            ..Self::unknown(job.id.clone())
        }
    }

    fn of_ended(id: JobId, ended: Ended) -> Self {
        let Ended { operation, at, attempts, outcome, owner, job, submitted, failed, .. } = ended;
        // Earlier versions stored no such time.
        let submitted = Some(submitted).filter(|at| *at > 0);
        let facts = Self { operation, attempts, submitted, ended: Some(at), owner, job, ..Self::unknown(id) };
        let facts = match outcome {
            Outcome::Done(result) => Self { state: "done", result: Some(result), ..facts },
            Outcome::Failed(error) => Self { state: "failed", error: Some(error), ..facts },
            Outcome::Cancelled => Self { state: "cancelled", ..facts },
            Outcome::Dead(letter) => Self::of_dead(*letter),
            _ => facts,
        };
        let named = |error: CallError| match failed {
            Some(failed) => error.with_operation(failed),
            None => error,
        };
        Self { error: facts.error.map(named), ..facts }
    }

    fn of_dead(letter: DeadLetter) -> Self {
        let DeadLetter { job, error, at, attempts, history, .. } = letter;
        Self {
            operation: job.operation.clone(),
            state: "dead",
            attempts,
            submitted: Some(job.submitted),
            ended: Some(at),
            error: Some(error),
            history,
            owner: job.owner().map(str::to_owned),
            key: job.key.clone(),
            job: Some(Box::new(job.clone())),
            ..Self::unknown(job.id)
        }
    }

    /// A job of a later version of the library.
    fn unknown(id: JobId) -> Self {
        Self {
            id,
            operation: String::new(),
            state: "unknown",
            attempts: 0,
            job: None,
            key: None,
            submitted: None,
            given_back: 0,
            next: None,
            ended: None,
            error: None,
            history: Vec::new(),
            result: None,
            owner: None,
        }
    }

    pub(super) fn state(&self) -> &'static str {
        self.state
    }

    /// The job of which this is a step.
    pub(super) fn parent(&self) -> Option<&JobId> {
        self.job.as_ref()?.parent.as_ref()
    }

    /// True if workers gave the job back, and none has it or has run it.
    fn is_left(&self) -> bool {
        self.given_back > 0 && self.attempts == 0 && self.state == "queued"
    }

    /// A worker says that it has the job.
    pub(super) fn set_running(&mut self) {
        (self.state, self.next) = ("running", None);
    }

    /// The row of a table: since when the job has been there, or how long ago it ended. Some tables have a cell for the
    /// parents of steps.
    pub(super) fn row(&self, now: SystemTime, has_parent: bool) -> Vec<String> {
        let since = self.ended.or(self.submitted);
        let age = since.map_or_else(String::new, |since| age(now.duration_since(time(since)).unwrap_or_default()));
        let last = match &self.error {
            Some(error) => cut(&line(&error.to_string()), TEXT),
            // Otherwise it has run, or waits for steps, and nothing is wrong.
            None if self.is_left() => format!("given back by workers: {}", self.given_back),
            None => String::new(),
        };
        let (operation, attempts) = (cut(&line(&self.operation), TEXT), self.attempts.to_string());
        let mut row = vec![self.id.to_string(), operation, self.state.to_owned(), attempts, age];
        row.extend(has_parent.then(|| self.parent().map(JobId::to_string).unwrap_or_default()));
        row.push(last);
        row
    }

    /// Without the input, the history and the result.
    pub(super) fn short(&self) -> Value {
        Value::Object(self.members())
    }

    fn members(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        let mut put = |key: &str, value: Option<Value>| drop(value.map(|value| facts.insert(key.to_owned(), value)));
        put("id", Some(self.id.as_str().into()));
        put("operation", Some(self.operation.as_str().into()));
        put("state", Some(self.state.into()));
        put("attempts", Some(self.attempts.into()));
        let job = self.job.as_deref();
        put("key", self.key.clone().map(Value::from));
        put("tenant", job.and_then(|job| job.tenant.clone()).map(Value::from));
        put("owner", self.owner.clone().map(Value::from));
        put("parent", self.parent().map(|parent| parent.as_str().into()));
        put("submitted", self.submitted.map(|at| rfc3339(at).into()));
        put("notBefore", job.and_then(|job| job.not_before).map(|at| rfc3339(at).into()));
        put("deadline", job.and_then(|job| job.deadline).map(|at| rfc3339(at).into()));
        put("nextAttempt", self.next.map(|at| rfc3339(at).into()));
        put("givenBack", Some(self.given_back).filter(|times| *times > 0).map(Value::from));
        put("ended", self.ended.map(|at| rfc3339(at).into()));
        put("error", self.error.as_ref().and_then(told));
        facts
    }

    /// All.
    pub(super) fn long(&self) -> Value {
        let mut facts = self.members();
        let raw = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).unwrap_or_else(|_| raw.get().into());
        if let Some(job) = &self.job {
            facts.insert("input".to_owned(), raw(&job.input));
            if !job.metadata.is_empty() {
                facts.insert("metadata".to_owned(), Value::Object(job.metadata.clone()));
            }
        }
        if !self.history.is_empty() {
            let failed = |failed: &FailedAttempt| json!({ "attempt": failed.attempt, "at": rfc3339(failed.at), "error": failed.error });
            facts.insert("history".to_owned(), self.history.iter().map(failed).collect());
        }
        if let Some(result) = &self.result {
            facts.insert("result".to_owned(), raw(result));
        }
        Value::Object(facts)
    }

    /// All, a line for each fact; JSON where a fact has several lines.
    pub(super) fn text(&self) -> String {
        let Value::Object(facts) = self.long() else { return String::new() };
        let widest = facts.keys().map(String::len).max().unwrap_or_default();
        let mut text = String::new();
        for (name, value) in facts {
            match value {
                Value::String(value) => text.push_str(&format!("{name:widest$}  {}\n", line(&value))),
                Value::Object(_) | Value::Array(_) => {
                    let indented = report::json(&format!("{value:#}")).replace('\n', "\n    ");
                    text.push_str(&format!("{name}\n    {indented}\n"));
                }
                value => text.push_str(&format!("{name:widest$}  {value}\n")),
            }
        }
        text
    }
}

/// An error as JSON, with its operation if that is not the job's own.
fn told(error: &CallError) -> Option<Value> {
    let mut told = serde_json::to_value(error).ok()?;
    if let (Some(members), Some(operation)) = (told.as_object_mut(), error.operation()) {
        members.insert("operation".to_owned(), operation.into());
    }
    Some(told)
}

fn time(millis: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(millis)).unwrap_or(UNIX_EPOCH)
}

/// A duration in its largest unit: `3d`, `4h`, `5m`, `6s`.
pub(super) fn age(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        172_800.. => format!("{}d", seconds / 86_400),
        7_200.. => format!("{}h", seconds / 3_600),
        120.. => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// Milliseconds since the Unix epoch as RFC 3339 writes them, in UTC.
fn rfc3339(millis: u64) -> String {
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    // Days of the Gregorian calendar, whose years begin in March: https://howardhinnant.github.io/date_algorithms.html
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (date, month) = (of_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    let (seconds, millis) = (rest / 1_000, rest % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_767_225_600_001, "2026-01-01T00:00:00.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(millis), expected);
        }
        assert!(rfc3339(u64::MAX).ends_with('Z'));
    }

    #[test]
    fn what_a_caller_sends_cannot_control_a_terminal() {
        let id: JobId = "mail.0.0123456789abcdef0123456789abcdef".parse().unwrap();
        for told in ["\"\u{9b}31m\"", "[\"\u{9b}31m\"]", "{\"a\":\"\u{9b}31m\"}", "{\"\u{9b}31m\":1}"] {
            let result = RawValue::from_string(told.to_owned()).unwrap();
            let text = Facts { result: Some(result), ..Facts::unknown(id.clone()) }.text();
            assert!(text.contains("31m") && !text.contains('\u{9b}'), "{text:?}");
        }
    }

    /// Submitters can make up an id of any length.
    #[test]
    fn a_long_operation_makes_no_wide_table() {
        let id: JobId = "mail.0.0123456789abcdef0123456789abcdef".parse().unwrap();
        let facts = Facts { operation: "x".repeat(70_000), ..Facts::unknown(id) };
        let row = facts.row(SystemTime::now(), false);
        assert_eq!(row[1], format!("{}...", "x".repeat(72)));
        let rows = [row, ["mail", "y", "", "", "", ""].map(str::to_owned).to_vec()];
        let shown = super::super::table(&rows);
        assert_eq!(shown.lines().map(str::len).collect::<Vec<_>>(), [128, 42]);
    }

    #[test]
    fn the_step_that_a_job_failed_by() {
        let id = |token: &str| -> JobId { format!("jobs.0.{}", token.repeat(32)).parse().unwrap() };
        let input = || RawValue::from_string("{}".to_owned()).unwrap();
        let error = || CallError::execution("HTTP 500").with_operation("courier.book");
        let dead = |job: &JobRecord| {
            let letter = DeadLetter::new(job.clone(), 2_000, Tries::default(), error());
            // As it is read back: the JSON of an error has no operation.
            let ended = Ended::new(job, 2_000, 4, Outcome::Dead(Box::new(letter)));
            let ended = serde_json::from_str(&serde_json::to_string(&ended).unwrap()).unwrap();
            Facts::of(job.id.clone(), Stored::Ended(Box::new(ended)), time(5_000))
        };
        let job = JobRecord::new(id("a"), "shop.deliver", input());
        let mut step = JobRecord::new(id("b"), "courier.book", input());
        step.parent = Some(job.id.clone());
        let (job, step) = (dead(&job), dead(&step));
        let told = json!({ "code": "EXECUTION_ERROR", "message": "HTTP 500", "operation": "courier.book" });
        assert_eq!((&job.short()["error"], &job.long()["error"], job.parent()), (&told, &told, None));
        assert_eq!(job.row(time(5_000), false)[2..], ["dead", "0", "3s", "courier.book: EXECUTION_ERROR: HTTP 500"]);
        assert_eq!((step.short()["parent"].as_str(), step.parent()), (Some(id("a").as_str()), Some(&id("a"))));
        assert_eq!(step.row(time(5_000), true)[4..], ["3s", id("a").as_str(), "EXECUTION_ERROR: HTTP 500"]);
        assert_eq!(job.row(time(5_000), true)[5], "");
    }

    #[test]
    fn what_is_told_of_jobs_that_are_left_or_done() {
        let id: JobId = "jobs.0.0123456789abcdef0123456789abcdef".parse().unwrap();
        let mut job = JobRecord::new(id.clone(), "shop.pay", RawValue::from_string("{}".to_owned()).unwrap());
        job.submitted = 1_000;
        let mut tries = Tries::default();
        tries.passes = 7;
        let of = |tries: &Tries| {
            Facts::of(id.clone(), Stored::Open { job: Box::new(job.clone()), tries: tries.clone() }, time(5_000))
        };
        let left = of(&tries);
        assert_eq!(left.row(time(5_000), false)[2..], ["queued", "0", "4s", "given back by workers: 7"]);
        assert_eq!(left.short()["givenBack"], 7);
        // A job that waits for steps, or whose worker ended, is given back, too.
        let mut running = of(&tries);
        running.set_running();
        assert_eq!(running.row(time(5_000), false)[2..], ["running", "0", "4s", ""]);
        tries.attempts = 1;
        assert_eq!(of(&tries).row(time(5_000), false)[2..], ["queued", "1", "4s", ""]);
        let result = RawValue::from_string("1".to_owned()).unwrap();
        let ended = Ended::new(&job, 2_000, 1, Outcome::Done(result));
        let done = Facts::of(id, Stored::Ended(Box::new(ended)), time(5_000)).long();
        assert_eq!((&done["submitted"], &done["ended"]), (&json!(rfc3339(1_000)), &json!(rfc3339(2_000))));
        assert_eq!((done.get("input"), done.get("givenBack")), (None, None));
    }

    #[test]
    fn ages() {
        for (seconds, expected) in [(0, "0s"), (119, "119s"), (120, "2m"), (7_200, "2h"), (172_800, "2d")] {
            assert_eq!(age(Duration::from_secs(seconds)), expected);
        }
    }
}
