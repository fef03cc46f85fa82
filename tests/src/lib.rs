//! The tests that need more than one crate.
