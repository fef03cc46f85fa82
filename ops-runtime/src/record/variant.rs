//! Selects the variant of the output's union by the status of the response, where the shape of the value is ambiguous.

use std::cell::Cell;

thread_local! {
    static VARIANT: Cell<Option<u16>> = const { Cell::new(None) };
}

/// Runs a decoding of the success at this position of the output's `oneOf`.
///
/// Decoding runs on one thread without interruption, so the position can be passed in a thread-local value.
pub(crate) fn scoped<T>(variant: Option<u16>, decode: impl FnOnce() -> T) -> T {
    let _known = variant.map(Known::new);
    decode()
}

/// Makes a position known. When it is dropped, a position that was not used is cleared, even if the decoding panics.
///
/// Its functions are not inlined, since [`scoped`] is compiled for each decoding.
struct Known;

impl Known {
    #[inline(never)]
    fn new(variant: u16) -> Self {
        VARIANT.set(Some(variant));
        Self
    }
}

impl Drop for Known {
    #[inline(never)]
    fn drop(&mut self) {
        VARIANT.set(None);
    }
}

/// Runs one attempt at a decoding: the position that it takes is there again for the next attempt.
pub(crate) fn attempt<T>(decode: impl FnOnce() -> T) -> T {
    let variant = VARIANT.get();
    let decoded = decode();
    VARIANT.set(variant);
    decoded
}

/// Takes the position; only the union of the operation's successes asks for it.
pub(crate) fn take() -> Option<u16> {
    VARIANT.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_who_asks_is_told() {
        assert_eq!(scoped(Some(2), || (take(), take())), (Some(2), None));
        scoped(Some(2), || ());
        assert_eq!(take(), None);
        assert_eq!(scoped(None, take), None);
    }

    #[test]
    fn each_attempt_is_told() {
        let twice = || (attempt(|| (attempt(take), take(), take())), take(), take());
        assert_eq!(scoped(Some(2), twice), ((Some(2), Some(2), None), Some(2), None));
        assert_eq!(take(), None);
        assert_eq!(attempt(take), None);
    }
}
