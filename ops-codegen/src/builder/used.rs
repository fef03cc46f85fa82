//! Collects the identifiers in a crate's sources, and detects if they changed since the last build.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::output::is_generated;

/// The default folders of a crate's own sources.
const FOLDERS: [&str; 4] = ["src", "tests", "examples", "benches"];

/// The file beside the modules that records their inputs.
const NOTE: &str = "ops-only-used.txt";

/// A crate's sources.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// The existing folders.
    pub(super) folders: Vec<PathBuf>,
    pub(super) names: HashSet<String>,
}

impl Sources {
    /// Reads the sources of the package whose build script this is.
    pub(super) fn read() -> Result<Self, Error> {
        Self::below(Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| ".".into())))
    }

    pub(super) fn below(root: &Path) -> Result<Self, Error> {
        let mut sources = Self::default();
        for folder in FOLDERS.map(|folder| root.join(folder)).into_iter().filter(|folder| folder.is_dir()) {
            let mut folders = vec![folder.clone()];
            while let Some(folder) = folders.pop() {
                for entry in std::fs::read_dir(&folder).map_err(|error| Error::io(&folder, error))? {
                    let entry = entry.map_err(|error| Error::io(&folder, error))?;
                    let path = entry.path();
                    // A link might lead back to a folder above.
                    if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                        folders.push(path);
                    } else if path.extension().is_some_and(|ending| ending == "rs") {
                        let text = std::fs::read(&path).map_err(|error| Error::io(&path, error))?;
                        // A module that is kept among the sources names all that it has.
                        if is_generated(&text) {
                            continue;
                        }
                        identifiers(&String::from_utf8_lossy(&text), &mut sources.names);
                    }
                }
            }
            sources.folders.push(folder);
        }
        Ok(sources)
    }
}

/// Adds the identifiers of a source, and the words in its strings; not those of comments on lines of their own.
fn identifiers(source: &str, names: &mut HashSet<String>) {
    for line in source.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        for word in words.filter(|word| !word.starts_with(|c: char| c.is_ascii_digit())) {
            if !names.contains(word) {
                names.insert(word.to_owned());
            }
        }
    }
}

/// The results of a build, and its inputs.
pub(super) struct Made<'m> {
    /// The files that were read.
    pub(super) files: Vec<PathBuf>,
    /// Every identifier by which a crate can name a part of the modules.
    pub(super) known: BTreeSet<&'m String>,
    /// The files that were written.
    pub(super) written: Vec<PathBuf>,
    /// The warnings about the documents.
    pub(super) lines: Vec<String>,
}

/// The results of an earlier build that are still valid.
pub(super) struct Kept {
    /// The files that were read.
    pub(super) files: Vec<PathBuf>,
    /// The files that were written.
    pub(super) modules: Vec<PathBuf>,
    /// The warnings about the documents.
    pub(super) lines: Vec<String>,
}

/// The inputs of the last build.
pub(super) struct Note {
    path: PathBuf,
    /// A hash of the builder's settings, without the files.
    settings: u64,
    /// True if the builder's inputs are files, so that their times show if they have changed.
    files_only: bool,
}

impl Note {
    pub(super) fn new(settings: &str, files_only: bool, out_dir: &Path) -> Self {
        let mut hasher = DefaultHasher::new();
        (env!("CARGO_PKG_VERSION"), settings).hash(&mut hasher);
        Self { path: out_dir.join(NOTE), settings: hasher.finish(), files_only }
    }

    /// The results of the last build, if this one would generate the same.
    pub(super) fn unchanged(&self, names: &HashSet<String>) -> Option<Kept> {
        let text = std::fs::read_to_string(&self.path).ok().filter(|_| self.files_only)?;
        let part = |kind: &'static str| text.lines().filter_map(move |line| line.strip_prefix(kind));
        let files: Vec<PathBuf> = part("file ").map(PathBuf::from).collect();
        let modules: Vec<PathBuf> = part("module ").map(PathBuf::from).collect();
        let modules_are_there = modules.iter().all(|module| module.exists());
        let key = key(self.settings, &files, part("name ").filter(|name| names.contains(*name)))?;
        (modules_are_there && part("key ").next() == Some(&*key)).then(|| Kept {
            files,
            modules,
            lines: part("line ").map(str::to_owned).collect(),
        })
    }

    /// Records the inputs. If the record cannot be written, only the next build takes longer.
    pub(super) fn write(&self, names: &HashSet<String>, made: &Made<'_>) {
        let Made { files, known, written, lines } = made;
        let used = known.iter().map(|name| name.as_str()).filter(|name| names.contains(*name));
        let Some(key) = key(self.settings, files, used) else { return };
        let mut text = format!("key {key}\n");
        let mut all = |kind: &str, part: &str| {
            // A path with a line break would be another path when it is read again.
            text.push_str(&format!("{kind} {}\n", part.replace(['\n', '\r'], " ")));
        };
        files.iter().for_each(|file| all("file", &file.to_string_lossy()));
        written.iter().for_each(|module| all("module", &module.to_string_lossy()));
        lines.iter().for_each(|line| all("line", line));
        known.iter().for_each(|name| all("name", name));
        _ = std::fs::write(&self.path, text);
    }
}

/// A hash of the inputs; `None` if a file is missing.
fn key<'n>(settings: u64, files: &[PathBuf], used: impl Iterator<Item = &'n str>) -> Option<String> {
    let mut hasher = DefaultHasher::new();
    settings.hash(&mut hasher);
    for file in files {
        let about = std::fs::metadata(file).ok()?;
        (file, about.len(), about.modified().ok()?).hash(&mut hasher);
    }
    let used: BTreeSet<&str> = used.collect();
    used.hash(&mut hasher);
    Some(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_of_a_source() {
        let mut names = HashSet::new();
        identifiers("// not_this\nlet r#type = shop::ShowPet { pet_id: 7_u64 }; // this_too\n\"in_text\"", &mut names);
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort();
        assert_eq!(names, ["ShowPet", "in_text", "let", "pet_id", "r", "shop", "this_too", "type"]);
    }
}
