//! `readOnly` properties, which only the server sets: no request contains them (OpenAPI 3.0, section 4.7.24.2).

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::parts::address;
use crate::model::keywords::{certain, is_comment};
use crate::normalise::{Patterns, Searches, equal};
use crate::pointer;
use crate::{Definitions, OperationSpec};

/// How deep references and combined schemas are followed for one value.
const PARTS: usize = 64;

/// How deep a value is searched.
const DEPTH: usize = 256;

/// The parts of an operation's input schema that lead to `readOnly` properties.
pub(super) struct ReadOnly {
    /// The properties of the input that are bodies, with their schemas; one without a name is the input itself.
    bodies: Vec<(String, Value)>,
    definitions: BTreeMap<String, Value>,
    /// Those by which the schemas name properties.
    patterns: Patterns,
}

impl ReadOnly {
    /// The `readOnly` properties of the request body. `None` if the schema reaches none.
    pub(super) fn of(spec: &OperationSpec) -> Option<Self> {
        let mut bodies: Vec<(String, Value)> = Vec::new();
        for (name, schema) in spec.request_bodies() {
            if bodies.iter().all(|(known, _)| known != name) {
                bodies.push((name.to_owned(), schema));
            }
        }
        let mut definitions = BTreeMap::new();
        let mut found = Found::default();
        for (_, schema) in &bodies {
            found.scan(schema);
        }
        while let Some(name) = found.names.pop() {
            if definitions.contains_key(&name) {
                continue;
            }
            if let Some(schema) = definition(&spec.definitions, &name) {
                found.scan(&schema);
                definitions.insert(name, schema);
            }
        }
        found.is_read_only.then(|| Self { bodies, definitions, patterns: Patterns::new(&found.patterns) })
    }

    /// Removes the properties from an input. False if some may be left, since it would take too long to search the patterns
    /// in all names.
    pub(super) fn remove(&self, input: &mut Value) -> bool {
        let searches = self.patterns.searches(input);
        for (property, schema) in &self.bodies {
            let body = if property.is_empty() { Some(&mut *input) } else { input.get_mut(property) };
            if let Some(body) = body {
                self.walk(body, &[schema], &searches, DEPTH);
            }
        }
        !searches.has_ended()
    }

    fn walk<'s>(&'s self, value: &mut Value, schemas: &[&'s Value], searches: &Searches<'_>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        if !(value.is_object() || value.is_array()) || schemas.is_empty() {
            return;
        }
        let (parts, inner) = Look::new(self, searches, value).at(schemas);
        match value {
            Value::Object(members) => {
                let mut inner = inner.into_iter();
                members.retain(|_, member| {
                    let Some(schemas) = inner.next().flatten() else { return false };
                    self.walk(member, &schemas, searches, depth);
                    true
                });
            }
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    let inner: Vec<&Value> = parts.iter().filter_map(|part| item_of(part, at)).collect();
                    self.walk(item, &inner, searches, depth);
                }
            }
            _ => {}
        }
    }

    fn target(&self, schema: &Value) -> Option<&Value> {
        self.definitions.get(&name_of(schema.get("$ref")?)?)
    }
}

/// The results for one value. Composed schemas are visited once, however many lead to them: the number of paths to them
/// doubles with each schema in between, and schemas that extend each other have no end.
struct Look<'s, 'v> {
    read_only: &'s ReadOnly,
    searches: &'v Searches<'v>,
    value: &'v Value,
    /// True if the value may match a schema, by its address.
    fits: HashMap<usize, bool>,
    /// True if a schema is `readOnly`.
    marked: HashMap<usize, bool>,
}

/// The results of schemas for one property, by their addresses.
type Verdicts = HashMap<usize, Option<bool>>;

/// The schemas of a member of the value; `None` if no request contains it.
type Member<'s> = Option<Vec<&'s Value>>;

impl<'s, 'v> Look<'s, 'v> {
    fn new(read_only: &'s ReadOnly, searches: &'v Searches<'v>, value: &'v Value) -> Self {
        Self { read_only, searches, value, fits: HashMap::new(), marked: HashMap::new() }
    }

    /// The schemas that apply to the value if these do, each once, and its members in their order.
    fn at(mut self, schemas: &[&'s Value]) -> (Vec<&'s Value>, Vec<Member<'s>>) {
        let parts = self.parts(schemas);
        let members = self.value.as_object().into_iter().flatten();
        let members = members.map(|(name, member)| self.member(name, member, schemas, &parts)).collect();
        (parts, members)
    }

    /// The schemas of one member. All that is asked about its name is asked here, so that [`Searches`] remember it.
    fn member(&mut self, name: &str, member: &Value, schemas: &[&'s Value], parts: &[&'s Value]) -> Member<'s> {
        let searches = self.searches;
        // Most are declared by none to be so.
        if parts.iter().any(|part| declared(part, name, searches).any(|own| self.is_read_only(own, PARTS))) {
            let mut known = Verdicts::new();
            let says =
                schemas.iter().fold(None, |says, schema| or(says, self.verdict(schema, name, &mut known, PARTS)));
            if says == Some(true) {
                return None;
            }
        }
        let has_members = member.is_object() || member.is_array();
        Some(if has_members { of_member(parts, name, searches) } else { Vec::new() })
    }

    fn parts(&mut self, schemas: &[&'s Value]) -> Vec<&'s Value> {
        let (mut parts, mut seen) = (Vec::new(), HashSet::new());
        let mut open: Vec<&Value> = schemas.iter().rev().copied().collect();
        while let Some(schema) = open.pop() {
            if !seen.insert(address(schema)) {
                continue;
            }
            parts.push(schema);
            open.extend(["oneOf", "anyOf"].iter().flat_map(|key| self.variants(schema, key, PARTS)));
            open.extend(self.beside(schema, PARTS));
        }
        parts
    }

    /// True if a property is `readOnly` in a schema; `None` if the schema does not declare it.
    ///
    /// Of combined schemas, one suffices. Of the variants of a union that the value may match, all must declare it so.
    fn verdict(&mut self, schema: &'s Value, name: &str, known: &mut Verdicts, depth: usize) -> Option<bool> {
        let depth = depth.checked_sub(1)?;
        let (mut found, searches) = (None, self.searches);
        for property in declared(schema, name, searches) {
            found = or(found, Some(self.is_read_only(property, depth)));
        }
        if !is_composed(schema) {
            return found;
        }
        if let Some(known) = known.get(&address(schema)) {
            return *known;
        }
        // A schema adds nothing new within itself.
        known.insert(address(schema), None);
        for part in self.beside(schema, depth) {
            found = or(found, self.verdict(part, name, known, depth));
        }
        for key in ["anyOf", "oneOf"] {
            let variants = self.variants(schema, key, depth);
            let says: Vec<bool> = variants.into_iter().filter_map(|v| self.verdict(v, name, known, depth)).collect();
            if !says.is_empty() {
                found = or(found, Some(says.iter().all(|says| *says)));
            }
        }
        known.insert(address(schema), found);
        found
    }

    /// The schemas that the value follows beside one that it follows.
    fn beside(&mut self, schema: &'s Value, depth: usize) -> Vec<&'s Value> {
        let mut all: Vec<&Value> = self.read_only.target(schema).into_iter().chain(list(schema, "allOf")).collect();
        let met = schema.get("if").and_then(|condition| self.meets(condition, depth));
        all.extend(met.and_then(|met| schema.get(if met { "then" } else { "else" })));
        let dependent = schema.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten();
        all.extend(dependent.filter(|(name, _)| self.value.get(name.as_str()).is_some()).map(|(_, schema)| schema));
        all
    }

    /// True if the value meets a condition, false if it does not. `None` if that depends on keywords that are not read here:
    /// then it is not known which properties only the server sets.
    fn meets(&mut self, condition: &'s Value, depth: usize) -> Option<bool> {
        if is_read_whole(condition) {
            return Some(self.may_be_itself(condition, depth));
        }
        (!self.may_be(condition, depth)).then_some(false)
    }

    /// The variants of a union that the value may be, or all if it seems to be none of them.
    fn variants(&mut self, schema: &'s Value, key: &str, depth: usize) -> Vec<&'s Value> {
        let all: Vec<&Value> = list(schema, key).collect();
        let fitting: Vec<&Value> = all.iter().copied().filter(|variant| self.may_be(variant, depth)).collect();
        if fitting.is_empty() { all } else { fitting }
    }

    /// False if the value does not match a schema. True if it does, or if that depends on keywords that are not read here.
    fn may_be(&mut self, schema: &'s Value, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return true };
        if !is_composed(schema) {
            return self.may_be_itself(schema, depth);
        }
        if let Some(fits) = self.fits.get(&address(schema)) {
            return *fits;
        }
        self.fits.insert(address(schema), true);
        let fits = self.may_be_itself(schema, depth)
            && self.beside(schema, depth).into_iter().all(|part| self.may_be(part, depth));
        self.fits.insert(address(schema), fits);
        fits
    }

    /// The result of the schema itself, without those that it is composed of.
    fn may_be_itself(&mut self, schema: &'s Value, depth: usize) -> bool {
        let value = self.value;
        let is_of = |kind: &str| match value {
            Value::Object(_) => kind == "object",
            Value::Array(_) => kind == "array",
            Value::Null => kind == "null",
            _ => true,
        };
        let fits = match schema.get("type") {
            Some(Value::String(kind)) => is_of(kind),
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).any(is_of),
            _ => true,
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let differs = properties.into_iter().flatten().any(|(name, property)| {
            let Some(value) = value.get(name) else { return false };
            let is_none_of = |all: &Vec<Value>| !all.iter().any(|one| equal(one, value));
            property.get("const").is_some_and(|only| !equal(only, value))
                || property.get("enum").and_then(Value::as_array).is_some_and(is_none_of)
        });
        let mut lacks = list(schema, "required").filter_map(Value::as_str).filter(|name| {
            let own = properties.and_then(|properties| properties.get(*name));
            value.is_object() && value.get(name).is_none() && !own.is_some_and(|own| self.is_read_only(own, depth))
        });
        fits && !differs && lacks.next().is_none()
    }

    fn is_read_only(&mut self, schema: &'s Value, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        if schema.get("readOnly") == Some(&Value::Bool(true)) || !is_composed(schema) {
            return schema.get("readOnly") == Some(&Value::Bool(true));
        }
        if let Some(marked) = self.marked.get(&address(schema)) {
            return *marked;
        }
        self.marked.insert(address(schema), false);
        let marked = self.read_only.target(schema).is_some_and(|target| self.is_read_only(target, depth))
            || certain(schema).any(|part| self.is_read_only(part, depth));
        self.marked.insert(address(schema), marked);
        marked
    }
}

/// True if a schema is composed of others.
fn is_composed(schema: &Value) -> bool {
    ["$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"].iter().any(|key| schema.get(key).is_some())
}

/// True if [`Look::may_be_itself`] reads all keywords of a schema that ask for something.
fn is_read_whole(schema: &Value) -> bool {
    let mut properties = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    has_only(schema, &["type", "required", "properties"])
        && properties.all(|property| {
            // The values say their type.
            let lists = property.get("const").is_some() || property.get("enum").is_some();
            has_only(property, &[]) || lists && has_only(property, &["const", "enum", "type"])
        })
}

/// True if a schema asks for something by these keywords only.
fn has_only(schema: &Value, keywords: &[&str]) -> bool {
    match schema {
        Value::Object(object) => object.keys().all(|key| keywords.contains(&key.as_str()) || is_comment(key)),
        other => *other == Value::Bool(true),
    }
}

/// The schemas of a property that a schema declares by its name, or by patterns.
fn declared<'s>(schema: &'s Value, name: &str, searches: &Searches<'_>) -> impl Iterator<Item = &'s Value> {
    let own = schema.get("properties").and_then(|properties| properties.get(name));
    let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
    own.into_iter().chain(patterns.filter(move |(source, _)| searches.is_in(source, name)).map(|(_, schema)| schema))
}

/// Of two combined schemas, the result of either.
fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a || b),
        (a, b) => a.or(b),
    }
}

fn list<'s>(schema: &'s Value, key: &str) -> impl Iterator<Item = &'s Value> + use<'s> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// The schemas of a member of a value that follows these.
fn of_member<'s>(parts: &[&'s Value], name: &str, searches: &Searches<'_>) -> Vec<&'s Value> {
    let mut found = Vec::new();
    for part in parts {
        let before = found.len();
        found.extend(declared(part, name, searches));
        if found.len() == before {
            found.extend(part.get("additionalProperties"));
        }
    }
    if found.is_empty() {
        found.extend(parts.iter().filter_map(|part| part.get("unevaluatedProperties")));
    }
    found
}

/// The schema of an item.
fn item_of(schema: &Value, at: usize) -> Option<&Value> {
    schema.get("prefixItems").and_then(|list| list.get(at)).or_else(|| schema.get("items"))
}

fn definition(definitions: &Definitions, name: &str) -> Option<Value> {
    Some(definitions.get(name)?.schema.to_value().ok()?.into_owned())
}

fn name_of(reference: &Value) -> Option<String> {
    pointer::definition(reference.as_str()?).map(Cow::into_owned)
}

/// What schemas say anywhere in them.
#[derive(Default)]
struct Found {
    /// The definitions that they refer to.
    names: Vec<String>,
    /// The patterns by which they name properties.
    patterns: Vec<String>,
    is_read_only: bool,
}

impl Found {
    fn scan(&mut self, schema: &Value) {
        let mut stack = vec![schema];
        while let Some(value) = stack.pop() {
            match value {
                Value::Object(object) => {
                    self.names.extend(object.get("$ref").and_then(name_of));
                    let patterns = object.get("patternProperties").and_then(Value::as_object);
                    self.patterns.extend(patterns.into_iter().flat_map(|patterns| patterns.keys().cloned()));
                    self.is_read_only |= object.get("readOnly") == Some(&Value::Bool(true));
                    stack.extend(object.values());
                }
                Value::Array(items) => stack.extend(items),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
