//! The operations of a document, read from its raw JSON: nothing here knows how the project reads documents.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::media::{Media, essence};

/// So many references are followed in a row.
const HOPS: usize = 32;

/// The dialect of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    V20,
    V30,
    V31,
}

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
    /// In a query that stands in the path.
    Template,
    Header,
    Cookie,
    QueryString,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
    Json,
}

/// A parameter, as the document has it.
#[derive(Debug, Clone)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) style: Style,
    pub(super) explode: bool,
    /// Whether reserved characters stay as they are.
    pub(super) is_open: bool,
    pub(super) required: bool,
    pub(super) schema: Value,
}

/// A request body in one content type.
#[derive(Debug, Clone)]
pub(super) struct Content {
    pub(super) content_type: String,
    pub(super) schema: Value,
    pub(super) encoding: Map<String, Value>,
    /// The fields of a form that say themselves how they are written (Swagger 2.0).
    pub(super) fields: Vec<Parameter>,
}

/// An operation, as the document has it.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    /// The JSON pointer to it, by way of its path.
    pub(super) pointer: String,
    /// In upper case, but for additional methods.
    pub(super) method: String,
    /// The key of its path, parameters in braces.
    pub(super) path: String,
    pub(super) parameters: Vec<Parameter>,
    /// The names and places of its parameters, in the order of the document.
    pub(super) listed: Vec<(String, String)>,
    pub(super) contents: Vec<Content>,
    pub(super) body_required: bool,
    /// The content types of its successes: those of one result, and those of streams.
    pub(super) plain: Vec<String>,
    pub(super) streams: Vec<String>,
}

impl Operation {
    /// Whether it answers in two ways, between which a property of the input may choose.
    pub(super) fn has_twin(&self) -> bool {
        !self.plain.is_empty() && !self.streams.is_empty()
    }
}

/// A document and its dialect.
#[derive(Debug, Clone, Copy)]
pub(super) struct Document<'a> {
    pub(super) root: &'a Value,
    pub(super) version: Version,
}

impl<'a> Document<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        let version = match (root["swagger"].is_null(), root["openapi"].as_str()) {
            (false, _) => Version::V20,
            (true, Some(text)) if text.starts_with("3.0") => Version::V30,
            _ => Version::V31,
        };
        Self { root, version }
    }

    /// What a value means: itself, or what its reference leads to; `None` if that is nowhere.
    pub(super) fn follow(&self, value: &'a Value) -> Option<&'a Value> {
        let mut value = value;
        for _ in 0..HOPS {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return Some(value) };
            value = self.root.pointer(&self.pointer(reference)?)?;
        }
        None
    }

    /// The pointer that a reference to this document is, which may name itself (3.2, section 4.1.1).
    pub(super) fn pointer(&self, reference: &str) -> Option<String> {
        let own = self.root["$self"].as_str().filter(|own| !own.is_empty());
        let reference = own.and_then(|own| reference.strip_prefix(own)).unwrap_or(reference);
        match reference.strip_prefix('#').filter(|name| !name.is_empty() && !name.starts_with('/')) {
            Some(name) => anchor(self.root.get("components")?, "/components", name),
            None => pointer(reference),
        }
    }

    /// Every operation, in the order of the document.
    pub(super) fn operations(&self) -> Vec<Operation> {
        let mut found = Vec::new();
        let paths = self.root["paths"].as_object().into_iter().flatten();
        for (path, own) in paths.filter(|(path, _)| !path.starts_with("x-")) {
            let Some(target) = self.follow(own) else { continue };
            let items = if std::ptr::eq(own, target) { vec![own] } else { vec![own, target] };
            let shared = items.iter().find_map(|item| item.get("parameters")).unwrap_or(&Value::Null);
            let mut seen = BTreeSet::new();
            for (key, operation) in items.iter().filter_map(|item| item.as_object()).flatten() {
                let more = operation.as_object().filter(|_| key == "additionalOperations").into_iter().flatten();
                let named = Some((key, operation)).filter(|_| is_method(key)).map(|(k, o)| (k.to_uppercase(), o));
                for (method, operation) in named.into_iter().chain(more.map(|(k, o)| (k.clone(), o))) {
                    if operation.is_object() && seen.insert(method.clone()) {
                        found.push(self.operation(path, key, method, shared, operation));
                    }
                }
            }
        }
        found
    }

    fn operation(&self, path: &str, key: &str, method: String, shared: &'a Value, operation: &'a Value) -> Operation {
        let escaped = path.replace('~', "~0").replace('/', "~1");
        let key = if key == "additionalOperations" { format!("{key}/{method}") } else { key.to_owned() };
        let nodes = self.nodes(shared, operation);
        let path = super::parameters::with_braces(path, &nodes);
        let (contents, body_required) = match self.version {
            Version::V20 => {
                let own = super::swagger::contents(self, operation, &nodes);
                // A body of OpenAPI 3 is meant where there is none of 2.0.
                if own.0.is_empty() { self.contents(operation) } else { own }
            }
            _ => self.contents(operation),
        };
        let (plain, streams) = self.answers(&method, operation);
        let parameters = super::parameters::read(self, &path, &nodes);
        let text = |node: &Value, key: &str| node[key].as_str().unwrap_or_default().to_owned();
        let listed = nodes.iter().map(|node| (text(node, "name"), text(node, "in"))).collect();
        Operation {
            pointer: format!("/paths/{escaped}/{key}"),
            method,
            path,
            parameters,
            listed,
            contents,
            body_required,
            plain,
            streams,
        }
    }

    /// The parameters of an operation, with those of its path that it does not replace.
    fn nodes(&self, shared: &'a Value, own: &'a Value) -> Vec<&'a Value> {
        let key = |node: &Value| {
            let name = node["name"].as_str().unwrap_or_default();
            let place = node["in"].as_str().unwrap_or_default().to_owned();
            (if place == "header" { name.to_lowercase() } else { name.to_owned() }, place)
        };
        let list = |place: &'a Value| place.as_array().into_iter().flatten().filter_map(|node| self.follow(node));
        let mut nodes: Vec<&Value> = Vec::new();
        let mut first = 0;
        for (number, place) in [shared, &own["parameters"]].into_iter().enumerate() {
            first = if number == 1 { nodes.len() } else { 0 };
            for node in list(place).filter(|node| !node["name"].is_null()) {
                match nodes.iter().position(|other| key(other) == key(node)) {
                    Some(at) if number == 1 && at < first => nodes[at] = node,
                    Some(_) => {}
                    None => nodes.push(node),
                }
            }
        }
        _ = first;
        nodes
    }

    fn contents(&self, operation: &'a Value) -> (Vec<Content>, bool) {
        let Some(body) = operation.get("requestBody").and_then(|body| self.follow(body)) else {
            return (Vec::new(), false);
        };
        let contents = body["content"].as_object().into_iter().flatten();
        let contents = contents.filter(|(kind, _)| kind.contains('/')).filter_map(|(content_type, node)| {
            let node = self.follow(node)?;
            let list = node.get("itemSchema").map(|item| serde_json::json!({ "type": "array", "items": item }));
            Some(Content {
                content_type: content_type.clone(),
                schema: node.get("schema").cloned().or(list).unwrap_or(Value::Bool(true)),
                encoding: node["encoding"].as_object().cloned().unwrap_or_default(),
                fields: Vec::new(),
            })
        });
        (contents.collect(), body["required"] == true)
    }

    /// The content types of the successes, or else of the default answer: those of one result, and those of streams.
    fn answers(&self, method: &str, operation: &'a Value) -> (Vec<String>, Vec<String>) {
        let answers = operation["responses"].as_object().into_iter().flatten();
        let answers: Vec<(&String, &Value)> =
            answers.filter_map(|(status, node)| Some((status, self.follow(node)?))).collect();
        let succeeds = |status: &str| status.starts_with('2');
        let by_default = !answers.iter().any(|(status, _)| succeeds(status));
        let of_success = answers.iter().filter(|(status, _)| succeeds(status) || by_default && *status == "default");
        let mut types: Vec<String> = Vec::new();
        // Some answers have no body, whatever is described (RFC 9110, sections 9.3.2, 15.3.5 and 15.3.6).
        let has_body = |status: &str| method != "HEAD" && !matches!(status, "204" | "205");
        for (_, answer) in of_success.filter(|(status, _)| has_body(status)) {
            let own: Vec<String> = match self.version {
                // As for requests, the content of OpenAPI 3 is meant where nothing of 2.0 is said.
                Version::V20 if answer.get("schema").is_some() => super::swagger::produces(self, operation, answer),
                _ => answer["content"].as_object().into_iter().flatten().map(|(kind, _)| kind.clone()).collect(),
            };
            // What is no content type stands for JSON if it is alone, and for nothing beside others.
            let is_alone = own.len() == 1;
            let own = own.into_iter().filter_map(|kind| match kind.contains('/') {
                true => Some(kind),
                false => is_alone.then(|| "application/json".to_owned()),
            });
            let (streams, plain): (Vec<String>, Vec<String>) = own.partition(|kind| Media::of(kind).is_stream());
            let new = described(plain).into_iter().chain(streams).filter(|kind| !types.contains(kind));
            let new: Vec<String> = new.collect();
            types.extend(new);
        }
        types.into_iter().partition(|kind| !Media::of(kind).is_stream())
    }
}

/// The content types of one success that its preferred type describes: JSON is preferred, then forms, then text.
fn described(types: Vec<String>) -> Vec<String> {
    let is_range = |kind: &str| matches!(essence(kind).as_str(), "*" | "*/*" | "application/*");
    let rank = |kind: &String| match Media::of(kind) {
        Media::Json if essence(kind) == "application/json" => 0,
        Media::Json => 1,
        Media::Form => 2,
        Media::Multipart => 3,
        Media::Text => 4,
        _ => 5,
    };
    let held = |kind: &str| match Media::of(kind) {
        _ if is_range(kind) => "bytes",
        Media::Json => "json",
        Media::Form | Media::Text => "text",
        _ => "bytes",
    };
    let Some(first) = types.iter().min_by_key(|kind| rank(kind)).cloned() else { return types };
    let fits = |kind: &String| essence(kind) == essence(&first) || held(&first) != "json" && held(kind) == held(&first);
    types.into_iter().filter(fits).collect()
}

/// The pointer to the schema with an anchor.
fn anchor(value: &Value, at: &str, name: &str) -> Option<String> {
    match value {
        Value::Object(members) => {
            if ["$anchor", "$dynamicAnchor"].iter().any(|key| members.get(*key).is_some_and(|own| own == name)) {
                return Some(at.to_owned());
            }
            members.iter().find_map(|(key, value)| {
                let key = key.replace('~', "~0").replace('/', "~1");
                anchor(value, &format!("{at}/{key}"), name)
            })
        }
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(number, value)| anchor(value, &format!("{at}/{number}"), name))
        }
        _ => None,
    }
}

/// The pointer that a reference within the document is.
pub(super) fn pointer(reference: &str) -> Option<String> {
    let text = reference.strip_prefix('#')?;
    let bytes = super::style::unescaped(text.as_bytes());
    String::from_utf8(bytes).ok()
}

fn is_method(key: &str) -> bool {
    const METHODS: [&str; 9] = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];
    METHODS.contains(&key.to_lowercase().as_str())
}

/// Whether a content type is the same as another, parameters aside.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    essence(one) == essence(other)
}
