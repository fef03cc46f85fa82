//! The tools for the JSON of the model; the JSON of a type is beside the type.
//!
//! There are no derives. A plain record is a table over the crate's own [`Record`](crate::record::Record), as in
//! generated code; any other type goes through a private record that has the shape of the JSON.
//!
//! For all of them: unknown members are ignored, an optional member that is `null` counts as absent, and an optional
//! member that is empty or has its default is not written.

use std::fmt;

use serde_core::de::{self, Deserialize, Deserializer, Visitor};

/// Reads a string that is not kept, and so need not be copied.
pub(crate) fn read_text<'de, D: Deserializer<'de>, T>(
    d: D,
    expected: &'static str,
    read: fn(&str) -> T,
) -> Result<T, D::Error> {
    struct Read<T>(&'static str, fn(&str) -> T);

    impl<T> Visitor<'_> for Read<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            Ok((self.1)(text))
        }
    }

    d.deserialize_str(Read(expected, read))
}

/// Makes a record of a struct: for each member its name, its field, and how it may be absent.
///
/// - `required`: must be present, and `null` is a value like any other
/// - `number`: must be present, and any number that fits the field's type is accepted
/// - `default`: absent means the default, and it is always written
/// - `filled`: absent means the default, and it is written unless empty
/// - `flag`: absent means `false`, and only `true` is written
/// - `some`: absent and `null` are `None`
/// - `some_number`: absent and `null` are `None`, and any number that fits the field's type is accepted
/// - `any`: absent is `None`; `null` is not
///
/// Fields that are listed after `without` are no part of the JSON, and have their default when it is read. A function after
/// `checked` refuses a record whose members do not go together.
macro_rules! fields {
    (
        $t:ident { $($key:literal => $field:ident: $how:ident,)* } $(without $($own:ident),+)? $(checked $check:path)?
    ) => {
        impl $crate::record::Record for $t {
            const NAME: &'static str = stringify!($t);
            const FIELDS: &'static [&'static str] = &[$($key),*];
            $crate::__opaque!();

            fn index(name: &str) -> usize {
                $crate::model::json::positions!($($field)*);
                match name {
                    $($key => At::$field as usize,)*
                    _ => usize::MAX,
                }
            }

            fn read<'de, A: serde_core::de::MapAccess<'de>>(
                m: &mut $crate::record::Reader<A, Self>,
            ) -> Result<Self, A::Error> {
                $crate::model::json::positions!($($field)*);
                $(let mut $field = None;)*
                while let Some(i) = m.next()? {
                    match i {
                        $(i if i == At::$field as usize => m.put(&mut $field)?,)*
                        _ => m.skip()?,
                    }
                }
                // Unused if nothing is required.
                #[allow(unused_variables)]
                let absent = [$((At::$field as usize, $crate::model::json::fields!(@absent $how $field))),*];
                Ok(Self {
                    $($field: $crate::model::json::fields!(@take $how $field, m.missing(&absent)),)*
                    $($($own: Default::default(),)+)?
                })
                $(.and_then($check))?
            }

            fn write<M: serde_core::ser::SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
                $($crate::model::json::fields!(@write $how m, $key, &self.$field);)*
                Ok(())
            }
        }
        $crate::__record!($t);
    };
    (@absent required $slot:ident) => { $slot.is_none() };
    (@absent number $slot:ident) => { $slot.is_none() };
    (@absent $how:ident $slot:ident) => { false };
    (@take required $slot:ident, $missing:expr) => { $slot.ok_or_else(|| $missing)? };
    (@take number $slot:ident, $missing:expr) => {
        $slot
            .ok_or_else(|| $missing)
            .and_then(|$crate::model::json::Whole(n)| n.try_into().map_err(serde_core::de::Error::custom))?
    };
    (@take some $slot:ident, $missing:expr) => { $slot.flatten() };
    (@take some_number $slot:ident, $missing:expr) => { $slot.flatten().map(|$crate::model::json::Whole(n)| n) };
    (@take any $slot:ident, $missing:expr) => { $slot };
    (@take $how:ident $slot:ident, $missing:expr) => { $slot.flatten().unwrap_or_default() };
    (@write filled $m:ident, $key:literal, $value:expr) => {
        if !$value.is_empty() { $crate::record::put($m, $key, $value)?; }
    };
    (@write flag $m:ident, $key:literal, $value:expr) => {
        if *$value { $crate::record::put($m, $key, $value)?; }
    };
    (@write some $m:ident, $key:literal, $value:expr) => { $crate::record::put_some($m, $key, $value)?; };
    (@write some_number $m:ident, $key:literal, $value:expr) => { $crate::record::put_some($m, $key, $value)?; };
    (@write any $m:ident, $key:literal, $value:expr) => { $crate::record::put_some($m, $key, $value)?; };
    (@write $how:ident $m:ident, $key:literal, $value:expr) => { $crate::record::put($m, $key, $value)?; };
}

/// Numbers the fields of a record.
macro_rules! positions {
    ($($field:ident)*) => {
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        enum At { $($field),* }
    };
}

/// Makes a serde type of an enum whose words are all known.
macro_rules! words {
    ($t:ident { $($word:literal => $variant:ident,)* }) => {
        impl $t {
            /// The word for it in JSON.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl serde_core::Serialize for $t {
            fn serialize<S: serde_core::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(self.as_str())
            }
        }

        impl<'de> serde_core::Deserialize<'de> for $t {
            fn deserialize<D: serde_core::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let word = std::borrow::Cow::<str>::deserialize(d)?;
                Ok(match word.as_ref() {
                    $($word => Self::$variant,)*
                    other => return Err(serde_core::de::Error::unknown_variant(other, &[$($word),*])),
                })
            }
        }
    };
}

/// Makes a serde type that goes through another, which has the shape of the JSON.
macro_rules! through {
    ($t:ty, $json:ty) => {
        impl serde_core::Serialize for $t {
            fn serialize<S: serde_core::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                <$json>::try_from(self).map_err(serde_core::ser::Error::custom)?.serialize(s)
            }
        }

        impl<'de> serde_core::Deserialize<'de> for $t {
            fn deserialize<D: serde_core::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                <$json>::deserialize(d)?.try_into().map_err(serde_core::de::Error::custom)
            }
        }
    };
}

pub(crate) use {fields, positions, through, words};

/// A whole number in any JSON notation: `200.0` is 200.
///
/// A fraction is cut off, and a negative number is 0.
pub(crate) struct Whole(pub(crate) u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_u64(WholeVisitor)
    }
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Whole, E> {
        Ok(Whole(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Whole, E> {
        Ok(Whole(u64::try_from(number).unwrap_or(0)))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Whole, E> {
        // A cast of a float saturates.
        Ok(Whole(number as u64))
    }
}

impl serde_core::Serialize for Whole {
    fn serialize<S: serde_core::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u64(self.0)
    }
}

/// True if a value has more levels of objects and arrays than that.
#[cfg(any(feature = "durable", feature = "program"))]
pub(crate) fn is_deeper(value: &serde_json::Value, levels: usize) -> bool {
    let below = |value| levels == 0 || is_deeper(value, levels - 1);
    match value {
        serde_json::Value::Object(members) => levels == 0 || members.values().any(below),
        serde_json::Value::Array(items) => levels == 0 || items.iter().any(below),
        _ => false,
    }
}

/// Approximate memory of a value, in bytes.
#[cfg(any(feature = "gateway", feature = "program"))]
pub(crate) fn weight_of(value: &serde_json::Value) -> usize {
    use serde_json::Value;

    /// The size of a value in a list, or of a value and its name in an object, including the spare capacity of collections.
    const VALUE: usize = 3 * std::mem::size_of::<Value>();
    let mut weight = 0_usize;
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        weight = weight.saturating_add(VALUE);
        match value {
            Value::String(text) => weight = weight.saturating_add(text.len()),
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                for (name, value) in members {
                    weight = weight.saturating_add(name.len());
                    pending.push(value);
                }
            }
            _ => {}
        }
    }
    weight
}
