//! Whether an answer is what its document says, in the judgement of a library that knows nothing of the project.

use jsonschema::Draft;
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};

/// What the document's own schema of a success says of a body.
#[derive(Debug, PartialEq)]
pub(super) enum Judgement {
    /// It accepts it.
    Accepted,
    /// It does not.
    Refused,
    /// It says nothing, for this reason: there is none, or the library can't compile it.
    None(String),
}

/// Judges the body of an answer by the document's own schema of a success.
pub(super) fn judge(document: &Value, spec: &OperationSpec, body: &Value) -> Judgement {
    let Some(schema) = spec.http().and_then(|http| schema(document, &http.method, &http.path)) else {
        return Judgement::None("the document has no schema of a success in JSON".to_owned());
    };
    let mut whole = json!({ "$ref": "#/x-schema", "x-schema": schema });
    for part in ["components", "definitions", "paths"] {
        if let Some(value) = document.get(part) {
            whole[part] = value.clone();
        }
    }
    escape(&mut whole);
    // Older documents write bounds as draft 4 does; `nullable` is unknown to it, so it rejects more than they mean.
    let is_new = document["openapi"].as_str().is_some_and(|version| !version.starts_with("3.0"));
    let draft = if is_new { Draft::Draft202012 } else { Draft::Draft4 };
    let validator = jsonschema::options().with_draft(draft).should_validate_formats(true).build(&whole);
    match validator {
        Ok(validator) if validator.is_valid(body) => Judgement::Accepted,
        Ok(_) => Judgement::Refused,
        Err(error) => {
            let error = error.to_string();
            Judgement::None(format!("its schema can't be compiled: {}", super::shortened(&error, 120)))
        }
    }
}

/// Escapes what stands in references as it is, and should not: the library takes addresses only.
fn escape(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(target) if key == "$ref" => {
                        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
                        let escaped = |byte: u8| match is_plain(byte) {
                            true => char::from(byte).to_string(),
                            false => format!("%{byte:02X}"),
                        };
                        *target = target.bytes().map(escaped).collect();
                    }
                    value => escape(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(escape),
        _ => {}
    }
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

#[cfg(test)]
mod tests {
    use ops_runtime::openapi::{ReadOptions, read};

    use super::*;

    /// What is said of a body by a document with this schema.
    fn verdict(schema: Value, body: &Value) -> Judgement {
        let content = json!({ "application/json": { "schema": schema } });
        let content = if schema.is_null() { json!({ "text/plain": {} }) } else { content };
        let document = json!({
            "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
            "components": { "schemas": { "größe {a}": { "type": "integer" } } },
            "paths": { "/a": { "get": { "operationId": "a", "responses": { "200": {
                "description": "x", "content": content } } } } },
        });
        let (api, _) = read(&document, &ReadOptions::new()).unwrap();
        judge(&document, &api.operations[0], body)
    }

    #[test]
    fn what_cannot_be_judged_is_told() {
        assert_eq!(verdict(json!({ "type": "integer" }), &json!(7)), Judgement::Accepted);
        assert_eq!(verdict(json!({ "type": "integer" }), &json!("7")), Judgement::Refused);
        let named = json!({ "$ref": "#/components/schemas/größe {a}" });
        assert_eq!(verdict(named.clone(), &json!(7)), Judgement::Accepted);
        assert_eq!(verdict(named, &json!("7")), Judgement::Refused);
        let none = |schema: Value| match verdict(schema, &json!(7)) {
            Judgement::None(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(none(json!({ "type": 7 })).contains("can't be compiled"));
        assert!(none(json!({ "$ref": "#/components/schemas/Gone" })).contains("can't be compiled"));
        assert!(none(Value::Null).contains("has no schema"));
    }
}
