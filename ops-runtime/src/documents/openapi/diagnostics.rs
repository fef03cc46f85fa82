//! The diagnostics of a description: each once, and up to a limit.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::document::Node;
use crate::model::diagnostic::{MOST, MOST_POINTER};
use crate::{Diagnostic, Severity};

/// Diagnostics, each with the number of its document.
#[derive(Default)]
pub(super) struct Told {
    list: Vec<(usize, Diagnostic)>,
    /// The places and messages of diagnostics. A part that several operations share is read for each of them.
    seen: HashSet<(usize, u64)>,
    /// How many there are of each severity, including those that are not kept.
    counts: [usize; 3],
}

impl Told {
    /// Adds the diagnostics from before the description was read.
    pub(super) fn add(&mut self, diagnostics: Vec<(usize, Diagnostic)>) {
        for (document, diagnostic) in diagnostics {
            if self.count(diagnostic.severity) {
                self.list.push((document, diagnostic));
            }
        }
    }

    /// Adds a diagnostic of a place, unless it is there already.
    pub(super) fn tell(&mut self, at: &Node<'_>, severity: Severity, message: String, help: impl Into<String>) {
        let mut hasher = DefaultHasher::new();
        message.hash(&mut hasher);
        if self.seen.insert((at.key(), hasher.finish())) && self.count(severity) {
            let diagnostic = Diagnostic::new(severity, at.path.short(MOST_POINTER), message).with_help(help);
            self.list.push((at.document, diagnostic));
        }
    }

    /// Counts one more; `false` if there is no room for it.
    fn count(&mut self, severity: Severity) -> bool {
        let count = self.counts.get_mut(severity as usize);
        count.is_some_and(|count| {
            *count += 1;
            *count <= MOST
        })
    }

    /// All diagnostics, and the number of those that were not kept.
    pub(super) fn finish(self) -> Vec<(usize, Diagnostic)> {
        let mut list = self.list;
        let counts = [Severity::Note, Severity::Warning, Severity::Error].into_iter().zip(self.counts);
        list.extend(counts.filter_map(|(severity, count)| Some((0, Diagnostic::more(severity, count)?))));
        list
    }
}
