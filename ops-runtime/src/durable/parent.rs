//! The job of which a job is a step.

use crate::durable::engine::Engine;
use crate::durable::error::UNREADABLE;
use crate::durable::record::{JobRecord, Outcome, Stored};

/// The state of the job of a step.
pub(super) enum Parent {
    /// It waits for the step, or ended without it, or its record cannot be read; or this job is not a step.
    Waits,
    /// It was cancelled, or is gone: a later job has its id.
    Cancelled,
    /// It is unknown: it has ended, and its retention has expired.
    Gone,
    /// It cannot be read now.
    Unknown,
}

impl Parent {
    /// The state of the job of which a job is a step.
    pub(super) async fn of(engine: &dyn Engine, job: &JobRecord) -> Self {
        let Some(parent) = &job.parent else { return Self::Waits };
        let (id, operation) = (job.id.as_str(), &job.operation);
        match engine.read_known(parent).await {
            Ok(Some(stored)) if is_cancelled(&stored) || !job.is_step_of(&stored) => Self::Cancelled,
            Ok(Some(_)) => Self::Waits,
            Ok(None) => Self::Gone,
            // It will not be readable later either, and is not known to be cancelled.
            Err(error) if error.details().get(UNREADABLE).is_some() => {
                tracing::warn!(%error, job = id, operation, "the job of a step is not understood");
                Self::Waits
            }
            Err(error) => {
                tracing::warn!(%error, job = id, operation, "the job of a step can't be read");
                Self::Unknown
            }
        }
    }
}

pub(super) fn is_cancelled(stored: &Stored) -> bool {
    matches!(stored, Stored::Ended(ended) if matches!(ended.outcome, Outcome::Cancelled))
}
