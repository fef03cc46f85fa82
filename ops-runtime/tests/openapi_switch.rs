//! Booleans that choose between one result and a stream: the operations set them, and no input has them.
#![cfg(feature = "openapi")]

use ops_runtime::binding::{HttpFixed, Literal};
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Api, OperationSpec};
use serde_json::{Value, json};

fn read_as(version: &str, operation: &Value, schemas: &Value, more: &Value) -> (Api, Vec<String>) {
    let mut paths = json!({ "/chat": { "post": operation } });
    paths.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let document = json!({
        "openapi": version, "info": { "version": "1" }, "paths": paths, "components": { "schemas": schemas },
    });
    let (api, diagnostics) = openapi::read(&document, &ReadOptions::new().with_namespace("ai")).unwrap();
    let told = diagnostics.into_iter().filter(|d| d.message.contains("chooses between"));
    (api, told.map(|d| format!("{}: {}; {}", d.pointer, d.message, d.help.unwrap_or_default())).collect())
}

fn both() -> Value {
    json!({ "200": { "description": "", "content": {
        "application/json": { "schema": { "type": "object" } },
        "text/event-stream": { "schema": { "type": "object" } },
    } } })
}

fn chat(schema: &Value) -> Value {
    json!({ "operationId": "chat", "responses": both(), "requestBody": { "content": { "application/json": { "schema": schema } } } })
}

fn operation<'a>(api: &'a Api, name: &str) -> &'a OperationSpec {
    api.operations.iter().find(|spec| spec.name() == name).unwrap_or_else(|| panic!("no {name}"))
}

fn fixed(api: &Api, name: &str) -> Vec<HttpFixed> {
    operation(api, name).http().unwrap().bodies[0].fixed.to_vec()
}

/// The whole schema of the body.
fn body(api: &Api, name: &str) -> Value {
    let mut input = operation(api, name).input.to_value().unwrap().into_owned();
    input["properties"]["body"].take()
}

fn definition(api: &Api, name: &str) -> Value {
    api.definitions.get(name).unwrap_or_else(|| panic!("no {name}")).schema.to_value().unwrap().into_owned()
}

const ON: HttpFixed = HttpFixed::new("stream", Literal::Bool(true));
const OFF: HttpFixed = HttpFixed::new("stream", Literal::Bool(false));
const ABSENT: HttpFixed = HttpFixed::absent("stream");

#[test]
fn what_is_sent_follows_from_default_and_required() {
    let object = |stream: Value, required: Value| json!({ "type": "object", "properties": { "model": { "type": "string" }, "stream": stream }, "required": required });
    let table = [
        ("3.1.0", object(json!({ "type": "boolean" }), json!(["model"])), ABSENT),
        ("3.1.0", object(json!({ "type": "boolean", "default": false }), json!(["model"])), ABSENT),
        ("3.1.0", object(json!({ "type": "boolean", "default": null }), json!(["model"])), ABSENT),
        ("3.1.0", object(json!({ "type": "boolean", "default": true }), json!(["model"])), OFF),
        ("3.1.0", object(json!({ "type": "boolean", "default": "true" }), json!(["model"])), OFF),
        ("3.1.0", object(json!({ "type": "boolean" }), json!(["model", "stream"])), OFF),
        ("3.1.0", object(json!({ "type": ["boolean", "null"] }), json!(["model"])), ABSENT),
        ("3.0.3", object(json!({ "type": "boolean", "nullable": true, "default": true }), json!(["model"])), OFF),
        (
            "3.1.0",
            object(json!({ "anyOf": [{ "type": "boolean", "default": true }, { "type": "null" }] }), json!(["model"])),
            OFF,
        ),
        ("3.0.3", object(json!({ "allOf": [{ "$ref": "#/components/schemas/Flag" }] }), json!(["model"])), OFF),
        ("3.1.0", object(json!({ "$ref": "#/components/schemas/Flag" }), json!(["model"])), OFF),
        ("3.1.0", object(json!({ "enum": [true, false] }), json!(["model"])), ABSENT),
    ];
    for (version, schema, expected) in table {
        let flag = json!({ "Flag": { "type": "boolean", "default": true } });
        let (api, told) = read_as(version, &chat(&schema), &flag, &json!({}));
        let left = json!({ "type": "object", "properties": { "model": { "type": "string" } }, "required": ["model"] });
        assert_eq!((body(&api, "chat"), body(&api, "chat_stream")), (left.clone(), left), "{schema}");
        assert_eq!(fixed(&api, "chat"), std::slice::from_ref(&expected), "{schema}");
        assert_eq!(fixed(&api, "chat_stream"), [ON], "{schema}");
        let sends = if expected == OFF { "sends `false`" } else { "does not send it" };
        let message = format!(
            "/paths/~1chat/post: `stream` chooses between one result and a stream; it is not in the input: `chat` {sends}, `chat_stream` sends `true`"
        );
        assert_eq!(told, [message]);
    }
}

#[test]
fn what_chooses_nothing_stays() {
    let with = |name: &str, stream: Value| json!({ "type": "object", "properties": { name: stream } });
    for schema in [
        with("stream", json!({ "type": "string" })),
        with("stream", json!({ "type": ["boolean", "string"] })),
        with("stream", json!({ "const": true })),
        with("stream", json!({ "type": "boolean", "enum": [false] })),
        with("stream", json!({})),
        with("upstream", json!({ "type": "boolean" })),
        json!({ "type": "string" }),
        json!({ "$ref": "#/components/schemas/Circle" }),
        json!(true),
    ] {
        let circle = json!({ "Circle": { "allOf": [{ "$ref": "#/components/schemas/Circle" }] } });
        let (api, told) = read_as("3.1.0", &chat(&schema), &circle, &json!({}));
        assert_eq!((fixed(&api, "chat"), fixed(&api, "chat_stream"), told.len()), (vec![], vec![], 0), "{schema}");
        assert_eq!(body(&api, "chat"), body(&api, "chat_stream"));
    }
    // One that only streams, and one that only gives one result.
    let schema = with("stream", json!({ "type": "boolean" }));
    for kind in ["text/event-stream", "application/json"] {
        let mut operation = chat(&schema);
        operation["responses"] = json!({ "200": { "content": { kind: { "schema": {} } } } });
        let (api, _) = read_as("3.1.0", &operation, &json!({}), &json!({}));
        assert_eq!((fixed(&api, "chat"), body(&api, "chat")), (vec![], schema.clone()), "{kind}");
    }
}

#[test]
fn what_only_streams_sends_the_one_value() {
    let mut operation =
        chat(&json!({ "type": "object", "required": ["stream"], "properties": { "stream": { "const": true } } }));
    operation["responses"] = json!({ "200": { "content": { "text/event-stream": { "schema": {} } } } });
    let (api, _) = read_as("3.1.0", &operation, &json!({}), &json!({}));
    assert_eq!(fixed(&api, "chat"), [ON]);
    assert_eq!(body(&api, "chat"), json!({ "type": "object", "properties": {} }));
}

#[test]
fn nothing_requires_what_the_operation_sends_itself() {
    let properties = json!({ "stream": { "type": "boolean" }, "stream_options": {}, "n": {} });
    for (dependent, expected) in [
        (json!({ "stream_options": ["stream"] }), json!(null)),
        (json!({ "stream_options": ["n", "stream"], "stream": ["n"] }), json!({ "stream_options": ["n"] })),
        (json!({ "n": [], "stream_options": ["n"] }), json!({ "n": [], "stream_options": ["n"] })),
    ] {
        let schema = json!({ "type": "object", "properties": properties, "dependentRequired": dependent });
        let (api, _) = read_as("3.1.0", &chat(&schema), &json!({}), &json!({}));
        for name in ["chat", "chat_stream"] {
            assert_eq!(body(&api, name)["dependentRequired"], expected, "{name} {dependent}");
        }
    }
}

#[test]
fn definitions_keep_their_names_unless_something_else_needs_them() {
    let schemas = json!({
        "Base": { "type": "object", "properties": { "Stream": { "type": "boolean" }, "a": {} } },
        "Chat": { "allOf": [
            { "$ref": "#/components/schemas/Base" },
            { "type": "object", "required": ["Stream", "b"], "properties": { "b": {} } },
        ] },
    });
    let reference = json!({ "$ref": "#/components/schemas/Chat" });
    let (api, _) = read_as("3.1.0", &chat(&reference), &schemas, &json!({}));
    for name in ["chat", "chat_stream"] {
        assert_eq!(body(&api, name), json!({ "$ref": "#/$defs/Chat" }));
    }
    assert_eq!(definition(&api, "Base"), json!({ "type": "object", "properties": { "a": {} } }));
    assert_eq!(definition(&api, "Chat")["allOf"][1]["required"], json!(["b"]));
    assert_eq!(api.definitions.as_slice().len(), 2);
    assert_eq!(fixed(&api, "chat"), [HttpFixed::new("Stream", Literal::Bool(false))]);

    // Another operation takes the base as it is.
    let other = json!({ "/base": { "post": { "operationId": "base", "requestBody": { "content": { "application/json": {
        "schema": { "$ref": "#/components/schemas/Base" },
    } } } } } });
    let (api, _) = read_as("3.1.0", &chat(&reference), &schemas, &other);
    assert_eq!(definition(&api, "Base"), schemas["Base"]);
    assert_eq!(definition(&api, "Base_without_Stream"), json!({ "type": "object", "properties": { "a": {} } }));
    assert_eq!(definition(&api, "Chat")["allOf"][0], json!({ "$ref": "#/$defs/Base_without_Stream" }));
    assert_eq!(body(&api, "base"), json!({ "$ref": "#/$defs/Base" }));

    // A result of the operation itself holds the request.
    let mut echo = chat(&reference);
    echo["responses"]["200"]["content"]["application/json"]["schema"] = json!({ "type": "array", "items": reference });
    let (api, _) = read_as("3.1.0", &echo, &schemas, &json!({}));
    assert_eq!(body(&api, "chat"), json!({ "$ref": "#/$defs/Chat_without_Stream" }));
    assert_eq!(body(&api, "chat_stream"), body(&api, "chat"));
    assert_eq!(definition(&api, "Chat")["allOf"][0], json!({ "$ref": "#/$defs/Base" }));
    assert_eq!(definition(&api, "Chat_without_Stream")["allOf"][0], json!({ "$ref": "#/$defs/Base_without_Stream" }));
}

#[test]
fn each_operation_takes_the_variants_that_fit() {
    let variant = |stream: Value, own: &str| json!({ "type": "object", "required": ["stream"], "properties": { "stream": stream, own: {} } });
    let schemas = json!({
        "Plain": variant(json!({ "const": false }), "a"),
        "Live": variant(json!({ "enum": [true] }), "b"),
        "Any": { "oneOf": [{ "$ref": "#/components/schemas/Plain" }, { "$ref": "#/components/schemas/Live" }],
                 "discriminator": { "propertyName": "stream" } },
    });
    let (api, told) = read_as("3.1.0", &chat(&json!({ "$ref": "#/components/schemas/Any" })), &schemas, &json!({}));
    assert_eq!(told.len(), 1);
    assert_eq!((fixed(&api, "chat"), fixed(&api, "chat_stream")), (vec![OFF], vec![ON]));
    let whole = |name: &str| {
        let schema = body(&api, name);
        definition(&api, schema["$ref"].as_str().unwrap().strip_prefix("#/$defs/").unwrap())
    };
    let of = |own: &str| json!({ "type": "object", "properties": { own: {} } });
    let leads = |schema: Value| definition(&api, schema["$ref"].as_str().unwrap().strip_prefix("#/$defs/").unwrap());
    assert_eq!((leads(whole("chat")), leads(whole("chat_stream"))), (of("a"), of("b")));
}

#[test]
fn forms_parts_and_queries() {
    let schema = json!({ "type": "object", "properties": { "file": { "type": "string", "format": "binary" }, "stream": { "type": "boolean" } } });
    let other = json!({ "type": "object", "properties": { "url": {}, "stream": { "type": ["boolean", "null"] } } });
    let mut upload = chat(&schema);
    upload["requestBody"]["content"] = json!({
        "multipart/form-data": { "schema": schema }, "application/json": { "schema": other }, "text/plain": {},
    });
    let (api, _) = read_as("3.1.0", &upload, &json!({}), &json!({}));
    let of = |name: &str| -> Vec<_> {
        let bodies = operation_bodies(&api, name);
        bodies.into_iter().map(|body| (body.content_type.to_string(), body.fixed.to_vec())).collect()
    };
    let expected = |fixed: &[HttpFixed]| {
        vec![
            ("application/json".to_owned(), fixed.to_vec()),
            ("multipart/form-data".to_owned(), fixed.to_vec()),
            ("text/plain".to_owned(), vec![]),
        ]
    };
    // A body that is a text cannot hold the boolean.
    assert_eq!((of("chat"), of("chat_stream")), (expected(&[ABSENT]), expected(&[ON])[..2].to_vec()));
    let variants = |name: &str| operation_bodies(&api, name).iter().map(|body| body.variant).collect::<Vec<_>>();
    assert_eq!(variants("chat"), [Some(0), Some(1), Some(2)]);
    assert_eq!(variants("chat_stream"), [Some(0), Some(1)]);
    assert_eq!(body(&api, "chat_stream")["oneOf"][1]["title"], "Multipart");
    assert!(!body(&api, "chat").to_string().contains("stream"));

    for (required, count) in [(false, 1), (true, 2)] {
        let parameters = json!([
            { "name": "q", "in": "query", "schema": {} },
            { "name": "stream", "in": "query", "required": required, "schema": { "type": "boolean" } },
        ]);
        let watch = json!({ "operationId": "watch", "parameters": parameters, "responses": both() });
        let (api, told) = read_as("3.1.0", &watch, &json!({}), &json!({}));
        assert_eq!(told.len(), 1);
        for (name, count, value) in [("watch", count, false), ("watch_stream", 2, true)] {
            let spec = operation(&api, name);
            let parameters = &spec.http().unwrap().parameters;
            assert_eq!(parameters.len(), count, "{name}");
            if let Some(parameter) = parameters.get(1) {
                assert_eq!(parameter.fixed, Some(Literal::Bool(value)));
            }
            assert_eq!(*spec.input.to_value().unwrap(), json!({ "type": "object", "properties": { "q": {} } }));
        }
    }
}

fn operation_bodies(api: &Api, name: &str) -> Vec<ops_runtime::binding::HttpBody> {
    operation(api, name).http().unwrap().bodies.to_vec()
}

#[test]
fn swagger_bodies_and_forms() {
    let read = |parameters: Value| {
        let document = json!({
            "swagger": "2.0", "info": { "version": "1", "title": "t" },
            "paths": { "/chat": { "post": {
                "operationId": "chat", "produces": ["application/json", "text/event-stream"],
                "parameters": parameters, "responses": { "200": { "description": "", "schema": { "type": "object" } } },
            } } },
            "definitions": { "Chat": { "type": "object", "properties": { "stream": { "type": "boolean" }, "a": {} } } },
        });
        openapi::read(&document, &ReadOptions::new().with_namespace("ai")).unwrap().0
    };
    let whole = read(json!([{ "name": "body", "in": "body", "schema": { "$ref": "#/definitions/Chat" } }]));
    assert_eq!((fixed(&whole, "chat"), fixed(&whole, "chat_stream")), (vec![ABSENT], vec![ON]));
    assert_eq!(definition(&whole, "Chat"), json!({ "type": "object", "properties": { "a": {} } }));
    let form = read(json!([
        { "name": "a", "in": "formData", "type": "string" },
        { "name": "stream", "in": "formData", "type": "boolean", "default": true },
    ]));
    assert_eq!((fixed(&form, "chat"), fixed(&form, "chat_stream")), (vec![OFF], vec![ON]));
    assert_eq!(body(&form, "chat")["properties"], json!({ "a": { "type": "string" } }));
}

#[test]
fn what_webhooks_send_keeps_the_boolean() {
    let create = json!({ "$ref": "#/components/schemas/Create" });
    let made = json!({ "requestBody": { "content": { "application/json": { "schema": create } } }, "responses": {} });
    let properties = json!({ "model": { "type": "string" }, "stream": { "type": "boolean" } });
    let document = json!({
        "openapi": "3.1.0",
        "info": { "version": "1" },
        "paths": { "/chat": { "post": chat(&create) } },
        "webhooks": { "made": { "post": made } },
        "components": { "schemas": { "Create": { "type": "object", "properties": properties } } },
    });
    let (api, _) = openapi::read(&document, &ReadOptions::new().with_namespace("ai")).unwrap();
    assert_eq!(definition(&api, "Create")["properties"], properties);
    assert_eq!(body(&api, "chat"), json!({ "$ref": "#/$defs/Create_without_stream" }));
    assert!(definition(&api, "Create_without_stream")["properties"].get("stream").is_none());
}

/// The value is sent with each variant of the body.
#[test]
fn a_stream_has_no_variant_that_cannot_have_it() {
    let with = |stream: Value| json!({ "type": "object", "properties": { "a": {}, "stream": stream } });
    let without = json!({ "type": "object", "properties": { "a": {} } });
    let closed = json!({ "type": "object", "properties": { "b": {} }, "additionalProperties": false });
    for other in [&closed, &json!({ "type": "string" }), &json!({ "type": ["array", "null"] })] {
        let union = |stream: Value| json!({ "oneOf": [with(stream), other] });
        let (api, told) = read_as("3.1.0", &chat(&union(json!({ "type": "boolean" }))), &json!({}), &json!({}));
        assert_eq!(body(&api, "chat"), json!({ "oneOf": [without, other] }), "{other}");
        assert_eq!((fixed(&api, "chat"), fixed(&api, "chat_stream"), told.len()), (vec![ABSENT], vec![ON], 1));
        assert_eq!(body(&api, "chat_stream"), without, "{other}");
        // A result must send it here, and the other variant cannot have it.
        let schema = union(json!({ "type": "boolean", "default": true }));
        let (api, told) = read_as("3.1.0", &chat(&schema), &json!({}), &json!({}));
        assert_eq!((fixed(&api, "chat"), fixed(&api, "chat_stream"), told.len()), (vec![], vec![], 0), "{other}");
        assert_eq!((body(&api, "chat"), body(&api, "chat_stream")), (schema.clone(), schema), "{other}");
    }
    // An open object can have it, and for null there is an object that has.
    for other in [json!({ "type": "object", "properties": { "b": {} } }), json!({ "type": "null" })] {
        let schema = json!({ "oneOf": [with(json!({ "type": "boolean", "default": true })), other] });
        let (api, _) = read_as("3.1.0", &chat(&schema), &json!({}), &json!({}));
        assert_eq!((fixed(&api, "chat"), fixed(&api, "chat_stream")), (vec![OFF], vec![ON]), "{other}");
        let left = json!({ "oneOf": [without, other] });
        assert_eq!((body(&api, "chat"), body(&api, "chat_stream")), (left.clone(), left), "{other}");
    }
    // A closed part of a variant that has it does not decide.
    let common = json!({ "type": "object", "properties": { "model": {} }, "additionalProperties": false });
    let all = |part: &Value| json!({ "allOf": [common, part] });
    for (stream, expected) in
        [(json!({ "type": "boolean" }), ABSENT), (json!({ "type": "boolean", "default": true }), OFF)]
    {
        let stream = with(stream);
        let (api, _) = read_as("3.1.0", &chat(&json!({ "oneOf": [all(&stream), stream] })), &json!({}), &json!({}));
        assert_eq!((fixed(&api, "chat"), fixed(&api, "chat_stream")), (vec![expected], vec![ON]));
        let left = json!({ "oneOf": [all(&without), without] });
        assert_eq!((body(&api, "chat"), body(&api, "chat_stream")), (left.clone(), left));
    }
    // Its value of the discriminator goes with it.
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let (a, mut c) = (with(json!({ "type": "boolean" })), with(json!({ "type": "boolean" })));
    c["properties"]["c"] = json!({});
    let b = json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": false });
    let mapping =
        json!({ "a": "#/components/schemas/A", "b": "#/components/schemas/B", "c": "#/components/schemas/C" });
    let union =
        json!({ "oneOf": [to("A"), to("B"), to("C")], "discriminator": { "propertyName": "a", "mapping": mapping } });
    let schemas = json!({ "A": a, "B": b, "C": c });
    let (api, _) = read_as("3.1.0", &chat(&union), &schemas, &json!({}));
    let keys = |name: &str| {
        let body = body(&api, name);
        body["discriminator"]["mapping"].as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!((keys("chat"), keys("chat_stream")), ("a b c".to_owned(), "a c".to_owned()));
}

#[test]
fn a_stream_has_no_content_type_that_cannot_have_it() {
    const JSON: &str = "application/json";
    const FORM: &str = "application/x-www-form-urlencoded";
    const PARTS: &str = "multipart/form-data";
    const TEXT: &str = "text/plain";
    let with = |own: &str| json!({ "schema": { "type": "object", "properties": { own: { "type": "string" }, "stream": { "type": "boolean" } } } });
    let closed =
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "additionalProperties": false });
    let closed = json!({ "schema": closed });
    let text = json!({ "schema": { "type": "string" } });
    let choice = |names: &[&str]| json!({ "type": "string", "description": "The content type of the body.", "enum": names, "default": names[0] });
    for (content, left, variants) in [
        (json!({ JSON: with("a"), TEXT: text }), vec![JSON], vec![None]),
        (json!({ JSON: closed, FORM: with("a") }), vec![FORM], vec![None]),
        (json!({ JSON: with("a"), FORM: with("b"), TEXT: text }), vec![JSON, FORM], vec![Some(0), Some(1)]),
        (json!({ JSON: closed, FORM: with("a"), PARTS: with("b") }), vec![FORM, PARTS], vec![Some(0), Some(1)]),
    ] {
        let mut upload = chat(&json!({}));
        upload["requestBody"]["content"] = content.clone();
        let (api, told) = read_as("3.1.0", &upload, &json!({}), &json!({}));
        assert_eq!(told.len(), 1, "{content}");
        let types = |name: &str| -> Vec<String> {
            operation_bodies(&api, name).iter().map(|body| body.content_type.to_string()).collect()
        };
        let chosen = |name: &str| {
            let spec = operation(&api, name);
            let property = spec.http().unwrap().content_type.clone();
            let mut input = spec.input.to_value().unwrap().into_owned();
            (property, input["properties"]["contentType"].take())
        };
        let all: Vec<&str> = content.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(types("chat"), all);
        assert_eq!(types("chat_stream"), left, "{content}");
        assert_eq!(chosen("chat"), (Some("contentType".into()), choice(&all)));
        let is_choice = left.len() > 1;
        let expected = if is_choice { (Some("contentType".into()), choice(&left)) } else { (None, Value::Null) };
        assert_eq!(chosen("chat_stream"), expected, "{content}");
        let bodies = operation_bodies(&api, "chat_stream");
        assert_eq!(bodies.iter().map(|body| body.variant).collect::<Vec<_>>(), variants, "{content}");
        assert!(bodies.iter().all(|body| body.fixed[..] == [ON]), "{content}");
        assert!(!body(&api, "chat_stream").to_string().contains("stream"), "{content}");
    }
}
