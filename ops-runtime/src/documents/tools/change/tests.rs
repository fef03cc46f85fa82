//! Changes, in one word or several, and which of them break.

use serde_json::{Value, json};

use super::changes;
use crate::Api;
use crate::mcp::{ReadOptions, read};

fn api(tool: Value) -> Api {
    let (api, diagnostics) = read(&json!({ "tools": [tool] }), &ReadOptions::new()).unwrap();
    assert_eq!(diagnostics, []);
    api
}

fn told(old: Value, new: Value) -> Vec<String> {
    changes(&api(old), &api(new)).iter().map(ToString::to_string).collect()
}

/// Compares a property of the input, and the same of the output.
#[track_caller]
fn property(old: &Value, new: &Value, input: &[&str], output: &[&str]) {
    let tool = |key: &str, schema: &Value| {
        let schema = json!({ "type": "object", "properties": { "p": schema }, "$defs": {
            "Tree": { "type": "object", "properties": { "left": { "$ref": "#/$defs/Tree" }, "value": { "type": "integer" } } },
            "Leaf": { "type": "object", "properties": { "left": { "$ref": "#/$defs/Leaf" }, "value": { "type": "string" } } },
            "Cat": { "type": "object", "properties": { "kind": { "const": "cat" }, "lives": { "type": "integer" } }, "required": ["kind"] },
            "Dog": { "type": "object", "properties": { "kind": { "const": "dog" } }, "required": ["kind"] },
            "Pet": { "oneOf": [{ "$ref": "#/$defs/Cat" }, { "$ref": "#/$defs/Dog" }] },
        } });
        let mut tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
        tool[key] = schema;
        tool
    };
    for (key, expected) in [("inputSchema", input), ("outputSchema", output)] {
        let start = format!("`t` /{key}/properties/p");
        let found: Vec<String> = told(tool(key, old), tool(key, new))
            .iter()
            .map(|text| {
                let (word, rest) = text.split_once(": ").unwrap();
                format!("{}{}", if word == "breaking" { "!" } else { "" }, rest.strip_prefix(&start).unwrap())
            })
            .collect();
        assert_eq!(found, expected, "{key}: {old} -> {new}");
    }
}

#[test]
fn kinds_and_limits() {
    let string = json!({ "type": "string" });
    let integer = json!({ "type": "integer" });
    let number = json!({ "type": "number" });
    property(&string, &string, &[], &[]);
    property(&string, &json!({ "type": "string", "title": "T", "description": "D" }), &[], &[]);
    property(&string, &integer, &["!: it was string and is integer now"], &["!: it was string and is integer now"]);
    property(&integer, &number, &[": it was integer and is number now"], &["!: it was integer and is number now"]);
    property(&number, &integer, &["!: it was number and is integer now"], &[": it was number and is integer now"]);
    property(&string, &json!({}), &[": it was string and is anything now"], &["!: it was string and is anything now"]);
    property(&json!({}), &string, &["!: it was anything and is string now"], &[": it was anything and is string now"]);
    let with = |key: &str, value: Value| json!({ "type": "string", key: value });
    property(&string, &with("maxLength", json!(5)), &["!: `maxLength` is 5 now"], &[": `maxLength` is 5 now"]);
    property(
        &with("maxLength", json!(5)),
        &with("maxLength", json!(9)),
        &[": `maxLength` is 9 now"],
        &[": `maxLength` is 9 now"],
    );
    // A length is at least 0 anyway.
    property(&string, &with("minLength", json!(0)), &[], &[]);
    property(&with("minItems", json!(0)), &string, &[], &[]);
    // What is said of objects says nothing of a text.
    property(&string, &with("minProperties", json!(1)), &[], &[]);
    property(
        &json!({ "type": "object" }),
        &json!({ "type": "object", "minProperties": 1 }),
        &["!: `minProperties` is 1 now"],
        &[": `minProperties` is 1 now"],
    );
    let minimum = |value: i32| json!({ "type": "number", "minimum": value });
    property(&number, &minimum(0), &["!: `minimum` is 0 now"], &[": `minimum` is 0 now"]);
    property(
        &with("minLength", json!(5)),
        &string,
        &[": there is no `minLength` any more"],
        &[": there is no `minLength` any more"],
    );
    property(&string, &with("pattern", json!("a")), &["!: `pattern` changed"], &[": `pattern` changed"]);
    property(&with("pattern", json!("a")), &string, &[": `pattern` changed"], &[": `pattern` changed"]);
    property(
        &with("format", json!("date")),
        &string,
        &[": it has no format any more"],
        &["!: it has no format any more"],
    );
    property(
        &string,
        &with("format", json!("date")),
        &["!: its format is `date` now"],
        &[": its format is `date` now"],
    );
    // A limit breaks no output unless it selects a type: here one without a sign, beyond 63 bits.
    let positive = json!({ "type": "integer", "minimum": 0 });
    property(&positive, &integer, &[": there is no `minimum` any more"], &[": there is no `minimum` any more"]);
    let unsigned = json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX });
    property(&unsigned, &positive, &[": there is no `maximum` any more"], &["!: there is no `maximum` any more"]);
    let format = |format: &str| json!({ "type": "integer", "format": format });
    let (is, text) = (|format: &str| format!(": its format is `{format}` now"), |text: String| format!("!{text}"));
    property(&format("int32"), &format("int64"), &[&is("int64")], &[&text(is("int64"))]);
    property(&format("int64"), &format("int32"), &[&text(is("int32"))], &[&is("int32")]);
    property(&string, &with("default", json!("x")), &[": its default changed"], &[": its default changed"]);
}

#[test]
fn values() {
    let ab = json!({ "type": "string", "enum": ["a", "b"] });
    let a = json!({ "type": "string", "const": "a" });
    let abc = json!({ "enum": ["a", "b", "c"] });
    property(&ab, &abc, &[": the value \"c\" is taken now"], &[": the value \"c\" can come now"]);
    property(&abc, &ab, &["!: the value \"c\" is not taken any more"], &[": the value \"c\" does not come any more"]);
    property(&ab, &a, &["!: the value \"b\" is not taken any more"], &[": the value \"b\" does not come any more"]);
    // A type of one value takes no other.
    property(&a, &ab, &[": the value \"b\" is taken now"], &["!: the value \"b\" can come now"]);
    let string = json!({ "type": "string" });
    property(&string, &ab, &["!: it takes only some values now"], &[": it has only some values now"]);
    property(&ab, &string, &[": it takes any value now"], &[": it can have any value now"]);
}

#[test]
fn unions() {
    let string = json!({ "type": "string" });
    let nullable = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
    property(&nullable, &json!({ "type": ["null", "string"] }), &[], &[]);
    property(&string, &nullable, &[": null is taken now"], &["!: null can come now"]);
    property(&nullable, &string, &["!: null is not taken any more"], &[": null does not come any more"]);
    let number = json!({ "anyOf": [{ "type": "number" }, { "type": "null" }] });
    property(&nullable, &number, &["!: it was string and is number now"], &["!: it was string and is number now"]);
    let pet = json!({ "$ref": "#/$defs/Pet" });
    let both = json!({ "anyOf": [{ "$ref": "#/$defs/Dog" }, { "$ref": "#/$defs/Cat" }] });
    property(&pet, &both, &[], &[]);
    property(&both, &pet, &[], &[]);
    let cat = json!({ "$ref": "#/$defs/Cat" });
    property(&pet, &cat, &["!: `Dog` is not taken any more"], &[": `Dog` does not come any more"]);
    property(&cat, &pet, &[": `Dog` is taken now"], &["!: `Dog` can come now"]);
}

#[test]
fn objects() {
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let a = json!({ "a": { "type": "string" } });
    let ab = json!({ "a": { "type": "string" }, "b": {} });
    let at = |text: &str| format!("/properties/{text}");
    let (none, is_a, is_b) = (json!([]), json!(["a"]), json!(["b"]));
    property(
        &object(a.clone(), none.clone()),
        &object(ab.clone(), none.clone()),
        &[&at("b: the property is new")],
        &[&at("b: the property is new")],
    );
    property(
        &object(a.clone(), none.clone()),
        &object(ab.clone(), is_b.clone()),
        &[&format!("!{}", at("b: the property is new, and required"))],
        &[&at("b: the property is new, and required")],
    );
    property(
        &object(ab.clone(), none.clone()),
        &object(a.clone(), none.clone()),
        &[&format!("!{}", at("b: the property is gone"))],
        &[&at("b: the property is gone")],
    );
    let gone = format!("!{}", at("b: the property is gone"));
    property(&object(ab.clone(), is_b.clone()), &object(a.clone(), none.clone()), &[&gone], &[&gone]);
    property(
        &object(a.clone(), none.clone()),
        &object(a.clone(), is_a.clone()),
        &[&format!("!{}", at("a: it is required now"))],
        &[&at("a: it is always there now")],
    );
    property(
        &object(a.clone(), is_a.clone()),
        &object(a.clone(), none.clone()),
        &[&at("a: it is not required any more")],
        &[&format!("!{}", at("a: it may be absent now"))],
    );
    let closed = |open: Value| json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": open });
    property(&closed(json!(false)), &closed(json!(true)), &[], &[]);
    property(
        &closed(json!(true)),
        &closed(json!(false)),
        &["!/additionalProperties: it was anything and is nothing now"],
        &[],
    );
    let text = closed(json!({ "type": "string" }));
    let number = closed(json!({ "type": "number" }));
    property(
        &text,
        &number,
        &["!/additionalProperties: it was string and is number now"],
        &["!/additionalProperties: it was string and is number now"],
    );
    property(&text, &closed(json!(false)), &["!/additionalProperties: it was string and is nothing now"], &[]);
    // A type that keeps other properties as text takes the new one for one of them, and a caller may send it as text.
    let new = json!({ "type": "object", "properties": { "a": {}, "n": { "type": "number" } }, "additionalProperties": { "type": "string" } });
    property(
        &text,
        &new,
        &["/properties/n: the property is new", "!/properties/n: it was string and is number now"],
        &["/properties/n: the property is new", "!/properties/n: it was string and is number now"],
    );
}

#[test]
fn lists_and_recursion() {
    let list = |items: Value| json!({ "type": "array", "items": items });
    property(
        &list(json!({ "type": "string" })),
        &list(json!({ "type": "number" })),
        &["!/items: it was string and is number now"],
        &["!/items: it was string and is number now"],
    );
    let pair = json!({ "type": "array", "prefixItems": [{}, {}] });
    let three = json!({ "type": "array", "prefixItems": [{}, {}, {}] });
    let message = "!: it has 3 items of their own now, not 2";
    property(&pair, &three, &[message], &[message]);
    let tree = json!({ "$ref": "#/$defs/Tree" });
    let leaf = json!({ "$ref": "#/$defs/Leaf" });
    property(&tree, &tree, &[], &[]);
    let message = "!/properties/value: it was integer and is string now";
    property(&tree, &leaf, &[message], &[message]);
}

#[test]
fn what_cannot_be_compared_breaks_unless_it_is_the_same() {
    let all = |name: &str| json!({ "allOf": [{ "$ref": format!("#/$defs/{name}") }], "description": name });
    property(&all("Tree"), &all("Tree"), &[], &[]);
    // The parts are compared as one schema.
    let message = "!/properties/value: it was integer and is string now";
    property(&all("Tree"), &all("Leaf"), &[message], &[message]);
    let two = |name: &str| json!({ "allOf": [{ "$ref": format!("#/$defs/{name}") }, { "required": ["value"] }] });
    let deep = "!/properties/left/properties/value: it was integer and is string now";
    property(&two("Tree"), &two("Leaf"), &[deep, message], &[deep, message]);
    let message = "!: it changed in a way that cannot be compared";
    let odd = |value: u32| json!({ "type": "integer", "not": { "const": value } });
    property(&odd(1), &odd(2), &[message], &[]);
}

#[test]
fn tools() {
    let tool = |members: Value| {
        let mut tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
        tool.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        tool
    };
    let wrapped = |of: &str| json!({ "outputSchema": { "type": "object", "properties": { "result": { "type": of } }, "required": ["result"] } });
    let plain = json!({ "outputSchema": { "type": "object", "properties": { "count": { "type": "integer" } } } });
    for (old, new, expected) in [
        (
            json!({}),
            json!({ "title": "T" }),
            vec!["change: `t` /title: the title changed", "change: `t` /description: the description changed"],
        ),
        (
            json!({}),
            json!({ "annotations": { "readOnlyHint": true } }),
            vec!["change: `t` /annotations: it was a mutation and is a query now"],
        ),
        (
            json!({}),
            plain.clone(),
            vec!["change: `t` /outputSchema: it has an output schema now, beside its content blocks"],
        ),
        (plain.clone(), json!({}), vec!["breaking: `t` /outputSchema: it has no output schema any more"]),
        (
            plain,
            wrapped("string"),
            vec!["breaking: `t` /outputSchema: the output stands in another place of the result"],
        ),
        (
            wrapped("string"),
            wrapped("number"),
            vec!["breaking: `t` /outputSchema/properties/result: it was string and is number now"],
        ),
    ] {
        assert_eq!(told(tool(old), tool(new)), expected);
    }
    let mut other = tool(json!({}));
    other["name"] = "u".into();
    assert_eq!(told(tool(json!({})), other), ["breaking: `t`: the tool is gone", "change: `u`: the tool is new"]);
}

#[test]
fn a_hostile_schema_ends() {
    // Unions of unions, each of which could be any of the others.
    let schema = |leaf: &str| {
        let names: Vec<Value> = (0..40).map(|at| json!({ "$ref": format!("#/$defs/U{at}") })).collect();
        let union = |at: usize| {
            let object = json!({ "type": "object", "properties": { "next": { "anyOf": names }, "at": { "const": at }, "leaf": { "type": leaf } } });
            (format!("U{at}"), object)
        };
        let definitions: Value = Value::Object((0..40).map(union).collect());
        json!({ "type": "object", "properties": { "p": { "anyOf": names } }, "$defs": definitions })
    };
    let tool = |leaf: &str| json!({ "name": "t", "inputSchema": schema(leaf) });
    assert!(told(tool("string"), tool("number")).iter().any(|text| text.starts_with("breaking")));
}
