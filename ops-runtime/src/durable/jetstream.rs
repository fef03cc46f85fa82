//! The engine on NATS `JetStream`: jobs are stored by one or several servers.
//!
//! ```no_run
//! use ops_runtime::durable::engine::Engine;
//! use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // Three servers of a cluster, each of which keeps every job.
//! let engine = JetStream::connect("nats://10.0.0.1,nats://10.0.0.2,nats://10.0.0.3", JetStreamConfig::new()).await?;
//! // One server, whose disk is relied on.
//! let engine = JetStream::connect("nats://127.0.0.1:4222", JetStreamConfig::new().with_replicas(1)).await?;
//! assert_eq!(engine.name(), "jetstream");
//! # Ok(()) }
//! ```
//!
//! It requires nats-server 2.12 or newer, for message schedules and TTLs of messages; it is tested with 2.15.
//!
//! # What it promises
//!
//! A submit, an ending, a step and a schedule are acknowledged when the server has acknowledged the write. The
//! configuration of the servers decides what that is worth:
//!
//! | servers | what loses acknowledged writes |
//! |---|---|
//! | three or five replicas in files, `sync_interval: always` | the loss of a majority of the disks |
//! | three or five replicas in files, default `sync_interval` (two minutes) | the power or the kernel of a majority failing at once, or of one server together with pauses or partitions of others |
//! | one replica in files, `sync_interval: always` | the loss of the disk |
//! | one replica in files, default `sync_interval` | a failure of the power or the kernel: up to two minutes of writes |
//! | replicas in memory | a majority of the servers ending at once |
//!
//! A server that is killed and started again loses nothing in the first four. The table distinguishes the default of
//! `sync_interval` because of [Jepsen's analysis of NATS 2.12.1](https://jepsen.io/analyses/nats-2.12.1) (December
//! 2025): servers acknowledge writes before they are on a disk, and flush them every two minutes. A coordinated power
//! failure, or the crash of one operating system together with paused processes or a slow network, lost acknowledged
//! writes and left replicas with different contents for good. So put `jetstream { sync_interval: always }` into the
//! configuration of each server: a client can neither make nor read this setting. Jepsen also found that damaged or
//! truncated files on a minority of the servers lost acknowledged writes, or the whole stream. No setting prevents
//! that, so keep backups of streams that you cannot afford to lose. (Losses when processes crashed, in 2.10.22, were
//! fixed in 2.10.23.)
//!
//! - **One submit of an id wins.** It is written on the condition that the server has no message of the job, and
//!   repeated until its outcome is known ([`with_request_timeout`](JetStreamConfig::with_request_timeout)).
//! - **One ending wins**, by the same kind of condition. It is written before the job is removed.
//! - **A job is with one worker at a time** as long as that worker extends its lease. A single server that is killed
//!   forgets its most recent deliveries, and gives their jobs to workers again: such a job may run twice, and one of
//!   its results counts. If effects must not be repeated, use steps and idempotency keys.
//! - **A dead worker's** jobs go to other workers when its lease has expired
//!   ([`with_lease`](JetStreamConfig::with_lease)).
//! - **Without a leader** (some seconds after the death of a server) requests are repeated, for 30 s by default. A new
//!   leader may not show acknowledged writes at once. So a job that was submitted here is read again for half a second
//!   if it is not there; one that is asked for by its id is not, since it may never have existed.
//! - **Missing streams** are made again, with a warning, by the processes that use them. Their contents are lost.
//! - **A worker that drains** gives back what was sent to its process, and returns when the server has received
//!   everything.
//! - **Delays** are schedules of the server, and survive any restart. Delays between attempts are stored with the
//!   tries, and survive as well.
//! - **Fairness**: each lane is a consumer, and a worker pulls from all of them in turn.
//! - **Limits**: inputs and results may have half of the server's `max_payload` (1 MiB by default).
//!
//! A submit takes one write, an ending one write and an acknowledgement. Nothing is read for a job, unless it may have
//! run before: it is older than 250 ms, was delivered before, or the connection was lost. Before a step begins, its job
//! is read to see if it was cancelled.
//!
//! # Permissions
//!
//! Any client that may publish to `PREFIX.queue.>` may submit jobs with any identity, and end jobs. Use the server's
//! accounts and permissions. [`with_prefix`](JetStreamConfig::with_prefix) separates systems that share an account.

mod admit;
mod clock;
mod config;
mod core;
mod endings;
mod failure;
mod jobs;
mod leases;
mod lists;
mod notes;
mod puller;
mod streams;
mod subject;
mod tries;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::DropGuard;
use tokio_util::task::AbortOnDropHandle;

pub use config::JetStreamConfig;

use self::core::{Core, from_json, to_json};
use self::puller::Puller;
use crate::durable::JobId;
use crate::durable::engine::{Delivery, Engine, EngineLimits, EngineResult, JobPage, Listed, QueueStats};
use crate::durable::record::{Ended, JobRecord, ScheduleRecord, Stored, Tries};
use crate::durable::retry::after;
use crate::model::lock::lock;
use crate::model::random::jitter;
use crate::nats::unusable;
use crate::registry::Progress;
use crate::{BoxFuture, BoxStream, CallError};

/// How often a job is polled while its end is awaited, in case the notice is lost.
const POLL: Duration = Duration::from_secs(2);

/// After how long an ending is read again if its notice has arrived before it was stored.
const STORED: Duration = Duration::from_millis(50);

/// An engine that stores jobs on NATS servers with `JetStream`.
///
/// A clone is the same engine, with the same connection, which reconnects by itself.
#[derive(Clone)]
pub struct JetStream {
    core: Arc<Core>,
    _handle: Arc<DropGuard>,
    /// The tasks that respond to other processes, by queue from which this process has pulled jobs.
    answers: Arc<Mutex<BTreeMap<String, AbortOnDropHandle<()>>>>,
    /// By their queues.
    pullers: Arc<Mutex<BTreeMap<String, Arc<Puller>>>>,
}

impl JetStream {
    /// Connects to a server, or several of one cluster, at `nats://HOST:PORT`, `tls://HOST:PORT`, joined by commas. In a
    /// password or a token, a comma is written as `%2C`.
    ///
    /// The streams of the prefix are made when they are used for the first time, and again if they are gone.
    ///
    /// # Errors
    /// `EXECUTION_ERROR` if no server can be reached or if it refuses the connection, if the settings are invalid, or
    /// if a stream cannot be made (such as with more replicas than there are servers) or has other settings.
    pub fn connect(url: &str, config: JetStreamConfig) -> BoxFuture<'_, Result<Self, CallError>> {
        Box::pin(async move {
            let core = Core::connect(url, config).await?;
            let handle = Arc::new(core.dropped.clone().drop_guard());
            Ok(Self { core, _handle: handle, answers: Arc::default(), pullers: Arc::default() })
        })
    }

    /// Responds to requests about a queue from now on.
    fn answer(&self, queue: &str) {
        let mut answers = lock(&self.answers);
        if !answers.contains_key(queue) {
            let task = tokio::spawn(lists::answer(Arc::downgrade(&self.core), queue.to_owned()));
            answers.insert(queue.to_owned(), AbortOnDropHandle::new(task));
        }
    }

    /// Waits for the end of a job that was submitted here, for which notices arrive without a subscription.
    async fn wait_for(&self, id: &JobId, until: Instant) -> Result<Option<Stored>, CallError> {
        let core = &self.core;
        let mut news = core.notes.listen(id);
        let mut notices = None;
        let mut is_due = false;
        let mut wait = POLL + jitter(POLL);
        loop {
            if is_due {
                let stored = core.read(id).await?;
                if !matches!(stored, Some(Stored::Open { .. })) || Instant::now() >= until {
                    return Ok(stored);
                }
            }
            if news.is_none() && notices.is_none() {
                let subscribed = core.client.subscribe(core.subjects.of(id, "end.*")).await;
                notices = Some(subscribed.map_err(|error| unusable("notices can't be subscribed to", &error))?);
                // It may have ended before.
                is_due = true;
                continue;
            }
            let next = until.min(Instant::now() + wait);
            wait = POLL + jitter(POLL);
            if let Some(told) = &news {
                if let Ok(ending) = timeout_at(next, told.wait()).await {
                    // A later waiter reads it: a retried dead letter is a job again, with a new notice of its end.
                    core.notes.forget_told(id, told);
                    if !ending.is_empty() {
                        let ended: Ended = from_json(ending, id.as_str())?;
                        return Ok(Some(Stored::Ended(Box::new(ended))));
                    }
                    news = None;
                }
            } else if let Some(notices) = &mut notices {
                // The notice may arrive before the ending is stored.
                if timeout_at(next, notices.next()).await.is_ok() {
                    wait = STORED;
                }
            }
            is_due = true;
        }
    }
}

impl Engine for JetStream {
    fn name(&self) -> &'static str {
        "jetstream"
    }

    fn limits(&self) -> EngineLimits {
        self.core.config.limits
    }

    fn now(&self) -> u64 {
        self.core.clock.now()
    }

    fn submit<'a>(&'a self, job: &'a JobRecord) -> EngineResult<'a, Option<Stored>> {
        Box::pin(self.core.submit(job))
    }

    fn read<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, Option<Stored>> {
        Box::pin(self.core.read(id))
    }

    fn read_known<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, Option<Stored>> {
        Box::pin(self.core.read_known(id))
    }

    fn wait<'a>(&'a self, id: &'a JobId, at_most: Duration) -> EngineResult<'a, Option<Stored>> {
        Box::pin(self.wait_for(id, after(at_most)))
    }

    fn is_running<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, bool> {
        Box::pin(self.core.is_running(id))
    }

    fn close<'a>(&'a self, id: &'a JobId, end: &'a Ended) -> EngineResult<'a, bool> {
        Box::pin(self.core.close(id, end))
    }

    fn pull<'a>(&'a self, queue: &'a str, most: usize, at_most: Duration) -> EngineResult<'a, Vec<Delivery>> {
        Box::pin(async move {
            let found = self.core.queue(queue).await?;
            self.answer(queue);
            let puller = {
                let mut pullers = lock(&self.pullers);
                let start = || Arc::new(Puller::start(&self.core, queue, &found.consumers));
                pullers.entry(queue.to_owned()).or_insert_with(start).clone()
            };
            puller.pull(&self.core, most, at_most).await
        })
    }

    fn release<'a>(&'a self, queue: &'a str) -> EngineResult<'a, ()> {
        Box::pin(async move {
            let puller = lock(&self.pullers).get(queue).cloned();
            if let Some(puller) = puller {
                puller.release(&self.core).await?;
            }
            self.core.settle().await
        })
    }

    fn extend<'a>(&'a self, delivery: &'a Delivery) -> EngineResult<'a, bool> {
        Box::pin(self.core.extend(delivery))
    }

    fn end<'a>(&'a self, delivery: &'a Delivery, end: &'a Ended) -> EngineResult<'a, bool> {
        Box::pin(self.core.end(delivery, end))
    }

    fn again<'a>(&'a self, delivery: &'a Delivery, tries: &'a Tries, after: Duration) -> EngineResult<'a, ()> {
        Box::pin(self.core.give_back(delivery, tries, after))
    }

    fn closed<'a>(&'a self, queue: &'a str) -> EngineResult<'a, BoxStream<'static, JobId>> {
        Box::pin(async move {
            let closed = self.core.client.subscribe(self.core.subjects.closed(queue)).await;
            let closed = closed.map_err(|error| unusable("closed jobs can't be subscribed to", &error))?;
            let core = Arc::downgrade(&self.core);
            let id = move |notice: async_nats::Message| {
                std::future::ready(core.upgrade().and_then(|core| core.hear_closed(&notice)))
            };
            Ok(closed.filter_map(id).boxed() as BoxStream<'static, JobId>)
        })
    }

    fn tell<'a>(&'a self, id: &'a JobId, progress: &'a Progress) -> EngineResult<'a, ()> {
        Box::pin(async move {
            let report =
                Report { progress: progress.progress, total: progress.total, message: progress.message.clone() };
            self.core.send(self.core.subjects.progress(id), to_json(&report)?).await;
            Ok(())
        })
    }

    fn progress<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, BoxStream<'static, Progress>> {
        Box::pin(async move {
            let reports = self.core.client.subscribe(self.core.subjects.progress(id)).await;
            let reports = reports.map_err(|error| unusable("progress can't be subscribed to", &error))?;
            // A worker in another process must know of the subscription before it sends a report.
            let _ = self.core.client.flush().await;
            let read = async |message: async_nats::Message| Report::read(&message.payload);
            Ok(reports.filter_map(read).boxed() as BoxStream<'static, Progress>)
        })
    }

    fn step<'a>(&'a self, id: &'a JobId, name: &'a str) -> EngineResult<'a, Option<String>> {
        Box::pin(self.core.step(id, name))
    }

    fn keep_step<'a>(
        &'a self,
        id: &'a JobId,
        name: &'a str,
        value: &'a str,
        retention: Duration,
    ) -> EngineResult<'a, String> {
        Box::pin(self.core.keep_step(id, name, value, retention))
    }

    fn retry<'a>(&'a self, job: &'a JobRecord) -> EngineResult<'a, bool> {
        Box::pin(self.core.retry(job))
    }

    fn discard<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, bool> {
        Box::pin(self.core.discard(id))
    }

    fn keep_schedule<'a>(
        &'a self,
        schedule: &'a ScheduleRecord,
        known: Option<&'a ScheduleRecord>,
    ) -> EngineResult<'a, bool> {
        Box::pin(self.core.keep_schedule(schedule, known))
    }

    fn remove_schedule<'a>(&'a self, name: &'a str) -> EngineResult<'a, bool> {
        Box::pin(self.core.remove_schedule(name))
    }

    fn schedules(&self) -> EngineResult<'_, Vec<ScheduleRecord>> {
        Box::pin(self.core.schedules())
    }

    fn queues(&self) -> EngineResult<'_, Vec<String>> {
        Box::pin(self.core.queues())
    }

    fn list<'a>(
        &'a self,
        queue: &'a str,
        what: Listed,
        after: Option<&'a str>,
        most: usize,
    ) -> EngineResult<'a, JobPage> {
        Box::pin(self.core.list_jobs(queue, what, after, most))
    }

    fn stats<'a>(&'a self, queue: &'a str) -> EngineResult<'a, QueueStats> {
        Box::pin(self.core.stats(queue))
    }
}

impl fmt::Debug for JetStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JetStream").field("config", &self.core.config).finish_non_exhaustive()
    }
}

/// A progress report, as JSON.
#[derive(Serialize, Deserialize)]
struct Report {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl Report {
    fn read(json: &Bytes) -> Option<Progress> {
        let Self { progress, total, message } = serde_json::from_slice(json).ok()?;
        let mut report = Progress::new(progress);
        (report.total, report.message) = (total, message);
        Some(report)
    }
}
