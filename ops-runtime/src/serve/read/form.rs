//! Reads forms: `application/x-www-form-urlencoded`, and a query string that is a form.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::shape::{Shape, Types};
use super::style::{self, Read};
use super::text::{Escaping, Fault, Pair, Pairs};
use super::tree;
use crate::model::media;
use crate::{HttpField, HttpParameter, ParameterLocation, ParameterStyle};

/// The object whose properties are the fields of a form.
///
/// # Errors
/// The faults of all fields, at pointers below that of the body, `at`.
pub(super) fn object(
    text: &str,
    fields: &[HttpField],
    shape: &Shape,
    at: &str,
) -> Result<Map<String, Value>, Vec<Fault>> {
    let pairs = Pairs::split(text, Escaping::Form);
    let mut pairs = pairs.map_err(|error| vec![Fault { pointer: at.to_owned(), message: error.to_owned() }])?;
    let (mut members, mut faults) = (Map::new(), Vec::new());
    let mut put = |name: &str, read: Read<Option<Value>>| match read {
        Ok(Some(value)) => drop(members.insert(name.to_owned(), value)),
        Ok(None) => {}
        Err(message) => faults.push(below(at, name, message)),
    };
    for field in fields.iter().filter(|field| field.style.is_none()) {
        put(&field.name, Ok(json(field, &shape.property(&field.name), &mut pairs)));
    }
    // There may be many names, and the shape is the same for all undeclared ones.
    let (declared, others) = (shape.names(), shape.others());
    let is_other = |own: &str, name: &str| {
        let is_another = |name: &str| name != own && declared.binary_search(&name).is_ok();
        let root = tree::root(name);
        // `name[x]` is a part of a value only if that value may have parts.
        is_another(name) || is_another(root) && may_have_parts(&shape.property(root))
    };
    styled(fields, shape, &mut pairs, is_other, &mut put);
    for (name, own) in groups(pairs, &declared) {
        let mut own = Pairs { all: own, escaping: Escaping::Form };
        let read = match declared.binary_search(&name.as_str()) {
            Ok(_) => plain(&name, &shape.property(&name), &mut own),
            Err(_) => plain(&name, &others, &mut own),
        };
        put(&name, read);
    }
    if faults.is_empty() { Ok(members) } else { Err(faults) }
}

/// The remaining pairs, grouped by field, in the order of the request.
fn groups(pairs: Pairs, declared: &[&str]) -> Vec<(String, Vec<Pair>)> {
    let mut groups: Vec<(String, Vec<Pair>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for pair in pairs.all.into_iter().filter(|pair| !pair.is_taken) {
        let is_declared = declared.binary_search(&pair.name.as_str()).is_ok();
        let name = if is_declared { &pair.name } else { tree::root(&pair.name) };
        let place = places.get(name).copied().unwrap_or_else(|| {
            places.insert(name.to_owned(), groups.len());
            groups.push((name.to_owned(), Vec::new()));
            groups.len() - 1
        });
        if let Some((_, own)) = groups.get_mut(place) {
            own.push(pair);
        }
    }
    groups
}

/// An error of a field, or of a part.
pub(super) fn below(at: &str, name: &str, message: impl Into<String>) -> Fault {
    Fault { pointer: format!("{at}/{}", crate::pointer::escaped(name)), message: message.into() }
}

/// Reads the fields that have a style, and gives each to `put`. `is_other` gets the name of a map and that of a pair, and is true
/// if the pair belongs to another field.
pub(super) fn styled(
    fields: &[HttpField],
    shape: &Shape,
    pairs: &mut Pairs,
    is_other: impl Fn(&str, &str) -> bool,
    mut put: impl FnMut(&str, Read<Option<Value>>),
) {
    let parameters: Vec<HttpParameter> = fields.iter().filter_map(parameter).collect();
    let mut absent = Vec::new();
    for parameter in &parameters {
        let own = shape.property(&parameter.name);
        match style::pairs(parameter, &own, pairs) {
            Ok(None) => absent.push((parameter, own)),
            read => put(&parameter.name, read),
        }
    }
    style::spread(absent, pairs, |own, name| is_other(&own.name, name), |own, read| put(&own.name, read));
}

/// A field with a style, as a parameter. `None` if it has no style.
fn parameter(field: &HttpField) -> Option<HttpParameter> {
    let (style, explode) = field.style?;
    let mut parameter = HttpParameter::owned(ParameterLocation::Query, field.name.clone()).with_style(style, explode);
    parameter.allow_reserved = field.allow_reserved;
    Some(parameter)
}

/// True if a value may be an object or a list.
fn may_have_parts(shape: &Shape) -> bool {
    shape.types() == Types::NOTHING || shape.may_be(Types::ARRAY.or(Types::OBJECT))
}

/// A list or an object that a field has as JSON.
fn json(field: &HttpField, shape: &Shape, pairs: &mut Pairs) -> Option<Value> {
    let is_json = field.content_type.as_deref().is_some_and(media::is_json);
    let is_own = |value: &str| {
        let text = pairs.escaping.undo(value).ok()?;
        let value: Value = serde_json::from_str(&text).ok()?;
        (value.is_array() || value.is_object()).then_some(value)
    };
    // Only lists and objects are JSON; everything else is a plain field.
    let mut own = pairs.all.iter().filter(|pair| pair.name == field.name);
    if let (true, Some(pair), None) = (is_json && may_have_parts(shape), own.next(), own.next())
        && let Some(value) = is_own(&pair.value)
    {
        pairs.take(&field.name);
        return Some(value);
    }
    None
}

/// A field without a description: a deep object if it has keys, else one value or several.
fn plain(name: &str, shape: &Shape, pairs: &mut Pairs) -> Read<Option<Value>> {
    let parameter = HttpParameter::owned(ParameterLocation::Query, name.to_owned());
    match style::pairs(&parameter, shape, pairs)? {
        Some(value) => Ok(Some(value)),
        None => style::pairs(&parameter.with_style(ParameterStyle::DeepObject, true), shape, pairs),
    }
}
