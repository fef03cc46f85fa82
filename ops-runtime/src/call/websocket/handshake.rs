//! The handshake of a WebSocket.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderName, Method, Response, StatusCode, Version, header};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// The response to a WebSocket handshake (RFC 6455, section 4.2; RFC 8441 for HTTP/2).
///
/// # Errors
/// The status for a request that is not a handshake.
pub(super) fn upgrade(parts: &Parts) -> Result<Response<Body>, StatusCode> {
    let has = |name: HeaderName, word: &str| {
        let words = parts.headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        words.flat_map(|value| value.split(',')).any(|own| own.trim().eq_ignore_ascii_case(word))
    };
    if !has(header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(StatusCode::UPGRADE_REQUIRED);
    }
    let mut response = Response::new(Body::empty());
    if parts.version == Version::HTTP_2 {
        return if parts.method == Method::CONNECT { Ok(response) } else { Err(StatusCode::METHOD_NOT_ALLOWED) };
    }
    if parts.method != Method::GET {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    if !has(header::CONNECTION, "upgrade") || !has(header::UPGRADE, "websocket") {
        return Err(StatusCode::UPGRADE_REQUIRED);
    }
    let key = parts.headers.get(header::SEC_WEBSOCKET_KEY).ok_or(StatusCode::BAD_REQUEST)?;
    let accept = derive_accept_key(key.as_bytes());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    for (name, value) in
        [(header::CONNECTION, "upgrade"), (header::UPGRADE, "websocket"), (header::SEC_WEBSOCKET_ACCEPT, &accept)]
    {
        headers.insert(name, value.parse().map_err(|_| StatusCode::BAD_REQUEST)?);
    }
    Ok(response)
}
