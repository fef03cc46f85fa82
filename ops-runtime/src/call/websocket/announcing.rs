//! Announcements to a peer: sent as soon as there is room for them, and not before.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::outbox::Outbox;
use crate::SpecRef;
use crate::call::own_specs::Announced;
use crate::call::{Announcement, Frame, Unsent};
use crate::model::lock::lock;

/// The announcements of a connection.
///
/// For a peer that does not read, one change at most is queued, in parts. All changes meanwhile are announced as one
/// change after those parts, so the queue never grows beyond the served operations.
pub(super) struct Announcing {
    state: Mutex<State>,
    /// True if an announcement waits for room.
    waits: AtomicBool,
    /// True if the peer has announced its largest message: before that, no parts can be made.
    begun: AtomicBool,
}

struct State {
    /// What was announced to the peer, including the parts; `None` when nothing more is announced.
    told: Option<Announced>,
    /// The parts of a change that are not queued yet.
    parts: VecDeque<Announcement>,
    /// True if the served operations may have changed since the parts were made.
    changed: bool,
    /// True if the last part said that another follows.
    more: bool,
    /// How many operations were too large to be announced to this peer, and whether that was logged.
    left_out: usize,
    warned: bool,
}

impl Announcing {
    pub(super) fn new() -> Self {
        let state = State {
            told: Some(Announced::default()),
            parts: VecDeque::new(),
            changed: false,
            more: false,
            left_out: 0,
            warned: false,
        };
        Self { state: Mutex::new(state), waits: AtomicBool::new(false), begun: AtomicBool::new(false) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Prepares the first announcement: our largest message, and whether any operations are served. The operations
    /// follow when the peer has announced its largest message, too.
    pub(super) fn open(&self, outbox: &Outbox, served: impl Fn() -> Vec<SpecRef>, max_message: usize) {
        let mut state = self.state();
        if state.told.is_none() {
            return;
        }
        let max_message = max_message.try_into().ok();
        let more = !served().is_empty();
        state.parts.push_back(Announcement { max_message, more, ..Announcement::default() });
        self.note(outbox);
    }

    /// Prepares the served operations, once, after the peer's first frame.
    pub(super) fn begin(&self, outbox: &Outbox, served: impl Fn() -> Vec<SpecRef>) {
        if self.begun.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state();
        if self.begun.swap(true, Ordering::Relaxed) {
            return;
        }
        let waits = state.parts.len();
        state.prepare(outbox.limit(), &served);
        let is_promised = state.more || state.parts.iter().any(|part| part.more);
        if state.parts.len() == waits && is_promised && state.told.is_some() {
            state.parts.push_back(Announcement::default());
        }
        self.note(outbox);
    }

    /// Prepares what has changed. While another change waits for room, it is only noted.
    pub(super) fn change(&self, outbox: &Outbox, served: impl Fn() -> Vec<SpecRef>) {
        let mut state = self.state();
        if !self.begun.load(Ordering::Relaxed) {
            return;
        }
        if !state.parts.is_empty() {
            state.changed = true;
            return;
        }
        state.prepare(outbox.limit(), &served);
        if !state.parts.is_empty() {
            self.note(outbox);
        }
    }

    fn note(&self, outbox: &Outbox) {
        self.waits.store(true, Ordering::Release);
        outbox.wake();
    }

    /// Queues waiting parts while there is room; a peer that does not read gets no more.
    pub(super) fn refill(&self, outbox: &Outbox, served: impl Fn() -> Vec<SpecRef>) {
        while self.waits() && !outbox.is_full() {
            let mut state = self.state();
            if state.parts.is_empty() && state.changed {
                state.prepare(outbox.limit(), &served);
            }
            let Some(part) = state.parts.pop_front() else {
                self.waits.store(false, Ordering::Release);
                state.warn(outbox.limit());
                return;
            };
            // Under the lock, so that parts are sent in order.
            state.more = part.more;
            state.left_out += say(outbox, part);
        }
    }

    /// True if an announcement waits for room.
    pub(super) fn waits(&self) -> bool {
        self.waits.load(Ordering::Acquire)
    }

    /// Withdraws everything, and announces nothing more.
    pub(super) fn end(&self, outbox: &Outbox) {
        let mut state = self.state();
        state.parts.clear();
        state.changed = false;
        let told = state.told.take().unwrap_or_default();
        for part in told.withdrawal().in_parts(outbox.limit()) {
            say(outbox, part);
        }
    }
}

/// Sends a part. One that is too large for the peer is split; returns how many operations are too large by themselves.
fn say(outbox: &Outbox, part: Announcement) -> usize {
    let (mut parts, mut left_out) = (vec![part], 0);
    while let Some(part) = parts.pop() {
        if !matches!(outbox.send(Frame::Announce(part.clone())), Err(Unsent::Refused(_))) {
            continue;
        }
        match part.halved() {
            Some((first, rest)) => parts.extend([rest, first]),
            None if part.add.is_empty() && part.remove.is_empty() => {}
            None => {
                let operation =
                    part.add.first().map_or_else(|| part.remove.first().map(|id| &**id), |spec| Some(&spec.id));
                tracing::debug!(operation, limit = outbox.limit(), "too large to be announced to this peer");
                left_out += 1;
                parts.push(Announcement { max_message: part.max_message, more: part.more, ..Announcement::default() });
            }
        }
    }
    left_out
}

impl State {
    /// Logs it once per connection: the peer sets the limit, and may accept nothing.
    fn warn(&mut self, limit: usize) {
        if self.left_out > 0 && !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(operations = self.left_out, limit, "operations are too large to be announced to this peer");
        }
    }

    /// Makes the parts of what has changed since the last announcement; there may be none.
    fn prepare(&mut self, limit: usize, served: &impl Fn() -> Vec<SpecRef>) {
        self.changed = false;
        let Some(told) = self.told.as_mut() else { return };
        let change = told.change(served());
        if !(change.add.is_empty() && change.remove.is_empty()) {
            self.parts.extend(change.in_parts(limit));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::task::Waker;

    use super::*;
    use crate::call::budget::{Budget, Limits};
    use crate::{OperationKind, OperationSpec, Schema};

    /// A spec with so many bytes of a schema.
    fn spec(name: &str, bytes: usize) -> SpecRef {
        let mut spec = OperationSpec::new(OperationKind::Query, "a", name).unwrap();
        spec.input = Schema::from(serde_json::json!({ "description": "x".repeat(bytes) }));
        SpecRef::Shared(Arc::new(spec))
    }

    fn outbox() -> Arc<Outbox> {
        let outbox = Outbox::new(4 << 20);
        outbox.open(Budget::new(Limits::default()).share());
        outbox
    }

    /// What a peer reads; the number of messages, and what it takes to be served.
    fn read(outbox: &Outbox, served: &mut BTreeSet<String>) -> usize {
        let mut texts = Vec::new();
        outbox.take(&mut texts, Waker::noop());
        for text in &texts {
            let Ok(Some(Frame::Announce(said))) = Frame::decode(text) else { panic!("{text}") };
            said.remove.iter().for_each(|id| _ = served.remove(&**id));
            served.extend(said.add.iter().map(|spec| spec.id.to_string()));
        }
        outbox.written(texts.iter().map(String::len).sum());
        texts.len()
    }

    #[test]
    fn changes_that_nobody_has_read_are_told_together() {
        let (outbox, announcing, round) = (outbox(), Announcing::new(), Cell::new(0));
        let served = || vec![spec(&format!("op_{}", round.get()), 100_000), spec("always", 1)];
        announcing.open(&outbox, served, 1000);
        announcing.begin(&outbox, served);
        for n in 1..=1000 {
            round.set(n);
            announcing.change(&outbox, served);
            announcing.refill(&outbox, served);
        }
        // What is queued has its bound, and beside it one change waits.
        assert!(announcing.state().parts.len() <= 2);
        assert!(announcing.waits());
        let (mut known, mut messages) = (BTreeSet::new(), 0);
        while !outbox.is_empty() || announcing.waits() {
            messages += read(&outbox, &mut known);
            announcing.refill(&outbox, served);
        }
        assert!(messages < 20, "{messages}");
        assert_eq!(known, ["a.always", "a.op_1000"].map(str::to_owned).into());
    }

    #[test]
    fn parts_are_made_for_the_peer_that_reads_them() {
        // What is served, and what a peer with such a limit hears of: one spec is larger than it takes, one has no room at all.
        let long = "n".repeat(3_000);
        let served = || vec![spec("large", 50_000), spec(&long, 1), spec("small", 1), spec("some", 1_000)];
        for (limit, known) in [
            (4 << 20, &["a.large", &*format!("a.{long}"), "a.small", "a.some"][..]),
            (2_500, &["a.large", "a.small", "a.some"]),
        ] {
            let (outbox, announcing) = (outbox(), Announcing::new());
            announcing.open(&outbox, served, 1000);
            announcing.change(&outbox, served);
            announcing.refill(&outbox, served);
            let mut heard = BTreeSet::new();
            assert_eq!((read(&outbox, &mut heard), heard.len()), (1, 0), "it has not said yet what it takes");
            outbox.set_limit(limit);
            announcing.begin(&outbox, served);
            announcing.begin(&outbox, served);
            announcing.refill(&outbox, served);
            read(&outbox, &mut heard);
            assert!(!announcing.state().more);
            assert_eq!(announcing.state().left_out, 4 - known.len());
            assert_eq!(heard, known.iter().map(|id| (*id).to_owned()).collect());
        }
    }

    #[test]
    fn what_is_taken_back_fits_into_messages_too() {
        let (outbox, announcing) = (outbox(), Announcing::new());
        let names: Vec<String> = (0..100).map(|n| format!("operation_with_a_long_name_{n}")).collect();
        let served = || names.iter().map(|name| spec(name, 1)).collect();
        announcing.open(&outbox, served, 1000);
        announcing.begin(&outbox, served);
        announcing.refill(&outbox, served);
        let mut known = BTreeSet::new();
        assert_eq!((read(&outbox, &mut known), known.len()), (2, 100));
        outbox.set_limit(2_000);
        announcing.end(&outbox);
        assert!(read(&outbox, &mut known) > 1);
        assert_eq!(known, BTreeSet::new());
        announcing.change(&outbox, served);
        assert!(outbox.is_empty());
    }
}
