//! Texts as they are meant: percent-encodings and the escapes of JSON and HTML undone.

/// How many encodings may be put into one another.
const ROUNDS: usize = 4;

/// The longest reference of HTML to a character, in bytes.
const MAX_REFERENCE: usize = 10;

/// The references of HTML to characters by name; those by number are read as numbers.
const NAMED: [(&[u8], u8); 5] = [(b"amp", b'&'), (b"lt", b'<'), (b"gt", b'>'), (b"quot", b'"'), (b"apos", b'\'')];

/// The text as it is meant, whichever way it is written; of two texts that mean the same, it is the same.
pub(super) fn plain(text: &str) -> Vec<u8> {
    let mut now = text.as_bytes().to_vec();
    for _ in 0..ROUNDS {
        if !is_written(&now) {
            break;
        }
        let mut next = Vec::with_capacity(now.len());
        read(&now, |byte, _| next.push(byte));
        if next == now {
            break;
        }
        now = next;
    }
    now
}

/// As [`plain`], with the place in the text of each byte and of the end.
pub(super) fn placed(text: &str) -> (Vec<u8>, Vec<usize>) {
    let mut now = text.as_bytes().to_vec();
    let mut places: Vec<usize> = (0..=now.len()).collect();
    for _ in 0..ROUNDS {
        let (mut next, mut from) = (Vec::with_capacity(now.len()), Vec::with_capacity(now.len()));
        read(&now, |byte, place| {
            next.push(byte);
            from.push(places.get(place).copied().unwrap_or(text.len()));
        });
        from.push(text.len());
        if next == now {
            break;
        }
        (now, places) = (next, from);
    }
    (now, places)
}

/// True if there may be anything to undo in the text.
pub(super) fn is_written(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, b'%' | b'\\' | b'+' | b'&'))
}

/// Undoes one encoding: gives the bytes that are meant, each with its place.
fn read(text: &[u8], mut put: impl FnMut(u8, usize)) {
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.first().copied().unwrap_or_default();
        let length = match first {
            b'%' => hex(rest.get(1..3)).and_then(|code| u8::try_from(code).ok()).map(|byte| {
                put(byte, at);
                3
            }),
            // A space of a form; where a plus is meant, it is the same space in the secret.
            b'+' => {
                put(b' ', at);
                Some(1)
            }
            b'\\' => escape(rest, |byte| put(byte, at)),
            b'&' => reference(rest, |byte| put(byte, at)),
            _ => None,
        };
        if length.is_none() {
            put(first, at);
        }
        at += length.unwrap_or(1);
    }
}

/// Reads an escape of JSON, and returns its length.
fn escape(text: &[u8], mut put: impl FnMut(u8)) -> Option<usize> {
    let byte = match text.get(1)? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        byte @ (b'"' | b'\\' | b'/' | b'\'') => *byte,
        b'u' => {
            let code = hex(text.get(2..6))?;
            let low = || hex(text.get(8..12).filter(|_| text.get(6..8) == Some(br"\u")));
            let (code, length) = match (code, (0xD800..0xDC00).contains(&code).then(low).flatten()) {
                // Half of a pair (RFC 8259, section 7).
                (high, Some(low @ 0xDC00..0xE000)) => (0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00), 12),
                (code, _) => (code, 6),
            };
            put_char(char::from_u32(code)?, put);
            return Some(length);
        }
        _ => return None,
    };
    put(byte);
    Some(2)
}

/// Reads a reference of HTML to a character, and returns its length.
fn reference(text: &[u8], mut put: impl FnMut(u8)) -> Option<usize> {
    let end = text.iter().take(MAX_REFERENCE).position(|byte| *byte == b';')?;
    let name = text.get(1..end)?;
    if let Some((_, byte)) = NAMED.iter().find(|(known, _)| *known == name) {
        put(*byte);
    } else {
        let number = std::str::from_utf8(name.strip_prefix(b"#")?).ok()?;
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        put_char(char::from_u32(code)?, put);
    }
    Some(end + 1)
}

fn put_char(c: char, put: impl FnMut(u8)) {
    c.encode_utf8(&mut [0; 4]).bytes().for_each(put);
}

fn hex(digits: Option<&[u8]>) -> Option<u32> {
    let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_undone() {
        for (written, meant) in [
            ("plain", "plain"),
            ("a%20b%2Fc%2fd", "a b/c/d"),
            ("a+b", "a b"),
            ("a%2Bb", "a b"),
            (r#"a\"b\\\\c\/d\u00e9\ud83d\ude00"#, "a\"b\\c/d\u{e9}\u{1f600}"),
            ("a&amp;b&#39;c&#x27;d&lt;", "a&b'c'd<"),
            ("a%2520b", "a b"),
            (r"a\\u0026amp;b", "a&b"),
            // What is no encoding stays.
            ("100%, a \\d &c; %zz \\u12", "100%, a \\d &c; %zz \\u12"),
            ("%", "%"),
            ("\\", "\\"),
            (r"\ud83d", r"\ud83d"),
            ("%c3%a9", "\u{e9}"),
        ] {
            assert_eq!(plain(written), meant.as_bytes(), "{written}");
            let (bytes, places) = placed(written);
            assert_eq!((bytes.as_slice(), places.len()), (meant.as_bytes(), meant.len() + 1), "{written}");
            assert!(places.is_sorted() && places.last() == Some(&written.len()), "{written}");
        }
    }
}
