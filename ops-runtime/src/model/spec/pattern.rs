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
    /// character. A path begins with `/` or `*`: in names that have blanks, a first word that is a method is none.
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
/// If it is empty, or has no method before a path.
#[cfg(any(feature = "openapi", feature = "registry"))]
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let pattern = pattern.trim();
    if pattern.is_empty() {
        return Err("the pattern is empty: `*` stands for every operation".to_owned());
    }
    if pattern.starts_with('/') || pattern.starts_with("tag:") {
        return Ok(());
    }
    match method_and_path(pattern) {
        Some((method, _)) if !is_method(method) => {
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
    match method_and_path(pattern).filter(|(method, _)| is_method(method)) {
        Some((method, path)) => {
            spec.http().is_some_and(|http| glob(&method.to_uppercase(), &http.method)) && by_path(path)
        }
        None => glob(pattern, &spec.id) || glob(pattern, spec.name()),
    }
}

/// The word and the path that a pattern consists of; `None` if what follows the word is no path, as in a name with blanks.
fn method_and_path(pattern: &str) -> Option<(&str, &str)> {
    let (method, path) = pattern.split_once(char::is_whitespace)?;
    Some((method, path.trim_start())).filter(|(_, path)| path.starts_with(['/', '*']))
}

fn is_method(word: &str) -> bool {
    word == "*" || METHODS.contains(&word.to_uppercase().as_str())
}

#[cfg(test)]
mod tests {
    use crate::OperationSpec;
    use crate::binding::HttpBinding;

    #[test]
    fn names_may_have_blanks() {
        let delete = OperationSpec::query("shop.Delete all pets").with_http(HttpBinding::new("POST", "/pets/clear"));
        for (pattern, selects) in [
            ("Delete all pets", true),
            ("delete all pets", false),
            ("shop.Delete all pets", true),
            ("shop.Delete all *", true),
            ("Delete all*", true),
            ("post /pets/*", true),
            ("POST  *", true),
            ("* /pets/*", true),
            ("* all pets", true),
            ("DELETE *", false),
            ("DELETE /pets/clear", false),
        ] {
            assert_eq!(delete.matches(pattern), selects, "{pattern}");
            #[cfg(any(feature = "openapi", feature = "registry"))]
            assert_eq!(super::check_pattern(pattern), Ok(()), "{pattern}");
        }
        #[cfg(any(feature = "openapi", feature = "registry"))]
        for pattern in ["DELTE *", "GTE /pets"] {
            assert!(super::check_pattern(pattern).unwrap_err().contains("is no method"), "{pattern}");
        }
    }
}
