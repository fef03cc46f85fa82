//! The user's types for schemas.

use std::rc::Rc;

use serde_json::Value;

use super::view::{is_constraint, types_of};
use super::{Lowering, Object, Site};
use crate::kinds::{Kind, NESTED, SHAPES};
use crate::names::upper_camel;
use crate::path::item_path;
use crate::types::{Custom, Type};

/// The extension by which a document names the type of a crate.
const EXTENSION: &str = "x-rust-type";

impl Lowering<'_> {
    /// The user's type for a definition, if there is one.
    pub(super) fn custom(&mut self, name: &str) -> Option<Type> {
        if let Some(known) = self.customs.get(name) {
            return known.clone();
        }
        let schema = self.source.get(name)?;
        let named = self.settings.types.get(name).cloned();
        let path = named.or_else(|| self.extension(schema.as_object()?, &Site::of(name)));
        let type_ = path.map(|path| self.custom_type(path, name, schema));
        self.customs.insert(name.to_owned(), type_.clone());
        type_
    }

    /// The type that a schema names by the extension.
    pub(super) fn custom_in(&mut self, schema: &Object, site: &Site) -> Option<Type> {
        // A definition was handled before, and its errors were reported there.
        let is_definition = site.depth == 0 && site.definition.is_some();
        let path = if is_definition { None } else { self.extension(schema, site) }?;
        let name = upper_camel(path.rsplit("::").next().unwrap_or(&path));
        Some(self.custom_type(path, &name, &Value::Object(schema.clone())))
    }

    fn custom_type(&mut self, path: String, name: &str, schema: &Value) -> Type {
        let mut kinds = self.kinds_of(schema, 0);
        let nullable = kinds.iter().any(|kind| kind.name == "Null");
        kinds.retain(|kind| kind.name != "Null");
        if kinds.is_empty() || kinds.len() > SHAPES {
            kinds = vec![Kind::new("Any")];
        }
        // Where it is one of ours, it has our conversions.
        let type_ = match path.as_str() {
            "bool" => Type::Bool,
            "i32" => Type::I32,
            "i64" => Type::I64,
            "u32" => Type::U32,
            "u64" => Type::U64,
            "f64" => Type::F64,
            "::std::string::String" => Type::String,
            _ => Type::Custom(Rc::new(Custom { path, name: upper_camel(name), kinds })),
        };
        if nullable { type_.nullable() } else { type_ }
    }

    /// The path in the extension of a schema, if documents may name types.
    ///
    /// The form is that of typify: `{ "crate": "my-crate", "version": "1", "path": "my_crate::Type" }`.
    fn extension(&mut self, schema: &Object, site: &Site) -> Option<String> {
        let extension = schema.get(EXTENSION).filter(|_| self.settings.rust_types)?;
        let text = |key: &str| extension.get(key).and_then(Value::as_str);
        let has_parameters =
            extension.get("parameters").and_then(Value::as_array).is_some_and(|parameters| !parameters.is_empty());
        let fault = match (text("crate"), text("path").map(|path| (path, item_path(path)))) {
            _ if has_parameters => "it has `parameters`",
            (Some(krate), Some((path, Some(checked)))) => {
                let path = path.trim().trim_start_matches("::");
                let root = path.split("::").next().unwrap_or_default();
                if root == krate.replace('-', "_") && root != "crate" {
                    return Some(checked);
                }
                "its `path` does not begin with the name in `crate`"
            }
            (Some(_), Some((_, None))) => "its `path` is no path of a type",
            _ => "it has no `crate` or no `path`",
        };
        self.warn(&site.pointer, format!("`{EXTENSION}` can't be used: {fault}"), "the type is generated");
        None
    }

    /// The shapes of JSON values that a schema accepts.
    fn kinds_of(&mut self, schema: &Value, depth: usize) -> Vec<Kind> {
        let any = || vec![Kind::new("Any")];
        let Some(view) = self.view_of_schema(schema).filter(|_| depth <= NESTED) else { return any() };
        if !self.spend(view.len()) {
            return any();
        }
        let values = match (view.get("const"), view.get("enum")) {
            (Some(value), _) => std::slice::from_ref(value),
            (None, Some(Value::Array(values))) => values.as_slice(),
            _ => &[],
        };
        if !values.is_empty() {
            let mut kinds: Vec<Kind> = Vec::new();
            for kind in values.iter().map(|value| Kind::new(kind_of(value))) {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            return kinds;
        }
        let (types, nullable) = types_of(&view);
        let members = ["oneOf", "anyOf"].iter().find_map(|key| view.get(*key).and_then(Value::as_array));
        let mut kinds: Vec<Kind> = match members.filter(|members| !members.iter().all(is_constraint)) {
            Some(members) => {
                let mut kinds = Vec::new();
                for member in members {
                    if kinds.len() > SHAPES {
                        break;
                    }
                    kinds.extend(self.kinds_of(member, depth + 1));
                }
                kinds
            }
            None if types.is_empty() && !nullable => any(),
            None => types.iter().map(|name| kind_named(name, &view)).collect(),
        };
        if nullable {
            kinds.push(Kind::new("Null"));
        }
        kinds
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "Null",
        Value::Bool(_) => "Boolean",
        Value::Number(number) if number.is_i64() => "Integer",
        Value::Number(_) => "Number",
        Value::String(_) => "String",
        Value::Array(_) => "Array",
        Value::Object(_) => "Object",
    }
}

fn kind_named(name: &str, view: &Object) -> Kind {
    match name {
        "boolean" => Kind::new("Boolean"),
        "integer" => Kind::new("Integer"),
        "number" => Kind::new("Number"),
        "string" => Kind::new("String"),
        "array" => Kind::new("Array"),
        "object" => {
            let names = view.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            let needs: Vec<String> = names.map(str::to_owned).collect();
            let properties = view.get("properties").and_then(Value::as_object).into_iter().flat_map(Object::keys);
            let knows = properties.filter(|name| !needs.contains(*name)).cloned().collect();
            Kind { knows, needs, ..Kind::new("Object") }
        }
        _ => Kind::new("Any"),
    }
}
