//! Where the answer to one request is awaited.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::Interceptor;
use crate::{Progress, ProgressSink};

/// Receives the answer to one request, and its progress; nothing more comes when it is dropped.
#[derive(Default)]
pub(in super::super) struct Slot {
    state: Mutex<SlotState>,
    progress: Option<ProgressSink>,
    /// The slot of the call whose task is waited for, to which the progress comes.
    call: Option<Arc<Self>>,
    sent: Sent,
    /// True if rmcp needs the answer, too.
    pub(super) shared: bool,
    /// How many bytes the result may have.
    pub(super) room: Option<usize>,
}

#[derive(Default)]
struct SlotState {
    answer: Option<Answer>,
    last_progress: Option<Instant>,
}

/// The answer to a request, as it came.
pub(in super::super) enum Answer {
    Result(Box<RawValue>),
    Error(RpcError),
    /// A result of more bytes than there is room for.
    TooLarge,
}

/// A JSON-RPC error.
#[derive(Debug, Clone, Deserialize)]
pub(in super::super) struct RpcError {
    #[serde(default)]
    pub(in super::super) code: Value,
    #[serde(default)]
    pub(in super::super) message: Value,
    #[serde(default)]
    pub(in super::super) data: Value,
}

impl RpcError {
    /// An error of which nothing is known.
    pub(in super::super) fn unknown() -> Self {
        Self { code: Value::Null, message: Value::Null, data: Value::Null }
    }
}

impl Slot {
    pub(in super::super) fn new(progress: Option<ProgressSink>) -> Arc<Self> {
        Arc::new(Self { progress, ..Self::default() })
    }

    /// A slot for the result of a task that a call became.
    pub(in super::super) fn of_task(call: Arc<Self>) -> Arc<Self> {
        Arc::new(Self { call: Some(call), ..Self::default() })
    }

    /// A slot for an answer that rmcp reads, too, whose result may have `room` bytes.
    pub(in super::super) fn shared(room: usize) -> Arc<Self> {
        Arc::new(Self { shared: true, room: Some(room), ..Self::default() })
    }

    pub(in super::super) fn take(&self) -> Option<Answer> {
        self.state().answer.take()
    }

    /// When the server last reported progress, if it did.
    pub(in super::super) fn last_progress(&self) -> Option<Instant> {
        let of_call = self.call.as_ref().and_then(|call| call.last_progress());
        self.state().last_progress.max(of_call)
    }

    /// Notes where the request is known, and by which number.
    pub(super) fn sent(&self, interceptor: Weak<Interceptor>, id: i64) {
        let _ = self.sent.0.set((interceptor, id));
    }

    pub(super) fn fill(&self, answer: Answer) {
        self.state().answer = Some(answer);
    }

    /// Notes that the server works on the request.
    pub(in super::super) fn lives(&self) {
        self.state().last_progress = Some(Instant::now());
    }

    pub(super) fn report(&self, progress: Progress) {
        self.lives();
        if let Some(sink) = &self.progress {
            sink.report(progress);
        }
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who knows of a request, and its number; it is forgotten there in the end.
#[derive(Default)]
struct Sent(OnceLock<(Weak<Interceptor>, i64)>);

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some((interceptor, id)) = self.0.take()
            && let Some(interceptor) = interceptor.upgrade()
        {
            interceptor.forget(id);
        }
    }
}
