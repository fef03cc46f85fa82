//! Trying the variants of a union on a buffered value.

use std::cell::Cell;

use serde_core::de::Error;

use super::buffer::Buffer;
use super::reader::short;
use super::untagged::{Kind, Untagged, candidates, takes_anything};

/// The work that any value may cost, in units of [`Buffer::work`].
const WORK: usize = 100_000;

/// How many times its own work a value may cost on top.
const TIMES: usize = 64;

thread_local! {
    /// The work that is left to the outermost union that is being tried, if any.
    ///
    /// A union in a union is tried again for each variant of the outer one: a hostile value would take time exponential
    /// in its depth. Decoding runs on one thread, which is what lets the levels share their account here.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };

    /// `Some` while what a variant with a fault declares is not passed over by a variant that declares less of it. It is true
    /// once an object was kept because it has no tag.
    static STRICT: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Runs a decoding in which a value that is one variant with a fault is not read as one that declares less of it.
///
/// Most variants pass over what they do not declare, so a cat whose age is a text would be read as a dog without one. Which
/// of them keep it is unknown here: strict decoding fails, and the value is repaired and decoded again.
///
/// Also returns true if it kept an object of a tagged union, as any object is kept, because it has no tag: it may be an error
/// object.
#[cfg_attr(not(feature = "registry"), allow(dead_code, reason = "only answers are repaired"))]
pub(crate) fn strictly<T>(decode: impl FnOnce() -> T) -> (T, bool) {
    /// Ends it, even if the decoding panics.
    struct End(Option<bool>);
    impl Drop for End {
        fn drop(&mut self) {
            STRICT.set(self.0);
        }
    }
    let _end = End(STRICT.replace(Some(false)));
    let decoded = decode();
    (decoded, STRICT.get() == Some(true))
}

/// Notes that an object was kept because it has no tag.
pub(super) fn note_untagged() {
    if STRICT.get().is_some() {
        STRICT.set(Some(true));
    }
}

/// Opens the account for the outermost union and closes it however the attempts end.
struct Account {
    outermost: bool,
}

impl Account {
    fn open(work: usize) -> Self {
        let outermost = LEFT.get().is_none();
        if outermost {
            LEFT.set(Some(work.saturating_mul(TIMES).saturating_add(WORK)));
        }
        Self { outermost }
    }

    fn charge(work: usize) -> bool {
        let left = LEFT.get().and_then(|left| left.checked_sub(work));
        LEFT.set(Some(left.unwrap_or(0)));
        left.is_some()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if self.outermost {
            LEFT.set(None);
        }
    }
}

/// Reads a buffered array or object as the first variant that takes it.
///
/// # Errors
///
/// When none does: the error of the likeliest one.
pub(super) fn read<U: Untagged, E: Error>(kind: Kind, value: &Buffer<'_>) -> Result<U, E> {
    first(candidates::<U>(kind, value), value)
}

/// Reads a buffered value as the first of these variants that takes it.
///
/// # Errors
///
/// When none does: the error of the likeliest one.
pub(super) fn among<U: Untagged, E: Error>(variants: &[usize], kind: Kind, value: &Buffer<'_>) -> Result<U, E> {
    let mut candidates = candidates::<U>(kind, value);
    candidates.retain(|(_, variant)| variants.contains(variant));
    first(candidates, value)
}

/// Reads a buffered value as the first variant that takes it and declares something of it: a property of an object, or the
/// kind of any other value.
///
/// # Errors
///
/// When none does: the error of the likeliest one.
pub(super) fn declaring<U: Untagged, E: Error>(kind: Kind, value: &Buffer<'_>) -> Result<U, E> {
    let mut candidates = candidates::<U>(kind, value);
    candidates.retain(|(declared, variant)| match kind {
        Kind::Object => *declared > 0,
        _ => !takes_anything::<U>(*variant),
    });
    first(candidates, value)
}

fn first<U: Untagged, E: Error>(candidates: Vec<(usize, usize)>, value: &Buffer<'_>) -> Result<U, E> {
    if let [(_, variant)] = candidates[..] {
        return U::read(variant, value.reader());
    }
    let most = candidates.first().map_or(0, |(declared, _)| *declared);
    let work = value.work();
    let _account = Account::open(work);
    let mut failure = None;
    for (declared, variant) in candidates {
        if declared < most && STRICT.get().is_some() {
            break;
        }
        if !Account::charge(work) {
            return Err(E::custom(format_args!("too many ways to read this as {}", short(U::NAME))));
        }
        let strict = STRICT.get();
        match U::read(variant, value.reader()) {
            Ok(read) => return Ok(read),
            Err(error) => failure = failure.or(Some(error)),
        }
        // What was kept in an attempt that failed is not in the result.
        STRICT.set(strict);
    }
    Err(failure.unwrap_or_else(|| E::custom(format_args!("no variant of {} takes this", short(U::NAME)))))
}
