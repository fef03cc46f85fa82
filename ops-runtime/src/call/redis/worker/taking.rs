//! Takes requests out of the streams.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::streams::{StreamAutoClaimReply, StreamPendingCountReply};
use redis::{Cmd, RedisResult, Value, cmd, from_redis_value, pipe};
use tokio::sync::watch;

use super::shared::Shared;
use super::turns::{Part, Turns};
use crate::call::Announcement;
use crate::call::redis::connection::{BLOCK, Connection, is_lost};
use crate::call::redis::entry::{Appetite, Entries, Entry, size};
use crate::call::redis::keys::GROUP;
use crate::model::lock::lock;
use crate::model::random::reconnect;

/// How often the memory of running requests is checked.
const LOOK: Duration = Duration::from_millis(20);

/// How long no requests are taken because running ones hold much memory.
const PAUSE: Duration = Duration::from_secs(5);

/// How often the server is asked for requests to take over, at a heartbeat: the worker must not be late with the next.
const CLAIMS: usize = 8;

/// Requests of several streams that this worker was given and has not started.
pub(super) type Given = Vec<(String, Vec<Entry>)>;

impl Shared {
    /// How many more requests may run.
    fn room(&self) -> usize {
        self.config.concurrency.saturating_sub(self.callers.running())
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

    /// Reads requests.
    fn ask(&self, part: &Part<'_>) -> Cmd {
        let mut command = cmd("XREADGROUP");
        command.arg("GROUP").arg(GROUP).arg(&*self.id).arg("COUNT").arg(part.count);
        if part.waits {
            command.arg("BLOCK").arg(BLOCK.as_millis().to_string());
        }
        command.arg("STREAMS");
        for stream in &part.streams {
            command.arg(&**stream);
        }
        for _ in &part.streams {
            command.arg(">");
        }
        command
    }

    /// The streams that have entries. Other workers may have been given these.
    async fn look(&self, line: &Connection, streams: &[String]) -> RedisResult<Vec<String>> {
        let mut commands = pipe();
        for stream in streams {
            commands.cmd("XLEN").arg(stream);
        }
        let lengths = line.each::<usize>(&mut commands).await?;
        // A stream whose length the server does not tell may have some.
        let found = streams.iter().zip(lengths).filter(|(_, length)| !matches!(length, Ok(0)));
        Ok(found.map(|(stream, _)| stream.clone()).collect())
    }

    /// Takes over requests that another worker was given and has not started.
    ///
    /// There may be room for few of them, so the turn says which streams come first. They have waited for long, so they
    /// are taken while running requests hold half of the memory, too.
    pub(super) async fn take_over(&self, turn: u64, appetite: &mut Appetite) -> RedisResult<()> {
        let idle = self.config.pace().lost_after.as_millis().to_string();
        let mut late = self.late(&idle).await?;
        late.rotate_left(begins_at(turn, late.len()));
        for _ in 0..CLAIMS {
            let room = self.room().saturating_sub(count(&lock(&self.claimed)));
            let most = room.min(appetite.entries());
            if most == 0 || late.is_empty() || self.stop.is_cancelled() || self.handler.budget().is_full() {
                break;
            }
            let part: Vec<_> = late.drain(..most.min(late.len())).collect();
            let each = most.checked_div(part.len()).unwrap_or(1);
            let mut commands = pipe();
            for (stream, from) in &part {
                let claim = commands.cmd("XAUTOCLAIM").arg(stream).arg(GROUP).arg(&*self.id).arg(&idle);
                claim.arg(from).arg("COUNT").arg(each);
            }
            let claimed = match self.line.each::<StreamAutoClaimReply>(&mut commands).await {
                Ok(claimed) => claimed,
                Err(error) => {
                    appetite.fail();
                    return Err(error);
                }
            };
            let mut given = Given::new();
            for ((stream, _), claimed) in part.into_iter().zip(claimed) {
                let Ok(claimed) = claimed else { continue };
                // There may be more, also if those that were found are in the stream no longer.
                if claimed.next_stream_id != "0-0" {
                    late.push_back((stream.clone(), claimed.next_stream_id));
                }
                let entries: Vec<Entry> =
                    claimed.claimed.into_iter().map(|entry| (entry.id, fields(entry.map))).collect();
                if !entries.is_empty() {
                    given.push((stream, entries));
                }
            }
            appetite.learn(count(&given), given.iter().flat_map(|(_, entries)| entries).map(size).sum());
            lock(&self.claimed).extend(given);
        }
        Ok(())
    }

    /// The streams with requests that a worker was given long ago and has not started, and the first of each.
    async fn late(&self, idle: &str) -> RedisResult<VecDeque<(String, String)>> {
        let streams = self.streams.borrow().clone();
        let mut commands = pipe();
        for stream in &streams {
            commands.cmd("XPENDING").arg(stream).arg(GROUP).arg("IDLE").arg(idle).arg("-").arg("+").arg(1);
        }
        if commands.is_empty() {
            return Ok(VecDeque::new());
        }
        let pending = self.line.each::<StreamPendingCountReply>(&mut commands).await?;
        let late = streams.into_iter().zip(pending).filter_map(|(stream, pending)| {
            let first = match pending {
                Ok(pending) => pending.ids.into_iter().next()?.id,
                // What the server does not tell may be there.
                Err(_) => "0".to_owned(),
            };
            Some((stream, first))
        });
        Ok(late.collect())
    }
}

/// Which of so many streams comes first in a turn: as many further on as a turn asks for at least, and each in its turn.
fn begins_at(turn: u64, streams: usize) -> usize {
    let streams = streams as u64;
    let rounds = turn.checked_div(streams).unwrap_or(0);
    let first = turn.wrapping_mul(CLAIMS as u64).wrapping_add(rounds).checked_rem(streams);
    first.and_then(|first| usize::try_from(first).ok()).unwrap_or(0)
}

/// Number of entries.
fn count(given: &[(String, Vec<Entry>)]) -> usize {
    given.iter().map(|(_, entries)| entries.len()).sum()
}

/// Takes the first requests out of those that were given.
fn first(given: &mut Given, mut most: usize) -> Given {
    if count(given) <= most {
        return std::mem::take(given);
    }
    let mut taken = Given::new();
    for (stream, entries) in given.iter_mut() {
        let some: Vec<Entry> = entries.drain(..most.min(entries.len())).collect();
        most -= some.len();
        taken.push((stream.clone(), some));
    }
    given.retain(|(_, entries)| !entries.is_empty());
    taken
}

/// The fields of an entry, and their values in turn.
fn fields(map: std::collections::HashMap<String, Value>) -> Vec<Vec<u8>> {
    let bytes = |value| match value {
        Value::BulkString(bytes) => bytes,
        _ => Vec::new(),
    };
    map.into_iter().flat_map(|(field, value)| [field.into_bytes(), bytes(value)]).collect()
}

/// Takes requests while there is room for more to run. No other task starts requests, so that no more run than may.
pub(super) async fn take(shared: Arc<Shared>, line: Connection) {
    let (mut streams, mut from) = (shared.streams.subscribe(), Vec::<String>::new());
    let mut attempts = 0;
    let mut given = Given::new();
    let mut turns = Turns::new();
    let mut spent: Option<Instant> = None;
    loop {
        let stopping = shared.stop.is_cancelled();
        {
            let now = streams.borrow_and_update();
            if *now != from {
                from.clone_from(&now);
                turns.change(from.len());
            }
        }
        given.append(&mut lock(&shared.claimed));
        // What there is no room for yet is kept: others take it over if that lasts.
        let free = shared.room();
        let begins = first(&mut given, if stopping { usize::MAX } else { free });
        let begun = count(&begins);
        // Requests wait in their streams while running ones hold much memory. That may last, so after a while they are
        // taken again: callers that hold little may hold more, and the others are refused. When such callers could be
        // refused as well, none are taken.
        spent = shared.callers.is_spent().then(|| spent.unwrap_or_else(Instant::now));
        let waits = shared.handler.budget().is_full() || spent.is_some_and(|since| since.elapsed() < PAUSE);
        let room = if waits { 0 } else { free.saturating_sub(begun) };
        let result = if begun > 0 {
            // Requests are started and more are read in one round trip, which does not block; the next read does.
            let more = if stopping || room == 0 || from.is_empty() { None } else { turns.at_once(&from, room) };
            let more = more.map(|part| shared.ask(&part));
            let read = shared.begin(&shared.line, begins, more).await;
            read.and_then(|read| read.map_or(Ok(None), |read| Ok(from_redis_value::<Entries>(read)?)))
        } else if stopping {
            return;
        } else {
            match read_on(&shared, &line, &mut streams, &from, &mut turns, room).await {
                Next::Read(result) => result,
                Next::Again => continue,
                Next::Over => return,
            }
        };
        match result {
            Ok(read) => {
                attempts = 0;
                let read = read.unwrap_or_default();
                turns.learn(&read);
                given.extend(read);
            }
            // What cannot be started now is taken over later, by this worker or another.
            Err(error) => {
                tracing::debug!(error = error.category(), "requests can't be read now");
                turns.fail();
                tokio::time::sleep(reconnect(attempts)).await;
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

/// What came of reading while nothing was started.
enum Next {
    Read(RedisResult<Entries>),
    /// Nothing was read, and there may be room or streams now.
    Again,
    /// No more is read.
    Over,
}

/// Reads requests from the streams, or waits until there is room for some, or streams to read.
async fn read_on(
    shared: &Shared,
    line: &Connection,
    streams: &mut watch::Receiver<Vec<String>>,
    from: &[String],
    turns: &mut Turns,
    room: usize,
) -> Next {
    if room == 0 {
        tokio::select! {
            () = shared.callers.until_fewer(shared.config.concurrency) => {}
            // Memory is released when responses are written, not when requests end.
            () = tokio::time::sleep(LOOK), if shared.callers.is_spent() => {}
            () = shared.stop.cancelled() => {}
        }
        turns.pause();
        return Next::Again;
    }
    if from.is_empty() {
        return tokio::select! {
            changed = streams.changed() => if changed.is_err() { Next::Over } else { Next::Again },
            () = shared.stop.cancelled() => Next::Over,
        };
    }
    if let Some(part) = turns.next(from, room) {
        return Next::Read(line.command::<Entries>(&shared.ask(&part)).await);
    }
    Next::Read(shared.look(line, from).await.map(|found| {
        turns.found(found);
        None
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_turn_begins_with_streams_that_the_turn_before_did_not_come_to() {
        assert_eq!([0, 1, 2, 3].map(|turn| begins_at(turn, 20)), [0, 8, 16, 4]);
        assert_eq!([0, 1].map(|turn| begins_at(turn, 0)), [0, 0]);
        assert_eq!(begins_at(u64::MAX, 3), 0);
        // If a turn has room for one only, all come first at some time.
        for streams in 1..=32 {
            let first: BTreeSet<usize> = (0..(streams * streams) as u64).map(|turn| begins_at(turn, streams)).collect();
            assert_eq!(first.len(), streams);
        }
    }

    #[test]
    fn what_there_is_no_room_for_is_kept() {
        let stream = |name: &str, ids: &[&str]| {
            (name.to_owned(), ids.iter().map(|id| ((*id).to_owned(), Vec::new())).collect::<Vec<Entry>>())
        };
        let mut given = vec![stream("a", &["1", "2"]), stream("b", &["3", "4"]), stream("c", &["5"])];
        assert_eq!(first(&mut given, 3), [stream("a", &["1", "2"]), stream("b", &["3"]), stream("c", &[])]);
        assert_eq!(given, [stream("b", &["4"]), stream("c", &["5"])]);
        assert_eq!(count(&first(&mut given, 0)), 0);
        assert_eq!(first(&mut given, 2), [stream("b", &["4"]), stream("c", &["5"])]);
        assert!(given.is_empty());
    }
}
