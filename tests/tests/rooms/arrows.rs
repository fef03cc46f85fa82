//! What the files of a crate name of each other.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{Item, ItemUse, Macro};

use crate::modules::{Modules, Place, is_reexport, leaves};

/// For each file, the others that it takes something from.
pub(crate) fn arrows(modules: &Modules) -> BTreeMap<String, BTreeSet<String>> {
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (place, module) in modules.iter() {
        let mut paths = Paths::default();
        module.items.iter().for_each(|item| paths.visit_item(item));
        let to = arrows.entry(module.file.clone()).or_default();
        for path in paths.found {
            let file = modules.file_of(place, &path).filter(|file| **file != *module.file);
            to.extend(file.map(str::to_owned));
        }
    }
    arrows
}

/// The paths in code.
#[derive(Default)]
struct Paths {
    found: BTreeSet<Place>,
}

impl Paths {
    /// Paths in the arguments of a macro, which is not parsed: names with two colons between them.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Place = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) if path.is_empty() || colons == 2 => {
                    path.push(name.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Ident(name) => {
                    self.keep(&mut path);
                    path.push(name.to_string());
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => {
                    self.keep(&mut path);
                    self.tokens(group.stream());
                }
                _ => self.keep(&mut path),
            }
            colons = 0;
        }
        self.keep(&mut path);
    }

    fn keep(&mut self, path: &mut Place) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.found.insert(path);
        }
    }
}

impl<'a> Visit<'a> for Paths {
    fn visit_item(&mut self, item: &'a Item) {
        syn::visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        if !is_reexport(&item.vis) {
            let leaves = leaves(&item.tree, &mut Vec::new());
            self.found.extend(leaves.into_iter().map(|(path, _)| path));
        }
    }

    // Who may use something needs nothing of them.
    fn visit_vis_restricted(&mut self, _: &'a syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none() && path.segments.len() > 1 {
            self.found.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, found: &'a Macro) {
        self.visit_path(&found.path);
        self.tokens(found.tokens.clone());
    }

    fn visit_item_mod(&mut self, _: &'a syn::ItemMod) {}
}
