//! The namespaces of documents that are files: of one by itself, and of those of a directory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::Diagnostic;

/// The namespace that a file of a directory has if it is a document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileNamespace {
    /// The namespace.
    pub name: String,
    /// The namespace by the first part of the file's name, which the file has only if no other document would have it.
    pub short: String,
    /// The documents that would have had the same namespace.
    pub rivals: Vec<PathBuf>,
    /// True if no other document has this namespace.
    pub is_unique: bool,
}

impl FileNamespace {
    /// The diagnostic for the document at this location: a warning if it has a longer namespace because of others, a
    /// note if the others have a longer one, an error if it shares its namespace.
    pub fn diagnostic(&self, location: &str) -> Option<Diagnostic> {
        const SHOWN: usize = 3;
        let mut rivals: Vec<String> =
            self.rivals.iter().take(SHOWN).map(|path| format!("`{}`", path.display())).collect();
        if self.rivals.is_empty() {
            return None;
        }
        if self.rivals.len() > SHOWN {
            rivals.push(format!("{} more", self.rivals.len() - SHOWN));
        }
        let rivals = rivals.join(", ");
        let told = if self.is_unique {
            let message = format!("`{}` would be the namespace of this document and of {rivals}", self.short);
            if self.name == self.short {
                Diagnostic::note("", message).with_help("this one has it")
            } else {
                Diagnostic::warning("", message).with_help(format!("this one has the namespace `{}`", self.name))
            }
        } else {
            let message = format!("this document and {rivals} have the namespace `{}`", self.name);
            Diagnostic::error("", message).with_help("rename a file, or read it by itself, with a namespace of its own")
        };
        Some(told.with_document(location))
    }
}

/// The namespace of a document that is read by itself: the name of its file, up to the first dot.
///
/// A character that is no letter, digit or `-` becomes `_`. `from_openapi_file`, gateways and the generator of modules take
/// this name for a file, unless they are given another. So an operation has one id wherever its file is read.
///
/// ```
/// use std::path::Path;
///
/// use ops_runtime::openapi::file_namespace;
///
/// for (file, namespace) in [("apis/pet-store.yaml", "pet-store"), ("Shop.v2.json", "Shop"), ("a b.json", "a_b")] {
///     assert_eq!(file_namespace(Path::new(file)), namespace);
/// }
/// ```
pub fn file_namespace(file: &Path) -> String {
    namespace(Path::new(""), Path::new(file.file_name().unwrap_or_default()), Precision::Stem)
}

/// The namespaces of the documents of a directory, by their paths: `v1/pets.json` is `v1_pets`.
///
/// A name ends at its first dot. If several documents would have one namespace, all of them get more of their names in
/// it, so that their order does not matter: the name to its last dot, and the ending as well if need be. `shop.v1.json`
/// and `shop.v2.json` are `shop_v1` and `shop_v2`. Namespaces that differ in case only count as one, because they name
/// files. Documents whose whole names are alike share a namespace.
///
/// `is_document` returns true if the file of that index is a document; it is called only for files that would share a
/// namespace.
///
/// ```
/// use std::path::{Path, PathBuf};
///
/// use ops_runtime::openapi::dir_namespaces;
///
/// let files = ["apis/shop.v1.json", "apis/shop.v2.json", "apis/v1/pets.json"].map(PathBuf::from);
/// let namespaces = dir_namespaces(Path::new("apis"), &files, |_| true);
/// assert_eq!(namespaces.map(|file| file.name).collect::<Vec<_>>(), ["shop_v1", "shop_v2", "v1_pets"]);
/// ```
pub fn dir_namespaces(
    directory: &Path,
    files: &[PathBuf],
    mut is_document: impl FnMut(usize) -> bool,
) -> impl ExactSizeIterator<Item = FileNamespace> {
    let start = |file| Place { file, precision: Precision::Stem, rivals: BTreeSet::new(), is_unique: true };
    let mut places: Vec<Place<'_>> = files.iter().map(start).collect();
    let mut known: BTreeMap<usize, bool> = BTreeMap::new();
    let mut changed = true;
    while std::mem::take(&mut changed) {
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, place) in places.iter().enumerate() {
            groups.entry(namespace(directory, place.file, place.precision).to_lowercase()).or_default().push(at);
        }
        for mut group in groups.into_values().filter(|group| group.len() > 1) {
            group.retain(|at| *known.entry(*at).or_insert_with(|| is_document(*at)));
            if group.len() < 2 {
                continue;
            }
            for at in &group {
                let Some(place) = places.get_mut(*at) else { continue };
                place.rivals.extend(group.iter().filter(|other| *other != at));
                match place.precision.more() {
                    Some(more) => (place.precision, changed) = (more, true),
                    None => place.is_unique = false,
                }
            }
        }
    }
    let of = |place: Place<'_>| FileNamespace {
        name: namespace(directory, place.file, place.precision),
        short: namespace(directory, place.file, Precision::Stem),
        rivals: place.rivals.iter().filter_map(|at| files.get(*at)).cloned().collect(),
        is_unique: place.is_unique,
    };
    places.into_iter().map(of).collect::<Vec<_>>().into_iter()
}

/// A file whose namespace is being chosen.
struct Place<'a> {
    file: &'a PathBuf,
    precision: Precision,
    rivals: BTreeSet<usize>,
    is_unique: bool,
}

/// How much of a file's name is in its namespace.
#[derive(Clone, Copy)]
enum Precision {
    /// All up to the first dot.
    Stem,
    /// All up to the last dot.
    Name,
    All,
}

impl Precision {
    fn more(self) -> Option<Self> {
        match self {
            Self::Stem => Some(Self::Name),
            Self::Name => Some(Self::All),
            Self::All => None,
        }
    }
}

/// The namespace of a document, by its path.
///
/// The folders are part of it, so that adding a file to another folder renames no other file.
fn namespace(directory: &Path, file: &Path, precision: Precision) -> String {
    let below = file.strip_prefix(directory).unwrap_or(file);
    let folders = below.parent().into_iter().flat_map(Path::components);
    let mut words: Vec<String> = folders.map(|part| clean(&part.as_os_str().to_string_lossy())).collect();
    let name = below.file_name().unwrap_or_default().to_string_lossy();
    words.push(clean(match precision {
        Precision::Stem => name.split_once('.').map_or(&*name, |(stem, _)| stem),
        Precision::Name => name.rsplit_once('.').map_or(&*name, |(stem, _)| stem),
        Precision::All => &name,
    }));
    words.join("_")
}

fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[&str]) -> Vec<String> {
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        let namespaces = dir_namespaces(Path::new("specs"), &files, |at| !files[at].to_string_lossy().contains("part"));
        namespaces.map(|file| if file.is_unique { file.name } else { format!("{}!", file.name) }).collect()
    }

    #[test]
    fn namespaces_come_from_paths() {
        for (file, name) in [
            ("specs/petstore.yaml", "petstore"),
            ("specs/pet-store.v1.json", "pet-store"),
            ("specs/v1.2/pets.json", "v1_2_pets"),
            ("specs/a b/c d.json", "a_b_c_d"),
            ("specs/.yaml", ""),
        ] {
            assert_eq!(of(&[file]), [name]);
        }
    }

    #[test]
    fn documents_of_one_name_are_told_apart() {
        for (files, names) in [
            (&["specs/a.x.json", "specs/a.y.json"][..], &["a_x", "a_y"][..]),
            (&["specs/a.json", "specs/a.yaml"], &["a_json", "a_yaml"]),
            (&["specs/a.json", "specs/a.x.json", "specs/b.json"], &["a", "a_x", "b"]),
            // A longer name may be that of a third file.
            (&["specs/a.x.json", "specs/a.y.json", "specs/a_x.json"], &["a_x_json", "a_y", "a_x"]),
            (&["specs/A.json", "specs/a.json"], &["A_json!", "a_json!"]),
            (&["specs/a.json", "specs/a.part.json"], &["a", "a"]),
            (&["specs/a/b.json", "specs/a_b.json", "specs/a_b.x.json"], &["a_b_json!", "a_b_json!", "a_b_x"]),
        ] {
            assert_eq!(of(files), names, "{files:?}");
            let mut backwards = of(&files.iter().rev().copied().collect::<Vec<_>>());
            backwards.reverse();
            assert_eq!(backwards, names, "{files:?} in another order");
        }
    }
}
