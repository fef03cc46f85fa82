//! The connection, and the requests that all parts make: each is retried while the server cannot be used.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::context::{ConsumerInfoErrorKind, ContextBuilder, GetStreamErrorKind, PublishErrorKind};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{Client, Event, HeaderName};
use bytes::Bytes;
use futures_util::future::try_join_all;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::clock::Clock;
use super::config::JetStreamConfig;
use super::failure::Patience;
use super::leases::Held;
use super::notes::Notes;
use super::streams;
use super::subject::Subjects;
use super::write::Write;
use crate::CallError;
use crate::durable::JobId;
use crate::durable::engine::EngineResult;
use crate::durable::error::UNREADABLE;
use crate::model::lock::lock;
use crate::model::random::reconnect;
use crate::nats::{refused, servers, unusable};

/// Timeout of one request to the server.
const REQUEST: Duration = Duration::from_secs(5);
/// After how long without an accepted write it is checked if the stream is gone.
const GONE: Duration = Duration::from_millis(500);
/// How often the server's clock is read.
const CLOCK: Duration = Duration::from_secs(30);

/// How often a state is read that changes while it is read.
pub(super) const READS: usize = 20;
/// Interval between these reads.
pub(super) const SETTLE: Duration = Duration::from_millis(20);

/// Header of stored tries: the server's count of deliveries, and the total count of deliveries.
pub(super) const DELIVERED: HeaderName = HeaderName::from_static("Ops-Delivered");

/// State shared by all parts of the engine.
pub(super) struct Core {
    pub(super) client: Client,
    pub(super) context: Context,
    pub(super) config: JetStreamConfig,
    pub(super) subjects: Subjects,
    pub(super) clock: Arc<Clock>,
    pub(super) held: Held,
    pub(super) notes: Notes,
    /// Cancelled when the last clone of the engine is dropped.
    pub(super) dropped: CancellationToken,
    /// When the connection was last lost, by the server's clock.
    pub(super) lost: Arc<AtomicU64>,
    queues: Mutex<HashMap<String, Arc<OnceCell<Arc<Queue>>>>>,
    _clock: AbortOnDropHandle<()>,
}

/// A queue that this process uses.
pub(super) struct Queue {
    pub(super) consumers: Vec<Consumer<pull::Config>>,
}

/// When to check if a stream that accepts no writes is gone: a cluster without a leader accepts none either.
struct Gone {
    next: Instant,
}

impl Gone {
    fn new() -> Self {
        Self { next: Instant::now() + GONE }
    }

    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now >= self.next;
        if is_due {
            self.next = now + 4 * GONE;
        }
        is_due
    }
}

/// The outcome of a conditional write.
pub(super) enum Put {
    /// It is stored, with this sequence.
    Stored(u64),
    /// The condition does not hold.
    Refused,
}

impl Core {
    pub(super) async fn connect(url: &str, config: JetStreamConfig) -> Result<Arc<Self>, CallError> {
        config.check()?;
        let (clock, lost) = (Arc::new(Clock::new()), Arc::new(AtomicU64::new(0)));
        let (counting, losing) = (clock.clone(), lost.clone());
        let options = config
            .access
            .options(url)?
            .connection_timeout(REQUEST)
            .ping_interval(Duration::from_secs(2))
            .reconnect_delay_callback(reconnect)
            .event_callback(move |event| {
                match event {
                    Event::Disconnected | Event::Closed => losing.store(counting.now(), Ordering::Relaxed),
                    Event::SlowConsumer(_) => {
                        tracing::warn!("notices of jobs are lost because they are read too slowly")
                    }
                    _ => {}
                }
                async {}
            });
        let client = options.connect(servers(url)?).await.map_err(|error| refused(url, &error))?;
        let needed = config.limits.max_input.max(config.limits.max_result).saturating_mul(2);
        if client.max_payload() < needed {
            let (has, mend) =
                (client.max_payload(), "set its `max_payload`, or `with_max_input` and `with_max_result`");
            let message = format!("the server takes messages of {has} bytes, which have to be {needed} here: {mend}");
            return Err(CallError::execution(message));
        }
        let context = ContextBuilder::new().timeout(REQUEST).ack_timeout(REQUEST).build(client.clone());
        let subjects = Subjects::new(&config.prefix);
        let schedules = streams::ensure(&context, &config, streams::schedules(&subjects, &config)).await?;
        let name = schedules.cached_info().config.name.clone();
        clock.ask(&context, &name).await.map_err(|error| unusable("the server's clock can't be read", &*error))?;
        let notes = Notes::start(&client).await?;
        Ok(Arc::new_cyclic(|core| Self {
            _clock: AbortOnDropHandle::new(tokio::spawn(keep_time(core.clone(), name))),
            client,
            context,
            config,
            subjects,
            clock,
            held: Held::default(),
            notes,
            dropped: CancellationToken::new(),
            lost,
            queues: Mutex::default(),
        }))
    }

    /// The queue; its stream and consumers are made if they are missing.
    pub(super) async fn queue(&self, name: &str) -> Result<Arc<Queue>, CallError> {
        let cell = {
            let mut queues = lock(&self.queues);
            match queues.get(name) {
                Some(cell) => cell.clone(),
                None => queues.entry(name.to_owned()).or_default().clone(),
            }
        };
        if let Some(queue) = cell.get() {
            return Ok(queue.clone());
        }
        // Boxed, since all of that is rare: the rest of each job's future is small enough to cost little.
        Box::pin(cell.get_or_try_init(|| self.open(name))).await.cloned()
    }

    async fn open(&self, name: &str) -> Result<Arc<Queue>, CallError> {
        let wanted = streams::queue(&self.subjects, &self.config, name);
        let stream = streams::ensure(&self.context, &self.config, wanted).await?;
        let lanes = 0..self.config.limits.lanes;
        let consumers = lanes.map(|lane| streams::consumer(&stream, &self.subjects, &self.config, name, lane));
        Ok(Arc::new(Queue { consumers: try_join_all(consumers).await? }))
    }

    /// Makes the stream of a queue, the consumers of its lanes, and the stream of schedules again if they are gone:
    /// lost with a server that had them in memory, or removed by an operator. Returns `false` if all exist, or cannot
    /// be checked now.
    pub(super) fn mend<'a>(&'a self, queue: Option<&'a str>) -> EngineResult<'a, bool> {
        Box::pin(async move {
            if self.config.as_found {
                return Ok(false);
            }
            let schedules = self.is_gone(&self.subjects.schedules_stream(), 0).await;
            if schedules {
                let wanted = streams::schedules(&self.subjects, &self.config);
                streams::ensure(&self.context, &self.config, wanted).await?;
                tracing::warn!("the schedules are lost: their stream was gone, and is made again");
            }
            let Some(queue) = queue else { return Ok(schedules) };
            let queues = self.is_gone(&self.subjects.stream(queue), self.config.limits.lanes).await;
            if queues {
                self.open(queue).await?;
                tracing::warn!(queue, "the stream of a queue or one of its consumers was gone, and is made again");
            }
            Ok(schedules || queues)
        })
    }

    /// True if the stream does not exist, or lacks one of its lanes.
    async fn is_gone(&self, stream: &str, lanes: u16) -> bool {
        let stream = match self.context.get_stream(stream).await {
            Ok(stream) => stream,
            Err(error) => {
                let GetStreamErrorKind::JetStream(inner) = error.kind() else { return false };
                return inner.error_code() == ErrorCode::STREAM_NOT_FOUND;
            }
        };
        for lane in 0..lanes {
            let found = stream.consumer_info(streams::lane(lane)).await;
            if found.is_err_and(|error| error.kind() == ConsumerInfoErrorKind::NotFound) {
                return true;
            }
        }
        false
    }

    /// Returns when the server has received everything that was published so far.
    pub(super) async fn settle(&self) -> Result<(), CallError> {
        // It responds in order. A flushed buffer only means that its bytes have been sent.
        let asked = self.clock.ask(&self.context, &self.subjects.schedules_stream()).await;
        asked.map_err(|error| unusable("what was told last may not have reached the server", &*error))
    }

    /// The stream of a queue, which may be missing.
    pub(super) async fn stream(&self, name: String) -> Result<Stream<()>, CallError> {
        let found = self.context.get_stream_no_info(&name).await;
        found.map_err(|error| unusable(&format!("{name} is no name of a stream"), &error))
    }

    /// Writes a message.
    pub(super) async fn put(&self, write: &Write) -> Result<Put, CallError> {
        let mut patience = Patience::new(self.config.request_timeout);
        let (home, mut gone) = (self.subjects.queue_in(&write.subject), Gone::new());
        loop {
            let sent = Box::pin(self.context.send_publish(write.subject.clone(), write.message())).await;
            let sent = match sent {
                Ok(acknowledgement) => acknowledgement.await,
                Err(error) => Err(error),
            };
            let error = match sent {
                Ok(acknowledged) => return Ok(Put::Stored(acknowledged.sequence)),
                Err(error) => error,
            };
            if error.kind() == PublishErrorKind::StreamNotFound && gone.is_due() && self.mend(home).await? {
                continue;
            }
            let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<jetstream::Error>());
            let again = match (error.kind(), source) {
                (PublishErrorKind::WrongLastSequence, _) => return Ok(Put::Refused),
                // Another write under the same condition has not been decided yet.
                (_, Some(source)) if source.error_code() == ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT => true,
                // Without a leader there is no response ("stream not found"), or the server reports that it has no
                // quorum.
                (_, Some(source)) => source.error_code() == ErrorCode::CLUSTER_NOT_AVAILABLE,
                (PublishErrorKind::MaxPayloadExceeded, _) => false,
                _ => true,
            };
            if !again || !patience.wait().await {
                return Err(unusable("the job can't be written", &error));
            }
        }
    }

    /// The last message of a subject, which may have wildcards, read from the leader of the stream.
    pub(super) async fn last(&self, queue: &str, subject: &str) -> Result<Option<StreamMessage>, CallError> {
        self.last_in(self.subjects.stream(queue), subject).await
    }

    pub(super) async fn last_in(&self, stream: String, subject: &str) -> Result<Option<StreamMessage>, CallError> {
        self.message(stream, subject, None).await
    }

    /// The first message of a subject, which may have wildcards, from a sequence on.
    pub(super) async fn next_in(
        &self,
        stream: String,
        subject: &str,
        from: u64,
    ) -> Result<Option<StreamMessage>, CallError> {
        self.message(stream, subject, Some(from)).await
    }

    fn message<'a>(
        &'a self,
        stream: String,
        subject: &'a str,
        from: Option<u64>,
    ) -> EngineResult<'a, Option<StreamMessage>> {
        Box::pin(async move {
            let stream = self.stream(stream).await?;
            let mut patience = Patience::new(self.config.request_timeout);
            loop {
                let read = match from {
                    None => stream.get_last_raw_message_by_subject(subject).await,
                    Some(from) => stream.get_first_raw_message_by_subject(subject, from).await,
                };
                let error = match read {
                    Ok(message) => return Ok(Some(message)),
                    Err(error) => error,
                };
                match error.kind() {
                    RawMessageErrorKind::NoMessageFound => return Ok(None),
                    RawMessageErrorKind::JetStream(inner) if inner.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                        return Ok(None);
                    }
                    _ if patience.wait().await => {}
                    _ => return Err(unusable("the job can't be read", &error)),
                }
            }
        })
    }

    /// Removes all messages of a subject, or those before a sequence. Returns how many there were.
    pub(super) fn purge<'a>(&'a self, stream: String, subject: &'a str, before: Option<u64>) -> EngineResult<'a, u64> {
        Box::pin(async move {
            let stream = self.stream(stream).await?;
            let mut patience = Patience::new(self.config.request_timeout);
            loop {
                let purge = stream.purge().filter(subject);
                let purged = match before {
                    Some(before) => purge.sequence(before).await,
                    None => purge.await,
                };
                match purged {
                    Ok(answer) => return Ok(answer.purged),
                    Err(error) if !patience.wait().await => return Err(unusable("the job can't be removed", &error)),
                    Err(_) => {}
                }
            }
        })
    }

    /// Sends a message without waiting; it may be lost.
    pub(super) async fn send(&self, subject: String, payload: Bytes) {
        if let Err(error) = self.client.publish(subject, payload).await {
            tracing::debug!(%error, "a notice is lost");
        }
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("config", &self.config).finish_non_exhaustive()
    }
}

async fn keep_time(core: Weak<Core>, stream: String) {
    loop {
        sleep(CLOCK).await;
        let Some(core) = core.upgrade() else { return };
        if let Err(error) = core.clock.ask(&core.context, &stream).await {
            tracing::debug!(%error, "the server's clock can't be read");
        }
    }
}

pub(super) fn to_json(value: &impl Serialize) -> Result<Bytes, CallError> {
    serde_json::to_vec(value)
        .map(Bytes::from)
        .map_err(|error| CallError::execution(format!("a record can't be written as JSON: {error}")))
}

pub(super) fn from_json<T: DeserializeOwned>(json: &[u8], subject: &str) -> Result<T, CallError> {
    let failed = |error: &dyn std::error::Error| {
        CallError::execution(format!("the message at {subject} can't be read as a record: {error}"))
            .with_details(serde_json::json!({ UNREADABLE: true }))
    };
    // All of it at once, which is faster than string by string.
    let text = std::str::from_utf8(json).map_err(|error| failed(&error))?;
    serde_json::from_str(text).map_err(|error| failed(&error))
}

/// The error of a state that changes whenever it is read.
pub(super) fn changes(id: &JobId) -> CallError {
    CallError::execution(format!("what is kept of the job {id} changes all the time: try again"))
}
