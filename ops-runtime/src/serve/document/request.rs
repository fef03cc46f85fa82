//! Parameters and bodies in the document: the inverse of how a document's are read.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::components::{Components, Scope};
use crate::model::keywords::says_nothing;
use crate::model::media::{Media, essence};
use crate::{HttpBinding, HttpBody, HttpParameter, Literal, OperationSpec, ParameterLocation, ParameterStyle};

/// The member that names the input's property for a parameter or a body, if the two names differ. It is empty for a body
/// that is the rest of the input. Violations have pointers into the input.
const PROPERTY: &str = "x-ops-property";

/// The input of an operation: its schema, and the scope of its references.
pub(super) struct Input {
    schema: Value,
    scope: Scope,
}

impl Input {
    pub(super) fn new(schema: Value, scope: Scope) -> Self {
        Self { schema: Components::resolved(schema, &scope), scope }
    }

    /// The same input, which does not require the properties that may be left out of a request: they are empty then.
    pub(super) fn with_left_out(mut self, names: &[String]) -> Self {
        if let Some(Value::Array(required)) = self.schema.get_mut("required") {
            required.retain(|name| !names.iter().any(|own| name == own));
        }
        self
    }

    fn property(&self, name: &str) -> Option<&Value> {
        self.schema.get("properties")?.get(name)
    }

    fn requires(&self, name: &str) -> bool {
        let names = self.schema.get("required").and_then(Value::as_array).into_iter().flatten();
        names.filter_map(Value::as_str).any(|own| own == name)
    }

    /// True if there is no input.
    pub(super) fn is_nothing(&self) -> bool {
        match self.schema.get("type").and_then(Value::as_str) {
            Some("null") => true,
            Some("object") => {
                let has =
                    |key: &str| self.schema.get(key).and_then(Value::as_object).is_some_and(|own| !own.is_empty());
                !has("properties")
                    && !has("patternProperties")
                    && !has("additionalProperties")
                    && ["allOf", "anyOf", "oneOf"].iter().all(|key| self.schema.get(key).is_none())
                    && self.schema.get("additionalProperties") != Some(&Value::Bool(true))
            }
            _ => false,
        }
    }

    /// True if an input is required.
    pub(super) fn is_required(&self) -> bool {
        let requires = self.schema.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
        let is_open = self.schema.get("type").and_then(Value::as_str) == Some("object");
        requires || !is_open
    }
}

/// The parameter objects of a binding; `needs` is true for a fixed parameter that every request has.
pub(super) fn parameters(
    binding: &HttpBinding,
    input: &Input,
    needs: &dyn Fn(&HttpParameter) -> bool,
    components: &mut Components,
) -> Vec<Value> {
    binding.parameters.iter().map(|own| parameter(own, input, needs(own), components)).collect()
}

fn parameter(own: &HttpParameter, input: &Input, needs: bool, components: &mut Components) -> Value {
    let place = match own.location {
        ParameterLocation::Path => "path",
        ParameterLocation::Query => "query",
        ParameterLocation::Header => "header",
        ParameterLocation::Cookie => "cookie",
        ParameterLocation::QueryString => "querystring",
    };
    let mut out = Map::from_iter([("name".to_owned(), Value::from(&*own.name)), ("in".to_owned(), place.into())]);
    if own.property != own.name {
        out.insert(PROPERTY.into(), Value::from(&*own.property));
    }
    let schema = match &own.fixed {
        Some(value) => fixed(value),
        None => input.property(&own.property).cloned().unwrap_or(Value::Bool(true)),
    };
    let mut schema = components.schema(&schema, &input.scope);
    lift(&mut schema, "description", &mut out);
    let is_required = input.requires(&own.property);
    if own.location == ParameterLocation::Path || needs || own.fixed.is_none() && is_required {
        out.insert("required".into(), true.into());
    }
    lift(&mut schema, "deprecated", &mut out);
    let simple = matches!(own.location, ParameterLocation::Path | ParameterLocation::Header);
    let default = if simple { ParameterStyle::Simple } else { ParameterStyle::Form };
    if own.style == ParameterStyle::Json {
        out.insert("content".into(), json!({ "application/json": { "schema": schema } }));
        return Value::Object(out);
    }
    if own.location == ParameterLocation::QueryString {
        out.insert("content".into(), json!({ "application/x-www-form-urlencoded": { "schema": schema } }));
        return Value::Object(out);
    }
    style(own.style, own.explode, default, &mut out);
    if own.allow_reserved {
        match own.location {
            ParameterLocation::Query => out.insert("allowReserved".into(), true.into()),
            ParameterLocation::Cookie => out.insert("style".into(), "cookie".into()),
            _ => out.insert("allowReserved".into(), true.into()),
        };
    }
    out.insert("schema".into(), schema);
    Value::Object(out)
}

/// The parts of a request that a caller sets: the parameters, the bodies, and the schema of the input. `None` if unknown.
///
/// What the operation sets itself is left out, and so is the schema of a body with such a property: it depends on its value.
pub(super) fn of_caller(spec: &OperationSpec) -> Option<(Vec<&HttpParameter>, Vec<HttpBody>, Value)> {
    let http = spec.http()?;
    let mut input = spec.input.to_value().ok()?.into_owned();
    if let Some(members) = input.as_object_mut() {
        // A Rust type has a name and a text of its own.
        members.retain(|key, _| key != "title" && key != "description");
    }
    for body in http.bodies.iter().filter(|body| !body.fixed.is_empty()) {
        if let Some(properties) = input.get_mut("properties").and_then(Value::as_object_mut) {
            properties.shift_remove(body.property.as_ref());
        }
    }
    let parameters = http.parameters.iter().filter(|own| own.fixed.is_none()).collect();
    let plain = |body: &HttpBody| HttpBody { fixed: Cow::Borrowed(&[]), variant: None, ..body.clone() };
    Some((parameters, http.bodies.iter().map(plain).collect(), input))
}

/// True if a parameter is none of OpenAPI 3.1.
pub(super) fn needs_32(own: &HttpParameter) -> bool {
    match own.location {
        ParameterLocation::QueryString => true,
        ParameterLocation::Query => false,
        _ => own.allow_reserved && own.style != ParameterStyle::Json,
    }
}

/// The schema of a boolean that operations at one path are told apart by.
pub(super) fn fixed(value: &Literal) -> Value {
    match value {
        Literal::Bool(value) => json!({ "type": "boolean", "enum": [value] }),
        Literal::Text(text) => json!({ "type": "string", "enum": [text] }),
    }
}

/// Writes a style and `explode`, unless they are the default.
fn style(style: ParameterStyle, explode: bool, default: ParameterStyle, out: &mut Map<String, Value>) {
    if style != default {
        out.insert("style".into(), style_name(style).into());
    }
    if explode != (style == ParameterStyle::Form) {
        out.insert("explode".into(), explode.into());
    }
}

fn style_name(style: ParameterStyle) -> &'static str {
    match style {
        ParameterStyle::Simple => "simple",
        ParameterStyle::Form => "form",
        ParameterStyle::Label => "label",
        ParameterStyle::Matrix => "matrix",
        ParameterStyle::SpaceDelimited => "spaceDelimited",
        ParameterStyle::PipeDelimited => "pipeDelimited",
        ParameterStyle::DeepObject => "deepObject",
        ParameterStyle::Json => "json",
    }
}

/// Moves a member of a schema to the object around it, if it is beside a reference or a type.
fn lift(schema: &mut Value, key: &str, out: &mut Map<String, Value>) {
    if let Some(said) = schema.as_object_mut().and_then(|schema| schema.shift_remove(key)) {
        out.insert(key.to_owned(), said);
    }
}

/// The request body object of a binding, if it has bodies.
pub(super) fn body(binding: &HttpBinding, input: &Input, components: &mut Components) -> Option<Value> {
    let first = binding.bodies.first()?;
    let mut schema = binding.schema_of_body(first, &input.schema).unwrap_or(Value::Bool(true));
    let mut out = Map::new();
    lift(&mut schema, "description", &mut out);
    let kinds: Vec<&str> = binding.bodies.iter().map(|body| body.content_type.as_ref()).collect();
    let schemas = alternatives(&schema, &kinds);
    let mut content = Map::new();
    for (body, guessed) in binding.bodies.iter().zip(schemas) {
        let own = body.alternative(&schema).map_or(guessed, untitled);
        let schema = components.schema(&own, &input.scope);
        content.insert(body.content_type.clone().into_owned(), media_type(body, schema));
    }
    out.insert("content".into(), content.into());
    if binding.requires_body(first, &input.schema) {
        out.insert("required".into(), true.into());
    }
    if first.property != "body" {
        out.insert(PROPERTY.into(), Value::from(&*first.property));
    }
    Some(Value::Object(out))
}

/// Gives a type to each part of a multipart body that may be any value: without one, it would be a file (OpenAPI 3.1, section
/// 4.8.15).
pub(super) fn add_types(body: &mut Value, components: &mut Components) {
    let contents = body.get_mut("content").and_then(Value::as_object_mut).into_iter().flatten();
    for (_, media) in contents.filter(|(content_type, _)| is_multipart(content_type)) {
        let Some(schema) = media.get_mut("schema") else { continue };
        let next = |schema: &Value| schema.get("$ref").and_then(Value::as_str).map(str::to_owned);
        let (mut reference, mut last) = (next(schema), None);
        // A chain of references ends soon, or never.
        for _ in 0..16 {
            let Some(target) = reference.as_deref().and_then(|reference| components.target(reference)) else { break };
            last = std::mem::replace(&mut reference, next(target));
        }
        let target = last.and_then(|last| components.target(&last));
        let schema = target.unwrap_or(schema);
        let parts = schema.get_mut("properties").and_then(Value::as_object_mut);
        for part in parts.into_iter().flat_map(Map::values_mut).filter(|part| says_nothing(part)) {
            let mut members = part.as_object().cloned().unwrap_or_default();
            members.insert("type".into(), json!(["array", "boolean", "null", "number", "object", "string"]));
            *part = Value::Object(members);
        }
    }
}

fn media_type(body: &HttpBody, schema: Value) -> Value {
    let mut out = Map::from_iter([("schema".to_owned(), schema)]);
    let encodings = body.fields.iter().map(|field| {
        let mut encoding = Map::new();
        encoding.extend(field.content_type.as_ref().map(|own| ("contentType".to_owned(), Value::from(&**own))));
        if let Some((own, explode)) = field.style {
            encoding.insert("style".into(), style_name(own).into());
            encoding.insert("explode".into(), explode.into());
        }
        if field.allow_reserved {
            encoding.insert("allowReserved".into(), true.into());
        }
        (field.name.clone().into_owned(), Value::Object(encoding))
    });
    let encodings: Map<String, Value> = encodings.collect();
    if !encodings.is_empty() {
        out.insert("encoding".into(), encodings.into());
    }
    Value::Object(out)
}

/// The schema of each of several content types, of which the input or the output has one.
///
/// Content types with different schemas are a `oneOf`, in their order, each titled by its kind.
pub(super) fn alternatives(schema: &Value, content_types: &[&str]) -> Vec<Value> {
    let all = schema.get("oneOf").and_then(Value::as_array);
    let Some(all) = all.filter(|all| content_types.len() > 1 && all.len() > 1 && all.len() <= content_types.len())
    else {
        return content_types.iter().map(|_| schema.clone()).collect();
    };
    let titles: Vec<&str> =
        all.iter().map(|own| own.get("title").and_then(Value::as_str).unwrap_or_default()).collect();
    let is_ours = titles.iter().all(|title| KINDS.iter().any(|kind| is_numbered(title, kind)));
    if !is_ours {
        return content_types.iter().map(|_| schema.clone()).collect();
    }
    let mut next = 0;
    let mut out = Vec::new();
    for (at, content_type) in content_types.iter().enumerate() {
        let media = Media::of(content_type);
        let fits = |title: &str| titled(media).iter().any(|kind| is_numbered(title, kind));
        let left = content_types.len() - at;
        // A new alternative, if it may be of this kind; otherwise an earlier one.
        let is_new = titles.get(next).is_some_and(|title| fits(title)) || all.len() - next >= left;
        let chosen = if is_new && next < all.len() {
            next += 1;
            next - 1
        } else {
            titles.iter().take(next).rposition(|title| fits(title)).unwrap_or(0)
        };
        out.push(all.get(chosen).map(untitled).unwrap_or(Value::Bool(true)));
    }
    out
}

/// The titles of alternatives.
const KINDS: [&str; 6] = ["Json", "Form", "Multipart", "Lines", "Text", "Bytes"];

/// The titles that an alternative of a kind may have.
fn titled(media: Media) -> &'static [&'static str] {
    match media {
        Media::Json => &["Json"],
        Media::Form => &["Form"],
        Media::Multipart => &["Multipart"],
        Media::Lines | Media::Sequence => &["Lines", "Text"],
        Media::Text | Media::Events => &["Text"],
        Media::Bytes | Media::Other => &["Bytes"],
    }
}

/// True if a title is a word, or the word with a number.
fn is_numbered(title: &str, word: &str) -> bool {
    title.strip_prefix(word).is_some_and(|rest| {
        rest.is_empty() || rest.strip_prefix('_').is_some_and(|number| number.parse::<u32>().is_ok())
    })
}

/// A schema without the title that distinguished it.
pub(super) fn untitled(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(members) = schema.as_object_mut() {
        members.shift_remove("title");
    }
    schema
}

/// True if a content type holds parts.
pub(super) fn is_multipart(content_type: &str) -> bool {
    Media::of(content_type) == Media::Multipart
}

/// True if a content type holds JSON.
pub(super) fn is_json(content_type: &str) -> bool {
    Media::of(content_type) == Media::Json || essence(content_type) == "*/*"
}
