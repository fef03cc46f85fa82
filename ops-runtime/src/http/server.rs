//! Servers of a document whose URLs have variables.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::invalid;
use crate::{CallError, ServerVariable};

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
