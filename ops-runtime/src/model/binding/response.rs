//! The answers that a document describes.

use std::borrow::Cow;

use crate::model::text::Text;

/// An answer that the document describes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpResponse {
    /// The statuses that it stands for.
    pub status: StatusRange,
    /// The content type, such as `application/json`; none for an answer without a body.
    pub content_type: Option<Text>,
    /// Which alternative of the output's `oneOf` the body is, where successes differ; by position, from 0.
    pub variant: Option<u16>,
    /// Whether an item of a stream is the whole event (`event`, `data`, `id`, `retry`) and not its data alone
    /// (OpenAPI 3.2, section 4.14.4).
    pub whole_event: bool,
}

impl HttpResponse {
    /// An answer with a body of this content type.
    pub const fn new(status: StatusRange, content_type: &'static str) -> Self {
        Self { status, content_type: Some(Cow::Borrowed(content_type)), variant: None, whole_event: false }
    }

    /// An answer without a body.
    pub const fn empty(status: StatusRange) -> Self {
        Self { status, content_type: None, variant: None, whole_event: false }
    }

    /// Says which alternative of the output's `oneOf` the body is.
    #[must_use]
    pub const fn with_variant(mut self, variant: u16) -> Self {
        self.variant = Some(variant);
        self
    }

    /// Says that an item of a stream is the whole event.
    #[must_use]
    pub const fn with_whole_event(mut self) -> Self {
        self.whole_event = true;
        self
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
