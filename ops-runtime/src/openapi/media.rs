//! Content types: what a body of one holds, and which is preferred of several.

use std::cmp::Reverse;

use super::document::Node;
use super::reader::Reader;

/// What a body of some content type is to the client that writes or reads it, those last that are preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Media {
    /// Something without a name.
    Other,
    /// A stream of server-sent events.
    Events,
    /// A stream of JSON texts, one in a line or behind a record separator.
    Lines,
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

/// Where a body goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Request,
    Response,
}

/// Types that are text though they are not called so.
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

/// Types of which each line, or each record, is a JSON text of its own (OpenAPI 3.2, section 4.14.3).
const LINES: &[&str] = &[
    "application/geo+json-seq",
    "application/json-lines",
    "application/json-seq",
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

/// How many content types one body may have.
pub(super) const MAX_CONTENTS: usize = 100;

impl Media {
    /// What a body of this content type is; the HTTP client must be of the same opinion.
    pub(super) fn of(content_type: &str) -> Self {
        let essence = essence(content_type);
        let (kind, sub) = essence.split_once('/').unwrap_or((&essence, ""));
        match (kind, sub) {
            ("text", "event-stream") => Self::Events,
            _ if LINES.contains(&essence.as_str()) => Self::Lines,
            // A range says nothing, and what endpoints mean by it is nearly always JSON.
            ("application" | "*", "*") | ("application" | "text", "json") | ("application", "x-json") => Self::Json,
            ("application", "x-www-form-urlencoded") => Self::Form,
            ("", _) | (_, "") => Self::Other,
            ("multipart", _) => Self::Multipart,
            (_, sub) if sub.ends_with("+json") => Self::Json,
            (_, sub) if sub.ends_with("+xml") || sub.ends_with("+yaml") => Self::Text,
            ("text", _) => Self::Text,
            _ if TEXT.contains(&essence.as_str()) => Self::Text,
            _ => Self::Bytes,
        }
    }

    /// Whether an answer of this type is a stream of items.
    pub(super) fn is_stream(self) -> bool {
        matches!(self, Self::Events | Self::Lines)
    }

    /// A word for a body of this type, which names the alternative that holds it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Json => "Json",
            Self::Form => "Form",
            Self::Multipart => "Multipart",
            Self::Text | Self::Events | Self::Lines => "Text",
            Self::Bytes | Self::Other => "Bytes",
        }
    }
}

/// The content type in lower case without parameters such as `charset`.
pub(super) fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A described body in one content type.
#[derive(Clone)]
pub(super) struct Content<'a> {
    pub(super) content_type: &'a str,
    pub(super) media: Media,
    /// The media type object.
    pub(super) node: Node<'a>,
}

/// Whether the content type stands for several.
pub(super) fn is_range(content_type: &str) -> bool {
    content_type.contains('*')
}

impl<'a> Reader<'a> {
    /// The content types under a node's `content`, those preferred first that say most about a body.
    pub(super) fn contents(&mut self, node: &Node<'a>) -> Vec<Content<'a>> {
        let described = self.map(node, "content");
        let alone = described.len() == 1;
        let mut contents = Vec::new();
        for (content_type, node) in described.into_iter().filter(|(name, _)| !name.starts_with("x-")) {
            let mut content_type = content_type;
            if !content_type.contains('/') {
                let help = if alone { "it was taken for JSON" } else { "it was left out" };
                self.warn(&node, format!("`{content_type}` is not a content type"), help);
                if !alone {
                    continue;
                }
                content_type = "application/json";
            }
            // Without anything in it, a media type still says which types there are.
            let node = if node.text("$ref").is_some() {
                let Some(node) = self.resolve(&node, "this content type") else { continue };
                node
            } else {
                node
            };
            if contents.len() == MAX_CONTENTS {
                self.warn(&node, format!("more than {MAX_CONTENTS} content types"), "the others were left out");
                break;
            }
            contents.push(Content { content_type, media: Media::of(content_type), node });
        }
        sort(&mut contents);
        contents
    }
}

/// Of several kinds of JSON the plain one goes first; what is preferred alike keeps the order of the document.
pub(super) fn sort(contents: &mut [Content<'_>]) {
    contents.sort_by_key(|content| Reverse((content.media, essence(content.content_type) == "application/json")));
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
            ("application/json-seq", Media::Lines),
            ("multipart/form-data", Media::Multipart),
            ("multipart/mixed; boundary=x", Media::Multipart),
            ("json", Media::Other),
            ("", Media::Other),
        ] {
            assert_eq!(Media::of(content_type), media, "{content_type}");
        }
    }
}
