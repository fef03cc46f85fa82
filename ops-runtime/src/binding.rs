//! How an operation is reached: in this process, or over HTTP.
//!
//! ```
//! use ops_runtime::{HttpBinding, HttpParameter};
//!
//! const SHOW: HttpBinding = HttpBinding::new("GET", "/pets/{petId}")
//!     .with_parameters(const { &[HttpParameter::path("petId")] });
//! assert_eq!(SHOW.parameters[0].name, "petId");
//! ```

use std::borrow::Cow;

use crate::text::{List, Text, set};

/// How an operation is reached.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum Binding {
    /// By a handler in this process.
    #[default]
    Local,
    /// By an HTTP request.
    Http(HttpBinding),
}

/// The HTTP request of an operation and the answers that it can get.
///
/// One interpreter reads this table for generated and for run-time operations alike.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HttpBinding {
    /// The method, in upper case.
    pub method: Text,
    /// The path below the server's URL, with `{name}` for each path parameter.
    pub path: Text,
    /// The server's URL in the document, used when the client is given no base URL.
    pub server: Option<Text>,
    /// Where each property of the input goes, but for the body.
    pub parameters: List<HttpParameter>,
    /// The request body, once for each content type that the endpoint takes, preferred first.
    pub bodies: List<HttpBody>,
    /// The answers that the document describes.
    pub responses: List<HttpResponse>,
}

impl HttpBinding {
    /// A request without parameters and body.
    pub const fn new(method: &'static str, path: &'static str) -> Self {
        Self {
            method: Cow::Borrowed(method),
            path: Cow::Borrowed(path),
            server: None,
            parameters: Cow::Borrowed(&[]),
            bodies: Cow::Borrowed(&[]),
            responses: Cow::Borrowed(&[]),
        }
    }

    /// Sets the server's URL.
    #[must_use]
    pub const fn with_server(mut self, url: &'static str) -> Self {
        set(&mut self.server, Some(Cow::Borrowed(url)));
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

    /// Sets the answers.
    #[must_use]
    pub const fn with_responses(mut self, responses: &'static [HttpResponse]) -> Self {
        set(&mut self.responses, Cow::Borrowed(responses));
        self
    }
}

/// Where in a request a parameter goes (OpenAPI 3.1, section 4.8.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterLocation {
    /// A segment of the path.
    Path,
    /// The query string.
    Query,
    /// A header.
    Header,
    /// A cookie.
    Cookie,
}

/// How a parameter's value is written (OpenAPI 3.1, section 4.8.12.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterStyle {
    /// `a,b`: the default in paths and headers.
    Simple,
    /// `name=a&name=b`: the default in queries and cookies.
    Form,
    /// `.a.b`, in paths.
    Label,
    /// `;name=a`, in paths.
    Matrix,
    /// `a%20b`, in queries.
    SpaceDelimited,
    /// `a|b`, in queries.
    PipeDelimited,
    /// `name[key]=a`, in queries.
    DeepObject,
    /// One JSON text, for parameters described by `content`.
    Json,
}

/// One parameter of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpParameter {
    /// The name in the request.
    pub name: Text,
    /// The property of the input that holds the value; the same as `name` unless two parameters share one.
    pub property: Text,
    /// Where it goes.
    pub location: ParameterLocation,
    /// How its value is written.
    pub style: ParameterStyle,
    /// Whether each item or property of the value is written on its own.
    pub explode: bool,
    /// Whether reserved characters (RFC 3986, section 2.2) stay unescaped.
    pub allow_reserved: bool,
}

impl HttpParameter {
    const fn new(name: &'static str, location: ParameterLocation, style: ParameterStyle, explode: bool) -> Self {
        let (name, property) = (Cow::Borrowed(name), Cow::Borrowed(name));
        Self { name, property, location, style, explode, allow_reserved: false }
    }

    /// A path parameter: style `simple`.
    pub const fn path(name: &'static str) -> Self {
        Self::new(name, ParameterLocation::Path, ParameterStyle::Simple, false)
    }

    /// A query parameter: style `form`, exploded.
    pub const fn query(name: &'static str) -> Self {
        Self::new(name, ParameterLocation::Query, ParameterStyle::Form, true)
    }

    /// A header: style `simple`.
    pub const fn header(name: &'static str) -> Self {
        Self::new(name, ParameterLocation::Header, ParameterStyle::Simple, false)
    }

    /// A cookie: style `form`, exploded.
    pub const fn cookie(name: &'static str) -> Self {
        Self::new(name, ParameterLocation::Cookie, ParameterStyle::Form, true)
    }

    /// Names the property of the input that holds the value.
    #[must_use]
    pub const fn with_property(mut self, property: &'static str) -> Self {
        set(&mut self.property, Cow::Borrowed(property));
        self
    }

    /// Sets the style and whether it explodes.
    #[must_use]
    pub const fn with_style(mut self, style: ParameterStyle, explode: bool) -> Self {
        self.style = style;
        self.explode = explode;
        self
    }

    /// Lets reserved characters stay unescaped.
    #[must_use]
    pub const fn with_reserved(mut self) -> Self {
        self.allow_reserved = true;
        self
    }
}

/// A request body in one content type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpBody {
    /// The content type, such as `application/json`.
    pub content_type: Text,
    /// The property of the input that holds the body.
    pub property: Text,
    /// How the fields of a form are written, of those that are written otherwise than by default.
    ///
    /// By default a field is like a query parameter of style `form`, exploded, and like one of style `deepObject` if it
    /// holds objects or lists of lists.
    pub fields: List<HttpParameter>,
}

impl HttpBody {
    /// A body of this content type, held by the input's property `body`.
    pub const fn new(content_type: &'static str) -> Self {
        Self { content_type: Cow::Borrowed(content_type), property: Cow::Borrowed("body"), fields: Cow::Borrowed(&[]) }
    }

    /// Says how fields of a form are written (OpenAPI 3.1, section 4.8.15).
    #[must_use]
    pub const fn with_fields(mut self, fields: &'static [HttpParameter]) -> Self {
        set(&mut self.fields, Cow::Borrowed(fields));
        self
    }

    /// Names the property of the input that holds the body.
    #[must_use]
    pub const fn with_property(mut self, property: &'static str) -> Self {
        set(&mut self.property, Cow::Borrowed(property));
        self
    }
}

/// An answer that the document describes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpResponse {
    /// The statuses that it stands for.
    pub status: StatusRange,
    /// The content type, such as `application/json`; none for an answer without a body.
    pub content_type: Option<Text>,
}

impl HttpResponse {
    /// An answer with a body of this content type.
    pub const fn new(status: StatusRange, content_type: &'static str) -> Self {
        Self { status, content_type: Some(Cow::Borrowed(content_type)) }
    }

    /// An answer without a body.
    pub const fn empty(status: StatusRange) -> Self {
        Self { status, content_type: None }
    }
}

/// The statuses that a described answer stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StatusRange {
    /// Exactly this status.
    Exact(u16),
    /// All statuses with this first digit (`4XX`).
    Class(u16),
    /// All statuses that no other answer stands for (`default`).
    Default,
}

impl StatusRange {
    /// Whether the status is in the range.
    pub const fn contains(self, status: u16) -> bool {
        match self {
            Self::Exact(exact) => exact == status,
            Self::Class(class) => status / 100 == class,
            Self::Default => true,
        }
    }

    /// Whether the range is of successes (2XX).
    pub const fn is_success(self) -> bool {
        match self {
            Self::Exact(status) => status / 100 == 2,
            Self::Class(class) => class == 2,
            Self::Default => false,
        }
    }
}
