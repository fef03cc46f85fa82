//! The record of a schedule.

use serde::{Deserialize, Serialize};

use super::JobRecord;

/// A schedule: its times, and the job that is submitted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ScheduleRecord {
    /// The name.
    pub name: String,
    /// When: a cron expression of five or six fields in UTC, or `@every 90000ms`.
    pub when: String,
    /// When the schedule was made; intervals count from here.
    pub since: u64,
    /// The job that is submitted each time. Its id gives the queue and the lane; each submit has a new token.
    pub job: JobRecord,
}

impl ScheduleRecord {
    /// True if two records have the same JSON, or both are missing.
    pub(crate) fn is_same(one: Option<&Self>, other: Option<&Self>) -> bool {
        serde_json::to_value(one).ok() == serde_json::to_value(other).ok()
    }
}
