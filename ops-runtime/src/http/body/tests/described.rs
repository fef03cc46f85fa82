//! Parts whose schema says how they are written.

use super::*;
use crate::{Definition, Definitions};

fn file() -> Value {
    json!({ "type": "string", "format": "binary" })
}

/// The content type and the body for a value of a schema, with `B` for the boundary.
fn parts(binding: &HttpBinding, schema: Value, value: Value) -> (String, String) {
    let mut spec = OperationSpec::mutation("t.t");
    let pet = json!({ "properties": { "photo": file(), "name": { "type": "string" } } });
    spec.definitions = Definitions::new(vec![Definition::from_value("Pet", pet)]);
    spec.input = json!({ "properties": { "body": schema } }).into();
    let (kind, bytes) = sent_by(&spec, binding, &value);
    let (_, boundary) = kind.rsplit_once("boundary=").unwrap();
    let text = String::from_utf8_lossy(&bytes).replace(boundary, "B").replace("\r\n", "\n");
    (kind.replace(boundary, "B"), text)
}

#[test]
fn files_by_any_name() {
    let part = |name: &str| {
        format!(
            "--B\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\nContent-Type: application/octet-stream\n\nhi\n"
        )
    };
    let text = |name: &str| format!("--B\nContent-Disposition: form-data; name=\"{name}\"\n\naGk=\n");
    let note = json!({ "note": { "type": "string" } });
    let value = json!({ "a.png": "aGk=", "note": "aGk=" });
    for schema in [
        json!({ "additionalProperties": file(), "properties": note }),
        json!({ "additionalProperties": { "type": "array", "items": file() }, "properties": note }),
        json!({ "allOf": [{ "properties": note }, { "additionalProperties": { "$ref": "#/$defs/Pet/properties/photo" } }] }),
        json!({ "allOf": [{ "properties": note }], "unevaluatedProperties": file() }),
        json!({ "properties": { "a.png": { "$ref": "#/$defs/Pet/properties/photo" } }, "additionalProperties": false }),
    ] {
        let (_, found) = parts(&body("multipart/form-data"), schema.clone(), value.clone());
        assert_eq!(found, format!("{}{}--B--\n", part("a.png"), text("note")), "{schema}");
    }
    for schema in [
        json!({ "additionalProperties": { "$ref": "#/$defs/Pet/properties/name" } }),
        json!({ "additionalProperties": { "$ref": "#/$defs/Pet/properties/missing" } }),
        json!({ "additionalProperties": true }),
        // The name may match the pattern.
        json!({ "patternProperties": { "^a": { "type": "string" } }, "additionalProperties": file() }),
        json!({ "allOf": [{ "patternProperties": { "^a": {} } }], "unevaluatedProperties": file() }),
    ] {
        let (_, found) = parts(&body("multipart/form-data"), schema.clone(), json!({ "a.png": "aGk=" }));
        assert_eq!(found, format!("{}--B--\n", text("a.png")), "{schema}");
    }
}

#[test]
fn a_file_or_a_text() {
    let file_part = |bytes: &str| {
        format!(
            "--B\nContent-Disposition: form-data; name=\"a\"; filename=\"a\"\nContent-Type: application/octet-stream\n\n{bytes}\n--B--\n"
        )
    };
    let text_part = |text: &str| format!("--B\nContent-Disposition: form-data; name=\"a\"\n\n{text}\n--B--\n");
    let one_of = |more: Value| json!({ "anyOf": [file(), more] });
    let uri = json!({ "type": "string", "format": "uri" });
    let photo = json!({ "$ref": "#/$defs/Pet/properties/photo" });
    let name = json!({ "$ref": "#/$defs/Pet/properties/name" });
    let url = "https://x.example/a.png";
    let id = "6f1c1b6e-4c7a-4b1e-9a3e-2f0d7c5a8b90";
    for (schema, value, expected) in [
        (one_of(uri.clone()), url, text_part(url)),
        (one_of(uri.clone()), "aGk=", file_part("hi")),
        (json!({ "type": "string", "oneOf": [{ "format": "binary" }, { "format": "uri" }] }), url, text_part(url)),
        (one_of(json!({ "enum": ["auto"] })), "auto", text_part("auto")),
        (one_of(json!({ "enum": ["auto"] })), "aGk=", file_part("hi")),
        (one_of(json!({ "const": "auto" })), "auto", text_part("auto")),
        (one_of(json!({ "type": ["string", "null"] })), "aGk=", text_part("aGk=")),
        (json!({ "anyOf": [photo, name] }), "aGk=", text_part("aGk=")),
        (one_of(json!({ "type": "string", "pattern": "^file-" })), "file-1", text_part("file-1")),
        (one_of(json!({ "type": "string", "maxLength": 2 })), "hi", text_part("hi")),
        (one_of(json!({ "type": "string", "format": "uuid" })), id, text_part(id)),
        (one_of(json!({ "type": "string", "format": "email" })), "a@b.example", text_part("a@b.example")),
        // The type is said beside the union.
        (json!({ "allOf": [{ "type": "string" }, { "anyOf": [{ "format": "binary" }, uri] }] }), url, text_part(url)),
        // None of these takes a text besides, or not this one.
        (one_of(json!({ "type": "string", "pattern": "^file-" })), "aGk=", file_part("hi")),
        (one_of(json!({ "type": "string", "pattern": "[" })), "aGk=", file_part("hi")),
        (one_of(json!({ "type": "string", "maxLength": 2 })), "aGk=", file_part("hi")),
        (one_of(json!({ "type": "string", "minLength": 5 })), "aGk=", file_part("hi")),
        (one_of(json!({ "type": "string", "format": "uuid" })), "aGk=", file_part("hi")),
        (one_of(json!({ "type": "array", "items": { "type": "string" } })), "aGk=", file_part("hi")),
        (one_of(json!({ "type": "array", "items": file() })), "aGk=", file_part("hi")),
        (one_of(json!({ "type": "object" })), "aGk=", file_part("hi")),
        (one_of(json!({ "type": "null" })), "aGk=", file_part("hi")),
        (one_of(json!({})), "aGk=", file_part("hi")),
        (json!({ "allOf": [{ "type": "string" }, { "format": "binary" }] }), "aGk=", file_part("hi")),
        (json!({ "type": "string", "format": "binary", "anyOf": [{ "maxLength": 9 }] }), "aGk=", file_part("hi")),
    ] {
        let (_, found) =
            parts(&body("multipart/form-data"), json!({ "properties": { "a": schema } }), json!({ "a": value }));
        assert_eq!(found, expected, "{schema} {value}");
    }
    // Of an item, the lists decide.
    let list = |items: Value| json!({ "type": "array", "items": items });
    for (schema, expected) in [
        (list(one_of(name)), text_part("aGk=")),
        (json!({ "anyOf": [file(), list(json!({ "type": "string" }))] }), text_part("aGk=")),
        (json!({ "anyOf": [{ "type": "string" }, list(file())] }), file_part("hi")),
        (json!({ "anyOf": [{ "enum": ["aGk="] }, list(file())] }), file_part("hi")),
        (list(one_of(json!({ "enum": ["auto"] }))), file_part("hi")),
    ] {
        let schema = json!({ "properties": { "a": schema } });
        let (_, found) = parts(&body("multipart/form-data"), schema.clone(), json!({ "a": ["aGk="] }));
        assert_eq!(found, expected, "{schema}");
    }
    let items = list(one_of(json!({ "enum": ["auto"] })));
    let (_, found) = parts(&body("multipart/mixed"), items, json!(["auto", "aGk="]));
    assert_eq!(
        found,
        "--B\nContent-Type: text/plain; charset=utf-8\n\nauto\n--B\nContent-Type: application/octet-stream\n\nhi\n--B--\n"
    );
}

#[test]
fn files_without_names() {
    let part = |kind: &str, text: &str| format!("--B\nContent-Type: {kind}\n\n{text}\n");
    let one = part("application/octet-stream", "hi");
    let object = part("application/json", r#"{"a":"aGk="}"#);
    for (kind, schema, value, expected) in [
        ("multipart/mixed", json!({ "type": "array", "items": file() }), json!(["aGk=", "aGk="]), one.repeat(2)),
        (
            "multipart/related",
            json!({ "type": "array", "items": { "anyOf": [{ "type": "object" }, file()] } }),
            json!([{ "a": "aGk=" }, "aGk="]),
            format!("{object}{one}"),
        ),
        (
            "multipart/mixed",
            json!({ "type": "array", "items": { "type": "string" } }),
            json!(["aGk="]),
            part("text/plain; charset=utf-8", "aGk="),
        ),
    ] {
        let (_, found) = parts(&body(kind), schema.clone(), value);
        assert_eq!(found, format!("{expected}--B--\n"), "{schema}");
    }
    let spec = OperationSpec::mutation("t.t")
        .with_input(json!({ "properties": { "body": { "type": "array", "items": file() } } }).into());
    let error = run_by(&spec, &body("multipart/mixed"), &json!({ "body": ["no base64!"] })).unwrap_err();
    assert_eq!(error.details()["violations"][0]["pointer"], "/body");
}

#[test]
fn bytes_in_either_alphabet() {
    const FIELDS: &[HttpField] = &[HttpField::new("icon").with_content_type("image/png, image/jpeg")];
    let mut binding = HttpBinding::new("POST", "/");
    binding.bodies = vec![HttpBody::new("multipart/form-data").with_fields(FIELDS)].into();
    let schema = json!({ "properties": { "icon": { "type": "string", "format": "byte" } } });
    let found = ["Pz8_", "Pz8/"].map(|icon| parts(&binding, schema.clone(), json!({ "icon": icon })).1);
    let head = "--B\nContent-Disposition: form-data; name=\"icon\"; filename=\"icon\"\nContent-Type: image/png";
    assert_eq!(found, [(); 2].map(|()| format!("{head}\n\n???\n--B--\n")));
    let error = run(&binding, &json!({ "body": { "icon": "_8/_" } })).unwrap_err();
    assert_eq!(error.details()["violations"][0]["pointer"], "/body/icon");
}

#[test]
fn related_parts_name_the_type_of_the_first() {
    for (kind, value, expected) in [
        ("multipart/related", json!([{ "a": 1 }, "b"]), "multipart/related; type=\"application/json\"; boundary=B"),
        ("multipart/related", json!(["b", { "a": 1 }]), "multipart/related; type=\"text/plain\"; boundary=B"),
        ("multipart/related", json!([]), "multipart/related; boundary=B"),
        (
            "multipart/related; type=\"application/xop+xml\"",
            json!(["<a/>"]),
            "multipart/related; type=\"application/xop+xml\"; boundary=B",
        ),
        ("multipart/mixed", json!([{ "a": 1 }]), "multipart/mixed; boundary=B"),
    ] {
        assert_eq!(parts(&body(kind), json!({}), value).0, expected);
    }
}

#[test]
fn a_file_may_have_the_type_of_json() {
    const FIELDS: &[HttpField] = &[
        HttpField::new("meta").with_content_type("application/json"),
        HttpField::new("many").with_content_type("text/csv, application/json"),
        HttpField::new("text").with_content_type("application/json"),
        HttpField::new("either").with_content_type("application/json"),
    ];
    let mut binding = HttpBinding::new("POST", "/");
    binding.bodies = vec![HttpBody::new("multipart/form-data").with_fields(FIELDS)].into();
    let either = json!({ "anyOf": [file(), { "type": "string", "pattern": "^-" }] });
    let schema = json!({ "properties": {
        "meta": file(), "many": { "type": "array", "items": file() }, "text": { "type": "string" }, "either": either,
    } });
    let value = json!({ "meta": "eyJhIjoxfQ==", "many": ["YSxi"], "text": "aGk=", "either": "-" });
    let part = |name: &str, more: &str, kind: &str, text: &str| {
        format!("--B\nContent-Disposition: form-data; name=\"{name}\"{more}\nContent-Type: {kind}\n\n{text}\n")
    };
    let expected = [
        part("meta", "; filename=\"meta\"", "application/json", r#"{"a":1}"#),
        part("many", "; filename=\"many\"", "text/csv", "a,b"),
        part("text", "", "application/json", "\"aGk=\""),
        part("either", "", "application/json", "\"-\""),
    ];
    assert_eq!(parts(&binding, schema.clone(), value).1, format!("{}--B--\n", expected.concat()));
    let spec = OperationSpec::mutation("t.t").with_input(json!({ "properties": { "body": schema } }).into());
    let error = run_by(&spec, &binding, &json!({ "body": { "meta": "no base64!" } })).unwrap_err();
    assert_eq!(error.details()["violations"][0]["pointer"], "/body/meta");
}

#[test]
fn an_object_is_a_part_of_a_type_that_holds_json() {
    let part = |types: Option<&'static str>, value: Value| {
        let mut binding = body("multipart/form-data");
        let field = types.into_iter().fold(HttpField::new("o"), HttpField::with_content_type);
        binding.bodies.to_mut()[0].fields = vec![field].into();
        let (kind, bytes) = run(&binding, &json!({ "body": { "o": value } }))?.unwrap();
        let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
        Ok::<_, CallError>(String::from_utf8(bytes).unwrap().replace(boundary, "B").replace("\r\n", "\n"))
    };
    let object = json!({ "a": 1 });
    for (types, kind) in [
        (None, "application/json"),
        (Some("*/*"), "application/json"),
        (Some("application/vnd.a+json"), "application/vnd.a+json"),
        (Some("application/xml, application/json"), "application/json"),
        (Some("application/xml, */*"), "application/json"),
        (Some("application/xml, application/*+json"), "application/json"),
        (Some("*/*, application/vnd.a+json"), "application/vnd.a+json"),
        (Some("text/plain"), "text/plain"),
        (Some("application/x-ndjson"), "application/x-ndjson"),
    ] {
        let head = format!("--B\nContent-Disposition: form-data; name=\"o\"\nContent-Type: {kind}");
        assert_eq!(part(types, object.clone()).unwrap(), format!("{head}\n\n{{\"a\":1}}\n--B--\n"), "{types:?}");
    }
    for kind in ["application/xml", "image/png"] {
        for value in [object.clone(), json!([[1]])] {
            let error = part(Some(kind), value).unwrap_err();
            let told = format!("a part of type `{kind}` is written from a string, not from an object or a list");
            assert_eq!((error.message(), &error.details()["violations"][0]["pointer"]), (&*told, &json!("/body/o")));
        }
    }
}
