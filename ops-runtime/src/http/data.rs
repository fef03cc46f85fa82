//! How texts that may be JSON are read, by the schema of an output: the data of events, and bodies of no specific type.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_core::de::IgnoredAny;
use serde_json::Value;

use crate::pointer;
use crate::{Definitions, OperationSpec, Payload, Schema};

/// How deep references and combined schemas are followed.
const DEPTH: usize = 64;

/// How the data of an event are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Data {
    /// As JSON; other data becomes an `Err` item when it is decoded.
    Json,
    /// As JSON if it parses, else as text.
    Any,
    /// As text, unless it is a JSON string.
    Text,
}

impl Data {
    /// The data of an event; `None` if the event is empty.
    pub(super) fn read(self, text: String) -> Option<Payload> {
        let is_json = || serde_json::from_str::<IgnoredAny>(&text).is_ok();
        match self {
            Self::Text if text.starts_with('"') && is_json() => Some(Payload::Json(text.into())),
            Self::Text => Some(Payload::Value(Value::String(text))),
            // Some servers keep a connection alive with empty events.
            _ if text.trim().is_empty() => None,
            Self::Any if !is_json() => Some(Payload::Value(Value::String(text))),
            Self::Any | Self::Json => Some(Payload::Json(text.into())),
        }
    }
}

/// How to read items.
pub(super) fn data(spec: &OperationSpec) -> Data {
    if spec.output.is_any() {
        return Data::Any;
    }
    spec.output.to_value().map_or(Data::Any, |schema| Look::new(&spec.definitions).data(&schema, DEPTH))
}

/// How to read an output, or that alternative of its union.
pub(super) fn data_of(output: &Schema, variant: Option<u16>, definitions: &Definitions) -> Data {
    let Ok(output) = output.to_value() else { return Data::Any };
    let schema = match variant {
        Some(at) => ["oneOf", "anyOf"].iter().find_map(|key| output.get(*key)?.get(usize::from(at))),
        None => Some(&*output),
    };
    schema.map_or(Data::Any, |schema| Look::new(definitions).data(schema, DEPTH))
}

/// How to read the property `data` of whole events.
pub(super) fn data_of_whole(spec: &OperationSpec) -> Data {
    let mut found = Vec::new();
    if let Ok(schema) = spec.output.to_value() {
        let look = Look::new(&spec.definitions);
        look.inside(&schema, "data", DEPTH, &mut |data| found.push(look.data(data, DEPTH)));
    }
    either(found.into_iter())
}

/// True if whole events of the type `error` are described.
pub(super) fn has_errors(spec: &OperationSpec) -> bool {
    let Ok(schema) = spec.output.to_value() else { return false };
    let mut found = false;
    Look::new(&spec.definitions).inside(&schema, "event", DEPTH, &mut |kind| {
        let names = kind.get("enum").and_then(Value::as_array).into_iter().flatten().chain(kind.get("const"));
        found |= names.into_iter().any(|name| name == "error");
    });
    found
}

fn either(mut variants: impl Iterator<Item = Data>) -> Data {
    let Some(first) = variants.next() else { return Data::Any };
    if variants.all(|variant| variant == first) { first } else { Data::Any }
}

/// Visits the target of each reference once: the definitions of a document may refer to each other in very many ways.
struct Look<'a> {
    definitions: &'a Definitions,
    /// The definitions that were read, by name: many references may lead into one.
    read: RefCell<HashMap<String, Option<Rc<Value>>>>,
    /// How the targets of references are read. A recursive one does not decide.
    known: RefCell<HashMap<String, Data>>,
    /// The references whose targets were searched for a property.
    searched: RefCell<HashSet<String>>,
}

impl<'a> Look<'a> {
    fn new(definitions: &'a Definitions) -> Self {
        Self { definitions, read: RefCell::default(), known: RefCell::default(), searched: RefCell::default() }
    }

    fn definition(&self, name: &str) -> Option<Rc<Value>> {
        if let Some(read) = self.read.borrow().get(name) {
            return read.clone();
        }
        let definition = self.definitions.get(name).and_then(|definition| definition.schema.to_value().ok());
        let definition = definition.map(|schema| Rc::new(schema.into_owned()));
        self.read.borrow_mut().insert(name.to_owned(), definition.clone());
        definition
    }

    /// Calls a function with the target of a reference; `None` if there is none.
    fn target<T>(&self, reference: &str, read: impl FnOnce(&Value) -> T) -> Option<T> {
        let definition = self.definition(&pointer::definition(reference).unwrap_or(reference.into()))?;
        definition.pointer(pointer::within_definition(reference)).map(read)
    }

    /// Calls a function with the schemas of a property of a schema.
    fn inside(&self, schema: &Value, property: &str, depth: usize, show: &mut dyn FnMut(&Value)) {
        let Some(depth) = depth.checked_sub(1) else { return };
        if let Some(found) = schema.get("properties").and_then(|properties| properties.get(property)) {
            show(found);
        }
        if let Some(reference) = reference(schema) {
            let is_new = self.searched.borrow_mut().insert(reference.to_owned());
            if is_new {
                self.target(reference, |target| self.inside(target, property, depth, show));
            }
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let parts = schema.get(keyword).and_then(Value::as_array);
            parts.into_iter().flatten().for_each(|part| self.inside(part, property, depth, show));
        }
    }

    fn data(&self, schema: &Value, depth: usize) -> Data {
        let Some(depth) = depth.checked_sub(1) else { return Data::Any };
        if let Some(reference) = reference(schema) {
            return self.referred(reference, depth);
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

    fn referred(&self, reference: &str, depth: usize) -> Data {
        let known = self.known.borrow().get(reference).copied();
        if let Some(known) = known {
            return known;
        }
        self.known.borrow_mut().insert(reference.to_owned(), Data::Any);
        let data = self.target(reference, |target| self.data(target, depth)).unwrap_or(Data::Any);
        self.known.borrow_mut().insert(reference.to_owned(), data);
        data
    }
}

/// The reference of a schema to another.
fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()
}
