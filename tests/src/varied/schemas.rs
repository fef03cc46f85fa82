//! What a schema may say.

use ops_runtime::spec::Definition;
use serde_json::json;

use super::{Case, by_id, define};

pub(super) fn definitions() -> Vec<Definition> {
    vec![
        define(
            "Tree",
            json!({
                "type": "object",
                "properties": { "name": { "type": "string" }, "children": { "type": "array", "items": { "$ref": "#/$defs/Tree" } } },
                "required": ["name"],
            }),
        ),
        define(
            "Circle",
            json!({
                "type": "object",
                "properties": { "kind": { "const": "circle" }, "radius": { "type": "number", "exclusiveMinimum": 0 } },
                "required": ["kind", "radius"],
            }),
        ),
        define(
            "Square",
            json!({
                "type": "object",
                "properties": { "kind": { "const": "square" }, "side": { "type": "number", "exclusiveMinimum": 0 } },
                "required": ["kind", "side"],
            }),
        ),
        define(
            "Shape",
            json!({
                "description": "One of two shapes.",
                "oneOf": [{ "$ref": "#/$defs/Circle" }, { "$ref": "#/$defs/Square" }],
                "discriminator": {
                    "propertyName": "kind",
                    "mapping": { "circle": "#/$defs/Circle", "square": "#/$defs/Square" },
                },
            }),
        ),
        define(
            "Point",
            json!({
                "type": "object",
                "properties": { "x": { "type": "integer" }, "y": { "type": "integer" } },
                "required": ["x", "y"],
            }),
        ),
        define("Level", json!({ "type": "string", "enum": ["low", "in between", "high"], "default": "low" })),
        define(
            "Person",
            json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "minLength": 1, "maxLength": 80, "examples": ["Ann"] },
                    "born": { "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" },
                    "level": { "$ref": "#/$defs/Level" },
                    "nick": { "type": ["string", "null"] },
                },
                "required": ["name", "nick"],
                "additionalProperties": false,
            }),
        ),
    ]
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        by_id(
            "text",
            "Text of a pattern.",
            json!({ "type": "string", "pattern": "^[a-zé ]+$", "minLength": 2 }),
            json!("café au lait"),
        ),
        by_id(
            "moment",
            "A date with its time.",
            json!({ "type": "string", "format": "date-time" }),
            json!("2026-11-23T10:00:00Z"),
        ),
        by_id(
            "whole",
            "A whole number within bounds.",
            json!({ "type": "integer", "format": "int64", "minimum": -9007199254740991_i64, "maximum": 9007199254740991_i64 }),
            json!(-9007199254740991_i64),
        ),
        by_id("number", "A multiple of a quarter.", json!({ "type": "number", "multipleOf": 0.25 }), json!(2.75)),
        by_id("truth", "A boolean.", json!({ "type": "boolean" }), json!(false)),
        by_id("nothing", "Null, or text.", json!({ "type": ["string", "null"] }), json!(null)),
        by_id("choice", "One of several texts.", json!({ "$ref": "#/$defs/Level" }), json!("in between")),
        by_id(
            "list",
            "A list without doubles.",
            json!({ "type": "array", "items": { "type": "integer" }, "uniqueItems": true, "minItems": 1, "maxItems": 5 }),
            json!([3, 1, 2]),
        ),
        by_id(
            "map",
            "A map of lists.",
            json!({ "type": "object", "additionalProperties": { "type": "array", "items": { "type": "number" } } }),
            json!({ "a/b": [1.5], "": [] }),
        ),
        by_id(
            "record",
            "A record without other members.",
            json!({ "$ref": "#/$defs/Person" }),
            json!({ "name": "Ann", "born": "1990-01-31", "level": "low", "nick": null }),
        ),
        by_id(
            "nested",
            "A tree of any depth.",
            json!({ "$ref": "#/$defs/Tree" }),
            json!({ "name": "a", "children": [{ "name": "b", "children": [{ "name": "c" }] }] }),
        ),
        by_id(
            "union",
            "One of two shapes.",
            json!({ "$ref": "#/$defs/Shape" }),
            json!({ "kind": "square", "side": 2.5 }),
        ),
        by_id(
            "either",
            "A number or a list of texts.",
            json!({ "anyOf": [{ "type": "integer" }, { "type": "array", "items": { "type": "string" } }] }),
            json!(["a", ""]),
        ),
        by_id(
            "both",
            "All of two records.",
            json!({
                "allOf": [
                    { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
                    { "type": "object", "properties": { "b": { "type": "boolean" } }, "required": ["b"] },
                ],
            }),
            json!({ "a": "x", "b": true }),
        ),
        by_id("anything", "Any JSON.", json!({}), json!({ "x": [1, { "y": null }, "z"] })),
    ]
}
