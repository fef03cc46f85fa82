//! Text of the document as Rust literals: nothing in it can end the literal or hide in it.

use serde_json::Value;

/// A string literal. Invisible characters, such as a mark that changes the direction of text, are escaped.
pub(crate) fn string(text: &str) -> String {
    format!("{text:?}")
}

/// The most `#` that a raw string literal may have.
const MOST_HASHES: usize = 255;

/// JSON as a raw string literal, with as many `#` as needed, in lines that one can read.
pub(crate) fn json(value: &Value) -> String {
    let text = broken(&visible(&value.to_string()));
    let behind_quotes = text.split('"').skip(1).map(|rest| rest.bytes().take_while(|byte| *byte == b'#').count());
    let needed = behind_quotes.max().map_or_else(|| usize::from(text.contains('\\')), |longest| longest + 1);
    if needed > MOST_HASHES {
        return string(&text);
    }
    let hashes = "#".repeat(needed);
    if hashes.is_empty() { format!("\"{text}\"") } else { format!("r{hashes}\"{text}\"{hashes}") }
}

/// The JSON text in lines of a bounded width where its commas allow it; no string is broken.
fn broken(json: &str) -> String {
    const WIDTH: usize = 140;
    if json.len() <= WIDTH {
        return json.to_owned();
    }
    let mut text = String::with_capacity(json.len() + json.len() / 16);
    // The line so far ends at the last comma at which it may be broken.
    let (mut line, mut fits) = (0, 0);
    let (mut in_string, mut escaped) = (false, false);
    for c in json.chars() {
        text.push(c);
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = in_string,
            '"' => in_string = !in_string,
            ',' if !in_string => fits = text.len(),
            _ => {}
        }
        if text.len() - line > WIDTH && fits > line {
            text.insert(fits, '\n');
            line = fits + 1;
            fits = line;
        }
    }
    text
}

/// The JSON text with every invisible character written as `\uXXXX`; such characters only occur in strings.
pub(super) fn visible(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() || is_visible(c) {
            text.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

/// True if a character is visible: no control, no mark of direction, nothing without width.
pub(crate) fn is_visible(c: char) -> bool {
    let mut escaped = c.escape_debug();
    escaped.next() == Some(c) && escaped.next().is_none() || matches!(c, '"' | '\'' | '\\')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn literals_hold_any_text() {
        for text in [
            "",
            "a",
            "\"#",
            "\"##\"#",
            "\\",
            "\u{202e}x",
            "line\nbreak\r",
            "*/ //",
            "{}",
            "\u{0}",
            "é名\u{1f600}\u{feff}",
        ] {
            let literal: syn::LitStr = syn::parse_str(&string(text)).unwrap();
            assert_eq!(literal.value(), text);
            let value = json!({ text: [text, 1] });
            let source = json_literal(&value);
            let literal: syn::LitStr = syn::parse_str(&source).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&literal.value()).unwrap(), value);
            assert!(source.chars().all(is_visible), "{source}");
        }
        assert_eq!(json_literal(&json!(true)), "\"true\"");
        assert_eq!(json_literal(&json!({"$ref": "#/$defs/A"})), r###"r##"{"$ref":"#/$defs/A"}"##"###);
    }

    fn json_literal(value: &Value) -> String {
        super::json(value)
    }
}
