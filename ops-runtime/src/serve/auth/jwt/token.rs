//! A token in its parts (RFC 7515, section 7.1).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::key::JwtAlgorithm;

/// A token whose signature has not been verified.
#[derive(Debug)]
pub(super) struct Token<'a> {
    pub(super) algorithm: JwtAlgorithm,
    pub(super) key_id: Option<String>,
    /// The signed bytes.
    pub(super) message: &'a [u8],
    pub(super) signature: Vec<u8>,
    claims: &'a str,
}

impl<'a> Token<'a> {
    /// `None` if the text is not a signed token, or requires unknown extensions.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (message, signature) = text.rsplit_once('.')?;
        let (header, claims) = message.split_once('.').filter(|(_, claims)| !claims.contains('.'))?;
        let header = object(header)?;
        let member = |name: &str| header.get(name).and_then(Value::as_str);
        let kind = header.get("typ").map(|kind| kind.as_str().map(str::to_ascii_lowercase));
        let is_known = |kind: &str| matches!(kind.strip_prefix("application/").unwrap_or(kind), "jwt" | "at+jwt");
        // Tokens of other types are not meant for this use (RFC 8725, section 3.11).
        if header.contains_key("crit") || kind.is_some_and(|kind| !kind.as_deref().is_some_and(is_known)) {
            return None;
        }
        let key_id = match header.get("kid") {
            None => None,
            Some(id) => Some(id.as_str()?.to_owned()),
        };
        Some(Self {
            algorithm: JwtAlgorithm::named(member("alg")?)?,
            key_id,
            message: message.as_bytes(),
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
            claims,
        })
    }

    /// The claims, which are valid only if the signature is.
    pub(super) fn claims(&self) -> Option<Map<String, Value>> {
        object(self.claims)
    }
}

fn object(part: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_token() {
        let token = |header: &str| format!("{}.e30.AA", URL_SAFE_NO_PAD.encode(header));
        let table = [
            (token(r#"{"alg":"HS256"}"#), true),
            (token(r#"{"alg":"HS256","typ":"JWT","kid":"a"}"#), true),
            (token(r#"{"alg":"HS256","typ":"application/at+jwt"}"#), true),
            (token(r#"{"alg":"HS256","typ":"logout+jwt"}"#), false),
            (token(r#"{"alg":"HS256","typ":1}"#), false),
            (token(r#"{"alg":"HS256","kid":1}"#), false),
            (token(r#"{"alg":"HS256","crit":["b64"],"b64":false}"#), false),
            (token(r#"{"alg":"none"}"#), false),
            (token(r#"{"alg":"NONE"}"#), false),
            (token(r#"{"alg":"hs256"}"#), false),
            (token(r#"{"alg":["HS256"]}"#), false),
            (token("{}"), false),
            (token("[]"), false),
            (token(&"[".repeat(100_000)), false),
            (format!("{}.e30.A A", URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256"}"#)), false),
            (format!("{}.e30", URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256"}"#)), false),
            (format!("{}.e30.AA.AA", URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256"}"#)), false),
            ("..".to_owned(), false),
            (String::new(), false),
        ];
        for (text, expected) in table {
            assert_eq!(Token::parse(&text).is_some(), expected, "{text}");
        }
    }
}
