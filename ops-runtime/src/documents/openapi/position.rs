//! The positions in a text of the places that diagnostics point to.
//!
//! Values carry no positions. The text is read a second time if there are diagnostics, once for all of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use granit_parser::Event;

use super::pointer;
use super::text::Position;
use super::yaml;

/// The positions of the places at these pointers, or of the closest places around them that the text has.
pub(super) fn positions(text: &str, is_json: bool, pointers: &BTreeSet<&str>) -> BTreeMap<String, Position> {
    let found = exact(text, is_json, pointers);
    let closest = |pointer: &str| {
        let mut rest = Some(pointer);
        while let Some(pointer) = rest {
            if let Some(position) = found.get(pointer) {
                return Some(*position);
            }
            rest = pointer.rfind('/').and_then(|at| pointer.get(..at));
        }
        None
    };
    pointers.iter().filter_map(|pointer| Some(((*pointer).to_owned(), closest(pointer)?))).collect()
}

/// The positions of the places at these pointers, and of those around them, that the text has.
pub(super) fn exact(text: &str, is_json: bool, pointers: &BTreeSet<&str>) -> BTreeMap<String, Position> {
    let mut wanted = BTreeSet::new();
    for pointer in pointers {
        let ends = pointer.match_indices('/').map(|(at, _)| at);
        wanted.extend(ends.chain([pointer.len()]).filter_map(|end| pointer.get(..end)));
    }
    if is_json { in_json(text, &wanted) } else { in_yaml(text, &wanted) }
}

/// Follows the collections and scalars of a text and notes where the wanted ones begin.
struct Locator<'p, P> {
    /// Pointers, and all those above them.
    wanted: &'p BTreeSet<&'p str>,
    found: BTreeMap<String, P>,
    /// The pointer of the current value, as long as it can be a wanted one.
    path: String,
    stack: Vec<Frame<P>>,
}

struct Frame<P> {
    /// The length of the collection's pointer; `None` if nothing in it is wanted.
    length: Option<usize>,
    /// The next index, in a list.
    index: Option<usize>,
    /// The position of the next value's key; `None` in a list and before a key.
    key: Option<P>,
}

impl<'p, P: Copy> Locator<'p, P> {
    fn new(wanted: &'p BTreeSet<&'p str>) -> Self {
        Self { wanted, found: BTreeMap::new(), path: String::new(), stack: Vec::new() }
    }

    fn scalar<'t>(&mut self, text: impl FnOnce() -> Cow<'t, str>, at: P) {
        let Some(frame) = self.stack.last_mut().filter(|frame| frame.index.is_none() && frame.key.is_none()) else {
            self.value(at);
            return;
        };
        frame.key = Some(at);
        if let Some(length) = frame.length {
            self.path.truncate(length);
            pointer::push(&mut self.path, &text());
        }
    }

    fn open(&mut self, is_list: bool, at: P) {
        let is_key = self.stack.last().is_some_and(|frame| frame.index.is_none() && frame.key.is_none());
        if is_key {
            self.scalar(|| Cow::Borrowed(""), at);
        }
        let length = if is_key { None } else { self.value(at) };
        self.stack.push(Frame { length, index: is_list.then_some(0), key: None });
    }

    fn close(&mut self) {
        self.stack.pop();
    }

    /// Notes a value that begins here; returns the length of its pointer if something in it may be wanted.
    fn value(&mut self, mut at: P) -> Option<usize> {
        if let Some(frame) = self.stack.last_mut() {
            // A value with a key begins at the key.
            at = frame.key.take().unwrap_or(at);
            let length = frame.length?;
            if let Some(index) = &mut frame.index {
                self.path.truncate(length);
                pointer::push(&mut self.path, &index.to_string());
                *index += 1;
            }
        }
        if !self.wanted.contains(self.path.as_str()) {
            return None;
        }
        self.found.insert(self.path.clone(), at);
        Some(self.path.len())
    }
}

fn in_yaml(text: &str, wanted: &BTreeSet<&str>) -> BTreeMap<String, Position> {
    let mut locator = Locator::new(wanted);
    for event in yaml::events(text) {
        let Ok((event, span)) = event else { break };
        let at = (span.start.line(), span.start.col() + 1);
        match event {
            Event::MappingStart(..) => locator.open(false, at),
            Event::SequenceStart(..) => locator.open(true, at),
            Event::MappingEnd | Event::SequenceEnd => locator.close(),
            Event::Scalar(text, ..) => locator.scalar(|| text, at),
            Event::Alias(_) => locator.scalar(|| Cow::Borrowed(""), at),
            Event::DocumentEnd => break,
            _ => {}
        }
    }
    locator.found
}

fn in_json(text: &str, wanted: &BTreeSet<&str>) -> BTreeMap<String, Position> {
    let mut locator = Locator::new(wanted);
    let mut bytes = text.bytes().enumerate();
    let mut in_scalar = false;
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'{' | b'[' => locator.open(byte == b'[', at),
            b'}' | b']' => locator.close(),
            b'"' => {
                let mut escaped = false;
                let end = bytes.find(|(_, byte)| {
                    let is_end = *byte == b'"' && !escaped;
                    escaped = *byte == b'\\' && !escaped;
                    is_end
                });
                let end = end.map_or(text.len(), |(end, _)| end);
                locator.scalar(|| unescaped(text, at, end), at);
            }
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => {}
            _ if in_scalar => continue,
            _ => {
                locator.scalar(|| Cow::Borrowed(""), at);
                in_scalar = true;
                continue;
            }
        }
        in_scalar = false;
    }
    lines(text, locator.found)
}

/// The text of a JSON string between two quotes.
fn unescaped(text: &str, start: usize, end: usize) -> Cow<'_, str> {
    let raw = text.get(start + 1..end).unwrap_or_default();
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    text.get(start..=end).and_then(|text| serde_json::from_str(text).ok()).map_or(Cow::Borrowed(raw), Cow::Owned)
}

/// Lines and columns from offsets in bytes.
fn lines(text: &str, found: BTreeMap<String, usize>) -> BTreeMap<String, Position> {
    let mut offsets: Vec<(usize, String)> = found.into_iter().map(|(pointer, at)| (at, pointer)).collect();
    offsets.sort();
    let (mut line, mut start) = (1, 0);
    let mut ends = text.match_indices('\n').map(|(at, _)| at + 1).peekable();
    let mut found = BTreeMap::new();
    // A document may be one long line: its columns are counted once.
    let mut column = 1;
    for (at, pointer) in offsets {
        while let Some(end) = ends.next_if(|end| *end <= at) {
            line += 1;
            start = end;
            column = 1;
        }
        column += text.get(start..at).map_or(0, |before| before.chars().count());
        start = at;
        found.insert(pointer, (line, column));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{
  "paths": {
    "/a\"b\\/{id}": { "é": [true, -1.5e3, { "x": null }],
      "get": {}
    }
  }, "empty": [], "last": "}"
}"#;
    const YAML: &str =
        "# first\npaths:\n  /a: &a\n    é: [1, {x: 2}]\n    ? [k]\n    : v\n    get:\n      - one\n  /b: *a\n";

    #[test]
    fn places_are_found() {
        for (text, is_json, places) in [
            (
                JSON,
                true,
                vec![
                    ("", (1, 1)),
                    ("/paths", (2, 3)),
                    ("/paths/~1a\"b\\~1{id}/é/1", (3, 35)),
                    ("/paths/~1a\"b\\~1{id}/é/2/x", (3, 45)),
                    ("/paths/~1a\"b\\~1{id}/get", (4, 7)),
                    ("/paths/~1a\"b\\~1{id}/put", (3, 5)),
                    ("/empty", (6, 6)),
                    ("/last", (6, 19)),
                ],
            ),
            (
                YAML,
                false,
                vec![
                    ("", (2, 1)),
                    ("/paths", (2, 1)),
                    ("/paths/~1a/é/0", (4, 9)),
                    ("/paths/~1a/é/1/x", (4, 13)),
                    ("/paths/~1a/get/0", (8, 9)),
                    ("/paths/~1b/get/0", (9, 3)),
                ],
            ),
        ] {
            let pointers = places.iter().map(|(pointer, _)| *pointer).collect();
            let found = positions(text, is_json, &pointers);
            for (pointer, position) in places {
                assert_eq!(found.get(pointer), Some(&position), "{pointer}");
            }
        }
    }
}
