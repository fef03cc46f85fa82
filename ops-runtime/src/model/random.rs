//! Numbers and keys that cannot be guessed, from the system's generator.

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

/// A number that no other call gives, in this process or another. Others may guess it.
///
/// It takes no call of the system, which random numbers do.
#[cfg(feature = "durable")]
pub(crate) fn unique() -> u64 {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static FIRST: OnceLock<u64> = OnceLock::new();
    static CALLS: AtomicU64 = AtomicU64::new(0);
    FIRST.get_or_init(number).wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed))
}
