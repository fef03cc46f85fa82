//! Announces a worker's operations, and manages their streams of requests.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use redis::streams::StreamInfoConsumersReply;
use redis::{RedisResult, Value, cmd, pipe};
use tokio_util::task::AbortOnDropHandle;

use super::shared::{LEASES, Shared};
use crate::call::Announcement;
use crate::call::redis::connection::may_pass;
use crate::call::redis::keys::{FROM, GROUP};
use crate::model::lock::lock;
use crate::{OperationSpec, Text};

/// How long a consumer that is given nothing is left in its group, in multiples of the time that keys last: five minutes by
/// default.
const IDLE: u32 = 5;

/// How many consumers are removed at a time.
const REMOVED: usize = 1_000;

impl Shared {
    /// Announces what has changed, or all operations.
    pub(super) async fn publish(&self, change: Announcement, all: bool) -> RedisResult<()> {
        let all = self.untold.swap(true, Ordering::Relaxed) || all;
        self.say(change, all).await?;
        self.untold.store(false, Ordering::Relaxed);
        Ok(())
    }

    async fn say(&self, change: Announcement, all: bool) -> RedisResult<()> {
        let keys = &self.config.keys;
        let serves = keys.serves(&self.id);
        let (add, remove) = if all { (self.served(), Vec::new()) } else { (change.add, change.remove) };
        let add = self.make_streams(add).await?;
        let foreign = self.foreign().clone();
        let served = self.served();
        let ours = served.iter().filter(|spec| !foreign.contains(&spec.id));
        self.streams.send_replace(ours.map(|spec| keys.requests(&spec.id)).collect());
        let mut commands = pipe();
        commands.atomic();
        if all {
            commands.cmd("DEL").arg(&serves);
        }
        // A hash without fields would not exist.
        commands.cmd("HSET").arg(&serves).arg("worker").arg(&*self.id);
        for spec in &add {
            match serde_json::to_string(&**spec) {
                Ok(text) => drop(commands.cmd("HSET").arg(&serves).arg(&*spec.id).arg(text)),
                Err(error) => tracing::warn!(operation = spec.id.as_ref(), %error, "a spec can't be announced"),
            }
        }
        for id in remove.iter().chain(&foreign) {
            commands.cmd("HDEL").arg(&serves).arg(&**id);
        }
        commands.cmd("PEXPIRE").arg(&serves).arg(self.config.pace().lost_after.as_millis().to_string());
        commands.cmd("SADD").arg(keys.workers()).arg(&*self.id);
        self.tell(&mut commands);
        self.line.run::<Value>(&commands).await.map(drop)
    }

    /// Creates the streams of operations; returns the operations that have one.
    async fn make_streams(&self, specs: Vec<Arc<OperationSpec>>) -> RedisResult<Vec<Arc<OperationSpec>>> {
        if specs.is_empty() {
            return Ok(specs);
        }
        let keys = &self.config.keys;
        let mut groups = pipe();
        for spec in &specs {
            groups.cmd("XGROUP").arg("CREATE").arg(keys.requests(&spec.id)).arg(GROUP).arg("0").arg("MKSTREAM");
        }
        let made = self.line.each::<Value>(&mut groups).await?;
        let (mut ours, mut leases) = (Vec::with_capacity(specs.len()), pipe());
        for (spec, made) in specs.into_iter().zip(made) {
            let stream = keys.requests(&spec.id);
            match made {
                // Says nothing about the key.
                Err(error) if may_pass(&error) => return Err(error),
                // There may be one already.
                Err(error) if error.code() != Some("BUSYGROUP") => {
                    if self.foreign().insert(spec.id.clone()) {
                        let error = error.category();
                        tracing::warn!(key = stream, error, "the key is not ours: its operation is not served");
                    }
                }
                _ => {
                    self.foreign().remove(&spec.id);
                    leases.cmd("PEXPIRE").arg(&stream).arg(self.lease());
                    ours.push(spec);
                }
            }
        }
        if !ours.is_empty() {
            self.line.each::<Value>(&mut leases).await?;
        }
        Ok(ours)
    }

    /// Serves the operations whose keys are no longer used by another program.
    pub(super) async fn take_back_streams(&self) -> RedisResult<()> {
        let foreign = self.foreign().clone();
        if foreign.is_empty() {
            return Ok(());
        }
        let specs = self.served().into_iter().filter(|spec| foreign.contains(&spec.id)).collect();
        match self.make_streams(specs).await?.is_empty() {
            true => Ok(()),
            false => self.publish(Announcement::new(), true).await,
        }
    }

    fn foreign(&self) -> MutexGuard<'_, HashSet<Text>> {
        lock(&self.foreign)
    }

    /// Announces that something has changed.
    fn tell(&self, commands: &mut redis::Pipeline) {
        let changes = self.config.keys.changes();
        commands.cmd("XADD").arg(&changes).arg("MAXLEN").arg("~").arg(1_000).arg("*").arg(FROM).arg(&*self.id);
        commands.cmd("PEXPIRE").arg(&changes).arg(self.lease());
    }

    /// Withdraws all operations.
    pub(super) async fn leave(&self) -> RedisResult<()> {
        let keys = &self.config.keys;
        let mut commands = pipe();
        commands.atomic();
        commands.cmd("DEL").arg(keys.serves(&self.id)).cmd("SREM").arg(keys.workers()).arg(&*self.id);
        self.tell(&mut commands);
        self.line.run::<Value>(&commands).await.map(drop)
    }

    /// Removes what the server stores about this worker.
    ///
    /// The consumer stays if requests are pending in it, such as after a lost reply: other workers take them over. If the
    /// consumer were deleted, no worker would ever get them.
    pub(super) async fn leave_groups(&self) -> RedisResult<()> {
        let streams = self.streams.borrow().clone();
        let mut commands = pipe();
        commands.cmd("DEL").arg(self.config.keys.worker(&self.id));
        for stream in &streams {
            commands.cmd("XPENDING").arg(stream).arg(GROUP).arg("-").arg("+").arg(1).arg(&*self.id);
        }
        let answers = self.line.each::<Value>(&mut commands).await?;
        let mut commands = pipe();
        for (stream, given) in streams.iter().zip(answers.into_iter().skip(1)) {
            if matches!(given, Ok(Value::Array(given)) if given.is_empty()) {
                commands.cmd("XGROUP").arg("DELCONSUMER").arg(stream).arg(GROUP).arg(&*self.id);
            }
        }
        if commands.is_empty() {
            return Ok(());
        }
        self.line.each::<Value>(&mut commands).await.map(drop)
    }

    /// Ends a worker that was dropped, when its last frames are written.
    pub(super) async fn end(&self, taking: Option<AbortOnDropHandle<()>>) {
        let _ = self.leave().await;
        self.outbox.flushed().await;
        if let Some(taking) = taking {
            // It was aborted. A request that it is still given would be lost with the consumer.
            let _ = taking.await;
        }
        let _ = self.leave_groups().await;
    }

    /// Removes the consumers of workers that crashed from one of the streams, each in its turn.
    ///
    /// A worker that is there is made a consumer again when it is given a request. A request that it is given just before its
    /// consumer is removed runs as well, since the server has sent it already.
    pub(super) async fn remove_lost_consumers(&self, turn: u64) -> RedisResult<()> {
        let Some(stream) = self.stream_of(turn) else { return Ok(()) };
        let all = cmd("XINFO").arg("CONSUMERS").arg(&stream).arg(GROUP).take();
        let all: StreamInfoConsumersReply = self.line.command(&all).await?;
        let least = (self.config.pace().lost_after * LEASES * IDLE).as_millis();
        let lost = all.consumers.iter().filter(|consumer| consumer.pending == 0 && consumer.idle as u128 >= least);
        let mut commands = pipe();
        for consumer in lost.take(REMOVED) {
            commands.cmd("XGROUP").arg("DELCONSUMER").arg(&stream).arg(GROUP).arg(&consumer.name);
        }
        if commands.is_empty() {
            return Ok(());
        }
        self.line.each::<Value>(&mut commands).await.map(drop)
    }

    fn stream_of(&self, turn: u64) -> Option<String> {
        let streams = self.streams.borrow();
        let at = turn.checked_rem(streams.len() as u64)?;
        streams.get(usize::try_from(at).ok()?).cloned()
    }

    fn served(&self) -> Vec<Arc<OperationSpec>> {
        lock(&self.announced).specs()
    }
}
