//! Idempotency keys, by which a server recognises a repeated request.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::model::random;
use crate::run::attempt::IDEMPOTENCY_KEY;
use crate::{HttpBinding, HttpParameter, ParameterLocation};

/// True if a header of this name carries an idempotency key, in any case.
pub(super) fn is_idempotency_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == IDEMPOTENCY_KEY || name.ends_with("-idempotency-key") || name == "paypal-request-id"
}

/// True if a key has no characters, so that no server knows a repeated request by it: it is none.
pub(super) fn is_blank(key: &HeaderValue) -> bool {
    key.as_bytes().trim_ascii().is_empty()
}

/// The operation's parameter for an idempotency key.
pub(super) fn parameter(binding: &HttpBinding) -> Option<&HttpParameter> {
    binding.parameters.iter().find(|parameter| {
        parameter.location == ParameterLocation::Header
            && parameter.fixed.is_none()
            && is_idempotency_header(&parameter.name)
    })
}

/// Adds a new key to a request whose operation has a parameter for it, unless the request has a key, or the call has set the
/// header. Returns true if it did.
///
/// The key makes the retries of this request safe. It does not cover the next call, which has another key.
pub(super) fn add_new(binding: &HttpBinding, own: &HeaderMap, headers: &mut HeaderMap) -> bool {
    let name = parameter(binding).and_then(|parameter| HeaderName::from_bytes(parameter.name.as_bytes()).ok());
    let is_set = |name: &HeaderName| own.contains_key(name) || headers.get(name).is_some_and(|key| !is_blank(key));
    let name = name.filter(|name| !is_set(name));
    let Some((name, key)) = name.and_then(|name| Some((name, new_key()?))) else { return false };
    headers.insert(name, key);
    true
}

/// A unique key: a random UUID (RFC 9562, version 4).
fn new_key() -> Option<HeaderValue> {
    let number = u128::from_be_bytes(random::bytes());
    let number = (number & !(0xf << 76) & !(0b11 << 62)) | (4 << 76) | (0b10 << 62);
    let hex = format!("{number:032x}");
    let mut text = String::with_capacity(36);
    for (at, digit) in hex.chars().enumerate() {
        if matches!(at, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digit);
    }
    HeaderValue::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_for_keys() {
        for (name, expected) in [
            ("Idempotency-Key", true),
            ("X-Idempotency-Key", true),
            ("x-apideck-IDEMPOTENCY-key", true),
            ("PayPal-Request-Id", true),
            ("X-Request-Id", false),
            ("Idempotency-Key-Expires", false),
            ("Nonidempotency-key", false),
        ] {
            assert_eq!(is_idempotency_header(name), expected, "{name}");
        }
    }

    #[test]
    fn keys_are_uuids() {
        let key = new_key().unwrap();
        let text = key.to_str().unwrap();
        let lengths: Vec<_> = text.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&text[14..15], "4");
        assert!(matches!(&text[19..20], "8" | "9" | "a" | "b"), "{text}");
        assert_ne!(new_key(), Some(key));
    }
}
