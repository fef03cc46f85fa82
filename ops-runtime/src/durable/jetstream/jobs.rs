//! Writing and reading the states of a job.

use std::time::Duration;

use async_nats::header::{NATS_SCHEDULE, NATS_SCHEDULE_TARGET};
use async_nats::jetstream::message::StreamMessage;
use bytes::Bytes;

use super::clock::rfc3339;
use super::core::{Core, Put, READS, SETTLE, changes, from_json};
use super::tries::read_tries;
use super::write::{Write, signed};
use crate::CallError;
use crate::durable::JobId;
use crate::durable::engine::EngineResult;
use crate::durable::options::too_late;
use crate::durable::record::{Ended, JobRecord, Stored, Tries};
use crate::durable::retry::LONGEST;
use crate::model::clock::millis;
use crate::model::random;
use crate::nats::unusable;

/// How often an acknowledged job is read again that a cluster does not show.
const BEHIND: usize = 10;

impl Core {
    /// Stores a job. `None` if it is new.
    pub(super) async fn submit(&self, job: &JobRecord) -> Result<Option<Stored>, CallError> {
        let id = &job.id;
        self.queue(id.queue()).await?;
        let all = self.subjects.of(id, ">");
        let write = self.write(job)?.after(all, 0);
        let expected = self.notes.expect(id);
        for _ in 0..READS {
            match self.put(&write).await? {
                Put::Stored(_) => return Ok(None),
                Put::Refused => {}
            }
            match self.newest(id).await? {
                // The first write succeeded, and its acknowledgement was lost.
                Some((last, _)) if write.is(&last) => return Ok(None),
                Some((last, job)) => {
                    self.notes.forget(id, &expected);
                    return stored(last, job).map(Some);
                }
                None => {}
            }
            // The message that refused the write may not be readable yet.
            tokio::time::sleep(SETTLE).await;
        }
        self.notes.forget(id, &expected);
        Err(changes(id))
    }

    /// The write of a job: a delay is a schedule of the server.
    ///
    /// A single server that is killed forgets delays by refusing the delivery for a time (NAK), and all of them are
    /// part of the consumer's state, which is written as a whole. A schedule is a message like others.
    fn write(&self, job: &JobRecord) -> Result<Write, CallError> {
        let payload = signed(job, random::unique(), Some(self.notes.inbox()))?;
        let subject = self.subjects.of(&job.id, "job");
        let now = self.clock.now();
        let Some(start) = job.not_before.filter(|start| *start > now) else { return Ok(Write::new(subject, payload)) };
        let at = rfc3339(start).filter(|_| start - now <= millis(LONGEST)).ok_or_else(|| too_late(&job.operation))?;
        Ok(Write::new(self.subjects.of(&job.id, "later"), payload)
            .with(NATS_SCHEDULE, format!("@at {at}"))
            .with(NATS_SCHEDULE_TARGET, subject))
    }

    /// The stored state of a job.
    pub(super) async fn read(&self, id: &JobId) -> Result<Option<Stored>, CallError> {
        self.newest(id).await?.map(|(last, job)| stored(last, job)).transpose()
    }

    /// The stored state of an acknowledged job.
    pub(super) async fn read_known(&self, id: &JobId) -> Result<Option<Stored>, CallError> {
        self.known(id).await?.map(|(last, job)| stored(last, job)).transpose()
    }

    /// The [newest](Self::newest) message of an acknowledged job. A server that has just become the leader may not show
    /// it yet, so a missing message is read again. A single server shows all.
    pub(super) async fn known(&self, id: &JobId) -> Result<Option<(StreamMessage, Option<StreamMessage>)>, CallError> {
        let mut reads = if self.config.replicas > 1 { BEHIND } else { 0 };
        loop {
            match self.newest(id).await? {
                None if reads > 0 => {
                    reads -= 1;
                    // Half a second in total.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                newest => return Ok(newest),
            }
        }
    }

    /// The last message of a job; if that is its tries, with the job itself.
    pub(super) async fn newest(&self, id: &JobId) -> Result<Option<(StreamMessage, Option<StreamMessage>)>, CallError> {
        for _ in 0..READS {
            let Some(last) = self.last(id.queue(), &self.subjects.of(id, ">")).await? else { return Ok(None) };
            if !last.subject.ends_with(".try") {
                return Ok(Some((last, None)));
            }
            if let Some(job) = self.last(id.queue(), &self.subjects.of(id, "job")).await? {
                return Ok(Some((last, Some(job))));
            }
            // Its job is gone meanwhile, or the tries were left behind. The job may be there again by now.
            self.delete(id.queue(), last.sequence).await?;
        }
        Err(changes(id))
    }

    /// Makes a job that failed, or a dead letter, a job again.
    pub(super) async fn retry(&self, job: &JobRecord) -> Result<bool, CallError> {
        let id = &job.id;
        let all = self.subjects.of(id, ">");
        let Some((ending, _)) = self.ending(id, Ended::can_be_retried).await? else { return Ok(false) };
        self.remove_open(id, ending).await?;
        let expected = self.notes.expect(id);
        // Only if the ending is still the last message about the job.
        let write = self.write(job)?.after(all.clone(), ending);
        if let Put::Refused = self.put(&write).await? {
            let last = self.last(id.queue(), &all).await?;
            if !last.is_some_and(|last| write.is(&last)) {
                self.notes.forget(id, &expected);
                return Ok(false);
            }
        }
        // If this is not reached, the job's next ending finds this one to be of an earlier job, and removes it.
        self.delete(id.queue(), ending).await?;
        Ok(true)
    }

    /// Removes the ending of a job. First the rest of the job: without an ending, it would be delivered and run. Of a
    /// discard and a retry at the same time, one returns `true`.
    pub(super) async fn discard(&self, id: &JobId) -> Result<bool, CallError> {
        let Some((ending, ended)) = self.ending(id, Ended::can_be_discarded).await? else { return Ok(false) };
        self.remove_open(id, ending).await?;
        if !self.delete(id.queue(), ending).await? {
            return Ok(false);
        }
        let mut now = self.read(id).await?;
        if now.is_none() && self.config.replicas > 1 {
            // A cluster may have accepted the write of a retry before the removal, and not show it yet.
            tokio::time::sleep(SETTLE).await;
            now = self.read(id).await?;
        }
        // A retry first writes the job, and then removes the ending. The job keeps its nonce, and is submitted later. A
        // new job has another nonce, or the same time, if it is one of a schedule.
        let is_retried = now.is_some_and(|now| now.nonce() == ended.nonce && now.submitted() > ended.submitted);
        Ok(!is_retried)
    }

    /// The ending of a job that has ended in such a way, and its sequence.
    async fn ending(&self, id: &JobId, is_such: fn(&Ended) -> bool) -> Result<Option<(u64, Box<Ended>)>, CallError> {
        let Some((last, job)) = self.newest(id).await? else { return Ok(None) };
        let place = last.sequence;
        Ok(match stored(last, job)? {
            Stored::Ended(ended) if is_such(&ended) => Some((place, ended)),
            _ => None,
        })
    }

    /// Removes a message. Returns `false` if it is not there.
    fn delete<'a>(&'a self, queue: &'a str, sequence: u64) -> EngineResult<'a, bool> {
        use async_nats::jetstream::stream::DeleteMessageErrorKind;

        Box::pin(async move {
            let stream = self.stream(self.subjects.stream(queue)).await?;
            let mut patience = super::failure::Patience::new(self.config.request_timeout);
            loop {
                match stream.delete_message(sequence).await {
                    Ok(is_deleted) => return Ok(is_deleted),
                    Err(error) => match error.kind() {
                        DeleteMessageErrorKind::JetStream(inner) if inner.code() < 500 => return Ok(false),
                        // "no message found" has the code of a server's failure.
                        DeleteMessageErrorKind::JetStream(inner)
                            if inner.error_code() == async_nats::jetstream::ErrorCode::STREAM_MESSAGE_DELETE_FAILED =>
                        {
                            return Ok(false);
                        }
                        _ if patience.wait().await => {}
                        _ => return Err(unusable("the message can't be removed", &error)),
                    },
                }
            }
        })
    }

    /// The stored result of a step.
    pub(super) async fn step(&self, id: &JobId, name: &str) -> Result<Option<String>, CallError> {
        let Some(last) = self.last(id.queue(), &self.subjects.step(id, name)).await? else { return Ok(None) };
        text(last).map(Some)
    }

    /// Stores the result of a step, unless there is one.
    pub(super) async fn keep_step(
        &self,
        id: &JobId,
        name: &str,
        value: &str,
        retention: Duration,
    ) -> Result<String, CallError> {
        self.queue(id.queue()).await?;
        let subject = self.subjects.step(id, name);
        let write = Write::new(subject.clone(), Bytes::copy_from_slice(value.as_bytes()));
        let write = write.after(subject.clone(), 0).keep(millis(retention));
        for _ in 0..READS {
            match self.put(&write).await? {
                Put::Stored(_) => return Ok(value.to_owned()),
                Put::Refused => {}
            }
            if let Some(last) = self.last(id.queue(), &subject).await? {
                return text(last);
            }
            tokio::time::sleep(SETTLE).await;
        }
        Err(changes(id))
    }
}

/// The state in the last message of a job; `job` is the job itself if that message is its tries.
pub(super) fn stored(last: StreamMessage, job: Option<StreamMessage>) -> Result<Stored, CallError> {
    if last.subject.contains(".end.") {
        return Ok(Stored::Ended(Box::new(from_json(&last.payload, &last.subject)?)));
    }
    let Some(job) = job else {
        return Ok(Stored::Open { job: Box::new(from_json(&last.payload, &last.subject)?), tries: Tries::default() });
    };
    let tries = read_tries(&last.payload, &last.subject);
    Ok(Stored::Open { job: Box::new(from_json(&job.payload, &job.subject)?), tries })
}

fn text(message: StreamMessage) -> Result<String, CallError> {
    String::from_utf8(message.payload.into())
        .map_err(|_| CallError::execution(format!("the message at {} is no text", message.subject)))
}
