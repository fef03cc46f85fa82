//! Entity tags (RFC 9110, section 8.8.3), by which clients recognise a text that they have already.

use axum::body::Body;
use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use sha2::{Digest, Sha256};

use super::response::empty;
use crate::model::hex::hex;

/// The strong tag of a text: half of the digest of its bytes, in hexadecimal digits.
pub(super) fn of(digest: Sha256) -> String {
    format!("\"{}\"", hex(digest.finalize().get(..16).unwrap_or_default()))
}

/// The response for a tagged text: without a body if the client sends the tag (section 13.1.2).
pub(super) fn respond(headers: &HeaderMap, tag: &str, all: impl FnOnce() -> Response<Body>) -> Response<Body> {
    let texts = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut known = texts.flat_map(|text| text.split(',')).map(str::trim);
    let is_known = known.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag);
    let mut response = if is_known { empty(StatusCode::NOT_MODIFIED) } else { all() };
    response.headers_mut().extend(HeaderValue::from_str(tag).ok().map(|tag| (ETAG, tag)));
    response
}
