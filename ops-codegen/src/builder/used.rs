//! Collects the identifiers in a crate's sources, and detects if they changed since the last build.

use std::collections::{BTreeSet, HashSet};
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::output::is_generated;

/// The default folders of a crate's own sources.
const FOLDERS: [&str; 4] = ["src", "tests", "examples", "benches"];

/// A crate's sources.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// The existing folders.
    pub(super) folders: Vec<PathBuf>,
    pub(super) names: HashSet<String>,
}

impl Sources {
    /// Reads the sources of the package whose build script this is.
    pub(super) fn read() -> Self {
        Self::below(Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| ".".into())))
    }

    /// Reads the sources below a folder. What cannot be read is passed over: if the crate has use for it, the compiler tells.
    pub(super) fn below(root: &Path) -> Self {
        let mut sources = Self::default();
        for folder in FOLDERS.map(|folder| root.join(folder)).into_iter().filter(|folder| folder.is_dir()) {
            let mut folders = vec![folder.clone()];
            while let Some(folder) = folders.pop() {
                for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                    let path = entry.path();
                    // Editors keep files of their own here, such as Emacs, whose locks are links to nothing.
                    if entry.file_name().to_string_lossy().starts_with('.') {
                        continue;
                    }
                    // A link might lead back to a folder above.
                    if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                        folders.push(path);
                    } else if path.extension().is_some_and(|ending| ending == "rs") && path.is_file() {
                        // A module that is kept among the sources names all that it has.
                        let text = std::fs::read(&path).ok().filter(|text| !is_generated(text));
                        identifiers(&String::from_utf8_lossy(&text.unwrap_or_default()), &mut sources.names);
                    }
                }
            }
            sources.folders.push(folder);
        }
        sources
    }
}

/// Adds the identifiers of a source, and the words in its strings; not those of comments on lines of their own, unless they
/// are code in its documentation.
fn identifiers(source: &str, names: &mut HashSet<String>) {
    let mut is_fenced = false;
    for line in source.lines() {
        if !holds_code(line.trim_start(), &mut is_fenced) {
            continue;
        }
        let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        for word in words.filter(|word| !word.starts_with(|c: char| c.is_ascii_digit())) {
            if !names.contains(word) {
                names.insert(word.to_owned());
            }
        }
    }
}

/// True for a line that may hold code. Of documentation, that is what stands in fences, is indented as code is, or has a word
/// in backticks or a link.
fn holds_code(line: &str, is_fenced: &mut bool) -> bool {
    if !line.starts_with("//") {
        *is_fenced = false;
        return true;
    }
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).filter(|text| !text.starts_with('/'));
    let Some(text) = text else { return false };
    if ["```", "~~~"].iter().any(|fence| text.trim_start().starts_with(fence)) {
        *is_fenced = !*is_fenced;
        return false;
    }
    *is_fenced || text.starts_with("     ") || text.contains(['`', '['])
}

/// What a build made, and of what.
pub(super) struct Made<'m> {
    /// The files that were read, and those that were missing.
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
    /// The files that were read, and those that were missing.
    pub(super) files: Vec<PathBuf>,
    /// The files that were written.
    pub(super) modules: Vec<PathBuf>,
    /// The warnings about the documents.
    pub(super) lines: Vec<String>,
}

/// The inputs of the last build.
pub(super) struct Note {
    path: PathBuf,
    settings: u64,
    /// The build script, of which the generator is part: `None` if it is not known.
    generator: Option<Stamp>,
    /// True if the builder's inputs are files, so that their times tell whether they have changed.
    files_only: bool,
}

/// What tells whether a file has changed.
#[derive(Debug, Clone, Copy, Hash)]
struct Stamp {
    length: u64,
    modified: SystemTime,
    /// When it became what it is.
    changed: SystemTime,
}

fn stamp(file: &Path) -> Option<Stamp> {
    let about = std::fs::metadata(file).ok()?;
    Some(Stamp { length: about.len(), modified: about.modified().ok()?, changed: changed(&about)? })
}

/// When the kernel changed a file last. It uses its own clock, also for a file that is renamed, or gets the time of an older one.
#[cfg(unix)]
fn changed(about: &Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt as _;
    let nanos = u32::try_from(about.ctime_nsec()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(u64::try_from(about.ctime()).ok()?, nanos))
}

/// When a file was modified. A file that is renamed keeps this time.
#[cfg(not(unix))]
fn changed(about: &Metadata) -> Option<SystemTime> {
    about.modified().ok()
}

/// True if a file that changed at this time has not changed since a build began.
fn is_before(changed: SystemTime, begun: SystemTime) -> bool {
    let fraction = changed.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    // Some file systems count in steps of up to two seconds, and round down.
    let step = if fraction == 0 { Duration::from_secs(2) } else { Duration::ZERO };
    changed.checked_add(step).is_some_and(|changed| changed < begun)
}

impl Note {
    /// The note in a folder of a builder with these settings, which writes such a module to that folder: no other builder does.
    pub(super) fn new(settings: u64, files_only: bool, folder: &Path, namespace: &str, out_dir: &Path) -> Self {
        let generator = std::env::current_exe().ok().and_then(|script| stamp(&script));
        let mut hasher = DefaultHasher::new();
        (namespace, out_dir).hash(&mut hasher);
        let name = format!("ops-only-used-{:016x}.txt", hasher.finish());
        Self { path: folder.join(name), settings, generator, files_only }
    }

    /// The results of the last build, if this one would generate the same.
    pub(super) fn unchanged(&self, names: &HashSet<String>) -> Option<Kept> {
        let text = std::fs::read_to_string(&self.path).ok().filter(|_| self.files_only)?;
        let part = |kind: &'static str| text.lines().filter_map(move |line| line.strip_prefix(kind));
        let files: Vec<PathBuf> = part("file ").map(PathBuf::from).collect();
        let modules: Vec<PathBuf> = part("module ").map(PathBuf::from).collect();
        let key = self.key(&files, &modules, part("name ").filter(|name| names.contains(*name)))?;
        (part("key ").next() == Some(&*key)).then(|| Kept {
            files,
            modules,
            lines: part("line ").map(str::to_owned).collect(),
        })
    }

    /// Empties the note before anything is read, and returns when that was, by the clock that stamps files. A build that does
    /// not reach its end leaves no note. `None` if there is no folder for it, because nothing was built there yet.
    pub(super) fn begin(&self) -> Option<SystemTime> {
        std::fs::write(&self.path, "").ok()?;
        stamp(&self.path).map(|note| note.changed)
    }

    /// Records the inputs of a build that began at this time. If they cannot be recorded, only the next build takes longer.
    ///
    /// A file that has changed since then may have been read before it changed: its stamp would stand for something else.
    pub(super) fn write(&self, begun: Option<SystemTime>, names: &HashSet<String>, made: &Made<'_>) {
        let Made { files, known, written, lines } = made;
        let Some(begun) = begun else { return };
        if !files.iter().all(|file| stamp(file).is_none_or(|file| is_before(file.changed, begun))) {
            return;
        }
        let used = known.iter().map(|name| name.as_str()).filter(|name| names.contains(*name));
        let Some(key) = self.key(files, written, used) else { return };
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

    /// What the result depends on, and the files that it is: another builder may have written them since,
    /// or a build that was interrupted. A file that is not there has no stamp. `None` if the generator is not known.
    fn key<'n>(&self, files: &[PathBuf], modules: &[PathBuf], used: impl Iterator<Item = &'n str>) -> Option<String> {
        let mut hasher = DefaultHasher::new();
        (self.settings, self.generator?).hash(&mut hasher);
        files.iter().chain(modules).for_each(|file| (file, stamp(file)).hash(&mut hasher));
        let used: BTreeSet<&str> = used.collect();
        used.hash(&mut hasher);
        Some(format!("{:016x}", hasher.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Vec<String> {
        let mut names = HashSet::new();
        identifiers(source, &mut names);
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort();
        names
    }

    #[test]
    fn identifiers_of_a_source() {
        let source = "// not_this\nlet r#type = shop::ShowPet { pet_id: 7_u64 }; // this_too\n\"in_text\"";
        assert_eq!(names(source), ["ShowPet", "in_text", "let", "pet_id", "r", "shop", "this_too", "type"]);
    }

    #[test]
    fn code_in_documentation_is_code() {
        for (source, wanted) in [
            ("//! Words.\n//! [`A`] is one\n//! [b]: shop::C\n", &["A", "C", "b", "is", "one", "shop"][..]),
            ("  /// ```\n  /// a::B\n\t///\n  /// C\n  /// ```\n  /// Words.\n", &["B", "C", "a"]),
            ("/// ~~~rust\n/// A\nstruct B;\n/// Words.", &["A", "B", "struct"]),
            ("/// Words:\n///\n///     let a = B;\n///   Words.", &["B", "a", "let"]),
            ("//// `No`\n//// [more]\n// `of` this", &[]),
        ] {
            assert_eq!(names(source), wanted, "{source}");
        }
    }

    #[test]
    fn another_generator_makes_it_anew() {
        let folder = std::env::temp_dir().join(format!("ops-used-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let module = folder.join("shop.rs");
        std::fs::write(&module, "mod").unwrap();
        let of = |settings, seconds| {
            let built = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            let generator = Stamp { length: 7, modified: built, changed: built };
            Note { generator: Some(generator), ..Note::new(settings, true, &folder, "shop", &folder) }
        };
        let note = |seconds| of(1, seconds);
        let (used, pet) = (HashSet::from(["Pet".to_owned()]), "Pet".to_owned());
        let missing = folder.join("missing.yaml");
        let made = |files| Made { files, known: [&pet].into(), written: vec![module.clone()], lines: Vec::new() };
        note(1).write(note(1).begin(), &used, &made(vec![missing.clone()]));
        assert_eq!(note(1).unchanged(&used).unwrap().modules, std::slice::from_ref(&module));
        assert!(note(2).unchanged(&used).is_none());
        assert!(of(2, 1).unchanged(&used).is_none());
        assert!(note(1).unchanged(&HashSet::new()).is_none());
        // What was missing has come.
        std::fs::write(&missing, "{}").unwrap();
        assert!(note(1).unchanged(&used).is_none());
        // Something else has written the module.
        note(1).write(note(1).begin(), &used, &made(Vec::new()));
        assert!(note(1).unchanged(&used).is_some());
        std::fs::write(&module, "other").unwrap();
        assert!(note(1).unchanged(&used).is_none());
        // A build that was interrupted.
        note(1).write(note(1).begin(), &used, &made(Vec::new()));
        let begun = note(1).begin().unwrap();
        assert!(note(1).unchanged(&used).is_none());
        // A document was saved after the build had begun, which may have read it before.
        let document = folder.join("shop.yaml");
        std::fs::write(&document, "{}").unwrap();
        note(1).write(Some(begun), &used, &made(vec![document.clone()]));
        assert!(note(1).unchanged(&used).is_none());
        let later = stamp(&document).unwrap().changed + Duration::from_secs(3);
        note(1).write(Some(later), &used, &made(vec![document]));
        assert!(note(1).unchanged(&used).is_some());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// The time of a file may be that of an older one that was copied or renamed, or that of another clock.
    #[cfg(unix)]
    #[test]
    fn the_time_that_a_document_says_does_not_count() {
        let folder = std::env::temp_dir().join(format!("ops-used-times-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (document, earlier) = (folder.join("shop.yaml"), folder.join("earlier.yaml"));
        let note = || Note::new(1, true, &folder, "shop", &folder);
        let made = || Made { files: vec![document.clone()], known: [].into(), written: Vec::new(), lines: Vec::new() };
        let set_modified = |file: &Path, time| {
            std::fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
        };
        let begun = note().begin().unwrap();
        std::fs::write(&earlier, "{}").unwrap();
        set_modified(&earlier, begun - Duration::from_secs(3_600));
        std::fs::rename(&earlier, &document).unwrap();
        note().write(Some(begun), &HashSet::new(), &made());
        assert!(note().unchanged(&HashSet::new()).is_none());
        set_modified(&document, begun + Duration::from_secs(3_600));
        let later = stamp(&document).unwrap().changed + Duration::from_secs(3);
        note().write(Some(later), &HashSet::new(), &made());
        assert!(note().unchanged(&HashSet::new()).is_some());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_time_without_a_fraction_may_be_rounded() {
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        for (changed, begun, expected) in [
            (10_400, 10_500, true),
            (10_500, 10_500, false),
            (10_600, 10_500, false),
            (10_000, 10_500, false),
            (10_000, 12_000, false),
            (10_000, 12_500, true),
        ] {
            assert_eq!(is_before(at(changed), at(begun)), expected, "{changed} {begun}");
        }
    }

    #[test]
    fn no_folder_is_made_for_a_note() {
        let folder = std::env::temp_dir().join(format!("ops-used-none-{}", std::process::id()));
        assert!(Note::new(1, true, &folder, "shop", &folder).begin().is_none());
        assert!(!folder.exists());
    }
}
