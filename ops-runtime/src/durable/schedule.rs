//! Schedules: jobs that are submitted again and again.
//!
//! An engine only keeps schedules. There is always one job for the next time of each, with that time as its start. Every
//! worker submits the one after it when its time has come, under an id made of the schedule and the time, so that any
//! number of workers submit it once. If no worker runs at that time, the job runs late, and what was due meanwhile is left
//! out.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use croner::parser::{CronParser, Seconds};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::durable::id::JobId;
use crate::durable::job::time;
use crate::durable::jobs::{Jobs, Origin};
use crate::durable::options::{SubmitOptions, When};
use crate::durable::record::{Ended, JobRecord, Outcome, ScheduleRecord};
use crate::durable::retry::millis;
use crate::run::payload::to_text;
use crate::{Call, CallError, ErrorCode};

/// How often workers look for new schedules.
const LOOK: u64 = 5_000;
/// The shortest interval.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest pattern, in bytes.
const LONGEST: usize = 256;
const EVERY: &str = "@every ";

/// When the jobs of a schedule are due.
///
/// ```
/// use std::time::Duration;
/// use ops_runtime::durable::Schedule;
///
/// let mornings = Schedule::cron("30 8 * * MON-FRI")?;
/// assert_eq!(mornings.to_string(), "30 8 * * MON-FRI");
/// assert_eq!(Schedule::every(Duration::from_secs(90)).to_string(), "@every 90000ms");
/// assert!(Schedule::cron("61 * * * *").is_err());
/// # Ok::<(), ops_runtime::CallError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Cron(String),
    Every(Duration),
}

impl Schedule {
    /// At the times that match a cron pattern, in UTC: minute, hour, day of the month, month, day of the week; a field
    /// before them has seconds.
    ///
    /// # Errors
    /// A `VALIDATION_ERROR` if the pattern is none.
    pub fn cron(pattern: impl Into<String>) -> Result<Self, CallError> {
        let pattern = pattern.into();
        parse(&pattern)?;
        Ok(Self(Kind::Cron(pattern)))
    }

    /// Each time that the interval has passed, at least a second, counted from when the schedule is made.
    pub fn every(interval: Duration) -> Self {
        Self(Kind::Every(interval.max(SHORTEST)))
    }

    /// The first time after `after`, in milliseconds. `None` if there is none.
    fn next(&self, since: u64, after: u64) -> Option<u64> {
        match &self.0 {
            Kind::Every(interval) => {
                let interval = millis(*interval).max(1);
                let passed = after.saturating_sub(since) / interval;
                since.checked_add(interval.checked_mul(passed.checked_add(1)?)?)
            }
            Kind::Cron(pattern) => {
                let after = DateTime::<Utc>::from_timestamp_millis(i64::try_from(after).ok()?)?;
                let next = parse(pattern).ok()?.find_next_occurrence(&after, false).ok()?;
                u64::try_from(next.timestamp_millis()).ok()
            }
        }
    }
}

fn parse(pattern: &str) -> Result<croner::Cron, CallError> {
    let parsed = if pattern.len() > LONGEST {
        Err("it is too long".to_owned())
    } else {
        let parser = CronParser::builder().seconds(Seconds::Optional).build();
        parser.parse(pattern).map_err(|error| error.to_string())
    };
    parsed.map_err(|error| invalid(format!("`{}` is no cron pattern: {error}", pattern.escape_debug())))
}

fn invalid(message: String) -> CallError {
    CallError::new(ErrorCode::ValidationError, message)
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Cron(pattern) => f.write_str(pattern),
            Kind::Every(interval) => write!(f, "{EVERY}{}ms", millis(*interval)),
        }
    }
}

impl FromStr for Schedule {
    type Err = CallError;

    fn from_str(text: &str) -> Result<Self, CallError> {
        let Some(interval) = text.strip_prefix(EVERY) else { return Self::cron(text) };
        let millis = interval.strip_suffix("ms").and_then(|millis| millis.parse().ok());
        let millis = millis
            .ok_or_else(|| invalid(format!("`{}` is no interval: write `@every 5000ms`", text.escape_debug())))?;
        Ok(Self::every(Duration::from_millis(millis)))
    }
}

impl ScheduleRecord {
    /// When the next job is due after a time. `None` if there is none.
    pub fn next_after(&self, after: SystemTime) -> Option<SystemTime> {
        self.next(millis(after.duration_since(UNIX_EPOCH).unwrap_or_default())).map(time)
    }

    fn next(&self, after: u64) -> Option<u64> {
        self.when.parse::<Schedule>().ok()?.next(self.since, after)
    }

    /// The job that is due at a time.
    fn job_at(&self, at: u64) -> JobRecord {
        let mut job = self.job.clone();
        let (since, due) = (self.since.to_string(), at.to_string());
        job.id = JobId::of_key(job.id.queue(), job.id.lane(), &["schedule", &self.name, &since, &due]);
        let timeout = job.deadline.map(|deadline| deadline.saturating_sub(job.submitted));
        job.deadline = timeout.map(|timeout| at.saturating_add(timeout));
        job.not_before = Some(at);
        job.metadata.insert("scheduledAt".to_owned(), at.into());
        job
    }
}

/// Schedules.
impl Jobs {
    /// Submits a job of an operation at each time of a schedule, in the place of a schedule of that name.
    ///
    /// The handler finds the time, in milliseconds since the Unix epoch, in the metadata as `scheduledAt`. A timeout of the
    /// options counts from that time.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` if the schedule has no next time, if the input is too big, or if the options have a key, a start
    /// or a deadline at a fixed time. `ACCESS_DENIED` if the name is another's. Otherwise the error of the engine.
    pub async fn schedule<Op: Call>(
        &self,
        name: &str,
        schedule: Schedule,
        input: impl Into<Op::Input>,
        options: SubmitOptions,
    ) -> Result<(), CallError> {
        let input = to_text(&input.into()).map_err(|error| error.with_operation(Op::SPEC.id.clone()))?;
        self.put_schedule(name, &schedule, &Op::SPEC.id, input, options).await
    }

    /// Submits a job of an operation by its id at each time of a schedule.
    ///
    /// # Errors
    /// Those of [`schedule`](Self::schedule).
    pub async fn schedule_by_id(
        &self,
        name: &str,
        schedule: Schedule,
        id: &str,
        input: Value,
        options: SubmitOptions,
    ) -> Result<(), CallError> {
        self.put_schedule(name, &schedule, id, to_text(&input)?, options).await
    }

    /// The schedules, in the order of their names.
    ///
    /// # Errors
    /// That of the engine.
    pub async fn schedules(&self) -> Result<Vec<ScheduleRecord>, CallError> {
        let mut schedules = self.engine().schedules().await?;
        schedules.retain(|schedule| self.sees(schedule.job.owner()));
        Ok(schedules)
    }

    /// Removes a schedule, and cancels its next job unless that has started. Returns `false` if there is none of the name.
    ///
    /// # Errors
    /// That of the engine.
    pub async fn unschedule(&self, name: &str) -> Result<bool, CallError> {
        let Some(schedule) = self.schedules().await?.into_iter().find(|schedule| schedule.name == name) else {
            return Ok(false);
        };
        let is_removed = self.engine().remove_schedule(name).await?;
        self.close_next(&schedule).await?;
        Ok(is_removed)
    }

    async fn put_schedule(
        &self,
        name: &str,
        schedule: &Schedule,
        operation: &str,
        input: Box<RawValue>,
        options: SubmitOptions,
    ) -> Result<(), CallError> {
        if options.key.is_some() || options.start.is_some() || matches!(options.deadline, Some(When::At(_))) {
            let message =
                format!("the schedule `{name}` submits many jobs, which can't share a key, a start or a deadline");
            return Err(invalid(message));
        }
        let known = self.engine().schedules().await?.into_iter().find(|known| known.name == name);
        if let Some(known) = &known
            && !self.sees(known.job.owner())
        {
            let message = format!("the name `{name}` is taken by a schedule of another");
            return Err(CallError::new(ErrorCode::AccessDenied, message));
        }
        let job = self.record(operation, input, options, &Origin::default())?;
        let now = self.engine().now();
        let record = ScheduleRecord { name: name.to_owned(), when: schedule.to_string(), since: now, job };
        let next = record.next(now).ok_or_else(|| invalid(format!("the schedule `{schedule}` has no next time")))?;
        self.engine().keep_schedule(&record).await?;
        if let Some(known) = known {
            self.close_next(&known).await?;
        }
        self.engine().submit(&record.job_at(next)).await?;
        Ok(())
    }

    /// Cancels the next job of a schedule that is no more.
    async fn close_next(&self, schedule: &ScheduleRecord) -> Result<(), CallError> {
        let now = self.engine().now();
        if let Some(next) = schedule.next(now) {
            let job = schedule.job_at(next);
            self.engine().close(&job.id, &Ended::new(&job, now, 0, Outcome::Cancelled)).await?;
        }
        Ok(())
    }
}

/// Submits the next job of each schedule, for ever.
pub(super) async fn submit_due(jobs: Jobs) {
    // The last job of each schedule that is known to be submitted.
    let mut submitted: HashMap<String, JobId> = HashMap::new();
    loop {
        let now = jobs.engine().now();
        let mut wake = now.saturating_add(LOOK);
        let schedules = jobs.engine().schedules().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the schedules could not be read");
            Vec::new()
        });
        submitted.retain(|name, _| schedules.iter().any(|schedule| schedule.name == *name));
        for schedule in schedules {
            let Some(next) = schedule.next(now) else { continue };
            wake = wake.min(next);
            let job = schedule.job_at(next);
            if submitted.get(&schedule.name) == Some(&job.id) {
                continue;
            }
            match jobs.engine().submit(&job).await {
                Ok(_) => drop(submitted.insert(schedule.name, job.id)),
                Err(error) => tracing::warn!(%error, schedule = schedule.name, "the next job was not submitted"),
            }
        }
        let wait = Duration::from_millis(wake.saturating_sub(jobs.engine().now()).max(10));
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_times() {
        // 2026-01-01T00:00:00Z, a Thursday.
        const NEW_YEAR: u64 = 1_767_225_600_000;
        const DAY: u64 = 24 * 60 * 60 * 1000;
        for (pattern, after, expected) in [
            ("0 0 * * *", NEW_YEAR, Some(NEW_YEAR + DAY)),
            ("0 0 * * *", NEW_YEAR - 1, Some(NEW_YEAR)),
            ("30 8 * * MON-FRI", NEW_YEAR + 2 * DAY, Some(NEW_YEAR + 4 * DAY + (8 * 60 + 30) * 60_000)),
            ("*/10 * * * * *", NEW_YEAR + 1, Some(NEW_YEAR + 10_000)),
            ("0 0 30 2 *", NEW_YEAR, None),
            ("@every 90000ms", NEW_YEAR + 7, Some(NEW_YEAR + 7 + 90_000)),
        ] {
            let schedule: Schedule = pattern.parse().unwrap();
            assert_eq!(schedule.next(NEW_YEAR + 7, after), expected, "{pattern}");
            assert_eq!(schedule.to_string(), pattern);
        }
        assert_eq!(Schedule::every(SHORTEST).next(1_000, u64::MAX), None);
        assert_eq!(Schedule::every(SHORTEST).next(1_000, 5_500), Some(6_000));
        assert_eq!(Schedule::every(Duration::ZERO), Schedule::every(SHORTEST));
    }

    #[test]
    fn what_is_no_schedule() {
        for text in ["", "* * *", "61 * * * *", "@every 5", "@every -1ms", "every day", &"* ".repeat(300)] {
            assert_eq!(text.parse::<Schedule>().unwrap_err().code(), &ErrorCode::ValidationError, "{text}");
        }
    }
}
