//! What is sent for a value, in each content type.

use http_body_util::BodyExt;
use futures_util::FutureExt;
use serde_json::json;

use super::*;
use crate::HttpField;

fn body(content_type: &'static str) -> HttpBinding {
    let mut binding = HttpBinding::new("POST", "/");
    binding.bodies = vec![HttpBody::new(content_type)].into();
    binding
}

fn sent(binding: &HttpBinding, value: &Value) -> (String, Vec<u8>) {
    let input = json!({ "body": value });
    let encoded = encode(binding, input.as_object().unwrap()).unwrap().unwrap();
    (encoded.content_type.to_str().unwrap().to_owned(), encoded.bytes.to_vec())
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
    ];
    for (content_type, value, expected_type, expected) in table {
        let (found_type, found) = sent(&body(content_type), value);
        assert_eq!(found_type, *expected_type);
        assert_eq!(found, *expected, "{content_type} of {value}: {}", String::from_utf8_lossy(&found));
    }
}

#[test]
fn bodies_that_cannot() {
    let table = [
        ("text/plain", json!({}), "VALIDATION_ERROR"),
        ("application/octet-stream", json!("not base64!"), "VALIDATION_ERROR"),
        ("application/octet-stream", json!(1), "VALIDATION_ERROR"),
        (FORM, json!("a=b"), "VALIDATION_ERROR"),
        ("multipart/form-data", json!({}), "EXECUTION_ERROR"),
        ("text/b\r\nX: y", json!("a"), "EXECUTION_ERROR"),
    ];
    for (content_type, value, code) in table {
        let input = json!({ "body": value });
        let error = encode(&body(content_type), input.as_object().unwrap()).unwrap_err();
        assert_eq!(error.code().as_str(), code, "{content_type} of {value}: {error}");
    }
}

#[test]
fn the_first_type_that_can_say_it_is_chosen() {
    let mut binding = body("multipart/form-data");
    let fields = vec![HttpField::new("tags").with_style(ParameterStyle::DeepObject, true)];
    let mut form = HttpBody::new(FORM).with_property("form");
    form.fields = fields.into();
    binding.bodies = vec![HttpBody::new("multipart/form-data"), HttpBody::new("application/json"), form].into();

    assert_eq!(sent(&binding, &json!({ "a": 1 })).0, "application/json");
    let input = json!({ "form": { "tags": ["x", "y"] } });
    let encoded = encode(&binding, input.as_object().unwrap()).unwrap().unwrap();
    assert_eq!(encoded.bytes, "tags%5B0%5D=x&tags%5B1%5D=y");
    assert!(encode(&binding, &Map::new()).unwrap().is_none());
}
