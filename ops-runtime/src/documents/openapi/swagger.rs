//! Swagger 2.0: what it says in other places or with other keywords than OpenAPI 3.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::body::{Body, bytes};
use super::document::Node;
use super::media::{Content, MAX_CONTENTS, sort};
use super::reader::Reader;
use super::short::short;
use crate::model::media::Media;
use crate::{HttpField, HttpParameter, ParameterLocation, ParameterStyle};

/// The members of a parameter that describe its value; the others describe the parameter.
const OF_VALUES: &[&str] = &[
    "default",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "multipleOf",
    "pattern",
    "type",
    "uniqueItems",
];

/// The content type of a form if the document names none.
const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";

impl<'a> Reader<'a> {
    /// True if a parameter belongs to the body.
    pub(super) fn is_of_body(&self, node: &Node<'a>) -> bool {
        self.version == super::version::Version::V20 && matches!(node.text("in"), Some("body" | "formData"))
    }

    /// The body that the parameters in `body` and `formData` make.
    pub(super) fn swagger_body(&mut self, items: &[Node<'a>], operation: &Node<'a>) -> Option<Body> {
        let mut fields: Vec<Option<Node<'a>>> = Vec::new();
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut whole = None;
        let places = items.iter().rev().chain([operation]);
        for node in places.flat_map(|place| self.list(place, "parameters")).collect::<Vec<_>>() {
            // A reference to nowhere is reported with the other parameters.
            let Ok(node) = self.documents.resolve(node) else { continue };
            match node.text("in") {
                // An operation's own parameter replaces its path's.
                Some("body") => whole = Some(node),
                Some("formData") => {
                    let Some(name) = node.text("name").filter(|name| !name.is_empty()) else {
                        self.warn(&node, "a parameter without `name`", "it was left out");
                        continue;
                    };
                    if let Some(same) = known.insert(name, fields.len()).and_then(|at| fields.get_mut(at)) {
                        *same = None;
                    }
                    fields.push(Some(node));
                }
                _ => {}
            }
        }
        if let Some(node) = whole {
            if let Some(field) = fields.iter().flatten().next() {
                self.warn(field, "a field of a form stands beside a body", "it was left out");
            }
            let contents = self.swagger_contents(operation, &node, "consumes");
            return Some(self.body_of(&node, &contents));
        }
        let fields: Vec<Node<'a>> = fields.into_iter().flatten().collect();
        let first = fields.first().cloned()?;
        Some(self.form(operation, &first, &fields))
    }

    /// The body that fields of a form make.
    fn form(&mut self, operation: &Node<'a>, first: &Node<'a>, nodes: &[Node<'a>]) -> Body {
        let mut properties = Map::new();
        let (mut required, mut fields) = (Vec::new(), Vec::new());
        for node in nodes {
            let name = node.text("name").unwrap_or_default();
            if node.is("required") {
                required.push(Value::from(name));
            }
            let schema = super::parameter::described(self.swagger_value(node), node);
            properties.insert(name.to_owned(), schema);
            if node.get("collectionFormat").is_some() || node.text("type") == Some("array") {
                let written = self.swagger_written(name, node, ParameterLocation::Query);
                fields.push(HttpField::owned(written.name).with_style(written.style, written.explode));
            }
        }
        let has_files = nodes.iter().any(|node| node.text("type") == Some("file"));
        let mut contents = self.swagger_contents(operation, first, "consumes");
        contents.retain(|content| match content.media {
            Media::Multipart => true,
            Media::Form => !has_files,
            _ => false,
        });
        if contents.is_empty() {
            let content_type = if has_files { MULTIPART } else { FORM };
            contents.push(Content { content_type, media: Media::of(content_type), node: first.clone() });
        }
        // All content types share one schema: they are read without one, and get it afterwards.
        let mut body = self.body_of(operation, &contents);
        let is_required = !required.is_empty();
        let mut schema =
            Map::from_iter([("type".to_owned(), "object".into()), ("properties".to_owned(), properties.into())]);
        if is_required {
            schema.insert("required".into(), required.into());
        }
        body.schema = Value::Object(schema);
        body.schemas.fill(body.schema.clone());
        body.required = is_required;
        for body in &mut body.bodies {
            body.fields = fields.clone().into();
            body.variant = None;
        }
        body
    }

    /// True if the node has a member of OpenAPI 3. It is read with its meaning there, unless a member of 2.0 says the same.
    pub(super) fn has_newer(&mut self, node: &Node<'a>, key: &str) -> bool {
        let Some(found) = node.get(key) else { return false };
        self.note(&found, format!("`{key}` is of OpenAPI 3"), "it was read as it is meant there");
        true
    }

    /// The content types that `consumes` or `produces` lists, each with what the node says about the body.
    pub(super) fn swagger_contents(&mut self, operation: &Node<'a>, node: &Node<'a>, key: &str) -> Vec<Content<'a>> {
        let is_answer = key == "produces";
        if is_answer && node.get("schema").is_none() {
            return if self.has_newer(node, "content") { self.contents(node) } else { Vec::new() };
        }
        let root = self.documents.root();
        let place = if operation.get(key).is_some() { operation } else { &root };
        let mut listed: Vec<&str> = Vec::new();
        for node in self.list(place, key) {
            match node.value.as_str() {
                Some(name) if name.contains('/') => listed.push(name),
                _ => {
                    let message = format!("`{}` is not a content type", short(node.value.as_str().unwrap_or_default()));
                    self.warn(&node, message, "it was left out");
                }
            }
        }
        if listed.len() > MAX_CONTENTS {
            self.warn(place, format!("more than {MAX_CONTENTS} content types"), "the others were left out");
        }
        let schema = node.get("schema").and_then(|schema| self.documents.resolve(schema).ok());
        let is_file = schema.is_some_and(|schema| schema.text("type") == Some("file"));
        let mut contents = Vec::new();
        for content_type in listed.into_iter().take(MAX_CONTENTS) {
            contents.push(Content { content_type, media: Media::of(content_type), node: node.clone() });
        }
        if is_file {
            // Those are of what else the operation answers, such as errors.
            contents.retain(|content| content.media != Media::Json);
        }
        if contents.is_empty() {
            let content_type = if is_file { "application/octet-stream" } else { "application/json" };
            contents.push(Content { content_type, media: Media::of(content_type), node: node.clone() });
        }
        sort(&mut contents);
        contents
    }

    /// The schema of the value that a parameter describes itself.
    pub(super) fn swagger_value(&mut self, node: &Node<'a>) -> Value {
        if node.text("type") == Some("file") {
            return bytes();
        }
        let mut out = Map::new();
        for key in OF_VALUES {
            self.keyword(node, key, 1, &mut out);
        }
        // In 2.0, only a body is an object.
        for key in ["properties", "additionalProperties"] {
            if self.has_newer(node, key) {
                self.keyword(node, key, 1, &mut out);
            }
        }
        // It is always sent as text.
        out.entry("type").or_insert_with(|| json!("string"));
        self.enumeration(node, &mut out);
        super::null::swagger_nullable(node, out)
    }

    /// How a value is written, by its `collectionFormat`.
    pub(super) fn swagger_written(
        &mut self,
        name: &str,
        node: &Node<'a>,
        location: ParameterLocation,
    ) -> HttpParameter {
        let in_query = location == ParameterLocation::Query;
        let simple = if in_query { ParameterStyle::Form } else { ParameterStyle::Simple };
        let (style, explode) = match node.text("collectionFormat") {
            None | Some("csv") => (simple, false),
            Some("multi") if in_query => (ParameterStyle::Form, true),
            Some("ssv") if in_query => (ParameterStyle::SpaceDelimited, false),
            Some("pipes") if in_query => (ParameterStyle::PipeDelimited, false),
            Some(other) => {
                self.warn(
                    node,
                    format!("`{}` is not a way to write such a list", short(other)),
                    "its items are joined by commas",
                );
                (simple, false)
            }
        };
        if node.get("items").is_some_and(|items| items.text("type") == Some("array")) {
            let message = "a list of lists has no way of its own to be written";
            self.warn(node, message, "each list inside is written as JSON");
        }
        // A value that is no list is the same exploded or not, so it is written in the default way.
        let is_list = node.text("type") == Some("array");
        HttpParameter::owned(location, name.to_owned()).with_style(style, explode || in_query && !is_list)
    }

    /// The URL that `schemes`, `host` and `basePath` make.
    pub(super) fn swagger_server(&mut self, operation: &Node<'a>, root: &Node<'a>) -> Option<String> {
        let base = root.text("basePath").map(str::trim).unwrap_or_default();
        let base = if base.is_empty() || base.starts_with('/') { base.to_owned() } else { format!("/{base}") };
        let Some(host) = root.text("host").map(str::trim).filter(|host| !host.is_empty()) else {
            return Some(base).filter(|base| !base.is_empty());
        };
        if host.contains("://") {
            self.note(root, format!("the host `{}` is a URL", short(host)), "it was taken as it is");
            return Some(format!("{}{base}", host.trim_end_matches('/')));
        }
        let place = if operation.get("schemes").is_some() { operation } else { root };
        let schemes: Vec<&str> =
            self.list(place, "schemes").iter().filter_map(|scheme| scheme.value.as_str()).collect();
        let plain = match schemes.as_slice() {
            // Without any, it is the scheme by which the document came.
            [] => self.location().is_some_and(|location| location.starts_with("http://")),
            // If both are there, `https`, which protects credentials.
            schemes => schemes.contains(&"http") && !schemes.contains(&"https"),
        };
        Some(format!("{}://{host}{base}", if plain { "http" } else { "https" }))
    }
}
