//! Progress of a running call, as a stream beside its result.
//!
//! ```
//! use futures_util::StreamExt;
//! use ops_runtime::{CallOptions, Registry};
//! use ops_runtime::adapter::{Handler, Registration};
//! use ops_runtime::registry::Progress;
//! use ops_runtime::spec::OperationSpec;
//! use serde_json::{Value, json};
//!
//! static COPY: OperationSpec = OperationSpec::mutation("files.copy");
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = Registry::new();
//! registry.register(Registration::new(&COPY, Handler::dynamic(|_: Value, context| async move {
//!     for step in 1..=2 {
//!         context.report(Progress::new(f64::from(step)).with_total(2.0));
//!     }
//!     Ok(json!("done"))
//! })))?;
//!
//! let (sink, mut progress) = Progress::channel();
//! registry.call_with("files.copy", json!({}), CallOptions::new().with_progress(sink)).await?;
//! assert_eq!(progress.next().await, Some(Progress::new(1.0).with_total(2.0)));
//! # Ok(()) }
//! ```

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use crate::model::lock::lock;

/// Number of unread reports that are buffered; beyond, the oldest are dropped.
const WAITING: usize = 1024;

/// The progress of a running call.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// The amount that is done; it grows with every report.
    pub progress: f64,
    /// The total amount. `None` if it is unknown.
    pub total: Option<f64>,
    /// A description of the current work, for people.
    pub message: Option<String>,
}

impl Progress {
    /// A report of this much progress. The total is unknown.
    pub fn new(progress: f64) -> Self {
        Self { progress, total: None, message: None }
    }

    /// Sets the total amount.
    #[must_use]
    pub fn with_total(mut self, total: f64) -> Self {
        self.total = Some(total);
        self
    }

    /// Sets the description of the current work.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// A sink for [`CallOptions::with_progress`](crate::CallOptions::with_progress), and the stream of the reports to
    /// it.
    ///
    /// The stream ends with the call. While it is not read, it buffers the last 1,024 reports.
    pub fn channel() -> (ProgressSink, ProgressStream) {
        let queue = Arc::new(Mutex::new(Queue { sinks: 1, ..Queue::default() }));
        (ProgressSink(queue.clone()), ProgressStream(queue))
    }
}

#[derive(Debug, Default)]
struct Queue {
    reports: VecDeque<Progress>,
    reader: Option<Waker>,
    /// Number of sinks; the stream ends when there is none.
    sinks: usize,
    /// True once the stream is dropped: then nothing is buffered.
    is_left: bool,
}

/// The sink of a call's progress reports; clones are the same sink.
#[derive(Debug)]
pub struct ProgressSink(Arc<Mutex<Queue>>);

impl ProgressSink {
    /// Reports progress; never waits.
    pub fn report(&self, progress: Progress) {
        self.tell(|queue| {
            if queue.is_left {
                return false;
            }
            if queue.reports.len() == WAITING {
                queue.reports.pop_front();
            }
            queue.reports.push_back(progress);
            true
        });
    }

    /// True while the stream may be read.
    #[cfg(feature = "durable")]
    pub(crate) fn is_heard(&self) -> bool {
        !lock(&self.0).is_left
    }

    /// Changes the queue, and wakes its reader if necessary.
    fn tell(&self, change: impl FnOnce(&mut Queue) -> bool) {
        let reader = {
            let mut queue = lock(&self.0);
            if change(&mut queue) { queue.reader.take() } else { None }
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Clone for ProgressSink {
    fn clone(&self) -> Self {
        lock(&self.0).sinks += 1;
        Self(self.0.clone())
    }
}

impl Drop for ProgressSink {
    fn drop(&mut self) {
        self.tell(|queue| {
            queue.sinks -= 1;
            queue.sinks == 0
        });
    }
}

/// The progress reports of a call; the stream ends with the call.
#[derive(Debug)]
pub struct ProgressStream(Arc<Mutex<Queue>>);

impl Stream for ProgressStream {
    type Item = Progress;

    fn poll_next(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Progress>> {
        let mut queue = lock(&self.0);
        match queue.reports.pop_front() {
            Some(progress) => Poll::Ready(Some(progress)),
            None if queue.sinks == 0 => Poll::Ready(None),
            None => {
                queue.reader = Some(task.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for ProgressStream {
    fn drop(&mut self) {
        let mut queue = lock(&self.0);
        queue.is_left = true;
        queue.reports = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    #[tokio::test]
    async fn a_stream_holds_the_last_reports_and_ends_with_its_sinks() {
        let (sink, stream) = Progress::channel();
        let other = sink.clone();
        for step in 0..WAITING + 2 {
            sink.report(Progress::new(step as f64));
        }
        drop(sink);
        other.report(Progress::new(-1.0));
        drop(other);
        let reports: Vec<_> = stream.collect().await;
        assert_eq!(reports.len(), WAITING);
        assert_eq!(reports[0], Progress::new(3.0));
        assert_eq!(reports.last(), Some(&Progress::new(-1.0)));
    }

    #[test]
    fn nothing_waits_for_a_stream_that_is_gone() {
        let (sink, stream) = Progress::channel();
        sink.report(Progress::new(1.0));
        assert_eq!(lock(&sink.0).reports.len(), 1);
        drop(stream);
        sink.report(Progress::new(2.0));
        assert!(lock(&sink.0).reports.is_empty());
    }
}
