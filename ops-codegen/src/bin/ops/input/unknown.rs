//! Arguments that an operation does not have.

use ops_runtime::nearest::{nearest, question};
use serde_json::{Map, Value};

use super::{OF_OTHERS, can_declare, has_kind, views};

/// How many names are shown if none is similar to the given one.
const SHOWN: usize = 8;

/// How many unknown arguments are reported.
const TOLD: usize = 5;

/// Fails for members that a schema does not declare, if it is complete: an object that declares properties and does not
/// allow others. `closed` makes the input itself complete, whatever it declares.
pub(crate) fn check(input: &Value, schema: &Value, closed: bool) -> Result<(), String> {
    let mut unknown = Vec::new();
    inside(input, &views(vec![schema], schema), schema, closed, "", &mut unknown);
    match unknown.len() {
        0 => Ok(()),
        many => {
            unknown.truncate(TOLD);
            if many > TOLD {
                unknown.push(format!("and {} more", many - TOLD));
            }
            Err(unknown.join("\n"))
        }
    }
}

fn inside(value: &Value, schemas: &[&Value], root: &Value, closed: bool, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            let closed = !schemas.iter().any(|schema| is_open(schema))
                && (closed || schemas.iter().any(|schema| declares(schema)));
            for (name, value) in object {
                let found: Vec<&Value> = properties(schemas, name).collect();
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if !found.is_empty() {
                    inside(value, &views(found, root), root, false, &path, unknown);
                } else if closed {
                    unknown.push(told(&path, schemas, root));
                }
            }
        }
        Value::Array(items) => {
            let found = schemas.iter().filter_map(|schema| schema.get("items")).collect();
            let found = views(found, root);
            items.iter().for_each(|item| inside(item, &found, root, false, path, unknown));
        }
        _ => {}
    }
}

fn declared(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn properties<'a>(schemas: &[&'a Value], name: &str) -> impl Iterator<Item = &'a Value> {
    schemas.iter().filter_map(move |schema| declared(schema)?.get(name))
}

/// True if a schema declares properties.
fn declares(schema: &Value) -> bool {
    declared(schema).is_some_and(|properties| !properties.is_empty())
        || OF_OTHERS.into_iter().any(|keyword| schema.get(keyword) == Some(&Value::Bool(false)))
}

/// True if a schema allows other properties.
fn is_open(schema: &Value) -> bool {
    let more = |key: &str| schema.get(key).is_some_and(|more| more == true || more.is_object());
    let says = |key: &str| schema.get(key).is_some();
    let is_free = has_kind(schema, "object") && !can_declare(schema) && !OF_OTHERS.into_iter().any(says);
    *schema == Value::Bool(true) || OF_OTHERS.into_iter().any(more) || says("patternProperties") || is_free
}

/// The message: the given name, and the likely ones or those that there are.
fn told(path: &str, schemas: &[&Value], root: &Value) -> String {
    let (parent, name) = path.rsplit_once('.').map_or(("", path), |(parent, name)| (parent, name));
    let full = |name: &str| if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
    let mut names: Vec<&str> = Vec::new();
    for known in schemas.iter().filter_map(|schema| declared(schema)).flat_map(Map::keys) {
        if !names.contains(&known.as_str()) {
            names.push(known);
        }
    }
    let mut meant: Vec<String> = nearest(name, names.iter().copied(), 3).into_iter().map(full).collect();
    let is_same = |path: &String| path.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case(name));
    let none = meant.is_empty();
    let deeper = deeper(name, &names, schemas, root).into_iter().filter(|path| none || is_same(path));
    meant.extend(deeper.map(|name| full(&name)));
    meant.truncate(3);
    if !meant.is_empty() {
        return format!("unknown argument `{path}`{}", question(&meant.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    let what = if parent.is_empty() { "the operation".to_owned() } else { format!("`{parent}`") };
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{}`", full(name))).collect();
    if names.len() > SHOWN {
        shown.push(format!("and {} more", names.len() - SHOWN));
    }
    let has = if shown.is_empty() { "none".to_owned() } else { shown.join(", ") };
    format!("unknown argument `{path}`: {what} has {has}")
}

/// The same name one level deeper: `name` for `body.name`.
fn deeper(name: &str, names: &[&str], schemas: &[&Value], root: &Value) -> Vec<String> {
    let below = |outer: &&str| {
        let inner = views(properties(schemas, outer).collect(), root);
        let inner = inner.into_iter().filter_map(declared).flat_map(Map::keys).map(String::as_str);
        let found = nearest(name, inner.collect::<Vec<_>>(), 1);
        found.first().map(|inner| format!("{outer}.{inner}"))
    };
    names.iter().filter_map(below).take(3).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told_of(input: Value, closed: bool) -> String {
        let schema = json!({
            "type": "object",
            "properties": {
                "petId": { "type": "integer" },
                "filter.name": { "type": "string" },
                "body": { "$ref": "#/$defs/Body" },
                "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                "free": { "type": "object", "properties": { "a": {} }, "additionalProperties": true },
                "any": {},
                "either": { "oneOf": [{ "properties": { "left": {} } }, { "properties": { "right": {} } }] },
                "when": {
                    "type": "object",
                    "properties": { "method": { "enum": ["card", "iban"] } },
                    "if": { "properties": { "method": { "const": "card" } } },
                    "then": { "type": "object", "properties": { "number": { "type": "string" } }, "required": ["number"] },
                    "else": {
                        "type": "object",
                        "if": { "required": ["country"] },
                        "then": { "properties": { "iban": { "type": "string" } } },
                        "else": { "type": "object", "required": ["method"] },
                    },
                    "dependentSchemas": {
                        "iban": { "properties": { "holder": { "type": "string" } } },
                        "number": { "additionalProperties": true },
                        "method": true,
                    },
                },
                "loose": { "anyOf": [{ "properties": { "left": {} } }, { "type": "object" }] },
            },
            "$defs": {
                "Body": {
                    "allOf": [{ "properties": { "name": { "type": "string" } } }],
                    "properties": { "more": { "$ref": "#/$defs/Body" }, "list": { "items": { "$ref": "#/$defs/Body" } } },
                },
            },
        });
        check(&input, &schema, closed).err().unwrap_or_default()
    }

    #[test]
    fn what_the_schema_does_not_know_is_told() {
        for (input, message) in [
            (json!({ "petid": 7 }), "unknown argument `petid`: did you mean `petId`?"),
            (json!({ "filter": { "nmae": 1 } }), "unknown argument `filter`: did you mean `filter.name`?"),
            (json!({ "name": "x" }), "unknown argument `name`: did you mean `filter.name` or `body.name`?"),
            (json!({ "body": { "nmae": "x" } }), "unknown argument `body.nmae`: did you mean `body.name`?"),
            (
                json!({ "body": { "more": { "list": [{ "nam": 1 }] } } }),
                "unknown argument `body.more.list.nam`: did you mean `body.more.list.name`?",
            ),
            (json!({ "either": { "lift": 1 } }), "unknown argument `either.lift`: did you mean `either.left`?"),
            (json!({ "when": { "nmber": 1 } }), "unknown argument `when.nmber`: did you mean `when.number`?"),
            (
                json!({ "body": { "zzz": 1 }, "petid": 1 }),
                "unknown argument `body.zzz`: `body` has `body.more`, `body.list`, `body.name`\n\
                 unknown argument `petid`: did you mean `petId`?",
            ),
        ] {
            assert_eq!(told_of(input.clone(), false), message, "{input}");
        }
        let many: Map<String, Value> = (0..9).map(|at| (format!("zzz{at}"), Value::Null)).collect();
        assert!(told_of(Value::Object(many), false).ends_with("\nand 4 more"));
    }

    #[test]
    fn no_member_of_a_large_union_is_forgotten() {
        let told = |members: usize, name: &str| {
            let of = |at: usize| json!({ "type": "object", "properties": { format!("p{at}"): { "type": "string" } } });
            let definitions: Map<String, Value> = (0..members).map(|at| (format!("V{at}"), of(at))).collect();
            let union: Vec<Value> = (0..members).map(|at| json!({ "$ref": format!("#/$defs/V{at}") })).collect();
            let schema = json!({ "properties": { "connector": { "oneOf": union } }, "$defs": definitions });
            let mut input = Value::Null;
            crate::input::add(&mut input, &[format!("connector.{name}=5")], &schema).unwrap();
            assert_eq!(input, json!({ "connector": { name: "5" } }));
            check(&input, &schema, true).err().unwrap_or_default()
        };
        for name in ["p0", "p72", "p199"] {
            assert_eq!(told(200, name), "");
        }
        // Of one that is larger still, not all members are known, so that nothing is refused.
        let schema = json!({ "oneOf": vec![json!({ "properties": { "a": {} } }); 5000] });
        assert_eq!(check(&json!({ "b": 1 }), &schema, false), Ok(()));
    }

    #[test]
    fn what_may_be_there_is_not() {
        for input in [
            json!({ "petId": 7, "body": { "name": "x", "more": { "more": { "name": "y" } } } }),
            json!({ "labels": { "x": "y" }, "free": { "b": 1 }, "any": { "x": { "y": 1 } }, "loose": { "z": 1 } }),
            json!({ "either": { "left": 1, "right": 2 }, "filter.name": "x" }),
            json!({ "when": { "method": "card", "number": "4", "iban": "x", "holder": "y" } }),
            json!(7),
        ] {
            assert_eq!(told_of(input.clone(), false), "", "{input}");
        }
        assert_eq!(check(&json!({ "x": 1 }), &json!({}), false), Ok(()));
        let none = check(&json!({ "x": 1 }), &json!({}), true).unwrap_err();
        assert_eq!(none, "unknown argument `x`: the operation has none");
    }
}
