//! The definitions of an API as parsed JSON.

use ops_runtime::spec::pointer;
use std::collections::{BTreeMap, BTreeSet};

use ops_runtime::spec::{Definitions, Diagnostic, Schema};
use serde_json::{Map, Value};

/// JSON nested deeper is ignored: printing or dropping it would need as much stack.
const DEEPEST: usize = 120;

/// The definitions by name.
pub(crate) struct Source {
    definitions: BTreeMap<String, Value>,
}

impl Source {
    /// Parses the definitions; one that is not JSON accepts everything and gives a diagnostic.
    pub(crate) fn new(definitions: &Definitions, diagnostics: &mut Vec<Diagnostic>) -> Self {
        let definitions = definitions.as_slice().iter().map(|definition| {
            let pointer = format!("/$defs/{}", pointer::escaped(&definition.name));
            (definition.name.to_string(), parse(&mut definition.schema.clone(), &pointer, diagnostics))
        });
        Self { definitions: definitions.collect() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.definitions.get(name)
    }

    /// The names of all definitions, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions.keys().map(String::as_str)
    }

    /// The name of the definition that a `$ref` refers to.
    pub(crate) fn name(&self, reference: &str) -> Option<&str> {
        let name = pointer::unescaped(reference.strip_prefix(pointer::DEFINITIONS)?);
        self.definitions.get_key_value(&*name).map(|(name, _)| name.as_str())
    }

    /// The names of all definitions that schemas reach, sorted.
    pub(crate) fn reached<'s>(&self, schemas: impl IntoIterator<Item = &'s Value>) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut stack: Vec<&Value> = Vec::new();
        let mut queue: Vec<&Value> = schemas.into_iter().collect();
        while let Some(schema) = queue.pop() {
            stack.push(schema);
            while let Some(value) = stack.pop() {
                match value {
                    Value::Object(object) => {
                        // Only the first segment, because a reference may lead into the definition.
                        let name = object.get("$ref").and_then(Value::as_str).and_then(pointer::definition);
                        if let Some((name, schema)) = name.and_then(|name| self.definitions.get_key_value(&*name))
                            && found.insert(name.as_str())
                        {
                            queue.push(schema);
                        }
                        stack.extend(object.values());
                    }
                    Value::Array(items) => stack.extend(items),
                    _ => {}
                }
            }
        }
        found
    }
}

/// The schema as JSON; one that is not JSON or is nested too deeply is replaced by one that accepts everything.
pub(crate) fn parse(schema: &mut Schema, pointer: &str, diagnostics: &mut Vec<Diagnostic>) -> Value {
    let message = match schema.to_value() {
        Ok(value) if is_shallow(&value) => return value.into_owned(),
        Ok(_) => "the schema is nested too deeply".to_owned(),
        Err(error) => format!("the schema is not JSON: {error}"),
    };
    diagnostics.push(Diagnostic::warning(pointer, message).with_help("taken as any JSON"));
    *schema = Schema::ANY;
    Value::Bool(true)
}

/// True if a schema refers to a definition, at any depth.
pub(crate) fn refers(schema: &Map<String, Value>) -> bool {
    let mut stack = vec![schema];
    while let Some(object) = stack.pop() {
        if object.contains_key("$ref") {
            return true;
        }
        let mut values: Vec<&Value> = object.values().collect();
        while let Some(value) = values.pop() {
            match value {
                Value::Object(inner) => stack.push(inner),
                Value::Array(items) => values.extend(items),
                _ => {}
            }
        }
    }
    false
}

/// How many values a JSON value has inside, itself included.
pub(crate) fn size_of(value: &Value) -> usize {
    let mut count = 0;
    let mut stack = vec![value];
    while let Some(value) = stack.pop() {
        count += 1;
        match value {
            Value::Object(object) => stack.extend(object.values()),
            Value::Array(items) => stack.extend(items),
            _ => {}
        }
    }
    count
}

fn is_shallow(value: &Value) -> bool {
    let mut stack = vec![(value, 0)];
    while let Some((value, depth)) = stack.pop() {
        if depth > DEEPEST {
            return false;
        }
        match value {
            Value::Object(object) => stack.extend(object.values().map(|inner| (inner, depth + 1))),
            Value::Array(items) => stack.extend(items.iter().map(|inner| (inner, depth + 1))),
            _ => {}
        }
    }
    true
}
