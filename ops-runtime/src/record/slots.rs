//! How the properties of a record are read, one type for each way, and tuples of them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::{Debug, DebugStruct};

use serde_core::Serialize;
use serde_core::de::{DeserializeOwned, MapAccess};
use serde_core::ser::{Error, SerializeMap};

use super::table::Opaque;

/// What a field of a record can be.
pub trait Field: DeserializeOwned + Serialize + Debug + Clone + PartialEq {}

impl<T: DeserializeOwned + Serialize + Debug + Clone + PartialEq> Field for T {}

/// A property that has to be there: a field `T`.
#[derive(Debug)]
pub struct Required<T>(T);

/// A property that may be absent, for which `null` stands as well: a field `Option<T>`.
#[derive(Debug)]
pub struct Optional<T>(T);

/// A property that may be absent, of a type that has a place for `null`: a field `Option<T>`.
#[derive(Debug)]
pub struct Nullable<T>(T);

/// A property with a default, which stands for `null` as well: a field `T`, made of an `Option<T>`.
#[derive(Debug)]
pub struct Defaulted<T>(T);

/// A property with a default, of a type that has a place for `null`: a field `T`, made of an `Option<T>`.
#[derive(Debug)]
pub struct DefaultedNull<T>(T);

/// The properties that are not declared: a field `BTreeMap<String, T>`.
#[derive(Debug)]
pub struct Rest<T>(T);

/// Ways to read properties: one, or a tuple of them.
pub trait Slots {
    /// How many properties there are.
    const COUNT: usize;

    /// True if undeclared properties are kept.
    const KEEPS: bool;

    /// What was read.
    type Values;

    /// The fields that hold it.
    type Fields<'a>
    where
        Self: 'a;

    /// What has been read so far.
    type Open;

    /// Nothing has been read so far.
    fn open() -> Self::Open;

    /// Reads the value of the property at a position.
    ///
    /// # Errors
    ///
    /// When the value does not decode.
    fn put<'de, A: MapAccess<'de>>(open: &mut Self::Open, at: usize, map: &mut A) -> Result<(), A::Error>;

    /// Reads the value of a property that is not declared.
    ///
    /// # Errors
    ///
    /// When the value does not decode.
    fn keep<'de, A: MapAccess<'de>>(open: &mut Self::Open, key: String, map: &mut A) -> Result<(), A::Error>;

    /// Tells whether the property at a position has to be there.
    fn requires(at: usize) -> bool;

    /// Tells whether the property at a position has to be there and is not.
    fn lacks(open: &Self::Open, at: usize) -> bool;

    /// Tells whether all that has to be there is.
    fn is_complete(open: &Self::Open) -> bool;

    /// Gives what was read, if all that has to be there is.
    fn close(open: Self::Open) -> Option<Self::Values>;

    /// Tells whether the property at a position is written.
    fn is_set(fields: Self::Fields<'_>, at: usize) -> bool;

    /// Writes the fields; theirs are the names of the record from `at`.
    ///
    /// # Errors
    ///
    /// When the serializer fails.
    fn write<M: SerializeMap>(
        fields: Self::Fields<'_>,
        names: &'static [&'static str],
        at: usize,
        m: &mut M,
    ) -> Result<(), M::Error>;
}

/// What can be done to any type that is made of such properties.
pub trait Plain: Slots {
    /// Prints the fields; theirs are the names of the record from `at`.
    fn debug(fields: Self::Fields<'_>, names: &'static [&'static str], at: usize, out: &mut DebugStruct<'_, '_>);

    /// Compares fields.
    fn equal(one: Self::Fields<'_>, other: Self::Fields<'_>) -> bool;

    /// Copies fields.
    fn copy(fields: Self::Fields<'_>) -> Self::Values;
}

/// Ways to read properties none of which has to be there.
pub trait Vacant: Slots {
    /// What is read of an empty object.
    fn vacant() -> Self::Values;
}

/// One property: what differs between the ways is given, the rest is the same.
macro_rules! slot {
    ($slot:ident, read $read:ty, value $value:ty, field $field:ty, requires $requires:literal,
     |$taken:ident| $take:expr, |$open:ident| $close:expr, |$lent:ident| $written:expr, |$copied:ident| $copy:expr) => {
        impl<T: Field> Slots for $slot<T> {
            const COUNT: usize = 1;
            const KEEPS: bool = false;
            type Values = $value;
            type Fields<'a>
                = &'a $field
            where
                T: 'a;
            type Open = Option<$read>;

            #[inline(always)]
            fn open() -> Self::Open {
                None
            }
            #[inline(always)]
            fn put<'de, A: MapAccess<'de>>(open: &mut Self::Open, _: usize, map: &mut A) -> Result<(), A::Error> {
                let $taken = map.next_value()?;
                *open = $take;
                Ok(())
            }
            fn keep<'de, A: MapAccess<'de>>(_: &mut Self::Open, _: String, _: &mut A) -> Result<(), A::Error> {
                Ok(())
            }
            fn requires(_: usize) -> bool {
                $requires
            }
            #[inline(always)]
            fn lacks(open: &Self::Open, _: usize) -> bool {
                $requires && open.is_none()
            }
            #[inline(always)]
            fn is_complete(open: &Self::Open) -> bool {
                !Self::lacks(open, 0)
            }
            #[inline(always)]
            fn close($open: Self::Open) -> Option<Self::Values> {
                $close
            }
            fn is_set($lent: Self::Fields<'_>, _: usize) -> bool {
                let written: Option<&T> = $written;
                written.is_some()
            }

            #[inline(always)]
            fn write<M: SerializeMap>(
                $lent: Self::Fields<'_>,
                names: &'static [&'static str],
                at: usize,
                m: &mut M,
            ) -> Result<(), M::Error> {
                match (names.get(at), $written) {
                    (Some(name), Some(value)) => m.serialize_entry(name, value),
                    _ => Ok(()),
                }
            }
        }

        impl<T: Field> Plain for $slot<T> {
            fn debug(
                field: Self::Fields<'_>,
                names: &'static [&'static str],
                at: usize,
                out: &mut DebugStruct<'_, '_>,
            ) {
                if let Some(name) = names.get(at) {
                    out.field(name, field);
                }
            }
            fn equal(one: Self::Fields<'_>, other: Self::Fields<'_>) -> bool {
                one == other
            }
            fn copy($copied: Self::Fields<'_>) -> Self::Values {
                $copy
            }
        }
    };
}

slot!(Required, read T, value T, field T, requires true,
    |taken| Some(taken), |open| open, |field| Some(field), |field| field.clone());
slot!(Optional, read T, value Option<T>, field Option<T>, requires false,
    |taken| taken, |open| Some(open), |field| field.as_ref(), |field| field.clone());
slot!(Nullable, read T, value Option<T>, field Option<T>, requires false,
    |taken| Some(taken), |open| Some(open), |field| field.as_ref(), |field| field.clone());
slot!(Defaulted, read T, value Option<T>, field T, requires false,
    |taken| taken, |open| Some(open), |field| Some(field), |field| Some(field.clone()));
slot!(DefaultedNull, read T, value Option<T>, field T, requires false,
    |taken| Some(taken), |open| Some(open), |field| Some(field), |field| Some(field.clone()));

macro_rules! vacant {
    ($($slot:ident)*) => {
        $(impl<T: Field> Vacant for $slot<T> {
            fn vacant() -> Option<T> {
                None
            }
        })*
    };
}

vacant!(Optional Nullable Defaulted DefaultedNull);

impl<T: Field> Slots for Rest<T> {
    const COUNT: usize = 0;
    const KEEPS: bool = true;
    type Values = BTreeMap<String, T>;
    type Fields<'a>
        = &'a BTreeMap<String, T>
    where
        T: 'a;
    type Open = BTreeMap<String, T>;

    fn open() -> Self::Open {
        BTreeMap::new()
    }
    fn put<'de, A: MapAccess<'de>>(_: &mut Self::Open, _: usize, _: &mut A) -> Result<(), A::Error> {
        Ok(())
    }
    fn keep<'de, A: MapAccess<'de>>(open: &mut Self::Open, key: String, map: &mut A) -> Result<(), A::Error> {
        open.insert(key, map.next_value()?);
        Ok(())
    }
    fn requires(_: usize) -> bool {
        false
    }
    fn lacks(_: &Self::Open, _: usize) -> bool {
        false
    }
    fn is_complete(_: &Self::Open) -> bool {
        true
    }
    fn close(open: Self::Open) -> Option<Self::Values> {
        Some(open)
    }
    fn is_set(_: Self::Fields<'_>, _: usize) -> bool {
        false
    }

    /// An entry under the name of a declared property is an error: it would be read as that property.
    fn write<M: SerializeMap>(
        field: Self::Fields<'_>,
        names: &'static [&'static str],
        _: usize,
        m: &mut M,
    ) -> Result<(), M::Error> {
        if let Some(name) = field.keys().find(|key| names.contains(&key.as_str())) {
            return Err(M::Error::custom(format_args!(
                "`{name}` is a property of its own, and is not written from `extra`"
            )));
        }
        field.iter().try_for_each(|(key, value)| m.serialize_entry(key, value))
    }
}

impl<T: Field> Plain for Rest<T> {
    fn debug(field: Self::Fields<'_>, _: &'static [&'static str], _: usize, out: &mut DebugStruct<'_, '_>) {
        out.field("extra", field);
    }
    fn equal(one: Self::Fields<'_>, other: Self::Fields<'_>) -> bool {
        one == other
    }
    fn copy(field: Self::Fields<'_>) -> Self::Values {
        field.clone()
    }
}

impl<T: Field> Vacant for Rest<T> {
    fn vacant() -> Self::Values {
        BTreeMap::new()
    }
}

/// Nothing is ever read this way: a record whose slots are these reads and writes itself.
impl Slots for Opaque {
    const COUNT: usize = 0;
    const KEEPS: bool = false;
    type Values = Infallible;
    type Fields<'a> = ();
    type Open = ();

    fn open() -> Self::Open {}
    fn put<'de, A: MapAccess<'de>>((): &mut (), _: usize, _: &mut A) -> Result<(), A::Error> {
        Ok(())
    }
    fn keep<'de, A: MapAccess<'de>>((): &mut (), _: String, _: &mut A) -> Result<(), A::Error> {
        Ok(())
    }
    fn requires(_: usize) -> bool {
        false
    }
    fn lacks((): &(), _: usize) -> bool {
        false
    }
    fn is_complete((): &()) -> bool {
        true
    }
    fn close((): ()) -> Option<Infallible> {
        None
    }
    /// It writes what it declares by itself.
    fn is_set((): (), _: usize) -> bool {
        true
    }

    fn write<M: SerializeMap>((): (), _: &'static [&'static str], _: usize, _: &mut M) -> Result<(), M::Error> {
        Ok(())
    }
}

/// A record without properties, and tuples: what is done to each part is done to all, one after another.
macro_rules! tuples {
    ($(($($slot:ident $i:tt)*))*) => {
        $(
            // A record without properties is of nothing, in so many words.
            #[allow(clippy::unused_unit)]
            impl<$($slot: Slots),*> Slots for ($($slot,)*) {
                const COUNT: usize = 0 $(+ $slot::COUNT)*;
                const KEEPS: bool = false $(|| $slot::KEEPS)*;
                type Values = ($($slot::Values,)*);
                type Fields<'a> = ($($slot::Fields<'a>,)*) where Self: 'a;
                type Open = ($($slot::Open,)*);

                #[inline(always)]
                fn open() -> Self::Open {
                    ($($slot::open(),)*)
                }
                #[inline(always)]
                fn put<'de, Map: MapAccess<'de>>(
                    open: &mut Self::Open,
                    at: usize,
                    map: &mut Map,
                ) -> Result<(), Map::Error> {
                    $(
                        if at < $slot::COUNT {
                            return $slot::put(&mut open.$i, at, map);
                        }
                        let at = at - $slot::COUNT;
                    )*
                    let _ = (open, at, map);
                    Ok(())
                }
                fn keep<'de, Map: MapAccess<'de>>(
                    open: &mut Self::Open,
                    key: String,
                    map: &mut Map,
                ) -> Result<(), Map::Error> {
                    $(
                        if $slot::KEEPS {
                            return $slot::keep(&mut open.$i, key, map);
                        }
                    )*
                    let _ = (open, key, map);
                    Ok(())
                }
                fn requires(at: usize) -> bool {
                    $(
                        if at < $slot::COUNT {
                            return $slot::requires(at);
                        }
                        let at = at - $slot::COUNT;
                    )*
                    let _ = at;
                    false
                }
                fn lacks(open: &Self::Open, at: usize) -> bool {
                    $(
                        if at < $slot::COUNT {
                            return $slot::lacks(&open.$i, at);
                        }
                        let at = at - $slot::COUNT;
                    )*
                    let _ = (open, at);
                    false
                }
                #[inline(always)]
                fn is_complete(open: &Self::Open) -> bool {
                    let _ = open;
                    true $(&& $slot::is_complete(&open.$i))*
                }
                #[inline(always)]
                fn close(open: Self::Open) -> Option<Self::Values> {
                    let _ = &open;
                    Some(($($slot::close(open.$i)?,)*))
                }
                fn is_set(fields: Self::Fields<'_>, at: usize) -> bool {
                    let _ = &fields;
                    $(
                        if at < $slot::COUNT {
                            return $slot::is_set(fields.$i, at);
                        }
                        let at = at - $slot::COUNT;
                    )*
                    let _ = at;
                    // A property with a single possible value.
                    true
                }

                #[inline(always)]
                fn write<Map: SerializeMap>(
                    fields: Self::Fields<'_>,
                    names: &'static [&'static str],
                    at: usize,
                    m: &mut Map,
                ) -> Result<(), Map::Error> {
                    let _ = &fields;
                    $(
                        $slot::write(fields.$i, names, at, m)?;
                        let at = at + $slot::COUNT;
                    )*
                    let _ = (names, at, m);
                    Ok(())
                }
            }

            #[allow(clippy::unused_unit)]
            impl<$($slot: Plain),*> Plain for ($($slot,)*) {
                fn debug(fields: Self::Fields<'_>, names: &'static [&'static str], at: usize, out: &mut DebugStruct<'_, '_>) {
                    let _ = &fields;
                    $(
                        $slot::debug(fields.$i, names, at, out);
                        let at = at + $slot::COUNT;
                    )*
                    let _ = (names, at, out);
                }
                fn equal(one: Self::Fields<'_>, other: Self::Fields<'_>) -> bool {
                    let _ = (&one, &other);
                    true $(&& $slot::equal(one.$i, other.$i))*
                }
                fn copy(fields: Self::Fields<'_>) -> Self::Values {
                    let _ = &fields;
                    ($($slot::copy(fields.$i),)*)
                }
            }

            #[allow(clippy::unused_unit)]
            impl<$($slot: Vacant),*> Vacant for ($($slot,)*) {
                fn vacant() -> Self::Values {
                    ($($slot::vacant(),)*)
                }
            }
        )*
    };
}

tuples! {
    ()
    (A 0)
    (A 0 B 1)
    (A 0 B 1 C 2)
    (A 0 B 1 C 2 D 3)
    (A 0 B 1 C 2 D 3 E 4)
    (A 0 B 1 C 2 D 3 E 4 F 5)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7)
}
