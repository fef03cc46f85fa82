//! Request bodies: the content type that is chosen and the bytes that are sent.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Map, Value};

use super::media::{Form, charset, essence, form, is_range};
use super::{invalid, pointer, style};
use crate::{CallError, HttpBinding, HttpBody, ParameterStyle};

/// Base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

const FORM: &str = "application/x-www-form-urlencoded";

/// A body that is ready to be sent.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) content_type: HeaderValue,
    pub(super) bytes: Bytes,
}

/// Writes the body that the input holds, in the first of the endpoint's content types that can say it.
///
/// # Errors
/// If there is a body and no content type can say it.
pub(super) fn encode(binding: &HttpBinding, input: &Map<String, Value>) -> Result<Option<Encoded>, CallError> {
    let mut refused = None;
    for body in binding.bodies.iter() {
        let Some(value) = input.get(body.property.as_ref()) else { continue };
        match write(body, value) {
            Ok(encoded) => return Ok(encoded),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    refused.map_or(Ok(None), Err)
}

fn write(body: &HttpBody, value: &Value) -> Result<Option<Encoded>, CallError> {
    let essence = essence(&body.content_type);
    let ready = |content_type: &str, bytes: Bytes| {
        let content_type = HeaderValue::from_str(content_type.trim())
            .map_err(|_| CallError::execution(format!("`{content_type}` is no content type")))?;
        Ok(Some(Encoded { content_type, bytes }))
    };
    let content_type = body.content_type.as_ref();
    if is_range(&essence) {
        return ready("application/json", json(value));
    }
    if form(&essence) == Form::Json {
        return ready(content_type, json(value));
    }
    if value.is_null() {
        return Ok(None);
    }
    if essence.starts_with("multipart/") {
        return Err(CallError::execution(format!("request bodies of type `{content_type}` are not supported")));
    }
    let unfit = |expected: &str| {
        let message = format!("a body of type `{content_type}` is written from {expected}");
        invalid(&pointer(&body.property), message)
    };
    match (form(&essence), value) {
        _ if essence == FORM => {
            let fields = value.as_object().ok_or_else(|| unfit("an object"))?;
            ready(content_type, form_fields(body, fields).into())
        }
        (Form::Text, Value::String(text)) => ready(&text_type(&essence, content_type, text), text.clone().into()),
        (Form::Text, Value::Bool(_) | Value::Number(_)) => ready(content_type, value.to_string().into()),
        (Form::Text, _) => Err(unfit("a string")),
        (_, Value::String(text)) => {
            let bytes = BASE64.decode(text).map_err(|_| unfit("a string of base64"))?;
            ready(if essence.ends_with("/*") { "application/octet-stream" } else { content_type }, bytes.into())
        }
        _ => Err(unfit("a string of base64")),
    }
}

fn json(value: &Value) -> Bytes {
    value.to_string().into()
}

/// Names the charset of text that needs one.
fn text_type<'a>(essence: &str, content_type: &'a str, text: &str) -> Cow<'a, str> {
    let content_type = if essence == "text/*" { "text/plain" } else { content_type };
    if text.is_ascii() || charset(content_type).is_some() {
        Cow::Borrowed(content_type)
    } else {
        Cow::Owned(format!("{content_type}; charset=utf-8"))
    }
}

fn form_fields(body: &HttpBody, fields: &Map<String, Value>) -> String {
    let mut pairs = Vec::new();
    for (name, value) in fields {
        let mut parameter = style::form_field(name, value);
        if let Some(field) = body.fields.iter().find(|field| field.name == *name) {
            let json = field.content_type.as_deref().is_some_and(super::media::is_json);
            match field.style {
                Some((style, explode)) => (parameter.style, parameter.explode) = (style, explode),
                None if json => parameter.style = ParameterStyle::Json,
                None => {}
            }
            parameter.allow_reserved = field.allow_reserved;
        }
        pairs.extend(style::query(&parameter, value));
    }
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HttpField;
    use serde_json::json;

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
}
