//! The macros that connect generated types with serde, and what they expand to calls of.
//!
//! Every path is absolute, so that a user's type may be called `Result`. What is more than a call is in the generic code.

pub use serde_core::de::{Deserialize, Deserializer, MapAccess};
pub use serde_core::ser::{Serialize, SerializeMap, Serializer};
pub use serde_json::Value;

pub use super::names::{from_str, is, kind_of, read_name, read_value, write_name, write_scalar, write_value};
pub use super::reader::{read_record, write_record};
pub use super::table::{copy, debug, equal, nothing};
pub use super::tagged::{put_other, put_own, put_variant};
pub use super::untagged::{no_variant, read_untagged, write_untagged};
pub use super::written::writes;

/// Makes a serde type of a type that implements [`Record`](crate::record::Record).
///
/// The [module](mod@crate::record) shows the impl.
#[doc(hidden)]
#[macro_export]
macro_rules! __record {
    ($t:ty) => {
        $crate::__serde!($t, |d| $crate::record::glue::read_record(d), |value, s| {
            $crate::record::glue::write_record(value, s)
        });
    };
}

/// Makes a serde type of a type that is a table of its properties, a [`Record`](crate::record::Record), and gives it `Debug`, `Clone` and
/// `PartialEq`; and `Default`, if that is asked for and no property has to be there. `()` behind it is for inputs of operations:
/// they can then be made from it.
///
/// The [module](mod@crate::record) shows the impl.
#[doc(hidden)]
#[macro_export]
macro_rules! __table {
    ($t:ty, Default, ()) => {
        impl ::std::convert::From<()> for $t {
            fn from((): ()) -> Self {
                $crate::record::glue::nothing()
            }
        }
        $crate::__table!($t, Default);
    };
    ($t:ty, Default) => {
        impl ::std::default::Default for $t {
            fn default() -> Self {
                $crate::record::glue::nothing()
            }
        }
        $crate::__table!($t);
    };
    ($t:ty) => {
        impl ::std::fmt::Debug for $t {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $crate::record::glue::debug(self, f)
            }
        }
        impl ::std::clone::Clone for $t {
            fn clone(&self) -> Self {
                $crate::record::glue::copy(self)
            }
        }
        impl ::std::cmp::PartialEq for $t {
            fn eq(&self, other: &Self) -> bool {
                $crate::record::glue::equal(self, other)
            }
        }
        $crate::__record!($t);
    };
}

/// Makes a serde type of an enum of strings whose last variant, a `String`, keeps any other.
///
/// Adds `as_str`, `Display` and `From<&str>`. A variant may be read from several strings; it is written as the first. With
/// `open = true` behind the variants, any other string is a valid value, too, because the schema has plain strings beside them.
///
/// ```
/// #[derive(Debug, PartialEq)]
/// enum Status { New, Paid, Other(String) }
/// ops_runtime::__generated::names!(Status { "new" => New, "paid" | "settled" => Paid, _ => Other });
///
/// assert_eq!(serde_json::from_str::<Status>(r#""settled""#).unwrap(), Status::Paid);
/// assert_eq!(Status::from("lost").as_str(), "lost");
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __names {
    ($t:ty { $($first:literal $(| $more:literal)* => $variant:ident,)* _ => $other:ident $(,)? } $(open = $open:literal)?) => {
        impl $crate::record::Names for $t {
            $(const IS_OPEN: bool = $open;)?
            fn known(text: &str) -> ::std::option::Option<Self> {
                ::std::option::Option::Some(match text {
                    $($first $(| $more)* => Self::$variant,)*
                    _ => return ::std::option::Option::None,
                })
            }
            fn other(text: ::std::string::String) -> Self {
                Self::$other(text)
            }
            fn text(&self) -> &str {
                match self {
                    $(Self::$variant => $first,)*
                    Self::$other(text) => text,
                }
            }
        }
        impl $t {
            /// Returns the string that this stands for.
            #[must_use]
            pub fn as_str(&self) -> &str {
                $crate::record::Names::text(self)
            }
        }
        impl ::std::fmt::Display for $t {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }
        impl ::std::convert::From<&str> for $t {
            fn from(text: &str) -> Self {
                $crate::record::glue::from_str(text)
            }
        }
        $crate::__serde!($t, |d| $crate::record::glue::read_name(d), |value, s| $crate::record::glue::write_name(value, s));
    };
}

/// Makes a serde type of an enum of scalars of any kind whose last variant, a `serde_json::Value`, keeps any other value of
/// the kinds that the scalars have. A value of another kind is an error.
///
/// ```
/// #[derive(Debug, PartialEq)]
/// enum Level { One, Auto, Other(serde_json::Value) }
/// ops_runtime::__generated::values!(Level { 1 => One, "auto" => Auto, _ => Other });
///
/// assert_eq!(serde_json::from_str::<Vec<Level>>(r#"[1, "auto"]"#).unwrap(), [Level::One, Level::Auto]);
/// assert_eq!(serde_json::from_str::<Level>("7").unwrap(), Level::Other(7.into()));
/// assert!(serde_json::from_str::<Level>("true").is_err());
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __values {
    ($t:ty { $($literal:literal => $variant:ident,)* _ => $other:ident $(,)? }) => {
        impl $crate::record::Values for $t {
            const KINDS: u8 = 0 $(| $crate::record::glue::kind_of(&$literal))*;
            fn known(value: &$crate::record::glue::Value) -> ::std::option::Option<Self> {
                $(if $crate::record::glue::is(value, $literal) {
                    return ::std::option::Option::Some(Self::$variant);
                })*
                ::std::option::Option::None
            }
            fn other(value: $crate::record::glue::Value) -> Self {
                Self::$other(value)
            }
            fn write<S: $crate::record::glue::Serializer>(&self, s: S) -> ::std::result::Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant => $crate::record::glue::write_scalar($literal, s),)*
                    Self::$other(value) => $crate::record::glue::Serialize::serialize(value, s),
                }
            }
        }
        $crate::__serde!($t, |d| $crate::record::glue::read_value(d), |value, s| $crate::record::glue::write_value(value, s));
    };
}

/// Makes a serde type, and a [`Record`](crate::record::Record), of a union that is told apart by the value of one
/// property, the tag; its last variant, a `serde_json::Value`, keeps an object whose tag is not known.
///
/// Each other variant holds a `Record`, which may declare the tag as one of its own properties: what it holds is written,
/// and the first tag of the variant if it is unset. Tags are strings,
/// integers or booleans, and may come anywhere in the object: only what precedes them is buffered. A variant with `(_)`
/// holds any other serde type that is an object; it sees the tag. The variant behind `else` is that of an object without a
/// tag, and if it declares the tag, of one with any other; it is written as it is.
#[doc(hidden)]
#[macro_export]
macro_rules! __tagged {
    (@read $object:ident) => { $object.read() };
    (@read $object:ident $own:tt) => { $object.read_own() };
    (@rest $object:ident, $other:ident) => { $object.other().map(Self::$other) };
    (@rest $object:ident, $other:ident, $default:ident) => { $object.read_default(Self::$default, Self::$other) };
    (@put $m:ident, $tag:literal, $first:literal, $value:ident) => {
        $crate::record::glue::put_variant($m, $tag, $first, $value)
    };
    (@put $m:ident, $tag:literal, $first:literal, $value:ident, $own:tt) => {
        $crate::record::glue::put_own($m, $tag, $first, $value)
    };
    ($t:ty [$tag:literal] {
        $($first:literal $(| $more:literal)* => $variant:ident $(($own:tt))?,)*
        $(else $default:ident,)?
        _ => $other:ident $(,)?
    }) => {
        impl $crate::record::Record for $t {
            const NAME: &'static str = ::std::stringify!($t);
            const FIELDS: &'static [&'static str] = &[$tag];
            const IS_UNION: bool = true;
            $crate::__opaque!();
            fn index(name: &str) -> usize {
                ::std::primitive::usize::from(name != $tag)
            }
            fn read<'de, A: $crate::record::glue::MapAccess<'de>>(
                m: &mut $crate::record::Reader<A, Self>,
            ) -> ::std::result::Result<Self, A::Error> {
                $crate::record::Record::read_within(m, ::std::option::Option::None)
            }
            fn read_within<'de, A: $crate::record::glue::MapAccess<'de>>(
                m: &mut $crate::record::Reader<A, Self>,
                tags: ::std::option::Option<&$crate::record::Tags<'_>>,
            ) -> ::std::result::Result<Self, A::Error> {
                let object = m.tagged($tag)?.within(tags);
                $(if object.is($first) $(|| object.is($more))* {
                    return $crate::__tagged!(@read object $($own)?).map(Self::$variant);
                })*
                $crate::__tagged!(@rest object, $other $(, $default)?)
            }
            fn writes(&self, name: &str) -> bool {
                $crate::record::glue::writes(self, name)
            }
            fn write<M: $crate::record::glue::SerializeMap>(&self, m: &mut M) -> ::std::result::Result<(), M::Error> {
                $(if let Self::$default(value) = self {
                    return $crate::record::Record::write(value, m);
                })?
                match self {
                    $(Self::$variant(value) => $crate::__tagged!(@put m, $tag, $first, value $(, $own)?),)*
                    Self::$other(value) => $crate::record::glue::put_other(m, value),
                }
            }
        }
        $crate::__record!($t);
    };
}

/// Makes a serde type of a union that is told apart by the shape of the value.
///
/// Each variant is given with the [kinds](crate::record::Kind) of JSON that it takes, and `Object` with the names of the
/// properties that it requires and, behind a semicolon, of the others that it declares. A variant that keeps undeclared
/// properties takes `Open` instead of `Object`.
///
/// A value of a kind that one variant takes is read as it comes. If several take it, it is buffered and tried, first as
/// the variant that declares most of its properties. Of variants that declare as many, those that keep the other properties
/// come first. If a variant takes the value with unknown constants of enums, the other variants that declare as many are
/// tried, too, and the one with the fewest unknown constants is taken. A value that no variant takes is an error, unless one
/// of them takes `Any`: it is unknown what it was meant to be, and the caller may want to repair it.
///
/// The output of an operation with several successes has the variants that each success may be behind `by`, in the order
/// of the output's `oneOf`: the status of a response tells which success it is.
///
/// ```
/// #[derive(Debug, PartialEq)]
/// enum Id { Number(i64), Text(String) }
/// ops_runtime::__generated::untagged!(Id { Integer => Number, String => Text });
///
/// assert_eq!(serde_json::from_str::<Id>("7").unwrap(), Id::Number(7));
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __untagged {
    ($t:ty { $(
        $($kind:ident $([$($needs:literal),* $(; $($knows:literal),*)?])?)|+ => $variant:ident
    ),+ $(,)? } $(by [$([$($success:literal),*]),*])?) => {
        impl $crate::record::Untagged for $t {
            const NAME: &'static str = ::std::stringify!($t);
            $(const SUCCESSES: &'static [&'static [::std::primitive::usize]] = &[$(&[$($success),*]),*];)?
            const SHAPES: &'static [&'static [$crate::record::Shape]] = &[$(&[$(
                $crate::record::Shape::new(
                    $crate::record::Kind::$kind,
                    &[$($($needs),*)?],
                    &[$($($($knows),*)?)?],
                ),
            )+],)+];
            fn read<'de, D: $crate::record::glue::Deserializer<'de>>(
                variant: usize,
                d: D,
            ) -> ::std::result::Result<Self, D::Error> {
                enum Variant { $($variant),+ }
                $(if variant == Variant::$variant as usize {
                    return $crate::record::glue::Deserialize::deserialize(d).map(Self::$variant);
                })+
                $crate::record::glue::no_variant(d)
            }
            fn write<S: $crate::record::glue::Serializer>(&self, s: S) -> ::std::result::Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(value) => $crate::record::glue::Serialize::serialize(value, s),)+
                }
            }
        }
        $crate::__serde!($t, |d| $crate::record::glue::read_untagged(d), |value, s| $crate::record::glue::write_untagged(value, s));
    };
}

/// Makes a serde type of a tuple struct of one field, which is read and written as that field.
///
/// For what an alias cannot do: to hold itself.
///
/// ```
/// #[derive(Debug, PartialEq)]
/// struct Tree(Vec<Tree>);
/// ops_runtime::__generated::newtype!(Tree);
///
/// assert_eq!(serde_json::from_str::<Tree>("[[], []]").unwrap(), Tree(vec![Tree(vec![]), Tree(vec![])]));
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __newtype {
    ($t:ty) => {
        $crate::__serde!($t, |d| $crate::record::glue::Deserialize::deserialize(d).map(Self), |value, s| {
            $crate::record::glue::Serialize::serialize(&value.0, s)
        });
    };
}

/// The impls that every generated type has.
#[doc(hidden)]
#[macro_export]
macro_rules! __serde {
    ($t:ty, |$d:ident| $read:expr, |$value:ident, $s:ident| $write:expr) => {
        impl<'de> $crate::record::glue::Deserialize<'de> for $t {
            #[inline]
            fn deserialize<D: $crate::record::glue::Deserializer<'de>>($d: D) -> ::std::result::Result<Self, D::Error> {
                $read
            }
        }
        impl $crate::record::glue::Serialize for $t {
            fn serialize<S: $crate::record::glue::Serializer>(&self, $s: S) -> ::std::result::Result<S::Ok, S::Error> {
                let $value = self;
                $write
            }
        }
    };
}
