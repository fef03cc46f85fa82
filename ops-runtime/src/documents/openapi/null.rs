//! Null beside what a schema describes: `nullable` of OpenAPI 3.0, `x-nullable` of Swagger 2.0.

use serde_json::{Map, Value, json};

use super::document::Node;

/// The schema that accepts null as well, if the node has Swagger's member for that.
pub(super) fn swagger_nullable(node: &Node<'_>, schema: Map<String, Value>) -> Value {
    if node.is("x-nullable") { nullable(schema, false) } else { Value::Object(schema) }
}

/// Members that describe a value and do not constrain it, so that they may stand outside of a union with null.
pub(super) const ANNOTATIONS: &[&str] = &["title", "description", "default", "deprecated", "readOnly", "writeOnly"];

/// The schema that accepts null as well; `has_null` is true if a variant of its `oneOf` refers to a schema that may.
pub(super) fn nullable(mut schema: Map<String, Value>, has_null: bool) -> Value {
    let null = || json!({ "type": "null" });
    let variants = schema.get("oneOf").and_then(Value::as_array);
    // One variant may accept null, and it must be clear that it does.
    let is_unclear = variants.is_some_and(|all| {
        let mut of_null = all.iter().filter(|one| may_be_null(one));
        of_null.next().is_some_and(|one| !accepts_null(one) || of_null.next().is_some())
    });
    if has_null || is_unclear || ["$ref", "allOf", "const"].iter().any(|key| schema.contains_key(*key)) {
        let mut outer = Map::new();
        for key in ANNOTATIONS {
            if let Some(value) = schema.shift_remove(*key) {
                outer.insert((*key).to_owned(), value);
            }
        }
        outer.insert("anyOf".into(), Value::Array(vec![Value::Object(schema), null()]));
        return Value::Object(outer);
    }
    if let Some(kind) = schema.get_mut("type") {
        let mut types = match kind.take() {
            Value::Array(types) => types,
            one => vec![one],
        };
        if !types.iter().any(|kind| kind == "null") {
            types.push("null".into());
        }
        *kind = Value::Array(types);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.iter().any(Value::is_null)
    {
        values.push(Value::Null);
    }
    // Without a type, some keywords describe one all the same.
    let has = |key: &&str| schema.contains_key(*key);
    if !["type", "enum", "anyOf", "oneOf"].iter().any(has) {
        let kinds = [("properties", "object"), ("additionalProperties", "object"), ("items", "array")];
        if let Some((_, kind)) = kinds.iter().find(|(key, _)| has(key)) {
            schema.insert("type".into(), json!([kind, "null"]));
        }
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(variants)) = schema.get_mut(key) {
            // Null twice in a `oneOf` would match no null.
            if !variants.iter().any(accepts_null) {
                variants.push(null());
            }
        }
    }
    Value::Object(schema)
}

/// True if a schema clearly accepts null.
fn accepts_null(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "null",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "null"),
        _ => schema.get("enum").and_then(Value::as_array).is_some_and(|values| values.iter().any(Value::is_null)),
    }
}

/// True if null may be a value of a schema: a variant accepts it, or nothing is said of types.
pub(super) fn may_be_null(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return *schema == Value::Bool(true) };
    let says = ["type", "enum", "const", "$ref", "allOf", "not"].iter().any(|key| members.contains_key(*key));
    let mut unions = ["anyOf", "oneOf"].iter().filter_map(|key| members.get(*key)?.as_array());
    accepts_null(schema) || !says && unions.all(|variants| variants.iter().any(may_be_null))
}
