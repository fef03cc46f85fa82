//! Finds requests that are gone from their Redis streams though no worker runs them.

use std::time::{Duration, Instant};

use redis::{RedisError, RedisResult, Value, pipe};

use super::places::Place;
use super::{Message, Shared, is_foreign, may_pass, push, refused};
use crate::CallError;
use crate::call::RequestId;
use crate::call::directory::{gone, not_served};
use crate::model::request_id::Number;

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
