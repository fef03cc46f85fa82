//! The records that engines store, as plain data with JSON.
//!
//! ```
//! use ops_runtime::durable::record::{Ended, Outcome};
//!
//! let kept = r#"{"operation":"shop.charge","at":1000,"attempts":1,"retention":86400000,"outcome":"cancelled"}"#;
//! let ended: Ended = serde_json::from_str(kept)?;
//! assert!(matches!(ended.outcome, Outcome::Cancelled));
//! # Ok::<(), serde_json::Error>(())
//! ```

mod marks;
mod schedule;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub(super) use self::marks::Marks;
pub use self::schedule::ScheduleRecord;
use crate::durable::bounds::bounded;
use crate::durable::id::{JobId, hash};
use crate::run::input;
use crate::{Call, CallError, ErrorCode, Identity, RetryPolicy};

/// The version of the JSON of records. Workers leave jobs of later versions to newer workers.
pub const FORMAT: u32 = 1;

/// How long the ending of a job is kept by default, in milliseconds: a day.
const DEFAULT_RETENTION: u64 = 24 * 60 * 60 * 1000;

/// A job as it was submitted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JobRecord {
    /// The version of this record: [`FORMAT`].
    pub format: u32,
    /// The id of the job.
    pub id: JobId,
    /// The id of the operation.
    pub operation: String,
    /// The input.
    pub input: Box<RawValue>,
    /// A digest of the input, which tells a repeated submit of the key from a conflict. Empty without a key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The key that the submitter gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Distinguishes successive jobs with the same id. A key can be submitted again after the retention, or after its
    /// job was discarded; each such job has its own steps and its own idempotency key. Empty without a key, and in
    /// records of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The identity with which the operation runs; access is checked with it. `None` for the owner of the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The job of which this is a step. If that was cancelled, this does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<JobId>,
    /// The [`nonce`](Self::nonce) of that job: a later job with the same id does not wait for this step. Empty if that
    /// job has none, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parent_nonce: String,
    /// True if access is not checked: for steps, since access was checked for their job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusted: bool,
    /// True if the submitter is unknown. Then only operations without access rules run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
    /// The server of this library that submitted the job for one of its callers, such as `mcp`. `None` for any other
    /// submitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// True if the job had ended and was retried by hand, so that its steps may have results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retried: bool,
    /// The metadata of the call, including its trace.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// When it was submitted.
    pub submitted: u64,
    /// When it may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<u64>,
    /// Its deadline over all attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<u64>,
    /// How long its ending is kept, in milliseconds.
    pub retention: u64,
    /// When and how often failures are retried. `None` for the policy of the operation's spec, if the worker has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
}

impl JobRecord {
    /// The earliest time at which it may start.
    pub(super) fn start(&self) -> u64 {
        self.not_before.unwrap_or_default().max(self.submitted)
    }

    /// The key by which servers recognise another attempt of this job: that of the next job with the same id differs.
    pub(super) fn idempotency_key(&self) -> Cow<'_, str> {
        match self.key {
            // In the same form as a token, since servers limit the length of keys.
            Some(_) if !self.nonce.is_empty() => hash(&[self.id.token(), &self.nonce]).into(),
            // The id of a step contains the nonce of its job.
            _ => self.id.token().into(),
        }
    }

    /// True if this is a step of the stored job, which has the id of its [`parent`](Self::parent), and not of an
    /// earlier job with that id.
    pub(super) fn is_step_of(&self, stored: &Stored) -> bool {
        let nonce = match stored {
            Stored::Open { job, .. } => &job.nonce,
            // Earlier versions stored none.
            Stored::Ended(ended) if ended.nonce.is_empty() => return true,
            Stored::Ended(ended) => &ended.nonce,
        };
        self.parent_nonce.is_empty() || self.parent_nonce == *nonce
    }

    /// The name under which an engine stores the result of a step of this job.
    pub(super) fn step_name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        if self.nonce.is_empty() { name.into() } else { format!("{}.{name}", self.nonce).into() }
    }

    /// A job of an operation with an input, whose ending is kept for a day.
    pub fn new(id: JobId, operation: impl Into<String>, input: Box<RawValue>) -> Self {
        Self {
            format: FORMAT,
            id,
            operation: operation.into(),
            input,
            digest: String::new(),
            key: None,
            nonce: String::new(),
            tenant: None,
            identity: None,
            parent: None,
            parent_nonce: String::new(),
            trusted: false,
            unknown: false,
            via: None,
            retried: false,
            metadata: Map::new(),
            submitted: 0,
            not_before: None,
            deadline: None,
            retention: DEFAULT_RETENTION,
            retry: None,
        }
    }

    /// The id of the identity with which the job was submitted.
    pub fn owner(&self) -> Option<&str> {
        self.identity.as_ref().map(|identity| identity.id.as_str())
    }

    /// Distinguishes the runs of a job's id: a retry changes the time of the submit, and a new submit of a key the nonce.
    pub(super) fn run(&self) -> (u64, &str) {
        (self.submitted, &self.nonce)
    }
}

/// The results of the tries of a job that has not ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tries {
    /// How many attempts have failed.
    #[serde(default)]
    pub attempts: u32,
    /// How often a worker gave the job back: it lacks the operation, it ended, or the job waited for steps.
    #[serde(default)]
    pub passes: u32,
    /// How often of these no handler had begun. Earlier versions did not count that.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unbegun: u32,
    /// How often in a row a worker gave the job back because the job of which it is a step was unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gone: u32,
    /// The last failed attempts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<FailedAttempt>,
    /// When the next attempt starts; `None` if it is not due to a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

// In the form that `serde` calls.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// How many failed attempts the history of a job keeps.
const HISTORY: usize = 16;

impl Tries {
    /// Counts that a worker gives the job back.
    pub(super) fn pass(&mut self, has_begun: bool) {
        self.passes = self.passes.saturating_add(1);
        self.unbegun = self.unbegun.saturating_add(u32::from(!has_begun));
    }

    /// Counts an attempt that failed at a time. Of its error, up to `most` bytes are kept.
    pub(super) fn fail(&mut self, at: u64, error: CallError, most: usize) {
        self.attempts = self.attempts.saturating_add(1);
        if self.history.len() >= HISTORY {
            self.history.remove(0);
        }
        self.history.push(FailedAttempt::new(self.attempts, at, bounded(error, most)));
    }
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FailedAttempt {
    /// Its number; the first is 1.
    pub attempt: u32,
    /// When it ended.
    pub at: u64,
    /// Why it failed.
    pub error: CallError,
}

impl FailedAttempt {
    /// Makes the record of an attempt that failed at `at`, in milliseconds since the Unix epoch.
    pub fn new(attempt: u32, at: u64, error: CallError) -> Self {
        Self { attempt, at, error }
    }
}

/// The stored record of a job.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Stored {
    /// It has not ended.
    Open {
        /// The job.
        job: Box<JobRecord>,
        /// The results of its tries.
        tries: Tries,
    },
    /// It has ended.
    Ended(Box<Ended>),
}

impl Stored {
    /// The id of the operation.
    pub fn operation(&self) -> &str {
        match self {
            Self::Open { job, .. } => &job.operation,
            Self::Ended(ended) => &ended.operation,
        }
    }

    /// The digest of the input.
    pub fn digest(&self) -> &str {
        match self {
            Self::Open { job, .. } => &job.digest,
            Self::Ended(ended) => &ended.digest,
        }
    }

    /// The id of the identity with which the job was submitted.
    pub fn owner(&self) -> Option<&str> {
        match self {
            Self::Open { job, .. } => job.owner(),
            Self::Ended(ended) => ended.owner.as_deref(),
        }
    }

    /// The server of this library that submitted the job for one of its callers. `None` for any other submitter.
    pub fn via(&self) -> Option<&str> {
        match self {
            Self::Open { job, .. } => job.via.as_deref(),
            Self::Ended(ended) => ended.via.as_deref(),
        }
    }

    /// The key that the submitter gave. `None` without one, and for an ending without it that an earlier version wrote.
    pub fn key(&self) -> Option<&str> {
        let job = match self {
            Self::Open { job, .. } => job,
            Self::Ended(ended) => match (&ended.outcome, &ended.job) {
                (Outcome::Dead(letter), _) => &letter.job,
                (_, Some(job)) => job,
                (_, None) => return ended.key.as_deref(),
            },
        };
        job.key.as_deref()
    }

    /// The [`nonce`](JobRecord::nonce) of the job.
    #[cfg(feature = "jetstream")]
    pub(super) fn nonce(&self) -> &str {
        match self {
            Self::Open { job, .. } => &job.nonce,
            Self::Ended(ended) => &ended.nonce,
        }
    }

    /// When it was submitted. Zero for an ending that an earlier version wrote.
    pub fn submitted(&self) -> u64 {
        match self {
            Self::Open { job, .. } => job.submitted,
            Self::Ended(ended) => ended.submitted,
        }
    }
}

/// How a job ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Ended {
    /// The id of the operation.
    pub operation: String,
    /// The digest of the input.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The id of the identity with which the job was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The server of this library that submitted the job for one of its callers. `None` for any other submitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The key of a job that is done or was cancelled. Any other job is stored as a whole, with its key:
    /// [`Stored::key`] finds either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// A job that [failed](Outcome::Failed), as it was submitted, so that it can be retried by hand. `None` for any
    /// other outcome, and if an earlier version wrote this. A dead letter has it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Box<JobRecord>>,
    /// The [`nonce`](JobRecord::nonce) of the job. Empty without a key, and if an earlier version wrote this.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    /// When it was submitted. Zero if an earlier version wrote this.
    #[serde(default)]
    pub submitted: u64,
    /// When it ended.
    pub at: u64,
    /// Number of attempts. For a job that was cancelled while it ran, the number before.
    pub attempts: u32,
    /// How long this is kept, in milliseconds. A dead letter is kept until it is retried or discarded.
    pub retention: u64,
    /// The operation that failed, if it is not the job's own: the JSON of an error does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The private marks of the error. The JSON of an error does not contain them either.
    #[serde(default, skip_serializing_if = "Marks::is_empty")]
    pub(crate) marks: Marks,
    /// The outcome.
    pub outcome: Outcome,
}

impl Ended {
    /// Makes the record of a job that ended at `at`, in milliseconds since the Unix epoch, after `attempts` attempts.
    ///
    /// Its retention counts from when the job could have started, if that is later: a job that was cancelled before
    /// must not start then, and one of a schedule must not be submitted again until then.
    pub fn new(job: &JobRecord, at: u64, attempts: u32, outcome: Outcome) -> Self {
        let failed = outcome.error().and_then(CallError::operation).filter(|failed| *failed != job.operation);
        let (key, whole) = match outcome {
            Outcome::Done(_) | Outcome::Cancelled => (job.key.clone(), None),
            Outcome::Failed(_) => (None, Some(Box::new(job.clone()))),
            Outcome::Dead(_) => (None, None),
        };
        Self {
            failed: failed.map(str::to_owned),
            marks: outcome.error().map(Marks::of).unwrap_or_default(),
            operation: job.operation.clone(),
            digest: job.digest.clone(),
            owner: job.owner().map(str::to_owned),
            via: job.via.clone(),
            key,
            job: whole,
            nonce: job.nonce.clone(),
            submitted: job.submitted,
            at,
            attempts,
            retention: job.retention.saturating_add(job.start().saturating_sub(at)),
            outcome,
        }
    }

    /// The [run](JobRecord::run) that has ended.
    pub(super) fn run(&self) -> (u64, &str) {
        (self.submitted, &self.nonce)
    }

    /// True if the job is a dead letter.
    pub fn is_dead(&self) -> bool {
        matches!(self.outcome, Outcome::Dead(_))
    }

    /// True if the job can be retried.
    pub(super) fn can_be_retried(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_) | Outcome::Dead(_))
    }

    /// True if the job can be discarded: its key never had a result.
    pub(super) fn can_be_discarded(&self) -> bool {
        self.can_be_retried() || matches!(self.outcome, Outcome::Cancelled)
    }
}

/// The outcome of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Outcome {
    /// The result: the envelope.
    Done(Box<RawValue>),
    /// An error that is not retried. Also the last error, such as `TIMEOUT`, of a job that a server submitted for one of
    /// its callers, as [`JobRecord::via`] says, and that has used up its time.
    Failed(CallError),
    /// It was cancelled.
    Cancelled,
    /// It has used up its attempts or its time: a dead letter.
    Dead(Box<DeadLetter>),
}

impl Outcome {
    /// The error, if the job failed.
    pub fn error(&self) -> Option<&CallError> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Dead(letter) => Some(&letter.error),
            Self::Done(_) | Self::Cancelled => None,
        }
    }
}

/// A job that has used up its attempts or its time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeadLetter {
    /// The job, with its input.
    pub job: JobRecord,
    /// The last error.
    pub error: CallError,
    /// When it ended.
    pub at: u64,
    /// How many attempts were made.
    pub attempts: u32,
    /// The last failed attempts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<FailedAttempt>,
}

impl DeadLetter {
    /// Makes the dead letter of a job that ended at `at`, in milliseconds since the Unix epoch.
    pub fn new(job: JobRecord, at: u64, tries: Tries, error: CallError) -> Self {
        Self { job, error, at, attempts: tries.attempts, history: tries.history }
    }

    /// The input of the job in the type of its operation.
    ///
    /// # Errors
    /// A `VALIDATION_ERROR` if the job is of another operation, or if its input does not match the type.
    pub fn input<Op: Call>(&self) -> Result<Op::Input, CallError> {
        if self.job.operation != Op::SPEC.id {
            let message = format!("the dead letter is of `{}`, not of `{}`", self.job.operation, Op::SPEC.id);
            return Err(CallError::new(ErrorCode::ValidationError, message));
        }
        input::read_text(self.job.input.get()).map_err(|error| input::invalid(Op::SPEC, &error))
    }
}

#[cfg(test)]
mod tests;
