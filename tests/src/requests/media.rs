//! Content types, as the standards have them: what a request body of one is.

/// What a body of some content type is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Form,
    Multipart,
    Text,
    Events,
    /// JSON texts, one a line.
    Lines,
    /// JSON texts, each behind a record separator.
    Sequence,
    Bytes,
}

/// Types beside those of `text/` that are text.
const TEXT: &[&str] = &[
    "csv",
    "ecmascript",
    "graphql",
    "javascript",
    "jose",
    "jwt",
    "sql",
    "toml",
    "x-pem-file",
    "x-yaml",
    "xml",
    "yaml",
];

/// Types of which each line is a JSON text.
const LINES: &[&str] = &[
    "json-lines",
    "jsonl",
    "jsonlines",
    "ndjson",
    "stream+json",
    "x-json-stream",
    "x-jsonl",
    "x-jsonlines",
    "x-ndjson",
];

impl Media {
    pub(super) fn of(content_type: &str) -> Self {
        let essence = essence(content_type);
        let (kind, sub) = essence.split_once('/').unwrap_or((&essence, ""));
        match (kind, sub) {
            ("text", "event-stream") => Self::Events,
            ("application" | "text", sub) if LINES.contains(&sub) => Self::Lines,
            (_, sub) if sub.ends_with("json-seq") => Self::Sequence,
            (_, "json" | "x-json") | ("application" | "*", "*") => Self::Json,
            ("application", "x-www-form-urlencoded") => Self::Form,
            ("multipart", _) => Self::Multipart,
            (_, sub) if sub.ends_with("+json") => Self::Json,
            ("text", _) => Self::Text,
            (_, sub) if sub.ends_with("+xml") || sub.ends_with("+yaml") => Self::Text,
            ("application", sub) if TEXT.contains(&sub) => Self::Text,
            _ => Self::Bytes,
        }
    }

    /// Whether an answer of this type is a stream of items.
    pub(super) fn is_stream(self) -> bool {
        matches!(self, Self::Events | Self::Lines | Self::Sequence)
    }
}

/// A content type in lower case, without parameters.
pub(super) fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
