//! Unions told apart by the value of one property.

use std::borrow::Cow;
use std::fmt;
use std::vec;

use serde::de::value::{BorrowedStrDeserializer, StringDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde_json::{Map, Value};

use super::names::Scalar;
use super::reader::{declares, short};
use super::{Reader, Record};

/// The value of a tag: a string, borrowed from the input where that is possible, or any other value.
#[derive(Debug, Clone, PartialEq)]
pub enum Tag<'de> {
    /// A string.
    Text(Cow<'de, str>),
    /// Anything else.
    Value(Value),
}

impl Tag<'_> {
    fn into_value(self) -> Value {
        match self {
            Tag::Text(text) => Value::String(text.into_owned()),
            Tag::Value(value) => value,
        }
    }
}

/// The literals that a tag is compared with.
pub trait TagLiteral: Scalar {
    /// Tells whether `tag` is this literal.
    fn is_tag(self, tag: &Tag<'_>) -> bool;
}

impl TagLiteral for &str {
    #[inline]
    fn is_tag(self, tag: &Tag<'_>) -> bool {
        matches!(tag, Tag::Text(text) if text == self)
    }
}

impl TagLiteral for bool {
    fn is_tag(self, tag: &Tag<'_>) -> bool {
        matches!(tag, Tag::Value(value) if self.is(value))
    }
}

impl TagLiteral for i64 {
    fn is_tag(self, tag: &Tag<'_>) -> bool {
        matches!(tag, Tag::Value(value) if self.is(value))
    }
}

/// An open object whose tag is known, ready to be read as the variant that the tag selects.
pub struct Tagged<'de, 'a, A> {
    name: &'static str,
    tag: Tag<'de>,
    before: Vec<(String, Value)>,
    rest: &'a mut A,
}

impl<A, T: Record> Reader<A, T> {
    /// Reads up to the property `name` and keeps what precedes it.
    ///
    /// # Errors
    ///
    /// When the object has no such property, or the input fails.
    pub fn tagged<'de>(&mut self, name: &'static str) -> Result<Tagged<'de, '_, A>, A::Error>
    where
        A: MapAccess<'de>,
    {
        let mut before = Vec::new();
        while let Some(key) = self.map.next_key_seed(TagOrKey(name))? {
            match key {
                Some(key) => before.push((key, self.map.next_value()?)),
                None => {
                    return Ok(Tagged { name, tag: self.map.next_value()?, before, rest: &mut self.map });
                }
            }
        }
        Err(A::Error::custom(format_args!("missing property `{name}` of {}", short(T::NAME))))
    }
}

impl<'de, A: MapAccess<'de>> Tagged<'de, '_, A> {
    /// Tells whether the tag is `literal`.
    #[inline]
    pub fn is<L: TagLiteral>(&self, literal: L) -> bool {
        literal.is_tag(&self.tag)
    }

    /// Reads the object as the variant `T`, which sees the tag if it declares a property of that name.
    ///
    /// # Errors
    ///
    /// When the object is not a `T`.
    pub fn read<T: Record>(self) -> Result<T, A::Error> {
        let tag = declares::<T>(self.name).then_some(self.tag);
        let chain = Chain { name: self.name, tag, before: self.before.into_iter(), rest: self.rest, next: Next::Rest };
        T::read(&mut Reader::new(chain))
    }

    /// Keeps the whole object of a tag that no variant has.
    ///
    /// # Errors
    ///
    /// When the input fails.
    pub fn other(self) -> Result<Value, A::Error> {
        let mut map = Map::new();
        map.insert(self.name.to_owned(), self.tag.into_value());
        map.extend(self.before);
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
pub fn put_variant<M: SerializeMap, L: TagLiteral, T: Record>(
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

/// Writes the entries of an object that was kept because its tag is not known.
///
/// # Errors
///
/// When `value` is no object, or the serializer fails.
pub fn put_other<M: SerializeMap>(m: &mut M, value: &Value) -> Result<(), M::Error> {
    match value {
        Value::Object(map) => map.iter().try_for_each(|(key, value)| m.serialize_entry(key, value)),
        _ => Err(serde::ser::Error::custom("a variant of a tagged union is an object")),
    }
}

/// What precedes the tag, the tag, and the rest of the object, as one object.
struct Chain<'de, 'a, A> {
    name: &'static str,
    tag: Option<Tag<'de>>,
    before: vec::IntoIter<(String, Value)>,
    rest: &'a mut A,
    next: Next<'de>,
}

/// Where the value that belongs to the current key is.
enum Next<'de> {
    Tag(Tag<'de>),
    Before(Value),
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
            self.next = Next::Before(value);
            return seed.deserialize(StringDeserializer::new(key)).map(Some);
        }
        self.rest.next_key_seed(seed)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match std::mem::replace(&mut self.next, Next::Rest) {
            Next::Rest => self.rest.next_value_seed(seed),
            Next::Tag(Tag::Text(Cow::Borrowed(text))) => seed.deserialize(BorrowedStrDeserializer::new(text)),
            Next::Tag(Tag::Text(Cow::Owned(text))) => seed.deserialize(StringDeserializer::new(text)),
            Next::Tag(Tag::Value(value)) | Next::Before(value) => {
                seed.deserialize(value.into_deserializer()).map_err(A::Error::custom)
            }
        }
    }
}

/// Recognises the tag's key and copies every other.
struct TagOrKey(&'static str);

impl<'de> DeserializeSeed<'de> for TagOrKey {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_identifier(self)
    }
}

impl Visitor<'_> for TagOrKey {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property name")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok((key != self.0).then(|| key.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Tag<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(TagVisitor)
    }
}

struct TagVisitor;

impl<'de> Visitor<'de> for TagVisitor {
    type Value = Tag<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a boolean or an integer")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Tag<'de>, E> {
        Ok(Tag::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Tag<'de>, E> {
        Ok(Tag::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Tag<'de>, E> {
        Ok(Tag::Text(Cow::Owned(text)))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Tag<'de>, E> {
        Ok(Tag::Value(value.into()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Tag<'de>, E> {
        Ok(Tag::Value(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Tag<'de>, E> {
        Ok(Tag::Value(value.into()))
    }
}
