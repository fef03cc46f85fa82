//! The worker's side.

mod announce;
mod pulse;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use redis::streams::StreamAutoClaimReply;
use redis::{Cmd, RedisResult, Value, cmd, from_redis_value, pipe};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::RedisConfig;
use super::connection::{BLOCK, Connection, Message, Told, is_lost, push, push_later, refused, unanswered, write};
use super::entry::{Appetite, Author, Entries, Entry, Sequences, field, milliseconds_of, size};
use super::keys::{FRAME, FROM, GROUP};
use super::server::Server;
use crate::call::broker::{Callers, Outbox, Post, backoff, decode, unique_id};
use crate::call::event::cut;
use crate::call::own_specs::Announced;
use crate::call::trouble::Trouble;
use crate::call::{Announcement, CallEvent, CallHandler, Frame, Malformed, Unsent};
use crate::{BoxFuture, CallError, Text};

/// How many requests are read at a time: few, so that other workers get some.
const BATCH: usize = 64;

/// How often the memory of running requests is checked.
const LOOK: Duration = Duration::from_millis(20);

/// How long no requests are taken because running ones hold much memory.
const PAUSE: Duration = Duration::from_secs(5);

/// How many requests are taken over at a time, of each operation.
const CLAIMED: usize = 16;

/// How long a stream of requests outlives its last worker, in multiples of `lost_after`.
const LEASES: u32 = 12;

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

struct Shared {
    config: RedisConfig,
    id: Arc<str>,
    line: Connection,
    handler: CallHandler,
    callers: Arc<Callers>,
    outbox: Arc<Outbox<Message>>,
    announced: Mutex<Announced>,
    /// Locked while a change is announced.
    announcing: tokio::sync::Mutex<()>,
    /// True if an announcement has failed: then everything is announced again.
    untold: AtomicBool,
    /// The streams of requests that are read.
    streams: watch::Sender<Vec<String>>,
    /// Operations whose key is not a stream: another program uses it.
    foreign: Mutex<HashSet<Text>>,
    /// Bytes that callers were sent since their unread responses were last measured.
    sent: Arc<Mutex<HashMap<Arc<str>, usize>>>,
    /// How far the server's clock is ahead of ours, in milliseconds.
    ahead: AtomicI64,
    /// Why the last heartbeat failed.
    trouble: Trouble,
    stop: CancellationToken,
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
            streams: watch::Sender::new(Vec::new()),
            foreign: Mutex::default(),
            sent: Arc::default(),
            ahead: AtomicI64::new(0),
            trouble: Trouble::default(),
            stop: CancellationToken::new(),
            config,
        });
        let control = shared.control(&shared.line).await.map_err(|error| refused(&error))?;
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
            taking: Some(AbortOnDropHandle::new(tokio::spawn(take(shared.clone(), line())))),
            writing: Some(AbortOnDropHandle::new(writing)),
            _tasks: [tokio::spawn(listen(shared.clone(), line(), control)), tokio::spawn(pulse::pulse(shared.clone()))]
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
        let change = shared.announced.lock().unwrap_or_else(PoisonError::into_inner).change(shared.handler.announced());
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
        let _ = tokio::time::timeout(shared.config.answers_survive, shared.outbox.flushed()).await;
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

impl Shared {
    /// Creates the stream of frames to this worker, and returns where it begins.
    async fn control(&self, line: &Connection) -> RedisResult<String> {
        let key = self.config.keys.worker(&self.id);
        let mut commands = pipe();
        commands.cmd("XADD").arg(&key).arg("*").arg(FROM).arg(&*self.id);
        commands.cmd("PEXPIRE").arg(&key).arg(self.lease());
        let (begins, _): (String, i64) = line.run(&commands).await?;
        self.note_time(&begins);
        Ok(begins)
    }

    /// Learns how far the server's clock is ahead, by the id of an entry that it has just made.
    fn note_time(&self, id: &str) {
        if let Some(theirs) = milliseconds_of(id) {
            self.ahead.store(theirs.saturating_sub(now()), Ordering::Relaxed);
        }
    }

    /// How long keys last that are not renewed, in milliseconds.
    fn lease(&self) -> String {
        (self.config.pace().lost_after * LEASES).as_millis().to_string()
    }

    /// Starts the requests that no other worker has started, and runs one more command in the same round trip.
    ///
    /// An entry can be removed once. A worker starts the requests that it has removed, even if others were given them,
    /// too.
    async fn begin(&self, line: &Connection, given: Given, more: Option<Cmd>) -> RedisResult<Option<Value>> {
        let mut commands = pipe();
        for (key, entries) in &given {
            for (id, _) in entries {
                let mut remove = Cmd::with_capacity(3, key.len() + id.len() + 8);
                commands.add_command(remove.arg("XDEL").arg(key).arg(id).take());
            }
        }
        for (key, entries) in &given {
            let ids: Vec<&str> = entries.iter().map(|(id, _)| &**id).collect();
            if !ids.is_empty() {
                commands.cmd("XACK").arg(key).arg(GROUP).arg(ids).ignore();
            }
        }
        if let Some(more) = more {
            commands.add_command(more);
        }
        if commands.is_empty() {
            return Ok(None);
        }
        // A failed removal must not keep the removed requests from being started.
        let mut answers = line.each::<Value>(&mut commands).await?.into_iter();
        let prefix = self.config.keys.requests("");
        let entries = given.iter().flat_map(|(key, entries)| entries.iter().map(move |entry| (key, entry)));
        for ((key, entry), removed) in entries.zip(answers.by_ref()) {
            if matches!(removed, Ok(Value::Int(1))) {
                self.request(key.strip_prefix(&prefix).unwrap_or_default(), entry);
            }
        }
        answers.next().transpose()
    }

    /// Reads up to so many requests; waits for one if there is none.
    fn ask(&self, streams: &[String], room: usize, waits: bool) -> Cmd {
        let mut command = cmd("XREADGROUP");
        command.arg("GROUP").arg(GROUP).arg(&*self.id).arg("COUNT").arg(room.min(BATCH));
        if waits {
            command.arg("BLOCK").arg(BLOCK.as_millis().to_string());
        }
        command.arg("STREAMS").arg(streams);
        for _ in streams {
            command.arg(">");
        }
        command
    }

    fn request(&self, operation: &str, entry: &Entry) {
        let (Some(frame), Some(Author { id: caller, .. })) = (field(entry, FRAME), Author::of(entry)) else {
            tracing::warn!(operation, "a request came that says not whose it is");
            return;
        };
        match decode(frame) {
            Ok(Some(Frame::Event(CallEvent::Requested(mut request)))) => {
                if *request.operation_id != *operation {
                    // The server's access lists are about keys.
                    let request_id = Some(request.request_id.clone());
                    let named = cut(request.operation_id.to_string());
                    let message = format!("it names another operation than its stream: `{named}`");
                    let kind = Some("call.requested".to_owned());
                    self.callers.complain(caller, Malformed { kind, request_id, message });
                    return;
                }
                if request.time_left.is_some()
                    && let Some(came) = milliseconds_of(&entry.0)
                {
                    // By the server's clock, for both times.
                    let waited = now().saturating_add(self.ahead.load(Ordering::Relaxed)).saturating_sub(came);
                    request.has_waited(Duration::from_millis(u64::try_from(waited).unwrap_or(0)));
                }
                self.callers.receive(caller, CallEvent::Requested(request).into());
            }
            Ok(_) => tracing::debug!(operation, "an entry came that is no request"),
            Err(malformed) => self.callers.complain(caller, malformed),
        }
    }

    /// Takes over requests that another worker was given and has not started.
    async fn take_over(&self) -> RedisResult<()> {
        let streams = self.streams.borrow().clone();
        if streams.is_empty() || self.stop.is_cancelled() {
            return Ok(());
        }
        if self.callers.is_spent() {
            return Ok(());
        }
        let idle = self.config.pace().lost_after.as_millis().to_string();
        let mut commands = pipe();
        for stream in &streams {
            commands
                .cmd("XAUTOCLAIM")
                .arg(stream)
                .arg(GROUP)
                .arg(&*self.id)
                .arg(&idle)
                .arg("0")
                .arg("COUNT")
                .arg(CLAIMED);
        }
        let claimed = self.line.each::<StreamAutoClaimReply>(&mut commands).await?;
        let mut read = Vec::new();
        for (stream, claimed) in streams.into_iter().zip(claimed) {
            let Ok(claimed) = claimed else { continue };
            let entries: Vec<Entry> = claimed.claimed.into_iter().map(|entry| (entry.id, fields(entry.map))).collect();
            if !entries.is_empty() {
                read.push((stream, entries));
            }
        }
        self.begin(&self.line, read, None).await.map(drop)
    }
}

/// Requests of several streams that this worker was given and has not started.
type Given = Vec<(String, Vec<Entry>)>;

/// The fields of an entry, and their values in turn.
fn fields(map: std::collections::HashMap<String, Value>) -> Vec<Vec<u8>> {
    let bytes = |value| match value {
        Value::BulkString(bytes) => bytes,
        _ => Vec::new(),
    };
    map.into_iter().flat_map(|(field, value)| [field.into_bytes(), bytes(value)]).collect()
}

/// Takes requests while there is room for more to run.
async fn take(shared: Arc<Shared>, line: Connection) {
    let mut streams = shared.streams.subscribe();
    let mut attempts = 0;
    let mut given = Given::new();
    let mut appetite = Appetite::new(BATCH);
    let mut spent: Option<Instant> = None;
    loop {
        let stopping = shared.stop.is_cancelled();
        let from = streams.borrow_and_update().clone();
        let begun: usize = given.iter().map(|(_, entries)| entries.len()).sum();
        let mut room = shared.config.concurrency.saturating_sub(shared.callers.running() + begun);
        // Requests wait in their streams while running ones hold much memory, but not for ever: then those that are too
        // large are refused, so that small ones go on.
        spent = shared.callers.is_spent().then(|| spent.unwrap_or_else(Instant::now));
        let waits = spent.is_some_and(|since| since.elapsed() < PAUSE);
        room = if waits { 0 } else { room.min(appetite.entries()) };
        let result = if begun > 0 {
            // Requests are started and more are read in one round trip, which does not block; the next read does.
            let more = (!stopping && room > 0 && !from.is_empty()).then(|| shared.ask(&from, room, false));
            let read = shared.begin(&shared.line, std::mem::take(&mut given), more).await;
            read.and_then(|read| read.map_or(Ok(None), |read| Ok(from_redis_value::<Entries>(read)?)))
        } else if stopping {
            return;
        } else if from.is_empty() {
            tokio::select! {
                changed = streams.changed() => if changed.is_err() { return },
                () = shared.stop.cancelled() => return,
            }
            continue;
        } else if room == 0 {
            tokio::select! {
                () = shared.callers.until_fewer(shared.config.concurrency) => {}
                // Memory is released when responses are written, not when requests end.
                () = tokio::time::sleep(LOOK), if shared.callers.is_spent() => {}
                () = shared.stop.cancelled() => {}
            }
            continue;
        } else {
            line.command::<Entries>(&shared.ask(&from, room, true)).await
        };
        match result {
            Ok(read) => {
                attempts = 0;
                given = read.unwrap_or_default();
                let entries = given.iter().flat_map(|(_, entries)| entries);
                let (count, bytes) = entries.fold((0, 0), |(n, bytes), entry| (n + 1, bytes + size(entry)));
                appetite.learn(count, bytes);
            }
            // What cannot be started now is taken over later, by this worker or another.
            Err(error) => {
                tracing::debug!(error = error.category(), "requests can't be read now");
                appetite.fail();
                tokio::time::sleep(backoff(attempts)).await;
                attempts += 1;
                if !is_lost(&error) {
                    let _one = shared.announcing.lock().await;
                    if !shared.stop.is_cancelled() {
                        // The server has lost the streams.
                        let _ = shared.publish(Announcement::new(), true).await;
                    }
                }
            }
        }
    }
}

/// Handles what callers send about their requests.
async fn listen(shared: Arc<Shared>, line: Connection, mut at: String) {
    let key = shared.config.keys.worker(&shared.id);
    let (mut attempts, mut read, mut sequences) = (0, 0, Sequences::default());
    loop {
        let mut commands = pipe();
        if read >= 100 {
            commands.cmd("XTRIM").arg(&key).arg("MINID").arg(&at).ignore();
            read = 0;
        }
        commands.cmd("XREAD").arg("COUNT").arg(1_000).arg("BLOCK").arg(BLOCK.as_millis().to_string());
        commands.arg("STREAMS").arg(&key).arg(&at);
        match line.run::<(Entries,)>(&commands).await {
            Ok((entries,)) => {
                attempts = 0;
                for entry in entries.unwrap_or_default().into_iter().flat_map(|(_, entries)| entries) {
                    read += 1;
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
                tokio::time::sleep(backoff(attempts)).await;
                attempts += 1;
            }
        }
    }
}

/// Milliseconds since the Unix epoch.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
}
