//! How many values a JSON text may become, told without reading it.

use memchr::{memchr, memchr2};

/// Memory of a JSON value beside its text while it is read, in bytes.
#[cfg(any(feature = "http-server", feature = "mcp-server"))]
pub(crate) const NODE: usize = 256;

/// Number of values of a request that are not counted: counting a small request costs more than it is worth.
#[cfg(any(feature = "http-server", feature = "mcp-server"))]
pub(crate) const SMALL: usize = 64;

/// How many commas, colons and opening brackets a JSON text has outside of its strings: a parser makes no more values and
/// members of it than that, and one.
pub(crate) fn separators(mut json: &[u8]) -> usize {
    let mut count = 0;
    while let Some((before, string)) = memchr(b'"', json).and_then(|at| json.split_at_checked(at)) {
        count += all(before);
        json = behind_string(string.get(1..).unwrap_or_default());
    }
    count + all(json)
}

fn all(text: &[u8]) -> usize {
    text.iter().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count()
}

/// What stands behind the end of a string of JSON.
fn behind_string(mut text: &[u8]) -> &[u8] {
    while let Some(at) = memchr2(b'"', b'\\', text) {
        let is_end = text.get(at) == Some(&b'"');
        text = text.get(at + if is_end { 1 } else { 2 }..).unwrap_or_default();
        if is_end {
            return text;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::separators;

    #[test]
    fn what_stands_in_strings_is_no_value() {
        for (json, count) in [
            ("", 0),
            ("1", 0),
            ("[1,2]", 2),
            (r#"{"a":{"b":[]}}"#, 5),
            (r#""a,b:[{""#, 0),
            (r#"{"a":"b,c:[{"}"#, 2),
            (r#"["\"",",\\",1]"#, 3),
            (r#"{"a,":"\\","b":"\\\",:"}"#, 4),
            (r#""\u0022,","#, 1),
            // Invalid JSON ends there for any reader.
            (r#"["a\"#, 1),
            (r#"[",,,,"#, 1),
            (r#"[\",,"#, 1),
        ] {
            assert_eq!(separators(json.as_bytes()), count, "{json}");
        }
    }
}
