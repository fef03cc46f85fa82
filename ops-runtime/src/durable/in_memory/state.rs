//! The state of the in-memory engine.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::durable::engine::{Delivery, JobPage, Listed, QueueStats};
use crate::durable::id::JobId;
use crate::durable::record::{Ended, JobRecord, ScheduleRecord, Stored, Tries};
use crate::registry::{Progress, ProgressSink, ProgressStream};

/// How many jobs are looked at for a page of a list: all others wait meanwhile.
const LOOKED_AT: usize = 10_000;

/// Everything that the engine stores.
#[derive(Default)]
pub(super) struct State {
    jobs: BTreeMap<JobId, Kept>,
    queues: HashMap<String, Queue>,
    steps: BTreeMap<(JobId, String), String>,
    /// What expires, by time.
    ends: BTreeSet<(u64, Forgotten)>,
    pub(super) schedules: BTreeMap<String, ScheduleRecord>,
    /// The waiters for the end of a job.
    waiting: HashMap<JobId, Vec<oneshot::Sender<()>>>,
    /// The subscribers to the progress of a job.
    listening: HashMap<JobId, Vec<ProgressSink>>,
    /// Numbers leases, and jobs in the order in which they were submitted.
    pub(super) number: u64,
}

enum Kept {
    Open(Box<Open>),
    Ended(Box<Ended>),
}

struct Open {
    job: JobRecord,
    /// Leases with lower numbers are of an earlier job with this id, which was submitted again or retried.
    since: u64,
    tries: Tries,
    deliveries: u64,
    place: Place,
}

impl Open {
    /// True if the job could have started by now.
    fn is_due(&self, now: u64) -> bool {
        self.deliveries > 0 || self.job.start() <= now
    }
}

/// The place of an open job.
#[derive(Clone)]
enum Place {
    /// In its lane.
    Waits { due: u64, number: u64 },
    /// With a worker.
    Leased { until: u64, receipt: u64 },
}

/// The open jobs of a queue.
#[derive(Default)]
struct Queue {
    /// By due time, then in the order in which they were submitted.
    lanes: BTreeMap<u16, BTreeSet<(u64, u64, JobId)>>,
    /// The lane from which a job was taken last.
    last: u16,
    leased: BTreeSet<(u64, JobId)>,
    /// Dead letters of the queue.
    dead: BTreeSet<JobId>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Forgotten {
    Job(JobId),
    Step(JobId, String),
}

/// The result of taking jobs.
pub(super) enum Taken {
    Jobs(Vec<Delivery>),
    /// None; something may be due at that time.
    Until(Option<u64>),
}

impl State {
    /// Removes what has expired.
    pub(super) fn forget(&mut self, now: u64) {
        while self.ends.first().is_some_and(|(at, _)| *at <= now) {
            match self.ends.pop_first() {
                Some((at, Forgotten::Job(id))) => {
                    // A job that was retried, or submitted again, may have ended again, and then expires later.
                    let is_due = |ended: &Ended| ended.at.saturating_add(ended.retention) <= at;
                    if matches!(self.jobs.get(&id), Some(Kept::Ended(ended)) if !ended.is_dead() && is_due(ended)) {
                        self.jobs.remove(&id);
                    }
                }
                Some((_, Forgotten::Step(id, name))) => {
                    self.steps.remove(&(id, name));
                }
                None => {}
            }
        }
    }

    pub(super) fn submit(&mut self, job: &JobRecord) -> Option<Stored> {
        if let Some(known) = self.read(&job.id) {
            return Some(known);
        }
        self.open(job);
        None
    }

    /// Puts a job into its lane, without tries.
    fn open(&mut self, job: &JobRecord) {
        self.number += 1;
        let place = Place::Waits { due: job.start(), number: self.number };
        let open = Open { job: job.clone(), since: self.number, tries: Tries::default(), deliveries: 0, place };
        self.enter(&job.id, &open.place);
        self.jobs.insert(job.id.clone(), Kept::Open(Box::new(open)));
    }

    fn queue(&mut self, name: &str) -> &mut Queue {
        // Looked up first, so that the name is copied only once.
        if !self.queues.contains_key(name) {
            self.queues.insert(name.to_owned(), Queue::default());
        }
        self.queues.entry(name.to_owned()).or_default()
    }

    fn enter(&mut self, id: &JobId, place: &Place) {
        let queue = self.queue(id.queue());
        match place {
            Place::Waits { due, number } => {
                queue.lanes.entry(id.lane()).or_default().insert((*due, *number, id.clone()));
            }
            Place::Leased { until, .. } => {
                queue.leased.insert((*until, id.clone()));
            }
        }
    }

    fn leave(&mut self, id: &JobId, place: &Place) {
        let queue = self.queue(id.queue());
        match place {
            Place::Waits { due, number } => {
                if let Some(lane) = queue.lanes.get_mut(&id.lane()) {
                    lane.remove(&(*due, *number, id.clone()));
                    if lane.is_empty() {
                        queue.lanes.remove(&id.lane());
                    }
                }
            }
            Place::Leased { until, .. } => {
                queue.leased.remove(&(*until, id.clone()));
            }
        }
    }

    /// Moves an open job to another place, and changes it.
    fn shift(&mut self, id: &JobId, place: Place, change: impl FnOnce(&mut Open)) {
        let Some(Kept::Open(open)) = self.jobs.get_mut(id) else { return };
        let before = std::mem::replace(&mut open.place, place.clone());
        change(open);
        self.leave(id, &before);
        self.enter(id, &place);
    }

    pub(super) fn read(&self, id: &JobId) -> Option<Stored> {
        Some(match self.jobs.get(id)? {
            Kept::Open(open) => Stored::Open { job: Box::new(open.job.clone()), tries: open.tries.clone() },
            Kept::Ended(ended) => Stored::Ended(ended.clone()),
        })
    }

    /// A receiver of the end of a job; `None` if there is nothing to wait for.
    pub(super) fn watch(&mut self, id: &JobId) -> Option<oneshot::Receiver<()>> {
        if !matches!(self.jobs.get(id)?, Kept::Open(_)) {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        let waiting = self.waiting.entry(id.clone()).or_default();
        waiting.retain(|sender| !sender.is_closed());
        waiting.push(sender);
        Some(receiver)
    }

    pub(super) fn is_running(&self, id: &JobId, now: u64) -> bool {
        matches!(self.jobs.get(id), Some(Kept::Open(open)) if matches!(open.place, Place::Leased { until, .. } if until > now))
    }

    /// Ends the run of an ending if it is open.
    pub(super) fn close(&mut self, id: &JobId, end: &Ended) -> bool {
        let is_same = self.opened(id).is_some_and(|open| open.job.run() == end.run());
        is_same && self.end(id, end)
    }

    /// Ends a job if it is open.
    fn end(&mut self, id: &JobId, end: &Ended) -> bool {
        let Some(Kept::Open(open)) = self.jobs.get(id) else { return false };
        let place = open.place.clone();
        self.leave(id, &place);
        if end.is_dead() {
            self.queue(id.queue()).dead.insert(id.clone());
        } else {
            self.ends.insert((end.at.saturating_add(end.retention), Forgotten::Job(id.clone())));
        }
        self.jobs.insert(id.clone(), Kept::Ended(Box::new(end.clone())));
        for sender in self.waiting.remove(id).unwrap_or_default() {
            let _ = sender.send(());
        }
        self.listening.remove(id);
        true
    }

    /// Ends the job of a delivery if the job is open, even if another worker has it now.
    pub(super) fn end_delivered(&mut self, delivery: &Delivery, end: &Ended) -> bool {
        let receipt = delivery.receipt.parse::<u64>().ok();
        let is_same = self.opened(&delivery.job.id).is_some_and(|open| receipt > Some(open.since));
        is_same && self.end(&delivery.job.id, end)
    }

    /// True if the job with this id was submitted after that number was given.
    pub(super) fn is_later(&self, id: &JobId, number: u64) -> bool {
        self.opened(id).is_some_and(|open| open.since > number)
    }

    /// Takes due jobs, one of each lane in turn.
    pub(super) fn take(&mut self, name: &str, most: usize, now: u64, lease: u64) -> Taken {
        self.reclaim(name, now);
        let mut taken = Vec::new();
        while taken.len() < most {
            let Some(id) = self.queue(name).next(now) else { break };
            self.number += 1;
            let receipt = self.number;
            self.shift(&id, Place::Leased { until: lease, receipt }, |open| {
                open.deliveries += 1;
                let delivery = Delivery::new(open.job.clone(), receipt.to_string());
                taken.push(delivery.with_tries(open.deliveries, open.tries.clone()));
            });
        }
        if !taken.is_empty() {
            return Taken::Jobs(taken);
        }
        let queue = self.queue(name);
        let due = queue.lanes.values().filter_map(|lane| lane.first()).map(|(due, ..)| *due).min();
        let lease = queue.leased.first().map(|(until, _)| *until);
        Taken::Until(due.into_iter().chain(lease).min())
    }

    /// Takes jobs back whose lease has expired.
    fn reclaim(&mut self, name: &str, now: u64) {
        while let Some((_, id)) = self.queue(name).leased.first().filter(|(until, _)| *until <= now).cloned() {
            self.number += 1;
            let place = Place::Waits { due: now, number: self.number };
            self.shift(&id, place, |_| {});
        }
    }

    /// The lease with this receipt, if it is the last one of its job and has not ended.
    fn is_held(&self, delivery: &Delivery) -> bool {
        let receipt = delivery.receipt.parse::<u64>().ok();
        matches!(self.jobs.get(&delivery.job.id), Some(Kept::Open(open))
            if matches!(open.place, Place::Leased { receipt: own, .. } if Some(own) == receipt))
    }

    pub(super) fn extend(&mut self, delivery: &Delivery, until: u64) -> bool {
        let (true, Ok(receipt)) = (self.is_held(delivery), delivery.receipt.parse()) else { return false };
        self.shift(&delivery.job.id, Place::Leased { until, receipt }, |_| {});
        true
    }

    pub(super) fn again(&mut self, delivery: &Delivery, tries: &Tries, due: u64) {
        if self.is_held(delivery) {
            self.number += 1;
            let place = Place::Waits { due, number: self.number };
            self.shift(&delivery.job.id, place, |open| open.tries = tries.clone());
        }
    }

    pub(super) fn tell(&mut self, id: &JobId, progress: &Progress) {
        let Some(listening) = self.listening.get_mut(id) else { return };
        listening.retain(ProgressSink::is_heard);
        listening.iter().for_each(|sink| sink.report(progress.clone()));
    }

    /// The progress reports of a job until it ends; `None` if it is not open.
    pub(super) fn listen(&mut self, id: &JobId) -> Option<ProgressStream> {
        if !matches!(self.jobs.get(id)?, Kept::Open(_)) {
            return None;
        }
        let (sink, stream) = Progress::channel();
        let listening = self.listening.entry(id.clone()).or_default();
        // Removes those that were dropped since the last report.
        listening.retain(ProgressSink::is_heard);
        listening.push(sink);
        Some(stream)
    }

    pub(super) fn step(&self, id: &JobId, name: &str) -> Option<String> {
        self.steps.get(&(id.clone(), name.to_owned())).cloned()
    }

    pub(super) fn keep_step(&mut self, id: &JobId, name: &str, value: &str, until: u64) -> String {
        match self.steps.entry((id.clone(), name.to_owned())) {
            Entry::Occupied(kept) => kept.get().clone(),
            Entry::Vacant(step) => {
                let (id, name) = step.key().clone();
                self.ends.insert((until, Forgotten::Step(id, name)));
                step.insert(value.to_owned()).clone()
            }
        }
    }

    pub(super) fn retry(&mut self, job: &JobRecord) -> bool {
        let is_removed = self.remove(&job.id, Ended::can_be_retried);
        if is_removed {
            self.open(job);
        }
        is_removed
    }

    pub(super) fn discard(&mut self, id: &JobId) -> bool {
        self.remove(id, Ended::can_be_discarded)
    }

    /// Removes a job that has ended in such a way.
    fn remove(&mut self, id: &JobId, is_such: fn(&Ended) -> bool) -> bool {
        let Some(Kept::Ended(ended)) = self.jobs.get(id) else { return false };
        if !is_such(ended) {
            return false;
        }
        self.ends.remove(&(ended.at.saturating_add(ended.retention), Forgotten::Job(id.clone())));
        self.queue(id.queue()).dead.remove(id);
        self.jobs.remove(id);
        true
    }

    pub(super) fn stats(&self, queue: &str, now: u64) -> QueueStats {
        let Some(queue) = self.queues.get(queue) else { return QueueStats::default() };
        let waiting: usize = queue.lanes.values().map(BTreeSet::len).sum();
        let running = queue.leased.iter().filter(|(until, _)| *until > now).count();
        let waits = queue.lanes.values().flatten().map(|(.., id)| id);
        let open = waits.chain(queue.leased.iter().map(|(_, id)| id)).filter_map(|id| self.opened(id));
        let oldest = open.filter(|open| open.is_due(now)).map(|open| open.job.start()).min();
        QueueStats::new((waiting + queue.leased.len()) as u64, running as u64, queue.dead.len() as u64)
            .with_oldest(oldest.map(|start| Duration::from_millis(now.saturating_sub(start))))
    }

    fn opened(&self, id: &JobId) -> Option<&Open> {
        match self.jobs.get(id)? {
            Kept::Open(open) => Some(open),
            Kept::Ended(_) => None,
        }
    }

    /// The queues that have jobs.
    pub(super) fn queues(&self) -> Vec<String> {
        let queues: BTreeSet<&str> = self.jobs.keys().map(JobId::queue).collect();
        queues.into_iter().map(str::to_owned).collect()
    }

    /// Jobs of a queue in the order of their ids, those after an id. A page may have few of them, or none, and a next page.
    pub(super) fn list(&self, queue: &str, what: Listed, after: Option<&str>, most: usize, now: u64) -> JobPage {
        let is_listed = |kept: &Kept| match kept {
            Kept::Open(open) => what == if open.is_due(now) { Listed::Due } else { Listed::Delayed },
            Kept::Ended(ended) => what == if ended.is_dead() { Listed::Dead } else { Listed::Ended },
        };
        let first = format!("{queue}.");
        let from = after.map_or(Included(&*first), Excluded);
        let all = self.jobs.range::<str, _>((from, Unbounded)).take_while(|(id, _)| id.queue() == queue);
        let (mut jobs, mut looked_at) = (Vec::new(), 0);
        for (id, kept) in all {
            looked_at += 1;
            if is_listed(kept) {
                jobs.extend(self.read(id).map(|stored| (id.clone(), stored)));
            }
            if jobs.len() >= most || looked_at >= LOOKED_AT {
                return JobPage::new(jobs, Some(id.to_string()));
            }
        }
        JobPage::new(jobs, None)
    }
}

impl Queue {
    /// The next due job, from the lane after the one that was taken from last.
    fn next(&mut self, now: u64) -> Option<JobId> {
        let after = self.lanes.range(self.last.saturating_add(1)..).chain(self.lanes.range(..=self.last));
        let due = |lane: &BTreeSet<(u64, u64, JobId)>| lane.first().filter(|(due, ..)| *due <= now).cloned();
        let (lane, (.., id)) = after.filter_map(|(number, lane)| Some((*number, due(lane)?))).next()?;
        self.last = lane;
        Some(id)
    }
}

#[cfg(test)]
mod tests;
