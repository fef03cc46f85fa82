//! Operations: each method of each path, with its input, output and binding.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::body::Unbound;
use super::document::Node;
use super::media::Media;
use super::name::{self, Found};
use super::reader::{Names, Reader, kind};
use crate::{Binding, HttpBinding, OperationKind, OperationSpec, Schema, StatusRange, Text};

/// What else a path item has.
const OTHERS: &[&str] = &["$ref", "description", "parameters", "servers", "summary"];

const METHODS: &[&str] = &["get", "put", "post", "delete", "options", "head", "patch", "trace"];

impl<'a> Reader<'a> {
    /// All operations, in the order of the document.
    pub(super) fn operations(&mut self, namespace: &str) -> Vec<OperationSpec> {
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
            for (key, operation) in items.iter().flat_map(Node::members) {
                let Some(method) = METHODS.iter().find(|known| key.eq_ignore_ascii_case(known)) else {
                    if !(OTHERS.contains(&key) || key.starts_with("x-")) {
                        self.warn(&operation, format!("`{key}` is not a method"), "it was left out");
                    }
                    continue;
                };
                let method = method.to_ascii_uppercase();
                if !operation.value.is_object() {
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
        if let Some((_, webhook)) = self.map(&root, "webhooks").first() {
            self.note(webhook, "webhooks are requests that the API sends", "they were left out");
        }
        found
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
        let url_path = path.split('#').next().unwrap_or_default();
        let url_path = if url_path.starts_with('/') { url_path.to_owned() } else { format!("/{url_path}") };
        let body = self.body(operation)?;
        let answers = self.answers(operation, method)?;
        if let Some(callbacks) = operation.get("callbacks") {
            self.note(&callbacks, "callbacks are requests that the API sends", "they were left out");
        }
        let parameters = self.parameters(item, operation, &url_path);

        let mut properties = Map::new();
        let mut required = Vec::new();
        let mut http = HttpBinding::new("", "");
        let mut list = Vec::new();
        for parameter in parameters {
            let property = parameter.http.property.clone().into_owned();
            if parameter.required {
                required.push(Value::String(property.clone()));
            }
            properties.insert(property, parameter.schema);
            list.push(parameter.http);
        }
        http.parameters = list.into();
        if let Some(mut body) = body {
            let mut others = Names::default();
            properties.keys().for_each(|name| _ = others.take(name));
            let is_free = others.take("body");
            let property = if is_free { "body".to_owned() } else { others.allot("request_body") };
            if !is_free {
                self.note(
                    operation,
                    "a parameter is called `body`",
                    format!("the request body is `{property}` in the input"),
                );
            }
            for body in &mut body.bodies {
                body.property = Text::Owned(property.clone());
            }
            if body.required {
                required.push(Value::String(property.clone()));
            }
            properties.insert(property, body.schema);
            http.bodies = body.bodies.into();
        }
        let mut input = json!({ "type": "object", "properties": properties });
        if let (Some(input), false) = (input.as_object_mut(), required.is_empty()) {
            input.insert("required".into(), Value::Array(required));
        }
        http.method = Text::Owned(method.clone());
        http.path = url_path.into();
        http.server = self.server(&[operation, item, &self.documents.root()]).map(Text::Owned);

        let reads = matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS");
        let plain = if reads { OperationKind::Query } else { OperationKind::Mutation };
        let streams = answers.output.is_some() && answers.item.is_some();
        let mut specs = Vec::new();
        for (kind, output) in [(plain, answers.output), (OperationKind::Subscription, answers.item)] {
            let Some(output) = output else { continue };
            let is_stream = kind == OperationKind::Subscription;
            let name = if is_stream && streams { taken.allot(&format!("{name}_stream")) } else { name.to_owned() };
            let mut http = http.clone();
            // Of the two, each asks for its own type.
            let is_events = |content_type: &Option<Text>| {
                content_type.as_ref().is_some_and(|text| Media::of(text) == Media::Events)
            };
            let responses = answers.responses.iter().filter(|response| {
                !streams
                    || !response.status.is_success() && response.status != StatusRange::Default
                    || is_events(&response.content_type) == is_stream
            });
            http.responses = responses.cloned().collect::<Vec<_>>().into();
            let Ok(mut spec) = OperationSpec::new(kind, namespace, &name) else {
                let message = format!("`{namespace}.{name}` is not the id of an operation");
                return Err(Unbound { at: operation.clone(), message });
            };
            self.describe(&mut spec, found);
            spec.input = Schema::from(input.clone());
            spec.output = Schema::from(output);
            spec.errors = answers.errors.clone().into();
            spec.binding = Binding::Http(http);
            specs.push(spec);
        }
        Ok(specs)
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

    /// The URL of the first server of the first place that has one.
    fn server(&self, places: &[&Node<'a>]) -> Option<String> {
        let server = places.iter().find_map(|place| place.get("servers")?.items().next())?;
        let mut url = server.text("url")?.to_owned();
        for (name, variable) in server.get("variables").iter().flat_map(Node::members) {
            let default = variable.value.get("default");
            let default = default.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            url = url.replace(&format!("{{{name}}}"), &default.unwrap_or_default());
        }
        Some(url)
    }
}
