//! The worker over Redis: reads requests and sends responses.

mod announce;
mod pulse;
mod shared;
mod taking;
mod turns;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, Mutex};

use redis::pipe;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::shared::Shared;
use super::RedisConfig;
use super::connection::{BLOCK, Connection, Message, Told, push, push_later, refused, unanswered, write};
use super::entry::{Appetite, Author, Beginning, Entries, Entry, Sequences, field, size};
use super::keys::FRAME;
use super::server::Server;
use crate::call::broker::{Callers, Outbox, Post, decode, unique_id};
use crate::call::trouble::Trouble;
use crate::call::{CallEvent, CallHandler, Frame, Unsent};
use crate::model::lock::lock;
use crate::model::random::reconnect;
use crate::{BoxFuture, CallError};

/// Limit of frames of callers per read, and after how many read ones are removed.
const BATCH: usize = 1_000;
const TRIM: usize = 100;

/// A worker, which serves the operations of a handler over Redis.
///
/// Dropping it aborts the running requests; [`stop`](Self::stop) lets them finish.
#[must_use = "a worker that is dropped serves no more"]
pub struct RedisWorker {
    shared: Arc<Shared>,
    taking: Option<AbortOnDropHandle<()>>,
    /// The task that writes to callers.
    writing: Option<AbortOnDropHandle<()>>,
    _tasks: [AbortOnDropHandle<()>; 2],
    /// True if everything was sent, and nothing runs.
    stopped: bool,
}

impl RedisWorker {
    pub(super) async fn start(server: &Server, config: RedisConfig, handler: CallHandler) -> Result<Self, CallError> {
        let lost_after = config.pace().lost_after;
        let line = || Connection::new(server, lost_after);
        let outbox = Outbox::new();
        let post = Arc::new(ToCallers { config: config.clone(), outbox: outbox.clone() });
        let shared = Arc::new(Shared {
            id: unique_id(),
            line: line(),
            callers: Arc::new(Callers::new(handler.clone(), config.auth.clone(), post)),
            handler,
            outbox: outbox.clone(),
            announced: Mutex::default(),
            announcing: Default::default(),
            untold: AtomicBool::new(false),
            beginning: Beginning::default(),
            streams: watch::Sender::new(Vec::new()),
            claimed: Mutex::default(),
            foreign: Mutex::default(),
            sent: Arc::default(),
            ahead: AtomicI64::new(0),
            trouble: Trouble::default(),
            stop: CancellationToken::new(),
            config,
        });
        shared.control(&shared.line).await.map_err(|error| refused(&error))?;
        let (callers, sent, again) = (shared.callers.clone(), shared.sent.clone(), outbox.clone());
        let told = move |message, told| match (message, told) {
            (Message::Frame { to, .. }, Told::Nobody) => {
                lock(&sent).remove(&to);
                callers.forget(&to);
            }
            (Message::Frame { to, text, .. }, Told::Stored(_)) => {
                let mut sent = lock(&sent);
                // A limit, since callers come and go.
                if sent.len() >= 100_000 {
                    sent.clear();
                }
                *sent.entry(to).or_default() += text.len();
            }
            (Message::Frame { key, text, to, number, credit, refused }, Told::Refused(error)) => {
                match unanswered(&text) {
                    Some(request_id) => {
                        // The caller of what still runs is gone.
                        callers.receive(&to, CallEvent::Aborted { request_id: request_id.clone() }.into());
                        let error =
                            CallError::execution(format!("the answer cannot be delivered: {}", error.message()));
                        callers.refuse(&to, request_id, error);
                    }
                    None => push_later(&again, Message::Frame { key, text, to, number, credit, refused }),
                }
            }
            _ => {}
        };
        let writing = tokio::spawn(write(shared.line.clone(), outbox, shared.id.clone(), 0, told));
        let worker = Self {
            taking: Some(AbortOnDropHandle::new(tokio::spawn(taking::take(shared.clone(), line())))),
            writing: Some(AbortOnDropHandle::new(writing)),
            _tasks: [tokio::spawn(listen(shared.clone(), line())), tokio::spawn(pulse::pulse(shared.clone()))]
                .map(AbortOnDropHandle::new),
            shared,
            stopped: false,
        };
        worker.announce().await?;
        Ok(worker)
    }

    /// Announces operations that were added to the registry or removed since.
    ///
    /// # Errors
    /// If the server cannot be reached, or refuses; then the next heartbeats retry.
    pub async fn announce(&self) -> Result<(), CallError> {
        let shared = &self.shared;
        let _one = shared.announcing.lock().await;
        let change = lock(&shared.announced).change(shared.handler.announced());
        shared.publish(change, false).await.map_err(|error| refused(&error))
    }

    /// Number of running requests.
    pub fn running(&self) -> usize {
        self.shared.callers.running()
    }

    /// Accepts no more requests, and returns when the running ones have ended and their responses were written.
    pub async fn stop(mut self) {
        let shared = &self.shared;
        shared.stop.cancel();
        {
            // Released at once: heartbeats report what still runs until it ends.
            let _one = shared.announcing.lock().await;
            let _ = shared.leave().await;
        }
        if let Some(taking) = self.taking.take() {
            let _ = tokio::time::timeout(BLOCK + shared.config.pace().lost_after, taking).await;
        }
        shared.callers.drain().await;
        let _ = tokio::time::timeout(shared.config.retention(), shared.outbox.flushed()).await;
        let _ = shared.leave_groups().await;
        self.stopped = true;
    }
}

impl Drop for RedisWorker {
    fn drop(&mut self) {
        self.shared.callers.close();
        if self.stopped {
            return;
        }
        self.shared.stop.cancel();
        if let Some(taking) = &self.taking {
            taking.abort();
        }
        // Its last frames are still sent if there is a runtime, and by the same writer: numbers of another writer would
        // be taken for repetitions.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (shared, taking, writing) = (self.shared.clone(), self.taking.take(), self.writing.take());
            runtime.spawn(async move {
                let _ = tokio::time::timeout(shared.config.pace().lost_after, shared.end(taking)).await;
                drop(writing);
            });
        }
    }
}

impl fmt::Debug for RedisWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisWorker").field("id", &self.shared.id).field("running", &self.running()).finish()
    }
}

/// Handles what callers send about their requests.
async fn listen(shared: Arc<Shared>, line: Connection) {
    let key = shared.config.keys.worker(&shared.id);
    let (mut attempts, mut read, mut sequences) = (0, 0, Sequences::default());
    let (mut at, mut appetite) = ("0-0".to_owned(), Appetite::new(BATCH));
    loop {
        // What was read of the new stream already is recognised by its numbers.
        if let Some(begins) = shared.beginning.take() {
            (at, read) = (begins, 0);
        }
        let mut commands = pipe();
        if read >= TRIM {
            commands.cmd("XTRIM").arg(&key).arg("MINID").arg(&at).ignore();
            read = 0;
        }
        commands.cmd("XREAD").arg("COUNT").arg(appetite.entries()).arg("BLOCK").arg(BLOCK.as_millis().to_string());
        commands.arg("STREAMS").arg(&key).arg(&at);
        match line.run::<(Entries,)>(&commands).await {
            Ok((entries,)) => {
                attempts = 0;
                let entries: Vec<Entry> =
                    entries.unwrap_or_default().into_iter().flat_map(|(_, entries)| entries).collect();
                appetite.learn(entries.len(), entries.iter().map(size).sum());
                read += entries.len();
                for entry in entries {
                    at.clone_from(&entry.0);
                    if let (Some(frame), Some(author)) = (field(&entry, FRAME), Author::of(&entry))
                        && sequences.is_new(author)
                        && let Ok(Some(frame)) = decode(frame)
                        && !matches!(frame, Frame::Event(CallEvent::Requested(_)))
                    {
                        shared.callers.receive(author.id, frame);
                    }
                }
            }
            Err(_) => {
                appetite.fail();
                tokio::time::sleep(reconnect(attempts)).await;
                attempts += 1;
            }
        }
    }
}

/// Sends to the streams of callers.
struct ToCallers {
    config: RedisConfig,
    outbox: Arc<Outbox<Message>>,
}

impl Post for ToCallers {
    fn post(&self, caller: &Arc<str>, frame: Frame, number: u64) -> Result<(), Unsent> {
        let text = frame.encode_within(self.config.max_message).map_err(Unsent::Refused)?;
        let (key, to) = (self.config.keys.caller(caller), caller.clone());
        push(&self.outbox, Message::Frame { key, text, to, number, credit: None, refused: 0 });
        Ok(())
    }

    fn ready(&self) -> Option<BoxFuture<'static, ()>> {
        self.outbox.ready()
    }

    fn waiting(&self) -> usize {
        self.outbox.bytes()
    }

    fn is_reached(&self) -> bool {
        self.outbox.is_reached()
    }
}
