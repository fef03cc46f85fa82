//! Schedules: jobs that are submitted repeatedly.
//!
//! An engine only stores schedules. For each, there is always one job for its next time, with that time as its start.
//! When the time has come, every worker submits the following job, under an id made of the schedule and the time, so
//! that any number of workers submit it once. If no worker runs at that time, the job runs late, and the times that
//! have passed meanwhile are skipped, with a warning in the log.

mod due;

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use croner::parser::{CronParser, Seconds, Year};
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) use self::due::submit_due;
use crate::durable::error::UNREADABLE;
use crate::durable::id::JobId;
use crate::durable::job::time;
use crate::durable::jobs::{Jobs, Origin};
use crate::durable::options::{SubmitOptions, When};
use crate::durable::record::{Ended, JobRecord, Outcome, ScheduleRecord, Stored};
use crate::durable::retry::LONGEST;
use crate::model::clock::millis;
use crate::run::payload::to_text;
use crate::{Call, CallError, ErrorCode};

/// How often workers look for new schedules, in milliseconds.
const LOOK: u64 = 5_000;
/// The number of past times of a schedule whose jobs are looked up, when it is removed and after a pause of all workers.
const PASSED: usize = 16;
/// How often the setting or removing of a schedule is retried that other processes set concurrently.
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
    /// A schedule of the times that match a cron pattern, in UTC by the engine's clock: minute, hour, day of the month,
    /// month, day of the week; optionally with a field for seconds before them.
    ///
    /// # Errors
    /// A `VALIDATION_ERROR` if the pattern is invalid.
    pub fn cron(pattern: impl Into<String>) -> Result<Self, CallError> {
        let pattern = pattern.into();
        // A pattern with a year has a last time.
        parse(&pattern, Year::Disallowed)?;
        Ok(Self(Kind::Cron(pattern)))
    }

    /// A schedule of equal intervals, at least a second each, counted from when it is first set.
    pub fn every(interval: Duration) -> Self {
        Self(Kind::Every(interval.max(SHORTEST)))
    }

    /// A schedule of a record. Its pattern is not checked: records of earlier versions may have a year, and go on until their
    /// last time.
    fn stored(text: &str) -> Result<Self, CallError> {
        let Some(interval) = text.strip_prefix(EVERY) else { return Ok(Self(Kind::Cron(text.to_owned()))) };
        let millis = interval.strip_suffix("ms").and_then(|millis| millis.parse().ok());
        let millis = millis
            .ok_or_else(|| invalid(format!("`{}` is no interval: write `@every 5000ms`", text.escape_debug())))?;
        Ok(Self::every(Duration::from_millis(millis)))
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
                let next = parse(pattern, Year::Optional).ok()?.find_next_occurrence(&utc(after)?, false).ok()?;
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
                let until = utc(before.checked_sub(1)?)?;
                let last = parse(pattern, Year::Optional).ok()?.find_previous_occurrence(&until, true).ok()?;
                u64::try_from(last.timestamp_millis()).ok()?
            }
        };
        Some(last).filter(|last| *last > since)
    }
}

fn parse(pattern: &str, year: Year) -> Result<croner::Cron, CallError> {
    let parsed = if pattern.len() > MAX_PATTERN {
        Err("it is too long".to_owned())
    } else {
        let parser = CronParser::builder().seconds(Seconds::Optional).year(year).build();
        parser.parse(pattern).map_err(|error| error.to_string())
    };
    parsed.map_err(|error| invalid(format!("`{}` is no cron pattern: {error}", pattern.escape_debug())))
}

/// A time in milliseconds since the Unix epoch. `None` if it is too late for dates.
fn utc(at: u64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(i64::try_from(at).ok()?)
}

/// A time for a schedule after that of an earlier one with the same name. Not much later than now: if the earlier one
/// was made while the server's clock was wrong, its time may be years away, and intervals count from it.
fn following(earlier: u64, now: u64) -> u64 {
    earlier.saturating_add(1).min(now.saturating_add(LOOK))
}

fn changes(name: &str) -> CallError {
    CallError::execution(format!("the schedule `{name}` is changed by others all the time: try again"))
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
        match Self::stored(text)? {
            Self(Kind::Cron(pattern)) => Self::cron(pattern),
            every => Ok(every),
        }
    }
}

impl ScheduleRecord {
    /// When the next job is due after a time. `None` if there is none.
    pub fn next_after(&self, after: SystemTime) -> Option<SystemTime> {
        self.next(millis(after.duration_since(UNIX_EPOCH).unwrap_or_default())).map(time)
    }

    fn next(&self, after: u64) -> Option<u64> {
        Schedule::stored(&self.when).ok()?.next(self.since, after)
    }

    /// The last times until `now`, newest first, up to `most`.
    fn passed(&self, now: u64, most: usize) -> Vec<u64> {
        let Ok(schedule) = Schedule::stored(&self.when) else { return Vec::new() };
        let before = |at: &u64| schedule.last_before(self.since, *at);
        std::iter::successors(schedule.last_before(self.since, now.saturating_add(1)), before).take(most).collect()
    }

    /// The deadline of its job, if the timeout counts from a time. The latest possible deadline means no deadline, and stays so.
    fn deadline_from(&self, at: u64) -> Option<u64> {
        let from_then = |deadline: u64| match deadline {
            u64::MAX => u64::MAX,
            deadline => at.saturating_add(deadline.saturating_sub(self.job.submitted)),
        };
        self.job.deadline.map(from_then)
    }

    /// True if it submits the same jobs at the same times, regardless of when it was made.
    fn repeats(&self, known: &Self) -> bool {
        let mut then = self.clone();
        let (own, job) = (&self.job, &mut then.job);
        job.deadline = self.deadline_from(known.job.submitted);
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
        job.deadline = self.deadline_from(at);
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
    /// That of the engine. Then call this again: until the schedule is removed, the call does all of it.
    pub async fn unschedule(&self, name: &str) -> Result<bool, CallError> {
        let mut closed = None;
        for _ in 0..TIMES {
            let found = self.schedules().await?.into_iter().find(|schedule| schedule.name == name);
            let schedule = match (found, closed.take()) {
                (None, None) => return Ok(false),
                // Another process has removed it, or a new leader does not show it yet: its jobs are cancelled, so it goes.
                (None, Some(known)) => known,
                (Some(found), known) if ScheduleRecord::is_same(known.as_ref(), Some(&found)) => found,
                // First its jobs: if one cannot be cancelled, the schedule stays, and another call finds them. This may
                // take seconds, in which another process may replace the schedule: the new one has jobs of its own.
                (Some(found), _) => {
                    self.close_jobs(&found).await?;
                    closed = Some(found);
                    continue;
                }
            };
            self.schedule_from(following(schedule.since, self.engine().now()));
            self.engine().remove_schedule(name).await?;
            // Those that were submitted meanwhile. The worker that submits one cancels it, too.
            self.close_jobs(&schedule).await?;
            return Ok(true);
        }
        Err(changes(name))
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
        // The ids of the jobs are made of the name and this time. With the time of a schedule that was removed, or that
        // this one replaces, the next job would have the id of a cancelled one, and would not be submitted.
        let since = now.max(self.earliest_schedule());
        let mut record = ScheduleRecord { name: name.to_owned(), when: schedule.to_string(), since, job };
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
                record.since = record.since.max(following(known.since, now));
            }
            if self.engine().keep_schedule(&record, known.as_ref()).await? {
                // Only now: the job of a schedule that stays must run. If this fails, it runs once too often.
                if let Some(known) = known {
                    self.close_next(&known).await?;
                }
                return self.submit_next(&record, now).await;
            }
        }
        Err(changes(name))
    }

    async fn submit_next(&self, schedule: &ScheduleRecord, now: u64) -> Result<(), CallError> {
        let Some(next) = schedule.next(now) else { return Ok(()) };
        if self.engine().submit(&schedule.job_at(next)).await?.is_none() {
            self.tell_skipped(schedule, None, now).await;
        }
        Ok(())
    }

    /// Logs the times of a schedule that were skipped: those until `now` that come after the last time with a job. `known` is a
    /// job that is known to be submitted, so that the engine need not be asked for it.
    ///
    /// Only the process that has submitted the next job calls this, so each skipped time is logged once.
    async fn tell_skipped(&self, schedule: &ScheduleRecord, known: Option<&JobId>, now: u64) {
        let mut skipped = Vec::new();
        for at in schedule.passed(now, PASSED) {
            let id = schedule.job_at(at).id;
            // If the job cannot be read, the time may have one, so it does not count as skipped.
            if known == Some(&id) || !matches!(self.engine().read(&id).await, Ok(None)) {
                break;
            }
            skipped.push(at);
        }
        let (Some(first), Some(last)) = (skipped.last(), skipped.first()) else { return };
        tracing::warn!(
            schedule = schedule.name,
            times = skipped.len(),
            are_all = skipped.len() < PASSED,
            first = utc(*first).map(display),
            last = utc(*last).map(display),
            "times of a schedule have passed without a job, and are skipped: no worker ran, or the engine took no jobs"
        );
    }

    /// Cancels the next jobs of a schedule, and the due ones that no worker has begun.
    async fn close_jobs(&self, schedule: &ScheduleRecord) -> Result<(), CallError> {
        self.close_next(schedule).await?;
        self.close_passed(schedule).await
    }

    /// Cancels the next job of a schedule, and the one after it: a worker whose clock is a little ahead may have submitted
    /// that.
    async fn close_next(&self, schedule: &ScheduleRecord) -> Result<(), CallError> {
        let next = schedule.next(self.engine().now());
        for at in std::iter::successors(next, |at| schedule.next(*at)).take(2) {
            self.close_job(&schedule.job_at(at)).await?;
        }
        Ok(())
    }

    /// Cancels the due jobs of a schedule that no worker has begun. Those that cannot be read are left: they would not be
    /// readable in another call either, and the schedule could never be removed.
    async fn close_passed(&self, schedule: &ScheduleRecord) -> Result<(), CallError> {
        for at in schedule.passed(self.engine().now(), PASSED) {
            let id = schedule.job_at(at).id;
            let stored = match self.engine().read(&id).await {
                Err(error) if error.details().get(UNREADABLE).is_some() => {
                    tracing::warn!(%error, job = id.as_str(), "a job of a removed schedule can't be read, and stays");
                    continue;
                }
                stored => stored?,
            };
            // As it is stored: a retried one is another run than that of the schedule.
            if let Some(Stored::Open { job, tries }) = stored
                && (tries.attempts, tries.passes) == (0, tries.unbegun)
                && !self.engine().is_running(&id).await?
                // A busy worker may respond late.
                && !self.engine().is_running(&id).await?
            {
                self.close_job(&job).await?;
            }
        }
        Ok(())
    }

    /// Cancels a job that has not started.
    async fn close_job(&self, job: &JobRecord) -> Result<(), CallError> {
        let ended = Ended::new(job, self.engine().now(), 0, Outcome::Cancelled);
        self.engine().close(&job.id, &ended).await.map(drop)
    }
}

#[cfg(test)]
mod tests;
