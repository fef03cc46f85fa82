//! Calls that failed after their program had returned, so that what it returned says nothing of them.

use crate::model::text::readable;

/// How many of them are told; the others are counted.
const TOLD: usize = 5;

/// The calls that failed late.
#[derive(Default)]
pub(super) struct Late {
    told: Vec<String>,
    more: usize,
}

impl Late {
    /// Notes a call.
    pub(super) fn note(&mut self, id: &str, code: &str, message: &str) {
        if self.told.len() < TOLD {
            let (id, message, code) = (readable(id, 200), readable(message, 300), readable(code, 200));
            self.told.push(format!("`{id}`: {message} [{code}]"));
        } else {
            self.more += 1;
        }
    }

    /// What to say of the calls.
    pub(super) fn told(&self) -> Option<String> {
        if self.told.is_empty() {
            return None;
        }
        let more = match self.more {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Some(format!(
            "the program returned before these calls had ended, which failed: {}{more}. `await` each call: a function that is given \
             to `forEach` is awaited by nobody",
            self.told.join("; ")
        ))
    }
}
