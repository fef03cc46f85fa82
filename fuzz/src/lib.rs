//! What the fuzz targets share: mutations that know JSON.
//!
//! Bytes changed at random seldom are JSON again. So half of the time an input is parsed, one or more places of the tree
//! are changed with the words of JSON Schema and OpenAPI at hand, and it is written as JSON again.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Changes an input, for `fuzz_mutator!`: as a tree if it is JSON, else as bytes.
pub fn mutate_json(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut rng = Rng::with_seed(u64::from(seed));
    if rng.u8(..) < 160
        && let Some(input) = data.get(..size)
        && let Ok(mut value) = serde_json::from_slice(input)
    {
        for _ in 0..=rng.usize(..4) {
            mutate(&mut value, &mut rng);
        }
        let text = value.to_string();
        if text.len() <= max_size
            && let Some(room) = data.get_mut(..text.len())
        {
            room.copy_from_slice(text.as_bytes());
            return text.len();
        }
    }
    libfuzzer_sys::fuzzer_mutate(data, size, max_size)
}

/// Changes one place of a tree.
pub fn mutate(value: &mut Value, rng: &mut Rng) {
    let other = node(value, rng).clone();
    let root_keys = names(value);
    // Where the change happens: a node at random.
    let place = pick(value, rng);
    match rng.u8(..12) {
        0 => *place = other,
        1 => *place = scalar(rng),
        2 => *place = schema(rng, &root_keys),
        3 => {
            let old = place.take();
            let key = *choose(rng, &["allOf", "oneOf", "anyOf"]);
            *place = json!({ key: [old, other] });
        }
        4 => {
            let old = place.take();
            *place = match rng.u8(..4) {
                0 => json!([old]),
                1 => json!({ "properties": { word(rng): old } }),
                2 => json!({ "items": old }),
                _ => json!({ "additionalProperties": old }),
            };
        }
        5 => *place = reference(rng, &root_keys),
        6 | 7 => match place {
            Value::Object(members) => {
                members.insert(word(rng), other);
            }
            Value::Array(items) => items.push(other),
            Value::String(text) => *text = word(rng),
            place => *place = scalar(rng),
        },
        8 => match place {
            Value::Object(members) => {
                let key = members.keys().nth(rng.usize(..members.len().max(1))).cloned();
                if let Some(value) = key.and_then(|key| members.shift_remove(&key))
                    && rng.bool()
                {
                    members.insert(word(rng), value);
                }
            }
            Value::Array(items) => {
                items.pop();
            }
            place => *place = scalar(rng),
        },
        9 => match place {
            Value::Object(members) => {
                members.insert(word(rng), schema(rng, &root_keys));
            }
            Value::Array(items) => items.push(schema(rng, &root_keys)),
            place => *place = schema(rng, &root_keys),
        },
        10 => match place {
            Value::Object(members) => {
                members.insert(word(rng), scalar(rng));
            }
            Value::Array(items) => items.push(scalar(rng)),
            place => *place = scalar(rng),
        },
        _ => {
            // A level for each: what is nested deep.
            for _ in 0..rng.usize(..40) {
                let old = place.take();
                *place = match other.as_str() {
                    Some(key) => json!({ key: old }),
                    None => json!({ "items": old }),
                };
            }
        }
    }
}

/// A node at random, the deeper ones as likely as the others.
fn node<'v>(value: &'v Value, rng: &mut Rng) -> &'v Value {
    let mut here = value;
    loop {
        let next = match here {
            Value::Object(members) if !members.is_empty() => members.values().nth(rng.usize(..members.len())),
            Value::Array(items) if !items.is_empty() => items.get(rng.usize(..items.len())),
            _ => None,
        };
        match next {
            Some(next) if rng.u8(..5) > 0 => here = next,
            _ => return here,
        }
    }
}

fn pick<'v>(value: &'v mut Value, rng: &mut Rng) -> &'v mut Value {
    let deeper = rng.u8(..5) > 0;
    let is_inner = match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if !deeper || !is_inner {
        return value;
    }
    match value {
        Value::Object(members) => {
            let at = rng.usize(..members.len());
            pick(members.values_mut().nth(at).expect("within the length"), rng)
        }
        Value::Array(items) => {
            let at = rng.usize(..items.len());
            pick(&mut items[at], rng)
        }
        _ => unreachable!("only these have something inside"),
    }
}

/// The names that references can lead to.
fn names(root: &Value) -> Vec<String> {
    let mut names = vec!["#".to_owned()];
    for folder in
        ["/$defs", "/definitions", "/components/schemas", "/components/parameters", "/components/responses", "/paths"]
    {
        let members = root.pointer(folder).and_then(Value::as_object).into_iter().flatten();
        names.extend(members.map(|(name, _)| format!("#{folder}/{}", name.replace('~', "~0").replace('/', "~1"))));
    }
    names
}

fn choose<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.usize(..from.len())]
}

fn reference(rng: &mut Rng, names: &[String]) -> Value {
    let mut target = choose(rng, names).clone();
    match rng.u8(..8) {
        0 => target.push_str("/properties/a"),
        1 => target = word(rng),
        2 => target.push_str("/items"),
        _ => {}
    }
    json!({ "$ref": target })
}

/// A key or a text: those that mean something, and those that should not.
pub fn word(rng: &mut Rng) -> String {
    const WORDS: &[&str] = &[
        "$ref",
        "$defs",
        "$id",
        "$anchor",
        "$dynamicRef",
        "$schema",
        "allOf",
        "oneOf",
        "anyOf",
        "not",
        "if",
        "then",
        "else",
        "type",
        "properties",
        "patternProperties",
        "additionalProperties",
        "unevaluatedProperties",
        "required",
        "items",
        "prefixItems",
        "additionalItems",
        "contains",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minProperties",
        "maxProperties",
        "enum",
        "const",
        "default",
        "nullable",
        "discriminator",
        "propertyName",
        "mapping",
        "title",
        "description",
        "readOnly",
        "writeOnly",
        "deprecated",
        "x-enum-varnames",
        "definitions",
        "contentEncoding",
        "contentMediaType",
        "object",
        "array",
        "string",
        "integer",
        "number",
        "boolean",
        "null",
        "int32",
        "int64",
        "uint64",
        "date-time",
        "date",
        "uuid",
        "uri",
        "byte",
        "binary",
        "a",
        "b",
        "kind",
        "extra",
        "other",
        "Other",
        "self",
        "type_",
        "body",
        "contentType",
        "lastEventId",
        "openapi",
        "swagger",
        "3.0.3",
        "3.1.0",
        "3.2.0",
        "2.0",
        "info",
        "paths",
        "components",
        "schemas",
        "parameters",
        "responses",
        "requestBody",
        "requestBodies",
        "content",
        "schema",
        "itemSchema",
        "application/json",
        "text/event-stream",
        "text/plain",
        "multipart/form-data",
        "application/x-www-form-urlencoded",
        "application/jsonl",
        "application/octet-stream",
        "*/*",
        "encoding",
        "headers",
        "name",
        "in",
        "query",
        "path",
        "header",
        "cookie",
        "formData",
        "querystring",
        "style",
        "explode",
        "allowReserved",
        "form",
        "deepObject",
        "matrix",
        "label",
        "simple",
        "spaceDelimited",
        "get",
        "post",
        "operationId",
        "tags",
        "security",
        "securitySchemes",
        "securityDefinitions",
        "servers",
        "url",
        "variables",
        "default",
        "200",
        "404",
        "2XX",
        "default",
        "/a/{b}",
        "/",
        "{",
        "}",
        "consumes",
        "produces",
        "host",
        "basePath",
        "callbacks",
        "webhooks",
        "",
        " ",
        "\"",
        "\\",
        "\n",
        "*/",
        "#[",
        "]",
        "\"##",
        "r#",
        "\u{202e}",
        "\u{0}",
        "../x",
        "1",
        "-1",
        "ß",
        "ÀÀ",
        "Vec",
        "String",
        "Option",
        "Some",
        "Self",
        "super",
        "crate",
        "fn",
    ];
    (*choose(rng, WORDS)).to_owned()
}

/// A value without anything inside.
pub fn scalar(rng: &mut Rng) -> Value {
    match rng.u8(..12) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i64(..)),
        3 => json!(u64::MAX),
        4 => json!(*choose(rng, &[0.0, -0.0, 1.0, 0.1, 1e300, -1e300, 1e-300, 9.223_372_036_854_776e18, 1.5])),
        5 => json!(*choose(rng, &[0_i64, 1, -1, 2, 127, 128, 65_537, i64::MAX, i64::MIN, 2_147_483_648])),
        6 => json!({}),
        7 => json!([]),
        _ => json!(word(rng)),
    }
}

/// A small schema.
pub fn schema(rng: &mut Rng, names: &[String]) -> Value {
    let kinds = ["object", "array", "string", "integer", "number", "boolean", "null"];
    match rng.u8(..14) {
        0 => json!({ "type": *choose(rng, &kinds) }),
        1 => json!({ "type": [*choose(rng, &kinds), *choose(rng, &kinds)] }),
        2 => reference(rng, names),
        3 => json!({ "const": scalar(rng) }),
        4 => json!({ "enum": [scalar(rng), scalar(rng), scalar(rng)] }),
        5 => {
            let key = *choose(rng, &["allOf", "oneOf", "anyOf"]);
            json!({ key: [schema(rng, names), schema(rng, names)] })
        }
        6 => json!({ "type": "array", "items": schema(rng, names) }),
        7 => json!({ "type": "array", "prefixItems": [schema(rng, names), schema(rng, names)], "items": rng.bool() }),
        8 => json!({ "type": "object", "additionalProperties": schema(rng, names) }),
        9 => json!({ "type": "string", "format": word(rng), "default": scalar(rng) }),
        10 => {
            let tag = word(rng);
            let variant = |rng: &mut Rng| json!({ "type": "object", "properties": { tag.as_str(): { "const": scalar(rng) } }, "required": [tag] });
            json!({ "oneOf": [variant(rng), variant(rng)], "discriminator": { "propertyName": tag } })
        }
        11 => json!({ "type": "integer", "minimum": scalar(rng), "maximum": scalar(rng), "default": scalar(rng) }),
        12 => json!(rng.bool()),
        _ => {
            let mut properties = Map::new();
            let mut required = Vec::new();
            for _ in 0..rng.usize(1..4) {
                let name = word(rng);
                if rng.bool() {
                    required.push(name.clone());
                }
                properties.insert(name, schema(rng, names));
            }
            json!({ "type": "object", "properties": properties, "required": required })
        }
    }
}
