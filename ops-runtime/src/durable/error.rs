//! The errors of jobs, typed.

use std::fmt;

use serde_json::{Value, json};

use crate::CallError;
use crate::durable::id::JobId;

const KEY_CONFLICT: &str = "KEY_CONFLICT";
const JOB_NOT_FOUND: &str = "JOB_NOT_FOUND";
const JOB_CANCELLED: &str = "JOB_CANCELLED";

/// Marks the error of a stored record that cannot be read, in its details: a retry has the same result.
pub(super) const UNREADABLE: &str = "unreadable";

/// An error of a job, read from a [`CallError`].
///
/// ```
/// use ops_runtime::CallError;
/// use ops_runtime::durable::JobError;
/// use serde_json::json;
///
/// let error = CallError::new("JOB_NOT_FOUND", "told")
///     .with_details(json!({ "job": "jobs.0.0123456789abcdef0123456789abcdef" }));
/// assert!(matches!(JobError::of(&error), Some(JobError::NotFound { job }) if job.queue() == "jobs"));
/// assert_eq!(JobError::of(&CallError::execution("no connection")), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobError {
    /// The key was submitted before with another input (`KEY_CONFLICT`).
    Conflict {
        /// The job of the key.
        job: JobId,
    },
    /// There is no such job, its retention has expired, or it belongs to another identity (`JOB_NOT_FOUND`).
    NotFound {
        /// The id that was asked for.
        job: JobId,
    },
    /// The job was cancelled (`JOB_CANCELLED`).
    Cancelled {
        /// The job.
        job: JobId,
    },
}

impl JobError {
    /// Reads the error of a job from a [`CallError`]. `None` if it is another error.
    pub fn of(error: &CallError) -> Option<Self> {
        let job = error.details().get("job").and_then(Value::as_str)?.parse().ok()?;
        match error.code().as_str() {
            KEY_CONFLICT => Some(Self::Conflict { job }),
            JOB_NOT_FOUND => Some(Self::NotFound { job }),
            JOB_CANCELLED => Some(Self::Cancelled { job }),
            _ => None,
        }
    }

    fn job(&self) -> &JobId {
        match self {
            Self::Conflict { job } | Self::NotFound { job } | Self::Cancelled { job } => job,
        }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { job } => {
                write!(f, "the key was submitted with another input before, as job `{job}`: use another key")
            }
            Self::NotFound { job } => {
                write!(f, "there is no job `{job}`: its retention may be over, or the id may be another's")
            }
            Self::Cancelled { job } => write!(f, "the job `{job}` was cancelled"),
        }
    }
}

impl std::error::Error for JobError {}

impl From<JobError> for CallError {
    fn from(error: JobError) -> Self {
        let code = match error {
            JobError::Conflict { .. } => KEY_CONFLICT,
            JobError::NotFound { .. } => JOB_NOT_FOUND,
            JobError::Cancelled { .. } => JOB_CANCELLED,
        };
        Self::new(code, error.to_string()).with_details(json!({ "job": error.job().as_str() }))
    }
}
