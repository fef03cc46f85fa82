//! Servers of a document whose URLs have variables.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use super::invalid;
use crate::model::lock::lock;
use crate::model::nearest::{closest, either};
use crate::{CallError, HttpBinding, ServerVariable};

/// How many names a message suggests.
const PROPOSED: usize = 3;

/// The variables of servers that the configuration sets.
pub(super) struct Variables {
    pub(super) set: BTreeMap<String, String>,
    /// The names of those that no known operation has: they are probably misspelt.
    unknown: Mutex<BTreeSet<String>>,
}

impl Variables {
    pub(super) fn new(set: BTreeMap<String, String>) -> Self {
        let unknown = Mutex::new(set.keys().cloned().collect());
        Self { set, unknown }
    }

    /// Notes which variables the servers of operations have, and logs those that are set and that no server has: calls would
    /// go to the server of the default, with their credentials.
    pub(super) fn meet<'a>(&self, bindings: impl Iterator<Item = &'a HttpBinding>) {
        let mut unknown = lock(&self.unknown);
        if unknown.is_empty() {
            return;
        }
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for binding in bindings {
            names.extend(binding.server_variables.iter().map(|variable| &*variable.name));
            names.extend(binding.server.as_deref().into_iter().flat_map(names_in));
        }
        unknown.retain(|name| !names.contains(name.as_str()));
        for name in unknown.iter() {
            let there_are = either(&closest(name, names.iter().copied(), PROPOSED));
            tracing::warn!("no server has the variable `{name}`, which is set: there is {there_are}");
        }
    }
}

/// The names between braces in a URL.
fn names_in(url: &str) -> impl Iterator<Item = &str> {
    url.split('{').skip(1).filter_map(|text| Some(text.split_once('}')?.0))
}

/// The URL with each variable replaced by the configured value, or else by the default.
///
/// # Errors
/// If a configured value is not allowed by the server, or if a variable has no value.
pub(super) fn filled<'a>(
    url: &'a str,
    variables: &[ServerVariable],
    set: &BTreeMap<String, String>,
) -> Result<Cow<'a, str>, CallError> {
    if !url.contains('{') {
        return Ok(Cow::Borrowed(url));
    }
    let mut filled = String::new();
    let mut rest = url;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        filled.push_str(before);
        let variable = variables.iter().find(|variable| variable.name == name);
        let value = set.get(name);
        if let (Some(variable), Some(value)) = (variable, value)
            && !variable.values.is_empty()
            && !variable.values.contains(value)
        {
            let message =
                format!("the server does not allow that value of `{name}`, but {}", variable.values.join(", "));
            return Err(invalid(&format!("/serverVariables{}", super::pointer(name)), message));
        }
        let value = value.map(String::as_str).or_else(|| variable.map(|variable| variable.default.as_ref()));
        filled.push_str(value.ok_or_else(|| {
            let name = name.escape_debug();
            CallError::execution(format!(
                "the operation's server has a variable `{name}` without a value: set it, or a base URL"
            ))
        })?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(Cow::Owned(filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables() {
        let variables =
            [ServerVariable::new("region", "eu").with_values(&["eu", "us"]), ServerVariable::new("base", "v1")];
        let fill = |url: &str, set: &[(&str, &str)]| {
            let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            filled(url, &variables, &set).map(Cow::into_owned)
        };
        let url = "https://{region}.h.test/{base}";
        assert_eq!(fill(url, &[]).unwrap(), "https://eu.h.test/v1");
        assert_eq!(fill(url, &[("region", "us"), ("base", "v{2}"), ("x", "y")]).unwrap(), "https://us.h.test/v{2}");
        assert_eq!(fill("https://{own}/", &[("own", "h.test")]).unwrap(), "https://h.test/");
        let error = fill(url, &[("region", "mars")]).unwrap_err();
        assert_eq!(error.details()["violations"][0]["pointer"], "/serverVariables/region");
        assert!(fill("https://{nothing}/", &[]).unwrap_err().message().contains("`nothing`"));
        assert_eq!(fill("https://h.test/{open", &[]).unwrap(), "https://h.test/{open");
    }
}
