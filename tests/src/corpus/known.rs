//! The files that the lists of the tests are about, and the documents that replace missing ones.
//!
//! The user names the directories that the tests read. The tests' lists (documents to compile, exceptions, counts) are only
//! about the files of `tests/known.txt` and our own fixtures: these are *known*. A test must not fail because a list says
//! nothing about another document.
//!
//! Other packages and build scripts include this file, so it uses no other crate.

use std::path::{Path, PathBuf};

/// A name and a size on each line.
const KNOWN: &str = include_str!("../../known.txt");

/// The names of the files, and their sizes in bytes.
pub(crate) fn known() -> impl Iterator<Item = (&'static Path, u64)> {
    let lines = KNOWN.lines().filter_map(|line| line.split_once('\t'));
    lines.filter_map(|(name, size)| Some((Path::new(name), size.parse::<u64>().ok()?)))
}

/// True for a file that the lists are about: one of our own, or one of `tests/known.txt` by its name and size.
pub fn is_known(file: &Path) -> bool {
    let size = file.metadata().map(|data| data.len());
    let is_same = |(name, of): (&Path, u64)| {
        file.file_name() == Some(name.as_os_str()) && size.as_ref().is_ok_and(|size| *size == of)
    };
    is_own(file) || known().any(is_same)
}

/// True for a file of our own fixtures.
pub fn is_own(file: &Path) -> bool {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let fixtures = above.map(|folder| folder.join("tests/fixtures")).find(|folder| folder.join("openapi").is_dir());
    let fixtures = fixtures.and_then(|folder| folder.canonicalize().ok());
    fixtures.is_some_and(|folder| file.canonicalize().is_ok_and(|file| file.starts_with(folder)))
}

/// Every file with the ending of JSON or YAML in a directory and below it, in the order of their paths.
///
/// Folders called `unreadable` are left out: they hold files that a reader must refuse.
///
/// # Errors
/// If a folder can't be read.
pub fn below(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                open.extend((path.file_name() != Some("unreadable".as_ref())).then_some(path));
            } else if path.extension().is_some_and(|have| ["json", "yaml", "yml"].iter().any(|want| have == *want)) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The name of a document in the lists of exceptions: the file's name without the ending, after `own/` if it is our own.
///
/// The prefix is needed, because any directory may have a document of the same name as one of our own.
pub fn label(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    if is_own(file) { format!("own/{stem}") } else { stem.into_owned() }
}

/// The entries of a list, one on each line. What follows a `#` is a comment.
pub fn entries(list: &str) -> Vec<&str> {
    let entries = list.lines().map(|line| line.split('#').next().unwrap_or(line).trim());
    entries.filter(|entry| !entry.is_empty()).collect()
}

fn is_named(file: &Path, entry: &str) -> bool {
    [file.file_name(), file.file_stem()].into_iter().flatten().any(|part| part == entry)
}

/// The files that entries name, with or without the ending, and the entries that name none.
pub fn matched<'l>(entries: &[&'l str], files: &[PathBuf]) -> (Vec<PathBuf>, Vec<&'l str>) {
    let named = files.iter().filter(|file| entries.iter().any(|entry| is_named(file, entry))).cloned().collect();
    let is_missing = |entry: &&str| !files.iter().any(|file| is_named(file, entry));
    (named, entries.iter().copied().filter(is_missing).collect())
}

/// The files that entries name. For each file that is missing, the smallest other document is added.
///
/// Prints the missing files and their replacements. If all files of `tests/known.txt` exist, nothing is replaced.
///
/// # Errors
/// If an entry names neither an existing file nor one of `tests/known.txt`: it is misspelt.
pub fn choose(
    entries: &[&str],
    files: &[PathBuf],
    is_document: impl Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>, String> {
    let (mut chosen, missing) = matched(entries, files);
    let is_misspelt = |entry: &&str| !known().any(|(name, _)| is_named(name, entry));
    let misspelt: Vec<&str> = missing.iter().copied().filter(is_misspelt).collect();
    if !misspelt.is_empty() {
        return Err(format!("neither there nor in tests/known.txt: {}", misspelt.join(", ")));
    }
    let mut others: Vec<&PathBuf> = files.iter().filter(|file| !chosen.contains(*file)).collect();
    others.sort_by_key(|file| file.metadata().map_or(u64::MAX, |data| data.len()));
    let others = others.into_iter().filter(|file| is_document(file)).take(missing.len());
    let others: Vec<PathBuf> = others.cloned().collect();
    if !missing.is_empty() {
        let names: Vec<_> = others.iter().filter_map(|file| file.file_name()?.to_str()).collect();
        println!("not there: {}; instead of them: {}", missing.join(", "), names.join(", "));
    }
    chosen.extend(others);
    chosen.sort();
    Ok(chosen)
}
