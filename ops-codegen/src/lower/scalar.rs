//! Numbers, strings and constants.

use std::collections::HashSet;

use serde_json::Value;

use super::{Lowered, Lowering, Object, Site};
use crate::names::{upper_camel, variant};
use crate::types::{Constant, DESCRIPTIONS, Format, NAMES, Shape, Type};

/// The types of strings by format: text by default.
pub(crate) fn string(view: &Object, formats: &[Format]) -> Type {
    let format = view.get("format").and_then(Value::as_str);
    if format == Some("binary") {
        return Type::Body;
    }
    let known = format.and_then(|name| Format::ALL.iter().find(|(known, _)| *known == name));
    match known {
        Some((_, format)) if formats.contains(format) => Type::Format(*format),
        _ => Type::String,
    }
}

/// `i64` unless the format or the limits need another width. Limits that exceed a format of 32 bits or less widen it.
///
/// A minimum of 0 alone only limits values; it gives `u64` only together with a maximum beyond `i64`.
pub(crate) fn integer(view: &Object) -> Type {
    let limit = |key: &str| view.get(key).and_then(Value::as_f64);
    let beyond = ["maximum", "exclusiveMaximum"].iter().any(|key| {
        view.get(*key)
            .is_some_and(|limit| limit.as_i64().is_none() && limit.as_f64().is_some_and(|limit| limit > 9.3e18))
    });
    let positive = ["minimum", "exclusiveMinimum"].into_iter().filter_map(limit).any(|limit| limit >= 0.0);
    let within = |least: f64, most: f64| {
        limit("minimum").is_none_or(|limit| limit >= least)
            && limit("exclusiveMinimum").is_none_or(|limit| limit >= least - 1.0)
            && limit("maximum").is_none_or(|limit| limit <= most)
            && limit("exclusiveMaximum").is_none_or(|limit| limit <= most + 1.0)
    };
    match view.get("format").and_then(Value::as_str) {
        Some("int32" | "int16" | "int8" | "uint8" | "uint16") if within(f64::from(i32::MIN), f64::from(i32::MAX)) => {
            Type::I32
        }
        Some("uint32") if within(0.0, f64::from(u32::MAX)) => Type::U32,
        Some("uint64" | "uint") => Type::U64,
        _ if beyond && positive => Type::U64,
        _ => Type::I64,
    }
}

/// `f64`, but for a format of integers.
pub(crate) fn number(view: &Object) -> Type {
    match view.get("format").and_then(Value::as_str) {
        Some("int8" | "int16" | "int32" | "int64" | "uint8" | "uint16" | "uint32" | "uint64" | "uint") => integer(view),
        _ => Type::F64,
    }
}

impl Lowering<'_> {
    /// Lowers `const` and `enum`.
    pub(crate) fn constants(&mut self, view: &Object, site: &Site) -> Lowered {
        let values = match (view.get("const"), view.get("enum")) {
            (Some(value), _) => vec![value.clone()],
            (None, Some(Value::Array(values))) => values.clone(),
            _ => return self.any(site, "`enum` is no list"),
        };
        let words = |key: &str| {
            let words = view.get(key).and_then(Value::as_array);
            // A null that was added to the values has none.
            let added = usize::from(values.last().is_some_and(Value::is_null));
            words.filter(|words| words.len() == values.len() || words.len() + added == values.len()).cloned()
        };
        let (names, descriptions) = (words(NAMES).or_else(|| words("x-enumNames")), words(DESCRIPTIONS));
        let word = |words: &Option<Vec<Value>>, i: usize| {
            let word = words.as_ref()?.get(i)?.as_str()?.trim();
            (!word.is_empty()).then(|| word.to_owned())
        };
        let (_, mut nullable) = super::view::types_of(view);
        let text = view.get("type").and_then(Value::as_str) == Some("string");
        let mut constants: Vec<Constant> = Vec::new();
        for (i, value) in values.into_iter().enumerate() {
            if value.is_null() {
                nullable = true;
                continue;
            }
            // YAML reads `on` and `1.0` as other types.
            let value = match value {
                Value::Bool(_) | Value::Number(_) if text => Value::String(value.to_string()),
                other => other,
            };
            let ident = wish(word(&names, i).as_deref(), &value);
            constants.push(Constant { ident, value, docs: word(&descriptions, i) });
        }
        if constants.is_empty() {
            return Lowered::Type(if nullable { Type::Unit } else { Type::Value });
        }
        super::nullable_if(nullable, self.enumeration(constants, site))
    }

    /// An enum of these values.
    pub(crate) fn enumeration(&mut self, constants: Vec<Constant>, site: &Site) -> Lowered {
        let mut kept: Vec<Constant> = Vec::new();
        let mut known: HashSet<Value> = HashSet::new();
        for constant in constants {
            if known.insert(constant.value.clone()) {
                kept.push(constant);
            }
        }
        if kept.iter().all(|constant| constant.value.is_string()) {
            return Lowered::Shape(Shape::Names(kept));
        }
        let literal = |value: &Value| value.is_string() || value.is_boolean() || value.is_i64() || value.is_f64();
        if kept.iter().all(|constant| literal(&constant.value)) {
            return Lowered::Shape(Shape::Values(kept));
        }
        let is_integer = |value: &Value| literal(value) || value.is_u64();
        let message = match kept.iter().all(|constant| is_integer(&constant.value)) {
            true => "`enum` holds an integer that is too large for `i64`",
            false => "`enum` holds values that are not scalars",
        };
        self.any(site, message)
    }
}

/// The preferred name of a constant.
pub(crate) fn wish(name: Option<&str>, value: &Value) -> String {
    match (name, value) {
        (Some(name), _) if !name.is_empty() => upper_camel(name),
        (_, Value::String(text)) => variant(text),
        (_, other) => upper_camel(&other.to_string()),
    }
}
