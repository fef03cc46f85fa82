//! The OpenAPI document of a server, for other tools and for our own generator.
//!
//! It is made from the specs and bindings by which the server works, so the two cannot differ. It is the inverse of our
//! own reader of documents.

mod closure;
mod components;
mod request;
mod response;
mod security;
mod switch;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use self::components::Components;
use self::request::Input;
use self::response::{FAILURE, Given, IMPLIED};
pub(super) use self::security::Security;
pub(super) use self::texts::{Texts, Written};
use crate::model::spec::reads;
use crate::run::registry::Entry;
use crate::serve::problem::PROBLEM;
use crate::serve::read;
use crate::{HttpBinding, HttpBody, OperationKind, OperationSpec, Text};

/// Characters of a name that are escaped in a path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The member that says if a stream may change something, if the HTTP method would tell otherwise.
const CHANGES: &str = "x-ops-changes";

/// The method that a path has a member of its own for since OpenAPI 3.2.
const QUERY: &str = "QUERY";

/// The description of the server as a whole.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    pub(super) title: Option<String>,
    pub(super) version: Option<String>,
    pub(super) description: Option<String>,
    /// True if the page that shows the document is served.
    #[cfg(feature = "docs-page")]
    pub(super) has_page: bool,
}

/// The document of these operations, without the servers.
///
/// Contested operations have the path of a call by id.
pub(super) fn document(entries: &[Arc<Entry>], contested: &BTreeSet<Text>, about: &About, security: Security) -> Value {
    let (names, taken) = names(entries);
    let foreign = entries.iter().filter(|entry| entry.is_foreign()).map(|entry| &*entry.spec.id).collect();
    let mut writer = Writer {
        contested,
        foreign,
        components: Components::default(),
        security,
        names,
        taken,
        paths: Map::new(),
        problem: String::new(),
        needs_32: false,
    };
    // The server's own schema is renamed if another has its name.
    let is_taken = entries.iter().any(|entry| entry.spec.definitions.get("Problem").is_some());
    writer.problem = writer.components.add(if is_taken { "ServerProblem" } else { "Problem" }, problem());
    operations(entries, contested).iter().for_each(|given| writer.operation(given));
    writer.finish(entries, about)
}

/// The operations at one method and path: one with a result and one with a stream may share them.
fn operations<'e>(entries: &'e [Arc<Entry>], contested: &BTreeSet<Text>) -> Vec<Given<'e>> {
    let mut all: Vec<Given<'_>> = Vec::new();
    let mut by_place: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for spec in entries.iter().map(|entry| &*entry.spec) {
        let is_stream = spec.kind == OperationKind::Subscription;
        let bound = spec.http().filter(|_| !contested.contains(&spec.id));
        let place = bound.map(|http| (http.method.as_ref(), http.path.as_ref()));
        if let Some(given) = place.and_then(|place| by_place.get(&place)).and_then(|at| all.get_mut(*at)) {
            if is_stream && given.stream.is_none() && given.plain.is_some_and(|plain| is_twin(plain, spec)) {
                given.stream = Some(spec);
                continue;
            }
            if !is_stream && given.plain.is_none() && given.stream.is_some_and(|stream| is_twin(spec, stream)) {
                given.plain = Some(spec);
                continue;
            }
        }
        if let Some(place) = place {
            by_place.insert(place, all.len());
        }
        all.push(if is_stream {
            Given { plain: None, stream: Some(spec) }
        } else {
            Given { plain: Some(spec), stream: None }
        });
    }
    all
}

/// True if one operation has the result and the other the stream of what is one operation in a document.
///
/// A document has one request and one list of errors for both. Two functions that differ in these stay two operations.
fn is_twin(plain: &OperationSpec, stream: &OperationSpec) -> bool {
    plain.may_change() == stream.may_change()
        && plain.namespace() == stream.namespace()
        && stream.name().strip_prefix(plain.name()).is_some_and(|rest| rest.starts_with("_stream"))
        && plain.errors == stream.errors
        && request::of_caller(plain) == request::of_caller(stream)
}

/// The name of each operation in the document, and all of these names: its own, with the namespace before it if others have
/// the same, and then with a number if that is the name of another.
fn names(entries: &[Arc<Entry>]) -> (BTreeMap<String, String>, BTreeSet<String>) {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    entries.iter().for_each(|entry| *count.entry(entry.spec.name()).or_default() += 1);
    count.retain(|_, count| *count == 1);
    let mut taken: BTreeSet<String> = count.keys().map(|name| (*name).to_owned()).collect();
    let mut name = |spec: &OperationSpec| match count.contains_key(spec.name()) {
        true => spec.name().to_owned(),
        false => free(&mut taken, format!("{}_{}", spec.namespace(), spec.name())),
    };
    let names = entries.iter().map(|entry| (entry.spec.id.clone().into_owned(), name(&entry.spec))).collect();
    (names, taken)
}

/// A name that is not taken yet, and is from now on: this one, or one with a number.
fn free(taken: &mut BTreeSet<String>, name: String) -> String {
    let numbered = (2_usize..).map(|number| format!("{name}_{number}"));
    let free = [name.clone()].into_iter().chain(numbered).find(|name| taken.insert(name.clone()));
    free.unwrap_or(name)
}

struct Writer<'c> {
    /// The ids of operations whose paths others have, too.
    contested: &'c BTreeSet<Text>,
    /// The ids of operations that may be forwarded to another server.
    foreign: BTreeSet<&'c str>,
    components: Components,
    security: Security,
    /// The `operationId` of each operation, by its id.
    names: BTreeMap<String, String>,
    /// All of these.
    taken: BTreeSet<String>,
    paths: Map<String, Value>,
    /// The reference to the schema of problems.
    problem: String,
    /// True if the document needs features beyond OpenAPI 3.1.
    needs_32: bool,
}

impl Writer<'_> {
    fn operation(&mut self, given: &Given<'_>) {
        let Some(spec) = given.specs().next() else { return };
        let mut out = Map::new();
        describe(spec, self.names.get(spec.id.as_ref()), &mut out);
        let bound = spec.http().filter(|_| !self.contested.contains(&spec.id));
        let (path, method) = match bound {
            Some(binding) => {
                self.bound(given, binding, &mut out);
                (binding.path.clone().into_owned(), binding.method.clone().into_owned())
            }
            None => {
                self.by_id(given, spec, &mut out);
                (by_id(spec), "POST".to_owned())
            }
        };
        let mut ways = given.specs().filter_map(|spec| self.security.of(spec, self.foreign.contains(&*spec.id)));
        if let Some(ways) = ways.next() {
            out.insert("security".into(), ways);
        }
        if spec.kind == OperationKind::Subscription && spec.may_change() == reads(&method) {
            out.insert(CHANGES.into(), spec.may_change().into());
        }
        if bound.is_none() && !spec.may_change() {
            let name = out.get("operationId").and_then(Value::as_str).unwrap_or_default();
            let name = free(&mut self.taken, format!("{name}_by_get"));
            self.put(path.clone(), "GET", by_get(&out, name));
        }
        self.put(path, &method, out);
    }

    fn by_id(&mut self, given: &Given<'_>, spec: &OperationSpec, out: &mut Map<String, Value>) {
        let (schema, scope) = self.components.scope(&spec.input, spec);
        let input = Input::new(schema.clone(), scope.clone());
        if !input.is_nothing() {
            let schema = self.components.schema(&schema, &scope);
            let mut body = json!({ "content": { "application/json": { "schema": schema } } });
            if let (true, Some(body)) = (input.is_required(), body.as_object_mut()) {
                body.insert("required".into(), true.into());
            }
            out.insert("requestBody".into(), body);
        }
        out.insert("responses".into(), response::by_id(given, &self.problem, &mut self.components));
    }

    fn bound(&mut self, given: &Given<'_>, binding: &HttpBinding, out: &mut Map<String, Value>) {
        // Of the two, the stream's binding has every parameter. The other may lack the parameter that both set themselves.
        let Some(spec) = given.stream.or(given.plain) else { return };
        let binding = spec.http().unwrap_or(binding);
        let (schema, scope) = self.components.scope(&spec.input, spec);
        let left_out: Vec<String> = read::left_out(spec, binding).into_iter().map(|(name, _)| name).collect();
        let input = Input::new(schema, scope).with_left_out(&left_out);
        let needs = |own: &crate::HttpParameter| switch::needs(given, own);
        let mut parameters = request::parameters(binding, &input, &needs, &mut self.components);
        for (own, parameter) in binding.parameters.iter().zip(&mut parameters) {
            if let (Some(_), Some(choice), Some(members)) =
                (&own.fixed, switch::choice(given), parameter.as_object_mut())
            {
                members.insert("schema".into(), choice);
            }
            self.needs_32 |= request::needs_32(own);
        }
        if !parameters.is_empty() {
            out.insert("parameters".into(), parameters.into());
        }
        if let Some(mut body) = request::body(binding, &input, &mut self.components) {
            // Restored parts and types go into the components that the body refers to.
            let is_changed = |body: &HttpBody| !body.fixed.is_empty() || request::is_multipart(&body.content_type);
            if binding.bodies.iter().any(is_changed) {
                self.components.write();
                request::add_types(&mut body, &mut self.components);
                switch::restore(given, &mut body, &mut self.components);
            }
            out.insert("requestBody".into(), body);
        }
        out.insert("responses".into(), response::bound(given, &self.problem, &mut self.components));
        self.needs_32 |= binding.responses.iter().any(|response| response.whole_event);
    }

    /// Puts an operation at its path. A path and a method have one operation; the fragment of a path distinguishes
    /// others.
    fn put(&mut self, path: String, method: &str, operation: Map<String, Value>) {
        const METHODS: [&str; 9] = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", QUERY];
        let is_known = METHODS.contains(&method);
        let key = method.to_ascii_lowercase();
        let has = |item: Option<&Value>| match (is_known, item) {
            (true, Some(item)) => item.get(&key).is_some(),
            (false, Some(item)) => item.get("additionalOperations").is_some_and(|own| own.get(method).is_some()),
            (_, None) => false,
        };
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        let mut place = path.clone();
        if has(self.paths.get(&place)) {
            let name = operation.get("operationId").and_then(Value::as_str).unwrap_or_default();
            place = format!("{path}#{name}");
        }
        let item = self.paths.entry(place).or_insert_with(|| json!({}));
        let Some(item) = item.as_object_mut() else { return };
        self.needs_32 |= !is_known || method == QUERY;
        if is_known {
            item.insert(key, operation.into());
            return;
        }
        if let Some(others) = item.entry("additionalOperations").or_insert_with(|| json!({})).as_object_mut() {
            others.insert(method.to_owned(), operation.into());
        }
    }

    fn finish(mut self, entries: &[Arc<Entry>], about: &About) -> Value {
        self.components.write();
        let version = if self.needs_32 { "3.2.0" } else { "3.1.1" };
        let mut components = Map::new();
        components.insert("schemas".into(), self.components.into_schemas().into());
        let content = json!({ PROBLEM: { "schema": { "$ref": self.problem } } });
        let failure = json!({ "description": "Any other failure.", IMPLIED: true, "content": content });
        let name = FAILURE.rsplit('/').next().unwrap_or_default();
        components.insert("responses".into(), json!({ name: failure }));
        let schemes = self.security.into_schemes();
        if !schemes.is_empty() {
            components.insert("securitySchemes".into(), schemes.into());
        }
        json!({
            "openapi": version,
            "info": info(entries, about),
            "paths": self.paths,
            "components": components,
        })
    }
}

/// The title; by default the namespace, if all operations have the same.
pub(super) fn title(entries: &[Arc<Entry>], about: &About) -> String {
    let common = || common(entries, OperationSpec::namespace);
    about.title.clone().or_else(common).unwrap_or_else(|| "Operations".to_owned())
}

/// What all operations have in common.
fn common(entries: &[Arc<Entry>], of: fn(&OperationSpec) -> &str) -> Option<String> {
    let mut all = entries.iter().map(|entry| of(&entry.spec));
    let first = all.next()?;
    all.all(|other| other == first).then(|| first.to_owned())
}

/// The title and the version; by default those of the operations.
fn info(entries: &[Arc<Entry>], about: &About) -> Value {
    let common = || common(entries, |spec| &spec.version);
    let version = about.version.clone().or_else(common).unwrap_or_else(|| "1.0.0".to_owned());
    let title = title(entries, about);
    let mut info = Map::from_iter([("title".to_owned(), Value::from(title)), ("version".to_owned(), version.into())]);
    info.extend(about.description.clone().map(|text| ("description".to_owned(), text.into())));
    Value::Object(info)
}

/// The same call by id with the input in the query, under that name; it is not a separate operation.
fn by_get(post: &Map<String, Value>, name: String) -> Map<String, Value> {
    let mut get = post.clone();
    if let Some(mut body) = get.shift_remove("requestBody") {
        let required = body.get("required").cloned().unwrap_or(false.into());
        let content = body.get_mut("content").map(Value::take).unwrap_or_default();
        let input = json!({ "name": "input", "in": "query", "required": required, "content": content });
        get.insert("parameters".into(), vec![input].into());
    }
    get.insert("operationId".into(), name.into());
    get.insert(IMPLIED.into(), true.into());
    get
}

/// The names and the description of an operation.
fn describe(spec: &OperationSpec, name: Option<&String>, out: &mut Map<String, Value>) {
    if !spec.tags.is_empty() {
        out.insert("tags".into(), spec.tags.iter().collect());
    }
    let summary = spec.title.as_deref().unwrap_or_else(|| first_sentence(&spec.description));
    let summary = if summary.is_empty() { spec.name() } else { summary };
    out.insert("summary".into(), summary.into());
    if !spec.description.is_empty() && spec.description != summary {
        out.insert("description".into(), spec.description.as_ref().into());
    }
    out.insert("operationId".into(), name.map_or(spec.name(), String::as_str).into());
    if spec.deprecated {
        out.insert("deprecated".into(), true.into());
    }
    out.insert("x-ops-id".into(), spec.id.as_ref().into());
    let kind = match spec.kind {
        OperationKind::Query => "query",
        OperationKind::Mutation => "mutation",
        OperationKind::Subscription => "subscription",
    };
    out.insert("x-ops-kind".into(), kind.into());
}

/// The first sentence of a description, as a line.
fn first_sentence(text: &str) -> &str {
    let line = text.trim().lines().next().unwrap_or_default();
    let line = line.find(". ").and_then(|end| line.get(..=end)).unwrap_or(line);
    let end = line.char_indices().nth(120).map_or(line.len(), |(end, _)| end);
    line.get(..end).unwrap_or_default().trim_end()
}

/// The path of a call by id.
pub(super) fn by_id(spec: &OperationSpec) -> String {
    let escaped = |name| utf8_percent_encode(name, ESCAPED);
    format!("/operations/{}/{}", escaped(spec.namespace()), escaped(spec.name()))
}

/// The schema of a failure (RFC 9457, section 3), with the members that this server adds.
fn problem() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    json!({
        "type": "object",
        "description": "A failure (RFC 9457).",
        "properties": {
            "type": text("The kind of the failure, as a URI."),
            "title": text("The words of the status."),
            "status": { "type": "integer", "description": "The status of the response." },
            "detail": text("What went wrong."),
            "code": text("The code of the error."),
            "request": text("The number by which the server's log knows the request."),
            "details": { "description": "What the operation says about the error." },
            "violations": {
                "type": "array",
                "description": "What the input breaks.",
                "items": {
                    "type": "object",
                    "properties": {
                        "pointer": text("The place in the input, as a JSON pointer."),
                        "message": text("What is wrong there."),
                    },
                    "required": ["pointer", "message"],
                },
            },
        },
        "required": ["type", "title", "status", "detail", "request"],
    })
}
