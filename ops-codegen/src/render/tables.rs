//! Lists that many operations share, printed once: security, the variables of servers.

use std::collections::HashMap;

/// The lists, each with its name and its type, in the order in which operations use them.
#[derive(Debug, Default)]
pub(super) struct Tables {
    lists: Vec<Table>,
    /// The positions of lists, by their types and items.
    known: HashMap<(&'static str, Vec<String>), usize>,
    /// How many lists there are of a type.
    counts: HashMap<&'static str, usize>,
}

#[derive(Debug)]
struct Table {
    name: String,
    type_: &'static str,
    items: Vec<String>,
}

impl Tables {
    /// The path of a list of these items, which is printed among the impls, without names of the document.
    pub(super) fn share(&mut self, name: &str, type_: &'static str, items: impl Iterator<Item = String>) -> String {
        let items: Vec<String> = items.collect();
        if let Some(table) = self.known.get(&(type_, items.clone())).and_then(|at| self.lists.get(*at)) {
            return format!("impls::{}", table.name);
        }
        let count = self.counts.entry(type_).or_default();
        *count += 1;
        let name = format!("{name}_{count}");
        let path = format!("impls::{name}");
        self.known.insert((type_, items.clone()), self.lists.len());
        self.lists.push(Table { name, type_, items });
        path
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// All lists, as items of the module of impls.
    pub(super) fn print(&self) -> String {
        let mut source = String::new();
        for Table { name, type_, items } in &self.lists {
            source.push_str(&format!("\n    pub(super) const {name}: &[{type_}] = &[\n"));
            for item in items {
                source.push_str(&format!("        {item},\n"));
            }
            source.push_str("    ];\n");
        }
        source
    }
}
