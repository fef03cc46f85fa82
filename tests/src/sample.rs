//! Values made from schemas: what a test sends where a person would type something.

use serde_json::{Map, Value, json};

/// How deep a value may get before only what is required is filled in.
const DEPTH: usize = 4;

/// A value that the schema accepts, with every property set; `root` resolves `$ref`s.
pub fn value(schema: &Value, root: &Value) -> Value {
    make(schema, root, 0)
}

fn make(schema: &Value, root: &Value, depth: usize) -> Value {
    let schema = merged(schema, root, 0);
    let Some(node) = schema.as_object() else { return json!("text") };
    for keyword in ["const", "example", "default"] {
        if let Some(value) = node.get(keyword) {
            return value.clone();
        }
    }
    if let Some(value) = first(node, "examples").or_else(|| first(node, "enum")) {
        return value.clone();
    }
    for keyword in ["oneOf", "anyOf"] {
        if let Some(variant) = variants(node, keyword).find(|variant| variant["type"] != "null") {
            return overlay(make(variant, root, depth), node, root, depth);
        }
    }
    match kind(node) {
        "object" => object(node, root, depth),
        "array" => array(node, root, depth),
        "integer" => json!(number(node, 1.0).ceil() as i64),
        "number" => json!(number(node, 1.5)),
        "boolean" => json!(true),
        "null" => Value::Null,
        _ => json!(string(node)),
    }
}

fn first<'a>(node: &'a Map<String, Value>, keyword: &str) -> Option<&'a Value> {
    node.get(keyword)?.as_array()?.iter().find(|value| !value.is_null())
}

fn variants<'a>(node: &'a Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'a Value> {
    node.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

/// The properties beside a union belong to the value of its variant.
fn overlay(value: Value, node: &Map<String, Value>, root: &Value, depth: usize) -> Value {
    match value {
        Value::Object(mut object) if node.contains_key("properties") => {
            if let Value::Object(own) = self::object(node, root, depth) {
                for (key, value) in own {
                    object.entry(key).or_insert(value);
                }
            }
            Value::Object(object)
        }
        value => value,
    }
}

fn kind(node: &Map<String, Value>) -> &str {
    match node.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if node.contains_key("properties") => "object",
        _ if node.contains_key("items") => "array",
        _ => "string",
    }
}

fn object(node: &Map<String, Value>, root: &Value, depth: usize) -> Value {
    let required: Vec<_> = variants(node, "required").filter_map(Value::as_str).collect();
    let mut object = Map::new();
    for (name, schema) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if schema["readOnly"] == true || (depth >= DEPTH && !required.contains(&name.as_str())) {
            continue;
        }
        object.insert(name.clone(), make(schema, root, depth + 1));
    }
    if let (true, Some(schema @ Value::Object(_))) = (object.is_empty(), node.get("additionalProperties")) {
        object.insert("key".to_owned(), make(schema, root, depth + 1));
    }
    Value::Object(object)
}

fn array(node: &Map<String, Value>, root: &Value, depth: usize) -> Value {
    if let Some(items) = node.get("prefixItems").and_then(Value::as_array) {
        return items.iter().map(|item| make(item, root, depth + 1)).collect();
    }
    let least = node.get("minItems").and_then(Value::as_u64).unwrap_or(0).max(u64::from(depth < DEPTH));
    let item = node.get("items").map_or(json!("text"), |items| make(items, root, depth + 1));
    (0..least).map(|_| item.clone()).collect()
}

fn number(node: &Map<String, Value>, ordinary: f64) -> f64 {
    let bound = |keyword: &str| node.get(keyword).and_then(Value::as_f64);
    let least = bound("minimum").or(bound("exclusiveMinimum").map(|bound| bound + 1.0));
    let most = bound("maximum").or(bound("exclusiveMaximum").map(|bound| bound - 1.0));
    let step = bound("multipleOf").unwrap_or(0.0);
    let value = ordinary.max(least.unwrap_or(f64::MIN)).min(most.unwrap_or(f64::MAX));
    if step > 0.0 { (value / step).ceil() * step } else { value }
}

fn string(node: &Map<String, Value>) -> String {
    let text = match node.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-05-04T03:02:01Z",
        Some("date") => "2026-05-04",
        Some("time") => "03:02:01Z",
        Some("uuid") => "3f0f9a5e-5d2a-4f63-9a36-0e1c1f4f5b6a",
        Some("email") => "ann@example.com",
        Some("uri" | "url" | "uri-reference") => "https://example.com/a",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("hostname") => "example.com",
        Some("byte" | "binary") => "aGVsbG8=",
        _ => "text",
    };
    let length = |keyword: &str| node.get(keyword).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let mut text = text.to_owned();
    while text.len() < length("minLength").unwrap_or(0) {
        text.push('x');
    }
    text.truncate(length("maxLength").unwrap_or(usize::MAX));
    text
}

/// The schema with its `$ref` followed and its `allOf` members laid over each other.
fn merged(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(node) = schema.as_object() else { return schema.clone() };
    let target = node.get("$ref").and_then(Value::as_str).and_then(|text| root.pointer(text.strip_prefix('#')?));
    let parts = target.into_iter().chain(variants(node, "allOf"));
    let mut whole = Map::new();
    for part in parts.filter(|_| depth < 16) {
        lay(&mut whole, merged(part, root, depth + 1));
    }
    let own = node.iter().filter(|(key, _)| *key != "$ref" && *key != "allOf");
    lay(&mut whole, Value::Object(own.map(|(key, value)| (key.clone(), value.clone())).collect()));
    Value::Object(whole)
}

fn lay(whole: &mut Map<String, Value>, part: Value) {
    let Value::Object(part) = part else { return };
    for (key, value) in part {
        match (whole.get_mut(&key), value) {
            (Some(Value::Object(have)), Value::Object(more)) if key == "properties" => have.extend(more),
            (Some(Value::Array(have)), Value::Array(more)) if key == "required" => have.extend(more),
            (_, value) => {
                whole.insert(key, value);
            }
        }
    }
}
