//! The lines of a crate's sources that use what a change breaks.
//!
//! Sources are read as tokens: names in comments and texts do not count. Names are not resolved: another item with the
//! same name is taken for it in files that name the operation or its types. A method or a field behind a dot counts in all
//! files that name the module, or the trait of its methods: callers seldom name the types of what they send and get.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ops_codegen::described::Described;
use ops_codegen::is_generated;
use proc_macro2::{TokenStream, TokenTree};

use super::tokens;
use crate::failure::Failure;

/// How many files of a crate are read, and how many bytes each may have.
const MOST: (usize, u64) = (10_000, 4_000_000);

/// A place where a name is used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    pub(super) file: String,
    pub(super) line: usize,
    /// The name, below its module: `shop::ShowPet`, `shop::Pet.name`.
    pub(super) name: String,
}

/// The names in the sources of a crate, with their lines.
pub(super) struct Sources {
    files: Vec<(String, BTreeMap<String, BTreeSet<usize>>)>,
}

impl Sources {
    /// Reads the sources of the crate in a folder, except for generated ones.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        if !folder.is_dir() {
            return Err(Failure::Usage(format!("`{}` is no folder: name that of a crate", folder.display())));
        }
        let mut paths = Vec::new();
        walk(folder, &mut paths);
        paths.sort();
        let mut files = Vec::new();
        for path in paths {
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            let is_large = path.metadata().is_ok_and(|file| file.len() > MOST.1);
            let text = std::fs::read(&path).ok().filter(|text| !is_large && !is_generated(text));
            let text = text.and_then(|text| String::from_utf8(text).ok());
            let Some(tokens) = text.and_then(|text| text.parse::<TokenStream>().ok()) else { continue };
            let mut names = BTreeMap::new();
            collect(tokens, &mut names);
            files.push((name, names));
        }
        Ok(Self { files })
    }

    /// The lines that name what is at a pointer: a field, or else the type around it, or the operations.
    pub(super) fn uses(
        &self,
        namespace: &str,
        operations: &[String],
        pointer: &str,
        described: &Described,
    ) -> Vec<Use> {
        let mut found = BTreeSet::new();
        let of_operation = |id: &String| described.operations.get(id).map(|names| names.name.as_str());
        let methods = described.methods.as_deref().unwrap_or_default();
        let module = BTreeSet::from([described.module.as_str(), methods]);
        let find_method =
            |id: &String, found: &mut BTreeSet<Use>| self.find_method(namespace, id, described, &module, found);
        let mut around: BTreeSet<&str> = BTreeSet::new();
        for id in operations {
            around.extend(of_operation(id));
            let types = ["input", "output"].map(|part| format!("/operations/{}/{part}", escaped(id)));
            around.extend(types.iter().filter_map(|at| described.types.get(at)).map(|names| names.name.as_str()));
        }
        let is_defined = pointer.starts_with("/$defs/");
        let places: Vec<String> = if is_defined {
            vec![pointer.to_owned()]
        } else {
            operations.iter().map(|id| format!("/operations/{}{pointer}", escaped(id))).collect()
        };
        let ids = operations.iter().filter(|_| !is_defined).map(Some).chain(std::iter::repeat(None));
        for (place, id) in places.iter().zip(ids) {
            match field(place, described) {
                Some((type_, ident)) => {
                    around.insert(type_);
                    let name = format!("{namespace}::{type_}.{ident}");
                    self.find(ident, Some(&around), &name, &mut found);
                    self.find(&format!(".{ident}"), Some(&module), &name, &mut found);
                    // A caller that makes a value of the type sets the field, and may pass other values to the method.
                    if pointer.starts_with("/input") {
                        self.find(type_, None, &format!("{namespace}::{type_}"), &mut found);
                        if let Some(id) = id {
                            find_method(id, &mut found);
                        }
                    }
                }
                None => {
                    let type_ = type_at(place, described);
                    let names = type_.into_iter().chain(id.and_then(of_operation));
                    names.for_each(|name| self.find(name, None, &format!("{namespace}::{name}"), &mut found));
                    if let Some(id) = id {
                        find_method(id, &mut found);
                    }
                }
            }
        }
        // A definition whose types are not named is used through its operations.
        if found.is_empty() {
            for id in operations {
                if let Some(name) = of_operation(id) {
                    self.find(name, None, &format!("{namespace}::{name}"), &mut found);
                }
                find_method(id, &mut found);
            }
        }
        found.into_iter().collect()
    }

    /// The lines that may pass values to the constructor of a type: those that name the type, or an operation that has it as
    /// its input and so takes the values as a tuple, too.
    pub(super) fn of_constructor(
        &self,
        namespace: &str,
        operations: &[String],
        type_: &str,
        described: &Described,
    ) -> Vec<Use> {
        let mut found = BTreeSet::new();
        self.find(type_, None, &format!("{namespace}::{type_}"), &mut found);
        let module = BTreeSet::from([described.module.as_str(), described.methods.as_deref().unwrap_or_default()]);
        for id in operations {
            if let Some(names) = described.operations.get(id).filter(|names| names.input == type_) {
                self.find(&names.name, None, &format!("{namespace}::{}", names.name), &mut found);
                self.find_method(namespace, id, described, &module, &mut found);
            }
        }
        found.into_iter().collect()
    }

    /// The lines that name the errors which operations declare.
    pub(super) fn of_errors(&self, namespace: &str, operations: &[String], described: &Described) -> Vec<Use> {
        let mut found = BTreeSet::new();
        let errors = operations.iter().filter_map(|id| described.operations.get(id)?.errors.as_deref());
        errors.for_each(|name| self.find(name, None, &format!("{namespace}::{name}"), &mut found));
        found.into_iter().collect()
    }

    /// Finds the method of an operation, in files that have one of the names of its module.
    fn find_method(
        &self,
        namespace: &str,
        id: &str,
        described: &Described,
        module: &BTreeSet<&str>,
        found: &mut BTreeSet<Use>,
    ) {
        if let Some(names) = described.operations.get(id) {
            let methods = described.methods.as_deref().unwrap_or_default();
            let name = format!("{namespace}::{methods}::{}", names.method);
            self.find(&format!(".{}", names.method), Some(module), &name, found);
        }
    }

    /// Finds a name, in files that have one of the names around it if they are given.
    fn find(&self, ident: &str, around: Option<&BTreeSet<&str>>, name: &str, found: &mut BTreeSet<Use>) {
        for (file, names) in &self.files {
            if around.is_some_and(|around| !around.iter().any(|name| names.contains_key(*name))) {
                continue;
            }
            for line in names.get(ident).into_iter().flatten() {
                found.insert(Use { file: file.clone(), line: *line, name: name.to_owned() });
            }
        }
    }
}

/// The type and the field of the property at a place, or of the nearest one around it.
fn field<'d>(place: &str, described: &'d Described) -> Option<(&'d str, &'d str)> {
    let mut tokens = tokens(place);
    loop {
        let at = tokens.iter().rposition(|token| token == "properties")?;
        let name = tokens.get(at + 1).cloned();
        tokens.truncate(at);
        let type_ = described.types.get(&joined(&tokens));
        let found = type_.zip(name).and_then(|(type_, name)| {
            let field = type_.fields.iter().find(|field| field.json == name)?;
            Some((type_.name.as_str(), field.ident.as_str()))
        });
        if found.is_some() {
            return found;
        }
    }
}

/// The type at a place, or around it.
fn type_at<'d>(place: &str, described: &'d Described) -> Option<&'d str> {
    let mut tokens = tokens(place);
    while !tokens.is_empty() {
        if let Some(type_) = described.types.get(&joined(&tokens)) {
            return Some(&type_.name);
        }
        tokens.pop();
    }
    None
}

fn joined(tokens: &[String]) -> String {
    tokens.iter().map(|token| format!("/{}", escaped(token))).collect()
}

fn escaped(name: &str) -> std::borrow::Cow<'_, str> {
    ops_runtime::spec::pointer::escaped(name)
}

/// Adds the Rust files below a folder, except for those that cargo or a version control system keeps.
fn walk(folder: &Path, paths: &mut Vec<PathBuf>) {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            // A link could lead in a circle.
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && name != "target" && !name.starts_with('.') {
                open.push(path);
            } else if kind.is_file() && name.ends_with(".rs") && paths.len() < MOST.0 {
                paths.push(path);
            }
        }
    }
}

/// Adds the identifiers with their lines; those behind a dot also with the dot.
fn collect(tokens: TokenStream, names: &mut BTreeMap<String, BTreeSet<usize>>) {
    // An explicit stack: groups may be nested deeper than the thread's stack allows. With the dots before the next token.
    let mut open = vec![(tokens.into_iter(), 0_usize)];
    while let Some((tokens, dots)) = open.last_mut() {
        let before = std::mem::take(dots);
        match tokens.next() {
            None => drop(open.pop()),
            Some(TokenTree::Group(group)) => open.push((group.stream().into_iter(), 0)),
            Some(TokenTree::Ident(ident)) => {
                let (name, line) = (ident.to_string(), ident.span().start().line);
                // Two dots are a range, or the rest of a struct.
                if before == 1 {
                    names.entry(format!(".{name}")).or_default().insert(line);
                }
                names.entry(name).or_default().insert(line);
            }
            Some(TokenTree::Punct(punct)) if punct.as_char() == '.' => *dots = before + 1,
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_they_are_code() {
        let text =
            "use shop::Pet; // ShowPet\nfn f(pet: Pet) {\n  let r#type = \"ShowPet\";\n  m!(ShowPet, pet.name);\n}";
        let mut names = BTreeMap::new();
        collect(text.parse().unwrap(), &mut names);
        let lines = |name: &str| names.get(name).map(|lines| lines.iter().copied().collect::<Vec<_>>());
        assert_eq!(lines("Pet"), Some(vec![1, 2]));
        assert_eq!(lines("ShowPet"), Some(vec![4]));
        assert_eq!((lines("name"), lines("r#type")), (Some(vec![4]), Some(vec![3])));
        assert_eq!((lines(".name"), lines(".Pet")), (Some(vec![4]), None));
        let mut names = BTreeMap::new();
        collect("f(0..list, Pet { ..rest }); client\n  .list()\n  .rest".parse().unwrap(), &mut names);
        let lines = |name: &str| names.get(name).map(|lines| lines.iter().copied().collect::<Vec<_>>());
        assert_eq!((lines(".list"), lines(".rest"), lines("list")), (Some(vec![2]), Some(vec![3]), Some(vec![1, 2])));
    }
}
