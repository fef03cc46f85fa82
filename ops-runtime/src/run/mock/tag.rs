//! The tag of an example: a name by which a discriminator selects the variant that the example was made of.

use serde_json::{Map, Value};

use crate::pointer;

/// Gives an example of a variant one of the names that the union's mapping has for it, if it has another one.
pub(super) fn tagged(union: &Map<String, Value>, variant: &Value, mut made: Value) -> Value {
    let discriminator = union.get("discriminator").and_then(Value::as_object);
    let Some((discriminator, reference)) = discriminator.zip(variant.get("$ref").and_then(Value::as_str)) else {
        return made;
    };
    let name =
        |target: &str| pointer::unescaped(target.strip_prefix(pointer::DEFINITIONS).unwrap_or(target)).into_owned();
    let own = name(reference);
    let mapping = discriminator.get("mapping").and_then(Value::as_object).into_iter().flatten();
    let is_own = |target: &Value| target.as_str().is_some_and(|target| name(target) == own);
    let mut names = mapping.filter(|(_, target)| is_own(target)).map(|(name, _)| name);
    let tag = discriminator.get("propertyName").and_then(Value::as_str).and_then(|tag| made.get_mut(tag));
    if let (Some(Value::String(tag)), Some(first)) = (tag, names.next())
        && *tag != own
        && tag != first
        && !names.any(|name| name == tag)
    {
        tag.clone_from(first);
    }
    made
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_example_has_a_name_of_its_variant() {
        let mapping = json!({ "cat": "#/$defs/Cat", "kitten": "#/$defs/Cat", "dog": "Dog" });
        let union = json!({ "discriminator": { "propertyName": "kind", "mapping": mapping } });
        let tagged = |variant: Value, made: Value| tagged(union.as_object().unwrap(), &variant, made);
        let [cat, dog] = ["#/$defs/Cat", "#/$defs/Dog"].map(|reference| json!({ "$ref": reference }));
        for (variant, made, expected) in [
            (&cat, json!({ "kind": "text", "lives": 9 }), json!({ "kind": "cat", "lives": 9 })),
            (&dog, json!({ "kind": "text" }), json!({ "kind": "dog" })),
            // Each of its names will do.
            (&cat, json!({ "kind": "kitten" }), json!({ "kind": "kitten" })),
            (&cat, json!({ "kind": "Cat" }), json!({ "kind": "Cat" })),
            // There is no tag, or no text, or no name.
            (&cat, json!({ "lives": 9 }), json!({ "lives": 9 })),
            (&cat, json!({ "kind": 1 }), json!({ "kind": 1 })),
            (&cat, json!("text"), json!("text")),
            (&json!({ "$ref": "#/$defs/Fish" }), json!({ "kind": "text" }), json!({ "kind": "text" })),
            (&json!({}), json!({ "kind": "text" }), json!({ "kind": "text" })),
        ] {
            assert_eq!(tagged(variant.clone(), made.clone()), expected, "{variant} {made}");
        }
    }
}
