//! When and how often a failed attempt of a durable call is repeated.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::TextList;
use crate::model::clock::millis;
use crate::model::json::{fields, through};
use crate::model::text::set;

/// True if the same request may succeed later, after a response of this status.
///
/// The one table of them: what clients retry, what jobs repeat, and what the error of a call says of itself.
pub(crate) fn may_pass(status: u64) -> bool {
    match status {
        408 | 425 | 429 => true,
        // The server will not learn the method, or the version of the protocol, meanwhile.
        501 | 505 => false,
        _ => status >= 500,
    }
}

/// When and how often a failed attempt of a durable call is repeated.
///
/// The wait before a repetition grows by a factor, up to a maximum, and is shortened by up to a fifth at random, so that
/// jobs that failed together do not come back together. A worker that dies while it runs a job fails that attempt.
///
/// ```
/// use std::time::Duration;
/// use ops_runtime::spec::RetryPolicy;
///
/// let policy = RetryPolicy::new(5).with_backoff(Duration::from_secs(1), Duration::from_secs(60)).with_code("BUSY");
/// assert_eq!(policy.wait_after(3), Duration::from_secs(4));
/// ```
///
/// # What is repeated
///
/// `EXECUTION_ERROR`, `UNKNOWN_ERROR`, `TIMEOUT` and `ABORTED`, and codes that are added. Of the errors of HTTP responses,
/// only the statuses 408, 425, 429 and all from 500 but 501 and 505. Of `OPERATION_NOT_FOUND`, only that of a known operation
/// that no worker serves now. Never `ACCESS_DENIED`, and the `VALIDATION_ERROR` of an input: no repetition changes them. Two refusals
/// say nothing of the job's identity, so the job is repeated: an access rule of this process refuses a call that the handler makes with
/// an identity of its own, and a hub refuses this process.
/// Also never an error whose details have `"retryable": false`: the call was carried out, but its result cannot be passed on,
/// such as a number that JSON does not have, or a response that is larger than `HttpConfig::with_max_response` allows.
///
/// The response of a server that does not fit its type is a `VALIDATION_ERROR`, too, with the response as `raw` in its details. The
/// request may have had its effect, so it is repeated only if the policy has the code:
/// [`with_code("VALIDATION_ERROR")`](Self::with_code).
///
/// # Whose policy counts
///
/// The first of: the options of the submit, the pattern of the submitter's `Jobs`, the spec of the operation where the
/// worker has it (`#[operation(retry(..))]`), and [`DEFAULT`](Self::DEFAULT).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How many attempts there are in all; at least 1.
    pub attempts: u32,
    /// The wait before the second attempt, in milliseconds.
    pub first_delay: u64,
    /// The longest wait, in milliseconds.
    pub max_delay: u64,
    /// The factor by which each wait is longer than the one before.
    pub factor: u32,
    /// Codes that are repeated beside the default ones, such as one that the operation declares.
    pub codes: TextList,
    /// Time limit over all attempts, in milliseconds from the earliest start of the job. A deadline in the options of the
    /// submit has precedence.
    pub deadline: Option<u64>,
}

impl RetryPolicy {
    /// Three attempts, with waits of 1 second and 2 seconds.
    pub const DEFAULT: Self = Self::new(3);

    /// A policy of at most `attempts` attempts. The wait is 1 second, doubles each time, and is at most 5 minutes.
    pub const fn new(attempts: u32) -> Self {
        let attempts = if attempts == 0 { 1 } else { attempts };
        Self { attempts, first_delay: 1_000, max_delay: 300_000, factor: 2, codes: TextList::new(&[]), deadline: None }
    }

    /// One attempt: a job that fails, or whose worker dies, is not run again by itself. A worker that stops, or that has no
    /// place for a job which waits for a step, gives the job back, and the same attempt begins again.
    pub const fn once() -> Self {
        Self::new(1)
    }

    /// Sets the first and the longest wait.
    #[must_use]
    pub const fn with_backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first_delay = millis(first);
        let longest = millis(longest);
        self.max_delay = if longest < self.first_delay { self.first_delay } else { longest };
        self
    }

    /// Sets the factor by which each wait is longer than the one before; at least 1.
    #[must_use]
    pub const fn with_factor(mut self, factor: u32) -> Self {
        self.factor = if factor == 0 { 1 } else { factor };
        self
    }

    /// Repeats errors of these codes, too, in the place of those that were added before.
    #[must_use]
    pub const fn with_codes(mut self, codes: &'static [&'static str]) -> Self {
        set(&mut self.codes, TextList::new(codes));
        self
    }

    /// Repeats errors of this code, too.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.codes = self.codes.iter().map(str::to_owned).chain([code.into()]).collect();
        self
    }

    /// Sets the time limit over all attempts, from the earliest start of the job. A job that has not succeeded by then is a
    /// dead letter, whatever attempts are left.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(millis(deadline));
        self
    }

    /// The wait after the failure of that attempt, before it is shortened at random.
    pub fn wait_after(&self, attempt: u32) -> Duration {
        let factor = u64::from(self.factor.max(1)).saturating_pow(attempt.saturating_sub(1));
        Duration::from_millis(self.first_delay.saturating_mul(factor).min(self.max_delay))
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The policy of a spec: behind a pointer, as few operations have one.
#[derive(Clone)]
pub(crate) enum SpecRetry {
    Static(&'static RetryPolicy),
    Shared(Arc<RetryPolicy>),
}

impl Deref for SpecRetry {
    type Target = RetryPolicy;

    fn deref(&self) -> &RetryPolicy {
        match self {
            Self::Static(policy) => policy,
            Self::Shared(policy) => policy,
        }
    }
}

impl PartialEq for SpecRetry {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for SpecRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A policy in the shape of its JSON: only `attempts` has to be there.
struct RetryJson {
    attempts: u64,
    first_delay: Option<u64>,
    max_delay: Option<u64>,
    factor: Option<u64>,
    codes: TextList,
    deadline: Option<u64>,
}

fields!(RetryJson {
    "attempts" => attempts: number,
    "firstDelay" => first_delay: some_number,
    "maxDelay" => max_delay: some_number,
    "factor" => factor: some_number,
    "codes" => codes: filled,
    "deadline" => deadline: some_number,
});

through!(RetryPolicy, RetryJson);

impl From<&RetryPolicy> for RetryJson {
    fn from(policy: &RetryPolicy) -> Self {
        Self {
            attempts: policy.attempts.into(),
            first_delay: Some(policy.first_delay),
            max_delay: Some(policy.max_delay),
            factor: Some(policy.factor.into()),
            codes: policy.codes.clone(),
            deadline: policy.deadline,
        }
    }
}

impl From<RetryJson> for RetryPolicy {
    fn from(json: RetryJson) -> Self {
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let mut policy = Self::new(small(json.attempts));
        policy.first_delay = json.first_delay.unwrap_or(policy.first_delay);
        policy.max_delay = json.max_delay.unwrap_or(policy.max_delay).max(policy.first_delay);
        policy.factor = json.factor.map_or(policy.factor, small).max(1);
        policy.codes = json.codes;
        policy.deadline = json.deadline;
        policy
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn waits_grow_up_to_a_maximum() {
        let policy = RetryPolicy::new(9).with_backoff(Duration::from_millis(100), Duration::from_secs(1));
        let waits: Vec<_> = (1..=6).map(|attempt| policy.wait_after(attempt).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(policy.wait_after(u32::MAX), Duration::from_secs(1));
        assert_eq!(policy.with_factor(0).wait_after(5), Duration::from_millis(100));
        assert_eq!(RetryPolicy::new(0).attempts, 1);
        assert_eq!(RetryPolicy::new(2).with_deadline(Duration::MAX).deadline, Some(u64::MAX));
    }

    #[test]
    fn what_is_read_back() {
        const POLICY: RetryPolicy = RetryPolicy::new(5)
            .with_backoff(Duration::from_secs(1), Duration::from_millis(1))
            .with_factor(3)
            .with_codes(&["BUSY"])
            .with_deadline(Duration::from_secs(3600));
        let text = json!({
            "attempts": 5, "firstDelay": 1000, "maxDelay": 1000, "factor": 3, "codes": ["BUSY"], "deadline": 3_600_000,
        });
        assert_eq!(serde_json::to_value(&POLICY).unwrap(), text);
        assert_eq!(serde_json::from_value::<RetryPolicy>(text).unwrap(), POLICY);
        for (json, expected) in [
            (json!({ "attempts": 7 }), RetryPolicy::new(7)),
            (json!({ "attempts": 0, "factor": 0, "codes": null, "later": true }), RetryPolicy::new(1).with_factor(1)),
            (json!({ "attempts": 1e12 }), RetryPolicy::new(u32::MAX)),
        ] {
            assert_eq!(serde_json::from_value::<RetryPolicy>(json).unwrap(), expected);
        }
        assert!(serde_json::from_value::<RetryPolicy>(json!({})).is_err());
        assert_eq!(POLICY.with_code("FULL").codes.join(" "), "BUSY FULL");
    }
}
