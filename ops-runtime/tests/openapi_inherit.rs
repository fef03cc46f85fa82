//! Schemas that others extend by `allOf`: in one document, and spread over several.
#![cfg(feature = "openapi")]

use std::collections::BTreeMap;

use ops_runtime::openapi::{self, ReadOptions};
use serde_json::{Map, Value, json};

/// The definitions of a description whose operations answer with schemas; the other documents have names.
fn load(responses: &[&str], schemas: &Value, others: &[(&str, Value)]) -> (Value, Vec<String>) {
    load_as("3.0.3", responses, schemas, others)
}

fn load_as(version: &str, responses: &[&str], schemas: &Value, others: &[(&str, Value)]) -> (Value, Vec<String>) {
    let path = |(at, reference): (usize, &&str)| {
        let content = json!({ "application/json": { "schema": { "$ref": *reference } } });
        let responses = json!({ "200": { "description": "", "content": content } });
        (format!("/{at}"), json!({ "get": { "operationId": format!("get_{at}"), "responses": responses } }))
    };
    let paths: Map<String, Value> = responses.iter().enumerate().map(path).collect();
    let info = json!({ "title": "Zoo", "version": "1" });
    let document = json!({ "openapi": version, "info": info, "paths": paths, "components": { "schemas": schemas } });
    let mut source = BTreeMap::from([("api.json".to_owned(), document.to_string())]);
    source.extend(others.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())));
    let (api, diagnostics) = openapi::load("api.json", &source, &ReadOptions::new()).unwrap();
    let definitions = api.definitions.as_slice().iter();
    let schemas = definitions.map(|d| (d.name.to_string(), d.schema.to_value().unwrap().into_owned())).collect();
    (schemas, diagnostics.iter().map(|d| format!("{} {}", d.pointer, d.message)).collect())
}

fn to(reference: &str) -> Value {
    json!({ "$ref": reference })
}

fn refer(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// A schema that extends another.
fn child(of: &str, own: &str) -> Value {
    json!({ "allOf": [to(of), { "type": "object", "properties": { own: { "type": "boolean" } } }] })
}

fn base(mapping: &Value) -> Value {
    json!({
        "type": "object",
        "required": ["kind"],
        "properties": { "kind": { "type": "string" } },
        "discriminator": { "propertyName": "kind", "mapping": mapping },
    })
}

#[test]
fn a_base_may_be_in_another_document() {
    let local = |name: &str| format!("#/components/schemas/{name}");
    let pets = json!({ "components": { "schemas": {
        "Pet": base(&json!({ "cat": local("Cat"), "dog": "Dog" })),
        "Cat": child(&local("Pet"), "purrs"),
        "Dog": child(&local("Pet"), "barks"),
        "Lion": child(&local("Cat"), "roars"),
    } } });
    let others = [("pets.json", pets)];
    let (schemas, told) = load(&["pets.json#/components/schemas/Pet"], &json!({}), &others);
    assert_eq!(told, [""; 0]);
    assert_eq!(schemas["Pet"]["oneOf"], json!([refer("Cat"), refer("Dog"), refer("Lion"), refer("Pet_base")]));
    let mapping =
        json!({ "cat": "#/$defs/Cat", "dog": "#/$defs/Dog", "Lion": "#/$defs/Lion", "Pet": "#/$defs/Pet_base" });
    assert_eq!(schemas["Pet"]["discriminator"]["mapping"], mapping);
    assert_eq!(schemas["Cat"]["allOf"][0], refer("Pet_base"));
    // What a descendant extends is there, even if nothing else refers to it.
    let (schemas, told) = load(&["pets.json#/components/schemas/Dog"], &json!({}), &others);
    assert_eq!(told, [""; 0]);
    assert_eq!(schemas["Dog"]["allOf"][0], refer("Pet_base"));
    assert_eq!(schemas["Pet_base"]["required"], json!(["kind"]));
}

#[test]
fn each_schema_may_be_a_file() {
    let others = [
        ("schemas/Pet.json", base(&json!({ "cat": "./Cat.json" }))),
        ("schemas/Cat.json", child("./Pet.json", "purrs")),
        ("schemas/index.json", json!({ "Pet": to("./Pet.json"), "Dog": child("#/Pet", "barks") })),
    ];
    let (schemas, told) = load(&["schemas/Pet.json", "schemas/index.json#/Dog"], &json!({}), &others);
    assert_eq!(told, [""; 0]);
    assert_eq!(schemas["Pet"]["oneOf"], json!([refer("Cat"), refer("Dog"), refer("Pet_base")]));
    let mapping = json!({ "cat": "#/$defs/Cat", "Dog": "#/$defs/Dog", "Pet": "#/$defs/Pet_base" });
    assert_eq!(schemas["Pet"]["discriminator"]["mapping"], mapping);
    for name in ["Cat", "Dog"] {
        assert_eq!(schemas[name]["allOf"][0], refer("Pet_base"), "{name}");
    }
}

/// The value that selects a file is its name; the names of definitions are words.
#[test]
fn files_are_selected_by_their_names() {
    let others = [
        ("schemas/com.example.Pet.json", base(&json!({}))),
        ("schemas/dog-house.json", child("./com.example.Pet.json", "barks")),
    ];
    let (schemas, told) = load(&["schemas/com.example.Pet.json", "schemas/dog-house.json"], &json!({}), &others);
    assert_eq!(told, [""; 0]);
    let mapping = json!({ "dog-house": "#/$defs/dog_house", "com.example.Pet": "#/$defs/com_example_Pet_base" });
    assert_eq!(schemas["com_example_Pet"]["discriminator"]["mapping"], mapping);
    assert_eq!(schemas["dog_house"]["allOf"][0], refer("com_example_Pet_base"));
}

/// Since 3.1, members beside a reference count.
#[test]
fn what_stands_beside_a_reference_is_kept() {
    let local = |name: &str| format!("#/components/schemas/{name}");
    let beside = |name: &str| json!({ "$ref": local(name), "required": ["name"] });
    let schemas = json!({
        "Pet": base(&json!({})),
        "Alias": { "$ref": local("Pet"), "description": "d" },
        "Named": beside("Pet"),
        "Cat": child(&local("Alias"), "purrs"),
        "Dog": child(&local("Named"), "barks"),
        "Fish": { "allOf": [beside("Pet")] },
    });
    let (found, told) = load_as("3.1.0", &[], &schemas, &[]);
    assert_eq!(told, [""; 0]);
    assert_eq!(found["Pet"]["oneOf"], json!([refer("Cat"), refer("Fish"), refer("Pet_base")]));
    assert_eq!(found["Cat"]["allOf"][0], refer("Pet_base"));
    assert_eq!(found["Named"], json!({ "$ref": "#/$defs/Pet", "required": ["name"] }));
    assert_eq!(found["Dog"]["allOf"][0], refer("Named"));
    assert_eq!(found["Fish"]["allOf"], json!([{ "$ref": "#/$defs/Pet_base", "required": ["name"] }]));
}

#[test]
fn a_descendant_may_extend_a_base_or_null() {
    let local = |name: &str| format!("#/components/schemas/{name}");
    let schemas = json!({
        "Pet": base(&json!({})),
        "NullablePet": { "nullable": true, "allOf": [to(&local("Pet"))] },
        "Dog": child(&local("NullablePet"), "barks"),
    });
    let (found, told) = load(&[], &schemas, &[]);
    assert_eq!(told, [""; 0]);
    assert_eq!(found["Pet"]["oneOf"], json!([refer("Dog"), refer("Pet_base")]));
    assert_eq!(found["Dog"]["allOf"][0], refer("Pet_base"));
    assert_eq!(found["NullablePet"]["anyOf"], json!([{ "allOf": [refer("Pet")] }, { "type": "null" }]));
}

#[test]
fn a_base_or_null_is_no_descendant() {
    let local = |name: &str| to(&format!("#/components/schemas/{name}"));
    let schemas = |mapping: Value| {
        json!({
            "Pet": base(&mapping),
            "Cat": child("#/components/schemas/Pet", "purrs"),
            "NullablePet": { "nullable": true, "description": "d", "allOf": [local("Pet")] },
            "Plain": { "description": "d", "allOf": [local("Pet")] },
        })
    };
    let (found, told) = load(&[], &schemas(json!({})), &[]);
    assert_eq!(told, [""; 0]);
    assert_eq!(found["Pet"]["oneOf"], json!([refer("Cat"), refer("Plain"), refer("Pet_base")]));
    let either = json!([{ "allOf": [refer("Pet")] }, { "type": "null" }]);
    assert_eq!(found["NullablePet"], json!({ "description": "d", "anyOf": either }));
    assert_eq!(found["Plain"]["allOf"], json!([refer("Pet_base")]));
    // A mapping says that it is one.
    let (found, told) = load(&[], &schemas(json!({ "none": "NullablePet" })), &[]);
    assert_eq!(told, [""; 0]);
    assert_eq!(found["Pet"]["oneOf"], json!([refer("NullablePet"), refer("Cat"), refer("Plain"), refer("Pet_base")]));
}

/// A schema that others extend, and whose discriminator is a property of its own.
fn inner_base(of: &str, property: &str) -> Value {
    let mut schema = child(&format!("#/components/schemas/{of}"), "barks");
    schema["allOf"][1]["properties"][property] = json!({ "type": "string" });
    schema["discriminator"] = json!({ "propertyName": property });
    schema
}

/// A descendant that selects among its own descendants by another property stands for all of them.
#[test]
fn a_descendant_may_have_a_family_by_another_property() {
    let schemas = |property: &str| {
        let husky = child("#/components/schemas/Dog", "pulls");
        json!({ "Pet": base(&json!({ "dog": "Dog" })), "Dog": inner_base("Pet", property), "Husky": husky })
    };
    let (found, told) = load(&["#/components/schemas/Pet"], &schemas("breed"), &[]);
    assert_eq!(told, [""; 0]);
    assert_eq!(found["Pet"]["oneOf"], json!([refer("Dog"), refer("Husky"), refer("Pet_base")]));
    let mapping = json!({ "dog": "#/$defs/Dog", "Husky": "#/$defs/Husky", "Pet": "#/$defs/Pet_base" });
    assert_eq!(found["Pet"]["discriminator"]["mapping"], mapping);
    assert_eq!(found["Dog"]["oneOf"], json!([refer("Husky"), refer("Dog_base")]));
    assert_eq!(found["Husky"]["allOf"][0], refer("Dog_base"));
    #[cfg(feature = "registry")]
    for husky in [
        json!({ "kind": "dog", "breed": "Husky", "barks": false, "pulls": true }),
        json!({ "kind": "Husky", "breed": "Husky", "pulls": true }),
    ] {
        assert_eq!(repaired("Pet", &found, &husky), (husky, Vec::new()));
    }
    // By the same property, each value selects one of the outer union.
    let (found, _) = load(&["#/components/schemas/Pet"], &schemas("kind"), &[]);
    assert_eq!(found["Pet"]["oneOf"], json!([refer("Dog_base"), refer("Husky"), refer("Pet_base")]));
}

/// Schemas that extend each other have a union each, and neither is read without end.
#[test]
fn families_may_be_in_each_other() {
    let schemas = json!({ "A": inner_base("B", "a"), "B": inner_base("A", "b") });
    let (found, _) = load(&["#/components/schemas/A"], &schemas, &[]);
    assert_eq!(found["A"]["oneOf"], json!([refer("B"), refer("A_base")]));
    assert_eq!(found["B"]["oneOf"], json!([refer("A"), refer("B_base")]));
    #[cfg(feature = "registry")]
    {
        let value = json!({ "a": "B", "b": "A", "barks": true });
        assert_eq!(repaired("A", &found, &value).0, value);
    }
}

/// A value that is repaired by a definition, and the places that changed.
#[cfg(feature = "registry")]
fn repaired(name: &str, definitions: &Value, value: &Value) -> (Value, Vec<String>) {
    use ops_runtime::normalise::{CompiledSchema, Reading};
    let schema = json!({ "$ref": format!("#/$defs/{name}"), "$defs": definitions });
    let (value, changes) = CompiledSchema::new(&schema, Reading::Default).repair(value.clone());
    (value, changes.into_iter().map(|change| change.pointer).collect())
}
