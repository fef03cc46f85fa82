//! Reports undeclared properties once per place: a property of a thousand items of a list is reported once.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use crate::normalise::findings::{Change, Repair};
use crate::normalise::path::Path;
use crate::normalise::report::MAX_TOLD;

/// A point to which reports can be taken back.
#[derive(Clone, Copy)]
pub(in crate::normalise) struct Mark {
    pub(super) repairs: Counts,
    pub(super) told: usize,
}

/// How many repairs there are, listed or not.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    listed: usize,
    pub(super) all: usize,
    pub(super) kept: usize,
    pub(super) converted: usize,
}

impl Counts {
    /// How many there are beyond those of a mark.
    pub(super) fn since(self, mark: Counts) -> Counts {
        Counts {
            listed: self.listed.saturating_sub(mark.listed),
            all: self.all.saturating_sub(mark.all),
            kept: self.kept.saturating_sub(mark.kept),
            converted: self.converted.saturating_sub(mark.converted),
        }
    }
}

/// The repairs of a value: the first are listed, all are counted.
#[derive(Default)]
pub(in crate::normalise) struct Repairs {
    list: Vec<Repair>,
    counts: Counts,
}

impl Repairs {
    /// Adds a repair; what was expected is only put into words if it is listed.
    pub(super) fn tell(
        &mut self,
        path: &Path<'_>,
        expected: impl FnOnce() -> String,
        found: &'static str,
        change: Change,
    ) {
        self.count(change);
        if self.list.len() < MAX_TOLD {
            self.list.push(Repair { pointer: path.pointer(), expected: expected(), found: found.into(), change });
        }
    }

    fn count(&mut self, change: Change) {
        self.counts.all += 1;
        match change {
            Change::Kept => self.counts.kept += 1,
            Change::Converted => self.counts.converted += 1,
            Change::Removed | Change::MadeUp => {}
        }
    }

    pub(super) fn mark(&self) -> Counts {
        Counts { listed: self.list.len(), ..self.counts }
    }

    pub(super) fn undo(&mut self, mark: Counts) {
        self.list.truncate(mark.listed);
        self.counts = mark;
    }

    /// Removes the repairs that were listed since a mark; they stay counted.
    pub(super) fn take_since(&mut self, mark: Counts) -> Vec<Repair> {
        self.list.split_off(mark.listed.min(self.list.len()))
    }

    /// Keeps only the first of equal repairs since a mark.
    pub(super) fn tell_once(&mut self, mark: Counts) {
        let mut seen = HashSet::new();
        for repair in self.take_since(mark) {
            // A converted value may still not conform.
            let is_kept = repair.change == Change::Kept;
            if seen.insert((repair.pointer.clone(), repair.expected.clone(), is_kept)) {
                self.list.push(repair);
            } else {
                self.counts.all -= 1;
                self.counts.kept -= usize::from(is_kept);
                self.counts.converted -= usize::from(repair.change == Change::Converted);
            }
        }
    }

    /// Takes back the faults that were reported since a mark as left.
    pub(super) fn forgive(&mut self, mark: Counts) {
        let told = self.take_since(mark);
        self.list.extend(told.into_iter().filter(|repair| repair.change != Change::Kept));
        self.counts.all -= self.counts.kept - mark.kept;
        self.counts.kept = mark.kept;
    }

    /// Adds the results of a trial: its list, as far as there is room, and its count.
    pub(super) fn adopt(&mut self, repairs: Vec<Repair>, counts: Counts) {
        let room = MAX_TOLD.saturating_sub(self.list.len());
        self.list.extend(repairs.into_iter().take(room));
        self.counts.all += counts.all;
        self.counts.kept += counts.kept;
        self.counts.converted += counts.converted;
    }

    /// The list, and how many more there are.
    pub(in crate::normalise) fn finish(self) -> (Vec<Repair>, usize) {
        let more = self.counts.all.saturating_sub(self.list.len());
        let is_full = self.list.len() >= MAX_TOLD;
        (self.list, if is_full { more } else { 0 })
    }
}

/// The places where a property was removed; all items of a list are one place.
#[derive(Default)]
pub(super) struct Told {
    places: BTreeSet<u64>,
    hasher: RandomState,
    /// In the order of reporting, so that those of a trial can be taken back.
    order: Vec<u64>,
}

impl Told {
    /// Notes a property of the object at a path; `false` if the place was noted before.
    pub(super) fn note(&mut self, object: &Path<'_>, name: &str) -> bool {
        let mut hasher = self.hasher.build_hasher();
        name.hash(&mut hasher);
        object.hash_keys(&mut hasher);
        let place = hasher.finish();
        let is_new = self.places.insert(place);
        if is_new {
            self.order.push(place);
        }
        is_new
    }

    /// The current end of the list of places.
    pub(super) fn mark(&self) -> usize {
        self.order.len()
    }

    /// The places since the mark, in their order.
    pub(super) fn since(&self, mark: usize) -> Vec<u64> {
        self.order.get(mark..).unwrap_or_default().to_vec()
    }

    /// Notes places again that were taken back.
    pub(super) fn adopt(&mut self, places: Vec<u64>) {
        self.order.extend(places.into_iter().filter(|place| self.places.insert(*place)));
    }

    /// Takes back the places since the mark.
    pub(super) fn undo(&mut self, mark: usize) {
        for place in self.order.drain(mark.min(self.order.len())..) {
            self.places.remove(&place);
        }
    }
}
