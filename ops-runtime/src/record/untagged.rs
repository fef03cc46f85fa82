//! Unions told apart by the shape of the value.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde_core::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde_core::de::{self, Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_core::ser::Serializer;

use super::begun::Begun;
use super::buffer::Buffer;
use super::reader::short;
use super::try_variants;
use super::variant;

/// A union whose variants are told apart by the shape of the value.
///
/// Implemented by [`untagged!`](crate::__generated::untagged!).
pub trait Untagged: Sized {
    /// The name of the type in error messages.
    const NAME: &'static str;

    /// The shapes that each variant takes, in the order of the variants.
    const SHAPES: &'static [&'static [Shape]];

    /// The variants that each success of an operation may be, by position in the output's `oneOf`; empty if the union is
    /// not one of successes, and takes no word of which of them came.
    const SUCCESSES: &'static [&'static [usize]] = &[];

    /// Reads a value as the variant at a position of [`SHAPES`](Self::SHAPES).
    ///
    /// # Errors
    ///
    /// When the value is not one of that variant, or there is no such variant.
    fn read<'de, D: Deserializer<'de>>(variant: usize, d: D) -> Result<Self, D::Error>;

    /// Writes the variant.
    ///
    /// # Errors
    ///
    /// When the serializer fails.
    fn write<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error>;
}

/// A kind of JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number written without fraction and exponent.
    Integer,
    /// Any number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
    /// Any value.
    Any,
}

impl Kind {
    fn of(value: &Buffer<'_>) -> Self {
        match value {
            Buffer::Null => Self::Null,
            Buffer::Bool(_) => Self::Boolean,
            Buffer::I64(_) | Buffer::U64(_) => Self::Integer,
            Buffer::F64(_) => Self::Number,
            Buffer::Text(_) => Self::String,
            Buffer::List(_) => Self::Array,
            Buffer::Map(_) => Self::Object,
        }
    }
}

/// One of the shapes that a variant of an [`Untagged`] union takes.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    kind: Kind,
    needs: &'static [&'static str],
    knows: &'static [&'static str],
}

impl Shape {
    /// Makes a shape from a kind and, of an object, the names of the properties that are required and of the others that
    /// are declared.
    #[must_use]
    pub const fn new(kind: Kind, needs: &'static [&'static str], knows: &'static [&'static str]) -> Self {
        Self { kind, needs, knows }
    }

    /// Tells whether a value of the kind `kind` may have this shape.
    fn takes(&self, kind: Kind) -> bool {
        self.kind == kind || self.kind == Kind::Any || (self.kind == Kind::Number && kind == Kind::Integer)
    }

    /// Counts the properties of `value` that this shape declares, or returns `None` if one that it requires is absent.
    fn score(&self, value: &Buffer<'_>) -> Option<usize> {
        let Buffer::Map(entries) = value else {
            return Some(0);
        };
        let has = |name: &&&str| entries.iter().any(|(key, _)| key.0 == **name);
        let needed = self.needs.iter().filter(has).count();
        (needed == self.needs.len()).then(|| needed + self.knows.iter().filter(has).count())
    }
}

/// Returns the only variant that takes values of the kind `kind`, if there is exactly one.
fn only<U: Untagged>(kind: Kind) -> Option<usize> {
    let mut variants = variants::<U>(kind);
    let first = variants.next();
    if variants.next().is_none() { first } else { None }
}

/// True if a variant takes values of any kind.
pub(super) fn takes_anything<U: Untagged>(variant: usize) -> bool {
    U::SHAPES.get(variant).is_some_and(|shapes| shapes.iter().any(|shape| shape.kind == Kind::Any))
}

/// Returns the variants that take values of the kind `kind`.
fn variants<U: Untagged>(kind: Kind) -> impl Iterator<Item = usize> {
    let takes = move |shapes: &&[Shape]| shapes.iter().any(|shape| shape.takes(kind));
    U::SHAPES.iter().enumerate().filter(move |(_, shapes)| takes(shapes)).map(|(variant, _)| variant)
}

/// Returns the variants that `value` may be with the number of its properties that each declares, the likeliest first: the
/// one that declares most.
pub(super) fn candidates<U: Untagged>(kind: Kind, value: &Buffer<'_>) -> Vec<(usize, usize)> {
    let mut scored: Vec<(usize, usize)> = variants::<U>(kind)
        .filter_map(|variant| {
            let shapes = U::SHAPES.get(variant)?.iter().filter(|shape| shape.takes(kind));
            Some((shapes.filter_map(|shape| shape.score(value)).max()?, variant))
        })
        .collect();
    // Stable, so that equals stay in the order of the document.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored
}

/// Reads an untagged union; the body of the `Deserialize` that [`untagged!`](crate::__generated::untagged!) writes.
///
/// # Errors
///
/// When the value is not one of any variant.
pub fn read_untagged<'de, U: Untagged, D: Deserializer<'de>>(d: D) -> Result<U, D::Error> {
    // A union inside the output, or the only success with content, is told apart by its shape alone.
    let told = if U::SUCCESSES.is_empty() { None } else { variant::take() };
    match told.and_then(|told| U::SUCCESSES.get(usize::from(told))) {
        Some(variants) if !variants.is_empty() => read_told(variants, d),
        _ => d.deserialize_any(UntaggedVisitor(PhantomData)),
    }
}

/// Reads a union of which only a few variants are left by what is known from outside.
///
/// A value that is none of these is read as another variant that declares something of the value. One that takes anything
/// would hide that a property is missing or wrong.
fn read_told<'de, U: Untagged, D: Deserializer<'de>>(variants: &[usize], d: D) -> Result<U, D::Error> {
    let value = Buffer::deserialize(d)?;
    let kind = Kind::of(&value);
    let told: Result<U, D::Error> = match variants {
        [only] => U::read(*only, value.reader()),
        _ => try_variants::among(variants, kind, &value),
    };
    told.or_else(|error| try_variants::declaring(kind, &value).map_err(|_: D::Error| error))
}

/// Writes an untagged union; the body of the `Serialize` that [`untagged!`](crate::__generated::untagged!) writes.
///
/// # Errors
///
/// When the serializer fails.
pub fn write_untagged<U: Untagged, S: Serializer>(value: &U, s: S) -> Result<S::Ok, S::Error> {
    value.write(s)
}

/// Fails because a union has no variant at a position.
///
/// # Errors
///
/// Always.
pub fn no_variant<'de, U: Untagged, D: Deserializer<'de>>(_: D) -> Result<U, D::Error> {
    Err(D::Error::custom(format_args!("no such variant of {}", short(U::NAME))))
}

struct UntaggedVisitor<U>(PhantomData<fn() -> U>);

impl<U: Untagged> UntaggedVisitor<U> {
    /// Reads a scalar as the first variant that takes it; there is nothing to buffer.
    fn plain<E: de::Error>(kind: Kind, plain: &Buffer<'_>) -> Result<U, E> {
        let mut failure = None;
        for variant in variants::<U>(kind) {
            match U::read(variant, plain.reader()) {
                Ok(value) => return Ok(value),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        Err(failure.unwrap_or_else(|| E::invalid_type(plain.unexpected(), &Self(PhantomData))))
    }
}

impl<'de, U: Untagged> Visitor<'de> for UntaggedVisitor<U> {
    type Value = U;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a variant of {}", short(U::NAME))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<U, E> {
        Self::plain(Kind::Boolean, &Buffer::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<U, E> {
        Self::plain(Kind::Integer, &Buffer::I64(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<U, E> {
        Self::plain(Kind::Integer, &Buffer::U64(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<U, E> {
        Self::plain(Kind::Number, &Buffer::F64(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<U, E> {
        Self::plain(Kind::String, &Buffer::Text(Cow::Borrowed(value)))
    }

    fn visit_unit<E: de::Error>(self) -> Result<U, E> {
        Self::plain(Kind::Null, &Buffer::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<U, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<U, D::Error> {
        d.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<U, A::Error> {
        let d = Begun(SeqAccessDeserializer::new(seq));
        match only::<U>(Kind::Array) {
            Some(variant) => U::read(variant, d),
            None => try_variants::read(Kind::Array, &Buffer::deserialize(d)?),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<U, A::Error> {
        let d = Begun(MapAccessDeserializer::new(map));
        match only::<U>(Kind::Object) {
            Some(variant) => U::read(variant, d),
            None => try_variants::read(Kind::Object, &Buffer::deserialize(d)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::record::from_value;

    #[derive(Debug, PartialEq)]
    enum Output {
        Flags(BTreeMap<String, bool>),
        Later(BTreeMap<String, i64>),
        Accepted(Value),
    }

    crate::__untagged!(Output {
        Object["is_new"] => Flags,
        Object[; "wait"] => Later,
        Any => Accepted
    } by [[0], [1], [2]]);

    #[test]
    fn a_success_with_a_fault_is_not_read_as_another_one() {
        let read = |success: Option<u16>, value: &Value| variant::scoped(success, || from_value::<Output>(value));
        let (new, wait) = (json!({ "is_new": true }), json!({ "wait": 1 }));
        assert_eq!(read(Some(0), &new).unwrap(), Output::Flags([("is_new".to_owned(), true)].into()));
        assert_eq!(read(Some(2), &new).unwrap(), Output::Accepted(new));
        // What another one declares may be that one.
        assert_eq!(read(Some(0), &wait).unwrap(), Output::Later([("wait".to_owned(), 1)].into()));
        for fault in [json!({ "is_new": 1 }), json!({ "x": 1 })] {
            let error = read(Some(0), &fault).unwrap_err();
            assert!(error.message.contains("expected a boolean"), "{fault}: {error:?}");
        }
        assert!(read(Some(0), &json!("x")).is_err());
        // Without a status, any value will do.
        assert_eq!(read(None, &json!("x")).unwrap(), Output::Accepted(json!("x")));
    }
}
