//! Schemas in the form for tools: one object each, with all that it refers to.

use crate::pointer;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

type Object = Map<String, Value>;

/// How many references of a chain are followed.
const CHAIN: usize = 16;

/// How many parts of a schema are visited, in case they refer to each other in circles.
const BUDGET: usize = 256;

/// Members that depend on each other within one schema.
const DEPENDENT: [&[&str]; 3] =
    [&["items", "prefixItems"], &["contains", "maxContains", "minContains"], &["else", "if", "then"]];

/// The kind of values that a schema allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Objects only.
    Object,
    /// Objects, and other values.
    MaybeObject,
    /// `null` only.
    Null,
    /// No objects.
    Other,
}

/// The kind of values that a whole schema allows, as far as its types tell.
pub(super) fn kind(schema: &Object) -> Kind {
    kind_of(schema, schema, &mut { BUDGET })
}

fn kind_of(schema: &Object, root: &Object, budget: &mut usize) -> Kind {
    match budget.checked_sub(1) {
        Some(left) => *budget = left,
        None => return Kind::MaybeObject,
    }
    match schema.get("type") {
        Some(Value::String(kind)) => return one(kind),
        Some(Value::Array(kinds)) => return any(kinds.iter().filter_map(Value::as_str).map(one)),
        _ => {}
    }
    if let Some(value) = schema.get("const") {
        return of_value(value);
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return any(values.iter().map(of_value));
    }
    let mut nested = |schema: &Value| schema.as_object().map_or(Kind::MaybeObject, |s| kind_of(s, root, budget));
    if let Some(target) = target(schema, root) {
        return nested(target);
    }
    if let Some(Value::Array(members)) = schema.get("allOf") {
        // All of them hold, so the narrowest counts.
        if let Some(kind) = members.iter().map(&mut nested).find(|kind| *kind != Kind::MaybeObject) {
            return kind;
        }
    }
    if let Some(Value::Array(variants)) = schema.get("oneOf").or_else(|| schema.get("anyOf")) {
        return any(variants.iter().map(nested));
    }
    // Strictly, `properties` allow other values, too, but that is never meant.
    if schema.contains_key("properties") { Kind::Object } else { Kind::MaybeObject }
}

fn one(kind: &str) -> Kind {
    match kind {
        "object" => Kind::Object,
        "null" => Kind::Null,
        _ => Kind::Other,
    }
}

fn of_value(value: &Value) -> Kind {
    match value {
        Value::Object(_) => Kind::Object,
        Value::Null => Kind::Null,
        _ => Kind::Other,
    }
}

fn any(kinds: impl Iterator<Item = Kind>) -> Kind {
    kinds
        .reduce(|a, b| match (a, b) {
            (a, b) if a == b => a,
            (Kind::Object | Kind::MaybeObject, _) | (_, Kind::Object | Kind::MaybeObject) => Kind::MaybeObject,
            _ => Kind::Other,
        })
        .unwrap_or(Kind::MaybeObject)
}

/// The definition, or the part of one, that a schema refers to.
fn target<'a>(schema: &Object, root: &'a Object) -> Option<&'a Value> {
    let reference = schema.get("$ref")?.as_str()?;
    let definition = root.get("$defs")?.get(&*pointer::definition(reference)?)?;
    definition.pointer(pointer::within_definition(reference))
}

/// Replaces the root's reference by what it refers to: hosts look for `type` and `properties` there. If the members beside
/// the reference would change what the definition means, the reference moves into `allOf`.
pub(super) fn inline_root(mut schema: Object) -> Object {
    for step in 0..=CHAIN {
        let found = target(&schema, &schema).and_then(Value::as_object);
        let inlined = found.filter(|target| fits(&schema, target)).cloned();
        let Some(target) = inlined else {
            if found.is_some() {
                refer_by_all_of(&mut schema);
            }
            if step > 0 {
                drop_unused(&mut schema);
            }
            break;
        };
        schema.remove("$ref");
        target.into_iter().for_each(|(name, value)| add(&mut schema, name, value));
    }
    schema
}

/// True if a member only describes values.
fn is_annotation(name: &str) -> bool {
    matches!(
        name,
        "$comment" | "default" | "deprecated" | "description" | "examples" | "readOnly" | "title" | "writeOnly"
    ) || name.starts_with("x-")
}

/// True if the members of a definition mean the same beside those of the schema that refers to it.
fn fits(schema: &Object, target: &Object) -> bool {
    const NAMED: &[&str] = &["patternProperties", "properties"];
    const REST: &[&str] = &["additionalProperties"];
    const UNEVALUATED: &[&str] = &["unevaluatedItems", "unevaluatedProperties"];
    let has = |object: &Object, names: &[&str]| names.iter().any(|name| object.contains_key(*name));
    let are_split = |own: &[&str], other: &[&str]| has(schema, own) && has(target, other);
    let has_more = || schema.keys().any(|name| !is_annotation(name) && !matches!(&**name, "$ref" | "$defs" | "type"));
    if are_split(NAMED, REST)
        || are_split(REST, NAMED)
        || DEPENDENT.iter().any(|&names| are_split(names, names))
        || has(target, UNEVALUATED) && has_more()
    {
        return false;
    }
    // Those of the same name must be equal, or easy to put together.
    target.iter().all(|(name, value)| match (schema.get(name), value) {
        (None, _) => true,
        (Some(own), value) if own == value || is_annotation(name) => true,
        (Some(Value::Object(own)), Value::Object(value)) if name == "properties" => {
            value.iter().all(|(name, value)| own.get(name).is_none_or(|own| own == value))
        }
        (Some(Value::Array(_)), Value::Array(_)) => name == "required",
        // It is replaced.
        _ => name == "$ref",
    })
}

/// Adds a member of a definition that [fits]. Of two annotations, that of the schema counts.
fn add(schema: &mut Object, name: String, value: Value) {
    let (is_properties, is_required) = (name == "properties", name == "required");
    match schema.get_mut(&name) {
        Some(Value::Object(own)) if is_properties => {
            if let Value::Object(more) = value {
                more.into_iter().for_each(|(name, value)| _ = own.entry(name).or_insert(value));
            }
        }
        Some(Value::Array(own)) if is_required => {
            if let Value::Array(more) = value {
                let new: Vec<Value> = more.into_iter().filter(|name| !own.contains(name)).collect();
                own.extend(new);
            }
        }
        Some(_) => {}
        None => _ = schema.insert(name, value),
    }
}

/// Moves the reference of a schema into its `allOf`.
fn refer_by_all_of(schema: &mut Object) {
    let Some(reference) = schema.remove("$ref") else { return };
    let reference = json!({ "$ref": reference });
    match schema.get_mut("allOf") {
        Some(Value::Array(members)) => members.push(reference),
        _ => _ = schema.insert("allOf".to_owned(), json!([reference])),
    }
}

/// Removes definitions without references.
fn drop_unused(schema: &mut Object) {
    let Some(Value::Object(definitions)) = schema.remove("$defs") else { return };
    let mut used = Object::new();
    let mut queue = Vec::new();
    for value in schema.values() {
        references(value, &mut queue);
    }
    while let Some(name) = queue.pop() {
        if let (false, Some(definition)) = (used.contains_key(&name), definitions.get(&name)) {
            references(definition, &mut queue);
            used.insert(name, definition.clone());
        }
    }
    if !used.is_empty() {
        used.sort_keys();
        schema.insert("$defs".to_owned(), Value::Object(used));
    }
}

fn references(value: &Value, names: &mut Vec<String>) {
    visit(value, &mut |reference| {
        names.extend(pointer::definition(reference).map(Cow::into_owned));
    });
}

/// Calls a function with every reference in a schema.
fn visit(value: &Value, found: &mut impl FnMut(&str)) {
    // An explicit stack: a schema may be nested deeper than the thread's stack allows.
    let mut stack = vec![value];
    while let Some(value) = stack.pop() {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(reference)) = object.get("$ref") {
                    found(reference);
                }
                stack.extend(object.values());
            }
            Value::Array(items) => stack.extend(items),
            _ => {}
        }
    }
}

/// Puts `type: object` first in a schema of objects, as the protocol requires.
pub(super) fn typed_as_object(mut schema: Object) -> Object {
    schema.remove("type");
    schema.shift_insert(0, "type".to_owned(), json!("object"));
    schema
}

/// The schema of an object with one property of that schema.
pub(super) fn wrap(schema: Object, property: &str, mark: Option<&str>) -> Object {
    let (schema, definitions) = nest(schema);
    let mut wrapper = Object::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), json!({ property: schema })),
        ("required".to_owned(), json!([property])),
    ]);
    if let Some(mark) = mark {
        wrapper.insert(mark.to_owned(), Value::Bool(true));
    }
    wrapper.extend(definitions.map(|definitions| ("$defs".to_owned(), definitions)));
    wrapper
}

/// The schema of a list of such values.
pub(super) fn list_of(items: Option<Object>) -> Object {
    let mut list = Object::from_iter([("type".to_owned(), json!("array"))]);
    if let Some(items) = items {
        let (items, definitions) = nest(items);
        list.insert("items".to_owned(), items);
        list.extend(definitions.map(|definitions| ("$defs".to_owned(), definitions)));
    }
    list
}

/// A schema to be nested in another, and the definition to be put at its root. A schema that refers to its own root, or to
/// a part of it, becomes such a definition.
fn nest(mut schema: Object) -> (Value, Option<Value>) {
    let definitions = schema.remove("$defs");
    let mut refers_to_root = false;
    let schema = Value::Object(schema);
    let mut look = |reference: &str| refers_to_root |= from_root(reference).is_some();
    visit(&schema, &mut look);
    definitions.iter().for_each(|definitions| visit(definitions, &mut look));
    if !refers_to_root {
        return (schema, definitions);
    }
    let mut definitions = match definitions {
        Some(Value::Object(definitions)) => definitions,
        _ => Object::new(),
    };
    let mut name = "Self".to_owned();
    while definitions.contains_key(&name) {
        name.push('_');
    }
    let reference = pointer::reference(&name);
    definitions.insert(name, schema);
    let mut definitions = Value::Object(definitions);
    let mut stack = vec![&mut definitions];
    while let Some(value) = stack.pop() {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(own)) = object.get_mut("$ref")
                    && let Some(path) = from_root(own)
                {
                    *own = format!("{reference}{path}");
                }
                stack.extend(object.values_mut());
            }
            Value::Array(items) => stack.extend(items),
            _ => {}
        }
    }
    (json!({ "$ref": reference }), Some(definitions))
}

/// The JSON pointer of a reference into the root itself. `None` for a reference to a definition, or to another document.
fn from_root(reference: &str) -> Option<&str> {
    let path = reference.strip_prefix('#')?;
    let is_definition = reference.starts_with(pointer::DEFINITIONS);
    (path.is_empty() || path.starts_with('/') && !is_definition).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn kinds_are_told_by_types() {
        for (schema, expected) in [
            (json!({ "type": "object" }), Kind::Object),
            (json!({ "properties": {} }), Kind::Object),
            (json!({ "type": ["object", "null"] }), Kind::MaybeObject),
            (json!({ "type": ["string", "null"] }), Kind::Other),
            (json!({ "type": "null" }), Kind::Null),
            (json!({ "const": 1 }), Kind::Other),
            (json!({ "enum": [null] }), Kind::Null),
            (json!({ "$ref": "#/$defs/A", "$defs": { "A": { "type": "integer" } } }), Kind::Other),
            (json!({ "allOf": [{ "description": "?" }, { "type": "object" }] }), Kind::Object),
            (json!({ "oneOf": [{ "type": "object" }, { "properties": {} }] }), Kind::Object),
            (json!({ "anyOf": [{ "type": "object" }, { "type": "array" }] }), Kind::MaybeObject),
            (json!({ "$ref": "#/$defs/A", "$defs": { "A": { "$ref": "#/$defs/A" } } }), Kind::MaybeObject),
            (json!({ "description": "?" }), Kind::MaybeObject),
        ] {
            assert_eq!(kind(&object(schema.clone())), expected, "{schema}");
        }
    }

    #[test]
    fn a_reference_at_the_root_is_inlined() {
        let pet = json!({ "type": "object", "properties": { "of": { "$ref": "#/$defs/Cage" } } });
        let cage = json!({ "type": "string" });
        let schema = json!({ "$ref": "#/$defs/Pet", "description": "A pet.", "$defs": { "Pet": pet, "Cage": cage } });
        let expected = json!({
            "description": "A pet.",
            "type": "object",
            "properties": { "of": { "$ref": "#/$defs/Cage" } },
            "$defs": { "Cage": { "type": "string" } },
        });
        assert_eq!(Value::Object(inline_root(object(schema))), expected);
    }

    #[test]
    fn a_reference_into_a_definition_is_that_part_of_it() {
        let whole = json!({ "type": "object", "properties": { "id": { "type": "integer" }, "next": { "$ref": "#/$defs/Whole" } } });
        let schema = |part: &str| {
            let reference = format!("#/$defs/Whole/properties/{part}");
            object(json!({ "$ref": reference, "$defs": { "Whole": whole } }))
        };
        assert_eq!(kind(&schema("id")), Kind::Other);
        assert_eq!(Value::Object(inline_root(schema("id"))), json!({ "type": "integer" }));
        let mut expected = whole.clone();
        expected["$defs"] = json!({ "Whole": whole });
        assert_eq!((kind(&schema("next")), Value::Object(inline_root(schema("next")))), (Kind::Object, expected));
        // A reference that leads nowhere stays.
        assert_eq!(inline_root(schema("name")), schema("name"));
    }

    #[test]
    fn what_is_beside_a_reference_at_the_root_holds_together_with_it() {
        let pet = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
        let breed = json!({ "breed": { "type": "string" } });
        // What extends a definition.
        let dog = json!({ "$ref": "#/$defs/Pet", "properties": breed, "required": ["breed"], "unevaluatedProperties": false });
        let schema = json!({ "$ref": "#/$defs/Dog", "$defs": { "Dog": dog, "Pet": pet } });
        let expected = json!({
            "type": "object",
            "properties": { "name": { "type": "string" }, "breed": { "type": "string" } },
            "required": ["breed", "name"],
            "unevaluatedProperties": false,
        });
        assert_eq!(Value::Object(inline_root(object(schema))), expected);
        // What cannot be put together stays apart.
        let closed = json!({ "type": "object", "additionalProperties": false });
        for (own, target) in [
            (json!({ "properties": { "name": { "maxLength": 9 } } }), pet.clone()),
            (json!({ "properties": breed }), closed),
            (json!({ "additionalProperties": false }), pet.clone()),
            (json!({ "minProperties": 1 }), json!({ "minProperties": 2 })),
            (json!({ "oneOf": [{ "required": ["a"] }] }), json!({ "oneOf": [{ "required": ["b"] }] })),
            (json!({ "oneOf": [{ "required": ["a"] }] }), json!({ "unevaluatedProperties": false })),
            (json!({ "items": true }), json!({ "prefixItems": [true] })),
        ] {
            let definitions = json!({ "Target": target });
            let mut schema = object(own.clone());
            schema.insert("$ref".to_owned(), json!("#/$defs/Target"));
            schema.insert("$defs".to_owned(), definitions.clone());
            let mut expected = object(own);
            expected.insert("allOf".to_owned(), json!([{ "$ref": "#/$defs/Target" }]));
            expected.insert("$defs".to_owned(), definitions);
            assert_eq!(inline_root(schema), expected, "{target}");
        }
    }

    #[test]
    fn a_wrapped_schema_that_refers_to_itself_is_a_definition() {
        let tree = json!({ "type": "array", "items": { "$ref": "#" } });
        let expected = json!({
            "type": "object",
            "properties": { "input": { "$ref": "#/$defs/Self" } },
            "required": ["input"],
            "$defs": { "Self": { "type": "array", "items": { "$ref": "#/$defs/Self" } } },
        });
        assert_eq!(Value::Object(wrap(object(tree), "input", None)), expected);
    }

    #[test]
    fn a_schema_that_refers_to_parts_of_itself_is_a_definition() {
        let pair = json!({
            "type": "array",
            "prefixItems": [{ "type": "string" }, { "$ref": "#/prefixItems/0" }],
            "items": { "$ref": "#/$defs/Rest" },
            "$defs": { "Rest": { "anyOf": [{ "$ref": "#/prefixItems/0" }, { "type": "null" }] } },
        });
        let part = json!({ "$ref": "#/$defs/Self/prefixItems/0" });
        let expected = json!({
            "type": "array",
            "items": { "$ref": "#/$defs/Self" },
            "$defs": {
                "Rest": { "anyOf": [part, { "type": "null" }] },
                "Self": {
                    "type": "array",
                    "prefixItems": [{ "type": "string" }, part],
                    "items": { "$ref": "#/$defs/Rest" },
                },
            },
        });
        assert_eq!(Value::Object(list_of(Some(object(pair)))), expected);
    }
}
