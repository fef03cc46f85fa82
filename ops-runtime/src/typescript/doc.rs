//! What schemas say for readers, and how that is written in comments.

use serde_json::Value;

use super::text;
use super::tree::Doc;

/// A value in a comment has so many bytes at most.
const MAX_VALUE: usize = 120;

/// Keywords that become tags.
const TAGS: &[&str] = &[
    "default",
    "format",
    "contentEncoding",
    "contentMediaType",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// What a schema says beside its type.
pub(super) fn of(schema: &Value) -> Doc {
    let said = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default().trim();
    let text = if said("description").is_empty() { said("title") } else { said("description") };
    let mut tags = Vec::new();
    if schema.get("deprecated") == Some(&Value::Bool(true)) {
        tags.push(("deprecated", String::new()));
    }
    for tag in TAGS {
        if let Some(value) = schema.get(*tag) {
            let value = match value {
                Value::String(text) if *tag != "default" => text::comment(text),
                Value::Bool(false) if *tag != "default" => continue,
                value => text::comment(&value.to_string()),
            };
            if value.len() <= MAX_VALUE {
                tags.push((*tag, value));
            }
        }
    }
    // Bytes are base64 in JSON.
    if let Some(tag) = tags.iter_mut().find(|(tag, value)| *tag == "format" && matches!(&**value, "binary" | "byte")) {
        *tag = ("contentEncoding", "base64".to_owned());
    }
    tags.dedup();
    Doc { text: text.to_owned(), tags }
}
