//! Tables of requests of this process, by their numbers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::model::request_id::Number;

/// A table of requests of this process, by number.
pub(in crate::call) type ByNumber<T> = HashMap<Number, T, BuildHasherDefault<NumberHasher>>;

/// A hash that spreads consecutive numbers.
#[derive(Default)]
pub(in crate::call) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}
