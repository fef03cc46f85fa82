//! Whether an answer is what its document says, in the judgement of a library that knows nothing of the project.

use jsonschema::Draft;
use ops_runtime::OperationSpec;
use serde_json::{Value, json};

/// Whether the document's own schema of a success accepts the body; not, if there is none or if it can't be understood.
pub(super) fn accepts(document: &Value, spec: &OperationSpec, body: &Value) -> bool {
    let Some(schema) = spec.http().and_then(|http| schema(document, &http.method, &http.path)) else { return false };
    let mut whole = json!({ "$ref": "#/x-schema", "x-schema": schema });
    for part in ["components", "definitions", "paths"] {
        if let Some(value) = document.get(part) {
            whole[part] = value.clone();
        }
    }
    // Older documents write bounds as draft 4 does; `nullable` is unknown to it, so it rejects more than they mean.
    let is_new = document["openapi"].as_str().is_some_and(|version| !version.starts_with("3.0"));
    let draft = if is_new { Draft::Draft202012 } else { Draft::Draft4 };
    let validator = jsonschema::options().with_draft(draft).should_validate_formats(true).build(&whole);
    validator.is_ok_and(|validator| validator.is_valid(body))
}

/// The schema of the first success that has one in JSON.
fn schema(document: &Value, method: &str, path: &str) -> Option<Value> {
    let operation = &follow(document, &document["paths"][path])[method.to_lowercase()];
    let responses = operation["responses"].as_object()?;
    let mut schemas = responses.iter().filter(|(status, _)| status.starts_with('2') || *status == "default");
    schemas.find_map(|(_, response)| {
        let response = follow(document, response);
        let content = response["content"].as_object();
        let media = content.into_iter().flatten().find(|(kind, _)| kind.contains("json"));
        media.and_then(|(_, media)| media.get("schema")).or_else(|| response.get("schema")).cloned()
    })
}

/// What a reference within the document means; anything else as it is.
fn follow<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let target = value.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
    target.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}
