//! Parameters: their place in the request, and how they are written.

use std::borrow::Cow;

use super::Literal;
use crate::model::text::{Text, set};

/// The place of a parameter in a request (OpenAPI 3.1, section 4.8.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// The query string as a whole (OpenAPI 3.2, section 4.12.1).
    QueryString,
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

/// How deep a deep object may be nested; deeper values are written as JSON.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) const MAX_DEPTH: usize = 16;

#[cfg(any(feature = "http", feature = "http-server"))]
impl ParameterStyle {
    /// What a value begins with in a path, and what separates its pieces.
    pub(crate) const fn in_path(self) -> (&'static str, &'static str) {
        match self {
            Self::Label => (".", "."),
            Self::Matrix => (";", ";"),
            _ => ("", ","),
        }
    }

    /// What separates items and properties that are not exploded, escaped where a URL cannot hold it as it is.
    pub(crate) const fn delimiter(self) -> &'static str {
        match self {
            Self::SpaceDelimited => "%20",
            Self::PipeDelimited => "%7C",
            _ => ",",
        }
    }

    /// The [`delimiter`](Self::delimiter) without escapes.
    pub(crate) const fn plain_delimiter(self) -> &'static str {
        match self {
            Self::SpaceDelimited => " ",
            Self::PipeDelimited => "|",
            _ => ",",
        }
    }
}

/// One parameter of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpParameter {
    /// The name in the request.
    pub name: Text,
    /// The property of the input that holds the value; the same as `name` unless two parameters share one.
    pub property: Text,
    /// Its place in the request.
    pub location: ParameterLocation,
    /// How its value is written.
    pub style: ParameterStyle,
    /// True if each item or property of the value is written on its own.
    pub explode: bool,
    /// True if reserved characters (RFC 3986, section 2.2) stay unescaped.
    pub allow_reserved: bool,
    /// The value that every request has. A parameter with one is not a property of the input.
    pub fixed: Option<Literal>,
}

impl HttpParameter {
    const fn new(name: &'static str, location: ParameterLocation, style: ParameterStyle, explode: bool) -> Self {
        let (name, property) = (Cow::Borrowed(name), Cow::Borrowed(name));
        Self { name, property, location, style, explode, allow_reserved: false, fixed: None }
    }

    /// A parameter whose name is loaded at run time, in the default style of its location.
    ///
    /// ```
    /// use ops_runtime::binding::{HttpParameter, ParameterLocation};
    ///
    /// assert_eq!(HttpParameter::owned(ParameterLocation::Query, format!("limit")), HttpParameter::query("limit"));
    /// ```
    pub fn owned(location: ParameterLocation, name: impl Into<Text>) -> Self {
        let name = name.into();
        let start = match location {
            ParameterLocation::Path => Self::path(""),
            ParameterLocation::Query => Self::query(""),
            ParameterLocation::Header => Self::header(""),
            ParameterLocation::Cookie => Self::cookie(""),
            ParameterLocation::QueryString => Self::query_string(""),
        };
        Self { property: name.clone(), name, ..start }
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

    /// The query string as a whole: style `form`, exploded.
    pub const fn query_string(name: &'static str) -> Self {
        Self::new(name, ParameterLocation::QueryString, ParameterStyle::Form, true)
    }

    /// Sets the property of the input that holds the value.
    #[must_use]
    pub const fn with_property(mut self, property: &'static str) -> Self {
        set(&mut self.property, Cow::Borrowed(property));
        self
    }

    /// Sets the value that every request has.
    #[must_use]
    pub const fn with_fixed(mut self, value: Literal) -> Self {
        set(&mut self.fixed, Some(value));
        self
    }

    /// Sets the style and `explode`.
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

    /// True if the properties of an object are pairs of their own, in a query or in cookies.
    #[cfg(any(feature = "http", feature = "http-server"))]
    pub(crate) const fn is_spread(&self) -> bool {
        self.explode && !matches!(self.style, ParameterStyle::DeepObject | ParameterStyle::Json)
    }
}

/// Headers that no parameter can set: they are set by other parts of the description (OpenAPI 3.1, section 4.8.12.2),
/// or by the connection (RFC 9110).
#[cfg(any(feature = "openapi", feature = "http", feature = "http-server"))]
const RESERVED_HEADERS: &[&str] = &[
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// True if a text is a token, as the name of a method or a header must be (RFC 9110, section 5.6.2).
#[cfg(feature = "openapi")]
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// True if no parameter can be the header of this name.
#[cfg(any(feature = "openapi", feature = "http", feature = "http-server"))]
pub(crate) fn is_reserved_header(name: &str) -> bool {
    RESERVED_HEADERS.iter().any(|reserved| name.eq_ignore_ascii_case(reserved))
}
