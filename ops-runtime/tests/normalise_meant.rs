//! Which schema is meant: by references with identifiers, and by the variants of unions.
#![cfg(feature = "registry")]

use ops_runtime::normalise::{Change, CompiledSchema, Reading, Repair, Validator};
use serde_json::{Value, json};

fn compiled(schema: &Value) -> CompiledSchema {
    CompiledSchema::new(schema, Reading::Default)
}

fn told((value, told): (Value, Vec<Repair>)) -> (Value, Vec<String>) {
    (value, told.iter().map(ToString::to_string).collect())
}

/// Checks that a value conforms by both readings, and that nothing is done with it.
#[track_caller]
fn is_left_alone(schema: &Value, value: &Value) {
    let compiled = compiled(schema);
    assert!(Validator::new(schema).check(value) && compiled.check(value), "{value} under {schema}");
    assert_eq!(&compiled.clean(value.clone()), value, "{schema}");
    assert_eq!(compiled.repair(value.clone()), (value.clone(), vec![]), "{schema}");
    assert_eq!(compiled.normalise(value.clone()), (value.clone(), vec![]), "{schema}");
    if let Some((text, told)) = compiled.repair_text(&value.to_string()) {
        assert_eq!((text.into_owned(), told), (value.to_string(), vec![]), "{schema}");
    }
}

/// An object with one property of this name.
fn record(name: &str, more: &Value) -> Value {
    let mut schema = json!({ "type": "object", "properties": { (name): {} } });
    schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    schema
}

/// Two lists, of which each has a resource of its own.
fn two_lists(a: &Value, b: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { "a": { "$ref": "https://x/a" }, "b": { "$ref": "https://x/b" } },
        "$defs": { "A": a, "B": b },
    })
}

#[test]
fn names_mean_what_their_own_resource_says() {
    let value = json!({ "a": [{ "n": 7 }], "b": [{ "s": "x" }] });
    // An anchor.
    let list = |id: &str, name: &str| {
        let item = record(name, &json!({ "$anchor": "item" }));
        json!({ "$id": id, "type": "array", "items": { "$ref": "#item" }, "$defs": { "i": item } })
    };
    is_left_alone(&two_lists(&list("https://x/a", "n"), &list("https://x/b", "s")), &value);
    // The last segment of an identifier.
    let list = |id: &str, folder: &str, name: &str| {
        let item = record(name, &json!({ "$id": format!("{folder}/item.json") }));
        let list = json!({ "$id": format!("{folder}/list.json"), "type": "array", "items": { "$ref": "item.json" } });
        json!({ "$id": id, "$ref": format!("{folder}/list.json"), "$defs": { "item": item, "list": list } })
    };
    is_left_alone(&two_lists(&list("https://x/a", "pets", "n"), &list("https://x/b", "users", "s")), &value);
    // What is no schema has no names.
    let schema = json!({
        "type": "object",
        "properties": { "x": { "$ref": "#n" } },
        "$defs": { "n": record("k", &json!({ "$anchor": "n" })) },
        "examples": [record("other", &json!({ "$anchor": "n" }))],
    });
    is_left_alone(&schema, &json!({ "x": { "k": 1 } }));
}

#[test]
fn nothing_is_made_up_by_the_schema_of_another_resource() {
    let list = |id: &str, item: &Value| {
        let mut item = item.clone();
        item["$anchor"] = json!("item");
        json!({ "$id": id, "type": "array", "items": { "$ref": "#item" }, "$defs": { "i": item } })
    };
    let paid = json!({ "type": "object", "properties": { "paid": { "type": "boolean", "default": true } } });
    let schema = two_lists(&list("https://x/a", &record("n", &json!({}))), &list("https://x/b", &paid));
    let value = json!({ "a": [{ "n": 1 }], "b": [{}] });
    assert_eq!(compiled(&schema).repair(value).0, json!({ "a": [{ "n": 1 }], "b": [{ "paid": true }] }));
}

/// Which schema such a reference means depends on the way to it: what it declares is not known.
#[test]
fn dynamic_references_remove_nothing() {
    let value = json!({ "a": [{ "n": 7 }], "b": [{ "s": "x" }] });
    let of = |id: &str, name: &str| {
        let item = record(name, &json!({ "$dynamicAnchor": "t" }));
        json!({ "$id": id, "$ref": "list", "$defs": { "t": item } })
    };
    let mut schema = two_lists(&of("https://x/a", "n"), &of("https://x/b", "s"));
    schema["$defs"]["list"] = json!({
        "$id": "https://x/list", "type": "array", "items": { "$dynamicRef": "#t" },
        "$defs": { "t": { "$dynamicAnchor": "t" } },
    });
    is_left_alone(&schema, &value);
    assert_eq!(compiled(&schema).problems(), []);
    // With one target, there is only one way.
    let one = json!({
        "type": "array",
        "items": { "$dynamicRef": "#t" },
        "$defs": { "t": record("n", &json!({ "$dynamicAnchor": "t" })) },
    });
    assert_eq!(compiled(&one).clean(json!([{ "n": 1, "other": 2 }])), json!([{ "n": 1 }]));
    // The same in the words of draft 2019-09, and of two references in one schema.
    let tree = record("data", &json!({ "$id": "https://x/tree", "$recursiveAnchor": true }));
    let mut wide = tree.clone();
    wide["$id"] = json!("https://x/wide");
    wide["$ref"] = json!("tree");
    let mut tree = tree;
    tree["properties"] = json!({ "child": { "$recursiveRef": "#" } });
    let schema = json!({ "$ref": "https://x/wide", "$defs": { "tree": tree, "wide": wide } });
    is_left_alone(&schema, &json!({ "data": 1, "child": { "data": 2 } }));
    let both = json!({
        "$ref": "#/$defs/a",
        "$dynamicRef": "#t",
        "$defs": { "a": record("n", &json!({})), "t": record("s", &json!({ "$dynamicAnchor": "t" })) },
    });
    is_left_alone(&both, &json!({ "n": 1, "s": 2 }));
}

/// A union of two by a discriminator.
fn discriminated(keyword: &str, (a, b): (Value, Value), more: &Value) -> Value {
    let mut discriminator = json!({ "propertyName": "kind" });
    discriminator.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({
        (keyword): [{ "$ref": "#/$defs/A" }, { "$ref": "#/$defs/B" }],
        "discriminator": discriminator,
        "$defs": { "A": a, "B": b },
    })
}

#[test]
fn the_default_of_a_tag_does_not_make_another_variant() {
    let dog = json!({
        "type": "object",
        "properties": { "kind": { "const": "dog" }, "bark": { "type": "boolean" } },
        "required": ["kind", "bark"],
    });
    let pet = |default: &str, required: &[&str]| {
        json!({
            "type": "object",
            "properties": { "kind": { "type": "string", "default": default }, "name": { "type": "string" } },
            "required": required,
        })
    };
    for keyword in ["oneOf", "anyOf"] {
        let schema = discriminated(keyword, (dog.clone(), pet("dog", &[])), &json!({}));
        is_left_alone(&schema, &json!({ "name": "Rex" }));
        // One that names the variant itself is filled in.
        let schema = discriminated(keyword, (dog.clone(), pet("B", &[])), &json!({}));
        let filled = json!({ "name": "Rex", "kind": "B" });
        assert_eq!(compiled(&schema).repair(json!({ "name": "Rex" })), (filled, vec![]));
        // What has to be there, and would name another, is a fault.
        let schema = discriminated(keyword, (dog.clone(), pet("dog", &["kind"])), &json!({}));
        let (left, told) = told(compiled(&schema).repair(json!({ "name": "Rex" })));
        assert_eq!(left, json!({ "name": "Rex" }));
        assert_eq!(told, ["/kind: expected one of 'A', 'B', 'dog', found absent, kept"]);
    }
}

#[test]
fn a_converted_tag_does_not_make_another_variant() {
    let named = json!({ "type": "object", "properties": { "kind": { "enum": ["B"] }, "b": { "type": "string" } } });
    let any = json!({ "type": "object", "properties": { "kind": { "type": "string" } } });
    let schema = discriminated("oneOf", (any, named), &json!({ "defaultMapping": "#/$defs/B" }));
    let value = json!({ "kind": true });
    let (left, told) = told(compiled(&schema).repair(value.clone()));
    assert_eq!(left, value);
    assert_eq!(told, ["expected a value of one of 2 schemas, found object, kept"]);
}

#[test]
fn a_variant_that_a_value_names_declares_its_properties_beside_others() {
    let a = json!({ "type": "object", "properties": { "kind": { "type": "string" } } });
    let b = json!({ "type": "object", "properties": { "kind": { "enum": ["B"] }, "b": { "type": "string" } } });
    let mut schema = discriminated("anyOf", (a, b), &json!({}));
    schema["type"] = json!("object");
    schema["properties"] = json!({ "z": { "type": "integer" } });
    let (made, told) = told(compiled(&schema).normalise(json!({ "kind": "B", "b": false, "z": 1 })));
    assert_eq!(made, json!({ "kind": "B", "b": "", "z": 1 }));
    assert_eq!(told, ["/b: expected string, found boolean"]);
}

/// Where nothing is repaired, nothing is removed by a guess either.
#[test]
fn cleaning_keeps_what_is_of_no_known_variant() {
    let tagged = |tag: &str| json!({ "type": "object", "properties": { "kind": { "const": tag }, (tag): {} }, "required": ["kind"] });
    let only = |name: &str| json!({ "type": "object", "properties": { "name": {}, (name): { "type": "integer" } }, "required": [name] });
    for (variants, value) in [
        (json!([tagged("a"), tagged("b")]), json!({ "kind": "new", "x": 1, "b": 2, "y": { "z": 1 } })),
        (json!([only("cat"), only("dog")]), json!({ "name": "x", "dog": "seven", "cat": "eight" })),
    ] {
        for keyword in ["oneOf", "anyOf"] {
            assert_eq!(compiled(&json!({ (keyword): variants })).clean(value.clone()), value);
        }
    }
    // What is of one variant is cleaned.
    let schema = json!({ "oneOf": [only("cat"), only("dog")] });
    assert_eq!(compiled(&schema).clean(json!({ "dog": 7, "cat": "eight", "x": 1 })), json!({ "dog": 7 }));
    // So is what is of one variant once it is clean.
    let closed = |name: &str| {
        let more = json!({ "required": [name], "additionalProperties": false });
        record(name, &more)
    };
    for keyword in ["oneOf", "anyOf"] {
        let schema = json!({ (keyword): [closed("a"), closed("b")] });
        assert_eq!(compiled(&schema).clean(json!({ "x": 1, "b": 2 })), json!({ "b": 2 }));
    }
}

/// A part may forbid the default of another.
#[test]
fn what_conforms_still_does_so_once_it_is_clean() {
    let only = |name: &str| {
        let more = json!({ "required": [name], "additionalProperties": false });
        record(name, &more)
    };
    let default = json!({ "type": "object", "properties": { "kind": { "type": "string", "default": "x" } } });
    let union = json!({ "oneOf": [only("a"), only("b")] });
    let mut beside = default.clone();
    beside["oneOf"] = union["oneOf"].clone();
    for schema in [beside, json!({ "allOf": [default, union] }), json!({ "allOf": [union, default] })] {
        is_left_alone(&schema, &json!({ "a": 1 }));
    }
    // Where no part forbids it, it is filled in.
    let schema = json!({ "allOf": [{ "anyOf": [record("a", &json!({})), record("b", &json!({}))] }, default] });
    assert_eq!(compiled(&schema).clean(json!({ "a": 1, "y": 2 })), json!({ "a": 1, "kind": "x" }));
}

/// Each level is checked before its parts are cleaned, and that leaves steps for all of them.
#[test]
fn long_lists_of_what_conforms_are_cleaned_to_their_end() {
    let with = |name: &str| json!({ "properties": { (name): { "type": "integer" } }, "required": [name] });
    let node = json!({
        "type": "object",
        "properties": {
            "kids": { "type": "array", "items": { "$ref": "#/$defs/Node" } },
            "on": { "type": "boolean", "default": true },
        },
        "oneOf": [with("a"), with("b")],
    });
    let schema = |root: Value| {
        let mut schema = root;
        schema["$defs"] = json!({ "Node": node });
        compiled(&schema)
    };
    let (one, list) =
        (json!({ "$ref": "#/$defs/Node" }), json!({ "type": "array", "items": { "$ref": "#/$defs/Node" } }));
    let is_clean = |schema: &CompiledSchema, value: Value, clean: Value| {
        // The values are too large to be shown.
        assert!(schema.clean(value.clone()) == clean);
        let (normalised, told) = schema.normalise(value);
        assert!(normalised == clean && told.iter().all(|repair| repair.change == Change::Removed), "{told:?}");
    };
    let leaf = |index: usize| json!({ "a": index, "kids": [], "x": 1 });
    let clean_leaf = |index: usize| json!({ "a": index, "kids": [], "on": true });
    for (depth, count) in [(0, 5331), (0, 5514), (0, 5800), (0, 6600), (0, 8000), (1, 4416), (2, 2952), (3, 2220)] {
        let value = json!({ "a": 0, "kids": (0..count).map(leaf).collect::<Vec<_>>() });
        let clean = json!({ "a": 0, "kids": (0..count).map(clean_leaf).collect::<Vec<_>>(), "on": true });
        let value = (0..depth).fold(value, |value, _| json!({ "a": 0, "kids": [value] }));
        let clean = (0..depth).fold(clean, |clean, _| json!({ "a": 0, "kids": [clean], "on": true }));
        is_clean(&schema(one.clone()), value, clean);
    }
    // The parts of all items count together.
    let value = json!({ "a": 0, "kids": (0..150).map(leaf).collect::<Vec<_>>() });
    let clean = json!({ "a": 0, "kids": (0..150).map(clean_leaf).collect::<Vec<_>>(), "on": true });
    is_clean(&schema(list), json!(vec![value; 150]), json!(vec![clean; 150]));
}

#[test]
fn an_object_that_declares_nothing_does_not_take_what_is_another_with_a_fault() {
    let pet = json!({
        "type": "object",
        "properties": { "id": { "type": "integer" }, "name": { "type": "string" } },
        "required": ["id", "name"],
    });
    for keyword in ["properties", "patternProperties"] {
        let names = if keyword == "properties" { json!({}) } else { json!({ "^x-": {} }) };
        let nothing = json!({ "type": "object", (keyword): names, "additionalProperties": false });
        for keyword in ["oneOf", "anyOf"] {
            let schema = json!({ "type": "array", "items": { (keyword): [pet, nothing] } });
            let value = json!([{ "id": 7, "name": "Rex" }, { "id": 8, "tag": "x" }]);
            let fault = "/1: expected properties that one of 2 schemas declares, found object, kept".to_owned();
            assert_eq!(told(compiled(&schema).repair(value.clone())), (value, vec![fault]), "{schema}");
            is_left_alone(&schema, &json!([{ "id": 7, "name": "Rex" }, {}]));
        }
    }
}

/// What `additionalProperties` of a part has accepted is evaluated.
#[test]
fn unevaluated_properties_are_not_those_that_a_part_allows() {
    let own = json!({ "properties": { "id": { "type": "string" } } });
    let within = |base: &Value| {
        [
            json!({ "type": "object", "allOf": [base, own], "unevaluatedProperties": false }),
            json!({ "type": "object", "allOf": [own, base], "unevaluatedProperties": { "type": "integer" } }),
            json!({
                "$ref": "#/$defs/Base", "properties": own["properties"], "unevaluatedProperties": false,
                "$defs": { "Base": base },
            }),
        ]
    };
    let value = json!({ "id": "i", "name": "a", "env": "prod" });
    for keyword in ["additionalProperties", "unevaluatedProperties"] {
        for more in [json!(true), json!({ "type": "string" })] {
            let base = record("name", &json!({ (keyword): more }));
            within(&base).iter().for_each(|schema| is_left_alone(schema, &value));
        }
    }
    // Where no part says so, it is for what none of them declares.
    let [all, ..] = within(&record("name", &json!({})));
    let removed = vec!["/env: expected no such property, found string".to_owned()];
    assert_eq!(told(compiled(&all).repair(value)), (json!({ "id": "i", "name": "a" }), removed));
}

#[test]
fn what_conforms_is_not_converted_into_a_variant_if_nothing_would_be_removed() {
    let of = |value: &Value, inside: &Value| {
        json!({
            "type": "object",
            "properties": { "value": value },
            "anyOf": [{ "properties": { "unit": { "type": "string" } } }, { "properties": { "value": inside } }],
        })
    };
    let text = json!({ "type": "string" });
    for base in [json!({}), json!({ "type": ["string", "number"] })] {
        let schema = of(&base, &text);
        is_left_alone(&schema, &json!({ "value": 1 }));
        is_left_alone(&schema, &json!({ "value": 1, "unit": "kg" }));
    }
    let open = json!({ "type": "object", "additionalProperties": true });
    let inside = json!({ "type": "object", "properties": { "n": text } });
    is_left_alone(&of(&open, &inside), &json!({ "value": { "n": 1 } }));
}

#[test]
fn a_default_that_a_pattern_would_convert_is_ignored() {
    for own in [json!({ "default": 1 }), json!({ "type": "number", "default": 0 })] {
        let schema = json!({
            "type": "object",
            "properties": { "x_n": own },
            "patternProperties": { "^x_": { "type": "string" } },
        });
        is_left_alone(&schema, &json!({}));
    }
    let schema = json!({
        "type": "object",
        "properties": { "x_n": { "default": { "a": 1 } } },
        "patternProperties": { "^x_": { "properties": { "a": { "type": "integer" }, "b": { "default": "b" } } } },
    });
    let filled = json!({ "x_n": { "a": 1, "b": "b" } });
    assert_eq!(compiled(&schema).clean(json!({})), filled);
    assert_eq!(compiled(&schema).repair(json!({})), (filled, vec![]));
}

#[test]
fn a_cast_makes_up_a_required_value_that_suits_the_pattern_as_well() {
    for (own, pattern, made) in [
        (json!({ "default": 1 }), json!({ "type": "string" }), json!("")),
        (json!({ "type": "integer", "default": 0 }), json!({ "minimum": 1 }), json!(1)),
    ] {
        let schema = json!({
            "type": "object",
            "properties": { "x_n": own },
            "patternProperties": { "^x_": pattern },
            "required": ["x_n"],
        });
        assert_eq!(compiled(&schema).normalise(json!({})).0, json!({ "x_n": made }), "{schema}");
        assert_eq!(compiled(&schema).repair(json!({})).0, json!({}), "{schema}");
    }
}
