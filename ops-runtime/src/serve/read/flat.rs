//! Reads requests with scalar parameters as JSON text: a type can be read from that without a tree of values.
//!
//! A plan is made once per operation. It covers the common cases: texts, whole numbers, and booleans. Any other request
//! is read by `style`.

use std::borrow::Cow;

use http::header::HeaderName;
use http::request::Parts;

use super::shape::{Shape, Types};
use super::text::Escaping;
use crate::model::binding::is_reserved_header;
use crate::model::binding::template::parameter;
use crate::serve::pattern::cut;
use crate::{HttpBinding, HttpParameter, ParameterLocation, ParameterStyle};

/// The most digits of a whole number here: with so many, every number fits 64 bits.
const DIGITS: usize = 18;

/// How the parameters of an operation are read, if each is a scalar.
pub(super) struct Plan {
    /// In the order of the path.
    path: Vec<Slot>,
    query: Vec<(String, Slot)>,
    headers: Vec<(HeaderName, Slot)>,
}

/// A property of the input.
struct Slot {
    name: String,
    /// The name as JSON, with a colon behind it.
    key: String,
    kind: Kind,
}

/// The only type of a property.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    Boolean,
}

impl Plan {
    /// The plan of an operation whose path has parameters of these names; `None` if one of its parameters is not a
    /// scalar, or is set by the operation itself.
    pub(super) fn of(binding: &HttpBinding, input: &Shape, names: &[String]) -> Option<Self> {
        let slot = |own: &HttpParameter, style: ParameterStyle| {
            let is_plain = own.fixed.is_none() && own.style == style;
            is_plain.then(|| Slot::of(own, &input.property(&own.property)))?
        };
        let mut plan = Self { path: Vec::new(), query: Vec::new(), headers: Vec::new() };
        for name in names {
            plan.path.push(slot(&parameter(binding, name, false), ParameterStyle::Simple)?);
        }
        for own in binding.parameters.iter() {
            match own.location {
                ParameterLocation::Path if own.fixed.is_none() => {}
                ParameterLocation::Query => {
                    plan.query.push((own.name.clone().into_owned(), slot(own, ParameterStyle::Form)?));
                }
                ParameterLocation::Header if is_reserved_header(&own.name) => {}
                ParameterLocation::Header => {
                    let name = HeaderName::from_bytes(own.name.as_bytes()).ok()?;
                    plan.headers.push((name, slot(own, ParameterStyle::Simple)?));
                }
                _ => return None,
            }
        }
        let mut places: Vec<&str> = plan.slots().map(|slot| slot.name.as_str()).collect();
        places.sort_unstable();
        let mut queried: Vec<&str> = plan.query.iter().map(|(name, _)| name.as_str()).collect();
        queried.sort_unstable();
        let is_twice = |names: &[&str]| names.windows(2).any(|pair| matches!(pair, [one, other] if one == other));
        // A number has a bit for each parameter of the query, which is set when it was found.
        let is_simple = !is_twice(&places) && !is_twice(&queried) && plan.query.len() <= 64;
        is_simple.then_some(plan)
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.path.iter().chain(self.query.iter().map(|(_, slot)| slot)).chain(self.headers.iter().map(|(_, slot)| slot))
    }

    /// The names of the properties that are parameters.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.slots().map(|slot| slot.name.as_str())
    }

    /// Writes the members of a request as those of an object: `{"id":7`, without the closing brace.
    ///
    /// `None` if a value is not of the expected kind, or is present twice.
    pub(super) fn write(&self, path: &[Cow<'_, str>], parts: &Parts) -> Option<Vec<u8>> {
        let query = parts.uri.query().unwrap_or_default();
        let mut out = Vec::with_capacity(64 + query.len());
        out.push(b'{');
        for (slot, text) in self.path.iter().zip(path) {
            slot.write(&Escaping::Percent.plain(text).ok()?, &mut out)?;
        }
        let mut came = 0_u64;
        let mut rest = Some(query);
        while let Some(pairs) = rest {
            let (pair, next) = cut(pairs, b'&');
            rest = next;
            if pair.is_empty() {
                continue;
            }
            let (name, text) = cut(pair, b'=');
            let name = Escaping::Form.plain(name).ok()?;
            let Some((at, (_, slot))) = self.query.iter().enumerate().find(|(_, (own, _))| *own == name) else {
                continue;
            };
            let bit = 1 << at;
            if came & bit != 0 {
                return None;
            }
            came |= bit;
            slot.write(&Escaping::Form.plain(text.unwrap_or_default()).ok()?, &mut out)?;
        }
        for (name, slot) in &self.headers {
            let mut values = parts.headers.get_all(name).iter();
            match (values.next(), values.next()) {
                (None, _) => {}
                (Some(value), None) => slot.write(std::str::from_utf8(value.as_bytes()).ok()?, &mut out)?,
                _ => return None,
            }
        }
        Some(out)
    }
}

impl Slot {
    fn of(parameter: &HttpParameter, shape: &Shape) -> Option<Self> {
        let kind = match shape.types().without(Types::NULL) {
            Types::NUMBER => Kind::Number,
            Types::BOOLEAN => Kind::Boolean,
            Types::STRING => Kind::Text,
            Types::NOTHING if shape.types() == Types::NOTHING => Kind::Text,
            _ => return None,
        };
        let name = parameter.property.clone().into_owned();
        let key = format!("{}:", serde_json::to_string(&name).ok()?);
        Some(Self { name, key, kind })
    }

    fn write(&self, text: &str, out: &mut Vec<u8>) -> Option<()> {
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(self.key.as_bytes());
        match self.kind {
            Kind::Text => serde_json::to_writer(out, text).ok()?,
            Kind::Number if is_whole(text) => out.extend_from_slice(text.as_bytes()),
            Kind::Boolean if matches!(text, "true" | "false") => out.extend_from_slice(text.as_bytes()),
            _ => return None,
        }
        Some(())
    }
}

/// True if a text is a whole number in the form of JSON, except minus zero.
fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    digits.iter().all(u8::is_ascii_digit)
        && match digits {
            [b'0'] => text == "0",
            [first, ..] => *first != b'0' && digits.len() <= DIGITS,
            [] => false,
        }
}
