//! Which other documents a document refers to.

use std::collections::BTreeSet;

use crate::model::keywords::{Holds, holds};
use serde_json::Value;

/// The kind of a value in a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A part of the description; some of its members hold arbitrary values.
    Part,
    /// Parts by name: a property may be called `default` or `x-y` and be a schema.
    Names,
    /// A whole document that others refer to: one part, or parts by name.
    Fragment,
}

/// Members of OpenAPI that hold parts by name.
const NAMES: &[&str] = &[
    "callbacks",
    "content",
    "encoding",
    "headers",
    "links",
    "mediaTypes",
    "parameters",
    "pathItems",
    "paths",
    "requestBodies",
    "responses",
    "schemas",
    "securitySchemes",
    "webhooks",
];

/// True if a member has parts by name.
fn holds_names(key: &str) -> bool {
    matches!(holds(key), Holds::Named | Holds::Definitions) || NAMES.contains(&key)
}

/// True if a member has values, in which a `$ref` is data.
fn holds_values(key: &str) -> bool {
    holds(key) == Holds::Value || key == "value"
}

/// True if a document has a schema of this name, which a discriminator may name without a `$ref`.
fn has_schema(document: &Value, name: &str) -> bool {
    let schemas =
        [document.get("components").and_then(|components| components.get("schemas")), document.get("definitions")];
    schemas.into_iter().flatten().any(|schemas| schemas.get(name).is_some())
}

/// The documents that a document refers to, as they stand in its `$ref`s and discriminators. The root document, which may be
/// the same, is a description for certain.
pub(super) fn foreign_references(value: &Value, root: &Value) -> BTreeSet<String> {
    let document = value;
    let mut found = BTreeSet::new();
    let mut add = |reference: &Value| {
        let file = reference.as_str().map(|text| text.split_once('#').map_or(text, |(file, _)| file));
        if let Some(file) = file.filter(|file| !file.is_empty() && !found.contains(*file)) {
            found.insert(file.to_owned());
        }
    };
    // An explicit stack: the value may be nested deeper than the thread's stack allows.
    let mut stack = vec![(value, if std::ptr::eq(value, root) { Place::Part } else { Place::Fragment })];
    while let Some((value, place)) = stack.pop() {
        match value {
            Value::Object(map) => {
                map.get("$ref").into_iter().for_each(&mut add);
                if let Some(own) = map.get("discriminator").filter(|_| place != Place::Names) {
                    let mapping = own.get("mapping").and_then(Value::as_object);
                    let targets = mapping.into_iter().flat_map(|mapping| mapping.values());
                    // A bare name means a schema first, even if it has dots.
                    let is_reference = |target: &&Value| {
                        let text = target.as_str().filter(|text| text.contains(['/', '.', '#']));
                        text.is_some_and(|text| !has_schema(root, text) && !has_schema(document, text))
                    };
                    targets.chain(own.get("defaultMapping")).filter(is_reference).for_each(&mut add);
                }
                for (key, value) in map {
                    let key = key.as_str();
                    match place {
                        Place::Names => stack.push((value, Place::Part)),
                        Place::Part if holds_values(key) || key.starts_with("x-") => {}
                        Place::Part | Place::Fragment if holds_names(key) => stack.push((value, Place::Names)),
                        // If the document is one part after all, this reads a document too many at worst.
                        Place::Part | Place::Fragment => stack.push((value, Place::Part)),
                    }
                }
            }
            Value::Array(items) => stack.extend(items.iter().map(|item| (item, Place::Part))),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_in_values_are_data() {
        let to = |name: &str| json!({ "$ref": format!("{name}.yaml#/x") });
        let document = json!({
            "paths": { "/a": to("path") },
            "x-own": { "a": to("extension") },
            "components": {
                "schemas": {
                    "default": { "default": to("default"), "enum": [to("enum")], "const": to("const") },
                    "x-y": { "properties": { "example": to("property"), "x-z": to("odd") }, "example": to("example") },
                },
                "examples": { "one": { "value": to("value") } },
                "parameters": { "examples": to("parameter") },
            },
            "discriminator": { "propertyName": "a", "mapping": { "a": "mapped.yaml", "b": "Bare" } },
            "other": { "discriminator": { "propertyName": "a", "defaultMapping": "default.yaml" } },
        });
        let found = foreign_references(&document, &document);
        let expected = ["default", "mapped", "odd", "parameter", "path", "property"].map(|name| format!("{name}.yaml"));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn parts_of_a_fragment_have_any_name() {
        let to = |name: &str| json!({ "$ref": format!("{name}.yaml") });
        let fragment = json!({
            "default": to("error"),
            "x-request-id": to("id"),
            "value": { "properties": { "a": to("a") }, "default": to("data"), "x-own": to("own") },
        });
        let found = foreign_references(&fragment, &Value::Null);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a.yaml", "error.yaml", "id.yaml"]);
        assert!(foreign_references(&fragment, &fragment).is_empty());
    }

    #[test]
    fn names_of_schemas_are_no_files() {
        let mapping = |targets: Value| json!({ "discriminator": { "propertyName": "kind", "mapping": targets } });
        let root = json!({
            "components": { "schemas": {
                "com.ex.Cat": {},
                "Pet": mapping(json!({ "cat": "com.ex.Cat", "dog": "com.ex.Dog", "fish": "fish.yaml" })),
            } },
        });
        assert_eq!(foreign_references(&root, &root).into_iter().collect::<Vec<_>>(), ["com.ex.Dog", "fish.yaml"]);
        // The names of the root count in other documents, and their own do.
        let part = json!({
            "definitions": { "com.ex.Dog": {} },
            "Pet": mapping(json!({ "cat": "com.ex.Cat", "dog": "com.ex.Dog", "fish": "fish.yaml" })),
        });
        assert_eq!(foreign_references(&part, &root).into_iter().collect::<Vec<_>>(), ["fish.yaml"]);
    }

    #[test]
    fn properties_of_these_names_are_no_discriminator() {
        let text = json!({ "type": "string", "description": "Maps a to b. See docs." });
        let properties = json!({ "propertyName": text, "mapping": text, "discriminator": { "mapping": text } });
        let document = json!({ "components": { "schemas": { "Ids": { "properties": properties } } } });
        assert!(foreign_references(&document, &document).is_empty());
    }
}
