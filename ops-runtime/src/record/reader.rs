//! Reading and writing the properties of one object.

use std::fmt;
use std::marker::PhantomData;

use serde_core::Serialize;
use serde_core::de::{self, Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_core::ser::{SerializeMap, Serializer};

use super::Record;
use super::doubts::note_kept;
use super::json::GUESSED;

/// The open object that a [`Record`] is read from.
pub struct Reader<A, T> {
    pub(super) map: A,
    /// The position of the property that probably comes next: the one behind the last.
    guess: usize,
    record: PhantomData<fn() -> T>,
}

impl<A, T: Record> Reader<A, T> {
    #[inline]
    pub(super) fn new(map: A) -> Self {
        Self { map, guess: 0, record: PhantomData }
    }

    /// Moves to the next property and returns its position, or `None` at the end of the object.
    ///
    /// The property's value has to be taken by [`put`](Self::put) or [`skip`](Self::skip) before the next call.
    ///
    /// # Errors
    ///
    /// When the input fails.
    #[inline]
    pub fn next<'de>(&mut self) -> Result<Option<usize>, A::Error>
    where
        A: MapAccess<'de>,
    {
        let found = self.map.next_key_seed(Index::<T> { guess: self.guess, has_asked: false, record: PhantomData })?;
        // Behind one that is not declared, still the same.
        if let Some(at) = found.filter(|at| *at < T::FIELDS.len()) {
            self.guess = at + 1;
        }
        Ok(found)
    }

    /// Moves to the next declared property as [`next`](Self::next) does, and puts those before it that are not declared
    /// into `extra`.
    ///
    /// `extra` is any map of strings, usually a `BTreeMap`.
    ///
    /// # Errors
    ///
    /// When the input fails, or the value of an undeclared property does not decode.
    pub fn next_or<'de, V, E>(&mut self, extra: &mut E) -> Result<Option<usize>, A::Error>
    where
        A: MapAccess<'de>,
        V: Deserialize<'de>,
        E: Extend<(String, V)>,
    {
        loop {
            match self.map.next_key_seed(IndexOrKey::<T>(PhantomData))? {
                None => return Ok(None),
                Some(Found::Declared(index)) => return Ok(Some(index)),
                Some(Found::Extra(key)) => extra.extend([(key, self.map.next_value()?)]),
            }
        }
    }

    /// Decodes the value of the current property into its slot; of a property that comes twice the last value stays.
    ///
    /// # Errors
    ///
    /// When the value does not decode.
    #[inline]
    pub fn put<'de, V>(&mut self, slot: &mut Option<V>) -> Result<(), A::Error>
    where
        A: MapAccess<'de>,
        V: Deserialize<'de>,
    {
        *slot = Some(self.map.next_value()?);
        Ok(())
    }

    /// Passes over the value of the current property.
    ///
    /// # Errors
    ///
    /// When the input fails.
    #[inline]
    pub fn skip<'de>(&mut self) -> Result<(), A::Error>
    where
        A: MapAccess<'de>,
    {
        self.map.next_value::<IgnoredAny>().map(drop)
    }

    /// Makes the error that names every required property that is absent.
    ///
    /// Takes the position of each required property and whether it is absent.
    #[cold]
    pub fn missing<'de>(&self, required: &[(usize, bool)]) -> A::Error
    where
        A: MapAccess<'de>,
    {
        missing(T::NAME, T::FIELDS, required)
    }
}

/// The names of the tags of a union and of those around it, whose values may be among the properties of its variants.
#[derive(Clone, Copy)]
pub struct Tags<'a> {
    pub(super) name: &'static str,
    pub(super) around: Option<&'a Tags<'a>>,
}

impl Tags<'_> {
    /// Tells whether any of the names is one that `is` holds for.
    pub(super) fn any(&self, is: impl Fn(&str) -> bool) -> bool {
        let mut tags = Some(self);
        while let Some(&Tags { name, around }) = tags {
            if is(name) {
                return true;
            }
            tags = around;
        }
        false
    }
}

/// Returns a type's name without the path that generated code reaches it by.
pub(super) fn short(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// The part of [`Reader::missing`] that does not depend on the type.
#[cold]
pub(super) fn missing<E: Error>(name: &str, fields: &[&str], required: &[(usize, bool)]) -> E {
    let absent: Vec<String> = required
        .iter()
        .filter(|(_, absent)| *absent)
        .filter_map(|(index, _)| fields.get(*index))
        .map(|field| format!("`{field}`"))
        .collect();
    let noun = if absent.len() == 1 { "property" } else { "properties" };
    E::custom(format_args!("missing {noun} {} of {}", absent.join(", "), short(name)))
}

/// Tells whether `T` itself holds the property `name`.
#[inline]
pub(super) fn declares<T: Record>(name: &str) -> bool {
    T::index(name) < T::FIELDS.len()
}

/// Writes one property.
///
/// # Errors
///
/// When the serializer fails.
#[inline]
pub fn put<M: SerializeMap, V: Serialize>(m: &mut M, name: &'static str, value: &V) -> Result<(), M::Error> {
    m.serialize_entry(name, value)
}

/// Writes one property if it is present.
///
/// # Errors
///
/// When the serializer fails.
#[inline]
pub fn put_some<M: SerializeMap, V: Serialize>(
    m: &mut M,
    name: &'static str,
    value: &Option<V>,
) -> Result<(), M::Error> {
    match value {
        Some(value) => m.serialize_entry(name, value),
        None => Ok(()),
    }
}

/// Reads a record; the body of the `Deserialize` that [`record!`](crate::__generated::record!) writes.
///
/// # Errors
///
/// When the input is no object, or not one of `T`.
#[inline]
pub fn read_record<'de, T: Record, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
    d.deserialize_map(RecordVisitor(PhantomData))
}

/// Writes a record; the body of the `Serialize` that [`record!`](crate::__generated::record!) writes.
///
/// # Errors
///
/// When the serializer fails.
#[inline]
pub fn write_record<T: Record, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    let mut m = s.serialize_map(None)?;
    value.write(&mut m)?;
    m.end()
}

struct RecordVisitor<T>(PhantomData<fn() -> T>);

impl<'de, T: Record> Visitor<'de> for RecordVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object ({})", short(T::NAME))
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::read(&mut Reader::new(map))
    }
}

/// Turns a key into the position of its property without copying it.
struct Index<T> {
    guess: usize,
    /// True if it was checked that the guess is right.
    has_asked: bool,
    record: PhantomData<fn() -> T>,
}

impl<T: Record> Index<T> {
    /// True if the names are unescaped in JSON, so that they can be compared with text.
    const ARE_PLAIN: bool = are_plain(T::FIELDS);
}

impl<'de, T: Record> DeserializeSeed<'de> for Index<T> {
    type Value = usize;

    #[inline(always)]
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<usize, D::Error> {
        match T::FIELDS.get(self.guess) {
            Some(name) if Self::ARE_PLAIN => d.deserialize_newtype_struct(name, self),
            _ => d.deserialize_newtype_struct(GUESSED, Self { has_asked: true, ..self }),
        }
    }
}

impl<'de, T: Record> Visitor<'de> for Index<T> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property name")
    }

    #[inline(always)]
    fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<usize, D::Error> {
        if self.has_asked {
            return d.deserialize_identifier(self);
        }
        d.deserialize_newtype_struct(GUESSED, Self { has_asked: true, ..self })
    }

    #[inline(always)]
    fn visit_unit<E: de::Error>(self) -> Result<usize, E> {
        Ok(self.guess)
    }

    #[inline(always)]
    fn visit_str<E: de::Error>(self, name: &str) -> Result<usize, E> {
        Ok(T::index(name))
    }
}

// The compiler runs it, so that a wrong index would be an error of the build.
#[expect(clippy::indexing_slicing)]
const fn are_plain(names: &[&str]) -> bool {
    let mut name = 0;
    while name < names.len() {
        let bytes = names[name].as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at] < b' ' || bytes[at] == b'"' || bytes[at] == b'\\' {
                return false;
            }
            at += 1;
        }
        name += 1;
    }
    true
}

pub(super) enum Found {
    Declared(usize),
    Extra(String),
}

/// Like [`Index`], but keeps a key that is not declared.
pub(super) struct IndexOrKey<T>(pub(super) PhantomData<fn() -> T>);

impl<'de, T: Record> DeserializeSeed<'de> for IndexOrKey<T> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Found, D::Error> {
        d.deserialize_identifier(self)
    }
}

impl<T: Record> Visitor<'_> for IndexOrKey<T> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property name")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Found, E> {
        let index = T::index(name);
        if index < T::FIELDS.len() {
            return Ok(Found::Declared(index));
        }
        note_kept();
        Ok(Found::Extra(name.to_owned()))
    }
}
