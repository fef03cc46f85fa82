//! The thread that writes the log.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Semaphore, oneshot};

use super::AuditEntry;
use crate::model::lock::lock;

/// How long to wait before an entry that could not be written is retried.
const RETRY: Duration = Duration::from_millis(200);

/// The destination of an audit log. A closure of `&AuditEntry` is a sink.
pub trait AuditSink: Send + 'static {
    /// Writes an entry. It may block, since it runs in a thread of its own.
    ///
    /// # Errors
    /// If the entry is not written. It is retried.
    fn write(&mut self, entry: &AuditEntry) -> io::Result<()>;
}

impl<F: FnMut(&AuditEntry) -> io::Result<()> + Send + 'static> AuditSink for F {
    fn write(&mut self, entry: &AuditEntry) -> io::Result<()> {
        self(entry)
    }
}

/// JSON lines.
pub(super) struct Lines<W> {
    to: W,
    /// True if the last line was not completed.
    is_torn: bool,
}

impl<W> Lines<W> {
    pub(super) fn new(to: W) -> Self {
        Self { to, is_torn: false }
    }
}

impl<W: Write + Send + 'static> AuditSink for Lines<W> {
    fn write(&mut self, entry: &AuditEntry) -> io::Result<()> {
        // In one write, so that lines of several processes do not mix. A line that was cut off by a full disk is ended
        // first.
        let line = format!("{}{}\n", if self.is_torn { "\n" } else { "" }, entry.to_line());
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            match self.to.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    rest = rest.get(count..).unwrap_or_default();
                    self.is_torn = !rest.is_empty();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.to.flush()
    }
}

/// A message in the queue.
#[derive(Debug)]
pub(super) enum Message {
    Entry(Box<AuditEntry>),
    Flush(oneshot::Sender<()>),
}

/// State shared by the log and its thread.
#[derive(Default)]
pub(super) struct State {
    /// Number of entries that found the queue full since one was written.
    dropped: AtomicU64,
    /// Number of entries in the queue, or with the sink.
    queued: AtomicU64,
    /// The present error of the sink.
    failure: Mutex<Option<String>>,
}

impl State {
    pub(super) fn drop_one(&self) {
        if self.dropped.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::error!("entries of the audit log are lost: its queue is full");
        }
    }

    pub(super) fn queue_one(&self) {
        self.queued.fetch_add(1, Ordering::Relaxed);
    }

    /// How many entries are lost if the process ends now.
    pub(super) fn unwritten(&self) -> u64 {
        self.queued.load(Ordering::Relaxed).saturating_add(self.dropped.load(Ordering::Relaxed))
    }

    /// The reason why the log cannot be written; `None` if it can.
    pub(super) fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }

    fn set_failure(&self, why: Option<String>) {
        let mut failure = lock(&self.failure);
        match (&*failure, &why) {
            (None, Some(why)) => tracing::error!(why, "the audit log cannot be written"),
            (Some(_), None) => tracing::info!("the audit log is written again"),
            _ => {}
        }
        *failure = why;
    }
}

/// Starts the thread. It ends when the queue is closed and written.
pub(super) fn start(sink: Box<dyn AuditSink>, size: usize, state: Arc<State>) -> io::Result<Sender<Message>> {
    let (sender, queue) = channel(size.clamp(1, Semaphore::MAX_PERMITS));
    thread::Builder::new().name("audit-log".to_owned()).spawn(move || run(sink, queue, &state))?;
    Ok(sender)
}

fn run(mut sink: Box<dyn AuditSink>, mut queue: Receiver<Message>, state: &State) {
    while let Some(message) = queue.blocking_recv() {
        let mut entry = match message {
            Message::Entry(entry) => entry,
            Message::Flush(done) => {
                let _ = done.send(());
                continue;
            }
        };
        loop {
            entry.dropped = state.dropped.load(Ordering::Relaxed);
            let Err(why) = write(&mut *sink, &entry) else {
                state.dropped.fetch_sub(entry.dropped, Ordering::Relaxed);
                state.queued.fetch_sub(1, Ordering::Relaxed);
                state.set_failure(None);
                break;
            };
            state.set_failure(Some(why));
            if queue.is_closed() {
                // No more calls are made, and the process must be able to end.
                return;
            }
            thread::sleep(RETRY);
        }
    }
}

/// Writes an entry; the error is a text.
fn write(sink: &mut dyn AuditSink, entry: &AuditEntry) -> Result<(), String> {
    match catch_unwind(AssertUnwindSafe(|| sink.write(entry))) {
        Ok(written) => written.map_err(|error| error.to_string()),
        Err(_) => Err("the sink panicked".to_owned()),
    }
}
