//! A call in a shell as an example.

use ops_runtime::spec::OperationSpec;
use serde_json::Value;

use super::operation::Property;
use crate::report::line;

/// A call by this command.
pub(super) fn shell(spec: &OperationSpec, properties: &[Property], document: Option<&str>) -> String {
    let mut words = vec!["ops".to_owned(), "call".to_owned()];
    words.extend(document.map(quoted));
    words.push(quoted(spec.name()));
    for property in properties.iter().filter(|property| property.required) {
        // The properties of a body are given one by one, if there are any that it requires.
        let start = format!("{}.", property.name);
        let has_parts = properties.iter().any(|other| other.required && other.name.starts_with(&start));
        let above = property.name.split_once('.').map(|(above, _)| above);
        let is_given = above.is_none_or(|above| {
            properties.iter().any(|other| other.required && other.name == above)
                || properties.iter().all(|p| p.name != above)
        });
        if !has_parts && is_given {
            words.push(quoted(&format!("{}={}", property.name, value(property))));
        }
    }
    if document.is_none() {
        words.push("-- COMMAND".to_owned());
    }
    words.join(" ")
}

fn value(property: &Property) -> String {
    match property.values.iter().find(|value| !value.is_null()) {
        Some(Value::String(text)) => return text.clone(),
        Some(other) => return other.to_string(),
        None => {}
    }
    let is = |kind: &str| property.kinds.iter().any(|one| one == kind);
    let text = match () {
        () if is("integer") => "1",
        () if is("number") => "1.5",
        () if is("boolean") => "true",
        () if is("object") => "{}",
        _ => "text",
    };
    text.to_owned()
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let word = line(word);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_safe_in_a_shell() {
        for (word, wanted) in [
            ("petId=7", "petId=7"),
            ("a b", "'a b'"),
            ("it's $(x)", r"'it'\''s $(x)'"),
            ("", "''"),
            ("a\u{1b}b\n", "'a\u{fffd}b '"),
        ] {
            assert_eq!(quoted(word), wanted);
        }
    }
}
