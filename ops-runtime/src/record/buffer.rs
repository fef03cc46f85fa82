//! A JSON value that is kept until a union knows what to read it as.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::slice;

use serde_core::de::value::MapAccessDeserializer;
use serde_core::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde_core::forward_to_deserialize_any;

use super::decode::below;
use super::doubts::note_dropped;
use super::key::Key;
use super::names::Literal;

/// A JSON value.
///
/// Cheaper to fill than a `serde_json::Value`: strings are borrowed where the input allows it, objects are lists. And
/// what is read from it fails with an error that says where, which is how a pointer finds its way out of a buffer.
#[derive(Debug, Clone)]
pub(super) enum Buffer<'de> {
    Null,
    Bool(bool),
    I64(i64),
    U64(u64),
    F64(f64),
    Text(Cow<'de, str>),
    List(Vec<Buffer<'de>>),
    Map(Vec<(Key<'de>, Buffer<'de>)>),
}

impl<'de> Buffer<'de> {
    /// Returns the scalar that a literal may be compared with.
    #[inline]
    pub(super) fn literal(&self) -> Option<Literal<'_>> {
        match self {
            Buffer::Bool(value) => Some(Literal::Boolean(*value)),
            Buffer::I64(value) => Some(Literal::Integer(*value)),
            Buffer::U64(value) => i64::try_from(*value).ok().map(Literal::Integer),
            Buffer::F64(value) => Some(Literal::Number(*value)),
            Buffer::Text(value) => Some(Literal::Text(value)),
            Buffer::Null | Buffer::List(_) | Buffer::Map(_) => None,
        }
    }

    /// Estimates the work of reading this value, and of reporting that it is wrong: the values in it, itself included,
    /// and the length of its strings.
    pub(super) fn work(&self) -> usize {
        1 + match self {
            Buffer::List(items) => items.iter().map(Buffer::work).sum(),
            Buffer::Map(entries) => entries.iter().map(|(key, value)| key.0.len() / 64 + value.work()).sum(),
            Buffer::Text(text) => text.len() / 64,
            _ => 0,
        }
    }

    /// Counts the properties of all objects in this value.
    fn properties(&self) -> usize {
        match self {
            Buffer::List(items) => items.iter().map(Buffer::properties).sum(),
            Buffer::Map(entries) => entries.iter().map(|(_, value)| 1 + value.properties()).sum(),
            _ => 0,
        }
    }

    /// Returns what a reader that wanted something else is told.
    pub(super) fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Buffer::Null => Unexpected::Unit,
            Buffer::Bool(value) => Unexpected::Bool(*value),
            Buffer::I64(value) => Unexpected::Signed(*value),
            Buffer::U64(value) => Unexpected::Unsigned(*value),
            Buffer::F64(value) => Unexpected::Float(*value),
            Buffer::Text(value) => Unexpected::Str(value),
            Buffer::List(_) => Unexpected::Seq,
            Buffer::Map(_) => Unexpected::Map,
        }
    }

    /// Makes a deserializer, which can be made again.
    #[inline]
    pub(super) fn reader<E>(&self) -> BufferReader<'_, 'de, E> {
        BufferReader { buffer: self, error: PhantomData }
    }
}

impl<'de> Deserialize<'de> for Buffer<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(BufferVisitor)
    }
}

struct BufferVisitor;

impl<'de> Visitor<'de> for BufferVisitor {
    type Value = Buffer<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Buffer<'de>, E> {
        Ok(Buffer::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Buffer<'de>, E> {
        Ok(Buffer::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Buffer<'de>, D::Error> {
        d.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Buffer<'de>, E> {
        Ok(Buffer::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Buffer<'de>, E> {
        Ok(Buffer::I64(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Buffer<'de>, E> {
        Ok(Buffer::U64(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Buffer<'de>, E> {
        Ok(Buffer::F64(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Buffer<'de>, E> {
        Ok(Buffer::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Buffer<'de>, E> {
        Ok(Buffer::Text(Cow::Borrowed(value)))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Buffer<'de>, E> {
        Ok(Buffer::Text(Cow::Owned(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Buffer<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Buffer::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Buffer<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Buffer::Map(entries))
    }
}

/// Reads a buffered value.
pub(super) struct BufferReader<'a, 'de, E> {
    buffer: &'a Buffer<'de>,
    error: PhantomData<fn() -> E>,
}

impl<'de, E: Error> Deserializer<'de> for BufferReader<'_, 'de, E> {
    type Error = E;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match self.buffer {
            Buffer::Null => visitor.visit_unit(),
            Buffer::Bool(value) => visitor.visit_bool(*value),
            Buffer::I64(value) => visitor.visit_i64(*value),
            Buffer::U64(value) => visitor.visit_u64(*value),
            Buffer::F64(value) => visitor.visit_f64(*value),
            Buffer::Text(Cow::Borrowed(value)) => visitor.visit_borrowed_str(value),
            Buffer::Text(Cow::Owned(value)) => visitor.visit_str(value),
            Buffer::List(items) => {
                let mut left = Items { items: items.iter(), index: 0, error: PhantomData };
                let value = visitor.visit_seq(&mut left)?;
                match left.items.len() {
                    0 => Ok(value),
                    _ => Err(E::invalid_length(items.len(), &"an array of fewer elements")),
                }
            }
            Buffer::Map(entries) => {
                visitor.visit_map(Entries { entries: entries.iter(), entry: None, error: PhantomData })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match self.buffer {
            Buffer::Null => visitor.visit_none(),
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
        match self.buffer {
            Buffer::Text(value) => (&**value).into_deserializer().deserialize_enum(name, variants, visitor),
            Buffer::Map(entries) => {
                let entries = Entries { entries: entries.iter(), entry: None, error: PhantomData };
                MapAccessDeserializer::new(entries).deserialize_enum(name, variants, visitor)
            }
            other => Err(E::invalid_type(other.unexpected(), &"a string or an object")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        // Here and not where records pass over a property: what is read from a text without a buffer need not count.
        note_dropped(1 + self.buffer.properties());
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

struct Items<'a, 'de, E> {
    items: slice::Iter<'a, Buffer<'de>>,
    index: usize,
    error: PhantomData<fn() -> E>,
}

impl<'de, E: Error> SeqAccess<'de> for Items<'_, 'de, E> {
    type Error = E;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, E> {
        let Some(item) = self.items.next() else {
            return Ok(None);
        };
        self.index += 1;
        seed.deserialize(item.reader()).map(Some).map_err(|error: E| below(&(self.index - 1).to_string(), &error))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries<'a, 'de, E> {
    entries: slice::Iter<'a, (Key<'de>, Buffer<'de>)>,
    entry: Option<&'a (Key<'de>, Buffer<'de>)>,
    error: PhantomData<fn() -> E>,
}

impl<'de, E: Error> MapAccess<'de> for Entries<'_, 'de, E> {
    type Error = E;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, E> {
        self.entry = self.entries.next();
        self.entry.map(|(key, _)| key.read(seed)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, E> {
        match self.entry.take() {
            Some((key, value)) => seed.deserialize(value.reader()).map_err(|error: E| below(&key.0, &error)),
            None => Err(E::custom("a value without a key")),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}
