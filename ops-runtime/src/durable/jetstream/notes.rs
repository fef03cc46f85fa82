//! How a waiter learns that a job has ended: a notice, which may be lost, beside a slow poll.
//!
//! A job names an inbox of its submitter, at which the worker sends what it has stored. So a result is there with the
//! notice, without a subscription for each job. Who waits for a job of another's subscribes to the subject of its ending,
//! which is heard when it is sent, perhaps before it is stored, and reads.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::SetOnce;
use tokio_util::task::AbortOnDropHandle;

use crate::CallError;
use crate::durable::JobId;
use crate::nats::unusable;

/// Of how many jobs that were submitted here the notices are kept in mind.
const SUBMITTED: usize = 16_384;
/// Up to how many bytes a notice has the ending itself.
pub(super) const WITH_ENDING: usize = 64 << 10;

/// What is heard of one job: its ending, or nothing if that has to be read. Not set as long as the job is open.
pub(super) type News = Arc<SetOnce<Bytes>>;

/// The notices for this process.
pub(super) struct Notes {
    inbox: String,
    table: Arc<Mutex<Table>>,
    _reader: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Table {
    jobs: HashMap<Arc<str>, News>,
    /// The oldest first.
    order: VecDeque<Arc<str>>,
}

impl Notes {
    pub(super) async fn start(client: &Client) -> Result<Self, CallError> {
        let inbox = client.new_inbox();
        let notices = client.subscribe(format!("{inbox}.>")).await;
        let notices = notices.map_err(|error| unusable("notices can't be subscribed to", &error))?;
        let table = Arc::new(Mutex::default());
        let reader = AbortOnDropHandle::new(tokio::spawn(read(notices, inbox.len() + 1, table.clone())));
        Ok(Self { inbox, table, _reader: reader })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Expects the end of a job that is submitted now. Returns below which subject it is told, with the job's id.
    pub(super) fn expect(&self, id: &JobId) -> &str {
        let mut table = self.table();
        if table.jobs.insert(id.text(), News::default()).is_none() {
            table.order.push_back(id.text());
        }
        while table.order.len() > SUBMITTED {
            if let Some(oldest) = table.order.pop_front() {
                table.jobs.remove(&oldest);
            }
        }
        &self.inbox
    }

    /// What is heard of a job that was submitted here.
    pub(super) fn listen(&self, id: &JobId) -> Option<News> {
        self.table().jobs.get(id.as_str()).cloned()
    }

    /// Forgets a job that was not submitted here after all.
    pub(super) fn forget(&self, id: &JobId) {
        self.table().jobs.remove(id.as_str());
    }

    /// Forgets what was told of a job, unless it was submitted again since then.
    pub(super) fn forget_told(&self, id: &JobId, told: &News) {
        let mut table = self.table();
        if table.jobs.get(id.as_str()).is_some_and(|news| Arc::ptr_eq(news, told)) {
            table.jobs.remove(id.as_str());
        }
    }
}

async fn read(mut notices: Subscriber, skip: usize, table: Arc<Mutex<Table>>) {
    while let Some(notice) = notices.next().await {
        let Some(id) = notice.subject.get(skip..) else { continue };
        let table = table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(news) = table.jobs.get(id) {
            // What nobody waits for is not kept here: it can be read.
            let ending = if Arc::strong_count(news) > 1 { notice.payload } else { Bytes::new() };
            // If it was told before, that says the same.
            let _ = news.set(ending);
        }
    }
}
