//! Enums of strings, and of any scalars.

use std::fmt;
use std::marker::PhantomData;

use serde_core::Serialize;
use serde_core::de::{self, Deserialize, Deserializer, Unexpected, Visitor};
use serde_core::ser::Serializer;
use serde_json::Value;

use super::doubts::note_unknown;

/// An enum whose JSON is one of several strings, with a variant that keeps any other.
///
/// Implemented by [`names!`](crate::__generated::names!).
pub trait Names: Sized {
    /// True if any string is a valid value: an unknown one is no sign that another variant of a union is meant.
    const IS_OPEN: bool = false;

    /// Returns the variant of one of the known strings.
    fn known(text: &str) -> Option<Self>;

    /// Wraps a string that is not known.
    fn other(text: String) -> Self;

    /// Returns the string that this stands for.
    fn text(&self) -> &str;
}

/// Returns the variant of any string, known or not.
pub fn from_str<T: Names>(text: &str) -> T {
    T::known(text).unwrap_or_else(|| T::other(text.to_owned()))
}

/// Reads a string enum; the body of the `Deserialize` that [`names!`](crate::__generated::names!) writes.
///
/// # Errors
///
/// When the input is no string.
#[inline]
pub fn read_name<'de, T: Names, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
    d.deserialize_str(NameVisitor(PhantomData))
}

/// Writes a string enum; the body of the `Serialize` that [`names!`](crate::__generated::names!) writes.
///
/// # Errors
///
/// When the serializer fails.
#[inline]
pub fn write_name<T: Names, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(value.text())
}

struct NameVisitor<T>(PhantomData<fn() -> T>);

impl<T: Names> Visitor<'_> for NameVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    #[inline]
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        Ok(T::known(text).unwrap_or_else(|| unknown(text.to_owned())))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<T, E> {
        Ok(T::known(&text).unwrap_or_else(|| unknown(text)))
    }
}

/// Wraps an unknown string, and counts it if the enum is not open.
#[inline]
fn unknown<T: Names>(text: String) -> T {
    if !T::IS_OPEN {
        note_unknown();
    }
    T::other(text)
}

/// An enum whose JSON is one of several scalars, with a variant that keeps any other value of their kinds.
///
/// Implemented by [`values!`](crate::__generated::values!).
pub trait Values: Sized {
    /// The kinds that its scalars have, a bit each.
    const KINDS: u8;

    /// Returns the variant of one of the known values.
    fn known(value: &Value) -> Option<Self>;

    /// Wraps a value that is not known.
    fn other(value: Value) -> Self;

    /// Writes the value that this stands for.
    ///
    /// # Errors
    ///
    /// When the serializer fails.
    fn write<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error>;
}

/// Reads an enum of scalars; the body of the `Deserialize` that [`values!`](crate::__generated::values!) writes.
///
/// # Errors
///
/// When the input is not JSON, or of a kind that none of the enum's scalars has: it may be one of them that is written in
/// another way, which whoever reads it can repair.
pub fn read_value<'de, T: Values, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
    let value = Value::deserialize(d)?;
    let (kind, found) = match &value {
        Value::String(text) => (TEXT, Unexpected::Str(text)),
        Value::Bool(value) => (BOOLEAN, Unexpected::Bool(*value)),
        Value::Number(number) => (NUMBER, unexpected(number)),
        Value::Null => (0, Unexpected::Unit),
        Value::Array(_) => (0, Unexpected::Seq),
        Value::Object(_) => (0, Unexpected::Map),
    };
    if T::KINDS & kind == 0 {
        return Err(de::Error::invalid_type(found, &Kinds(T::KINDS)));
    }
    Ok(T::known(&value).unwrap_or_else(|| {
        note_unknown();
        T::other(value)
    }))
}

fn unexpected(number: &serde_json::Number) -> Unexpected<'_> {
    match (number.as_u64(), number.as_i64()) {
        (Some(number), _) => Unexpected::Unsigned(number),
        (None, Some(number)) => Unexpected::Signed(number),
        (None, None) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// Kinds as an error says them: `a string or a number`.
struct Kinds(u8);

impl de::Expected for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(TEXT, "a string"), (NUMBER, "a number"), (BOOLEAN, "a boolean")];
        let names: Vec<&str> = names.iter().filter(|(kind, _)| self.0 & kind != 0).map(|(_, name)| *name).collect();
        f.write_str(&names.join(" or "))
    }
}

/// Writes an enum of scalars; the body of the `Serialize` that [`values!`](crate::__generated::values!) writes.
///
/// # Errors
///
/// When the serializer fails.
pub fn write_value<T: Values, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    value.write(s)
}

/// A scalar that an enum or a tag is compared with.
#[derive(Debug, Clone, Copy)]
pub enum Literal<'a> {
    /// A string.
    Text(&'a str),
    /// A boolean.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// Any number.
    Number(f64),
}

impl PartialEq for Literal<'_> {
    /// Compares as JSON does: `1` is `1.0`.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (*self, *other) {
            (Literal::Text(a), Literal::Text(b)) => a == b,
            (Literal::Boolean(a), Literal::Boolean(b)) => a == b,
            (Literal::Integer(a), Literal::Integer(b)) => a == b,
            (Literal::Number(a), Literal::Number(b)) => a == b,
            (Literal::Integer(a), Literal::Number(b)) | (Literal::Number(b), Literal::Integer(a)) => a as f64 == b,
            _ => false,
        }
    }
}

impl Serialize for Literal<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match *self {
            Literal::Text(text) => s.serialize_str(text),
            Literal::Boolean(value) => s.serialize_bool(value),
            Literal::Integer(value) => s.serialize_i64(value),
            Literal::Number(value) => s.serialize_f64(value),
        }
    }
}

/// The kinds of scalars that an enum may have.
const TEXT: u8 = 1;
const NUMBER: u8 = 2;
const BOOLEAN: u8 = 4;

/// Returns the kind of a scalar, a bit.
#[must_use]
pub const fn kind_of<L: Scalar>(_: &L) -> u8 {
    L::KIND
}

/// The Rust literals that [`values!`](crate::__generated::values!) and [`tagged!`](crate::__generated::tagged!) take.
pub trait Scalar: Copy + Serialize {
    /// The kind of the scalar, a bit.
    const KIND: u8;

    /// Returns the scalar.
    fn literal(&self) -> Literal<'_>;
}

impl Scalar for &str {
    const KIND: u8 = TEXT;

    #[inline]
    fn literal(&self) -> Literal<'_> {
        Literal::Text(self)
    }
}

impl Scalar for bool {
    const KIND: u8 = BOOLEAN;

    #[inline]
    fn literal(&self) -> Literal<'_> {
        Literal::Boolean(*self)
    }
}

impl Scalar for i64 {
    const KIND: u8 = NUMBER;

    #[inline]
    fn literal(&self) -> Literal<'_> {
        Literal::Integer(*self)
    }
}

impl Scalar for f64 {
    const KIND: u8 = NUMBER;

    #[inline]
    fn literal(&self) -> Literal<'_> {
        Literal::Number(*self)
    }
}

/// Tells whether `value` is the scalar `literal`.
pub fn is<L: Scalar>(value: &Value, literal: L) -> bool {
    let value = match value {
        Value::Bool(value) => Some(Literal::Boolean(*value)),
        Value::String(value) => Some(Literal::Text(value)),
        Value::Number(value) => value.as_i64().map(Literal::Integer).or_else(|| value.as_f64().map(Literal::Number)),
        _ => None,
    };
    value == Some(literal.literal())
}

/// Writes a scalar.
///
/// # Errors
///
/// When the serializer fails.
pub fn write_scalar<L: Scalar, S: Serializer>(literal: L, s: S) -> Result<S::Ok, S::Error> {
    literal.serialize(s)
}

/// Compares names: most are so short that comparing a word from each end is faster than a call.
#[inline(always)]
pub(super) fn same(one: &[u8], other: &[u8]) -> bool {
    match one.len() {
        length if length != other.len() => false,
        8..=16 => one.first_chunk::<8>() == other.first_chunk() && one.last_chunk::<8>() == other.last_chunk(),
        4..=7 => one.first_chunk::<4>() == other.first_chunk() && one.last_chunk::<4>() == other.last_chunk(),
        2..=3 => one.first_chunk::<2>() == other.first_chunk() && one.last() == other.last(),
        _ => one == other,
    }
}
