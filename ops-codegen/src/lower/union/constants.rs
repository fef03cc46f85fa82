//! Unions of constants.

use serde_json::Value;

use super::{Member, is_union};
use crate::lower::scalar::{string, wish};
use crate::lower::{Object, text};
use crate::types::{Constant, Format, Type};

/// The kinds of unions of constants.
pub(super) enum Constants {
    /// Plain strings with a single constant, which is read as plain text.
    Text,
    /// The definition of an enum, by its reference, beside plain strings. The enum keeps every other string unchanged.
    Named(String),
    /// Several constants beside plain strings.
    Open(Vec<Constant>),
    All(Vec<Constant>),
}

/// The constants of a union whose members are all constants, or all strings with a constant among them.
pub(super) fn constants(members: &[Member], formats: &[Format]) -> Option<Constants> {
    let mut found: Vec<Constant> = Vec::new();
    let mut enums = Vec::new();
    let mut open = false;
    for member in members {
        let view = member.view.as_deref()?;
        let values = match (view.get("const"), view.get("enum")) {
            (Some(value), _) => vec![value.clone()],
            (None, Some(Value::Array(values))) => values.clone(),
            // Strings that a format makes another type, such as bytes, are no plain strings.
            _ if view.get("type").and_then(Value::as_str) == Some("string")
                && !is_union(view)
                && string(view, formats) == Type::String =>
            {
                open = true;
                continue;
            }
            _ => return None,
        };
        if !values.iter().all(|value| value.is_string() || value.is_number() || value.is_boolean()) {
            return None;
        }
        enums.push(member);
        let single = values.len() == 1;
        for value in values {
            // A number is less descriptive than its title; a string describes itself.
            let title = member.title.as_deref().filter(|_| single && !value.is_string());
            let docs = text(view_text(member)).filter(|_| single);
            found.push(Constant { ident: wish(title, &value), value, docs });
        }
    }
    if found.is_empty() || open && !found.iter().all(|constant| constant.value.is_string()) {
        return None;
    }
    match (enums.as_slice(), open) {
        ([Member { reference: Some(reference), .. }], true) => Some(Constants::Named(reference.clone())),
        // A single constant among arbitrary texts is not worth an enum.
        (_, true) if found.len() == 1 => Some(Constants::Text),
        (_, true) => Some(Constants::Open(found)),
        (_, false) => Some(Constants::All(found)),
    }
}

fn view_text(member: &Member) -> Option<&Object> {
    member.schema.as_object()
}
