//! Content types: the kinds of bodies, for reading documents and for reading bodies.

/// The fields of a form in one line.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

/// JSON.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) const JSON: &str = "application/json";

/// A stream of server-sent events.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) const EVENTS: &str = "text/event-stream";

/// The comment by which a stream of events says that it is over, where an event with `[DONE]` would be taken for an item.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) const EVENTS_END: &str = ": [DONE]";

/// A stream of JSON texts, one in a line.
#[cfg(feature = "http-server")]
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// Bytes of any kind.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) const OCTETS: &str = "application/octet-stream";

/// The kind of a body, by its content type; the preferred kinds come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Media {
    /// Any other kind.
    Other,
    /// A stream of server-sent events.
    Events,
    /// A stream of JSON texts, one in a line.
    Lines,
    /// A stream of JSON texts, each behind a record separator (RFC 7464).
    Sequence,
    /// Bytes.
    Bytes,
    /// Text.
    Text,
    /// Parts with headers of their own.
    Multipart,
    /// The fields of a form in one line.
    Form,
    /// JSON, in any dialect (`+json`).
    Json,
}

/// Text types whose names do not say so.
const TEXT: &[&str] = &[
    "application/csv",
    "application/ecmascript",
    "application/graphql",
    "application/javascript",
    "application/jose",
    "application/jwt",
    "application/sql",
    "application/toml",
    "application/x-pem-file",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
];

/// Types in which each line is a JSON text (OpenAPI 3.2, section 4.14.3).
const LINES: &[&str] = &[
    "application/json-lines",
    "application/jsonl",
    "application/jsonlines",
    "application/ndjson",
    "application/stream+json",
    "application/x-json-stream",
    "application/x-jsonl",
    "application/x-jsonlines",
    "application/x-ndjson",
    "text/jsonl",
    "text/x-jsonl",
    "text/x-ndjson",
];

impl Media {
    /// The kind of a body with this content type.
    pub(crate) fn of(content_type: &str) -> Self {
        let essence = essence(content_type);
        let (kind, sub) = essence.split_once('/').unwrap_or((&essence, ""));
        match (kind, sub) {
            ("text", "event-stream") => Self::Events,
            ("application", "json-seq") => Self::Sequence,
            _ if LINES.contains(&essence.as_str()) => Self::Lines,
            // A range is not specific; endpoints nearly always mean JSON by it.
            ("application" | "*", "*") | ("application" | "text", "json") | ("application", "x-json") => Self::Json,
            ("application", "x-www-form-urlencoded") => Self::Form,
            ("", _) | (_, "") => Self::Other,
            ("multipart", _) => Self::Multipart,
            // The suffix means that the body is such a sequence (RFC 8091).
            (_, sub) if sub.ends_with("+json-seq") => Self::Sequence,
            (_, sub) if sub.ends_with("+json") => Self::Json,
            (_, sub) if sub.ends_with("+xml") || sub.ends_with("+yaml") => Self::Text,
            ("text", _) => Self::Text,
            _ if TEXT.contains(&essence.as_str()) => Self::Text,
            _ => Self::Bytes,
        }
    }

    /// A word for a body of this type, which names its alternative.
    #[cfg(any(feature = "http", feature = "openapi"))]
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Json => "Json",
            Self::Form => "Form",
            Self::Multipart => "Multipart",
            Self::Text | Self::Events | Self::Lines | Self::Sequence => "Text",
            Self::Bytes | Self::Other => "Bytes",
        }
    }

    /// True if a response of this type is a stream of items.
    pub(crate) fn is_stream(self) -> bool {
        matches!(self, Self::Events | Self::Lines | Self::Sequence)
    }

    /// True if a body of this type is a list of JSON texts, when it is read as a whole.
    #[cfg(feature = "registry")]
    pub(crate) fn is_lines(self) -> bool {
        matches!(self, Self::Lines | Self::Sequence)
    }
}

/// The content type in lower case without parameters such as `charset`.
pub(crate) fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// How a body is held in JSON.
#[cfg(any(feature = "http", feature = "http-server"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As the JSON that it is.
    Json,
    /// As a string.
    Text,
    /// As a string of base64.
    Bytes,
}

/// The value of the parameter `charset`.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) fn charset(content_type: &str) -> Option<std::borrow::Cow<'_, str>> {
    super::parameters::parameter(content_type, "charset")
}

/// True if text of a content type is in UTF-8: the charset that it names, or names none.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) fn is_utf8(content_type: &str) -> bool {
    use encoding_rs::{Encoding, UTF_8};
    charset(content_type).is_none_or(|label| Encoding::for_label(label.as_bytes()) == Some(UTF_8))
}

/// A text in the charset that its content type names, UTF-8 by default; `None` if it has characters that the charset has
/// not, or if the charset is not known here.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) fn in_charset(content_type: &str, text: &str) -> Option<bytes::Bytes> {
    use encoding_rs::{Encoding, UTF_8};
    let encoding = match charset(content_type).map(|label| Encoding::for_label(label.as_bytes())) {
        Some(None) if !text.is_ascii() => return None,
        named => named.flatten().unwrap_or(UTF_8),
    };
    let (bytes, written, is_lossy) = encoding.encode(text);
    // What is meant for UTF-16 comes out as UTF-8.
    (written == encoding && !is_lossy).then(|| bytes.into_owned().into())
}

#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) fn is_json(content_type: &str) -> bool {
    Media::of(content_type) == Media::Json && !is_range(content_type)
}

/// The form of a body with this content type.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) fn form(content_type: &str) -> Form {
    match Media::of(content_type) {
        _ if is_range(content_type) => Form::Bytes,
        Media::Json => Form::Json,
        Media::Text | Media::Form | Media::Events | Media::Lines | Media::Sequence => Form::Text,
        Media::Multipart | Media::Bytes | Media::Other => Form::Bytes,
    }
}

/// True if a described type is a range, which says nothing about the form.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) fn is_range(essence: &str) -> bool {
    essence.is_empty() || matches!(essence, "*" | "*/*" | "application/*")
}

/// True if a described content type, which may be a range, covers a content type.
#[cfg(feature = "registry")]
pub(crate) fn covers(described: &str, content_type: &str) -> bool {
    let (described, content_type) = (essence(described), essence(content_type));
    match described.split_once('*') {
        _ if content_type.is_empty() => false,
        Some(("", "" | "/*")) => true,
        Some((kind, "")) if kind.ends_with('/') => content_type.starts_with(kind),
        // `application/*+json` means plain JSON, too: a client that knows no more precise type sends that.
        Some((kind, suffix)) if kind.ends_with('/') && suffix.starts_with('+') => {
            let own = content_type.strip_prefix(kind);
            own.is_some_and(|own| own.ends_with(suffix) || suffix.strip_prefix('+') == Some(own))
        }
        _ => described == content_type,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types() {
        for (content_type, media) in [
            ("application/json", Media::Json),
            ("Application/JSON; charset=utf-8", Media::Json),
            ("application/problem+json", Media::Json),
            ("*/*", Media::Json),
            ("application/x-www-form-urlencoded", Media::Form),
            ("text/event-stream", Media::Events),
            ("text/plain", Media::Text),
            ("application/xml", Media::Text),
            ("application/atom+xml", Media::Text),
            ("application/octet-stream", Media::Bytes),
            ("image/png", Media::Bytes),
            ("application/pdf", Media::Bytes),
            ("application/x-ndjson", Media::Lines),
            ("application/stream+json", Media::Lines),
            ("application/json-seq", Media::Sequence),
            ("application/geo+json-seq", Media::Sequence),
            ("application/qlog+json-seq; charset=utf-8", Media::Sequence),
            ("multipart/form-data", Media::Multipart),
            ("multipart/mixed; boundary=x", Media::Multipart),
            ("text/json", Media::Json),
            ("image/svg+xml", Media::Text),
            ("text/html;charset=x", Media::Text),
            ("json", Media::Other),
            ("", Media::Other),
        ] {
            assert_eq!(Media::of(content_type), media, "{content_type}");
        }
    }
    #[cfg(any(feature = "http", feature = "http-server"))]
    #[test]
    fn ranges() {
        for (described, content_type, expected) in [
            ("text/csv", "Text/CSV; charset=utf-8", true),
            ("text/csv", "text/plain", false),
            ("*", "a/b", true),
            ("*/*", "a/b", true),
            ("*/*", "", false),
            ("text/*", "text/plain", true),
            ("text/*", "text/*", true),
            ("text/*", "texts/plain", false),
            ("application/*+json", "application/vnd.a+json; v=1", true),
            ("application/*+json", "application/json", true),
            ("application/*+json", "application/*+json", true),
            ("application/*+json", "text/json", false),
            ("application/*+json", "application/xml", false),
            ("*/json", "application/json", false),
        ] {
            assert_eq!(covers(described, content_type), expected, "{content_type} of {described}");
        }
    }
}
