//! The entries of streams: their authors, which of them are new, and how many are read at a time.

use std::sync::{Mutex, MutexGuard};

use super::keys::FROM;
use crate::model::lock::lock;

/// An entry of a stream: its id, and its fields and their values in turn.
pub(super) type Entry = (String, Vec<Vec<u8>>);

/// The entries of several streams.
pub(super) type Entries = Option<Vec<(String, Vec<Entry>)>>;

/// The value of a field.
pub(super) fn field<'a>(entry: &'a Entry, name: &str) -> Option<&'a [u8]> {
    entry.1.chunks(2).find_map(|pair| match pair {
        [field, value] if **field == *name.as_bytes() => Some(&**value),
        _ => None,
    })
}

/// The author of an entry: `ID`, `ID SEQ` or `ID SEQ N`.
///
/// One field, not three, because each field costs the server and both sides, for every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Author<'a> {
    pub(super) id: &'a str,
    /// The number of the entry among those of its author.
    pub(super) sequence: Option<u64>,
    /// The number of the event among those of its request.
    pub(super) number: Option<u64>,
}

impl<'a> Author<'a> {
    /// The author that an entry names.
    pub(super) fn of(entry: &'a Entry) -> Option<Self> {
        let mut words = std::str::from_utf8(field(entry, FROM)?).ok()?.split(' ');
        let id = words.next().filter(|id| is_id(id))?;
        let mut number = || words.next()?.parse().ok();
        Some(Self { id, sequence: number(), number: number() })
    }
}

/// True if the text may be the id of a caller or a worker; others are not stored.
pub(super) fn is_id(id: &str) -> bool {
    (1..=LONGEST_ID).contains(&id.len()) && !id.contains(char::is_whitespace)
}

/// Limit of the bytes of an id.
const LONGEST_ID: usize = 256;

/// Approximate number of bytes to read at a time.
const BYTES: usize = 4 << 20;

/// How many entries to read at a time: few at first, and fewer if they are large.
pub(super) struct Appetite {
    entries: usize,
    most: usize,
}

/// How many entries are read at first.
const FIRST: usize = 8;

impl Appetite {
    /// Reads up to so many entries.
    pub(super) fn new(most: usize) -> Self {
        Self { entries: most.min(FIRST), most }
    }

    /// Limits the entries of a read.
    pub(super) fn limit(&mut self, most: usize) {
        (self.most, self.entries) = (most, self.entries.min(most));
    }

    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    /// Adapts to a read of so many entries, with so many bytes in all.
    pub(super) fn learn(&mut self, entries: usize, bytes: usize) {
        if bytes > BYTES {
            self.entries = (self.entries / 4).max(1);
        } else if entries >= self.entries && bytes < BYTES / 4 {
            self.entries = (self.entries * 2).min(self.most);
        }
    }

    /// Notes that a read has failed. It may have timed out, so less is read next time: the entries that have piled up
    /// may be larger than those before.
    pub(super) fn fail(&mut self) {
        self.entries = (self.entries / 4).clamp(1, FIRST);
    }
}

/// Number of bytes in an entry.
pub(super) fn size(entry: &Entry) -> usize {
    entry.0.len() + entry.1.iter().map(Vec::len).sum::<usize>()
}

/// Recognises entries that were read before: an entry that is written again has its old number.
#[derive(Default)]
pub(super) struct Sequences(std::collections::HashMap<String, u64>);

impl Sequences {
    /// True if an entry is new; one without a number always is.
    pub(super) fn is_new(&mut self, author: Author<'_>) -> bool {
        let Some(number) = author.sequence else { return true };
        match self.0.get_mut(author.id) {
            Some(last) if number <= *last => false,
            Some(last) => {
                *last = number;
                true
            }
            None => {
                // A limit, since authors come and go.
                if self.0.len() >= 100_000 {
                    self.0.clear();
                }
                self.0.insert(author.id.to_owned(), number);
                true
            }
        }
    }
}

/// Where a stream begins that this side has created and reads: told by the task that creates it again when the server
/// has lost it, to the task that reads. The reader's position may be beyond that, since a server that replaces another
/// has a clock of its own.
#[derive(Default)]
pub(super) struct Beginning(Mutex<Option<String>>);

impl Beginning {
    fn new_one(&self) -> MutexGuard<'_, Option<String>> {
        lock(&self.0)
    }

    /// Notes that the stream was created, with this entry as its first.
    pub(super) fn set(&self, entry: String) {
        *self.new_one() = Some(entry);
    }

    /// Where the stream begins, if it was created since the last look.
    pub(super) fn take(&self) -> Option<String> {
        self.new_one().take()
    }
}

/// When the server has made an entry, in milliseconds since the Unix epoch.
pub(super) fn milliseconds_of(id: &str) -> Option<i64> {
    id.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_tried_with_less() {
        let mut appetite = Appetite::new(512);
        (0..10).for_each(|_| appetite.learn(appetite.entries(), 1_000));
        assert_eq!(appetite.entries(), 512);
        for entries in [8, 2, 1, 1] {
            appetite.fail();
            assert_eq!(appetite.entries(), entries);
        }
        appetite.learn(1, 1_000);
        assert_eq!(appetite.entries(), 2);
    }
}
