//! What a user of `#[operation]` reads after a mistake; each case is named after the mistake.
//!
//! `TRYBUILD=overwrite` writes the expected messages anew. They change from one rustc to the next, so only the one that
//! `build.rs` names is asked; with another one the test is ignored, which `cargo test` and the summary of `tests/run` say.
#![allow(clippy::unwrap_used)]

use std::path::Path;

#[test]
#[cfg_attr(another_compiler, ignore = "skipped: the messages are those of another compiler, which `build.rs` names")]
fn mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let of = |ending: &str| paths.iter().filter(|path| path.extension().is_some_and(|have| have == ending)).count();
    let (cases, messages) = (of("rs"), of("stderr"));
    // A case without its messages would pass with any: trybuild only writes them down.
    assert!(cases > 0 && cases == messages, "{cases} cases have {messages} files of messages");
    trybuild::TestCases::new().compile_fail("cases/*.rs");
}
