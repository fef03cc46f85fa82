//! Values for parameters and bodies, made from the schemas of the raw document.

use jsonschema::Validator;
use serde_json::{Value, json};

use super::document::{Content, Document, Parameter, Place, Style, Version};
use super::media::{Media, essence};
use super::schema::{self, Leniency};
use super::style;
use crate::sample::{self, Extent};

/// The bytes of a body that is bytes.
pub(super) const BYTES: &[u8] = &[0, 255, b'\r', b'\n', b'-', b'-', 128];

/// The text of a body that is text.
pub(super) const TEXT: &str = "one & two\nöne=1";

/// Text that every escaping has to care for, where a schema takes any text.
const SPICY: &str = "te xt/ö?&=#%25+,;|[]:@\"'\\<>";

/// Text that a cookie may hold unescaped.
const COOKIE: &str = "a/b?c=d:e+f";

/// The page that sends a request. A server refuses another text than the origin of a page (RFC 6454, section 7).
pub(super) const ORIGIN: &str = "https://app.example.com";

/// So many members of a value are left out until it fits.
const PRUNED: usize = 24;

/// Text for where reserved characters stay as they are.
const OPEN: &str = "te xt/ö?,;";

/// A value that was made of a schema.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) value: Value,
    /// True if the schema accepts it to the letter, in the judgement of another library.
    pub(super) fits: bool,
}

/// A value for a parameter: with text of all sorts where everything is set.
pub(super) fn of_parameter(document: &Document<'_>, parameter: &Parameter, extent: Extent) -> Made {
    let spice = match parameter.place {
        // Nothing is escaped in headers, and a comma separates.
        Place::Header => "text",
        Place::Cookie if parameter.is_open => COOKIE,
        _ if parameter.is_open => OPEN,
        _ => SPICY,
    };
    let mut made = of_schema(document, &parameter.schema, extent, spice);
    let is_nothing = match &made.value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    if is_nothing && extent == Extent::Required {
        made = of_schema(document, &parameter.schema, Extent::Everything, spice);
    }
    // Nothing is written for an empty object, and a path needs a value.
    let any = json!({ "key": "text" });
    if parameter.place == Place::Path && made.value == json!({}) && is_accepted(document, &parameter.schema, &any) {
        made.value = any;
    }
    let is_origin = parameter.place == Place::Header && parameter.name.eq_ignore_ascii_case("origin");
    if is_origin && made.value.is_string() && is_accepted(document, &parameter.schema, &json!(ORIGIN)) {
        made.value = json!(ORIGIN);
    }
    if make_whole(parameter, &mut made.value, false) {
        made.fits &= is_accepted(document, &parameter.schema, &made.value);
    }
    made
}

/// Leaves out of a list or an object what the client refuses, because a server would read another value: what separates the
/// texts, and what else cannot be without it. JSON inside a list is not refused, but a server does not find its end.
///
/// Gives true if anything was left out.
pub(super) fn make_whole(parameter: &Parameter, value: &mut Value, is_plain: bool) -> bool {
    let is_header = parameter.place == Place::Header;
    let delimiters: &[&str] = match parameter.style {
        Style::Label if parameter.explode => &["."],
        _ if parameter.explode && !is_header => return false,
        Style::SpaceDelimited => &[" ", "%20"],
        Style::PipeDelimited => &["|", "%7C", "%7c"],
        Style::Simple if is_header => &[","],
        Style::Form if is_plain || parameter.is_open => &[","],
        _ => return false,
    };
    let before = value.clone();
    let whole = |text: &str| {
        let text = delimiters.iter().fold(text.to_owned(), |text, delimiter| text.replace(*delimiter, ""));
        if is_header { text.trim().to_owned() } else { text }
    };
    let made_whole = |value: &mut Value| {
        if let Value::String(text) = value {
            *text = whole(text);
        }
        let text = style::scalar(value);
        whole(&text) == text
    };
    match value {
        Value::Array(items) => items.retain_mut(made_whole),
        Value::Object(members) => members.retain(|name, value| {
            let is_pair = is_header && parameter.explode && name.contains('=');
            !is_pair && whole(name) == *name && made_whole(value)
        }),
        _ => {}
    }
    *value != before
}

/// True if the schema accepts a value to the letter. What cannot be checked is taken as it is.
pub(super) fn is_accepted(document: &Document<'_>, schema: &Value, value: &Value) -> bool {
    sample::accepts(&schema::closed(document, schema, Leniency::Letter), value).unwrap_or(true)
}

/// A value for a body.
pub(super) fn of_body(document: &Document<'_>, schema: &Value, media: Media, extent: Extent) -> Made {
    let mut made = of_schema(document, schema, extent, SPICY);
    if media == Media::Multipart {
        // Files are base64 in an input.
        for (name, part) in made.value.as_object_mut().into_iter().flatten() {
            let property = property(document, schema, name);
            if property.is_some_and(|property| is_file(document, &property)) && part.is_string() {
                *part = json!("aGVsbG8=");
            }
        }
    }
    made
}

fn of_schema(document: &Document<'_>, schema: &Value, extent: Extent, spice: &str) -> Made {
    let mut best = Value::Null;
    for leniency in [Leniency::Letter, Leniency::Meant] {
        let closed = schema::closed(document, schema, leniency);
        // What cannot be checked is taken as it was made.
        let validator = jsonschema::draft202012::options().should_validate_formats(true).build(&closed).ok();
        let fits = |value: &Value| validator.as_ref().is_none_or(|validator| validator.is_valid(value));
        let made = sample::accepted(schema::root(&closed), &closed, extent, &fits);
        let made = made.or_else(|value| match &validator {
            Some(validator) => pruned(validator, value),
            None => Ok(value),
        });
        match made {
            Ok(value) => {
                let other = if extent == Extent::Everything { spiced(&value, spice) } else { Value::Null };
                let is_better = extent == Extent::Everything && validator.is_some() && fits(&other);
                let value = if is_better { other } else { value };
                return Made { value, fits: leniency == Leniency::Letter };
            }
            Err(value) => best = value,
        }
    }
    Made { value: best, fits: false }
}

/// The value without what does not fit: optional properties that no value can have.
fn pruned(validator: &Validator, value: Value) -> Result<Value, Value> {
    let mut left = value.clone();
    for _ in 0..PRUNED {
        let places: Vec<String> = validator.iter_errors(&left).map(|error| error.instance_path().to_string()).collect();
        // The deepest first: what holds it may fit without it.
        let Some(place) = places.into_iter().max_by_key(|place| place.matches('/').count()) else { return Ok(left) };
        if !removed(&mut left, &place) {
            break;
        }
    }
    Err(value)
}

fn removed(value: &mut Value, place: &str) -> bool {
    let Some((parent, token)) = place.rsplit_once('/') else { return false };
    let token = token.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => members.remove(&token).is_some(),
        Some(Value::Array(items)) => {
            let at = token.parse().ok().filter(|at| *at < items.len());
            at.map(|at: usize| items.remove(at)).is_some()
        }
        _ => false,
    }
}

/// The value with other text in the place of text that says nothing.
fn spiced(value: &Value, spice: &str) -> Value {
    match value {
        Value::String(text) => {
            let number = text.strip_prefix("text");
            match number.filter(|number| number.bytes().all(|b| b.is_ascii_digit())) {
                Some(number) => json!(format!("{spice}{number}")),
                None => value.clone(),
            }
        }
        Value::Array(items) => items.iter().map(|item| spiced(item, spice)).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), spiced(value, spice))).collect(),
        _ => value.clone(),
    }
}

/// The schema of a property, whichever part of a schema has it.
pub(super) fn property(document: &Document<'_>, schema: &Value, name: &str) -> Option<Value> {
    let found = std::cell::RefCell::new(None);
    schema::any(document, schema, 12, &|part| {
        let property = part.get("properties").and_then(|properties| properties.get(name));
        if let Some(property) = property {
            *found.borrow_mut() = Some(property.clone());
        }
        property.is_some()
    });
    found.into_inner()
}

/// The schema of the items of a list.
pub(super) fn items(document: &Document<'_>, schema: &Value) -> Option<Value> {
    let found = std::cell::RefCell::new(None);
    schema::any(document, schema, 12, &|part| {
        *found.borrow_mut() = part.get("items").cloned();
        part.get("items").is_some()
    });
    found.into_inner()
}

/// Whether a part of a multipart body is a file that an input has in base64.
pub(super) fn is_file(document: &Document<'_>, schema: &Value) -> bool {
    is_bytes(document, schema, 4) || document.version >= Version::V31 && says_nothing(schema)
}

/// Whether a schema is one of bytes, or of a list of them: itself, or a variant, if no other variant is text.
fn is_bytes(document: &Document<'_>, schema: &Value, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let is_binary =
        |part: &Value| part["format"] == "binary" || part["contentEncoding"] == "binary" || says_file(document, part);
    let is_one = |schema: &Value| is_bytes(document, schema, depth);
    let is_any_text = |part: &Value| part["type"] == "string" && part["enum"].is_null() && part["const"].is_null();
    let is_text = |schema: &&Value| !is_one(schema) && schema::any(document, schema, 12, &is_any_text);
    let has_variant = |part: &Value| {
        let variants = ["anyOf", "oneOf"].iter().filter_map(|key| part[*key].as_array()).flatten();
        let variants: Vec<&Value> = variants.collect();
        variants.iter().any(|variant| is_one(variant)) && !variants.iter().any(is_text)
    };
    schema::any(document, schema, 12, &is_binary)
        || items(document, schema).is_some_and(|items| is_one(&items))
        || schema::any(document, schema, 12, &has_variant)
}

/// Whether a schema says by its media type that a value is bytes (3.1, section 4.8.14.2).
fn says_file(document: &Document<'_>, schema: &Value) -> bool {
    let kind = schema["contentMediaType"].as_str().filter(|_| schema["contentEncoding"].is_null());
    document.version >= Version::V31 && kind.is_some_and(|kind| Media::of(kind) == Media::Bytes)
}

/// Whether a schema accepts anything, and may have a description.
fn says_nothing(schema: &Value) -> bool {
    const WORDS: [&str; 5] = ["title", "description", "example", "examples", "deprecated"];
    match schema {
        Value::Object(members) => members.keys().all(|key| WORDS.contains(&key.as_str()) || key.starts_with("x-")),
        other => *other == Value::Bool(true),
    }
}

/// The schema of a form, or of parts: that of any object if it says nothing, leads nowhere, or is of no form.
pub(super) fn form(document: &Document<'_>, schema: Value, media: Media) -> Value {
    let is_known = |part: &Value| {
        let mut beside = part.clone();
        let has_reference = beside.as_object_mut().is_some_and(|members| members.remove("$ref").is_some());
        (!has_reference || document.version >= Version::V31) && !says_nothing(&beside)
    };
    let is_other = |part: &Value| match part["type"].as_str() {
        Some(kind) => ["array", "boolean", "integer", "number", "string"].contains(&kind),
        None => part.get("items").is_some(),
    };
    let is_of_none = media == Media::Form && schema::any(document, &schema, 12, &is_other);
    if is_of_none || !schema::any(document, &schema, 12, &is_known) {
        return json!({ "type": "object", "additionalProperties": { "type": "string" } });
    }
    schema
}

/// The schema of a body of JSON texts, as a list; `None` if it is a text.
///
/// What is neither a string nor a list is the schema of one text, but a union, which says itself what it takes.
pub(super) fn lines(document: &Document<'_>, schema: &Value) -> Option<Value> {
    let is = |kind: &str| schema::any(document, schema, 12, &|part| part["type"] == kind);
    if says_nothing(schema) || is("string") {
        return None;
    }
    let says = |key: &str| schema::any(document, schema, 12, &|part| part.get(key).is_some());
    let is_whole = is("array") || says("items") || says("anyOf") || says("oneOf");
    Some(if is_whole { schema.clone() } else { json!({ "type": "array", "items": schema }) })
}

/// The name and the schema of the only part of a form that is no object; `None` if it is one.
pub(super) fn nameless(document: &Document<'_>, content: &Content) -> Option<(String, Value)> {
    if essence(&content.content_type) != "multipart/form-data" || !content.fields.is_empty() {
        return None;
    }
    let is = |schema: &Value, kind: &str| schema::any(document, schema, 12, &|part| part["type"] == kind);
    let bytes = || json!({ "type": "string", "format": "binary" });
    let is_plain = |schema: &Value| {
        let is_text = is(schema, "string") && !schema::any(document, schema, 12, &|part| part.get("enum").is_some());
        says_nothing(schema) || is_text
    };
    let schema = match &content.schema {
        schema if is_plain(schema) => bytes(),
        schema if is(schema, "array") => {
            let items = items(document, schema).unwrap_or(Value::Bool(true));
            json!({ "type": "array", "items": if is_plain(&items) { bytes() } else { items } })
        }
        schema if ["integer", "number", "boolean"].iter().any(|kind| is(schema, kind)) => schema.clone(),
        _ => return None,
    };
    let name = if content.encoding.len() == 1 { content.encoding.keys().next().cloned() } else { None };
    Some((name.unwrap_or_else(|| "file".to_owned()), schema))
}
