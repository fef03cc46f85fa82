//! Patterns for a segment of a path, or for a pair of the query in a path template.

use std::borrow::Cow;
use std::cmp::Reverse;

use regex::Regex;

use crate::model::binding::template::Piece;

/// The length of a pattern's literal parts, and these.
pub(super) type Rank = (Reverse<usize>, Vec<String>);

/// A text with parameters in it.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    names: Vec<String>,
    /// `None` if the whole text is one parameter.
    regex: Option<Regex>,
    /// The literal parts, which distinguish patterns.
    key: Vec<String>,
}

impl Pattern {
    /// The pattern of these pieces, which are text and parameters.
    ///
    /// # Errors
    /// The text itself, in [canonical] form, if it has no parameters.
    pub(super) fn new(pieces: &[Piece<'_>]) -> Result<Self, String> {
        let (mut key, mut names) = (vec![String::new()], Vec::new());
        for piece in pieces {
            let text = match piece {
                Piece::Parameter(name) => {
                    names.push((*name).to_owned());
                    key.push(String::new());
                    continue;
                }
                Piece::Text(text) => text,
                Piece::Brace => "{",
                Piece::Query => "?",
                Piece::Pair => "&",
            };
            if let Some(last) = key.last_mut() {
                last.push_str(&canonical(text));
            }
        }
        if names.is_empty() {
            return Err(key.concat());
        }
        let is_whole = key.iter().all(String::is_empty) && names.len() == 1;
        let literals: Vec<String> = key.iter().map(|text| regex::escape(text)).collect();
        let source = format!("^{}$", literals.join("(.+?)"));
        // An expression of escaped text is always valid, but may be too long; then it matches nothing.
        let regex = if is_whole { None } else { Regex::new(&source).or_else(|_| Regex::new("^\\b$")).ok() };
        Ok(Self { names, regex, key })
    }

    /// The names of the parameters, in their order.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The order among patterns, the most specific first.
    pub(super) fn rank(&self) -> Rank {
        let literal: usize = self.key.iter().map(String::len).sum();
        (Reverse(literal), self.key.clone())
    }

    /// Adds the text of each parameter, still escaped, if a [canonical] text matches. No text is empty.
    pub(super) fn texts<'t>(&self, text: Cow<'t, str>, texts: &mut Vec<Cow<'t, str>>) -> bool {
        let Some(regex) = &self.regex else {
            let matches = !text.is_empty();
            texts.extend(matches.then_some(text));
            return matches;
        };
        let Some(found) = regex.captures(&text) else { return false };
        texts.extend(found.iter().skip(1).map(|part| part.map_or("", |part| part.as_str()).to_owned().into()));
        true
    }
}

/// The text before the first such byte, which is ASCII, and the text after it. Like `str::split_once`, which costs
/// several times as much for the short texts of a URL.
pub(super) fn cut(text: &str, at: u8) -> (&str, Option<&str>) {
    let found = text.bytes().position(|byte| byte == at).and_then(|place| text.split_at_checked(place));
    found.map_or((text, None), |(before, rest)| (before, rest.get(1..)))
}

/// A text in a URL with each character in one form (RFC 3986, section 6.2.2): unreserved characters are not escaped,
/// invalid ones are, and the digits of escapes are in upper case.
pub(super) fn canonical(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let may_stand = |byte: u8| {
        is_plain(byte) || matches!(byte, b'!' | b'$' | b'&'..=b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@')
    };
    if text.bytes().all(may_stand) {
        return Cow::Borrowed(text);
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        let mut byte = *first;
        if let (b'%', [high, low, behind @ ..]) = (byte, tail)
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            rest = behind;
            byte = high << 4 | low;
            if !is_plain(byte) {
                out.push_str(&format!("%{byte:02X}"));
                continue;
            }
        }
        if may_stand(byte) || byte == b'%' {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::binding::template::pieces;

    #[test]
    fn texts() {
        let table: [(&str, &str, Option<&[&str]>); 11] = [
            ("{a}", "x%2Fy", Some(&["x%2Fy"])),
            ("{a}", "", None),
            ("{a}.json", "b.json", Some(&["b"])),
            ("{a}.json", "b%2Ejson", Some(&["b"])),
            ("{a}.json", ".json", None),
            ("{a}..{b}", "1..2", Some(&["1", "2"])),
            ("{a}:go", "x:y:go", Some(&["x:y"])),
            ("{a}:go", "x%3Ago", None),
            ("{a}{b}", "123", Some(&["1", "23"])),
            ("a{b}", "%61%c3%bc", Some(&["%C3%BC"])),
            ("b={a}", "b=1,2", Some(&["1,2"])),
        ];
        for (template, text, expected) in table {
            let pattern = Pattern::new(&pieces(template).collect::<Vec<_>>()).unwrap();
            let mut texts = Vec::new();
            let found = pattern
                .texts(canonical(text), &mut texts)
                .then_some(texts.iter().map(AsRef::as_ref).collect::<Vec<_>>());
            assert_eq!(found.as_deref(), expected, "{template} {text}");
        }
    }

    #[test]
    fn cuts() {
        assert_eq!(cut("a=b=c", b'='), ("a", Some("b=c")));
        assert_eq!(cut("ü=", b'='), ("ü", Some("")));
        assert_eq!((cut("", b'='), cut("ü", b'=')), (("", None), ("ü", None)));
    }

    #[test]
    fn one_form() {
        for (text, expected) in [
            ("a b", "a%20b"),
            ("%20%zz", "%20%zz"),
            ("ü", "%C3%BC"),
            ("%2f%2e%41", "%2F.A"),
            ("%", "%"),
            ("%2", "%2"),
            ("a\0", "a%00"),
        ] {
            assert_eq!(canonical(text), expected);
        }
    }
}
