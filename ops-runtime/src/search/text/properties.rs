//! The names of an input's properties, and the first words of what is said of them.
//!
//! Many operations of an API refer to the same definitions, so each is parsed once, and what a walk may come to is kept of it.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use super::{Field, MAX_NAME};
use crate::Definitions;
use crate::model::cut::start;
use crate::pointer;
use crate::spec::OperationSpec;

/// How many properties of an operation are read, and how many bytes of what is said of one.
const MAX_PROPERTIES: usize = 64;
const MAX_ABOUT: usize = 100;
/// How many schemas are looked at for properties, and how deep they lie.
const MAX_SCHEMAS: usize = 96;
const MAX_DEPTH: usize = 6;

/// What is known of the definitions that were referred to, of the table that the last operation had.
#[derive(Default)]
pub(in super::super) struct Known {
    table: Definitions,
    definitions: HashMap<Box<str>, Rc<Part>>,
}

/// What a walk reads of a schema.
#[derive(Default)]
struct Part {
    /// The properties, with the first words of what is said of each.
    own: Vec<(Box<str>, Option<Box<str>>)>,
    below: Vec<Part>,
    /// The name of the definition that it refers to.
    refers: Option<Box<str>>,
}

/// How much a walk may still read.
struct Left {
    names: usize,
    schemas: usize,
}

impl Left {
    fn all() -> Self {
        Self { names: MAX_PROPERTIES, schemas: MAX_SCHEMAS }
    }

    fn takes_schema(&mut self, depth: usize) -> bool {
        let takes = self.schemas > 0 && depth <= MAX_DEPTH;
        self.schemas -= usize::from(takes);
        takes
    }
}

/// Calls `take` with the names of the input's properties and those below, and the first words of what is said of them.
pub(super) fn properties(spec: &OperationSpec, known: &mut Known, mut take: impl FnMut(Field, &str)) {
    let Ok(schema) = spec.input.to_value() else { return };
    if !known.table.same_table(&spec.definitions) {
        *known = Known { table: spec.definitions.clone(), definitions: HashMap::new() };
    }
    known.visit(&Part::of(&schema, 0, &mut Left::all()), 0, &mut Left::all(), &mut take);
}

impl Part {
    /// What a walk that begins here and follows no reference would come to; one that follows them comes to no more of it.
    fn of(schema: &Value, depth: usize, left: &mut Left) -> Self {
        let mut part = Self::default();
        let Some(object) = schema.as_object() else { return part };
        if !left.takes_schema(depth) {
            return part;
        }
        let own = object.get("properties").and_then(Value::as_object);
        for (name, property) in own.into_iter().flatten().take(left.names) {
            let about = property.get("description").and_then(Value::as_str);
            part.own.push((start(name, MAX_NAME).into(), about.map(|about| start(about, MAX_ABOUT).into())));
        }
        left.names = left.names.saturating_sub(part.own.len());
        let many = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| object.get(key)?.as_array()).flatten();
        let below = many.chain(object.get("items")).chain(own.into_iter().flat_map(|own| own.values()));
        for schema in below.filter(|schema| schema.is_object()).take(left.schemas) {
            part.below.push(Self::of(schema, depth + 1, left));
        }
        let name = object.get("$ref").and_then(Value::as_str).and_then(pointer::definition);
        part.refers = name.map(|name| name.as_ref().into());
        part
    }
}

impl Known {
    fn visit(&mut self, part: &Part, depth: usize, left: &mut Left, take: &mut impl FnMut(Field, &str)) {
        if !left.takes_schema(depth) {
            return;
        }
        // Those at one place before those below them: what is cut is what lies deep.
        for (name, about) in &part.own {
            if left.names == 0 {
                return;
            }
            left.names -= 1;
            take(Field::Parameter, name);
            if let Some(about) = about {
                take(Field::About, about);
            }
        }
        for part in &part.below {
            self.visit(part, depth + 1, left, take);
        }
        let Some(name) = &part.refers else { return };
        let known = self.definitions.get(name).cloned();
        let definition = known.or_else(|| {
            let schema = self.table.get(name)?.schema.to_value().ok()?;
            let part = Rc::new(Part::of(&schema, 0, &mut Left::all()));
            self.definitions.insert(name.clone(), Rc::clone(&part));
            Some(part)
        });
        if let Some(definition) = definition {
            self.visit(&definition, depth + 1, left, take);
        }
    }
}
