//! The patterns of rules and filters: one that matches nothing is reported, since a misspelt rule protects nothing.

use std::collections::BTreeSet;

use ops_runtime::nearest::{nearest, question};
use ops_runtime::spec::{OperationSpec, check_pattern};

use crate::failure::Failure;

/// How many operations are suggested for a pattern that matches none.
const PROPOSED: usize = 3;

/// Patterns, each with the option or key in which it was given.
pub(crate) struct Patterns(Vec<(String, String)>);

impl Patterns {
    /// The patterns of an option or a key, such as `--deny`.
    ///
    /// # Errors
    /// If one can match no operation at all.
    pub(crate) fn new<'a>(given: impl IntoIterator<Item = (&'a str, &'a [String])>) -> Result<Self, Failure> {
        let mut all = Vec::new();
        for (place, patterns) in given {
            for pattern in patterns {
                let refused = |error| Failure::Usage(format!("`{place}` has `{pattern}`: {error}"));
                check_pattern(pattern).map_err(refused)?;
                all.push((place.to_owned(), pattern.clone()));
            }
        }
        Ok(Self(all))
    }

    /// The patterns that match none of these operations.
    pub(crate) fn without_effect<'a>(&self, specs: impl IntoIterator<Item = &'a OperationSpec>) -> Vec<Idle> {
        let specs: Vec<&OperationSpec> = specs.into_iter().collect();
        let idle = self.0.iter().filter(|(_, pattern)| !specs.iter().any(|spec| spec.matches(pattern)));
        let told = idle.map(|(place, pattern)| {
            let meant = question(&alike(pattern, &specs));
            let told = format!("`{place}` has `{pattern}`, which matches no operation{meant}");
            Idle { told, protects: place.ends_with("deny") || place.ends_with("ask") }
        });
        told.collect()
    }
}

/// A pattern that matches nothing.
#[derive(Debug)]
pub(crate) struct Idle {
    /// The message about it.
    pub(crate) told: String,
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
        let told = |pattern: &str| {
            let given = [pattern.to_owned()];
            let patterns = Patterns::new([("--deny", &given[..])])?;
            let idle = patterns.without_effect([&spec]);
            Ok(idle.into_iter().map(|idle| idle.told).collect::<String>())
        };
        for (pattern, expected) in [
            ("shop.*", ""),
            ("DELETE *", ""),
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
            assert_eq!(told(pattern).unwrap(), expected, "{pattern}");
        }
        for (pattern, expected) in [("DELTE *", "did you mean `DELETE`?"), (" ", "is empty")] {
            let Err(Failure::Usage(refused)) = told(pattern) else { panic!("{pattern} is taken") };
            assert!(refused.starts_with("`--deny` has") && refused.contains(expected), "{refused}");
        }
    }
}
