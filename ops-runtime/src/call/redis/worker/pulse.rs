//! What a worker does at intervals: it sends heartbeats, reports running requests, and finds callers that do not read.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use redis::{RedisResult, Value, cmd, pipe};

use super::shared::{Shared, now};
use crate::call::Announcement;
use crate::call::broker::FIRST_WORD;
use crate::call::redis::connection::refused;
use crate::call::redis::entry::Appetite;
use crate::model::lock::lock;
use crate::model::random;

/// Once in so many heartbeats, the consumers of lost workers are looked for, in one stream: the server lists all consumers
/// of a stream at once, and there may be many.
const LOOKING: u64 = 60;

/// How many requests are taken over at a time.
const CLAIMED: usize = 256;

/// Sends heartbeats, and reports running requests.
pub(super) async fn pulse(shared: Arc<Shared>) {
    let mut tick = tokio::time::interval(FIRST_WORD.min(shared.config.pace.heartbeat));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut beat = tokio::time::Instant::now();
    let mut claims = Appetite::new(CLAIMED);
    // Not from zero, so that workers that began together look at different streams.
    let mut beats = random::number();
    loop {
        tick.tick().await;
        let all = beat <= tokio::time::Instant::now();
        shared.callers.name(all);
        shared.look_for_unread().await;
        if all {
            beat = tokio::time::Instant::now() + shared.config.pace.heartbeat;
            beats = beats.wrapping_add(1);
            match shared.beat(beats, &mut claims).await {
                Ok(()) => shared.trouble.clear(),
                Err(error) => {
                    shared.trouble.note("the server can't be told that the worker is there", refused(&error));
                }
            }
        }
    }
}

impl Shared {
    async fn beat(&self, beats: u64, claims: &mut Appetite) -> RedisResult<()> {
        let _one = self.announcing.lock().await;
        let keys = &self.config.keys;
        if self.stop.is_cancelled() {
            // Callers still send frames about what runs.
            return self.line.command(cmd("PEXPIRE").arg(keys.worker(&self.id)).arg(self.lease())).await;
        }
        let mut commands = pipe();
        commands.cmd("PEXPIRE").arg(keys.serves(&self.id)).arg(self.config.pace().lost_after.as_millis().to_string());
        commands.cmd("PEXPIRE").arg(keys.worker(&self.id)).arg(self.lease());
        for stream in &*self.streams.borrow() {
            commands.cmd("PEXPIRE").arg(stream).arg(self.lease());
        }
        commands.cmd("PEXPIRE").arg(keys.workers()).arg(self.lease());
        commands.cmd("SADD").arg(keys.workers()).arg(&*self.id);
        let mut kept: Vec<bool> = self.line.run(&commands).await?;
        // A caller removes a worker whose hash has expired, and may do so just when the worker is back. Noted for a later
        // heartbeat, since a command below may fail.
        if kept.pop() == Some(true) {
            self.untold.store(true, Ordering::Relaxed);
        }
        let theirs: (i64, i64) = self.line.command(&cmd("TIME")).await?;
        self.ahead.store(theirs.0 * 1_000 + theirs.1 / 1_000 - now(), Ordering::Relaxed);
        self.take_back_streams().await?;
        if kept.get(1) == Some(&false) {
            self.control(&self.line).await?;
        }
        if kept.contains(&false) || self.untold.load(Ordering::Relaxed) {
            self.publish(Announcement::new(), true).await?;
        }
        self.take_over(beats, claims).await?;
        // The server may forbid it, and nothing else depends on it.
        if beats.is_multiple_of(LOOKING)
            && let Err(error) = self.remove_lost_consumers(beats / LOOKING).await
        {
            tracing::debug!(error = error.category(), "consumers of lost workers can't be removed");
        }
        Ok(())
    }

    /// Deletes the streams of callers that do not read.
    async fn look_for_unread(&self) {
        let most = self.config.max_unread;
        let mut sent = Vec::new();
        lock(&self.sent).retain(|caller, bytes| {
            let look = *bytes > most / 4;
            if look {
                sent.push(caller.clone());
            }
            !look
        });
        for caller in sent {
            let key = self.config.keys.caller(&caller);
            let held = self.line.command::<Option<usize>>(cmd("MEMORY").arg("USAGE").arg(&key)).await;
            let Ok(Some(held)) = held else { continue };
            if held > most {
                tracing::warn!(held, "a caller does not read its answers (`RedisConfig::with_max_unread`)");
                let _ = self.line.command::<Value>(cmd("DEL").arg(&key)).await;
                self.callers.forget(&caller);
            } else {
                // Measured again when as much more was sent.
                lock(&self.sent).insert(caller, held.saturating_sub(most * 3 / 4));
            }
        }
    }
}
