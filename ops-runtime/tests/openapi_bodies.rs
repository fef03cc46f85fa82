//! Request bodies and answers: content types, forms, parts and streams.
#![cfg(feature = "openapi")]

use ops_runtime::binding::{HttpBinding, ParameterStyle};
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Api, OperationKind, OperationSpec, Severity};
use serde_json::{Value, json};

fn read(version: &str, operation: &Value, schemas: &Value) -> (Api, Vec<String>) {
    let document = json!({
        "openapi": version,
        "info": { "version": "1" },
        "paths": { "/": { "post": operation } },
        "components": { "schemas": schemas },
    });
    let (api, diagnostics) = openapi::read(&document, &ReadOptions::new().with_namespace("api")).unwrap();
    let told = diagnostics.into_iter().filter(|d| !d.message.contains("no successful answer"));
    let told = told.filter(|d| !d.message.contains("no `operationId`"));
    (api, told.map(|d| d.message).collect())
}

fn with_body(version: &str, content: Value) -> (OperationSpec, Vec<String>) {
    let (mut api, messages) = read(version, &json!({ "requestBody": { "content": content } }), &json!({}));
    (api.operations.remove(0), messages)
}

fn http(operation: &OperationSpec) -> &HttpBinding {
    operation.http().unwrap()
}

fn property<'a>(input: &'a Value, name: &str) -> &'a Value {
    &input["properties"][name]
}

#[test]
fn the_caller_chooses_among_content_types() {
    let typed = |schema: &Value| json!({ "schema": schema });
    let object = json!({ "type": "object" });
    let choice = |names: &[&str]| json!({ "type": "string", "description": "The content type of the body.", "enum": names, "default": names[0] });
    for (types, chosen) in [
        (vec!["application/json"], json!(null)),
        (vec!["application/json", "application/json; charset=utf-8"], json!(null)),
        (vec!["application/*+json", "text/json", "application/json"], choice(&["application/json", "text/json"])),
        (vec!["*/*"], json!(null)),
        (
            vec!["application/xml", "multipart/form-data", "application/x-www-form-urlencoded"],
            choice(&["application/x-www-form-urlencoded", "multipart/form-data", "application/xml"]),
        ),
        (vec!["image/*"], json!({ "type": "string", "description": "The content type of the body." })),
        (
            vec!["*/*", "multipart/form-data"],
            json!({ "type": "string", "description": "The content type of the body." }),
        ),
        (
            vec!["application/json", "image/*"],
            json!({ "type": "string", "description": "The content type of the body.", "default": "application/json" }),
        ),
    ] {
        let content: Value =
            types.iter().map(|name| ((*name).to_owned(), typed(&object))).collect::<serde_json::Map<_, _>>().into();
        let (operation, messages) = with_body("3.1.0", content);
        let input = operation.input.to_value().unwrap();
        assert_eq!((property(&input, "contentType"), messages), (&chosen, vec![]), "{types:?}");
        let named = http(&operation).content_type.as_deref();
        assert_eq!(named, (!chosen.is_null()).then_some("contentType"), "{types:?}");
        assert_eq!(http(&operation).bodies.len(), types.len());
        assert_eq!(input.get("required"), None);
    }
    let parameters = json!([{ "name": "contentType", "in": "query", "schema": {} }]);
    let operation =
        json!({ "parameters": parameters, "requestBody": { "content": { "text/plain": {}, "text/html": {} } } });
    let (api, _) = read("3.1.0", &operation, &json!({}));
    assert_eq!(http(&api.operations[0]).content_type.as_deref(), Some("body_content_type"));
    assert_eq!(property(&api.operations[0].input.to_value().unwrap(), "body"), &json!({ "type": "string" }));
}

#[test]
fn parts_keep_their_encoding() {
    let schema = json!({
        "type": "object",
        "required": ["file"],
        "properties": {
            "file": { "type": "string", "format": "binary" },
            "photo": { "contentMediaType": "image/png" },
            "text": { "type": "string", "contentEncoding": "base64" },
            "nothing": { "description": "d" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "photos": { "type": "array", "items": { "contentMediaType": "image/gif" } },
        },
    });
    let encoding = json!({
        "file": { "contentType": "image/png, image/jpeg", "headers": { "X-A": {} } },
        "tags": { "style": "spaceDelimited" },
    });
    let content = json!({ "multipart/form-data": { "schema": schema, "encoding": encoding } });
    let (operation, messages) = with_body("3.1.0", content.clone());
    assert_eq!(messages, ["the part `file` has headers of its own"]);
    let input = operation.input.to_value().unwrap();
    let binary = json!({ "type": "string", "format": "binary" });
    assert_eq!(
        property(&input, "body"),
        &json!({ "type": "object", "required": ["file"], "properties": {
            "file": binary,
            "photo": binary,
            "text": { "type": "string", "format": "byte" },
            "nothing": { "type": "string", "format": "binary", "description": "d" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "photos": { "type": "array", "items": binary },
        } })
    );
    let fields: Vec<_> = http(&operation).bodies[0]
        .fields
        .iter()
        .map(|field| (field.name.as_ref(), field.content_type.as_deref(), field.style))
        .collect();
    assert_eq!(
        fields,
        [
            ("file", Some("image/png, image/jpeg"), None),
            ("tags", None, Some((ParameterStyle::SpaceDelimited, false))),
            ("photo", Some("image/png"), None),
            ("photos", Some("image/gif"), None),
        ]
    );
    let (operation, _) = with_body("3.0.3", content);
    let input = operation.input.to_value().unwrap();
    assert_eq!(property(&input, "body")["properties"]["nothing"], json!({ "description": "d" }));
}

#[test]
fn a_file_has_no_style() {
    let file = json!({ "type": "string", "format": "binary" });
    let schema = json!({ "type": "object", "properties": {
        "file": file, "files": { "type": "array", "items": file }, "tags": { "type": "array", "items": {} }, "any": {},
        "deep": { "type": "object" }, "maybe": { "anyOf": [file, { "type": "null" }] },
        "made": { "allOf": [{ "type": "array", "items": { "allOf": [file] } }] },
    } });
    let form = json!({ "style": "form", "allowReserved": true });
    let content = |kind: &str| {
        let deep = json!({ "style": "deepObject" });
        let encoding = json!({ "file": form, "files": form, "tags": form, "any": form, "deep": deep, "maybe": form, "made": form });
        json!({ kind: { "schema": schema, "encoding": encoding } })
    };
    let styles = |version: &str, kind: &str| {
        let (operation, messages) = with_body(version, content(kind));
        let fields = http(&operation).bodies[0].fields.iter();
        let names: Vec<_> = fields.filter(|field| field.style.is_some()).map(|field| field.name.to_string()).collect();
        (names, messages)
    };
    // Before 3.1, a part has no style (3.0.3, section 4.7.15.1), but one that is not the default is meant.
    let (names, messages) = styles("3.0.3", "multipart/form-data");
    assert_eq!(names, ["deep"]);
    let told = |name: &str| format!("the part `{name}` has a style, which is for forms of fields");
    assert_eq!(messages, ["file", "files", "tags", "any", "maybe", "made"].map(told));
    assert_eq!(styles("3.1.0", "multipart/form-data"), (vec!["tags".to_owned(), "deep".to_owned()], vec![]));
    for version in ["3.0.3", "3.1.0"] {
        assert_eq!(
            styles(version, "application/x-www-form-urlencoded").0,
            ["file", "files", "tags", "any", "deep", "maybe", "made"]
        );
    }
}

#[test]
fn bytes_and_text() {
    let binary = json!({ "type": "string", "format": "binary" });
    let text = json!({ "type": "string" });
    for (content_type, schema, expected) in [
        ("application/octet-stream", json!({}), &binary),
        ("image/png", json!({ "type": "string" }), &binary),
        ("application/octet-stream", json!({ "contentMediaType": "application/octet-stream" }), &binary),
        ("multipart/mixed", json!({ "type": "object" }), &json!({ "type": "object" })),
        ("text/csv", json!({ "type": "array" }), &text),
        ("application/xml", json!({ "type": "object" }), &text),
        ("application/x-ndjson", json!({ "type": "string", "maxLength": 3 }), &text),
        ("text/plain", json!({ "type": "string", "enum": ["a"] }), &json!({ "type": "string", "enum": ["a"] })),
        ("text/plain; charset=utf-8", json!({ "type": "string", "format": "binary" }), &text),
        ("text/plain", json!({ "type": "integer" }), &text),
        ("text/html", json!({ "type": "string", "enum": ["a"] }), &text),
    ] {
        let (operation, _) = with_body("3.1.0", json!({ content_type: { "schema": schema } }));
        assert_eq!(property(&operation.input.to_value().unwrap(), "body"), expected, "{content_type}");
    }
    let (_, messages) = with_body("3.0.0", json!({ "application/json": {}, "examples": {} }));
    assert_eq!(messages, ["`examples` is not a content type"]);
}

#[test]
fn answers_that_differ_are_alternatives() {
    let of = |schema: Value| json!({ "content": { "application/json": { "schema": schema } } });
    let a = || json!({ "$ref": "#/components/schemas/A" });
    let responses = json!({
        "200": of(a()), "201": of(a()), "202": of(json!({ "type": "integer", "title": "job" })), "204": {},
        "299": of(json!({})), "404": of(json!({})),
    });
    let (api, _) = read("3.1.0", &json!({ "responses": responses }), &json!({ "A": { "type": "object" } }));
    assert_eq!(
        api.operations[0].output.to_value().unwrap().as_ref(),
        &json!({ "oneOf": [
            { "title": "Ok", "$ref": "#/$defs/A" },
            { "title": "Accepted", "type": "integer" },
            { "title": "NoContent", "type": "null" },
            { "title": "Status299" },
        ] })
    );
    let variants: Vec<_> = http(&api.operations[0]).responses.iter().map(|response| response.variant).collect();
    assert_eq!(variants, [Some(0), Some(0), Some(1), Some(2), Some(3), None]);
    let (api, _) = read("3.1.0", &json!({ "responses": { "200": of(a()), "201": of(a()) } }), &json!({ "A": {} }));
    assert!(http(&api.operations[0]).responses.iter().all(|response| response.variant.is_none()));
}

#[test]
fn content_types_that_no_output_has_are_told_once() {
    let (a, b) = (json!({ "schema": { "type": "object" } }), json!({ "schema": { "type": "string" } }));
    let response = |others: &[(&str, &Value)]| {
        let content: serde_json::Map<String, Value> = [("application/json", &a)]
            .iter()
            .chain(others)
            .map(|(name, media)| ((*name).to_owned(), (*media).clone()))
            .collect();
        json!({ "content": content })
    };
    let told = |responses: Value| {
        let (api, messages) = read("3.1.0", &json!({ "responses": responses }), &json!({}));
        assert_eq!(api.operations[0].output.to_value().unwrap().as_ref(), &json!({ "type": "object" }));
        messages
    };
    // The same in another form, a stream, and an error are no further kinds of the output.
    let same = response(&[("application/xml", &a)]);
    assert_eq!(told(json!({ "200": same, "404": response(&[("text/csv", &b)]) })), [""; 0]);
    assert_eq!(
        told(json!({ "200": response(&[("text/csv", &b)]) })),
        ["a response has a second content type, `text/csv`, that the output does not have"]
    );
    assert_eq!(
        told(
            json!({ "200": response(&[("text/csv", &b), ("image/png", &json!({}))]), "201": response(&[("text/csv", &b)]) })
        ),
        ["3 responses have further content types, such as `text/csv`, `image/png`, that the outputs do not have"]
    );
}

#[test]
fn a_response_with_content_is_not_without() {
    let schemas = json!({});
    for content in [
        json!({ "json": { "schema": { "type": "object" } }, "xml": {} }),
        json!({ "application/json": { "$ref": "#/components/mediaTypes/Gone" } }),
    ] {
        let (api, messages) = read("3.1.0", &json!({ "responses": { "200": { "content": content } } }), &schemas);
        let output = api.operations[0].output.to_value().unwrap();
        assert!(output.as_ref() != &json!({ "type": "null" }) && !messages.is_empty(), "{output} {messages:?}");
        assert_eq!(http(&api.operations[0]).responses[0].content_type.as_deref(), Some("application/json"));
    }
}

#[test]
fn examples_of_responses() {
    let example = |version: &str, key: &str, response: Value| {
        let document = json!({ key: version, "info": { "version": "1" }, "paths": { "/": { "get": {
            "operationId": "x", "responses": { "200": response },
        } } } });
        let (api, _) = openapi::read(&document, &ReadOptions::new().with_examples()).unwrap();
        api.operations[0].output.to_value().unwrap()["examples"].clone()
    };
    let content =
        |examples: Value| json!({ "content": { "application/json": { "schema": {}, "examples": examples } } });
    assert_eq!(
        example("3.1.0", "openapi", content(json!({ "a": { "summary": "none" }, "b": { "value": 7 } }))),
        json!([7])
    );
    assert_eq!(example("3.2.0", "openapi", content(json!({ "a": { "dataValue": 7 } }))), json!([7]));
    // In 2.0 they are by content type, and `value` is a property as any.
    let response = json!({ "schema": {}, "examples": { "text/plain": "a", "application/json": { "value": 1 } } });
    assert_eq!(example("2.0", "swagger", response), json!([{ "value": 1 }]));
}

#[test]
fn an_example_in_another_file_is_told() {
    let to = |reference: &str| json!({ "$ref": reference });
    let examples = json!({ "a": to("other.json#/ok"), "b": to("#/components/examples/here") });
    let content = json!({ "application/json": { "schema": {}, "examples": examples } });
    let document = json!({
        "openapi": "3.1.0",
        "info": { "version": "1" },
        "paths": { "/": { "get": { "operationId": "x", "responses": { "200": { "content": content } } } } },
        "components": { "examples": { "here": { "value": 7 } } },
    });
    let source = std::collections::BTreeMap::from([("api.json".to_owned(), document.to_string())]);
    let (api, diagnostics) = openapi::load("api.json", &source, &ReadOptions::new().with_examples()).unwrap();
    assert_eq!(api.operations[0].output.to_value().unwrap()["examples"], json!([7]));
    let [told] = diagnostics.as_slice() else { panic!("{diagnostics:?}") };
    assert_eq!(told.message, "`other.json#/ok` is no example in this document");
    assert_eq!(told.pointer, "/paths/~1/get/responses/200/content/application~1json/examples/a");
    // Without examples, nothing is missing.
    let (_, diagnostics) = openapi::load("api.json", &source, &ReadOptions::new()).unwrap();
    assert_eq!(diagnostics, []);
}

#[test]
fn lines_are_streams() {
    let line = json!({ "$ref": "#/components/schemas/Line" });
    let list = json!({ "type": "array", "items": line });
    for (version, content_type, media, kinds) in [
        ("3.0.0", "application/x-ndjson", json!({ "schema": line }), 1),
        ("3.1.0", "application/jsonl", json!({ "schema": list }), 1),
        ("3.1.0", "application/stream+json", json!({ "schema": line }), 1),
        ("3.2.0", "application/json-seq", json!({ "itemSchema": line }), 1),
        ("3.2.0", "text/event-stream", json!({ "schema": list }), 1),
        ("3.1.0", "text/event-stream", json!({ "schema": line }), 1),
    ] {
        let operation = json!({ "operationId": "x", "responses": { "200": { "content": { content_type: media } } } });
        let (api, messages) = read(version, &operation, &json!({ "Line": { "type": "object" } }));
        assert_eq!((api.operations.len(), messages), (kinds, vec![]), "{content_type}");
        let operation = &api.operations[0];
        assert_eq!((operation.kind, operation.id.as_ref()), (OperationKind::Subscription, "api.x"));
        assert_eq!(operation.output.to_value().unwrap().as_ref(), &json!({ "$ref": "#/$defs/Line" }), "{content_type}");
        assert!(http(operation).responses.iter().all(|response| !response.whole_event));
    }
}

#[test]
fn whole_events() {
    let event = |data: Value| json!({ "type": "object", "required": ["data"], "properties": { "event": { "const": "a" }, "data": data } });
    let embedded = json!({
        "type": "string", "contentMediaType": "application/json", "contentSchema": { "$ref": "#/components/schemas/Pet" },
    });
    let pet = json!({ "$ref": "#/$defs/Pet" });
    let schemas = json!({
        "Pet": { "type": "object" },
        "Base": { "properties": { "event": { "type": "string" }, "data": { "type": "string" }, "id": {}, "retry": {} } },
        "Added": event(embedded.clone()),
        "Data": { "properties": { "id": {}, "data": {} } },
        "Loop": { "oneOf": [{ "$ref": "#/components/schemas/Loop" }, { "$ref": "#/components/schemas/Loop" }] },
    });
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    for (key, schema, expected) in [
        ("schema", to("Pet"), None),
        ("schema", to("Data"), None),
        ("itemSchema", to("Loop"), None),
        ("itemSchema", to("Data"), Some(json!({ "$ref": "#/$defs/Data" }))),
        ("schema", event(json!({ "type": "integer" })), Some(event(json!({ "type": "integer" })))),
        ("itemSchema", to("Base"), Some(json!({ "$ref": "#/$defs/Base" }))),
        ("itemSchema", event(embedded.clone()), Some(event(pet.clone()))),
        (
            "itemSchema",
            json!({ "oneOf": [to("Added"), to("Base")] }),
            Some(json!({ "oneOf": [
                { "type": "object", "required": ["data"], "properties": { "event": { "const": "a" }, "data": pet }, "title": "Added" },
                { "$ref": "#/$defs/Base" },
            ] })),
        ),
        (
            "itemSchema",
            json!({ "$ref": "#/components/schemas/Added", "description": "d", "properties": { "id": {} } }),
            Some(json!({ "description": "d", "properties": { "id": {} }, "allOf": [
                { "type": "object", "required": ["data"], "properties": { "event": { "const": "a" }, "data": pet }, "title": "Added" },
            ] })),
        ),
    ] {
        let operation = json!({ "responses": { "200": { "content": { "text/event-stream": { key: schema } } } } });
        let (api, _) = read("3.2.0", &operation, &schemas);
        let operation = &api.operations[0];
        assert_eq!(http(operation).responses[0].whole_event, expected.is_some(), "{schema}");
        if let Some(expected) = expected {
            assert_eq!(operation.output.to_value().unwrap().as_ref(), &expected);
        }
    }
}

#[test]
fn additions_of_3_2() {
    let document = json!({
        "openapi": "3.2.0",
        "info": { "version": "1" },
        "paths": { "/a": {
            "query": { "operationId": "search", "parameters": [
                { "name": "filter", "in": "querystring", "content": { "application/x-www-form-urlencoded": { "schema": { "type": "object" } } } },
                { "name": "session", "in": "cookie", "style": "cookie", "schema": { "type": "string" } },
            ] },
            "additionalOperations": {
                "COPY": { "operationId": "copy", "requestBody": { "content": { "application/json": { "$ref": "#/components/mediaTypes/Json" } } } },
                "delete": { "operationId": "drop" },
                "NOT ONE": {},
            },
        } },
        "components": {
            "mediaTypes": { "Json": { "schema": { "$ref": "https://example.com/api#/components/schemas/A" } } },
            "schemas": { "A": { "oneOf": [{ "$ref": "#/components/schemas/B" }], "discriminator": { "propertyName": "kind", "defaultMapping": "B" } }, "B": {} },
        },
        "$self": "https://example.com/api",
    });
    let source = std::collections::BTreeMap::from([("api.json".to_owned(), document.to_string())]);
    let (api, diagnostics) = openapi::load("api.json", &source, &ReadOptions::new()).unwrap();
    let (same, _) = openapi::read(&document, &ReadOptions::new().with_namespace("api")).unwrap();
    assert_eq!(api.definitions, same.definitions);
    let found: Vec<_> = api.operations.iter().map(|o| (o.id.as_ref(), http(o).method.as_ref(), o.kind)).collect();
    let (copy, drop) = (("api.copy", "COPY", OperationKind::Mutation), ("api.drop", "delete", OperationKind::Mutation));
    assert_eq!(found, [("api.search", "QUERY", OperationKind::Query), copy, drop]);
    assert!(api.operations[2].matches("DELETE *") && api.operations[1].matches("COPY /a"));
    let parameters = &http(&api.operations[0]).parameters;
    let row = |p: &ops_runtime::binding::HttpParameter| (p.location, p.style, p.allow_reserved);
    use ops_runtime::binding::ParameterLocation::{Cookie, QueryString};
    assert_eq!(row(&parameters[0]), (QueryString, ParameterStyle::Form, false));
    assert_eq!(row(&parameters[1]), (Cookie, ParameterStyle::Form, true));
    let input = api.operations[1].input.to_value().unwrap();
    assert_eq!(property(&input, "body"), &json!({ "$ref": "#/$defs/A" }));
    let discriminator = &api.definitions.get("A").unwrap().schema.to_value().unwrap()["discriminator"];
    assert_eq!(discriminator, &json!({ "propertyName": "kind", "defaultMapping": "#/$defs/B" }));
    let warnings: Vec<_> = diagnostics.iter().filter(|d| d.severity == Severity::Warning).map(|d| &d.message).collect();
    assert_eq!(warnings, ["`delete` is not the method `DELETE`", "`NOT ONE` is not a method"]);
}

#[test]
fn a_default_of_a_discriminator_may_be_in_another_file() {
    let union = |default: &str| {
        let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        json!({ "oneOf": [to("B")], "discriminator": { "propertyName": "kind", "defaultMapping": default } })
    };
    let schemas = json!({ "A": union("other.json#/Other"), "Gone": union("Nothing"), "B": {} });
    let document =
        json!({ "openapi": "3.2.0", "info": { "version": "1" }, "paths": {}, "components": { "schemas": schemas } });
    let source = std::collections::BTreeMap::from([
        ("api.json".to_owned(), document.to_string()),
        ("other.json".to_owned(), json!({ "Other": { "type": "object" } }).to_string()),
    ]);
    let (api, diagnostics) = openapi::load("api.json", &source, &ReadOptions::new()).unwrap();
    let schema = |name: &str| api.definitions.get(name).unwrap().schema.to_value().unwrap().into_owned();
    assert_eq!(schema("A")["discriminator"]["defaultMapping"], "#/$defs/Other");
    assert_eq!(schema("Other"), json!({ "type": "object" }));
    assert_eq!(schema("Gone")["discriminator"], json!({ "propertyName": "kind" }));
    let told: Vec<_> = diagnostics.iter().map(|told| told.pointer.as_str()).collect();
    assert_eq!(told, ["/components/schemas/Gone/discriminator/defaultMapping"]);
}

#[test]
fn forms_in_parts_that_are_no_objects_are_files() {
    let binary = || json!({ "type": "string", "format": "binary" });
    let list = |items: Value| json!({ "type": "array", "items": items });
    let spring = json!({ "type": "object", "properties": { "originalFilename": { "type": "string" }, "bytes": {} } });
    let (text, number) = (json!({ "type": "string", "format": "date" }), json!({ "type": "integer" }));
    for (media, body, name) in [
        (json!({}), binary(), "file"),
        (json!({ "schema": {} }), binary(), "file"),
        (json!({ "schema": { "type": "string" } }), binary(), "file"),
        (json!({ "schema": binary() }), binary(), "file"),
        (json!({ "schema": list(binary()) }), list(binary()), "file"),
        (json!({ "schema": { "type": "array" } }), list(binary()), "file"),
        (json!({ "schema": { "items": spring } }), list(binary()), "file"),
        (json!({ "schema": { "$ref": "#/components/schemas/List" } }), list(binary()), "file"),
        (json!({ "schema": list(text.clone()) }), list(text), "file"),
        (json!({ "schema": number }), number.clone(), "file"),
        (json!({ "schema": list(binary()), "encoding": { "image": {} } }), list(binary()), "image"),
        (json!({ "schema": list(binary()), "encoding": { "a": {}, "b": {} } }), list(binary()), "file"),
    ] {
        let operation = json!({ "requestBody": { "content": { "multipart/form-data": media } } });
        let (api, messages) = read("3.0.3", &operation, &json!({ "List": list(spring.clone()) }));
        let spec = &api.operations[0];
        assert_eq!(property(&spec.input.to_value().unwrap(), "body"), &body, "{media}");
        let names: Vec<_> = http(spec).bodies[0].fields.iter().map(|field| field.name.as_ref()).collect();
        assert_eq!((names, messages), (vec![name], vec!["the schema of a multipart form is not an object".to_owned()]));
    }
    let encoding = json!({ "file": { "contentType": "image/png" } });
    let (spec, _) =
        with_body("3.0.3", json!({ "multipart/form-data": { "schema": list(binary()), "encoding": encoding } }));
    assert_eq!(http(&spec).bodies[0].fields[0].content_type.as_deref(), Some("image/png"));
    for schema in [json!({ "type": "object" }), json!({ "oneOf": [list(binary()), { "type": "object" }] })] {
        let (spec, messages) = with_body("3.0.3", json!({ "multipart/form-data": { "schema": schema } }));
        assert_eq!((http(&spec).bodies[0].fields.len(), messages.len()), (0, 0), "{schema}");
    }
}

#[test]
fn lines_of_json_are_a_list_or_text() {
    let object = || json!({ "type": "object" });
    let (text, list) = (json!({ "type": "string" }), json!({ "type": "array", "items": object() }));
    let union = json!({ "anyOf": [list, text] });
    for (media, body, told) in [
        (json!({}), &text, 0),
        (json!({ "schema": {} }), &text, 0),
        (json!({ "schema": text }), &text, 0),
        (json!({ "schema": list }), &list, 0),
        (json!({ "schema": object() }), &list, 1),
        (json!({ "itemSchema": object() }), &list, 0),
        (json!({ "schema": union }), &union, 0),
    ] {
        for kind in ["application/x-ndjson", "application/jsonl", "application/json-seq"] {
            let (spec, messages) = with_body("3.2.0", json!({ kind: media }));
            assert_eq!(property(&spec.input.to_value().unwrap(), "body"), body, "{media}");
            assert_eq!(messages.len(), told, "{messages:?}");
        }
    }
    // The same list in two content types is one schema, of which the caller chooses how it is written.
    let (spec, _) = with_body(
        "3.1.0",
        json!({ "application/x-ndjson": { "schema": list }, "application/json": { "schema": list } }),
    );
    let input = spec.input.to_value().unwrap();
    assert_eq!(property(&input, "body"), &list);
    assert_eq!(property(&input, "contentType")["enum"], json!(["application/json", "application/x-ndjson"]));
}
