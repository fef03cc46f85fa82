//! The trait whose methods run a module's operations, with an index of them by tag.

use std::collections::HashMap;

use ops_runtime::spec::OperationKind;

use super::{Renderer, docs};
use crate::module::Operation;
use crate::types::{Shape, Type};

impl Renderer<'_> {
    pub(super) fn methods(&mut self) {
        let Some(name) = &self.module.methods else { return };
        let mut source = docs::line("The operations of this module as methods of clients, registries and mocks.");
        source.push_str(&self.index());
        // The including code need not use all of them.
        source.push_str("#[allow(dead_code, deprecated)]\n");
        source.push_str(&format!("pub trait {name}: ops::Caller + {} {{\n", self.prelude("Sized")));
        for operation in &self.module.operations {
            source.push_str(&docs::inner(&self.method(operation)));
        }
        source.push_str(&format!("}}\nimpl<C: ops::Caller> {name} for C {{}}"));
        self.push(&format!("ops::methods! {{\n{source}\n}}"));
    }

    fn method(&self, operation: &Operation) -> String {
        let Operation { spec, name, method, .. } = operation;
        let mut source = docs::first(spec);
        if spec.deprecated {
            source.push_str("#[deprecated]\n");
        }
        let made = if spec.kind == OperationKind::Subscription { "Open" } else { "Execute" };
        let (input, value) = match &operation.input {
            Type::Named(id) if self.is_empty(*id) => (String::new(), format!("{} {{}}", self.name(*id))),
            input => (format!(", input: impl {}<{}>", self.prelude("Into"), self.type_(input)), "input".to_owned()),
        };
        source.push_str(&format!(
            "fn {method}(&self{input}) -> ops::{made}<'_, Self, {name}> {{\n    ops::{made}::new(self, {value})\n}}"
        ));
        source
    }

    /// True for a record without properties: there is nothing to say.
    fn is_empty(&self, id: usize) -> bool {
        let shape = self.module.types.get(id).map(|item| &item.shape);
        matches!(shape, Some(Shape::Record(record)) if record.fields.is_empty() && record.extra.is_none())
    }

    /// The methods by their operations' first tags, in the order of the document; empty where there are no tags.
    fn index(&self) -> String {
        if self.module.operations.iter().all(|operation| operation.spec.tags.is_empty()) {
            return String::new();
        }
        let tag = |operation: &Operation| operation.spec.tags.iter().next().map(str::to_owned);
        let mut known: HashMap<Option<String>, usize> = HashMap::new();
        let mut tags: Vec<Option<String>> = Vec::new();
        let mut lines: Vec<String> = Vec::new();
        for operation in &self.module.operations {
            let at = *known.entry(tag(operation)).or_insert_with(|| {
                tags.push(tag(operation));
                lines.push(String::new());
                tags.len() - 1
            });
            let summary = docs::summary(&operation.spec);
            if let Some(lines) = lines.get_mut(at) {
                let link = format!("- [`{0}`](Self::{0})", operation.method);
                lines.push_str(&docs::line(&if summary.is_empty() { link } else { format!("{link}: {summary}") }));
            }
        }
        let mut index = String::new();
        for (tag, lines) in tags.iter().zip(&lines) {
            if let Some(tag) = tag {
                index.push_str(&docs::line(""));
                index.push_str(&docs::heading(tag));
            } else {
                index.push_str(&docs::line(""));
                index.push_str(&docs::heading("Without a tag"));
            }
            index.push_str(&docs::line(""));
            index.push_str(lines);
        }
        index
    }
}
