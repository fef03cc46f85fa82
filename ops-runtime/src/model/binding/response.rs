//! The responses that a document describes.

use std::borrow::Cow;

use crate::model::text::Text;

/// A response that the document describes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpResponse {
    /// The statuses of the response.
    pub status: StatusRange,
    /// The content type, such as `application/json`; `None` for a response without a body.
    pub content_type: Option<Text>,
    /// The alternative of the output's `oneOf` that the body is, by position from 0, if successes differ.
    pub variant: Option<u16>,
    /// True if an item of a stream is the whole event (`event`, `data`, `id`, `retry`) and not its data alone (OpenAPI
    /// 3.2, section 4.14.4).
    pub whole_event: bool,
}

impl HttpResponse {
    /// A response with a body of this content type.
    pub const fn new(status: StatusRange, content_type: &'static str) -> Self {
        Self { status, content_type: Some(Cow::Borrowed(content_type)), variant: None, whole_event: false }
    }

    /// A response with a body, whose content type is loaded at run time.
    pub fn owned(status: StatusRange, content_type: impl Into<Text>) -> Self {
        Self { content_type: Some(content_type.into()), ..Self::empty(status) }
    }

    /// A response without a body.
    pub const fn empty(status: StatusRange) -> Self {
        Self { status, content_type: None, variant: None, whole_event: false }
    }

    /// Sets the alternative of the output's `oneOf` that the body is.
    #[must_use]
    pub const fn with_variant(mut self, variant: u16) -> Self {
        self.variant = Some(variant);
        self
    }

    /// Makes an item of a stream the whole event.
    #[must_use]
    pub const fn with_whole_event(mut self) -> Self {
        self.whole_event = true;
        self
    }
}

/// The statuses of a described response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StatusRange {
    /// Exactly this status.
    Exact(u16),
    /// All statuses with this first digit (`4XX`).
    Class(u16),
    /// All statuses that no other response describes (`default`).
    Default,
}

impl StatusRange {
    /// True if the status is in the range.
    pub const fn contains(self, status: u16) -> bool {
        match self {
            Self::Exact(exact) => exact == status,
            Self::Class(class) => status / 100 == class,
            Self::Default => true,
        }
    }

    /// True if the range is of successes (2XX).
    pub const fn is_success(self) -> bool {
        match self {
            Self::Exact(status) => status / 100 == 2,
            Self::Class(class) => class == 2,
            Self::Default => false,
        }
    }

    /// The code of an error that is declared for these statuses.
    #[cfg(any(feature = "openapi", feature = "registry"))]
    pub(crate) fn error_code(self) -> String {
        match self {
            Self::Exact(status) => format!("HTTP_{status}"),
            Self::Class(class) => format!("HTTP_{class}XX"),
            Self::Default => "HTTP_ERROR".to_owned(),
        }
    }
}
