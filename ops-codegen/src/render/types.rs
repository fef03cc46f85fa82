//! Enums and unions.

use serde_json::Value;

use super::text::string;
use super::{Renderer, derived, docs};
use crate::kinds::{Kind, kinds};
use crate::names::rest;
use crate::types::{Constant, Item, Tagged, Type, Variant};

impl Renderer<'_> {
    pub(super) fn names(&mut self, item: &Item, constants: &[Constant]) {
        let other = self.prelude("String");
        self.constants(item, constants, ", Eq, Hash", other);
        self.impls(&table(&format!("ops::names!(super::{} {{", item.name), constants));
    }

    pub(super) fn values(&mut self, item: &Item, constants: &[Constant]) {
        self.constants(item, constants, "", "ops::Value");
        self.impls(&table(&format!("ops::values!(super::{} {{", item.name), constants));
    }

    fn constants(&mut self, item: &Item, constants: &[Constant], derives: &str, other: &str) {
        let idents: Vec<&str> = constants.iter().map(|constant| constant.ident.as_str()).collect();
        let rest = rest(idents.iter().copied());
        let docs: Vec<String> = constants.iter().map(docs::of_constant).collect();
        let mut source = docs::of(item);
        let silent = source.is_empty() || docs.iter().any(String::is_empty);
        source.push_str(&derived(&format!("Debug, Clone, PartialEq{derives}"), &item.derives));
        source.push_str(&allowed(&item.name, &idents, false, silent));
        source.push_str(&format!("pub enum {} {{\n", item.name));
        for (constant, docs) in constants.iter().zip(&docs) {
            source.push_str(&docs::inner(docs));
            source.push_str(&format!("    {},\n", constant.ident));
        }
        source.push_str(&docs::inner(&docs::line("Any other value.")));
        source.push_str(&format!("    {rest}({other}),\n}}"));
        self.push(&source);
    }

    pub(super) fn tagged(&mut self, item: &Item, tagged: &Tagged) {
        let variants: Vec<&Variant> = tagged.variants.iter().map(|tagged| &tagged.variant).collect();
        let rest = rest(variants.iter().map(|variant| variant.ident.as_str()));
        let other = docs::line("An object with any other tag.") + &format!("{rest}(ops::Value),");
        self.variants(item, &variants, &other);
        let mut lines = format!("ops::tagged!(super::{}[{}] {{\n", item.name, string(&tagged.property));
        for variant in &tagged.variants {
            let tags: Vec<String> = variant.tags.iter().map(scalar).collect();
            let own = if self.is_record(&variant.variant.type_) { "" } else { "(_)" };
            lines.push_str(&format!("    {} => {}{own},\n", tags.join(" | "), variant.variant.ident));
        }
        lines.push_str(&format!("    _ => {rest},\n}});"));
        self.impls(&lines);
        self.variants_of(item, &variants);
    }

    /// False for a type of the user's, which only serde can read.
    fn is_record(&self, type_: &Type) -> bool {
        !matches!(self.module.types.resolve(type_), Type::Custom(_))
    }

    pub(super) fn union(&mut self, item: &Item, variants: &[Variant]) {
        let all: Vec<&Variant> = variants.iter().collect();
        self.variants(item, &all, "");
        let mut lines = format!("ops::untagged!(super::{} {{\n", item.name);
        for variant in variants {
            let shapes: Vec<String> = kinds(&self.module.types, &variant.type_).iter().map(shape).collect();
            lines.push_str(&format!("    {} => {},\n", shapes.join(" | "), variant.ident));
        }
        lines.push_str("});");
        self.impls(&lines);
        self.variants_of(item, &all);
    }

    fn variants(&mut self, item: &Item, variants: &[&Variant], other: &str) {
        let idents: Vec<&str> = variants.iter().map(|variant| variant.ident.as_str()).collect();
        let docs: Vec<String> = variants.iter().map(|variant| docs::of_variant(variant)).collect();
        let mut source = docs::of(item);
        let silent = source.is_empty() || docs.iter().any(String::is_empty);
        source.push_str(&derived("Debug, Clone, PartialEq", &item.derives));
        source.push_str(&allowed(&item.name, &idents, true, silent));
        source.push_str(&format!("pub enum {} {{\n", item.name));
        for (variant, docs) in variants.iter().zip(&docs) {
            let type_ = self.type_(&variant.type_);
            source.push_str(&docs::inner(docs));
            source.push_str(&format!("    {}({type_}),\n", variant.ident));
        }
        source.push_str(&docs::inner(other));
        source.push('}');
        self.push(&source);
    }
}

/// The lints that names, sizes and silence of the document would trigger.
pub(super) fn allowed(name: &str, variants: &[&str], union: bool, silent: bool) -> String {
    let mut lints = Vec::new();
    if silent {
        lints.push("missing_docs");
    }
    let repeats = |variant: &&str| variant.starts_with(name) || variant.ends_with(name);
    if union || variants.iter().any(repeats) {
        lints.push("clippy::enum_variant_names");
    }
    if union {
        lints.push("clippy::large_enum_variant");
    }
    if lints.is_empty() { String::new() } else { format!("#[allow({})]\n", lints.join(", ")) }
}

fn table(start: &str, constants: &[Constant]) -> String {
    let mut lines = format!("{start}\n");
    for constant in constants {
        lines.push_str(&format!("    {} => {},\n", scalar(&constant.value), constant.ident));
    }
    let rest = rest(constants.iter().map(|constant| constant.ident.as_str()));
    lines.push_str(&format!("    _ => {rest},\n}});"));
    lines
}

/// A scalar as a literal.
pub(super) fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        Value::Number(number) if !number.is_i64() => format!("{:?}", number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

fn shape(kind: &Kind) -> String {
    let list = |names: &[String]| names.iter().map(|name| string(name)).collect::<Vec<_>>().join(", ");
    match (kind.needs.is_empty(), kind.knows.is_empty()) {
        (true, true) => kind.name.to_owned(),
        (false, true) => format!("{}[{}]", kind.name, list(&kind.needs)),
        _ => format!("{}[{}; {}]", kind.name, list(&kind.needs), list(&kind.knows)),
    }
}
