//! The generic serde of generated types.
//!
//! A generated type carries no serde derives, which are what makes generated types slow to compile. It carries a small
//! table, and everything that reads and writes JSON by such tables is here, once. What tables add to derives: defaults,
//! enums and unions that keep what they don't know, an error that names all missing properties at once, and
//! [errors with a JSON pointer](DecodeError).
//!
//! A type is read strictly: a value that does not conform is an error, so that the caller can repair it and decode it
//! again. Only what a schema leaves open is ignored: undeclared properties are skipped, and of a repeated property the
//! last value counts. There is one exception: in a text, the first tag of an object selects its variant, because the
//! object is read from there on. A [`Value`](serde_json::Value) has only the last.
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
//! pub struct Pet {
//!     pub id: i64,                        // required
//!     pub owner: Option<String>,          // required, nullable: written even if null
//!     pub tag: Option<String>,            // optional: null stands for nothing
//!     pub weight: Option<Option<f64>>,    // optional, nullable: absent is None, null is Some(None)
//!     pub limit: u32,                     // optional, with a default
//!     pub status: Status,                 // optional, with a default that is built
//!     pub parent: Option<Box<Pet>>,       // optional, recursive
//! }
//!
//! /// A record with additional properties, and with one that can only be `tag`.
//! pub struct Tag {
//!     pub name: String,
//!     pub extra: ::std::collections::BTreeMap<String, i64>,
//! }
//!
//! /// A string enum.
//! #[derive(Debug, Clone, PartialEq)]
//! pub enum Status { New, Sold, Other(String) }
//!
//! /// An enum of several kinds of scalars, which keeps others of these kinds.
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
//!         type Slots = (
//!             Required<i64>,
//!             Required<Option<String>>,
//!             Optional<String>,
//!             Nullable<Option<f64>>,
//!             Defaulted<u32>,
//!             Defaulted<super::Status>,
//!             Optional<Box<super::Pet>>,
//!         );
//!         fn make((id, owner, tag, weight, limit, status, parent): Values<Self>) -> Self {
//!             let (limit, status) = (limit.unwrap_or(20), status.unwrap_or(super::Status::New));
//!             Self { id, owner, tag, weight, limit, status, parent }
//!         }
//!         fn fields(&self) -> Fields<'_, Self> {
//!             (&self.id, &self.owner, &self.tag, &self.weight, &self.limit, &self.status, &self.parent)
//!         }
//!     }
//!     ::ops_runtime::__generated::table!(super::Pet);
//!
//!     impl Record for super::Tag {
//!         const NAME: &'static str = "Tag";
//!         const FIELDS: &'static [&'static str] = &["name", "kind"];
//!         const CONSTANTS: &'static [Literal<'static>] = &[Literal::Text("tag")];
//!         type Slots = (Required<String>, Rest<i64>);
//!         fn make((name, extra): Values<Self>) -> Self {
//!             Self { name, extra }
//!         }
//!         fn fields(&self) -> Fields<'_, Self> {
//!             (&self.name, &self.extra)
//!         }
//!     }
//!     ::ops_runtime::__generated::table!(super::Tag);
//!
//!     ::ops_runtime::__generated::names!(super::Status { "new" => New, "sold" => Sold, _ => Other });
//!     ::ops_runtime::__generated::values!(super::Level { 1 => One, "auto" => Auto, false => Off, _ => Other });
//!     ::ops_runtime::__generated::tagged!(super::Event["kind"] { "pet" => Pet, "tag" => Tag, "prices" => Prices, _ => Other });
//!     ::ops_runtime::__generated::untagged!(super::Target {
//!         Integer => Id,
//!         String => Name,
//!         Object["id", "owner"; "tag", "weight", "limit", "status", "parent"] => Pet,
//!         Object["name"] => Tag,
//!         Null => All
//!     });
//!     ::ops_runtime::__generated::newtype!(super::Tree);
//! }
//! ```
//!
//! - **A record without required properties** has a `Default` if asked: `table!(super::Pet, Default)`. The input of an operation
//!   is also made from `()`: `table!(super::ListPetsInput, Default, ())`.
//! - **More than eight properties** are tuples in a tuple: in `Slots`, in what `make` takes and in what `fields` lends.
//! - **A property that can have one value only** is not a field. Its name comes last in `FIELDS` and its value is in
//!   `CONSTANTS`. It is written first. Reading fails if it is missing or has another value.
//! - **Additional properties** are the last slot, `Rest`, and a `BTreeMap`: its order is the same in every run and it
//!   compares without regard to order as JSON does. An entry under the name of a declared property is not written.
//! - **Numbers**: an `f64` takes integers and writes them as `66.0`, the same number; an integer that its type cannot hold
//!   is an error, and so is `1.0` for an `i64`.
//! - **A variant of a tagged union** holds a [`Record`]: a record (boxed or not), a `BTreeMap<String, _>`, a
//!   `serde_json::Map` or `Value`, or another tagged union. One that declares the tag as a property holds its value, and
//!   several tags can select it (`"a" | "b" => Variant`); one that does not, or has it unset, is written with the first tag of its arm, so
//!   that several tags need several variants. One that keeps what it does not declare is read without the tag; a tag that
//!   you put there is written as it is. Tags are strings, integers or booleans: `true => Yes`, `-1 => Back`. The variants
//!   of a union in a union may declare the tags of both.
//! - **A default variant of a tagged union**, as `else Variant` before the last arm, is what an object is read as that has
//!   no tag, or one that no arm has, if the variant declares the tag. It is written as it is.
//! - **The arms of an untagged union** are in the order in which variants that fit alike are tried. `Integer` is a number
//!   written without fraction, `Number` any; `A | B => V` takes both; `Any` takes all, as a variant `Other(Value)` would. `Open` is
//!   an object whose undeclared properties are kept.
//! - **A union must not hold itself** but inside a record, a list or a map: Rust would compile it for ever. Such a schema
//!   has no finite values anyhow.
//! - **The names of the last variants** are free: `_ => Unknown`, if the document has an `Other` of its own.

mod begun;
mod buffer;
mod decode;
mod doubts;
mod finite;
#[doc(hidden)]
pub mod glue;
pub(crate) mod json;
mod key;
mod maps;
mod names;
mod pointer;
mod reader;
mod slots;
mod table;
mod tagged;
mod try_variants;
mod untagged;
#[cfg_attr(not(feature = "registry"), allow(dead_code, reason = "only answers have a status"))]
mod variant;
mod written;

use serde_core::de::MapAccess;
use serde_core::ser::SerializeMap;

pub use decode::{DecodeError, from_slice, from_str, from_value, parse, to_value};
#[cfg(feature = "registry")]
pub(crate) use decode::{Destination, decoded, slice_into, str_into, value_into};
#[cfg(feature = "registry")]
pub(crate) use doubts::{Doubts, strictly};
#[cfg(feature = "registry")]
pub(crate) use finite::{Finite, place};
pub use names::{Literal, Names, Scalar, Values};
pub use reader::{Reader, Tags, put, put_some};
pub use slots::{Defaulted, DefaultedNull, Field, Nullable, Optional, Plain, Required, Rest, Slots, Vacant};
pub use table::{Fields, Opaque, Values as TableValues};
pub use tagged::Tagged;
pub use untagged::{Kind, Shape, Untagged};
#[cfg(all(test, feature = "http"))]
pub(crate) use variant::take as take_variant;
#[cfg(feature = "registry")]
pub(crate) use variant::{attempt, scoped as with_variant};

/// Everything that printed impls of [`Record`] name, for one glob import.
pub mod prelude {
    pub use super::TableValues as Values;
    pub use super::{Defaulted, DefaultedNull, Fields, Literal, Nullable, Optional, Record, Required, Rest};
}

/// A type whose JSON is an object with named properties.
///
/// An impl is a table: the names, how each is read, and two functions that move the fields.
/// [`table!`](crate::__generated::table!) makes a type of it; a type that reads and writes itself has what is provided here replaced,
/// and [`record!`](crate::__generated::record!) makes a serde type of it.
pub trait Record: Sized {
    /// The name of the type in error messages.
    const NAME: &'static str;

    /// The names of the properties: one for each slot, in their order, and then one for each constant.
    const FIELDS: &'static [&'static str];

    /// True if it is a union, whose variants say which properties there are beside its tag.
    const IS_UNION: bool = false;

    /// True if it keeps properties without declaring them: [`writes`](Self::writes) does not tell of these.
    const KEEPS: bool = <Self::Slots as Slots>::KEEPS;

    /// The values of the properties that can have only one, which are no fields of the type.
    const CONSTANTS: &'static [Literal<'static>] = &[];

    /// How each property is read: a tuple of slots, in tuples if they are many.
    type Slots: Slots;

    /// Makes the type of what was read.
    fn make(values: TableValues<Self>) -> Self;

    /// Lends the fields.
    fn fields(&self) -> Fields<'_, Self>;

    /// Returns the position of the property `name` in [`FIELDS`](Self::FIELDS), or any larger number if there is none.
    #[inline(always)]
    fn index(name: &str) -> usize {
        table::index::<Self>(name)
    }

    /// Tells whether the property at a position of [`FIELDS`](Self::FIELDS) has to be there.
    fn requires(at: usize) -> bool {
        table::requires::<Self>(at)
    }

    /// Reads the properties of one object.
    ///
    /// # Errors
    ///
    /// When a property is missing or does not decode.
    #[inline]
    fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
        table::read(m)
    }

    /// Reads the properties of one object that is a variant of a union, or of unions in unions, whose tags may be among them.
    ///
    /// # Errors
    ///
    /// When a property is missing or does not decode.
    #[inline]
    fn read_within<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>, tags: Option<&Tags<'_>>) -> Result<Self, A::Error> {
        // Those that it would keep without declaring them were taken out.
        let _ = tags;
        Self::read(m)
    }

    /// Tells whether [`write`](Self::write) writes the property `name`, other than one that the record keeps without declaring it.
    #[inline]
    fn writes(&self, name: &str) -> bool {
        let at = Self::index(name);
        at < Self::FIELDS.len() && Self::Slots::is_set(self.fields(), at)
    }

    /// Writes the properties into an open object.
    ///
    /// # Errors
    ///
    /// When the serializer fails.
    #[inline]
    fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
        table::write(self, m)
    }
}
