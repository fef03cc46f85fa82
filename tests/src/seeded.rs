//! The settings of random tests. Each run tries the same cases, so a test that fails now fails because of a change to the code.
//!
//! Packages include this file.

// Each uses its part.
#![allow(dead_code)]

use std::env::var_os;
use std::hash::{BuildHasher, Hasher, RandomState};

use proptest::test_runner::{Config, RngSeed};

const SEED: &str = "PROPTEST_RNG_SEED";

/// So many cases, which are the same in each run. `PROPTEST_CASES` and `PROPTEST_RNG_SEED` look for others. `OPS_FULL` does so,
/// too, and prints the seed, which makes the same cases again.
pub(crate) fn config(cases: u32) -> Config {
    let config = fixed(cases);
    if var_os("OPS_FULL").is_none() || var_os(SEED).is_some() {
        return config;
    }
    let seed = RandomState::new().build_hasher().finish();
    println!("{SEED}={seed}");
    Config { rng_seed: RngSeed::Fixed(seed), ..config }
}

/// The same, but `OPS_FULL` looks for no others.
pub(crate) fn fixed(cases: u32) -> Config {
    let given = Config::default();
    let cases = if var_os("PROPTEST_CASES").is_some() { given.cases } else { cases };
    let rng_seed = match given.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        given => given,
    };
    Config { cases, rng_seed, failure_persistence: None, ..given }
}
