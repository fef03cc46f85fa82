//! What failed without the result of the program reflecting it: promises that nothing waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::model::text::readable;
use crate::program::journal::{Answer, Entry};
use crate::program::outcome::Failure;

/// How many failures a warning names. The others are counted.
const TOLD: usize = 5;

/// How many promises are kept. The others are counted, so that a program cannot fill the host's memory.
const HELD: usize = 50;

/// The failures that the program's result does not reflect.
#[derive(Default)]
pub(super) struct Late {
    /// The promises that failed and that nothing has waited for so far, by their numbers.
    unheard: BTreeMap<u64, Unheard>,
    /// How many more promises there are.
    more: usize,
}

/// Why a promise failed.
enum Unheard {
    /// By the error of this call.
    Call(usize),
    /// By another error.
    Error(String),
}

impl Late {
    /// Notes a promise that failed while nothing waited for it. `call` is the call whose error it has.
    pub(super) fn unheard(&mut self, number: u64, call: Option<usize>, error: &Value) {
        if self.unheard.len() >= HELD {
            self.more = self.more.saturating_add(1);
            return;
        }
        let unheard = match call {
            Some(at) => Unheard::Call(at),
            None => {
                let mut failure = Failure::thrown(error);
                failure.message = readable(&failure.message, 300);
                failure.code = failure.code.map(|code| readable(&code, 200));
                Unheard::Error(failure.to_string())
            }
        };
        self.unheard.insert(number, unheard);
    }

    /// Forgets a promise: something waits for it now.
    pub(super) fn heard(&mut self, number: u64) {
        if self.unheard.remove(&number).is_none() {
            self.more = self.more.saturating_sub(1);
        }
    }

    /// The warning about all of them, given the calls of the journal. `None` if there is nothing to warn of.
    pub(super) fn told(&self, calls: &[Arc<Entry>]) -> Option<String> {
        // Several promises may have the error of one call.
        let (mut failed, mut errors) = (BTreeSet::new(), Vec::new());
        for unheard in self.unheard.values() {
            match unheard {
                Unheard::Call(at) => _ = failed.insert(*at),
                Unheard::Error(text) => errors.push(text.clone()),
            }
        }
        // The program may name calls that did not fail.
        let error_of = |at: &usize| match calls.get(*at).map(|entry| (&entry.id, &entry.answer)) {
            Some((id, Some(Answer::Error { code, message, .. }))) => Some((id, code, message)),
            _ => None,
        };
        let failed: Vec<_> = failed.iter().filter_map(error_of).collect();
        let more = (failed.len() + errors.len()).saturating_sub(TOLD) + self.more;
        let shown = failed.into_iter().map(|(id, code, message)| {
            format!("`{}`: {} [{}]", readable(id, 200), readable(message, 300), readable(code, 200))
        });
        let mut told: Vec<String> = shown.chain(errors).take(TOLD).collect();
        match (told.is_empty(), more) {
            (true, 0) => return None,
            (true, more) => told.push(format!("{more} promises")),
            (false, 0) => {}
            (false, more) => told.push(format!("and {more} more")),
        }
        Some(format!("nothing waited for what failed: {}. `await` each call and each async function", told.join("; ")))
    }
}
