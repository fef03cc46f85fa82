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
        let Some(preferred) = contents.iter().find(|content| supported(content.media, Side::Request)) else {
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
    pub(super) fn answers(&mut self, operation: &Node<'a>, method: &str) -> Result<Answers, Unbound<'a>> {
        let mut answers = Answers::default();
        let mut described: Vec<(StatusRange, Node<'a>)> = Vec::new();
        for (status, node) in self.map(operation, "responses") {
            if status.starts_with("x-") {
                continue;
            }
            let Some(range) = status_range(status) else {
                self.warn(&node, format!("`{status}` is not a status"), "this answer was left out");
                continue;
            };
            if let Some(node) = self.resolve(&node, "this answer") {
                described.push((range, node));
            }
        }
        // Where no success is described, `default` describes it.
        let is_success = |range: StatusRange| range.is_success();
        let by_default = !described.iter().any(|(range, _)| is_success(*range));
        let mut outputs: Vec<Value> = Vec::new();
        let mut items: Vec<Value> = Vec::new();
        let mut unreadable = None;
        for (range, node) in &described {
            let contents = contents(node);
            if contents.is_empty() || method == "HEAD" {
                answers.responses.push(HttpResponse::empty(*range));
            } else {
                for content in &contents {
                    let mut response = HttpResponse::new(*range, "");
                    response.content_type = Some(content.content_type.to_owned().into());
                    answers.responses.push(response);
                }
            }
            if !(is_success(*range) || by_default && *range == StatusRange::Default) {
                if let Some(error) = self.error(*range, node, &contents) {
                    answers.errors.push(error);
                }
                continue;
            }
            if contents.is_empty() || method == "HEAD" {
                push_new(&mut outputs, json!({ "type": "null" }));
                continue;
            }
            if let Some(events) = contents.iter().find(|content| content.media == Media::Events) {
                let item = self.content_schema(events, Side::Response);
                push_new(&mut items, item);
            }
            let plain = contents.iter().find(|c| c.media != Media::Events && supported(c.media, Side::Response));
            match plain {
                Some(content) => {
                    let output = self.content_schema(content, Side::Response);
                    push_new(&mut outputs, output);
                }
                None if contents.iter().all(|content| content.media == Media::Events) => {}
                None => {
                    let message = format!("an answer cannot be read as {}", list(&contents));
                    unreadable = Some(Unbound { message, at: node.clone() });
                }
            }
        }
        if outputs.is_empty() && items.is_empty() {
            if let Some(unbound) = unreadable {
                return Err(unbound);
            }
            self.note(operation, "no successful answer is described", "any is accepted");
            outputs.push(Value::Bool(true));
        } else if let Some(unbound) = unreadable {
            self.warn(&unbound.at, unbound.message, "this answer was left out");
        }
        // An answer without content beside a stream is the end of that stream.
        if !items.is_empty() && outputs.iter().all(|output| *output == json!({ "type": "null" })) {
            outputs.clear();
        }
        answers.output = any_of(outputs);
        answers.item = any_of(items);
        Ok(answers)
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
