//! Enums of strings, and of any scalars.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::Serializer;
use serde_json::Value;

/// An enum whose JSON is one of several strings, with a variant that keeps any other.
///
/// Implemented by [`names!`](crate::names!).
pub trait Names: Sized {
    /// Returns the variant of one of the known strings.
    fn known(text: &str) -> Option<Self>;

    /// Wraps a string that is not known.
    fn other(text: String) -> Self;
}

/// Returns the variant of any string, known or not.
pub fn from_str<T: Names>(text: &str) -> T {
    T::known(text).unwrap_or_else(|| T::other(text.to_owned()))
}

/// Reads a string enum; the body of the `Deserialize` that [`names!`](crate::names!) writes.
///
/// # Errors
///
/// When the input is no string.
#[inline]
pub fn read_name<'de, T: Names, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
    d.deserialize_str(NameVisitor(PhantomData))
}

struct NameVisitor<T>(PhantomData<fn() -> T>);

impl<T: Names> Visitor<'_> for NameVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    #[inline]
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        Ok(from_str(text))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<T, E> {
        Ok(T::known(&text).unwrap_or_else(|| T::other(text)))
    }
}

/// An enum whose JSON is one of several scalars, with a variant that keeps any other value.
///
/// Implemented by [`values!`](crate::values!).
pub trait Values: Sized {
    /// Returns the variant of a value.
    fn of(value: Value) -> Self;
}

/// Reads an enum of scalars; the body of the `Deserialize` that [`values!`](crate::values!) writes.
///
/// # Errors
///
/// When the input is not JSON.
pub fn read_value<'de, T: Values, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
    Value::deserialize(d).map(T::of)
}

/// A literal that [`values!`](crate::values!) and [`tagged!`](crate::tagged!) take: a string, an integer, a number or a
/// boolean.
pub trait Scalar: Copy + Serialize {
    /// Tells whether `value` is this scalar.
    fn is(self, value: &Value) -> bool;
}

impl Scalar for &str {
    fn is(self, value: &Value) -> bool {
        value.as_str() == Some(self)
    }
}

impl Scalar for i64 {
    fn is(self, value: &Value) -> bool {
        value.as_i64() == Some(self)
    }
}

impl Scalar for f64 {
    fn is(self, value: &Value) -> bool {
        value.as_f64() == Some(self)
    }
}

impl Scalar for bool {
    fn is(self, value: &Value) -> bool {
        value.as_bool() == Some(self)
    }
}

/// Tells whether `value` is the scalar `literal`.
pub fn is<L: Scalar>(value: &Value, literal: L) -> bool {
    literal.is(value)
}

/// Writes a scalar.
///
/// # Errors
///
/// When the serializer fails.
pub fn write_scalar<L: Scalar, S: Serializer>(literal: L, s: S) -> Result<S::Ok, S::Error> {
    literal.serialize(s)
}
