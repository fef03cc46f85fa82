//! Which streams are read next, and how many entries of them.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::call::redis::entry::{Appetite, Entry, size};

/// How many entries of a stream are read at a time: few, so that other workers get some.
const BATCH: usize = 64;

/// From how many streams on a read takes no more in all.
const WIDE: usize = 8;

/// Which streams are read next, and how many entries of them.
///
/// The server gives up to a number of entries of *each* stream that a read names. So a read names no more streams than
/// there is room for entries, and the streams that it names share the room. Only the read that waits may give more: one
/// of each stream.
///
/// 1. If there is room for an entry of each stream, a read names all of them, and waits for an entry. Streams that gave
///    all that was asked for may have more. The next reads name these alone.
/// 2. If there is less room, a look shows which streams have entries. The next reads name these alone. If the look
///    found none, or they gave none, a read of all streams waits: it ends with the first entry.
///
/// Each look and each read of all streams lets the streams that it finds be read once. So none starves, and streams
/// without entries take no room from the others.
pub(super) struct Turns {
    appetite: Appetite,
    /// The streams that may have entries, in the order in which they are read.
    ready: VecDeque<String>,
    /// True if any other stream may have entries, too.
    unseen: bool,
    asked: Option<Asked>,
}

/// What was asked for and not learned of yet.
struct Asked {
    /// How many entries of each stream.
    count: usize,
    /// True if all streams were named.
    all: bool,
}

/// The streams of a read.
pub(super) struct Part<'s> {
    pub(super) streams: Vec<Cow<'s, str>>,
    /// How many entries of each are read.
    pub(super) count: usize,
    /// True if the read waits for an entry.
    pub(super) waits: bool,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { appetite: Appetite::new(BATCH), ready: VecDeque::new(), unseen: true, asked: None }
    }

    /// Notes that there are other streams than before.
    pub(super) fn change(&mut self, streams: usize) {
        self.appetite.limit(BATCH * streams.clamp(1, WIDE));
        self.ready.clear();
        self.unseen = true;
    }

    /// A read that does not wait, if there is one without a look.
    pub(super) fn at_once<'s>(&mut self, streams: &'s [String], room: usize) -> Option<Part<'s>> {
        let most = room.min(self.appetite.entries());
        if self.ready.is_empty() {
            return (most >= streams.len()).then(|| Part { waits: false, ..self.all(streams, most) });
        }
        // As few reads as there is room for, of about as many streams each.
        let reads = self.ready.len().div_ceil(most.max(1));
        let named: Vec<_> = self.ready.drain(..self.ready.len().div_ceil(reads)).map(Cow::Owned).collect();
        let count = most.checked_div(named.len()).unwrap_or(0).clamp(1, BATCH);
        self.asked = Some(Asked { count, all: false });
        Some(Part { streams: named, count, waits: false })
    }

    /// The next read. `None` if a look is needed before: see [`found`](Self::found).
    pub(super) fn next<'s>(&mut self, streams: &'s [String], room: usize) -> Option<Part<'s>> {
        let most = room.min(self.appetite.entries());
        if !self.ready.is_empty() {
            return self.at_once(streams, room);
        }
        (!self.unseen || most >= streams.len()).then(|| self.all(streams, most))
    }

    /// A read of all streams.
    fn all<'s>(&mut self, streams: &'s [String], most: usize) -> Part<'s> {
        let count = most.checked_div(streams.len()).unwrap_or(0).clamp(1, BATCH);
        self.asked = Some(Asked { count, all: true });
        Part { streams: streams.iter().map(|stream| Cow::Borrowed(&**stream)).collect(), count, waits: true }
    }

    /// Learns which streams have entries, by a look at all of them.
    pub(super) fn found(&mut self, streams: Vec<String>) {
        self.ready = streams.into();
        self.unseen = false;
    }

    /// Learns what a read has given, if there was one.
    pub(super) fn learn(&mut self, given: &[(String, Vec<Entry>)]) {
        let Some(Asked { count, all }) = self.asked.take() else { return };
        let bytes = given.iter().flat_map(|(_, entries)| entries).map(size).sum();
        // A stream that gave all that was asked for may have more.
        let mut full = given.iter().filter(|(_, entries)| entries.len() >= count).map(|(stream, _)| stream).peekable();
        self.appetite.learn(if full.peek().is_some() { self.appetite.entries() } else { 0 }, bytes);
        if all {
            self.ready.extend(full.cloned());
        }
        self.unseen |= !given.is_empty();
    }

    /// Notes that nothing was read for a while, so that any stream may have entries.
    pub(super) fn pause(&mut self) {
        self.unseen = true;
    }

    /// Notes that a read has failed.
    pub(super) fn fail(&mut self) {
        self.appetite.fail();
        self.asked = None;
        self.unseen = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams of a server, with so many entries each.
    struct Streams {
        names: Vec<String>,
        waiting: Vec<usize>,
        /// Number of bytes of each entry.
        bytes: usize,
        reads: usize,
        looks: usize,
    }

    impl Streams {
        fn new(count: usize, waiting: usize) -> Self {
            let names = (0..count).map(|n| n.to_string()).collect();
            Self { names, waiting: vec![waiting; count], bytes: 10, reads: 0, looks: 0 }
        }

        /// What the server gives for a read, which is taken out of the streams.
        fn give(&mut self, part: &Part<'_>) -> Vec<(String, Vec<Entry>)> {
            let mut given = Vec::new();
            for stream in &part.streams {
                let left = &mut self.waiting[stream.parse::<usize>().unwrap()];
                let taken = part.count.min(*left);
                *left -= taken;
                if taken > 0 {
                    let entry = ("1-0".to_owned(), vec![vec![0; self.bytes]]);
                    given.push((stream.to_string(), vec![entry; taken]));
                }
            }
            given
        }

        /// The next read, after a look if there has to be one: how many entries it gives, and whether it could wait.
        fn read(&mut self, turns: &mut Turns, room: usize) -> (usize, bool) {
            let names = self.names.clone();
            let part = turns.next(&names, room).unwrap_or_else(|| {
                self.looks += 1;
                let found = names.iter().zip(&self.waiting).filter(|(_, waiting)| **waiting > 0);
                turns.found(found.map(|(name, _)| name.clone()).collect());
                turns.next(&names, room).unwrap()
            });
            self.reads += 1;
            let given = self.give(&part);
            turns.learn(&given);
            (given.iter().map(|(_, entries)| entries.len()).sum(), part.waits)
        }
    }

    fn turns(streams: usize) -> Turns {
        let mut turns = Turns::new();
        turns.change(streams);
        turns
    }

    #[test]
    fn a_read_asks_for_no_more_than_there_is_room_for() {
        for (count, room) in [(1, 1), (2, 1), (30, 1), (30, 4), (30, 29), (30, 30), (30, 1_000), (200, 1_000)] {
            let (mut streams, mut turns) = (Streams::new(count, 10_000), turns(count));
            for _ in 0..20 {
                let (entries, _) = streams.read(&mut turns, room);
                assert!((1..=room).contains(&entries), "{count} {room}: {entries}");
            }
        }
    }

    #[test]
    fn each_stream_gets_its_turn() {
        let (mut streams, mut turns) = (Streams::new(7, 1_000), turns(7));
        for _ in 0..30 {
            assert!(streams.read(&mut turns, 3).0 <= 3);
            turns.pause();
        }
        // Three reads are a round.
        assert_eq!((streams.looks, streams.waiting), (10, vec![990; 7]));
    }

    #[test]
    fn one_busy_stream_among_many_gets_all_the_room() {
        // At first 8, 16 and 32 entries, then 64 in each read.
        for (room, reads) in [(1_024, 18), (64, 18), (4, 250), (1, 1_000)] {
            let (mut streams, mut turns) = (Streams::new(1_000, 0), turns(1_000));
            streams.waiting[700] = 1_000;
            while streams.waiting[700] > 0 {
                assert!(streams.read(&mut turns, room).0 > 0);
                turns.pause();
            }
            assert_eq!((streams.reads, streams.looks), (reads, reads));
        }
        // Every other read is of all streams if there is room for them.
        let (mut streams, mut turns) = (Streams::new(200, 0), turns(200));
        streams.waiting[100] = 10_000;
        let entries: Vec<_> = (0..30).map(|_| streams.read(&mut turns, 1_024).0).collect();
        assert_eq!(entries[20..].iter().sum::<usize>(), 5 * (64 + 2));
    }

    #[test]
    fn a_read_waits_when_no_stream_has_entries() {
        let (mut streams, mut turns) = (Streams::new(10, 0), turns(10));
        let names = streams.names.clone();
        assert!(turns.next(&names, 3).is_none(), "a look comes first");
        turns.found(Vec::new());
        let part = turns.next(&names, 3).unwrap();
        assert_eq!((part.streams.len(), part.count, part.waits), (10, 1, true));
        // What it ends with is one of perhaps many.
        streams.waiting[4] = 1;
        turns.learn(&streams.give(&part));
        let part = turns.next(&names, 2).unwrap();
        assert_eq!((&*part.streams, part.count, part.waits), (&[Cow::Borrowed("4")][..], 2, false));
        turns.learn(&streams.give(&part));
        assert!(turns.next(&names, 2).is_none(), "any may have some now");
        // Other workers were given what the look has found.
        turns.found(vec!["7".to_owned()]);
        assert!(!turns.next(&names, 2).unwrap().waits);
        turns.learn(&[]);
        assert!(turns.next(&names, 2).unwrap().waits);
        turns.learn(&[]);
        turns.pause();
        assert!(turns.next(&names, 2).is_none());
        // With room for all, no look is needed.
        let (mut streams, mut turns) = (Streams::new(5, 0), self::turns(5));
        assert_eq!(streams.read(&mut turns, 1_000), (0, true));
        assert!(turns.at_once(&streams.names, 1_000).is_some_and(|part| !part.waits && part.streams.len() == 5));
        assert!(turns.at_once(&streams.names, 4).is_none());
    }

    #[test]
    fn large_entries_are_read_of_few_streams() {
        let (mut streams, mut turns) = (Streams::new(20, 1_000), turns(20));
        streams.bytes = 3 << 20;
        let entries: Vec<_> = (0..6).map(|_| streams.read(&mut turns, 1_000).0).collect();
        assert_eq!(entries, [7, 2, 1, 1, 1, 1]);
        // Small ones are read of all of them, and many of each.
        streams.bytes = 10;
        for _ in 0..20 {
            streams.read(&mut turns, 1_000);
        }
        let part = turns.next(&streams.names, 1_000).unwrap();
        assert_eq!((part.streams.len(), part.count), (20, 25));
    }

    #[test]
    fn a_read_of_large_entries_never_names_all_streams() {
        let (mut streams, mut turns) = (Streams::new(200, 0), turns(200));
        streams.bytes = 3 << 19;
        (0..200).step_by(2).for_each(|n| streams.waiting[n] = 5);
        assert_eq!(streams.read(&mut turns, 1_024), (8, false));
        let mut left: usize = 492;
        while left > 0 {
            let (entries, waits) = streams.read(&mut turns, 1_024);
            assert!((1..=2).contains(&entries) && !waits, "{entries}");
            left -= entries;
        }
        assert_eq!(streams.read(&mut turns, 1_024), (0, true));
    }
}
