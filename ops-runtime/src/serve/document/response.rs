//! Responses in the document: the inverse of how a document's are read.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::components::{Components, Scope};
use super::request::{alternatives, is_json, untitled};
use crate::model::media::{EVENTS, JSON, Media, NDJSON};
use crate::serve::problem::{self, PROBLEM};
use crate::{ErrorDefinition, HttpResponse, OperationSpec, StatusRange};

/// The name of the response for all failures that are not an operation's own.
pub(super) const FAILURE: &str = "#/components/responses/Problem";

/// The mark of a response, or of a content type of one, that the server adds, and no operation describes: our reader leaves
/// it out.
pub(super) const IMPLIED: &str = "x-ops-implied";

/// The output of an operation: its result, its items, or both.
pub(super) struct Given<'s> {
    /// The operation with one result.
    pub(super) plain: Option<&'s OperationSpec>,
    /// The operation with a stream of items.
    pub(super) stream: Option<&'s OperationSpec>,
}

impl<'s> Given<'s> {
    pub(super) fn specs(&self) -> impl Iterator<Item = &'s OperationSpec> + use<'s> {
        self.plain.into_iter().chain(self.stream)
    }
}

/// The responses object of operations that are bound to HTTP.
pub(super) fn bound(given: &Given<'_>, problem: &str, components: &mut Components) -> Value {
    let mut by_status: Vec<(StatusRange, Vec<HttpResponse>)> = Vec::new();
    for response in given.specs().filter_map(OperationSpec::http).flat_map(|http| http.responses.iter()) {
        let known = by_status.iter_mut().find(|(status, _)| *status == response.status);
        match known {
            Some((_, responses)) => {
                if !responses.iter().any(|own| own.content_type == response.content_type) {
                    responses.push(response.clone());
                }
            }
            None => by_status.push((response.status, vec![response.clone()])),
        }
    }
    let by_default = !by_status.iter().any(|(status, _)| status.is_success());
    let mut out = Map::new();
    if by_default && !by_status.iter().any(|(status, _)| *status == StatusRange::Default) {
        // If a binding describes no success, the response is the whole output.
        let any = HttpResponse::owned(StatusRange::Exact(200), JSON);
        let mut implied = success(&[any], given, components);
        if let Some(implied) = implied.as_object_mut() {
            implied.insert(IMPLIED.to_owned(), true.into());
        }
        out.insert("200".into(), implied);
    }
    for (status, responses) in &by_status {
        let succeeds = status.is_success() || by_default && *status == StatusRange::Default;
        let mut response = match succeeds {
            true => success(responses, given, components),
            false => error(*status, responses, given, components),
        };
        if problem::is_own(*status) {
            admit(problem, &mut response);
        }
        out.insert(key(*status), response);
    }
    if let Some(spec) = given.specs().next() {
        errors(spec, problem, &mut out, components);
    }
    out.entry("default").or_insert_with(|| json!({ "$ref": FAILURE }));
    Value::Object(out)
}

/// The responses object of an operation that is called by its id.
pub(super) fn by_id(given: &Given<'_>, problem: &str, components: &mut Components) -> Value {
    let status = StatusRange::Exact(200);
    let of = |content_type: &str| HttpResponse::owned(status, content_type.to_owned());
    let responses = match given.stream {
        Some(_) => vec![of(EVENTS), of(NDJSON)],
        None => vec![of(JSON)],
    };
    let mut out = Map::from_iter([(key(status), success(&responses, given, components))]);
    if let Some(spec) = given.specs().next() {
        errors(spec, problem, &mut out, components);
    }
    out.insert("default".into(), json!({ "$ref": FAILURE }));
    Value::Object(out)
}

fn key(status: StatusRange) -> String {
    match status {
        StatusRange::Exact(status) => status.to_string(),
        StatusRange::Class(class) => format!("{class}XX"),
        StatusRange::Default => "default".to_owned(),
    }
}

/// The description of a status.
fn words(status: StatusRange) -> &'static str {
    match status {
        StatusRange::Exact(status) => {
            StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Response")
        }
        StatusRange::Class(2) => "Success",
        StatusRange::Class(_) | StatusRange::Default => "Response",
    }
}

/// The response object of a success.
fn success(responses: &[HttpResponse], given: &Given<'_>, components: &mut Components) -> Value {
    let status = responses.first().map_or(StatusRange::Exact(200), |response| response.status);
    let mut content = Map::new();
    let kinds =
        || responses.iter().filter_map(|response| response.content_type.as_deref().map(|kind| (response, kind)));
    if let Some(spec) = given.plain {
        let (output, scope) = components.scope(&spec.output, spec);
        let mut is_first = true;
        for (response, kind) in kinds().filter(|(_, kind)| !Media::of(kind).is_stream()) {
            let variant = response.variant.and_then(|at| output.get("oneOf")?.as_array()?.get(usize::from(at)));
            let schema = match variant {
                Some(schema) => untitled(schema),
                None => output.clone(),
            };
            // Of several types, the output describes the first; the others represent the same as far as they can.
            let schema = if is_first || is_json(kind) { components.schema(&schema, &scope) } else { plain(kind) };
            is_first = false;
            content.insert(kind.to_owned(), json!({ "schema": schema }));
        }
    }
    if let Some(spec) = given.stream {
        let streams: Vec<(&HttpResponse, &str)> = kinds().filter(|(_, kind)| Media::of(kind).is_stream()).collect();
        let types: Vec<&str> = streams.iter().map(|(_, kind)| *kind).collect();
        let (item, scope) = components.scope(&spec.output, spec);
        for ((response, kind), item) in streams.iter().zip(alternatives(&item, &types)) {
            let is_list = Components::resolved(item.clone(), &scope).get("type").is_some_and(|own| own == "array");
            let item = components.schema(&item, &scope);
            let media = if response.whole_event {
                json!({ "itemSchema": item })
            } else if Media::of(kind) == Media::Events && !is_list {
                json!({ "schema": item })
            } else {
                // The items of a stream are described as a list.
                json!({ "schema": { "type": "array", "items": item } })
            };
            content.insert((*kind).to_owned(), media);
        }
    }
    response(words(status), content)
}

fn response(description: &str, content: Map<String, Value>) -> Value {
    let mut out = Map::from_iter([("description".to_owned(), Value::from(description))]);
    if !content.is_empty() {
        out.insert("content".into(), content.into());
    }
    Value::Object(out)
}

/// Admits a problem of the server itself beside what is described for the same status.
fn admit(problem: &str, response: &mut Value) {
    let content = response.as_object_mut().map(|response| response.entry("content").or_insert_with(|| json!({})));
    if let Some(Value::Object(content)) = content {
        let media = || json!({ IMPLIED: true, "schema": { "$ref": problem } });
        content.entry(PROBLEM).or_insert_with(media);
    }
}

/// The response object of a failure that a binding describes.
fn error(status: StatusRange, responses: &[HttpResponse], given: &Given<'_>, components: &mut Components) -> Value {
    let code = status.error_code();
    let declared = given.specs().find_map(|spec| Some((spec, spec.errors.iter().find(|error| error.code == code)?)));
    let mut content = Map::new();
    let mut is_first = true;
    for kind in responses.iter().filter_map(|response| response.content_type.as_deref()) {
        let is_stream = Media::of(kind) == Media::Events;
        let schema = match declared.filter(|_| (is_first || is_json(kind)) && !is_stream) {
            Some((spec, error)) => {
                let (schema, scope) = components.scope(&error.schema, spec);
                components.schema(&schema, &scope)
            }
            None => plain(kind),
        };
        is_first &= is_stream;
        content.insert(kind.to_owned(), json!({ "schema": schema }));
    }
    response(declared.map_or("", |(_, error)| &error.description), content)
}

/// The schema of a body of a type, if nothing else is known.
fn plain(content_type: &str) -> Value {
    match Media::of(content_type) {
        Media::Json => Value::Bool(true),
        Media::Bytes | Media::Other | Media::Multipart => json!({ "type": "string", "format": "binary" }),
        _ => json!({ "type": "string" }),
    }
}

/// Adds the errors that an operation declares by codes of its own, each as a problem with that code.
///
/// If the server itself fails with the status of one, any other problem is admitted beside it.
fn errors(spec: &OperationSpec, problem: &str, out: &mut Map<String, Value>, components: &mut Components) {
    let mut by_status: Vec<(u16, Vec<&ErrorDefinition>)> = Vec::new();
    for error in spec.errors.iter().filter(|error| !is_of_http(error)) {
        let status = problem::status(&error.code.clone().into(), spec).as_u16();
        match by_status.iter_mut().find(|(own, _)| *own == status) {
            Some((_, errors)) => errors.push(error),
            None => by_status.push((status, vec![error])),
        }
    }
    by_status.sort_by_key(|(status, _)| *status);
    for (status, errors) in by_status {
        let key = status.to_string();
        if out.contains_key(&key) {
            continue;
        }
        let mut schemas: Vec<Value> = errors.iter().map(|error| coded(error, spec, problem, components)).collect();
        if problem::is_own(StatusRange::Exact(status)) {
            // The server's own failures have the status, too. The titles name the types of the declared ones.
            for (schema, error) in schemas.iter_mut().zip(&errors) {
                if let Some(schema) = schema.as_object_mut() {
                    schema.insert("title".to_owned(), error.code.as_ref().into());
                }
            }
            schemas.push(json!({ "$ref": problem }));
        }
        let schema = match <[Value; 1]>::try_from(schemas) {
            Ok([one]) => one,
            Err(several) => json!({ "anyOf": several }),
        };
        let described: Vec<&str> =
            errors.iter().map(|error| error.description.as_ref()).filter(|text| !text.is_empty()).collect();
        let description =
            if described.is_empty() { words(StatusRange::Exact(status)).to_owned() } else { described.join("\n\n") };
        out.insert(key, response(&description, Map::from_iter([(PROBLEM.to_owned(), json!({ "schema": schema }))])));
    }
}

/// True if an error stands for the status of an HTTP response, and not for a code.
fn is_of_http(error: &ErrorDefinition) -> bool {
    error
        .code
        .strip_prefix("HTTP_")
        .is_some_and(|rest| rest == "ERROR" || rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// A problem with a code, and its details.
fn coded(error: &ErrorDefinition, spec: &OperationSpec, problem: &str, components: &mut Components) -> Value {
    let (details, scope): (Value, Scope) = components.scope(&error.schema, spec);
    let details = components.schema(&details, &scope);
    let mut properties = Map::from_iter([("code".to_owned(), json!({ "const": error.code }))]);
    if !error.schema.is_any() {
        properties.insert("details".into(), details);
    }
    json!({ "allOf": [{ "$ref": problem }, { "type": "object", "properties": properties, "required": ["code"] }] })
}
