//! Numbers and keys that cannot be guessed, from the system's generator; and random delays.

use std::hash::{BuildHasher, RandomState};
#[cfg(any(feature = "http", feature = "jetstream", feature = "nats", feature = "redis", feature = "websocket"))]
use std::time::Duration;

use super::hex::hex;

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

/// A random text of 32 hexadecimal digits, fit for keys.
pub(crate) fn key() -> String {
    hex(&bytes::<16>())
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

/// A random delay between half of this one and all of it, so that callers that failed together do not return together.
#[cfg(any(feature = "http", feature = "jetstream", feature = "nats", feature = "redis", feature = "websocket"))]
pub(crate) fn jitter(delay: Duration) -> Duration {
    let share = u32::try_from(RandomState::new().hash_one(0) % 512).unwrap_or(0);
    delay / 2 + delay / 1024 * share
}

/// The delay before the next attempt to connect to a broker: short at first, then longer, and partly random.
#[cfg(any(feature = "jetstream", feature = "nats", feature = "redis"))]
pub(crate) fn reconnect(attempts: usize) -> Duration {
    let doubled = 2_u32.saturating_pow(u32::try_from(attempts).unwrap_or(u32::MAX).min(6));
    jitter(Duration::from_millis(50) * doubled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ() {
        let (one, other) = (key(), key());
        assert!(one != other && one.len() == 32 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one} {other}");
    }

    #[cfg(any(feature = "http", feature = "jetstream", feature = "nats", feature = "redis", feature = "websocket"))]
    #[test]
    fn delays_are_between_half_and_all() {
        for delay in [Duration::ZERO, Duration::from_nanos(3), Duration::from_secs(8), Duration::MAX] {
            let found: Vec<Duration> = (0..64).map(|_| jitter(delay)).collect();
            assert!(found.iter().all(|found| (delay / 2..=delay).contains(found)), "{delay:?}: {found:?}");
            assert!(delay < Duration::from_secs(1) || found.iter().any(|other| *other != found[0]), "{found:?}");
        }
    }
}
