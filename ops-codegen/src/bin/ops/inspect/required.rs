//! An input that sets what an operation requires, and nothing else.

use ops_runtime::spec::{Definition, Definitions, OperationSpec, Schema};
use ops_runtime::{HttpClient, HttpConfig, Registry, mock};
use serde_json::{Map, Value};

/// Schemas that are nested deeper stay as they are.
const DEEPEST: usize = 40;

/// The input; `None` if none can be made.
pub(super) fn input(spec: &OperationSpec) -> Option<Value> {
    let schema = spec.input.to_value().ok()?;
    let checked = checked(spec)?;
    let made = [Part::Sent, Part::Required, Part::All].iter().map(|part| example(spec, &schema, *part));
    let mut first = None;
    for input in made.flatten() {
        if checked.check_input(&spec.id, &input).is_ok() {
            return Some(input);
        }
        first = first.or(Some(input));
    }
    first
}

/// A registry that knows which inputs the operation takes, and of an HTTP operation, which its client can send.
fn checked(spec: &OperationSpec) -> Option<Registry> {
    let registry = Registry::new();
    let bound = match spec.http() {
        Some(_) => {
            let config = HttpConfig::new().with_base_url("https://example.com");
            HttpClient::new(config).ok()?.bind([spec.clone()]).ok()?
        }
        None => vec![mock::examples(spec.clone())],
    };
    registry.register_all(bound).ok()?;
    Some(registry)
}

/// Which properties an example has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// What is required and no server sets.
    Sent,
    /// What is required.
    Required,
    /// All: what requires a property may be another schema than its own.
    All,
}

/// An example of such a part of a schema.
fn example(spec: &OperationSpec, schema: &Value, part: Part) -> Option<Value> {
    let of = |definition: &Definition| {
        let schema = definition.schema.to_value().ok()?;
        Some(Definition::from_value(definition.name.clone(), required(&schema, part, &[], 0)))
    };
    let definitions = Definitions::new(spec.definitions.as_slice().iter().filter_map(of).collect());
    let mut example = OperationSpec::query("example.input").with_output(Schema::from(required(schema, part, &[], 0)));
    example.definitions = definitions;
    let registry = Registry::new();
    registry.register(mock::examples(example)).ok()?;
    let made = crate::modules::runtime().ok()?.block_on(registry.call("example.input", Value::Object(Map::new())));
    made.ok().map(|made| made.data).filter(Value::is_object)
}

/// A schema without the properties that neither it nor the schema around it requires.
fn required(schema: &Value, part: Part, outer: &[Value], depth: usize) -> Value {
    let is_whole = part == Part::All || depth >= DEEPEST;
    let Some(node) = schema.as_object().filter(|_| !is_whole) else { return schema.clone() };
    let read_only = |name: &Value| {
        let property = name.as_str().and_then(|name| node.get("properties")?.get(name));
        part == Part::Sent && property.is_some_and(|property| property.get("readOnly") == Some(&Value::Bool(true)))
    };
    let of = |schema: &Value| schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let parts = node.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let own: Vec<Value> = of(schema).into_iter().filter(|name| !read_only(name)).collect();
    let beside = outer.iter().cloned().chain(parts.flat_map(of)).filter(|name| !read_only(name));
    let names: Vec<Value> = own.iter().cloned().chain(beside).collect();
    let inner = |schema: &Value| required(schema, part, &[], depth + 1);
    let within = |schema: &Value| required(schema, part, &names, depth + 1);
    let member = |(keyword, value): (&String, &Value)| {
        let value = match (keyword.as_str(), value) {
            ("required", _) => Value::Array(own.clone()),
            ("properties", Value::Object(properties)) => {
                let kept = properties.iter().filter(|(name, _)| names.iter().any(|one| one == *name));
                Value::Object(kept.map(|(name, schema)| (name.clone(), inner(schema))).collect())
            }
            ("items", schema) => inner(schema),
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => parts.iter().map(within).collect(),
            ("prefixItems", Value::Array(parts)) => parts.iter().map(inner).collect(),
            (_, value) => value.clone(),
        };
        (keyword.clone(), value)
    };
    Value::Object(node.iter().map(member).collect())
}

#[cfg(test)]
mod tests {
    use ops_runtime::binding::{HttpBinding, HttpBody};
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_required_is_set() {
        let schema = json!({
            "type": "object",
            "required": ["id", "lines", "name"],
            "properties": {
                "id": { "type": "integer", "readOnly": true },
                "name": { "type": "string", "minLength": 6 },
                "note": { "type": "string" },
                "lines": { "type": "array", "minItems": 1, "items": {
                    "type": "object", "required": ["sku"], "properties": { "sku": { "type": "string" }, "count": { "type": "integer" } },
                } },
            },
        });
        // A server sets `id` in the body of a request, and nobody sets it for a function.
        let order = json!({ "lines": [{ "sku": "text" }], "name": "textxx" });
        let body = json!({ "type": "object", "properties": { "body": schema }, "required": ["body"] });
        let bodies = const { &[HttpBody::new("application/json")] };
        let spec = OperationSpec::mutation("shop.order").with_input(Schema::from(body));
        let spec = spec.with_http(HttpBinding::new("POST", "/orders").with_bodies(bodies));
        assert_eq!(input(&spec), Some(json!({ "body": order })));
        let spec = OperationSpec::mutation("shop.order").with_input(Schema::from(schema));
        assert_eq!(input(&spec), Some(json!({ "id": 1, "lines": order["lines"], "name": order["name"] })));
        // What requires a property is beside the schema that has it.
        let part = json!({ "properties": { "name": { "type": "string" }, "note": { "type": "string" } } });
        for schema in [
            json!({ "allOf": [part], "required": ["name"] }),
            json!({ "allOf": [{ "required": ["name"] }], "properties": part["properties"] }),
        ] {
            let spec = OperationSpec::mutation("shop.order").with_input(Schema::from(schema));
            assert_eq!(input(&spec), Some(json!({ "name": "text" })));
        }
    }
}
