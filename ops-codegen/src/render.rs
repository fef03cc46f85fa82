//! From the module's model to Rust source, item by item.

mod construct;
mod declared_errors;
mod docs;
mod layout;
mod methods;
mod operation;
mod record;
mod server;
mod tables;
mod text;
mod types;
mod webhooks;

use std::collections::{HashMap, HashSet};

use crate::derive::Derive;
use crate::kinds::budget;
use crate::module::{Module, Operation};
use crate::output::HEAD;
use crate::types::{Shape, Type};
use ops_runtime::spec::{Diagnostic, pointer};
use tables::Tables;

/// The source of a module: a plain module body without inner attributes.
///
/// Its large parts have one caller each, and are not inlined: one large function would take long to compile.
pub(crate) fn render(module: &Module, runtime: &str, diagnostics: &mut Vec<Diagnostic>) -> String {
    let mut renderer = Renderer::new(module);
    renderer.header(runtime);
    renderer.operations();
    renderer.errors();
    renderer.methods();
    renderer.server();
    for item in &module.types.items {
        renderer.item(item);
    }
    renderer.webhooks();
    renderer.schemas();
    renderer.close(runtime);
    renderer.definitions();
    diagnostics.append(&mut renderer.diagnostics);
    renderer.out
}

/// A type of a module, as its source has it.
#[cfg(feature = "cli")]
pub(crate) fn type_text(module: &Module, type_: &Type) -> String {
    Renderer::new(module).type_(type_)
}

struct Renderer<'a> {
    module: &'a Module,
    out: String,
    /// The impls of all types, which are in a module of their own, without the document's names in scope. So its types
    /// may be called `Result` and its operations `None`.
    impls: String,
    has_records: bool,
    /// The names of the types that are inputs of operations.
    inputs: HashSet<&'a str>,
    /// The lists that operations share.
    tables: Tables,
    /// What is said of properties by which unions tell their variants apart, by the names of the type and the property.
    tags: HashMap<(&'a str, &'a str), Vec<String>>,
    /// How many names of properties the shapes of unions may still have.
    names: usize,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Renderer<'a> {
    fn new(module: &'a Module) -> Self {
        let input = |operation: &'a Operation| match &operation.input {
            Type::Named(id) => module.types.get(*id).map(|item| item.name.as_str()),
            _ => None,
        };
        Self {
            module,
            out: String::new(),
            impls: String::new(),
            has_records: false,
            inputs: module.operations.iter().filter_map(input).collect(),
            tables: Tables::default(),
            tags: types::tags(module),
            names: budget(&module.types),
            diagnostics: Vec::new(),
        }
    }
}

impl Renderer<'_> {
    fn header(&mut self, runtime: &str) {
        self.out.push_str(&format!("{HEAD}\n\nuse {runtime}::__generated as ops;\n"));
    }

    /// Adds an item behind an empty line.
    fn push(&mut self, source: &str) {
        self.out.push('\n');
        self.lines(source);
    }

    /// Adds lines.
    fn lines(&mut self, lines: &str) {
        self.out.push_str(lines);
        self.out.push('\n');
    }

    /// Adds to the module of impls.
    fn impls(&mut self, source: &str) {
        self.impls.push('\n');
        for line in source.lines() {
            self.impls.push_str("    ");
            self.impls.push_str(line);
            self.impls.push('\n');
        }
    }

    /// Gives the types of definitions their schemas; an alias has that of its target.
    fn schemas(&mut self) {
        let specs = self.module.operations.iter().map(|operation| &operation.spec);
        let Some(spec) = specs.chain(self.module.webhooks.iter().map(|it| &it.spec)).next() else { return };
        let mut lines = String::new();
        for item in &self.module.types.items {
            let name = item.pointer.strip_prefix("/$defs/").filter(|name| !name.contains('/'));
            // A schema of the user's own derive takes the place of ours.
            let derives_it = item.derives.iter().any(|derive| derive.text().ends_with("::JsonSchema"));
            let has_none = derives_it || matches!(item.shape, Shape::Alias(_) | Shape::Pending);
            if let (Some(name), false) = (name, has_none) {
                let name = text::string(&pointer::unescaped(name));
                lines.push_str(&format!("    super::{} = {name},\n", item.name));
            }
        }
        if !lines.is_empty() {
            let namespace = text::string(spec.namespace());
            self.impls(&format!("ops::json_schemas!({namespace}, super::DEFINITIONS {{\n{lines}}});"));
        }
    }

    /// Writes the module of impls.
    fn close(&mut self, runtime: &str) {
        if self.impls.is_empty() && self.tables.is_empty() {
            return;
        }
        let prelude =
            if self.has_records { format!("    use {runtime}::record::prelude::*;\n") } else { String::new() };
        let impls = self.tables.print() + &std::mem::take(&mut self.impls);
        self.lines(&format!(
            "\n#[allow(dead_code, deprecated)]\nmod impls {{\n{prelude}    use super::ops;\n{impls}}}"
        ));
    }

    /// A name of the prelude, or its full path if the module has a type of that name.
    fn prelude(&self, name: &'static str) -> &'static str {
        if !self.module.scope.has(name) {
            return name;
        }
        match name {
            "Option" => "::std::option::Option",
            "Vec" => "::std::vec::Vec",
            "String" => "::std::string::String",
            "Box" => "::std::boxed::Box",
            "Result" => "::std::result::Result",
            "Into" => "::std::convert::Into",
            "Send" => "::std::marker::Send",
            "Sized" => "::std::marker::Sized",
            "Sync" => "::std::marker::Sync",
            other => other,
        }
    }

    /// The type as written among the types.
    fn type_(&self, type_: &Type) -> String {
        self.written(type_, "", |name| self.prelude(name))
    }

    /// The type as written among the impls, where names of the prelude have their usual meaning.
    fn inner_type(&self, type_: &Type) -> String {
        self.written(type_, "super::", |name| name)
    }

    fn written(&self, type_: &Type, path: &str, prelude: impl Fn(&'static str) -> &'static str + Copy) -> String {
        let inner = |type_: &Type| self.written(type_, path, prelude);
        match type_ {
            Type::Unit => "()".to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::I32 => "i32".to_owned(),
            Type::I64 => "i64".to_owned(),
            Type::U32 => "u32".to_owned(),
            Type::U64 => "u64".to_owned(),
            Type::F64 => "f64".to_owned(),
            Type::String => prelude("String").to_owned(),
            Type::Format(format) => format!("ops::formats::{}", format.type_name()),
            Type::Body => "ops::Body".to_owned(),
            Type::Block => "ops::ContentBlock".to_owned(),
            Type::Value => "ops::Value".to_owned(),
            Type::List(items) => format!("{}<{}>", prelude("Vec"), inner(items)),
            Type::Map(values) => format!("::std::collections::BTreeMap<{}, {}>", prelude("String"), inner(values)),
            Type::Tuple(items) => {
                let items: Vec<String> = items.iter().map(inner).collect();
                if let [only] = items.as_slice() { format!("({only},)") } else { format!("({})", items.join(", ")) }
            }
            Type::Option(value) => format!("{}<{}>", prelude("Option"), inner(value)),
            Type::Custom(custom) => custom.path.clone(),
            Type::Named(id) => self.path(*id, path),
            Type::Boxed(id) => format!("{}<{}>", prelude("Box"), self.path(*id, path)),
        }
    }

    fn path(&self, id: usize, path: &str) -> String {
        match self.module.types.get(id) {
            Some(item) => format!("{path}{}", item.name),
            None => "ops::Value".to_owned(),
        }
    }

    fn name(&self, id: usize) -> &str {
        self.module.types.get(id).map_or("ops::Value", |item| item.name.as_str())
    }

    fn item(&mut self, item: &crate::types::Item) {
        match &item.shape {
            Shape::Pending => {}
            Shape::Alias(type_) => {
                let docs = documented(docs::of(item));
                let source = format!("{docs}pub type {} = {};", item.name, self.type_(type_));
                self.push(&source);
            }
            Shape::Newtype(type_) => {
                let (docs, name, type_) = (documented(docs::of(item)), &item.name, self.type_(type_));
                let derives = derived("Debug, Clone, PartialEq, Default", &item.derives);
                self.push(&format!("{docs}{derives}pub struct {name}(pub {type_});"));
                self.impls(&format!("ops::newtype!(super::{name});"));
            }
            Shape::Record(record) => self.record(item, record),
            Shape::Names(constants) => self.names(item, constants),
            Shape::Values(constants) => self.values(item, constants),
            Shape::Tagged(tagged) => self.tagged(item, tagged),
            Shape::Union(variants) => self.union(item, variants),
        }
    }
}

/// The attribute with derives, those that the type has by itself first; empty if there are none.
fn derived(own: &str, more: &[Derive]) -> String {
    let all = Some(own).filter(|own| !own.is_empty()).into_iter().chain(more.iter().map(Derive::text));
    let all: Vec<&str> = all.collect();
    if all.is_empty() { String::new() } else { format!("#[derive({})]\n", all.join(", ")) }
}

/// Documentation, or the lint that misses it switched off.
fn documented(docs: String) -> String {
    if docs.is_empty() { "#[allow(missing_docs)]\n".to_owned() } else { docs }
}
