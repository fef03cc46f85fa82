//! Unions told apart by the value of one property.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::vec;

use serde_core::de::value::MapAccessDeserializer;
use serde_core::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_core::ser::SerializeMap;
use serde_core::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::begun::Begun;
use super::buffer::Buffer;
use super::decode::below;
use super::doubts::{Noted, note_unknown, note_untagged};
use super::json::AHEAD;
use super::key::Key;
use super::names::Scalar;
use super::reader::{Tags, declares};
use super::slots::Slots;
use super::{Reader, Record, written};

/// An open object whose tag is known, ready to be read as the variant that the tag selects.
pub struct Tagged<'de, 'a, A> {
    name: &'static str,
    tag: Option<Buffer<'de>>,
    before: Vec<(Key<'de>, Buffer<'de>)>,
    rest: &'a mut A,
    /// True if the tag was found by a look-ahead, so that it is in the rest.
    is_ahead: bool,
    /// The tags of the unions around this one.
    around: Option<&'a Tags<'a>>,
}

/// Reads a buffered value as the property `key`.
#[inline]
fn read<'de, V: DeserializeSeed<'de>, E: Error>(value: &Buffer<'de>, key: &str, seed: V) -> Result<V::Value, E> {
    seed.deserialize(value.reader()).map_err(|error: E| below(key, &error))
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
        let (mut before, mut tag, mut is_ahead) = (Vec::new(), None, false);
        while let Some(found) = self.map.next_key_seed(Look(name))? {
            match found {
                Found::Tag => tag = Some(self.map.next_value()?),
                Found::Ahead(value) => (tag, is_ahead) = (value, true),
                Found::Key(key) => {
                    before.push((key, self.map.next_value()?));
                    continue;
                }
            }
            break;
        }
        Ok(Tagged { name, tag, before, rest: &mut self.map, is_ahead, around: None })
    }
}

impl<'de, 'a, A: MapAccess<'de>> Tagged<'de, 'a, A> {
    /// Tells whether the tag is `literal`.
    #[inline]
    pub fn is<L: Scalar>(&self, literal: L) -> bool {
        self.tag.as_ref().and_then(Buffer::literal) == Some(literal.literal())
    }

    /// Says which unions this one is in.
    #[must_use]
    pub fn within(self, tags: Option<&'a Tags<'a>>) -> Self {
        Self { around: tags, ..self }
    }

    /// Reads the object as the variant `T`, which sees the tag if it declares a property of that name, or is a union, whose
    /// variants may declare it.
    ///
    /// # Errors
    ///
    /// When the object is not a `T`.
    pub fn read<T: Record>(self) -> Result<T, A::Error> {
        let tags = Tags { name: self.name, around: self.around };
        let sees_tag = T::IS_UNION || declares::<T>(self.name);
        // Other types pass over what they do not declare. A tag of a union around this one is hidden from these, too: it is
        // written again, so it must not count as dropped.
        let keeps = T::KEEPS || T::Slots::COUNT == 0;
        let is_around = || self.around.is_some_and(|tags| tags.any(|name| !declares::<T>(name)));
        let hides = !T::IS_UNION && (keeps && self.is_ahead && !sees_tag || is_around());
        let hidden = if hides { Some(Hidden { tags, declares: declares::<T> }) } else { None };
        T::read_within(&mut Reader::new(self.chain(sees_tag, hidden)), Some(&tags))
    }

    /// Reads the object as a variant that is no [`Record`], which sees the tag.
    ///
    /// # Errors
    ///
    /// When the object is not a `T`.
    pub fn read_own<T: DeserializeOwned>(self) -> Result<T, A::Error> {
        T::deserialize(Begun(MapAccessDeserializer::new(self.chain(true, None))))
    }

    /// Reads the object as the variant `T` of objects whose tag is not known, unless that would lose a tag.
    ///
    /// # Errors
    ///
    /// When the object is not a `T`, or the input fails.
    pub fn read_default<T: Record, U>(
        self,
        own: impl FnOnce(T) -> U,
        other: impl FnOnce(Value) -> U,
    ) -> Result<U, A::Error> {
        if self.tag.is_none() || declares::<T>(self.name) {
            return self.read().map(own);
        }
        self.other().map(other)
    }

    #[inline]
    fn chain(self, sees_tag: bool, hidden: Option<Hidden<'a>>) -> Chain<'de, 'a, A> {
        let Self { name, tag, before, rest, is_ahead, around } = self;
        let tag = tag.filter(|_| sees_tag && !is_ahead);
        let is_rest = tag.is_none() && before.is_empty() && hidden.is_none();
        Chain { name, around, tag, before: before.into_iter(), rest, next: None, hidden, is_rest }
    }

    /// Keeps the whole object of a tag that no variant has, or without a tag.
    ///
    /// # Errors
    ///
    /// When the input fails.
    pub fn other(self) -> Result<Value, A::Error> {
        note_unknown();
        if self.tag.is_none() {
            note_untagged();
        }
        // What is kept counts as one unknown tag, however many properties it has.
        let noted = Noted::now();
        let mut map = Map::new();
        if let Some(tag) = self.tag.filter(|_| !self.is_ahead) {
            map.insert(self.name.to_owned(), Value::deserialize(tag.reader())?);
        }
        for (key, value) in self.before {
            let value = read(&value, &key.0, PhantomData)?;
            map.insert(key.0.into_owned(), value);
        }
        while let Some((key, value)) = self.rest.next_entry::<String, Value>()? {
            // If the tag comes twice, the first has decided that no variant has it, so the second must not replace it.
            if key != self.name || !map.contains_key(self.name) {
                map.insert(key, value);
            }
        }
        noted.restore();
        Ok(Value::Object(map))
    }
}

/// Writes the variant `value` of a union, and its tag if `value` does not declare it, or has it unset.
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
    // It may be among what the variant keeps without declaring it.
    let is_written = value.writes(name) || T::KEEPS && written::writes(value, name);
    if !is_written {
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
    let value = super::to_value(value).map_err(serde_core::ser::Error::custom)?;
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

/// The tags that are kept from a variant, as it would keep them without declaring them, or drop them.
struct Hidden<'a> {
    tags: Tags<'a>,
    declares: fn(&str) -> bool,
}

impl Hidden<'_> {
    fn has(&self, key: &Key<'_>) -> bool {
        self.tags.any(|name| name == key.0) && !(self.declares)(&key.0)
    }
}

/// The tag, what precedes it, and the rest of the object, as one object.
struct Chain<'de, 'a, A> {
    name: &'static str,
    around: Option<&'a Tags<'a>>,
    tag: Option<Buffer<'de>>,
    before: vec::IntoIter<(Key<'de>, Buffer<'de>)>,
    rest: &'a mut A,
    /// The value that belongs to the current key, unless it is in the rest.
    next: Option<(Cow<'de, str>, Buffer<'de>)>,
    /// The tags that are left out.
    hidden: Option<Hidden<'a>>,
    /// True if only the rest is left, of which nothing is left out.
    is_rest: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Chain<'de, '_, A> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        if self.is_rest {
            return self.rest.next_key_seed(seed);
        }
        self.next_before(seed)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        if self.is_rest {
            return self.rest.next_value_seed(seed);
        }
        self.value_before(seed)
    }
}

impl<'de, A: MapAccess<'de>> Chain<'de, '_, A> {
    /// Moves to the next property as long as some precede the rest, or some of the rest are left out.
    fn next_before<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let is_hidden = |key: &Key<'_>| self.hidden.as_ref().is_some_and(|hidden| hidden.has(key));
        let tag = self.tag.take().map(|tag| (Key(Cow::Borrowed(self.name)), tag));
        if let Some((key, value)) = tag.or_else(|| self.before.find(|(key, _)| !is_hidden(key))) {
            let read = key.read(seed);
            self.next = Some((key.0, value));
            return read.map(Some);
        }
        if self.hidden.is_none() {
            self.is_rest = true;
            return self.rest.next_key_seed(seed);
        }
        while let Some(key) = self.rest.next_key::<Key<'de>>()? {
            if !is_hidden(&key) {
                return key.read(seed).map(Some);
            }
            let noted = Noted::now();
            self.rest.next_value::<IgnoredAny>()?;
            noted.restore();
        }
        Ok(None)
    }

    /// Reads the value of a key that [`next_before`](Self::next_before) moved to.
    fn value_before<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.next.take() {
            None => self.rest.next_value_seed(seed),
            Some((key, value)) => {
                let noted = Noted::now();
                let found = read(&value, &key, seed);
                // A type of the user's may pass over its tag, and those of unions around, which are written again.
                if key == self.name || self.around.is_some_and(|tags| tags.any(|name| name == key)) {
                    noted.restore();
                }
                found
            }
        }
    }
}

/// What is found where the tag is looked for.
enum Found<'de> {
    /// The tag's key, whose value is next.
    Tag,
    /// The tag's value, or that there is none, by a look ahead.
    Ahead(Option<Buffer<'de>>),
    /// Another key, from a deserializer that cannot look ahead.
    Key(Key<'de>),
}

/// Looks for the tag, ahead if that can be done.
struct Look(&'static str);

impl<'de> DeserializeSeed<'de> for Look {
    type Value = Found<'de>;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Found<'de>, D::Error> {
        d.deserialize_newtype_struct(AHEAD, self)
    }
}

impl<'de> Visitor<'de> for Look {
    type Value = Found<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property name")
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found<'de>, A::Error> {
        let mut is_first = true;
        while let Some(key) = map.next_key_seed(TagOrKey(self.0))? {
            match key {
                None if is_first => return Ok(Found::Tag),
                None => return Ok(Found::Ahead(Some(map.next_value()?))),
                Some(_) => drop(map.next_value::<IgnoredAny>()?),
            }
            is_first = false;
        }
        Ok(Found::Ahead(None))
    }

    #[inline]
    fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<Found<'de>, D::Error> {
        TagOrKey(self.0).deserialize(d).map(|key| key.map_or(Found::Tag, Found::Key))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Found<'de>, E> {
        TagOrKey(self.0).visit_str(key).map(|key| key.map_or(Found::Tag, Found::Key))
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Found<'de>, E> {
        TagOrKey(self.0).visit_borrowed_str(key).map(|key| key.map_or(Found::Tag, Found::Key))
    }
}

/// Recognises the tag's key and keeps every other.
struct TagOrKey(&'static str);

impl<'de> DeserializeSeed<'de> for TagOrKey {
    type Value = Option<Key<'de>>;

    #[inline]
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

    #[inline]
    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok((key != self.0).then_some(Key(Cow::Borrowed(key))))
    }
}
