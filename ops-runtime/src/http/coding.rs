//! Responses that are compressed, and that the engine has not decoded: what it decodes says so no more.

use crate::CallError;

/// The codings of compressed bodies (RFC 9110, section 8.4.1, and others that are registered), with their old names. What else
/// servers write into the header, such as `identity`, `aws-chunked` or `utf-8`, changes no body.
const CODINGS: [&str; 7] = ["br", "compress", "deflate", "gzip", "x-compress", "x-gzip", "zstd"];

/// The coding of a body that is still compressed, by the header `Content-Encoding` of its response.
pub(super) fn coding(header: Option<&str>) -> Option<&'static str> {
    header?.split(',').find_map(|name| CODINGS.into_iter().find(|coding| name.trim().eq_ignore_ascii_case(coding)))
}

/// The error of a body that is compressed where text or JSON was to be read.
pub(super) fn not_decoded(coding: &str) -> CallError {
    CallError::execution(format!(
        "the response is compressed (`{coding}`) and was not decoded: `HttpConfig::with_compression` decodes gzip, br and \
         zstd, a client or service of your own has to do so itself"
    ))
    .lasting()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings() {
        for (header, expected) in [
            (None, None),
            (Some("gzip"), Some("gzip")),
            (Some("GZIP"), Some("gzip")),
            (Some("x-gzip"), Some("x-gzip")),
            (Some("aws-chunked, br"), Some("br")),
            (Some("deflate,gzip"), Some("deflate")),
            (Some("identity"), None),
            (Some("aws-chunked"), None),
            (Some("utf-8"), None),
            (Some(""), None),
        ] {
            assert_eq!(coding(header), expected, "{header:?}");
        }
    }
}
