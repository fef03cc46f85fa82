//! Compares our reader with that of `serde_json`: values, messages, and to the byte the places of faults.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny, Visitor};
use serde_json::Value;
use serde_json::error::Category;

use super::Cursor;

/// What reading a text gives: the value, or the message, the bytes before the place, and true if it is no JSON.
type Read<T> = Result<T, (String, usize, bool)>;

fn ours<T: DeserializeOwned>(text: &[u8]) -> Read<T> {
    let mut cursor = Cursor::new(text);
    let read = T::deserialize(&mut cursor).and_then(|value| cursor.end().map(|()| value));
    read.map_err(|fault| (fault.message().to_owned(), fault.at(), fault.is_syntax()))
}

fn theirs<T: DeserializeOwned>(text: &[u8]) -> Read<T> {
    serde_json::from_slice(text).map_err(|error| {
        let position = format!(" at line {} column {}", error.line(), error.column());
        let message = error.to_string();
        let message = message.strip_suffix(&position).unwrap_or(&message).to_owned();
        let lines = text.split_inclusive(|byte| *byte == b'\n').take(error.line().saturating_sub(1));
        let at = lines.map(<[u8]>::len).sum::<usize>() + error.column();
        (message, at.min(text.len()), error.classify() != Category::Data)
    })
}

fn compare<T: DeserializeOwned + Debug + PartialEq>(text: &[u8]) {
    let (ours, theirs) = (ours::<T>(text), theirs::<T>(text));
    let name = std::any::type_name::<T>();
    // What `serde_json` rounds twice may be another number, also in messages.
    let is_long = |part: &[u8]| part.len() > 15 && part.iter().filter(|byte| byte.is_ascii_digit()).count() > 15;
    if text.split(|byte| !(byte.is_ascii_digit() || *byte == b'.')).any(is_long) {
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{name}: {}", text.escape_ascii());
        return;
    }
    assert_eq!(ours, theirs, "{name}: {}", text.escape_ascii());
}

/// Values that are not compared, but that some text is one.
fn accepts<T: DeserializeOwned>(text: &[u8]) {
    assert_eq!(ours::<T>(text).map(drop), theirs::<T>(text).map(drop), "{}", text.escape_ascii());
}

#[derive(Debug, PartialEq, Deserialize)]
struct Derived {
    a: i64,
    b: Option<String>,
    #[serde(default)]
    c: Vec<f64>,
}

#[derive(Debug, PartialEq, Deserialize)]
enum Choice {
    A,
    B(i64),
    C(u8, u8),
    D { a: String },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "kind")]
enum Told {
    A { a: i64 },
    B { b: Vec<Told> },
}

#[derive(Debug, PartialEq)]
struct Blob(Vec<u8>);

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Blob;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Blob, E> {
                Ok(Blob(bytes.to_vec()))
            }
        }
        d.deserialize_bytes(Bytes)
    }
}

/// Reads a text as a tree.
fn compare_tree(text: &[u8]) {
    let mut cursor = Cursor::new(text);
    let read = cursor.tree().and_then(|value| cursor.end().map(|()| value));
    let tree = read.map_err(|fault| (fault.message().to_owned(), fault.at(), fault.is_syntax()));
    assert_eq!(tree, ours(text), "{}", text.escape_ascii());
}

/// Reads a text as many types.
fn compare_all(text: &[u8]) {
    compare_tree(text);
    compare::<Value>(text);
    compare::<Vec<Value>>(text);
    compare::<BTreeMap<String, Value>>(text);
    compare::<BTreeMap<String, Option<i64>>>(text);
    compare::<BTreeMap<u8, String>>(text);
    compare::<BTreeMap<bool, Vec<f64>>>(text);
    compare::<Derived>(text);
    compare::<Vec<Derived>>(text);
    compare::<Choice>(text);
    compare::<Vec<Choice>>(text);
    compare::<Told>(text);
    compare::<Vec<Option<u8>>>(text);
    compare::<(String, f64)>(text);
    compare::<String>(text);
    compare::<char>(text);
    compare::<bool>(text);
    compare::<()>(text);
    compare::<f64>(text);
    compare::<i64>(text);
    compare::<u128>(text);
    compare::<i128>(text);
    compare::<Blob>(text);
    accepts::<IgnoredAny>(text);
    #[cfg(feature = "registry")]
    compare::<Vec<RawText>>(text);
}

/// A value as the text that it is.
#[cfg(feature = "registry")]
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct RawText(Box<serde_json::value::RawValue>);

#[cfg(feature = "registry")]
impl PartialEq for RawText {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// Parts of texts, good and bad.
const PARTS: [&[u8]; 59] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b" ",
    b"\n",
    b"\t\r\n  ",
    b"\"a\"",
    b"\"b\"",
    b"\"c\"",
    b"\"kind\"",
    b"\"A\"",
    b"\"B\"",
    b"\"C\"",
    b"\"D\"",
    b"\"a\":",
    b"\"b\":",
    b",\"c\":",
    b"\"kind\":\"A\",",
    b"\"1\"",
    b"\"-1\":",
    b"\"300\":",
    b"\"true\":",
    b"\"falsE\":",
    b"0",
    b"-0",
    b"01",
    b"1",
    b"-7",
    b"255",
    b"1.5",
    b"-2.25e3",
    b"1e400",
    b"1e-400",
    b"1e40010000000",
    b"-3.25e-40010000000",
    b"0e40010000000",
    b"1.",
    b"1e",
    b"-",
    b"9223372036854775808",
    b"-9223372036854775808",
    b"18446744073709551616",
    b"null",
    b"true",
    b"false",
    b"nul",
    b"trux",
    b"\"\\n\\u00e9\\\\\"",
    b"\"\\ud83d\\ude00\"",
    b"\"\\ud800\"",
    b"\"\\udc00x\"",
    b"\"\\ud800\\n\"",
    b"\"\\x\"",
    b"\"\xc3\xa9\xe2\x82\xac\"",
    b"\"\xff\"",
    b"\"a\x01\"",
];

fn soup() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(&PARTS[..]), 0..12).prop_map(|parts| parts.concat())
}

/// JSON with white space in it, which may then be spoilt at one place.
fn spoilt() -> impl Strategy<Value = Vec<u8>> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i32>().prop_map(|number| number.to_string()),
        (-1000i32..1000).prop_map(|number| (f64::from(number) / 8.0).to_string()),
        any::<String>().prop_map(|text| Value::from(text).to_string()),
        "[a-z\\\\\"é\u{1}]{0,40}".prop_map(|text| Value::from(text).to_string()),
    ];
    let value = scalar.prop_recursive(4, 32, 5, |inner| {
        let name = prop::sample::select(&["a", "b", "c", "kind", "A", "D", "1", "true", "ä\\n"][..]);
        let entry = (name, inner.clone()).prop_map(|(name, value)| format!("\"{name}\" : {value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec(entry, 0..5).prop_map(|entries| format!("{{{}\n}}", entries.join(",\n"))),
        ]
    });
    let change = (any::<prop::sample::Index>(), prop::sample::select(&PARTS[..]), 0usize..3);
    (value, prop::option::of(change)).prop_map(|(text, change)| {
        let mut text = text.into_bytes();
        if let Some((at, part, removed)) = change {
            let at = at.index(text.len() + 1);
            let end = (at + removed).min(text.len());
            text.splice(at..end, part.iter().copied());
        }
        text
    })
}

proptest! {
    #![proptest_config(crate::seeded::config(700))]

    #[test]
    fn soup_reads_alike(text in soup()) {
        compare_all(&text);
    }

    #[test]
    fn spoilt_json_reads_alike(text in spoilt()) {
        compare_all(&text);
    }

    #[test]
    fn strings_read_alike(text in any::<String>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut text = Value::from(text).to_string().into_bytes();
        compare::<String>(&text);
        compare::<Blob>(&text);
        let at = at.index(text.len());
        text[at] = byte;
        compare::<String>(&text);
        compare::<Blob>(&text);
        accepts::<IgnoredAny>(&text);
    }

    /// Of the numbers that `serde_json` rounds twice, ours are those of the standard library.
    #[test]
    fn numbers_are_exact(number in any::<f64>().prop_filter("finite", |number| number.is_finite()), long in "-?[1-9][0-9]{0,30}\\.[0-9]{1,30}(e-?[0-9]{1,2})?") {
        let text = format!("{number:e}");
        prop_assert_eq!(ours::<f64>(text.as_bytes()), Ok(number));
        let text = number.to_string();
        prop_assert_eq!(ours::<f64>(text.as_bytes()), Ok(number));
        prop_assert_eq!(ours::<f64>(long.as_bytes()), Ok(long.parse::<f64>().unwrap()));
    }

    #[test]
    fn integers_are_exact(number in any::<i128>(), cut in 0u32..127) {
        let text = (number >> cut).to_string();
        let text = text.as_bytes();
        prop_assert_eq!(ours::<i128>(text).ok(), Some(number >> cut));
        prop_assert_eq!(ours::<u128>(text).ok(), (number >> cut).try_into().ok());
        prop_assert_eq!(ours::<i64>(text).ok(), (number >> cut).try_into().ok());
        prop_assert_eq!(ours::<u64>(text).ok(), (number >> cut).try_into().ok());
    }
}

#[test]
fn every_part_and_pair_reads_alike() {
    for one in PARTS {
        compare_all(one);
        for other in PARTS {
            compare_all(&[one, other].concat());
            compare_all(&[b"[", one, b",", other, b"]"].concat());
            compare_all(&[b"{\"a\":", one, other, b"}"].concat());
        }
    }
}

#[test]
fn depth_is_bounded_alike() {
    for depth in [1, 126, 127, 128, 129, 5000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"b\":", "}]")] {
            let whole = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            for text in [whole.as_str(), &open.repeat(depth)] {
                compare_tree(text.as_bytes());
                compare::<Value>(text.as_bytes());
                accepts::<IgnoredAny>(text.as_bytes());
            }
        }
    }
}
