//! Patterns that select operations.

use crate::model::glob::glob;
#[cfg(any(feature = "openapi", feature = "registry"))]
use crate::model::nearest::{nearest, question};
use crate::{HttpBinding, OperationSpec};

/// The methods that HTTP clients know. Documents may have others.
const METHODS: [&str; 9] = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "QUERY"];

impl OperationSpec {
    /// True if a pattern selects the operation.
    ///
    /// A pattern is an id or a name, `tag:` and a tag, a path, or a method and a path; `*` stands for any text, `?` for any
    /// character. A path begins with `/` or `*`: the first word of a name with blanks does not count as a method. The case of a
    /// method does not matter, but a method that only a document has, such as `COPY`, must be in upper case.
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

/// Says if a pattern is a mistake, given the operations that there are. One that selects none of them need not be a mistake.
///
/// ```
/// use ops_runtime::binding::HttpBinding;
/// use ops_runtime::spec::{OperationSpec, check_pattern};
///
/// let spec = OperationSpec::mutation("shop.sell").with_http(HttpBinding::new("BATCH", "/pets"));
/// assert!(check_pattern("DELETE *", [&spec]).is_ok());
/// assert!(check_pattern("BATCH /toys", [&spec]).is_ok());
/// assert_eq!(check_pattern("DELTE *", [&spec]).unwrap_err(), "`DELTE` is no method: did you mean `DELETE`?");
/// ```
///
/// # Errors
/// If it is empty, or if the word before its path is no method. A word in upper case may be a method of a document if it is not
/// similar to a method of HTTP, or if it is the method of an operation.
#[cfg(any(feature = "openapi", feature = "registry"))]
pub fn check_pattern<'a>(pattern: &str, specs: impl IntoIterator<Item = &'a OperationSpec>) -> Result<(), String> {
    let pattern = pattern.trim();
    if pattern.is_empty() {
        return Err("the pattern is empty: `*` stands for every operation".to_owned());
    }
    if pattern.starts_with('/') || pattern.starts_with("tag:") {
        return Ok(());
    }
    match method_and_path(pattern) {
        Some((method, _)) if !is_known(method) => {
            let meant = nearest(&method.to_uppercase(), METHODS, 1);
            let is_own =
                |spec: &OperationSpec| spec.http().is_some_and(|http| http.method.eq_ignore_ascii_case(method));
            if may_be_method(method) && (meant.is_empty() || specs.into_iter().any(is_own)) {
                return Ok(());
            }
            Err(format!("`{}` is no method{}", method.escape_debug(), question(&meant)))
        }
        _ => Ok(()),
    }
}

/// True if a pattern begins with a word in upper case that some document may have as a method. If some operations are unknown,
/// such a pattern may be right although [`check_pattern`] calls it a mistake. No other pattern may.
#[cfg(any(feature = "openapi", feature = "registry"))]
pub fn may_name_a_method(pattern: &str) -> bool {
    method_and_path(pattern.trim()).is_some_and(|(method, _)| may_be_method(method))
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
    let by_name = || glob(pattern, &spec.id) || glob(pattern, spec.name());
    let by_request = |method: &str, path: &str| {
        let is_method = |http: &HttpBinding| glob(&method.to_uppercase(), &http.method.to_uppercase());
        spec.http().is_some_and(is_method) && by_path(path)
    };
    match method_and_path(pattern) {
        Some((method, path)) if is_known(method) => by_request(method, path),
        // The word may also begin a name.
        Some((method, path)) if may_be_method(method) => by_request(method, path) || by_name(),
        _ => by_name(),
    }
}

/// The word and the path that a pattern consists of; `None` if what follows the word is no path, as in a name with blanks.
fn method_and_path(pattern: &str) -> Option<(&str, &str)> {
    let (method, path) = pattern.split_once(char::is_whitespace)?;
    Some((method, path.trim_start())).filter(|(_, path)| path.starts_with(['/', '*']))
}

fn is_known(word: &str) -> bool {
    word == "*" || METHODS.contains(&word.to_uppercase().as_str())
}

/// True for a word in upper case: a document may have any method (OpenAPI 3.2, `additionalOperations`).
fn may_be_method(word: &str) -> bool {
    let is_upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    word.bytes().all(is_upper) && word.bytes().any(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use crate::binding::HttpBinding;
    use crate::{Binding, OperationKind, OperationSpec};

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
            assert_eq!(super::check_pattern(pattern, []), Ok(()), "{pattern}");
        }
        #[cfg(any(feature = "openapi", feature = "registry"))]
        for pattern in ["DELTE *", "GTE /pets", "copy *", "Copy /pets", "- /pets"] {
            assert!(super::check_pattern(pattern, [&delete]).unwrap_err().contains("is no method"), "{pattern}");
        }
        // With other operations, only some of these patterns are right.
        #[cfg(any(feature = "openapi", feature = "registry"))]
        for (pattern, may) in [
            ("DELTE *", true),
            (" BATCH /pets", true),
            ("delte *", false),
            ("Copy /pets", false),
            ("- /pets", false),
            (" ", false),
        ] {
            assert!(super::check_pattern(pattern, [&delete]).is_err(), "{pattern}");
            assert_eq!(super::may_name_a_method(pattern), may, "{pattern}");
        }
    }

    #[test]
    fn documents_may_have_any_method() {
        let of = |method: &str, name: &str| {
            let mut spec = OperationSpec::new(OperationKind::Mutation, "shop", name).unwrap();
            spec.binding = Binding::Http(HttpBinding::owned(method.to_owned(), "/pets"));
            spec
        };
        for (method, pattern, selects) in [
            ("COPY", "COPY *", true),
            ("copy", "COPY /pets", true),
            ("M-SEARCH", "M-SEARCH *", true),
            ("delete", "DELETE *", true),
            ("Delete", "delete /pets", true),
            ("COPY", "DELETE *", false),
            ("DELETE", "COPY *", false),
            ("COPY", "COPY /toys", false),
            // These are similar to methods of HTTP.
            ("BATCH", "BATCH *", true),
            ("watch", "WATCH *", true),
            ("SET", "SET /toys", false),
        ] {
            let spec = of(method, "x");
            assert_eq!(spec.matches(pattern), selects, "{method} {pattern}");
            #[cfg(any(feature = "openapi", feature = "registry"))]
            assert_eq!(super::check_pattern(pattern, [&spec]), Ok(()), "{pattern}");
        }
        #[cfg(any(feature = "openapi", feature = "registry"))]
        assert!(super::check_pattern("batch *", [&of("BATCH", "x")]).is_err());
        assert!(of("POST", "SMS to all").matches("SMS *"));
    }
}
