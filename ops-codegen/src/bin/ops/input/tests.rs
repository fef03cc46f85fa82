//! Tests of inputs from the command line.

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
fn a_name_has_as_many_parts_as_json_may_be_deep() {
    let name = |parts: usize| vec!["a"; parts].join(".");
    let mut input = Value::Null;
    add(&mut input, &[format!("{}=1", name(128))], &json!({})).unwrap();
    assert_eq!(input.pointer(&"/a".repeat(128)), Some(&json!(1)));
    let told = add(&mut Value::Null, &[format!("{}=1", name(60_001)), "b=1".to_owned()], &json!({})).unwrap_err();
    assert_eq!(told, "the name of a property has 60001 parts between dots: it may have 128");
}

#[test]
fn what_holds_under_a_condition_is_read_by_its_schema() {
    let schema = json!({
        "properties": { "method": { "type": "string" } },
        "if": { "properties": { "method": { "const": "card" } } },
        "then": { "properties": { "number": { "type": "string" } } },
        "dependentSchemas": { "number": { "properties": { "month": { "type": "string" } } } },
    });
    let mut input = Value::Null;
    add(&mut input, &["method=card", "number=4111", "month=7"].map(str::to_owned), &schema).unwrap();
    assert_eq!(input, json!({ "method": "card", "number": "4111", "month": "7" }));
}

#[test]
fn a_text_is_a_value_or_an_item() {
    let integers = json!({ "type": "array", "items": { "type": "integer" } });
    let schema = json!({ "properties": {
        "input": { "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "object" } }] },
        "ids": { "anyOf": [{ "enum": ["all"] }, integers] },
        "prompt": { "anyOf": [{ "type": "string" }, integers] },
        "list": { "type": ["array", "null"], "items": { "type": "integer" } },
        "to": { "type": ["string", "array"], "items": { "type": "string" } },
        "value": { "oneOf": [{ "type": "number" }, { "type": "array", "items": { "type": "string" } }] },
    } });
    let added = |given: Value, pairs: &[&str]| {
        let mut input = given;
        let pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        add(&mut input, &pairs, &schema).map(|()| input)
    };
    for (pairs, wanted) in [
        (&["input=hello"][..], json!({ "input": "hello" })),
        (&["input={\"a\":1}"], json!({ "input": "{\"a\":1}" })),
        (&["ids=all"], json!({ "ids": "all" })),
        (&["ids=5"], json!({ "ids": [5] })),
        (&["prompt=5"], json!({ "prompt": "5" })),
        (&["prompt=5", "prompt=6", "prompt=7"], json!({ "prompt": [5, 6, 7] })),
        (&["prompt=[5]"], json!({ "prompt": [5] })),
        (&["list=null"], json!({ "list": null })),
        (&["list=1"], json!({ "list": [1] })),
        (&["to=x"], json!({ "to": "x" })),
        (&["to=x", "to=y"], json!({ "to": ["x", "y"] })),
        // Each item is as it was written, including the first.
        (&["value=1.10"], json!({ "value": 1.1 })),
        (&["value=1.10", "value=2", "value=3.0"], json!({ "value": ["1.10", "2", "3.0"] })),
        (&["value=1e3", "value=x"], json!({ "value": ["1e3", "x"] })),
    ] {
        assert_eq!(added(json!({}), pairs), Ok(wanted), "{pairs:?}");
    }
    // A list that was begun goes on.
    assert_eq!(added(json!({ "to": ["x"] }), &["to=y"]), Ok(json!({ "to": ["x", "y"] })));
    for pairs in [&["ids=none"][..], &["ids=all", "ids=5"], &["list=null", "list=1"]] {
        assert!(added(json!({}), pairs).unwrap_err().contains("the schema asks for integer"), "{pairs:?}");
    }
}

#[test]
fn keys_of_maps_may_have_dots() {
    let schema = json!({ "properties": {
        "labels": { "additionalProperties": { "type": "string" } },
        "groups": { "additionalProperties": { "type": "array", "items": { "type": "string" } } },
        "pets": { "additionalProperties": { "type": "object", "properties": { "name": { "type": "string" } } } },
    } });
    let pairs = ["labels.app.kubernetes.io/name=web", "groups.a.b=x", "groups.a.b=y", "pets.Rex.name=R", "free.a.b=1"];
    let mut input = Value::Null;
    add(&mut input, &pairs.map(str::to_owned), &schema).unwrap();
    let wanted = json!({
        "labels": { "app.kubernetes.io/name": "web" },
        "groups": { "a.b": ["x", "y"] },
        "pets": { "Rex": { "name": "R" } },
        "free": { "a": { "b": 1 } },
    });
    assert_eq!(input, wanted);
}

#[test]
fn members_without_a_name_in_the_schema_are_read_by_its_other_schemas() {
    let schema = json!({ "properties": {
        "labels": { "type": "object", "patternProperties": { "^[a-z.]+/[a-z]+$": { "type": "string" } } },
        "versions": { "type": "object", "patternProperties": { "^(.*)$": { "type": "string" } } },
        "rates": { "patternProperties": { "^[A-Z]{3}$": { "properties": { "rate": { "type": "string" } } } } },
        "mixed": { "patternProperties": { "^n": { "type": "integer" } }, "additionalProperties": { "type": "string" } },
        "open": { "properties": { "a": {} }, "unevaluatedProperties": { "type": "string" } },
    } });
    let pairs = [
        "labels.app.kubernetes.io/name=1",
        "versions.version=1.10",
        "versions.a.b=2",
        "rates.EUR.rate=1.10",
        "mixed.n=1",
        "mixed.s=1",
        "open.b=7",
    ];
    let mut input = Value::Null;
    add(&mut input, &pairs.map(str::to_owned), &schema).unwrap();
    let wanted = json!({
        "labels": { "app.kubernetes.io/name": "1" },
        "versions": { "version": "1.10", "a.b": "2" },
        "rates": { "EUR": { "rate": "1.10" } },
        "mixed": { "n": 1, "s": "1" },
        "open": { "b": "7" },
    });
    assert_eq!(input, wanted);
    assert_eq!(check(&input, &schema, true), Ok(()));
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
        (json!({}), &[r#"body={"price":3}"#, "body.name=Rex"][..], json!({ "body": { "price": 3, "name": "Rex" } })),
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
        ("-0", &["integer"], "0"),
        ("1e3", &["null", "integer"], "1000"),
        ("-2.0", &["integer"], "-2"),
        ("1e18", &["integer"], "1000000000000000000"),
        ("1e3", &["number"], "1000.0"),
        ("1e3", &["integer", "number"], "1000.0"),
        ("1e3", &[], "1000.0"),
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
fn a_whole_input_is_read_as_it_is_or_refused() {
    assert_eq!(whole("\u{feff}{\"a\":1}"), Ok(json!({ "a": 1 })));
    assert_eq!(whole(r#"{"a":"123456789012345678901"}"#), Ok(json!({ "a": "123456789012345678901" })));
    let told = whole(r#"{"a":[{"b":123456789012345678901}]}"#).unwrap_err();
    assert_eq!(
        told,
        "the input: `123456789012345678901` has more than 64 bits, so it would be rounded: add `.0` if that will do"
    );
    assert!(whole("{").unwrap_err().starts_with("the input is not JSON: "));
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
