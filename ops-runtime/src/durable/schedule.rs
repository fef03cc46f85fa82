//! Schedules: jobs that are submitted repeatedly.
//!
//! An engine only stores schedules. For each, there is always one job for its next time, with that time as its start.
//! When the time has come, every worker submits the following job, under an id made of the schedule and the time, so
//! that any number of workers submit it once. If no worker runs at that time, the job runs late, and the times that
//! have passed meanwhile are skipped.

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
use crate::durable::record::{Ended, JobRecord, Outcome, ScheduleRecord, Stored, Tries};
use crate::durable::retry::LONGEST;
use crate::model::clock::millis;
use crate::run::payload::to_text;
use crate::{Call, CallError, ErrorCode};

/// How often workers look for new schedules.
const LOOK: u64 = 5_000;
/// For how many of the last times of a schedule its jobs are looked up when it is removed.
const PASSED: usize = 16;
/// After how long a missing schedule is looked up again: a new leader of a cluster may not show it at once.
const BEHIND: Duration = Duration::from_millis(500);
/// How often the setting of a schedule is retried that other processes set concurrently.
const TIMES: usize = 20;
/// The shortest interval.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 256;
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
    /// A schedule of the times that match a cron pattern, in UTC: minute, hour, day of the month, month, day of the
    /// week; optionally with a field for seconds before them.
    ///
    /// # Errors
    /// A `VALIDATION_ERROR` if the pattern is invalid.
    pub fn cron(pattern: impl Into<String>) -> Result<Self, CallError> {
        let pattern = pattern.into();
        parse(&pattern)?;
        Ok(Self(Kind::Cron(pattern)))
    }

    /// A schedule of equal intervals, at least a second each, counted from when it is first set.
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

impl Schedule {
    /// The last time before `before`, in milliseconds. `None` if the schedule was not made by then.
    fn last_before(&self, since: u64, before: u64) -> Option<u64> {
        let last = match &self.0 {
            Kind::Every(interval) => {
                let interval = millis(*interval).max(1);
                let passed = before.checked_sub(1)?.checked_sub(since)? / interval;
                since.checked_add(interval.checked_mul(passed)?)?
            }
            Kind::Cron(pattern) => {
                // Patterns have whole seconds.
                let until = DateTime::<Utc>::from_timestamp_millis(i64::try_from(before).ok()?.checked_sub(1)?)?;
                let last = parse(pattern).ok()?.find_previous_occurrence(&until, true).ok()?;
                u64::try_from(last.timestamp_millis()).ok()?
            }
        };
        Some(last).filter(|last| *last > since)
    }
}

fn parse(pattern: &str) -> Result<croner::Cron, CallError> {
    let parsed = if pattern.len() > MAX_PATTERN {
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

    /// The last times until `now`, newest first, up to `most`.
    fn passed(&self, now: u64, most: usize) -> Vec<u64> {
        let Ok(schedule) = self.when.parse::<Schedule>() else { return Vec::new() };
        let before = |at: &u64| schedule.last_before(self.since, *at);
        std::iter::successors(schedule.last_before(self.since, now.saturating_add(1)), before).take(most).collect()
    }

    /// True if it submits the same jobs at the same times, regardless of when it was made.
    fn repeats(&self, known: &Self) -> bool {
        let mut then = self.clone();
        let (own, job) = (&self.job, &mut then.job);
        job.deadline = own.deadline.map(|at| at.saturating_sub(own.submitted).saturating_add(known.job.submitted));
        job.submitted = known.job.submitted;
        if (own.id.queue(), own.id.lane()) == (known.job.id.queue(), known.job.id.lane()) {
            job.id = known.job.id.clone();
        }
        then.since = known.since;
        ScheduleRecord::is_same(Some(&then), Some(known))
    }

    /// The job that is due at a time.
    fn job_at(&self, at: u64) -> JobRecord {
        let mut job = self.job.clone();
        let (since, due) = (self.since.to_string(), at.to_string());
        job.id = JobId::of_key(job.id.queue(), job.id.lane(), &["schedule", &self.name, &since, &due]);
        let timeout = job.deadline.map(|deadline| deadline.saturating_sub(job.submitted));
        job.deadline = timeout.map(|timeout| at.saturating_add(timeout));
        // As if it were submitted then, so that a retried dead letter has the same time to its deadline.
        (job.submitted, job.not_before) = (at, Some(at));
        job.metadata.insert("scheduledAt".to_owned(), at.into());
        job
    }
}

/// Schedules.
impl Jobs {
    /// Submits a job of an operation at each time of a schedule. Replaces a schedule with that name: its next job is
    /// cancelled, but jobs that are already due, because no worker ran, are kept.
    ///
    /// Setting an equal schedule again changes nothing, so every process of a system may do so when it starts.
    /// Intervals still count from when it was made.
    ///
    /// The handler finds the time, in milliseconds since the Unix epoch, in the metadata as `scheduledAt`. A timeout in
    /// the options counts from that time.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` if the schedule has no next time, if the input is too large, or if the options have a key, a
    /// start or a deadline at a fixed time. `ACCESS_DENIED` if the name belongs to another identity. Otherwise the
    /// error of the engine.
    pub async fn schedule<Op: Call>(
        &self,
        name: &str,
        schedule: Schedule,
        input: impl Into<Op::Input>,
        options: SubmitOptions,
    ) -> Result<(), CallError> {
        let input = to_text(&input.into()).map_err(|error| error.with_operation(Op::SPEC.id.clone()))?;
        let origin = Origin { retry: Op::SPEC.retry(), ..Origin::default() };
        self.put_schedule(name, &schedule, &Op::SPEC.id, input, options, origin).await
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
        self.put_schedule(name, &schedule, id, to_text(&input)?, options, Origin::default()).await
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

    /// Removes a schedule, and cancels its next job. The jobs of its last 16 times that have not started are cancelled,
    /// too. Returns `false` if there is no schedule with the name.
    ///
    /// # Errors
    /// That of the engine.
    pub async fn unschedule(&self, name: &str) -> Result<bool, CallError> {
        let Some(schedule) = self.schedules().await?.into_iter().find(|schedule| schedule.name == name) else {
            return Ok(false);
        };
        let is_removed = self.engine().remove_schedule(name).await?;
        self.close_next(&schedule).await?;
        self.close_passed(&schedule).await?;
        Ok(is_removed)
    }

    async fn put_schedule(
        &self,
        name: &str,
        schedule: &Schedule,
        operation: &str,
        input: Box<RawValue>,
        options: SubmitOptions,
        origin: Origin<'_>,
    ) -> Result<(), CallError> {
        if options.key.is_some() || options.start.is_some() || matches!(options.deadline, Some(When::At(_))) {
            let message =
                format!("the schedule `{name}` submits many jobs, which can't share a key, a start or a deadline");
            return Err(invalid(message));
        }
        let job = self.record(operation, input, options, &origin)?;
        let now = self.engine().now();
        let record = ScheduleRecord { name: name.to_owned(), when: schedule.to_string(), since: now, job };
        let next = record.next(now).filter(|next| next.saturating_sub(now) <= millis(LONGEST));
        if next.is_none() {
            return Err(invalid(format!("the schedule `{schedule}` has no next time")));
        }
        for _ in 0..TIMES {
            let known = self.engine().schedules().await?.into_iter().find(|known| known.name == name);
            if let Some(known) = &known {
                if !self.sees(known.job.owner()) {
                    let message = format!("the name `{name}` is taken by a schedule of another");
                    return Err(CallError::new(ErrorCode::AccessDenied, message));
                }
                if record.repeats(known) {
                    return self.submit_next(known, now).await;
                }
            }
            if self.engine().keep_schedule(&record, known.as_ref()).await? {
                // Only now: the job of a schedule that stays must run. If this fails, it runs once too often.
                if let Some(known) = known {
                    self.close_next(&known).await?;
                }
                return self.submit_next(&record, now).await;
            }
        }
        Err(CallError::execution(format!("the schedule `{name}` is changed by others all the time: try again")))
    }

    async fn submit_next(&self, schedule: &ScheduleRecord, now: u64) -> Result<(), CallError> {
        match schedule.next(now) {
            Some(next) => self.engine().submit(&schedule.job_at(next)).await.map(drop),
            None => Ok(()),
        }
    }

    /// Cancels the next job of a removed schedule.
    async fn close_next(&self, schedule: &ScheduleRecord) -> Result<(), CallError> {
        match schedule.next(self.engine().now()) {
            Some(next) => self.close_at(schedule, next).await,
            None => Ok(()),
        }
    }

    /// Cancels the due jobs of a schedule that no worker has.
    async fn close_passed(&self, schedule: &ScheduleRecord) -> Result<(), CallError> {
        for at in schedule.passed(self.engine().now(), PASSED) {
            let id = schedule.job_at(at).id;
            if let Some(Stored::Open { tries, .. }) = self.engine().read(&id).await?
                && tries == Tries::default()
                && !self.engine().is_running(&id).await?
                // A busy worker may respond late.
                && !self.engine().is_running(&id).await?
            {
                self.close_at(schedule, at).await?;
            }
        }
        Ok(())
    }

    async fn close_at(&self, schedule: &ScheduleRecord, at: u64) -> Result<(), CallError> {
        let (job, now) = (schedule.job_at(at), self.engine().now());
        self.engine().close(&job.id, &Ended::new(&job, now, 0, Outcome::Cancelled)).await.map(drop)
    }
}

/// Submits the next job of each schedule, in an endless loop.
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
        if let Some(next) = submit_all(&jobs, schedules, &mut submitted, now).await {
            wake = wake.min(next);
        }
        let wait = Duration::from_millis(wake.saturating_sub(jobs.engine().now()).max(10));
        tokio::time::sleep(wait).await;
    }
}

/// Submits the next job of each of these schedules, unless it is known to be submitted. Returns when the first is due.
///
/// A schedule may have been removed or replaced meanwhile by a process that found no job of it to cancel. So the
/// schedules are read once more, and the jobs of removed ones are cancelled here.
async fn submit_all(
    jobs: &Jobs,
    schedules: Vec<ScheduleRecord>,
    submitted: &mut HashMap<String, JobId>,
    now: u64,
) -> Option<u64> {
    let (mut first, mut new) = (None, Vec::new());
    for schedule in schedules {
        let Some(next) = schedule.next(now) else { continue };
        first = Some(first.map_or(next, |first: u64| first.min(next)));
        let job = schedule.job_at(next);
        if submitted.get(&schedule.name) == Some(&job.id) {
            continue;
        }
        match jobs.engine().submit(&job).await {
            Ok(known) => {
                submitted.insert(schedule.name.clone(), job.id);
                new.extend(known.is_none().then_some((schedule, next)));
            }
            Err(error) => tracing::warn!(%error, schedule = schedule.name, "the next job was not submitted"),
        }
    }
    if let Err(error) = close_gone(jobs, new).await {
        tracing::warn!(%error, "jobs of schedules that may be gone were not cancelled");
    }
    first
}

/// Cancels the jobs at these times of removed schedules: those that two reads do not find.
async fn close_gone(jobs: &Jobs, mut new: Vec<(ScheduleRecord, u64)>) -> Result<(), CallError> {
    for wait in [Duration::ZERO, BEHIND] {
        if new.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(wait).await;
        let kept = jobs.engine().schedules().await?;
        new.retain(|(schedule, _)| {
            let known = kept.iter().find(|kept| kept.name == schedule.name);
            !ScheduleRecord::is_same(known, Some(schedule))
        });
    }
    for (schedule, at) in new {
        tracing::info!(
            schedule = schedule.name,
            at,
            "the next job of a schedule is cancelled: it was removed or replaced"
        );
        jobs.close_at(&schedule, at).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_schedule_that_goes_while_its_job_is_submitted() {
        let jobs = Jobs::in_memory();
        let far = |hours: u64| Schedule::every(Duration::from_secs(hours * 3_600));
        let set = async |name: &str, hours| {
            jobs.schedule_by_id(name, far(hours), "test.any", Value::Null, SubmitOptions::new()).await.unwrap();
        };
        for (name, hours) in [("stays", 1), ("replaced", 1), ("removed", 1)] {
            set(name, hours).await;
        }
        let read = jobs.schedules().await.unwrap();
        // With a time that is not submitted yet.
        let now = jobs.engine().now() + 4_000_000;
        set("replaced", 2).await;
        assert!(jobs.unschedule("removed").await.unwrap());
        assert_eq!(jobs.stats("jobs").await.unwrap().open, 2);
        submit_all(&jobs, read, &mut HashMap::new(), now).await;
        assert_eq!(jobs.stats("jobs").await.unwrap().open, 3);
    }

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
        for (pattern, now, expected) in [
            ("0 0 * * *", NEW_YEAR + 3 * DAY, vec![NEW_YEAR + 3 * DAY, NEW_YEAR + 2 * DAY]),
            ("0 0 * * *", NEW_YEAR + DAY + 5, vec![NEW_YEAR + DAY]),
            ("@every 1000ms", NEW_YEAR + 2_001, vec![NEW_YEAR + 2_000, NEW_YEAR + 1_000]),
            ("@every 1000ms", NEW_YEAR + 9_000, vec![NEW_YEAR + 9_000, NEW_YEAR + 8_000]),
            ("@every 1000ms", NEW_YEAR + 999, vec![]),
            ("@every 1000ms", 0, vec![]),
        ] {
            let id = "jobs.0.0123456789abcdef0123456789abcdef".parse().unwrap();
            let job = JobRecord::new(id, "test.any", RawValue::NULL.to_owned());
            let record = ScheduleRecord { name: "a".into(), when: pattern.into(), since: NEW_YEAR, job };
            assert_eq!(record.passed(now, 2), expected, "{pattern} {now}");
        }
    }

    #[test]
    fn the_time_of_a_job_counts_from_its_own() {
        let id = "jobs.0.0123456789abcdef0123456789abcdef".parse().unwrap();
        let mut job = JobRecord::new(id, "test.any", RawValue::NULL.to_owned());
        (job.submitted, job.deadline) = (1_000, Some(4_000));
        let record = ScheduleRecord { name: "a".into(), when: "@every 1000ms".into(), since: 1_000, job };
        let job = record.job_at(9_000);
        assert_eq!((job.submitted, job.not_before, job.deadline), (9_000, Some(9_000), Some(12_000)));
    }

    #[test]
    fn what_is_no_schedule() {
        for text in ["", "* * *", "61 * * * *", "@every 5", "@every -1ms", "every day", &"* ".repeat(300)] {
            assert_eq!(text.parse::<Schedule>().unwrap_err().code(), &ErrorCode::ValidationError, "{text}");
        }
    }
}
