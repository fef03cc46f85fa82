//! Example values, made from a schema.

use serde_json::{Map, Value, json};

use crate::normalise::{CompiledDefinitions, CompiledSchema, Reading};
use crate::{OperationSpec, pointer};

/// Schemas that are nested deeper get only what they require.
const DEEP: usize = 5;

/// Schemas that are nested deeper get nothing.
const DEEPEST: usize = 40;

/// An example of the operation's output, or of one item of a subscription. It is the same each time.
pub(super) fn example(spec: &OperationSpec) -> Value {
    let Ok(schema) = spec.output.to_value() else { return Value::Null };
    let made = Maker { spec }.make(&schema, 0);
    let source = spec.definitions.clone();
    let definition = move |name: &str| Some(source.get(name)?.schema.to_value().ok()?.into_owned());
    let definitions = CompiledDefinitions::new(Reading::Default, definition);
    let compiled = CompiledSchema::with_definitions(&schema, &definitions);
    if compiled.check(&made) { made } else { compiled.cast(made).0 }
}

struct Maker<'a> {
    spec: &'a OperationSpec,
}

impl Maker<'_> {
    fn make(&self, schema: &Value, depth: usize) -> Value {
        let Some(schema) = schema.as_object().filter(|_| depth < DEEPEST) else { return Value::Null };
        for keyword in ["const", "default", "example"] {
            if let Some(value) = schema.get(keyword) {
                return value.clone();
            }
        }
        for keyword in ["examples", "enum"] {
            if let Some(value) = schema.get(keyword).and_then(|values| values.get(0)) {
                return value.clone();
            }
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let name = pointer::unescaped(reference.strip_prefix(pointer::DEFINITIONS).unwrap_or(reference));
            let found = self.spec.definitions.get(&name).and_then(|definition| definition.schema.to_value().ok());
            return found.map_or(Value::Null, |schema| self.make(&schema, depth + 1));
        }
        for keyword in ["oneOf", "anyOf"] {
            let variants = schema.get(keyword).and_then(Value::as_array);
            let is_null = |schema: &&Value| schema.get("type").is_some_and(|kind| kind == "null");
            if let Some(variant) = variants.and_then(|all| all.iter().find(|schema| !is_null(schema))) {
                return self.joined(schema, self.make(variant, depth + 1), depth);
            }
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            let whole = parts.iter().fold(Value::Null, |whole, part| join(whole, self.make(part, depth + 1)));
            return self.joined(schema, whole, depth);
        }
        self.plain(schema, depth)
    }

    /// A value of a part of the schema, with the properties that stand beside that part.
    fn joined(&self, schema: &Map<String, Value>, part: Value, depth: usize) -> Value {
        if schema.contains_key("properties") { join(self.object(schema, depth), part) } else { part }
    }

    fn plain(&self, schema: &Map<String, Value>, depth: usize) -> Value {
        let kind = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().find(|kind| *kind != "null").or(kinds.first()),
            kind => kind,
        };
        let number = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        match kind.and_then(Value::as_str) {
            Some("string") => Value::String(text(schema)),
            Some("integer") => json!(number("minimum").map_or(1, |least| least.ceil() as i64)),
            Some("number") => json!(number("minimum").unwrap_or(1.5)),
            Some("boolean") => Value::Bool(true),
            Some("array") => {
                let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(u64::from(depth < DEEP));
                let item = schema.get("items").map_or(Value::Null, |items| self.make(items, depth + 1));
                Value::Array(vec![item; usize::try_from(least.min(100)).unwrap_or_default()])
            }
            Some("object") => self.object(schema, depth),
            None if schema.contains_key("properties") => self.object(schema, depth),
            _ => Value::Null,
        }
    }

    fn object(&self, schema: &Map<String, Value>, depth: usize) -> Value {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let kept = properties.filter(|(name, schema)| {
            let hidden = schema.get("writeOnly").is_some_and(|hidden| hidden == &Value::Bool(true));
            is_required(name) || (depth < DEEP && !hidden)
        });
        Value::Object(kept.map(|(name, schema)| (name.clone(), self.make(schema, depth + 1))).collect())
    }
}

/// Two objects as one; of other values, the second.
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

/// A text of the schema's format, and at least as long as it asks for.
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
    let mut text = known.to_owned();
    text.extend(std::iter::repeat_n('x', least.saturating_sub(known.len())));
    text.truncate(length("maxLength").unwrap_or(usize::MAX).min(text.len()));
    text
}
