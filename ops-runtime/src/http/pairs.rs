//! The pairs of a query and of cookies. A value is refused if a server would read it as that of another parameter, or would not
//! see that it was sent.

use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::body::schema::{self, Object};
use super::{invalid, pointer, style};
use crate::model::binding::template::{Piece, pieces};
use crate::{CallError, HttpBinding, HttpParameter, OperationSpec, ParameterLocation, ParameterStyle, Text};

/// A pair `name=value` of a parameter.
struct Pair<'a> {
    parameter: &'a HttpParameter,
    /// The property that the pair is, if the properties of the parameter are pairs of their own.
    key: Option<String>,
    text: String,
}

impl Pair<'_> {
    /// The name, escaped.
    fn name(&self) -> &str {
        self.text.split_once('=').map_or(self.text.as_str(), |(name, _)| name)
    }

    /// The pointer to the value.
    fn place(&self) -> String {
        let key = self.key.as_deref().map(pointer).unwrap_or_default();
        format!("{}{key}", pointer(&self.parameter.property))
    }
}

/// Writes the pairs of one parameter.
pub(super) type Write = fn(&HttpParameter, &Value) -> Result<Vec<String>, CallError>;

/// Adds the pairs of the given parameters, which are in one place of the request. `placed` are the parameters in the query of
/// the template.
///
/// # Errors
/// A `VALIDATION_ERROR` with the place of a value that a server would read as that of another parameter, or replace by a
/// default.
pub(super) fn add<'a>(
    spec: &OperationSpec,
    binding: &HttpBinding,
    placed: &[Text],
    given: impl Iterator<Item = (&'a HttpParameter, Cow<'a, Value>)> + Clone,
    write: Write,
    pairs: &mut Vec<String>,
) -> Result<(), CallError> {
    // No other pairs have names that come from the input.
    let mut has_keys = false;
    for (parameter, value) in given.clone() {
        let texts = write(parameter, &value)?;
        if texts.is_empty() && !value.is_null() {
            schema::refuse_replaced(spec, "", &parameter.property, &value)?;
        }
        has_keys |= !texts.is_empty() && value.is_object() && parameter.is_spread();
        pairs.extend(texts);
    }
    if !has_keys {
        return Ok(());
    }
    let mut own = Vec::new();
    for (parameter, value) in given {
        let members = value.as_object().filter(|_| parameter.is_spread());
        let mut keys = members.into_iter().flat_map(style::defined).map(|(key, _)| key.clone());
        own.extend(write(parameter, &value)?.into_iter().map(|text| Pair { parameter, key: keys.next(), text }));
    }
    refuse_shared(&own)?;
    refuse_foreign(spec, binding, placed, &own)
}

/// Refuses a key that is the name of another parameter, or of a property of one, if the server would read it as that.
fn refuse_foreign(
    spec: &OperationSpec,
    binding: &HttpBinding,
    placed: &[Text],
    pairs: &[Pair<'_>],
) -> Result<(), CallError> {
    let Some(location) = pairs.first().map(|pair| pair.parameter.location) else { return Ok(()) };
    let here = binding.parameters.iter().filter(|own| own.location == location && !placed.contains(&own.name));
    let here: Vec<&HttpParameter> = here.collect();
    let objects = match here.as_slice() {
        [] | [_] => Vec::new(),
        several => schema::objects(spec, several.iter().map(|own| &*own.property)),
    };
    let candidate = |(at, (own, object))| Candidate { own, object, at };
    let here: Vec<Candidate<'_>> = here.into_iter().zip(objects).enumerate().map(candidate).collect();
    for pair in pairs {
        let Some(key) = pair.key.as_deref() else { continue };
        let of_template = in_template(binding, key).filter(|_| location == ParameterLocation::Query);
        let other = of_template.or_else(|| {
            let mine = here.iter().find(|candidate| candidate.own == pair.parameter)?;
            let mut others = here.iter().filter(|candidate| candidate.at != mine.at);
            let other = others.find(|other| match spec.input.is_made() {
                true => other.is_first(mine, key),
                false => other.is_meant(mine, key),
            });
            Some(&*other?.own.name)
        });
        if let Some(other) = other {
            let message = format!("a server would read `{key}` as a value of the parameter `{other}`");
            return Err(invalid(&pair.place(), message));
        }
    }
    Ok(())
}

/// A parameter in the place of the pairs, to which a pair may belong.
struct Candidate<'a> {
    own: &'a HttpParameter,
    object: Object,
    /// Its position among them.
    at: usize,
}

impl Candidate<'_> {
    /// True if a pair with this name is the parameter itself, or a part of it by its style.
    fn is_named(&self, key: &str) -> bool {
        // The properties of an object are pairs, but the object itself is none.
        self.own.name == key && !(self.own.is_spread() && self.object.is_all)
            || self.own.style == ParameterStyle::DeepObject
                && key.split_once('[').is_some_and(|(root, _)| self.own.name == root)
    }

    /// True if a pair with this name is a declared property of the object.
    fn declares(&self, key: &str) -> bool {
        self.own.is_spread() && self.object.names.contains(key)
    }

    /// True if a pair with this name may be a property of the object.
    fn takes(&self, key: &str) -> bool {
        self.declares(key) || self.own.is_spread() && self.object.has_others
    }

    /// True if our server reads a pair of the other one as a value of this parameter: first those with a name, then the objects,
    /// and maps as the last of them (`serve/read/style.rs`).
    fn is_first(&self, other: &Self, key: &str) -> bool {
        let order = |candidate: &Self| (candidate.object.has_others, candidate.at);
        self.is_named(key) || self.takes(key) && (!other.takes(key) || order(self) < order(other))
    }

    /// True if only this parameter has the name. What the other one declares, its server reads as it is declared.
    fn is_meant(&self, other: &Self, key: &str) -> bool {
        !other.declares(key) && (self.is_named(key) || self.declares(key))
    }
}

/// The parameter in the pair of the template that has this name.
fn in_template<'b>(binding: &'b HttpBinding, key: &str) -> Option<&'b str> {
    let pieces: Vec<Piece<'b>> = pieces(&binding.path).collect();
    let query = pieces.split(|piece| *piece == Piece::Query).nth(1)?;
    query.split(|piece| *piece == Piece::Pair).find_map(|pair| {
        let [Piece::Text(first), rest @ ..] = pair else { return None };
        let (name, _) = first.split_once('=')?;
        let parameter = rest.iter().find_map(|piece| match piece {
            Piece::Parameter(name) => Some(*name),
            _ => None,
        });
        parameter.filter(|_| percent_decode_str(name).decode_utf8_lossy() == key)
    })
}

/// Refuses a name that two parameters write with different values.
fn refuse_shared(pairs: &[Pair<'_>]) -> Result<(), CallError> {
    let mut by_name: BTreeMap<&str, Vec<&Pair<'_>>> = BTreeMap::new();
    for pair in pairs {
        by_name.entry(pair.name()).or_default().push(pair);
    }
    for same in by_name.values() {
        let mut written = same.chunk_by(|one, other| one.parameter == other.parameter);
        let Some(first) = written.next() else { continue };
        let other = written.find(|own| !own.iter().map(|pair| &pair.text).eq(first.iter().map(|pair| &pair.text)));
        if let (Some([pair, ..]), [first, ..]) = (other, first) {
            let name = pair.key.as_deref().unwrap_or(&pair.parameter.name);
            let message = format!("`{}` writes `{name}`, too, with another value", first.parameter.name);
            return Err(invalid(&pair.place(), message));
        }
    }
    Ok(())
}
