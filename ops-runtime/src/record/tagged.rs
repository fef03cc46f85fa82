//! Unions told apart by the value of one property.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::vec;

use serde_core::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde_core::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_core::ser::SerializeMap;
use serde_core::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::buffer::{Buffer, Key};
use super::decode::{below, in_text};
use super::json::KEPT;
use super::names::Scalar;
use super::reader::declares;
use super::{Reader, Record};

/// An open object whose tag is known, ready to be read as the variant that the tag selects.
pub struct Tagged<'de, 'a, A> {
    name: &'static str,
    tag: Option<Buffer<'de>>,
    before: Vec<(Key<'de>, Kept<'de>)>,
    rest: &'a mut A,
}

/// A value before the tag: its text, if it comes from one, which is read when the type is known.
enum Kept<'de> {
    Text(&'de str),
    Value(Buffer<'de>),
}

impl<'de> Kept<'de> {
    /// Reads the value as the property `key`.
    #[inline]
    fn read<V: DeserializeSeed<'de>, E: Error>(self, key: &str, seed: V) -> Result<V::Value, E> {
        match self {
            Self::Text(text) => in_text(text, seed).map_err(|error: E| below(key, &error)),
            Self::Value(value) => seed.deserialize(value.reader()).map_err(|error: E| below(key, &error)),
        }
    }
}

impl<'de> Deserialize<'de> for Kept<'de> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_newtype_struct(KEPT, KeptVisitor)
    }
}

struct KeptVisitor;

impl<'de> Visitor<'de> for KeptVisitor {
    type Value = Kept<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    #[inline]
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Kept<'de>, E> {
        Ok(Kept::Text(text))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<Kept<'de>, D::Error> {
        Buffer::deserialize(d).map(Kept::Value)
    }
}

impl<A, T: Record> Reader<A, T> {
    /// Reads up to the property `name` and keeps what precedes it; of an object without it, all.
    ///
    /// # Errors
    ///
    /// When the input fails.
    pub fn tagged<'de>(&mut self, name: &'static str) -> Result<Tagged<'de, '_, A>, A::Error>
    where
        A: MapAccess<'de>,
    {
        let mut before = Vec::new();
        while let Some(key) = self.map.next_key_seed(TagOrKey(name))? {
            match key {
                Some(key) => before.push((key, self.map.next_value()?)),
                None => {
                    let tag = Some(self.map.next_value()?);
                    return Ok(Tagged { name, tag, before, rest: &mut self.map });
                }
            }
        }
        Ok(Tagged { name, tag: None, before, rest: &mut self.map })
    }
}

impl<'de, A: MapAccess<'de>> Tagged<'de, '_, A> {
    /// Tells whether the tag is `literal`.
    #[inline]
    pub fn is<L: Scalar>(&self, literal: L) -> bool {
        self.tag.as_ref().and_then(Buffer::literal) == Some(literal.literal())
    }

    /// Reads the object as the variant `T`, which sees the tag if it declares a property of that name.
    ///
    /// # Errors
    ///
    /// When the object is not a `T`.
    pub fn read<T: Record>(self) -> Result<T, A::Error> {
        let tag = self.tag.filter(|_| declares::<T>(self.name));
        let chain = Chain { name: self.name, tag, before: self.before.into_iter(), rest: self.rest, next: Next::Rest };
        T::read(&mut Reader::new(chain))
    }

    /// Reads the object as a variant that is no [`Record`], which sees the tag.
    ///
    /// # Errors
    ///
    /// When the object is not a `T`.
    pub fn read_own<T: DeserializeOwned>(self) -> Result<T, A::Error> {
        let before = self.before.into_iter();
        let chain = Chain { name: self.name, tag: self.tag, before, rest: self.rest, next: Next::Rest };
        T::deserialize(MapAccessDeserializer::new(chain))
    }

    /// Keeps the whole object of a tag that no variant has, or without a tag.
    ///
    /// # Errors
    ///
    /// When the input fails.
    pub fn other(self) -> Result<Value, A::Error> {
        let mut map = Map::new();
        if let Some(tag) = self.tag {
            map.insert(self.name.to_owned(), Value::deserialize(tag.reader())?);
        }
        for (key, value) in self.before {
            let value = value.read(&key.0, PhantomData)?;
            map.insert(key.0.into_owned(), value);
        }
        while let Some((key, value)) = self.rest.next_entry()? {
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// Writes the variant `value` of a union, and its tag if `value` does not hold it itself.
///
/// # Errors
///
/// When the serializer fails.
#[inline]
pub fn put_variant<M: SerializeMap, L: Scalar, T: Record>(
    m: &mut M,
    name: &'static str,
    literal: L,
    value: &T,
) -> Result<(), M::Error> {
    if !declares::<T>(name) {
        m.serialize_entry(name, &literal)?;
    }
    value.write(m)
}

/// Writes a variant that is no [`Record`], and its tag if `value` does not write it itself.
///
/// # Errors
///
/// When `value` does not become an object, or the serializer fails.
pub fn put_own<M: SerializeMap, L: Scalar, T: Serialize>(
    m: &mut M,
    name: &'static str,
    literal: L,
    value: &T,
) -> Result<(), M::Error> {
    let value = serde_json::to_value(value).map_err(serde_core::ser::Error::custom)?;
    if value.get(name).is_none() {
        m.serialize_entry(name, &literal)?;
    }
    put_other(m, &value)
}

/// Writes the entries of an object that was kept because its tag is not known.
///
/// # Errors
///
/// When `value` is no object, or the serializer fails.
pub fn put_other<M: SerializeMap>(m: &mut M, value: &Value) -> Result<(), M::Error> {
    match value {
        Value::Object(map) => map.iter().try_for_each(|(key, value)| m.serialize_entry(key, value)),
        _ => Err(serde_core::ser::Error::custom("a variant of a tagged union is an object")),
    }
}

/// What precedes the tag, the tag, and the rest of the object, as one object.
struct Chain<'de, 'a, A> {
    name: &'static str,
    tag: Option<Buffer<'de>>,
    before: vec::IntoIter<(Key<'de>, Kept<'de>)>,
    rest: &'a mut A,
    next: Next<'de>,
}

/// Where the value that belongs to the current key is.
enum Next<'de> {
    Tag(Buffer<'de>),
    Before(Key<'de>, Kept<'de>),
    Rest,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Chain<'de, '_, A> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        if let Some(tag) = self.tag.take() {
            self.next = Next::Tag(tag);
            return seed.deserialize(BorrowedStrDeserializer::new(self.name)).map(Some);
        }
        if let Some((key, value)) = self.before.next() {
            let read = key.read(seed);
            self.next = Next::Before(key, value);
            return read.map(Some);
        }
        self.rest.next_key_seed(seed)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match std::mem::replace(&mut self.next, Next::Rest) {
            Next::Rest => self.rest.next_value_seed(seed),
            Next::Tag(value) => Kept::Value(value).read(self.name, seed),
            Next::Before(key, value) => value.read(&key.0, seed),
        }
    }
}

/// Recognises the tag's key and keeps every other.
struct TagOrKey(&'static str);

impl<'de> DeserializeSeed<'de> for TagOrKey {
    type Value = Option<Key<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_identifier(self)
    }
}

impl<'de> Visitor<'de> for TagOrKey {
    type Value = Option<Key<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property name")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok((key != self.0).then(|| Key(Cow::Owned(key.to_owned()))))
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok((key != self.0).then_some(Key(Cow::Borrowed(key))))
    }
}
