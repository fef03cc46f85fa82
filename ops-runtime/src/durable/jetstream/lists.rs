//! Requests about many jobs: lists, schedules, counts, and which process runs a job.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::jetstream::response::Response;
use async_nats::jetstream::{self, ErrorCode};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::core::{Core, Put, from_json, to_json};
use super::failure::Patience;
use super::jobs::stored;
use super::write::Write;
use crate::CallError;
use crate::durable::JobId;
use crate::durable::engine::{JobPage, Listed, QueueStats};
use crate::durable::record::{JobRecord, ScheduleRecord, Stored};
use crate::nats::unusable;

/// How many messages are read at a time.
const READ: usize = 16;
/// How long workers have to respond.
const ANSWERS: Duration = Duration::from_millis(300);

/// The part of the information about a stream that is read.
#[derive(Deserialize)]
struct Counted {
    /// The number of subjects; left out if there are none.
    #[serde(default)]
    total: u64,
}

impl Core {
    /// The subjects of a stream that match, in order.
    async fn list(&self, stream: String, filter: String) -> Result<Vec<String>, CallError> {
        let stream = self.stream(stream).await?;
        let mut patience = Patience::new(self.config.request_timeout);
        loop {
            let error = match stream.info_builder().subjects(filter.clone()).fetch().await {
                Ok(info) => match info.map_ok(|(subject, _)| subject).try_collect::<Vec<_>>().await {
                    Ok(mut subjects) => {
                        subjects.sort_unstable();
                        return Ok(subjects);
                    }
                    Err(error) => error,
                },
                Err(error) => error,
            };
            let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<jetstream::Error>());
            match source {
                Some(source) if source.error_code() == ErrorCode::STREAM_NOT_FOUND => return Ok(Vec::new()),
                _ if patience.wait().await => {}
                _ => return Err(unusable("jobs can't be listed", &error)),
            }
        }
    }

    pub(super) async fn keep_schedule(
        &self,
        schedule: &ScheduleRecord,
        known: Option<&ScheduleRecord>,
    ) -> Result<bool, CallError> {
        let (stream, subject) = (self.subjects.schedules_stream(), self.subjects.schedule(&schedule.name));
        let last = self.last_in(stream.clone(), &subject).await?;
        // A schedule that cannot be read counts as missing, and is replaced.
        let kept = last.as_ref().and_then(|last| readable(from_json(&last.payload, &last.subject)));
        if !ScheduleRecord::is_same(kept.as_ref(), known) {
            return Ok(false);
        }
        let place = last.map_or(0, |last| last.sequence);
        let write = Write::new(subject.clone(), to_json(schedule)?).after(subject.clone(), place);
        if let Put::Stored(_) = self.put(&write).await? {
            return Ok(true);
        }
        // The first write may have succeeded, and its acknowledgement was lost.
        let last = self.last_in(stream, &subject).await?;
        Ok(last.is_some_and(|last| last.payload == write.payload))
    }

    pub(super) async fn remove_schedule(&self, name: &str) -> Result<bool, CallError> {
        let removed = self.purge(self.subjects.schedules_stream(), &self.subjects.schedule(name), None).await?;
        Ok(removed > 0)
    }

    pub(super) async fn schedules(&self) -> Result<Vec<ScheduleRecord>, CallError> {
        let stream = self.subjects.schedules_stream();
        let subjects = self.list(stream.clone(), self.subjects.schedules()).await?;
        let read = stream::iter(subjects).map(async |subject| {
            let Some(last) = self.last_in(stream.clone(), &subject).await? else { return Ok(None) };
            Ok::<_, CallError>(readable(from_json(&last.payload, &last.subject)))
        });
        let read = read.buffered(READ).try_filter_map(async |schedule| Ok(schedule));
        let mut schedules: Vec<ScheduleRecord> = read.try_collect().await?;
        schedules.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(schedules)
    }

    pub(super) async fn queues(&self) -> Result<Vec<String>, CallError> {
        let streams: Vec<String> = match self.context.stream_names().try_collect().await {
            Ok(streams) => streams,
            Err(error) => return Err(unusable("queues can't be listed", &error)),
        };
        let mut queues: Vec<String> =
            streams.iter().filter_map(|stream| self.subjects.queue_of(stream)).map(str::to_owned).collect();
        queues.sort_unstable();
        Ok(queues)
    }

    /// Jobs in the order in which they were written; a page begins at a sequence.
    pub(super) async fn list_jobs(
        &self,
        queue: &str,
        what: Listed,
        after: Option<&str>,
        most: usize,
    ) -> Result<JobPage, CallError> {
        let kind = match what {
            Listed::Due => "job",
            Listed::Delayed => "later",
            Listed::Ended => "end.done",
            Listed::Dead => "end.dead",
        };
        let (stream, filter) = (self.subjects.stream(queue), self.subjects.each(queue, kind));
        let (mut from, mut ids) = (after.and_then(|after| after.parse().ok()).unwrap_or(1), Vec::new());
        let next = loop {
            if ids.len() >= most {
                break Some(from.to_string());
            }
            let Some(message) = self.next_in(stream.clone(), &filter, from).await? else { break None };
            from = message.sequence.saturating_add(1);
            ids.extend(self.subjects.job(&message.subject, kind));
        };
        let stored = stream::iter(ids).map(async |id| {
            let Some((last, job)) = self.newest(&id).await? else { return Ok(None) };
            Ok::<_, CallError>(readable(stored(last, job)).map(|stored| (id, stored)))
        });
        // A job that has ended since, or was retried, belongs to another list.
        let is_listed = |stored: &Stored| match stored {
            Stored::Open { .. } => matches!(what, Listed::Due | Listed::Delayed),
            Stored::Ended(ended) => what == if ended.is_dead() { Listed::Dead } else { Listed::Ended },
        };
        let stored = stored.buffered(READ).try_filter_map(async |found| Ok(found.filter(|(_, job)| is_listed(job))));
        Ok(JobPage::new(stored.try_collect().await?, next))
    }

    /// Number of matching subjects of a stream.
    async fn count(&self, stream: &str, filter: &str) -> Result<u64, CallError> {
        // Beyond the last page of subjects, of which there may be as many as jobs, the server sends only their number.
        let asked = json!({ "subjects_filter": filter, "offset": u32::MAX });
        let mut patience = Patience::new(self.config.request_timeout);
        loop {
            let counted = self.context.request(format!("STREAM.INFO.{stream}"), &asked).await;
            let again: Box<dyn std::error::Error + Send + Sync> = match counted {
                Ok(Response::Ok(Counted { total })) => return Ok(total),
                Ok(Response::Err { error }) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => return Ok(0),
                Ok(Response::Err { error }) => Box::new(error),
                Err(error) => Box::new(error),
            };
            if !patience.wait().await {
                return Err(unusable("jobs can't be counted", &*again));
            }
        }
    }

    pub(super) async fn stats(&self, queue: &str) -> Result<QueueStats, CallError> {
        let stream = self.subjects.stream(queue);
        let count = async |kind: &str| self.count(&stream, &self.subjects.each(queue, kind)).await;
        let open = count("job").await? + count("later").await?;
        let dead = count("end.dead").await?;
        let running = if open == 0 { 0 } else { self.ask_all(queue).await? };
        // The first that was written, or that the server wrote when its delay was over.
        let first = match open {
            0 => None,
            _ => self.next_in(stream.clone(), &self.subjects.each(queue, "job"), 1).await?,
        };
        let oldest = match first {
            Some(first) => readable(from_json::<JobRecord>(&first.payload, &first.subject))
                .map(|job| Duration::from_millis(self.clock.now().saturating_sub(job.start()))),
            None => None,
        };
        Ok(QueueStats::new(open, running, dead).with_oldest(oldest))
    }

    /// Number of jobs that workers report to have.
    async fn ask_all(&self, queue: &str) -> Result<u64, CallError> {
        let inbox = self.client.new_inbox();
        let failed = |error: &dyn std::error::Error| unusable("workers can't be asked", error);
        let mut answers = self.client.subscribe(inbox.clone()).await.map_err(|error| failed(&error))?;
        let asked = self.client.publish_with_reply(self.subjects.ask(queue), inbox, Bytes::new()).await;
        asked.map_err(|error| failed(&error))?;
        let until = Instant::now() + ANSWERS;
        let mut running = 0_u64;
        while let Ok(Some(answer)) = timeout_at(until, answers.next()).await {
            // No worker is there to respond.
            if answer.status == Some(async_nats::StatusCode::NO_RESPONDERS) {
                break;
            }
            let count = std::str::from_utf8(&answer.payload).ok().and_then(|count| count.parse().ok());
            running = running.saturating_add(count.unwrap_or(0));
        }
        Ok(running)
    }

    /// True if a worker reports that it has the job.
    pub(super) async fn is_running(&self, id: &JobId) -> Result<bool, CallError> {
        if self.held.has(id, self.config.limits.lease) {
            return Ok(true);
        }
        let request = async_nats::Request::new().payload(Bytes::from(id.to_string())).timeout(Some(ANSWERS));
        match self.client.send_request(self.subjects.ask(id.queue()), request).await {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), RequestErrorKind::TimedOut | RequestErrorKind::NoResponders) => {
                Ok(false)
            }
            Err(error) => Err(unusable("workers can't be asked", &error)),
        }
    }
}

/// The record, if it could be read: an unreadable one must not keep the others out of a list.
fn readable<T>(read: Result<T, CallError>) -> Option<T> {
    read.inspect_err(|error| tracing::warn!(%error, "a record is left out of a list")).ok()
}

/// Responds with what this process runs of a queue.
pub(super) async fn answer(core: Weak<Core>, queue: String) {
    let questions = {
        let Some(core) = core.upgrade() else { return };
        core.client.subscribe(core.subjects.ask(&queue)).await
    };
    let Ok(mut questions) = questions else { return };
    while let Some(question) = questions.next().await {
        let Some(core): Option<Arc<Core>> = core.upgrade() else { return };
        let Some(reply) = question.reply else { continue };
        let answer = match std::str::from_utf8(&question.payload).map(str::parse::<JobId>) {
            Ok(Ok(id)) if core.held.has(&id, core.config.limits.lease) => Bytes::from_static(b"1"),
            _ if question.payload.is_empty() => {
                Bytes::from(core.held.count(&queue, core.config.limits.lease).to_string())
            }
            _ => continue,
        };
        if let Err(error) = core.client.publish(reply, answer).await {
            tracing::debug!(%error, "an answer is lost");
        }
    }
}
