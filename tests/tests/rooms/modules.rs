//! The modules of a crate: what each defines, and what its names stand for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use syn::{Item, ItemMod, UseTree, Visibility};

/// A path of modules from the crate's root.
pub(crate) type Place = Vec<String>;

/// A module.
pub(crate) struct Module {
    /// Its file, relative to the sources.
    pub(crate) file: String,
    pub(crate) items: Vec<Item>,
    defined: BTreeSet<String>,
    aliases: HashMap<String, Place>,
    globs: Vec<Place>,
}

/// All modules of a crate.
pub(crate) struct Modules {
    all: BTreeMap<Place, Module>,
    folders: BTreeSet<String>,
    /// Macros that are exported stand at the root, wherever they are written.
    macros: HashMap<String, Place>,
}

impl Modules {
    /// Reads all files under a folder.
    pub(crate) fn read(sources: &Path) -> Result<Self, String> {
        let mut modules = Self { all: BTreeMap::new(), folders: BTreeSet::new(), macros: HashMap::new() };
        modules.folder(sources, &mut Vec::new())?;
        Ok(modules)
    }

    fn folder(&mut self, folder: &Path, place: &mut Place) -> Result<(), String> {
        let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|error| error.to_string())?.path();
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if path.is_dir() {
                // The programs are faces of their own.
                if name == "bin" {
                    continue;
                }
                place.push(name);
                self.folders.insert(place.join("/"));
                self.folder(&path, place)?;
                place.pop();
            } else if name != "tests" && path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                let file = syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
                let (mut inner, mut shown) = (place.clone(), place.clone());
                shown.push(format!("{name}.rs"));
                if name != "lib" {
                    inner.push(name);
                }
                self.module(inner, &shown.join("/"), file.items);
            }
        }
        Ok(())
    }

    fn module(&mut self, place: Place, file: &str, items: Vec<Item>) {
        let mut module = Module {
            file: file.to_owned(),
            items: Vec::new(),
            defined: BTreeSet::new(),
            aliases: HashMap::new(),
            globs: Vec::new(),
        };
        for item in items {
            if is_test(&item) {
                continue;
            }
            match item {
                Item::Mod(ItemMod { ident, content: Some((_, items)), .. }) => {
                    let mut inner = place.clone();
                    inner.push(ident.to_string());
                    self.module(inner, file, items);
                }
                Item::Use(item) => {
                    let mut prefix = Vec::new();
                    module.names(&item.tree, &mut prefix);
                    module.items.push(Item::Use(item));
                }
                item => {
                    if let Some(name) = name_of(&item) {
                        if let Item::Macro(found) = &item
                            && found.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
                        {
                            self.macros.insert(name.clone(), place.clone());
                        }
                        module.defined.insert(name);
                    }
                    module.items.push(item);
                }
            }
        }
        self.all.insert(place, module);
    }

    /// All modules with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Place, &Module)> {
        self.all.iter()
    }

    /// Whether there is a folder of that path.
    pub(crate) fn is_folder(&self, path: &str) -> bool {
        self.folders.contains(path)
    }

    /// The file of what a path means that is written in a module; none if it leads out of the crate.
    pub(crate) fn file_of(&self, from: &Place, path: &[String]) -> Option<&str> {
        let place = self.resolve(from, path, &mut Vec::new())?;
        self.all.get(&place).map(|module| module.file.as_str())
    }

    fn resolve(&self, from: &Place, path: &[String], open: &mut Vec<(Place, Vec<String>)>) -> Option<Place> {
        let key = (from.clone(), path.to_vec());
        // A name of another crate may stand for itself.
        if open.len() > 16 || open.contains(&key) {
            return None;
        }
        open.push(key);
        let found = self.resolved(from, path, open);
        open.pop();
        found
    }

    fn resolved(&self, from: &Place, path: &[String], open: &mut Vec<(Place, Vec<String>)>) -> Option<Place> {
        let mut place = from.clone();
        let mut rest = path;
        let mut is_relative = false;
        while let Some((first, after)) = rest.split_first() {
            match first.as_str() {
                "crate" | "$crate" => place.clear(),
                "self" => {}
                "super" => drop(place.pop()),
                _ => break,
            }
            (rest, is_relative) = (after, true);
        }
        loop {
            let Some((name, after)) = rest.split_first() else { return Some(place) };
            let module = self.all.get(&place)?;
            let mut inner = place.clone();
            inner.push(name.clone());
            if self.all.contains_key(&inner) {
                (place, rest) = (inner, after);
                continue;
            }
            if module.defined.contains(name) {
                return Some(place);
            }
            if let Some(target) = module.aliases.get(name) {
                let mut target = target.clone();
                target.extend(after.iter().cloned());
                return self.resolve(&place, &target, open);
            }
            if place.is_empty()
                && is_relative
                && let Some(place) = self.macros.get(name)
            {
                return Some(place.clone());
            }
            return module.globs.iter().find_map(|glob| {
                let mut target = glob.clone();
                target.extend(rest.iter().cloned());
                self.resolve(&place, &target, open)
            });
        }
    }
}

impl Module {
    fn names(&mut self, tree: &UseTree, prefix: &mut Place) {
        for (target, name) in leaves(tree, prefix) {
            match name {
                Some(name) => drop(self.aliases.insert(name, target)),
                None => self.globs.push(target),
            }
        }
    }
}

/// What a `use` imports, and by which name; without one where it is all there is.
pub(crate) fn leaves(tree: &UseTree, prefix: &mut Place) -> Vec<(Place, Option<String>)> {
    let with = |prefix: &Place, name: String| {
        let mut path = prefix.clone();
        if name != "self" {
            path.push(name);
        }
        path
    };
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            let leaves = leaves(&path.tree, prefix);
            prefix.pop();
            leaves
        }
        UseTree::Name(name) => {
            let path = with(prefix, name.ident.to_string());
            let last = path.last().cloned();
            vec![(path, last)]
        }
        UseTree::Rename(name) => vec![(with(prefix, name.ident.to_string()), Some(name.rename.to_string()))],
        UseTree::Glob(_) => vec![(prefix.clone(), None)],
        UseTree::Group(group) => group.items.iter().flat_map(|tree| leaves(tree, prefix)).collect(),
    }
}

/// Whether a `use` re-exports what it imports.
pub(crate) fn is_reexport(visibility: &Visibility) -> bool {
    !matches!(visibility, Visibility::Inherited)
}

fn attributes(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_test(item: &Item) -> bool {
    attributes(item).iter().any(|attribute| {
        let is_test = |meta: &syn::Meta| match meta {
            syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
            _ => false,
        };
        is_test(&attribute.meta)
    })
}

fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        _ => return None,
    })
}
