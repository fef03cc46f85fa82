//! YAML 1.2 text as JSON values, by the core schema, from the events of a parser.
//!
//! Nothing here recurses, so no document can overflow the stack, and the expansion of aliases is bounded.

use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, StrInput, Tag};
use serde_json::{Map, Number, Value};

use super::pointer;
use super::short::short;
use super::text::{MAX_DEPTH, Position};
use crate::model::cut;
use crate::model::diagnostic::{MOST, MOST_POINTER};
use crate::{Diagnostic, Severity};

/// How many bytes anchors may hold and aliases may expand to in any document, and how many more for each byte of it.
const ALIASED: (usize, usize) = (1 << 20, 16);

/// How many bytes a value takes beside its text.
const VALUE: usize = 32;

/// The events of a YAML text, each with its position.
pub(super) fn events(text: &str) -> Parser<'_, StrInput<'_>> {
    // More than we keep, so that only values that are too deep are left out, but not without bound.
    let nesting = 8 * MAX_DEPTH;
    let options = granit_parser::options! {
        flow_nesting_limit: nesting,
        block_nesting_limit: nesting,
        simple_key_max_lookahead: 16 * 1024,
    };
    Parser::new_from_str_with_options(text, options)
}

/// The first document of a YAML text; `diagnostics` name what is left out of it.
pub(super) fn parse(text: &str, diagnostics: &mut Vec<Diagnostic>) -> Result<Value, Diagnostic> {
    let (least, each) = ALIASED;
    let mut builder = Builder {
        diagnostics,
        told: 0,
        stack: Vec::new(),
        skipped: 0,
        anchors: BTreeMap::new(),
        room: text.len().saturating_mul(each).saturating_add(least),
        most: text.len().saturating_mul(each).saturating_add(least),
    };
    let mut root = None;
    for event in events(text) {
        let (event, span) = event.map_err(|error| syntax(&error))?;
        let position = (span.start.line(), span.start.col() + 1);
        let done = match event {
            Event::DocumentStart(..) if root.is_some() => {
                let note = Diagnostic::note("", "a second document in the same text").with_help("the first was taken");
                builder.diagnostics.push(note.with_position(position.0, position.1));
                break;
            }
            Event::MappingStart(_, anchor, _) => builder.open(Node::Map(Map::new()), anchor, position),
            Event::SequenceStart(_, anchor, _) => builder.open(Node::List(Vec::new()), anchor, position),
            Event::MappingEnd | Event::SequenceEnd => builder.close(position)?,
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                let value = scalar(&text, plain, tag.as_deref());
                builder.scalar(value, (text.into_owned(), plain), anchor, position)?
            }
            Event::Alias(anchor) => builder.alias(anchor, position)?,
            _ => None,
        };
        root = root.or(done);
    }
    let more = builder.told;
    diagnostics.extend(Diagnostic::more(Severity::Warning, more));
    Ok(root.unwrap_or(Value::Null))
}

fn syntax(error: &ScanError) -> Diagnostic {
    let at = error.marker();
    Diagnostic::error("", format!("not YAML: {}", error.info())).with_position(at.line(), at.col() + 1)
}

enum Node {
    List(Vec<Value>),
    Map(Map<String, Value>),
}

/// A collection that is still open.
struct Frame {
    node: Node,
    anchor: usize,
    /// The key of the next value.
    key: Option<Key>,
    /// The values of `<<`.
    merges: Vec<Value>,
}

struct Key {
    text: String,
    /// True if it was written plain.
    is_plain: bool,
    position: Position,
}

/// A value under an anchor, with how many bytes it takes and how deep it is.
struct Anchored {
    value: Value,
    bytes: usize,
    depth: usize,
}

struct Builder<'a> {
    diagnostics: &'a mut Vec<Diagnostic>,
    stack: Vec<Frame>,
    /// How many collections are open inside one that is too deep to keep.
    skipped: usize,
    anchors: BTreeMap<usize, Anchored>,
    /// How many bytes aliases may still take, and how many in all.
    room: usize,
    most: usize,
    /// How many diagnostics there are.
    told: usize,
}

impl Builder<'_> {
    fn open(&mut self, node: Node, anchor: usize, position: Position) -> Option<Value> {
        if self.skipped > 0 || self.stack.len() >= MAX_DEPTH {
            if self.skipped == 0 {
                self.warn(position, format!("nested deeper than {MAX_DEPTH} levels"), "left empty");
            }
            self.skipped += 1;
        } else {
            self.stack.push(Frame { node, anchor, key: None, merges: Vec::new() });
        }
        None
    }

    fn close(&mut self, position: Position) -> Result<Option<Value>, Diagnostic> {
        if self.skipped > 0 {
            self.skipped -= 1;
            let empty = Value::Object(Map::new());
            return Ok(if self.skipped == 0 { self.add(empty, None, position) } else { None });
        }
        let Some(mut frame) = self.stack.pop() else { return Ok(None) };
        let value = match frame.node {
            Node::List(items) => Value::Array(items),
            Node::Map(mut map) => {
                for (key, value) in frame.merges.drain(..).flat_map(merged) {
                    map.entry(key).or_insert(value);
                }
                Value::Object(map)
            }
        };
        self.anchor(frame.anchor, &value, position)?;
        Ok(self.add(value, None, position))
    }

    fn scalar(
        &mut self,
        value: Value,
        text: (String, bool),
        anchor: usize,
        position: Position,
    ) -> Result<Option<Value>, Diagnostic> {
        if self.skipped > 0 {
            return Ok(None);
        }
        self.anchor(anchor, &value, position)?;
        Ok(self.add(value, Some(text), position))
    }

    fn anchor(&mut self, anchor: usize, value: &Value, position: Position) -> Result<(), Diagnostic> {
        if anchor != 0 {
            let (bytes, depth) = measure(value);
            self.spend(bytes, position)?;
            self.anchors.insert(anchor, Anchored { value: value.clone(), bytes, depth });
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, position: Position) -> Result<Option<Value>, Diagnostic> {
        if self.skipped > 0 {
            return Ok(None);
        }
        let Some(anchored) = self.anchors.get(&anchor) else {
            self.warn(position, "an alias of a value that it is part of", "left empty");
            return Ok(self.add(Value::Null, None, position));
        };
        let (bytes, depth) = (anchored.bytes, anchored.depth);
        if self.stack.len() + depth > MAX_DEPTH {
            self.warn(position, format!("an alias nests deeper than {MAX_DEPTH} levels"), "left empty");
            return Ok(self.add(Value::Object(Map::new()), None, position));
        }
        self.spend(bytes, position)?;
        let Some(value) = self.anchors.get(&anchor).map(|anchored| anchored.value.clone()) else { return Ok(None) };
        let key = value.as_str().map(|text| (text.to_owned(), false));
        Ok(self.add(value, key, position))
    }

    /// Counts bytes that anchors and aliases duplicate.
    fn spend(&mut self, bytes: usize, (line, column): Position) -> Result<(), Diagnostic> {
        if let Some(room) = self.room.checked_sub(bytes) {
            self.room = room;
            return Ok(());
        }
        let message = format!("aliases expand to more than {} bytes", self.most);
        Err(Diagnostic::error(self.pointer(), message).with_position(line, column))
    }

    /// Puts a finished value into the collection around it; returns it if it is the whole document.
    fn add(&mut self, value: Value, text: Option<(String, bool)>, position: Position) -> Option<Value> {
        let Some(frame) = self.stack.last_mut() else { return Some(value) };
        match &mut frame.node {
            Node::List(items) => items.push(value),
            Node::Map(map) => match frame.key.take() {
                // Keys are text in JSON: `200:` is `"200"`, and a collection as a key is its JSON.
                None => {
                    let (text, is_plain) = text.unwrap_or_else(|| (value.to_string(), false));
                    frame.key = Some(Key { text, is_plain, position });
                }
                Some(key) if key.is_plain && key.text == "<<" => frame.merges.push(value),
                Some(key) => {
                    // The last value of a key counts, as in JSON.
                    if let Some(known) = map.get_mut(&key.text) {
                        *known = value;
                        let message = format!("the key `{}` stands here more than once", short(&key.text));
                        let position = key.position;
                        // While it is the key of the frame, the pointer leads to it.
                        frame.key = Some(key);
                        self.warn(position, message, "the last was taken");
                        if let Some(frame) = self.stack.last_mut() {
                            frame.key = None;
                        }
                    } else {
                        map.insert(key.text, value);
                    }
                }
            },
        }
        None
    }

    fn warn(&mut self, (line, column): Position, message: impl Into<String>, help: &str) {
        self.told += 1;
        if self.told > MOST {
            return;
        }
        let diagnostic = Diagnostic::warning(self.pointer(), message).with_help(help);
        self.diagnostics.push(diagnostic.with_position(line, column));
    }

    /// The pointer of the next value.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for frame in &self.stack {
            if pointer.len() > MOST_POINTER {
                pointer.truncate(cut::start(&pointer, MOST_POINTER).rfind('/').unwrap_or(0));
                pointer.push_str("/...");
                break;
            }
            match &frame.node {
                Node::List(items) => pointer::push(&mut pointer, &items.len().to_string()),
                Node::Map(_) => {
                    if let Some(key) = &frame.key {
                        pointer::push(&mut pointer, &key.text);
                    }
                }
            }
        }
        pointer
    }
}

/// The entries that a value of `<<` adds: those of a mapping, or of each mapping in a list.
fn merged(value: Value) -> Vec<(String, Value)> {
    match value {
        Value::Object(map) => map.into_iter().collect(),
        Value::Array(items) => items
            .into_iter()
            .filter_map(|item| if let Value::Object(map) = item { Some(map) } else { None })
            .flatten()
            .collect(),
        _ => Vec::new(),
    }
}

/// How many bytes a value takes, and how deep it is nested.
fn measure(value: &Value) -> (usize, usize) {
    let (mut bytes, mut depth) = (0, 0);
    let mut stack = vec![(value, 0)];
    while let Some((value, level)) = stack.pop() {
        bytes += VALUE + value.as_str().map_or(0, str::len);
        depth = depth.max(level);
        match value {
            Value::Array(items) => stack.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(map) => {
                bytes += map.keys().map(|key| VALUE + key.len()).sum::<usize>();
                stack.extend(map.values().map(|item| (item, level + 1)));
            }
            _ => {}
        }
    }
    (bytes, depth)
}

/// A scalar by the core schema (YAML 1.2.2, section 10.3); values that JSON lacks, such as `.inf`, stay text.
fn scalar(text: &str, plain: bool, tag: Option<&Tag>) -> Value {
    let as_text = || Value::String(text.to_owned());
    match tag.and_then(Tag::core_suffix) {
        Some("str") => return as_text(),
        Some("int" | "float" | "bool" | "null") => {}
        _ if !plain => return as_text(),
        _ => {}
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(as_text, Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return u64::from_str_radix(digits, 8).ok().map(Number::from);
    }
    if unsigned.bytes().all(|c| c.is_ascii_digit()) {
        if let Ok(number) = text.parse::<i64>() {
            return Some(number.into());
        }
        if let Ok(number) = text.parse::<u64>() {
            return Some(number.into());
        }
    }
    let is_float = unsigned.bytes().all(|c| matches!(c, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    // An integer of more than 64 bits is kept as the nearest float, as in JSON.
    if is_float { text.parse::<f64>().ok().and_then(Number::from_f64) } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        let mut diagnostics = Vec::new();
        let value = parse(text, &mut diagnostics).unwrap();
        assert_eq!(diagnostics, [], "{text}");
        value
    }

    #[test]
    fn scalars_follow_the_core_schema() {
        for (text, value) in [
            ("no", json!("no")),
            ("on", json!("on")),
            ("~", json!(null)),
            ("", json!(null)),
            ("True", json!(true)),
            ("'true'", json!("true")),
            ("12", json!(12)),
            ("+12", json!(12)),
            ("0755", json!(755)),
            ("0o17", json!(15)),
            ("0xff", json!(255)),
            ("1_000", json!("1_000")),
            ("12:30", json!("12:30")),
            ("2024-01-01", json!("2024-01-01")),
            ("1.2.3", json!("1.2.3")),
            ("1.5", json!(1.5)),
            (".5", json!(0.5)),
            ("1e3", json!(1000.0)),
            (".inf", json!(".inf")),
            (".nan", json!(".nan")),
            ("-", json!([null])),
            ("-1", json!(-1)),
            ("1e999", json!("1e999")),
            ("9223372036854775807", json!(i64::MAX)),
            ("18446744073709551615", json!(u64::MAX)),
            ("-9223372036854776000", json!(-9223372036854776000.0)),
            ("18446744073709552000", json!(18446744073709552000.0)),
            ("!!str 12", json!("12")),
            ("!!int '12'", json!(12)),
            ("! 12", json!(12)),
        ] {
            assert_eq!(read(text), value, "{text}");
        }
    }

    #[test]
    fn keys_are_text_as_it_is_written() {
        assert_eq!(read("200: a\nnull: b\ntrue: c\n"), json!({ "200": "a", "null": "b", "true": "c" }));
        assert_eq!(read("? [a, b]\n: c\n"), json!({ "[\"a\",\"b\"]": "c" }));
    }

    #[test]
    fn anchors_and_merge_keys() {
        let text = "base: &b {x: 1, y: 2}\nother: &o {y: 3, z: 4}\nthing: {<<: [*b, *o], x: 0}\nsame: *b\n'<<': text\n";
        let value = read(text);
        assert_eq!(value["thing"], json!({ "x": 0, "y": 2, "z": 4 }));
        assert_eq!((&value["same"], &value["<<"]), (&json!({ "x": 1, "y": 2 }), &json!("text")));
    }

    #[test]
    fn what_cannot_be_kept_is_named() {
        let mut diagnostics = Vec::new();
        let value = parse("a: 1\nb: {c: 1, c: 2}\n", &mut diagnostics).unwrap();
        assert_eq!(value, json!({ "a": 1, "b": { "c": 2 } }));
        assert_eq!((diagnostics[0].pointer.as_str(), diagnostics[0].position), ("/b/c", Some((2, 11))));

        // The place is that of the second key, however long its value is.
        let mut diagnostics = Vec::new();
        let text = "paths:\n  /a:\n    get: {}\n  /a:\n    put: {}\n    post:\n      x: 1\nlast: {}\n";
        let value = parse(text, &mut diagnostics).unwrap();
        assert_eq!(value["paths"]["/a"], json!({ "put": {}, "post": { "x": 1 } }));
        assert_eq!((diagnostics[0].pointer.as_str(), diagnostics[0].position), ("/paths/~1a", Some((4, 3))));
        assert_eq!((diagnostics.len(), value["last"].clone()), (1, json!({})));

        let mut diagnostics = Vec::new();
        let value = parse("a: &a [1, *a]", &mut diagnostics).unwrap();
        assert_eq!((value, diagnostics.len()), (json!({ "a": [1, null] }), 1));
    }

    #[test]
    fn anchors_cannot_blow_up() {
        let open: String = (0..200).map(|i| format!("&a{i} [")).collect();
        let text = format!("{open}{}{}", "x,".repeat(20_000), "]".repeat(200));
        let error = parse(&text, &mut Vec::new()).unwrap_err();
        assert!(error.message.contains("aliases expand"), "{error}");
    }

    #[test]
    fn the_first_document_is_read() {
        let mut diagnostics = Vec::new();
        assert_eq!(parse("a: 1\n---\nb: 2\n", &mut diagnostics).unwrap(), json!({ "a": 1 }));
        assert_eq!(diagnostics[0].position, Some((2, 1)));
        assert!(parse("a: 1\n]", &mut diagnostics).is_err());
    }

    #[test]
    fn aliases_cannot_blow_up() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..10 {
            let aliases = vec![format!("*a{}", i - 1); 10].join(", ");
            text.push_str(&format!("a{i}: &a{i} [{aliases}]\n"));
        }
        let error = parse(&text, &mut Vec::new()).unwrap_err();
        assert!(error.message.contains("aliases expand"), "{error}");
    }

    #[test]
    fn nesting_cannot_overflow() {
        let mut diagnostics = Vec::new();
        let depth = MAX_DEPTH + 10;
        let value = parse(&format!("{}1{}", "[".repeat(depth), "]".repeat(depth)), &mut diagnostics).unwrap();
        assert_eq!((measure(&value).1, diagnostics.len()), (MAX_DEPTH, 1));
        let error = parse(&"[".repeat(1_000_000), &mut diagnostics).unwrap_err();
        assert!(error.message.starts_with("not YAML"), "{error}");

        // Each anchor holds the one before it, so that the depth grows with the length of the text.
        let deep = MAX_DEPTH - 12;
        let mut text = format!("- &a0 {}x{}\n", "[".repeat(deep), "]".repeat(deep));
        for i in 1..20 {
            text.push_str(&format!("- &a{i} [*a{}]\n", i - 1));
        }
        diagnostics.clear();
        let value = parse(&text, &mut diagnostics).unwrap();
        assert!(measure(&value).1 <= MAX_DEPTH);
        let told: Vec<&str> = diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).collect();
        assert!(told.contains(&"an alias nests deeper than 512 levels"), "{told:?}");
    }
}
