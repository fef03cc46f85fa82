//! Operations: each method of each path, with its input, output and binding.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::body::{Body, Unbound};
use super::document::Node;
use super::name::{self, Found};
use super::parameter::Parameter;
use super::reader::{Names, Reader, Streaming};
use super::short::short;
use super::text::kind;
use super::version::Version;
use crate::model::binding::is_token;
use crate::model::cut;
use crate::model::diagnostic::MOST_POINTER;
use crate::model::media::Media;
use crate::model::spec::reads;
use crate::{Binding, HttpBinding, HttpResponse, OperationKind, OperationSpec, Schema, StatusRange, Text};

/// The other members of a path item.
const OTHERS: &[&str] = &["$ref", "description", "parameters", "servers", "summary"];

const METHODS: &[&str] = &["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// How many bytes of the document's version are kept; all operations repeat it.
const LONGEST_VERSION: usize = 200;

/// How many operations there may be that belong to several paths, each counted for each path but its first.
const MAX_REPEATED: usize = 10_000;

/// The property of the input that names the content type of the body.
const CONTENT_TYPE: &str = "contentType";

impl<'a> Reader<'a> {
    /// All operations, in the order of the document.
    pub(super) fn operations(&mut self, namespace: &str) -> Vec<OperationSpec> {
        self.define_schemes();
        let found = self.find_operations();
        let mut taken = Names::default();
        let names = name::allot(&found, &mut taken, &mut |severity, node, message, help| {
            self.told.tell(node, severity, message, help);
        });
        let mut specs = Vec::new();
        let mut seen = HashSet::new();
        let mut left_out = 0_usize;
        for (found, name) in found.iter().zip(&names) {
            // If several paths share an operation, its second copy is shared with the first.
            let is_new = seen.insert(found.operation.key());
            self.copies.operation = Some(if is_new { found.operation.key() } else { 0 });
            if self.copies.specs == 0 {
                left_out += 1;
                continue;
            }
            match self.operation(namespace, name, found, &mut taken) {
                Ok((operations, schemas)) => {
                    let bytes = operations.iter().map(size).sum::<usize>();
                    let Some(room) = self.copies.specs.checked_sub(bytes) else {
                        self.copies.specs = 0;
                        left_out += 1;
                        continue;
                    };
                    self.copies.specs = room;
                    if operations.iter().any(|spec| spec.kind == OperationKind::Subscription) {
                        let range = specs.len()..specs.len() + operations.len();
                        self.streams.push(Streaming { operation: found.operation.clone(), specs: range, schemas });
                    }
                    specs.extend(operations);
                }
                Err(Unbound { at, message }) => {
                    let operation = format!("{} {}", short(&found.method), short(found.path));
                    self.warn(
                        &found.operation,
                        format!("`{operation}` was left out"),
                        format!("{message} (at {})", at.path.short(MOST_POINTER)),
                    );
                }
            }
        }
        self.copies.operation = None;
        if left_out > 0 {
            let message = format!("{left_out} operations were left out");
            let help = "what operations share makes them too large: give large parts a name in `components/schemas`";
            self.warn(&self.documents.root(), message, help);
        }
        self.note_unused_schemes(&specs);
        self.note_others();
        specs
    }

    fn find_operations(&mut self) -> Vec<Found<'a>> {
        let mut found = Vec::new();
        let mut with_fragment: Vec<Node<'a>> = Vec::new();
        let (mut seen, mut repeated) = (HashSet::new(), 0_usize);
        let root = self.documents.root();
        for (path, own) in self.map(&root, "paths") {
            if path.starts_with("x-") {
                continue;
            }
            let what = format!("the path `{}`", short(path));
            let Some((items, shared)) = self.path_item(&own, &what) else { continue };
            if !path.starts_with('/') {
                self.note(&own, format!("{what} does not begin with `/`"), "one was put before it");
            }
            if !seen.insert(shared) && repeated > MAX_REPEATED {
                let message = format!("paths share more than {MAX_REPEATED} operations");
                self.warn(&root, message, "the others were left out");
                continue;
            }
            if path.contains('#') {
                with_fragment.push(own.clone());
            }
            for (method, operation) in self.requests(&items, path) {
                repeated += usize::from(!seen.insert(operation.key()));
                found.push(Found { path, method, items: items.clone(), operation });
            }
        }
        if let Some(first) = with_fragment.first() {
            let message = format!("{} paths have a fragment", with_fragment.len());
            let message = if with_fragment.len() == 1 { "the path has a fragment".to_owned() } else { message };
            self.note(first, message, "it tells operations with one URL apart and is not sent");
        }
        found
    }

    /// A path item with what it refers to, and the key of the last of these. What stands first counts: members beside a
    /// `$ref` go before those of its target.
    pub(super) fn path_item(&mut self, own: &Node<'a>, what: &str) -> Option<(Vec<Node<'a>>, usize)> {
        // Tells of what is wrong with it.
        let last = self.resolve(own, what)?;
        let items = self.documents.chain(own.clone()).unwrap_or_else(|_| vec![last.clone()]);
        Some((items, last.key()))
    }

    /// The requests that a path item describes, by method.
    pub(super) fn requests(&mut self, items: &[Node<'a>], path: &str) -> Vec<(String, Node<'a>)> {
        let mut methods = BTreeSet::new();
        let mut candidates: Vec<(String, Node<'a>)> = Vec::new();
        for (key, operation) in items.iter().flat_map(Node::members) {
            if let Some(method) = self.method(key) {
                candidates.push((method, operation));
            } else if key == "additionalOperations" && self.version >= Version::V32 {
                // Methods by their exact names, which no other key of a path can have.
                for (method, node) in operation.members() {
                    if let Some(other) = self.method(method).filter(|other| other != method) {
                        let message = format!("`{}` is not the method `{other}`", short(method));
                        self.warn(&node, message, "it is sent as it is written");
                    }
                    candidates.push((method.to_owned(), node));
                }
            } else if !(OTHERS.contains(&key) || key.starts_with("x-")) {
                self.warn(&operation, format!("`{}` is not a method", short(key)), "it was left out");
            }
        }
        let mut found = Vec::new();
        for (method, operation) in candidates {
            let name = || format!("`{} {}`", short(&method), short(path));
            if !is_token(&method) {
                self.warn(&operation, format!("`{}` is not a method", short(&method)), "it was left out");
            } else if !operation.value.is_object() {
                let message = format!("{} is {}, not an object", name(), kind(operation.value));
                self.warn(&operation, message, "it was left out");
            } else if operation.is("x-ops-implied") {
                // A server of ours says a second way to call an operation that is there.
            } else if methods.insert(method.clone()) {
                found.push((method, operation));
            } else {
                self.warn(&operation, format!("{} stands here twice", name()), "the first was taken");
            }
        }
        found
    }

    /// The method that a key of a path stands for, in upper case.
    fn method(&self, key: &str) -> Option<String> {
        let is_new = self.version >= Version::V32 && key.eq_ignore_ascii_case("query");
        let known = METHODS.iter().any(|known| key.eq_ignore_ascii_case(known));
        (known || is_new).then(|| key.to_ascii_uppercase())
    }

    /// The operations of one method of one path, and the schemas of their bodies.
    fn operation(
        &mut self,
        namespace: &str,
        name: &str,
        found: &Found<'a>,
        taken: &mut Names,
    ) -> Result<(Vec<OperationSpec>, Vec<Value>), Unbound<'a>> {
        let Found { path, method, items, operation } = found;
        // A fragment tells operations with one URL apart and is not sent.
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let path = self.with_braces(items, operation, path);
        let body = self.body(items, operation);
        let answers = self.answers(operation, method);
        if operation.get("callbacks").is_some() {
            self.callbacks.push((name.to_owned(), operation.clone()));
        }
        let schemas = body.as_ref().map(|body| body.schemas.clone()).unwrap_or_default();
        let parameters = self.parameters(items, operation, &path);
        let mut http = HttpBinding::owned(method.clone(), path);
        let input = Schema::from(self.input(operation, parameters, body, &mut http));
        let root = self.documents.root();
        let places: Vec<&Node<'a>> = [operation].into_iter().chain(items).chain([&root]).collect();
        self.locate(&places, &mut http);
        http.security = self.security(operation).into();

        let by_method = if reads(method) { OperationKind::Query } else { OperationKind::Mutation };
        let plain = match operation.text("x-ops-kind") {
            Some("query") => OperationKind::Query,
            Some("mutation") => OperationKind::Mutation,
            _ => by_method,
        };
        // The documents of our servers say in `x-ops-changes` if a stream may change something.
        let changes = operation.value.get("x-ops-changes").and_then(Value::as_bool);
        let changes = changes.unwrap_or(plain == OperationKind::Mutation);
        let both = answers.output.is_some() && answers.item.is_some();
        let mut specs = Vec::new();
        for (kind, output) in [(plain, &answers.output), (OperationKind::Subscription, &answers.item)] {
            let Some(output) = output else { continue };
            let is_stream = kind == OperationKind::Subscription;
            let name = if is_stream && both { taken.allot(&format!("{name}_stream")) } else { name.to_owned() };
            let Ok(mut spec) = OperationSpec::new(kind, namespace, &name) else {
                let message = format!("`{namespace}.{}` is not the id of an operation", short(&name));
                return Err(Unbound { at: operation.clone(), message });
            };
            self.describe(&mut spec, found);
            // Set only if the method says otherwise.
            spec.changes = Some(changes).filter(|changes| is_stream && *changes == reads(method));
            spec.input = input.clone();
            spec.output = Schema::from(output.clone());
            spec.errors = answers.errors.clone().into();
            let mut http = http.clone();
            http.responses =
                if both { one_side(&answers.responses, is_stream) } else { answers.responses.clone() }.into();
            spec.binding = Binding::Http(http);
            specs.push(spec);
        }
        Ok((specs, schemas))
    }

    /// The schema of the input; how it is sent goes into the binding.
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

    pub(super) fn describe(&self, spec: &mut OperationSpec, found: &Found<'a>) {
        let Found { path, method, items, operation } = found;
        let text = |key: &str| {
            let own = operation.text(key).or_else(|| items.iter().find_map(|item| item.text(key)));
            own.map(str::trim).filter(|text| !text.is_empty()).map(|text| Text::Owned(text.to_owned()))
        };
        spec.title = text("summary");
        let description = text("description").or_else(|| spec.title.clone());
        spec.description = description.unwrap_or_else(|| format!("{method} {path}").into());
        let tags = operation.get("tags");
        let tags = tags.iter().flat_map(Node::items).filter_map(|tag| tag.value.as_str());
        spec.tags = tags.collect();
        spec.deprecated = operation.is("deprecated");
        let info = self.documents.root().get("info");
        let version = info.as_ref().and_then(|info| info.value.get("version"));
        let version = version.map(|version| version.as_str().map_or_else(|| version.to_string(), str::to_owned));
        if let Some(version) = version.filter(|version| !version.is_empty()) {
            spec.version = cut::start(&version, LONGEST_VERSION).to_owned().into();
        }
    }
}

/// How many bytes a spec has as JSON.
pub(super) fn size(spec: &OperationSpec) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // An error of writing is left to the final writer.
    let _ = serde_json::to_writer(&mut count, spec);
    count.0
}

/// Of the responses of an operation with a result and a stream: those of the result or of the stream, and all errors.
fn one_side(responses: &[HttpResponse], is_stream: bool) -> Vec<HttpResponse> {
    let by_default = !responses.iter().any(|response| response.status.is_success());
    let fits = |response: &&HttpResponse| {
        let succeeds = response.status.is_success() || by_default && response.status == StatusRange::Default;
        let is_items = response.content_type.as_ref().is_some_and(|text| Media::of(text).is_stream());
        !succeeds || is_items == is_stream
    };
    responses.iter().filter(fits).cloned().collect()
}
