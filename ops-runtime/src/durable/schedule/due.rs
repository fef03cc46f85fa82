//! The loop by which workers submit the jobs of schedules when they are due.

use std::collections::HashMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::LOOK;
use crate::CallError;
use crate::durable::id::JobId;
use crate::durable::jobs::Jobs;
use crate::durable::record::ScheduleRecord;

/// The delay before a missing schedule is looked up again: a new leader of a cluster may not show it at once.
const BEHIND: Duration = Duration::from_millis(500);

/// Submits the next job of each schedule, in an endless loop.
///
/// Each queue is served on its own, so that a queue that takes no jobs, such as one without a leader, does not delay others.
pub(in crate::durable) async fn submit_due(jobs: Jobs) {
    // For each queue, the last job of each of its schedules that is known to be submitted.
    let mut submitted: HashMap<String, HashMap<String, JobId>> = HashMap::new();
    // The queues that are being served. True if a queue became due again meanwhile.
    let mut busy: HashMap<String, bool> = HashMap::new();
    let mut turns = FuturesUnordered::new();
    // The only queue to serve in this round. `None` if all are to be served.
    let mut only: Option<String> = None;
    loop {
        let now = jobs.engine().now();
        let schedules = jobs.engine().schedules().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the schedules could not be read");
            Vec::new()
        });
        let next = schedules.iter().filter_map(|schedule| schedule.next(now)).min();
        let mut queues: HashMap<String, Vec<ScheduleRecord>> = HashMap::new();
        for schedule in schedules {
            queues.entry(schedule.job.id.queue().to_owned()).or_default().push(schedule);
        }
        submitted.retain(|queue, _| queues.contains_key(queue));
        for (queue, schedules) in queues {
            // If the end of one queue's turn made the other queues due, two queues would make each other due for ever.
            if only.as_ref().is_some_and(|only| *only != queue) {
                continue;
            }
            if let Some(is_due) = busy.get_mut(&queue) {
                *is_due = true;
                continue;
            }
            busy.insert(queue.clone(), false);
            let (jobs, mut known) = (&jobs, submitted.remove(&queue).unwrap_or_default());
            turns.push(async move {
                submit_all(jobs, schedules, &mut known, now).await;
                (queue, known)
            });
        }
        let wake = next.unwrap_or(u64::MAX).min(now.saturating_add(LOOK));
        let wait = Duration::from_millis(wake.saturating_sub(jobs.engine().now()).max(10));
        let mut wait = pin!(tokio::time::sleep(wait));
        only = loop {
            tokio::select! {
                biased;
                () = &mut wait => break None,
                Some((queue, known)) = turns.next() => {
                    submitted.insert(queue.clone(), known);
                    if busy.remove(&queue) == Some(true) {
                        break Some(queue);
                    }
                }
            }
        };
    }
}

/// Submits the next job of each of these schedules, unless it is known to be submitted.
///
/// A schedule may have been removed or replaced meanwhile by a process that found no job of it to cancel. So the
/// schedules are read once more, and the jobs of removed ones are cancelled here.
pub(super) async fn submit_all(
    jobs: &Jobs,
    schedules: Vec<ScheduleRecord>,
    submitted: &mut HashMap<String, JobId>,
    now: u64,
) {
    submitted.retain(|name, _| schedules.iter().any(|schedule| schedule.name == *name));
    let mut new = Vec::new();
    for schedule in schedules {
        let Some(next) = schedule.next(now) else { continue };
        let job = schedule.job_at(next);
        if submitted.get(&schedule.name) == Some(&job.id) {
            continue;
        }
        match jobs.engine().submit(&job).await {
            Ok(known) => {
                let last = submitted.insert(schedule.name.clone(), job.id);
                if known.is_none() {
                    jobs.tell_skipped(&schedule, last.as_ref(), now).await;
                    new.push((schedule, next));
                }
            }
            Err(error) => tracing::warn!(%error, schedule = schedule.name, "the next job was not submitted"),
        }
    }
    if let Err(error) = close_gone(jobs, new).await {
        tracing::warn!(%error, "jobs of schedules that may be gone were not cancelled");
    }
}

/// Cancels the new jobs of schedules that were removed or replaced: two reads of the schedules do not find them.
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
        jobs.close_job(&schedule.job_at(at)).await?;
    }
    Ok(())
}
