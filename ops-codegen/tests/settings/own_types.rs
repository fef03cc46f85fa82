//! Types of the user's in unions.

use ops_codegen::Generator;
use serde_json::{Value, json};

use super::{api, document};

#[test]
fn unions_tell_the_types_of_the_user_apart_by_their_schemas() {
    let schemas = json!({
        "Text": { "type": "string" },
        "Number": { "type": "number" },
        "Both": { "oneOf": [{ "$ref": "#/components/schemas/Text" }, { "$ref": "#/components/schemas/Number" }] },
        "Shape": { "type": ["object", "null"], "required": ["a"], "properties": { "a": {}, "b": {} } },
        "Kind": { "enum": ["x", 1] },
    });
    let custom = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    for (members, expected) in [
        (json!([custom("Text"), { "type": "integer" }]), "String => Text,\n        Integer => Integer,"),
        (json!([custom("Both"), { "type": "boolean" }]), "String | Number => Both,\n        Boolean => Boolean,"),
        (json!([custom("Shape"), { "type": "string" }]), "Object[\"a\"; \"b\"] => Shape,"),
        (json!([custom("Kind"), { "type": "string" }]), "String | Integer => Kind,"),
        (json!([custom("Kind"), { "enum": ["y"] }]), "String | Integer => Kind,"),
    ] {
        let mut document = document();
        for (name, schema) in schemas.as_object().unwrap() {
            document["components"]["schemas"][name] = schema.clone();
        }
        document["components"]["schemas"]["Owner"] = json!({ "anyOf": members });
        let generator = ["Text", "Number", "Both", "Shape", "Kind"]
            .iter()
            .fold(Generator::new(), |generator, name| generator.with_type(*name, &format!("crate::{name}")).unwrap());
        // Those that the document does not use are no fault.
        let source = generator.generate(&api(&document)).source;
        assert!(source.contains(expected), "{members}: {source}");
    }
}

#[test]
fn no_conversion_is_from_a_type_that_two_variants_may_have() {
    let schemas = json!({
        "Id": { "type": "string" },
        "Card": { "type": "object", "properties": { "name": {} } },
        "Number": { "type": "integer" },
        "Price": { "type": "number" },
        "Flags": { "type": "array", "items": { "type": "boolean" } },
    });
    let custom = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let list = |items: Value| json!({ "type": "array", "items": items });
    for (members, paths, expected) in [
        (json!([custom("Id"), { "type": "integer" }]), &[("Id", "crate::Id")][..], &["crate::Id", "i64"][..]),
        // One type, by one path or by two.
        (json!([custom("Id"), custom("Number")]), &[("Id", "crate::Id"), ("Number", "crate::Id")], &[]),
        (json!([custom("Id"), custom("Card")]), &[("Id", "crate::Id"), ("Card", "crate::Id")], &[]),
        (json!([list(custom("Id")), list(custom("Card"))]), &[("Id", "crate::Id"), ("Card", "crate::Card")], &[]),
        (json!([list(custom("Id")), custom("Flags")]), &[("Id", "crate::Id"), ("Flags", "crate::Ids")], &[]),
        // Two, as they are other kinds of JSON values.
        (
            json!([custom("Id"), custom("Number"), custom("Card")]),
            &[("Id", "crate::Id"), ("Number", "crate::Number"), ("Card", "crate::Card")],
            &["crate::Id", "crate::Number", "crate::Card"],
        ),
        // One of the standard library, or another name of it.
        (
            json!([custom("Flags"), { "items": { "type": "boolean" } }]),
            &[("Flags", "std::vec::Vec<bool>")],
            &["Vec<bool>"],
        ),
        (json!([custom("Number"), { "type": "integer" }]), &[("Number", "crate::Count")], &["i64"]),
        (json!([custom("Number"), custom("Price")]), &[("Number", "crate::Amount"), ("Price", "crate::Amount")], &[]),
    ] {
        let mut document = document();
        for (name, schema) in schemas.as_object().unwrap() {
            document["components"]["schemas"][name] = schema.clone();
        }
        document["components"]["schemas"]["Owner"] = json!({ "anyOf": members });
        let content = json!({ "application/json": { "schema": custom("Owner") } });
        document["paths"]["/owner"] = json!({ "put": {
            "operationId": "put", "requestBody": { "content": content }, "responses": { "204": { "description": "x" } },
        } });
        let generator =
            paths.iter().fold(Generator::new(), |generator, (name, path)| generator.with_type(*name, path).unwrap());
        let source = generator.generate(&api(&document)).source;
        let is_of = |line: &&str| line.ends_with("> for super::Owner {");
        let made: Vec<&str> =
            source.lines().filter(is_of).filter_map(|line| line.trim().strip_prefix("impl From<")).collect();
        let expected: Vec<String> = expected.iter().map(|from| format!("{from}> for super::Owner {{")).collect();
        assert_eq!(made, expected, "{members}: {source}");
    }
}
