//! What is shown of a job.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ops_runtime::CallError;
use ops_runtime::durable::JobId;
use ops_runtime::durable::record::{DeadLetter, Ended, FailedAttempt, JobRecord, Outcome, Stored, Tries};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::report::{self, line};

/// The most characters of an error in a table.
const ERROR: usize = 72;

/// What is known of a job.
pub(super) struct Facts {
    id: JobId,
    operation: String,
    state: &'static str,
    attempts: u32,
    /// The job as it was submitted. `None` if it is done or was cancelled.
    job: Option<Box<JobRecord>>,
    key: Option<String>,
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
            next: tries.next,
            error: tries.history.last().map(|failed| failed.error.clone()),
            history: tries.history,
            owner: job.owner().map(str::to_owned),
            job: Some(job.clone()),
            ..Self::unknown(job.id.clone())
        }
    }

    fn of_ended(id: JobId, ended: Ended) -> Self {
        let Ended { operation, at, attempts, outcome, owner, job, .. } = ended;
        let facts = Self { operation, attempts, ended: Some(at), owner, job, ..Self::unknown(id) };
        match outcome {
            Outcome::Done(result) => Self { state: "done", result: Some(result), ..facts },
            Outcome::Failed(error) => Self { state: "failed", error: Some(error), ..facts },
            Outcome::Cancelled => Self { state: "cancelled", ..facts },
            Outcome::Dead(letter) => Self::of_dead(*letter),
            _ => facts,
        }
    }

    pub(super) fn of_dead(letter: DeadLetter) -> Self {
        let DeadLetter { job, error, at, attempts, history, .. } = letter;
        Self {
            operation: job.operation.clone(),
            state: "dead",
            attempts,
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

    /// A worker says that it has the job.
    pub(super) fn set_running(&mut self) {
        (self.state, self.next) = ("running", None);
    }

    /// The row of a table: since when the job has been there, or how long ago it ended.
    pub(super) fn row(&self, now: SystemTime) -> Vec<String> {
        let since = self.ended.or_else(|| self.job.as_ref().map(|job| job.submitted));
        let age = since.map_or_else(String::new, |since| age(now.duration_since(time(since)).unwrap_or_default()));
        let error = self.error.as_ref().map_or_else(String::new, |error| cut(&line(&error.to_string())));
        let attempts = self.attempts.to_string();
        vec![self.id.to_string(), line(&self.operation), self.state.to_owned(), attempts, age, error]
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
        put("submitted", job.map(|job| rfc3339(job.submitted).into()));
        put("notBefore", job.and_then(|job| job.not_before).map(|at| rfc3339(at).into()));
        put("deadline", job.and_then(|job| job.deadline).map(|at| rfc3339(at).into()));
        put("nextAttempt", self.next.map(|at| rfc3339(at).into()));
        put("ended", self.ended.map(|at| rfc3339(at).into()));
        put("error", self.error.as_ref().and_then(|error| serde_json::to_value(error).ok()));
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

fn cut(text: &str) -> String {
    match text.char_indices().nth(ERROR) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
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

    #[test]
    fn ages() {
        for (seconds, expected) in [(0, "0s"), (119, "119s"), (120, "2m"), (7_200, "2h"), (172_800, "2d")] {
            assert_eq!(age(Duration::from_secs(seconds)), expected);
        }
    }
}
