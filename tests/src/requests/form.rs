//! Forms, parts of multipart bodies and whole query strings, as they must arrive.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::document::{Content, Document, Parameter, Place, Style, Version};
use super::expected::{Part, PartContent};
use super::media::{Media, essence};
use super::style::{self, Byte, Text};
use super::value;
use super::value::Made;

pub(super) fn query_string(parameter: &Parameter, value: &Value) -> Vec<Text> {
    match value {
        value if parameter.style == Style::Json => vec![Text::Json(Vec::new(), value.clone())],
        Value::Object(members) => {
            members.iter().flat_map(|(name, value)| style::pieces(&field(name, value), value)).collect()
        }
        value => vec![Text::Bytes(style::scalar(value).bytes().map(Byte::Either).collect())],
    }
}

/// How a field of a form is written of which nothing is said.
fn field(name: &str, value: &Value) -> Parameter {
    let is_nested = match value {
        Value::Array(items) => items.iter().any(|item| item.is_object() || item.is_array()),
        value => value.is_object(),
    };
    let style = if is_nested { Style::DeepObject } else { Style::Form };
    Parameter {
        name: name.to_owned(),
        place: Place::Query,
        style,
        explode: true,
        is_open: false,
        required: false,
        schema: Value::Null,
    }
}

/// How a field is written that the document may say something about; none if that is no form's way.
fn described(content: &Content, name: &str, value: &Value) -> Option<Parameter> {
    let mut parameter = field(name, value);
    if let Some(own) = content.fields.iter().find(|field| field.name == name) {
        (parameter.style, parameter.explode) = (own.style, own.explode);
        return Some(parameter);
    }
    let encoding = content.encoding.get(name)?;
    if !["style", "explode", "allowReserved"].iter().any(|key| encoding.get(key).is_some()) {
        return None;
    }
    (parameter.style, parameter.explode, parameter.is_open) = super::parameters::written(encoding, Place::Query);
    Some(parameter)
}

/// How a part of a multipart body is written that the document says something about; none if that is not as in a form.
///
/// A file is its bytes, whatever is said. Before 3.1, a style is for forms (3.0.4, section 4.7.15.1.2): many documents say the
/// default of each part, and only another one is meant.
fn described_part(document: &Document<'_>, content: &Content, name: &str, value: &Value) -> Option<Parameter> {
    let is_default = |encoding: &Value| matches!(encoding["style"].as_str(), None | Some("form"));
    let says_default = content.encoding.get(name).is_some_and(is_default);
    let is_file = || value::property(document, &content.schema, name).is_some_and(|own| value::is_file(document, &own));
    if says_default && document.version < Version::V31 || is_file() {
        return None;
    }
    described(content, name, value)
}

/// Leaves out of the fields of a form what the client refuses, or the fields themselves if what is left of them does not fit.
pub(super) fn make_whole(document: &Document<'_>, content: &Content, schema: &Value, media: Media, made: &mut Made) {
    let mut changed = Vec::new();
    for (name, value) in made.value.as_object_mut().into_iter().flatten() {
        let field = match media {
            Media::Multipart => described_part(document, content, name, value),
            _ => described(content, name, value),
        };
        if let Some(field) = field
            && value::make_whole(&field, value, media == Media::Multipart)
        {
            changed.push(name.clone());
        }
    }
    let fits = |value: &Value| value::is_accepted(document, schema, value);
    if made.fits && !changed.is_empty() && !fits(&made.value) {
        made.value.as_object_mut().into_iter().for_each(|members| members.retain(|name, _| !changed.contains(name)));
        made.fits = fits(&made.value);
    }
}

pub(super) fn form(content: &Content, value: &Value) -> Vec<Text> {
    let members = value.as_object().into_iter().flatten();
    let pieces = members.flat_map(|(name, value)| {
        let kind = content.encoding.get(name).and_then(|encoding| encoding["contentType"].as_str());
        let is_json =
            kind.is_some_and(|kind| Media::of(kind) == Media::Json) && (value.is_object() || value.is_array());
        let mut parameter = described(content, name, value).unwrap_or_else(|| {
            let mut parameter = field(name, value);
            parameter.style = if is_json { Style::Json } else { parameter.style };
            parameter
        });
        parameter.place = Place::Query;
        style::pieces(&parameter, value)
    });
    pieces.collect()
}

pub(super) fn parts(document: &Document<'_>, content: &Content, value: &Value) -> Vec<Part> {
    let is_form = essence(&content.content_type) == "multipart/form-data";
    let mut parts = Vec::new();
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if let Some(parameter) = described_part(document, content, name, value) {
                    let pairs = style::pieces(&parameter, value).into_iter().map(|piece| piece.plain());
                    parts.extend(pairs.map(|pair| {
                        let (name, text) = pair.split_once('=').unwrap_or((&pair, ""));
                        let content = PartContent::Bytes(text.as_bytes().to_vec());
                        Part { name: Some(name.to_owned()), is_file: false, content_type: None, content }
                    }));
                    continue;
                }
                let kind = part_type(document, content, name);
                let one = std::slice::from_ref(value);
                let items = value.as_array().map_or(one, Vec::as_slice);
                let items = items.iter().filter(|item| !item.is_null());
                parts.extend(items.map(|item| part(Some(name), kind.clone(), item, is_form)));
            }
        }
        Value::Array(items) => parts.extend(items.iter().map(|item| part(None, PartType::Plain(None), item, is_form))),
        _ => {}
    }
    parts
}

/// What is known of a part: its content type, and whether it is a file.
#[derive(Debug, Clone)]
enum PartType {
    File(String),
    Plain(Option<String>),
}

fn part_type(document: &Document<'_>, content: &Content, name: &str) -> PartType {
    let given = content.encoding.get(name).and_then(|encoding| encoding["contentType"].as_str());
    let (mut kind, mut is_file) = (given.map(str::to_owned), false);
    let found = value::property(document, &content.schema, name);
    if let Some(property) = &found {
        let described = property["contentMediaType"].as_str().filter(|_| property["contentEncoding"].is_null());
        kind = kind.or(described.map(str::to_owned));
        is_file = value::is_file(document, property);
    }
    let first = kind.as_deref().and_then(|kinds| {
        kinds.split(',').map(str::trim).find(|kind| !kind.ends_with('*') && !kind.is_empty()).map(str::to_owned)
    });
    match kind {
        Some(kinds) if kinds.split(',').all(|kind| Media::of(kind) == Media::Bytes) => {
            PartType::File(first.unwrap_or_else(|| "application/octet-stream".to_owned()))
        }
        _ if is_file => PartType::File(first.unwrap_or_else(|| "application/octet-stream".to_owned())),
        _ => PartType::Plain(first),
    }
}

fn part(name: Option<&String>, kind: PartType, value: &Value, is_form: bool) -> Part {
    let name = name.cloned();
    match (kind, value) {
        (PartType::File(kind), Value::String(text)) => {
            let bytes = STANDARD.decode(text).unwrap_or_else(|_| text.as_bytes().to_vec());
            Part { is_file: name.is_some(), name, content_type: Some(kind), content: PartContent::Bytes(bytes) }
        }
        (PartType::File(kind), value) | (PartType::Plain(Some(kind)), value) if Media::of(&kind) == Media::Json => {
            Part { name, is_file: false, content_type: Some(kind), content: PartContent::Json(value.clone()) }
        }
        (PartType::File(kind), value @ (Value::Object(_) | Value::Array(_))) => {
            Part { name, is_file: false, content_type: Some(kind), content: PartContent::Json(value.clone()) }
        }
        (PartType::Plain(kind), value @ (Value::Object(_) | Value::Array(_))) => {
            let kind = kind.unwrap_or_else(|| "application/json".to_owned());
            Part { name, is_file: false, content_type: Some(kind), content: PartContent::Json(value.clone()) }
        }
        (PartType::File(kind), value) => {
            let content = PartContent::Bytes(value.to_string().into_bytes());
            Part { name, is_file: false, content_type: Some(kind), content }
        }
        (PartType::Plain(kind), value) => {
            let plain = (!is_form).then(|| "text/plain; charset=utf-8".to_owned());
            let content = PartContent::Bytes(style::scalar(value).into_bytes());
            Part { name, is_file: false, content_type: kind.or(plain), content }
        }
    }
}
