//! Records as tables: what is printed for a type is its names and two moves, everything else is here.
//!
//! A [`Record`] names its properties and says with [`Slots`] how each is read; one function makes the type of what was
//! read, another lends its fields. Reading, writing, comparing, copying and printing are generic over the slots: they
//! cost the user's build nothing until they are used, where a function body in every type costs each check of the crate.

use std::fmt;
use std::marker::PhantomData;

use serde_core::Deserialize;
use serde_core::de::{self, DeserializeSeed, Deserializer, MapAccess};
use serde_core::ser::SerializeMap;

use super::names::{Literal, same};
use super::reader::{Found, IndexOrKey, short};
use super::slots::{Plain, Slots, Vacant};
use super::{Reader, Record};

/// What a [`Record`] is made of.
pub type Values<T> = <<T as Record>::Slots as Slots>::Values;

/// The fields of a [`Record`], borrowed.
pub type Fields<'a, T> = <<T as Record>::Slots as Slots>::Fields<'a>;

/// Tells whether the property at a position has to be there.
pub(super) fn requires<T: Record>(at: usize) -> bool {
    at >= T::Slots::COUNT || T::Slots::requires(at)
}

/// Reads the properties of one object.
#[inline]
pub(super) fn read<'de, T: Record, A: MapAccess<'de>>(m: &mut Reader<A, T>) -> Result<T, A::Error> {
    let mut open = T::Slots::open();
    // Which constants were seen; of more than fit here, the rest are not missed.
    let mut seen = 0_u32;
    loop {
        let at = if T::Slots::KEEPS {
            match m.map.next_key_seed(IndexOrKey::<T>(PhantomData))? {
                None => break,
                Some(Found::Declared(at)) => at,
                Some(Found::Extra(key)) => {
                    T::Slots::keep(&mut open, key, &mut m.map)?;
                    continue;
                }
            }
        } else {
            match m.next()? {
                None => break,
                Some(at) => at,
            }
        };
        if at < T::Slots::COUNT {
            T::Slots::put(&mut open, at, &mut m.map)?;
        } else if let Some(constant) = T::CONSTANTS.get(at - T::Slots::COUNT) {
            m.map.next_value_seed(Expect(*constant))?;
            seen |= 1_u32.checked_shl(bit(at - T::Slots::COUNT)).unwrap_or(0);
        } else {
            m.skip()?;
        }
    }
    let all = T::CONSTANTS.len() >= 32 || seen == (1 << T::CONSTANTS.len()) - 1;
    if !all || !T::Slots::is_complete(&open) {
        return Err(missing::<T, A::Error>(&open, seen));
    }
    T::Slots::close(open).map(T::make).ok_or_else(|| de::Error::custom("a property is missing"))
}

/// Writes the properties into an open object.
#[inline]
pub(super) fn write<T: Record, M: SerializeMap>(value: &T, m: &mut M) -> Result<(), M::Error> {
    if !T::CONSTANTS.is_empty() {
        for (name, constant) in T::FIELDS.iter().skip(T::Slots::COUNT).zip(T::CONSTANTS) {
            m.serialize_entry(name, constant)?;
        }
    }
    T::Slots::write(value.fields(), T::FIELDS, 0, m)
}

fn bit(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Makes the error that names every required property that is absent.
#[cold]
fn missing<T: Record, E: de::Error>(open: &<T::Slots as Slots>::Open, seen: u32) -> E {
    let absent = |at: usize| match at.checked_sub(T::Slots::COUNT) {
        None => T::Slots::lacks(open, at),
        Some(constant) => seen & 1_u32.checked_shl(bit(constant)).unwrap_or(u32::MAX) == 0,
    };
    let absent = (0..T::FIELDS.len()).map(|at| (at, absent(at)));
    super::reader::missing(T::NAME, T::FIELDS, &absent.collect::<Vec<_>>())
}

/// Returns the position of a property by its name, or the number of properties if it is not among them.
#[inline(always)]
pub(super) fn index<T: Record>(name: &str) -> usize {
    let found = Hashed::<T>::POSITIONS.get(hash(name.as_bytes())).copied().unwrap_or(SHARED);
    match T::FIELDS.get(usize::from(found & !SHARED)) {
        Some(known) if same(known.as_bytes(), name.as_bytes()) => usize::from(found & !SHARED),
        _ if found & SHARED == 0 => T::FIELDS.len(),
        _ => search(T::FIELDS, name),
    }
}

/// The position of each name in a table that the compiler makes; of two names with one hash it has the first.
struct Hashed<T>(PhantomData<T>);

impl<T: Record> Hashed<T> {
    const POSITIONS: [u8; HASHES] = positions(T::FIELDS);
}

/// How many hashes there are.
const HASHES: usize = 64;

/// Marks a hash of more than one name.
const SHARED: u8 = 0x80;

/// The position where there is no name: names from there on are looked for.
const NOWHERE: u8 = 0x7F;

// The compiler runs it, so that a wrong index would be an error of the build.
#[expect(clippy::indexing_slicing)]
const fn positions(names: &[&str]) -> [u8; HASHES] {
    let many = if names.len() > NOWHERE as usize { SHARED } else { 0 };
    let mut positions = [NOWHERE | many; HASHES];
    let mut at = names.len();
    while at > 0 {
        at -= 1;
        if at < NOWHERE as usize {
            let hash = hash(names[at].as_bytes());
            let shared = if positions[hash] == NOWHERE { 0 } else { SHARED };
            positions[hash] = at as u8 | shared;
        }
    }
    positions
}

#[inline(always)]
const fn hash(name: &[u8]) -> usize {
    let hash = match name {
        [first, .., last] => {
            (*first as usize).wrapping_mul(7) ^ (*last as usize).wrapping_mul(29) ^ name.len().wrapping_mul(3)
        }
        [only] => *only as usize,
        [] => 0,
    };
    hash % HASHES
}

/// Looks for a name that is not where its hash says.
#[cold]
fn search(names: &[&str], name: &str) -> usize {
    names.iter().position(|known| same(known.as_bytes(), name.as_bytes())).unwrap_or(names.len())
}

/// Reads a scalar that can be only one.
struct Expect(Literal<'static>);

impl<'de> DeserializeSeed<'de> for Expect {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        let found = super::buffer::Buffer::deserialize(d)?;
        if found.literal() == Some(self.0) {
            return Ok(());
        }
        Err(de::Error::invalid_value(found.unexpected(), &self))
    }
}

impl de::Expected for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Literal::Text(text) => write!(f, "{text:?}"),
            Literal::Boolean(value) => write!(f, "{value}"),
            Literal::Integer(value) => write!(f, "{value}"),
            Literal::Number(value) => write!(f, "{value:?}"),
        }
    }
}

/// The slots of a record that reads and writes itself.
#[derive(Debug)]
pub enum Opaque {}

/// Says that a record reads and writes itself.
#[doc(hidden)]
#[macro_export]
macro_rules! __opaque {
    () => {
        type Slots = $crate::record::Opaque;
        fn make(values: $crate::record::TableValues<Self>) -> Self {
            match values {}
        }
        fn fields(&self) -> $crate::record::Fields<'_, Self> {}
    };
}

/// Prints a record as `derive(Debug)` would, under the names of its JSON.
///
/// # Errors
///
/// When the formatter fails.
pub fn debug<T: Record<Slots: Plain>>(value: &T, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut out = f.debug_struct(short(T::NAME));
    T::Slots::debug(value.fields(), T::FIELDS, 0, &mut out);
    out.finish()
}

/// Copies a record.
pub fn copy<T: Record<Slots: Plain>>(value: &T) -> T {
    T::make(T::Slots::copy(value.fields()))
}

/// Compares two records.
pub fn equal<T: Record<Slots: Plain>>(one: &T, other: &T) -> bool {
    T::Slots::equal(one.fields(), other.fields())
}

/// Makes the record of an empty object.
pub fn nothing<T: Record<Slots: Vacant>>() -> T {
    T::make(T::Slots::vacant())
}
