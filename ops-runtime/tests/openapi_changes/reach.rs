//! Which operations reach a place of a document, by walking through the document as it stands.

use std::collections::{BTreeMap, BTreeSet};

use ops_runtime::spec::{Api, OperationKind};
use serde_json::Value;

const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// An operation of a document.
pub(crate) struct Operation {
    pub(crate) id: String,
    /// The place of the operation.
    pub(crate) at: String,
    /// The places of its parameters, behind references.
    pub(crate) parameters: Vec<String>,
    /// True if it gives a stream as well.
    pub(crate) has_stream: bool,
}

/// The operations that reach a schema.
#[derive(Default, Clone)]
pub(crate) struct Reached {
    pub(crate) requests: BTreeSet<String>,
    pub(crate) responses: BTreeSet<String>,
}

pub(crate) struct Reach {
    pub(crate) operations: Vec<Operation>,
    /// The schemas that operations reach, by their places.
    pub(crate) schemas: BTreeMap<String, Reached>,
    /// The places of schemas that are combined with others: what they say others may say as well.
    pub(crate) combined: BTreeSet<String>,
}

impl Reach {
    pub(crate) fn new(document: &Value, api: &Api) -> Self {
        let mut reach = Self { operations: Vec::new(), schemas: BTreeMap::new(), combined: BTreeSet::new() };
        let heirs = heirs(document);
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for method in METHODS.iter().filter(|method| item.get(**method).is_some()) {
                let path_of = path.split('#').next().unwrap();
                let path_of = if path_of.starts_with('/') { path_of } else { &format!("/{path_of}") };
                // Some write `:id` for `{id}`.
                let named = |part: &str| part.strip_prefix(':').map_or(part.to_owned(), |name| format!("{{{name}}}"));
                let braced: String = path_of.split('/').map(named).collect::<Vec<_>>().join("/");
                let all = api.operations.iter().filter(|spec| {
                    let is_it = |path: &str| path == path_of || path == braced;
                    spec.http().is_some_and(|http| http.method.eq_ignore_ascii_case(method) && is_it(&http.path))
                });
                let specs: Vec<_> = all.collect();
                // Without a spec, or with several, nothing can be said of one.
                let [first, ..] = specs.as_slice() else { continue };
                let has_stream = specs.len() > 1 || first.kind == OperationKind::Subscription;
                let at = format!("/paths/{}/{method}", escaped(path));
                let mut operation =
                    Operation { id: first.id.to_string(), at: at.clone(), parameters: Vec::new(), has_stream };
                let (mut requests, mut responses) = (Vec::new(), Vec::new());
                let mut known = BTreeSet::new();
                for place in [format!("{at}/parameters"), format!("/paths/{}/parameters", escaped(path))] {
                    for at in below(document, &place) {
                        let Some(at) = followed(document, &at) else { continue };
                        let parameter = &document.pointer(&at).unwrap();
                        let name = parameter["name"].as_str().unwrap_or_default().to_owned();
                        let location = parameter["in"].as_str().unwrap_or_default().to_owned();
                        if !known.insert((name, location)) {
                            continue;
                        }
                        requests.push(format!("{at}/schema"));
                        requests
                            .extend(below(document, &format!("{at}/content")).iter().map(|at| format!("{at}/schema")));
                        operation.parameters.push(at);
                    }
                }
                if let Some(body) = followed(document, &format!("{at}/requestBody")) {
                    requests
                        .extend(below(document, &format!("{body}/content")).iter().map(|at| format!("{at}/schema")));
                }
                for answer in below(document, &format!("{at}/responses")) {
                    let Some(answer) = followed(document, &answer).filter(|_| *method != "head") else { continue };
                    responses.push(format!("{answer}/schema"));
                    let contents = below(document, &format!("{answer}/content"));
                    let json = contents.iter().find(|at| at.ends_with("/application~1json"));
                    responses.extend(json.or(contents.first()).map(|at| format!("{at}/schema")));
                }
                for (starts, side) in [(requests, "readOnly"), (responses, "writeOnly")] {
                    for place in reach.walk(document, starts, side, &heirs) {
                        let reached = reach.schemas.entry(place).or_default();
                        let ids = if side == "readOnly" { &mut reached.requests } else { &mut reached.responses };
                        // All operations of a request with several, which no test may choose.
                        ids.insert(if has_stream { "stream".to_owned() } else { operation.id.clone() });
                    }
                }
                reach.operations.push(operation);
            }
        }
        reach.webhooks(document, api, &heirs);
        reach
    }

    /// What webhooks send is read as responses are. No mutation chooses a webhook itself.
    fn webhooks(&mut self, document: &Value, api: &Api, heirs: &BTreeMap<String, Vec<String>>) {
        for (name, item) in document["webhooks"].as_object().into_iter().flatten() {
            for method in METHODS.iter().filter(|method| item.get(**method).is_some()) {
                let Some(spec) = api.webhooks.iter().find(|spec| spec.name() == name) else { continue };
                let body = format!("/webhooks/{}/{method}/requestBody", escaped(name));
                let Some(body) = followed(document, &body) else { continue };
                let contents = below(document, &format!("{body}/content"));
                let json = contents.iter().find(|at| at.ends_with("/application~1json"));
                let starts = json.or(contents.first()).map(|at| format!("{at}/schema")).into_iter().collect();
                for place in self.walk(document, starts, "writeOnly", heirs) {
                    self.schemas.entry(place).or_default().responses.insert(spec.id.to_string());
                }
            }
        }
    }

    /// The places of all schemas that schemas reach, without properties that only the other side has.
    fn walk(
        &mut self,
        document: &Value,
        starts: Vec<String>,
        other: &str,
        heirs: &BTreeMap<String, Vec<String>>,
    ) -> BTreeSet<String> {
        // A schema that extends another means what that one says itself, and not all that extend it.
        let mut open: Vec<(String, bool)> = starts.into_iter().map(|at| (at, false)).collect();
        let mut seen = BTreeSet::new();
        while let Some((at, is_extended)) = open.pop() {
            let Some(schema) = document.pointer(&at).filter(|schema| schema.is_object()) else { continue };
            if !seen.insert((at.clone(), is_extended)) {
                continue;
            }
            if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
                open.extend(target.strip_prefix('#').map(|target| (target.to_owned(), is_extended)));
            }
            for key in ["properties", "allOf", "anyOf", "oneOf"] {
                for place in below(document, &format!("{at}/{key}")) {
                    let target = followed(document, &place).unwrap_or_default();
                    let says = |at: &str| document.pointer(at).is_some_and(|schema| schema[other] == true);
                    if key == "properties" && (says(&place) || says(&target)) {
                        continue;
                    }
                    if key != "properties" {
                        self.combined.extend([at.clone(), place.clone(), target.clone()]);
                    }
                    let extends = key == "allOf" && heirs.get(&target).is_some_and(|heirs| heirs.contains(&at));
                    open.push((place, extends));
                }
            }
            open.extend(["items", "additionalProperties"].map(|key| (format!("{at}/{key}"), false)));
            let heirs = heirs.get(&at).into_iter().flatten().filter(|_| !is_extended);
            open.extend(heirs.map(|heir| (heir.clone(), false)));
        }
        seen.into_iter().map(|(at, _)| at).collect()
    }
}

/// The schemas that extend one with a discriminator, directly or not.
fn heirs(document: &Value) -> BTreeMap<String, Vec<String>> {
    let start = if document.get("swagger").is_some() { "/definitions" } else { "/components/schemas" };
    let named = below(document, start);
    let parents = |at: &str| -> Vec<String> {
        let parts = below(document, &format!("{at}/allOf"));
        parts
            .iter()
            .filter_map(|part| Some(document.pointer(part)?["$ref"].as_str()?.strip_prefix('#')?.to_owned()))
            .collect()
    };
    let children: Vec<(String, Vec<String>)> = named.iter().map(|at| (at.clone(), parents(at))).collect();
    let is_base = |at: &String| document.pointer(at).is_some_and(|schema| schema.get("discriminator").is_some());
    let mut heirs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for base in named.iter().filter(|at| is_base(at)) {
        let mut found = BTreeSet::from([base.clone()]);
        loop {
            let more: Vec<String> = children
                .iter()
                .filter(|(child, parents)| {
                    !found.contains(child) && parents.iter().any(|parent| found.contains(parent))
                })
                .map(|(child, _)| child.clone())
                .collect();
            if more.is_empty() {
                break;
            }
            found.extend(more);
        }
        found.remove(base);
        heirs.insert(base.clone(), found.into_iter().collect());
    }
    heirs
}

pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The places of the members of an object or a list.
pub(crate) fn below(document: &Value, at: &str) -> Vec<String> {
    match document.pointer(at) {
        Some(Value::Object(node)) => node.keys().map(|key| format!("{at}/{}", escaped(key))).collect(),
        Some(Value::Array(items)) => (0..items.len()).map(|number| format!("{at}/{number}")).collect(),
        _ => Vec::new(),
    }
}

/// The place behind references.
pub(crate) fn followed(document: &Value, at: &str) -> Option<String> {
    let mut at = at.to_owned();
    for _ in 0..10 {
        match document.pointer(&at)?.get("$ref").and_then(Value::as_str) {
            Some(target) => at = target.strip_prefix('#')?.to_owned(),
            None => return Some(at),
        }
    }
    None
}
