//! Content types: what a body of one holds, and which ones a request or an answer can be made of.

use std::cmp::Reverse;

use super::document::Node;

/// What a body of some content type is to the client that writes or reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Media {
    /// Anything that nobody here can write or read.
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

impl Media {
    /// What a body of this content type is.
    pub(super) fn of(content_type: &str) -> Self {
        let essence = essence(content_type);
        let (kind, sub) = essence.split_once('/').unwrap_or((&essence, ""));
        match (kind, sub) {
            ("application", "json" | "*" | "x-json") | ("*", "*") | ("text", "json") => Self::Json,
            (_, sub) if sub.ends_with("+json") => Self::Json,
            ("application", "x-www-form-urlencoded") => Self::Form,
            ("text", "event-stream") => Self::Events,
            ("application", "octet-stream") => Self::Bytes,
            ("text", _) => Self::Text,
            (
                "application",
                "xml" | "yaml" | "x-yaml" | "x-ndjson" | "ndjson" | "jsonl" | "toml" | "csv" | "sql" | "jose",
            ) => Self::Text,
            (_, sub) if sub.ends_with("+xml") || sub.ends_with("+yaml") => Self::Text,
            ("multipart" | "message", _) | ("", _) | (_, "") => Self::Other,
            _ => Self::Bytes,
        }
    }
}

/// Whether the client can write or read a body of this content type. Widen it here when the client learns more.
pub(super) fn supported(media: Media, side: Side) -> bool {
    match media {
        Media::Other => false,
        Media::Events => side == Side::Response,
        Media::Bytes | Media::Text | Media::Form | Media::Json => true,
    }
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
            ("multipart/form-data", Media::Other),
            ("json", Media::Other),
            ("", Media::Other),
        ] {
            assert_eq!(Media::of(content_type), media, "{content_type}");
        }
    }
}
