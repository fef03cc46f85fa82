//! The caller over Redis: sends requests and reads responses.

mod changed;
mod link;
mod lost;
mod places;

use std::sync::Arc;
use std::time::Instant;

use redis::{RedisResult, cmd, pipe};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use self::changed::{Changed, MAX_WORKERS, look};
use self::link::ToWorkers;
use self::places::Places;
use super::RedisConfig;
use super::connection::{BLOCK, Connection, Message, Told, is_foreign, is_lost, may_pass, push, refused, write};
use super::entry::{Appetite, Author, Beginning, Entries, Entry, Sequences, field, is_id, size};
use super::keys::{FRAME, FROM};
use super::server::Server;
use crate::call::broker::{Faults, Liveness, Outbox, Queued, Workers, decode, unique_id, until_up};
use crate::call::directory::{UNTOLD, gone, not_served, stopped};
use crate::call::peer_specs::MAX_ANNOUNCED;
use crate::call::trouble::Trouble;
use crate::call::{CallEvent, Frame, PendingRequests, RequestId, Route, Transport, TransportId, TransportInfo};
use crate::model::random::reconnect;
use crate::{BoxFuture, CallError, OperationSpec, SpecRef};

/// Limit of entries per read.
const BATCH: usize = 512;

/// After how many entries, or bytes, read entries are removed.
const TRIM: usize = 100;
const TRIM_BYTES: usize = 4 << 20;

/// Limit of fields in a worker's hash.
const MAX_FIELDS: usize = 20_001;

/// Limit of the memory of a worker's hash in the server, in multiples of the specs that are kept: those of all workers.
const MAX_HASH: usize = 4;

/// A caller for the operations of the workers.
pub(super) struct RedisCaller {
    transport: TransportId,
    shared: Arc<Shared>,
    _tasks: [AbortOnDropHandle<()>; 4],
}

struct Shared {
    config: RedisConfig,
    id: Arc<str>,
    /// For commands that do not block.
    line: Connection,
    pending: PendingRequests,
    outbox: Arc<Outbox<Message>>,
    liveness: Arc<Liveness>,
    workers: Workers,
    /// Locked while a worker's operations are read: the latest read counts.
    looking: tokio::sync::Mutex<()>,
    places: Arc<Places>,
    /// Where the stream for responses begins.
    beginning: Beginning,
    up: watch::Sender<bool>,
    /// Why `up` is false.
    trouble: Arc<Trouble>,
    faults: Faults,
}

impl RedisCaller {
    pub(super) async fn start(transport: TransportId, server: &Server, config: RedisConfig) -> Result<Self, CallError> {
        let pace = config.pace();
        let (line, reading) = (Connection::new(server, pace.lost_after), Connection::new(server, pace.lost_after));
        let (outbox, liveness, places) = (Outbox::new(), Arc::new(Liveness::default()), Arc::new(Places::default()));
        let pending = PendingRequests::known_to(|pending| {
            let (config, outbox) = (config.clone(), outbox.clone());
            let (liveness, places) = (liveness.clone(), places.clone());
            Arc::new(ToWorkers { config, outbox, liveness, places, pending })
        });
        let shared = Arc::new(Shared {
            pending,
            id: unique_id(),
            line: line.clone(),
            outbox: outbox.clone(),
            liveness,
            workers: Workers::new(config.max_announced),
            looking: Default::default(),
            places,
            beginning: Beginning::default(),
            up: watch::Sender::new(false),
            trouble: Arc::default(),
            faults: Faults::default(),
            config,
        });
        let changes = shared.begin(&reading).await.map_err(|error| refused(&error))?;
        shared.up.send_replace(true);
        let told = {
            let shared = shared.clone();
            move |message, told| shared.told(message, told)
        };
        let look_at = {
            let shared = shared.clone();
            move |worker: String| -> BoxFuture<'static, bool> {
                let shared = shared.clone();
                Box::pin(async move { shared.look_at(&shared.line, &worker).await.is_ok() })
            }
        };
        let changed = Arc::new(Changed::default());
        let tasks = [
            tokio::spawn(write(line, outbox, shared.id.clone(), shared.config.max_waiting, told)),
            tokio::spawn(read(shared.clone(), reading, changes, changed.clone())),
            tokio::spawn(look(changed, look_at)),
            tokio::spawn(watch(shared.clone())),
        ];
        Ok(Self { transport, shared, _tasks: tasks.map(AbortOnDropHandle::new) })
    }
}

impl Transport for RedisCaller {
    fn route(&self, operation: &str) -> Result<Route, CallError> {
        let shared = &self.shared;
        if !*shared.up.borrow() {
            let (up, trouble) = (shared.up.subscribe(), shared.trouble.clone());
            return Ok(Route::Wait(until_up(up, shared.config.pace.connect_timeout, trouble)));
        }
        match shared.workers.spec(operation) {
            Some(_) => Ok(Route::To(shared.pending.clone())),
            None => Err(not_served(operation)),
        }
    }

    fn spec(&self, operation: &str) -> Option<SpecRef> {
        self.shared.workers.spec(operation)
    }

    fn list(&self) -> Vec<SpecRef> {
        self.shared.workers.list()
    }

    fn in_flight(&self) -> usize {
        self.shared.pending.in_flight()
    }

    fn info(&self) -> TransportInfo {
        let config = &self.shared.config;
        TransportInfo::new("redis").with_max_message(config.max_message).with_response_retention(config.retention())
    }

    fn id(&self) -> Option<TransportId> {
        Some(self.transport)
    }
}

impl Drop for RedisCaller {
    fn drop(&mut self) {
        self.shared.pending.close(&stopped("the caller's connection is gone"));
        // Its workers would notice its absence only after a while; this stops them at once.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (line, key) = (self.shared.line.clone(), self.shared.config.keys.caller(&self.shared.id));
            runtime.spawn(async move {
                let _ = line.command::<()>(cmd("DEL").arg(key)).await;
            });
        }
    }
}

impl Shared {
    /// Creates the stream for responses, and learns the operations. Returns the position from which on changes of
    /// workers are to be read; `None` if the key of that stream has another type.
    async fn begin(&self, line: &Connection) -> RedisResult<Option<String>> {
        let keys = &self.config.keys;
        self.renew(line).await?;
        // Before the workers are read, so that no change in between is missed.
        let last = line
            .command::<Vec<Entry>>(cmd("XREVRANGE").arg(keys.changes()).arg("+").arg("-").arg("COUNT").arg(1))
            .await;
        let changes = match last {
            Ok(last) => Some(last.into_iter().next().map_or_else(|| "0-0".to_owned(), |(id, _)| id)),
            Err(error) if is_foreign(&error) => {
                tracing::warn!(key = keys.changes(), "the key is not ours: changes of known workers are not noticed");
                None
            }
            Err(error) => return Err(error),
        };
        self.look_for_workers(line, true).await?;
        Ok(changes)
    }

    /// Renews the stream for responses. If it was lost, creates it again.
    async fn renew(&self, line: &Connection) -> RedisResult<()> {
        let key = self.config.keys.caller(&self.id);
        let time = self.config.retention().as_millis().to_string();
        let kept: i64 = line.command(cmd("PEXPIRE").arg(&key).arg(&time)).await?;
        if kept == 1 {
            return Ok(());
        }
        let mut commands = pipe();
        commands.cmd("XADD").arg(&key).arg("*").arg(FROM).arg(&*self.id).cmd("PEXPIRE").arg(&key).arg(&time);
        let (begins, _): (String, i64) = line.run(&commands).await?;
        self.beginning.set(begins);
        self.pending.fail_subscriptions(&gone("the server has lost what workers have said"));
        Ok(())
    }

    /// Learns which workers have come or gone, and reads the operations of all of them, or of the unknown ones.
    async fn look_for_workers(&self, line: &Connection, all: bool) -> RedisResult<()> {
        let keys = &self.config.keys;
        // Before the set is read: a worker that becomes known meanwhile is not taken for one that has left.
        let known = self.workers.ids();
        let there: Vec<Vec<u8>> = line.command(cmd("SMEMBERS").arg(keys.workers())).await?;
        // Other members of the set were not written by a worker.
        let there: Vec<String> = there
            .into_iter()
            .filter_map(|id| String::from_utf8(id).ok().filter(|id| is_id(id)))
            .take(MAX_WORKERS)
            .collect();
        let mut commands = pipe();
        for id in &there {
            commands.cmd("EXISTS").arg(keys.serves(id));
        }
        let alive: Vec<bool> = if there.is_empty() { Vec::new() } else { line.run(&commands).await? };
        for id in known.iter().filter(|id| !there.iter().any(|there| **there == ***id)) {
            self.workers.withdraw(id);
        }
        let (alive, dead): (Vec<_>, Vec<_>) = there.iter().zip(alive).partition(|(_, alive)| *alive);
        if !dead.is_empty() {
            dead.iter().for_each(|(id, _)| self.workers.withdraw(id));
            let dead: Vec<_> = dead.into_iter().map(|(id, _)| id).collect();
            // Dead workers are removed at once: one may be back soon, and adds itself again at its next heartbeat. A
            // caller that may only read the set leaves this to others.
            unless_refused(line.command(cmd("SREM").arg(keys.workers()).arg(dead)).await)?;
        }
        for (id, _) in alive {
            if all || !known.iter().any(|known| **known == **id) {
                self.look_at(line, id).await?;
            }
        }
        Ok(())
    }

    /// Reads the operations of a worker.
    async fn look_at(&self, line: &Connection, worker: &str) -> RedisResult<()> {
        let _one = self.looking.lock().await;
        let key = self.config.keys.serves(worker);
        let said = match self.is_small(line, &key).await {
            Ok(true) => line.command::<Vec<(Vec<u8>, Vec<u8>)>>(cmd("HGETALL").arg(&key)).await,
            Ok(false) => {
                tracing::debug!("a worker announces more than is read");
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        };
        let said = match said {
            Err(error) if is_lost(&error) => return Err(error),
            // A key of another type is ignored.
            said => said.unwrap_or_default(),
        };
        if said.is_empty() {
            self.workers.withdraw(worker);
            return Ok(());
        }
        let mut unreadable = 0;
        let specs = said.iter().filter(|(id, _)| id.contains(&b'.')).filter_map(|(id, text)| {
            match serde_json::from_slice::<OperationSpec>(text) {
                Ok(spec) if spec.id.as_bytes() == id => Some(Arc::new(spec)),
                _ => {
                    unreadable += 1;
                    None
                }
            }
        });
        let specs = specs.collect();
        if unreadable > 0 {
            tracing::warn!(unreadable, "a worker announces operations that can't be read");
        }
        self.workers.replace(worker, specs);
        Ok(())
    }

    /// True if a worker's hash can be read. It is read at once, and one field may be as large as the server allows. A
    /// server that does not tell the size is trusted.
    async fn is_small(&self, line: &Connection, key: &str) -> RedisResult<bool> {
        if line.command::<usize>(cmd("HLEN").arg(key)).await? > MAX_FIELDS {
            return Ok(false);
        }
        let most = self.config.max_announced.max(MAX_ANNOUNCED).saturating_mul(MAX_HASH);
        // Of all fields: a sample may miss the large one.
        let usage = cmd("MEMORY").arg("USAGE").arg(key).arg("SAMPLES").arg(0).take();
        match line.command::<Option<usize>>(&usage).await {
            Ok(held) => Ok(held.is_none_or(|held| held <= most)),
            Err(error) if is_lost(&error) => Err(error),
            Err(_) => Ok(true),
        }
    }

    /// Handles the outcome of writing a message.
    fn told(&self, message: Message, told: Told) {
        match (message, told) {
            (Message::Request { key, request, .. }, Told::Stored(entry)) => {
                match self.places.all().get_mut(&request.number) {
                    Some(place) => place.entry = Some(entry),
                    // Aborted while it was written, or it has a response already: no worker need start it.
                    None => push(&self.outbox, Message::Withdraw { key, entry }),
                }
            }
            (Message::Request { request: Queued { number, .. }, .. }, told) => {
                let place = self.places.all().remove(&number);
                let error = match told {
                    Told::Nobody => not_served(place.as_ref().map_or(UNTOLD, |place| &place.operation)),
                    Told::Refused(error) => error,
                    _ => gone("the connection was lost when the request was sent"),
                };
                self.pending.emit_error(&RequestId::of(number), error);
            }
            // The worker is gone, or the server has lost its stream.
            (Message::Frame { to, .. }, Told::Nobody) => {
                let error = gone("the worker cannot be told anything any more");
                for id in self.liveness.of(&to) {
                    self.pending.fail_subscription(&id, &error);
                }
            }
            // Without the credit, no items would come.
            (Message::Frame { credit: Some(id), .. }, Told::Refused(error)) => {
                self.pending.fail_subscription(&id, &error);
            }
            _ => {}
        }
    }

    /// Handles an entry of the caller's stream.
    fn receive(&self, entry: &Entry, sequences: &mut Sequences) {
        let (Some(frame), Some(author)) = (field(entry, FRAME), Author::of(entry)) else { return };
        if !sequences.is_new(author) {
            return;
        }
        let worker = author.id;
        match decode(frame) {
            Ok(Some(Frame::Event(event))) => {
                if let Some(ended) = self.liveness.receive(&self.pending, Some(worker), author.number, event) {
                    self.places.all().remove(&ended);
                }
            }
            Ok(Some(Frame::Running { request_ids })) => {
                let worker = worker.into();
                let unknown = self.liveness.running(&self.pending, &worker, request_ids);
                for request_id in unknown {
                    // A report may name any number. Those that are left are reported again.
                    if self.outbox.is_overfull() {
                        break;
                    }
                    self.say(&worker, &CallEvent::Aborted { request_id }.into());
                }
            }
            Ok(_) => {}
            Err(malformed) => {
                self.faults.tell("a worker sent a message that can't be read", malformed.kind.as_deref());
                if let Some(id) = &malformed.request_id {
                    self.pending.fail(id, CallError::execution(malformed.to_string()));
                }
            }
        }
    }

    fn say(&self, worker: &Arc<str>, frame: &Frame) {
        if let Ok(text) = frame.encode() {
            let key = self.config.keys.worker(worker);
            push(&self.outbox, Message::Frame { key, text, to: worker.clone(), number: 0, credit: None, refused: 0 });
        }
    }
}

/// Reads the responses, and which workers have changed since a position.
async fn read(shared: Arc<Shared>, line: Connection, mut since: Option<String>, changed: Arc<Changed>) {
    let keys = &shared.config.keys;
    let (answers, changes) = (keys.caller(&shared.id), keys.changes());
    let (mut attempts, mut read, mut bytes) = (0, 0, 0);
    let (mut at, mut sequences) = ("0-0".to_owned(), Sequences::default());
    // The workers have been read, at the start.
    let (mut appetite, mut has_read) = (Appetite::new(BATCH), true);
    loop {
        // What was read of the new stream already is recognised by its numbers.
        if let Some(begins) = shared.beginning.take() {
            (at, read, bytes) = (begins, 0, 0);
        }
        let mut commands = pipe();
        // Read entries are removed.
        if read >= TRIM || bytes >= TRIM_BYTES {
            commands.cmd("XTRIM").arg(&answers).arg("MINID").arg(&at).ignore();
            (read, bytes) = (0, 0);
        }
        commands.cmd("XREAD").arg("COUNT").arg(appetite.entries()).arg("BLOCK").arg(BLOCK.as_millis().to_string());
        match &since {
            Some(since) => {
                commands.arg("STREAMS").arg(&answers).arg(&changes).arg(&at).arg(since);
            }
            None => {
                commands.arg("STREAMS").arg(&answers).arg(&at);
            }
        }
        match line.run::<(Entries,)>(&commands).await {
            Ok((entries,)) => {
                (attempts, has_read) = (0, true);
                for (key, entries) in entries.unwrap_or_default() {
                    let Some((last, _)) = entries.last() else { continue };
                    if key == answers {
                        let now = entries.iter().map(size).sum();
                        appetite.learn(entries.len(), now);
                        (read, bytes) = (read + entries.len(), bytes + now);
                        at.clone_from(last);
                        for entry in &entries {
                            shared.receive(entry, &mut sequences);
                        }
                    } else {
                        since = Some(last.clone());
                        changed.add(entries.iter().filter_map(Author::of).map(|author| author.id));
                    }
                }
            }
            Err(error) => {
                tracing::debug!(error = error.category(), "answers can't be read now");
                appetite.fail();
                shared.up.send_replace(false);
                loop {
                    tokio::time::sleep(reconnect(attempts)).await;
                    attempts += 1;
                    match shared.begin(&line).await {
                        // Responses that arrived meanwhile are still to be read.
                        Ok(changes) => {
                            since = changes;
                            break;
                        }
                        Err(error) => shared.trouble.note("there is no connection to the broker", refused(&error)),
                    }
                }
                shared.trouble.clear();
                // The workers may be back a little later. Calls whose answers can never be read end nevertheless.
                if std::mem::take(&mut has_read) {
                    shared.liveness.pardon();
                }
                shared.up.send_replace(true);
            }
        }
    }
}

/// Renews the keys, and gives up requests and workers that have been silent for too long.
async fn watch(shared: Arc<Shared>) {
    let mut beat = tokio::time::interval(shared.config.pace.heartbeat);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut reached = Instant::now();
    loop {
        beat.tick().await;
        if *shared.up.borrow() && shared.beat().await.is_ok() {
            reached = Instant::now();
        } else if reached.elapsed() >= shared.config.retention() {
            for number in shared.pending.numbers() {
                shared.pending.emit_error(&RequestId::of(number), gone("the connection to the server is lost"));
            }
            reached = Instant::now();
        }
    }
}

impl Shared {
    /// Fails if the connection is lost, but not if the server refuses a command, for example by its access lists: the rest is
    /// done nevertheless, and running calls go on. If the stream for responses cannot be renewed, these calls do not wait for
    /// ever: the stream expires, no worker's report arrives any more, and `give_up` ends them.
    async fn beat(&self) -> RedisResult<()> {
        unless_refused(self.renew(&self.line).await)?;
        unless_refused(self.look_for_workers(&self.line, false).await)?;
        unless_refused(self.give_up().await)
    }
}

/// Ignores the error of a command that the server refuses, but returns that of a lost connection.
fn unless_refused(result: RedisResult<()>) -> RedisResult<()> {
    match result {
        Err(error) if !is_lost(&error) => {
            tracing::debug!(error = error.category(), code = error.code(), "the server refuses a command");
            Ok(())
        }
        result => result,
    }
}
