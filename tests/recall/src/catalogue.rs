//! The operations of directories, and what they are called.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ops_runtime::openapi::{ReadOptions, dir_namespaces, load_dir};
use ops_runtime::spec::{Api, OperationSpec};

/// The operations of several directories, each document in a namespace of its own.
pub(crate) struct Catalogue {
    apis: Vec<Api>,
    ids: BTreeSet<String>,
    /// What else the operations may be called: by the name of their document's file, whole or up to its first dot.
    others: BTreeMap<String, Vec<String>>,
}

impl Catalogue {
    /// Reads every document of the directories, as `ops` does: namespaces are the names of their files.
    pub(crate) fn read(directories: &[String]) -> Result<Self, String> {
        let mut catalogue = Self { apis: Vec::new(), ids: BTreeSet::new(), others: BTreeMap::new() };
        let mut taken = BTreeSet::new();
        for directory in directories {
            let read = load_dir(directory, &ReadOptions::new()).map_err(|error| format!("{directory}: {error}"))?;
            let stems = stems(Path::new(directory), &read.files);
            for (namespace, mut api) in read.apis {
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
                    for stem in stems.get(&namespace).into_iter().flatten().chain([&namespace]) {
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

    /// The ids of the operations that are called so: one, unless several documents have names that begin alike.
    pub(crate) fn find(&self, id: &str) -> Vec<String> {
        if self.ids.contains(id) {
            return vec![id.to_owned()];
        }
        self.others.get(id).cloned().unwrap_or_default()
    }
}

/// The names of the files without folders, whole and up to their first dots, by their namespaces.
fn stems(directory: &Path, files: &[std::path::PathBuf]) -> BTreeMap<String, BTreeSet<String>> {
    let mut stems: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, namespace) in files.iter().zip(dir_namespaces(directory, files, |_| true)) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let whole = name.rsplit_once('.').map_or(&*name, |(stem, _)| stem);
        let short = name.split_once('.').map_or(&*name, |(stem, _)| stem);
        let own = stems.entry(namespace.name).or_default();
        own.extend([whole, short].map(str::to_owned));
    }
    stems
}
