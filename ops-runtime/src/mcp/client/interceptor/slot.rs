//! Where the answer to one request is awaited.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::{Progress, ProgressSink};

/// Receives the answer to one request, and its progress.
#[derive(Default)]
pub(in super::super) struct Slot {
    state: Mutex<SlotState>,
    progress: Option<ProgressSink>,
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
        Arc::new(Self { state: Mutex::default(), progress, shared: false, room: None })
    }

    /// A slot for an answer that rmcp reads, too, whose result may have `room` bytes.
    pub(in super::super) fn shared(room: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), progress: None, shared: true, room: Some(room) })
    }

    pub(in super::super) fn take(&self) -> Option<Answer> {
        self.state().answer.take()
    }

    /// When the server last reported progress, if it did.
    pub(in super::super) fn last_progress(&self) -> Option<Instant> {
        self.state().last_progress
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
