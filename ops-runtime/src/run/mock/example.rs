//! Example values, made from a schema.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::pattern::text_of;
use super::tag::tagged;
use crate::model::decimal;
use crate::normalise::{CompiledDefinitions, CompiledSchema, Reading, Validator};
use crate::run::schemas::{DefinitionCache, Schemas};
use crate::{Definitions, OperationSpec, Schema, pointer};

/// More deeply nested schemas get only their required properties.
const DEEP: usize = 5;

/// More deeply nested schemas get nothing.
const DEEPEST: usize = 40;

/// Limit of an example, in values and units of 64 bytes of text: a small document may describe a huge one.
const LARGEST: usize = 100_000;

/// An example of the operation's output, or of one item of a subscription. It is the same each time.
pub(super) fn example(spec: &OperationSpec) -> Value {
    let schemas = Schemas::new(spec, &DefinitionCache::default());
    let fits = |made: &Value| schemas.output_mismatches(made).is_ok_and(|told| told.is_empty());
    fitting(&spec.output, &spec.definitions, fits)
}

/// An example of the operation's input, with the required properties and little else. If it is copied, no optional
/// values are sent that could change something.
#[cfg(feature = "gateway")]
pub(crate) fn input(spec: &OperationSpec) -> Value {
    let schemas = Schemas::new(spec, &DefinitionCache::default());
    let fits = |made: &Value| schemas.fits_input(spec, made);
    let ways = [Optional { first: true, ..NONE }, NONE, ALL];
    first_fitting(&spec.input, &spec.definitions, &ways, fits)
}

/// An example of a schema, if possible one that fits.
pub(super) fn fitting(schema: &Schema, definitions: &Definitions, fits: impl Fn(&Value) -> bool) -> Value {
    // An optional property may be one that cannot be made.
    first_fitting(schema, definitions, &[ALL, NONE], fits)
}

/// The first example that fits, with each of these choices of optional properties; or the first one, repaired.
fn first_fitting(
    schema: &Schema,
    definitions: &Definitions,
    ways: &[Optional],
    fits: impl Fn(&Value) -> bool,
) -> Value {
    let Ok(schema) = schema.to_value() else { return Value::Null };
    let parsed = Parsed::default();
    let make = |quotes, optional| {
        Maker { definitions, parsed: &parsed, quotes, optional, left: Cell::new(LARGEST) }.make(&schema, 0)
    };
    // Examples in documents are often wrong.
    let all = ways.iter().flat_map(|optional| [true, false].map(|quotes| (quotes, *optional)));
    all.map(|(quotes, optional)| make(quotes, optional)).find(|made| fits(made)).unwrap_or_else(|| {
        let first = make(true, ways.first().copied().unwrap_or(ALL));
        let source = definitions.clone();
        let definition = move |name: &str| Some(source.get(name)?.schema.to_value().ok()?.into_owned());
        let definitions = CompiledDefinitions::new(Reading::Default, definition);
        CompiledSchema::with_definitions(&schema, &definitions).cast(first).0
    })
}

/// Which optional properties an example has.
#[derive(Clone, Copy)]
struct Optional {
    all: bool,
    /// The first property of a nested object without required properties: an empty object shows nothing.
    first: bool,
}

const ALL: Optional = Optional { all: true, first: false };
const NONE: Optional = Optional { all: false, first: false };

/// The definitions that were parsed so far: as text, each would be parsed again at each reference.
type Parsed = RefCell<HashMap<String, Option<Rc<Value>>>>;

struct Maker<'a> {
    definitions: &'a Definitions,
    parsed: &'a Parsed,
    /// True if the document's own examples are used.
    quotes: bool,
    optional: Optional,
    /// The remaining size.
    left: Cell<usize>,
}

impl Maker<'_> {
    /// Counts a part of the example; false if it would be too large.
    fn spend(&self, size: usize) -> bool {
        let left = self.left.get().checked_sub(size);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// A value of the document, if it fits into the limit.
    fn quoted(&self, value: &Value) -> Value {
        if self.spend(size(value)) { value.clone() } else { Value::Null }
    }

    fn definition(&self, name: &str) -> Option<Rc<Value>> {
        if let Some(known) = self.parsed.borrow().get(name) {
            return known.clone();
        }
        let schema = self.definitions.get(name).and_then(|definition| definition.schema.to_value().ok());
        let schema = schema.map(|schema| Rc::new(schema.into_owned()));
        self.parsed.borrow_mut().insert(name.to_owned(), schema.clone());
        schema
    }

    fn target(&self, reference: &str) -> Option<Rc<Value>> {
        self.definition(&pointer::unescaped(reference.strip_prefix(pointer::DEFINITIONS).unwrap_or(reference)))
    }

    fn make(&self, schema: &Value, depth: usize) -> Value {
        let is_in_reach = depth < DEEPEST && self.spend(1);
        let Some(schema) = schema.as_object().filter(|_| is_in_reach) else { return Value::Null };
        let own = [("const", true), ("default", self.quotes), ("example", self.quotes)];
        if let Some(value) = own.iter().filter(|(_, taken)| *taken).find_map(|(keyword, _)| schema.get(*keyword)) {
            return self.quoted(value);
        }
        let lists = [("examples", self.quotes), ("enum", true)];
        let mut lists = lists.iter().filter(|(_, taken)| *taken);
        if let Some(value) = lists.find_map(|(keyword, _)| schema.get(*keyword)?.get(0)) {
            return self.quoted(value);
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return self.target(reference).map_or(Value::Null, |schema| self.make(&schema, depth + 1));
        }
        for keyword in ["oneOf", "anyOf"] {
            let variants = schema.get(keyword).and_then(Value::as_array);
            let is_null = |schema: &&Value| schema.get("type").is_some_and(|kind| kind == "null");
            if let Some(variant) = variants.and_then(|all| all.iter().find(|schema| !is_null(schema))) {
                return tagged(schema, variant, self.joined(schema, self.make(variant, depth + 1), depth));
            }
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            let whole = parts.iter().fold(Value::Null, |whole, part| join(whole, self.make(part, depth + 1)));
            return self.joined(schema, whole, depth);
        }
        self.plain(schema, depth)
    }

    /// A value of a part of the schema, joined with the properties beside that part.
    fn joined(&self, schema: &Map<String, Value>, part: Value, depth: usize) -> Value {
        if schema.contains_key("properties") { join(self.object(schema, depth), part) } else { part }
    }

    fn plain(&self, schema: &Map<String, Value>, depth: usize) -> Value {
        let kind = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().find(|kind| *kind != "null").or(kinds.first()),
            kind => kind,
        };
        match kind.and_then(Value::as_str) {
            Some("string") => {
                // A pattern is compiled each time.
                let pattern = schema.get("pattern").and_then(Value::as_str).unwrap_or_default();
                let made = self.spend(pattern.len() / 8).then(|| text(schema));
                Value::String(made.filter(|text| self.spend(text.len() / 64)).unwrap_or_default())
            }
            Some("integer") => json!(number(schema, 1.0).ceil() as i64),
            Some("number") => json!(number(schema, 1.5)),
            Some("boolean") => Value::Bool(true),
            Some("array") => self.array(schema, depth),
            Some("object") => self.object(schema, depth),
            None if schema.contains_key("properties") => self.object(schema, depth),
            _ => Value::Null,
        }
    }

    fn array(&self, schema: &Map<String, Value>, depth: usize) -> Value {
        let limit = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
        let usual =
            u64::from(depth < DEEP && (self.optional.all || self.optional.first)).min(limit("maxItems").unwrap_or(1));
        let count = usize::try_from(limit("minItems").unwrap_or(usual).min(100)).unwrap_or_default();
        let first = schema.get("prefixItems").and_then(Value::as_array).into_iter().flatten();
        let mut items: Vec<Value> = first.map(|item| self.make(item, depth + 1)).collect();
        let before = self.left.get();
        let item = schema.get("items").map_or(Value::Null, |items| self.make(items, depth + 1));
        let each = (before - self.left.get()).max(1);
        let count = count.min(items.len() + 1 + self.left.get() / each);
        self.spend(each * count.saturating_sub(items.len() + 1));
        let is_distinct = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let schema = schema.get("items").filter(|_| is_distinct);
        items.extend((items.len()..count).map(|at| match schema {
            Some(schema) => self.another(schema, &item, at, depth + 1),
            None => item.clone(),
        }));
        Value::Array(items)
    }

    /// Another value of a schema than `item`, for items that must differ; the same one if there seems to be no other.
    fn another(&self, schema: &Value, item: &Value, at: usize, depth: usize) -> Value {
        if at == 0 || depth >= DEEPEST || schema.get("const").is_some() || !self.spend(1) {
            return item.clone();
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = self.target(reference);
            return target.map_or_else(|| item.clone(), |schema| self.another(&schema, item, at, depth + 1));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let other = values.iter().filter(|value| *value != item).nth(at - 1);
            return other.map_or_else(|| item.clone(), |value| self.quoted(value));
        }
        match (item, schema.get("properties").and_then(Value::as_object)) {
            (Value::Object(members), Some(properties)) => {
                with_another(members, |name, member| match properties.get(name) {
                    Some(schema) => self.another(schema, member, at, depth + 1),
                    None => member.clone(),
                })
            }
            _ => distinct(item, at),
        }
    }

    fn object(&self, schema: &Map<String, Value>, depth: usize) -> Value {
        let required = schema.get("required").and_then(Value::as_array);
        let properties = schema.get("properties").and_then(Value::as_object);
        // Skipped properties are visited, too.
        if !self.spend((required.map_or(0, Vec::len) + properties.map_or(0, Map::len)) / 16) {
            return Value::Object(Map::new());
        }
        let names: HashSet<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = properties.into_iter().flatten();
        let nothing_is_required = required.is_none_or(Vec::is_empty);
        let mut made = Map::new();
        for (name, schema) in properties {
            let is_first = self.optional.first && depth > 0 && nothing_is_required && made.is_empty();
            let is_taken = depth < DEEP && (self.optional.all || is_first) && !is_hidden(schema);
            if names.contains(name.as_str()) || is_taken {
                made.insert(name.clone(), self.make(schema, depth + 1));
            }
        }
        // Required properties without a schema.
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !made.contains_key(name) {
                let schema = schema.get("additionalProperties").unwrap_or(&Value::Null);
                made.insert(name.to_owned(), self.make(schema, depth + 1));
            }
        }
        self.fill(schema, &mut made, depth);
        Value::Object(made)
    }

    /// Adds members until there are as many as the schema asks for: declared ones first.
    fn fill(&self, schema: &Map<String, Value>, made: &mut Map<String, Value>, depth: usize) {
        let least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or_default().min(100);
        let members = |keyword: &str| schema.get(keyword).and_then(Value::as_object).into_iter().flatten();
        let declared = members("properties").filter(|(_, schema)| !is_hidden(schema));
        let declared = declared.map(|(name, schema)| (name.clone(), schema));
        // A pattern is compiled each time.
        let name_of = |pattern: &str| self.spend(pattern.len() / 8).then(|| text_of(pattern, 0)).flatten();
        let named = members("patternProperties").filter_map(|(pattern, schema)| Some((name_of(pattern)?, schema)));
        let additional = schema.get("additionalProperties").unwrap_or(&Value::Null);
        let others = (1..=least).filter(|_| *additional != Value::Bool(false));
        let others = others.map(|at| (format!("key{at}"), additional));
        let mut candidates = declared.chain(named).chain(others);
        while (made.len() as u64) < least
            && self.spend(1)
            && let Some((name, schema)) = candidates.next()
        {
            if !made.contains_key(&name) {
                made.insert(name, self.make(schema, depth + 1));
            }
        }
    }
}

/// True if only requests have a value of the schema.
fn is_hidden(schema: &Value) -> bool {
    schema.get("writeOnly").is_some_and(|hidden| hidden == &Value::Bool(true))
}

/// The size of a value, in the units of the limit.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| 1 + name.len() / 64 + size(value)).sum::<usize>() + 1
        }
        Value::String(text) => 1 + text.len() / 64,
        _ => 1,
    }
}

/// A number within the limits of the schema, if possible `usual`.
fn number(schema: &Map<String, Value>, usual: f64) -> f64 {
    let limit = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let is_whole = schema.get("type").is_some_and(|kind| kind == "integer");
    let beside = if is_whole { 1.0 } else { 0.001 };
    let least = limit("minimum").or(limit("exclusiveMinimum").map(|least| least + beside));
    let most = limit("maximum").or(limit("exclusiveMaximum").map(|most| most - beside));
    let made = usual.min(most.unwrap_or(usual)).max(least.unwrap_or(f64::MIN));
    match limit("multipleOf").filter(|step| *step > 0.0) {
        Some(step) => {
            let above = decimal::up_to_multiple(made, step);
            let fits = most.is_none_or(|most| above <= most);
            least.filter(|_| !fits).map_or(above, |least| decimal::up_to_multiple(least, step))
        }
        None => made,
    }
}

/// Another value of the same kind, for items that must differ.
fn distinct(item: &Value, at: usize) -> Value {
    match item {
        Value::Number(number) => match number.as_i64() {
            Some(whole) => json!(whole.saturating_add(i64::try_from(at).unwrap_or_default())),
            None => json!(number.as_f64().unwrap_or_default() + at as f64),
        },
        Value::String(text) if at > 0 => json!(format!("{text}{at}")),
        // There is only one other. A third one is left as it is, so that another member of an object differs.
        Value::Bool(flag) => json!(*flag == (at != 1)),
        Value::Object(members) => with_another(members, |_, member| distinct(member, at)),
        other => other.clone(),
    }
}

/// The object with another value of the first member that has one.
fn with_another(members: &Map<String, Value>, another: impl Fn(&str, &Value) -> Value) -> Value {
    let mut all = members.clone();
    all.extend(members.iter().find_map(|(name, member)| {
        let other = another(name, member);
        (other != *member).then(|| (name.clone(), other))
    }));
    Value::Object(all)
}

/// Merges two objects; of other values, returns the second.
fn join(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut all), Value::Object(more)) => {
            all.extend(more);
            Value::Object(all)
        }
        (one, Value::Null) => one,
        (_, other) => other,
    }
}

/// A text of the schema's format, with at least the minimum length.
fn text(schema: &Map<String, Value>) -> String {
    let known = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("date") => "2026-01-31",
        Some("time") => "12:00:00Z",
        Some("duration") => "P1D",
        Some("uuid") => "6f1c1b6e-4c7a-4b1e-9a3e-2f0d7c5a8b90",
        Some("email") => "ann@example.com",
        Some("uri" | "url" | "iri") => "https://example.com/",
        Some("hostname") => "example.com",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("byte" | "binary") => "aGk=",
        _ => "text",
    };
    let length = |keyword: &str| schema.get(keyword).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let least = length("minLength").unwrap_or(0).min(10_000);
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        // A text of the format may match the pattern as well.
        let fits = || Validator::new(&json!({ "pattern": pattern })).check(&json!(known));
        if let Some(made) = text_of(pattern, least).filter(|_| !fits()) {
            return made;
        }
    }
    let mut text = known.to_owned();
    text.extend(std::iter::repeat_n('x', least.saturating_sub(known.len())));
    text.truncate(length("maxLength").unwrap_or(usize::MAX).min(text.len()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Definition;

    fn made(schema: &Value, definitions: Vec<Definition>) -> Value {
        fitting(&Schema::from(schema.clone()), &Definitions::new(definitions), |_| true)
    }

    #[test]
    fn examples_keep_to_limits() {
        for (schema, expected) in [
            (json!({ "type": "integer", "minimum": 2.5 }), json!(3)),
            (json!({ "type": "integer", "exclusiveMaximum": 0 }), json!(-1)),
            (json!({ "type": "number", "exclusiveMinimum": 7, "multipleOf": 2 }), json!(8.0)),
            (json!({ "type": "number", "exclusiveMinimum": 0.25, "maximum": 0.35, "multipleOf": 0.1 }), json!(0.3)),
            (json!({ "type": "string", "maxLength": 2 }), json!("te")),
            (json!({ "type": "string", "pattern": "^x-[0-9]{3}$", "format": "uuid" }), json!("x-111")),
            (json!({ "type": "array", "maxItems": 0, "items": {} }), json!([])),
            (
                json!({ "type": "array", "minItems": 2, "uniqueItems": true, "items": { "type": "string" } }),
                json!(["text", "text1"]),
            ),
            (
                json!({ "type": "array", "minItems": 2, "uniqueItems": true, "items": { "enum": ["mon", "tue"] } }),
                json!(["mon", "tue"]),
            ),
            (
                json!({ "type": "array", "minItems": 2, "uniqueItems": true, "items": { "type": "boolean" } }),
                json!([true, false]),
            ),
            (
                json!({ "type": "array", "minItems": 2, "uniqueItems": true, "items": { "type": "object", "properties": {
                    "kind": { "const": "a" }, "day": { "enum": ["mon", "tue"] }, "id": { "type": "integer" } } } }),
                json!([{ "kind": "a", "day": "mon", "id": 1 }, { "kind": "a", "day": "tue", "id": 1 }]),
            ),
            (
                json!({ "type": "array", "minItems": 4, "uniqueItems": true, "items": { "type": "object",
                    "required": ["a", "id"], "properties": { "a": { "type": "boolean" }, "id": { "type": "integer" } } } }),
                json!([{ "a": true, "id": 1 }, { "a": false, "id": 1 }, { "a": true, "id": 3 }, { "a": true, "id": 4 }]),
            ),
            (
                json!({ "type": "object", "minProperties": 2, "additionalProperties": { "type": "string" } }),
                json!({ "key1": "text", "key2": "text" }),
            ),
            (
                json!({ "type": "object", "minProperties": 1, "additionalProperties": false,
                    "patternProperties": { "^x-[0-9]{3}$": { "type": "boolean" } } }),
                json!({ "x-111": true }),
            ),
            (
                json!({ "type": "array", "prefixItems": [{ "const": 1 }, { "type": "boolean" }], "items": false }),
                json!([1, true]),
            ),
            (
                json!({ "type": "object", "required": ["a"], "additionalProperties": { "type": "boolean" } }),
                json!({ "a": true }),
            ),
            (json!({ "type": "string", "examples": ["Rex", "Tom"] }), json!("Rex")),
        ] {
            assert_eq!(made(&schema, Vec::new()), expected, "{schema}");
        }
    }

    #[test]
    fn items_of_a_definition_differ() {
        let days = Definition::from_value("Day".to_owned(), json!({ "type": "string", "enum": ["mon", "tue", "wed"] }));
        let schema = json!({ "type": "array", "minItems": 3, "uniqueItems": true, "items": { "$ref": "#/$defs/Day" } });
        assert_eq!(made(&schema, vec![days]), json!(["mon", "tue", "wed"]));
    }

    #[cfg(feature = "gateway")]
    #[test]
    fn an_input_has_what_is_required_and_little_else() {
        let body = |required: Value| {
            json!({ "type": "object", "required": required, "properties": {
            "name": { "type": "string" }, "nick": { "type": "string" }, "tags": { "type": "array", "items": { "type": "string" } } } })
        };
        for (body, required, expected) in [
            (body(json!([])), json!(["id", "body"]), json!({ "id": 1, "body": { "name": "text" } })),
            (body(json!(["nick"])), json!(["id", "body"]), json!({ "id": 1, "body": { "nick": "text" } })),
            (body(json!([])), json!(["id"]), json!({ "id": 1 })),
            // What is required together with something else is not left out.
            (
                json!({ "type": "object", "minProperties": 2, "properties": { "a": { "const": 1 }, "b": { "const": 2 } } }),
                json!(["body"]),
                json!({ "body": { "a": 1, "b": 2 } }),
            ),
        ] {
            let input = json!({ "type": "object", "required": required, "properties": { "id": { "type": "integer" }, "body": body } });
            let spec = OperationSpec::mutation("t.t").with_input(Schema::from(input));
            assert_eq!(super::input(&spec), expected, "{body}");
        }
    }

    #[test]
    fn a_small_schema_makes_no_huge_example() {
        let twice = json!({ "type": "object", "required": ["a", "b"], "properties": { "a": { "$ref": "#/$defs/T" }, "b": { "$ref": "#/$defs/T" } } });
        let lists = json!({ "type": "array", "minItems": 100, "items": { "$ref": "#/$defs/T" } });
        let quotes = json!({ "type": "array", "items": { "$ref": "#/$defs/T" }, "minItems": 100, "examples": [vec!["x".repeat(64); 1_000]] });
        let texts = json!({ "type": "array", "minItems": 100, "items": { "type": "array", "minItems": 100, "items": { "type": "string", "minLength": 10_000 } } });
        for schema in [twice, lists, quotes, texts] {
            let definition = Definition::from_value("T".to_owned(), schema.clone());
            let made =
                made(&json!({ "type": "array", "minItems": 100, "items": { "$ref": "#/$defs/T" } }), vec![definition]);
            // A member counts for its value alone while it is made.
            assert!(size(&made) <= 2 * LARGEST, "{} of {schema}", size(&made));
        }
    }
}
