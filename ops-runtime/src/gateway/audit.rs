//! A log of all calls, as JSON lines.
//!
//! A call does not wait for the log: entries go through a bounded queue to a thread that writes them.

mod entry;
pub(super) mod files;
mod redact;
mod writer;

use std::borrow::Cow;
use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{OwnedPermit, Sender};
use tokio::sync::oneshot;

use self::writer::{Lines, Message, State};
use super::size::size_of;
use crate::run::context::now;
use crate::{CallError, ErrorCode};

pub use self::entry::{Approval, AuditEntry};
pub use self::redact::AuditInputs;
pub use self::writer::AuditSink;

/// How long the end of a process waits for the log.
const MAX_FLUSH: Duration = Duration::from_secs(5);

/// How long it waits for one attempt to write an entry, and for one further attempt.
const ATTEMPT: Duration = Duration::from_millis(300);

/// The outcome of a call that has a result.
const OK: &str = "ok";

/// The options of an audit log.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditOptions {
    /// True if calls are refused whose entries could be lost. By default calls go on, and lost entries are counted.
    pub required: bool,
    /// Number of entries that may wait to be written. With `required`, calls in flight and open subscriptions count,
    /// too: each has the place of its entry until it ends.
    pub max_queued: usize,
    /// How inputs are written; `None` to write only their sizes.
    pub inputs: Option<AuditInputs>,
}

impl Default for AuditOptions {
    /// Not required, 4,096 entries, no inputs.
    fn default() -> Self {
        Self { required: false, max_queued: 4_096, inputs: None }
    }
}

impl AuditOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Refuses calls while the log cannot be written, or is too slow.
    #[must_use]
    pub fn with_required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets the number of entries that may wait to be written; at least one. With a log that is
    /// [required](Self::with_required), that many calls and subscriptions can be in progress.
    #[must_use]
    pub fn with_max_queued(mut self, entries: usize) -> Self {
        self.max_queued = entries;
        self
    }

    /// Also writes inputs, without the members that look like secrets.
    #[must_use]
    pub fn with_inputs(mut self, inputs: AuditInputs) -> Self {
        self.inputs = Some(inputs);
        self
    }
}

/// A log of calls: caller, operation, outcome and duration. A clone writes to the same log.
///
/// ```text
/// {"time":"2026-11-23T23:45:12.007Z","request":"7","caller":"ann","operation":"shop.buyPet","kind":"mutation",
///  "outcome":"ok","durationMs":12.25,"inputBytes":11,"outputBytes":52,"approval":{"state":"approved","by":"bob"}}
/// ```
///
/// (in one line). `outcome` is `ok` or the code of the error; it is `ABORTED` for a call that was dropped, and
/// `TIMEOUT` if its deadline had passed by then. The entry of a subscription is written at its end, with the code of
/// the last item's error. It is `ok` if that item did not fail, or if there was none, also if the reader leaves. A
/// subscription that was cancelled is `ABORTED`, and one that its deadline has ended is `TIMEOUT`. Unknown members are
/// left out; `caller` is `null` for a caller without an identity. Results are never written, and inputs only as set by
/// [`AuditInputs`]. Of a file in an input, a gateway writes the name, the type and the size, as far as they are known:
/// `{"fileName":"cat.png","contentType":"image/png","bytes":20480}`.
///
/// Calls do not wait for the log. If the sink fails, the entry is retried every 200 ms, and further entries wait in a
/// queue. An entry that finds the queue full is lost; the next written entry has the number of lost ones as `dropped`.
/// A log that is [required](AuditOptions::with_required) loses none while the process lives: while its sink fails, or
/// while the queue has no room for the calls in flight and the open subscriptions, calls are refused. When the process
/// ends, queued entries are lost, unless [`flush`](Self::flush) waits for them.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use ops_runtime::gateway::{AuditEntry, AuditLog, AuditOptions};
/// use ops_runtime::spec::OperationKind;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ops_runtime::CallError> {
/// let lines = Arc::new(Mutex::new(Vec::new()));
/// let kept = lines.clone();
/// let log = AuditLog::to_sink(AuditOptions::new(), move |entry: &AuditEntry| {
///     kept.lock().unwrap().push(entry.to_json());
///     Ok(())
/// })?;
/// let record = log.begin(AuditEntry::new("7", "shop.buyPet", OperationKind::Mutation), &json!({ "petId": 7 }))?;
/// record.finish(Ok(&json!("sold")));
/// log.flush().await;
/// assert_eq!(lines.lock().unwrap()[0]["outcome"], "ok");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct AuditLog {
    options: Arc<AuditOptions>,
    state: Arc<State>,
    queue: Sender<Message>,
}

impl AuditLog {
    /// A log that appends to a file, which is created with the mode 0600 if it does not exist.
    ///
    /// The file stays open. To rotate it, copy and truncate it (`copytruncate` of logrotate).
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn to_file(options: AuditOptions, path: impl AsRef<Path>) -> Result<Self, CallError> {
        let path = path.as_ref();
        let mut open = OpenOptions::new();
        open.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut open, 0o600);
        let file = open.open(path).map_err(|error| {
            CallError::execution(format!("the audit log `{}` cannot be opened: {error}", path.display()))
        })?;
        Self::to_sink(options, Lines::new(file))
    }

    /// A log to the standard error stream.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn to_stderr(options: AuditOptions) -> Result<Self, CallError> {
        Self::to_sink(options, Lines::new(io::stderr()))
    }

    /// A log to a sink, such as a closure of `&AuditEntry`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn to_sink(options: AuditOptions, sink: impl AuditSink) -> Result<Self, CallError> {
        let state = Arc::new(State::default());
        let queue = writer::start(Box::new(sink), options.max_queued, state.clone())
            .map_err(|error| CallError::execution(format!("the audit log has no thread: {error}")))?;
        Ok(Self { options: Arc::new(options), state, queue })
    }

    /// Begins the entry of a call; it is written when the record is finished or dropped.
    ///
    /// # Errors
    /// An `EXECUTION_ERROR` if the log is required and cannot be written now. The call must not be made then.
    pub fn begin(&self, entry: AuditEntry, input: &Value) -> Result<AuditRecord, CallError> {
        self.begin_as(entry, size_of(input, usize::MAX), || Cow::Borrowed(input))
    }

    /// Like [`begin`](Self::begin), for an input of that size that is written in another form.
    pub(super) fn begin_as<'v>(
        &self,
        mut entry: AuditEntry,
        size: Option<usize>,
        told: impl FnOnce() -> Cow<'v, Value>,
    ) -> Result<AuditRecord, CallError> {
        let place = if self.options.required { Some(self.reserve()?) } else { None };
        entry.input_bytes = size;
        if let Some(inputs) = &self.options.inputs {
            let told = told();
            let fits = size_of(&told, inputs.max_bytes).is_some();
            (entry.input, entry.input_omitted) = (fits.then(|| inputs.redact(&told)), !fits);
        }
        let started = Instant::now();
        Ok(AuditRecord { log: self.clone(), entry: Some(Box::new(entry)), started, deadline: None, place })
    }

    /// Waits until all finished entries are written, however long that takes.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.queue.send(Message::Flush(done)).await.is_ok() {
            let _ = written.await;
        }
    }

    /// Like [`flush`](Self::flush), for the end of a process, which a failing sink must not prevent.
    ///
    /// It waits 5 seconds at most. A log that is not required and whose sink fails gets only one further attempt.
    pub(super) async fn flush_for_end(&self) {
        let until = tokio::time::Instant::now() + MAX_FLUSH;
        let mut flushing = std::pin::pin!(self.flush());
        while tokio::time::timeout(ATTEMPT, &mut flushing).await.is_err() {
            if tokio::time::Instant::now() < until && (self.options.required || self.state.failure().is_none()) {
                continue;
            }
            let (lost, why) = (self.state.unwritten(), self.state.failure());
            tracing::error!(lost, why, "the process ends without entries that the audit log has not written");
            return;
        }
    }

    /// Reserves a place in the queue, so that the entry cannot be lost.
    fn reserve(&self) -> Result<OwnedPermit<Message>, CallError> {
        let refused = |why: &str| {
            let message = format!("the audit log cannot be written ({why}): without it no call is made");
            Err(CallError::new(ErrorCode::ExecutionError, message))
        };
        if let Some(why) = self.state.failure() {
            return refused(&why);
        }
        match self.queue.clone().try_reserve_owned() {
            Ok(place) => Ok(place),
            Err(TrySendError::Full(_)) => {
                refused("calls, open subscriptions and unwritten entries take all of its places")
            }
            Err(TrySendError::Closed(_)) => refused("it has ended"),
        }
    }

    fn write(&self, entry: Box<AuditEntry>, place: Option<OwnedPermit<Message>>) {
        match place {
            Some(place) => {
                self.state.queue_one();
                drop(place.send(Message::Entry(entry)));
            }
            None => match self.queue.try_reserve() {
                Ok(place) => {
                    self.state.queue_one();
                    place.send(Message::Entry(entry));
                }
                Err(_) => self.state.drop_one(),
            },
        }
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The entry of a call in progress. If it is dropped, the call counts as `ABORTED`, or as `TIMEOUT` if its deadline has
/// passed.
#[derive(Debug)]
pub struct AuditRecord {
    log: AuditLog,
    /// `None` once it is written.
    entry: Option<Box<AuditEntry>>,
    started: Instant,
    /// The deadline of the call.
    deadline: Option<Instant>,
    /// Its place in the queue, if the log is required.
    place: Option<OwnedPermit<Message>>,
}

impl AuditRecord {
    /// If it is dropped after this deadline, the call counts as timed out instead of aborted.
    pub(super) fn with_deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// True if the deadline of the call has passed.
    pub(super) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now())
    }

    /// Sets the outcome of asking for approval; the last one counts.
    pub fn set_approval(&mut self, approval: Approval) {
        if let Some(entry) = &mut self.entry {
            entry.approval = Some(approval);
        }
    }

    /// Ends the call with its result, of which only the size is written, or with its error, of which the code is
    /// written.
    pub fn finish(mut self, outcome: Result<&Value, &CallError>) {
        let (outcome, bytes) = match outcome {
            Ok(result) => (OK, size_of(result, usize::MAX)),
            Err(error) => (error.code().as_str(), None),
        };
        self.end(outcome, bytes);
    }

    /// Ends the call with a result of that size, if known.
    pub(super) fn finish_with(mut self, bytes: Option<usize>) {
        self.end(OK, bytes);
    }

    /// Drops the entry without writing it.
    #[cfg(feature = "program")]
    pub(super) fn discard(mut self) {
        self.entry = None;
    }

    fn end(&mut self, outcome: &str, output_bytes: Option<usize>) {
        let Some(mut entry) = self.entry.take() else { return };
        outcome.clone_into(&mut entry.outcome);
        (entry.output_bytes, entry.duration) = (output_bytes, self.started.elapsed());
        self.log.write(entry, self.place.take());
    }
}

impl Drop for AuditRecord {
    fn drop(&mut self) {
        let code = if self.is_late() { ErrorCode::Timeout } else { ErrorCode::Aborted };
        self.end(code.as_str(), None);
    }
}

#[cfg(test)]
mod tests;
