//! The ids of requests. A caller in another process sends any text; this process makes its own ids from numbers.

use super::random;
use std::borrow::Borrow;
use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The id of a request: any text that a caller uses for one request only.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// The longest id that is accepted, in bytes.
    pub(crate) const LONGEST: usize = 1_024;

    pub(crate) fn of(number: Number) -> Self {
        let mut buffer = [0; Number::LENGTH];
        Self(number.write(&mut buffer).into())
    }

    /// The number behind an id of this process.
    pub(crate) fn number(&self) -> Option<Number> {
        Number::parse(&self.0)
    }
}

impl From<&str> for RequestId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl From<String> for RequestId {
    fn from(id: String) -> Self {
        Self(id.into())
    }
}

impl From<Arc<str>> for RequestId {
    fn from(id: Arc<str>) -> Self {
        Self(id)
    }
}

impl Deref for RequestId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for RequestId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number of a request of this process. It becomes text only when its id is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Number(pub(crate) u64);

impl Number {
    #[inline]
    pub(crate) fn next() -> Self {
        // Each thread takes a block of numbers at a time, so that calls do not contend for the counter.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        const BLOCK: u64 = 1 << 16;
        thread_local!(static OWN: Cell<u64> = const { Cell::new(0) });
        let number = match OWN.get() {
            own if own % BLOCK != 0 => own,
            _ => NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(BLOCK) + 1,
        };
        OWN.set(number + 1);
        Self(number)
    }

    /// The length of the longest number as text, in bytes.
    pub(crate) const LENGTH: usize = 33;

    /// The number as text, without allocating, because every call across processes needs it.
    pub(crate) fn write(self, buffer: &mut [u8; Self::LENGTH]) -> &str {
        let Self(mut number) = self;
        let mut at = buffer.len();
        let mut put = |byte: u8| {
            at = at.saturating_sub(1);
            if let Some(slot) = buffer.get_mut(at) {
                *slot = byte;
            }
        };
        let digit = |n: u64| b"0123456789abcdef".get((n & 15) as usize).copied().unwrap_or(b'0');
        loop {
            put(digit(number));
            number >>= 4;
            if number == 0 {
                break;
            }
        }
        put(b'-');
        let mut prefix = process_prefix();
        for _ in 0..16 {
            put(digit(prefix));
            prefix >>= 4;
        }
        buffer.get(at..).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
    }

    /// Reads a text that this process wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (prefix, number) = text.split_once('-')?;
        let prefix = u64::from_str_radix(prefix, 16).ok()?;
        (prefix == process_prefix()).then_some(())?;
        u64::from_str_radix(number, 16).ok().map(Self)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Unlike in any other process: the prefix is random.
        write!(f, "{:016x}-{:x}", process_prefix(), self.0)
    }
}

fn process_prefix() -> u64 {
    static PREFIX: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *PREFIX.get_or_init(random::number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_are_unlike() {
        let mut buffer = [0; Number::LENGTH];
        for number in [Number(0), Number::next(), Number(u64::MAX)] {
            assert_eq!(number.write(&mut buffer), number.to_string());
            assert_eq!(Number::parse(&number.to_string()), Some(number));
        }
        let ids = || (0..70_000).map(|_| Number::next().to_string()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(ids)).collect();
        let mut all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 140_000);
    }
}
