//! The places of requests in their Redis streams, used to find lost requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use redis::{RedisError, RedisResult, Value, pipe};

use super::{Message, Shared, is_foreign, may_pass, push, refused};
use crate::call::RequestId;
use crate::call::directory::{gone, not_served};
use crate::call::pending::ByNumber;
use crate::model::lock::lock;
use crate::model::request_id::Number;
use crate::{CallError, Text};

/// How many requests are looked up at a time.
const LOOKED_FOR: usize = 1_000;

/// The places of requests in their Redis streams, until a worker starts them.
#[derive(Default)]
pub(super) struct Places {
    all: Mutex<ByNumber<Place>>,
    /// The request that was looked up last.
    last: AtomicU64,
}

#[derive(Clone)]
pub(super) struct Place {
    pub(super) operation: Text,
    /// Its entry in the stream; `None` until it is written.
    pub(super) entry: Option<String>,
    /// Since when it is known to be gone from the stream, while no worker reports it.
    gone: Option<Instant>,
    /// Since when the server refuses the lookup for a permanent reason.
    refused: Option<Instant>,
}

impl Place {
    /// The place of a request for an operation; the request is not written yet.
    pub(super) fn of(operation: Text) -> Self {
        Self { operation, entry: None, gone: None, refused: None }
    }
}

impl Places {
    pub(super) fn all(&self) -> MutexGuard<'_, ByNumber<Place>> {
        lock(&self.all)
    }

    /// Some of those that may still wait in their streams, with their entries; in rotation, so that each gets its turn.
    fn next(&self, silent: &[Number]) -> Vec<(Number, Text, String)> {
        let all = self.all();
        let mut waiting: Vec<_> = silent
            .iter()
            .filter_map(|number| match all.get(number)? {
                Place { operation, entry: Some(entry), gone: None, .. } => Some((*number, operation, entry)),
                // One without an entry has not been written yet.
                _ => None,
            })
            .collect();
        waiting.sort_unstable_by_key(|(Number(number), ..)| *number);
        let last = self.last.load(Ordering::Relaxed);
        let seen = waiting.partition_point(|(Number(number), ..)| *number <= last);
        waiting.rotate_left(seen);
        waiting.truncate(LOOKED_FOR);
        if let Some((Number(last), ..)) = waiting.last() {
            self.last.store(*last, Ordering::Relaxed);
        }
        waiting.into_iter().map(|(number, operation, entry)| (number, operation.clone(), entry.clone())).collect()
    }
}

impl Shared {
    /// Fails the requests that are gone from their streams and that no worker reports.
    pub(super) async fn give_up(&self) -> RedisResult<()> {
        let lost_after = self.config.pace().lost_after;
        let silent = self.liveness.silent(&self.pending, lost_after);
        let mut silent: Vec<Number> = silent.iter().filter_map(RequestId::number).collect();
        silent.sort_unstable_by_key(|Number(number)| *number);
        self.places.all().retain(|number, place| {
            if silent.binary_search_by_key(&number.0, |Number(number)| *number).is_err() {
                // A worker has reported it since, or none can yet: a later silence has a time of its own.
                place.gone = None;
            }
            self.pending.has(*number)
        });
        let places = self.places.next(&silent);
        for number in silent {
            // A worker may have started it just before it was gone, and reports it soon.
            let since = self.places.all().get(&number).and_then(|place| place.gone);
            if since.is_some_and(|since| since.elapsed() >= lost_after / 2) {
                let message = "no worker says that it runs the call: its worker or the answer is lost";
                self.pending.emit_error(&RequestId::of(number), gone(message));
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        let mut commands = pipe();
        for (_, operation, entry) in &places {
            let key = self.config.keys.requests(operation);
            // A request that no worker can start is withdrawn.
            if self.workers.spec(operation).is_none() {
                commands.cmd("XDEL").arg(key).arg(entry);
            } else {
                commands.cmd("XRANGE").arg(key).arg(entry).arg(entry);
            }
        }
        // A key of another type must not keep the others waiting.
        let answers = self.line.each::<Value>(&mut commands).await?;
        let note = |number, change: fn(&mut Place)| {
            if let Some(place) = self.places.all().get_mut(&number) {
                change(place);
            }
        };
        for ((number, operation, entry), answer) in places.into_iter().zip(answers) {
            match answer {
                Ok(Value::Int(1)) => self.pending.emit_error(&RequestId::of(number), not_served(&operation)),
                Ok(Value::Array(found)) if !found.is_empty() => note(number, |place| place.refused = None),
                // It may still be there: a later lookup shows. For a key of another type, this is final.
                Err(error) if !is_foreign(&error) => {
                    tracing::debug!(error = error.category(), code = error.code(), "requests can't be looked for now");
                    if !may_pass(&error) && self.is_refused_for(number, lost_after) {
                        push(&self.outbox, Message::Withdraw { key: self.config.keys.requests(&operation), entry });
                        self.pending.emit_error(&RequestId::of(number), untold(&error));
                    }
                }
                _ => note(number, |place| place.gone = Some(Instant::now())),
            }
        }
        Ok(())
    }

    /// Notes that the server refuses the lookup of a request; true if it has done so for that long.
    fn is_refused_for(&self, number: Number, time: Duration) -> bool {
        let mut all = self.places.all();
        let since = all.get_mut(&number).map(|place| *place.refused.get_or_insert_with(Instant::now));
        since.is_some_and(|since| since.elapsed() >= time)
    }
}

/// The error of a request that the server refuses to look up.
fn untold(error: &RedisError) -> CallError {
    let why = refused(error);
    let message = "no worker says that it runs the call, and whether its request still waits cannot be found out, which \
                   takes the commands XRANGE and XDEL";
    CallError::execution(format!("{message}: {}", why.message()))
}
