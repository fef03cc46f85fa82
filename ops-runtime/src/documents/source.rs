//! Where documents come from: one small trait for all reading.
//!
//! A document may refer to others, so a source also resolves references and decides which are followed.
//! Documents held in memory are a source too:
//!
//! ```
//! use std::collections::BTreeMap;
//! use ops_runtime::openapi::Source;
//!
//! let documents = BTreeMap::from([("api/common.yaml".to_owned(), "components: {}".to_owned())]);
//! let location = documents.resolve("api/petstore.yaml", "./common.yaml");
//! assert_eq!(location, "api/common.yaml");
//! assert_eq!(documents.read(&location, "api/petstore.yaml").unwrap(), "components: {}");
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::model::text::has_scheme;

/// Gives the text of documents.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a source of documents",
    note = "use `FileSource`, a `BTreeMap` from location to text, or implement `Source`"
)]
pub trait Source {
    /// The text of the document at a location.
    ///
    /// `root` is the location of the document that the user asked for. When `location` is another one, a reference in
    /// a document led there, and the source decides whether to follow it.
    ///
    /// # Errors
    /// If there is no such document, if it is not UTF-8 text, or if the reference is not followed.
    fn read(&self, location: &str, root: &str) -> Result<String, SourceError>;

    /// The location that a relative reference means in the document at `base`.
    fn resolve(&self, base: &str, reference: &str) -> String {
        join(base, reference)
    }
}

/// Why a document could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceError {
    /// What went wrong and, if known, what to do.
    pub message: String,
}

impl SourceError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SourceError {}

/// Documents in memory, by location.
impl Source for BTreeMap<String, String> {
    fn read(&self, location: &str, _root: &str) -> Result<String, SourceError> {
        self.get(location).cloned().ok_or_else(|| SourceError::new(format!("there is no document `{location}`")))
    }
}

/// Documents in files.
///
/// References are followed within the folder of the document that the user asked for, or within the folder of
/// [`FileSource::within`]. It remembers the files that it read, so that a build script can print one `rerun-if-changed`
/// line for each file.
#[derive(Debug, Default)]
pub struct FileSource {
    within: Option<PathBuf>,
    // A lock and not a cell, so that a source can be shared with a background thread.
    files: Mutex<Files>,
    referred: Mutex<Vec<PathBuf>>,
    missing: Mutex<BTreeSet<PathBuf>>,
}

/// Files, each once, in the order in which they came.
#[derive(Debug, Default)]
struct Files {
    list: Vec<PathBuf>,
    known: BTreeSet<PathBuf>,
}

impl FileSource {
    /// A source that follows references within the folder of the document asked for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Follows references within this folder instead, which the document may lie in at any depth.
    #[must_use]
    pub fn within(mut self, folder: impl Into<PathBuf>) -> Self {
        self.within = Some(folder.into());
        self
    }

    /// The files that were read, each once, in the order of their first reading.
    pub fn files(&self) -> Vec<PathBuf> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).list.clone()
    }

    /// The files that references led to and that are not there, each once.
    ///
    /// What is read of the documents changes when they come. A file outside of the folder is not among them, because it would
    /// not be read.
    pub fn missing(&self) -> Vec<PathBuf> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The files that references led to.
    #[cfg(feature = "openapi")]
    pub(crate) fn referred(&self) -> Vec<PathBuf> {
        self.referred.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn check(&self, location: &str, root: &str) -> Result<(), SourceError> {
        if has_scheme(location) {
            let message = format!("`{location}` is not a file, and a file source reads nothing else");
            return Err(SourceError::new(message));
        }
        if location == root {
            return Ok(());
        }
        let folder = match &self.within {
            Some(folder) => folder.clone(),
            None => Path::new(root).parent().unwrap_or(Path::new("")).to_owned(),
        };
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        // Real paths, so that neither `..` nor a symbolic link leads out.
        let path = Path::new(location);
        let file = path.canonicalize().map_err(|error| {
            if error.kind() == ErrorKind::NotFound && would_lie_in(path, &folder) {
                self.missing.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
            }
            unreadable(path, &error)
        })?;
        if file.starts_with(folder.canonicalize().map_err(|error| unreadable(&folder, &error))?) {
            // A device or a pipe may never end.
            let is_file = file.is_file();
            return if is_file { Ok(()) } else { Err(SourceError::new(format!("`{location}` is not a file"))) };
        }
        Err(SourceError::new(format!(
            "`{location}` lies outside `{}`: allow a wider folder to read it",
            folder.display()
        )))
    }
}

impl Source for FileSource {
    fn read(&self, location: &str, root: &str) -> Result<String, SourceError> {
        self.check(location, root)?;
        let path = Path::new(location);
        let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.known.insert(path.to_owned()) {
            files.list.push(path.to_owned());
        }
        if location != root {
            self.referred.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        }
        String::from_utf8(bytes).map_err(|_| SourceError::new(format!("`{location}` is not UTF-8 text")))
    }

    fn resolve(&self, base: &str, reference: &str) -> String {
        // References always have slashes; paths have them except on Windows.
        if cfg!(windows) { join(&base.replace('\\', "/"), reference) } else { join(base, reference) }
    }
}

/// True if a file that is not there would lie in a folder: so does the nearest folder above it that is there.
fn would_lie_in(path: &Path, folder: &Path) -> bool {
    let mut above = path.ancestors().skip(1).map(|it| if it.as_os_str().is_empty() { Path::new(".") } else { it });
    let there = above.find_map(|above| above.canonicalize().ok());
    there.is_some_and(|there| folder.canonicalize().is_ok_and(|folder| there.starts_with(folder)))
}

fn unreadable(path: &Path, error: &std::io::Error) -> SourceError {
    SourceError::new(format!("cannot read `{}`: {error}", path.display()))
}

/// A relative reference resolved against the location of its document; both may be paths or URLs.
pub(crate) fn join(base: &str, reference: &str) -> String {
    if has_scheme(reference) {
        return reference.to_owned();
    }
    if let Some((scheme, rest)) = base.split_once("://").filter(|_| has_scheme(base)) {
        return join_url(scheme, rest, reference);
    }
    normal(&below(base, reference))
}

/// A relative reference resolved against a URL, of which `rest` follows `://` (RFC 3986, section 5.2).
fn join_url(scheme: &str, rest: &str, reference: &str) -> String {
    if reference.starts_with("//") {
        return format!("{scheme}:{reference}");
    }
    let (rest, _) = parted(rest, &['#']);
    let (rest, query_of_base) = parted(rest, &['?']);
    // No reference can climb above the host.
    let (host, folder) = parted(rest, &['/']);
    let (path, more) = parted(reference, &['?', '#']);
    if path.is_empty() {
        let query = if more.starts_with('?') { "" } else { query_of_base };
        return format!("{scheme}://{rest}{query}{more}");
    }
    format!("{scheme}://{host}{}{more}", without_dots(&below(folder, path)))
}

/// A text before and from the first of these characters.
fn parted<'t>(text: &'t str, ends: &[char]) -> (&'t str, &'t str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// A reference in the folder of a path.
fn below(path: &str, reference: &str) -> String {
    let folder = path.rfind('/').filter(|_| !reference.starts_with('/')).and_then(|at| path.get(..=at));
    format!("{}{reference}", folder.unwrap_or(""))
}

/// The path of a URL without `.` and without `name/..`. Other segments stay, empty ones too.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = segments.next() {
        match segment {
            ".." => _ = kept.pop(),
            "." => {}
            segment => {
                kept.push(segment);
                continue;
            }
        }
        // What ends with dots is a folder.
        if segments.peek().is_none() {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

/// The path of a file without `.` and without `name/..`.
fn normal(path: &str) -> String {
    let absolute = path.starts_with('/');
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').filter(|s| !s.is_empty() && *s != ".") {
        match (segment, segments.last()) {
            ("..", Some(last)) if *last != ".." => _ = segments.pop(),
            ("..", None) if absolute => {}
            _ => segments.push(segment),
        }
    }
    format!("{}{}", if absolute { "/" } else { "" }, segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_joined() {
        for (base, reference, location) in [
            ("api.yaml", "common.yaml", "common.yaml"),
            ("specs/api.yaml", "./common.yaml", "specs/common.yaml"),
            ("specs/api.yaml", "../common.yaml", "common.yaml"),
            ("specs/api.yaml", "../../common.yaml", "../common.yaml"),
            ("../specs/api.yaml", "a/../b.yaml", "../specs/b.yaml"),
            ("/srv/api.yaml", "../../../etc/passwd", "/etc/passwd"),
            ("/srv/api.yaml", "/etc/passwd", "/etc/passwd"),
            ("api.yaml", "https://example.com/a.yaml", "https://example.com/a.yaml"),
            ("https://example.com/v1/api.yaml", "common.yaml", "https://example.com/v1/common.yaml"),
            ("https://example.com/v1/api.yaml", "/common.yaml", "https://example.com/common.yaml"),
            ("https://example.com/v1/api.yaml", "../../../common.yaml", "https://example.com/common.yaml"),
            ("https://example.com", "common.yaml", "https://example.com/common.yaml"),
            ("https://example.com/v1/", "/o/token/", "https://example.com/o/token/"),
            ("https://example.com/v1/", "//b.example.com//x/", "https://b.example.com//x/"),
            ("https://example.com/v1/a.yaml", "/a//b?x=a//../b#/c", "https://example.com/a//b?x=a//../b#/c"),
            ("https://example.com/v1/a.yaml", "b/./c/..", "https://example.com/v1/b/"),
            ("https://example.com/api.yaml?ref=feature/x", "common.yaml", "https://example.com/common.yaml"),
            ("https://example.com/api.yaml?ref=feature/x#/a", "#/b", "https://example.com/api.yaml?ref=feature/x#/b"),
            ("https://example.com/v1/api.yaml?a=b", "?c=d", "https://example.com/v1/api.yaml?c=d"),
            ("https://example.com?a=/b", "c.yaml", "https://example.com/c.yaml"),
        ] {
            assert_eq!(join(base, reference), location, "{reference} in {base}");
        }
    }

    #[test]
    fn files_are_read_within_the_folder_of_the_document() {
        let folder = std::env::temp_dir().join(format!("ops-source-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("inner")).unwrap();
        for (name, text) in [("outer.yaml", "outer"), ("inner/api.yaml", "api"), ("inner/part.yaml", "part")] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let at = |name: &str| folder.join(name).display().to_string();
        let (root, part, outer) = (at("inner/api.yaml"), at("inner/part.yaml"), at("outer.yaml"));

        let source = FileSource::new();
        assert_eq!(source.read(&root, &root).unwrap(), "api");
        assert_eq!(source.read(&source.resolve(&root, "part.yaml"), &root).unwrap(), "part");
        assert_eq!(source.read(&part, &root).unwrap(), "part");
        assert!(source.read(&source.resolve(&root, "../outer.yaml"), &root).unwrap_err().message.contains("outside"));
        assert!(source.read("https://example.com/a.yaml", &root).unwrap_err().message.contains("not a file"));
        assert_eq!(source.files(), [PathBuf::from(&root), PathBuf::from(&part)]);
        // What could be read if it were there.
        for (reference, said) in [("no/such.yaml", "No such"), ("../no.yaml", "No such"), ("/no/such.yaml", "No such")]
        {
            for _ in 0..2 {
                let error = source.read(&source.resolve(&root, reference), &root).unwrap_err();
                assert!(error.message.contains(said) || cfg!(windows), "{error}");
            }
        }
        assert_eq!(source.missing(), [PathBuf::from(at("inner/no/such.yaml"))]);

        let wider = FileSource::new().within(&folder);
        assert_eq!(wider.read(&outer, &root).unwrap(), "outer");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
