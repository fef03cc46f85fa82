//! Names that two parameters of a function have in one place of a request.

use std::collections::BTreeMap;

use super::shape::{Shape, Types};
use super::style::is_nameless;
use crate::{HttpBinding, HttpParameter, OperationSpec, ParameterLocation};

/// Logs a name in the query or in the cookies that two parameters of a function have, since only one of them gets the value.
///
/// The fields of a struct have names of their own there, which the macro does not know. An operation of a document is not
/// checked: other servers give such a value to both.
pub(super) fn tell_shared(spec: &OperationSpec, binding: &HttpBinding, input: &Shape) {
    if let Some((name, one, other)) = shared(spec, binding, input) {
        tracing::warn!(
            operation = spec.id.as_ref(),
            "the parameters `{one}` and `{other}` both take {name} in a request, and only one of them gets the value: rename a \
             field by `#[serde(rename = ..)]`, or give a parameter another place by `#[input(..)]`"
        );
    }
}

/// The first such name, with the properties of both parameters.
fn shared<'b>(spec: &OperationSpec, binding: &'b HttpBinding, input: &Shape) -> Option<(String, &'b str, &'b str)> {
    if !spec.input.is_made() {
        return None;
    }
    for place in [ParameterLocation::Query, ParameterLocation::Cookie] {
        let mut taken: BTreeMap<String, &str> = BTreeMap::new();
        for parameter in binding.parameters.iter().filter(|own| own.location == place) {
            let own: &str = &parameter.property;
            for name in names(parameter, &input.property(own)) {
                if let Some(other) = taken.insert(name.clone(), own).filter(|other| *other != own) {
                    return Some((name, other, own));
                }
            }
        }
    }
    None
}

/// The names of the pairs that a parameter is read from.
fn names(parameter: &HttpParameter, shape: &Shape) -> Vec<String> {
    let mut names = Vec::new();
    if !is_nameless(parameter, shape) {
        names.push(format!("`{}`", parameter.name));
    }
    if parameter.is_spread() && shape.may_be(Types::OBJECT) {
        names.extend(shape.names().iter().map(|name| format!("`{name}`")));
        names.extend(shape.has_others().then(|| "all other names".to_owned()));
    }
    names
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Schema;

    const QUERY: &[HttpParameter] = &[HttpParameter::query("a"), HttpParameter::query("b")];

    fn found(make: fn() -> Value, binding: &HttpBinding) -> Option<(String, String, String)> {
        let spec = OperationSpec::query("t.t").with_input(Schema::make(make));
        shared(&spec, binding, &Shape::of_input(&spec))
            .map(|(name, one, other)| (name, one.to_owned(), other.to_owned()))
    }

    #[test]
    fn a_name_belongs_to_one_parameter() {
        let two: fn() -> Value = || {
            let filter = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
            json!({
                "properties": { "a": { "$ref": "#/$defs/Filter" }, "b": { "anyOf": [{ "$ref": "#/$defs/Filter" }, { "type": "null" }] } },
                "$defs": { "Filter": filter },
            })
        };
        let beside: fn() -> Value =
            || json!({ "properties": { "a": { "type": "string" }, "b": { "properties": { "a": true, "b": true } } } });
        let maps: fn() -> Value = || {
            let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
            json!({ "properties": { "a": map, "b": map } })
        };
        let apart: fn() -> Value = || json!({ "properties": { "a": { "type": "object", "additionalProperties": true }, "b": { "properties": { "a": true } } } });
        let query = HttpBinding::new("GET", "/").with_parameters(QUERY);
        for (make, name) in
            [(two, Some("`name`")), (beside, Some("`a`")), (maps, Some("all other names")), (apart, None)]
        {
            let expected = name.map(|name| (name.to_owned(), "a".to_owned(), "b".to_owned()));
            assert_eq!(found(make, &query), expected);
        }
    }
}
