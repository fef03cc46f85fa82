//! How the data of events are read, by the schema of a subscription's output.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Data;
use crate::pointer;
use crate::{Definitions, OperationSpec};

/// How deep references and combined schemas are followed.
const DEPTH: usize = 64;

/// How to read items.
pub(super) fn data(spec: &OperationSpec) -> Data {
    if spec.output.is_any() {
        return Data::Any;
    }
    spec.output.to_value().map_or(Data::Any, |schema| Look::new(spec).data(&schema, DEPTH))
}

/// How to read the property `data` of whole events.
pub(super) fn data_of_whole(spec: &OperationSpec) -> Data {
    let mut found = Vec::new();
    if let Ok(schema) = spec.output.to_value() {
        let look = Look::new(spec);
        look.inside(&schema, "data", DEPTH, &mut |data| found.push(look.data(data, DEPTH)));
    }
    either(found.into_iter())
}

/// True if whole events of the type `error` are described.
pub(super) fn has_errors(spec: &OperationSpec) -> bool {
    let Ok(schema) = spec.output.to_value() else { return false };
    let mut found = false;
    Look::new(spec).inside(&schema, "event", DEPTH, &mut |kind| {
        let names = kind.get("enum").and_then(Value::as_array).into_iter().flatten().chain(kind.get("const"));
        found |= names.into_iter().any(|name| name == "error");
    });
    found
}

fn either(mut variants: impl Iterator<Item = Data>) -> Data {
    let Some(first) = variants.next() else { return Data::Any };
    if variants.all(|variant| variant == first) { first } else { Data::Any }
}

/// Visits each definition once: those of a document may refer to each other in very many ways.
struct Look<'a> {
    definitions: &'a Definitions,
    /// How definitions are read. A recursive one does not decide.
    known: RefCell<HashMap<String, Data>>,
    /// Those that were searched for a property.
    searched: RefCell<HashSet<String>>,
}

impl<'a> Look<'a> {
    fn new(spec: &'a OperationSpec) -> Self {
        Self { definitions: &spec.definitions, known: RefCell::default(), searched: RefCell::default() }
    }

    fn definition(&self, name: &str) -> Option<Value> {
        self.definitions.get(name).and_then(|definition| Some(definition.schema.to_value().ok()?.into_owned()))
    }

    /// Calls a function with the schemas of a property of a schema.
    fn inside(&self, schema: &Value, property: &str, depth: usize, show: &mut dyn FnMut(&Value)) {
        let Some(depth) = depth.checked_sub(1) else { return };
        if let Some(found) = schema.get("properties").and_then(|properties| properties.get(property)) {
            show(found);
        }
        if let Some(name) = target(schema) {
            let is_new = self.searched.borrow_mut().insert(name.clone());
            let definition = if is_new { self.definition(&name) } else { None };
            definition.iter().for_each(|schema| self.inside(schema, property, depth, show));
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let parts = schema.get(keyword).and_then(Value::as_array);
            parts.into_iter().flatten().for_each(|part| self.inside(part, property, depth, show));
        }
    }

    fn data(&self, schema: &Value, depth: usize) -> Data {
        let Some(depth) = depth.checked_sub(1) else { return Data::Any };
        if let Some(name) = target(schema) {
            return self.referred(name, depth);
        }
        let Some(schema) = schema.as_object() else { return Data::Any };
        let inner = |schema: &Value| self.data(schema, depth);
        match schema.get("type") {
            Some(Value::String(kind)) => return if kind == "string" { Data::Text } else { Data::Json },
            Some(Value::Array(kinds)) => {
                let others = kinds.iter().filter(|kind| *kind != "null").map(|kind| kind == "string");
                return either(others.map(|text| if text { Data::Text } else { Data::Json }));
            }
            _ => {}
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return either(values.iter().map(|value| if value.is_string() { Data::Text } else { Data::Json }));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(variants)) = schema.get(keyword) {
                let null = |schema: &&Value| schema.get("type").is_some_and(|kind| kind == "null");
                return either(variants.iter().filter(|schema| !null(schema)).map(inner));
            }
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            return parts.iter().map(inner).find(|data| *data != Data::Any).unwrap_or(Data::Any);
        }
        if schema.contains_key("properties") || schema.contains_key("items") { Data::Json } else { Data::Any }
    }

    fn referred(&self, name: String, depth: usize) -> Data {
        let known = self.known.borrow().get(&name).copied();
        if let Some(known) = known {
            return known;
        }
        self.known.borrow_mut().insert(name.clone(), Data::Any);
        let data = self.definition(&name).map_or(Data::Any, |schema| self.data(&schema, depth));
        self.known.borrow_mut().insert(name, data);
        data
    }
}

/// The name of the definition that a schema refers to.
fn target(schema: &Value) -> Option<String> {
    let name = schema.get("$ref")?.as_str()?;
    Some(pointer::unescaped(name.strip_prefix(pointer::DEFINITIONS).unwrap_or(name)).into_owned())
}
