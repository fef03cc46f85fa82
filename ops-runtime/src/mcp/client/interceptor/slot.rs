//! The slot in which the response to a request arrives.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::Interceptor;
use crate::model::lock::lock;
use crate::{Progress, ProgressSink};

/// Receives the response to one request, and its progress; nothing more arrives when it is dropped.
#[derive(Default)]
pub(in super::super) struct Slot {
    state: Mutex<SlotState>,
    progress: Option<ProgressSink>,
    /// The slot of the call whose task is awaited, which receives the progress.
    call: Option<Arc<Self>>,
    sent: Sent,
    /// True if rmcp needs the response, too.
    pub(super) shared: bool,
    /// Limit of the bytes of the result.
    pub(super) room: Option<usize>,
}

#[derive(Default)]
struct SlotState {
    answer: Option<Answer>,
    last_progress: Option<Instant>,
    /// True while the server says that the task of the request is open.
    is_open: bool,
}

/// The response to a request, unchanged.
pub(in super::super) enum Answer {
    Result(Box<RawValue>),
    Error(RpcError),
    /// A result of more bytes than allowed.
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
    /// An unknown error.
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

    /// A slot for a response that rmcp reads, too, whose result may have `room` bytes.
    pub(in super::super) fn shared(room: usize) -> Arc<Self> {
        Arc::new(Self { shared: true, room: Some(room), ..Self::default() })
    }

    pub(in super::super) fn take(&self) -> Option<Answer> {
        self.state().answer.take()
    }

    /// When the server last reported progress; now, while the task of the request is open. `None` if it did not.
    pub(in super::super) fn last_progress(&self) -> Option<Instant> {
        let of_call = self.call.as_ref().and_then(|call| call.last_progress());
        let state = self.state();
        let own = if state.is_open { Some(Instant::now()) } else { state.last_progress };
        own.max(of_call)
    }

    /// Sets whether the server says that the task of the request is open.
    pub(in super::super) fn set_open(&self, is_open: bool) {
        let mut state = self.state();
        (state.is_open, state.last_progress) = (is_open, Some(Instant::now()));
    }

    /// Notes the interceptor and the number of the request.
    pub(super) fn sent(&self, interceptor: Weak<Interceptor>, id: i64) {
        let _ = self.sent.0.set((interceptor, id));
    }

    pub(super) fn fill(&self, answer: Answer) {
        self.state().answer = Some(answer);
    }

    pub(super) fn report(&self, progress: Progress) {
        self.state().last_progress = Some(Instant::now());
        if let Some(sink) = &self.progress {
            sink.report(progress);
        }
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        lock(&self.state)
    }
}

/// The interceptor and the number of a request; it is forgotten there when this is dropped.
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
