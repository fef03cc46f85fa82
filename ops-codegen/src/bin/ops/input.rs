//! Inputs from the command line, read by their schema.

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

pub(crate) use self::unknown::check;

mod unknown;

/// How many names of members are shown.
const SHOWN: usize = 8;

/// How many schemas are visited for one property; a document may have cycles.
const LIMIT: usize = 256;

/// Adds `NAME=VALUE` pairs to an input; `schema` is whole, with its `$defs`.
///
/// # Errors
/// What is wrong with each pair that cannot be added, in lines. The others are added.
pub(crate) fn add(input: &mut Value, pairs: &[String], schema: &Value) -> Result<(), String> {
    let (mut wrong, mut given) = (Vec::new(), HashSet::new());
    let views = views(vec![schema], schema);
    for pair in pairs {
        let Some((name, text)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            wrong.push(format!(
                "`{pair}` is no NAME=VALUE: write the name of a property of the input, `=`, and its value"
            ));
            continue;
        };
        let is_again = !given.insert(name);
        if let Err(message) = set(input, name, (text, is_again), &views, schema) {
            wrong.push(format!("`{name}`: {message}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Sets the value at a path. Of a list, a text is one more item; all else has one value.
fn set(
    target: &mut Value,
    path: &str,
    (text, is_again): (&str, bool),
    schemas: &[&Value],
    root: &Value,
) -> Result<(), String> {
    if target.is_null() {
        *target = Value::Object(Map::new());
    }
    let Some(object) = target.as_object_mut() else {
        return Err("it lies in a value that was given as a whole".to_owned());
    };
    let (name, rest) = split(path, schemas);
    let found: Vec<&Value> = schemas.iter().filter_map(|schema| schema.get("properties")?.get(name)).collect();
    let mut found = views(found, root);
    if found.is_empty() {
        // A property without a schema of its own.
        let others = schemas.iter().filter_map(|schema| schema.get("additionalProperties"));
        found = views(others.filter(|schema| schema.is_object()).collect(), root);
    }
    let slot = object.entry(name).or_insert(Value::Null);
    if let Some(rest) = rest {
        return set(slot, rest, (text, is_again), &found, root);
    }
    if kinds(&found).contains(&"array") && !text.trim_start().starts_with('[') {
        let items = views(found.iter().filter_map(|schema| schema.get("items")).collect(), root);
        let item = value(text, &items)?;
        return match slot {
            Value::Array(list) => {
                list.push(item);
                Ok(())
            }
            slot => replace(slot, Value::Array(vec![item])),
        };
    }
    if is_again {
        return Err(format!("it has one value, and `{text}` would be another"));
    }
    replace(slot, value(text, &found)?)
}

/// Sets a value in place of none, or of one that was given with the whole input; what has parts is not replaced unseen.
fn replace(slot: &mut Value, value: Value) -> Result<(), String> {
    let (what, hint) = match &*slot {
        Value::Object(members) if !members.is_empty() && *slot != value => {
            let names = members.keys().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let more = if members.len() > SHOWN { ", and more" } else { "" };
            (format!("an object with {names}{more}"), "give all of its members in one value, or each by a pair")
        }
        Value::Array(items) if !items.is_empty() && *slot != value => {
            (format!("a list of {}", items.len()), "give all of its items in one value, or each by a pair")
        }
        _ => {
            *slot = value;
            return Ok(());
        }
    };
    Err(format!("it is given already, as {what}, which this value would replace: {hint}"))
}

/// The value that a text means to schemas; where they ask for bytes, `@FILE` means those of a file.
fn value(text: &str, schemas: &[&Value]) -> Result<Value, String> {
    match text.strip_prefix('@') {
        // Base64 has no such character.
        Some(path) if is_bytes(schemas) => match std::fs::read(path) {
            Ok(bytes) => Ok(Value::String(STANDARD.encode(bytes))),
            Err(error) => Err(format!("`{path}` cannot be read: {error}")),
        },
        _ => parse(text, &kinds(schemas)),
    }
}

/// True if one of the schemas is that of bytes, which JSON has as base64.
pub(crate) fn is_bytes(schemas: &[&Value]) -> bool {
    let is_bytes = |format: &Value| format == "binary" || format == "byte";
    schemas.iter().any(|schema| has_kind(schema, "string") && schema.get("format").is_some_and(is_bytes))
}

/// The property at the start of a path, and the rest: the longest known one, because names may have dots.
fn split<'a>(path: &'a str, schemas: &[&Value]) -> (&'a str, Option<&'a str>) {
    let knows = |name: &str| schemas.iter().any(|s| s.get("properties").is_some_and(|p| p.get(name).is_some()));
    if knows(path) {
        return (path, None);
    }
    let ends = path.rmatch_indices('.').map(|(at, _)| at);
    let known = ends.filter_map(|at| path.split_at_checked(at)).find(|(name, _)| knows(name));
    let (name, rest) = known.or_else(|| path.find('.').and_then(|at| path.split_at_checked(at))).unwrap_or((path, ""));
    (name, rest.strip_prefix('.'))
}

/// All schemas for a value: references followed, and the members of `allOf`, `anyOf` and `oneOf`.
pub(crate) fn views<'a>(open: Vec<&'a Value>, root: &'a Value) -> Vec<&'a Value> {
    joined(open, root, &["allOf", "anyOf", "oneOf"])
}

/// The schemas that a value has to match, all of them: references followed, and the members of `allOf`.
pub(crate) fn parts<'a>(schema: &'a Value, root: &'a Value) -> Vec<&'a Value> {
    joined(vec![schema], root, &["allOf"])
}

fn joined<'a>(mut open: Vec<&'a Value>, root: &'a Value, keywords: &[&str]) -> Vec<&'a Value> {
    let mut seen: Vec<&Value> = Vec::new();
    while let Some(schema) = open.pop() {
        if seen.len() >= LIMIT || seen.iter().any(|other| std::ptr::eq(*other, schema)) {
            continue;
        }
        seen.push(schema);
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        open.extend(target.and_then(|pointer| root.pointer(pointer)));
        for keyword in keywords {
            open.extend(schema.get(keyword).and_then(Value::as_array).into_iter().flatten());
        }
    }
    seen
}

/// True if a schema accepts that kind of JSON, alone or among others.
fn has_kind(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        Some(one) => one == kind,
        None => false,
    }
}

/// The kinds of JSON that schemas accept; empty if they do not say.
pub(crate) fn kinds<'a>(schemas: &[&'a Value]) -> Vec<&'a str> {
    let mut kinds = Vec::new();
    for schema in schemas {
        match schema.get("type") {
            Some(Value::String(kind)) => kinds.push(kind.as_str()),
            Some(Value::Array(list)) => kinds.extend(list.iter().filter_map(Value::as_str)),
            _ if schema.get("properties").is_some() => kinds.push("object"),
            _ if schema.get("items").is_some() => kinds.push("array"),
            _ => {
                let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
                kinds.extend(values.chain(schema.get("const")).map(|value| match value {
                    Value::Null => "null",
                    Value::Bool(_) => "boolean",
                    Value::Number(_) => "number",
                    Value::String(_) => "string",
                    Value::Array(_) => "array",
                    Value::Object(_) => "object",
                }));
            }
        }
    }
    kinds
}

/// A value of one of these kinds, text last: `5` is a number if a number is accepted.
fn parse(text: &str, kinds: &[&str]) -> Result<Value, String> {
    let json: Option<Value> = serde_json::from_str(text).ok();
    let rounded = rounded(text).filter(|_| json.is_some());
    // A number that would be another is a text where that will do.
    if json.as_ref().is_none_or(|value| value.is_number() && rounded.is_some())
        && (kinds.is_empty() || kinds.contains(&"string"))
    {
        return Ok(Value::String(text.to_owned()));
    }
    if let Some(value) = json {
        let fits = |kind: &&str| match *kind {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => false,
        };
        if kinds.is_empty() || kinds.iter().any(fits) {
            return match rounded {
                None => Ok(value),
                Some(number) => {
                    Err(format!("`{number}` has more than 64 bits, so it would be rounded: add `.0` if that will do"))
                }
            };
        }
    }
    if kinds.contains(&"string") {
        return Ok(Value::String(text.to_owned()));
    }
    let mut named: Vec<&str> = Vec::new();
    kinds.iter().for_each(|kind| {
        if !named.contains(kind) {
            named.push(kind)
        }
    });
    Err(format!("the schema asks for {}, and `{text}` is none", named.join(" or ")))
}

/// The first whole number in a JSON text that has more than 64 bits, so that it is read as another one.
fn rounded(text: &str) -> Option<&str> {
    let is_of_number = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
    // What is between the quotes of strings; no other place has quotes.
    let (mut rest, mut is_string) = (text, false);
    loop {
        let end = rest.find(['"', '\\']).unwrap_or(rest.len());
        let (part, more) = rest.split_at_checked(end)?;
        if !is_string {
            let is_long = |word: &&str| {
                word.ends_with(|c: char| c.is_ascii_digit())
                    && !word.contains(['.', 'e', 'E'])
                    && word.parse::<i64>().is_err()
                    && word.parse::<u64>().is_err()
            };
            if let Some(word) = part.split(|c| !is_of_number(c)).find(is_long) {
                return Some(word);
            }
        }
        let escaped = more.starts_with('\\');
        is_string ^= more.starts_with('"');
        let mut next = more.chars();
        next.next()?;
        if escaped {
            next.next();
        }
        rest = next.as_str();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_as_their_schema_says() {
        let schema = json!({
            "properties": {
                "id": { "type": "integer" },
                "code": { "type": "string" },
                "filter.name": { "type": ["boolean", "null"] },
                "tags": { "type": "array", "items": { "type": "string" } },
                "body": { "$ref": "#/$defs/Body" },
            },
            "$defs": {
                "Body": { "allOf": [{ "properties": { "price": { "oneOf": [{ "type": "number" }, { "type": "string" }] } } }],
                          "properties": { "more": { "$ref": "#/$defs/Body" }, "labels": { "additionalProperties": { "type": "string" } } } },
            },
        });
        let pairs = [
            "id=7",
            "code=7",
            "filter.name=true",
            "tags=a",
            "tags=5",
            "body.price=1.5",
            "body.more.price=cheap",
            "body.labels.a=1",
            "other=[1]",
            "body.free=x=y",
        ];
        let mut input = Value::Null;
        add(&mut input, &pairs.map(str::to_owned), &schema).unwrap();
        let wanted = json!({
            "id": 7, "code": "7", "filter.name": true, "tags": ["a", "5"], "other": [1],
            "body": { "price": 1.5, "more": { "price": "cheap" }, "labels": { "a": "1" }, "free": "x=y" },
        });
        assert_eq!(input, wanted);
        for (pair, message) in [("id=x", "integer"), ("id", "NAME=VALUE"), ("=x", "NAME=VALUE"), ("id.x=1", "whole")] {
            let error = add(&mut input.clone(), &[pair.to_owned()], &schema).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn what_is_given_already_is_not_replaced_unseen() {
        let schema = json!({ "properties": {
            "tags": { "type": "array", "items": { "type": "string" } },
            "filter.name": { "type": "string" },
            "filter": { "type": "string" },
            "body": { "properties": { "name": { "type": "string" }, "price": { "type": "number" } } },
        } });
        let added = |given: Value, pairs: &[&str]| {
            let mut input = given;
            let pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
            add(&mut input, &pairs, &schema).map(|()| input)
        };
        let body = "`body`: it is given already, as an object with `name`, which this value would replace: ";
        let list = "`tags`: it is given already, as a list of 1, which this value would replace: ";
        for (given, pairs, told) in [
            (json!({}), &["body.name=Rex", r#"body={"price":3}"#][..], body),
            (json!({ "body": { "name": "Rex" } }), &[r#"body={"price":3}"#], body),
            (json!({ "body": { "name": "Rex" } }), &["body={}"], body),
            (json!({ "tags": ["a"] }), &[r#"tags=["b"]"#], list),
        ] {
            let said = added(given, pairs).unwrap_err();
            assert!(said.starts_with(told) && said.lines().count() == 1, "{said}");
        }
        for (given, pairs, wanted) in [
            (
                json!({}),
                &[r#"body={"price":3}"#, "body.name=Rex"][..],
                json!({ "body": { "price": 3, "name": "Rex" } }),
            ),
            (
                json!({ "body": {}, "tags": ["a"] }),
                &["body.name=Rex", "tags=b"],
                json!({ "body": { "name": "Rex" }, "tags": ["a", "b"] }),
            ),
            (json!({ "body": { "name": "Rex" } }), &[r#"body={"name":"Rex"}"#], json!({ "body": { "name": "Rex" } })),
            // Another property whose name has a dot.
            (json!({}), &["filter.name=a", "filter=b"], json!({ "filter.name": "a", "filter": "b" })),
        ] {
            assert_eq!(added(given, pairs), Ok(wanted), "{pairs:?}");
        }
    }

    #[test]
    fn a_whole_number_is_itself_or_none() {
        let long = "123456789012345678901";
        let of = |text: &str, kinds: &[&str]| parse(text, kinds).map(|value| value.to_string());
        for kinds in [&["integer"][..], &["number"], &["null", "integer"]] {
            let told = of(long, kinds).unwrap_err();
            assert!(told.starts_with(&format!("`{long}` has more than 64 bits")), "{told}");
        }
        // Where a text will do, it is one.
        for kinds in [&[][..], &["string"], &["integer", "string"]] {
            assert_eq!(of(long, kinds), Ok(format!("\"{long}\"")), "{kinds:?}");
        }
        for (text, kinds) in [
            ("[1,-123456789012345678901]", &["array"][..]),
            (r#"{"a":{"b":123456789012345678901}}"#, &["object", "string"]),
            (r#"{"a\"":"","b":123456789012345678901}"#, &[]),
        ] {
            assert!(of(text, kinds).unwrap_err().contains("has more than 64 bits"), "{text}");
        }
        for (text, kinds, wanted) in [
            ("18446744073709551615", &["integer"][..], "18446744073709551615"),
            ("-9223372036854775808", &["integer"], "-9223372036854775808"),
            ("-0", &["number"], "-0.0"),
            ("1e30", &["number"], "1e+30"),
            ("100000000000000000000.0", &["integer"], "1e+20"),
            (r#"{"a":"\\\"123456789012345678901"}"#, &["object"], r#"{"a":"\\\"123456789012345678901"}"#),
        ] {
            assert_eq!(of(text, kinds).as_deref(), Ok(wanted), "{text}");
        }
        // What is a text anyway stays as it is.
        assert!(of(&format!("[{long}]"), &["string"]).is_ok());
    }

    #[test]
    fn all_that_is_wrong_is_told_and_nothing_is_lost() {
        let schema = json!({ "properties": {
            "id": { "type": "integer" },
            "limit": { "type": "integer" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "body": { "properties": { "name": { "type": "string" } } },
        } });
        let pairs = ["id=x", "limit=1", "limit=2", "tags=[\"a\"]", "tags=[\"b\"]", "body.name=x", "body.name=y", "id"];
        let mut input = Value::Null;
        let told = add(&mut input, &pairs.map(str::to_owned), &schema).unwrap_err();
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[0], "`id`: the schema asks for integer, and `x` is none");
        assert_eq!(lines[1], "`limit`: it has one value, and `2` would be another");
        assert_eq!(lines[2], "`tags`: it has one value, and `[\"b\"]` would be another");
        assert_eq!(lines[3], "`body.name`: it has one value, and `y` would be another");
        assert!(lines[4].starts_with("`id` is no NAME=VALUE") && lines.len() == 5, "{told}");
        // What the line says wins over what was given as a whole.
        let mut given = json!({ "limit": 9 });
        add(&mut given, &["limit=1".to_owned()], &schema).unwrap();
        assert_eq!(given, json!({ "limit": 1 }));
    }
}
