//! The names of subjects and streams on the server.
//!
//! | subject | in the stream | content |
//! |---|---|---|
//! | `PREFIX.queue.QUEUE.LANE.TOKEN.job` | yes | a job that waits or runs |
//! | `PREFIX.queue.QUEUE.LANE.TOKEN.later` | yes | a job that starts later: a message schedule, whose target is `job` |
//! | `PREFIX.queue.QUEUE.LANE.TOKEN.try` | yes | its tries |
//! | `PREFIX.queue.QUEUE.LANE.TOKEN.end.done` | yes | its ending |
//! | `PREFIX.queue.QUEUE.LANE.TOKEN.end.dead` | yes | its ending: a dead letter |
//! | `PREFIX.queue.QUEUE.LANE.TOKEN-step.HASH` | yes | the result of a step |
//! | `PREFIX.schedule.HASH` | of schedules | a schedule |
//! | `PREFIX.progress.QUEUE.LANE.TOKEN` | no | a progress report |
//! | `PREFIX.closed.QUEUE` | no | the id of a job that was closed from outside |
//! | `PREFIX.ask.QUEUE` | no | a request: which process has the job with this id, or, if empty, how many jobs each has |
//!
//! All of a job but its steps is below `TOKEN.`, so that one condition (`Nats-Expected-Last-Subject-Sequence: 0` on
//! `TOKEN.>`) refuses a second submit. What an open job has is one token below, so that one purge removes it.

use crate::durable::JobId;
use crate::durable::id::{hash, is_queue};

/// The subjects below a prefix.
#[derive(Debug, Clone)]
pub(super) struct Subjects {
    prefix: String,
}

impl Subjects {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// The name of the stream of a queue. Names of streams have no dots.
    pub(super) fn stream(&self, queue: &str) -> String {
        format!("{}-queue-{queue}", self.prefix.replace('.', "_"))
    }

    /// The queue of a stream that [`stream`](Self::stream) named. `None` for other streams, such as a backup of an operator.
    pub(super) fn queue_of<'a>(&self, stream: &'a str) -> Option<&'a str> {
        let queue = stream.strip_prefix(&self.prefix.replace('.', "_"))?.strip_prefix("-queue-")?;
        is_queue(queue).then_some(queue)
    }

    /// The queue of a subject that [`of`](Self::of) or [`step`](Self::step) made. `None` for that of a schedule.
    pub(super) fn queue_in<'a>(&self, subject: &'a str) -> Option<&'a str> {
        let rest = subject.strip_prefix(&self.prefix)?.strip_prefix(".queue.")?;
        rest.split_once('.').map(|(queue, _)| queue)
    }

    pub(super) fn schedules_stream(&self) -> String {
        format!("{}-schedules", self.prefix.replace('.', "_"))
    }

    /// All subjects of a queue.
    pub(super) fn queue(&self, queue: &str) -> String {
        format!("{}.queue.{queue}.>", self.prefix)
    }

    /// The subject of a lane's consumer.
    pub(super) fn jobs(&self, queue: &str, lane: u16) -> String {
        format!("{}.queue.{queue}.{lane}.*.job", self.prefix)
    }

    /// One part of all jobs of a queue.
    pub(super) fn each(&self, queue: &str, kind: &str) -> String {
        format!("{}.queue.{queue}.*.*.{kind}", self.prefix)
    }

    /// One or several parts of a job: `job`, `later`, `try`, `end.done`, `end.dead`; `*`, `end.*`, `>`.
    pub(super) fn of(&self, id: &JobId, kind: &str) -> String {
        // Not `format!`, which grows the text piece by piece: each job has several of these.
        [&self.prefix, ".queue.", id.as_str(), ".", kind].concat()
    }

    pub(super) fn step(&self, id: &JobId, name: &str) -> String {
        format!("{}.queue.{id}-step.{}", self.prefix, hash(&[name]))
    }

    /// The job of a subject that [`of`](Self::of) made.
    pub(super) fn job(&self, subject: &str, kind: &str) -> Option<JobId> {
        let rest = subject.strip_prefix(&self.prefix)?.strip_prefix(".queue.")?;
        rest.strip_suffix(kind)?.strip_suffix('.')?.parse().ok()
    }

    pub(super) fn schedules(&self) -> String {
        format!("{}.schedule.*", self.prefix)
    }

    pub(super) fn schedule(&self, name: &str) -> String {
        format!("{}.schedule.{}", self.prefix, hash(&[name]))
    }

    pub(super) fn progress(&self, id: &JobId) -> String {
        format!("{}.progress.{id}", self.prefix)
    }

    pub(super) fn closed(&self, queue: &str) -> String {
        format!("{}.closed.{queue}", self.prefix)
    }

    pub(super) fn ask(&self, queue: &str) -> String {
        format!("{}.ask.{queue}", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_of_a_subject() {
        let subjects = Subjects::new("a.b");
        let id: JobId = "jobs.3.0123456789abcdef0123456789abcdef".parse().unwrap();
        let dead = subjects.of(&id, "end.dead");
        assert_eq!(dead, "a.b.queue.jobs.3.0123456789abcdef0123456789abcdef.end.dead");
        assert_eq!(subjects.job(&dead, "end.dead"), Some(id.clone()));
        for (subject, kind) in [(dead.as_str(), "job"), ("a.b.queue.jobs.3.x.job", "job"), ("x", "job"), ("", "")] {
            assert_eq!(subjects.job(subject, kind), None, "{subject}");
        }
        for subject in [dead, subjects.step(&id, "a.b")] {
            assert_eq!(subjects.queue_in(&subject), Some("jobs"), "{subject}");
        }
        assert_eq!(subjects.queue_in(&subjects.schedule("a")), None);
        assert_eq!(subjects.stream("jobs"), "a_b-queue-jobs");
        assert_eq!(subjects.queue_of("a_b-queue-slow-jobs"), Some("slow-jobs"));
        for other in ["a_b-schedules", "a-queue-x", "a_b-queue-jobs-BACKUP", "a_b-queue-"] {
            assert_eq!(subjects.queue_of(other), None, "{other}");
        }
    }
}
