//! What a handler knows about the job that its call is an attempt of.

use crate::{CallError, Context, ErrorCode, OperationSpec};

/// The number of the attempt, for the call and those that its handler makes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt(pub(crate) u32);

/// The key that all attempts of a job share, for its own call alone.
#[derive(Debug, Clone)]
pub(crate) struct IdempotencyKey(pub(crate) String);

/// The key that the caller gave, for this call alone.
#[derive(Clone)]
pub(crate) struct GivenKey(pub(crate) String);

/// Refuses a call with a key of its caller's, for those who have no place for it: whoever gave it takes retries for safe.
pub(crate) fn refuse_key(spec: &OperationSpec, context: &Context, by: &str) -> Result<(), CallError> {
    if context.extension::<GivenKey>().is_none() {
        return Ok(());
    }
    let message = format!("`{}` is called {by}, which an idempotency key does not reach: leave it out", spec.id);
    Err(CallError::new(ErrorCode::ValidationError, message))
}

impl Context {
    /// Which attempt of a job this is; 1 for the first, and for a call that is no job.
    pub fn attempt(&self) -> u32 {
        self.extension::<Attempt>().map_or(1, |attempt| attempt.0)
    }

    /// The key by which a repetition of this call is known: that of the caller, by `CallOptions::with_idempotency_key`
    /// (feature `http`), or else the one that all attempts of this job share. `None` for a call that has neither; a key without
    /// characters is none.
    ///
    /// An HTTP client sends it where the operation's document has a header for such keys and the caller gave none. Calls
    /// that a handler makes do not have it: they would all have the same one.
    pub fn idempotency_key(&self) -> Option<&str> {
        // One without characters would be the same for all calls that have it.
        let given = self.extension::<GivenKey>().map(|key| key.0.as_str()).filter(|key| !key.trim().is_empty());
        given.or_else(|| self.job_key())
    }

    /// The key that all attempts of this job share.
    pub(crate) fn job_key(&self) -> Option<&str> {
        self.extension::<IdempotencyKey>().map(|key| key.0.as_str())
    }
}
