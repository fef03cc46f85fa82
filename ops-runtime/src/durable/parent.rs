//! The job of which a job is a step.

use crate::durable::engine::Engine;
use crate::durable::error::UNREADABLE;
use crate::durable::record::{JobRecord, Outcome, Stored};

/// How often in a row the job of a step is unknown, before the step is cancelled: a server that has just become the leader may
/// not show the job for a moment.
const GONE: u32 = 3;

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
    /// True if the step ends, since no job waits for it any more. `gone` counts how often in a row the job was unknown.
    pub(super) fn ends(&self, gone: &mut u32) -> bool {
        match self {
            Self::Waits => *gone = 0,
            Self::Gone if *gone < GONE => *gone = gone.saturating_add(1),
            Self::Gone | Self::Cancelled => return true,
            Self::Unknown => {}
        }
        false
    }

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
