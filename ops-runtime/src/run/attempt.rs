//! The attempt number and the idempotency key of a call.

use crate::{CallError, Context, ErrorCode, OperationSpec};

/// The header of a request's idempotency key, by the IETF's draft.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The number of the attempt, for the call and the calls that its handler makes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt(pub(crate) u32);

/// The key that all attempts of a job share, for its own call only.
#[derive(Debug, Clone)]
pub(crate) struct IdempotencyKey(pub(crate) String);

/// The caller's key, for this call only.
#[derive(Clone)]
pub(crate) struct GivenKey(pub(crate) String);

/// The key of the HTTP request that a server answers by this call, for this call only.
///
/// No client sends it on by itself: it is one of its sender's keys, and other senders may have the same.
#[derive(Clone)]
pub(crate) struct ReceivedKey(pub(crate) String);

/// Refuses a call with a caller's key if it cannot be passed on: the caller would assume that retries are safe.
pub(crate) fn refuse_key(spec: &OperationSpec, context: &Context, by: &str) -> Result<(), CallError> {
    if context.extension::<GivenKey>().is_none() {
        return Ok(());
    }
    let message = format!("`{}` is called {by}, which an idempotency key does not reach: leave it out", spec.id);
    Err(CallError::new(ErrorCode::ValidationError, message))
}

impl Context {
    /// The number of the attempt of the job; 1 for the first, and for a call that is not a job.
    pub fn attempt(&self) -> u32 {
        self.extension::<Attempt>().map_or(1, |attempt| attempt.0)
    }

    /// The idempotency key of this call: the caller's, or that of the job, which all its attempts share, or the header
    /// `Idempotency-Key` of the request that `HttpServer` received.
    ///
    /// Callers set theirs by `CallOptions::with_idempotency_key` (feature `http`). `None` if there is none. An empty key
    /// counts as `None`.
    ///
    /// An HTTP client sends the caller's and the job's if the operation's document has a header for such keys and the input
    /// does not set it. It does not send that of a request. Calls that a handler makes inherit none: they would all have the
    /// same key.
    ///
    /// Two senders of requests may choose the same key: store what belongs to one together with the
    /// [identity](Self::identity).
    pub fn idempotency_key(&self) -> Option<&str> {
        // One without characters would be the same for all calls that have it.
        let given = self.extension::<GivenKey>().map(|key| key.0.as_str()).filter(|key| !key.trim().is_empty());
        let received = || self.extension::<ReceivedKey>().map(|key| key.0.as_str());
        given.or_else(|| self.job_key()).or_else(received)
    }

    /// The key that all attempts of this job share.
    pub(crate) fn job_key(&self) -> Option<&str> {
        self.extension::<IdempotencyKey>().map(|key| key.0.as_str())
    }
}
