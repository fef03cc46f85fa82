//! What the tasks of a worker share.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::{RedisResult, pipe};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::taking::Given;
use crate::Text;
use crate::call::broker::{Callers, Outbox, decode};
use crate::call::event::WORDS;
use crate::call::own_specs::Announced;
use crate::call::redis::RedisConfig;
use crate::call::redis::connection::{Connection, Message};
use crate::call::redis::entry::{Author, Beginning, Entry, field, milliseconds_of};
use crate::call::redis::keys::{FRAME, FROM};
use crate::call::trouble::Trouble;
use crate::call::{CallEvent, CallHandler, Frame, Malformed};
use crate::model::clock::since_epoch;
use crate::model::cut::cut;

/// How long a stream of requests outlives its last worker, in multiples of `lost_after`.
pub(super) const LEASES: u32 = 12;

/// What the tasks of a worker share.
pub(super) struct Shared {
    pub(super) config: RedisConfig,
    pub(super) id: Arc<str>,
    pub(super) line: Connection,
    pub(super) handler: CallHandler,
    pub(super) callers: Arc<Callers>,
    pub(super) outbox: Arc<Outbox<Message>>,
    pub(super) announced: Mutex<Announced>,
    /// Locked while a change is announced.
    pub(super) announcing: tokio::sync::Mutex<()>,
    /// True if an announcement has failed: then everything is announced again.
    pub(super) untold: AtomicBool,
    /// Where the stream of frames to this worker begins.
    pub(super) beginning: Beginning,
    /// The streams of requests that are read.
    pub(super) streams: watch::Sender<Vec<String>>,
    /// Requests that were taken over from other workers and are not started yet.
    pub(super) claimed: Mutex<Given>,
    /// Operations whose key is not a stream: another program uses it.
    pub(super) foreign: Mutex<HashSet<Text>>,
    /// Bytes that callers were sent since their unread responses were last measured.
    pub(super) sent: Arc<Mutex<HashMap<Arc<str>, usize>>>,
    /// How far the server's clock is ahead of ours, in milliseconds.
    pub(super) ahead: AtomicI64,
    /// Why the last heartbeat failed.
    pub(super) trouble: Trouble,
    pub(super) stop: CancellationToken,
}

impl Shared {
    /// Creates the stream of frames to this worker.
    pub(super) async fn control(&self, line: &Connection) -> RedisResult<()> {
        let key = self.config.keys.worker(&self.id);
        let mut commands = pipe();
        commands.cmd("XADD").arg(&key).arg("*").arg(FROM).arg(&*self.id);
        commands.cmd("PEXPIRE").arg(&key).arg(self.lease());
        let (begins, _): (String, i64) = line.run(&commands).await?;
        self.note_time(&begins);
        self.beginning.set(begins);
        Ok(())
    }

    /// Learns how far the server's clock is ahead, by the id of an entry that it has just made.
    pub(super) fn note_time(&self, id: &str) {
        if let Some(theirs) = milliseconds_of(id) {
            self.ahead.store(theirs.saturating_sub(now()), Ordering::Relaxed);
        }
    }

    /// How long keys last that are not renewed, in milliseconds.
    pub(super) fn lease(&self) -> String {
        (self.config.pace().lost_after * LEASES).as_millis().to_string()
    }

    pub(super) fn request(&self, operation: &str, entry: &Entry) {
        let (Some(frame), Some(Author { id: caller, .. })) = (field(entry, FRAME), Author::of(entry)) else {
            self.callers.note_fault("a request came that says not whose it is", Some(operation));
            return;
        };
        match decode(frame) {
            Ok(Some(Frame::Event(CallEvent::Requested(mut request)))) => {
                if *request.operation_id != *operation {
                    // The server's access lists are about keys.
                    let request_id = Some(request.request_id.clone());
                    let named = cut(&request.operation_id, WORDS);
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
}

/// Milliseconds since the Unix epoch.
pub(super) fn now() -> i64 {
    i64::try_from(since_epoch().as_millis()).unwrap_or(i64::MAX)
}
