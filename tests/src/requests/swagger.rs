//! What Swagger 2.0 says in other words.

use serde_json::{Map, Value, json};

use super::document::{Content, Document, Parameter, Place, Style};
use super::media::Media;

const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";

/// A parameter with its schema in itself.
pub(super) fn parameter(node: &Value, place: Place) -> Parameter {
    let in_query = place == Place::Query;
    let simple = if in_query { Style::Form } else { Style::Simple };
    let is_list = node["type"] == "array";
    let (style, explode) = match node["collectionFormat"].as_str() {
        Some("multi") if in_query => (Style::Form, true),
        Some("ssv") if in_query => (Style::SpaceDelimited, false),
        Some("pipes") if in_query => (Style::PipeDelimited, false),
        _ => (simple, in_query && !is_list),
    };
    let mut schema = node.as_object().cloned().unwrap_or_default();
    ["name", "in", "required", "description", "collectionFormat", "allowEmptyValue"].iter().for_each(|key| {
        schema.remove(*key);
    });
    if node["type"] == "file" {
        schema.insert("type".to_owned(), json!("string"));
        schema.insert("format".to_owned(), json!("binary"));
    }
    schema.entry("type").or_insert_with(|| json!("string"));
    let schema = node.get("schema").cloned().unwrap_or(Value::Object(schema));
    Parameter { name: String::new(), place, style, explode, is_open: false, required: false, schema }
}

/// The body that `body` and `formData` parameters make, in each content type, and whether it is required.
pub(super) fn contents(document: &Document<'_>, operation: &Value, nodes: &[&Value]) -> (Vec<Content>, bool) {
    let consumes = listed(document, operation, "consumes");
    if let Some(body) = nodes.iter().rev().find(|node| node["in"] == "body") {
        let kinds = if consumes.is_empty() { vec!["application/json".to_owned()] } else { consumes };
        let content = |content_type: String| Content {
            content_type,
            schema: body.get("schema").cloned().unwrap_or(Value::Bool(true)),
            encoding: Map::new(),
            fields: Vec::new(),
        };
        return (kinds.into_iter().map(content).collect(), body["required"] == true);
    }
    let fields: Vec<Parameter> = nodes
        .iter()
        .filter(|node| node["in"] == "formData")
        .map(|node| super::parameters::parameter(document, node, Place::Query))
        .collect();
    if fields.is_empty() {
        return (Vec::new(), false);
    }
    let has_files = nodes.iter().any(|node| node["in"] == "formData" && node["type"] == "file");
    let mut kinds: Vec<String> = consumes
        .into_iter()
        .filter(|kind| match Media::of(kind) {
            Media::Multipart => true,
            Media::Form => !has_files,
            _ => false,
        })
        .collect();
    if kinds.is_empty() {
        kinds.push(if has_files { MULTIPART } else { FORM }.to_owned());
    }
    let properties: Map<String, Value> = fields.iter().map(|f| (f.name.clone(), f.schema.clone())).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let is_required = !required.is_empty();
    let content = |content_type| Content {
        content_type,
        schema: schema.clone(),
        encoding: Map::new(),
        fields: fields.iter().filter(|field| field.schema["type"] == "array").cloned().collect(),
    };
    (kinds.into_iter().map(content).collect(), is_required)
}

/// The content types of an answer.
pub(super) fn produces(document: &Document<'_>, operation: &Value, answer: &Value) -> Vec<String> {
    let Some(schema) = answer.get("schema") else { return Vec::new() };
    let target = schema["$ref"].as_str().and_then(super::document::pointer);
    let target = target.and_then(|pointer| document.root.pointer(&pointer)).unwrap_or(schema);
    let is_file = target["type"] == "file";
    let mut kinds = listed(document, operation, "produces");
    if is_file && kinds.iter().all(|kind| Media::of(kind) == Media::Json) {
        kinds.clear();
    }
    if kinds.is_empty() {
        kinds.push(if is_file { "application/octet-stream" } else { "application/json" }.to_owned());
    }
    kinds
}

fn listed(document: &Document<'_>, operation: &Value, key: &str) -> Vec<String> {
    let list = operation.get(key).or_else(|| document.root.get(key)).and_then(Value::as_array);
    let kinds = list.into_iter().flatten().filter_map(Value::as_str).filter(|kind| kind.contains('/'));
    kinds.map(str::to_owned).collect()
}
