//! Lists that many operations have in common, printed once: security, the variables of servers.

/// The lists, each with its name and its type, in the order in which operations use them.
#[derive(Debug, Default)]
pub(super) struct Tables {
    lists: Vec<Table>,
}

#[derive(Debug)]
struct Table {
    name: String,
    type_: &'static str,
    items: Vec<String>,
}

impl Tables {
    /// The path of a list of these items, which is printed among the impls: there are no names of the document.
    pub(super) fn share(&mut self, name: &str, type_: &'static str, items: impl Iterator<Item = String>) -> String {
        let items: Vec<String> = items.collect();
        if let Some(table) = self.lists.iter().find(|table| table.type_ == type_ && table.items == items) {
            return format!("impls::{}", table.name);
        }
        let count = self.lists.iter().filter(|table| table.type_ == type_).count() + 1;
        let name = format!("{name}_{count}");
        let path = format!("impls::{name}");
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
