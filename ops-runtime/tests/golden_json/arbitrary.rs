//! Arbitrary JSON and damaged golden files: nothing panics, and what is read is written so that it reads the same.

use std::fmt::Debug;
use std::fs;

use ops_runtime::access::{AccessControl, Identity};
use ops_runtime::binding::{
    Binding, HttpBinding, HttpBody, HttpParameter, HttpResponse, McpBinding, McpOutput, ParameterLocation,
    ParameterStyle, StatusRange,
};
use ops_runtime::content::{Annotations, ContentBlock, ResourceContent};
use ops_runtime::envelope::{EventMeta, HttpMeta, LocalMeta, McpMeta, ResponseMeta, Warning, is_response_envelope};
use ops_runtime::record::{from_slice, from_str, from_value, to_value};
use ops_runtime::spec::{ErrorDefinition, OperationKind, OperationSpec, Schema};
use ops_runtime::{CallError, ErrorCode, ResponseEnvelope};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Runs a check on every type.
macro_rules! each {
    ($check:ident($($argument:expr),*)) => {
        each!($check($($argument),*) [
            ResponseEnvelope<Value>, ResponseEnvelope<()>, ResponseEnvelope<Vec<u8>>, ResponseMeta, LocalMeta, HttpMeta,
            McpMeta, EventMeta, ContentBlock, ResourceContent, Annotations, Warning, CallError, ErrorCode,
            ErrorDefinition, AccessControl, Identity, OperationKind, OperationSpec, Schema, Binding, HttpBinding,
            HttpParameter, HttpBody, HttpResponse, ParameterLocation, ParameterStyle, StatusRange,
            McpBinding, McpOutput
        ])
    };
    ($check:ident $arguments:tt [$($t:ty),*]) => { $(each!(@ $check $t, $arguments);)* };
    (@ $check:ident $t:ty, ($($argument:expr),*)) => { $check::<$t>($($argument),*) };
}

/// `SplitMix64`: the same values in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    fn value(&mut self, words: &[String], depth: usize) -> Value {
        match self.below(if depth == 0 { 6 } else { 10 }) {
            0 => Value::Null,
            1 => self.pick(&[true, false]).to_owned().into(),
            2 => self.pick(&[0_i64, 1, -1, 200, 70_000, i64::MIN, i64::MAX]).to_owned().into(),
            3 => self.pick(&[0.5, -0.0, 1e300, 200.0, 1.8e19]).to_owned().into(),
            4 => u64::MAX.into(),
            5 => self.pick(words).as_str().into(),
            6 => (0..self.below(4)).map(|_| self.value(words, depth - 1)).collect(),
            _ => self.object(words, depth),
        }
    }

    fn object(&mut self, words: &[String], depth: usize) -> Value {
        let members = (0..self.below(7)).map(|_| (self.pick(words).clone(), self.value(words, depth - 1)));
        Value::Object(members.collect::<Map<_, _>>())
    }

    /// Changes one place in a value.
    fn damage(&mut self, value: &mut Value, words: &[String]) {
        let (count, down) = match value {
            Value::Object(members) => (members.len(), self.below(4) > 0),
            Value::Array(items) => (items.len(), self.below(4) > 0),
            _ => (0, false),
        };
        if count == 0 || !down {
            *value = self.value(words, 2);
            return;
        }
        let at = self.below(count);
        match value {
            Value::Object(members) => {
                let name = members.keys().nth(at).unwrap().clone();
                match self.below(6) {
                    0 => drop(members.remove(&name)),
                    1 => drop(members.insert(self.pick(words).clone(), self.value(words, 2))),
                    _ => self.damage(members.get_mut(&name).unwrap(), words),
                }
            }
            Value::Array(items) => self.damage(&mut items[at], words),
            _ => {}
        }
    }
}

/// The text of every golden file, and its JSON.
fn goldens() -> Vec<(String, Value)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/json");
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let texts = paths.iter().map(|path| fs::read_to_string(path).unwrap());
    // A file that is being written by another test is not JSON yet.
    texts.filter_map(|text| serde_json::from_str(&text).ok().map(|value| (text, value))).collect()
}

/// Every name and string of a value.
fn words(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => words.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| self::words(item, words)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            words.push(name.clone());
            self::words(value, words);
        }),
        _ => {}
    }
}

fn vocabulary(goldens: &[(String, Value)]) -> Vec<String> {
    let mut all = vec![String::new(), "\u{0}".into(), "é~/.".into()];
    goldens.iter().for_each(|(_, value)| words(value, &mut all));
    all.sort();
    all.dedup();
    all
}

/// Reads a value as a `T`; what succeeds is stable, and the same from text.
fn read<T: DeserializeOwned + Serialize + PartialEq + Debug>(value: &Value) {
    let text = value.to_string();
    let from_text = from_str::<T>(&text);
    let Ok(read) = from_value::<T>(value) else {
        assert!(from_text.is_err(), "only from text: {text}");
        return;
    };
    assert_eq!(from_text.as_ref(), Ok(&read), "{text}");
    let written = to_value(&read).unwrap();
    assert_eq!(from_value::<T>(&written).as_ref(), Ok(&read), "{text} as {written}");
}

fn bytes<T: DeserializeOwned>(text: &[u8]) {
    drop(from_slice::<T>(text));
}

#[test]
fn arbitrary_json_is_read_or_refused() {
    let words = vocabulary(&goldens());
    let mut random = Random(1);
    for _ in 0..1500 {
        let value = random.value(&words, 5);
        each!(read(&value));
    }
}

#[test]
fn damaged_json_is_read_or_refused() {
    let goldens = goldens();
    let words = vocabulary(&goldens);
    let mut random = Random(2);
    let mut envelopes = 0;
    for (_, golden) in &goldens {
        for case in golden.as_object().unwrap().values() {
            for _ in 0..40 {
                let mut value = case.clone();
                for _ in 0..=random.below(2) {
                    random.damage(&mut value, &words);
                }
                each!(read(&value));
                if is_response_envelope(&value) {
                    envelopes += 1;
                    let read: ResponseEnvelope<Value> = ops_runtime::record::from_value(&value).unwrap();
                    holds(&serde_json::to_value(&read).unwrap(), &value);
                }
            }
        }
    }
    assert!(envelopes > 20, "{envelopes}");
}

/// Checks that every scalar of a value is in what was written of it, at its place.
#[track_caller]
fn holds(written: &Value, value: &Value) {
    let mut stack = vec![(String::new(), value)];
    while let Some((pointer, value)) = stack.pop() {
        let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
        match value {
            Value::Null => {}
            Value::Array(items) => {
                stack.extend(items.iter().enumerate().map(|(at, item)| (format!("{pointer}/{at}"), item)));
            }
            Value::Object(members) => {
                stack.extend(members.iter().map(|(name, member)| (format!("{pointer}/{}", escaped(name)), member)));
            }
            scalar => {
                let found = written.pointer(&pointer).unwrap_or_else(|| panic!("{pointer} of {written}"));
                assert!(found == scalar || found.as_f64().is_some_and(|n| Some(n) == scalar.as_f64()), "{pointer}");
            }
        }
    }
}

#[test]
fn damaged_text_is_read_or_refused() {
    let mut random = Random(3);
    for (_, golden) in goldens() {
        for case in golden.as_object().unwrap().values() {
            let text = case.to_string().into_bytes();
            for _ in 0..8 {
                let mut text = text.clone();
                let at = random.below(text.len());
                match random.below(3) {
                    0 => text.truncate(at),
                    1 => text[at] = *random.pick(b"\"{}[],:0\\\xff\x00n"),
                    _ => drop(text.splice(at..at, *random.pick(&[*b"{\"", *b"[[", *b"\"\"", *b",,"]))),
                }
                each!(bytes(&text));
            }
        }
    }
    let deep = "[".repeat(100_000);
    each!(bytes(deep.as_bytes()));
    let deep = "{\"data\":".repeat(100_000);
    each!(bytes(deep.as_bytes()));
}
