//! How much work may be done for one value: in proportion to its size, whatever its schema asks for.
//!
//! Everything that is done for a value (checking, listing, repairing, choosing variants) spends from one budget. A step
//! is about one schema that is held against one node of the value. Honest schemas take a few steps per node. For them
//! the budget is one counter that goes down. Only when that is used up is the value's size counted. Then results are
//! remembered, so that no schema is held against the same node twice. What goes beyond that is ended.

use std::cell::Cell;

use serde_json::Value;

use super::equal::weight;

/// The steps before anything is counted.
const FIRST: u64 = 1 << 16;
/// The steps for each unit of size before results are remembered.
const PLAIN: u64 = 32;
/// The least that any value gets, be it ever so small.
const FLOOR: u64 = 1 << 18;
/// The steps for each unit of size at most.
pub(super) const STEPS_PER_UNIT: u64 = 512;

/// The steps that one value may still take.
pub(super) struct Budget {
    left: Cell<u64>,
    granted: Cell<u64>,
    /// The size of the value as far as it is known: its nodes, and a unit for every 32 bytes of text.
    size: Cell<u64>,
    remembers: Cell<bool>,
    is_dry: Cell<bool>,
    has_ended: Cell<bool>,
}

impl Budget {
    pub(super) fn new() -> Self {
        Budget {
            left: Cell::new(FIRST),
            granted: Cell::new(FIRST),
            size: Cell::new(0),
            remembers: Cell::new(false),
            is_dry: Cell::new(false),
            has_ended: Cell::new(false),
        }
    }

    /// Takes some steps; `false` if there are none left, so that what is under way has to return.
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
        self.size.set(self.size.get().saturating_add(units as u64));
    }

    /// Grants what the known size allows; `false` if that has been granted already.
    fn grant(&self) -> bool {
        let size = self.size.get();
        let total = match self.remembers.get() {
            false => FIRST.saturating_add(PLAIN.saturating_mul(size)),
            true => FLOOR.saturating_add(STEPS_PER_UNIT.saturating_mul(size)),
        };
        let more = total.saturating_sub(self.granted.get());
        self.granted.set(self.granted.get() + more);
        self.left.set(self.left.get() + more);
        more > 0
    }

    /// Goes on after the steps ran out: with what the value's size allows, and then by remembering results.
    ///
    /// `false` if that is used up, too. Results since the steps ran out mean nothing.
    pub(super) fn refill(&self, value: Option<&Value>) -> bool {
        if let Some(value) = value.filter(|_| !self.has_ended.get()) {
            self.size.set(self.size.get().max(weight(value) as u64));
        }
        if self.has_ended.get() || !(self.grant() || self.remember()) {
            self.has_ended.set(true);
            return false;
        }
        self.is_dry.set(false);
        true
    }

    /// Remembers results from now on; `false` if they have been all along.
    pub(super) fn remember(&self) -> bool {
        !self.remembers.replace(true) && self.grant()
    }

    #[inline]
    pub(super) fn remembers(&self) -> bool {
        self.remembers.get()
    }

    /// True if the steps ran out, so that a result means nothing.
    pub(super) fn is_dry(&self) -> bool {
        self.is_dry.get()
    }

    /// True if the work was ended before its end.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    /// How many steps were taken.
    pub(super) fn steps(&self) -> u64 {
        self.granted.get() - self.left.get()
    }

    /// How many steps a value can take at most.
    pub(super) fn most(value: &Value) -> u64 {
        FLOOR.saturating_add(STEPS_PER_UNIT.saturating_mul(weight(value) as u64))
    }
}

/// What is said of a value whose check was ended.
pub(super) fn ended() -> String {
    format!("Expected {}", expectation())
}

/// What is asked for instead.
pub(super) fn expectation() -> String {
    format!("a value that can be checked in {STEPS_PER_UNIT} steps per node, the check was ended")
}
