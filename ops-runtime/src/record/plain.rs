//! A scalar as a deserializer that can be read more than once.

use std::marker::PhantomData;

use serde::de::{self, Deserializer, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

/// A JSON value that is neither an array nor an object.
///
/// One type for all of them, so that the variants of a union are compiled for one more deserializer and not for six.
#[derive(Clone, Copy)]
pub(super) enum Plain<'a> {
    Null,
    Bool(bool),
    I64(i64),
    U64(u64),
    F64(f64),
    Str(&'a str),
}

impl<'a> Plain<'a> {
    pub(super) fn deserializer<E>(self) -> PlainDeserializer<'a, E> {
        PlainDeserializer { plain: self, error: PhantomData }
    }

    pub(super) fn unexpected(self) -> Unexpected<'a> {
        match self {
            Plain::Null => Unexpected::Unit,
            Plain::Bool(value) => Unexpected::Bool(value),
            Plain::I64(value) => Unexpected::Signed(value),
            Plain::U64(value) => Unexpected::Unsigned(value),
            Plain::F64(value) => Unexpected::Float(value),
            Plain::Str(value) => Unexpected::Str(value),
        }
    }
}

pub(super) struct PlainDeserializer<'a, E> {
    plain: Plain<'a>,
    error: PhantomData<fn() -> E>,
}

impl<'de, E: de::Error> Deserializer<'de> for PlainDeserializer<'_, E> {
    type Error = E;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match self.plain {
            Plain::Null => visitor.visit_unit(),
            Plain::Bool(value) => visitor.visit_bool(value),
            Plain::I64(value) => visitor.visit_i64(value),
            Plain::U64(value) => visitor.visit_u64(value),
            Plain::F64(value) => visitor.visit_f64(value),
            Plain::Str(value) => visitor.visit_str(value),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match self.plain {
            Plain::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, E> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, E> {
        match self.plain {
            Plain::Str(value) => value.into_deserializer().deserialize_enum(name, variants, visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}
