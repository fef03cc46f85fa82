//! Content types: which of several is preferred.

use std::cmp::Reverse;

use super::document::Node;
use super::reader::Reader;
use super::short::short;
use crate::model::media::{Media, essence};

/// Where a body goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Request,
    Response,
}

/// How many content types one body may have.
pub(super) const MAX_CONTENTS: usize = 100;

/// A described body in one content type.
#[derive(Clone)]
pub(super) struct Content<'a> {
    pub(super) content_type: &'a str,
    pub(super) media: Media,
    /// The media type object.
    pub(super) node: Node<'a>,
}

impl Content<'_> {
    /// True if it is a stream of JSON texts.
    pub(super) fn is_of_texts(&self) -> bool {
        matches!(self.media, Media::Lines | Media::Sequence)
    }
}

/// True if the content type is a range.
pub(super) fn is_range(content_type: &str) -> bool {
    content_type.contains('*')
}

impl<'a> Reader<'a> {
    /// The content types under a node's `content`; those that describe a body best come first.
    pub(super) fn contents(&mut self, node: &Node<'a>) -> Vec<Content<'a>> {
        let mut described = self.map(node, "content");
        // What a server of ours adds belongs to no operation.
        described.retain(|(name, node)| !name.starts_with("x-") && !node.is("x-ops-implied"));
        // A body with content has some, be its type a wrong one.
        let mut is_any = described.iter().any(|(name, _)| name.contains('/'));
        let mut contents = Vec::new();
        for (content_type, node) in described {
            let mut content_type = content_type;
            if !content_type.contains('/') {
                let is_only = !std::mem::replace(&mut is_any, true);
                let help = if is_only { "it was taken for JSON" } else { "it was left out" };
                self.warn(&node, format!("`{}` is not a content type", short(content_type)), help);
                if !is_only {
                    continue;
                }
                content_type = "application/json";
            }
            // A media type of which nothing is known still counts as a type.
            let node = match node.text("$ref") {
                Some(_) => self.resolve(&node, "what this content type holds").unwrap_or(node),
                None => node,
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

/// Plain JSON goes before other kinds of JSON; otherwise the order of the document is kept.
pub(super) fn sort(contents: &mut [Content<'_>]) {
    contents.sort_by_key(|content| Reverse((content.media, essence(content.content_type) == "application/json")));
}
