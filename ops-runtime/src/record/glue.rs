//! The macros that connect generated types with serde, and what they expand to calls of.

pub use serde::de::{Deserialize, Deserializer, MapAccess};
pub use serde::ser::{Serialize, SerializeMap, Serializer};
pub use serde_json::Value;

pub use super::names::{from_str, is, read_name, read_value, write_scalar};
pub use super::reader::{read_record, write_record};
pub use super::tagged::{put_other, put_variant};
pub use super::untagged::{no_variant, read_untagged};

/// Makes a serde type of a type that implements [`Record`](crate::record::Record).
#[macro_export]
macro_rules! record {
    ($t:ty) => {
        impl<'de> $crate::record::glue::Deserialize<'de> for $t {
            fn deserialize<D: $crate::record::glue::Deserializer<'de>>(
                d: D,
            ) -> ::std::result::Result<Self, D::Error> {
                $crate::record::glue::read_record(d)
            }
        }
        impl $crate::record::glue::Serialize for $t {
            fn serialize<S: $crate::record::glue::Serializer>(
                &self,
                s: S,
            ) -> ::std::result::Result<S::Ok, S::Error> {
                $crate::record::glue::write_record(self, s)
            }
        }
    };
}

/// Makes a serde type of an enum of strings.
#[macro_export]
macro_rules! names {
    ($t:ty { $($first:literal $(| $more:literal)* => $variant:ident,)* _ => $other:ident $(,)? }) => {
        impl $t {
            /// Returns the string that this stands for.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $first,)*
                    Self::$other(text) => text,
                }
            }
        }
        impl $crate::record::Names for $t {
            fn known(text: &str) -> ::std::option::Option<Self> {
                ::std::option::Option::Some(match text {
                    $($first $(| $more)* => Self::$variant,)*
                    _ => return ::std::option::Option::None,
                })
            }
            fn other(text: ::std::string::String) -> Self {
                Self::$other(text)
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
        impl<'de> $crate::record::glue::Deserialize<'de> for $t {
            fn deserialize<D: $crate::record::glue::Deserializer<'de>>(d: D) -> ::std::result::Result<Self, D::Error> {
                $crate::record::glue::read_name(d)
            }
        }
        impl $crate::record::glue::Serialize for $t {
            fn serialize<S: $crate::record::glue::Serializer>(&self, s: S) -> ::std::result::Result<S::Ok, S::Error> {
                s.serialize_str(self.as_str())
            }
        }
    };
}

/// Makes a serde type of an enum of scalars of any kind.
#[macro_export]
macro_rules! values {
    ($t:ty { $($first:literal => $variant:ident,)* _ => $other:ident $(,)? }) => {
        impl $crate::record::Values for $t {
            fn of(value: $crate::record::glue::Value) -> Self {
                $(if $crate::record::glue::is(&value, $first) {
                    return Self::$variant;
                })*
                Self::$other(value)
            }
        }
        impl<'de> $crate::record::glue::Deserialize<'de> for $t {
            fn deserialize<D: $crate::record::glue::Deserializer<'de>>(d: D) -> ::std::result::Result<Self, D::Error> {
                $crate::record::glue::read_value(d)
            }
        }
        impl $crate::record::glue::Serialize for $t {
            fn serialize<S: $crate::record::glue::Serializer>(&self, s: S) -> ::std::result::Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant => $crate::record::glue::write_scalar($first, s),)*
                    Self::$other(value) => $crate::record::glue::Serialize::serialize(value, s),
                }
            }
        }
    };
}

/// Makes a serde type of a union that is told apart by the value of one property.
#[macro_export]
macro_rules! tagged {
    ($t:ty [$tag:literal] { $($first:literal $(| $more:literal)* => $variant:ident,)* _ => $other:ident $(,)? }) => {
        impl $crate::record::Record for $t {
            const NAME: &'static str = stringify!($t);
            const FIELDS: &'static [&'static str] = &[$tag];
            fn index(name: &str) -> usize {
                usize::from(name != $tag)
            }
            fn read<'de, A: $crate::record::glue::MapAccess<'de>>(
                m: &mut $crate::record::Reader<A, Self>,
            ) -> ::std::result::Result<Self, A::Error> {
                let object = m.tagged($tag)?;
                $(if object.is($first) $(|| object.is($more))* {
                    return object.read().map(Self::$variant);
                })*
                object.other().map(Self::$other)
            }
            fn write<M: $crate::record::glue::SerializeMap>(&self, m: &mut M) -> ::std::result::Result<(), M::Error> {
                match self {
                    $(Self::$variant(value) => $crate::record::glue::put_variant(m, $tag, $first, value),)*
                    Self::$other(value) => $crate::record::glue::put_other(m, value),
                }
            }
        }
        $crate::record!($t);
    };
}

/// Makes a serde type of a union that is told apart by the shape of the value.
#[macro_export]
macro_rules! untagged {
    ($t:ty { $(
        $($kind:ident $([$($needs:literal),* $(; $($knows:literal),*)?])?)|+ => $variant:ident
    ),+ $(,)? }) => {
        impl $crate::record::Untagged for $t {
            const NAME: &'static str = stringify!($t);
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
        }
        impl<'de> $crate::record::glue::Deserialize<'de> for $t {
            fn deserialize<D: $crate::record::glue::Deserializer<'de>>(d: D) -> ::std::result::Result<Self, D::Error> {
                $crate::record::glue::read_untagged(d)
            }
        }
        impl $crate::record::glue::Serialize for $t {
            fn serialize<S: $crate::record::glue::Serializer>(&self, s: S) -> ::std::result::Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(value) => $crate::record::glue::Serialize::serialize(value, s),)+
                }
            }
        }
    };
}
