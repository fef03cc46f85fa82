//! Takes jobs from the lanes of a queue in turn.
//!
//! Each lane has requests waiting at the server, so that jobs arrive without being requested one by one. A lane that
//! uses up its requests gets larger ones, as far as workers have room; the others get small ones. Jobs that arrive
//! while no worker has room are given back after a second, for other workers. When the last worker ends, all that still
//! arrive are given back.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::consumer::Consumer;
use async_nats::jetstream::consumer::pull::{BatchConfig, Config};
use async_nats::{StatusCode, Subject, Subscriber};
use futures_util::future::{join_all, poll_fn};
use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::admit::{Admitted, Look, admit, look};
use super::core::Core;
use crate::CallError;
use crate::durable::engine::Delivery;
use crate::durable::retry::after;
use crate::model::lock::lock;
use crate::model::random::jitter;
use crate::nats::unusable;

/// How long a request waits at the server, at most. Requests are short because a leader that dies takes its requests
/// with it. The length is random because the server gives a job to the oldest request: with one length, jobs that
/// arrive at regular times would all go to the same worker.
const WAITING: Duration = Duration::from_millis(1_500);
/// Limit of jobs per request for a lane that has few.
const FEW: usize = 16;
/// How long after its end a request counts as lost.
const LOST: Duration = Duration::from_secs(1);
/// How long a lane is paused whose request failed.
const PAUSE: Duration = Duration::from_millis(200);
/// After how long it is checked if a lane that cannot be asked still exists; how often this is considered.
const BROKEN: Duration = Duration::from_secs(3);
/// How long a job waits in this process for a worker with room, at most; and no longer than a quarter of its lease.
const UNCLAIMED: Duration = Duration::from_secs(1);

/// Takes jobs of one queue for this process.
pub(super) struct Puller {
    shared: Arc<Shared>,
}

struct Shared {
    queue: String,
    /// Number of workers that are asking for jobs.
    pulls: AtomicUsize,
    /// Locked by the task that reads what the server sends.
    lanes: tokio::sync::Mutex<Vec<Lane>>,
    ready: Mutex<VecDeque<Box<Admitted>>>,
    /// Messages that have to be looked up before they are ready.
    further: Mutex<Vec<jetstream::Message>>,
    /// Locked by the task that gives back what was ready.
    giving: tokio::sync::Mutex<()>,
}

struct Lane {
    consumer: Consumer<Config>,
    inbox: Subject,
    /// The messages of the inbox, once it is subscribed to.
    messages: Option<Subscriber>,
    /// Number of requested jobs that have not arrived.
    asked: usize,
    /// Number of jobs per request.
    share: usize,
    /// Until when they may arrive.
    until: Instant,
    /// When the connection was last lost, as far as its requests have noticed.
    lost: u64,
    /// Until when it is paused.
    paused: Option<Instant>,
    /// The first and the last failed request since the last success.
    broken: Option<(Instant, Instant)>,
}

impl Puller {
    pub(super) fn start(core: &Arc<Core>, queue: &str, consumers: &[Consumer<Config>]) -> Self {
        let shared = Arc::new(Shared {
            queue: queue.to_owned(),
            pulls: AtomicUsize::new(0),
            lanes: consumers.iter().map(|consumer| Lane::new(core, consumer)).collect::<Vec<_>>().into(),
            ready: Mutex::default(),
            further: Mutex::default(),
            giving: tokio::sync::Mutex::default(),
        });
        // The task ends by itself.
        tokio::spawn(keep(core.clone(), shared.clone()));
        tokio::spawn(mend(Arc::downgrade(core), Arc::downgrade(&shared)));
        Self { shared }
    }

    pub(super) async fn pull(
        &self,
        core: &Arc<Core>,
        most: usize,
        at_most: Duration,
    ) -> Result<Vec<Delivery>, CallError> {
        let _pulls = self.shared.pulls();
        if self.shared.ready().is_empty() {
            fill(&self.shared, core, most, after(at_most)).await?;
        }
        let mut ready = self.shared.ready();
        let few = most.min(ready.len());
        Ok(ready.drain(..few).filter_map(|admitted| admitted.claim(core)).collect())
    }

    /// Gives back what no worker took, and what still arrives for the requests that wait at the server. Requests are
    /// not cancelled, since a job that the server sends at that moment would be lost until its lease has expired; they
    /// end soon.
    ///
    /// Ends at once if another worker asks for jobs: it takes what there is.
    pub(super) async fn release(&self, core: &Arc<Core>) -> Result<(), CallError> {
        let shared = &self.shared;
        let mut failed = Ok(());
        while shared.pulls.load(Ordering::Acquire) == 0 {
            let is_over = {
                let mut lanes = shared.lanes.lock().await;
                shared.look(core, rest(core, &mut lanes).await);
                is_quiet(&lanes)
            };
            failed = failed.and(shared.look_up(core).await);
            let _giving = shared.giving.lock().await;
            let left: Vec<_> = shared.ready().drain(..).collect();
            failed = failed.and(give_back(core, left).await);
            if is_over {
                break;
            }
        }
        failed
    }
}

impl Shared {
    /// Counts a worker that asks for jobs, until the returned guard is dropped.
    fn pulls(&self) -> impl Drop + '_ {
        self.pulls.fetch_add(1, Ordering::AcqRel);
        Pulls(self)
    }

    fn ready(&self) -> MutexGuard<'_, VecDeque<Box<Admitted>>> {
        lock(&self.ready)
    }

    fn further(&self) -> MutexGuard<'_, Vec<jetstream::Message>> {
        lock(&self.further)
    }

    /// Adds what is to be run to what is ready, if a first look shows that. Does not wait, so no message is lost with a
    /// dropped future.
    fn look(&self, core: &Core, messages: Vec<jetstream::Message>) {
        for message in messages {
            match look(core, message) {
                Look::Job(admitted) => self.ready().push_back(admitted),
                Look::Nothing => {}
                Look::Further(message) => self.further().push(*message),
            }
        }
    }

    /// Looks up the rest, and adds what is to be run to what is ready.
    async fn look_up(self: &Arc<Self>, core: &Arc<Core>) -> Result<(), CallError> {
        let messages = std::mem::take(&mut *self.further());
        if messages.is_empty() {
            return Ok(());
        }
        let (shared, core) = (self.clone(), core.clone());
        // In a task, which ends even if the caller does not wait.
        let looking = tokio::spawn(async move {
            let admitted = join_all(messages.into_iter().map(|message| admit(&core, message))).await;
            let mut failed = Ok(());
            for admitted in admitted {
                match admitted {
                    Ok(Some(admitted)) => shared.ready().push_back(admitted),
                    Ok(None) => {}
                    Err(error) => failed = Err(error),
                }
            }
            failed
        });
        looking.await.unwrap_or_else(|error| Err(unusable("jobs can't be looked up", &error)))
    }
}

struct Pulls<'a>(&'a Shared);

impl Drop for Pulls<'_> {
    fn drop(&mut self) {
        self.0.pulls.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Reads what the server sends until something is ready, or time is up. If this is dropped, what was read is kept.
async fn fill(shared: &Arc<Shared>, core: &Arc<Core>, most: usize, until: Instant) -> Result<(), CallError> {
    let Ok(mut lanes) = timeout_at(until, shared.lanes.lock()).await else { return Ok(()) };
    loop {
        // What has arrived already takes up room.
        shared.look(core, come(core, &mut lanes));
        let room = most.saturating_sub(shared.further().len() + shared.ready().len());
        ask(core, &mut lanes, room).await;
        shared.look_up(core).await?;
        if !shared.ready().is_empty() || Instant::now() >= until {
            return Ok(());
        }
        let messages = read(core, &mut lanes, until).await;
        shared.look(core, messages);
    }
}

/// Reads what the server sends. Waits until there is something, or a request has to be renewed, but not beyond `until`.
async fn read(core: &Core, lanes: &mut [Lane], until: Instant) -> Vec<jetstream::Message> {
    // A request may be lost without notice.
    let until = until.min(Instant::now() + PAUSE);
    let mut messages = Vec::new();
    let _ = timeout_at(until, poll_fn(|cx| poll(core, lanes, cx, &mut messages))).await;
    messages
}

/// What the server has sent so far.
fn come(core: &Core, lanes: &mut [Lane]) -> Vec<jetstream::Message> {
    let mut messages = Vec::new();
    let _ = poll_fn(|cx| poll(core, lanes, cx, &mut messages)).now_or_never();
    messages
}

/// What the server still sends for earlier requests: like [`read`], without new requests.
async fn rest(core: &Core, lanes: &mut [Lane]) -> Vec<jetstream::Message> {
    let mut messages = Vec::new();
    let wait = poll_fn(|cx| {
        let _ = poll(core, lanes, cx, &mut messages);
        if messages.is_empty() && !is_quiet(lanes) { Poll::Pending } else { Poll::Ready(()) }
    });
    let _ = timeout(PAUSE, wait).await;
    messages
}

/// True if nothing more arrives for the requests.
fn is_quiet(lanes: &[Lane]) -> bool {
    lanes.iter().all(|lane| lane.asked == 0)
}

fn poll(core: &Core, lanes: &mut [Lane], cx: &mut Context<'_>, messages: &mut Vec<jetstream::Message>) -> Poll<()> {
    let mut is_over = false;
    for lane in lanes {
        is_over |= lane.poll(core, cx, messages);
    }
    if is_over || !messages.is_empty() { Poll::Ready(()) } else { Poll::Pending }
}

/// Asks each lane for its share; lanes with many jobs together ask for no more than there is room.
async fn ask(core: &Core, lanes: &mut [Lane], room: usize) {
    if room == 0 {
        return;
    }
    let few = (room / lanes.len().max(1)).clamp(1, FEW);
    let many = lanes.iter().filter(|lane| lane.share > few).count().max(1);
    for lane in lanes.iter_mut() {
        lane.share = lane.share.clamp(few, (room / many).max(few)).min(lane.limit());
        lane.ask(core).await;
    }
    // Another lane is the first next time.
    lanes.rotate_left(1);
}

impl Lane {
    fn new(core: &Core, consumer: &Consumer<Config>) -> Self {
        Self {
            consumer: consumer.clone(),
            inbox: core.client.new_inbox().into(),
            messages: None,
            asked: 0,
            share: 0,
            until: Instant::now(),
            lost: 0,
            paused: None,
            broken: None,
        }
    }

    /// Limit of jobs per request, if an operator has set one.
    fn limit(&self) -> usize {
        let limit = usize::try_from(self.consumer.cached_info().config.max_batch).unwrap_or_default();
        if limit == 0 { usize::MAX } else { limit }
    }

    /// Requests what is missing, if that is half of the share or more.
    async fn ask(&mut self, core: &Core) {
        if self.asked > self.share / 2 || self.paused.is_some_and(|until| Instant::now() < until) {
            return;
        }
        self.paused = None;
        // Boxed, since one request brings many jobs.
        if let Err(error) = Box::pin(self.request(core)).await {
            tracing::debug!(%error, "a lane can't be asked");
            self.pause();
        }
    }

    async fn request(&mut self, core: &Core) -> Result<(), async_nats::Error> {
        if self.messages.is_none() {
            self.messages = Some(core.client.subscribe(self.inbox.clone()).await?);
        }
        let (missing, expires) = (self.share - self.asked, jitter(WAITING));
        let batch = BatchConfig { batch: missing, expires: Some(expires), ..BatchConfig::default() };
        // Before it is sent: the future may be dropped after the sending.
        (self.asked, self.until) = (self.share, Instant::now() + expires + LOST);
        self.lost = core.lost.load(Ordering::Relaxed);
        self.consumer.request_batch(batch, self.inbox.clone()).await?;
        Ok(())
    }

    fn pause(&mut self) {
        (self.asked, self.share, self.paused) = (0, 0, Some(Instant::now() + PAUSE));
    }

    /// Takes what has arrived. Returns `true` if a new request should be made.
    fn poll(&mut self, core: &Core, cx: &mut Context<'_>, messages: &mut Vec<jetstream::Message>) -> bool {
        while let Some(Poll::Ready(message)) = self.messages.as_mut().map(|messages| messages.poll_next_unpin(cx)) {
            let Some(message) = message else {
                // The connection is closed for good.
                self.messages = None;
                self.pause();
                return true;
            };
            match message.status {
                None | Some(StatusCode::OK) => {
                    self.broken = None;
                    messages.push(jetstream::Message { message, context: core.context.clone() });
                    self.asked = self.asked.saturating_sub(1);
                    if self.asked <= self.share / 2 {
                        // The lane has many jobs.
                        self.share = self.share.saturating_mul(2);
                    }
                }
                Some(StatusCode::IDLE_HEARTBEAT) => {}
                // A request has timed out; the message has the number of jobs that did not arrive.
                Some(StatusCode::TIMEOUT) => {
                    self.broken = None;
                    let headers = message.headers.as_ref();
                    let left = headers.and_then(|headers| headers.get("Nats-Pending-Messages"));
                    let left = left.and_then(|left| left.as_str().parse::<usize>().ok());
                    self.asked = left.map_or(0, |left| self.asked.saturating_sub(left));
                    self.share = 0;
                }
                // 503: the lane has no leader now. 409: it has another leader, or no longer exists.
                Some(status) => {
                    tracing::debug!(%status, description = message.description, "a lane can't be waited for");
                    let now = Instant::now();
                    self.broken = Some((self.broken.map_or(now, |(first, _)| first), now));
                    self.pause();
                }
            }
        }
        let lost = core.lost.load(Ordering::Relaxed);
        if self.asked > 0 && (lost > self.lost || Instant::now() >= self.until) {
            (self.asked, self.share) = (0, 0);
        }
        self.lost = lost;
        self.asked <= self.share / 2 && self.paused.is_none_or(|until| Instant::now() >= until)
    }
}

/// Gives back what no worker has room for. When the engine is dropped, it ends as soon as nothing more can arrive.
async fn keep(core: Arc<Core>, shared: Arc<Shared>) {
    let unclaimed = UNCLAIMED.min(core.config.limits.lease / 4);
    loop {
        let _ = timeout(unclaimed / 2, core.dropped.cancelled()).await;
        let is_dropped = core.dropped.is_cancelled();
        let mut is_over = false;
        if let Ok(mut lanes) = shared.lanes.try_lock() {
            shared.look(&core, come(&core, &mut lanes));
            if let Err(error) = shared.look_up(&core).await {
                tracing::debug!(%error, "a job can't be admitted");
            }
            is_over = is_quiet(&lanes);
        }
        let giving = shared.giving.lock().await;
        let old: Vec<_> = {
            let mut ready = shared.ready();
            let old = ready.iter().take_while(|admitted| is_dropped || admitted.since.elapsed() > unclaimed).count();
            ready.drain(..old).collect()
        };
        if let Err(error) = give_back(&core, old).await {
            tracing::debug!(%error, "a job can't be given back");
        }
        drop(giving);
        if is_dropped {
            if is_over {
                let _ = core.client.flush().await;
                return;
            }
            sleep(PAUSE / 4).await;
        }
    }
}

/// Gives jobs back that no worker had.
async fn give_back(core: &Core, jobs: impl IntoIterator<Item = Box<Admitted>>) -> Result<(), CallError> {
    let given = jobs.into_iter().filter_map(|admitted| admitted.claim(core)).map(|delivery| async move {
        let mut tries = delivery.tries.clone();
        tries.pass(false);
        core.give_back(&delivery, &tries, Duration::ZERO).await
    });
    join_all(given).await.into_iter().collect()
}

/// Makes missing parts of the queue again, if one of its lanes cannot be asked for longer than an election takes.
async fn mend(core: Weak<Core>, shared: Weak<Shared>) {
    loop {
        sleep(BROKEN).await;
        let (Some(core), Some(shared)) = (core.upgrade(), shared.upgrade()) else { return };
        let is_broken = |lane: &Lane| lane.broken.is_some_and(|(first, last)| last - first >= BROKEN);
        if !shared.lanes.lock().await.iter().any(is_broken) {
            continue;
        }
        let mended = core.mend(Some(&shared.queue)).await;
        shared.lanes.lock().await.iter_mut().for_each(|lane| lane.broken = None);
        match mended {
            Ok(true) => {}
            Ok(false) => tracing::warn!(queue = shared.queue, "no jobs can be taken from a lane"),
            Err(error) => tracing::warn!(%error, queue = shared.queue, "no jobs can be taken from a lane"),
        }
    }
}
