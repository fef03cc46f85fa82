//! Schemas in a few words.

use ops_runtime::binding::McpOutput;
use ops_runtime::spec::pointer;
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use serde_json::Value;

use crate::report::cut;

/// The maximum number of characters of a summary.
const WIDTH: usize = 72;

/// How deep a schema is summarised.
const DEPTH: usize = 3;

pub(crate) fn kind(spec: &OperationSpec) -> &'static str {
    match spec.kind {
        OperationKind::Query => "query",
        OperationKind::Mutation => "mutation",
        OperationKind::Subscription => "subscription",
        _ => "operation",
    }
}

/// The input, property by property, whole: `petId: integer, limit?: integer, body: Pet`.
pub(crate) fn input(spec: &OperationSpec) -> String {
    let Ok(schema) = spec.input.to_value() else { return "any".to_owned() };
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|p| !p.is_empty()) else {
        return if spec.http().is_some() || spec.mcp().is_some() { "-".to_owned() } else { words(&schema, DEPTH) };
    };
    let required = |name: &str| {
        schema.get("required").and_then(Value::as_array).is_some_and(|list| list.iter().any(|item| item == name))
    };
    let property = |(name, schema): (&String, &Value)| {
        format!("{name}{}: {}", if required(name) { "" } else { "?" }, words(schema, 1))
    };
    properties.iter().map(property).collect::<Vec<_>>().join(", ")
}

/// The output, whole: `[Pet]`.
pub(crate) fn output(spec: &OperationSpec) -> String {
    match spec.mcp() {
        Some(tool) if tool.output == McpOutput::Content => "content blocks".to_owned(),
        _ => output_of(&spec.output),
    }
}

fn output_of(schema: &Schema) -> String {
    schema.to_value().map_or_else(|_| "any".to_owned(), |schema| words(&schema, DEPTH))
}

/// A schema, so many levels deep.
pub(crate) fn words(schema: &Value, depth: usize) -> String {
    let Some(node) = schema.as_object() else { return if schema == false { "nothing" } else { "any" }.to_owned() };
    if let Some(name) = node.get("$ref").and_then(Value::as_str) {
        let name = name.rsplit('/').next().unwrap_or(name);
        return pointer::unescaped(name).into_owned();
    }
    for (keyword, between) in [("oneOf", " | "), ("anyOf", " | "), ("allOf", " & ")] {
        if let Some(members) = node.get(keyword).and_then(Value::as_array).filter(|_| depth > 0) {
            let members: Vec<String> = members.iter().map(|member| words(member, depth - 1)).collect();
            return members.join(between);
        }
    }
    if node.contains_key("const") || node.contains_key("enum") {
        return "enum".to_owned();
    }
    match node.get("type") {
        Some(Value::String(kind)) => typed(kind, schema, depth),
        Some(Value::Array(kinds)) => {
            let kinds = kinds.iter().filter_map(Value::as_str).map(|kind| typed(kind, schema, depth));
            kinds.collect::<Vec<_>>().join(" | ")
        }
        _ if node.contains_key("properties") => typed("object", schema, depth),
        _ if node.contains_key("items") => typed("array", schema, depth),
        _ => "any".to_owned(),
    }
}

fn typed(kind: &str, schema: &Value, depth: usize) -> String {
    let inner = |key: &str| match schema.get(key) {
        Some(inner) if depth > 0 => words(inner, depth - 1),
        _ => "any".to_owned(),
    };
    match kind {
        "array" => format!("[{}]", inner("items")),
        "object" => match schema.get("properties").and_then(Value::as_object).filter(|p| !p.is_empty()) {
            Some(properties) => {
                format!("{{ {} }}", properties.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
            }
            None => format!("{{ *: {} }}", inner("additionalProperties")),
        },
        // Where `ops call` takes `@FILE`.
        "string" if crate::input::is_bytes(&[schema]) => "bytes".to_owned(),
        other => other.to_owned(),
    }
}

/// A summary, cut so that it fits into a line.
pub(crate) fn short(text: &str) -> String {
    cut(text, WIDTH)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_in_few_words() {
        for (schema, words) in [
            (json!({}), "any"),
            (json!({ "type": "array", "items": { "$ref": "#/$defs/Pet" } }), "[Pet]"),
            (json!({ "type": ["string", "null"] }), "string | null"),
            (json!({ "oneOf": [{ "$ref": "#/$defs/a~1b" }, { "type": "integer" }] }), "a/b | integer"),
            (json!({ "type": "object", "additionalProperties": { "type": "number" } }), "{ *: number }"),
            (json!({ "properties": { "a": {}, "b": {} } }), "{ a, b }"),
            (json!({ "enum": ["a"] }), "enum"),
            (json!({ "type": "string", "format": "binary" }), "bytes"),
        ] {
            assert_eq!(output_of(&Schema::from(schema)), words);
        }
        assert_eq!(short(&"x".repeat(200)).len(), WIDTH + 3);
    }
}
