//! Schemas without the boolean that chooses, for the case that it is `true` or `false`.

mod lacking;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::marks::{Key, REFERENCE};
use super::{Switch, has_properties};
use crate::pointer::unescaped;
use crate::{HttpBinding, HttpBody, ParameterLocation};

/// How deep the parts of a schema are searched.
const MAX_DEPTH: usize = 32;

/// How deep definitions that refer to each other are narrowed.
const MAX_NESTED: usize = 128;

/// How many parts of schemas one search for a boolean visits.
const MAX_VISITED: usize = 5_000;

/// How many parts and properties all searches of any description visit, and how many more for each operation.
const VISITED: (usize, usize) = (4_000_000, 1_000);

/// The definitions by name.
pub(super) type Table<'t> = BTreeMap<&'t str, Cow<'t, Value>>;

/// Where the boolean is.
pub(super) struct Found {
    pub(super) name: String,
    /// For each body of the binding.
    pub(super) bodies: Vec<Option<Switch>>,
    /// A query parameter, with the property of the input.
    pub(super) query: Option<(Switch, String)>,
}

impl Found {
    pub(super) fn switches(&self) -> impl Iterator<Item = Switch> {
        self.bodies.iter().flatten().copied().chain(self.query.as_ref().map(|(switch, _)| *switch))
    }
}

/// Where a body is in a narrowed input.
pub(super) enum Place {
    /// The body is this alternative of the input's schema. `None` if all bodies share the schema.
    Alternative(Option<u16>),
    /// Nowhere: narrowing leaves its alternative out.
    Gone,
}

enum Narrowed {
    Same,
    Changed(Value),
    /// The boolean cannot have this value in this schema.
    Impossible,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Same,
    Changed,
    Impossible,
}

pub(super) struct Narrower<'t> {
    table: &'t Table<'t>,
    states: BTreeMap<Key, State>,
    /// How many parts may still be visited.
    budget: Cell<usize>,
    /// The narrowed definitions.
    pub(super) forms: BTreeMap<Key, Value>,
}

impl<'t> Narrower<'t> {
    /// A narrower for so many operations.
    pub(super) fn new(table: &'t Table<'t>, operations: usize) -> Self {
        let budget = operations.saturating_mul(VISITED.1).saturating_add(VISITED.0);
        Self { table, states: BTreeMap::new(), budget: Cell::new(budget), forms: BTreeMap::new() }
    }

    /// Counts visited parts; `false` if there are too many.
    fn spend(&self, count: usize) -> bool {
        self.budget.set(self.budget.get().saturating_sub(count));
        self.budget.get() > 0
    }

    /// Finds the boolean with the most usual one of these names.
    pub(super) fn find(&self, input: &Value, http: &HttpBinding, schemas: &[Value], names: &[&str]) -> Option<Found> {
        names.iter().find_map(|wish| self.find_one(input, http, schemas, wish))
    }

    fn find_one(&self, input: &Value, http: &HttpBinding, schemas: &[Value], wish: &str) -> Option<Found> {
        let mut look = Look { wish, name: None, visited: 0 };
        let mut found = Found { name: String::new(), bodies: vec![None; http.bodies.len()], query: None };
        for ((body, schema), slot) in http.bodies.iter().zip(schemas).zip(&mut found.bodies) {
            if has_properties(&body.content_type) {
                *slot = self.switch(schema, &mut look, 0).map(|mut switch| {
                    let name = look.name.as_deref().unwrap_or_default();
                    switch.needs_false |= self.requires(schema, name, &mut look.visited, 0);
                    switch
                });
            }
        }
        let is_it = |name: &str| look.name.as_deref().map_or_else(|| folded(name) == wish, |known| known == name);
        let parameter = http.parameters.iter().find(|p| p.location == ParameterLocation::Query && is_it(&p.name));
        if let Some(parameter) = parameter
            && let Some(schema) = input.get("properties").and_then(|own| own.get(parameter.property.as_ref()))
            && let Some((off, on)) = self.boolean(schema, 0).filter(|(off, on)| *off || *on)
        {
            let required = names(input, "required").any(|name| name == parameter.property);
            let switch = Switch { off, on, needs_false: required || self.is_true_by_default(schema, 0) };
            found.query = Some((switch, parameter.property.clone().into_owned()));
            look.name = Some(parameter.name.clone().into_owned());
        }
        found.name = look.name?;
        let is_there = found.switches().next().is_some();
        is_there.then_some(found)
    }

    fn definition(&self, reference: &Value) -> Option<&'t Value> {
        let name = unescaped(reference.as_str()?.strip_prefix(REFERENCE)?).into_owned();
        self.table.get(name.as_str()).map(AsRef::as_ref)
    }

    /// The description of the boolean in a schema and its parts.
    fn switch(&self, schema: &Value, look: &mut Look<'_>, depth: usize) -> Option<Switch> {
        look.visited += 1;
        let properties = schema.get("properties").and_then(Value::as_object).map_or(0, Map::len);
        if depth > MAX_DEPTH || look.visited > MAX_VISITED || !self.spend(properties + 1) {
            return None;
        }
        let mut found: Option<Switch> = None;
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let is_it = look.name.as_deref().map_or_else(|| folded(name) == look.wish, |known| known == name);
            if is_it && let Some((off, on)) = self.boolean(property, 0).filter(|(off, on)| *off || *on) {
                look.name = Some(name.clone());
                found = Some(Switch { off, on, needs_false: self.is_true_by_default(property, 0) });
                break;
            }
        }
        let both = |a: Switch, b: Switch| Switch {
            off: a.off && b.off,
            on: a.on && b.on,
            needs_false: a.needs_false || b.needs_false,
        };
        let either = |a: Switch, b: Switch| Switch {
            off: a.off || b.off,
            on: a.on || b.on,
            needs_false: a.needs_false || b.needs_false,
        };
        if let Some(target) = schema.get("$ref").and_then(|reference| self.definition(reference)) {
            found = joined(found, self.switch(target, look, depth + 1), both);
        }
        for part in parts(schema, "allOf") {
            found = joined(found, self.switch(part, look, depth + 1), both);
        }
        for key in ["anyOf", "oneOf"] {
            let mut any = None;
            for part in parts(schema, key) {
                any = joined(any, self.switch(part, look, depth + 1), either);
            }
            found = joined(found, any, both);
        }
        found
    }

    /// True if a schema or a part of it requires a property.
    fn requires(&self, schema: &Value, name: &str, visited: &mut usize, depth: usize) -> bool {
        *visited += 1;
        if depth > MAX_DEPTH || *visited > MAX_VISITED || !self.spend(1) {
            return false;
        }
        let target = schema.get("$ref").and_then(|reference| self.definition(reference));
        names(schema, "required").any(|required| required == name)
            || target.is_some_and(|target| self.requires(target, name, visited, depth + 1))
            || ["allOf", "anyOf", "oneOf"]
                .iter()
                .flat_map(|key| parts(schema, key))
                .any(|part| self.requires(part, name, visited, depth + 1))
    }

    /// True if a schema accepts `false`, and true if it accepts `true`; `None` if it accepts more than these and null.
    fn boolean(&self, schema: &Value, depth: usize) -> Option<(bool, bool)> {
        if depth > MAX_DEPTH || !self.spend(1) {
            return None;
        }
        let both = |a: (bool, bool), b: (bool, bool)| (a.0 && b.0, a.1 && b.1);
        let of_value = |value: &Value| match value {
            Value::Bool(value) => Some((!value, *value)),
            Value::Null => Some((false, false)),
            _ => None,
        };
        let either = |values: Option<(bool, bool)>, next: Option<(bool, bool)>| {
            values.zip(next).map(|(a, b)| (a.0 || b.0, a.1 || b.1))
        };
        let mut found: Option<(bool, bool)> = None;
        match schema.get("type") {
            Some(Value::String(kind)) if kind == "boolean" => found = Some((true, true)),
            Some(Value::String(kind)) if kind == "null" => found = Some((false, false)),
            Some(Value::Array(kinds)) if kinds.iter().all(|kind| kind == "boolean" || kind == "null") => {
                let accepts = kinds.iter().any(|kind| kind == "boolean");
                found = Some((accepts, accepts));
            }
            Some(_) => return None,
            None => {}
        }
        if let Some(value) = schema.get("const") {
            found = joined(found, Some(of_value(value)?), both);
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            let accepted = values.iter().map(of_value).fold(Some((false, false)), either)?;
            found = joined(found, Some(accepted), both);
        }
        if let Some(target) = schema.get("$ref").and_then(|reference| self.definition(reference)) {
            found = joined(found, self.boolean(target, depth + 1), both);
        }
        for part in parts(schema, "allOf") {
            found = joined(found, self.boolean(part, depth + 1), both);
        }
        for key in ["anyOf", "oneOf"] {
            let mut variants = parts(schema, key).peekable();
            if variants.peek().is_some() {
                let accepted = variants.map(|part| self.boolean(part, depth + 1)).fold(Some((false, false)), either)?;
                found = joined(found, Some(accepted), both);
            }
        }
        found
    }

    fn is_true_by_default(&self, schema: &Value, depth: usize) -> bool {
        match schema.get("default") {
            // Some documents write it as text.
            Some(Value::String(text)) => return text == "true",
            Some(default) => return *default == Value::Bool(true),
            None if depth > MAX_DEPTH || !self.spend(1) => return false,
            None => {}
        }
        let target = schema.get("$ref").and_then(|reference| self.definition(reference));
        target.is_some_and(|target| self.is_true_by_default(target, depth + 1))
            || ["allOf", "anyOf", "oneOf"]
                .iter()
                .flat_map(|key| parts(schema, key))
                .any(|part| self.is_true_by_default(part, depth + 1))
    }

    /// The input without the boolean, and where each body is in it. `None` if the boolean cannot have the value `on`.
    pub(super) fn input(
        &mut self,
        input: &Value,
        http: &HttpBinding,
        found: &Found,
        on: bool,
    ) -> Option<(Value, Vec<Place>)> {
        let mut input = input.clone();
        let mut places: Vec<Place> = http.bodies.iter().map(|body| Place::Alternative(body.variant)).collect();
        if let Some((_, property)) = &found.query {
            remove(input.as_object_mut()?, property);
        }
        let property = http.bodies.first().map(|body| body.property.as_ref());
        if let Some(body) = property.and_then(|name| input.get_mut("properties")?.get_mut(name)) {
            match self.narrow(body, &found.name, on, 0) {
                Narrowed::Same => {}
                Narrowed::Changed(schema) => {
                    places = http.bodies.iter().map(|own| self.place(own, body, &schema, &found.name, on)).collect();
                    *body = schema;
                }
                Narrowed::Impossible => return None,
            }
        }
        Some((input, places))
    }

    /// Where a body is in the narrowed schema of all bodies.
    fn place(&mut self, own: &HttpBody, before: &Value, after: &Value, name: &str, on: bool) -> Place {
        let all = before.get("oneOf").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let variant = own.variant.map(usize::from);
        let Some((at, alternative)) = variant.and_then(|at| Some((at, all.get(at)?))) else {
            return Place::Alternative(None);
        };
        if on && self.lacking(all, name).get(at) == Some(&true) {
            return Place::Gone;
        }
        let narrowed = match self.narrow(alternative, name, on, 1) {
            Narrowed::Same => Cow::Borrowed(alternative),
            Narrowed::Changed(own) => Cow::Owned(own),
            Narrowed::Impossible => return Place::Gone,
        };
        let at = parts(after, "oneOf").position(|part| *part == *narrowed);
        Place::Alternative(at.and_then(|at| u16::try_from(at).ok()))
    }

    fn narrow(&mut self, schema: &Value, name: &str, on: bool, depth: usize) -> Narrowed {
        let Value::Object(schema) = schema else { return Narrowed::Same };
        if depth > MAX_NESTED {
            return Narrowed::Same;
        }
        let mut out = schema.clone();
        let property = schema.get("properties").and_then(|own| own.get(name));
        let accepts = property.and_then(|property| self.boolean(property, 0));
        match accepts {
            Some((off, true)) if on || off => remove(&mut out, name),
            Some((true, false)) if !on => remove(&mut out, name),
            Some(_) => return Narrowed::Impossible,
            // Required here, and described in another part.
            None if property.is_none() => remove(&mut out, name),
            None => {}
        }
        if let Some(reference) = schema.get("$ref") {
            match self.refer(reference, name, on, depth) {
                (State::Impossible, _) => return Narrowed::Impossible,
                (State::Changed, mark) => out.insert("$ref".into(), mark.into()),
                _ => None,
            };
        }
        let mut gone: Vec<&Value> = Vec::new();
        for key in ["allOf", "anyOf", "oneOf"] {
            let Some(Value::Array(list)) = schema.get(key) else { continue };
            let mut narrowed = Vec::new();
            let lacking = if on && key != "allOf" { self.lacking(list, name) } else { Vec::new() };
            for (at, part) in list.iter().enumerate() {
                if lacking.get(at) == Some(&true) {
                    gone.extend(part.get("$ref"));
                    continue;
                }
                match self.narrow(part, name, on, depth + 1) {
                    Narrowed::Same => narrowed.push(part.clone()),
                    Narrowed::Changed(part) => narrowed.push(part),
                    Narrowed::Impossible if key == "allOf" => return Narrowed::Impossible,
                    Narrowed::Impossible => {}
                }
            }
            if narrowed.is_empty() && !list.is_empty() {
                return Narrowed::Impossible;
            }
            out.insert(key.into(), narrowed.into());
        }
        self.discriminator(&mut out, &gone, name, on, depth);
        if out == *schema {
            return Narrowed::Same;
        }
        Narrowed::Changed(single(out, schema))
    }

    /// The state of the definition that a reference leads to, and the mark of its narrowed form.
    fn refer(&mut self, reference: &Value, name: &str, on: bool, depth: usize) -> (State, String) {
        let Some(target) = reference.as_str().and_then(|text| text.strip_prefix(REFERENCE)) else {
            return (State::Same, String::new());
        };
        let key = Key { name: unescaped(target).into_owned(), property: name.to_owned(), on };
        let mark = key.mark();
        if let Some(state) = self.states.get(&key) {
            return (if *state == State::Open { State::Same } else { *state }, mark);
        }
        let Some(schema) = self.definition(reference) else { return (State::Same, mark) };
        self.states.insert(key.clone(), State::Open);
        let state = match self.narrow(schema, name, on, depth + 1) {
            Narrowed::Same => State::Same,
            Narrowed::Impossible => State::Impossible,
            Narrowed::Changed(schema) => {
                self.forms.insert(key.clone(), schema);
                State::Changed
            }
        };
        self.states.insert(key, state);
        (state, mark)
    }

    /// Narrows a discriminator to the variants that are left; `gone` are references to others.
    fn discriminator(&mut self, out: &mut Map<String, Value>, gone: &[&Value], name: &str, on: bool, depth: usize) {
        let Some(Value::Object(tags)) = out.get("discriminator") else { return };
        let mut tags = tags.clone();
        if tags.get("propertyName").is_some_and(|tag| tag == name) {
            out.shift_remove("discriminator");
            return;
        }
        if let Some(Value::Object(mapping)) = tags.get_mut("mapping") {
            mapping.retain(|_, target| match self.refer(target, name, on, depth) {
                _ if gone.contains(&&*target) => false,
                (State::Impossible, _) => false,
                (State::Changed, mark) => {
                    *target = mark.into();
                    true
                }
                _ => true,
            });
        }
        if let Some(target) = tags.get("defaultMapping") {
            match self.refer(target, name, on, depth) {
                _ if gone.contains(&target) => tags.shift_remove("defaultMapping"),
                (State::Impossible, _) => tags.shift_remove("defaultMapping"),
                (State::Changed, mark) => tags.insert("defaultMapping".into(), mark.into()),
                _ => None,
            };
        }
        out.insert("discriminator".into(), tags.into());
    }
}

/// A search for a boolean.
struct Look<'w> {
    wish: &'w str,
    /// Its spelling, once one was found.
    name: Option<String>,
    visited: usize,
}

fn joined<T>(a: Option<T>, b: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(join(a, b)),
        (a, b) => a.or(b),
    }
}

/// Takes a property out of an object's schema.
fn remove(schema: &mut Map<String, Value>, name: &str) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.shift_remove(name);
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        let before = required.len();
        required.retain(|required| required != name);
        if required.is_empty() && before > 0 {
            schema.shift_remove("required");
        }
    }
    if let Some(Value::Object(default)) = schema.get_mut("default") {
        default.shift_remove(name);
    }
    let dependent = schema.get_mut("dependentRequired").and_then(Value::as_object_mut);
    if let Some(dependent) = dependent.filter(|dependent| depends_on(dependent, name)) {
        // The caller cannot send it; the operation does. What the property itself requires is optional then, also where the
        // operation sends it: a result and a stream would need definitions of their own.
        dependent.shift_remove(name);
        dependent.values_mut().filter_map(Value::as_array_mut).for_each(|names| names.retain(|other| other != name));
        dependent.retain(|_, names| *names != json!([]));
        if dependent.is_empty() {
            schema.shift_remove("dependentRequired");
        }
    }
}

/// True if a property requires others, or others require it.
fn depends_on(dependent: &Map<String, Value>, name: &str) -> bool {
    let requires = |names: &Value| names.as_array().is_some_and(|names| names.iter().any(|other| other == name));
    dependent.contains_key(name) || dependent.values().any(requires)
}

/// A union with one variant left becomes that variant.
fn single(out: Map<String, Value>, before: &Map<String, Value>) -> Value {
    let told = |key: &str| matches!(key, "title" | "description" | "discriminator");
    let key = ["oneOf", "anyOf"].into_iter().find(|key| out.contains_key(*key));
    let is_plain = key.is_some_and(|key| out.keys().all(|other| other == key || told(other)));
    let list = |schema: &Map<String, Value>| key.and_then(|key| schema.get(key)?.as_array().cloned());
    match (list(&out), list(before)) {
        (Some(left), Some(before)) if is_plain && before.len() > 1 => match left.as_slice() {
            [Value::Object(variant)] => {
                let mut variant = variant.clone();
                for key in ["title", "description"] {
                    if let Some(text) = out.get(key) {
                        variant.entry(key).or_insert_with(|| text.clone());
                    }
                }
                Value::Object(variant)
            }
            _ => Value::Object(out),
        },
        _ => Value::Object(out),
    }
}

fn parts<'v>(schema: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn names<'v>(schema: &'v Value, key: &str) -> impl Iterator<Item = &'v str> + use<'v> {
    parts(schema, key).filter_map(Value::as_str)
}

fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
