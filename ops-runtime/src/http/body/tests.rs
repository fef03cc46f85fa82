//! The body that is sent for a value, in each content type.

mod choice;
mod described;
mod own_type;

use futures_util::FutureExt;
use http_body_util::BodyExt;
use serde_json::json;

use super::*;
use crate::{HttpField, HttpFixed, Literal, Schema};

fn body(content_type: &'static str) -> HttpBinding {
    let mut binding = HttpBinding::new("POST", "/");
    binding.bodies = vec![HttpBody::new(content_type)].into();
    binding
}

fn run(binding: &HttpBinding, input: &Value) -> Result<Option<(String, Vec<u8>)>, CallError> {
    run_by(&OperationSpec::mutation("t.t"), binding, input)
}

fn run_by(spec: &OperationSpec, binding: &HttpBinding, input: &Value) -> Result<Option<(String, Vec<u8>)>, CallError> {
    let bodies = Bodies::default();
    let encoded = encode(binding, Input { spec, members: input.as_object().unwrap(), bodies: &bodies })?;
    Ok(encoded.map(|encoded| {
        let bytes = encoded.body.collect().now_or_never().unwrap().unwrap().to_bytes();
        (encoded.content_type.to_str().unwrap().to_owned(), bytes.to_vec())
    }))
}

fn sent(binding: &HttpBinding, value: &Value) -> (String, Vec<u8>) {
    run(binding, &json!({ "body": value })).unwrap().unwrap()
}

fn sent_by(spec: &OperationSpec, binding: &HttpBinding, value: &Value) -> (String, Vec<u8>) {
    run_by(spec, binding, &json!({ "body": value })).unwrap().unwrap()
}

#[test]
fn a_body_is_sent_in_the_content_type_that_describes_it() {
    let mut binding = HttpBinding::new("POST", "/");
    let bodies = ["application/json", FORM, "text/plain"].map(HttpBody::new).into_iter().zip(0..);
    binding.bodies = bodies.map(|(body, at)| body.with_variant(at)).collect::<Vec<_>>().into();
    binding.content_type = Some("contentType".into());
    let mut older = binding.clone();
    older.bodies.to_mut().iter_mut().for_each(|body| body.variant = None);
    let mut spec = OperationSpec::mutation("t.t");
    spec.input = json!({ "properties": { "body": { "oneOf": [
        { "title": "Json", "type": "object", "required": ["a"], "properties": { "a": {}, "both": {} } },
        { "title": "Form", "allOf": [{ "type": "object", "properties": { "b": {}, "both": {} } }] },
        { "title": "Text", "type": "string" },
    ] } } })
    .into();
    for (value, expected) in [
        (json!({ "a": 1 }), "application/json"),
        (json!({ "a": 1, "both": 1 }), "application/json"),
        (json!({ "b": 1 }), FORM),
        (json!({ "both": 1 }), FORM),
        // None describes it whole: the preferred one of those that take it.
        (json!({ "a": 1, "b": 1 }), "application/json"),
        (json!("x"), "text/plain"),
    ] {
        assert_eq!(sent_by(&spec, &binding, &value).0, expected, "{value}");
        // A spec of an older version has no `variant`: the titles say which alternative a body is.
        assert_eq!(sent_by(&spec, &older, &value).0, expected, "{value}");
        // What the input names is taken, whatever the value.
        let named = json!({ "body": value, "contentType": "application/json" });
        assert_eq!(run_by(&spec, &binding, &named).unwrap().unwrap().0, "application/json");
    }
}

#[test]
fn a_part_that_is_text_of_json_is_sent_as_it_is() {
    let mut binding = body("multipart/form-data");
    let json = |name: &'static str| HttpField::new(name).with_content_type("application/json");
    binding.bodies.to_mut()[0].fields = vec![json("text"), json("texts"), json("plain")].into();
    let mut spec = OperationSpec::mutation("t.t");
    let text = json!({ "type": "string", "contentMediaType": "application/json" });
    spec.input = json!({ "properties": { "body": { "type": "object", "properties": {
        "text": text, "texts": { "type": "array", "items": text }, "plain": { "type": "string" },
    } } } })
    .into();
    let (_, sent) = sent_by(&spec, &binding, &json!({ "text": "{}", "texts": ["[1]"], "plain": "{}" }));
    let sent = String::from_utf8(sent).unwrap();
    for expected in ["name=\"text\"", "\r\n\r\n{}\r\n", "\r\n\r\n[1]\r\n", "\r\n\r\n\"{}\"\r\n"] {
        assert!(sent.contains(expected), "{expected}: {sent}");
    }
}

#[test]
fn bodies_that_can_be_written() {
    let table: &[(&str, Value, &str, &[u8])] = &[
        ("application/json", json!({ "a": 1 }), "application/json", br#"{"a":1}"#),
        ("application/json", json!(0), "application/json", b"0"),
        ("application/json", json!(false), "application/json", b"false"),
        ("application/json", json!(""), "application/json", b"\"\""),
        ("application/json", json!(null), "application/json", b"null"),
        ("application/merge-patch+json", json!([]), "application/merge-patch+json", b"[]"),
        ("*/*", json!([]), "application/json", b"[]"),
        ("text/plain", json!("hi"), "text/plain", b"hi"),
        ("text/plain", json!("ö"), "text/plain; charset=utf-8", "ö".as_bytes()),
        ("text/plain; charset=UTF-8", json!("ö"), "text/plain; charset=UTF-8", "ö".as_bytes()),
        ("text/plain; charset=latin1", json!("ö"), "text/plain; charset=latin1", b"\xf6"),
        ("application/xml; charset=Shift_JIS", json!("<あ/>"), "application/xml; charset=Shift_JIS", b"<\x82\xa0/>"),
        ("application/json; charset=latin1", json!("ö"), "application/json; charset=latin1", b"\"\xf6\""),
        ("text/plain; charset=klingon", json!("hi"), "text/plain; charset=klingon", b"hi"),
        ("application/jsonl; charset=latin1", json!(["ö", 1]), "application/jsonl; charset=latin1", b"\"\xf6\"\n1\n"),
        ("text/plain", json!(1.5), "text/plain", b"1.5"),
        ("text/*", json!(""), "text/plain", b""),
        ("application/xml", json!("<a/>"), "application/xml", b"<a/>"),
        ("application/octet-stream", json!("AP8="), "application/octet-stream", b"\x00\xff"),
        ("image/png", json!("AP8"), "image/png", b"\x00\xff"),
        ("image/*", json!(""), "application/octet-stream", b""),
        (
            FORM,
            json!({ "a b": "c&d", "e": [1, 2], "f": { "g": true }, "h": null }),
            FORM,
            b"a%20b=c%26d&e=1&e=2&f%5Bg%5D=true",
        ),
        (
            "application/x-www-form-urlencoded; charset=ISO-8859-1",
            json!({ "a": "b c" }),
            "application/x-www-form-urlencoded; charset=ISO-8859-1",
            b"a=b%20c",
        ),
        (
            "application/x-www-form-urlencoded; charset=UTF-8",
            json!({ "a": "ö" }),
            "application/x-www-form-urlencoded; charset=UTF-8",
            b"a=%C3%B6",
        ),
    ];
    for (content_type, value, expected_type, expected) in table {
        let (found_type, found) = sent(&body(content_type), value);
        assert_eq!(found_type, *expected_type);
        assert_eq!(found, *expected, "{content_type} of {value}: {}", String::from_utf8_lossy(&found));
    }
}

#[test]
fn a_request_has_one_body() {
    let mut binding = HttpBinding::new("POST", "/");
    binding.bodies =
        vec![HttpBody::new("text/plain").with_property("a"), HttpBody::new("text/csv").with_property("b")].into();
    binding.content_type = Some("type".into());
    for (input, expected) in [
        (json!({ "a": "x" }), Ok("text/plain")),
        (json!({ "b": "x", "a": null }), Ok("text/csv")),
        (json!({ "b": "x", "type": "text/csv" }), Ok("text/csv")),
        (json!({ "a": "x", "b": "y" }), Err("/b")),
        (json!({ "a": "x", "b": "y", "type": "text/csv" }), Err("/b")),
        (json!({ "b": "y", "type": "text/plain" }), Err("/b")),
    ] {
        let found = run(&binding, &input).map(|sent| sent.unwrap().0);
        let found = found.map_err(|error| error.details()["violations"][0]["pointer"].as_str().unwrap().to_owned());
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{input}");
    }
}

#[test]
fn bodies_that_cannot() {
    let table = [
        ("text/plain", json!({}), "VALIDATION_ERROR"),
        ("text/plain; charset=latin1", json!("öあ"), "VALIDATION_ERROR"),
        ("text/plain; charset=utf-16", json!("hi"), "VALIDATION_ERROR"),
        ("text/plain; charset=klingon", json!("ö"), "VALIDATION_ERROR"),
        ("text/plain; charset=utf-16", json!(5), "VALIDATION_ERROR"),
        ("application/jsonl; charset=latin1", json!(["あ"]), "VALIDATION_ERROR"),
        ("application/x-www-form-urlencoded; charset=ISO-8859-1", json!({ "a": "ö" }), "VALIDATION_ERROR"),
        ("application/x-www-form-urlencoded; charset=ISO-8859-1", json!({ "ö": 1 }), "VALIDATION_ERROR"),
        ("application/octet-stream", json!("not base64!"), "VALIDATION_ERROR"),
        ("application/octet-stream", json!(1), "VALIDATION_ERROR"),
        (FORM, json!("a=b"), "VALIDATION_ERROR"),
        ("multipart/form-data", json!("a"), "VALIDATION_ERROR"),
        ("multipart/form-data", json!(["a"]), "VALIDATION_ERROR"),
        ("text/b\r\nX: y", json!("a"), "EXECUTION_ERROR"),
    ];
    for (content_type, value, code) in table {
        let input = json!({ "body": value });
        let error = run(&body(content_type), &input).unwrap_err();
        assert_eq!(error.code().as_str(), code, "{content_type} of {value}: {error}");
    }
}

#[test]
fn the_first_type_that_can_say_it_is_chosen() {
    let mut binding = body("text/plain");
    let fields = vec![HttpField::new("tags").with_style(ParameterStyle::DeepObject, true)];
    let mut form = HttpBody::new(FORM).with_property("form");
    form.fields = fields.into();
    binding.bodies = vec![HttpBody::new("text/plain"), HttpBody::new("application/json"), form].into();

    assert_eq!(sent(&binding, &json!({ "a": 1 })).0, "application/json");
    let (_, bytes) = run(&binding, &json!({ "form": { "tags": ["x", "y"] } })).unwrap().unwrap();
    assert_eq!(bytes, b"tags%5B0%5D=x&tags%5B1%5D=y");
    assert!(run(&binding, &json!({})).unwrap().is_none());
}

#[test]
fn the_caller_chooses_the_type() {
    let mut binding = body("application/json").with_content_type("as");
    binding.bodies = ["application/json", "text/plain", "image/*"].map(HttpBody::new).to_vec().into();
    let kind = |chosen: Value| run(&binding, &json!({ "as": chosen, "body": "aGk=" })).map(|sent| sent.unwrap());
    assert_eq!(kind(json!("Text/Plain")).unwrap(), ("Text/Plain".to_owned(), b"aGk=".to_vec()));
    assert_eq!(kind(json!("image/png")).unwrap(), ("image/png".to_owned(), b"hi".to_vec()));
    assert_eq!(kind(json!(null)).unwrap().0, "application/json");
    for bad in [json!("video/mp4"), json!(""), json!(1), json!("image/png\r\nX: y")] {
        assert!(kind(bad).is_err());
    }
    let error = kind(json!("video/mp4")).unwrap_err();
    assert_eq!(error.details()["violations"][0]["pointer"], "/as");
}

#[test]
fn fields_of_forms_with_an_encoding() {
    const FIELDS: &[HttpField] = &[
        HttpField::new("json").with_content_type("application/json"),
        HttpField::new("both").with_content_type("application/json").with_style(ParameterStyle::PipeDelimited, false),
        HttpField::new("open").with_reserved(),
    ];
    let mut binding = HttpBinding::new("POST", "/");
    binding.bodies = vec![HttpBody::new(FORM).with_fields(FIELDS)].into();
    let value = json!({ "json": { "a": [1] }, "both": [1, 2], "open": "a/b&c", "plain": "a/b" });
    let (_, bytes) = sent(&binding, &value);
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text, "json=%7B%22a%22%3A%5B1%5D%7D&both=1%7C2&open=a/b%26c&plain=a%2Fb");
}

#[test]
fn no_text_of_a_field_is_read_as_two() {
    const FIELDS: &[HttpField] = &[
        HttpField::new("pipes").with_style(ParameterStyle::PipeDelimited, false),
        HttpField::new("commas").with_style(ParameterStyle::Form, false),
        HttpField::new("several").with_style(ParameterStyle::Form, true),
    ];
    for (content_type, field, text, is_refused) in [
        (FORM, "pipes", json!("a|b"), true),
        (FORM, "pipes", json!("a,b"), false),
        // In a form, the comma is escaped.
        (FORM, "commas", json!("a,b"), false),
        ("multipart/form-data", "pipes", json!("a|b"), true),
        ("multipart/form-data", "commas", json!("a,b"), true),
        ("multipart/form-data", "several", json!("a,b"), false),
        // A nested value is JSON.
        (FORM, "pipes", json!({ "a": "b|c" }), false),
        ("multipart/form-data", "commas", json!([1, 2]), false),
    ] {
        let mut binding = HttpBinding::new("POST", "/");
        binding.bodies = vec![HttpBody::new(content_type).with_fields(FIELDS)].into();
        let refused = run(&binding, &json!({ "body": { field: ["x", text] } })).err();
        let pointer = refused.map(|error| error.details()["violations"][0]["pointer"].clone());
        assert_eq!(pointer, is_refused.then(|| json!(format!("/body/{field}/1"))), "{content_type} {field}");
    }
}

#[test]
fn parts_of_multipart_bodies() {
    const FIELDS: &[HttpField] = &[
        HttpField::new("image").with_content_type("image/png, image/jpeg"),
        HttpField::new("note").with_content_type("application/json"),
        HttpField::new("ids").with_style(ParameterStyle::Form, false),
    ];
    let mut binding = HttpBinding::new("POST", "/");
    binding.bodies = vec![HttpBody::new("multipart/form-data").with_fields(FIELDS)].into();
    let value = json!({
        "a\"b\r\n": "x", "n": 1, "list": ["p", null, { "q": 1 }], "image": "AP8=", "note": "hi", "ids": [1, 2], "none": null,
    });
    let (kind, bytes) = sent(&binding, &value);
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    let text = String::from_utf8_lossy(&bytes).replace(boundary, "B").replace("\r\n", "\n");
    let expected = [
        "--B\nContent-Disposition: form-data; name=\"a%22b%0D%0A\"\n\nx\n",
        "--B\nContent-Disposition: form-data; name=\"n\"\n\n1\n",
        "--B\nContent-Disposition: form-data; name=\"list\"\n\np\n",
        "--B\nContent-Disposition: form-data; name=\"list\"\nContent-Type: application/json\n\n{\"q\":1}\n",
        "--B\nContent-Disposition: form-data; name=\"image\"; filename=\"image\"\nContent-Type: image/png\n\n\0\u{fffd}\n",
        "--B\nContent-Disposition: form-data; name=\"note\"\nContent-Type: application/json\n\n\"hi\"\n",
        "--B\nContent-Disposition: form-data; name=\"ids\"\n\n1,2\n",
        "--B--\n",
    ];
    assert_eq!(text, expected.concat());
    assert_ne!(kind, sent(&binding, &value).0, "no two bodies have the same boundary");

    let (kind, bytes) = sent(&body("Multipart/Mixed; Boundary=x; a=\"b\";"), &json!(["a", { "b": 1 }]));
    assert!(kind.starts_with("multipart/mixed; a=\"b\"; boundary=ops-"), "{kind}");
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains("\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na\r\n--ops-"), "{text}");
    assert!(text.contains("\r\nContent-Type: application/json\r\n\r\n{\"b\":1}\r\n--ops-"), "{text}");
}

#[test]
fn bytes_in_parts_are_written_as_they_are_whatever_the_style() {
    const FIELDS: &[HttpField] = &[
        HttpField::new("file").with_style(ParameterStyle::Form, true).with_content_type("image/png"),
        HttpField::new("files").with_style(ParameterStyle::Form, false),
    ];
    let mut binding = HttpBinding::new("POST", "/");
    binding.bodies = vec![HttpBody::new("multipart/form-data").with_fields(FIELDS)].into();
    let mut spec = OperationSpec::mutation("t.t");
    let file = json!({ "type": "string", "format": "binary" });
    let properties = json!({ "file": file, "files": { "type": "array", "items": file } });
    spec.input = json!({ "properties": { "body": { "properties": properties } } }).into();
    let (kind, bytes) = sent_by(&spec, &binding, &json!({ "file": "AP8=", "files": ["aGk=", "eW8="] }));
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    let text = String::from_utf8_lossy(&bytes).replace(boundary, "B").replace("\r\n", "\n");
    let part = |name: &str, kind: &str, text: &str| {
        format!(
            "--B\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\nContent-Type: {kind}\n\n{text}\n"
        )
    };
    let of_files = |text: &str| part("files", "application/octet-stream", text);
    let expected = format!("{}{}{}--B--\n", part("file", "image/png", "\0\u{fffd}"), of_files("hi"), of_files("yo"));
    assert_eq!(text, expected);
}

#[test]
fn json_in_parts_is_in_the_charset_of_its_type() {
    const FIELDS: &[HttpField] = &[HttpField::new("o").with_content_type("application/json; charset=latin1")];
    let mut binding = HttpBinding::new("POST", "/");
    binding.bodies = vec![HttpBody::new("multipart/form-data").with_fields(FIELDS)].into();
    let (_, bytes) = sent(&binding, &json!({ "o": { "a": "ö" } }));
    assert!(bytes.windows(10).any(|part| part == b"{\"a\":\"\xf6\"}\r"), "{}", String::from_utf8_lossy(&bytes));
    let error = run(&binding, &json!({ "body": { "o": { "a": "あ" } } })).unwrap_err();
    assert_eq!(error.details()["violations"][0]["pointer"], "/body/o");
}

#[test]
fn a_form_in_parts_that_is_no_object() {
    const FIELDS: &[HttpField] = &[HttpField::new("file")];
    let of = |schema: Value, value: Value| {
        let mut binding = HttpBinding::new("POST", "/");
        binding.bodies = vec![HttpBody::new("multipart/form-data").with_fields(FIELDS)].into();
        let mut spec = OperationSpec::mutation("t.t");
        spec.input = json!({ "properties": { "body": schema } }).into();
        let (kind, bytes) = sent_by(&spec, &binding, &value);
        let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
        String::from_utf8_lossy(&bytes).replace(boundary, "B").replace("\r\n", "\n")
    };
    let file = json!({ "type": "string", "format": "binary" });
    let part = |text: &str| {
        format!(
            "--B\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\nContent-Type: application/octet-stream\n\n{text}\n"
        )
    };
    assert_eq!(of(file.clone(), json!("aGk=")), format!("{}--B--\n", part("hi")));
    let list = json!({ "type": "array", "items": file });
    assert_eq!(of(list.clone(), json!(["aGk=", "eW8="])), format!("{}{}--B--\n", part("hi"), part("yo")));
    assert_eq!(of(list, json!([])), "--B--\n");
    let plain = "--B\nContent-Disposition: form-data; name=\"file\"\n\n7\n--B--\n";
    assert_eq!(of(json!({ "type": "integer" }), json!(7)), plain);
}

#[test]
fn lines_of_json() {
    let (kind, bytes) = sent(&body("application/x-ndjson"), &json!([{ "b": 1, "a": [2] }, "x\ny", 3, null]));
    assert_eq!(
        (kind.as_str(), bytes.as_slice()),
        ("application/x-ndjson", &b"{\"b\":1,\"a\":[2]}\n\"x\\ny\"\n3\nnull\n"[..])
    );
    let (_, bytes) = sent(&body("application/jsonl"), &json!({ "a": 1 }));
    assert_eq!(bytes, b"{\"a\":1}\n");
    let (_, bytes) = sent(&body("application/json-seq"), &json!([1, 2]));
    assert_eq!(bytes, b"\x1e1\n\x1e2\n");
    let (_, bytes) = sent(&body("application/x-ndjson"), &json!("as it is\n"));
    assert_eq!(bytes, b"as it is\n");
}

#[test]
fn what_the_operation_sets() {
    const ON: &[HttpFixed] = &[HttpFixed::new("stream", Literal::Bool(true))];
    const NEVER: &[HttpFixed] = &[HttpFixed::absent("stream")];
    let with = |kind: &'static str, fixed: &'static [HttpFixed]| {
        let mut binding = HttpBinding::new("POST", "/");
        binding.bodies = vec![HttpBody::new(kind).with_fixed(fixed)].into();
        binding
    };
    let json_of = |fixed, value| String::from_utf8(sent(&with("application/json", fixed), &value).1).unwrap();
    assert_eq!(json_of(ON, json!({ "b": 1, "a": 2 })), r#"{"b":1,"a":2,"stream":true}"#);
    assert_eq!(json_of(ON, json!(null)), r#"{"stream":true}"#);
    assert_eq!(json_of(NEVER, json!({ "b": 1 })), r#"{"b":1}"#);
    let (_, form) = sent(&with(FORM, ON), &json!({ "a": "x y" }));
    assert_eq!(form, b"a=x%20y&stream=true");
    let (kind, parts) = sent(&with("multipart/form-data", ON), &json!({ "a": "x" }));
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    let text = String::from_utf8(parts).unwrap().replace(boundary, "B");
    assert!(
        text.ends_with("--B\r\nContent-Disposition: form-data; name=\"stream\"\r\n\r\ntrue\r\n--B--\r\n"),
        "{text}"
    );

    // An optional body that the caller leaves out.
    let spec = OperationSpec::mutation("t.t");
    let empty = serde_json::Map::new();
    let none = Bodies::default();
    let input = Input { spec: &spec, members: &empty, bodies: &none };
    assert!(encode(&with("application/json", ON), input).unwrap().is_some());
    assert!(encode(&with("application/json", NEVER), input).unwrap().is_none());

    for (fixed, does) in [(ON, "always sends `true`"), (NEVER, "never sends it")] {
        for value in [json!({ "stream": true }), json!({ "stream": false }), json!({ "stream": null })] {
            let error = run(&with("application/json", fixed), &json!({ "body": value })).unwrap_err();
            let message = format!("`stream` is not in the input of `t.t`, which {does}");
            let violation = json!({ "pointer": "/body/stream", "message": message });
            assert_eq!(error.details()["violations"], json!([violation]));
        }
    }
    assert!(run(&with("application/json", ON), &json!({ "body": [1] })).is_err());
}

#[test]
fn a_file_where_json_is_sent_is_refused_at_its_place() {
    let spec = OperationSpec::mutation("t.t");
    let mut bodies = Bodies::default();
    let (bytes, file) = (bodies.put("hi".into()), bodies.put(Body::file("x.png")));
    for (content_type, value, expected) in [
        ("application/json", json!({ "a/b": [1, { "scan": file }], "bytes": bytes }), "/body/a~1b/1/scan"),
        ("application/*", json!([bytes, file]), "/body/1"),
        ("application/x-ndjson", json!([{ "scan": file }]), "/body/0/scan"),
        (FORM, json!({ "bytes": bytes, "scan": file }), "/body/scan"),
        ("multipart/form-data", json!({ "meta": [{}, { "scan": file }] }), "/body/meta/1/scan"),
    ] {
        let input = json!({ "other": bytes, "body": value });
        let input = Input { spec: &spec, members: input.as_object().unwrap(), bodies: &bodies };
        let error = encode(&body(content_type), input).unwrap_err();
        let message = "a file has no JSON, in which bytes are base64: read it first, `Body::from(std::fs::read(..)?)`";
        assert_eq!((error.code().as_str(), error.message()), ("VALIDATION_ERROR", message), "{content_type}");
        assert_eq!(error.details()["violations"], json!([{ "pointer": expected, "message": message }]));
    }
}

#[test]
fn no_field_of_a_document_adds_a_header() {
    const FIELDS: &[HttpField] = &[HttpField::new("a").with_content_type("text/plain\r\nX-Evil: 1")];
    let mut binding = HttpBinding::new("POST", "/");
    binding.bodies = vec![HttpBody::new("multipart/form-data").with_fields(FIELDS)].into();
    assert!(run(&binding, &json!({ "body": { "a": "x" } })).is_err());
}

#[test]
fn a_range_is_no_type_of_a_body() {
    for (range, named, value, expected) in [
        ("application/*+json", None, json!({ "a": 1 }), "application/json"),
        ("application/*+json", Some("application/*+json"), json!(1), "application/json"),
        ("application/*+json", Some("application/vnd.a+json"), json!(1), "application/vnd.a+json"),
        ("application/*+xml", None, json!("<a/>"), "application/xml"),
        ("text/*", None, json!(1), "text/plain"),
        ("text/*; charset=iso-8859-1", None, json!("\u{fc}"), "text/plain; charset=iso-8859-1"),
        ("multipart/*", None, json!({ "a": 1 }), "multipart/form-data; boundary=ops-"),
        ("multipart/*", None, json!([1]), "multipart/mixed; boundary=ops-"),
    ] {
        let binding = body(range).with_content_type("as");
        let (kind, _) = run(&binding, &json!({ "body": value, "as": named })).unwrap().unwrap();
        assert!(kind.starts_with(expected) && !kind.contains('*'), "{kind} for {range}");
    }
}

#[test]
fn nobody_can_guess_a_boundary() {
    let (binding, value) = (body("multipart/form-data"), json!({ "a": 1 }));
    let kinds = [7, 7].map(|seed| {
        // What others learnt of the generator that is made for speed says nothing of it.
        fastrand::seed(seed);
        sent(&binding, &value).0
    });
    assert_ne!(kinds[0], kinds[1]);
}

#[test]
fn a_long_list_of_parts_asks_the_schema_once() {
    let mut binding = body("multipart/form-data");
    binding.bodies.to_mut()[0].fields = vec![HttpField::new("rows").with_content_type("application/json")].into();
    let mut spec = OperationSpec::mutation("t.t");
    let rows = json!({ "type": "array", "items": { "type": "string", "contentMediaType": "application/json" } });
    let large: Vec<u32> = (0..200_000).collect();
    let schema = json!({ "properties": { "body": { "type": "object", "properties": { "rows": rows } }, "x": { "enum": large } } });
    spec.input = Schema::text(String::leak(schema.to_string()));
    let start = std::time::Instant::now();
    let (_, bytes) = sent_by(&spec, &binding, &json!({ "rows": vec!["[1]"; 3_000] }));
    // The text of the schema takes milliseconds to read.
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    assert_eq!(String::from_utf8(bytes).unwrap().matches("\r\n\r\n[1]\r\n").count(), 3_000);
}
