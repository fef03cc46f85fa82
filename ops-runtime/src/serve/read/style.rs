//! Reads parameter styles: from the text in a path, a query, a header or a cookie back to the value.
//!
//! The inverse of `http/style.rs`, function by function. The schema restores what a style does not keep: types, and
//! whether one value is a list of one. Values that a style cannot represent are lost: empty lists and objects, and
//! `null`, are not sent.

use serde_json::{Map, Value};

use super::shape::{Shape, Types};
use super::text::{Escaping, Pairs};
use super::tree;
use crate::model::parameters::end_of_part;
use crate::{HttpParameter, ParameterLocation, ParameterStyle};

/// The result of reading a value; the error is a text.
pub(crate) type Read<T> = Result<T, String>;

pub(super) const TWICE: &str = "is given more than once";

/// The kind of value that the texts are pieces of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar,
    List,
    Object,
}

/// The kind of a value, by its schema and by the number of its pieces.
fn kind(shape: &Shape, is_several: bool) -> Kind {
    let (list, object, scalar) = (shape.may_be(Types::ARRAY), shape.may_be(Types::OBJECT), shape.may_be(Types::SCALAR));
    match (list, object) {
        (true, _) if is_several || !(scalar || object) => Kind::List,
        (false, true) if is_several || !scalar => Kind::Object,
        _ => Kind::Scalar,
    }
}

/// The value of a path parameter.
pub(crate) fn path(parameter: &HttpParameter, shape: &Shape, text: &str) -> Read<Value> {
    let reader = Reader { parameter, shape, escaping: Escaping::Percent };
    let (first, separator) = parameter.style.in_path();
    let Some(text) = text.strip_prefix(first) else {
        return Err(format!("begins with `{first}`, as its style asks for"));
    };
    if parameter.style == ParameterStyle::Json {
        return reader.json(text);
    }
    if parameter.style != ParameterStyle::Matrix {
        return if parameter.explode { reader.exploded(&split(text, separator)) } else { reader.joined(text) };
    }
    let name = |piece: &str| Escaping::Percent.undo(piece.split_once('=').map_or(piece, |(name, _)| name));
    let value = |piece: &&str| piece.split_once('=').map_or("", |(_, value)| value).to_owned();
    let pieces = split(text, separator);
    let is_own = |piece: &str| name(piece).is_ok_and(|name| name == parameter.name);
    if !pieces.iter().all(|piece| is_own(piece)) {
        return if parameter.explode { reader.assigned(&pieces) } else { Err("has another name".to_owned()) };
    }
    let values: Vec<String> = pieces.iter().map(value).collect();
    match values.as_slice() {
        [value] if !parameter.explode => reader.joined(value),
        _ => reader.repeated(&values.iter().map(String::as_str).collect::<Vec<_>>()),
    }
}

/// The value of a header.
pub(crate) fn header(parameter: &HttpParameter, shape: &Shape, text: &str) -> Read<Value> {
    let reader = Reader { parameter, shape, escaping: Escaping::None };
    match parameter.style {
        ParameterStyle::Json => reader.json(text),
        _ if parameter.explode => reader.exploded(&reader.pieces(text)),
        _ => reader.joined(text),
    }
}

/// The value of a query parameter, a cookie or a field, if present.
///
/// The properties of an exploded object are pairs of their own: see [`spread`].
pub(crate) fn pairs(parameter: &HttpParameter, shape: &Shape, pairs: &mut Pairs) -> Read<Option<Value>> {
    let reader = Reader { parameter, shape, escaping: escaping(parameter, pairs) };
    if parameter.style == ParameterStyle::DeepObject {
        let deep = tree::take(&parameter.name, pairs)?;
        return if deep.is_empty() { Ok(None) } else { deep.value(shape, reader.escaping).map(Some) };
    }
    // No pair has its name, but it may have a property of that name.
    if is_nameless(parameter, shape) {
        return Ok(None);
    }
    let values = pairs.take(&parameter.name);
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    match values.as_slice() {
        [] => Ok(None),
        [value] if parameter.style == ParameterStyle::Json => reader.json(value).map(Some),
        _ if parameter.style == ParameterStyle::Json => Err(TWICE.to_owned()),
        [value] if !parameter.explode => reader.joined(value).map(Some),
        _ => reader.repeated(&values).map(Some),
    }
}

/// Reads objects whose properties are pairs of their own, and gives each to `put`. Everything else that reads pairs by name
/// comes first.
///
/// Maps are the last of the objects, because a pair for a declared property of another object would also be one of theirs. A
/// map leaves the pairs for which `is_other` is true, since they are read later. But it takes a pair with the name of another
/// object that is no map, because such an object has no pair of its own name.
pub(crate) fn spread(
    mut objects: Vec<(&HttpParameter, Shape)>,
    pairs: &mut Pairs,
    is_other: impl Fn(&HttpParameter, &str) -> bool,
    mut put: impl FnMut(&HttpParameter, Read<Option<Value>>),
) {
    objects.sort_by_key(|(_, shape)| shape.has_others());
    let is_key = |name: &str| {
        objects.iter().any(|(own, shape)| own.name == name && is_nameless(own, shape) && !shape.has_others())
    };
    for (parameter, shape) in &objects {
        put(parameter, object(parameter, shape, pairs, |name| is_other(parameter, name) && !is_key(name)));
    }
}

/// The value of an object whose properties are pairs of their own, if any is present.
fn object(
    parameter: &HttpParameter,
    shape: &Shape,
    pairs: &mut Pairs,
    is_other: impl Fn(&str) -> bool,
) -> Read<Option<Value>> {
    if !parameter.is_spread() || !shape.may_be(Types::OBJECT) {
        return Ok(None);
    }
    let names = shape.names();
    let (all, others) = (shape.has_others(), shape.others());
    let taken = pairs.take_if(|pair| all && !is_other(&pair.name) || names.binary_search(&pair.name.as_str()).is_ok());
    let mut members = Map::new();
    let escaping = escaping(parameter, pairs);
    for (name, value) in taken {
        let text = escaping.undo(&value)?;
        let value = match names.binary_search(&name.as_str()) {
            Ok(_) => shape.property(&name).scalar(text),
            Err(_) => others.scalar(text),
        };
        if members.insert(name, value).is_some() {
            return Err("has a property that is given more than once".to_owned());
        }
    }
    Ok((!members.is_empty()).then_some(Value::Object(members)))
}

/// How the values of a parameter are escaped that stand in pairs.
fn escaping(parameter: &HttpParameter, pairs: &Pairs) -> Escaping {
    match parameter.location {
        ParameterLocation::Cookie if parameter.allow_reserved => Escaping::Cookie,
        _ => pairs.escaping,
    }
}

/// True if a value can only be an object whose properties are pairs of their own, so that no pair has its name.
pub(super) fn is_nameless(parameter: &HttpParameter, shape: &Shape) -> bool {
    parameter.is_spread() && kind(shape, false) == Kind::Object
}

fn split<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    text.split(separator).collect()
}

struct Reader<'a> {
    parameter: &'a HttpParameter,
    shape: &'a Shape,
    escaping: Escaping,
}

impl Reader<'_> {
    fn json(&self, text: &str) -> Read<Value> {
        let text = self.escaping.undo(text)?;
        serde_json::from_str(&text).map_err(|error| format!("is not JSON: {error}"))
    }

    /// One text with the whole value.
    fn joined(&self, text: &str) -> Read<Value> {
        if kind(self.shape, true) == Kind::Scalar {
            return self.scalar(text);
        }
        let mut pieces = self.pieces(text);
        let kind = kind(self.shape, pieces.len() > 1);
        if kind == Kind::Scalar {
            return self.scalar(text);
        }
        // Many clients escape the delimiter as well; in a value that is not text, it can be nothing else.
        let plain = self.escaping.undo(text)?;
        if pieces.len() == 1 && kind == Kind::List && !self.takes_text() {
            pieces = split(&plain, self.parameter.style.plain_delimiter());
        }
        match kind {
            Kind::List => self.items(&pieces),
            _ => self.alternating(&pieces),
        }
    }

    /// Pieces that are each an item, or a property with its value.
    fn exploded(&self, pieces: &[&str]) -> Read<Value> {
        let has_values = pieces.iter().all(|piece| piece.contains('='));
        match kind(self.shape, pieces.len() > 1) {
            Kind::Object => self.assigned(pieces),
            Kind::List if self.shape.may_be(Types::OBJECT) && has_values => self.assigned(pieces),
            Kind::List => self.items(pieces),
            // In a text that is not a list, a separator is part of the text.
            Kind::Scalar => self.scalar(&pieces.join(self.separator())),
        }
    }

    fn separator(&self) -> &'static str {
        if self.escaping == Escaping::None { "," } else { self.parameter.style.in_path().1 }
    }

    /// The values of one name.
    fn repeated(&self, values: &[&str]) -> Read<Value> {
        match (kind(self.shape, values.len() > 1), values) {
            // A list that is not exploded may be sent in several parts.
            (Kind::List, _) if !self.parameter.explode => {
                self.items(&values.iter().flat_map(|value| self.pieces(value)).collect::<Vec<_>>())
            }
            (Kind::List, [""]) if !self.takes_text() => Ok(Value::Array(Vec::new())),
            (Kind::List, _) => self.items(values),
            (_, [value]) => self.scalar(value),
            // A parameter without a schema is a list if it is present several times.
            (Kind::Scalar, _) if self.shape.types() == Types::NOTHING => self.items(values),
            _ => Err(TWICE.to_owned()),
        }
    }

    /// True if the items of the list may be texts, which may contain a delimiter.
    fn takes_text(&self) -> bool {
        let item = self.shape.item().types();
        item == Types::NOTHING || item.meets(Types::STRING.or(Types::OBJECT).or(Types::ARRAY))
    }

    fn items(&self, pieces: &[&str]) -> Read<Value> {
        let shape = self.shape.item();
        let item = |piece: &&str| Ok(shape.scalar(self.text(piece)?));
        pieces.iter().map(item).collect::<Read<_>>().map(Value::Array)
    }

    /// `key,value,key,value`
    fn alternating(&self, pieces: &[&str]) -> Read<Value> {
        let mut members = Map::new();
        for pair in pieces.chunks(2) {
            let [name, value] = pair else { return Err("has a property without a value".to_owned()) };
            self.member(&mut members, name, value)?;
        }
        Ok(Value::Object(members))
    }

    /// `key=value` in each piece.
    fn assigned(&self, pieces: &[&str]) -> Read<Value> {
        let mut members = Map::new();
        for piece in pieces {
            // In the style `matrix`, an empty value is only the name.
            let pair =
                piece.split_once('=').or((self.parameter.style == ParameterStyle::Matrix).then_some((piece, "")));
            let Some((name, value)) = pair else { return Err("has a property without a value".to_owned()) };
            self.member(&mut members, name, value)?;
        }
        Ok(Value::Object(members))
    }

    fn member(&self, members: &mut Map<String, Value>, name: &str, value: &str) -> Read<()> {
        let name = self.text(name)?;
        let value = self.shape.property(&name).scalar(self.text(value)?);
        match members.insert(name, value) {
            None => Ok(()),
            Some(_) => Err("has a property that is given more than once".to_owned()),
        }
    }

    fn scalar(&self, text: &str) -> Read<Value> {
        Ok(self.shape.scalar(self.escaping.undo(text)?))
    }

    /// A piece of a value; in headers, surrounding white space is not part of it (RFC 9110, section 5.6.1).
    fn text(&self, piece: &str) -> Read<String> {
        let piece = if self.escaping == Escaping::None { piece.trim_matches([' ', '\t']) } else { piece };
        Ok(self.escaping.undo(piece)?)
    }

    /// A text split at its delimiters, in the forms that clients write.
    fn pieces<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut delimiters = vec![self.parameter.style.plain_delimiter()];
        if self.escaping != Escaping::None {
            delimiters.extend(match self.parameter.style {
                ParameterStyle::SpaceDelimited => ["%20", "+"],
                ParameterStyle::PipeDelimited => ["%7C", "%7c"],
                style => [style.delimiter(); 2],
            });
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        let is_header = self.parameter.location == ParameterLocation::Header;
        let first = |rest: &str| {
            // In a header, a quoted string is one text, whatever it holds (RFC 9110, section 5.6.4).
            if is_header {
                return Some((end_of_part(rest, ','), 1)).filter(|(at, _)| *at < rest.len());
            }
            let found = delimiters.iter().filter_map(|delimiter| Some((rest.find(delimiter)?, delimiter.len())));
            found.min()
        };
        while let Some((at, length)) = first(rest) {
            pieces.push(rest.get(..at).unwrap_or_default());
            rest = rest.get(at + length..).unwrap_or_default();
        }
        pieces.push(rest);
        pieces
    }
}
