//! Secret text, and headers that carry it.

use std::fmt;

use http::HeaderValue;

use crate::CallError;
use crate::http::invalid;

/// Secret text, which `Debug` never shows.
///
/// ```
/// use ops_runtime::http::Secret;
///
/// assert_eq!(format!("{:?}", Secret::from("s3cr3t")), "Secret");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Makes a secret of a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// A header value that is marked as sensitive, of `what`.
///
/// # Errors
/// A `VALIDATION_ERROR` that names `what`, without its value.
pub(super) fn sensitive(what: impl fmt::Display, value: &str) -> Result<HeaderValue, CallError> {
    let mut header = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
        // Editors end files with one, so a secret that is read from a file often has it.
        let fault = match value.ends_with(['\n', '\r']) {
            true => "ends with a line break: trim it",
            false => "has a character that a header cannot carry",
        };
        invalid("/auth", format!("{what} {fault}"))
    })?;
    header.set_sensitive(true);
    Ok(header)
}
