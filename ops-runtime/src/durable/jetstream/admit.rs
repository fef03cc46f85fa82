//! Whether a job that the server delivered is to be run.
//!
//! The common job was submitted a moment ago and never delivered before: nothing is read for it. What could have been run
//! before is looked up first. The server's count of deliveries does not tell: a single server that is killed forgets
//! those of its last moments, and delays (tried with nats-server 2.15, `sync_interval: always`: messages that were
//! delivered and delayed came again at once, as delivered once). With replicas both survive their leader.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_nats::jetstream::{AckKind, Message};

use super::clock::millis_of;
use super::core::{Core, DELIVERED, from_json};
use super::held::Lease;
use super::jobs::read_tries;
use super::write::note;
use crate::CallError;
use crate::durable::engine::Delivery;
use crate::durable::record::{JobRecord, Tries};
use crate::durable::retry::LONGEST;
use crate::nats::unusable;

/// A job of that age in milliseconds may have been delivered by a server that does not know it any more: no server is
/// back, and no leader elected, within that time without a connection lost.
const FRESH: u64 = 250;
/// How far the clocks of two servers may be apart, in milliseconds.
const APART: u64 = 1_000;
/// For how long a job is left alone that cannot be read.
const UNREADABLE: Duration = Duration::from_secs(60);
/// After how long a job is delivered again that could not be looked up.
const BEHIND: Duration = Duration::from_millis(500);
/// How often a job is looked up that is not there yet, and how long it is left alone.
const READS: usize = 10;
const SETTLE: Duration = Duration::from_millis(50);
/// How much too early a job may be, in milliseconds.
const EARLY: u64 = 5;

/// A job that is to be run.
pub(super) struct Admitted {
    delivery: Delivery,
    lease: Lease,
    pub(super) since: Instant,
}

impl Admitted {
    /// The job is a worker's from here on. `None` if it was closed meanwhile.
    pub(super) fn claim(self, core: &Core) -> Option<Delivery> {
        let id = &self.delivery.job.id;
        if core.held.is_closed(id, self.lease.sequence) {
            return None;
        }
        core.held.insert(id.clone(), self.lease);
        Some(self.delivery)
    }
}

/// The job of a message. `None` if it is not to be run, or not here and now.
pub(super) async fn admit(core: &Core, message: Message) -> Result<Option<Admitted>, CallError> {
    let since = Instant::now();
    let info = match message.info() {
        Ok(info) => info,
        Err(error) => return Err(unusable("a message is none of JetStream's", &*error)),
    };
    let (sequence, published) = (info.stream_sequence, millis_of(info.published));
    let delivered = u64::try_from(info.delivered).unwrap_or(1).max(1);
    let job: JobRecord = match from_json(&message.payload, &message.subject) {
        Ok(job) => job,
        Err(error) => {
            tracing::error!(%error, "a job can't be read, and stays in its queue");
            give_up(&message, UNREADABLE).await;
            return Ok(None);
        }
    };
    // It came twice to this process: what runs here keeps it, and its acknowledgement is that of both.
    if core.held.came_again(&job, sequence, delivered, core.config.limits.lease) {
        return Ok(None);
    }
    let now = core.clock.now();
    let headers = message.headers.as_ref();
    let lost = core.lost.load(Ordering::Relaxed);
    let is_scheduled = headers.is_some_and(|headers| headers.get("Nats-Scheduler").is_some());
    let may_be_known = delivered > 1
        || now > published.saturating_add(FRESH)
        || (lost > 0 && published <= lost.saturating_add(APART))
        || is_scheduled;
    // Its schedule may have fired while the job was cancelled, and then stands behind the ending.
    if is_scheduled {
        match core.has_ended(&job, sequence).await {
            Ok(false) => {}
            Ok(true) => {
                let _ = message.ack().await;
                core.remove_open(&job.id, sequence).await?;
                return Ok(None);
            }
            Err(error) => {
                give_up(&message, BEHIND).await;
                return Err(error);
            }
        }
    }
    let mut deliveries = delivered;
    let (mut tries, mut place) = (Tries::default(), sequence);
    if may_be_known {
        let queue = job.id.queue();
        let mut reads = 0;
        let last = loop {
            match core.last(queue, &core.subjects.of(&job.id, ">")).await {
                // Here rather than by another delivery, which would count as if a worker had died with this one.
                Ok(last) if reads < READS && last.as_ref().is_none_or(|last| last.sequence < sequence) => {
                    reads += 1;
                    tokio::time::sleep(SETTLE).await;
                }
                Ok(last) => break last,
                Err(error) => {
                    give_up(&message, BEHIND).await;
                    return Err(error);
                }
            }
        };
        match last {
            Some(last) if last.sequence > sequence && last.subject.ends_with(".try") => {
                (tries, place) = (read_tries(&last.payload, &last.subject), last.sequence);
                let told = last.headers.get(DELIVERED).map_or("", |told| told.as_str());
                let (then, all) = told.split_once(' ').unwrap_or_default();
                let (then, all): (u64, u64) = (then.parse().unwrap_or(0), all.parse().unwrap_or(0));
                // Fewer than then: the server has forgotten them, and counts from the beginning.
                let since_then = if delivered > then { delivered - then } else { delivered };
                deliveries = all.saturating_add(since_then);
                if let Some(next) = tries.next.filter(|next| *next > now.saturating_add(EARLY)) {
                    let wait = Duration::from_millis(next - now);
                    // This delivery does not count.
                    core.write_tries(&job.id, &tries, (delivered, deliveries.saturating_sub(1)), wait, place).await?;
                    give_up(&message, wait).await;
                    return Ok(None);
                }
            }
            // The message itself.
            Some(last) if last.sequence == sequence => {}
            // It has ended since then: what is left of it goes.
            Some(last) if last.sequence > sequence && last.subject.contains(".end.") => {
                let _ = message.ack().await;
                core.remove_open(&job.id, last.sequence).await?;
                return Ok(None);
            }
            // A schedule may fire twice when its leader dies: the later job is run.
            Some(last) if last.sequence > sequence => {
                let _ = message.ack().await;
                return Ok(None);
            }
            // The server that reads is behind the one that delivered: a leader may not have applied all of what it leads.
            // To take the job for gone would lose it. If it is gone, it does not come again.
            _ => {
                give_up(&message, BEHIND).await;
                return Ok(None);
            }
        }
    }
    let Some(receipt) = message.reply.clone() else { return Ok(None) };
    let note = headers.and_then(note).map(str::to_owned);
    let submitted = job.submitted;
    let lease = Lease { receipt: receipt.clone(), sequence, submitted, last: place, delivered, note, since };
    let delivery = Delivery::new(job, receipt.as_str()).with_tries(deliveries, tries);
    Ok(Some(Admitted { delivery, lease, since }))
}

async fn give_up(message: &Message, wait: Duration) {
    if let Err(error) = message.ack_with(AckKind::Nak(Some(wait.min(LONGEST)))).await {
        tracing::debug!(%error, "a job can't be given back; it comes again when its lease is over");
    }
}
