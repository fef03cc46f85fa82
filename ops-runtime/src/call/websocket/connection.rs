//! One connection and its frames; the same at both ends.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::announcing::Announcing;
use super::config::MAX_MESSAGE;
use super::io::Gauge;
use super::outbox::{Outbox, ToPeer};
use crate::call::budget::Share;
use crate::call::peer_specs::Heard;
use crate::call::{
    Announcement, CallEvent, CallHandler, Directory, Frame, Link, Malformed, PeerAuth, PendingRequests, Session, Unsent,
};
use crate::model::lock::lock;
use crate::{CallError, ErrorCode, SpecRef};

/// How many malformed messages a peer may send before it is disconnected.
const MAX_FAULTS: usize = 100;

/// The stage of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The peer has not announced its operations yet.
    Opening,
    /// Both sides have announced their operations.
    Open,
    /// The peer has sent its last request. It may still take some.
    Drained,
    Closed,
}

/// A connection with its peer.
pub(super) struct Connection {
    pub(super) outbox: Arc<Outbox>,
    pub(super) pending: PendingRequests,
    session: Option<Session>,
    handler: Option<CallHandler>,
    directory: Directory,
    /// True if announcements of the peer count.
    may_serve: bool,
    own_limit: usize,
    /// What the peer may hold.
    pub(super) share: Arc<Share>,
    /// What has arrived of an incomplete message.
    pub(super) gauge: Arc<Gauge>,
    /// Memory limit for the specs of the peer.
    max_announced: usize,
    /// How many connections there are.
    company: Arc<AtomicUsize>,
    announcing: Announcing,
    heard: Mutex<Heard>,
    /// True if it was logged that announced operations are left out.
    told: AtomicBool,
    /// Number of malformed messages.
    faults: AtomicUsize,
    stage: watch::Sender<Stage>,
    /// Cancelled when the peer is stopping, and has asked for no more requests.
    leaving: CancellationToken,
}

/// The parts of a connection.
pub(super) struct Parts {
    pub(super) outbox: Arc<Outbox>,
    pub(super) pending: PendingRequests,
    pub(super) handler: Option<CallHandler>,
    pub(super) directory: Directory,
    pub(super) auth: PeerAuth,
    pub(super) max_message: usize,
    pub(super) share: Arc<Share>,
    pub(super) gauge: Arc<Gauge>,
    pub(super) max_announced: usize,
    pub(super) company: Arc<AtomicUsize>,
}

impl Connection {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { outbox, pending, handler, directory, auth, max_message, share, gauge, max_announced, company } =
            parts;
        let may_serve = auth.may_serve;
        let link: Arc<dyn Link> = Arc::new(ToPeer::once(outbox.clone()));
        let session = handler.as_ref().map(|handler| handler.session_with(auth, link, share.clone()));
        Self {
            outbox,
            pending,
            session,
            handler,
            directory,
            may_serve,
            own_limit: max_message,
            share,
            gauge,
            max_announced,
            company,
            announcing: Announcing::new(),
            heard: Mutex::default(),
            told: AtomicBool::new(false),
            faults: AtomicUsize::new(0),
            stage: watch::Sender::new(Stage::Opening),
            leaving: CancellationToken::new(),
        }
    }

    /// Begins: announces the operations of this side.
    pub(super) fn open(&self) {
        // The limit of a peer that announces none, whatever the peer of an earlier connection has announced.
        self.outbox.set_limit(MAX_MESSAGE);
        self.outbox.open(self.share.clone());
        self.announcing.open(&self.outbox, || self.served(), self.own_limit);
    }

    /// Handles the peer's first frame, which should have its largest message.
    fn begin(&self) {
        self.announcing.begin(&self.outbox, || self.served());
    }

    /// Announces changes of the operations of this side.
    pub(super) fn announce(&self) {
        self.announcing.change(&self.outbox, || self.served());
    }

    /// Queues announcements, as long as there is room.
    pub(super) fn refill(&self) {
        self.announcing.refill(&self.outbox, || self.served());
    }

    fn served(&self) -> Vec<SpecRef> {
        self.handler.as_ref().map(CallHandler::announced).unwrap_or_default()
    }

    /// True if all frames have been sent.
    pub(super) fn has_said_all(&self) -> bool {
        self.outbox.is_empty() && !self.announcing.waits()
    }

    /// Number of connections, including this one.
    pub(super) fn company(&self) -> usize {
        self.company.load(Ordering::Relaxed).max(1)
    }

    /// Notes a malformed message.
    pub(super) fn note_fault(&self, what: &str, why: &str) {
        self.faults.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(what, why, "a peer sent a message that can't be read");
    }

    /// True if the peer has sent too many malformed messages.
    pub(super) fn is_hopeless(&self) -> bool {
        self.faults.load(Ordering::Relaxed) >= MAX_FAULTS
    }

    /// Handles a message of the peer.
    pub(super) fn receive(&self, text: &str) {
        match Frame::decode(text) {
            Ok(Some(frame)) => self.take(frame),
            Ok(None) => tracing::trace!("a peer sent a message of a type that is not known"),
            Err(malformed) => self.complain(malformed),
        }
    }

    fn take(&self, frame: Frame) {
        match frame {
            Frame::Event(CallEvent::Requested(request)) => {
                self.begin();
                let request_id = request.request_id.clone();
                let frame = CallEvent::Requested(request).into();
                match &self.session {
                    Some(session) if session.receive(frame).is_ok() => {}
                    Some(_) => self.say(CallEvent::Aborted { request_id }),
                    None => {
                        let error = CallError::new(ErrorCode::OperationNotFound, "nothing is served here");
                        self.say(CallEvent::Error { request_id, error });
                    }
                }
            }
            Frame::Event(CallEvent::Aborted { request_id }) => {
                // Of a request of either side: their ids differ.
                if let Some(session) = &self.session {
                    let _ = session.receive(CallEvent::Aborted { request_id: request_id.clone() }.into());
                }
                self.pending.receive(CallEvent::Aborted { request_id });
            }
            Frame::Event(event) => self.pending.receive(event),
            Frame::Credit { .. } => {
                if let Some(session) = &self.session {
                    let _ = session.receive(frame);
                }
            }
            Frame::Announce(announcement) => self.hear(announcement),
            Frame::Drain => {
                // First: whoever finds no operation sees that the peer leaves.
                self.leaving.cancel();
                self.directory.withdraw(&self.pending);
                self.forget();
                // It announces nothing more: who waits for that goes on, and sees that it leaves.
                self.advance(Stage::Open);
            }
            Frame::Drained => self.advance(Stage::Drained),
            // A lost connection is noticed without it.
            Frame::Running { .. } => {}
        }
    }

    fn hear(&self, mut announcement: Announcement) {
        if let Some(limit) = announcement.max_message {
            self.outbox.set_limit(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        self.begin();
        let more = announcement.more;
        if self.may_serve {
            if let Some(why) = &announcement.unread {
                self.leave_out(why);
            }
            let mut heard = self.heard();
            // Unknown ids need not be removed.
            announcement.remove.retain(|id| heard.remove(id).is_some());
            self.share.keep(heard.bytes());
            let mut kept = Vec::with_capacity(announcement.add.len());
            for spec in announcement.add {
                kept.extend(heard.add(spec, self.max_announced, |bytes| self.share.could_keep(bytes)));
                self.share.keep(heard.bytes());
            }
            announcement.add = kept;
            drop(heard);
            if !(announcement.add.is_empty() && announcement.remove.is_empty()) {
                self.directory.announce(&self.pending, announcement);
            }
        } else if !announcement.add.is_empty() || announcement.unread.is_some() {
            self.leave_out("the peer may not serve any");
        }
        if !more {
            self.advance(Stage::Open);
        }
    }

    /// Logs that announced operations are left out: as a warning only once, since a peer may announce them for ever.
    fn leave_out(&self, why: &str) {
        if self.told.swap(true, Ordering::Relaxed) {
            tracing::debug!(why, "announced operations of a peer are left out");
        } else {
            tracing::warn!(why, "announced operations of a peer are left out");
        }
    }

    /// Fails the request of a malformed message.
    fn complain(&self, malformed: Malformed) {
        self.note_fault(malformed.kind.as_deref().unwrap_or("a message without a type"), &malformed.message);
        let Some(request_id) = malformed.request_id.clone() else { return };
        match malformed.kind.as_deref() {
            Some("call.requested") => {
                let error = CallError::new(ErrorCode::ValidationError, malformed.to_string());
                self.say(CallEvent::Error { request_id, error });
            }
            Some("call.responded" | "call.completed" | "call.error") => {
                self.pending.fail(&request_id, CallError::execution(malformed.to_string()));
            }
            _ => {}
        }
    }

    fn say(&self, event: CallEvent) {
        if let Err(Unsent::Refused(error)) = self.outbox.send(event.into()) {
            tracing::warn!(%error, "an answer can't be sent");
        }
    }

    fn advance(&self, stage: Stage) {
        self.stage.send_if_modified(|now| {
            let further = stage > *now;
            if further {
                *now = stage;
            }
            further
        });
    }

    /// The stage of the connection, as it changes.
    pub(super) fn stage(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// The operation with this id, if the peer serves it.
    pub(super) fn spec(&self, operation: &str) -> Option<SpecRef> {
        self.heard().get(operation).cloned().map(SpecRef::Shared)
    }

    /// The operations of the peer, in the order of their ids.
    pub(super) fn specs(&self) -> Vec<SpecRef> {
        self.heard().specs().cloned().map(SpecRef::Shared).collect()
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        lock(&self.heard)
    }

    /// Forgets the operations of the peer.
    fn forget(&self) {
        let mut heard = self.heard();
        *heard = Heard::default();
        self.share.keep(0);
    }

    /// Returns when the peer is stopping, and wants no more requests.
    pub(super) async fn leaves(&self) {
        self.leaving.cancelled().await;
    }

    /// True if the peer is stopping, and wants no more requests.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.is_cancelled()
    }

    /// Number of running requests of the peer.
    pub(super) fn running(&self) -> usize {
        self.session.as_ref().map_or(0, Session::running)
    }

    /// True if the peer serves operations, or runs requests of this side.
    pub(super) fn is_needed(&self) -> bool {
        self.heard().specs().next().is_some() || self.pending.in_flight() > 0
    }

    /// Responds to a peer that wants no more requests, when the last has been sent.
    pub(super) async fn quiesce(&self) {
        self.pending.quiesce().await;
        let _ = self.outbox.send(Frame::Drained);
    }

    /// Asks the peer for no more requests, and finishes the running ones.
    pub(super) async fn drain(&self, timeout: Duration) {
        // First, so that the peer does not take the operations for gone before it knows why.
        let _ = self.outbox.send(Frame::Drain);
        self.announcing.end(&self.outbox);
        let mut stage = self.stage();
        // A peer that does not know the frame sees the connection close.
        let drained = stage.wait_for(|stage| *stage >= Stage::Drained);
        let _ = tokio::time::timeout(timeout, drained).await;
        if let Some(session) = &self.session {
            session.drain().await;
        }
    }

    /// The connection is lost: the peer's requests end. What happens to requests of this side is decided by the caller
    /// of this function.
    pub(super) fn close(&self) {
        // Calls that wait for room go on when the outbox closes, and ask the directory for another peer.
        self.directory.withdraw(&self.pending);
        self.outbox.close();
        self.forget();
        if let Some(session) = &self.session {
            session.close();
        }
        self.advance(Stage::Closed);
    }
}
