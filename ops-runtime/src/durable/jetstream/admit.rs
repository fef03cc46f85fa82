//! Decides if a job that the server delivered is to be run.
//!
//! Usually a job was submitted a moment ago and never delivered before: then nothing is read. A job that may have run
//! before is looked up first. The server's count of deliveries is not reliable: a single server that is killed forgets
//! its most recent deliveries and delays (tried with nats-server 2.15, `sync_interval: always`: messages that were
//! delivered and delayed came again at once, as delivered once). With replicas, both survive the loss of the leader.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::{AckKind, Message};

use super::clock::millis_of;
use super::core::{Core, DELIVERED, from_json};
use super::leases::Lease;
use super::tries::read_tries;
use super::write::note;
use crate::CallError;
use crate::durable::engine::Delivery;
use crate::durable::record::{JobRecord, Tries};
use crate::durable::retry::LONGEST;
use crate::nats::unusable;

/// A job older than this, in milliseconds, may have been delivered by a server that does not know it any more. No
/// server restarts, and no leader is elected, within that time without a lost connection.
const FRESH: u64 = 250;
/// The largest assumed difference between the clocks of two servers, in milliseconds.
const APART: u64 = 1_000;
/// After how long a job that cannot be read is delivered again.
const UNREADABLE: Duration = Duration::from_secs(60);
/// After how long a job is delivered again that could not be looked up, or not be written about.
const BEHIND: Duration = Duration::from_millis(500);
/// How often a job that is not there yet is looked up, and at which interval.
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
    /// Gives the job to a worker. `None` if it was closed meanwhile.
    pub(super) fn claim(self, core: &Core) -> Option<Delivery> {
        let id = &self.delivery.job.id;
        if core.held.is_closed(id, self.lease.sequence) {
            return None;
        }
        core.held.insert(id.clone(), self.lease);
        Some(self.delivery)
    }
}

/// The information in a message itself.
struct Seen {
    job: JobRecord,
    /// Its sequence in the stream.
    sequence: u64,
    /// How often the server has delivered it.
    delivered: u64,
    /// True if its schedule sent it.
    is_scheduled: bool,
    /// True if something else may be stored of the job.
    may_be_known: bool,
    since: Instant,
}

fn see(core: &Core, message: &Message) -> Result<Seen, CallError> {
    let since = Instant::now();
    let info = match message.info() {
        Ok(info) => info,
        Err(error) => return Err(unusable("a message is none of JetStream's", &*error)),
    };
    let (sequence, published) = (info.stream_sequence, millis_of(info.published));
    let delivered = u64::try_from(info.delivered).unwrap_or(1).max(1);
    let job: JobRecord = from_json(&message.payload, &message.subject)?;
    let lost = core.lost.load(Ordering::Relaxed);
    let is_scheduled = message.headers.as_ref().is_some_and(|headers| headers.get("Nats-Scheduler").is_some());
    let may_be_known = delivered > 1
        || core.clock.now() > published.saturating_add(FRESH)
        || (lost > 0 && published <= lost.saturating_add(APART))
        || is_scheduled;
    Ok(Seen { job, sequence, delivered, is_scheduled, may_be_known, since })
}

/// The result of a first look at a message, without a request to the server.
pub(super) enum Look {
    /// A job that is to be run.
    Job(Box<Admitted>),
    /// Ignored.
    Nothing,
    /// It is to be [admitted](admit).
    Further(Box<Message>),
}

pub(super) fn look(core: &Core, message: Message) -> Look {
    match see(core, &message) {
        Ok(seen) if is_here(core, &seen) => Look::Nothing,
        Ok(seen) if !seen.may_be_known => {
            let place = seen.sequence;
            admitted(&message, seen, place, (1, Tries::default())).map_or(Look::Nothing, Look::Job)
        }
        // Errors are reported there.
        Ok(_) | Err(_) => Look::Further(Box::new(message)),
    }
}

/// True if it was delivered twice to this process: the running one keeps it, and its acknowledgement counts for both.
fn is_here(core: &Core, seen: &Seen) -> bool {
    core.held.came_again(&seen.job, seen.sequence, seen.delivered, core.config.limits.lease)
}

/// The job of a message, the sequence of the last message about it, the number of its deliveries, and its tries.
fn admitted(message: &Message, seen: Seen, last: u64, (deliveries, tries): (u64, Tries)) -> Option<Box<Admitted>> {
    let receipt = message.reply.clone()?;
    let Seen { job, sequence, delivered, since, .. } = seen;
    let (note, submitted) = (note(&message.payload).map(str::to_owned), job.submitted);
    let lease = Lease { receipt: receipt.clone(), sequence, submitted, last, delivered, note, since };
    let delivery = Delivery::new(job, receipt.as_str()).with_tries(deliveries, tries);
    Some(Box::new(Admitted { delivery, lease, since }))
}

/// The job of a message. `None` if it is not to be run, or not here and now.
pub(super) async fn admit(core: &Core, message: Message) -> Result<Option<Box<Admitted>>, CallError> {
    let seen = match see(core, &message) {
        Ok(seen) => seen,
        Err(error) => {
            tracing::error!(%error, "a job can't be read, and stays in its queue");
            give_up(core, &message, Instant::now(), UNREADABLE).await;
            return Ok(None);
        }
    };
    if is_here(core, &seen) {
        return Ok(None);
    }
    let verdict = match look_up(core, &seen).await {
        Ok(verdict) => verdict,
        Err(error) => {
            give_up(core, &message, seen.since, BEHIND).await;
            return Err(error);
        }
    };
    match verdict {
        Verdict::Run(Known { deliveries, tries, place }) => {
            let Some(since) = renew(core, &message, seen.since).await? else { return Ok(None) };
            return Ok(admitted(&message, Seen { since, ..seen }, place, (deliveries, tries)));
        }
        Verdict::Early(known, wait) => {
            // This delivery does not count.
            let delivered = (seen.delivered, known.deliveries.saturating_sub(1));
            if let Err(error) = core.write_tries(&seen.job.id, &known.tries, delivered, known.place).await {
                give_up(core, &message, seen.since, BEHIND).await;
                return Err(error);
            }
            give_up(core, &message, seen.since, wait).await;
        }
        Verdict::Ended(place) => {
            let _ = message.ack().await;
            core.remove_open(&seen.job.id, place).await?;
        }
        Verdict::Replaced => {
            let _ = message.ack().await;
        }
        Verdict::Behind => give_up(core, &message, seen.since, BEHIND).await,
    }
    Ok(None)
}

/// What is to be done with a job.
enum Verdict {
    Run(Known),
    /// It is not due yet, but after this time.
    Early(Known, Duration),
    /// It has ended, as the message of this sequence says. The rest of it is removed.
    Ended(u64),
    /// A schedule may fire twice when its leader dies: the later job is run.
    Replaced,
    /// The server that reads is behind the one that delivered: a leader may not have applied all of its log. To treat the job
    /// as gone would lose it. If it is gone, it is not delivered again.
    Behind,
}

/// What is known of a job.
struct Known {
    deliveries: u64,
    tries: Tries,
    /// The sequence of the last message about it.
    place: u64,
}

/// Reads what is stored of a job beside its message.
async fn look_up(core: &Core, seen: &Seen) -> Result<Verdict, CallError> {
    let &Seen { ref job, sequence, delivered, is_scheduled, may_be_known, .. } = seen;
    let now = core.clock.now();
    // Its schedule may have fired while the job was cancelled, and is then behind the ending.
    if is_scheduled && core.has_ended(job, sequence).await? {
        return Ok(Verdict::Ended(sequence));
    }
    let by_itself = Verdict::Run(Known { deliveries: delivered, tries: Tries::default(), place: sequence });
    if !may_be_known {
        return Ok(by_itself);
    }
    let last = last(core, seen).await?.filter(|last| last.sequence >= sequence);
    let Some(last) = last else { return Ok(Verdict::Behind) };
    if last.sequence == sequence {
        return Ok(by_itself);
    }
    if !last.subject.ends_with(".try") {
        let has_ended = last.subject.contains(".end.");
        return Ok(if has_ended { Verdict::Ended(last.sequence) } else { Verdict::Replaced });
    }
    let tries = read_tries(&last.payload, &last.subject);
    let told = last.headers.get(DELIVERED).map_or("", |told| told.as_str());
    let (then, all) = told.split_once(' ').unwrap_or_default();
    let (then, all): (u64, u64) = (then.parse().unwrap_or(0), all.parse().unwrap_or(0));
    // Fewer than then: the server has forgotten them, and counts from the beginning.
    let since_then = if delivered > then { delivered - then } else { delivered };
    let next = tries.next.filter(|next| *next > now.saturating_add(EARLY));
    let known = Known { deliveries: all.saturating_add(since_then), tries, place: last.sequence };
    Ok(match next {
        Some(next) => Verdict::Early(known, Duration::from_millis(next - now)),
        None => Verdict::Run(known),
    })
}

/// The last message about a job. One that is not there yet is waited for.
async fn last(core: &Core, seen: &Seen) -> Result<Option<StreamMessage>, CallError> {
    let subject = core.subjects.of(&seen.job.id, ">");
    let mut reads = 0;
    loop {
        let last = core.last(seen.job.id.queue(), &subject).await?;
        if reads == READS || last.as_ref().is_some_and(|last| last.sequence >= seen.sequence) {
            return Ok(last);
        }
        // Retried here: another delivery would count as if a worker had died with this one.
        reads += 1;
        tokio::time::sleep(SETTLE).await;
    }
}

/// Renews the lease of a job whose lookup took more than a third of it, which happens while the server is away: otherwise
/// the lease could end before the worker extends it for the first time. `since` is when the job arrived. Returns when the
/// lease began; `None` if it is over: then the server delivers the job again by itself, perhaps to another worker.
async fn renew(core: &Core, message: &Message, since: Instant) -> Result<Option<Instant>, CallError> {
    let (lease, renewed) = (core.config.limits.lease, Instant::now());
    if since.elapsed() < lease / 3 {
        return Ok(Some(since));
    }
    let Some(receipt) = message.reply.clone().filter(|_| since.elapsed() < lease) else { return Ok(None) };
    let asked = core.client.request(receipt, AckKind::Progress.into()).await;
    asked.map_err(|error| unusable("a lease can't be extended", &error))?;
    Ok((since.elapsed() < lease).then_some(renewed))
}

/// Has a job delivered again after a time. `since` is when it arrived: when its lease is over, another worker may have
/// it, and the server would take the job from that worker.
async fn give_up(core: &Core, message: &Message, since: Instant, wait: Duration) {
    // What is sent without a connection arrives with the next one, which may be too late.
    let is_connected = core.client.connection_state() == State::Connected;
    if !is_connected || since.elapsed() >= core.config.limits.lease {
        return;
    }
    if let Err(error) = message.ack_with(AckKind::Nak(Some(wait.min(LONGEST)))).await {
        tracing::debug!(%error, "a job can't be given back; it comes again when its lease is over");
    }
}
