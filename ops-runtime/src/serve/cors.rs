//! CORS: what pages of other origins that are allowed by name may send and read (Fetch, section 3.3).

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method};

use crate::run::host_check::Door;

/// What a response depends on.
const DEPENDS: HeaderValue =
    HeaderValue::from_static("origin, access-control-request-method, access-control-request-headers");

/// Adds the permissions for the pages that a door lists.
pub(super) fn around(router: Router, door: Arc<Door>) -> Router {
    router.layer(from_fn_with_state(door, permitted))
}

/// Only preflights are answered here: an operation may itself have the method OPTIONS.
async fn permitted(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    let mut response = if origin.is_some() && is_preflight(&request) {
        preflight(request.headers())
    } else {
        let mut response = next.run(request).await;
        // All of them, functions' own included. Requests have no cookies, with which `*` would mean no header.
        response.headers_mut().insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
        response
    };
    let headers = response.headers_mut();
    if let Some(origin) = origin.filter(|origin| origin.to_str().is_ok_and(|origin| door.lists(origin))) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    headers.append(VARY, DEPENDS);
    response
}

/// True if a browser asks whether a page may send a request (Fetch, section 4.8).
fn is_preflight(request: &Request) -> bool {
    *request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The response to a preflight: a page may send what its browser asks for, with any method.
fn preflight(asked: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    for (name, allowed) in [
        (ACCESS_CONTROL_REQUEST_METHOD, ACCESS_CONTROL_ALLOW_METHODS),
        (ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_ALLOW_HEADERS),
    ] {
        if let Some(value) = asked.get(name) {
            response.headers_mut().insert(allowed, value.clone());
        }
    }
    response
}
