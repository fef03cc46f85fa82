//! The pairs of the header `Cookie`.

use http::HeaderMap;
use http::header::COOKIE;

/// The pairs of all headers `Cookie`.
pub(super) fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    // Not `to_str`, which accepts only ASCII.
    let texts = headers.get_all(COOKIE).iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok());
    texts.flat_map(pairs)
}

/// The pairs of a header `Cookie`, which some write without a space between them.
pub(super) fn pairs(value: &str) -> impl Iterator<Item = &str> {
    value.split(';').map(str::trim).filter(|pair| !pair.is_empty())
}

/// True if one of the pairs sets the cookie that this pair sets.
pub(super) fn set_in<'p>(pairs: impl IntoIterator<Item = &'p str>, pair: &str) -> bool {
    pairs.into_iter().any(|other| name_of(other) == name_of(pair))
}

/// The name in a pair.
fn name_of(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(name, _)| name)
}
