//! Values made from schemas: what a test sends where a person would type something.

use std::cell::Cell;

use serde_json::{Map, Value, json};

mod text;

/// How deep a value may get before only what is required is filled in.
const DEPTH: usize = 4;

/// How deep a value may get at all.
const BOTTOM: usize = 16;

/// So many `$ref`s and `allOf`s are followed in one place.
const HOPS: usize = 24;

/// So many values are made until one fits.
const ATTEMPTS: usize = 24;

/// How much of a value is filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What is required, and nothing else.
    Required,
    /// Every property, where that is possible.
    Everything,
}

/// A value that the schema accepts, with every property set where that is possible; `root` resolves `$ref`s.
pub fn value(schema: &Value, root: &Value) -> Value {
    Maker { root, attempt: 0, extent: Extent::Everything, with_read_only: false, salt: Cell::new(0) }.make(schema, 0)
}

/// A value of some extent that somebody accepts, without what only answers hold; an error with the first that was made
/// if none is accepted.
///
/// # Errors
/// If no value was accepted.
pub fn accepted(
    schema: &Value,
    root: &Value,
    extent: Extent,
    accepts: &dyn Fn(&Value) -> bool,
) -> Result<Value, Value> {
    let attempt = |attempt| Maker { root, attempt, extent, with_read_only: false, salt: Cell::new(0) }.make(schema, 0);
    (0..ATTEMPTS).map(attempt).find(|value| accepts(value)).ok_or_else(|| attempt(0))
}

/// A value that the schema accepts in the judgement of another library, or else the first that was made.
///
/// Where schemas are joined by `oneOf` and the like, a value made from one is not always a value of the whole.
pub fn fitting(schema: &Value) -> Value {
    let first = value(schema, schema);
    let Ok(validator) = jsonschema::draft202012::new(schema) else { return first };
    // What only answers hold belongs into no request, unless nothing else fits.
    let attempts = [false, true].into_iter().flat_map(|with| (0..ATTEMPTS).map(move |attempt| (with, attempt)));
    let mut attempts = attempts.map(|(with_read_only, attempt)| {
        let extent = Extent::Everything;
        Maker { root: schema, attempt, extent, with_read_only, salt: Cell::new(0) }.make(schema, 0)
    });
    attempts.find(|value| validator.is_valid(value)).unwrap_or(first)
}

/// Whether the schema accepts a value in the judgement of another library, formats included. `None` if that cannot read the
/// schema.
pub fn accepts(schema: &Value, value: &Value) -> Option<bool> {
    let validator = jsonschema::draft202012::options().should_validate_formats(true).build(schema);
    validator.ok().map(|validator| validator.is_valid(value))
}

struct Maker<'a> {
    root: &'a Value,
    /// Which of several variants is taken; from half of the attempts on, only what is required is filled in.
    attempt: usize,
    extent: Extent,
    /// Whether properties that only answers hold are filled in where they are required.
    with_read_only: bool,
    /// What makes the items of a list differ.
    salt: Cell<usize>,
}

impl Maker<'_> {
    /// Whether only what is required is filled in.
    fn is_scarce(&self) -> bool {
        self.extent == Extent::Required
    }

    fn make(&self, schema: &Value, depth: usize) -> Value {
        let schema = merged(schema, self.root, 0);
        let Some(node) = schema.as_object() else { return json!("text") };
        let may_be_null = || ["oneOf", "anyOf"].iter().any(|k| list(node, k).any(|variant| variant["type"] == "null"));
        if depth > BOTTOM || (depth > DEPTH && may_be_null()) {
            return Value::Null;
        }
        if let Some(value) = node.get("const").or_else(|| self.pick(node)) {
            return value.clone();
        }
        for keyword in ["oneOf", "anyOf"] {
            let mut variants: Vec<&Value> = list(node, keyword).filter(|variant| variant["type"] != "null").collect();
            if depth == 1 {
                // A parameter travels as text, and servers take it for that where it may be.
                let is_text = |variant: &Value| merged(variant, self.root, 0)["type"] == "string";
                variants.sort_by_key(|variant| !is_text(variant));
            }
            if let Some(variant) = variants.get(self.attempt % variants.len().max(1)) {
                return self.variant(variant, node, keyword, depth);
            }
        }
        if let Some(value) = self.tagged(node, depth) {
            return value;
        }
        match kind(node) {
            "object" => self.object(node, depth),
            "array" => self.array(node, depth),
            "integer" => self.integer(node),
            // Of a format of integers it is one.
            "number" if node.get("format").and_then(Value::as_str).is_some_and(|format| format.contains("int")) => {
                self.integer(node)
            }
            "number" => json!(self.number(node, 1.5)),
            "boolean" => json!(true),
            "null" => Value::Null,
            _ => json!(text::string(node, self.salt.get())),
        }
    }

    fn pick<'n>(&self, node: &'n Map<String, Value>) -> Option<&'n Value> {
        // Text that is empty says least, and `null` nothing; values of another type are none.
        let mut values: Vec<&Value> = list(node, "enum").filter(|value| is_of(value, node.get("type"))).collect();
        values.sort_by_key(|value| (value.is_null(), **value == ""));
        let saying = values.iter().filter(|value| !value.is_null() && ***value != "").count();
        values.truncate(if saying > 0 { saying } else { 1 });
        values.get(self.salt.get() % values.len().max(1)).copied()
    }

    /// A value of one variant, which what stands beside the union holds for as well.
    fn variant(&self, variant: &Value, node: &Map<String, Value>, keyword: &str, depth: usize) -> Value {
        let mut whole = node.clone();
        whole.remove(keyword);
        let tag = node.get("discriminator").and_then(|tag| tag.get("propertyName")?.as_str().map(str::to_owned));
        // The variant's own discriminator, if any, tells its own variants.
        whole.remove("discriminator");
        lay(&mut whole, merged(variant, self.root, 0));
        let mut value = self.make(&Value::Object(whole.clone()), depth + 1);
        let (Some(tag), Some(target)) = (tag, variant["$ref"].as_str()) else { return value };
        let fixed = whole.get("properties").and_then(|p| p.get(&tag)).map(|tag| merged(tag, self.root, 0));
        let mapping = node.get("discriminator").and_then(|tag| tag.get("mapping")?.as_object());
        let key = mapping.into_iter().flatten().find(|(_, mapped)| *mapped == target).map(|(key, _)| key.as_str());
        let key = key.unwrap_or_else(|| target.rsplit('/').next().unwrap_or(target));
        if let Some(object) = value.as_object_mut().filter(|_| may_be(fixed.as_ref(), key)) {
            object.insert(tag, json!(key));
        }
        value
    }

    /// A value of one of those that a schema with a discriminator stands for; `None` if it names none.
    fn tagged(&self, node: &Map<String, Value>, depth: usize) -> Option<Value> {
        let discriminator = node.get("discriminator")?;
        let tag = discriminator.get("propertyName")?.as_str()?;
        let mapping = discriminator.get("mapping")?.as_object()?;
        let (key, target) = mapping.iter().nth(self.attempt % mapping.len().max(1))?;
        let mut whole = node.clone();
        lay(&mut whole, merged(&json!({ "$ref": target }), self.root, 0));
        whole.remove("discriminator");
        let fixed = whole.get("properties").and_then(|p| p.get(tag)).map(|tag| merged(tag, self.root, 0));
        let mut value = self.make(&Value::Object(whole), depth + 1);
        if may_be(fixed.as_ref(), key) {
            value.as_object_mut()?.insert(tag.to_owned(), json!(key));
        }
        Some(value)
    }

    fn object(&self, node: &Map<String, Value>, depth: usize) -> Value {
        let required: Vec<_> = list(node, "required").filter_map(Value::as_str).collect();
        let properties = node.get("properties").and_then(Value::as_object);
        let sparse = self.is_scarce() || depth >= DEPTH || (depth > 0 && self.attempt >= ATTEMPTS / 2);
        let most = size(node, "maxProperties").unwrap_or(usize::MAX);
        let mut object = Map::new();
        for (name, schema) in properties.into_iter().flatten() {
            let optional = !required.contains(&name.as_str());
            if optional
                && (sparse || object.len() + required.len() > most.saturating_add(required.len()).saturating_sub(1))
            {
                continue;
            }
            let is_read_only = || merged(schema, self.root, 0).get("readOnly") == Some(&Value::Bool(true));
            if (is_read_only() && (optional || !self.with_read_only)) || *schema == Value::Bool(false) {
                continue;
            }
            let value = self.make(schema, depth + 1);
            // Where nothing but `null` fits, not to say anything is as good.
            if !(optional && value.is_null()) {
                object.insert(name.clone(), value);
            }
        }
        let other = node.get("additionalProperties").filter(|schema| schema.is_object());
        for name in required {
            let declared = properties.is_some_and(|properties| properties.contains_key(name));
            if !declared {
                object.insert(name.to_owned(), other.map_or(json!("text"), |schema| self.make(schema, depth + 1)));
            }
        }
        let least = size(node, "minProperties")
            .unwrap_or(0)
            .max(usize::from(object.is_empty() && depth < DEPTH && !self.is_scarce()));
        // What is described goes first.
        for (name, schema) in properties.into_iter().flatten() {
            if object.len() < least && !object.contains_key(name) && merged(schema, self.root, 0)["readOnly"] != true {
                object.insert(name.clone(), self.make(schema, depth + 1));
            }
        }
        let names = node.get("propertyNames");
        for number in object.len()..least.min(100) {
            let key = names.map(|names| merged(names, self.root, 0));
            let key = key.and_then(|names| Some(text::string(names.as_object()?, number)));
            let key = key.filter(|key| !key.starts_with("text")).unwrap_or_else(|| format!("key{number}"));
            if let Some(schema) = other {
                object.insert(key, self.make(schema, depth + 1));
            } else if least > 1 || node.get("minProperties").is_some() {
                object.insert(key, json!("text"));
            }
        }
        Value::Object(object)
    }

    fn array(&self, node: &Map<String, Value>, depth: usize) -> Value {
        let mut items: Vec<Value> = list(node, "prefixItems").map(|item| self.make(item, depth + 1)).collect();
        // A parameter that is an empty list is not there.
        let is_due = if self.is_scarce() { depth == 0 } else { depth < DEPTH };
        let least = size(node, "minItems").unwrap_or(0).max(usize::from(is_due && items.is_empty()));
        let most = size(node, "maxItems").unwrap_or(usize::MAX);
        let before = self.salt.get();
        for number in items.len()..least.min(most).min(100) {
            if number > 0 {
                self.salt.set(number);
            }
            match node.get("items") {
                Some(Value::Bool(false)) => break,
                Some(schema) => items.push(self.make(schema, depth + 1)),
                None => items.push(json!("text")),
            }
        }
        self.salt.set(before);
        Value::Array(items)
    }

    fn integer(&self, node: &Map<String, Value>) -> Value {
        let number = self.number(node, 1.0);
        let number = if number.fract() == 0.0 { number } else { number.ceil() };
        json!(number as i64)
    }

    fn number(&self, node: &Map<String, Value>, ordinary: f64) -> f64 {
        let bound = |keyword: &str| node.get(keyword).and_then(Value::as_f64);
        let is_set = |keyword: &str| node.get(keyword) == Some(&Value::Bool(true));
        let gap = bound("multipleOf").unwrap_or(if kind(node) == "integer" { 1.0 } else { 0.001 });
        let open = |keyword: &str| if is_set(keyword) { gap } else { 0.0 };
        let least = bound("minimum").map(|least| least + open("exclusiveMinimum"));
        let least = least.or(bound("exclusiveMinimum").map(|least| least + gap)).unwrap_or(f64::MIN);
        let most = bound("maximum").map(|most| most - open("exclusiveMaximum"));
        let most = most.or(bound("exclusiveMaximum").map(|most| most - gap)).unwrap_or(f64::MAX);
        let value = (ordinary + self.salt.get() as f64).max(least).min(most);
        match bound("multipleOf") {
            Some(step) if step > 0.0 => {
                let above = (value / step).ceil() * step;
                if above > most { (most / step).floor() * step } else { above }
            }
            _ => value,
        }
    }
}

fn list<'a>(node: &'a Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'a Value> {
    node.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

/// Whether a tag of a schema may be a name: one that can be only something else says more than the name.
fn may_be(schema: Option<&Value>, name: &str) -> bool {
    let values = schema.and_then(|schema| schema.get("enum")?.as_array());
    let value = schema.and_then(|schema| schema.get("const"));
    value.is_none_or(|value| value == name) && values.is_none_or(|values| values.iter().any(|value| value == name))
}

/// Whether a value is of a type, or of one of several; of none, any is.
fn is_of(value: &Value, kind: Option<&Value>) -> bool {
    let is_one = |kind: &Value| match (kind.as_str().unwrap_or_default(), value) {
        ("string", Value::String(_)) | ("boolean", Value::Bool(_)) | ("null", Value::Null) => true,
        ("number", Value::Number(_)) | ("array", Value::Array(_)) | ("object", Value::Object(_)) => true,
        ("integer", Value::Number(number)) => number.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => false,
    };
    match kind {
        Some(kind @ Value::String(_)) => is_one(kind),
        Some(Value::Array(kinds)) => kinds.iter().any(is_one),
        _ => true,
    }
}

fn size(node: &Map<String, Value>, keyword: &str) -> Option<usize> {
    node.get(keyword).and_then(Value::as_f64).map(|size| size as usize)
}

fn kind(node: &Map<String, Value>) -> &str {
    match node.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if node.contains_key("properties") || node.contains_key("additionalProperties") => "object",
        _ if node.contains_key("items") || node.contains_key("prefixItems") => "array",
        _ if ["minimum", "maximum", "multipleOf"].iter().any(|keyword| node.contains_key(*keyword)) => "number",
        _ => "string",
    }
}

/// The schema with its `$ref` followed and its `allOf` members laid over each other.
pub(crate) fn merged(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(node) = schema.as_object() else { return schema.clone() };
    let target = node.get("$ref").and_then(Value::as_str).and_then(|text| root.pointer(text.strip_prefix('#')?));
    let own = node.iter().filter(|(key, _)| !["$ref", "allOf", "$defs"].contains(&key.as_str()));
    let own = Value::Object(own.map(|(key, value)| (key.clone(), value.clone())).collect());
    let parts = target.into_iter().chain(list(node, "allOf")).filter(|_| depth < HOPS);
    let parts: Vec<Value> = parts.map(|part| merged(part, root, depth + 1)).chain([own]).collect();
    let mut whole = Map::new();
    parts.iter().for_each(|part| lay(&mut whole, part.clone()));
    if target.is_some() {
        choose(&mut whole, &node["$ref"], root);
    }
    // A part that allows no other properties allows none of the other parts' either.
    let is_closed = |part: &&Value| part["additionalProperties"] == false && part.get("patternProperties").is_none();
    let closed: Vec<&Value> = parts.iter().filter(is_closed).collect();
    if let Some(properties) = whole.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| closed.iter().all(|part| part["properties"].get(name).is_some()));
    }
    if !closed.is_empty() {
        whole.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Value::Object(whole)
}

/// Settles what a discriminator is for in a schema that is itself one of those that it tells apart.
fn choose(whole: &mut Map<String, Value>, own: &Value, root: &Value) {
    let Some(discriminator) = whole.get("discriminator") else { return };
    let mapping = discriminator["mapping"].as_object();
    let key = mapping.and_then(|mapping| mapping.iter().find(|(_, target)| *target == own)).map(|(key, _)| key.clone());
    let (Some(key), Some(tag)) = (key, discriminator["propertyName"].as_str().map(str::to_owned)) else { return };
    whole.remove("discriminator");
    if let Some(Value::Object(properties)) = whole.get_mut("properties")
        && may_be(properties.get(&tag).map(|tag| merged(tag, root, 0)).as_ref(), &key)
    {
        properties.insert(tag, json!({ "const": key }));
    }
}

/// Lays a schema over another, so that both hold as far as that can be said in one.
fn lay(whole: &mut Map<String, Value>, part: Value) {
    let Value::Object(part) = part else { return };
    for (key, value) in part {
        match (whole.get_mut(&key), value) {
            (Some(Value::Object(have)), Value::Object(more)) if key == "properties" => {
                for (name, schema) in more {
                    match have.get_mut(&name) {
                        Some(Value::Object(_)) if schema.is_object() => {
                            let both = json!({ "allOf": [have[&name].clone(), schema] });
                            have.insert(name, both);
                        }
                        _ => _ = have.insert(name, schema),
                    }
                }
            }
            (Some(Value::Array(have)), Value::Array(more)) if key == "required" => have.extend(more),
            (Some(Value::Array(have)), Value::Array(more)) if key == "enum" => {
                have.retain(|value| more.contains(value))
            }
            (_, value) => {
                whole.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_their_schemas() {
        let defs = json!({
            "Node": { "type": "object", "required": ["next", "name"], "properties": {
                "name": { "type": "string", "pattern": "^[a-z]{3}-\\d+$", "minLength": 8 },
                "next": { "oneOf": [{ "type": "null" }, { "$ref": "#/$defs/Node" }] } } },
            "Cat": { "type": "object", "required": ["kind", "lives"], "properties": {
                "kind": { "const": "cat" }, "lives": { "type": "integer", "minimum": 3, "multipleOf": 2 } } },
        });
        for schema in [
            json!({ "$ref": "#/$defs/Node" }),
            json!({ "type": "array", "minItems": 3, "uniqueItems": true, "items": { "type": "string", "format": "uuid" } }),
            json!({ "type": "array", "minItems": 3, "uniqueItems": true, "items": { "enum": ["a", "b", "c"] } }),
            json!({ "type": "array", "minItems": 2, "uniqueItems": true, "items": { "type": "number", "maximum": 9 } }),
            json!({ "allOf": [{ "$ref": "#/$defs/Cat" }, { "required": ["more"] }] }),
            json!({ "oneOf": [{ "$ref": "#/$defs/Cat" }, { "type": "object", "required": ["kind"] }] }),
            json!({ "anyOf": [{ "$ref": "#/$defs/Cat" }], "required": ["z"], "properties": { "z": { "type": "boolean" } } }),
            json!({ "type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 3 }),
            json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 0.5 }),
            json!({ "type": "string", "minLength": 3, "maxLength": 3 }),
            json!({ "type": "object", "minProperties": 2, "additionalProperties": { "type": "integer" } }),
        ] {
            let mut schema = schema;
            schema["$defs"] = defs.clone();
            let value = fitting(&schema);
            let validator = jsonschema::draft202012::options().should_validate_formats(true).build(&schema).unwrap();
            assert!(validator.is_valid(&value), "{value} for {schema}");
        }
    }
}
