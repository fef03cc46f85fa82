//! Decides which texts a part takes that may be bytes as well.

use std::cell::RefCell;

use serde_json::{Map, Value, json};

use super::{DEPTH, Walker, is_part, of_body};
use crate::OperationSpec;
use crate::normalise::Validator;

/// What the texts of a format match at least: base64 does not, or hardly ever.
const FORMATS: &[(&str, &str)] = &[
    ("date", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
    ("date-time", ":"),
    ("email", "@"),
    ("ipv4", "[.]"),
    ("ipv6", ":"),
    ("iri", ":"),
    ("time", ":"),
    ("uri", ":"),
    ("url", ":"),
    ("uuid", "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"),
];

/// Accepts the texts that the document describes for the property `name` of the body, or for its items.
pub(in crate::http::body) fn texts_of(spec: &OperationSpec, property: &str, name: &str, is_item: bool) -> Validator {
    let found = RefCell::new(Vec::new());
    is_part(spec, property, name, &|walker, part| {
        found.borrow_mut().push(walker.texts(part, is_item, DEPTH).taken);
        false
    });
    any_of(found.into_inner())
}

/// Accepts the texts that the document describes for a body, or for its items.
pub(in crate::http::body) fn all_texts(spec: &OperationSpec, property: &str, is_item: bool) -> Validator {
    let found = RefCell::new(Vec::new());
    if let Ok(input) = spec.input.to_value() {
        let walker = Walker::new(spec, &input);
        walker.any(&input, DEPTH, &|schema| {
            let body = of_body(schema, property);
            found.borrow_mut().extend(body.map(|body| walker.texts(body, is_item, DEPTH).taken));
            false
        });
    }
    any_of(found.into_inner())
}

fn any_of(mut schemas: Vec<Value>) -> Validator {
    schemas.push(Value::Bool(false));
    let texts = Validator::new(&json!({ "anyOf": schemas }));
    // A pattern that cannot be read would accept every text, and so every file.
    if texts.problems().is_empty() { texts } else { Validator::new(&Value::Bool(false)) }
}

/// Schemas of texts, without references.
struct Texts {
    /// Those that a schema does not refuse.
    fits: Value,
    /// Those of them that it takes because it says that it takes texts, or lists them.
    taken: Value,
}

impl Texts {
    fn new(fits: impl Into<Value>, taken: impl Into<Value>) -> Self {
        Self { fits: fits.into(), taken: taken.into() }
    }

    /// The texts of a schema with these parts.
    fn of_parts(parts: Vec<Self>) -> Self {
        let (fits, taken): (Vec<Value>, Vec<Value>) = parts.into_iter().map(|part| (part.fits, part.taken)).unzip();
        let fits = json!({ "allOf": fits });
        let taken = json!({ "allOf": [fits, { "anyOf": taken }] });
        Self { fits, taken }
    }

    /// The texts of a union of these variants.
    fn of_variants(variants: Vec<Self>) -> Self {
        let (fits, taken): (Vec<Value>, Vec<Value>) = variants.into_iter().map(|one| (one.fits, one.taken)).unzip();
        Self::new(json!({ "anyOf": fits }), json!({ "anyOf": taken }))
    }
}

impl Walker<'_> {
    /// The texts that a schema takes as they are, not as bytes. For an item, these are the texts of lists.
    fn texts(&self, schema: &Value, is_item: bool, depth: usize) -> Texts {
        let (Some(depth), Some(room)) = (depth.checked_sub(1), self.room.get().checked_sub(1)) else {
            return Texts::new(true, false);
        };
        self.room.set(room);
        let kind = schema.get("type");
        let may_be = |wanted: &str| match kind {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == wanted),
            Some(kind) => kind == wanted,
            None => true,
        };
        let values = ["const", "enum"].into_iter().find_map(|keyword| {
            let values = schema.get(keyword)?;
            Some(json!({ keyword: values }))
        });
        let is_binary = schema.get("format").is_some_and(|format| format == "binary");
        let is_other = if is_item { !may_be("array") || values.is_some() } else { !may_be("string") };
        let own = match (values, schema.get("items")) {
            _ if is_binary || is_other => Texts::new(false, false),
            (Some(values), _) => Texts::new(values.clone(), values),
            (None, Some(items)) if is_item => self.texts(items, false, depth),
            (None, _) if is_item => Texts::new(true, false),
            (None, _) => Texts::new(conditions(schema), kind.is_some()),
        };
        let target = self.target(schema, |target| self.texts(target, is_item, depth));
        let list = |keyword: &str| -> Vec<Texts> {
            let list = schema.get(keyword).and_then(Value::as_array);
            list.into_iter().flatten().map(|part| self.texts(part, is_item, depth)).collect()
        };
        let unions = ["anyOf", "oneOf"].into_iter().map(list).filter(|variants| !variants.is_empty());
        let parts = [own].into_iter().chain(target).chain(unions.map(Texts::of_variants)).chain(list("allOf"));
        Texts::of_parts(parts.collect())
    }
}

/// What a schema asks of texts beside their type.
fn conditions(schema: &Value) -> Value {
    let own = ["minLength", "maxLength", "pattern"].into_iter();
    let mut conditions: Map<String, Value> =
        own.filter_map(|keyword| Some((keyword.to_owned(), schema.get(keyword)?.clone()))).collect();
    let format = schema.get("format").and_then(Value::as_str);
    if let Some((_, pattern)) = FORMATS.iter().find(|(name, _)| Some(*name) == format) {
        conditions.insert("allOf".to_owned(), json!([{ "pattern": pattern }]));
    }
    Value::Object(conditions)
}
