//! Inputs from the command line, read by their schema.

use std::collections::{HashMap, HashSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ops_runtime::normalise::Validator;
use serde_json::{Map, Value, json};

pub(crate) use self::unknown::check;

#[cfg(test)]
mod tests;
mod unknown;

/// How many names of members are shown.
const SHOWN: usize = 8;

/// How many schemas are visited for one property: several times as many as the largest unions of real documents have.
const LIMIT: usize = 1024;

/// How many parts the name of a property may have: so deep is the JSON that `--input` takes.
const DEEPEST: usize = 128;

/// Stands for the schemas that are not visited: any of them may allow what the others do not declare.
static OTHERS: Value = Value::Bool(true);

/// The keywords whose members hold for all values, or for those that choose them.
const ALTERNATIVES: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// The keywords by which a schema declares properties, or has schemas that do.
const DECLARING: [&str; 8] = ["properties", "$ref", "allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas"];

/// The keywords for the properties that a schema does not name. If a schema has both, the first one counts.
const OF_OTHERS: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];

/// Adds `NAME=VALUE` pairs to an input; `schema` is whole, with its `$defs`.
///
/// # Errors
/// What is wrong with each pair that cannot be added, in lines. The others are added.
pub(crate) fn add(input: &mut Value, pairs: &[String], schema: &Value) -> Result<(), String> {
    let (mut wrong, mut given) = (Vec::new(), HashMap::new());
    let views = views(vec![schema], schema);
    for pair in pairs {
        let Some((name, text)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            wrong.push(format!(
                "`{pair}` is no NAME=VALUE: write the name of a property of the input, `=`, and its value"
            ));
            continue;
        };
        let parts = name.split('.').count();
        if parts > DEEPEST {
            wrong.push(format!("the name of a property has {parts} parts between dots: it may have {DEEPEST}"));
            continue;
        }
        let first = given.get(name).copied();
        given.entry(name).or_insert(text);
        if let Err(message) = set(input, name, (text, first), &views, schema) {
            wrong.push(format!("`{name}`: {message}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The value of a text that is the whole input.
///
/// # Errors
/// If it is not JSON, or if a number in it would become another one.
pub(crate) fn whole(text: &str) -> Result<Value, String> {
    // Some editors begin a file with this mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value = serde_json::from_str(text).map_err(|error| format!("the input is not JSON: {error}"))?;
    match rounded(text) {
        Some(number) => Err(format!("the input: {}", would_be_rounded(number))),
        None => Ok(value),
    }
}

/// Sets the value at a path. For a list, a text adds one item; everything else has one value. `first` is the first text that
/// was given for the path, if this is a later one.
fn set(
    target: &mut Value,
    path: &str,
    (text, first): (&str, Option<&str>),
    schemas: &[&Value],
    root: &Value,
) -> Result<(), String> {
    if target.is_null() {
        *target = Value::Object(Map::new());
    }
    let Some(object) = target.as_object_mut() else {
        return Err("it lies in a value that was given as a whole".to_owned());
    };
    let (mut name, mut rest) = split(path, schemas);
    let found: Vec<&Value> = schemas.iter().filter_map(|schema| schema.get("properties")?.get(name)).collect();
    let mut found = views(found, root);
    if found.is_empty() {
        // A property without a schema of its own.
        let of = |name: &str| views(schemas.iter().flat_map(|schema| others(schema, name)).collect(), root);
        found = of(path);
        let kinds = kinds(&found);
        if !kinds.is_empty() && !kinds.contains(&"object") {
            // A key of a map whose values have no properties: the dots are its own.
            (name, rest) = (path, None);
        } else {
            found = of(name);
        }
    }
    let slot = object.entry(name).or_insert(Value::Null);
    if let Some(rest) = rest {
        return set(slot, rest, (text, first), &found, root);
    }
    if kinds(&found).contains(&"array") && !text.trim_start().starts_with('[') {
        if first.is_none()
            && !slot.is_array()
            && let Some(value) = alone(text, &found)
        {
            return replace(slot, value);
        }
        let items = views(found.iter().filter_map(|schema| schema.get("items")).collect(), root);
        let item = value(text, &items)?;
        // Nothing is there if the first text was wrong.
        let is_given = !slot.is_null() || kinds(&found).contains(&"null");
        if let Some(first) = first.filter(|_| is_given && !slot.is_array()) {
            // The first text was a value by itself, and is an item now.
            *slot = Value::Array(vec![value(first, &items)?]);
        }
        return match slot {
            Value::Array(list) => {
                list.push(item);
                Ok(())
            }
            slot => replace(slot, Value::Array(vec![item])),
        };
    }
    if first.is_some() {
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

/// The value that a text is by itself where a list will do as well; `None` if it can only be an item of the list.
fn alone(text: &str, schemas: &[&Value]) -> Option<Value> {
    let is_closed = |schema: &&Value| schema.get("enum").is_some() || schema.get("const").is_some();
    let (closed, open): (Vec<&Value>, Vec<&Value>) = schemas.iter().copied().partition(is_closed);
    let listed = closed.iter().find_map(|schema| {
        let value = parse(text, &kinds(&[*schema])).ok()?;
        let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        values.chain(schema.get("const")).any(|one| *one == value).then_some(value)
    });
    listed.or_else(|| {
        let is_more = kinds(&open).iter().any(|kind| *kind != "array");
        if is_more { value(text, &open).ok() } else { None }
    })
}

/// True if one of the schemas is that of bytes, which JSON has as base64.
pub(crate) fn is_bytes(schemas: &[&Value]) -> bool {
    let is_bytes = |format: &Value| format == "binary" || format == "byte";
    schemas.iter().any(|schema| has_kind(schema, "string") && schema.get("format").is_some_and(is_bytes))
}

/// The schemas for a property that a schema does not name: those whose pattern matches the name, or else the one for all
/// other properties.
fn others<'a>(schema: &'a Value, name: &str) -> Vec<&'a Value> {
    let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
    let matches = |pattern: &str| Validator::new(&json!({ "pattern": pattern })).check(&Value::from(name));
    let mut found: Vec<&Value> = patterns.filter(|(pattern, _)| matches(pattern)).map(|(_, schema)| schema).collect();
    if found.is_empty() {
        let of_others = OF_OTHERS.into_iter().find_map(|keyword| schema.get(keyword));
        found.extend(of_others.filter(|schema| schema.is_object()));
    }
    found
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

/// All schemas for a value: those of [`unconditional`], and behind them those that hold under conditions.
pub(crate) fn views<'a>(open: Vec<&'a Value>, root: &'a Value) -> Vec<&'a Value> {
    joined(open, root, &ALTERNATIVES, conditional)
}

/// The schemas for a value that depend on no condition: references followed, and the members of `allOf`, `anyOf` and
/// `oneOf`.
pub(crate) fn unconditional<'a>(schema: &'a Value, root: &'a Value) -> Vec<&'a Value> {
    joined(vec![schema], root, &ALTERNATIVES, |_| Vec::new())
}

/// The schemas that a value has to match, all of them: references followed, and the members of `allOf`.
pub(crate) fn parts<'a>(schema: &'a Value, root: &'a Value) -> Vec<&'a Value> {
    joined(vec![schema], root, &["allOf"], |_| Vec::new())
}

/// The schemas that hold under a condition, if they can declare properties: `then`, `else` and dependent schemas. An `if`
/// is not among them: it tests properties that other schemas declare.
fn conditional(schema: &Value) -> Vec<&Value> {
    let branches = ["then", "else"].into_iter().filter_map(|keyword| schema.get(keyword));
    let dependent = schema.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(Map::values);
    branches.chain(dependent).filter(|branch| can_declare(branch)).collect()
}

/// True if a schema may declare properties, itself or by the schemas in it.
fn can_declare(schema: &Value) -> bool {
    DECLARING.into_iter().any(|keyword| schema.get(keyword).is_some())
}

/// The schemas themselves, those to which they refer, and the members of their `keywords`; behind all of them, those that
/// `later` gives for one of them. If there are too many, the last is [`OTHERS`].
fn joined<'a>(
    mut open: Vec<&'a Value>,
    root: &'a Value,
    keywords: &[&str],
    later: fn(&'a Value) -> Vec<&'a Value>,
) -> Vec<&'a Value> {
    let (mut seen, mut last): (Vec<&Value>, Vec<&Value>) = (Vec::new(), Vec::new());
    // A document may have cycles.
    let mut known = HashSet::new();
    while let Some(schema) = open.pop().or_else(|| last.pop()) {
        if !known.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        if seen.len() >= LIMIT {
            seen.push(&OTHERS);
            break;
        }
        seen.push(schema);
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        open.extend(target.and_then(|pointer| root.pointer(pointer)));
        for keyword in keywords {
            open.extend(schema.get(*keyword).and_then(Value::as_array).into_iter().flatten());
        }
        last.extend(later(schema));
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
                None => Ok(as_integer(value, kinds)),
                Some(number) => Err(would_be_rounded(number)),
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

/// A number such as `1e3` or `-0` as an integer, if only integers are accepted: some servers refuse `1000.0` there.
fn as_integer(value: Value, kinds: &[&str]) -> Value {
    if !value.is_f64() || !kinds.contains(&"integer") || kinds.contains(&"number") {
        return value;
    }
    let whole = value.as_f64().filter(|number| number.fract() == 0.0);
    // A number that has too many digits for an integer stays as it is.
    whole.and_then(|number| format!("{number:.0}").parse::<i64>().ok()).map_or(value, Value::from)
}

/// What is wrong with a whole number that has more than 64 bits.
fn would_be_rounded(number: &str) -> String {
    format!("`{number}` has more than 64 bits, so it would be rounded: add `.0` if that will do")
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
