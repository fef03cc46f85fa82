//! How an operation is reached: in this process, over HTTP, or as a tool of an MCP server.
//!
//! ```
//! use ops_runtime::binding::{HttpBinding, HttpParameter};
//!
//! const SHOW: HttpBinding = HttpBinding::new("GET", "/pets/{petId}")
//!     .with_parameters(const { &[HttpParameter::path("petId")] });
//! assert_eq!(SHOW.parameters[0].name, "petId");
//! ```

mod json;

use std::borrow::Cow;

#[cfg(feature = "registry")]
use crate::model::media::{Media, covers, essence};
use crate::model::text::{List, Text, set};
use crate::model::text_list::TextList;

#[cfg(any(feature = "http", feature = "openapi"))]
pub(crate) mod alternative;
mod body;
#[cfg(feature = "registry")]
mod compare;
mod fixed;
mod mcp;
mod parameter;
mod response;
#[cfg(any(feature = "openapi", feature = "registry"))]
mod rest;
mod security;
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) mod template;

#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) use parameter::MAX_DEPTH;
#[cfg(any(feature = "openapi", feature = "http", feature = "http-server"))]
pub(crate) use parameter::is_reserved_header;
#[cfg(feature = "openapi")]
pub(crate) use parameter::is_token;

pub use body::{HttpBody, HttpField};
pub use fixed::{HttpFixed, Literal};
pub use mcp::{McpBinding, McpOutput};
pub use parameter::{HttpParameter, ParameterLocation, ParameterStyle};
pub use response::{HttpResponse, StatusRange};
pub use security::{SecurityKind, SecurityRequirement, SecurityScheme};

/// The way to reach an operation.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
// A spec is a static or shared, and never moved in a call.
#[allow(clippy::large_enum_variant)]
pub enum Binding {
    /// By a handler in this process.
    #[default]
    Local,
    /// By an HTTP request.
    Http(HttpBinding),
    /// By a call of an MCP server's tool.
    Mcp(McpBinding),
}

/// The HTTP request of an operation and its possible responses.
///
/// One interpreter reads this table for generated and for run-time operations alike.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HttpBinding {
    /// The method, in upper case.
    pub method: Text,
    /// The path below the server's URL, with `{name}` for each path parameter.
    pub path: Text,
    /// The server's URL in the document, used if the client has no base URL; `{name}` stands for a variable.
    pub server: Option<Text>,
    /// The variables of the server's URL.
    pub server_variables: List<ServerVariable>,
    /// The ways to authenticate, of which one suffices; empty if the endpoint requires none.
    pub security: List<SecurityRequirement>,
    /// The place of each property of the input in the request, except for the body.
    pub parameters: List<HttpParameter>,
    /// The request body, once for each content type that the endpoint takes, preferred first.
    pub bodies: List<HttpBody>,
    /// The property of the input that selects the content type of the body; `None` if there is no choice.
    pub content_type: Option<Text>,
    /// The responses that the document describes.
    pub responses: List<HttpResponse>,
}

impl HttpBinding {
    /// A request without parameters and body.
    pub const fn new(method: &'static str, path: &'static str) -> Self {
        Self {
            method: Cow::Borrowed(method),
            path: Cow::Borrowed(path),
            server: None,
            server_variables: Cow::Borrowed(&[]),
            security: Cow::Borrowed(&[]),
            parameters: Cow::Borrowed(&[]),
            bodies: Cow::Borrowed(&[]),
            content_type: None,
            responses: Cow::Borrowed(&[]),
        }
    }

    /// Like [`new`](Self::new), for a method and a path that are loaded at run time.
    pub fn owned(method: impl Into<Text>, path: impl Into<Text>) -> Self {
        Self { method: method.into(), path: path.into(), ..Self::new("", "") }
    }

    /// The described response for this status and content type. Those for the very status come before those for its
    /// class, and these before the default; among them, the one of this type counts, or else the first.
    #[cfg(feature = "registry")]
    pub(crate) fn response(&self, status: u16, content_type: &str) -> Option<&HttpResponse> {
        let essence = |text: &str| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let matching = self.responses.iter().filter(|response| response.status.contains(status));
        // Ranges are ordered from the most to the least specific, but for the numbers inside.
        let best = matching.clone().map(|response| response.status).min()?;
        let mut matching = matching.filter(move |response| response.status == best);
        let wanted = essence(content_type);
        let same = |response: &&HttpResponse| response.content_type.as_deref().map_or("".into(), essence) == wanted;
        matching.clone().find(same).or_else(|| matching.next())
    }

    /// The status with which a described response is sent: the first one of its range that no other response describes. By another
    /// status, a client would read the body as that response.
    #[cfg(feature = "registry")]
    pub(crate) fn first_status(&self, response: &HttpResponse) -> u16 {
        let first = match response.status {
            StatusRange::Exact(status) => return status,
            StatusRange::Class(class) => class.saturating_mul(100),
            StatusRange::Default => 200,
        };
        let kind = response.content_type.as_deref().unwrap_or_default();
        let is_own = |status: &u16| {
            // These have no body, or a part of one (RFC 9110, sections 15.3.5 to 15.3.7).
            let takes_all = !matches!(status, 204..=206);
            let found = self.response(*status, kind).filter(|_| takes_all);
            found.is_some_and(|found| found.variant == response.variant && found.content_type == response.content_type)
        };
        (first..first.saturating_add(100)).find(is_own).unwrap_or(first)
    }

    /// Sets the server's URL.
    #[must_use]
    pub const fn with_server(mut self, url: &'static str) -> Self {
        set(&mut self.server, Some(Cow::Borrowed(url)));
        self
    }

    /// Sets the variables of the server's URL.
    #[must_use]
    pub const fn with_server_variables(mut self, variables: &'static [ServerVariable]) -> Self {
        set(&mut self.server_variables, Cow::Borrowed(variables));
        self
    }

    /// Sets the ways to authenticate, of which one suffices.
    #[must_use]
    pub const fn with_security(mut self, security: &'static [SecurityRequirement]) -> Self {
        set(&mut self.security, Cow::Borrowed(security));
        self
    }

    /// Sets the property of the input that selects the content type of the body.
    #[must_use]
    pub const fn with_content_type(mut self, property: &'static str) -> Self {
        set(&mut self.content_type, Some(Cow::Borrowed(property)));
        self
    }

    /// Sets the parameters.
    #[must_use]
    pub const fn with_parameters(mut self, parameters: &'static [HttpParameter]) -> Self {
        set(&mut self.parameters, Cow::Borrowed(parameters));
        self
    }

    /// Sets the request bodies.
    #[must_use]
    pub const fn with_bodies(mut self, bodies: &'static [HttpBody]) -> Self {
        set(&mut self.bodies, Cow::Borrowed(bodies));
        self
    }

    /// Sets the responses.
    #[must_use]
    pub const fn with_responses(mut self, responses: &'static [HttpResponse]) -> Self {
        set(&mut self.responses, Cow::Borrowed(responses));
        self
    }

    /// The body for a content type that an input names: the exact one, or else a range that covers it.
    #[cfg(feature = "registry")]
    pub(crate) fn body_as(&self, content_type: &str) -> Option<&HttpBody> {
        let same = |body: &&HttpBody| body.content_type.trim().eq_ignore_ascii_case(content_type.trim());
        let covering = || self.bodies.iter().find(|body| covers(&body.content_type, content_type));
        self.bodies.iter().find(same).or_else(covering)
    }
}

/// What an operation gives, as far as content types tell.
#[cfg(feature = "registry")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A value, which JSON or text holds.
    Value,
    /// Bytes.
    Bytes,
    /// The items of a stream.
    Items,
}

/// The content types that are described for a response, and the one that came, where they cannot be the same.
///
/// Types that say nothing (none, `text/plain`, `application/octet-stream`) are judged by what they hold.
#[cfg(feature = "registry")]
pub(crate) fn foreign_type(
    responses: &[HttpResponse],
    status: u16,
    content_type: &str,
    expected: Expected,
) -> Option<(String, String)> {
    let came = essence(content_type);
    if matches!(came.as_str(), "" | "text/plain" | "application/octet-stream") {
        return None;
    }
    let streams = expected == Expected::Items;
    let ranges = responses.iter().filter(|response| response.status.contains(status));
    let best = ranges.clone().map(|response| response.status).min();
    let described: Vec<&str> = ranges
        .filter(|response| Some(response.status) == best)
        .filter_map(|response| response.content_type.as_deref())
        .filter(|described| !streams || Media::of(described).is_stream())
        .collect();
    let all = |matches: fn(Media) -> bool| described.iter().all(|described| matches(Media::of(described)));
    let is_html = |kind: &str| kind == "text/html";
    // An error, or a page to log in, in the place of a file.
    let are_files = || {
        described.iter().map(|described| essence(described)).all(|described| match Media::of(&described) {
            _ if is_html(&described) || described == "application/octet-stream" => false,
            Media::Bytes | Media::Multipart => true,
            Media::Text => expected == Expected::Bytes,
            _ => false,
        })
    };
    // What a vendor calls a type of its own may be JSON, and is so where a server says just that.
    let may_be_json = || described.iter().any(|described| is_vendors(&essence(described)));
    let differs = match Media::of(&came) {
        _ if described.is_empty() || described.iter().any(|described| described.contains('*')) => false,
        Media::Json => streams && all(Media::is_stream) || are_files() && !may_be_json(),
        came if came.is_stream() => expected == Expected::Value && all(|described| described == Media::Json),
        _ if expected == Expected::Bytes => is_html(&came) && are_files(),
        _ => all(|described| described == Media::Json || described.is_stream()) || is_html(&came) && are_files(),
    };
    differs.then(|| (described.join(" or "), came))
}

/// True if a type says whose it is and not what it is (RFC 6838, section 3), unless it is known to be of documents.
#[cfg(feature = "registry")]
fn is_vendors(essence: &str) -> bool {
    let Some(sub) = essence.strip_prefix("application/") else { return false };
    let documents = ["vnd.openxmlformats-", "vnd.ms-", "vnd.oasis."];
    ["vnd.", "prs.", "x."].iter().any(|tree| sub.starts_with(tree))
        && !documents.iter().any(|kind| sub.starts_with(kind))
}

/// A variable of a server's URL (OpenAPI 3.1, section 4.8.6).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerVariable {
    /// The name, as it stands between braces in the URL.
    pub name: Text,
    /// Its value, unless the client sets another.
    pub default: Text,
    /// The values that it may have; empty for any value.
    pub values: TextList,
}

impl ServerVariable {
    /// A variable that may have any value.
    pub const fn new(name: &'static str, default: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), default: Cow::Borrowed(default), values: TextList::new(&[]) }
    }

    /// A variable that may have any value, whose name is loaded at run time.
    pub fn owned(name: impl Into<Text>, default: impl Into<Text>) -> Self {
        Self { name: name.into(), default: default.into(), values: TextList::new(&[]) }
    }

    /// Sets the values that it may have.
    #[must_use]
    pub const fn with_values(mut self, values: &'static [&'static str]) -> Self {
        set(&mut self.values, TextList::new(values));
        self
    }
}

#[cfg(all(test, feature = "registry"))]
mod tests {
    use super::*;

    #[test]
    fn the_answer_that_a_response_is() {
        let answer = |status, kind, variant| HttpResponse::new(status, kind).with_variant(variant);
        let mut binding = HttpBinding::new("GET", "/");
        binding.responses = vec![
            answer(StatusRange::Default, "application/json", 5),
            answer(StatusRange::Class(2), "application/json", 4),
            answer(StatusRange::Exact(200), "application/json", 0),
            answer(StatusRange::Exact(200), "text/plain", 1),
            HttpResponse::empty(StatusRange::Exact(204)).with_variant(2),
        ]
        .into();
        let table = [
            (200, "application/json; charset=utf-8", Some(0)),
            (200, "Text/Plain", Some(1)),
            (200, "", Some(0)),
            (204, "", Some(2)),
            (206, "application/json", Some(4)),
            (500, "application/json", Some(5)),
        ];
        for (status, kind, expected) in table {
            assert_eq!(binding.response(status, kind).and_then(|found| found.variant), expected, "{status} {kind}");
        }
        assert_eq!(HttpBinding::new("GET", "/").response(200, ""), None);
    }

    #[test]
    fn a_range_is_sent_by_a_status_that_means_it() {
        use StatusRange::{Class, Default, Exact};

        let answer = |status, variant| HttpResponse::new(status, "application/json").with_variant(variant);
        let first = |range, variant, others: &[StatusRange]| {
            let mut all: Vec<HttpResponse> = others.iter().map(|range| answer(*range, 1)).collect();
            let response = answer(range, variant);
            all.push(response.clone());
            let mut binding = HttpBinding::new("GET", "/");
            binding.responses = all.into();
            binding.first_status(&response)
        };
        let all: Vec<StatusRange> = (200..300).map(Exact).collect();
        for (range, others, expected) in [
            (Exact(202), &[Class(2)][..], 202),
            (Class(2), &[], 200),
            (Class(2), &[Exact(200), Default], 201),
            (Class(2), &[Exact(201)], 200),
            (Class(2), &[Exact(200), Exact(201), Exact(202), Exact(203)], 207),
            (Class(2), &all[..], 200),
            (Default, &[], 200),
            (Default, &[Exact(200)], 201),
            (Default, &[Class(2)], 200),
        ] {
            assert_eq!(first(range, 0, others), expected, "{range:?} {others:?}");
        }
        // What another response means as well may have its status.
        assert_eq!(first(Class(2), 1, &[Exact(200)]), 200);
    }
}
