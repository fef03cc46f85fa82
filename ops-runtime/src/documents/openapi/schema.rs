//! Schemas of any dialect of OpenAPI, rewritten to JSON Schema 2020-12 with `$ref`s to named definitions.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::document::{MAX_HOPS, Node};
use super::null::{may_be_null, nullable};
use super::pointer::{self, definition_reference, may_lead_around, percent_decoded, reference_to};
use super::reader::Reader;
use super::short::short;
use super::text::{MAX_VALUE, depth, kind};
use super::version::Version;
use crate::model::keywords::{Holds, holds};
use crate::model::media::Media;
use crate::model::nearest::nearest;

/// How deep the JSON of one schema goes; a schema further down becomes a definition of its own.
///
/// Small enough that the text of a schema stays within what JSON parsers accept.
const MAX_DEPTH: usize = 80;

/// How many parts of an `allOf` are looked into, and how deep.
pub(super) const MAX_PARTS: usize = 8;

/// How many parts of one `allOf` are looked into in all.
const MAX_SEEN: usize = 128;

/// Members that do not constrain values, or that only structure a document.
const DROPPED: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$id",
    "$recursiveAnchor",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "definitions",
    "example",
    "examples",
    "externalDocs",
    "id",
    "nullable",
    "xml",
];

const TYPES: &[&str] = &["string", "integer", "number", "boolean", "object", "array", "null"];

impl<'a> Reader<'a> {
    /// The schema at a place, rewritten; the places that it refers to become definitions.
    pub(super) fn schema(&mut self, node: &Node<'a>) -> Value {
        self.rewrite(node, 0)
    }

    /// The schema at a place, `level` levels of JSON below the top of the output.
    pub(super) fn rewrite(&mut self, at: &Node<'a>, level: usize) -> Value {
        let map = match at.value {
            Value::Object(map) => map,
            Value::Bool(accepts) => return Value::Bool(*accepts),
            other => {
                self.warn(at, format!("a schema is {}, not an object", kind(other)), "any value is accepted");
                return Value::Bool(true);
            }
        };
        if level > MAX_DEPTH {
            return reference_to(&self.define(at));
        }
        let out = self.content(at, map, level);
        if self.is_nullable(at) { nullable(out, self.has_null_variant(at)) } else { Value::Object(out) }
    }

    /// True if a variant of a schema's `oneOf` refers to a schema that may accept null.
    fn has_null_variant(&self, at: &Node<'a>) -> bool {
        let variants = at.get("oneOf").into_iter().flat_map(|list| list.items());
        variants.filter(|variant| variant.text("$ref").is_some()).any(|variant| {
            let found = self.documents.resolve(variant);
            found.is_ok_and(|found| self.is_nullable(&found) || may_be_null(found.value))
        })
    }

    /// What the members of a schema say, without the null that `nullable` adds.
    pub(super) fn content(&mut self, at: &Node<'a>, map: &Map<String, Value>, level: usize) -> Map<String, Value> {
        let mut out = Map::new();
        if let Some(reference) = map.get("$ref") {
            self.reference(at, reference, &mut out);
            if !self.version.keeps_siblings() {
                return out;
            }
        }
        for key in map.keys().filter(|key| *key != "$ref") {
            self.keyword(at, key, level + 1, &mut out);
        }
        self.enumeration(at, &mut out);
        out
    }

    /// True if a schema with a `$ref` says something beside that.
    pub(super) fn adds_to_its_reference(&self, at: &Node<'a>) -> bool {
        let has_siblings = at.value.as_object().is_some_and(|members| members.len() > 1);
        has_siblings && (self.version.keeps_siblings() || self.is_nullable(at))
    }

    pub(super) fn is_nullable(&self, at: &Node<'a>) -> bool {
        at.is(if self.version == Version::V20 { "x-nullable" } else { "nullable" })
    }

    fn reference(&mut self, at: &Node<'a>, reference: &Value, out: &mut Map<String, Value>) {
        let found = match reference.as_str() {
            Some(reference) => self.target(at, reference).and_then(|found| self.schema_of(at, reference, found)),
            None => Err(format!("`$ref` is {}, not text", kind(reference))),
        };
        match found {
            Ok(node) => {
                out.insert("$ref".into(), definition_reference(&self.define(&node)));
            }
            Err(message) => self.warn(at, message, "any value is accepted"),
        }
    }

    pub(super) fn target(&self, at: &Node<'a>, reference: &str) -> Result<Node<'a>, String> {
        let by_id = if self.version >= Version::V31 { self.documents.find_by_id(at, reference) } else { None };
        let found = by_id.map_or_else(|| self.documents.find(at.document, reference), Ok);
        // A schema that was once a document may have definitions inside, or beside its reference.
        let found = found.or_else(|error| {
            if !may_lead_around(reference) {
                return Err(error);
            }
            let pointer = percent_decoded(reference.get(1..).unwrap_or_default());
            let way = self.documents.way(at.document, &at.path);
            let mut found =
                way.into_iter().rev().filter_map(|node| self.documents.walk(node, &pointer, &mut MAX_HOPS.clone()));
            found.next().ok_or(error)
        })?;
        if found.value.is_object() || found.value.is_boolean() {
            return Ok(found);
        }
        Err(format!("`{}` is {}, not a schema", short(reference), kind(found.value)))
    }

    /// The schema that a reference means. Some documents refer to a response, or another part that has a schema, in place of the
    /// schema: then it is the schema of that part. Otherwise, it is the place found.
    fn schema_of(&mut self, at: &Node<'a>, reference: &str, found: Node<'a>) -> Result<Node<'a>, String> {
        if !has_schema(&found) {
            return Ok(found);
        }
        let mut meant = schema_in(&found);
        // That schema may refer to such a part, too, even in a circle.
        for _ in 0..MAX_HOPS {
            match meant.map(|schema| self.meant(schema)) {
                Some(part) if has_schema(&part) => meant = schema_in(&part),
                Some(schema) => {
                    self.warn(at, format!("`{}` is not a schema", short(reference)), "the schema in it was taken");
                    return Ok(schema);
                }
                None => break,
            }
        }
        Err(format!("`{}` is not a schema", short(reference)))
    }

    /// Rewrites one member of a schema.
    pub(super) fn keyword(&mut self, at: &Node<'a>, key: &str, level: usize, out: &mut Map<String, Value>) {
        let Some(inner) = at.get(key) else { return };
        let value = inner.value;
        let (key, value) = match (key, value) {
            ("x-rust-type", _) if self.rust_types && depth(value) <= MAX_VALUE => (key, value.clone()),
            ("examples", Value::Array(_)) if self.examples && depth(value) <= MAX_VALUE => (key, value.clone()),
            ("example", _) if self.examples && at.get("examples").is_none() && depth(value) <= MAX_VALUE => {
                ("examples", json!([value]))
            }
            (key, _) if DROPPED.contains(&key) || key.starts_with("x-") => return,
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(_)) => {
                (key, self.members(&inner, level + 1))
            }
            // Two keywords since 2019-09.
            ("dependencies", Value::Object(_)) => return self.dependencies(at, &inner, level, out),
            ("allOf", Value::Array(_)) => {
                let parts = inner.items().map(|part| {
                    let extended = self.extended(at, &part, level + 1);
                    extended.unwrap_or_else(|| self.rewrite(&part, level + 1))
                });
                (key, parts.collect())
            }
            ("anyOf" | "oneOf", Value::Array(_)) => (key, self.variants(&inner, level + 1)),
            ("prefixItems", Value::Array(_)) => (key, self.schemas(&inner, level + 1)),
            ("items", Value::Array(_)) => {
                if let Some(rest) = at.get("additionalItems") {
                    out.insert("items".into(), self.rewrite(&rest, level));
                }
                ("prefixItems", self.schemas(&inner, level + 1))
            }
            ("additionalProperties", Value::Bool(false)) if self.forbids_its_parts(at) => {
                self.warn(&inner, "it forbids properties that the `allOf` beside it describes", "it was left out");
                return;
            }
            (
                "items"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "contentSchema",
                _,
            ) => (key, self.rewrite(&inner, level)),
            ("discriminator", _) => match self.discriminator(at, &inner) {
                Some(discriminator) => (key, discriminator),
                None => return,
            },
            ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(exclusive)) => {
                let limit = if key == "exclusiveMinimum" { "minimum" } else { "maximum" };
                match at.value.get(limit) {
                    Some(Value::Number(limit)) if *exclusive => (key, Value::Number(limit.clone())),
                    _ => return,
                }
            }
            ("minimum", Value::Number(_)) if at.is("exclusiveMinimum") => return,
            ("maximum", Value::Number(_)) if at.is("exclusiveMaximum") => return,
            ("type", Value::String(kind)) if kind == "file" && self.version == Version::V20 => {
                out.insert("format".into(), "binary".into());
                (key, "string".into())
            }
            ("type", _) => match self.types(&inner) {
                Some(types) => (key, types),
                None => return,
            },
            ("$dynamicRef" | "$recursiveRef", _) => return self.dynamic_reference(at, key, &inner, out),
            ("contentMediaType" | "contentEncoding", Value::String(_)) => {
                if let Some(format) = content_format(at) {
                    out.entry("type").or_insert_with(|| "string".into());
                    out.insert("format".into(), format.into());
                    return;
                }
                (key, value.clone())
            }
            ("format", Value::String(_)) if content_format(at).is_some() => return,
            ("required", Value::Array(_)) => match self.required(at, &inner) {
                Some(required) => (key, required),
                None => return,
            },
            _ if !is_well_formed(key, value) => {
                self.warn(&inner, format!("`{}` is {}", short(key), kind(value)), "it was left out");
                return;
            }
            _ => (key, value.clone()),
        };
        out.insert(key.into(), value);
    }

    /// Rewrites `dependencies` as the two keywords that replace it.
    fn dependencies(&mut self, at: &Node<'a>, node: &Node<'a>, level: usize, out: &mut Map<String, Value>) {
        for (name, node) in node.members() {
            let (key, value) = match node.value {
                Value::Array(names) if names.iter().all(Value::is_string) => ("dependentRequired", node.value.clone()),
                Value::Array(_) => {
                    self.warn(&node, "`dependencies` hold something else than names", "they were left out");
                    continue;
                }
                _ => ("dependentSchemas", self.rewrite(&node, level + 1)),
            };
            // Where both are there, the newer keyword counts.
            if at.get(key).is_none()
                && let Value::Object(members) = out.entry(key).or_insert_with(|| json!({}))
            {
                members.insert(name.to_owned(), value);
            }
        }
    }

    /// Rewrites a reference whose target depends on the schemas that lead to it.
    fn dynamic_reference(&mut self, at: &Node<'a>, key: &str, node: &Node<'a>, out: &mut Map<String, Value>) {
        match node.value {
            Value::String(target) if target == "#" => {
                // If nothing extends the schema, this is the schema itself.
                let tokens = at.path.tokens();
                let root = tokens.get(..3).filter(|_| tokens.len() > 3).map(|root| {
                    let mut pointer = String::new();
                    root.iter().for_each(|token| pointer::push(&mut pointer, &token.name()));
                    pointer
                });
                match root.filter(|root| root.starts_with("/components/schemas/")) {
                    Some(root) => self.reference(at, &format!("#{root}").into(), out),
                    None => self.reference(at, node.value, out),
                }
            }
            Value::String(target) if key == "$dynamicRef" => {
                let name = target.rsplit('#').next().unwrap_or_default();
                match self.documents.find_dynamic(at.document, name) {
                    // If no other place has the name, nothing can replace it.
                    Some(found) => {
                        out.insert("$ref".into(), definition_reference(&self.define(&found)));
                    }
                    None => {
                        let message = format!("`{}` can mean several schemas", short(target));
                        self.warn(node, message, "any value is accepted");
                    }
                }
            }
            _ => self.warn(node, format!("`{key}` is not followed"), "any value is accepted"),
        }
    }

    /// The names of required properties, without undeclared ones that `additionalProperties` forbids.
    fn required(&mut self, at: &Node<'a>, node: &Node<'a>) -> Option<Value> {
        if !is_well_formed("required", node.value) {
            self.warn(node, "`required` holds something else than names", "it was left out");
            return None;
        }
        let is_closed = at.value.get("additionalProperties") == Some(&Value::Bool(false));
        let known = at.get("properties");
        let parts = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"];
        if !is_closed || parts.iter().any(|key| at.get(key).is_some()) {
            return Some(node.value.clone());
        }
        let mut names = Vec::new();
        for name in node.items() {
            if known.as_ref().is_some_and(|known| name.value.as_str().is_some_and(|key| known.get(key).is_some())) {
                names.push(name.value.clone());
            } else {
                let message = format!("the required property {} is not described", short(&name.value.to_string()));
                self.warn(&name, message, "it is not required, as `additionalProperties` forbids it");
            }
        }
        if names.is_empty() { None } else { Some(Value::Array(names)) }
    }

    /// True if parts of the `allOf` describe a property that the schema does not.
    ///
    /// `additionalProperties: false` then refuses properties that it is meant to allow, because it does not see those
    /// of the parts (JSON Schema, section 10.3.2.3), and no value could have all that they require.
    fn forbids_its_parts(&self, at: &Node<'a>) -> bool {
        let own = at.get("properties");
        let is_own = |name: &str| own.as_ref().is_some_and(|own| own.get(name).is_some());
        let mut open: Vec<(Node<'a>, usize)> = vec![(at.clone(), 0)];
        let mut seen = HashSet::new();
        while let Some((node, depth)) = open.pop() {
            // Several parts may lead to the same place.
            if seen.len() >= MAX_SEEN || !seen.insert(node.key()) {
                continue;
            }
            let parts = node.get("allOf").filter(|_| depth < MAX_PARTS);
            for part in parts.iter().flat_map(Node::items).take(MAX_PARTS) {
                let Ok(part) = self.documents.resolve(part) else { continue };
                if part.get("properties").is_some_and(|found| found.members().any(|(name, _)| !is_own(name))) {
                    return !at.value.get("patternProperties").is_some_and(Value::is_object);
                }
                open.push((part, depth + 1));
            }
        }
        false
    }

    fn members(&mut self, at: &Node<'a>, level: usize) -> Value {
        let mut members = Map::new();
        for (name, node) in at.members() {
            if name == "$ref" && node.value.is_string() {
                self.warn(&node, "a `$ref` can stand for a schema, but not for a list of them", "it was left out");
            } else {
                members.insert(name.to_owned(), self.rewrite(&node, level));
            }
        }
        Value::Object(members)
    }

    fn schemas(&mut self, at: &Node<'a>, level: usize) -> Value {
        let items: Vec<_> = at.items().map(|node| self.rewrite(&node, level)).collect();
        Value::Array(items)
    }

    /// The known types among one or several names.
    fn types(&mut self, node: &Node<'a>) -> Option<Value> {
        let names: Vec<&Value> = match node.value {
            Value::Array(names) => names.iter().collect(),
            name => vec![name],
        };
        let mut known = Vec::new();
        let mut holds_null = false;
        for name in &names {
            match name {
                Value::String(text) if TYPES.contains(&text.as_str()) => known.push((*name).clone()),
                // In a list, nothing else can be meant.
                Value::Null if node.value.is_array() => {
                    holds_null = true;
                    known.push("null".into());
                }
                _ => {}
            }
        }
        if known.len() < names.len() {
            let unknown = names.iter().filter_map(|name| name.as_str()).find(|name| !TYPES.contains(name));
            let meant = unknown.and_then(|name| nearest(name, TYPES.iter().copied(), 1).pop());
            let help = match meant {
                Some(meant) => format!("that type was left out: did you mean `{meant}`?"),
                None => "that type was left out".to_owned(),
            };
            let message = format!("`{}` is not a type of JSON", short(&node.value.to_string()));
            self.warn(node, message, help);
        } else if holds_null {
            self.note_null(node);
        }
        match known.len() {
            0 => None,
            1 => known.pop(),
            _ => Some(Value::Array(known)),
        }
    }
}

/// True if a place is not a schema, but a part of a document that has one: a response, a request body, a parameter, a header
/// or a media type.
fn has_schema(node: &Node<'_>) -> bool {
    let is_media = |content: Node<'_>| content.members().any(|(key, _)| key.contains('/'));
    let describes_values = |key: &str| {
        matches!(key, "$ref" | "format" | "type") || matches!(holds(key), Holds::Schema | Holds::Schemas | Holds::Named)
    };
    let is_part =
        node.get("schema").is_some_and(|schema| schema.value.is_object()) || node.get("content").is_some_and(is_media);
    is_part && !node.members().any(|(key, _)| describes_values(key))
}

/// The schema in such a part. If there are several content types, it is that of JSON.
fn schema_in<'a>(part: &Node<'a>) -> Option<Node<'a>> {
    if let Some(schema) = part.get("schema") {
        return Some(schema);
    }
    let content = part.get("content")?;
    let schemas =
        content.members().filter_map(|(key, media)| Some((Media::of(key) != Media::Json, media.get("schema")?)));
    schemas.min_by_key(|(is_other, _)| *is_other).map(|(_, schema)| schema)
}

/// The format of text that encodes bytes, by the keywords of JSON Schema. That of base64url stays a keyword: the format `byte`
/// means base64, which has other characters.
fn content_format(at: &Node<'_>) -> Option<&'static str> {
    if !matches!(at.text("type"), None | Some("string")) {
        return None;
    }
    match (at.text("contentEncoding"), at.text("contentMediaType")) {
        (Some("base64"), _) => Some("byte"),
        (Some("binary"), _) => Some("binary"),
        (None, Some(media_type)) if Media::of(media_type) == Media::Bytes => Some("binary"),
        _ => None,
    }
}

/// True if a member has the form that later code relies on.
fn is_well_formed(key: &str, value: &Value) -> bool {
    match key {
        "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
        "enum" => value.is_array() && depth(value) <= 20,
        "default" | "const" => depth(value) <= 20,
        "format" | "title" | "description" | "pattern" => value.is_string(),
        "deprecated" | "readOnly" | "writeOnly" | "uniqueItems" => value.is_boolean(),
        "minimum" | "maximum" | "multipleOf" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.as_f64().is_some_and(|number| number >= 0.0)
        }
        "properties" | "patternProperties" | "dependentSchemas" => value.is_object(),
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => value.is_array(),
        _ => depth(value) <= 20,
    }
}
