//! The reports about a value: the first in full, and the number of the rest.

use super::findings::Violation;
use super::path::Path;

/// How many violations or repairs of one value are reported.
pub(crate) const MAX_TOLD: usize = 1000;
/// The expectation of a last entry, if a list of repairs is not complete.
pub(crate) const NO_MORE: &str = "no further differences";

/// A list of violations, of limited length.
pub(super) struct Report {
    list: Vec<Violation>,
    limit: usize,
    more: usize,
}

impl Report {
    pub(super) fn new(limit: usize) -> Self {
        Report { list: Vec::new(), limit, more: 0 }
    }

    /// How many violations there are, reported or not.
    pub(super) fn count(&self) -> usize {
        self.list.len() + self.more
    }

    /// Adds a violation; its message is only made if it is reported.
    pub(super) fn say<M: Into<String>>(&mut self, path: &Path<'_>, message: impl FnOnce() -> M) {
        if self.list.len() < self.limit {
            self.add(path, message().into());
        } else {
            self.more += 1;
        }
    }

    /// Not inlined, since [`say`](Self::say) is compiled for each closure that makes a message.
    #[inline(never)]
    fn add(&mut self, path: &Path<'_>, message: String) {
        self.list.push(Violation { pointer: path.pointer(), message });
    }

    /// The violations, after a first one that says why the list may be incomplete.
    pub(super) fn ended(self, message: String) -> Violations {
        let mut violations = self.finish();
        violations.list.insert(0, Violation { pointer: String::new(), message });
        violations.has_ended = true;
        violations
    }

    pub(super) fn finish(self) -> Violations {
        Violations { list: self.list, more: self.more, has_ended: false }
    }
}

/// The violations of a value.
#[derive(Default)]
pub(crate) struct Violations {
    pub(crate) list: Vec<Violation>,
    /// How many there are that are not listed.
    pub(crate) more: usize,
    /// True if the value was not processed to its end, as the first of the list says.
    pub(crate) has_ended: bool,
}

impl Violations {
    /// The list, with a last entry that says how many more there are.
    pub(super) fn listed(mut self) -> Vec<Violation> {
        if self.more > 0 {
            self.list.push(Violation { pointer: String::new(), message: format!("and {} more", self.more) });
        }
        self.list
    }
}
