//! Content types: what a body of one holds, and which ones a request or an answer can be made of.

use std::cmp::Reverse;

use super::document::Node;

/// What a body of some content type is to the client that writes or reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Media {
    /// Parts that nobody here can put together or take apart.
    Other,
    /// A stream of server-sent events.
    Events,
    /// Bytes.
    Bytes,
    /// Text.
    Text,
    /// The fields of a form in one line.
    Form,
    /// JSON, in any dialect (`+json`).
    Json,
}

/// Where a body goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Request,
    Response,
}

/// Types that are text though they are not called so.
const TEXT: &[&str] = &[
    "application/ecmascript",
    "application/graphql",
    "application/javascript",
    "application/jsonl",
    "application/jwt",
    "application/sql",
    "application/toml",
    "application/x-ndjson",
    "application/x-pem-file",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
];

impl Media {
    /// What a body of this content type is; the HTTP client must be of the same opinion.
    pub(super) fn of(content_type: &str) -> Self {
        let essence = essence(content_type);
        let (kind, sub) = essence.split_once('/').unwrap_or((&essence, ""));
        match (kind, sub) {
            ("text", "event-stream") => Self::Events,
            // A range says nothing, and what endpoints mean by it is nearly always JSON.
            ("application" | "*", "*") | ("application" | "text", "json") => Self::Json,
            ("application", "x-www-form-urlencoded") => Self::Form,
            ("multipart" | "message" | "", _) | (_, "") => Self::Other,
            (_, sub) if sub.ends_with("+json") => Self::Json,
            (_, sub) if sub.ends_with("+xml") || sub.ends_with("+yaml") => Self::Text,
            ("text", _) => Self::Text,
            _ if TEXT.contains(&essence.as_str()) => Self::Text,
            _ => Self::Bytes,
        }
    }
}

/// Whether the client can write a body of this content type; it can read any, if only as bytes. Widen it here when the
/// client learns more.
pub(super) fn supported(media: Media) -> bool {
    !matches!(media, Media::Other | Media::Events)
}

/// The content type in lower case without parameters such as `charset`.
fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A described body in one content type.
pub(super) struct Content<'a> {
    pub(super) content_type: &'a str,
    pub(super) media: Media,
    /// The media type object.
    pub(super) node: Node<'a>,
}

/// The content types under a node's `content`, those preferred first that say most about a body.
pub(super) fn contents<'a>(node: &Node<'a>) -> Vec<Content<'a>> {
    let mut contents: Vec<_> = node
        .get("content")
        .iter()
        .flat_map(Node::members)
        .map(|(content_type, node)| Content { content_type, media: Media::of(content_type), node })
        .collect();
    // Of several kinds of JSON, the plain one; otherwise the order of the document.
    contents.sort_by_key(|content| Reverse((content.media, essence(content.content_type) == "application/json")));
    contents
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
            ("application/x-ndjson", Media::Text),
            ("multipart/form-data", Media::Other),
            ("json", Media::Other),
            ("", Media::Other),
        ] {
            assert_eq!(Media::of(content_type), media, "{content_type}");
        }
    }
}
