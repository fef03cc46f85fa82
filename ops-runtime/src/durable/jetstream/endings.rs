//! Writing the ending of a job, by the worker that has it or from outside.

use std::time::Duration;

use async_nats::jetstream::AckKind;
use async_nats::jetstream::message::StreamMessage;
use async_nats::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use serde::Deserialize;
use tokio::time::timeout;

use super::core::{Core, Put, READS, SETTLE, changes, from_json};
use super::notes::WITH_ENDING;
use super::write::{Write, note, signed};
use crate::CallError;
use crate::durable::JobId;
use crate::durable::engine::Delivery;
use crate::durable::record::{Ended, JobRecord, Outcome, Tries};
use crate::model::clock::millis;
use crate::model::random;

/// Header of the notice of a closed job: the sequence of its ending.
const PLACE: HeaderName = HeaderName::from_static("Ops-Place");
/// For how many leases an ending is kept at least.
const LEASES: u32 = 3;
/// How long a process that closed a job waits until the server has its notices.
const TOLD: Duration = Duration::from_secs(1);

/// What is known of an open job before its ending is written.
struct Open {
    /// The sequence of the job itself.
    job: u64,
    /// The sequence of the last message about it.
    last: u64,
    /// True if nothing else is stored of it.
    is_alone: bool,
    /// The inbox of its submitter.
    inbox: Option<String>,
}

/// The ending that counts.
struct Written {
    /// Its sequence.
    place: u64,
    /// True if it is the one that was to be written.
    is_own: bool,
    /// The inbox of the job's submitter.
    inbox: Option<String>,
}

impl Core {
    /// Ends a job that this process holds, or held: if the lease has expired during an outage, the result must not be
    /// lost. By then another worker may have ended the job, and it may have been submitted again or retried.
    pub(super) async fn end(&self, delivery: &Delivery, end: &Ended) -> Result<bool, CallError> {
        let job = &delivery.job;
        let held = self.lease(delivery);
        let is_held = held.is_some();
        let open = held.map(|lease| Open {
            job: lease.sequence,
            last: lease.last,
            is_alone: lease.is_alone(job),
            inbox: lease.note,
        });
        let payload = signed(end, random::unique(), None)?;
        let written = self.write_end(&job.id, end, payload.clone(), Some(delivery), open).await?;
        let Some(Written { place, is_own, inbox }) = written else {
            self.held.remove(&job.id, &delivery.receipt);
            return Ok(false);
        };
        // Before the job is acknowledged, after which it is not delivered again: tries do not expire by themselves.
        if !is_held || delivery.tries != Tries::default() {
            self.remove_open(&job.id, place).await?;
        }
        // The rest is optional: a job that is delivered again is found to have ended.
        self.acknowledge(delivery.receipt.as_str().into(), AckKind::Ack).await;
        self.held.remove(&job.id, &delivery.receipt);
        if let Some(inbox) = inbox.filter(|_| is_own) {
            self.tell_ended(&inbox, &job.id, end, payload).await;
        }
        Ok(is_own)
    }

    /// Ends the run of an ending from outside.
    pub(super) async fn close(&self, id: &JobId, end: &Ended) -> Result<bool, CallError> {
        let payload = signed(end, random::unique(), None)?;
        let written = self.write_end(id, end, payload.clone(), None, None).await?;
        let Some(Written { place, is_own, inbox }) = written else { return Ok(false) };
        // Even if it had ended: if the process that ended it died before it removed the rest, a delay would expire and
        // start the job.
        self.remove_open(id, place).await?;
        if !is_own {
            return Ok(false);
        }
        self.tell_closed(id, place).await;
        if let Some(inbox) = inbox {
            self.tell_ended(&inbox, id, end, payload).await;
        }
        // The process may end at once, and the notices with it. Without them, the handler runs until its lease is
        // extended.
        let _ = timeout(TOLD, self.settle()).await;
        Ok(true)
    }

    /// Writes the ending of a run, unless the run has one. `delivery` is that of the worker that ends it, if it is one;
    /// `open` is what is known of the job, and read if it is not given. `None` if the run is gone: its id is unknown, or
    /// that of a later run.
    ///
    /// The write is refused if anything was written about the job since then. So the result of an earlier run never
    /// becomes that of a later one.
    async fn write_end(
        &self,
        id: &JobId,
        end: &Ended,
        payload: Bytes,
        delivery: Option<&Delivery>,
        mut open: Option<Open>,
    ) -> Result<Option<Written>, CallError> {
        let all = self.subjects.of(id, ">");
        let (place, delivered) = (delivery.and_then(place_of), delivery.and_then(|own| place_in(&own.receipt)));
        let mut write = Write::new(self.subjects.of(id, if end.is_dead() { "end.dead" } else { "end.done" }), payload);
        if !end.is_dead() {
            // Until the job itself is certainly gone: its acknowledgement may get lost. Then it is delivered once more
            // when the lease has expired, and the ending must still be there.
            write = write.keep(end.retention.max(millis(self.config.limits.lease.saturating_mul(LEASES))));
        }
        let mut inbox = None;
        for _ in 0..READS {
            let known = match open.take() {
                Some(known) => known,
                None => {
                    // Boxed, like the other reads, since most endings are written without one.
                    let Some((last, job)) = Box::pin(self.known(id)).await? else { return Ok(None) };
                    if delivered.is_some_and(|job| last.sequence < job && !is_end_of(&last, job, end.submitted)) {
                        // The server that reads does not show the job yet, but only what an earlier run has left.
                        tokio::time::sleep(SETTLE).await;
                        continue;
                    }
                    if is_ending(&last) {
                        return Ok(Some(Written { place: last.sequence, is_own: write.is(&last), inbox }));
                    }
                    let (at, job) = (last.sequence, job.unwrap_or(last));
                    if !is_run(&job, place, end.run()) {
                        return Ok(None);
                    }
                    let inbox = note(&job.payload).map(str::to_owned);
                    Open { job: job.sequence, last: at, is_alone: false, inbox }
                }
            };
            inbox = known.inbox;
            if !known.is_alone
                && let Some(ending) = Box::pin(self.former(id, end, known.job)).await?
            {
                return Ok(Some(Written { place: ending.sequence, is_own: write.is(&ending), inbox }));
            }
            write = write.after(all.clone(), known.last);
            if let Put::Stored(place) = self.put(&write).await? {
                return Ok(Some(Written { place, is_own: true, inbox }));
            }
            // The message that refused the write may not be readable yet.
            tokio::time::sleep(SETTLE).await;
        }
        Err(changes(id))
    }

    /// The ending that the run of a job with a sequence has already. One of an earlier run that was left behind, such as
    /// a dead letter when it was retried, is removed.
    async fn former(&self, id: &JobId, end: &Ended, job: u64) -> Result<Option<StreamMessage>, CallError> {
        let endings = self.subjects.of(id, "end.*");
        match self.last(id.queue(), &endings).await? {
            Some(ending) if is_end_of(&ending, job, end.submitted) => return Ok(Some(ending)),
            Some(_) => drop(self.purge(self.subjects.stream(id.queue()), &endings, Some(job)).await?),
            None => {}
        }
        Ok(None)
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

/// True if the last message about a job is its ending.
pub(super) fn is_ending(last: &StreamMessage) -> bool {
    last.subject.contains(".end.")
}

/// True if a message is the job of a run: that with a sequence, or, without one, that of a [submit](JobRecord::run).
pub(super) fn is_run(job: &StreamMessage, place: Option<u64>, run: (u64, &str)) -> bool {
    match place {
        Some(place) => job.sequence == place,
        None => from_json::<JobRecord>(&job.payload, &job.subject).is_ok_and(|job| job.run() == run),
    }
}

/// The sequence of the job that was delivered. `None` for a delayed one, which its schedule may write twice.
pub(super) fn place_of(delivery: &Delivery) -> Option<u64> {
    if delivery.job.not_before.is_some() { None } else { place_in(&delivery.receipt) }
}

/// The stream sequence of the message of a receipt, from the subject of the acknowledgement: with a domain and an
/// account before the stream (ADR-15), or without.
fn place_in(receipt: &str) -> Option<u64> {
    let parts: Vec<&str> = receipt.split('.').collect();
    let at = if parts.len() == 9 { 5 } else { 7 };
    parts.get(at)?.parse().ok()
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
