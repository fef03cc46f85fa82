//! CORS: what pages of other origins may read of the server's responses.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};

use super::body::{McpBody, plain};
use crate::run::host_check::Door;

/// What a page may read beside the body.
const EXPOSED: HeaderValue = HeaderValue::from_static("mcp-session-id, retry-after, www-authenticate");
/// What a page may send, apart from what its browser asks for.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// The page that sends a request, if its origin is allowed by name.
pub(super) struct Asking(HeaderValue);

impl Asking {
    pub(super) fn of(door: &Door, headers: &HeaderMap) -> Option<Self> {
        let origin = headers.get(header::ORIGIN)?;
        door.lists(origin.to_str().ok()?).then(|| Self(origin.clone()))
    }

    /// The response to a preflight request, which has no credentials.
    pub(super) fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<Response<McpBody>> {
        let asked = |name: HeaderName| headers.get(name).cloned();
        if method != Method::OPTIONS || asked(header::ACCESS_CONTROL_REQUEST_METHOD).is_none() {
            return None;
        }
        let mut response = plain(StatusCode::NO_CONTENT, "");
        let own = response.headers_mut();
        own.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        if let Some(names) = asked(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            own.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
        }
        self.let_read(own);
        Some(response)
    }

    /// Allows the page to read a response with these headers.
    pub(super) fn let_read(&self, headers: &mut HeaderMap) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.0.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
}
