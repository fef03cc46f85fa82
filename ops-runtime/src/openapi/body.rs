//! Request bodies and answers: what they hold, and which content types they can have.

use serde_json::{Value, json};

use super::document::Node;
use super::media::{Content, Media, Side, contents, supported};
use super::parameter::described;
use super::reader::Reader;
use crate::{ErrorDefinition, HttpBody, HttpResponse, Schema, StatusRange};

/// A request body.
pub(super) struct Body {
    pub(super) bodies: Vec<HttpBody>,
    pub(super) schema: Value,
    pub(super) required: bool,
}

/// The answers of an operation.
#[derive(Default)]
pub(super) struct Answers {
    /// What the operation gives; none if it only streams.
    pub(super) output: Option<Value>,
    /// What one event of its stream holds; none if it does not stream.
    pub(super) item: Option<Value>,
    pub(super) responses: Vec<HttpResponse>,
    pub(super) errors: Vec<ErrorDefinition>,
}

/// Why an operation cannot be bound, and where that stands.
pub(super) struct Unbound<'a> {
    pub(super) at: Node<'a>,
    pub(super) message: String,
}

impl<'a> Reader<'a> {
    /// The request body of an operation, if it has one.
    pub(super) fn body(&mut self, operation: &Node<'a>) -> Result<Option<Body>, Unbound<'a>> {
        let Some(node) = operation.get("requestBody") else { return Ok(None) };
        let Some(node) = self.resolve(&node, "the request body") else { return Ok(None) };
        let contents = contents(&node);
        let Some(preferred) = contents.iter().find(|content| supported(content.media)) else {
            if contents.is_empty() {
                self.warn(&node, "a request body without content", "it was left out");
                return Ok(None);
            }
            return Err(Unbound { message: format!("a request body cannot be sent as {}", list(&contents)), at: node });
        };
        let schema = described(self.content_schema(preferred, Side::Request), &node);
        let mut bodies = Vec::new();
        for content in &contents {
            let mut body = HttpBody::new("");
            body.content_type = content.content_type.to_owned().into();
            if content.media == Media::Form {
                body.fields = self.fields(&content.node).into();
            }
            bodies.push(body);
        }
        Ok(Some(Body { bodies, schema, required: node.is("required") }))
    }

    /// What the operation answers.
    pub(super) fn answers(&mut self, operation: &Node<'a>, method: &str) -> Answers {
        let described = self.described_answers(operation);
        // Where no success is described, `default` describes it.
        let by_default = !described.iter().any(|(range, _)| range.is_success());
        let succeeds = |range: StatusRange| range.is_success() || by_default && range == StatusRange::Default;
        let mut answers = Answers::default();
        let (mut outputs, mut items) = (Vec::new(), Vec::new());
        for (range, node) in &described {
            // Whatever the document says, there is no body in the answer to a HEAD.
            let contents = if method == "HEAD" { Vec::new() } else { contents(node) };
            answers.responses.extend(responses(*range, &contents));
            if !succeeds(*range) {
                answers.errors.extend(self.error(*range, node, &contents));
                continue;
            }
            if contents.is_empty() {
                push_new(&mut outputs, null());
            }
            if let Some(events) = contents.iter().find(|content| content.media == Media::Events) {
                push_new(&mut items, self.content_schema(events, Side::Response));
            }
            if let Some(content) = contents.iter().find(|content| content.media != Media::Events) {
                push_new(&mut outputs, self.content_schema(content, Side::Response));
            }
        }
        if outputs.is_empty() && items.is_empty() {
            self.note(operation, "no successful answer is described", "any is accepted");
            outputs.push(Value::Bool(true));
        }
        // An answer without content beside a stream is the end of that stream.
        if !items.is_empty() && outputs.iter().all(|output| *output == null()) {
            outputs.clear();
        }
        answers.output = any_of(outputs);
        answers.item = any_of(items);
        answers
    }

    fn described_answers(&mut self, operation: &Node<'a>) -> Vec<(StatusRange, Node<'a>)> {
        let mut described = Vec::new();
        for (status, node) in self.map(operation, "responses") {
            if status.starts_with("x-") {
                continue;
            }
            match status_range(status) {
                Some(range) => described.extend(self.resolve(&node, "this answer").map(|node| (range, node))),
                None => self.warn(&node, format!("`{status}` is not a status"), "this answer was left out"),
            }
        }
        described
    }

    /// The schema of a body of some content type.
    fn content_schema(&mut self, content: &Content<'a>, side: Side) -> Value {
        match (content.media, side) {
            (Media::Json, _) | (Media::Form, Side::Request) => {
                content.node.get("schema").map_or(Value::Bool(true), |node| self.schema(&node))
            }
            (Media::Events, _) => {
                let node = content.node.get("itemSchema").or_else(|| content.node.get("schema"));
                node.map_or(Value::Bool(true), |node| self.schema(&node))
            }
            (Media::Text | Media::Form, _) => json!({ "type": "string" }),
            (Media::Bytes | Media::Other, _) => json!({ "type": "string", "format": "binary" }),
        }
    }

    fn error(&mut self, range: StatusRange, node: &Node<'a>, contents: &[Content<'a>]) -> Option<ErrorDefinition> {
        let content = contents.iter().find(|content| content.media != Media::Events)?;
        content.node.get("schema")?;
        let (code, status) = match range {
            StatusRange::Exact(status) => (format!("HTTP_{status}"), Some(status)),
            StatusRange::Class(class) => (format!("HTTP_{class}XX"), None),
            StatusRange::Default => ("HTTP_ERROR".to_owned(), None),
        };
        let mut error = ErrorDefinition::new("");
        error.code = code.into();
        error.http_status = status;
        error.description = node.text("description").unwrap_or_default().trim().to_owned().into();
        error.schema = Schema::from(self.content_schema(content, Side::Response));
        Some(error)
    }
}

/// The answers with one status, one for each content type.
fn responses(range: StatusRange, contents: &[Content<'_>]) -> Vec<HttpResponse> {
    let mut responses = Vec::new();
    for content in contents {
        let mut response = HttpResponse::empty(range);
        response.content_type = Some(content.content_type.to_owned().into());
        responses.push(response);
    }
    if responses.is_empty() {
        responses.push(HttpResponse::empty(range));
    }
    responses
}

fn null() -> Value {
    json!({ "type": "null" })
}

fn push_new(schemas: &mut Vec<Value>, schema: Value) {
    if !schemas.contains(&schema) {
        schemas.push(schema);
    }
}

/// The schema that accepts what any of these accepts; none of none.
fn any_of(mut schemas: Vec<Value>) -> Option<Value> {
    match schemas.len() {
        0 | 1 => schemas.pop(),
        _ => Some(json!({ "anyOf": schemas })),
    }
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

fn list(contents: &[Content<'_>]) -> String {
    let names: Vec<String> = contents.iter().map(|content| format!("`{}`", content.content_type)).collect();
    names.join(", ")
}
