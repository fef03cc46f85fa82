//! The operations of directories, and what they are called.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ops_runtime::openapi::{ReadOptions, dir_namespaces, load_dir};
use ops_runtime::spec::{Api, OperationSpec};

use crate::known;

/// The operations of several directories, each document in a namespace of its own.
#[derive(Default)]
pub(crate) struct Catalogue {
    apis: Vec<Api>,
    ids: BTreeSet<String>,
    /// Other ids of the operations, which begin with the name of the document's file, whole or up to its first dot.
    others: BTreeMap<String, Vec<String>>,
    /// The names of all files in the directories. True if all files of a name are in `tests/known.txt` or our own.
    documents: BTreeMap<String, bool>,
    /// True if some operations are from a file that is not known.
    has_others: bool,
}

impl Catalogue {
    /// Reads every document of the directories, as `ops` does: namespaces are the names of their files.
    pub(crate) fn read(directories: &[String]) -> Result<Self, String> {
        let mut catalogue = Self::default();
        let mut taken = BTreeSet::new();
        for directory in directories {
            let read = load_dir(directory, &ReadOptions::new()).map_err(|error| format!("{directory}: {error}"))?;
            let found = known::below(Path::new(directory)).map_err(|error| format!("{directory}: {error}"))?;
            for file in &found {
                let is_known = known::is_known(file);
                for name in names(file) {
                    *catalogue.documents.entry(name).or_insert(true) &= is_known;
                }
            }
            // A document may refer to files that are not there.
            let files: Vec<PathBuf> = read.files.into_iter().filter(|file| file.exists()).collect();
            let files = by_namespace(Path::new(directory), &files);
            for (namespace, mut api) in read.apis {
                let files = files.get(&namespace).map(Vec::as_slice).unwrap_or_default();
                catalogue.has_others |= files.iter().any(|file| !known::is_known(file));
                let stems: BTreeSet<String> = files.iter().flat_map(|file| stems(file)).collect();
                // Another directory may have a document of the same name.
                let mut own = namespace.clone();
                let mut number = 1;
                while !taken.insert(own.to_lowercase()) {
                    number += 1;
                    own = format!("{namespace}{number}");
                }
                for operation in &mut api.operations {
                    let name = operation.name().to_owned();
                    operation.id = format!("{own}.{name}").into();
                    catalogue.ids.insert(operation.id.clone().into_owned());
                    for stem in stems.iter().chain([&namespace]) {
                        let other = catalogue.others.entry(format!("{stem}.{name}")).or_default();
                        other.push(operation.id.clone().into_owned());
                    }
                }
                catalogue.apis.push(api);
            }
        }
        if catalogue.ids.is_empty() {
            return Err(format!("no operations in {}", directories.join(", ")));
        }
        Ok(catalogue)
    }

    pub(crate) fn operations(&self) -> impl Iterator<Item = &OperationSpec> {
        self.apis.iter().flat_map(|api| &api.operations)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.ids.iter().map(String::as_str)
    }

    /// True if all indexed operations are from files that the questions were made for.
    pub(crate) fn is_known(&self) -> bool {
        !self.has_others
    }

    /// True if the document of an id is missing, or if a document that is not known has its name.
    pub(crate) fn is_about_others(&self, id: &str) -> bool {
        let name = id.split('.').next().unwrap_or_default();
        match self.documents.get(name) {
            Some(is_known) => !is_known,
            None => known::known().any(|(file, _)| names(file).iter().any(|other| other == name)),
        }
    }

    /// The ids of the operations that `id` can mean: one, unless several documents have names that begin alike.
    pub(crate) fn find(&self, id: &str) -> Vec<String> {
        if self.ids.contains(id) {
            return vec![id.to_owned()];
        }
        self.others.get(id).cloned().unwrap_or_default()
    }
}

/// The two ways in which the ids of a file's operations may begin: with the file's name up to the first dot, or with the whole
/// name, with `_` for its dots.
fn names(file: &Path) -> [String; 2] {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    [stem.split('.').next().unwrap_or_default().to_owned(), stem.replace('.', "_")]
}

/// The files of each namespace.
fn by_namespace<'f>(directory: &Path, files: &'f [PathBuf]) -> BTreeMap<String, Vec<&'f PathBuf>> {
    let mut found: BTreeMap<String, Vec<&PathBuf>> = BTreeMap::new();
    for (file, namespace) in files.iter().zip(dir_namespaces(directory, files, |_| true)) {
        found.entry(namespace.name).or_default().push(file);
    }
    found
}

/// The name of a file without folders, whole and up to its first dot.
fn stems(file: &Path) -> [String; 2] {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let whole = name.rsplit_once('.').map_or(&*name, |(stem, _)| stem);
    let short = name.split_once('.').map_or(&*name, |(stem, _)| stem);
    [whole, short].map(str::to_owned)
}
