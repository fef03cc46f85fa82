//! Programs of the workspace.

use std::path::PathBuf;
use std::process::Command;

use crate::corpus::root;
use crate::folder::target;

/// Cargo as it is from a shell, whatever Cargo runs this program.
#[must_use]
pub fn cargo() -> Command {
    Command::new(root().join("tests/cargo"))
}

/// Builds a program with what all tests are built with, and returns where it is.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn built(name: &str) -> PathBuf {
    let status = Command::new(root().join("tests/build")).arg(name).status();
    assert!(status.is_ok_and(|status| status.success()), "`tests/build {name}` failed");
    target(root()).join("debug").join(name)
}
