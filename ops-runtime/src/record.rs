//! The generic serde of generated types.

mod attempt;
mod buffer;
mod decode;
#[doc(hidden)]
pub mod glue;
mod maps;
mod names;
mod pointer;
mod reader;
mod tagged;
mod untagged;

use serde::de::MapAccess;
use serde::ser::SerializeMap;

pub use decode::{DecodeError, from_slice, from_str, from_value, to_value};
pub use names::{Literal, Names, Scalar, Values};
pub use reader::{Reader, put, put_extra, put_some};
pub use tagged::Tagged;
pub use untagged::{Kind, Shape, Untagged};

/// Everything that printed impls of [`Record`] name, for one glob import.
pub mod prelude {
    pub use super::{Reader, Record, put, put_extra, put_some};
    pub use serde::de::MapAccess;
    pub use serde::ser::SerializeMap;
}

/// A type whose JSON is an object with named properties.
///
/// An impl is a table: the names, their positions, and two functions that move the fields. [`record!`](crate::record!)
/// makes a serde type of it.
pub trait Record: Sized {
    /// The name of the type in error messages.
    const NAME: &'static str;

    /// The names of the properties, in the order of their positions.
    const FIELDS: &'static [&'static str];

    /// Returns the position of the property `name` in [`FIELDS`](Self::FIELDS), or any larger number if there is none.
    fn index(name: &str) -> usize;

    /// Reads the properties of one object.
    ///
    /// # Errors
    ///
    /// When a property is missing or does not decode.
    fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error>;

    /// Writes the properties into an open object.
    ///
    /// # Errors
    ///
    /// When the serializer fails.
    fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error>;
}
