//! The patterns of rules and filters: one that matches nothing is reported, since a misspelt rule protects nothing.

use std::collections::BTreeSet;

use ops_runtime::nearest::{nearest, question};
use ops_runtime::spec::{OperationSpec, check_pattern, may_name_a_method};

/// How many operations are suggested for a pattern that matches none.
const PROPOSED: usize = 3;

/// Patterns, each with the option or key in which it was given.
pub(crate) struct Patterns(Vec<(String, String)>);

impl Patterns {
    /// The patterns of an option or a key, such as `--deny`.
    pub(crate) fn new<'a>(given: impl IntoIterator<Item = (&'a str, &'a [String])>) -> Self {
        let each = |(place, patterns): (&'a str, &'a [String])| {
            patterns.iter().map(move |pattern| (place.to_owned(), pattern.clone()))
        };
        Self(given.into_iter().flat_map(each).collect())
    }

    /// The patterns that match none of these operations.
    pub(crate) fn without_effect<'a>(&self, specs: impl IntoIterator<Item = &'a OperationSpec>) -> Vec<Idle> {
        let specs: Vec<&OperationSpec> = specs.into_iter().collect();
        let idle = self.0.iter().filter(|(_, pattern)| !specs.iter().any(|spec| spec.matches(pattern)));
        let told = idle.map(|(place, pattern)| {
            let wrong = check_pattern(pattern, specs.iter().copied()).err();
            let is_wrong = wrong.is_some();
            let why = wrong.map_or_else(
                || format!(", which matches no operation{}", question(&alike(pattern, &specs))),
                |error| format!(": {error}"),
            );
            let told = format!("`{place}` has `{pattern}`{why}");
            let is_always_wrong = is_wrong && !may_name_a_method(pattern);
            Idle { told, is_wrong, is_always_wrong, protects: place.ends_with("deny") || place.ends_with("ask") }
        });
        told.collect()
    }
}

/// A pattern that matches nothing.
#[derive(Debug)]
pub(crate) struct Idle {
    /// The message about it.
    pub(crate) told: String,
    /// True if it is a mistake for the known operations, such as `DELTE *`. Other operations could make it right.
    pub(crate) is_wrong: bool,
    /// True if it is a mistake for any operations, such as `delte *`.
    pub(crate) is_always_wrong: bool,
    /// True if it should have prevented calls.
    pub(crate) protects: bool,
}

/// The message about several.
pub(crate) fn joined(idle: &[Idle]) -> String {
    idle.iter().map(|idle| idle.told.as_str()).collect::<Vec<_>>().join("; ")
}

/// The ids, names, tags or paths that are similar to a pattern.
fn alike<'a>(pattern: &str, specs: &[&'a OperationSpec]) -> Vec<&'a str> {
    let text = pattern.trim().trim_matches('*');
    if let Some(tag) = text.strip_prefix("tag:") {
        return among(tag, specs.iter().flat_map(|spec| spec.tags.iter()));
    }
    if let Some(at) = text.find('/').filter(|at| text.get(..*at).is_some_and(|before| !before.contains('.'))) {
        let paths = specs.iter().filter_map(|spec| spec.http()).map(|http| http.path.as_ref());
        return among(text.get(at..).unwrap_or(text), paths);
    }
    let own = |spec: &&'a OperationSpec| if text.contains('.') { spec.id.as_ref() } else { spec.name() };
    among(text, specs.iter().map(own))
}

/// The names most similar to a text, each once.
fn among<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    nearest(text, names.collect::<BTreeSet<_>>(), PROPOSED)
}

#[cfg(test)]
mod tests {
    use ops_runtime::binding::HttpBinding;
    use ops_runtime::spec::OperationSpec;

    use super::*;

    #[test]
    fn a_pattern_that_selects_nothing_is_told() {
        let spec = OperationSpec::mutation("shop.deletePet").with_http(HttpBinding::new("DELETE", "/pets/{id}"));
        let spec = spec.with_tags(&["admin"]);
        let batch = OperationSpec::mutation("shop.batch").with_http(HttpBinding::new("BATCH", "/pets"));
        let told = |pattern: &str| {
            let given = [pattern.to_owned()];
            let idle = Patterns::new([("--deny", &given[..])]).without_effect([&spec, &batch]);
            let wrong = idle.first().map_or((false, false), |idle| (idle.is_wrong, idle.is_always_wrong));
            (idle.into_iter().map(|idle| idle.told).collect::<String>(), wrong)
        };
        for (pattern, expected) in [
            ("shop.*", ""),
            ("DELETE *", ""),
            ("BATCH *", ""),
            ("GET *", "`--deny` has `GET *`, which matches no operation"),
            ("tag:admn", "`--deny` has `tag:admn`, which matches no operation: did you mean `admin`?"),
            (
                "shop.deltePet",
                "`--deny` has `shop.deltePet`, which matches no operation: did you mean `shop.deletePet`?",
            ),
            ("deltePet*", "`--deny` has `deltePet*`, which matches no operation: did you mean `deletePet`?"),
            (
                "DELETE /pet/{id}",
                "`--deny` has `DELETE /pet/{id}`, which matches no operation: did you mean `/pets/{id}`?",
            ),
        ] {
            assert_eq!(told(pattern), (expected.to_owned(), (false, false)), "{pattern}");
        }
        for (pattern, expected, is_always) in [
            ("DELTE *", "did you mean `DELETE`?", false),
            ("delte *", "did you mean `DELETE`?", true),
            (" ", "is empty", true),
        ] {
            let (refused, wrong) = told(pattern);
            assert_eq!(wrong, (true, is_always), "{pattern}");
            assert!(refused.starts_with("`--deny` has") && refused.contains(expected), "{refused}");
        }
    }
}
