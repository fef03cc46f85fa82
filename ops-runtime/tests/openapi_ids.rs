//! Places with names of their own: `$anchor`, `$dynamicAnchor` and `$id`.
#![cfg(feature = "openapi")]

use ops_runtime::openapi::{self, ReadOptions};
use serde_json::{Value, json};

fn read(version: &str, schemas: &Value) -> (Value, Vec<String>) {
    let document = json!({ "openapi": version, "paths": {}, "components": { "schemas": schemas } });
    let (api, diagnostics) = openapi::read(&document, &ReadOptions::new()).unwrap();
    let definitions = api.definitions.as_slice().iter();
    let schemas = definitions.map(|d| (d.name.to_string(), d.schema.to_value().unwrap().into_owned())).collect();
    (schemas, diagnostics.iter().map(|d| format!("{} {}", d.pointer, d.message)).collect())
}

#[test]
fn anchors_and_identifiers() {
    let (schemas, diagnostics) = read(
        "3.1.0",
        &json!({
            "A": { "$id": "https://example.com/a", "$defs": { "Inner": { "$anchor": "inner", "type": "string" } } },
            "B": { "properties": {
                "anchored": { "$ref": "#inner" },
                "identified": { "$ref": "https://example.com/a#/$defs/Inner" },
                "dynamic": { "$dynamicRef": "#node" },
                "several": { "$dynamicRef": "#twice" },
                "gone": { "$ref": "#gone" },
            } },
            "Node": { "$dynamicAnchor": "node", "type": "object" },
            "C": { "$dynamicAnchor": "twice" },
            "D": { "$dynamicAnchor": "twice" },
        }),
    );
    assert_eq!(
        schemas["B"]["properties"],
        json!({
            "anchored": { "$ref": "#/$defs/Inner" },
            "identified": { "$ref": "#/$defs/Inner" },
            "dynamic": { "$ref": "#/$defs/Node" },
            "several": {},
            "gone": {},
        })
    );
    assert_eq!(
        diagnostics,
        [
            "/components/schemas/B/properties/several/$dynamicRef `#twice` can mean several schemas",
            "/components/schemas/B/properties/gone `#gone` is not a JSON pointer, nor the name of an anchor",
        ]
    );
}

#[test]
fn a_schema_with_an_id_is_the_base_of_its_references() {
    let (schemas, diagnostics) = read(
        "3.1.0",
        &json!({
            "Order": {
                "$id": "https://example.com/schemas/order",
                "properties": {
                    "customer": { "$ref": "customer" },
                    "street": { "$ref": "address/street#/$defs/Name" },
                    "own": { "$ref": "#/$defs/Line" },
                    "again": { "$ref": "#" },
                    "component": { "$ref": "#/components/schemas/Line" },
                },
                "$defs": { "Line": { "type": "string" } },
            },
            "Line": { "type": "integer" },
            "Customer": { "$id": "https://example.com/schemas/customer", "type": "object", "$defs": {
                "Address": { "$id": "address/index", "$defs": {
                    "Street": { "$id": "street", "$defs": { "Name": { "type": "boolean" } } },
                } },
            } },
        }),
    );
    assert_eq!(diagnostics, [""; 0]);
    let properties = &schemas["Order"]["properties"];
    let meant = |name: &str| {
        let reference = properties[name]["$ref"].as_str().unwrap();
        (reference.to_owned(), schemas[reference.rsplit('/').next().unwrap()]["type"].clone())
    };
    assert_eq!(meant("customer"), ("#/$defs/Customer".to_owned(), json!("object")));
    assert_eq!(meant("street"), ("#/$defs/Name".to_owned(), json!("boolean")));
    assert_eq!(meant("own"), ("#/$defs/Line_2".to_owned(), json!("string")));
    assert_eq!(meant("again").0, "#/$defs/Order");
    assert_eq!(meant("component"), ("#/$defs/Line".to_owned(), json!("integer")));
}

/// Bundling puts schemas into one document, whatever names are in them (JSON Schema, section 9.3).
#[test]
fn anchors_belong_to_the_schema_with_an_id_around_them() {
    let schema = |name: &str, kind: &str| {
        json!({
            "$id": format!("https://example.com/{name}"),
            "properties": { "own": { "$ref": "#node" }, "full": { "$ref": format!("https://example.com/{name}#node") } },
            "$defs": { "Node": { "$anchor": "node", "type": kind } },
        })
    };
    let other = json!({ "properties": {
        "a": { "$ref": "https://example.com/a#node" },
        "b": { "$ref": "https://example.com/b#node" },
        "any": { "$ref": "#node" },
    } });
    let (schemas, diagnostics) =
        read("3.1.0", &json!({ "A": schema("a", "string"), "B": schema("b", "integer"), "Other": other }));
    assert_eq!(diagnostics, [""; 0]);
    let kind = |schema: &str, property: &str| {
        let reference = schemas[schema]["properties"][property]["$ref"].as_str().unwrap();
        schemas[reference.strip_prefix("#/$defs/").unwrap()]["type"].clone()
    };
    for (schema, property, expected) in [
        ("A", "own", "string"),
        ("A", "full", "string"),
        ("B", "own", "integer"),
        ("B", "full", "integer"),
        ("Other", "a", "string"),
        ("Other", "b", "integer"),
        // Without an `$id`, it is that of the document, where the first has the name.
        ("Other", "any", "string"),
    ] {
        assert_eq!(kind(schema, property), expected, "{schema} {property}");
    }
}
