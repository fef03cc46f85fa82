//! Values as JSON, which has no number for what is not finite: `serde_json` would write `null` in its place.

use std::cell::Cell;

use serde_core::ser::{
    Error, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
#[cfg(feature = "registry")]
use serde_json::Value;

#[cfg(feature = "registry")]
use crate::pointer::escaped;

/// How deep a value is searched.
#[cfg(feature = "registry")]
const MAX_DEPTH: usize = 128;

/// A serializer, or a value and what is in it, whose numbers are finite: any other is an error.
pub(crate) struct Finite<T>(pub(crate) T);

impl<T: Serialize + ?Sized> Serialize for Finite<&T> {
    #[inline]
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Finite(s))
    }
}

thread_local! {
    /// True while the place of a number is looked for.
    static MARKS: Cell<bool> = const { Cell::new(false) };
}

/// What stands for a number that cannot be written, while its place is looked for. The message of its error follows.
const MARK: &str = "\u{0}no number\u{0}";

/// What `serde_json` says of an integer for which a `Value` has too few bits. JSON text has room for it.
const OUT_OF_RANGE: &str = "number out of range";

#[cold]
fn refused<S: Serializer>(s: S, number: impl std::fmt::Display) -> Result<S::Ok, S::Error> {
    let message = format!("JSON has no number for {number}");
    if MARKS.get() { marked(s, &message) } else { Err(S::Error::custom(message)) }
}

#[cold]
fn marked<S: Serializer>(s: S, message: &str) -> Result<S::Ok, S::Error> {
    s.serialize_str(&format!("{MARK}{message}"))
}

/// The JSON pointer of the first number for which writing the value failed with this error. `None` if there is none.
#[cfg(feature = "registry")]
#[cold]
pub(crate) fn place<T: Serialize + ?Sized>(value: &T, error: &str) -> Option<String> {
    struct Marks;
    impl Drop for Marks {
        fn drop(&mut self) {
            MARKS.set(false);
        }
    }
    let marks = Marks;
    MARKS.set(true);
    let marked = serde_json::to_value(Finite(value));
    drop(marks);
    below(&marked.ok()?, error, 0)
}

/// The place of the mark of an error in a value.
#[cfg(feature = "registry")]
fn below(value: &Value, error: &str, depth: usize) -> Option<String> {
    let inside = |name: &str, part: &Value| Some(format!("/{}{}", escaped(name), below(part, error, depth + 1)?));
    match value {
        _ if depth > MAX_DEPTH => None,
        Value::String(text) => text.strip_prefix(MARK).is_some_and(|told| error.ends_with(told)).then(String::new),
        Value::Array(items) => items.iter().enumerate().find_map(|(at, item)| inside(&at.to_string(), item)),
        Value::Object(members) => members.iter().find_map(|(name, member)| inside(name, member)),
        _ => None,
    }
}

/// The name of a part in a map. It has no marks: a number in it is written as a name.
struct Key<T>(T);

impl<T: Serialize + ?Sized> Serialize for Key<&T> {
    #[inline]
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let marks = MARKS.replace(false);
        let written = Finite(self.0).serialize(s);
        MARKS.set(marks);
        written
    }
}

/// Methods that pass on what has no parts.
macro_rules! plain {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {$(
        #[inline]
        fn $name(self, $($argument: $kind),*) -> Result<S::Ok, S::Error> {
            self.0.$name($($argument),*)
        }
    )*};
}

/// Methods that begin something with parts.
macro_rules! begun {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $part:ident;)*) => {$(
        #[inline]
        fn $name(self, $($argument: $kind),*) -> Result<Self::$part, S::Error> {
            self.0.$name($($argument),*).map(Finite)
        }
    )*};
}

impl<S: Serializer> Serializer for Finite<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Finite<S::SerializeSeq>;
    type SerializeTuple = Finite<S::SerializeTuple>;
    type SerializeTupleStruct = Finite<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Finite<S::SerializeTupleVariant>;
    type SerializeMap = Finite<S::SerializeMap>;
    type SerializeStruct = Finite<S::SerializeStruct>;
    type SerializeStructVariant = Finite<S::SerializeStructVariant>;

    #[inline]
    fn serialize_f32(self, number: f32) -> Result<S::Ok, S::Error> {
        if number.is_finite() { self.0.serialize_f32(number) } else { refused(self.0, number) }
    }

    #[inline]
    fn serialize_f64(self, number: f64) -> Result<S::Ok, S::Error> {
        if number.is_finite() { self.0.serialize_f64(number) } else { refused(self.0, number) }
    }

    #[inline]
    fn serialize_i128(self, number: i128) -> Result<S::Ok, S::Error> {
        let is_wide = u64::try_from(number).is_err() && i64::try_from(number).is_err();
        if is_wide && MARKS.get() { marked(self.0, OUT_OF_RANGE) } else { self.0.serialize_i128(number) }
    }

    #[inline]
    fn serialize_u128(self, number: u128) -> Result<S::Ok, S::Error> {
        let is_wide = u64::try_from(number).is_err();
        if is_wide && MARKS.get() { marked(self.0, OUT_OF_RANGE) } else { self.0.serialize_u128(number) }
    }

    plain! {
        serialize_bool(value: bool);
        serialize_i8(value: i8);
        serialize_i16(value: i16);
        serialize_i32(value: i32);
        serialize_i64(value: i64);
        serialize_u8(value: u8);
        serialize_u16(value: u16);
        serialize_u32(value: u32);
        serialize_u64(value: u64);
        serialize_char(value: char);
        serialize_str(value: &str);
        serialize_bytes(value: &[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(name: &'static str);
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str);
    }

    begun! {
        serialize_seq(length: Option<usize>) -> SerializeSeq;
        serialize_tuple(length: usize) -> SerializeTuple;
        serialize_tuple_struct(name: &'static str, length: usize) -> SerializeTupleStruct;
        serialize_tuple_variant(name: &'static str, index: u32, variant: &'static str, length: usize) -> SerializeTupleVariant;
        serialize_map(length: Option<usize>) -> SerializeMap;
        serialize_struct(name: &'static str, length: usize) -> SerializeStruct;
        serialize_struct_variant(name: &'static str, index: u32, variant: &'static str, length: usize) -> SerializeStructVariant;
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Finite(value))
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_struct(name, &Finite(value))
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_variant(name, index, variant, &Finite(value))
    }

    #[inline]
    fn collect_str<T: std::fmt::Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.collect_str(value)
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// What has parts without names.
macro_rules! parts {
    ($($kind:ident $name:ident;)*) => {$(
        impl<S: $kind> $kind for Finite<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            #[inline]
            fn $name<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
                self.0.$name(&Finite(value))
            }

            #[inline]
            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        }
    )*};
}

parts! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

/// What has parts with names that the program knows.
macro_rules! fields {
    ($($kind:ident)*) => {$(
        impl<S: $kind> $kind for Finite<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            #[inline]
            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), S::Error> {
                self.0.serialize_field(key, &Finite(value))
            }

            #[inline]
            fn skip_field(&mut self, key: &'static str) -> Result<(), S::Error> {
                self.0.skip_field(key)
            }

            #[inline]
            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        }
    )*};
}

fields! { SerializeStruct SerializeStructVariant }

impl<S: SerializeMap> SerializeMap for Finite<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.0.serialize_key(&Key(key))
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_value(&Finite(value))
    }

    #[inline]
    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &V,
    ) -> Result<(), S::Error> {
        self.0.serialize_entry(&Key(key), &Finite(value))
    }

    #[inline]
    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;
    use serde_json::value::{RawValue, to_raw_value};
    use serde_json::{Value, json, to_string, to_value};

    use super::Finite;
    #[cfg(feature = "registry")]
    use super::{OUT_OF_RANGE, place};

    #[derive(Serialize)]
    struct Unit;

    #[derive(Serialize)]
    struct New<T>(T);

    #[derive(Serialize)]
    struct Pair<T>(T, u8);

    #[derive(Serialize)]
    struct Named<T> {
        value: T,
        #[serde(skip_serializing_if = "Option::is_none")]
        none: Option<u8>,
    }

    #[derive(Serialize)]
    enum Variant<T> {
        New(T),
        Pair(T, u8),
        Named { value: T },
        Unit,
    }

    /// Writes a value to a value and to a text.
    type Write = Box<dyn Fn() -> [Result<String, String>; 2]>;

    /// All that a number can stand in.
    fn around<T: Serialize + Copy + 'static>(number: T) -> Vec<Write> {
        fn both<T: Serialize>(value: &T) -> [Result<String, String>; 2] {
            let value = Finite(value);
            [to_value(&value).map(|value| value.to_string()), to_string(&value)]
                .map(|text| text.map_err(|e| e.to_string()))
        }
        vec![
            Box::new(move || both(&number)),
            Box::new(move || both(&Some(number))),
            Box::new(move || both(&[1.0, 2.0].map(|_| number))),
            Box::new(move || both(&vec![number])),
            Box::new(move || both(&(1, number))),
            Box::new(move || both(&New(number))),
            Box::new(move || both(&Pair(number, 1))),
            Box::new(move || both(&Named { value: number, none: None })),
            Box::new(move || both(&Variant::New(number))),
            Box::new(move || both(&Variant::Pair(number, 1))),
            Box::new(move || both(&Variant::Named { value: number })),
            Box::new(move || both(&BTreeMap::from([("a", [Some(Box::new(number))])]))),
        ]
    }

    #[test]
    fn numbers_that_json_has_not_are_errors_wherever_they_stand() {
        for (number, told) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
            for write in around(number).into_iter().chain(around(number as f32)) {
                assert_eq!(write(), [(); 2].map(|()| Err(format!("JSON has no number for {told}"))));
            }
        }
    }

    #[cfg(feature = "registry")]
    #[test]
    fn the_place_of_a_number_that_json_has_not_is_found() {
        let of = |number: &str| format!("it can't be written: JSON has no number for {number}");
        let deep = BTreeMap::from([("a/b", vec![Some(1.0), None, Some(f64::NAN)]), ("c", vec![Some(f64::INFINITY)])]);
        let deep = Named { value: deep, none: None };
        assert_eq!(place(&deep, &of("NaN")).as_deref(), Some("/value/a~1b/2"));
        assert_eq!(place(&deep, &of("inf")).as_deref(), Some("/value/c/0"));
        assert_eq!(place(&f32::NAN, &of("NaN")).as_deref(), Some(""));
        assert_eq!(place(&(1, "text"), &of("NaN")), None);
        // A name in a map may be an integer of any size.
        let (one, two) = (u128::MAX, u128::MAX - 1);
        assert_eq!(place(&BTreeMap::from([(one, f64::NAN)]), &of("NaN")), Some(format!("/{one}")));
        assert_eq!(place(&BTreeMap::from([(one, 1.0), (two, f64::NAN)]), &of("NaN")), Some(format!("/{two}")));
        assert_eq!(place(&BTreeMap::from([(one, [two])]), OUT_OF_RANGE), Some(format!("/{one}/0")));
        // Nothing is marked afterwards.
        assert!(to_value(Finite(&f64::NAN)).is_err());
    }

    /// A text has integers of any size, so they are not what it fails for.
    #[cfg(feature = "registry")]
    #[test]
    fn the_place_of_an_integer_that_is_too_large_for_a_value_is_found() {
        let (least, most) = (i128::from(i64::MIN), i128::from(u64::MAX));
        let numbers = (u128::from(u64::MAX), least, most, [u128::MAX], f64::NAN);
        let value = to_value(Finite(&[u128::MAX])).unwrap_err().to_string();
        assert_eq!(value, OUT_OF_RANGE);
        assert_eq!(place(&numbers, &value).as_deref(), Some("/3/0"));
        for number in [least - 1, most + 1, i128::MIN, i128::MAX] {
            assert!(to_value(Finite(&number)).is_err());
            assert_eq!(place(&number, &value).as_deref(), Some(""), "{number}");
        }
        for number in [least, most] {
            assert!(to_value(Finite(&number)).is_ok());
            assert_eq!(place(&number, &value), None, "{number}");
        }
        let text = to_string(&Finite(&numbers)).unwrap_err().to_string();
        assert_eq!(place(&numbers, &text).as_deref(), Some("/4"), "{text}");
        assert_eq!(to_string(&Finite(&u128::MAX)).unwrap(), u128::MAX.to_string());
    }

    #[test]
    fn all_else_is_written_as_ever() {
        for write in around(0.5_f64).into_iter().chain(around(0.5_f32)) {
            let [value, text] = write();
            assert!(value.is_ok() && value == text, "{value:?} {text:?}");
        }
        fn same<T: Serialize>(value: T) {
            assert_eq!(to_value(Finite(&value)).unwrap(), to_value(&value).unwrap());
            assert_eq!(to_string(&Finite(&value)).unwrap(), to_string(&value).unwrap());
        }
        same((Unit, Variant::<u8>::Unit, (), None::<u8>, 'c', "text", true));
        same((i8::MIN, i16::MIN, i32::MIN, i64::MIN, u8::MAX, u16::MAX, u32::MAX, u64::MAX));
        same(BTreeMap::from([(1, json!({ "a": [null, 1.5, "x", { "b": {} }] }))]));
        same(Named { value: std::net::IpAddr::from([127, 0, 0, 1]), none: Some(1) });
        let raw: Box<RawValue> = RawValue::from_string(r#"{ "a" : 1.50, "b": [1e400] }"#.to_owned()).unwrap();
        assert_eq!(to_string(&Finite(&raw)).unwrap(), raw.get());
        assert_eq!(to_raw_value(&Finite(&json!(7))).unwrap().get(), "7");
        assert_eq!(to_value(Finite(&i128::from(7))).unwrap(), json!(7));
        assert_eq!(to_value(Finite(&json!(null))).unwrap(), Value::Null);
    }
}
