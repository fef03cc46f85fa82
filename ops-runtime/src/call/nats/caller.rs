//! The caller over NATS: sends requests and reads responses.

mod parts;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{HeaderMap, Message, StatusCode, Subscriber};
use futures_util::StreamExt;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use self::parts::Parts;
use super::connection::Connection;
use super::subject;
use super::versions::Versions;
use crate::call::broker::{Faults, Liveness, Queued, Workers, decode};
use crate::call::directory::{UNTOLD, gone, not_served, stopped};
use crate::call::pending::WeakPending;
use crate::call::{
    Announcement, CallEvent, Frame, Link, PendingRequests, RequestId, Route, Transport, TransportId, TransportInfo,
    Unsent,
};
use crate::{BoxFuture, CallError, SpecRef};

/// The list of operations counts as complete when no further worker has responded for so long.
const QUIET: Duration = Duration::from_millis(100);

/// A caller for the operations of the workers.
pub(super) struct NatsCaller {
    shared: Arc<Shared>,
    _tasks: [AbortOnDropHandle<()>; 3],
}

struct Shared {
    connection: Arc<Connection>,
    inbox: String,
    pending: PendingRequests,
    liveness: Arc<Liveness>,
    workers: Workers,
    versions: Versions,
    /// Notified when a worker has sent all that it serves, or there was no worker to respond.
    heard: watch::Sender<()>,
    faults: Faults,
}

impl NatsCaller {
    pub(super) async fn start(connection: Arc<Connection>) -> Result<Self, CallError> {
        let inbox = subject::inbox(&connection.client.new_inbox());
        let liveness = Arc::new(Liveness::default());
        let answers = connection.subscribe(format!("{inbox}.*")).await?;
        let announcements = connection.subscribe(subject::announcements(&connection.prefix)).await?;
        let pending = PendingRequests::known_to(|pending| {
            let (connection, inbox, liveness) = (connection.clone(), inbox.clone(), liveness.clone());
            Arc::new(ToWorkers { connection, inbox, liveness, pending })
        });
        let shared = Arc::new(Shared {
            pending,
            liveness,
            workers: Workers::new(connection.max_announced),
            versions: Versions::default(),
            heard: watch::Sender::new(()),
            faults: Faults::default(),
            inbox,
            connection,
        });
        let tasks = [
            tokio::spawn(read_answers(shared.clone(), answers)),
            tokio::spawn(read_announcements(shared.clone(), announcements)),
            tokio::spawn(watch(shared.clone())),
        ]
        .map(AbortOnDropHandle::new);
        // If the future is dropped, nothing remains.
        let caller = Self { shared, _tasks: tasks };
        caller.shared.settle().await;
        Ok(caller)
    }
}

impl Transport for NatsCaller {
    fn route(&self, _: &str) -> Result<Route, CallError> {
        // The server knows best if a worker subscribes to it.
        let connection = &self.shared.connection;
        if *connection.up.borrow() {
            return Ok(Route::To(self.shared.pending.clone()));
        }
        Ok(Route::Wait(connection.until_up()))
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
        TransportInfo::new("nats").with_max_message(self.shared.connection.client.max_payload())
    }

    fn id(&self) -> Option<TransportId> {
        Some(self.shared.connection.id)
    }
}

impl Drop for NatsCaller {
    fn drop(&mut self) {
        self.shared.pending.close(&stopped("the caller's connection is gone"));
    }
}

impl Shared {
    /// Asks all workers, or one, for their operations.
    fn ask(&self, subject: String) {
        self.connection.publish(subject, Some(format!("{}.discover", self.inbox)), "");
    }

    /// Learns the operations: reads what workers send until none has responded for a while.
    async fn settle(&self) {
        let mut heard = self.heard.subscribe();
        self.ask(subject::discovery(&self.connection.prefix));
        let mut patience = self.connection.pace.lost_after;
        while tokio::time::timeout(patience, heard.changed()).await.is_ok() {
            patience = QUIET;
        }
    }

    /// The worker of a message, with its connection and the number of the message. One whose name is too long to be
    /// written to is none of ours.
    fn worker_of<'a>(&self, message: &'a Message) -> Option<(&'a str, u64)> {
        let parsed = subject::parse_control(&self.connection.prefix, message.reply.as_ref()?.as_str());
        let (worker, number, _) = parsed?;
        if worker.len() > subject::LONGEST {
            self.faults.tell("a worker has a name that is too long, and is ignored", None);
            return None;
        }
        Some((worker, number))
    }

    /// The announcement in a message, if it is one.
    fn announced(&self, message: &Message) -> Option<Announcement> {
        match decode(&message.payload) {
            Ok(Some(Frame::Announce(said))) => {
                if let Some(why) = &said.unread {
                    let what = "a worker announces operations that can't be read and are left out";
                    self.faults.tell(what, Some(why));
                }
                Some(said)
            }
            Ok(_) => None,
            Err(malformed) => {
                self.faults.tell("an announcement can't be read", Some(&malformed.message));
                None
            }
        }
    }

    /// Handles a response, or a worker's report of requests.
    fn receive(&self, request: &str, message: &Message) {
        let frame = match decode(&message.payload) {
            Ok(Some(frame)) => frame,
            Ok(None) => return,
            Err(malformed) => {
                self.faults.tell("a worker sent a message that can't be read", malformed.kind.as_deref());
                self.pending.fail(&request.into(), CallError::execution(malformed.to_string()));
                return;
            }
        };
        match frame {
            Frame::Event(event) => {
                let (worker, number) = self.worker_of(message).unzip();
                self.liveness.receive(&self.pending, worker, number, event);
            }
            Frame::Running { request_ids } => {
                let Some((worker, _)) = self.worker_of(message) else { return };
                let unknown = self.liveness.running(&self.pending, &worker.into(), request_ids);
                for request_id in unknown {
                    // A report may name any number. Those that are left are reported again.
                    if self.connection.is_overfull() {
                        break;
                    }
                    let subject = subject::control(&self.connection.prefix, worker, 0, &self.inbox);
                    let _ = self.connection.send(subject, None, &CallEvent::Aborted { request_id }.into());
                }
            }
            _ => {}
        }
    }
}

/// Reads the caller's inbox.
async fn read_answers(shared: Arc<Shared>, mut inbox: Subscriber) {
    let mut parts = Parts::default();
    while let Some(message) = inbox.next().await {
        let token = message.subject.as_str().rsplit('.').next().unwrap_or_default();
        match (token, message.status) {
            ("link", Some(_)) => {}
            ("discover", Some(_)) => {
                shared.heard.send_replace(());
            }
            (id, Some(StatusCode::NO_RESPONDERS)) => {
                shared
                    .pending
                    .emit_error(&RequestId::from(id), nobody(message.headers.as_ref(), &shared.connection.prefix));
            }
            (_, Some(_)) => {}
            ("discover", None) => {
                let (Some((connected, number)), Some(said)) = (shared.worker_of(&message), shared.announced(&message))
                else {
                    continue;
                };
                if let Some(all) = parts.add(connected, number, said, shared.connection.max_announced) {
                    shared.workers.replace(subject::name(connected), all);
                    shared.versions.know(connected, number);
                    shared.heard.send_replace(());
                }
            }
            (id, None) => shared.receive(id, &message),
        }
    }
}

/// Reads the announcements to all callers.
async fn read_announcements(shared: Arc<Shared>, mut announcements: Subscriber) {
    while let Some(message) = announcements.next().await {
        let (Some((worker, number)), Some(said)) = (shared.worker_of(&message), shared.announced(&message)) else {
            continue;
        };
        let is_beat = said.add.is_empty() && said.remove.is_empty();
        let is_known = shared.workers.announce(subject::name(worker), said);
        if !is_beat {
            shared.versions.changed(worker, number);
        }
        // Asked at the heartbeat, so that a caller that has missed several changes asks once for all of them.
        if !is_known || is_beat && !shared.versions.is_current(worker, number) {
            shared.ask(subject::control(&shared.connection.prefix, worker, 0, "discover"));
        }
    }
}

/// Gives up workers and requests that have been silent for too long.
async fn watch(shared: Arc<Shared>) {
    let (connection, mut up) = (&shared.connection, shared.connection.up.clone());
    let pace = connection.pace;
    let mut beat = tokio::time::interval(pace.heartbeat);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut was_up, mut losses, mut looked) = (true, connection.losses(), Instant::now());
    loop {
        tokio::select! {
            _ = beat.tick() => {}
            changed = up.changed() => if changed.is_err() { return },
        }
        // If this program itself stood still, what has arrived meanwhile is read before anything is judged.
        if std::mem::replace(&mut looked, Instant::now()).elapsed() >= pace.heartbeat + pace.lost_after / 2 {
            shared.workers.pardon();
            shared.liveness.pardon();
        }
        let is_up = *up.borrow_and_update();
        // Counted, since a connection that is back at once may be missed.
        let is_lost = std::mem::replace(&mut losses, connection.losses()) != losses;
        if is_lost {
            // Before there is another: what waits for that loses no items. The aborts wait in the client.
            shared.pending.fail_subscriptions(&gone("the connection was lost, and items may be"));
        }
        if is_up && (is_lost || !was_up) {
            shared.ask(subject::discovery(&connection.prefix));
        }
        if is_up && was_up && !is_lost {
            shared.workers.expire(connection.pace.lost_after);
        } else {
            shared.workers.pardon();
        }
        shared.versions.keep(&shared.workers.ids());
        was_up = is_up;
        for id in shared.liveness.silent(&shared.pending, connection.pace.lost_after) {
            let message = "no worker says that it runs the call: the request, its worker or the answer is lost";
            shared.pending.emit_error(&id, gone(message));
        }
    }
}

/// The error of a request for which the server has no subscriber.
fn nobody(headers: Option<&HeaderMap>, prefix: &str) -> CallError {
    let subject = headers.and_then(|headers| headers.get("Nats-Subject"));
    let operation = subject.and_then(|subject| subject::operation_of(prefix, subject.as_str()));
    not_served(operation.as_deref().unwrap_or(UNTOLD))
}

/// The link to the workers.
struct ToWorkers {
    connection: Arc<Connection>,
    inbox: String,
    liveness: Arc<Liveness>,
    pending: WeakPending,
}

impl Link for ToWorkers {
    fn send(&self, frame: Frame) -> Result<(), Unsent> {
        match &frame {
            Frame::Event(CallEvent::Requested(request)) => {
                let subject = subject::of_operation(&self.connection.prefix, &request.operation_id);
                let (size, limit) = (subject.len(), subject::LONGEST_OPERATION);
                if size > limit {
                    let message = format!("the subject of the operation has {size} bytes, and NATS takes {limit}");
                    let details = json!({ "size": size, "limit": limit });
                    return Err(Unsent::Refused(CallError::execution(message).with_details(details)));
                }
                let reply = format!("{}.{}", self.inbox, &*request.request_id);
                self.connection.request(subject, reply, &frame, Queued::of(&self.pending, request))
            }
            // The worker of a request that was aborted early is not known yet: it gets the abort when it reports the
            // request.
            frame => match frame.request_id().and_then(|id| self.liveness.worker_of(id)) {
                Some(worker) => self.connection.send(
                    subject::control(&self.connection.prefix, &worker, 0, &self.inbox),
                    None,
                    frame,
                ),
                None => Ok(()),
            },
        }
    }

    fn ready(&self) -> Option<BoxFuture<'static, ()>> {
        self.connection.ready()
    }
}
