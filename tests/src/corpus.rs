//! The documents that a test reads: those of a directory named by an environment variable, else our own.

use std::path::{Path, PathBuf};

/// The root of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are below the root")
}

/// The directory that the variable names, else `tests/fixtures/<default>`; a relative one is below the root.
pub fn directory(variable: &str, default: &str) -> PathBuf {
    match std::env::var_os(variable) {
        Some(directory) => root().join(directory),
        None => root().join("tests/fixtures").join(default),
    }
}

/// The files of the directory with one of these extensions, in the order of their names.
///
/// Prints the directory and the count, so that a test log says what was read.
///
/// # Panics
/// If the directory can't be read or holds no such file: a test of nothing must not pass.
pub fn files(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("the directory stays").path())
        .filter(|path| path.extension().is_some_and(|have| extensions.iter().any(|want| have == *want)))
        .collect();
    files.sort();
    println!("{}: {} files", directory.display(), files.len());
    assert!(!files.is_empty(), "no files in {}", directory.display());
    files
}
