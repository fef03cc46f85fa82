//! The JSON pointer of a position in a text.

/// An array or object that is open at the position.
enum Open {
    Array { index: usize },
    Object { key: Option<String> },
}

/// Returns the pointer of the value that is read or has just been read at `offset`.
pub(super) fn of_value(text: &[u8], offset: usize) -> String {
    pointer(&scan(text.get(..offset).unwrap_or(text)).open)
}

/// Returns the pointer of the array or object that is open at `offset`, or has just been closed there.
pub(super) fn of_container(text: &[u8], offset: usize) -> String {
    let mut scanned = scan(text.get(..offset).unwrap_or(text));
    if !scanned.closed {
        scanned.open.pop();
    }
    pointer(&scanned.open)
}

pub(super) use crate::pointer::push;

fn pointer(open: &[Open]) -> String {
    let mut pointer = String::new();
    for level in open {
        match level {
            Open::Array { index } => push(&mut pointer, &index.to_string()),
            Open::Object { key: Some(key) } => push(&mut pointer, key),
            Open::Object { key: None } => {}
        }
    }
    pointer
}

/// What a text has opened and not closed.
struct Scanned {
    open: Vec<Open>,
    /// True if the last token closed an array or object.
    closed: bool,
}

/// Follows a text that is right up to its end, as far as it was read.
fn scan(text: &[u8]) -> Scanned {
    let mut open = Vec::new();
    let mut closed = false;
    let mut rest = text;
    while let Some((byte, tail)) = rest.split_first() {
        let token = rest;
        rest = tail;
        match byte {
            b'{' => open.push(Open::Object { key: None }),
            b'[' => open.push(Open::Array { index: 0 }),
            b'}' | b']' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Open::Array { index }) => *index += 1,
                Some(Open::Object { key }) => *key = None,
                None => {}
            },
            b'"' => {
                let end = string_end(token);
                rest = token.get(end..).unwrap_or_default();
                if let Some(Open::Object { key: key @ None }) = open.last_mut() {
                    *key = token.get(..end).and_then(|raw| serde_json::from_slice(raw).ok());
                }
            }
            b' ' | b'\n' | b'\r' | b'\t' => continue,
            _ => {}
        }
        closed = matches!(byte, b'}' | b']');
    }
    Scanned { open, closed }
}

/// Returns the length of the string that `token` starts with, quotes included.
fn string_end(token: &[u8]) -> usize {
    let mut escaped = false;
    for (index, byte) in token.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    token.len()
}

#[cfg(test)]
mod tests {
    use super::{of_container, of_value};

    #[test]
    fn a_pointer_follows_the_text() {
        // The bar marks the position.
        let cases = [
            ("|{}", "", ""),
            ("{|}", "", ""),
            ("{}|", "", ""),
            (r#"{"a"|: 1}"#, "/a", ""),
            (r#"{"a": 1|}"#, "/a", ""),
            (r#"{"a": 1, |"b": 2}"#, "", ""),
            (r#"{"a": {"b": [true, {}|]}}"#, "/a/b/1", "/a/b/1"),
            (r#"{"a": {"b": [true, {}]|}}"#, "/a/b", "/a/b"),
            (r#"{"a": {"b": [true, | {}]}}"#, "/a/b/1", "/a/b"),
            ("[[], [1, [2|]]]", "/1/1/0", "/1/1"),
            (r#"{"a,\"]": ["},{", "x|"]}"#, "/a,\"]/1", "/a,\"]"),
            (r#"{"a~/b": 1|}"#, "/a~0~1b", ""),
            (r#"{"\u0061\\": 1|}"#, "/a\\", ""),
            (r#"}]}"a", :|"#, "", ""),
        ];
        for (text, value, container) in cases {
            let at = text.find('|').unwrap();
            let text = text.replace('|', "");
            assert_eq!(
                (of_value(text.as_bytes(), at), of_container(text.as_bytes(), at)),
                (value.into(), container.into()),
                "{text}"
            );
        }
    }
}
