//! The parameters of headers: `; name=token; name="quoted, with \" and ;"` (RFC 9110, section 5.6.6).

use std::borrow::Cow;

/// The parameters of a header field behind its first value, with their names as they are written.
///
/// What is no parameter is passed over; a quoted string without an end goes to the end of the text.
pub(crate) fn parameters(field: &str) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
    let mut rest = field.split_once(';').map_or("", |(_, rest)| rest);
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = end_of_part(rest, ';');
            let (part, after) = rest.split_at(end);
            rest = after.strip_prefix(';').unwrap_or_default();
            if let Some(parameter) = value_of(part) {
                return Some(parameter);
            }
        }
        None
    })
}

/// The value of one parameter, whatever the case of its name.
pub(crate) fn parameter<'a>(field: &'a str, wanted: &str) -> Option<Cow<'a, str>> {
    parameters(field).find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
}

/// Where the part before a separator ends that is not inside a quoted string.
pub(crate) fn end_of_part(text: &str, separator: char) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    let end = text.find(|c| {
        quoted ^= c == '"' && !escaped;
        escaped = quoted && !escaped && c == '\\';
        c == separator && !quoted
    });
    end.unwrap_or(text.len())
}

/// The name and the value of one parameter.
pub(crate) fn value_of(part: &str) -> Option<(&str, Cow<'_, str>)> {
    let (name, value) = part.split_once('=')?;
    Some((name.trim(), unquoted(value.trim())))
}

/// A token as it is, a quoted string without its quotation marks and escapes.
fn unquoted(value: &str) -> Cow<'_, str> {
    let Some(inner) = value.strip_prefix('"') else { return Cow::Borrowed(value) };
    let mut text = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => text.extend(chars.next()),
            c => text.push(c),
        }
    }
    Cow::Owned(text)
}

/// A file name as another program sent it, without any folders; `None` if nothing is left that may be one.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) fn file_name(sent: &str) -> Option<&str> {
    let name = sent.rsplit(['/', '\\', '\0']).next().unwrap_or_default();
    (!matches!(name, "" | "." | "..")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_strings_are_one_value() {
        for (field, name, expected) in [
            (r#"attachment; filename="a;b.txt""#, "filename", Some("a;b.txt")),
            (r#"attachment; filename="a\"b\\.txt"; size=3"#, "filename", Some(r#"a"b\.txt"#)),
            (r#"attachment; filename="a\"b\\.txt"; size=3"#, "SIZE", Some("3")),
            (r#"a; b="c; d=e"; d=f"#, "d", Some("f")),
            ("text/html;charset=x", "charset", Some("x")),
            ("text/html ; Charset = \"x\" ", "charset", Some("x")),
            ("a; b=\"c", "b", Some("c")),
            ("a; b=\"c\\", "b", Some("c")),
            ("a; b; c=", "c", Some("")),
            ("a; b", "b", None),
            ("", "b", None),
        ] {
            assert_eq!(parameter(field, name).as_deref(), expected, "{field}");
        }
    }
}
