//! JSON pointers (RFC 6901), and references to definitions, which are pointers below `#/$defs/`.
//!
//! ```
//! use ops_runtime::spec::pointer;
//!
//! assert_eq!(pointer::escaped("a/b"), "a~1b");
//! assert_eq!(pointer::unescaped("a~1b"), "a/b");
//! assert_eq!(pointer::definition("#/$defs/a~1b/items").as_deref(), Some("a/b"));
//! ```

use std::borrow::Cow;

/// What a reference to a definition begins with.
pub const DEFINITIONS: &str = "#/$defs/";

/// Writes a name as one token of a pointer.
pub fn escaped(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) { Cow::Owned(name.replace('~', "~0").replace('/', "~1")) } else { Cow::Borrowed(name) }
}

/// Reads one token of a pointer as the name that it stands for.
pub fn unescaped(token: &str) -> Cow<'_, str> {
    if token.contains('~') { Cow::Owned(token.replace("~1", "/").replace("~0", "~")) } else { Cow::Borrowed(token) }
}

/// Adds a name to a pointer.
pub fn push(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&escaped(name));
}

/// Returns the names and numbers of a pointer. There are none if the text is not a pointer.
pub fn tokens(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    pointer.split('/').skip(1).map(unescaped)
}

/// Returns the name of the definition that a `$ref` leads to or into. `None` if it leads to anything else.
pub fn definition(reference: &str) -> Option<Cow<'_, str>> {
    let name = reference.strip_prefix(DEFINITIONS)?;
    Some(unescaped(name.split('/').next().unwrap_or(name)))
}

/// Returns the pointer from a definition to the target of a `$ref` that leads into it. Empty if it leads to the whole.
#[cfg(any(feature = "http", feature = "http-server", feature = "mcp-server"))]
pub(crate) fn within_definition(reference: &str) -> &str {
    let path = reference.strip_prefix(DEFINITIONS).unwrap_or_default();
    path.find('/').and_then(|at| path.get(at..)).unwrap_or_default()
}

/// Returns the `$ref` to a definition.
pub fn reference(name: &str) -> String {
    format!("{DEFINITIONS}{}", escaped(name))
}

/// Undoes percent-encoding; text without it, or that is not UTF-8 then, stays as it is.
pub(crate) fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digits = (ahead.next().and_then(hex), ahead.next().and_then(hex));
        if let (b'%', (Some(high), Some(low))) = (byte, digits) {
            bytes.push(16 * high + low);
            rest = ahead;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs() {
        for (text, decoded) in
            [("a%20b", "a b"), ("%7Bid%7d", "{id}"), ("100%", "100%"), ("%zz%4", "%zz%4"), ("%ff", "%ff")]
        {
            assert_eq!(percent_decoded(text), decoded);
        }
    }
}
