//! The generic serde of generated types.
//!
//! A generated type carries no serde derives, which are what makes generated types slow to compile. It carries a small
//! table, and everything that reads and writes JSON by such tables is here, once. What tables add to derives: defaults,
//! enums and unions that keep what they don't know, an error that names all missing properties at once, and
//! [errors with a JSON pointer](DecodeError).
//!
//! A type is read strictly: a value that does not conform is an error, so that whoever decodes it can repair it and
//! decode again. Only what a schema leaves open is passed over: properties that it does not declare are skipped, and of a
//! property that comes twice the last value stays.
//!
//! # What a generator prints
//!
//! Types stand in the generated module, and their impls in a module beside them that imports nothing but the
//! [`prelude`]. There `Some`, `Ok` and `Result` are the standard library's whatever the document calls its types. The
//! macros name everything by absolute paths, and can stand in either place.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use ops_runtime::record::{from_str, to_value};
//!
//! let pet: Pet = from_str(r#"{ "id": 7, "owner": null, "legs": 3 }"#)?;
//! assert_eq!((pet.id, pet.limit, &pet.status), (7, 20, &Status::New));
//!
//! let text = r#"[{ "name": "x", "kind": "tag" }, { "kind": "pet", "id": "7" }]"#;
//! let error = from_str::<Vec<Event>>(text).unwrap_err();
//! assert_eq!(error.to_string(), r#"/1/id: invalid type: string "7", expected i64"#);
//!
//! let error = from_str::<Pet>("{}").unwrap_err();
//! assert_eq!(error.to_string(), "missing properties `id`, `owner` of Pet");
//! # to_value(&pet)?;
//! # Ok(())
//! # }
//! #
//! # type Map<T> = std::collections::BTreeMap<String, T>;
//! /// A record: one field of each flavour.
//! #[derive(Debug, Clone, PartialEq)]
//! pub struct Pet {
//!     pub id: i64,                        // required
//!     pub owner: Option<String>,          // required, nullable: written even if null
//!     pub tag: Option<String>,            // optional: null is an error
//!     pub weight: Option<Option<f64>>,    // optional, nullable: absent is None, null is Some(None)
//!     pub limit: u32,                     // optional, with a default
//!     pub status: Status,                 // optional, with a default that is built
//!     pub parent: Option<Box<Pet>>,       // optional, recursive
//! }
//!
//! /// A record with additional properties.
//! #[derive(Debug, Clone, PartialEq)]
//! pub struct Tag {
//!     pub name: String,
//!     pub extra: ::std::collections::BTreeMap<String, i64>,
//! }
//!
//! /// A string enum.
//! #[derive(Debug, Clone, PartialEq)]
//! pub enum Status { New, Sold, Other(String) }
//!
//! /// An enum of several kinds of scalars.
//! #[derive(Debug, Clone, PartialEq)]
//! pub enum Level { One, Auto, Off, Other(::serde_json::Value) }
//!
//! /// A union that is told apart by a property: `oneOf` with a `discriminator` or a `const`.
//! #[derive(Debug, Clone, PartialEq)]
//! pub enum Event { Pet(Box<Pet>), Tag(Tag), Prices(Prices), Other(::serde_json::Value) }
//!
//! /// A union that is told apart by shape.
//! #[derive(Debug, Clone, PartialEq)]
//! pub enum Target { Id(i64), Name(String), Pet(Pet), Tag(Tag), All(()) }
//!
//! /// A map, a tuple and any other alias needs no impl.
//! pub type Prices = ::std::collections::BTreeMap<String, (f64, String)>;
//!
//! /// A type that is an alias but for holding itself.
//! #[derive(Debug, Clone, PartialEq)]
//! pub struct Tree(pub Vec<Tree>);
//!
//! mod impls {
//!     use ::ops_runtime::record::prelude::*;
//!
//!     impl Record for super::Pet {
//!         const NAME: &'static str = "Pet";
//!         const FIELDS: &'static [&'static str] = &["id", "owner", "tag", "weight", "limit", "status", "parent"];
//!         fn index(name: &str) -> usize {
//!             match name {
//!                 "id" => 0, "owner" => 1, "tag" => 2, "weight" => 3, "limit" => 4, "status" => 5, "parent" => 6,
//!                 _ => 7,
//!             }
//!         }
//!         #[inline]
//!         fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
//!             let mut s = (None, None, None, None, None, None, None);     // of one: (None,)
//!             while let Some(i) = m.next()? {
//!                 match i {
//!                     0 => m.put(&mut s.0), 1 => m.put(&mut s.1), 2 => m.put(&mut s.2), 3 => m.put(&mut s.3),
//!                     4 => m.put(&mut s.4), 5 => m.put(&mut s.5), 6 => m.put(&mut s.6),
//!                     _ => m.skip(),
//!                 }?
//!             }
//!             match s {
//!                 (Some(id), Some(owner), tag, weight, limit, status, parent) => Ok(Self {
//!                     id,
//!                     owner,
//!                     tag,
//!                     weight,
//!                     limit: limit.unwrap_or(20),
//!                     status: status.unwrap_or_else(|| super::Status::New),
//!                     parent,
//!                 }),
//!                 s => Err(m.missing(&[(0, s.0.is_none()), (1, s.1.is_none())])),
//!             }
//!         }
//!         fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
//!             put(m, "id", &self.id)?;
//!             put(m, "owner", &self.owner)?;
//!             put_some(m, "tag", &self.tag)?;
//!             put_some(m, "weight", &self.weight)?;
//!             put(m, "limit", &self.limit)?;
//!             put(m, "status", &self.status)?;
//!             put_some(m, "parent", &self.parent)
//!         }
//!     }
//!     ::ops_runtime::record!(super::Pet);
//!
//!     impl Record for super::Tag {
//!         const NAME: &'static str = "Tag";
//!         const FIELDS: &'static [&'static str] = &["name"];
//!         fn index(name: &str) -> usize {
//!             match name { "name" => 0, _ => 1 }
//!         }
//!         #[inline]
//!         fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
//!             let mut s = (None,);
//!             let mut extra = Default::default();
//!             while let Some(i) = m.next_or(&mut extra)? {
//!                 match i { 0 => m.put(&mut s.0), _ => m.skip() }?
//!             }
//!             match s {
//!                 (Some(name),) => Ok(Self { name, extra }),
//!                 s => Err(m.missing(&[(0, s.0.is_none())])),
//!             }
//!         }
//!         fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
//!             put(m, "name", &self.name)?;
//!             put_extra::<Self, _, _>(m, &self.extra)
//!         }
//!     }
//!     ::ops_runtime::record!(super::Tag);
//!
//!     ::ops_runtime::names!(super::Status { "new" => New, "sold" => Sold, _ => Other });
//!     ::ops_runtime::values!(super::Level { 1 => One, "auto" => Auto, false => Off, _ => Other });
//!     ::ops_runtime::tagged!(super::Event["kind"] { "pet" => Pet, "tag" => Tag, "prices" => Prices, _ => Other });
//!     ::ops_runtime::untagged!(super::Target {
//!         Integer => Id,
//!         String => Name,
//!         Object["id", "owner"; "tag", "weight", "limit", "status", "parent"] => Pet,
//!         Object["name"] => Tag,
//!         Null => All
//!     });
//!     ::ops_runtime::newtype!(super::Tree);
//! }
//! ```
//!
//! - **A record without required properties** ends in `let (a, b) = s;` and `Ok(Self { a, b })` in place of the `match`;
//!   one without any property reads by `while m.next()?.is_some() { m.skip()? }`, and its `index` returns 0.
//! - **Additional properties** are a map of strings. `BTreeMap` is the one to print: its order is the same in every run,
//!   it compares without regard to order as JSON does, and it names no foreign crate. Any map that can be extended and
//!   iterated will do. An entry under the name of a declared property is not written.
//! - **Numbers**: an `f64` takes integers and writes them as `66.0`, the same number; an integer that its type cannot hold
//!   is an error, and so is `1.0` for an `i64`.
//! - **A variant of a tagged union** holds a [`Record`]: a record (boxed or not), a `BTreeMap<String, _>`, a
//!   `serde_json::Map` or `Value`, or another tagged union. One that declares the tag as a property holds its value, and
//!   several tags can select it (`"a" | "b" => Variant`); one that does not is written with the first tag of its arm, so
//!   that several tags need several variants. Tags are strings, integers or booleans: `true => Yes`, `-1 => Back`.
//! - **The arms of an untagged union** are in the order in which variants that fit alike are tried. `Integer` is a number
//!   written without fraction, `Number` any; `A | B => V` takes both; `Any` takes all, as a variant `Other(Value)` would.
//! - **A union must not hold itself** but inside a record, a list or a map: Rust would compile it for ever. Such a schema
//!   has no finite values anyhow.
//! - **The names of the last variants** are free: `_ => Unknown`, if the document has an `Other` of its own.

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
#[cfg_attr(not(feature = "registry"), allow(dead_code, reason = "only answers have a status"))]
mod variant;

use serde::de::MapAccess;
use serde::ser::SerializeMap;

pub use decode::{DecodeError, from_slice, from_str, from_value, to_value};
pub use names::{Literal, Names, Scalar, Values};
pub use reader::{Reader, put, put_extra, put_some};
pub use tagged::Tagged;
pub use untagged::{Kind, Shape, Untagged};
#[cfg(feature = "registry")]
pub(crate) use variant::scoped as with_variant;
#[cfg(all(test, feature = "http"))]
pub(crate) use variant::take as take_variant;

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
