//! Approximate memory of requests and of what is written as JSON.

use std::io;

use serde_core::Serialize;
use serde_json::Value;

use crate::Payload;
use crate::call::CallRequest;

/// Approximate memory of a request: its overhead, its text, and the values in the text.
pub(super) fn weight(request: &CallRequest) -> usize {
    /// A task, its place in a table, the request itself.
    const REQUEST: usize = 1_024;
    /// A value in memory, with the room that a list keeps for more of them.
    const VALUE: usize = size_of::<Value>() * 3 / 2;
    // A value was in this process before, and costs nothing more.
    let Payload::Raw(text) = &request.input else { return 0 };
    let mut around = REQUEST + request.operation_id.len() + request.request_id.len();
    around += request.parent_request_id.as_ref().map_or(0, |id| id.len());
    if !request.metadata.is_empty() {
        around += request.metadata.iter().map(|(name, value)| name.len() + VALUE + in_memory(value)).sum::<usize>();
    }
    if let Some(identity) = &request.identity {
        let texts = identity.scopes.iter().chain(identity.resources.values().flatten());
        around += texts.map(|text| text.len() + size_of::<String>()).sum::<usize>() + identity.id.len();
        around += identity.resources.keys().map(|name| name.len() + 64).sum::<usize>();
    }
    let text = text.get().as_bytes();
    // For a short text, the upper bound is used, since counting costs time.
    let values = if text.len() <= 256 { text.len() / 4 } else { text.iter().filter(|byte| **byte == b',').count() };
    around + text.len() + values * VALUE
}

/// Approximate memory of a value beside itself. Its depth is limited by the parser.
fn in_memory(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| size_of::<Value>() + in_memory(item)).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + 2 * size_of::<Value>() + in_memory(value)).sum()
        }
        _ => 0,
    }
}

/// What is written as JSON, in bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Written {
    /// Its text.
    pub(crate) text: usize,
    /// Its approximate memory: its text, and the values in it.
    pub(crate) memory: usize,
}

impl Written {
    pub(crate) fn add(&mut self, other: Self) {
        self.text = self.text.saturating_add(other.text);
        self.memory = self.memory.saturating_add(other.memory);
    }

    pub(crate) fn subtract(&mut self, other: Self) {
        self.text = self.text.saturating_sub(other.text);
        self.memory = self.memory.saturating_sub(other.memory);
    }
}

/// The size of a value that is written as JSON.
pub(crate) fn written(value: &impl Serialize) -> Written {
    /// A value costs more than its text.
    const VALUE: usize = 96;
    /// Counts the bytes that are written, and the values in them.
    #[derive(Default)]
    struct Count {
        bytes: usize,
        values: usize,
    }
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.bytes += bytes.len();
            self.values += bytes.iter().filter(|byte| matches!(byte, b',' | b'{' | b'[')).count();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count::default();
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => Written { text: count.bytes, memory: count.bytes + count.values * VALUE },
        Err(_) => Written { text: usize::MAX, memory: usize::MAX },
    }
}
