//! What the log says of jobs that fail, and of those that a worker leaves to others.
//!
//! The details of errors stay out of it, since they may have what a server sent. So do messages that are meant for
//! callers: they may have parts of the input.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Mutex;

use tracing::field::{DisplayValue, display};

use crate::durable::id::JobId;
use crate::durable::record::{Ended, FailedAttempt, JobRecord, Outcome, Tries};
use crate::model::lock::lock;
use crate::model::text::readable;
use crate::{CallError, ErrorCode};

/// How many characters of an error's message are logged.
const MESSAGE: usize = 400;
/// How many operations are remembered. There is a limit, because submitters can make up any number of ids.
const MANY: usize = 100;

/// Logs the last failed attempt of a job, and what became of the job by it.
#[cold]
pub(super) fn failed(job: &JobRecord, tries: &Tries, outcome: &str) {
    let Some(FailedAttempt { attempt, error, .. }) = tries.history.last() else { return };
    tracing::warn!(
        job = job.id.as_str(),
        operation = job.operation,
        attempt,
        outcome,
        failed = error.operation().filter(|failed| *failed != job.operation),
        code = error.code().as_str(),
        error = message(error),
        "an attempt of a job failed"
    );
}

/// Logs that a job has become a dead letter, if that is its ending.
pub(super) fn ended(id: &JobId, ended: &Ended) {
    let Outcome::Dead(letter) = &ended.outcome else { return };
    tracing::error!(
        job = id.as_str(),
        operation = ended.operation,
        attempts = ended.attempts,
        failed = ended.failed,
        code = letter.error.code().as_str(),
        error = message(&letter.error),
        "a job has become a dead letter"
    );
}

/// The message of an error, unless it is meant for callers: of those, the code says enough.
fn message(error: &CallError) -> Option<DisplayValue<String>> {
    let is_logged = matches!(
        error.code(),
        ErrorCode::ExecutionError
            | ErrorCode::UnknownError
            | ErrorCode::OperationNotFound
            | ErrorCode::Timeout
            | ErrorCode::Aborted
    );
    is_logged.then(|| display(readable(error.message(), MESSAGE)))
}

/// The operations of which a worker has logged that it has no handler.
#[derive(Default)]
pub(super) struct Unknown(Mutex<BTreeSet<String>>);

impl Unknown {
    /// Logs that a job is left to other workers: once for each operation, unless there were too many.
    #[cold]
    pub(super) fn left(&self, job: &JobRecord) {
        let mut known = lock(&self.0);
        if known.len() >= MANY || known.contains(&job.operation) {
            return;
        }
        known.insert(job.operation.clone());
        drop(known);
        tracing::warn!(
            job = job.id.as_str(),
            operation = %readable(&job.operation, MESSAGE),
            "no handler here: jobs of the operation are left to other workers, and wait if no worker has it. Register the \
             operation in the registry of a worker"
        );
    }
}
