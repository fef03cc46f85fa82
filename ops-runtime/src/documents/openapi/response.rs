//! Responses: what an operation gives, by status and content type.

use serde_json::Value;

use super::body::{Alternatives, null};
use super::document::Node;
use super::media::{Content, Side};
use super::reader::Reader;
use super::short::short;
use super::version::Version;
use crate::model::media::Media;
use crate::{ErrorDefinition, HttpResponse, Schema, StatusRange};

/// The responses of an operation.
#[derive(Default)]
pub(super) struct Answers {
    /// The output of the operation; `None` if it only streams.
    pub(super) output: Option<Value>,
    /// The schema of one item of its stream; `None` if it does not stream.
    pub(super) item: Option<Value>,
    pub(super) responses: Vec<HttpResponse>,
    pub(super) errors: Vec<ErrorDefinition>,
}

impl<'a> Reader<'a> {
    /// Reads the responses of the operation.
    pub(super) fn answers(&mut self, operation: &Node<'a>, method: &str) -> Answers {
        let described = self.described_answers(operation);
        // If no success is described, `default` describes it.
        let by_default = !described.iter().any(|(range, _)| range.is_success());
        let succeeds = |range: StatusRange| range.is_success() || by_default && range == StatusRange::Default;
        let mut answers = Answers::default();
        let mut outputs = Alternatives::default();
        let mut items = Alternatives::default();
        for (range, node) in &described {
            let contents = match (method, self.version) {
                // A response to HEAD has no body, even if the document describes one.
                ("HEAD", _) => Vec::new(),
                // Nor has one to these statuses (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5).
                _ if matches!(range, StatusRange::Exact(204 | 205 | 304)) => Vec::new(),
                (_, Version::V20) => self.swagger_contents(operation, node, "produces"),
                _ => self.contents(node),
            };
            let mut own = responses(*range, &contents);
            if !succeeds(*range) {
                answers.responses.extend(own);
                answers.errors.extend(self.error(*range, node, &contents));
                continue;
            }
            let title = title(*range);
            let plain = contents.iter().position(|content| !content.media.is_stream());
            let plain = if contents.is_empty() { Some(0) } else { plain };
            if let Some(at) = plain {
                self.count_others(&contents, at);
                let schema = contents.get(at).map_or_else(null, |content| self.content_schema(content, Side::Response));
                let variant = outputs.add(&title, schema);
                if let Some(response) = own.get_mut(at) {
                    response.variant = u16::try_from(variant).ok();
                }
            }
            for (content, response) in contents.iter().zip(&mut own).filter(|(content, _)| content.media.is_stream()) {
                let (item, is_whole) = self.item(content);
                response.whole_event = is_whole;
                items.add(content.media.title(), item);
            }
            answers.responses.extend(own);
        }
        if outputs.len() == 0 && items.len() == 0 {
            self.note(operation, "no successful answer is described", "any is accepted");
            outputs.add("", Value::Bool(true));
        }
        // A response without content beside a stream is the end of that stream.
        if items.len() > 0 && outputs.are_empty() {
            outputs = Alternatives::default();
        }
        if outputs.len() < 2 {
            answers.responses.iter_mut().for_each(|response| response.variant = None);
        }
        answers.output = outputs.finish();
        answers.item = items.finish();
        answers
    }

    /// Counts the content types of a success whose schema is another than the one that the output has.
    fn count_others(&mut self, contents: &[Content<'a>], at: usize) {
        let schema = |content: &Content<'a>| content.node.get("schema").map(|schema| schema.value);
        let Some(chosen) = contents.get(at) else { return };
        for (_, other) in contents.iter().enumerate().filter(|(n, other)| *n != at && !other.media.is_stream()) {
            if self.others.is_new(&other.node) && schema(other) != schema(chosen) {
                self.others.add(&other.node, other.content_type);
            }
        }
    }

    /// Notes the content types that no output has.
    pub(super) fn note_others(&mut self) {
        if let Some((node, message)) = std::mem::take(&mut self.others).told() {
            let help = "they are not asked for: an output has the first kind, which is JSON if there is any";
            self.note(&node, message, help);
        }
    }

    fn described_answers(&mut self, operation: &Node<'a>) -> Vec<(StatusRange, Node<'a>)> {
        let mut described = Vec::new();
        for (status, node) in self.map(operation, "responses") {
            if status.starts_with("x-") {
                continue;
            }
            match status_range(status) {
                Some(range) => {
                    let found = self.resolve(&node, "this answer");
                    // What a server of ours says of all operations belongs to none.
                    let found = found.filter(|node| !node.is("x-ops-implied"));
                    described.extend(found.map(|node| (range, node)));
                }
                None => self.warn(&node, format!("`{}` is not a status", short(status)), "this answer was left out"),
            }
        }
        described
    }

    fn error(&mut self, range: StatusRange, node: &Node<'a>, contents: &[Content<'a>]) -> Option<ErrorDefinition> {
        let content = contents.iter().find(|content| content.media != Media::Events);
        // An error of events alone is none that a call gets.
        if content.is_none() && !contents.is_empty() {
            return None;
        }
        let mut error = ErrorDefinition::owned(range.error_code());
        if let StatusRange::Exact(status) = range {
            error.http_status = Some(status);
        }
        error.description = node.text("description").unwrap_or_default().trim().to_owned().into();
        // Without content there is nothing to read.
        error.schema = Schema::from(content.map_or_else(null, |content| self.content_schema(content, Side::Response)));
        Some(error)
    }
}

/// The responses with one status, one for each content type.
fn responses(range: StatusRange, contents: &[Content<'_>]) -> Vec<HttpResponse> {
    let of = |content: &Content<'_>| HttpResponse::owned(range, content.content_type.to_owned());
    let mut responses: Vec<_> = contents.iter().map(of).collect();
    if responses.is_empty() {
        responses.push(HttpResponse::empty(range));
    }
    responses
}

/// A word for a success, which names its alternative of the output.
fn title(range: StatusRange) -> String {
    let word = match range {
        StatusRange::Exact(200) => "Ok",
        StatusRange::Exact(201) => "Created",
        StatusRange::Exact(202) => "Accepted",
        StatusRange::Exact(203) => "NonAuthoritative",
        StatusRange::Exact(204) => "NoContent",
        StatusRange::Exact(205) => "ResetContent",
        StatusRange::Exact(206) => "PartialContent",
        StatusRange::Exact(207) => "MultiStatus",
        StatusRange::Exact(208) => "AlreadyReported",
        StatusRange::Exact(226) => "ImUsed",
        StatusRange::Exact(status) => return format!("Status{status}"),
        StatusRange::Class(_) => "Success",
        StatusRange::Default => "Default",
    };
    word.to_owned()
}

fn status_range(text: &str) -> Option<StatusRange> {
    if text == "default" {
        return Some(StatusRange::Default);
    }
    if let Ok(status @ 100..=599) = text.parse::<u16>() {
        return Some(StatusRange::Exact(status));
    }
    let class = text.strip_suffix("XX").or_else(|| text.strip_suffix("xx"))?;
    match class.parse() {
        Ok(class @ 1..=5) => Some(StatusRange::Class(class)),
        _ => None,
    }
}
