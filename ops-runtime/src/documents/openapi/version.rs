//! Which dialect of OpenAPI a document is written in.

use serde_json::Value;

use super::short::short;
use super::text::{kind, of_markup};
use crate::Diagnostic;

/// A dialect of OpenAPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    /// 2.0, called Swagger: schemas are a subset of JSON Schema draft 4.
    V20,
    /// 3.0: schemas are an extended subset of JSON Schema draft 5.
    V30,
    /// 3.1: schemas are JSON Schema 2020-12.
    V31,
    /// 3.2 and later versions of 3: as 3.1, with additions.
    V32,
}

impl Version {
    /// The dialect of a document, by its member `openapi` or `swagger`.
    pub(super) fn of(document: &Value) -> Result<Self, Diagnostic> {
        // So a parser of YAML reads a file without a text.
        if document.is_null() {
            return Err(Diagnostic::error("", "not an OpenAPI document: it is empty"));
        }
        if let Some(error) = document.as_str().and_then(of_markup) {
            return Err(error);
        }
        if !document.is_object() {
            return Err(Diagnostic::error("", format!("not an OpenAPI document: it is {}", kind(document))));
        }
        let (key, version) = match (document.get("openapi"), document.get("swagger")) {
            (Some(version), _) => ("/openapi", version),
            (None, Some(version)) => ("/swagger", version),
            (None, None) => {
                let error = Diagnostic::error("", "not an OpenAPI document: it has no member `openapi`");
                return Err(error.with_help("it should begin with a version, such as `openapi: 3.1.0`"));
            }
        };
        // Unquoted in YAML, `3.1` is a number.
        let version = version.as_str().map_or_else(|| version.to_string(), str::to_owned);
        let mut parts = version.trim().split('.');
        match (key, parts.next(), parts.next()) {
            ("/openapi", Some("3"), Some("0")) => Ok(Self::V30),
            ("/openapi", Some("3"), Some("1")) => Ok(Self::V31),
            ("/openapi", Some("3"), Some("2")) => Ok(Self::V32),
            ("/swagger", Some("2"), _) => Ok(Self::V20),
            _ => {
                let version = short(&version);
                let error = Diagnostic::error(key, format!("OpenAPI `{version}` is not a version that can be read"));
                Err(error.with_help("convert the document to OpenAPI 3.1"))
            }
        }
    }

    /// The pointer to the named schemas.
    pub(super) fn schemas(self) -> &'static str {
        if self == Self::V20 { "/definitions" } else { "/components/schemas" }
    }

    /// True if members beside a `$ref` in a schema count.
    pub(super) fn keeps_siblings(self) -> bool {
        self >= Self::V31
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions() {
        for (document, version) in [
            (json!({ "openapi": "3.0.4" }), Ok(Version::V30)),
            (json!({ "openapi": "3.1.2" }), Ok(Version::V31)),
            (json!({ "openapi": 3.1 }), Ok(Version::V31)),
            (json!({ "openapi": "3.2.0" }), Ok(Version::V32)),
            (json!({ "openapi": "4.0.0" }), Err("/openapi")),
            (json!({ "swagger": "2.0" }), Ok(Version::V20)),
            (json!({ "swagger": 2.0 }), Ok(Version::V20)),
            (json!({ "swagger": "1.2" }), Err("/swagger")),
            (json!({ "title": "x" }), Err("")),
            (json!("text"), Err("")),
            (json!("<!doctype html> <title>Pets</title>"), Err("")),
        ] {
            assert_eq!(Version::of(&document).map_err(|e| e.pointer), version.map_err(str::to_owned), "{document}");
        }
    }
}
