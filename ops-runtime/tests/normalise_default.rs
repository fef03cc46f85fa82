//! What the default reading does, case by case, where it differs from the original or decides something.
#![cfg(feature = "registry")]

use ops_runtime::normalise::{Change, CompiledDefinitions, CompiledSchema, Reading};
use serde_json::{Value, json};

struct Case {
    why: &'static str,
    schema: Value,
    value: Value,
    expected: Value,
    /// As `pointer: expected .., found ..`.
    repairs: &'static [&'static str],
}

fn case(why: &'static str, schema: Value, value: Value, expected: Value, repairs: &'static [&'static str]) -> Case {
    Case { why, schema, value, expected, repairs }
}

fn verify(cases: Vec<Case>) {
    for Case { why, schema, value, expected, repairs } in cases {
        let compiled = CompiledSchema::new(&schema, Reading::Default);
        let (normal, made) = compiled.normalise(value.clone());
        // Which undeclared properties are told of is shown by `normalise_repair.rs`.
        let made = made.iter().filter(|repair| repair.change != Change::Removed);
        let made: Vec<String> = made.map(ToString::to_string).collect();
        assert_eq!(
            (&normal, made),
            (&expected, repairs.iter().map(ToString::to_string).collect()),
            "{why}: {value} under {schema}"
        );
        assert_eq!(normal.to_string(), ordered(&expected, &normal), "{why}: numbers");
        let (again, _) = compiled.normalise(normal.clone());
        assert_eq!(again, normal, "{why}: not idempotent");
    }
}

/// `expected` written with the keys in the order of `like`.
fn ordered(expected: &Value, like: &Value) -> String {
    match (expected, like) {
        (Value::Object(map), Value::Object(like)) => {
            let fields: Vec<String> =
                like.iter().map(|(key, like)| format!("{}:{}", json!(key), ordered(&map[key], like))).collect();
            format!("{{{}}}", fields.join(","))
        }
        (Value::Array(items), Value::Array(like)) => {
            let items: Vec<String> = items.iter().zip(like).map(|(item, like)| ordered(item, like)).collect();
            format!("[{}]", items.join(","))
        }
        (value, _) => value.to_string(),
    }
}

/// Many properties are aliases of one definition: its schema is not read again for each of them.
#[test]
fn a_definition_is_read_a_few_times_however_many_refer_to_it() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    const ALIASES: usize = 100;
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let definitions = CompiledDefinitions::new(Reading::Default, move |name| {
        if name == "Last" {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        let next = |name: &str| json!({ "allOf": [{ "$ref": format!("#/$defs/{name}") }] });
        Some(match name {
            "Last" => json!({ "type": "string", "writeOnly": true }),
            "Middle" => next("Last"),
            _ => next("Middle"),
        })
    });
    let names: Vec<String> = (0..ALIASES).map(|number| format!("a{number}")).collect();
    let property = |name: &String| (name.clone(), json!({ "$ref": format!("#/$defs/{name}") }));
    let properties: serde_json::Map<_, _> = names.iter().map(property).collect();
    let schema = json!({ "type": "object", "properties": properties, "required": names });
    let compiled = CompiledSchema::with_definitions(&schema, &definitions);
    assert!(compiled.check(&json!({})));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn types() {
    verify(vec![
        case("nullable admits null", json!({"type": "string", "nullable": true}), json!(null), json!(null), &[]),
        case(
            "nullable admits no number",
            json!({"type": "string", "nullable": true}),
            json!(1),
            json!(""),
            &["expected string or null, found integer"],
        ),
        case(
            "a nullable enum need not list null",
            json!({"enum": ["a"], "type": "string", "nullable": true}),
            json!(null),
            json!(null),
            &[],
        ),
        case(
            "what nothing fits is left as it came",
            json!({"type": "integer", "minimum": 2, "maximum": -1.3e18}),
            json!(12),
            json!(12),
            &["expected integer to be less or equal to -1300000000000000000, found integer, kept"],
        ),
        case(
            "nothing is made up for an optional property that nothing fits",
            json!({"properties": {"n": {"type": "integer", "minimum": 2, "maximum": 1}}}),
            json!({}),
            json!({}),
            &[],
        ),
        case("an enum may list null", json!({"enum": ["a", null]}), json!(null), json!(null), &[]),
        case(
            "an enum falls back to its default",
            json!({"enum": ["a", "b"], "default": "b"}),
            json!("c"),
            json!("b"),
            &["expected one of 'a', 'b', found string"],
        ),
        case(
            "an enum of numbers under type string",
            json!({"type": "string", "enum": [1, 2]}),
            json!(2),
            json!(2),
            &[],
        ),
        case(
            "a list of types",
            json!({"type": ["integer", "null"]}),
            json!("x"),
            json!(0),
            &["expected integer or null, found string"],
        ),
        case(
            "a value of one of the types is repaired as that",
            json!({"type": ["null", "array"], "items": {"type": "integer"}}),
            json!(["x"]),
            json!([0]),
            &["/0: expected integer, found string"],
        ),
        case("an integer written with a point", json!({"type": "integer"}), json!(3.0), json!(3), &[]),
        case("a number keeps its point", json!({"type": "number"}), json!(3.0), json!(3.0), &[]),
        case("an integer beyond i64 keeps its form", json!({"type": "integer"}), json!(1e300), json!(1e300), &[]),
        case("a literal object", json!({"const": {"a": 1}}), json!({"a": 1.0}), json!({"a": 1.0}), &[]),
        case(
            "boolean schemas",
            json!({"properties": {"a": true, "b": false}}),
            json!({"a": [1], "b": 1}),
            json!({"a": [1], "b": 1}),
            &["/b: expected nothing, found integer, kept"],
        ),
        case(
            "a missing type is read from the keywords",
            json!({"properties": {"a": {"default": 1}}}),
            json!(null),
            json!({"a": 1}),
            &["expected object, found null"],
        ),
        case(
            "not, if, contains are not checked",
            json!({"type": "array", "contains": {"const": 1}, "not": {"type": "array"}}),
            json!([2]),
            json!([2]),
            &[],
        ),
        case(
            "the flags of draft 4",
            json!({"type": "number", "minimum": 1, "exclusiveMinimum": true, "default": 2}),
            json!(1),
            json!(2),
            &["expected number to be greater than 1, found integer"],
        ),
        case(
            "a union of which no variant may be what it has to be",
            json!({"allOf": [{"type": "string"}, {"oneOf": [
                {"properties": {"a": {"const": 1}}, "type": "object"},
                {"properties": {"a": {"const": 2}}, "type": "object"},
            ]}]}),
            json!("x"),
            json!("x"),
            &["expected nothing, found string, kept"],
        ),
        case(
            "a union of which only the second may be",
            json!({"allOf": [{"type": "integer"}, {"oneOf": [{"type": "object"}, {"type": "integer", "minimum": 3}]}]}),
            json!("x"),
            json!(3),
            &["expected integer, found string"],
        ),
        case(
            "above an exclusive bound",
            json!({"type": "number", "exclusiveMinimum": 0}),
            json!(-1.5),
            json!(1),
            &["expected number to be greater than 0, found number"],
        ),
        case(
            "between two exclusive bounds",
            json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
            json!("much"),
            json!(0.5),
            &["expected number, found string"],
        ),
        case(
            "no more than a bound below zero",
            json!({"type": "integer", "maximum": -2.5, "multipleOf": 5}),
            json!(1),
            json!(-5),
            &["expected integer to be less or equal to -2.5, found integer"],
        ),
        case(
            "a whole number above a bound that is none",
            json!({"type": "integer", "minimum": 0.5}),
            json!(0),
            json!(1),
            &["expected integer to be greater or equal to 0.5, found integer"],
        ),
        case(
            "a multiple within bounds",
            json!({"type": "integer", "minimum": 7, "multipleOf": 5}),
            json!(0),
            json!(10),
            &["expected integer to be greater or equal to 7, found integer"],
        ),
        case(
            "a number near zero is no multiple",
            json!({"type": "number", "multipleOf": 0.25}),
            json!(2.5e-42),
            json!(0.0),
            &["expected number to be a multiple of 0.25, found number"],
        ),
        case(
            "nor is a large one that is beside it",
            json!({"type": "number", "multipleOf": 0.25}),
            json!(144687938052682.16),
            json!(0.0),
            &["expected number to be a multiple of 0.25, found number"],
        ),
        case(
            "nor is one that is next to it",
            json!({"type": "number", "multipleOf": 0.25}),
            json!(0.9999999999999998),
            json!(0.0),
            &["expected number to be a multiple of 0.25, found number"],
        ),
        case(
            "19.99 is a multiple of 0.01",
            json!({"type": "number", "multipleOf": 0.01}),
            json!(19.99),
            json!(19.99),
            &[],
        ),
        case("0.3 is a multiple of 0.1", json!({"type": "number", "multipleOf": 0.1}), json!(0.3), json!(0.3), &[]),
        case("lengths in characters", json!({"type": "string", "maxLength": 1}), json!("😀"), json!("😀"), &[]),
    ]);
}

#[test]
fn strings_without_a_value_to_make_up() {
    verify(vec![
        case(
            "an unknown format is an annotation",
            json!({"type": "string", "format": "password"}),
            json!("x"),
            json!("x"),
            &[],
        ),
        case(
            "so is a known one",
            json!({"type": "string", "format": "date-time"}),
            json!("yesterday"),
            json!("yesterday"),
            &[],
        ),
        case(
            "but no date is made up",
            json!({"type": "string", "format": "date-time"}),
            json!(5),
            json!(5),
            &["expected string, found integer, kept"],
        ),
        case(
            "nor a match of a pattern",
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}, "required": ["a"]}),
            json!({}),
            json!({}),
            &["/a: expected string, found absent, kept"],
        ),
        case(
            "unless there is a default",
            json!({"type": "string", "pattern": "^x", "default": "x"}),
            json!("y"),
            json!("x"),
            &["expected string to match '^x', found string"],
        ),
        case(
            "a default that does not fit is none",
            json!({"type": "string", "pattern": "^x", "default": "z"}),
            json!("y"),
            json!("y"),
            &["expected string to match '^x', found string, kept"],
        ),
        case(
            "look-ahead",
            json!({"type": "string", "pattern": "^(?=.*a)b", "default": "ba"}),
            json!("bc"),
            json!("ba"),
            &["expected string to match '^(?=.*a)b', found string"],
        ),
    ]);
}

#[test]
fn objects() {
    let closed = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false});
    let open = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": true});
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let patterned = json!({"type": "object", "patternProperties": {"^x-": {"type": "string"}}});
    verify(vec![
        case(
            "properties of all variants stay that a value is at once",
            json!({"anyOf": [{"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "integer"}}}]}),
            json!({"a": 1, "b": 2}),
            json!({"a": 1, "b": 2}),
            &[],
        ),
        case(
            "beside those of the schema around, and no others",
            json!({"type": "object", "properties": {"x": {}}, "anyOf": [
                {"required": ["a"], "properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "integer"}}}]}),
            json!({"x": 0, "a": 1, "b": 2, "other": 3}),
            json!({"x": 0, "a": 1, "b": 2}),
            &[],
        ),
        case(
            "not those of a variant that it is not, nor of one of which it is exactly one",
            json!({"properties": {
                "any": {"anyOf": [{"properties": {"a": {}}}, {"required": ["c"], "properties": {"b": {}, "c": {}}}]},
                "one": {"oneOf": [{"properties": {"a": {}}}, {"properties": {"b": {}, "c": {}}}]}}}),
            json!({"any": {"a": 1, "b": 2}, "one": {"a": 1, "b": 2}}),
            json!({"any": {"a": 1}, "one": {"a": 1}}),
            &[],
        ),
        case(
            "properties under a condition stay",
            json!({"type": "object", "properties": {"country": {"type": "string"}},
                "if": {"properties": {"country": {"const": "US"}}}, "then": {"properties": {"zip": {"type": "string"}}},
                "else": {"allOf": [{"properties": {"code": {"type": "string"}}}]}}),
            json!({"country": "US", "zip": 1, "code": "x", "other": 1}),
            json!({"country": "US", "zip": 1, "code": "x"}),
            &[],
        ),
        case(
            "properties that depend on another stay",
            json!({"allOf": [{"properties": {"card": {"type": "string"}}},
                {"dependentSchemas": {"card": {"properties": {"bill": {}}}}}]}),
            json!({"card": "x", "bill": 1, "other": 1}),
            json!({"card": "x", "bill": 1}),
            &[],
        ),
        case(
            "properties under a condition are evaluated",
            json!({"properties": {"a": {"type": "string"}}, "if": true, "then": {"properties": {"b": {}}},
                "unevaluatedProperties": false}),
            json!({"a": "x", "b": 1, "other": 1}),
            json!({"a": "x", "b": 1}),
            &[],
        ),
        case(
            "properties of a schema that a condition refers to stay, and no others",
            json!({"properties": {"a": {"type": "string"}}, "if": true, "then": {"$ref": "#/$defs/B"},
                "$defs": {"B": {"properties": {"b": {}}}}}),
            json!({"a": "x", "b": 1, "other": 1}),
            json!({"a": "x", "b": 1}),
            &[],
        ),
        case(
            "additionalProperties does not see what is below a condition",
            json!({"properties": {"a": {"type": "string"}}, "if": true, "then": {"properties": {"b": {}}},
                "additionalProperties": false}),
            json!({"a": "x", "b": 1}),
            json!({"a": "x"}),
            &[],
        ),
        case(
            "undeclared properties go even if all is well",
            json!({"type": "object", "properties": {"a": {}}}),
            json!({"a": 1, "b": 2}),
            json!({"a": 1}),
            &[],
        ),
        case("closed objects too", closed, json!({"a": 1, "b": 2}), json!({"a": 1}), &[]),
        case(
            "an open object keeps them, also when repaired",
            open,
            json!({"a": "1", "b": 2}),
            json!({"a": 0, "b": 2}),
            &["/a: expected integer, found string"],
        ),
        case(
            "a map is no object without properties",
            map,
            json!({"a": 1, "b": "2"}),
            json!({"a": 1, "b": 0}),
            &["/b: expected integer, found string"],
        ),
        case(
            "an object that declares nothing keeps everything",
            json!({"type": "object"}),
            json!({"a": 1}),
            json!({"a": 1}),
            &[],
        ),
        case(
            "unless it is closed",
            json!({"type": "object", "additionalProperties": false}),
            json!({"a": 1}),
            json!({}),
            &[],
        ),
        case(
            "patterns declare",
            patterned,
            json!({"x-a": 1, "y": 2}),
            json!({"x-a": ""}),
            &["/x-a: expected string, found integer"],
        ),
        case(
            "required without being declared",
            json!({"properties": {"a": {}}, "required": ["b"]}),
            json!({"b": 1, "c": 2}),
            json!({"b": 1}),
            &[],
        ),
        case(
            "and absent",
            json!({"type": "object", "properties": {"a": {}}, "required": ["b"]}),
            json!({}),
            json!({}),
            &["/b: expected any value, found absent, kept"],
        ),
        case(
            "optional defaults come",
            json!({"type": "object", "properties": {"a": {"default": 1}, "b": {"type": "object", "properties": {"c": {"default": 2}}}}}),
            json!({"b": {}}),
            json!({"a": 1, "b": {"c": 2}}),
            &[],
        ),
        case(
            "defaults inside a default too",
            json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"default": 1}}, "default": {}}}}),
            json!({}),
            json!({"a": {"b": 1}}),
            &[],
        ),
        case(
            "a default that would hold itself is none",
            json!({"type": "object", "properties": {"a": {"$ref": "#", "default": {}}, "b": {"default": 1}}}),
            json!({"a": {}}),
            json!({"a": {"b": 1}, "b": 1}),
            &[],
        ),
        case(
            "a default that does not fit does not come",
            json!({"type": "object", "properties": {"a": {"type": "integer", "default": "1"}}}),
            json!({}),
            json!({}),
            &[],
        ),
        case(
            "nor does it stand in for a required one",
            json!({"type": "object", "properties": {"a": {"type": "integer", "default": "1"}}, "required": ["a"]}),
            json!({}),
            json!({"a": 0}),
            &["/a: expected integer, found absent"],
        ),
        case(
            "what is made up has its defaults",
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"default": 1}}, "required": ["a"]}),
            json!(5),
            json!({"a": 0, "b": 1}),
            &["expected object, found integer"],
        ),
        case(
            "an array is no object",
            json!({"type": "object", "properties": {"length": {"type": "integer"}}, "required": ["length"]}),
            json!([1]),
            json!({"length": 0}),
            &["expected object, found array"],
        ),
        case(
            "null where a property may be absent counts as absent",
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"a": null}),
            json!({}),
            &["/a: expected string, found null"],
        ),
        case(
            "and gives way to the default",
            json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}),
            json!({"a": null}),
            json!({"a": "x"}),
            &["/a: expected string, found null"],
        ),
        case(
            "a required null is repaired",
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            json!({"a": null}),
            json!({"a": ""}),
            &["/a: expected string, found null"],
        ),
        case(
            "pointers are escaped",
            json!({"type": "object", "properties": {"a/b~c": {"type": "string"}}}),
            json!({"a/b~c": 1}),
            json!({"a/b~c": ""}),
            &["/a~1b~0c: expected string, found integer"],
        ),
    ]);
}

#[test]
fn arrays() {
    let tuple = json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false, "minItems": 2});
    let draft7 = json!({"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "boolean"}});
    let unique = json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}, "uniqueItems": true});
    verify(vec![
        case(
            "prefixItems",
            tuple.clone(),
            json!(["1", "b", true]),
            json!([0, "b"]),
            &["expected array length to be less or equal to 2, found array", "/0: expected integer, found string"],
        ),
        case(
            "a short tuple",
            tuple,
            json!([1]),
            json!([1, ""]),
            &["expected array length to be greater or equal to 2, found array"],
        ),
        case(
            "a list in items, and what comes after it",
            draft7,
            json!([1, true, "x"]),
            json!([1, true, false]),
            &["/2: expected boolean, found string"],
        ),
        case(
            "a tuple may be shorter if nothing forbids it",
            json!({"type": "array", "prefixItems": [{}, {}]}),
            json!([1]),
            json!([1]),
            &[],
        ),
        case(
            "repeated objects are kept, not lost",
            unique.clone(),
            json!([{"a": 1, "b": 1}, {"a": 1, "b": 1}]),
            json!([{"a": 1}, {"a": 1}]),
            &["expected array elements to be unique, found array, kept"],
        ),
        case(
            "objects that differ only in what would be removed stay as they are",
            unique,
            json!([{"a": 1, "b": 1}, {"a": 1}]),
            json!([{"a": 1, "b": 1}, {"a": 1}]),
            &[],
        ),
        case(
            "repeated scalars go",
            json!({"type": "array", "uniqueItems": true}),
            json!([1, 1.0, 2]),
            json!([1, 2]),
            &["expected array elements to be unique, found array"],
        ),
        case(
            "each element by itself",
            json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}}),
            json!([{"a": 1, "b": 1}, {"a": "1"}]),
            json!([{"a": 1}, {"a": 0}]),
            &["/1/a: expected integer, found string"],
        ),
    ]);
}

#[test]
fn references() {
    let node = json!({"type": "object", "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}}, "required": ["value"]});
    verify(vec![
        case(
            "into the schema itself, recursively",
            json!({"$ref": "#/$defs/Node", "$defs": {"Node": node}}),
            json!({"value": 1, "next": {"value": "2", "x": 1}}),
            json!({"value": 1, "next": {"value": 0}}),
            &["/next/value: expected integer, found string"],
        ),
        case(
            "to the root",
            json!({"type": "object", "properties": {"child": {"$ref": "#"}, "n": {"default": 1}}}),
            json!({"child": {}}),
            json!({"child": {"n": 1}, "n": 1}),
            &[],
        ),
        case(
            "escaped and encoded",
            json!({"$ref": "#/definitions/a~1b%20c", "definitions": {"a/b c": {"type": "null"}}}),
            json!(1),
            json!(null),
            &["expected null, found integer"],
        ),
        case(
            "to an anchor and an id",
            json!({"type": "array", "prefixItems": [{"$ref": "#here"}, {"$ref": "other.json#/$defs/X"}], "$defs": {"A": {"$anchor": "here", "type": "string"}, "B": {"$id": "http://example.com/other.json", "$defs": {"X": {"type": "boolean"}}}}}),
            json!([1, 1]),
            json!(["", false]),
            &["/0: expected string, found integer", "/1: expected boolean, found integer"],
        ),
        case(
            "keywords beside it apply",
            json!({"$ref": "#/$defs/A", "maxLength": 1, "default": "z", "$defs": {"A": {"type": "string"}}}),
            json!("abc"),
            json!("z"),
            &["expected string length less or equal to 1, found string"],
        ),
        case(
            "nullable beside it too",
            json!({"$ref": "#/$defs/A", "nullable": true, "$defs": {"A": {"type": "string"}}}),
            json!(null),
            json!(null),
            &[],
        ),
        case(
            "a default beside it",
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A", "default": "x"}}, "$defs": {"A": {"type": "string", "default": "y"}}}),
            json!({}),
            json!({"a": "x"}),
            &[],
        ),
        case("to nowhere: anything passes", json!({"$ref": "#/$defs/Gone"}), json!({"a": 1}), json!({"a": 1}), &[]),
        case(
            "in a circle: anything passes",
            json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}),
            json!(1),
            json!(1),
            &[],
        ),
    ]);
    let schema = CompiledSchema::new(&json!({"$ref": "#/$defs/Gone"}), Reading::Default);
    assert_eq!(
        schema.problems()[0].to_string(),
        "`#/$defs/Gone` is a reference that leads nowhere, so anything conforms"
    );
}

#[test]
fn all_of() {
    let base = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let more = json!({"type": "object", "properties": {"b": {"type": "integer"}, "c": {"type": "boolean"}}, "required": ["b"]});
    let both = json!({"allOf": [base, more]});
    let beside = json!({"allOf": [base], "properties": {"d": {"type": "integer"}}, "required": ["d"]});
    let nested = json!({"allOf": [
        {"properties": {"o": {"type": "object", "properties": {"x": {"type": "integer"}}}}},
        {"properties": {"o": {"type": "object", "properties": {"y": {"type": "integer"}}}}}
    ]});
    let closed =
        json!({"allOf": [{"properties": {"a": {}}, "additionalProperties": false}, {"properties": {"b": {}}}]});
    let with_union = json!({
        "properties": {"id": {"type": "integer"}}, "required": ["id"],
        "oneOf": [{"properties": {"x": {"type": "integer"}}, "required": ["x"]}, {"properties": {"y": {"type": "integer"}}, "required": ["y"]}]
    });
    verify(vec![
        case(
            "one wrong property costs itself",
            both.clone(),
            json!({"a": 1, "b": 2, "c": true, "z": 1}),
            json!({"a": "", "b": 2, "c": true}),
            &["/a: expected string, found integer"],
        ),
        case(
            "optional properties survive",
            both,
            json!({"a": "x", "c": true}),
            json!({"a": "x", "c": true, "b": 0}),
            &["/b: expected integer, found absent"],
        ),
        case(
            "keywords beside it are one more member",
            beside,
            json!({"a": "x", "d": "1", "e": 1}),
            json!({"a": "x", "d": 0}),
            &["/d: expected integer, found string"],
        ),
        case(
            "a property of two members has those of both",
            nested,
            json!({"o": {"x": 1, "y": "2", "z": 3}}),
            json!({"o": {"x": 1, "y": 0}}),
            &["/o/y: expected integer, found string"],
        ),
        case(
            "a closed member does not lock out the others",
            closed,
            json!({"a": 1, "b": 2, "c": 3}),
            json!({"a": 1, "b": 2}),
            &[],
        ),
        case(
            "scalars",
            json!({"allOf": [{"type": "string"}, {"minLength": 2}]}),
            json!("a"),
            json!("  "),
            &["expected string length greater or equal to 2, found string"],
        ),
        case(
            "a union beside properties",
            with_union.clone(),
            json!({"id": 1, "y": 2, "z": 3}),
            json!({"id": 1, "y": 2}),
            &[],
        ),
        case(
            "each of them repairs its own",
            with_union,
            json!({"id": "1", "y": "2", "z": 3}),
            json!({"id": 0, "y": 0}),
            &["/id: expected integer, found string", "/y: expected integer, found string"],
        ),
        case(
            "what contradicts itself is kept",
            json!({"allOf": [{"type": "string"}, {"type": "integer"}]}),
            json!(1),
            json!(1),
            &["expected nothing, found integer, kept"],
        ),
        case(
            "a base that lists its children",
            json!({"$ref": "#/$defs/Dog", "$defs": {
                "Pet": {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"], "oneOf": [{"$ref": "#/$defs/Dog"}]},
                "Dog": {"allOf": [{"$ref": "#/$defs/Pet"}, {"type": "object", "properties": {"barks": {"type": "boolean"}}}]}
            }}),
            json!({"kind": "dog", "barks": 1, "x": 1}),
            json!({"kind": "dog", "barks": false}),
            &["/barks: expected boolean, found integer"],
        ),
    ]);
}

#[test]
fn unions() {
    let tagged = json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["kind", "n"]},
        {"type": "object", "properties": {"kind": {"enum": ["b", "c"]}, "s": {"type": "string"}, "n": {"type": "string"}, "m": {"type": "string"}}, "required": ["kind", "s"]}
    ]});
    let discriminated = json!({
        "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
        "discriminator": {"propertyName": "type", "mapping": {"d": "#/$defs/Dog"}},
        "$defs": {
            "Cat": {"type": "object", "properties": {"type": {"type": "string"}, "name": {"type": "string"}}, "required": ["type"]},
            "Dog": {"type": "object", "properties": {"type": {"type": "string"}, "size": {"type": "integer"}}, "required": ["type"]}
        }
    });
    let overlapping = json!({"anyOf": [
        {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
        {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}, "required": ["id"]}
    ]});
    verify(vec![
        case(
            "several variants may fit",
            json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}),
            json!(1),
            json!(1),
            &[],
        ),
        case(
            "the constant tag names the variant",
            tagged.clone(),
            json!({"kind": "c", "s": 1, "n": "x", "z": 1}),
            json!({"kind": "c", "s": "", "n": "x"}),
            &["/s: expected string, found integer"],
        ),
        case(
            "even if another scores higher",
            tagged.clone(),
            json!({"kind": "a", "s": "x", "n": "x", "m": "x"}),
            json!({"kind": "a", "n": 0}),
            &["/n: expected integer, found string"],
        ),
        case(
            "an unknown tag is repaired by the best score",
            tagged,
            json!({"kind": "x", "s": "s"}),
            json!({"kind": "b", "s": "s"}),
            &["/kind: expected one of 'b', 'c', found string"],
        ),
        case(
            "a discriminator, mapped",
            discriminated.clone(),
            json!({"type": "d", "size": 1, "name": "x"}),
            json!({"type": "d", "size": 1}),
            &[],
        ),
        case(
            "a discriminator by name",
            discriminated,
            json!({"type": "Cat", "size": 1, "name": "x"}),
            json!({"type": "Cat", "name": "x"}),
            &[],
        ),
        case(
            "of the variants that fit, the one that loses least",
            overlapping,
            json!({"id": 1, "name": "x", "z": 1}),
            json!({"id": 1, "name": "x"}),
            &[],
        ),
        case(
            "a variant may need its defaults first",
            json!({"anyOf": [{"type": "object", "properties": {"a": {"type": "integer", "default": 1}}, "required": ["a"]}, {"type": "string"}]}),
            json!({}),
            json!({"a": 1}),
            &[],
        ),
        case(
            "nothing fits: the variant of the value's type",
            json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}),
            json!(["x", 1]),
            json!([0, 1]),
            &["/0: expected integer, found string"],
        ),
        case(
            "no variant of its type: the first",
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
            json!({}),
            json!(""),
            &["expected string or integer, found object"],
        ),
        case(
            "a default wins over a repair",
            json!({"anyOf": [{"type": "string", "minLength": 2}, {"type": "integer"}], "default": 7}),
            json!("x"),
            json!(7),
            &["expected string length greater or equal to 2, found string"],
        ),
        case(
            "but an object or array that can be but one variant is repaired, not replaced",
            json!({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "default": null, "$defs": {"A": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}}),
            json!({"a": "1", "b": 2}),
            json!({"a": 0, "b": 2}),
            &["/a: expected integer, found string"],
        ),
        case(
            "but not over cleaning",
            json!({"anyOf": [{"type": "object", "properties": {"a": {}}, "additionalProperties": false}, {"type": "string"}], "default": "x"}),
            json!({"a": 1, "b": 1}),
            json!({"a": 1}),
            &[],
        ),
        case(
            "null first",
            json!({"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}]}),
            json!({"b": 1}),
            json!({"a": 0}),
            &["/a: expected integer, found absent"],
        ),
        case(
            "a type beside a union",
            json!({"type": "object", "anyOf": [{"properties": {"a": {"type": "integer"}}}, {"required": ["b"]}]}),
            json!({"a": 1}),
            json!({"a": 1}),
            &[],
        ),
    ]);
}

#[test]
fn unions_in_intersections_in_unions() {
    let schema = json!({"$ref": "#/$defs/Top", "$defs": {
        "Top": {"properties": {"t": {"type": "integer"}}, "anyOf": [{"$ref": "#/$defs/Middle"}]},
        "Middle": {"properties": {"m": {"type": "integer"}}, "oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]},
        "A": {"allOf": [{"$ref": "#/$defs/C"}, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}]},
        "B": {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]},
        "C": {"type": "object", "properties": {"c": {"type": "integer"}}, "anyOf": [{"required": ["c"]}, {"properties": {"d": {}}, "required": ["d"]}]}
    }});
    verify(vec![case(
        "declared at any level",
        schema,
        json!({"t": 1, "m": 2, "a": 3, "d": 4, "x": 6}),
        json!({"t": 1, "m": 2, "a": 3, "d": 4}),
        &[],
    )]);
}

#[test]
fn casting_alone_neither_strips_nor_fills() {
    let schema = CompiledSchema::new(
        &json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"default": 1}}}),
        Reading::Default,
    );
    assert_eq!(schema.cast(json!({"a": 1.0, "x": 1})), (json!({"a": 1.0, "x": 1}), vec![]));
    let (value, repairs) = schema.cast(json!({"a": "1", "x": 1}));
    assert_eq!(value, json!({"a": 0}));
    let repairs: Vec<String> = repairs.iter().map(ToString::to_string).collect();
    assert_eq!(repairs, ["/a: expected integer, found string", "/x: expected nothing, found integer"]);
}

#[test]
fn normalising_in_the_compatible_reading_is_three_steps() {
    let schema = json!({"allOf": [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"type": "integer", "default": 2}, "c": {"type": "boolean"}}, "required": ["b"]}
    ]});
    let compiled = CompiledSchema::new(&schema, Reading::Compat);
    assert_eq!(
        compiled.normalise(json!({"a": "x", "c": true, "z": 1})),
        (json!({"a": "x", "c": true, "b": 2}), vec![])
    );
    let (value, repairs) = compiled.normalise(json!({"a": 1, "c": true}));
    assert_eq!(value, json!({"a": "", "b": 2}));
    assert_eq!(repairs.len(), 1);
}

#[test]
fn definitions_are_shared_and_compiled_once() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let definitions = CompiledDefinitions::new(Reading::Default, |name| {
        ASKED.fetch_add(1, Ordering::Relaxed);
        Some(match name {
            "Node" => {
                json!({"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/components/schemas/Node"}, "other": {"$ref": "#/$defs/Gone"}}, "required": ["v"]})
            }
            "a/b" => json!({"type": "string"}),
            "Outer" => json!({"type": "object", "properties": {"inner": {"type": "boolean"}}}),
            _ => return None,
        })
    });
    let list = CompiledSchema::with_definitions(
        &json!({"type": "array", "items": {"$ref": "#/definitions/Node"}}),
        &definitions,
    );
    let one = CompiledSchema::with_definitions(&json!({"$ref": "#/$defs/Node"}), &definitions);
    assert_eq!(ASKED.load(Ordering::Relaxed), 0, "nothing is compiled before it is used");
    let (value, repairs) = list.normalise(json!([{"v": 1, "next": {"v": "x", "z": 1}, "other": [1]}]));
    assert_eq!(value, json!([{"v": 1, "next": {"v": 0}, "other": [1]}]));
    let changes: Vec<_> = repairs.iter().map(|repair| (repair.pointer.as_str(), repair.change)).collect();
    assert_eq!(changes, [("/0/next/v", Change::MadeUp), ("/0/next/z", Change::Removed)]);
    assert!(!one.check(&json!({})));
    assert_eq!(definitions.problems()[0].subject, "Gone");
    let nodes = ASKED.load(Ordering::Relaxed);
    assert!(one.check(&json!({"v": 1, "next": {"v": 2}})));
    assert_eq!(ASKED.load(Ordering::Relaxed), nodes, "each is compiled once");
    let own = CompiledSchema::with_definitions(
        &json!({"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "null"}}}),
        &definitions,
    );
    assert!(own.check(&json!(null)), "the schema's own definitions come first");
    for (reference, value) in
        [("#/components/schemas/a~1b", json!("x")), ("#/$defs/Outer/properties/inner", json!(true))]
    {
        let schema = CompiledSchema::with_definitions(&json!({"$ref": reference}), &definitions);
        assert!(schema.check(&value) && !schema.check(&json!(1)), "{reference}");
    }
}

#[test]
fn violations_name_the_place() {
    let schema = CompiledSchema::new(
        &json!({"type": "object", "properties": {
            "a": {"type": "integer", "minimum": 3},
            "u": {"oneOf": [
                {"type": "object", "properties": {"t": {"const": "x"}, "n": {"type": "integer"}}, "required": ["t", "n"]},
                {"type": "object", "properties": {"t": {"const": "y"}}, "required": ["t"]}
            ]}
        }, "required": ["a", "b"], "additionalProperties": false}),
        Reading::Default,
    );
    let found: Vec<String> = schema
        .violations(&json!({"a": 1, "u": {"t": "x", "n": "1"}, "z": 1}))
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        found,
        [
            "/b: Expected required property",
            "/z: Unexpected property",
            "/a: Expected integer to be greater or equal to 3",
            "/u/n: Expected integer",
        ]
    );
}
