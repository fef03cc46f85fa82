//! How many values a JSON text may hold, told without reading it.

/// How many commas, colons and opening brackets a JSON text has outside of its strings: each is a value, or a member, that
/// is made of it.
pub(super) fn separators(json: &[u8]) -> usize {
    let (mut count, mut is_string, mut is_escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b',' | b':' | b'[' | b'{' if !is_string => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::separators;

    #[test]
    fn what_stands_in_strings_does_not_count() {
        for (json, count) in [
            ("", 0),
            ("1", 0),
            ("[1,2]", 2),
            (r#"{"a":{"b":[]}}"#, 5),
            (r#""a,b:[{""#, 0),
            (r#"["\",","\\",2]"#, 3),
            (r#"{"a,":"\\","b":"\\\",:"}"#, 4),
            // What is no JSON ends there for whoever reads it.
            (r#"[",,,,"#, 1),
            ("[\\\",,", 1),
        ] {
            assert_eq!(separators(json.as_bytes()), count, "{json}");
        }
    }
}
