//! Differences between two specs with the same id.
//!
//! A typed call that is found by its id may run only by a spec that is equivalent to its type's own. Otherwise the
//! request of one version would be sent, and its response read as that of another.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::model::keywords::{Holds, holds, is_comment};
use crate::pointer::{escaped, unescaped};
use crate::{CallError, Definitions, ErrorCode, OperationSpec, Schema};

/// True if a keyword does not constrain values.
fn is_annotation(keyword: &str) -> bool {
    is_comment(keyword) || matches!(keyword, "$schema" | "$id" | "$defs")
}

/// Keywords whose lists have no order.
const SETS: [&str; 3] = ["required", "enum", "type"];

/// How deep schemas are compared; more deeply nested schemas count as different.
const DEPTH: usize = 256;

/// How many `$ref`s that lead only to another `$ref` are followed.
const HOPS: usize = 64;

/// The differences between two specs with the same id, such as `the path` and `the output schema at /properties/id`;
/// empty if each can replace the other.
///
/// The kind, the binding and the schemas with their references are compared; documentation, versions, access rules and
/// the names of definitions are not.
pub(super) fn differences(one: &OperationSpec, other: &OperationSpec) -> Vec<String> {
    compare(one, other, [true, true])
}

/// Like [`differences`], but schemas that a type's own spec leaves out do not count, since the type stands for them.
pub(super) fn differences_of_type(there: &OperationSpec, own: &OperationSpec) -> Vec<String> {
    compare(there, own, [!own.input.is_any(), !own.output.is_any()])
}

/// The differences; the flags are true if the schemas of the input and of the output count.
fn compare(one: &OperationSpec, other: &OperationSpec, [input, output]: [bool; 2]) -> Vec<String> {
    if std::ptr::eq(one, other) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let are_hints = one.binding.only_hints_at_kind() && other.binding.only_hints_at_kind();
    if one.kind != other.kind && !are_hints {
        found.push("the kind".to_owned());
    }
    found.extend(one.binding.differences(&other.binding).into_iter().map(str::to_owned));
    let (of_one, of_other) = (&one.definitions, &other.definitions);
    let mut side = |name: &str, one: &Schema, other: &Schema| {
        if let Some(pointer) = schemas((one, of_one), (other, of_other)) {
            let place = if pointer.is_empty() { String::new() } else { format!(" at {pointer}") };
            found.push(format!("the {name} schema{place}"));
        }
    };
    if input {
        side("input", &one.input, &other.input);
    }
    if output {
        side("output", &one.output, &other.output);
    }
    found
}

/// A description of a spec: its version and its binding.
fn describe(spec: &OperationSpec) -> String {
    format!("version {}{}", spec.version, spec.binding.in_words())
}

/// The error of a call of a type whose id belongs to a different operation.
pub(super) fn refused(id: &str, registered: &str, called: &str, differences: &[String]) -> CallError {
    let message =
        format!("`{id}` is {registered}, and the call is of {called}: they differ in {}", differences.join(", "));
    let details = json!({ "operationId": id, "registered": registered, "called": called, "differences": differences });
    CallError::new(ErrorCode::OperationNotFound, message).with_details(details)
}

/// Refuses calls of a type that a remote runs by another endpoint, which would send its request as that of another
/// version.
///
/// Schemas may differ, since the remote may be an older or a newer build: it checks the input, and its result is read
/// into the type.
pub(crate) fn check_served(served: &OperationSpec, own: &OperationSpec) -> Result<(), CallError> {
    let Some(differs) = served.binding.leads_elsewhere(&own.binding) else { return Ok(()) };
    Err(refused(&own.id, &describe(served), &describe(own), &[differs.to_owned()]))
}

/// A description of a spec, with its Rust type.
pub(super) fn described(spec: &OperationSpec, name: Option<&str>) -> String {
    let words = describe(spec);
    name.map_or_else(|| words.clone(), |name| format!("`{name}` ({words})"))
}

/// Where two schemas differ in meaning, as a JSON pointer into the first or into a definition of it, `#/$defs/Name/..`;
/// `None` if they do not differ.
fn schemas(one: (&Schema, &Definitions), other: (&Schema, &Definitions)) -> Option<String> {
    let (Ok(a), Ok(b)) = (one.0.to_value(), other.0.to_value()) else { return Some(String::new()) };
    if a == b && one.1.same_table(other.1) {
        return None;
    }
    let sides = (Side { root: &a, definitions: one.1 }, Side { root: &b, definitions: other.1 });
    let mut comparison = Comparison { sides, seen: HashSet::new(), queue: Vec::new() };
    if let Err(pointer) = comparison.schema(&a, &b, "", 0) {
        return Some(pointer);
    }
    // A queue: chains of definitions may be longer than a stack is deep.
    while let Some((one, other)) = comparison.queue.pop() {
        let compared = match (comparison.sides.0.find(&one), comparison.sides.1.find(&other)) {
            (Some(a), Some(b)) => comparison.schema(&a, &b, &one, 0),
            (None, None) => Ok(()),
            _ => Err(one),
        };
        if let Err(pointer) = compared {
            return Some(pointer);
        }
    }
    None
}

/// A schema with its definitions.
struct Side<'s> {
    root: &'s Value,
    definitions: &'s Definitions,
}

impl<'s> Side<'s> {
    /// The target of a reference. A schema that was read as part of a spec contains the definitions that it reaches.
    fn find(&self, reference: &str) -> Option<Cow<'s, Value>> {
        let pointer = reference.strip_prefix('#')?;
        if let Some(own) = self.root.pointer(pointer) {
            return Some(Cow::Borrowed(own));
        }
        let name = pointer.strip_prefix("/$defs/")?;
        let (name, part) = name.split_at(name.find('/').unwrap_or(name.len()));
        let definition = self.definitions.get(&unescaped(name))?;
        match definition.schema.to_value().ok()? {
            whole if part.is_empty() => Some(whole),
            Cow::Borrowed(whole) => whole.pointer(part).map(Cow::Borrowed),
            Cow::Owned(whole) => whole.pointer(part).cloned().map(Cow::Owned),
        }
    }
}

struct Comparison<'s> {
    sides: (Side<'s>, Side<'s>),
    /// The pairs of definitions that were or will be compared.
    seen: HashSet<(String, String)>,
    queue: Vec<(String, String)>,
}

impl Comparison<'_> {
    /// Compares two schemas; an error is the pointer of the first difference.
    fn schema(&mut self, a: &Value, b: &Value, pointer: &str, depth: usize) -> Result<(), String> {
        if depth > DEPTH {
            return Err(pointer.to_owned());
        }
        let empty = Map::new();
        let (Some(one), Some(other)) = (members(a, &empty), members(b, &empty)) else {
            return if a == b { Ok(()) } else { Err(pointer.to_owned()) };
        };
        match (reference(one), reference(other)) {
            (Some(one), Some(other)) => {
                if self.seen.insert((one.clone(), other.clone())) {
                    self.queue.push((one, other));
                }
            }
            (Some(to), None) => {
                return match follow(&self.sides.0, to, one) {
                    Some(resolved) => self.schema(&resolved, b, pointer, depth + 1),
                    None => Err(pointer.to_owned()),
                };
            }
            (None, Some(to)) => {
                return match follow(&self.sides.1, to, other) {
                    Some(resolved) => self.schema(a, &resolved, pointer, depth + 1),
                    None => Err(pointer.to_owned()),
                };
            }
            (None, None) => {}
        }
        let says = |name: &str| !is_annotation(name) && !name.starts_with("x-");
        for (name, value) in one.iter().filter(|(name, _)| says(name)) {
            let place = || format!("{pointer}/{}", escaped(name));
            match other.get(name) {
                Some(_) if name == "$ref" && reference(one).is_some() && reference(other).is_some() => {}
                Some(there) => self.keyword(name, value, there, &place(), depth)?,
                None => return Err(place()),
            }
        }
        match other.keys().find(|name| says(name) && !one.contains_key(*name)) {
            Some(more) => Err(format!("{pointer}/{}", escaped(more))),
            None => Ok(()),
        }
    }

    fn keyword(&mut self, name: &str, a: &Value, b: &Value, pointer: &str, depth: usize) -> Result<(), String> {
        let holds = holds(name);
        match (a, b) {
            (Value::Object(one), Value::Object(other)) if matches!(holds, Holds::Named | Holds::Definitions) => {
                for (name, schema) in one {
                    let place = format!("{pointer}/{}", escaped(name));
                    match other.get(name) {
                        Some(there) => self.schema(schema, there, &place, depth + 1)?,
                        None => return Err(place),
                    }
                }
                match other.keys().find(|name| !one.contains_key(*name)) {
                    Some(more) => Err(format!("{pointer}/{}", escaped(more))),
                    None => Ok(()),
                }
            }
            (Value::Array(one), Value::Array(other)) if holds == Holds::Schemas => {
                if one.len() != other.len() {
                    return Err(pointer.to_owned());
                }
                let mut pairs = one.iter().zip(other).enumerate();
                pairs.try_for_each(|(at, (a, b))| self.schema(a, b, &format!("{pointer}/{at}"), depth + 1))
            }
            (a, b) if matches!(holds, Holds::Schema | Holds::Schemas) => self.schema(a, b, pointer, depth + 1),
            (a, b) if SETS.contains(&name) => {
                let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
                let (one, other) = (list(a), list(b));
                let covers = |one: &[Value], other: &[Value]| one.iter().all(|a| other.iter().any(|b| same(a, b)));
                if covers(&one, &other) && covers(&other, &one) { Ok(()) } else { Err(pointer.to_owned()) }
            }
            (a, b) if same(a, b) => Ok(()),
            _ => Err(pointer.to_owned()),
        }
    }
}

/// The members of a schema; `true` has none.
fn members<'v>(schema: &'v Value, empty: &'v Map<String, Value>) -> Option<&'v Map<String, Value>> {
    match schema {
        Value::Object(members) => Some(members),
        Value::Bool(true) => Some(empty),
        _ => None,
    }
}

/// The target of the schema's reference.
fn reference(schema: &Map<String, Value>) -> Option<String> {
    schema.get("$ref")?.as_str().map(str::to_owned)
}

/// The schema that a reference leads to, if no other keyword beside the reference adds to it.
fn follow<'s>(side: &Side<'s>, mut to: String, schema: &Map<String, Value>) -> Option<Cow<'s, Value>> {
    let only_refers = |schema: &Map<String, Value>| schema.keys().all(|name| name == "$ref" || is_annotation(name));
    if !only_refers(schema) {
        return None;
    }
    for _ in 0..HOPS {
        let found = side.find(&to)?;
        match found.as_object().map(|members| (reference(members), only_refers(members))) {
            Some((Some(next), true)) => to = next,
            _ => return Some(found),
        }
    }
    None
}

/// True if two values are the same JSON: `1` and `1.0` are.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len() && one.iter().all(|(name, a)| other.get(name).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests;
