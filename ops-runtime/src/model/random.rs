//! Numbers and keys that nobody can guess, from the system's generator.

use std::hash::{BuildHasher, RandomState};

/// Random bytes, fit for keys.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if getrandom::fill(&mut bytes).is_err() {
        // No system that tokio runs on is without a generator; the keys of the standard library's hashers come from the
        // same source, and a key must not be zeros.
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = RandomState::new().hash_one(index).to_le_bytes()[0];
        }
    }
    bytes
}

/// A random number, fit for ids that others must not guess.
pub(crate) fn number() -> u64 {
    u64::from_le_bytes(bytes())
}
