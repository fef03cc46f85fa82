//! The parts that workers have sent so far of their lists of operations.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::subject;
use crate::OperationSpec;
use crate::call::Announcement;
use crate::call::peer_specs::Heard;

/// Limit of workers with an incomplete list.
const MOST: usize = 1_000;

/// The incomplete lists of operations, by worker.
#[derive(Default)]
pub(super) struct Parts(HashMap<String, Part>);

#[derive(Default)]
struct Part {
    /// The worker with its connection, and the number of its last change before it answered.
    of: (String, u64),
    specs: Heard,
}

impl Parts {
    /// Adds a part of a worker's list, which may take so many bytes; returns the whole list with the last part.
    ///
    /// `worker` includes its connection. The rest of an earlier list, whose end was lost, is dropped.
    pub(super) fn add(
        &mut self,
        connected: &str,
        number: u64,
        said: Announcement,
        limit: usize,
    ) -> Option<Vec<Arc<OperationSpec>>> {
        let worker = subject::name(connected);
        // Lists that never end are dropped.
        let bytes: usize = self.0.values().map(|part| part.specs.bytes()).sum();
        if self.0.len() > MOST || bytes > limit.saturating_mul(4) {
            self.0.clear();
        }
        let part = self.0.entry(worker.to_owned()).or_default();
        if part.of != (connected.to_owned(), number) {
            *part = Part { of: (connected.to_owned(), number), specs: Heard::default() };
        }
        for spec in said.add {
            part.specs.add(spec, limit, |_| true);
        }
        if said.more {
            return None;
        }
        self.0.remove(worker).map(|part| part.specs.specs().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OperationKind;

    #[test]
    fn an_answer_that_broke_off_is_no_part_of_the_next() {
        let part = |name: &str, more| {
            let spec = OperationSpec::new(OperationKind::Query, "a", name).unwrap();
            Announcement { add: vec![Arc::new(spec)], more, ..Announcement::default() }
        };
        // The connections and numbers of an answer of which only the first part came, and of the next, of two parts.
        for (before, next) in [(("w.0", 7), ("w.0", 8)), (("w.0", 7), ("w.1", 7)), (("w.0", 0), ("w.1", 0))] {
            let mut parts = Parts::default();
            assert!(parts.add(before.0, before.1, part("withdrawn", true), 1 << 20).is_none());
            assert!(parts.add("other.0", 3, part("theirs", false), 1 << 20).is_some());
            assert!(parts.add(next.0, next.1, part("b", true), 1 << 20).is_none());
            let all = parts.add(next.0, next.1, part("c", false), 1 << 20).unwrap();
            assert_eq!(all.iter().map(|spec| &*spec.id).collect::<Vec<_>>(), ["a.b", "a.c"]);
            assert!(parts.0.is_empty());
        }
    }
}
