//! Decides if a file is a document of an API.
//!
//! Other packages include this file.

use serde_json::Value;

/// True if a value is a document of an API: it names a version of OpenAPI or Swagger that we read, and has the members that
/// this version requires.
///
/// A test does not fail if any other file of a directory is refused.
pub fn is_document(value: &Value) -> bool {
    // Unquoted in YAML, `3.1` is a number.
    let version = |key: &str| value.get(key).map(|version| version.as_str().map_or(version.to_string(), str::to_owned));
    let has = |key: &str| value.get(key).is_some_and(Value::is_object);
    match (version("openapi"), version("swagger")) {
        (Some(version), _) if version.starts_with("3.0") => has("paths"),
        (Some(version), _) if ["3.1", "3.2"].iter().any(|of| version.starts_with(of)) => {
            ["paths", "webhooks", "components"].into_iter().any(has)
        }
        (None, Some(version)) => version.starts_with('2') && has("paths"),
        _ => false,
    }
}
