//! Schemas that say what they do not mean.
#![cfg(feature = "openapi")]

use ops_runtime::normalise::Validator;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};

fn read(version: &str, schemas: &Value) -> (Value, Vec<String>) {
    let document = json!({ "openapi": version, "paths": {}, "components": { "schemas": schemas } });
    let (api, diagnostics) = openapi::read(&document, &ReadOptions::new()).unwrap();
    let definitions = api.definitions.as_slice().iter();
    let schemas = definitions.map(|d| (d.name.to_string(), d.schema.to_value().unwrap().into_owned())).collect();
    (schemas, diagnostics.iter().map(|d| format!("{} {}", d.pointer, d.message)).collect())
}

#[test]
fn values_that_the_type_refuses_are_read_as_they_are_meant() {
    let list = json!({ "type": "array", "enum": ["a", "b"], "items": { "type": "string" } });
    for (schema, expected, message) in [
        (
            json!({ "type": "string", "const": 2.0 }),
            json!({ "type": "string", "const": "2.0" }),
            "`const` of a string holds other values than text",
        ),
        (
            json!({ "type": "string", "const": true, "nullable": true }),
            json!({ "anyOf": [{ "type": "string", "const": "true" }, { "type": "null" }] }),
            "`const` of a string holds other values than text",
        ),
        (
            json!({ "type": "integer", "const": "-2" }),
            json!({ "type": "integer", "const": -2 }),
            "`const` of the type `integer` holds text",
        ),
        (
            json!({ "type": "string", "enum": [1, "b", true] }),
            json!({ "type": "string", "enum": ["1", "b", "true"] }),
            "`enum` of a string holds other values than text",
        ),
        (
            json!({ "type": "integer", "enum": ["1", "-2", "1.5", "x", 3] }),
            json!({ "type": "integer", "enum": [1, -2, "1.5", "x", 3] }),
            "`enum` of the type `integer` holds text",
        ),
        (
            json!({ "type": "boolean", "enum": ["true"], "nullable": true }),
            json!({ "type": ["boolean", "null"], "enum": [true, null] }),
            "`enum` of the type `boolean` holds text",
        ),
        (
            list.clone(),
            json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } }),
            "`enum` of a list holds no list",
        ),
        (
            json!({ "type": "array", "nullable": true, "enum": ["a"] }),
            json!({ "type": ["array", "null"], "items": { "enum": ["a"] } }),
            "`enum` of a list holds no list",
        ),
        (
            json!({ "type": "array", "enum": ["a"], "items": { "enum": ["b"] } }),
            json!({ "type": "array", "items": { "enum": ["b"] } }),
            "`enum` of a list holds no list",
        ),
    ] {
        let (schemas, diagnostics) = read("3.0.3", &json!({ "X": schema }));
        assert_eq!(schemas["X"], expected);
        let [told] = diagnostics.as_slice() else { panic!("{diagnostics:?}") };
        let keyword = message.split('`').nth(1).unwrap();
        assert_eq!(told, &format!("/components/schemas/X/{keyword} {message}"));
    }
    // What fits stays: lists, and values of a schema that names several types.
    for schema in [
        json!({ "type": "array", "enum": [["a"], ["b"]], "items": { "type": "string" } }),
        json!({ "type": ["string", "integer"], "enum": [1, "b"] }),
        json!({ "type": "array", "enum": [] }),
        json!({ "type": ["string", "integer"], "const": 1 }),
        json!({ "type": "string", "const": "1" }),
    ] {
        let (schemas, diagnostics) = read("3.1.0", &json!({ "X": schema }));
        assert_eq!((&schemas["X"], diagnostics), (&schema, Vec::new()));
    }
}

/// Null that two variants accept is no value of a `oneOf`.
#[test]
fn a_union_that_may_be_null_accepts_it_once() {
    let to = |place: &str, name: &str| json!({ "$ref": format!("{place}{name}") });
    let (given, other) = (to("#/components/schemas/", "Other"), to("#/$defs/", "Other"));
    let none = json!({ "type": "null" });
    let around = |variants: Value| json!({ "anyOf": [{ "oneOf": variants }, none] });
    for (variants, expected) in [
        (
            json!([{ "allOf": [given], "nullable": true }, { "type": "string" }]),
            around(json!([{ "anyOf": [{ "allOf": [other] }, none] }, { "type": "string" }])),
        ),
        (
            json!([{ "type": "string", "const": "a", "nullable": true }, given]),
            around(json!([{ "anyOf": [{ "type": "string", "const": "a" }, none] }, other])),
        ),
        (
            json!([{ "oneOf": [given], "nullable": true }, { "type": "string" }]),
            around(json!([{ "oneOf": [other, none] }, { "type": "string" }])),
        ),
        (json!([{}, given]), around(json!([{}, other]))),
        (
            json!([to("#/components/schemas/", "Any"), { "type": "string" }]),
            around(json!([to("#/$defs/", "Any"), { "type": "string" }])),
        ),
        (
            json!([{ "type": "string", "nullable": true }, { "type": "integer", "nullable": true }]),
            around(json!([{ "type": ["string", "null"] }, { "type": ["integer", "null"] }])),
        ),
        // Here it is clear that one accepts it, or none.
        (
            json!([{ "type": "string", "nullable": true }, given]),
            json!({ "oneOf": [{ "type": ["string", "null"] }, other] }),
        ),
        (json!([{ "type": "string" }, given]), json!({ "oneOf": [{ "type": "string" }, other, none] })),
    ] {
        let schemas = json!({
            "X": { "oneOf": variants, "nullable": true }, "Other": { "type": "object" }, "Any": { "description": "d" },
        });
        let (mut schemas, diagnostics) = read("3.0.3", &schemas);
        assert_eq!((&schemas["X"], diagnostics), (&expected, Vec::new()), "{variants}");
        let mut schema = schemas["X"].take();
        schema["$defs"] = schemas;
        assert!(Validator::new(&schema).check(&Value::Null), "{schema}");
    }
}

/// It has other characters than base64.
#[test]
fn text_in_base64url_is_no_base64() {
    let schemas = json!({
        "A": { "type": "string", "contentEncoding": "base64" },
        "B": { "type": "string", "contentEncoding": "base64url" },
        "C": { "type": "string", "contentEncoding": "base64url", "contentMediaType": "image/png", "format": "icon" },
    });
    let (read, diagnostics) = read("3.1.0", &schemas);
    assert_eq!((&read["A"], diagnostics), (&json!({ "type": "string", "format": "byte" }), Vec::new()));
    assert_eq!((&read["B"], &read["C"]), (&schemas["B"], &schemas["C"]));
}

/// Taken literally, such a variant accepts anything, which leaves the others without a meaning.
#[test]
fn a_variant_that_is_only_nullable_is_null() {
    let to = |place: &str| json!({ "$ref": format!("{place}Other") });
    let (given, expected) = (to("#/components/schemas/"), to("#/$defs/"));
    for (schema, expected) in [
        (json!({ "anyOf": [given, { "nullable": true }] }), json!({ "anyOf": [expected, { "type": "null" }] })),
        (
            json!({ "oneOf": [given, { "nullable": true, "description": "None.", "x-y": 1 }], "nullable": true }),
            json!({ "oneOf": [expected, { "type": "null", "description": "None." }] }),
        ),
        (
            json!({ "type": "array", "items": { "anyOf": [given, { "nullable": true }] } }),
            json!({ "type": "array", "items": { "anyOf": [expected, { "type": "null" }] } }),
        ),
        // These do mean any value.
        (json!({ "anyOf": [given, {}] }), json!({ "anyOf": [expected, {}] })),
        (json!({ "anyOf": [{ "nullable": true }] }), json!({ "anyOf": [{}] })),
        (
            json!({ "oneOf": [{ "nullable": true, "title": "A" }, { "nullable": true, "title": "B" }] }),
            json!({ "oneOf": [{ "title": "A" }, { "title": "B" }] }),
        ),
        (json!({ "allOf": [given, { "nullable": true }] }), json!({ "allOf": [expected, {}] })),
    ] {
        let (schemas, diagnostics) = read("3.0.3", &json!({ "X": schema, "Other": { "type": "object" } }));
        assert_eq!((&schemas["X"], diagnostics), (&expected, Vec::new()), "{schema}");
    }
}

/// In YAML, the name of the type needs quotes, which people forget.
#[test]
fn a_type_that_is_null_is_meant_as_its_name() {
    let text = "
openapi: 3.1.0
paths: {}
components:
  schemas:
    Pet:
      properties:
        nickname: {type: [string, null]}
        parent: {anyOf: [{$ref: '#/components/schemas/Pet'}, {type: null, description: None.}]}
        only: {type: [null]}
        unsaid:
          type:
";
    let document = openapi::parse(text).unwrap();
    let (api, diagnostics) = openapi::read(&document, &ReadOptions::new()).unwrap();
    let pet = api.definitions.get("Pet").unwrap().schema.to_value().unwrap();
    assert_eq!(
        pet["properties"],
        json!({
            "nickname": { "type": ["string", "null"] },
            "parent": { "anyOf": [{ "$ref": "#/$defs/Pet" }, { "type": "null", "description": "None." }] },
            "only": { "type": "null" },
            "unsaid": {},
        })
    );
    let at = "/components/schemas/Pet/properties";
    let mut told: Vec<_> = diagnostics.iter().map(|told| format!("{} {}", told.pointer, told.message)).collect();
    told.sort();
    assert_eq!(
        told,
        [
            format!("{at}/nickname/type `type` has null, which is not text"),
            format!("{at}/only/type `type` has null, which is not text"),
            format!("{at}/parent/anyOf/1/type `type` has null, which is not text"),
            format!("{at}/unsaid/type `null` is not a type of JSON"),
        ]
    );
}

/// Two parameters of one name get others; what the document calls so keeps its own.
#[test]
fn a_made_up_name_of_a_parameter_is_no_other_parameter() {
    let parameter = |name: &str, place: &str| json!({ "name": name, "in": place, "required": true, "schema": {} });
    let document = json!({
        "openapi": "3.1.0",
        "paths": { "/users/{id}/{id_header}": { "get": { "operationId": "orders", "responses": {}, "parameters": [
            parameter("id", "path"), parameter("id", "query"), parameter("id_query", "query"), parameter("id", "header"),
        ] } } },
    });
    let (api, _) = openapi::read(&document, &ReadOptions::new()).unwrap();
    let parameters = api.operations[0].http().unwrap().parameters.iter();
    let found: Vec<_> = parameters.map(|p| (&*p.property, &*p.name)).collect();
    assert_eq!(
        found,
        [
            ("id", "id"),
            ("id_query_2", "id"),
            ("id_query", "id_query"),
            ("id_header_2", "id"),
            ("id_header", "id_header"),
        ]
    );
}

#[test]
fn a_part_that_has_a_schema_is_meant_as_that_schema() {
    let to = |place: &str| json!({ "$ref": format!("#/components/{place}") });
    let response = |kind: &str, media: Value| json!({ "description": "", "content": { kind: media } });
    let of = |schema: Value| json!({ "schema": schema });
    let two = json!({ "text/plain": { "schema": { "type": "string" } }, "application/json": of(to("schemas/Task")) });
    let properties = json!({
        "accepted": to("responses/202"),
        "again": to("responses/Again"),
        "body": to("requestBodies/Two"),
        "circle": to("responses/Circle"),
        "limit": to("parameters/Limit"),
        "nothing": to("responses/Nothing"),
        "task": to("schemas/Task"),
    });
    let document = json!({
        "openapi": "3.0.3",
        "paths": {},
        "components": {
            "schemas": {
                "Task": { "type": "object" },
                "X": { "type": "object", "properties": properties },
            },
            "responses": {
                "202": response("application/json", of(to("schemas/Task"))),
                "Again": response("application/json", of(to("responses/202"))),
                "Circle": response("application/json", of(to("responses/Circle"))),
                "Nothing": response("application/json", json!({})),
            },
            "requestBodies": { "Two": { "content": two } },
            "parameters": { "Limit": { "name": "limit", "in": "query", "schema": { "type": "integer" } } },
        },
    });
    let (api, diagnostics) = openapi::read(&document, &ReadOptions::new()).unwrap();
    let definitions = api.definitions.as_slice().iter();
    let schemas: Value = definitions.map(|d| (d.name.to_string(), d.schema.to_value().unwrap().into_owned())).collect();
    let task = json!({ "$ref": "#/$defs/Task" });
    let properties = json!({
        "accepted": task,
        "again": task,
        "body": task,
        "circle": {},
        "limit": { "$ref": "#/$defs/Limit" },
        "nothing": {},
        "task": task,
    });
    let wanted = json!({
        "Task": { "type": "object" },
        "X": { "type": "object", "properties": properties },
        "Limit": { "type": "integer" },
    });
    assert_eq!(schemas, wanted);
    let told: Vec<_> = diagnostics
        .iter()
        .map(|d| (d.pointer.trim_start_matches("/components/schemas/X/properties/"), d.message.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("accepted", "`#/components/responses/202` is not a schema"),
            ("again", "`#/components/responses/Again` is not a schema"),
            ("body", "`#/components/requestBodies/Two` is not a schema"),
            ("circle", "`#/components/responses/Circle` is not a schema"),
            ("limit", "`#/components/parameters/Limit` is not a schema"),
            ("nothing", "`#/components/responses/Nothing` is not a schema"),
        ]
    );
}

/// An operation whose request body has these content types, and the messages. `Own` is a definition.
fn with_body(version: &str, content: &Value, own: &Value) -> (OperationSpec, Vec<String>) {
    let responses = json!({ "204": { "description": "" } });
    let post = json!({ "operationId": "put", "requestBody": { "content": content }, "responses": responses });
    let schemas = json!({ "Own": own });
    let document =
        json!({ "openapi": version, "paths": { "/": { "post": post } }, "components": { "schemas": schemas } });
    let (mut api, diagnostics) = openapi::read(&document, &ReadOptions::new().with_namespace("a")).unwrap();
    (api.operations.remove(0), diagnostics.into_iter().map(|d| d.message).collect())
}

/// The schema of the body of such an operation, and the messages.
fn body(version: &str, content: &Value, own: &Value) -> (Value, Vec<String>) {
    let (spec, messages) = with_body(version, content, own);
    (spec.input.to_value().unwrap()["properties"]["body"].clone(), messages)
}

#[test]
fn a_form_that_is_not_described_is_any_object() {
    const OTHER: &str = "the schema of a form is not an object";
    let (form, parts) = ("application/x-www-form-urlencoded", "multipart/form-data");
    let to = |target: &str| json!({ "schema": { "$ref": target } });
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    for (kind, media, told) in [
        (form, json!({}), vec![]),
        (form, json!({ "schema": {} }), vec![]),
        (form, json!({ "schema": { "type": "string", "format": "binary" } }), vec![OTHER]),
        (form, json!({ "schema": { "items": {} } }), vec![OTHER]),
        (form, to("#/components/schemas/Own"), vec![OTHER]),
        (form, to("#/components/schemas/None"), vec!["`#/components/schemas/None` does not exist"]),
        (parts, to("#/components/schemas/None"), vec!["`#/components/schemas/None` does not exist"]),
    ] {
        for version in ["3.0.3", "3.1.0"] {
            let (schema, messages) = body(version, &json!({ kind: media }), &texts);
            assert_eq!((schema, messages.len()), (json!({ "type": "object" }), told.len()), "{media}: {messages:?}");
            assert!(messages.iter().zip(&told).all(|(message, told)| message.contains(told)), "{messages:?}");
        }
    }
    // So is one whose definition leads nowhere.
    for kind in [form, parts] {
        let content = json!({ kind: to("#/components/schemas/Own") });
        assert_eq!(body("3.0.3", &content, &json!({ "$ref": "lost.yaml" })).0, json!({ "type": "object" }));
    }
    let named = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    assert_eq!(body("3.1.0", &json!({ form: { "schema": named } }), &texts), (named.clone(), vec![]));
    let schema = |version: &str, kind: &str, schema: &Value, own: &Value| {
        body(version, &json!({ kind: { "schema": schema } }), own).0
    };
    // Since 3.1, what is beside a reference counts.
    let beside = |target: &str| {
        let mut own = named.clone();
        own["$ref"] = target.into();
        own["required"] = json!(["a"]);
        own
    };
    let own = json!({ "type": "object", "required": ["a"], "properties": named["properties"] });
    let any = json!({ "type": "object" });
    for kind in [form, parts] {
        assert_eq!(schema("3.1.0", kind, &beside("lost.yaml"), &texts), own, "{kind}");
        assert_eq!(schema("3.0.3", kind, &beside("lost.yaml"), &texts), any, "{kind}");
        // Also one definition further.
        let reference = json!({ "$ref": "#/components/schemas/Own" });
        let expected = json!({ "$ref": "#/$defs/Own" });
        assert_eq!(schema("3.1.0", kind, &reference, &beside("lost.yaml")), expected, "{kind}");
    }
    assert_eq!(schema("3.1.0", form, &beside("#/components/schemas/Own"), &json!({})), own);
    // So do words, and members that say nothing of the values are none.
    let words = json!({ "title": "T", "description": "d" });
    let described = json!({ "title": "T", "description": "d", "type": "object" });
    assert_eq!(schema("3.0.3", form, &words, &texts), described);
    let xml = json!({ "description": "d", "xml": { "name": "x" } });
    assert_eq!(schema("3.0.3", form, &xml, &texts), json!({ "description": "d", "type": "object" }));
    for target in ["lost.yaml", "#/components/schemas/Own"] {
        let reference = json!({ "$ref": target, "description": "d" });
        let expected = json!({ "description": "d", "type": "object" });
        assert_eq!(schema("3.1.0", form, &reference, &json!({})), expected, "{target}");
    }
}

#[test]
fn schemas_that_only_their_titles_distinguish_are_one_alternative() {
    let of = |title: &str, kind: &str| json!({ "schema": { "title": title, "type": kind } });
    let content = json!({
        "application/json": of("Plain", "object"),
        "application/json; profile=custom": of("With profile", "object"),
        "text/plain": of("Text", "string"),
        "*/*": of("Anything", "object"),
    });
    let (spec, _) = with_body("3.0.3", &content, &json!({}));
    let input = spec.input.to_value().unwrap();
    let text = json!({ "title": "Text", "type": "string" });
    assert_eq!(input["properties"]["body"], json!({ "oneOf": [{ "title": "Json", "type": "object" }, text] }));
    // The range is no other choice than JSON.
    let choice = &input["properties"]["contentType"];
    assert_eq!(choice["enum"], json!(["application/json", "text/plain"]));
    let bodies = spec.http().unwrap().bodies.iter();
    assert_eq!(
        bodies.map(|body| (&*body.content_type, body.variant)).collect::<Vec<_>>(),
        [
            ("application/json", Some(0)),
            ("application/json; profile=custom", Some(0)),
            ("*/*", Some(0)),
            ("text/plain", Some(1)),
        ]
    );
    // The only one keeps its own.
    let content = json!({ "application/json": of("Plain", "object"), "text/json": of("Other", "object") });
    assert_eq!(body("3.0.3", &content, &json!({})).0, json!({ "title": "Plain", "type": "object" }));
}
