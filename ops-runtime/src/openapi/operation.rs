//! Operations: each method of each path, with its input, output and binding.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::body::{Body, Unbound};
use super::document::Node;
use super::name::{self, Found};
use super::parameter::Parameter;
use super::reader::{Names, Reader, kind};
use super::version::Version;
use crate::media::Media;
use crate::{Binding, HttpBinding, HttpResponse, OperationKind, OperationSpec, Schema, StatusRange, Text};

/// What else a path item has.
const OTHERS: &[&str] = &["$ref", "additionalOperations", "description", "parameters", "servers", "summary"];

const METHODS: &[&str] = &["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// The property of the input that names the content type of the body.
const CONTENT_TYPE: &str = "contentType";

impl<'a> Reader<'a> {
    /// All operations, in the order of the document.
    pub(super) fn operations(&mut self, namespace: &str) -> Vec<OperationSpec> {
        self.define_schemes();
        let found = self.find_operations();
        let mut taken = Names::default();
        let names = name::allot(&found, &mut taken, &mut |node, message, help| self.note(node, message, help));
        let mut specs = Vec::new();
        for (found, name) in found.iter().zip(&names) {
            match self.operation(namespace, name, found, &mut taken) {
                Ok(operations) => specs.extend(operations),
                Err(Unbound { at, message }) => {
                    let operation = format!("{} {}", found.method, found.path);
                    self.warn(
                        &found.operation,
                        format!("`{operation}` was left out"),
                        format!("{message} (at {})", at.pointer),
                    );
                }
            }
        }
        self.note_unused_schemes(&specs);
        specs
    }

    fn find_operations(&mut self) -> Vec<Found<'a>> {
        let mut found = Vec::new();
        let root = self.documents.root();
        for (path, own) in self.map(&root, "paths") {
            if path.starts_with("x-") {
                continue;
            }
            let Some(shared) = self.resolve(&own, &format!("the path `{path}`")) else { continue };
            // What stands beside a `$ref` goes before what it leads to.
            let items = if own.value == shared.value { vec![own] } else { vec![own, shared] };
            let mut methods = BTreeSet::new();
            let mut candidates: Vec<(String, Node<'a>)> = Vec::new();
            for (key, operation) in items.iter().flat_map(Node::members) {
                if let Some(method) = self.method(key) {
                    candidates.push((method, operation));
                } else if key == "additionalOperations" && self.version >= Version::V32 {
                    // Methods by their exact names, which no other key of a path can have.
                    candidates.extend(operation.members().map(|(method, node)| (method.to_owned(), node)));
                } else if !(OTHERS.contains(&key) || key.starts_with("x-")) {
                    self.warn(&operation, format!("`{key}` is not a method"), "it was left out");
                }
            }
            for (method, operation) in candidates {
                if method.is_empty() || !method.bytes().all(is_token) {
                    self.warn(&operation, format!("`{method}` is not a method"), "it was left out");
                } else if !operation.value.is_object() {
                    let message = format!("`{method} {path}` is {}, not an object", kind(operation.value));
                    self.warn(&operation, message, "it was left out");
                } else if methods.insert(method.clone()) {
                    let item = items.iter().find(|item| item.get("parameters").is_some()).or(items.last());
                    found.extend(item.map(|item| Found { path, method, item: item.clone(), operation }));
                } else {
                    self.warn(&operation, format!("`{method} {path}` stands here twice"), "the first was taken");
                }
            }
        }
        self.left_alone(&root);
        found
    }

    /// The method that a key of a path stands for, in upper case.
    fn method(&self, key: &str) -> Option<String> {
        let is_new = self.version >= Version::V32 && key.eq_ignore_ascii_case("query");
        let known = METHODS.iter().any(|known| key.eq_ignore_ascii_case(known));
        (known || is_new).then(|| key.to_ascii_uppercase())
    }

    fn left_alone(&mut self, root: &Node<'a>) {
        if let Some((_, webhook)) = self.map(root, "webhooks").first() {
            self.note(webhook, "webhooks are requests that the API sends", "they were left out");
        }
    }

    fn operation(
        &mut self,
        namespace: &str,
        name: &str,
        found: &Found<'a>,
        taken: &mut Names,
    ) -> Result<Vec<OperationSpec>, Unbound<'a>> {
        let Found { path, method, item, operation } = found;
        // A fragment tells operations with one URL apart and is not sent.
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let path = self.with_braces(item, operation, path);
        let body = self.body(item, operation);
        let answers = self.answers(operation, method);
        if let Some(callbacks) = operation.get("callbacks") {
            self.note(&callbacks, "callbacks are requests that the API sends", "they were left out");
        }
        let mut http = HttpBinding::new("", "");
        let parameters = self.parameters(item, operation, &path);
        let input = Schema::from(self.input(operation, parameters, body, &mut http));
        http.method = Text::Owned(method.clone());
        http.path = path.into();
        self.locate(&[operation, item, &self.documents.root()], &mut http);
        http.security = self.security(operation).into();

        let reads = matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS" | "QUERY");
        let plain = if reads { OperationKind::Query } else { OperationKind::Mutation };
        let both = answers.output.is_some() && answers.item.is_some();
        let mut specs = Vec::new();
        for (kind, output) in [(plain, &answers.output), (OperationKind::Subscription, &answers.item)] {
            let Some(output) = output else { continue };
            let is_stream = kind == OperationKind::Subscription;
            let name = if is_stream && both { taken.allot(&format!("{name}_stream")) } else { name.to_owned() };
            let Ok(mut spec) = OperationSpec::new(kind, namespace, &name) else {
                let message = format!("`{namespace}.{name}` is not the id of an operation");
                return Err(Unbound { at: operation.clone(), message });
            };
            self.describe(&mut spec, found);
            spec.input = input.clone();
            spec.output = Schema::from(output.clone());
            spec.errors = answers.errors.clone().into();
            let mut http = http.clone();
            http.responses =
                if both { one_side(&answers.responses, is_stream) } else { answers.responses.clone() }.into();
            spec.binding = Binding::Http(http);
            specs.push(spec);
        }
        Ok(specs)
    }

    /// The schema of the input, while what it says about the request goes into the binding.
    fn input(
        &mut self,
        operation: &Node<'a>,
        parameters: Vec<Parameter>,
        body: Option<Body>,
        http: &mut HttpBinding,
    ) -> Value {
        let mut properties = Map::new();
        let mut required: Vec<Value> = Vec::new();
        let mut names = Names::default();
        let mut list = Vec::new();
        for parameter in parameters {
            let property = parameter.http.property.clone().into_owned();
            names.take(&property);
            if parameter.required {
                required.push(property.clone().into());
            }
            properties.insert(property, parameter.schema);
            list.push(parameter.http);
        }
        http.parameters = list.into();
        if let Some(mut body) = body {
            let choice = body.choice.take();
            let is_free = names.take("body");
            let property = if is_free { "body".to_owned() } else { names.allot("request_body") };
            if !is_free {
                let help = format!("the request body is `{property}` in the input");
                self.note(operation, "a parameter is called `body`", help);
            }
            for body in &mut body.bodies {
                body.property = Text::Owned(property.clone());
            }
            if body.required {
                required.push(property.clone().into());
            }
            properties.insert(property, body.schema);
            http.bodies = body.bodies.into();
            if let Some(schema) = choice {
                let property =
                    if names.take(CONTENT_TYPE) { CONTENT_TYPE.to_owned() } else { names.allot("body_content_type") };
                properties.insert(property.clone(), schema);
                http.content_type = Some(property.into());
            }
        }
        let mut input =
            Map::from_iter([("type".to_owned(), "object".into()), ("properties".to_owned(), properties.into())]);
        if !required.is_empty() {
            input.insert("required".into(), required.into());
        }
        Value::Object(input)
    }

    fn describe(&self, spec: &mut OperationSpec, found: &Found<'a>) {
        let Found { path, method, item, operation } = found;
        let text = |key: &str| {
            let own = operation.text(key).or_else(|| item.text(key));
            own.map(str::trim).filter(|text| !text.is_empty()).map(|text| Text::Owned(text.to_owned()))
        };
        spec.title = text("summary");
        let description = text("description").or_else(|| spec.title.clone());
        spec.description = description.unwrap_or_else(|| format!("{method} {path}").into());
        let tags = operation.get("tags");
        let tags = tags.iter().flat_map(Node::items).filter_map(|tag| tag.value.as_str());
        spec.tags = tags.map(|tag| Text::Owned(tag.to_owned())).collect::<Vec<_>>().into();
        spec.deprecated = operation.is("deprecated");
        let info = self.documents.root().get("info");
        let version = info.as_ref().and_then(|info| info.value.get("version"));
        let version = version.map(|version| version.as_str().map_or_else(|| version.to_string(), str::to_owned));
        if let Some(version) = version.filter(|version| !version.is_empty()) {
            spec.version = version.into();
        }
    }
}

/// Of the answers of an operation that gives one result or a stream, those of the one or the other, and all errors.
fn one_side(responses: &[HttpResponse], is_stream: bool) -> Vec<HttpResponse> {
    let by_default = !responses.iter().any(|response| response.status.is_success());
    let fits = |response: &&HttpResponse| {
        let succeeds = response.status.is_success() || by_default && response.status == StatusRange::Default;
        let is_items = response.content_type.as_ref().is_some_and(|text| Media::of(text).is_stream());
        !succeeds || is_items == is_stream
    };
    responses.iter().filter(fits).cloned().collect()
}

/// Whether a byte may stand in the name of a method (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
