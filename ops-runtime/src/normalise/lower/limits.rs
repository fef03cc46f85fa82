//! Limits on one compiled schema: combining schemas copies their parts, so the result can be larger than the document.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::normalise::equal::weight;
use crate::normalise::findings::{Problem, Problems};

/// How deep schemas may be nested in each other.
const MAX_SCHEMA_DEPTH: u32 = 100;
/// Limit of the schemas in one compiled schema, including repeated ones.
const MAX_SCHEMAS: u32 = 100_000;
/// Limit of their parts: what they list by name or one by one, and the values in them.
const MAX_PARTS: usize = 400_000;

/// So many bytes of a pattern count as one part.
const PATTERN: usize = 64;

/// The size of a compiled schema so far.
#[derive(Default)]
pub(super) struct Holds {
    schemas: u32,
    parts: usize,
}

impl Holds {
    /// True if the limits allow another schema.
    pub(super) fn affords(&mut self, depth: u32, problems: &mut Problems) -> bool {
        self.schemas += 1;
        if depth > MAX_SCHEMA_DEPTH {
            problems.add(Problem::too_deep());
        } else if self.schemas == MAX_SCHEMAS {
            problems.add(Problem::too_many());
        }
        depth <= MAX_SCHEMA_DEPTH && self.schemas < MAX_SCHEMAS
    }

    /// True if the limits allow so many more parts.
    pub(super) fn takes(&mut self, parts: usize, problems: &mut Problems) -> bool {
        let held = self.parts <= MAX_PARTS;
        self.parts = self.parts.saturating_add(parts);
        let holds = self.parts <= MAX_PARTS;
        if held && !holds {
            problems.add(Problem::too_many());
        }
        holds
    }
}

/// The number of a schema's parts that are copied when it is combined with others.
pub(super) fn parts(map: &Map<String, Value>) -> usize {
    let count = |keyword: &str, value: &Value| match (keyword, value) {
        ("allOf" | "anyOf" | "items" | "oneOf" | "prefixItems" | "required", Value::Array(list)) => list.len(),
        ("properties", Value::Object(named)) => named.len(),
        ("patternProperties", Value::Object(named)) => named.keys().map(|source| 1 + source.len() / PATTERN).sum(),
        ("pattern", Value::String(source)) => source.len() / PATTERN,
        ("const" | "default" | "enum", value) => weight(value),
        _ => 0,
    };
    map.iter().map(|(keyword, value)| count(keyword, value)).sum()
}

/// The schemas that are part of a conjunction.
#[derive(Default)]
pub(super) struct Visited {
    order: Vec<usize>,
    all: HashSet<usize>,
}

impl Visited {
    pub(super) fn contains(&self, address: usize) -> bool {
        self.all.contains(&address)
    }

    /// Adds a schema; `false` if it is among them.
    pub(super) fn add(&mut self, address: usize) -> bool {
        let is_new = self.all.insert(address);
        if is_new {
            self.order.push(address);
        }
        is_new
    }

    pub(super) fn mark(&self) -> usize {
        self.order.len()
    }

    /// Takes back those since a mark.
    pub(super) fn back_to(&mut self, mark: usize) {
        for address in self.order.drain(mark.min(self.order.len())..) {
            self.all.remove(&address);
        }
    }
}
