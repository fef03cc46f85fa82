//! Writing the states of a job: submitted, tried, ended.

use std::time::Duration;

use async_nats::header::{NATS_SCHEDULE, NATS_SCHEDULE_TARGET};
use async_nats::jetstream::AckKind;
use async_nats::jetstream::message::StreamMessage;
use async_nats::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use serde::Deserialize;

use super::clock::rfc3339;
use super::core::{Core, Put, from_json};
use super::notes::WITH_ENDING;
use super::tries::read_tries;
use super::write::{Write, note, signed};
use crate::CallError;
use crate::durable::JobId;
use crate::durable::engine::{Delivery, EngineResult};
use crate::durable::options::too_late;
use crate::durable::record::{Ended, JobRecord, Outcome, Stored, Tries};
use crate::durable::retry::LONGEST;
use crate::model::clock::millis;
use crate::model::random;
use crate::nats::unusable;

/// Header of the notice of a closed job: the sequence of its ending.
const PLACE: HeaderName = HeaderName::from_static("Ops-Place");
/// How often a state is read that changes while it is read.
const READS: usize = 20;
/// How often an acknowledged job is read again that a cluster does not show.
const BEHIND: usize = 10;
/// Interval between these reads.
const SETTLE: Duration = Duration::from_millis(20);
/// For how many leases an ending is kept at least.
const LEASES: u32 = 3;

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
    async fn known(&self, id: &JobId) -> Result<Option<(StreamMessage, Option<StreamMessage>)>, CallError> {
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

    /// Ends a job that this process holds, or held: if the lease has expired during an outage, the result must not be
    /// lost. By then another worker may have ended the job, and it may have been submitted again or retried, so it is
    /// looked up.
    pub(super) async fn end(&self, delivery: &Delivery, end: &Ended) -> Result<bool, CallError> {
        let id = &delivery.job.id;
        let held = self.lease(delivery);
        let is_held = held.is_some();
        let open = match held {
            Some(lease) => Some((lease.sequence, lease.note)),
            None => Box::pin(self.open_place(delivery)).await?,
        };
        let Some((job, inbox)) = open else { return Ok(false) };
        let payload = signed(end, random::unique(), None)?;
        let (is_ended, place) = self.write_end(id, end, payload.clone(), job).await?;
        // Before the job is acknowledged, after which it is not delivered again: tries do not expire by themselves.
        if !is_held || delivery.tries != Tries::default() {
            self.remove_open(id, place).await?;
        }
        // The rest is optional: a job that is delivered again is found to have ended.
        self.acknowledge(delivery.receipt.as_str().into(), AckKind::Ack).await;
        self.held.remove(id, &delivery.receipt);
        if let Some(inbox) = inbox.filter(|_| is_ended) {
            self.tell_ended(&inbox, id, end, payload).await;
        }
        Ok(is_ended)
    }

    /// The sequence of an open job, and the inbox of its submitter. `None` if it has ended, even if it was submitted
    /// again or retried since, and so has another sequence.
    async fn open_place(&self, delivery: &Delivery) -> Result<Option<(u64, Option<String>)>, CallError> {
        let Some((last, open)) = self.known(&delivery.job.id).await? else { return Ok(None) };
        let open = open.unwrap_or(last);
        if open.subject.contains(".end.") {
            return Ok(None);
        }
        let inbox = note(&open.payload).map(str::to_owned);
        Ok((place_in(&delivery.receipt) == Some(open.sequence)).then_some((open.sequence, inbox)))
    }

    /// Ends a job from outside.
    pub(super) async fn close(&self, id: &JobId, end: &Ended) -> Result<bool, CallError> {
        let Some((last, job)) = self.newest(id).await? else { return Ok(false) };
        if last.subject.contains(".end.") {
            // If the process that ended it died before it removed the rest: a delay would expire and start the job.
            self.remove_open(id, last.sequence).await?;
            return Ok(false);
        }
        let inbox = note(&job.as_ref().unwrap_or(&last).payload).map(str::to_owned);
        let payload = signed(end, random::unique(), None)?;
        let (is_ended, place) = self.write_end(id, end, payload.clone(), last.sequence).await?;
        if !is_ended {
            return Ok(false);
        }
        self.remove_open(id, place).await?;
        self.tell_closed(id, place).await;
        if let Some(inbox) = inbox {
            self.tell_ended(&inbox, id, end, payload).await;
        }
        Ok(true)
    }

    /// Writes an ending, unless there is one. `job` is a sequence of this job: a message before it belongs to an
    /// earlier job with the same id, such as a dead letter that was left behind when it was retried, unless
    /// [`is_end_of`] recognises it. Returns true if this ending counts, and the sequence of the one that does.
    async fn write_end(&self, id: &JobId, end: &Ended, payload: Bytes, job: u64) -> Result<(bool, u64), CallError> {
        let all = self.subjects.of(id, "end.*");
        let subject = self.subjects.of(id, if end.is_dead() { "end.dead" } else { "end.done" });
        let mut write = Write::new(subject, payload).after(all.clone(), 0);
        if !end.is_dead() {
            // Until the job itself is certainly gone: its acknowledgement may get lost. Then it is delivered once more
            // when the lease has expired, and the ending must still be there.
            write = write.keep(end.retention.max(millis(self.config.limits.lease.saturating_mul(LEASES))));
        }
        for _ in 0..READS {
            match self.put(&write).await? {
                Put::Stored(place) => return Ok((true, place)),
                Put::Refused => {}
            }
            match self.last(id.queue(), &all).await? {
                Some(last) if write.is(&last) => return Ok((true, last.sequence)),
                Some(last) if is_end_of(&last, job, end.submitted) => return Ok((false, last.sequence)),
                Some(last) => drop(self.delete(id.queue(), last.sequence).await?),
                None => {}
            }
            tokio::time::sleep(SETTLE).await;
        }
        Err(changes(id))
    }

    /// True if the job with a sequence has ended.
    pub(super) async fn has_ended(&self, job: &JobRecord, place: u64) -> Result<bool, CallError> {
        let ended = self.last(job.id.queue(), &self.subjects.of(&job.id, "end.*")).await?;
        Ok(ended.is_some_and(|ended| is_end_of(&ended, place, job.submitted)))
    }

    /// Removes what an open job had, after it ended with this sequence: a job that failed may be open again by now.
    pub(super) async fn remove_open(&self, id: &JobId, end: u64) -> Result<(), CallError> {
        self.purge(self.subjects.stream(id.queue()), &self.subjects.of(id, "*"), Some(end)).await.map(drop)
    }

    /// Notifies workers of a job that was closed by the ending with a sequence.
    async fn tell_closed(&self, id: &JobId, place: u64) {
        let mut headers = HeaderMap::new();
        headers.insert(PLACE, HeaderValue::from(place));
        let (subject, payload) = (self.subjects.closed(id.queue()), Bytes::from(id.to_string()));
        if let Err(error) = self.client.publish_with_headers(subject, headers, payload).await {
            tracing::debug!(%error, "a notice is lost");
        }
    }

    /// Handles the notice of a closed job: it is not begun here any more.
    pub(super) fn hear_closed(&self, notice: &async_nats::Message) -> Option<JobId> {
        let id = std::str::from_utf8(&notice.payload).ok()?.parse().ok()?;
        let place = notice.headers.as_ref().and_then(|headers| headers.get(PLACE));
        if let Some(place) = place.and_then(|place| place.as_str().parse().ok()) {
            return self.held.close(&id, place).then_some(id);
        }
        Some(id)
    }

    /// Notifies the submitter. Other waiters receive the write of the ending itself.
    ///
    /// Only the notice of a result contains the ending: any other job may be retried or discarded before the submitter
    /// asks for the result.
    fn tell_ended(&self, inbox: &str, id: &JobId, end: &Ended, payload: Bytes) -> impl Future<Output = ()> + Send + '_ {
        let is_told = payload.len() <= WITH_ENDING && matches!(end.outcome, Outcome::Done(_));
        let payload = if is_told { payload } else { Bytes::new() };
        self.send([inbox, ".", id.as_str()].concat(), payload)
    }

    /// Makes a job that failed, or a dead letter, a job again.
    pub(super) async fn retry(&self, job: &JobRecord) -> Result<bool, CallError> {
        let id = &job.id;
        let all = self.subjects.of(id, ">");
        let Some(ending) = self.ending(id, Ended::can_be_retried).await? else { return Ok(false) };
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

    /// Removes the ending of a job. First the rest of the job: without an ending, it would be delivered and run.
    pub(super) async fn discard(&self, id: &JobId) -> Result<bool, CallError> {
        let Some(ending) = self.ending(id, Ended::can_be_discarded).await? else { return Ok(false) };
        self.remove_open(id, ending).await?;
        self.delete(id.queue(), ending).await
    }

    /// The sequence of the ending of a job that has ended in such a way.
    async fn ending(&self, id: &JobId, is_such: fn(&Ended) -> bool) -> Result<Option<u64>, CallError> {
        let Some((last, job)) = self.newest(id).await? else { return Ok(None) };
        let place = last.sequence;
        Ok(match stored(last, job)? {
            Stored::Ended(ended) if is_such(&ended) => Some(place),
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

/// True if an ending is that of the job with a sequence, which was submitted at that time.
///
/// It may have a smaller sequence: the schedule of a delayed job may fire while that is cancelled. A dead letter before
/// it may have been retried as this job; any other ending belongs to this job if it has the same submit time, which a
/// retry changes.
fn is_end_of(ending: &StreamMessage, job: u64, submitted: u64) -> bool {
    #[derive(Deserialize)]
    struct Told {
        #[serde(default)]
        submitted: u64,
    }

    let is_same = || serde_json::from_slice(&ending.payload).is_ok_and(|told: Told| told.submitted == submitted);
    ending.sequence > job || (ending.subject.ends_with(".end.done") && is_same())
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

/// The stream sequence of the message of a receipt, from the subject of the acknowledgement: with a domain and an
/// account before the stream (ADR-15), or without.
fn place_in(receipt: &str) -> Option<u64> {
    let parts: Vec<&str> = receipt.split('.').collect();
    let at = if parts.len() == 9 { 5 } else { 7 };
    parts.get(at)?.parse().ok()
}

fn text(message: StreamMessage) -> Result<String, CallError> {
    String::from_utf8(message.payload.into())
        .map_err(|_| CallError::execution(format!("the message at {} is no text", message.subject)))
}

fn changes(id: &JobId) -> CallError {
    CallError::execution(format!("what is kept of the job {id} changes all the time: try again"))
}

#[cfg(test)]
mod tests {
    use super::place_in;

    #[test]
    fn receipts_name_places() {
        for (receipt, place) in [
            ("$JS.ACK.jobs.workers.1.42.7.1700000000000000000.0", Some(42)),
            ("$JS.ACK.hub.hash.jobs.workers.1.42.7.1700000000000000000.0.a8d2", Some(42)),
            ("$JS.ACK.jobs.workers", None),
            ("", None),
        ] {
            assert_eq!(place_in(receipt), place, "{receipt}");
        }
    }
}
