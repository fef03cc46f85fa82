//! Calls as examples.

use ops_codegen::described::Described;
use ops_runtime::spec::{OperationKind, OperationSpec, pointer};
use serde_json::Value;

use super::operation::Property;
use crate::report::line;

/// A call in Rust, of the generated module.
pub(super) fn rust(spec: &OperationSpec, described: &Described) -> String {
    let Some(names) = described.operations.get(spec.id.as_ref()) else { return String::new() };
    let module = module(spec.namespace());
    let at = format!("/operations/{}/input", pointer::escaped(&spec.id));
    let input = match described.types.get(&at) {
        Some(type_) => {
            let field = |field: &ops_codegen::described::Field| {
                let value = if field.is_optional { "None".to_owned() } else { literal(&field.type_) };
                format!("{}: {value}", field.ident)
            };
            let fields: Vec<String> = type_.fields.iter().map(field).collect();
            let fields = if fields.is_empty() { String::new() } else { format!(" {} ", fields.join(", ")) };
            format!("{module}::{} {{{fields}}}", type_.name)
        }
        None => literal(&names.input),
    };
    let call = if spec.kind == OperationKind::Subscription { "subscribe" } else { "execute" };
    format!("client.{call}::<{module}::{}>({input}).await?", names.name)
}

/// The module of a namespace, which a program may call as it likes.
fn module(namespace: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = namespace.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// A value of a type; one that a caller has to make is left to do.
fn literal(type_: &str) -> String {
    match type_ {
        "()" => "()".to_owned(),
        "bool" => "true".to_owned(),
        "i32" | "i64" | "u32" | "u64" => "1".to_owned(),
        "f64" => "1.5".to_owned(),
        "String" | "::std::string::String" => "\"text\".to_owned()".to_owned(),
        list if list.starts_with("Vec<") => "vec![]".to_owned(),
        option if option.starts_with("Option<") => "None".to_owned(),
        other => format!("todo!(\"{}\")", other.replace(['"', '\\', '{', '}'], "")),
    }
}

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
        assert_eq!((module("git-hub.2"), module("2go")), ("git_hub_2".to_owned(), "_2go".to_owned()));
        assert_eq!(literal("Option<\"}"), "None");
        assert_eq!(literal("x\"}"), "todo!(\"x\")");
    }
}
