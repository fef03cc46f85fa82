//! Files that tests make.

use std::fs;
use std::path::Path;

use ops_tests_book::pages;

/// Compares a file of the repository with what it should hold; `UPDATE_GOLDEN=1` writes it.
pub(crate) fn check(path: &Path, text: &str) {
    let file = pages::root().join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        if fs::read_to_string(&file).ok().as_deref() != Some(text) {
            fs::write(&file, text).unwrap();
        }
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    let line = found.lines().zip(text.lines()).position(|(a, b)| a != b);
    assert!(
        found == text,
        "{} is not what the code says, from line {}: run UPDATE_GOLDEN=1 cargo test -p ops-tests-book, and read the difference",
        path.display(),
        line.unwrap_or_else(|| found.lines().count().min(text.lines().count())) + 1
    );
}
