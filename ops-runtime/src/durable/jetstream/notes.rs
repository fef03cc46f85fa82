//! How a waiter learns that a job has ended: a notice, which may be lost, beside a slow poll.
//!
//! A job names an inbox of its submitter, to which the worker sends the ending that it has stored. So the result
//! arrives with the notice, without a subscription for each job. A process that waits for another process's job
//! subscribes to the subject of its end. The message may arrive before it is stored, so the process then reads the job.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::SetOnce;
use tokio_util::task::AbortOnDropHandle;

use crate::CallError;
use crate::durable::JobId;
use crate::model::lock::lock;
use crate::nats::unusable;

/// Number of submitted jobs whose notices are expected.
const SUBMITTED: usize = 16_384;
/// Number of the oldest entries that are checked when there are more.
const EVICTED: usize = 8;
/// Up to how many bytes a notice contains the ending itself.
pub(super) const WITH_ENDING: usize = 64 << 10;

/// The notice of one job: its ending, or empty if the ending has to be read. Not set while the job is open.
pub(super) type News = Arc<SetOnce<Bytes>>;

/// The notices for this process.
pub(super) struct Notes {
    inbox: String,
    table: Arc<Mutex<Table>>,
    _reader: AbortOnDropHandle<()>,
}

/// The entry of the table that a submit has made.
pub(super) type Expected = Weak<SetOnce<Bytes>>;

#[derive(Default)]
struct Table {
    jobs: HashMap<Arc<str>, Entry>,
    /// The oldest first. An entry may be gone by now, and the job may have another.
    order: VecDeque<(Arc<str>, Expected)>,
}

struct Entry {
    news: News,
    /// Number of submits, less those that did not make the job.
    submits: usize,
}

impl Entry {
    fn is(&self, expected: &Expected) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.news), expected.as_ptr())
    }

    /// True if a waiter still holds the notice.
    fn is_heard(&self) -> bool {
        Arc::strong_count(&self.news) > 1
    }
}

impl Table {
    /// The entry of a job to wait for. A repeated submit shares the entry of the earlier one until its notice has
    /// arrived.
    fn expect(&mut self, id: Arc<str>) -> Expected {
        if let Some(entry) = self.jobs.get_mut(&id).filter(|entry| !entry.news.initialized()) {
            entry.submits += 1;
            return Arc::downgrade(&entry.news);
        }
        let news = News::default();
        let expected = Arc::downgrade(&news);
        self.order.push_back((id.clone(), expected.clone()));
        self.jobs.insert(id, Entry { news, submits: 1 });
        self.evict();
        expected
    }

    /// Removes the oldest entries if there are too many, except those that have waiters.
    fn evict(&mut self) {
        for _ in 0..EVICTED {
            if self.order.len() <= SUBMITTED {
                return;
            }
            let Some((id, expected)) = self.order.pop_front() else { return };
            match self.jobs.get(&id).filter(|entry| entry.is(&expected)) {
                Some(entry) if entry.is_heard() => self.order.push_back((id, expected)),
                Some(_) => drop(self.jobs.remove(&id)),
                None => {}
            }
        }
    }

    fn forget(&mut self, id: &str, expected: &Expected) {
        let Some(entry) = self.jobs.get_mut(id).filter(|entry| entry.is(expected)) else { return };
        entry.submits = entry.submits.saturating_sub(1);
        if entry.submits == 0 {
            self.jobs.remove(id);
        }
    }
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
        lock(&self.table)
    }

    /// The subject under which the ends of jobs that are submitted here arrive, followed by their ids.
    pub(super) fn inbox(&self) -> &str {
        &self.inbox
    }

    /// Expects the end of a job that is being submitted.
    pub(super) fn expect(&self, id: &JobId) -> Expected {
        self.table().expect(id.text())
    }

    /// The notice of a job that was submitted here.
    pub(super) fn listen(&self, id: &JobId) -> Option<News> {
        self.table().jobs.get(id.as_str()).map(|entry| entry.news.clone())
    }

    /// Removes a job that this submit did not make after all, unless another submit of this process may have made it.
    pub(super) fn forget(&self, id: &JobId, expected: &Expected) {
        self.table().forget(id.as_str(), expected);
    }

    /// Removes the notice of a job, unless the job was submitted again since.
    pub(super) fn forget_told(&self, id: &JobId, told: &News) {
        let mut table = self.table();
        if table.jobs.get(id.as_str()).is_some_and(|entry| Arc::ptr_eq(&entry.news, told)) {
            table.jobs.remove(id.as_str());
        }
    }
}

async fn read(mut notices: Subscriber, skip: usize, table: Arc<Mutex<Table>>) {
    while let Some(notice) = notices.next().await {
        let Some(id) = notice.subject.get(skip..) else { continue };
        let table = lock(&table);
        if let Some(entry) = table.jobs.get(id) {
            // Without a waiter, the ending is not stored here: it can be read.
            let ending = if entry.is_heard() { notice.payload } else { Bytes::new() };
            // If it was set before, it has the same content.
            let _ = entry.news.set(ending);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> Arc<str> {
        number.to_string().into()
    }

    /// A submit that made no job takes nothing from one that did, in whichever order they come.
    #[test]
    fn submits_of_one_key() {
        for (refused, is_kept) in [(&[][..], true), (&[0][..], true), (&[1][..], true), (&[0, 1][..], false)] {
            let mut table = Table::default();
            let submits = [table.expect(id(1)), table.expect(id(1))];
            let news = table.jobs["1"].news.clone();
            refused.iter().for_each(|submit: &usize| table.forget("1", &submits[*submit]));
            assert_eq!(
                table.jobs.get("1").is_some_and(|entry| Arc::ptr_eq(&entry.news, &news)),
                is_kept,
                "{refused:?}"
            );
        }
        // What has ended, and is submitted again, has news of its own.
        let mut table = Table::default();
        let former = table.expect(id(1));
        table.jobs["1"].news.set(Bytes::new()).unwrap();
        table.expect(id(1));
        table.forget("1", &former);
        assert!(!table.jobs["1"].news.initialized());
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut table = Table::default();
        let first = table.expect(id(0));
        table.forget("0", &first);
        table.expect(id(0));
        let heard = [0, 1].map(|number| {
            table.expect(id(number));
            table.jobs[&id(number)].news.clone()
        });
        for number in 2..SUBMITTED + 20 {
            table.expect(id(number));
        }
        assert!(heard.iter().zip(["0", "1"]).all(|(news, id)| Arc::ptr_eq(news, &table.jobs[id].news)));
        assert!(!table.jobs.contains_key("2") && table.jobs.contains_key("99"));
        assert_eq!((table.order.len(), table.jobs.len()), (SUBMITTED, SUBMITTED));
    }
}
