//! Taking jobs from the lanes of a queue in turn.
//!
//! A lane that had enough for its last request is asked again for as many as its share is; it answers at once. The others
//! have a request waiting at the server, by which jobs come without being asked for, few for each lane. What comes by them
//! while no worker has room is given back after a second, for other workers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::Consumer;
use async_nats::jetstream::consumer::pull::{Batch, Config};
use futures_util::future::{join_all, poll_fn};
use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::admit::{Admitted, admit};
use super::core::Core;
use super::failure::{jitter, unusable};
use crate::CallError;
use crate::durable::engine::Delivery;

/// How long a request waits at the server, at most. A leader that dies takes its requests with it, so they are short. The
/// server gives a job to the oldest request, so the length is random: with one length, jobs that come at regular times
/// would all go to the same worker.
const WAITING: Duration = Duration::from_millis(1_500);
/// For how many jobs a request waits, at most.
const AT_ONCE: usize = 16;
/// After how long no more is expected of a request.
const LOST: Duration = Duration::from_secs(1);
/// How long a lane is left alone that could not be asked.
const PAUSE: Duration = Duration::from_millis(200);
/// How long a job waits in this process for a worker with room, at most; and no longer than a quarter of its lease.
const UNCLAIMED: Duration = Duration::from_secs(1);

/// Takes jobs of one queue for this process.
pub(super) struct Puller {
    shared: Arc<Shared>,
}

struct Shared {
    /// Held by who asks the server.
    lanes: tokio::sync::Mutex<Vec<Lane>>,
    ready: Mutex<VecDeque<Admitted>>,
}

struct Lane {
    consumer: Consumer<Config>,
    /// The request that waits at the server, since when, and for how many jobs more.
    waiting: Option<(Batch, Instant, usize)>,
    /// True if the last request got all that it asked for.
    is_busy: bool,
    /// Until when it is left alone.
    paused: Option<Instant>,
}

impl Puller {
    pub(super) fn start(core: &Arc<Core>, consumers: &[Consumer<Config>]) -> Self {
        let lane = |consumer: &Consumer<Config>| Lane {
            consumer: consumer.clone(),
            waiting: None,
            is_busy: false,
            paused: None,
        };
        let lanes = consumers.iter().map(lane).collect::<Vec<_>>().into();
        let shared = Arc::new(Shared { lanes, ready: Mutex::default() });
        // It ends by itself.
        tokio::spawn(keep(core.clone(), shared.clone()));
        Self { shared }
    }

    pub(super) async fn pull(
        &self,
        core: &Arc<Core>,
        most: usize,
        at_most: Duration,
    ) -> Result<Vec<Delivery>, CallError> {
        if self.shared.ready().is_empty() {
            // In a task, which ends even if the caller does not wait: what the server has sent must not get lost.
            let filling = tokio::spawn(fill(self.shared.clone(), core.clone(), most, Instant::now() + at_most));
            match filling.await {
                Ok(filled) => filled?,
                Err(error) => return Err(unusable("jobs can't be pulled", &error)),
            }
        }
        let mut ready = self.shared.ready();
        let few = most.min(ready.len());
        Ok(ready.drain(..few).map(|admitted| admitted.claim(core)).collect())
    }
}

impl Shared {
    fn ready(&self) -> MutexGuard<'_, VecDeque<Admitted>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts what is to be run among what is ready.
    async fn take(&self, core: &Arc<Core>, messages: Vec<Message>) -> Result<(), CallError> {
        let admitted = join_all(messages.into_iter().map(|message| admit(core, message))).await;
        let mut failed = Ok(());
        for admitted in admitted {
            match admitted {
                Ok(Some(admitted)) => self.ready().push_back(admitted),
                Ok(None) => {}
                Err(error) => failed = Err(error),
            }
        }
        failed
    }
}

/// Asks the server until something is ready, or time is up.
async fn fill(shared: Arc<Shared>, core: Arc<Core>, most: usize, until: Instant) -> Result<(), CallError> {
    let Ok(mut lanes) = timeout_at(until, shared.lanes.lock()).await else { return Ok(()) };
    loop {
        let mut messages = woken(&mut lanes).now_or_never().unwrap_or_default();
        let room = most.saturating_sub(messages.len() + shared.ready().len());
        messages.extend(ask_busy(&mut lanes, room).await);
        shared.take(&core, messages).await?;
        if !shared.ready().is_empty() || Instant::now() >= until {
            return Ok(());
        }
        if lanes.iter().any(|lane| lane.is_busy) {
            continue;
        }
        let share = (most / lanes.len().max(1)).clamp(1, AT_ONCE);
        for lane in lanes.iter_mut() {
            lane.wait(share).await;
        }
        let Ok(messages) = timeout_at(until, woken(&mut lanes)).await else { return Ok(()) };
        shared.take(&core, messages).await?;
    }
}

/// What the waiting requests brought; it waits until there is something, or a request has to be made anew.
async fn woken(lanes: &mut [Lane]) -> Vec<Message> {
    let mut messages = Vec::new();
    let any = poll_fn(|cx| {
        let mut is_over = false;
        for lane in lanes.iter_mut() {
            is_over |= lane.poll(cx, &mut messages);
        }
        if is_over || !messages.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    });
    // A request may be lost without a word.
    let _ = timeout(PAUSE, any).await;
    messages
}

/// Asks the busy lanes for their shares.
async fn ask_busy(lanes: &mut [Lane], room: usize) -> Vec<Message> {
    let busy = lanes.iter().filter(|lane| lane.is_busy).count();
    if busy == 0 || room == 0 {
        return Vec::new();
    }
    let asked = lanes.iter_mut().filter(|lane| lane.is_busy).enumerate();
    let asked = asked.map(|(index, lane)| lane.ask(room / busy + usize::from(index < room % busy)));
    let messages = join_all(asked).await.concat();
    // Another lane gets what cannot be shared out next time.
    lanes.rotate_left(1);
    messages
}

impl Lane {
    /// Asks for as many jobs as there are now.
    async fn ask(&mut self, share: usize) -> Vec<Message> {
        let mut messages = Vec::new();
        if share == 0 {
            return messages;
        }
        match self.consumer.fetch().max_messages(share).messages().await {
            Ok(mut batch) => {
                while let Ok(Some(Ok(message))) = timeout(LOST, batch.next()).await {
                    messages.push(message);
                }
            }
            Err(error) => tracing::debug!(%error, "a lane can't be asked"),
        }
        self.is_busy = messages.len() == share;
        messages
    }

    /// Leaves a request at the server.
    async fn wait(&mut self, share: usize) {
        if self.waiting.is_some() || self.paused.is_some_and(|until| Instant::now() < until) {
            return;
        }
        self.paused = None;
        match self.consumer.batch().max_messages(share).expires(jitter(WAITING)).messages().await {
            Ok(batch) => self.waiting = Some((batch, Instant::now(), share)),
            Err(_) => self.paused = Some(Instant::now() + PAUSE),
        }
    }

    /// Takes what its waiting request brought. Returns `true` if that is over.
    fn poll(&mut self, cx: &mut Context<'_>, messages: &mut Vec<Message>) -> bool {
        while let Some((batch, since, left)) = &mut self.waiting {
            match batch.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(message))) => {
                    messages.push(message);
                    *left = left.saturating_sub(1);
                    self.is_busy |= *left == 0;
                }
                Poll::Ready(Some(Err(error))) => {
                    // 503: the lane has no leader now.
                    tracing::debug!(%error, "a lane can't be waited for");
                    self.paused = Some(Instant::now() + PAUSE);
                    self.waiting = None;
                }
                Poll::Ready(None) => self.waiting = None,
                Poll::Pending if since.elapsed() < WAITING + LOST => return false,
                Poll::Pending => self.waiting = None,
            }
            if self.waiting.is_none() {
                return true;
            }
        }
        false
    }
}

/// Gives back what no worker has room for. When the engine is dropped, it ends as soon as nothing more can come.
async fn keep(core: Arc<Core>, shared: Arc<Shared>) {
    let unclaimed = UNCLAIMED.min(core.config.limits.lease / 4);
    loop {
        let _ = timeout(unclaimed / 2, core.dropped.cancelled()).await;
        let is_dropped = core.dropped.is_cancelled();
        let mut is_quiet = false;
        if let Ok(mut lanes) = shared.lanes.try_lock() {
            let messages = woken(&mut lanes).now_or_never().unwrap_or_default();
            if let Err(error) = shared.take(&core, messages).await {
                tracing::debug!(%error, "a job can't be admitted");
            }
            is_quiet = lanes.iter().all(|lane| lane.waiting.is_none());
        }
        let old: Vec<_> = {
            let mut ready = shared.ready();
            let is_old = |admitted: &&Admitted| is_dropped || admitted.since.elapsed() > unclaimed;
            let old = ready.iter().take_while(is_old).count();
            ready.drain(..old).collect()
        };
        for admitted in old {
            let delivery = admitted.claim(&core);
            let mut tries = delivery.tries.clone();
            tries.passes = tries.passes.saturating_add(1);
            if let Err(error) = core.give_back(&delivery, &tries, Duration::ZERO).await {
                tracing::debug!(%error, "a job can't be given back");
            }
        }
        if is_dropped {
            if is_quiet {
                let _ = core.client.flush().await;
                return;
            }
            sleep(PAUSE / 4).await;
        }
    }
}
