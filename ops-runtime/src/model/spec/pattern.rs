//! Patterns that select operations.

use crate::OperationSpec;
use crate::model::glob::glob;
#[cfg(any(feature = "openapi", feature = "registry"))]
use crate::model::nearest::{nearest, question};

/// The methods that a pattern may begin with.
const METHODS: [&str; 9] = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "QUERY"];

impl OperationSpec {
    /// True if a pattern selects the operation.
    ///
    /// A pattern is an id or a name, `tag:` and a tag, a path, or a method and a path; `*` stands for any text, `?` for any
    /// character.
    ///
    /// ```
    /// use ops_runtime::binding::HttpBinding;
    /// use ops_runtime::spec::OperationSpec;
    ///
    /// let spec = OperationSpec::query("shop.listPets").with_http(HttpBinding::new("GET", "/pets")).with_tags(&["pets"]);
    /// let patterns = ["shop.listPets", "list*", "tag:pets", "/pets", "GET /*", "* /pets"];
    /// assert!(patterns.iter().all(|pattern| spec.matches(pattern)));
    /// assert!(!spec.matches("DELETE /pets"));
    /// ```
    pub fn matches(&self, pattern: &str) -> bool {
        matches(pattern, self)
    }
}

/// Says why a pattern can select no operation, whichever there are.
///
/// ```
/// use ops_runtime::spec::check_pattern;
///
/// assert!(check_pattern("DELETE *").is_ok());
/// assert_eq!(check_pattern("DELTE *").unwrap_err(), "`DELTE` is no method: did you mean `DELETE`?");
/// ```
///
/// # Errors
/// If it is empty, or has a blank where no method stands before it.
#[cfg(any(feature = "openapi", feature = "registry"))]
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let pattern = pattern.trim();
    if pattern.is_empty() {
        return Err("the pattern is empty: `*` stands for every operation".to_owned());
    }
    if pattern.starts_with('/') || pattern.starts_with("tag:") {
        return Ok(());
    }
    match pattern.split_once(char::is_whitespace) {
        Some((method, _)) if method != "*" && !METHODS.contains(&method.to_uppercase().as_str()) => {
            let meant = question(&nearest(&method.to_uppercase(), METHODS, 1));
            Err(format!("`{}` is no method{meant}", method.escape_debug()))
        }
        _ => Ok(()),
    }
}

fn matches(pattern: &str, spec: &OperationSpec) -> bool {
    let pattern = pattern.trim();
    if let Some(tag) = pattern.strip_prefix("tag:") {
        return spec.tags.iter().any(|have| glob(tag, have));
    }
    let by_path = |path: &str| spec.http().is_some_and(|http| glob(path, &http.path));
    if pattern.starts_with('/') {
        return by_path(pattern);
    }
    if let Some((method, path)) = pattern.split_once(char::is_whitespace) {
        let method = method.to_uppercase();
        if method == "*" || METHODS.contains(&method.as_str()) {
            return spec.http().is_some_and(|http| glob(&method, &http.method)) && by_path(path.trim_start());
        }
    }
    glob(pattern, &spec.id) || glob(pattern, spec.name())
}
