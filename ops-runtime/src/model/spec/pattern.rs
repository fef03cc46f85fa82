//! Patterns that select operations.

use crate::OperationSpec;
use crate::model::glob::glob;

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
