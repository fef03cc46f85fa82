//! Schemas of the dialects of OpenAPI, and what they become.
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

#[track_caller]
fn becomes(version: &str, schema: &Value, expected: &Value) {
    let (schemas, diagnostics) = read(version, &json!({ "X": schema, "Other": {} }));
    assert_eq!((&schemas["X"], diagnostics), (expected, Vec::new()), "{version} {schema}");
}

#[test]
fn dialects_become_2020_12() {
    for (schema, expected) in [
        // null
        (json!({ "type": "string", "nullable": true }), json!({ "type": ["string", "null"] })),
        (json!({ "type": "string", "nullable": false }), json!({ "type": "string" })),
        (
            json!({ "type": "string", "enum": ["a"], "nullable": true }),
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
        ),
        (json!({ "enum": ["a", null], "nullable": true }), json!({ "enum": ["a", null] })),
        (
            json!({ "$ref": "#/components/schemas/Other", "nullable": true }),
            json!({ "anyOf": [{ "$ref": "#/$defs/Other" }, { "type": "null" }] }),
        ),
        (
            json!({ "allOf": [{ "$ref": "#/components/schemas/Other" }], "nullable": true, "description": "d" }),
            json!({ "description": "d", "anyOf": [{ "allOf": [{ "$ref": "#/$defs/Other" }] }, { "type": "null" }] }),
        ),
        (
            json!({ "oneOf": [{ "type": "string" }], "nullable": true }),
            json!({ "oneOf": [{ "type": "string" }, { "type": "null" }] }),
        ),
        (
            json!({ "anyOf": [{ "type": "string", "nullable": true }], "nullable": true }),
            json!({ "anyOf": [{ "type": ["string", "null"] }] }),
        ),
        (json!({ "nullable": true, "description": "any" }), json!({ "description": "any" })),
        (
            json!({ "nullable": true, "properties": { "a": {} } }),
            json!({ "type": ["object", "null"], "properties": { "a": {} } }),
        ),
        (json!({ "nullable": true, "items": {} }), json!({ "type": ["array", "null"], "items": {} })),
        // limits
        (json!({ "minimum": 1, "exclusiveMinimum": true }), json!({ "exclusiveMinimum": 1 })),
        (json!({ "exclusiveMaximum": true, "maximum": 1 }), json!({ "exclusiveMaximum": 1 })),
        (json!({ "minimum": 1, "exclusiveMinimum": false }), json!({ "minimum": 1 })),
        (json!({ "exclusiveMinimum": 1 }), json!({ "exclusiveMinimum": 1 })),
        // what depends on other properties
        (
            json!({ "dependencies": { "a": ["b"], "c": { "$ref": "#/components/schemas/Other" } } }),
            json!({ "dependentRequired": { "a": ["b"] }, "dependentSchemas": { "c": { "$ref": "#/$defs/Other" } } }),
        ),
        // words for the values of an enum
        (
            json!({ "enum": [1, 2], "x-enum-varnames": ["One", "Two"], "x-enumDescriptions": { "2": "The second." } }),
            json!({ "enum": [1, 2], "x-enum-varnames": ["One", "Two"], "x-enum-descriptions": ["", "The second."] }),
        ),
        (
            json!({ "type": "integer", "enum": [1], "x-enumNames": ["One"], "nullable": true }),
            json!({ "type": ["integer", "null"], "enum": [1, null], "x-enum-varnames": ["One"] }),
        ),
        (
            json!({ "type": "integer", "enum": [1, 2, null], "x-enumNames": ["One", "Two"], "nullable": true }),
            json!({ "type": ["integer", "null"], "enum": [1, 2, null], "x-enum-varnames": ["One", "Two", ""] }),
        ),
        (
            json!({ "type": ["integer", "null"], "enum": [1, null, 2], "x-enum-descriptions": ["The first.", "The second."] }),
            json!({ "type": ["integer", "null"], "enum": [1, null, 2], "x-enum-descriptions": ["The first.", "", "The second."] }),
        ),
        // tuples
        (
            json!({ "type": "array", "items": [{ "type": "string" }], "additionalItems": false }),
            json!({ "type": "array", "items": false, "prefixItems": [{ "type": "string" }] }),
        ),
        // what says nothing about values
        (
            json!({ "type": "string", "example": "a", "examples": ["a"], "xml": {}, "externalDocs": {}, "x-y": 1 }),
            json!({ "type": "string" }),
        ),
        // what stays
        (
            json!({ "type": "string", "format": "binary", "readOnly": true, "deprecated": true, "default": "a" }),
            json!({ "type": "string", "format": "binary", "readOnly": true, "deprecated": true, "default": "a" }),
        ),
        (
            json!({ "type": "object", "properties": { "example": { "type": "string", "example": 1 }, "x-y": {} } }),
            json!({ "type": "object", "properties": { "example": { "type": "string" }, "x-y": {} } }),
        ),
        (
            json!({ "additionalProperties": { "nullable": true, "type": "integer" } }),
            json!({ "additionalProperties": { "type": ["integer", "null"] } }),
        ),
        (
            json!({ "oneOf": [{ "$ref": "#/components/schemas/Other" }], "discriminator": {
                "propertyName": "kind",
                "mapping": { "a": "#/components/schemas/Other", "b": "Other" },
            } }),
            json!({ "oneOf": [{ "$ref": "#/$defs/Other" }], "discriminator": {
                "propertyName": "kind",
                "mapping": { "a": "#/$defs/Other", "b": "#/$defs/Other" },
            } }),
        ),
    ] {
        becomes("3.0.3", &schema, &expected);
        becomes("3.1.0", &schema, &expected);
    }
}

#[test]
fn siblings_of_references_count_from_3_1_on() {
    let schema = json!({ "$ref": "#/components/schemas/Other", "description": "d", "type": "object" });
    becomes("3.0.3", &schema, &json!({ "$ref": "#/$defs/Other" }));
    becomes("3.1.0", &schema, &json!({ "$ref": "#/$defs/Other", "description": "d", "type": "object" }));
    let schema = json!({ "type": ["string", "null"], "const": "a", "prefixItems": [{}], "if": { "const": 1 } });
    becomes("3.1.0", &schema, &schema);
}

#[test]
fn references_lead_to_definitions() {
    let (schemas, diagnostics) = read(
        "3.1.0",
        &json!({
            "Pet": {
                "type": "object",
                "properties": {
                    "tag": { "type": "string" },
                    "toys": { "type": "array", "items": { "$ref": "#/$defs/Toy" } },
                    "parent": { "$ref": "#/components/schemas/Pet" },
                },
                "$defs": { "Toy": { "type": "object", "properties": { "pet": { "$ref": "#/components/schemas/Pet" } } } },
            },
            "Tag": { "$ref": "#/components/schemas/Pet/properties/tag" },
            "Odd/Name ~": {},
            "Odd": { "$ref": "#/components/schemas/Odd~1Name%20~0" },
        }),
    );
    assert_eq!(diagnostics, [""; 0]);
    assert_eq!(schemas["Pet"]["properties"]["toys"]["items"], json!({ "$ref": "#/$defs/Toy" }));
    assert_eq!(schemas["Toy"]["properties"]["pet"], json!({ "$ref": "#/$defs/Pet" }));
    assert_eq!(schemas["Tag"], json!({ "$ref": "#/$defs/Pet_tag" }));
    assert_eq!(schemas["Pet_tag"], json!({ "type": "string" }));
    assert_eq!(schemas["Odd"], json!({ "$ref": "#/$defs/Odd~1Name ~0" }));
    assert!(schemas["Odd/Name ~"].is_object() && schemas["Pet"].get("$defs").is_none());
}

#[test]
fn what_is_wrong_costs_the_smallest_part() {
    for (schema, expected, diagnostic) in [
        (json!({ "$ref": "#/components/schemas/Gone" }), json!({}), " `#/components/schemas/Gone` does not exist"),
        (json!({ "$ref": "#/openapi" }), json!({}), " `#/openapi` is text, not a schema"),
        (
            json!({ "$ref": "other.yaml" }),
            json!({}),
            " `other.yaml` is another document, and there is no source to read it from",
        ),
        (json!({ "$ref": "#/components/schemas/X" }), json!(true), " `X` is defined as itself"),
        (json!("text"), json!(true), " a schema is text, not an object"),
        (
            json!({ "type": "object", "properties": [] }),
            json!({ "type": "object" }),
            "/properties `properties` is a list",
        ),
        (
            json!({ "properties": { "a": 1 } }),
            json!({ "properties": { "a": true } }),
            "/properties/a a schema is a number, not an object",
        ),
        (json!({ "type": "date" }), json!({}), "/type `\"date\"` is not a type of JSON"),
        (
            json!({ "type": ["string", "x"] }),
            json!({ "type": "string" }),
            "/type `[\"string\",\"x\"]` is not a type of JSON",
        ),
        (json!({ "required": true }), json!({}), "/required `required` is a boolean"),
        (json!({ "minimum": "1" }), json!({}), "/minimum `minimum` is text"),
        (json!({ "minimum": "1", "exclusiveMinimum": true }), json!({}), "/minimum `minimum` is text"),
        (
            json!({ "dependencies": { "a": [1] } }),
            json!({}),
            "/dependencies/a `dependencies` hold something else than names",
        ),
        (
            json!({ "enum": ["a", "b"], "x-enum-varnames": ["A"] }),
            json!({ "enum": ["a", "b"] }),
            "/x-enum-varnames `x-enum-varnames` has no text for each value of `enum`",
        ),
        (json!({ "discriminator": {} }), json!({}), "/discriminator a discriminator without `propertyName`"),
    ] {
        let (schemas, diagnostics) = read("3.1.0", &json!({ "X": schema }));
        let expected = if expected == json!(true) { json!({}) } else { expected };
        assert_eq!((&schemas["X"], diagnostics), (&expected, vec![format!("/components/schemas/X{diagnostic}")]));
    }
}

#[test]
fn definitions_that_are_only_names_of_each_other() {
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let (schemas, diagnostics) = read("3.0.0", &json!({ "A": to("B"), "B": to("C"), "C": to("B"), "D": {} }));
    assert_eq!(schemas, json!({ "A": {}, "B": {}, "C": {}, "D": {} }));
    assert_eq!(diagnostics.len(), 3);
}

#[test]
fn no_depth_overflows() {
    let mut schema = json!({ "type": "string" });
    for level in 0..5_003 {
        let key = match 5_002 - level {
            0 => "components",
            1 => "schemas",
            2 => "Deep",
            level if level % 2 == 1 => "properties",
            _ => "a",
        };
        // Not by `json!`, which copies what is put into it.
        schema = Value::Object([(key.to_owned(), schema)].into_iter().collect());
    }
    let document = {
        schema.as_object_mut().unwrap().extend([("openapi".into(), "3.1.0".into()), ("paths".into(), json!({}))]);
        schema
    };
    let (api, _) = openapi::read(&document, &ReadOptions::new()).unwrap();
    for definition in api.definitions.as_slice() {
        // What is written can be read again.
        let text = definition.schema.to_value().unwrap().to_string();
        serde_json::from_str::<Value>(&text).unwrap();
    }
    assert!(api.definitions.as_slice().len() > 50);
    // Dropping a value takes as much stack as it is deep, which is not what is tested here.
    std::mem::forget(document);
}

#[test]
fn a_schema_that_others_extend_stands_for_them() {
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let refer = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let (schemas, diagnostics) = read(
        "3.0.0",
        &json!({
            "Pet": {
                "description": "A pet.",
                "required": ["kind"],
                "properties": { "kind": { "type": "string" }, "mother": to("Pet") },
                "discriminator": { "propertyName": "kind", "mapping": { "cat": "Cat", "fish": "#/components/schemas/Fish" } },
            },
            "Lion": { "allOf": [to("Cat"), { "properties": { "mane": {} } }] },
            "Cat": { "allOf": [to("Pet"), { "properties": { "lives": {} } }] },
            "Fish": { "type": "object" },
            "Alone": { "discriminator": { "propertyName": "kind" } },
            "Owner": { "properties": { "pet": { "allOf": [to("Pet")], "description": "d" } } },
        }),
    );
    assert_eq!(diagnostics, [""; 0]);
    assert_eq!(
        schemas["Pet"],
        json!({
            "description": "A pet.",
            "oneOf": [refer("Cat"), refer("Fish"), refer("Lion"), refer("Pet_base")],
            "discriminator": {
                "propertyName": "kind",
                "mapping": { "cat": "#/$defs/Cat", "fish": "#/$defs/Fish", "Lion": "#/$defs/Lion", "Pet": "#/$defs/Pet_base" },
                "defaultMapping": "#/$defs/Pet_base",
            },
        })
    );
    assert_eq!(schemas["Pet_base"]["properties"]["mother"], refer("Pet"));
    assert!(schemas["Pet_base"].get("discriminator").is_none());
    assert_eq!(schemas["Cat"]["allOf"][0], refer("Pet_base"));
    assert_eq!(schemas["Lion"]["allOf"][0], refer("Cat"));
    assert_eq!(schemas["Owner"]["properties"]["pet"]["allOf"][0], refer("Pet"));
    assert!(schemas["Alone"].get("oneOf").is_none());
}

/// What descendants refer to is always there.
#[test]
fn a_schema_that_others_extend_may_be_null_or_have_a_discriminator_that_says_nothing() {
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let child = |of: &str| json!({ "allOf": [to(of), { "properties": { "lives": {} } }] });
    let (schemas, diagnostics) = read(
        "3.0.0",
        &json!({
            "Thing": { "properties": { "id": {} } },
            "Pet": { "nullable": true, "allOf": [to("Thing")], "discriminator": { "propertyName": "kind" } },
            "Cat": child("Pet"),
            "Plain": { "nullable": true, "type": "object", "discriminator": { "propertyName": "kind" } },
            "Dog": child("Plain"),
            "Unnamed": { "properties": { "id": {} }, "discriminator": { "mapping": {} } },
            "Fish": child("Unnamed"),
            "Only": { "$ref": "#/components/schemas/Thing", "discriminator": { "propertyName": "kind" } },
            "Bird": child("Only"),
        }),
    );
    assert_eq!(diagnostics, ["/components/schemas/Unnamed/discriminator a discriminator without `propertyName`"]);
    let refer = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let nothing = json!({ "type": "null" });
    assert_eq!(schemas["Pet"]["oneOf"], json!([refer("Cat"), refer("Pet_base"), nothing]));
    assert_eq!(schemas["Pet_base"], json!({ "allOf": [refer("Thing")] }));
    assert_eq!(schemas["Plain"]["oneOf"], json!([refer("Dog"), refer("Plain_base"), nothing]));
    assert_eq!(schemas["Plain_base"], json!({ "type": "object" }));
    for (child, parent) in [("Cat", "Pet_base"), ("Dog", "Plain_base"), ("Fish", "Unnamed"), ("Bird", "Only")] {
        assert_eq!(schemas[child]["allOf"][0], refer(parent));
        assert!(schemas[parent].is_object(), "{parent}");
    }
    assert!(schemas.get("Unnamed_base").is_none() && schemas.get("Only_base").is_none());
}

#[test]
fn null_is_once_in_a_family() {
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let schemas = json!({
        "Pet": { "nullable": true, "type": "object", "discriminator": { "propertyName": "kind" } },
        "Cat": { "nullable": true, "allOf": [to("Pet"), { "properties": { "lives": {} } }] },
        // Null is in the union of its own family, and not in its content.
        "Plain": { "nullable": true, "type": "object", "discriminator": { "propertyName": "kind" } },
        "Dog": { "nullable": true, "allOf": [to("Plain")], "discriminator": { "propertyName": "kind" } },
        "Pug": { "allOf": [to("Dog")] },
    });
    let (schemas, diagnostics) = read("3.0.0", &schemas);
    assert_eq!(diagnostics, [""; 0]);
    let refer = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    assert_eq!(schemas["Pet"]["oneOf"], json!([refer("Cat"), refer("Pet_base")]));
    assert_eq!(
        schemas["Plain"]["oneOf"],
        json!([refer("Dog_base"), refer("Pug"), refer("Plain_base"), { "type": "null" }])
    );
}

#[test]
fn what_is_no_name_selects_no_schema() {
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let discriminator =
        json!({ "propertyName": "kind", "mapping": { "a": 7, "b": "", "c": "A" }, "defaultMapping": ["A"] });
    let (schemas, diagnostics) = read(
        "3.2.0",
        &json!({
            "A": { "type": "object" },
            "X": { "oneOf": [to("A")], "discriminator": discriminator },
            "Pet": { "type": "object", "discriminator": discriminator },
            "Cat": { "allOf": [to("Pet")] },
        }),
    );
    let refer = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let expected = json!({ "propertyName": "kind", "mapping": { "c": "#/$defs/A" } });
    assert_eq!(schemas["X"]["discriminator"], expected);
    assert_eq!(schemas["Pet"]["oneOf"], json!([refer("A"), refer("Cat"), refer("Pet_base")]));
    assert_eq!(schemas["Pet"]["discriminator"]["defaultMapping"], "#/$defs/Pet_base");
    let told = |at: &str, place: &str, found: &str| {
        let message = "a discriminator selects a schema by its name, and this is";
        format!("/components/schemas/{at}/discriminator/{place} {message} {found}")
    };
    let of = |at: &str| {
        let empty = format!("/components/schemas/{at}/discriminator/mapping/b an empty text names no schema");
        [told(at, "mapping/a", "a number"), empty, told(at, "defaultMapping", "a list")]
    };
    assert_eq!(diagnostics, [of("X"), of("Pet")].concat());
}

/// As Azure's documents have it.
#[test]
fn a_schema_may_say_what_selects_it_in_swagger() {
    let child =
        |value: &str| json!({ "allOf": [{ "$ref": "#/definitions/Shape" }], "x-ms-discriminator-value": value });
    let document = json!({
        "swagger": "2.0", "info": { "title": "t", "version": "1" }, "paths": {},
        "definitions": {
            "Shape": { "type": "object", "discriminator": "kind", "properties": { "kind": { "type": "string" } } },
            "Circle": child("circle"),
        },
    });
    let (api, _) = openapi::read(&document, &ReadOptions::new()).unwrap();
    let shape = api.definitions.as_slice().iter().find(|definition| definition.name == "Shape").unwrap();
    let mapping = json!({ "circle": "#/$defs/Circle", "Shape": "#/$defs/Shape_base" });
    assert_eq!(shape.schema.to_value().unwrap()["discriminator"]["mapping"], mapping);
}

#[test]
fn variants_of_other_names_keep_the_values_that_select_them() {
    let to = |place: &str| json!({ "$ref": format!("#/components/{place}") });
    let document = json!({
        "openapi": "3.1.0", "paths": {}, "components": {
            "schemas": {
                "Pet": {
                    "oneOf": [to("x-more/Cat"), to("x-more/Dog"), to("schemas/Fish")],
                    "discriminator": { "propertyName": "kind" },
                },
                "Cat": {}, "Dog": {}, "Fish": {},
            },
            "x-more": {
                "Cat": { "properties": { "kind": { "type": "string" } } },
                "Dog": { "properties": { "kind": { "const": "dog" } } },
            },
        },
    });
    let (api, diagnostics) = openapi::read(&document, &ReadOptions::new()).unwrap();
    let schema = api.definitions.get("Pet").unwrap().schema.to_value().unwrap();
    let cat = schema["oneOf"][0]["$ref"].as_str().unwrap();
    assert!(cat != "#/$defs/Cat" && schema["oneOf"][1]["$ref"] != "#/$defs/Dog", "{schema}");
    assert_eq!(schema["discriminator"], json!({ "propertyName": "kind", "mapping": { "Cat": cat } }));
    assert!(diagnostics.iter().all(|told| told.severity == ops_runtime::spec::Severity::Note), "{diagnostics:?}");
}

#[test]
fn required_properties_that_cannot_be() {
    let closed =
        |required: Value| json!({ "required": required, "properties": { "a": {} }, "additionalProperties": false });
    let (schemas, diagnostics) = read(
        "3.0.0",
        &json!({
            "Closed": closed(json!(["a", "b"])),
            "None": { "required": ["b"], "additionalProperties": false },
            "Open": { "required": ["b"] },
            "Odd": { "required": ["b", 1] },
        }),
    );
    assert_eq!(schemas["Closed"], closed(json!(["a"])));
    assert_eq!(schemas["None"], json!({ "additionalProperties": false }));
    assert_eq!(schemas["Open"], json!({ "required": ["b"] }));
    assert_eq!(
        diagnostics,
        [
            "/components/schemas/Closed/required/1 the required property \"b\" is not described",
            "/components/schemas/None/required/0 the required property \"b\" is not described",
            "/components/schemas/Odd/required `required` holds something else than names",
        ]
    );
}

#[test]
fn a_schema_that_forbids_its_parts() {
    let base = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string" } } });
    let part = json!({ "$ref": "#/components/schemas/Base" });
    let closed = |own: Value| json!({ "allOf": [part], "additionalProperties": false, "properties": own });
    let schemas = json!({ "Base": base, "Empty": closed(json!({})), "Same": closed(json!({ "a": {} })) });
    let (read, diagnostics) = read("3.0.3", &schemas);
    assert_eq!(read["Empty"], json!({ "allOf": [{ "$ref": "#/$defs/Base" }], "properties": {} }));
    assert_eq!(read["Same"]["additionalProperties"], json!(false));
    let expected = "it forbids properties that the `allOf` beside it describes";
    assert_eq!(diagnostics, [format!("/components/schemas/Empty/additionalProperties {expected}")]);
}

#[test]
fn null_is_once_in_a_union() {
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let refer = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    for (version, a) in
        [("3.0.3", json!({ "type": "object", "nullable": true })), ("3.1.0", json!({ "type": ["object", "null"] }))]
    {
        let (schemas, diagnostics) = read(
            version,
            &json!({
                "A": a,
                "B": { "type": "object" },
                "One": { "oneOf": [to("A"), to("B")], "nullable": true },
                "Told": { "description": "t", "type": "object", "oneOf": [to("A")], "nullable": true },
                "Any": { "type": "object", "anyOf": [to("B"), to("A")], "nullable": true },
                "None": { "oneOf": [to("B")], "nullable": true },
            }),
        );
        assert_eq!(diagnostics, [""; 0]);
        // In the `oneOf`, null would match two variants, and so not the union.
        let one = json!({ "anyOf": [{ "oneOf": [refer("A"), refer("B")] }, { "type": "null" }] });
        assert_eq!(schemas["One"], one, "{version}");
        let any = json!({ "type": ["object", "null"], "anyOf": [refer("B"), refer("A"), { "type": "null" }] });
        assert_eq!(schemas["Any"], any, "{version}");
        let told = json!([{ "type": "object", "oneOf": [refer("A")] }, { "type": "null" }]);
        assert_eq!(schemas["Told"], json!({ "description": "t", "anyOf": told }), "{version}");
        assert_eq!(schemas["None"], json!({ "oneOf": [refer("B"), { "type": "null" }] }), "{version}");
    }
}
