//! The worker over NATS: reads requests and sends responses.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::{Message, Subscriber};
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::select;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::asked::Asked;
use super::connection::Connection;
use super::subject;
use crate::call::broker::{Callers, FIRST_WORD, Post, decode, unique_id};
use crate::call::event::WORDS;
use crate::call::own_specs::Announced;
use crate::call::{Announcement, CallEvent, CallHandler, Frame, Malformed, PeerAuth, RequestId, Unsent};
use crate::model::cut::cut;
use crate::model::lock::lock;
use crate::{BoxFuture, CallError, OperationSpec, SpecRef, Text};

/// A request of at least so many bytes is read in a task of its own.
const LARGE: usize = 64 << 10;

/// Counts the bytes of a request while it is read.
struct Reading {
    of: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// A worker, which serves the operations of a handler over NATS.
///
/// Dropping it aborts the running requests; [`stop`](Self::stop) lets them finish.
#[must_use = "a worker that is dropped serves no more"]
pub struct NatsWorker {
    shared: Arc<Shared>,
    /// One announcement at a time.
    operations: tokio::sync::Mutex<HashMap<Text, Listening>>,
    /// Responds to callers that ask for the operations.
    answering: AbortOnDropHandle<()>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

/// The subscription to the requests of one operation.
struct Listening {
    stop: CancellationToken,
    task: AbortOnDropHandle<()>,
}

struct Shared {
    connection: Arc<Connection>,
    id: Arc<str>,
    handler: CallHandler,
    callers: Callers,
    announced: Mutex<Announced>,
    /// The operations that the last announcement left out, because their subjects are too long for the server.
    too_long: Mutex<HashSet<Text>>,
    asked: Asked,
    /// How many changes have been announced.
    changes: AtomicU64,
    /// How many bytes of requests are being read.
    reading: Arc<AtomicUsize>,
    /// Permits for reading large requests. One processor is left to the connection, since a server disconnects slow
    /// readers.
    readers: Semaphore,
}

impl NatsWorker {
    pub(super) async fn start(
        connection: Arc<Connection>,
        handler: CallHandler,
        auth: PeerAuth,
    ) -> Result<Self, CallError> {
        let id = unique_id();
        let post = Arc::new(ToCallers { connection: connection.clone(), id: id.clone() });
        let control = connection.subscribe(format!("{}.worker.{id}.>", connection.prefix)).await?;
        let discovery = connection.subscribe(subject::discovery(&connection.prefix)).await?;
        let callers = Callers::new(handler.clone(), auth, post);
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let readers = Semaphore::new((processors - 1).max(1));
        let shared = Arc::new(Shared {
            connection,
            id,
            handler,
            callers,
            announced: Mutex::default(),
            too_long: Mutex::default(),
            asked: Asked::default(),
            changes: AtomicU64::new(0),
            reading: Arc::default(),
            readers,
        });
        let tasks = [tokio::spawn(listen(shared.clone(), control, discovery)), tokio::spawn(pulse(shared.clone()))];
        let answering = AbortOnDropHandle::new(tokio::spawn(answer(shared.clone())));
        let tasks = tasks.map(AbortOnDropHandle::new);
        let worker = Self { shared, operations: Default::default(), answering, _tasks: tasks };
        worker.announce().await?;
        Ok(worker)
    }

    /// Announces operations that were added to the registry or removed since.
    ///
    /// # Errors
    /// If the connection is closed. Then, or if the future is dropped, the next announcement includes the change.
    pub async fn announce(&self) -> Result<(), CallError> {
        let shared = &self.shared;
        let mut operations = self.operations.lock().await;
        // Before the change is computed: changes that come while there is no room are announced together.
        if let Some(ready) = shared.connection.ready() {
            ready.await;
        }
        // Stored only when it was announced, since the future may be dropped before.
        let mut announced = lock(&shared.announced).clone();
        let change = announced.change(shared.within_limits());
        // An operation is announced after its subscription has begun, and withdrawn before it ends.
        for spec in &change.add {
            if !operations.contains_key(&spec.id) {
                let subscriber = shared
                    .connection
                    .subscribe_as_one(subject::of_operation(&shared.connection.prefix, &spec.id))
                    .await?;
                let stop = CancellationToken::new();
                let task = tokio::spawn(take(shared.clone(), spec.id.clone(), subscriber, stop.clone()));
                let listening = Listening { stop, task: AbortOnDropHandle::new(task) };
                operations.insert(spec.id.clone(), listening);
            }
        }
        let removed: Vec<_> =
            operations.extract_if(|id, _| !announced.has(id)).map(|(_, listening)| listening).collect();
        *lock(&shared.announced) = announced;
        shared.say(change);
        // Held until here, so that changes are announced in order.
        drop(operations);
        shared.finish(removed).await;
        Ok(())
    }

    /// Number of running requests.
    pub fn running(&self) -> usize {
        self.shared.callers.running()
    }

    /// Accepts no more requests, and returns when the running ones have ended and their responses were sent.
    pub async fn stop(self) {
        let shared = &self.shared;
        // So that a withdrawn operation is not announced again to a caller that has asked before.
        self.answering.abort();
        let announced = std::mem::take(&mut *lock(&shared.announced));
        shared.say(announced.withdrawal());
        let operations = std::mem::take(&mut *self.operations.lock().await);
        shared.finish(operations.into_values()).await;
        while shared.reading.load(Ordering::Acquire) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        shared.callers.drain().await;
        let _ = tokio::time::timeout(shared.connection.pace.lost_after, shared.connection.delivered()).await;
    }
}

impl Drop for NatsWorker {
    fn drop(&mut self) {
        let announced = std::mem::take(&mut *lock(&self.shared.announced));
        self.shared.say(announced.withdrawal());
        self.shared.callers.close();
        let connection = self.shared.connection.clone();
        // The worker may be the last to hold the connection. An empty queue does not show that what was just said has
        // reached the server: the client may still have it, and loses it when the connection is dropped.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = tokio::time::timeout(connection.pace.lost_after, connection.delivered()).await;
            });
        }
    }
}

impl fmt::Debug for NatsWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsWorker").field("id", &self.shared.id).field("running", &self.running()).finish()
    }
}

impl Shared {
    /// Announces a change, in as many parts as needed; nothing if there is no change.
    fn say(&self, change: Announcement) {
        if change.add.is_empty() && change.remove.is_empty() {
            return;
        }
        for part in change.in_parts(self.connection.client.max_payload()) {
            let number = self.changes.fetch_add(1, Ordering::AcqRel) + 1;
            self.tell(part, number, subject::announcements(&self.connection.prefix));
        }
    }

    fn tell(&self, announcement: Announcement, number: u64, subject: String) {
        let reply = self.connection.control(&self.id, number, "all");
        if let Err(error) = self.connection.send(subject, Some(reply), &Frame::Announce(announcement)) {
            tracing::warn!(%error, "an announcement can't be sent");
        }
    }

    /// The operations of the handler whose subjects are short enough for the server. Each of the others is logged once, and
    /// again only if the handler has lost it meanwhile.
    fn within_limits(&self) -> Vec<SpecRef> {
        let mut specs = self.handler.announced();
        let mut known = lock(&self.too_long);
        let mut too_long = HashSet::new();
        specs.retain(|spec| {
            let bytes = subject::of_operation(&self.connection.prefix, &spec.id).len();
            let fits = bytes <= subject::LONGEST_OPERATION;
            if !fits && too_long.insert(spec.id.clone()) && !known.contains(&spec.id) {
                let operation = cut(&spec.id, WORDS);
                let limit = subject::LONGEST_OPERATION;
                tracing::warn!(operation = &*operation, bytes, limit, "its subject is too long, so it is not served");
            }
            fits
        });
        *known = too_long;
        specs
    }

    /// True if a response can be sent to the reply subject of a message.
    fn reaches(&self, reply: &str) -> bool {
        let fits = reply.len() <= subject::LONGEST;
        if !fits {
            self.callers.note_fault("the reply subject of a message is too long, so it is ignored", None);
        }
        fits
    }

    /// All served operations.
    fn served(&self) -> Vec<Arc<OperationSpec>> {
        lock(&self.announced).specs()
    }

    /// Accepts no more requests for operations; those that have arrived are run.
    async fn finish(&self, operations: impl IntoIterator<Item = Listening>) {
        let ends = operations.into_iter().map(|Listening { stop, task }| {
            stop.cancel();
            task
        });
        // A server that does not respond sends no more requests either.
        let _ = tokio::time::timeout(self.connection.pace.lost_after, join_all(ends)).await;
    }

    /// Takes a request. A large one is read in a task of its own: the client limits the number of waiting messages, but
    /// not their bytes, so they are taken out of it as fast as they arrive.
    fn take(self: &Arc<Self>, operation: &Text, message: Message) {
        if message.reply.as_ref().is_some_and(|reply| !self.reaches(reply)) {
            return;
        }
        let bytes = message.payload.len();
        if bytes < LARGE {
            return self.request(operation, &message);
        }
        let most = self.handler.budget().limits().peer;
        if self.reading.fetch_add(bytes, Ordering::AcqRel) + bytes > most.max(bytes) {
            self.reading.fetch_sub(bytes, Ordering::AcqRel);
            let Some(reply) = message.reply.as_ref() else { return };
            let request_id = RequestId::from(reply.as_str().rsplit('.').next().unwrap_or_default());
            let caller = subject::caller_of(reply, &request_id);
            let message = format!("{most} bytes of requests wait to be read (`CallHandler::with_max_bytes`)");
            let error = CallError::execution(message).with_details(json!({ "limit": most }));
            self.callers.refuse(caller, request_id, error);
            return;
        }
        let (shared, operation) = (self.clone(), operation.clone());
        tokio::spawn(async move {
            let _read = Reading { of: shared.reading.clone(), bytes };
            let _turn = shared.readers.acquire().await;
            // Messages that have arrived are taken first.
            tokio::task::yield_now().await;
            shared.request(&operation, &message);
        });
    }

    fn request(&self, operation: &str, message: &Message) {
        let Some(reply) = message.reply.as_ref() else {
            self.callers.note_fault("a request came that says not where its answer goes", Some(operation));
            return;
        };
        match decode(&message.payload) {
            Ok(Some(Frame::Event(CallEvent::Requested(request)))) => {
                let caller = subject::caller_of(reply, &request.request_id);
                if *request.operation_id != *operation {
                    // The server's permissions are about subjects.
                    let request_id = Some(request.request_id.clone());
                    let named = cut(&request.operation_id, WORDS);
                    let message = format!("it names another operation than its subject: `{named}`");
                    let kind = Some("call.requested".to_owned());
                    self.callers.complain(caller, Malformed { kind, request_id, message });
                    return;
                }
                self.callers.receive(caller, CallEvent::Requested(request).into());
            }
            Ok(_) => tracing::debug!(operation, "a message came that is no request"),
            Err(malformed) => {
                let token = reply.as_str().rsplit('.').next().unwrap_or_default();
                let request_id = malformed.request_id.clone().unwrap_or_else(|| token.into());
                let caller = subject::caller_of(reply, &request_id);
                let kind = Some("call.requested".to_owned());
                self.callers.complain(caller, Malformed { kind, request_id: Some(request_id), ..malformed });
            }
        }
    }
}

/// Takes the requests for one operation, until it is stopped and has read all that the server sent before.
async fn take(shared: Arc<Shared>, operation: Text, mut requests: Subscriber, stop: CancellationToken) {
    loop {
        tokio::select! {
            biased;
            message = requests.next() => match message {
                Some(message) => shared.take(&operation, message),
                None => return,
            },
            () = stop.cancelled() => break,
        }
    }
    // The client's own `drain` forgets the subscription before the server does, and loses requests in flight. A limit
    // of `u64::MAX` messages ends the subscription at the server at once and keeps it here. The round trip shows that
    // no further request follows.
    if requests.unsubscribe_after(u64::MAX).await.is_ok() {
        shared.connection.round_trip().await;
        let _ = requests.unsubscribe().await;
        while let Some(message) = requests.next().await {
            shared.take(&operation, message);
        }
    }
}

/// Handles what callers send about their requests, and requests for the list of operations.
async fn listen(shared: Arc<Shared>, control: Subscriber, discovery: Subscriber) {
    let mut messages = select(control, discovery);
    let prefix = &shared.connection.prefix;
    while let Some(message) = messages.next().await {
        let caller = subject::parse_control(prefix, &message.subject).map(|(.., caller)| caller);
        match (caller, message.status) {
            // Nothing else shows whether such a caller is there, and an inbox of one request does not come back.
            (Some(caller), Some(_)) if !subject::listens(caller) => shared.callers.forget(caller),
            (Some(caller), Some(_)) => shared.callers.unreachable(caller, shared.connection.pace.lost_after),
            (None | Some("discover"), None) => {
                if let Some(asker) = message.reply
                    && shared.reaches(&asker)
                {
                    shared.asked.add(asker.as_str());
                }
            }
            (Some(caller), None) => {
                if let Ok(Some(frame)) = decode(&message.payload)
                    && !matches!(frame, Frame::Event(CallEvent::Requested(_)))
                {
                    shared.callers.receive(caller, frame);
                }
            }
            (None, Some(_)) => {}
        }
    }
}

/// Responds to callers that have asked for the operations.
async fn answer(shared: Arc<Shared>) {
    loop {
        let asker = shared.asked.next().await;
        // Read first: a change in between may be announced twice, but is not missed.
        let number = shared.changes.load(Ordering::Acquire);
        let all = Announcement { add: shared.served(), ..Announcement::new() };
        for part in all.in_parts(shared.connection.client.max_payload()) {
            if let Some(ready) = shared.connection.ready() {
                ready.await;
            }
            shared.tell(part, number, asker.clone());
        }
    }
}

/// Sends heartbeats, and reports running requests.
async fn pulse(shared: Arc<Shared>) {
    let connection = &shared.connection;
    let mut up = connection.up.clone();
    let mut tick = tokio::time::interval(FIRST_WORD.min(connection.pace.heartbeat));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut beat = tokio::time::Instant::now();
    loop {
        tick.tick().await;
        if !*up.borrow() {
            if up.wait_for(|up| *up).await.is_err() {
                return;
            }
            // For callers that came meanwhile, or have given this worker up.
            let all = Announcement { add: shared.served(), ..Announcement::new() };
            shared.say(all);
            beat = tokio::time::Instant::now();
        }
        let all = beat <= tokio::time::Instant::now();
        if all {
            beat = tokio::time::Instant::now() + connection.pace.heartbeat;
            shared.callers.look_again();
            let number = shared.changes.load(Ordering::Acquire);
            shared.tell(Announcement::new(), number, subject::announcements(&connection.prefix));
        }
        shared.callers.name(all);
    }
}

/// Sends to the inboxes of callers, with a reply subject of this worker.
struct ToCallers {
    connection: Arc<Connection>,
    id: Arc<str>,
}

impl Post for ToCallers {
    fn post(&self, caller: &Arc<str>, frame: Frame, number: u64) -> Result<(), Unsent> {
        let reply = self.connection.control(&self.id, number, caller);
        self.connection.send(subject::at_caller(caller, &frame), Some(reply), &frame)
    }

    fn ready(&self) -> Option<BoxFuture<'static, ()>> {
        self.connection.ready()
    }

    fn waiting(&self) -> usize {
        self.connection.waiting()
    }

    fn listens(&self, caller: &str) -> bool {
        subject::listens(caller)
    }
}
