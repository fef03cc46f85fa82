//! A quick check by schemas whose keywords can be looked at one by one, as those of most inputs can: it keeps no results
//! and counts no steps.
//!
//! Each part of a value is looked at by one schema, and by those to which a chain of references leads from it, so that the
//! work is in proportion to the value's size.

use serde_json::Value;

use super::keyword::{Id, Keyword, MAX_DEPTH, Schema};

/// True if [`passes`] understands every schema.
pub(super) fn are_plain(schemas: &[Schema]) -> bool {
    schemas.iter().all(|schema| match schema {
        Schema::Any | Schema::Never => true,
        Schema::Rules(rules) => !rules.is_cyclic && rules.keywords.iter().all(is_plain) && is_chain(&rules.keywords),
    })
}

/// True if a schema leads to others in one way: by a reference, or into the value's parts. In two ways, each part of a value
/// might be looked at twice as often as the one around it.
fn is_chain(keywords: &[Keyword]) -> bool {
    let references = keywords.iter().filter(|keyword| matches!(keyword, Keyword::Ref(_))).count();
    let has_parts = keywords.iter().any(|keyword| matches!(keyword, Keyword::Properties(_) | Keyword::Items { .. }));
    references == 0 || references == 1 && !has_parts
}

fn is_plain(keyword: &Keyword) -> bool {
    match keyword {
        Keyword::Types(_)
        | Keyword::Literals(_)
        | Keyword::Number(_)
        | Keyword::Required(_)
        | Keyword::Items { .. }
        | Keyword::Ref(_) => true,
        Keyword::Text(rules) => rules.patterns.is_empty(),
        Keyword::Array { unique, .. } => !unique,
        Keyword::Object { .. } => true,
        Keyword::Properties(properties) => properties.patterns.is_empty(),
        _ => false,
    }
}

/// True if a value conforms to a schema; `false` if it does not, or if that takes a closer look.
pub(super) fn passes(schemas: &[Schema], id: Id, value: &Value, depth: u32) -> bool {
    let rules = match schemas.get(id as usize) {
        Some(Schema::Rules(rules)) => rules,
        Some(Schema::Never) => return false,
        Some(Schema::Any) | None => return true,
    };
    if depth >= MAX_DEPTH {
        return false;
    }
    // A loop, and the most frequent keyword in it: three quarters of the instructions of `all`.
    for keyword in &rules.keywords {
        let conforms = match keyword {
            Keyword::Types(types) => types.admits(value),
            keyword => passes_by(schemas, keyword, value, depth),
        };
        if !conforms {
            return false;
        }
    }
    true
}

#[inline(never)]
fn passes_by(schemas: &[Schema], keyword: &Keyword, value: &Value, depth: u32) -> bool {
    let depth = depth + 1;
    match (keyword, value) {
        (Keyword::Properties(properties), Value::Object(map)) => map.iter().all(|(name, value)| {
            let id = properties.find(name).or(properties.additional);
            id.is_none_or(|id| passes(schemas, id, value, depth))
        }),
        (Keyword::Items { prefix, rest }, Value::Array(items)) => items.iter().enumerate().all(|(index, item)| {
            let id = prefix.get(index).copied().or(*rest);
            id.is_none_or(|id| passes(schemas, id, item, depth))
        }),
        // So that a list of names, however long, costs no more than the object.
        (Keyword::Required(names), Value::Object(map)) => {
            names.len() <= map.len() && names.iter().all(|name| map.contains_key(&**name))
        }
        (Keyword::Literals(literals), value) => value.as_str().is_some_and(|text| literals.has_text(text)),
        (Keyword::Number(rules), Value::Number(number)) => rules.check(number),
        (Keyword::Text(rules), Value::String(text)) => rules.check_without_patterns(text),
        (Keyword::Array { min, max, .. }, Value::Array(items)) => within(items.len(), *min, *max),
        (Keyword::Object { min, max }, Value::Object(map)) => within(map.len(), *min, *max),
        (Keyword::Ref(id), value) => passes(schemas, *id, value, depth),
        _ => true,
    }
}

fn within(length: usize, min: Option<u64>, max: Option<u64>) -> bool {
    let length = length as u64;
    min.is_none_or(|min| length >= min) && max.is_none_or(|max| length <= max)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Validator;
    use super::super::check::Run;
    use super::*;
    use crate::normalise::budget::Budget;

    #[test]
    fn it_passes_what_the_full_check_passes() {
        let schemas = [
            json!({ "type": "integer", "minimum": 2 }),
            json!({ "type": ["string", "null"], "minLength": 2, "format": "uuid" }),
            json!({ "enum": ["a", "bc", "d"] }),
            json!({ "prefixItems": [{ "type": "integer" }], "items": { "type": "string" }, "maxItems": 2 }),
            json!({ "prefixItems": [true, { "minLength": 2 }], "items": false, "minItems": 1 }),
            json!({
                "type": "object", "required": ["a"], "maxProperties": 2,
                "properties": { "a": { "$ref": "#/$defs/a" }, "b": false }, "additionalProperties": { "type": "string" },
                "$defs": { "a": { "type": "array", "items": { "$ref": "#/$defs/b" } }, "b": { "required": ["c"] } },
            }),
            json!({ "properties": { "a": { "$ref": "#" } }, "type": "object", "required": ["b"] }),
        ];
        // Literals that are no texts, and a list of names that is longer than the object, take a closer look.
        let undecided = [json!({ "enum": [3, null] }), json!({ "required": ["a", "a"] })];
        let values = [
            json!(null),
            json!(2),
            json!(2.0),
            json!(1.5),
            json!("a"),
            json!("bc"),
            json!([]),
            json!([1, "x"]),
            json!(["x", "xy"]),
            json!([1, "x", "y"]),
            json!({}),
            json!({ "a": [] }),
            json!({ "a": [1, { "c": 1 }], "z": "z" }),
            json!({ "a": [{}], "b": 1 }),
            json!({ "a": { "b": 1 }, "b": 1 }),
            json!({ "a": [], "x": "x", "y": "y" }),
        ];
        let (mut passed, mut refused) = (0, 0);
        for schema in schemas.iter().chain(&undecided) {
            let validator = Validator::new(schema);
            assert!(validator.is_plain, "{schema}");
            for value in &values {
                let conforms = Run::new(&validator, &Budget::new()).whole(value);
                let passes = validator.passes_plainly(value);
                assert!(conforms || !passes, "{value} by {schema}");
                assert!(passes || !conforms || undecided.contains(schema), "{value} by {schema}");
                if conforms { passed += 1 } else { refused += 1 }
            }
        }
        assert!(passed > 20 && refused > 20, "{passed} passed and {refused} were refused");
    }

    #[test]
    fn what_it_does_not_understand_is_left_to_the_full_check() {
        for schema in [
            json!({ "pattern": "a" }),
            json!({ "properties": { "a": { "uniqueItems": true } } }),
            json!({ "patternProperties": { "a": true } }),
            json!({ "items": { "anyOf": [{ "type": "string" }, { "type": "null" }] } }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/a" , "type": "null" } } }),
            json!({ "not": { "type": "string" } }),
            // What is not checked is told after the full check.
            json!({ "properties": { "a": { "$ref": "#/$defs/none" } } }),
        ] {
            assert!(!Validator::new(&schema).is_plain, "{schema}");
        }
    }

    /// Schemas that lead to the same part in two ways, at each level again.
    #[test]
    fn the_work_does_not_grow_with_each_level() {
        let twice = json!({
            "$ref": "#/$defs/node",
            "$defs": {
                "node": { "$ref": "#/$defs/base", "properties": { "a": { "$ref": "#/$defs/node" } } },
                "base": { "properties": { "a": { "$ref": "#/$defs/node" } } },
            },
        });
        let value = (0..100).fold(json!({ "b": 1 }), |inner, _| json!({ "a": inner }));
        assert!(Validator::new(&twice).check(&value));
        let link = |n: u32| {
            let next = format!("#/$defs/c{}", n + 1);
            (format!("c{n}"), json!({ "$ref": next, "$dynamicRef": next }))
        };
        let mut links: serde_json::Map<_, _> = (0..60).map(link).collect();
        links.insert("c60".to_owned(), json!({ "type": "object" }));
        assert!(Validator::new(&json!({ "$ref": "#/$defs/c0", "$defs": links })).check(&value));
    }

    #[test]
    fn a_value_is_followed_no_deeper_than_by_the_full_check() {
        for (schema, last) in [
            (json!({ "items": { "$ref": "#" } }), json!([])),
            (json!({ "items": { "type": ["array", "null"], "items": { "$ref": "#" } } }), json!(null)),
        ] {
            let validator = Validator::new(&schema);
            for depth in [MAX_DEPTH - 2, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1] {
                let value = (0..depth).fold(last.clone(), |inner, _| json!([inner]));
                let conforms = Run::new(&validator, &Budget::new()).whole(&value);
                assert_eq!(validator.passes_plainly(&value), conforms, "{depth} by {schema}");
                assert_eq!(conforms, depth < MAX_DEPTH, "{depth} by {schema}");
            }
        }
    }
}
