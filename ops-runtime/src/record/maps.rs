//! Maps, boxes and values as records, so that they can be variants of a tagged union.

use std::collections::BTreeMap;

use serde_core::Serialize;
use serde_core::de::{DeserializeOwned, Error, MapAccess};
use serde_core::ser::SerializeMap;
use serde_json::{Map, Value};

use super::tagged::put_other;
use super::{Reader, Record, Tags};

impl<T: Record> Record for Box<T> {
    const NAME: &'static str = T::NAME;
    const FIELDS: &'static [&'static str] = T::FIELDS;
    const IS_UNION: bool = T::IS_UNION;
    const KEEPS: bool = T::KEEPS;
    crate::__opaque!();

    fn index(name: &str) -> usize {
        T::index(name)
    }

    fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
        T::read(&mut Reader::new(&mut m.map)).map(Self::new)
    }

    fn read_within<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>, tags: Option<&Tags<'_>>) -> Result<Self, A::Error> {
        T::read_within(&mut Reader::new(&mut m.map), tags).map(Self::new)
    }

    fn writes(&self, name: &str) -> bool {
        T::writes(self, name)
    }

    fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
        T::write(self, m)
    }
}

/// A map as a record: every name of the object is a key.
macro_rules! map {
    ($map:ty $(, $value:ident)?) => {
        impl$(<$value: DeserializeOwned + Serialize>)? Record for $map {
            const NAME: &'static str = "map";
            const FIELDS: &'static [&'static str] = &[];
            crate::__opaque!();

            fn index(_: &str) -> usize {
                0
            }

            fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
                let mut map = Self::new();
                match m.next_or(&mut map)? {
                    None => Ok(map),
                    Some(_) => Err(A::Error::custom("a map declares no property")),
                }
            }

            fn writes(&self, name: &str) -> bool {
                self.contains_key(name)
            }

            fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
                self.iter().try_for_each(|(key, value)| m.serialize_entry(key, value))
            }
        }
    };
}

map!(BTreeMap<String, T>, T);
map!(Map<String, Value>);

impl Record for Value {
    const NAME: &'static str = "object";
    const FIELDS: &'static [&'static str] = &[];
    crate::__opaque!();

    fn index(_: &str) -> usize {
        0
    }

    fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
        Map::read(&mut Reader::new(&mut m.map)).map(Self::Object)
    }

    fn writes(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
        put_other(m, self)
    }
}
