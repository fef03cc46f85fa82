//! What a user of `#[operation]` reads after a mistake; each case is named after the mistake.
//!
//! `TRYBUILD=overwrite` writes the expected messages anew. They change from one rustc to the next, so only one is asked.

use std::process::Command;

const RUSTC: &str = "rustc 1.95.";

#[test]
fn mistakes() {
    let version = Command::new("rustc").arg("--version").output().unwrap().stdout;
    if !String::from_utf8_lossy(&version).starts_with(RUSTC) {
        eprintln!("skipped: the messages are those of {RUSTC}");
        return;
    }
    trybuild::TestCases::new().compile_fail("cases/*.rs");
}
