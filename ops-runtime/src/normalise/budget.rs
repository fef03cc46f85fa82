//! The limit of work for one value: proportional to its size, for any schema.
//!
//! All work for a value (checking, listing, repairing, choosing variants) spends from one budget. A step is about one
//! schema that is checked against one node of the value, or a few variants of a union, which may take next to nothing
//! each. Honest schemas take a few steps per node; for them the budget is one counter that goes down. When that is used
//! up, the value's size is counted, and results are remembered, so that no schema is checked against the same node
//! twice. Work beyond the limit for that size is ended.

use std::cell::Cell;

use serde_json::Value;

use super::equal::weight;

/// The steps before the size is counted.
const FIRST: u64 = 1 << 16;
/// The steps for each unit of size before results are remembered.
const PLAIN: u64 = 32;
/// The least steps that any value gets, however small.
const FLOOR: u64 = 1 << 18;
/// The steps for each unit of size at most.
pub(super) const STEPS_PER_UNIT: u64 = 512;

/// The steps that one value may still take.
pub(super) struct Budget {
    left: Cell<u64>,
    granted: Cell<u64>,
    /// The size of the value as far as it was met so far: its nodes, and a unit for every 32 bytes of text.
    met: Cell<u64>,
    /// The size of the largest part that was counted as a whole. It may hold what is met later, so the two do not add up.
    counted: Cell<u64>,
    remembers: Cell<bool>,
    is_dry: Cell<bool>,
    has_ended: Cell<bool>,
}

impl Budget {
    pub(super) fn new() -> Self {
        Budget {
            left: Cell::new(FIRST),
            granted: Cell::new(FIRST),
            met: Cell::new(0),
            counted: Cell::new(0),
            remembers: Cell::new(false),
            is_dry: Cell::new(false),
            has_ended: Cell::new(false),
        }
    }

    /// Takes some steps; `false` if there are none left, so that the current work must return.
    #[inline]
    pub(super) fn spend(&self, steps: u64) -> bool {
        match self.left.get().checked_sub(steps) {
            Some(left) => {
                self.left.set(left);
                true
            }
            None => self.spend_more(steps),
        }
    }

    #[cold]
    fn spend_more(&self, steps: u64) -> bool {
        if !self.is_dry.get() && self.grant() && self.left.get() >= steps {
            self.left.set(self.left.get() - steps);
            return true;
        }
        self.is_dry.set(true);
        self.left.set(0);
        false
    }

    /// Counts units of the value that are met for the first time.
    pub(super) fn grow(&self, units: usize) {
        self.met.set(self.met.get().saturating_add(units as u64));
    }

    /// The size of the value as far as it was met.
    pub(super) fn met(&self) -> u64 {
        self.met.get()
    }

    /// Goes back to the size that was met before a default was filled in, because it was left out again: it is no part of the
    /// result, so many of them do not add up. Steps may have been granted for it, so it counts as a part.
    pub(super) fn leave_out(&self, met: u64) {
        self.counted.set(self.counted.get().max(self.met.get()));
        self.met.set(met);
    }

    /// Counts the size of a JSON text of so many bytes, of which no value is made: that of a list of short strings.
    pub(super) fn count_text(&self, bytes: usize) {
        self.counted.set(self.counted.get().max(bytes as u64 / 4));
    }

    /// Grants the steps for the known size; `false` if they have been granted already.
    fn grant(&self) -> bool {
        let size = self.met.get().max(self.counted.get());
        let total = match self.remembers.get() {
            false => FIRST.saturating_add(PLAIN.saturating_mul(size)),
            true => FLOOR.saturating_add(STEPS_PER_UNIT.saturating_mul(size)),
        };
        let more = total.saturating_sub(self.granted.get());
        self.granted.set(self.granted.get() + more);
        self.left.set(self.left.get() + more);
        more > 0
    }

    /// Goes on after the steps ran out: with the steps for the value's size, and then by remembering results.
    ///
    /// `false` if these are used up, too. Results since the steps ran out are meaningless.
    // Not inlined: many places call it, but few values need it.
    #[cold]
    #[inline(never)]
    pub(super) fn refill(&self, value: Option<&Value>) -> bool {
        if let Some(value) = value.filter(|_| !self.has_ended.get()) {
            self.count(value);
        }
        if self.has_ended.get() || !(self.grant() || self.remember()) {
            self.has_ended.set(true);
            return false;
        }
        self.is_dry.set(false);
        true
    }

    /// Counts the size of a part as a whole, for the steps that are granted next.
    pub(super) fn count(&self, value: &Value) {
        self.counted.set(self.counted.get().max(weight(value) as u64));
    }

    /// Remembers results from now on; `false` if they were remembered already.
    pub(super) fn remember(&self) -> bool {
        !self.remembers.replace(true) && self.grant()
    }

    #[inline]
    pub(super) fn remembers(&self) -> bool {
        self.remembers.get()
    }

    /// True if the steps ran out, so that results are meaningless.
    pub(super) fn is_dry(&self) -> bool {
        self.is_dry.get()
    }

    /// True if the work was cut short.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    /// How many steps were taken.
    pub(super) fn steps(&self) -> u64 {
        self.granted.get() - self.left.get()
    }

    /// How many steps a text of so many bytes can take at most, if there is nothing else.
    pub(super) fn most_of_text(bytes: usize) -> u64 {
        Self::most_of(bytes as u64 / 32)
    }

    /// How many steps a value can take at most.
    pub(super) fn most(value: &Value) -> u64 {
        Self::most_of(weight(value) as u64)
    }

    /// How many steps a value of a size can take at most.
    pub(super) fn most_of(size: u64) -> u64 {
        FLOOR.saturating_add(STEPS_PER_UNIT.saturating_mul(size))
    }

    /// The size of the largest part that was counted as a whole.
    pub(super) fn counted(&self) -> u64 {
        self.counted.get()
    }
}

/// The message for a value whose check was ended.
pub(super) fn ended() -> String {
    format!("Expected {}", expectation())
}

/// The expectation in that message.
pub(super) fn expectation() -> String {
    format!("a value that can be checked in {STEPS_PER_UNIT} steps per node, the check was ended")
}
