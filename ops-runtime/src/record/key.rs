//! The name of a property that is kept until a union knows what to read it as.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde_core::de::value::StrDeserializer;
use serde_core::de::{Deserialize, DeserializeSeed, Deserializer, Error, Unexpected, Visitor};
use serde_core::forward_to_deserialize_any;

use super::doubts::note_kept;

/// The name of a property.
#[derive(Debug, Clone)]
pub(super) struct Key<'de>(pub(super) Cow<'de, str>);

impl<'de> Key<'de> {
    /// Hands the key to a reader of keys.
    #[inline]
    pub(super) fn read<K: DeserializeSeed<'de>, E: Error>(&self, seed: K) -> Result<K::Value, E> {
        seed.deserialize(KeyReader { key: &self.0, error: PhantomData })
    }
}

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        // A map would ask for a text, which would count as kept.
        d.deserialize_identifier(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property name")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Owned(key.to_owned())))
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Borrowed(key)))
    }

    fn visit_string<E: Error>(self, key: String) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Owned(key)))
    }
}

/// Reads a kept key, as [`json`](super::json) reads one in a text: an integer is written in quotes.
struct KeyReader<'a, 'de, E> {
    key: &'a Cow<'de, str>,
    error: PhantomData<fn() -> E>,
}

/// Keys that are integers. One that is not written as serde writes it, such as `+1` or `01`, is another key.
macro_rules! integer_keys {
    ($($integer:ident $method:ident $visit:ident),*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
            match self.key.parse::<$integer>() {
                Ok(integer) if integer.to_string() == **self.key => visitor.$visit(integer),
                _ => Err(E::invalid_type(Unexpected::Str(self.key), &visitor)),
            }
        })*
    };
}

impl<'de, E: Error> Deserializer<'de> for KeyReader<'_, 'de, E> {
    type Error = E;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match self.key {
            Cow::Borrowed(key) => visitor.visit_borrowed_str(key),
            Cow::Owned(key) => visitor.visit_str(key),
        }
    }

    integer_keys! {
        i8 deserialize_i8 visit_i8, i16 deserialize_i16 visit_i16, i32 deserialize_i32 visit_i32,
        i64 deserialize_i64 visit_i64, i128 deserialize_i128 visit_i128, u8 deserialize_u8 visit_u8,
        u16 deserialize_u16 visit_u16, u32 deserialize_u32 visit_u32, u64 deserialize_u64 visit_u64,
        u128 deserialize_u128 visit_u128
    }

    /// Only maps and any JSON ask for a text; records ask for an identifier.
    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        note_kept();
        self.deserialize_any(visitor)
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, E> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, E> {
        StrDeserializer::<E>::new(self.key).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool f32 f64 char bytes byte_buf option unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}
