//! What a handler knows about the job that its call is an attempt of.

use crate::Context;

/// The number of the attempt, for the call and those that its handler makes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt(pub(crate) u32);

/// The key that all attempts of a job share, for its own call alone.
#[derive(Debug, Clone)]
pub(crate) struct IdempotencyKey(pub(crate) String);

impl Context {
    /// Which attempt of a job this is; 1 for the first, and for a call that is no job.
    pub fn attempt(&self) -> u32 {
        self.extension::<Attempt>().map_or(1, |attempt| attempt.0)
    }

    /// The key that all attempts of this job share. `None` for a call that is no job.
    ///
    /// An HTTP client sends it where the operation's document has a header for such keys and the caller gave none. Calls
    /// that a handler makes do not have it: they would all have the same one.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.extension::<IdempotencyKey>().map(|key| key.0.as_str())
    }
}
