//! Trying the variants of a union on a buffered value.

use std::cell::Cell;

use serde_core::de::Error;

use super::buffer::Buffer;
use super::doubts::{Loss, Noted, is_strict, note_passed_over};
use super::reader::short;
use super::untagged::{Kind, Score, Untagged, candidates, takes_anything};

/// The work that any value may cost, in units of [`Buffer::work`].
const WORK: usize = 100_000;

/// How many times its own work a value may cost on top, and how many times the search for a better variant may.
const TIMES: usize = 64;

thread_local! {
    /// The work that is left to the outermost union that is being tried, if any.
    ///
    /// A union in a union is tried again for each variant of the outer one: a hostile value would take time exponential
    /// in its depth. Decoding runs on one thread, which is what lets the levels share their account here.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };

    /// The work that is left for a better variant, after one took the value with a [`Loss`]. It has an account of its own, so
    /// that a value of which every variant loses something can still be read. `None` during that search: then [`LEFT`] is this
    /// account.
    static SPARE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Reads a value. If that fails, the losses and doubts that were noted meanwhile are forgotten: they are about no result.
pub(super) fn attempt<T, E>(read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let before = Noted::now();
    let read = read();
    if read.is_err() {
        before.restore();
    }
    read
}

/// Opens the account for the outermost union and closes it however the attempts end.
struct Account {
    outermost: bool,
}

impl Account {
    fn open(work: usize) -> Self {
        let outermost = LEFT.get().is_none();
        if outermost {
            let most = work.saturating_mul(TIMES);
            LEFT.set(Some(most.saturating_add(WORK)));
            // Without the minimum: each of many small values would cost it.
            SPARE.set(Some(most));
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

/// Charges the work to the account of [`SPARE`] until it is dropped.
struct Sparing {
    /// The work that is left in the usual account. `None` if the work was charged to [`SPARE`] already.
    left: Option<usize>,
}

impl Sparing {
    fn begin() -> Self {
        Self { left: SPARE.take().and_then(|spare| LEFT.replace(Some(spare))) }
    }
}

impl Drop for Sparing {
    fn drop(&mut self) {
        if self.left.is_some() {
            SPARE.set(LEFT.replace(self.left));
        }
    }
}

/// Attempts to read one value as several variants.
pub(super) struct Attempts<U, E> {
    /// The value as the variant with the smallest loss so far.
    best: Option<Taken<U>>,
    /// The error of the likeliest variant that failed.
    failure: Option<E>,
}

/// A value that was read as a variant, with a loss.
struct Taken<U> {
    read: U,
    loss: Loss,
    noted: Noted,
}

impl<U: Untagged, E: Error> Attempts<U, E> {
    pub(super) fn new() -> Self {
        Self { best: None, failure: None }
    }

    /// Reads the value as a variant; `None` if that fails, or if another variant may lose less of it. The variants that may
    /// lose less leave as many of the value's own properties undeclared as this one: `undeclared`.
    #[inline]
    pub(super) fn run(&mut self, variant: usize, value: &Buffer<'_>, undeclared: usize) -> Option<U> {
        let before = Noted::now();
        match U::read(variant, value.reader()) {
            Ok(read) => {
                let loss = before.lost_since();
                let is_least = self.best.as_ref().is_none_or(|best| loss < best.loss);
                let avoidable = Loss { undeclared: loss.undeclared.saturating_sub(undeclared), ..loss };
                if is_least && avoidable == Loss::default() {
                    return Some(read);
                }
                if is_least {
                    self.best = Some(Taken { read, loss, noted: Noted::now() });
                }
            }
            Err(error) => self.failure = self.failure.take().or(Some(error)),
        }
        // The notes of this attempt count only if it is chosen in the end.
        before.restore();
        None
    }

    /// Returns the value as the variant with the smallest loss.
    ///
    /// # Errors
    ///
    /// When no variant took it: the error of the likeliest variant, or `otherwise` if none was tried.
    pub(super) fn end(self, otherwise: impl FnOnce() -> E) -> Result<U, E> {
        let Some(Taken { read, loss, noted }) = self.best else {
            return Err(self.failure.unwrap_or_else(otherwise));
        };
        noted.restore();
        // What is undeclared causes no doubt: schemas allow undeclared properties.
        if self.failure.is_some() && loss.unknown > 0 {
            note_passed_over();
        }
        Ok(read)
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
    candidates.retain(|(score, variant)| match kind {
        Kind::Object => score.declared > 0,
        _ => !takes_anything::<U>(*variant),
    });
    first(candidates, value)
}

fn first<U: Untagged, E: Error>(candidates: Vec<(Score, usize)>, value: &Buffer<'_>) -> Result<U, E> {
    if let [(_, variant)] = candidates[..] {
        return U::read(variant, value.reader());
    }
    let most = candidates.first().map(|(score, _)| *score).unwrap_or_default();
    let work = value.work();
    let properties = if let Buffer::Map(entries) = value { entries.len() } else { 0 };
    let _account = Account::open(work);
    let mut attempts = Attempts::new();
    // The score of the first variant that took the value, and the account for the search for a better one.
    let mut taken: Option<(Score, Sparing)> = None;
    for (score, variant) in candidates {
        let is_less = match &taken {
            // A loss is no reason to choose a variant that declares fewer properties of the value, or keeps fewer.
            Some((taken, _)) => score < *taken,
            None => score < most && is_strict(),
        };
        if is_less {
            break;
        }
        if !Account::charge(work) {
            if taken.is_some() {
                break;
            }
            return Err(E::custom(format_args!("too many ways to read this as {}", short(U::NAME))));
        }
        // The shape of anything does not tell what the variant declares.
        let undeclared = if takes_anything::<U>(variant) { 0 } else { properties.saturating_sub(score.declared) };
        if let Some(read) = attempts.run(variant, value, undeclared) {
            return Ok(read);
        }
        if taken.is_none() && attempts.best.is_some() {
            taken = Some((score, Sparing::begin()));
        }
    }
    attempts.end(|| E::custom(format_args!("no variant of {} takes this", short(U::NAME))))
}
