//! The path of a binding in pieces: how it is written by a client, and matched by a server.
//!
//! A template may hold the beginning of the query. What stands behind `#` is not part of the request.

use std::borrow::Cow;

use super::{HttpBinding, HttpParameter, ParameterLocation};

/// A piece of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Text as it stands; in the path, what no URL can hold is not escaped yet.
    Text(&'a str),
    /// A brace that opens no parameter.
    Brace,
    /// The name of a parameter.
    Parameter(&'a str),
    /// The question mark before the query.
    Query,
    /// The sign between two pairs of the query.
    Pair,
}

/// The pieces of a template, from left to right.
pub(crate) fn pieces(template: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = template;
    let mut in_query = false;
    std::iter::from_fn(move || {
        let (piece, tail) = next(rest, in_query)?;
        in_query |= piece == Piece::Query;
        rest = tail;
        Some(piece)
    })
}

/// The first piece, and what is behind it.
fn next(text: &str, in_query: bool) -> Option<(Piece<'_>, &str)> {
    let end = text.find(['{', '?', '#', '&']).unwrap_or(text.len());
    let (literal, tail) = text.split_at(end);
    if !literal.is_empty() {
        return Some((Piece::Text(literal), tail));
    }
    let (sign, behind) = tail.split_at_checked(1)?;
    match sign {
        "#" => None,
        "?" if !in_query => Some((Piece::Query, behind)),
        "&" if in_query => Some((Piece::Pair, behind)),
        "{" => Some(match behind.split_once('}') {
            Some((name, behind)) => (Piece::Parameter(name), behind),
            None => (Piece::Brace, behind),
        }),
        _ => Some((Piece::Text(sign), behind)),
    }
}

/// The path parameter of that name, or in a query the query parameter. One that the document does not describe is
/// plain.
pub(crate) fn parameter<'a>(binding: &'a HttpBinding, name: &str, in_query: bool) -> Cow<'a, HttpParameter> {
    let of = |location| binding.parameters.iter().find(|p| p.location == location && p.name == name);
    let described = of(ParameterLocation::Path);
    let described = described.or_else(|| of(ParameterLocation::Query).filter(|_| in_query));
    let plain = || Cow::Owned(HttpParameter::owned(ParameterLocation::Path, name.to_owned()));
    described.map_or_else(plain, Cow::Borrowed)
}

/// True if URL parsers read the segment as `.` or `..` (WHATWG URL, section 4.4).
pub(crate) fn is_dots(segment: &str) -> bool {
    segment.starts_with(['.', '%']) && matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
}

#[cfg(test)]
mod tests {
    use super::Piece::{Brace, Pair, Parameter, Query, Text};
    use super::*;

    #[test]
    fn templates() {
        let table: [(&str, &[Piece<'_>]); 6] = [
            ("", &[]),
            ("/a/{b}.json", &[Text("/a/"), Parameter("b"), Text(".json")]),
            ("/a&b?c={d}&e#f", &[Text("/a"), Text("&"), Text("b"), Query, Text("c="), Parameter("d"), Pair, Text("e")]),
            ("/a?b?c", &[Text("/a"), Query, Text("b"), Text("?"), Text("c")]),
            ("/a/{b", &[Text("/a/"), Brace, Text("b")]),
            ("/{b#c?d}x", &[Text("/"), Parameter("b#c?d"), Text("x")]),
        ];
        for (template, expected) in table {
            assert_eq!(pieces(template).collect::<Vec<_>>(), expected, "{template}");
        }
    }
}
