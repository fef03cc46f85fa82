//! Notes about a value that is being decoded: what was dropped, unknown constants that were kept, and doubts about its meaning.

use std::cell::Cell;

thread_local! {
    /// How many properties of buffered values no record declared so far: they were passed over, or a map or any JSON kept
    /// them. Only differences of it are used.
    static UNDECLARED: Cell<usize> = const { Cell::new(0) };

    /// How many of these were passed over. Only differences of it are used.
    static DROPPED: Cell<usize> = const { Cell::new(0) };

    /// The number of unknown constants and tags that were kept so far. Only differences of it are used.
    static UNKNOWN: Cell<usize> = const { Cell::new(0) };

    /// `Some` within [`strictly`]: a variant that fails is not replaced by one that declares fewer properties of the value.
    static STRICT: Cell<Option<Doubts>> = const { Cell::new(None) };
}

/// Reasons why a decoded value may be meant as another variant.
#[cfg_attr(not(feature = "registry"), allow(dead_code, reason = "only answers are repaired"))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Doubts {
    /// An object without a tag was kept unread by a tagged union: it may be an error object.
    pub(crate) is_untagged: bool,
    /// A variant took the value with unknown constants. Another variant, which may know them, failed: the value may be meant as
    /// that variant, with a fault.
    pub(crate) is_unknown: bool,
}

/// Runs a decoding in which a value of one variant, with a fault, is not read as a variant that declares fewer properties of it.
///
/// Most variants ignore undeclared properties, so a cat whose age is a text would be read as a dog without an age. Strict
/// decoding fails instead, so that the caller can repair the value and decode it again.
///
/// Also returns the doubts about the decoded value.
#[cfg_attr(not(feature = "registry"), allow(dead_code, reason = "only answers are repaired"))]
pub(crate) fn strictly<T>(decode: impl FnOnce() -> T) -> (T, Doubts) {
    /// Ends it, even if the decoding panics.
    struct End(Option<Doubts>);
    impl Drop for End {
        fn drop(&mut self) {
            STRICT.set(self.0);
        }
    }
    let _end = End(STRICT.replace(Some(Doubts::default())));
    let decoded = decode();
    (decoded, STRICT.get().unwrap_or_default())
}

/// Notes that an object was kept because it has no tag.
pub(super) fn note_untagged() {
    STRICT.set(STRICT.get().map(|doubts| Doubts { is_untagged: true, ..doubts }));
}

/// Notes that a property was kept by a map, by any JSON, or by a record that does not declare it.
#[inline]
pub(super) fn note_kept() {
    UNDECLARED.set(UNDECLARED.get().wrapping_add(1));
}

/// Notes that so many properties of a buffered value were passed over because nothing declares them.
pub(super) fn note_dropped(properties: usize) {
    UNDECLARED.set(UNDECLARED.get().wrapping_add(properties));
    DROPPED.set(DROPPED.get().wrapping_add(properties));
}

/// Notes that a constant or a tag was kept although no variant of its enum or union has it.
#[inline]
pub(super) fn note_unknown() {
    UNKNOWN.set(UNKNOWN.get().wrapping_add(1));
}

/// Notes that a variant took a value with unknown constants, and that another variant, which may know them, failed.
pub(super) fn note_passed_over() {
    STRICT.set(STRICT.get().map(|doubts| Doubts { is_unknown: true, ..doubts }));
}

/// True within [`strictly`].
pub(super) fn is_strict() -> bool {
    STRICT.get().is_some()
}

/// What a variant does not take of a value as it is. The variant with the smallest loss is the likeliest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Loss {
    /// How many properties no record declares, at any depth.
    pub(super) undeclared: usize,
    /// How many of these were passed over.
    pub(super) dropped: usize,
    /// The number of unknown constants and tags that were kept.
    pub(super) unknown: usize,
}

/// All notes up to a moment, by which those of an attempt that is not chosen are undone.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    undeclared: usize,
    dropped: usize,
    unknown: usize,
    strict: Option<Doubts>,
}

impl Noted {
    #[inline]
    pub(super) fn now() -> Self {
        Self { undeclared: UNDECLARED.get(), dropped: DROPPED.get(), unknown: UNKNOWN.get(), strict: STRICT.get() }
    }

    /// What was lost since then.
    #[inline]
    pub(super) fn lost_since(self) -> Loss {
        Loss {
            undeclared: UNDECLARED.get().wrapping_sub(self.undeclared),
            dropped: DROPPED.get().wrapping_sub(self.dropped),
            unknown: UNKNOWN.get().wrapping_sub(self.unknown),
        }
    }

    /// Drops the notes that were made since then, or takes up these again.
    pub(super) fn restore(self) {
        UNDECLARED.set(self.undeclared);
        DROPPED.set(self.dropped);
        UNKNOWN.set(self.unknown);
        STRICT.set(self.strict);
    }
}
