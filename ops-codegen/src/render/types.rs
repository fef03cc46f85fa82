//! Enums and unions.

use std::collections::HashMap;

use ops_runtime::spec::Diagnostic;
use serde_json::Value;

use super::text::string;
use super::{Renderer, derived, docs};
use crate::kinds::{Kind, kinds_of};
use crate::module::Module;
use crate::names::rest;
use crate::types::{Constant, Item, Record, Shape, Tagged, TaggedVariant, Type, Types, Variant};

/// How many unions, and values of each, a property's documentation names.
const NAMED: usize = 3;

/// Sentences about the properties by which tagged unions select their variants, by the names of the type and the
/// property.
pub(super) fn tags(module: &Module) -> HashMap<(&str, &str), Vec<String>> {
    let mut found: HashMap<(&str, &str), Vec<String>> = HashMap::new();
    for item in &module.types.items {
        let Shape::Tagged(tagged) = &item.shape else { continue };
        for TaggedVariant { tags, is_default, variant } in &tagged.variants {
            let (Type::Named(id) | Type::Boxed(id)) = module.types.resolve(&variant.type_) else { continue };
            let Some(record) = module.types.get(*id) else { continue };
            let Shape::Record(Record { fields, .. }) = &record.shape else { continue };
            let Some(field) = fields.iter().find(|field| field.json == tagged.property) else { continue };
            if is_one_of(&module.types, &field.type_, tags) {
                continue;
            }
            let values: Vec<String> = tags.iter().take(NAMED).map(docs::value).collect();
            let more = if values.len() < tags.len() { ", .." } else { "" };
            let unset = match (is_default, field.is_optional()) {
                (true, _) => " or any other",
                (false, true) => ", also if it is `None`",
                (false, false) => "",
            };
            let said = found.entry((&record.name, &field.json)).or_default();
            if said.len() < NAMED {
                said.push(format!("In [`{}`]: {}{more}{unset}.", item.name, values.join(" or ")));
            }
        }
    }
    found
}

/// True if a type has no other values than these.
fn is_one_of(types: &Types, type_: &Type, values: &[Value]) -> bool {
    let Type::Named(id) = types.resolve(type_) else { return false };
    match types.get(*id).map(|item| &item.shape) {
        Some(Shape::Names(constants) | Shape::Values(constants)) => {
            constants.iter().all(|constant| values.contains(&constant.value))
        }
        _ => false,
    }
}

impl Renderer<'_> {
    pub(super) fn names(&mut self, item: &Item, constants: &[Constant]) {
        let other = self.prelude("String");
        self.constants(item, constants, ", Eq, Hash", other);
        let end = if self.module.types.open.contains(&item.pointer) { "} open = true);" } else { "});" };
        self.impls(&table(&format!("ops::names!(super::{} {{", item.name), constants, end));
    }

    pub(super) fn values(&mut self, item: &Item, constants: &[Constant]) {
        self.constants(item, constants, "", "ops::Value");
        self.impls(&table(&format!("ops::values!(super::{} {{", item.name), constants, "});"));
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
        let default = tagged.variants.iter().find(|variant| variant.is_default).map(|variant| &variant.variant);
        if let Some(default) = default.filter(|default| self.is_record(&default.type_)) {
            lines.push_str(&format!("    else {},\n", default.ident));
        }
        lines.push_str(&format!("    _ => {rest},\n}});"));
        self.impls(&lines);
        self.variants_of(item, &variants);
    }

    /// False for a type of the user's, which only serde can read.
    fn is_record(&self, type_: &Type) -> bool {
        !matches!(self.module.types.resolve(type_), Type::Custom(_))
    }

    #[inline(never)]
    pub(super) fn union(&mut self, item: &Item, variants: &[Variant]) {
        let all: Vec<&Variant> = variants.iter().collect();
        self.variants(item, &all, "");
        let mut lines = format!("ops::untagged!(super::{} {{\n", item.name);
        for (variant, shapes) in variants.iter().zip(self.shapes(item, variants)) {
            lines.push_str(&format!("    {shapes} => {},\n", variant.ident));
        }
        lines.push('}');
        lines.push_str(&successes(variants));
        lines.push_str(");");
        self.impls(&lines);
        self.variants_of(item, &all);
    }

    /// The shapes of each variant, as the union's table has them.
    fn shapes(&mut self, item: &Item, variants: &[Variant]) -> Vec<String> {
        let had = self.names;
        let mut all = self.shapes_of(variants);
        if had > 0 && self.names == 0 {
            // Beside shapes that declare something, a variant of any shape would not be tried.
            all = self.shapes_of(variants);
            let message = "the unions of the document, with the properties of their variants, are too large together";
            let help = "from this union on, variants with properties are tried in the order of the document";
            self.diagnostics.push(Diagnostic::warning(&item.pointer, message).with_help(help));
        }
        all
    }

    fn shapes_of(&mut self, variants: &[Variant]) -> Vec<String> {
        let (types, names) = (&self.module.types, &mut self.names);
        let shapes = |variant: &Variant| kinds_of(types, &variant.type_, names).iter().map(shape).collect::<Vec<_>>();
        variants.iter().map(shapes).map(|shapes| shapes.join(" | ")).collect()
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

/// The positions of the variants that each success may be; nothing if the union is not one of successes.
fn successes(variants: &[Variant]) -> String {
    let Some(last) = variants.iter().flat_map(|variant| &variant.successes).max() else { return String::new() };
    let of = |success: u16| {
        let found = variants.iter().enumerate().filter(|(_, variant)| variant.successes.contains(&success));
        let found: Vec<String> = found.map(|(at, _)| at.to_string()).collect();
        format!("[{}]", found.join(", "))
    };
    let all: Vec<String> = (0..=*last).map(of).collect();
    format!(" by [{}]", all.join(", "))
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

fn table(start: &str, constants: &[Constant], end: &str) -> String {
    let mut lines = format!("{start}\n");
    for constant in constants {
        lines.push_str(&format!("    {} => {},\n", scalar(&constant.value), constant.ident));
    }
    let rest = rest(constants.iter().map(|constant| constant.ident.as_str()));
    lines.push_str(&format!("    _ => {rest},\n{end}"));
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
    let name = if kind.keeps { "Open" } else { kind.name };
    match (kind.needs.is_empty(), kind.knows.is_empty()) {
        (true, true) => name.to_owned(),
        (false, true) => format!("{name}[{}]", list(&kind.needs)),
        _ => format!("{name}[{}; {}]", list(&kind.needs), list(&kind.knows)),
    }
}
