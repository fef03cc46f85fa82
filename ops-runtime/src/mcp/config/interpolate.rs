//! Variables in the strings of a configuration: `${VAR}`, `${VAR:-default}`, `${env:VAR}`.

/// Replaces variables by their values, which `look_up` returns.
///
/// Other text, such as a single dollar sign or an unclosed brace, stays unchanged.
pub(super) fn interpolate(text: &str, look_up: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, reference)) = rest.split_once("${") {
        let Some((inside, after)) = reference.split_once('}') else { break };
        out.push_str(before);
        out.push_str(&value(inside, look_up)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn value(reference: &str, look_up: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let named = reference.strip_prefix("env:").unwrap_or(reference);
    let (name, default) = match named.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (named, None),
    };
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!(
            "`${{{reference}}}` is no variable: write `${{NAME}}`, `${{NAME:-default}}` or `${{env:NAME}}`"
        ));
    }
    // It would end at the inner brace.
    if default.is_some_and(|default| default.contains("${")) {
        return Err(format!("the default of `{name}` holds another variable, which it cannot: write a text"));
    }
    // As in a shell, an empty variable gets the default, too.
    match (look_up(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(format!("the variable `{name}` is not set: set it, or write `${{{name}:-default}}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_up(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/home/ann".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${HOME}".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn references_become_values() {
        for (text, expected) in [
            ("", ""),
            ("plain $ text $HOME {}", "plain $ text $HOME {}"),
            ("${HOME}", "/home/ann"),
            ("${env:HOME}/x", "/home/ann/x"),
            ("a${HOME}b${HOME}c", "a/home/annb/home/annc"),
            ("${HOME:-else}", "/home/ann"),
            ("${UNSET:-else}", "else"),
            ("${env:UNSET:-else}", "else"),
            ("${UNSET:-}", ""),
            ("${UNSET:-http://host:80/}", "http://host:80/"),
            ("${EMPTY}", ""),
            ("${EMPTY:-else}", "else"),
            // Variables in a value are not replaced: it may come from a stranger.
            ("${NESTED}", "${HOME}"),
            ("${HOME", "${HOME"),
            ("é${HOME}é", "é/home/anné"),
        ] {
            assert_eq!(interpolate(text, &look_up).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_set_or_no_variable_is_named() {
        for (text, expected) in [
            ("Bearer ${TOKEN}", "the variable `TOKEN` is not set"),
            ("${env:TOKEN}", "the variable `TOKEN` is not set"),
            ("${input:token}", "`${input:token}` is no variable"),
            ("${}", "`${}` is no variable"),
            // Whether the variable is set or not.
            ("${HOME:-${UNSET}}", "the default of `HOME` holds another variable"),
            ("${UNSET:-s3cret${HOME}/x}", "the default of `UNSET` holds another variable"),
            ("${HOME ${HOME}", "`${HOME ${HOME}` is no variable"),
        ] {
            let error = interpolate(text, &look_up).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
