//! Request bodies and their fields.

use std::borrow::Cow;

use super::{HttpFixed, ParameterStyle};
use crate::model::text::{List, Text, set};

/// A request body in one content type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpBody {
    /// The content type, such as `application/json`.
    pub content_type: Text,
    /// The property of the input that holds the body. If it is empty, the body is [the rest](Self::with_rest) of the
    /// input.
    pub property: Text,
    /// The style of the fields of a form, or of the parts of a multipart body, that are not written by default rules.
    ///
    /// A multipart body that is no object is one part, or one part for each item of a list. Its only field names them.
    pub fields: List<HttpField>,
    /// The properties that the operation sets itself.
    pub fixed: List<HttpFixed>,
    /// The position of the body's schema in the `oneOf` of its property, from 0. `None` if all content types share the schema of
    /// the property, or in a spec of an older version.
    pub variant: Option<u16>,
}

impl HttpBody {
    /// A body of this content type, held by the input's property `body`.
    pub const fn new(content_type: &'static str) -> Self {
        Self {
            content_type: Cow::Borrowed(content_type),
            property: Cow::Borrowed("body"),
            fields: Cow::Borrowed(&[]),
            fixed: Cow::Borrowed(&[]),
            variant: None,
        }
    }

    /// Like [`new`](Self::new), for a content type that is loaded at run time.
    pub fn owned(content_type: impl Into<Text>) -> Self {
        Self { content_type: content_type.into(), ..Self::new("") }
    }

    /// Sets how fields of a form are written (OpenAPI 3.1, section 4.8.15).
    #[must_use]
    pub const fn with_fields(mut self, fields: &'static [HttpField]) -> Self {
        set(&mut self.fields, Cow::Borrowed(fields));
        self
    }

    /// Sets the properties that the operation sets itself.
    #[must_use]
    pub const fn with_fixed(mut self, fixed: &'static [HttpFixed]) -> Self {
        set(&mut self.fixed, Cow::Borrowed(fixed));
        self
    }

    /// Sets the position of the body's schema in the `oneOf` of its property, from 0.
    #[must_use]
    pub const fn with_variant(mut self, variant: u16) -> Self {
        self.variant = Some(variant);
        self
    }

    /// Sets the property of the input that holds the body.
    #[must_use]
    pub const fn with_property(mut self, property: &'static str) -> Self {
        set(&mut self.property, Cow::Borrowed(property));
        self
    }

    /// Makes the body the rest of the input: an object of all properties that have no other place in the request.
    #[must_use]
    pub const fn with_rest(self) -> Self {
        self.with_property("")
    }

    /// True if the body is the rest of the input, and not one property of it.
    pub fn is_rest(&self) -> bool {
        self.property.is_empty()
    }

    /// The JSON pointer of the body within the input: empty if it is the rest.
    #[cfg(feature = "registry")]
    pub(crate) fn pointer(&self) -> String {
        let mut pointer = String::new();
        if !self.is_rest() {
            crate::pointer::push(&mut pointer, &self.property);
        }
        pointer
    }

    /// The schema of this content type, in the schema of the property. `None` without a [`variant`](Self::variant).
    #[cfg(any(feature = "openapi", feature = "registry"))]
    pub(crate) fn alternative<'s>(&self, property: &'s serde_json::Value) -> Option<&'s serde_json::Value> {
        property.get("oneOf")?.get(usize::from(self.variant?))
    }

    /// The message for a value that does not match the schema of this content type. `other` is a body whose schema it matches.
    #[cfg(feature = "registry")]
    pub(crate) fn mismatch(&self, other: Option<&Self>) -> String {
        let own = &self.content_type;
        match other.map(|other| &other.content_type) {
            Some(other) => format!(
                "the body does not match the schema of `{own}`, but that of `{other}`: choose that content type, or change the body"
            ),
            None => format!(
                "the body does not match the schema of `{own}`: change it, or leave the content type out if another one is meant"
            ),
        }
    }
}

/// How a field of a form or a part of a multipart body is written (OpenAPI 3.1, section 4.8.15).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpField {
    /// The name of the field or part, and of the property of the body that holds its value.
    pub name: Text,
    /// The content type of the part, or of the text in the field. It may list several, separated by commas, and ranges
    /// such as `image/*`; the part then has one of them.
    pub content_type: Option<Text>,
    /// The style of its value; `true` if each item or property of the value is written on its own.
    ///
    /// Without it, a field is like an exploded query parameter: of style `deepObject` if it holds objects or lists of
    /// lists, else of style `form`.
    pub style: Option<(ParameterStyle, bool)>,
    /// True if reserved characters (RFC 3986, section 2.2) stay unescaped.
    pub allow_reserved: bool,
}

impl HttpField {
    /// A field that is written by default rules.
    pub const fn new(name: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), content_type: None, style: None, allow_reserved: false }
    }

    /// Like [`new`](Self::new), for a name that is loaded at run time.
    pub fn owned(name: impl Into<Text>) -> Self {
        Self { name: name.into(), ..Self::new("") }
    }

    /// Sets the content type.
    #[must_use]
    pub const fn with_content_type(mut self, content_type: &'static str) -> Self {
        set(&mut self.content_type, Some(Cow::Borrowed(content_type)));
        self
    }

    /// Sets the style and `explode`.
    #[must_use]
    pub const fn with_style(mut self, style: ParameterStyle, explode: bool) -> Self {
        self.style = Some((style, explode));
        self
    }

    /// Lets reserved characters stay unescaped.
    #[must_use]
    pub const fn with_reserved(mut self) -> Self {
        self.allow_reserved = true;
        self
    }
}
