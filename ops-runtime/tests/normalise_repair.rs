//! What `CompiledSchema::repair` does, case by case: nothing is made up, and nothing is lost without a word.
#![cfg(feature = "registry")]

use ops_runtime::normalise::{Change, CompiledDefinitions, CompiledSchema, Reading};
use serde_json::{Value, json};

fn repaired(schema: &Value, value: &Value) -> (Value, Vec<String>) {
    let (value, told) = CompiledSchema::new(schema, Reading::Default).repair(value.clone());
    let of = |change| match change {
        Change::Removed => "removed",
        Change::Converted => "converted",
        Change::MadeUp => "made up",
        _ => "kept",
    };
    let told =
        told.iter().map(|told| format!("{} {}: {} for {}", of(told.change), told.pointer, told.found, told.expected));
    (value, told.collect())
}

#[track_caller]
fn becomes(schema: Value, value: Value, expected: Value, told: &[&str]) {
    let result = repaired(&schema, &value);
    assert_eq!(result, (expected, told.iter().map(ToString::to_string).collect()), "{value} under {schema}");
    let (again, _) = repaired(&schema, &result.0);
    assert_eq!(again, result.0, "{value} under {schema}: not idempotent");
}

/// A fault: the value stays, and that is told at its place.
#[track_caller]
fn stays(schema: Value, value: Value, told: &[&str]) {
    becomes(schema, value.clone(), value, told);
}

fn within(schema: Value) -> Value {
    json!({ "type": "object", "properties": { "v": schema } })
}

#[test]
fn conversions_that_lose_nothing() {
    let cases = [
        (json!({ "type": "integer" }), json!("7"), json!(7), "string for integer"),
        (json!({ "type": "integer" }), json!("-9223372036854775808"), json!(i64::MIN), "string for integer"),
        (json!({ "type": "number" }), json!("1.50"), json!(1.5), "string for number"),
        (json!({ "type": "string" }), json!(7), json!("7"), "integer for string"),
        (json!({ "type": "string" }), json!(1.5), json!("1.5"), "number for string"),
        (json!({ "type": "string" }), json!(0.123456789012345), json!("0.123456789012345"), "number for string"),
        (json!({ "type": "boolean" }), json!("true"), json!(true), "string for boolean"),
        (json!({ "type": "boolean" }), json!(0), json!(false), "integer for boolean"),
        (json!({ "type": "string" }), json!(true), json!("true"), "boolean for string"),
        (json!({ "enum": ["1", "2"] }), json!(1), json!("1"), "integer for one of '1', '2'"),
        (json!({ "const": 5 }), json!("5"), json!(5), "string for 5"),
        (json!({ "type": ["integer", "null"] }), json!("5"), json!(5), "string for integer or null"),
        (
            json!({ "anyOf": [{ "type": "integer" }, { "type": "boolean" }] }),
            json!("true"),
            json!(true),
            "string for integer or boolean",
        ),
        (json!({ "type": "array", "items": { "type": "string" } }), json!("a"), json!(["a"]), "string for array"),
        (json!({ "type": "object", "additionalProperties": true }), json!([]), json!({}), "array for object"),
        (json!({ "type": "array" }), json!({}), json!([]), "object for array"),
    ];
    for (schema, value, expected, told) in cases {
        let told = format!("converted /v: {told}");
        becomes(within(schema), json!({ "v": value }), json!({ "v": expected }), &[&told]);
    }
    // The same number, written otherwise, is no repair.
    let (value, told) = repaired(&within(json!({ "type": "integer" })), &json!({ "v": 7.0 }));
    assert_eq!((value.to_string(), told), (r#"{"v":7}"#.to_owned(), vec![]));
    // Two at once, one inside the other.
    becomes(
        within(json!({ "type": "array", "items": { "type": "integer" } })),
        json!({ "v": "7" }),
        json!({ "v": [7] }),
        &["converted /v: string for array", "converted /v/0: string for integer"],
    );
    // `null` for nothing: absent, or the default.
    becomes(within(json!({ "type": "string" })), json!({ "v": null }), json!({}), &["converted /v: null for string"]);
    becomes(
        within(json!({ "type": "string", "default": "d" })),
        json!({ "v": null }),
        json!({ "v": "d" }),
        &["converted /v: null for string"],
    );
}

#[test]
fn what_would_lose_or_guess_stays() {
    let cases = [
        (json!({ "type": "integer" }), json!("007"), "string for integer"),
        (json!({ "type": "integer" }), json!("7 "), "string for integer"),
        (json!({ "type": "integer" }), json!("18446744073709551616"), "string for integer"),
        (json!({ "type": "integer" }), json!(7.5), "number for integer"),
        (json!({ "type": "integer" }), json!(true), "boolean for integer"),
        (json!({ "type": "boolean" }), json!("yes"), "string for boolean"),
        (json!({ "type": "boolean" }), json!("1"), "string for boolean"),
        (json!({ "type": "boolean" }), json!(2), "integer for boolean"),
        (json!({ "type": "string" }), json!(["a"]), "array for string"),
        (json!({ "type": "string" }), json!({}), "object for string"),
        (json!({ "type": "object", "properties": { "a": {} } }), json!([1]), "array for object"),
        (json!({ "type": "array", "items": { "type": "integer" } }), json!("x"), "string for array"),
        (json!({ "type": "array", "items": {}, "minItems": 2 }), json!(1), "integer for array"),
        (json!({ "type": "object", "required": ["a"] }), json!([]), "array for object"),
        // Unknown values and values out of bounds.
        // Digits that a float does not hold.
        (json!({ "type": "string" }), json!(1e19), "number for string"),
        (json!({ "type": "string" }), json!(9_007_199_254_740_992.0), "number for string"),
        (json!({ "enum": ["a", "b"] }), json!("c"), "string for one of 'a', 'b'"),
        (json!({ "type": "string", "enum": ["a"] }), json!("A"), "string for 'a'"),
        (json!({ "type": "integer", "maximum": 5 }), json!(6), "integer for integer to be less or equal to 5"),
        (json!({ "type": "string", "maxLength": 1 }), json!("ab"), "string for string length less or equal to 1"),
        (json!({ "type": "array", "maxItems": 1 }), json!([1, 2]), "array for array length to be less or equal to 1"),
        (json!({ "type": "array", "minItems": 1 }), json!([]), "array for array length to be greater or equal to 1"),
        (json!({ "type": "array", "uniqueItems": true }), json!([1, 1]), "array for array elements to be unique"),
        (json!(false), json!(1), "integer for nothing"),
    ];
    for (schema, value, told) in cases {
        stays(within(schema), json!({ "v": value }), &[&format!("kept /v: {told}")]);
    }
    // Converted though out of bounds: both are told.
    becomes(
        within(json!({ "type": "integer", "maximum": 5 })),
        json!({ "v": "6" }),
        json!({ "v": 6 }),
        &["converted /v: string for integer", "kept /v: integer for integer to be less or equal to 5"],
    );
    // It may have come with more digits.
    let precise = json!({ "v": 0.1234567890123456 });
    stays(within(json!({ "type": "string" })), precise, &["kept /v: number for string"]);
    let required = json!({ "type": "object", "properties": { "v": { "type": "string" } }, "required": ["v"] });
    stays(required.clone(), json!({}), &["kept /v: absent for string"]);
    stays(required, json!({ "v": null }), &["kept /v: null for string"]);
    // What only requests hold is not missing.
    let secret = json!({ "type": "object", "properties": { "v": { "writeOnly": true } }, "required": ["v"] });
    stays(secret, json!({}), &[]);
    for place in [
        json!({ "$ref": "#/$defs/Secret" }),
        json!({ "$ref": "#/$defs/Around" }),
        json!({ "allOf": [{ "$ref": "#/$defs/Around" }], "description": "d" }),
    ] {
        let schema = json!({
            "type": "object",
            "properties": { "v": place, "w": { "$ref": "#/$defs/Circle" } },
            "required": ["v"],
            "$defs": {
                "Secret": { "type": "string", "writeOnly": true },
                "Around": { "allOf": [{ "$ref": "#/$defs/Secret" }] },
                "Circle": { "allOf": [{ "$ref": "#/$defs/Circle" }, { "$ref": "#/$defs/Circle" }] },
            },
        });
        stays(schema.clone(), json!({}), &[]);
        assert_eq!(CompiledSchema::new(&schema, Reading::Default).normalise(json!({})).0, json!({}));
        // In definitions that are shared.
        let definitions = schema["$defs"].clone();
        let shared = CompiledDefinitions::new(Reading::Default, move |name| definitions.get(name).cloned());
        let own = json!({ "type": "object", "properties": schema["properties"], "required": ["v", "w"] });
        let own = CompiledSchema::with_definitions(&own, &shared);
        assert_eq!(own.normalise(json!({ "w": 1 })), (json!({ "w": 1 }), vec![]), "{place}");
        assert!(!own.check(&json!({})));
    }
}

#[test]
fn a_variant_that_is_a_reference_is_expected_by_the_types_of_its_target() {
    let customer = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "integer" } } });
    let schema = json!({
        "type": "object",
        "properties": { "v": { "anyOf": [{ "$ref": "#/$defs/Customer" }, { "type": "null" }] } },
        "$defs": { "Customer": customer },
    });
    stays(schema, json!({ "v": 7 }), &["kept /v: integer for object or null"]);
}

#[test]
fn what_conforms_stays_without_a_fault() {
    // Properties that are not declared count, where they are counted.
    let counted = json!({ "properties": { "a": {} }, "minProperties": 2 });
    stays(counted.clone(), json!({ "a": 0, "b": null }), &[]);
    stays(json!({ "allOf": [counted] }), json!({ "a": 0, "b": null }), &[]);
    stays(
        json!({ "allOf": [{ "properties": { "a": {} } }, { "minProperties": 2 }] }),
        json!({ "a": 0, "b": null }),
        &[],
    );
    // A default that does not fit is none.
    let default = json!({ "properties": { "a": { "default": {} } }, "patternProperties": { "a": { "const": null } } });
    stays(default, json!({}), &[]);
}

#[test]
fn items_that_differ_in_what_is_removed_stay_different() {
    let role = json!({ "type": "string", "default": "user" });
    let item =
        json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "integer" }, "role": role } });
    let schema = json!({ "type": "array", "uniqueItems": true, "items": item });
    let compiled = CompiledSchema::new(&schema, Reading::Default);
    for items in [json!([{ "id": 1, "x": 1 }, { "id": 1, "x": 2 }]), json!([{ "id": 1, "role": "user" }, { "id": 1 }])]
    {
        stays(schema.clone(), items.clone(), &[]);
        stays(within(schema.clone()), json!({ "v": items }), &[]);
        assert_eq!(compiled.clean(items.clone()), items);
        assert_eq!(compiled.normalise(items.clone()), (items, vec![]));
    }
    // One number may be written in two ways.
    let items = json!([{ "id": 1, "x": 1 }, { "id": 1.0, "x": 2 }]);
    let written = json!([{ "id": 1, "x": 1 }, { "id": 1, "x": 2 }]);
    becomes(schema.clone(), items.clone(), written.clone(), &[]);
    assert_eq!(compiled.clean(items.clone()), written);
    assert_eq!(compiled.normalise(items), (written.clone(), vec![]));
    // A value may be of several variants.
    let properties = json!({ "list": schema });
    let wider = json!({ "list": schema, "b": {} });
    let either = json!({ "anyOf": [
        { "type": "object", "properties": properties },
        { "type": "object", "properties": wider },
    ] });
    let value = json!({ "list": [{ "id": 1, "role": "a", "x": 1 }, { "id": 1, "role": "a", "x": 2 }] });
    let compiled = CompiledSchema::new(&either, Reading::Default);
    stays(either, value.clone(), &[]);
    assert_eq!(compiled.clean(value.clone()), value);
    assert_eq!(compiled.normalise(value.clone()), (value, vec![]));
    // Those that do not become equal are cleaned, and a fault is one as before.
    becomes(
        schema.clone(),
        json!([{ "id": 1, "x": 1 }, { "id": 2 }]),
        json!([{ "id": 1, "role": "user" }, { "id": 2, "role": "user" }]),
        &["removed /0/x: integer for no such property"],
    );
    becomes(
        schema,
        json!([{ "id": "1", "role": "a" }, { "id": 1, "role": "a" }]),
        json!([{ "id": 1, "role": "a" }, { "id": 1, "role": "a" }]),
        &["converted /0/id: string for integer", "kept : array for array elements to be unique"],
    );
}

#[test]
fn values_of_an_enum_follow_the_rules_beside_it() {
    for (schema, conforms, breaks) in [
        (json!({ "allOf": [{ "enum": ["a", "b", "c"] }, { "pattern": "^[ab]$" }] }), json!("a"), json!("c")),
        (json!({ "type": "integer", "enum": [1, 2, 3], "maximum": 2 }), json!(2), json!(3)),
        (json!({ "enum": ["a", "abc", 7], "maxLength": 2 }), json!(7), json!("abc")),
        (json!({ "const": 1, "enum": [1, 2] }), json!(1), json!(2)),
    ] {
        let compiled = CompiledSchema::new(&schema, Reading::Default);
        assert!(compiled.check(&conforms) && !compiled.check(&breaks), "{schema}");
        stays(schema.clone(), conforms.clone(), &[]);
        assert!(compiled.passes(conforms.to_string().as_bytes()), "{schema}");
        assert!(!compiled.passes(breaks.to_string().as_bytes()), "{schema}");
        let (left, told) = repaired(&schema, &breaks);
        assert!(left == breaks && told.iter().all(|told| told.starts_with("kept")) && !told.is_empty(), "{told:?}");
    }
    let none = CompiledSchema::new(&json!({ "const": 1, "enum": [2] }), Reading::Default);
    assert!(!none.check(&json!(1)) && !none.check(&json!(2)));
    // A pattern beside it that cannot be read asks nothing, and is told.
    let unread = CompiledSchema::new(&json!({ "enum": ["a"], "pattern": "(" }), Reading::Default);
    assert!(unread.check(&json!("a")) && unread.problems().len() == 1);
}

#[test]
fn listed_objects_and_lists_stay_as_they_are() {
    let code = json!({ "enum": [{ "code": "a", "label": "A" }], "properties": { "code": { "type": "string" } } });
    let members = json!({ "k": { "type": "integer" }, "d": { "default": 5 } });
    let only = json!({ "type": "object", "const": { "k": 1 }, "properties": members, "required": ["k"] });
    for (schema, value) in [(code, json!({ "code": "a", "label": "A" })), (only.clone(), json!({ "k": 1 }))] {
        let compiled = CompiledSchema::new(&schema, Reading::Default);
        stays(schema, value.clone(), &[]);
        assert_eq!(compiled.clean(value.clone()), value);
        assert_eq!(compiled.normalise(value.clone()), (value, vec![]));
    }
    stays(only, json!({}), &[r#"kept : object for {"k":1}"#]);
    let texts = json!({ "type": "string" });
    let list = json!({ "type": "array", "enum": [["a"], ["b"]], "items": texts });
    let required = json!({ "type": "object", "properties": { "v": list }, "required": ["v"] });
    assert_eq!(CompiledSchema::new(&required, Reading::Default).normalise(json!({})).0, json!({ "v": ["a"] }));
    let either = within(json!({ "enum": ["all", ["a"]], "items": texts }));
    assert!(CompiledSchema::new(&either, Reading::Default).passes(br#"{"v":"all"}"#));
}

#[test]
fn the_whole_value_changes_its_kind_as_a_scalar_only() {
    becomes(json!({ "type": "integer" }), json!("7"), json!(7), &["converted : string for integer"]);
    stays(json!({ "type": "array", "items": {} }), json!({ "a": 1 }), &["kept : object for array"]);
    stays(json!({ "type": "object", "properties": { "a": {} } }), json!([]), &["kept : array for object"]);
    stays(json!({ "type": "array" }), json!({}), &["kept : object for array"]);
    stays(json!({ "type": "object" }), json!("<html>"), &["kept : string for object"]);
    stays(json!({ "type": "object" }), json!(null), &["kept : null for object"]);
}

#[test]
fn undeclared_properties_are_told_once_per_place() {
    let item = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    let schema = json!({
        "type": "object",
        "properties": { "list": { "type": "array", "items": item }, "one": item, "open": { "type": "object" } },
    });
    becomes(
        schema,
        json!({
            "list": [{ "a": 1, "x": 1 }, { "x": 2, "y/z": 3 }, { "x": "4" }],
            "one": { "x": null },
            "open": { "x": 1 },
        }),
        json!({ "list": [{ "a": 1 }, {}, {}], "one": {}, "open": { "x": 1 } }),
        &[
            "removed /list/0/x: integer for no such property",
            "removed /list/1/y~1z: integer for no such property",
            "removed /one/x: null for no such property",
        ],
    );
    // In items of which a variant is chosen for each.
    let variant = |name: &str| json!({ "properties": { name: { "type": "integer" } }, "required": [name] });
    let item = json!({ "a": "1", "x": 1 });
    becomes(
        json!({ "items": { "oneOf": [variant("a"), variant("b")] } }),
        json!([item, item, item]),
        json!([{ "a": 1 }, { "a": 1 }, { "a": 1 }]),
        &[
            "converted /0/a: string for integer",
            "removed /0/x: integer for no such property",
            "converted /1/a: string for integer",
            "converted /2/a: string for integer",
        ],
    );
    // Among the members of an intersection, and in what is converted.
    let tags = json!({ "anyOf": [{ "type": "object", "properties": { "t": {} } }, { "type": "string" }] });
    becomes(
        json!({ "allOf": [{ "properties": { "a": {} } }, { "properties": { "tags": { "type": "array", "items": tags } } }] }),
        json!({ "a": 1, "b": 2, "tags": { "t": 1, "u": 2 } }),
        json!({ "a": 1, "tags": [{ "t": 1 }] }),
        &[
            "converted /tags: object for array",
            "removed /tags/0/u: integer for no such property",
            "removed /b: integer for no such property",
        ],
    );
}

fn shapes() -> Value {
    json!({
        "oneOf": [
            {
                "type": "object",
                "properties": { "kind": { "const": "circle" }, "radius": { "type": "number" }, "unit": { "default": "cm" } },
                "required": ["kind", "radius"],
            },
            {
                "type": "object",
                "properties": { "kind": { "const": "square" }, "side": { "type": "number" } },
                "required": ["kind", "side"],
            },
        ],
    })
}

#[test]
fn variants_that_name_themselves() {
    becomes(
        shapes(),
        json!({ "kind": "circle", "radius": "2", "x": 1 }),
        json!({ "kind": "circle", "radius": 2, "unit": "cm" }),
        &["converted /radius: string for number", "removed /x: integer for no such property"],
    );
    // Two faults: the tag still says which variant it is.
    becomes(
        shapes(),
        json!({ "kind": "circle", "side": 1 }),
        json!({ "kind": "circle", "unit": "cm" }),
        &["removed /side: integer for no such property", "kept /radius: absent for number"],
    );
    // A variant of tomorrow: nothing of it goes.
    stays(
        shapes(),
        json!({ "kind": "star", "points": 5, "radius": "2" }),
        &["kept /kind: string for one of 'circle', 'square'"],
    );
    // Without a tag, it may be any of them.
    stays(shapes(), json!({ "points": 5 }), &["kept /kind: absent for one of 'circle', 'square'"]);
    for faulty in [json!({ "kind": "star" }), json!({ "points": 5 })] {
        let violations = CompiledSchema::new(&shapes(), Reading::Default).violations(&faulty);
        let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["/kind: Expected one of 'circle', 'square'"], "{faulty}");
    }
}

/// The names of a discriminator are not in the variants: a name that none has may be a slip of the document.
fn discriminated(kind: Value, more: Value) -> Value {
    let shape = |size: &str| {
        json!({ "type": "object", "required": ["kind"], "properties": {
        "kind": kind, size: { "type": "number" }, "in": { "properties": { "x": {} } },
    } })
    };
    let mut discriminator = json!({ "propertyName": "kind" });
    discriminator.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({
        "oneOf": [{ "$ref": "#/$defs/Circle" }, { "$ref": "#/$defs/Square" }],
        "discriminator": discriminator,
        "$defs": { "Circle": shape("radius"), "Square": shape("side") },
    })
}

#[test]
fn a_variant_that_is_not_described_keeps_what_it_has() {
    let schema = discriminated(json!({ "type": "string" }), json!({}));
    becomes(
        schema.clone(),
        json!({ "kind": "Circle", "radius": 1, "points": 5 }),
        json!({ "kind": "Circle", "radius": 1 }),
        &["removed /points: integer for no such property"],
    );
    let star = json!({ "kind": "star", "points": 5, "in": { "y": 1 } });
    let told = ["kept /kind: string for one of 'Circle', 'Square'"];
    stays(schema.clone(), star.clone(), &told);
    stays(
        json!({ "anyOf": schema["oneOf"], "discriminator": schema["discriminator"], "$defs": schema["$defs"] }),
        star.clone(),
        &told,
    );
    stays(json!({ "properties": { "id": {} }, "allOf": [schema] }), star.clone(), &[]);
    // It is of the variant that it fits, as far as it is clear which one that is.
    let mut sized = schema.clone();
    sized["$defs"]["Circle"]["required"] = json!(["kind", "radius"]);
    sized["$defs"]["Square"]["required"] = json!(["kind", "side"]);
    becomes(
        sized,
        json!({ "kind": "star", "radius": "1", "points": 5 }),
        json!({ "kind": "star", "radius": 1, "points": 5 }),
        &[told[0], "converted /radius: string for number"],
    );
    let compiled = CompiledSchema::new(&schema, Reading::Default);
    assert!(compiled.check(&star));
    assert_eq!(compiled.clean(star.clone()), star);
    assert_eq!(compiled.normalise(star.clone()).0, star);
    assert!(!compiled.passes(star.to_string().as_bytes()));
    // A constant tag says that it is none of them.
    let constant = discriminated(json!({ "enum": ["Circle", "Square"] }), json!({}));
    assert!(!CompiledSchema::new(&constant, Reading::Default).check(&star));
}

#[test]
fn a_default_variant_stands_for_those_that_are_not_described() {
    let schema = discriminated(json!({ "type": "string" }), json!({ "defaultMapping": "#/$defs/Square" }));
    stays(schema.clone(), json!({ "kind": "star", "points": 5, "radius": "2" }), &[]);
    stays(schema.clone(), json!({ "radius": "2" }), &["kept /kind: absent for string"]);
    becomes(
        schema.clone(),
        json!({ "kind": "star", "side": "2", "x": 1 }),
        json!({ "kind": "star", "side": 2, "x": 1 }),
        &["converted /side: string for number"],
    );
    let compiled = CompiledSchema::new(&schema, Reading::Default);
    assert!(!compiled.check(&json!({ "kind": "star", "side": "2" })));
    assert!(!compiled.passes(br#"{"kind":"star","points":5}"#));
}

/// Variants whose names say nothing, with the values that each of them lists.
fn listing(kinds: &[(&str, Value, Value)], more: Value) -> Value {
    let mut discriminator = json!({ "propertyName": "kind" });
    discriminator.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let refer = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let variant = |kind: &Value, size: &Value| json!({ "type": "object", "required": ["kind"], "properties": { "kind": kind, "size": size } });
    let variants: Vec<Value> = kinds.iter().map(|(name, ..)| refer(name)).collect();
    let definitions = kinds.iter().map(|(name, kind, size)| ((*name).to_owned(), variant(kind, size)));
    json!({
        "oneOf": variants,
        "discriminator": discriminator,
        "$defs": definitions.collect::<serde_json::Map<_, _>>(),
    })
}

#[test]
fn a_discriminator_is_about_the_values_that_variants_list_themselves() {
    let (number, text) = (json!({ "type": "number" }), json!({ "type": "string" }));
    let one = |kind: &str| json!({ "type": "string", "enum": [kind] });
    let kinds = [
        ("In", one("message"), text.clone()),
        ("Out", json!({ "enum": ["message", "output"] }), number.clone()),
        ("Call", json!({ "const": "call" }), number.clone()),
        ("Other", text.clone(), text.clone()),
    ];
    let schema = listing(&kinds, json!({}));
    let compiled = CompiledSchema::new(&schema, Reading::Default);
    // One variant lists the value, or has the name.
    for (kind, size) in [("call", json!(1)), ("output", json!(1)), ("Other", json!("1"))] {
        let value = json!({ "kind": kind, "size": size });
        becomes(
            schema.clone(),
            json!({ "kind": kind, "size": size, "x": 1 }),
            value.clone(),
            &["removed /x: integer for no such property"],
        );
        assert!(compiled.check(&value) && compiled.passes(value.to_string().as_bytes()), "{value}");
    }
    becomes(
        schema.clone(),
        json!({ "kind": "call", "size": "7" }),
        json!({ "kind": "call", "size": 7 }),
        &["converted /size: string for number"],
    );
    // Several list it: they are tried.
    for size in [json!("1"), json!(1)] {
        becomes(
            schema.clone(),
            json!({ "kind": "message", "size": size, "x": 1 }),
            json!({ "kind": "message", "size": size }),
            &["removed /x: integer for no such property"],
        );
    }
    // None lists it.
    stays(
        schema.clone(),
        json!({ "kind": "star", "size": "1", "x": 1 }),
        &["kept /kind: string for one of 'Call', 'In', 'Other', 'Out', 'call', 'message', 'output'"],
    );
    // A name, where several variants list all of them.
    let all = json!({ "enum": ["In", "Out"] });
    let same = listing(&[("In", all.clone(), text.clone()), ("Out", all, number.clone())], json!({}));
    becomes(
        same,
        json!({ "kind": "Out", "size": "7" }),
        json!({ "kind": "Out", "size": 7 }),
        &["converted /size: string for number"],
    );
    // A mapping comes first.
    let mapped = listing(&kinds, json!({ "mapping": { "message": "#/$defs/Out" } }));
    becomes(
        mapped,
        json!({ "kind": "message", "size": "7" }),
        json!({ "kind": "message", "size": 7 }),
        &["converted /size: string for number"],
    );
}

#[test]
fn a_default_variant_does_not_stand_for_values_that_others_list() {
    let (number, text) = (json!({ "type": "number" }), json!({ "type": "string" }));
    let default = json!({ "mapping": { "Circle": "#/$defs/Circle" }, "defaultMapping": "#/$defs/Base" });
    for base in [text.clone(), json!({ "enum": ["circle", "square"] })] {
        let circle = json!({ "type": "string", "enum": ["circle"] });
        let schema = listing(&[("Circle", circle, number.clone()), ("Base", base.clone(), json!({}))], default.clone());
        becomes(
            schema.clone(),
            json!({ "kind": "circle", "size": "7", "x": 1 }),
            json!({ "kind": "circle", "size": 7 }),
            &["converted /size: string for number", "removed /x: integer for no such property"],
        );
        let compiled = CompiledSchema::new(&schema, Reading::Default);
        assert!(compiled.passes(br#"{"kind":"circle","size":7}"#));
        assert!(!compiled.passes(br#"{"kind":"circle","size":7,"x":1}"#));
    }
    // What lists its values may be a union, or have parts.
    let parts = json!({
        "oneOf": [{ "$ref": "#/$defs/Both" }, { "$ref": "#/$defs/Third" }],
        "discriminator": { "propertyName": "kind" },
        "$defs": {
            "Both": { "oneOf": [{ "$ref": "#/$defs/First" }, { "$ref": "#/$defs/Second" }] },
            "Base": { "type": "object", "properties": { "kind": { "type": "string" }, "size": number } },
            "First": { "allOf": [{ "$ref": "#/$defs/Base" }, { "properties": { "kind": { "const": "first" } } }] },
            "Second": { "allOf": [{ "$ref": "#/$defs/Base" }, { "properties": { "kind": { "const": "second" } } }] },
            "Third": { "allOf": [{ "$ref": "#/$defs/Base" }, { "properties": { "kind": { "const": "third" } } }] },
        },
    });
    for kind in ["first", "second", "third"] {
        becomes(
            parts.clone(),
            json!({ "kind": kind, "size": "7", "x": 1 }),
            json!({ "kind": kind, "size": 7 }),
            &["converted /size: string for number", "removed /x: integer for no such property"],
        );
    }
}

#[test]
fn variants_told_apart_by_shape() {
    let schema = json!({
        "anyOf": [
            { "type": "object", "properties": { "a": { "type": "integer" }, "b": { "type": "string" } }, "required": ["a", "b"] },
            { "type": "object", "properties": { "c": { "type": "integer" } }, "required": ["c"] },
        ],
    });
    // One that fits once it is converted.
    becomes(schema.clone(), json!({ "c": "1" }), json!({ "c": 1 }), &["converted /c: string for integer"]);
    // One that is nearest, with a fault in it.
    becomes(
        schema.clone(),
        json!({ "a": 1, "x": 1 }),
        json!({ "a": 1 }),
        &["removed /x: integer for no such property", "kept /b: absent for string"],
    );
    // Something of both: nothing is lost.
    stays(schema.clone(), json!({ "a": 1, "c": "x" }), &["kept : object for a value of one of 2 schemas"]);
    // Nothing of either.
    stays(schema, json!({ "x": 1 }), &["kept : object for a value of one of 2 schemas"]);
    becomes(
        json!({ "anyOf": [{ "type": "integer" }, { "type": "array", "items": { "type": "integer" } }] }),
        json!("3"),
        json!(3),
        &["converted : string for array or integer"],
    );
}

#[test]
fn a_value_that_is_another_variant_too_once_it_is_converted_keeps_what_that_declares() {
    let of =
        |name: &str| json!({ "type": "object", "properties": { (name): { "type": "integer" } }, "required": [name] });
    for variants in [json!([of("a"), of("b"), of("c")]), json!([of("c"), of("b"), of("a")])] {
        becomes(
            json!({ "anyOf": variants }),
            json!({ "a": "1", "b": 2, "c": "3", "junk": 4 }),
            json!({ "a": 1, "b": 2, "c": 3 }),
            &if variants[0] == of("a") {
                [
                    "converted /a: string for integer",
                    "converted /c: string for integer",
                    "removed /junk: integer for no such property",
                ]
            } else {
                [
                    "converted /c: string for integer",
                    "converted /a: string for integer",
                    "removed /junk: integer for no such property",
                ]
            },
        );
        // What it is not, however it is written, declares nothing of it.
        becomes(
            json!({ "anyOf": variants }),
            json!({ "a": "x", "b": 2 }),
            json!({ "b": 2 }),
            &["removed /a: string for no such property"],
        );
    }
}

#[test]
fn a_variant_that_asks_for_nothing_does_not_take_what_is_another_with_a_fault() {
    let strict =
        json!({ "type": "object", "properties": { "id": { "type": "integer" }, "name": {} }, "required": ["id"] });
    let loose = json!({ "type": "object", "properties": { "due": { "type": "string" } } });
    for keyword in ["oneOf", "anyOf"] {
        for variants in [json!([strict, loose]), json!([loose, strict])] {
            let schema = within(json!({ (keyword): variants }));
            becomes(
                schema.clone(),
                json!({ "v": { "id": "7", "name": "x" } }),
                json!({ "v": { "id": 7, "name": "x" } }),
                &["converted /v/id: string for integer"],
            );
            // With a fault that stays, nothing is known.
            let told = ["kept /v: object for properties that one of 2 schemas declares"];
            stays(schema.clone(), json!({ "v": { "id": [], "name": "x" } }), &told);
            stays(schema.clone(), json!({ "v": { "name": "x" } }), &told);
            // What is the other, and what no variant declares, is as before.
            stays(schema.clone(), json!({ "v": { "due": "x" } }), &[]);
            let told = ["removed /v/junk: integer for no such property"];
            becomes(schema, json!({ "v": { "junk": 1 } }), json!({ "v": {} }), &told);
        }
    }
}

#[test]
fn the_variant_that_keeps_most_is_meant() {
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let integer = || json!({ "type": "integer" });
    let (little, much) = (object(json!({ "a": integer() })), object(json!({ "a": integer(), "b": integer() })));
    let list = |item: &Value| json!({ "type": "array", "items": item });
    for variants in [[&little, &much], [&much, &little]] {
        // Two faults, of which the smaller variant sees one.
        becomes(
            json!({ "oneOf": variants }),
            json!({ "a": "1", "b": "2" }),
            json!({ "a": 1, "b": 2 }),
            &["converted /a: string for integer", "converted /b: string for integer"],
        );
        // Inside a property, and inside items, with and without a fault.
        let inside = variants.map(|variant| object(json!({ "n": variant })));
        let items = variants.map(list);
        for (schema, came) in [
            (json!({ "oneOf": inside }), json!({ "n": { "a": 1, "b": 2 } })),
            (json!({ "oneOf": items }), json!([{ "a": 1, "b": 2 }])),
        ] {
            stays(schema.clone(), came.clone(), &[]);
            let faulty: Value = serde_json::from_str(&came.to_string().replace('1', "\"1\"")).unwrap();
            assert_eq!(repaired(&schema, &faulty).0, came);
        }
        // The nearest of variants with faults, too, removes nothing of another.
        let needs = variants.map(
            |variant| json!({ "type": "object", "properties": { "n": variant, "k": integer() }, "required": ["k"] }),
        );
        let other = json!({ "type": "object", "properties": { "n": much }, "required": ["l"] });
        let of_little = if variants[0] == &little { &needs[0] } else { &needs[1] };
        stays(
            json!({ "oneOf": [of_little, other] }),
            json!({ "k": "x", "n": { "a": 1, "b": 2 } }),
            &["kept : object for a value of one of 2 schemas"],
        );
    }
}

#[test]
fn of_a_value_that_is_several_variants_goes_what_none_declares() {
    let a = json!({ "type": "object", "required": ["a"], "properties": {
        "a": { "type": "string" }, "n": { "type": "object", "properties": { "x": { "type": "string" } } } } });
    let b = json!({ "type": "object", "required": ["b"], "properties": { "b": { "type": "string" } } });
    let value = json!({ "a": "1", "b": "2", "junk": 3, "n": { "x": "1", "secret": 1 } });
    let cleaned = json!({ "a": "1", "b": "2", "n": { "x": "1" } });
    let told = ["removed /junk: integer for no such property", "removed /n/secret: integer for no such property"];
    becomes(json!({ "anyOf": [a, b] }), value.clone(), cleaned.clone(), &told);
    becomes(json!({ "anyOf": [b, a] }), value.clone(), cleaned.clone(), &told);
    // The same beside other properties, and in a union in a union.
    becomes(
        json!({ "type": "object", "properties": { "c": {} }, "anyOf": [a, b] }),
        json!({ "a": "1", "b": "2", "c": 1, "junk": 3, "n": { "x": "1", "secret": 1 } }),
        json!({ "a": "1", "b": "2", "c": 1, "n": { "x": "1" } }),
        &told,
    );
    becomes(json!({ "anyOf": [b, { "anyOf": [b, a] }] }), value.clone(), cleaned.clone(), &told);
    // What two declare has what either of them declares in it.
    let with = |name: &str, inner: Value| json!({ "type": "object", "properties": { (name): {}, "n": inner } });
    let of = |name: &str| json!({ "type": "object", "properties": { (name): { "type": "integer" } } });
    let list = |name: &str| json!({ "type": "array", "items": of(name) });
    becomes(
        json!({ "anyOf": [with("a", of("x")), with("b", of("y"))] }),
        json!({ "a": 1, "b": 2, "n": { "x": 1, "y": 2, "secret": 3 } }),
        json!({ "a": 1, "b": 2, "n": { "x": 1, "y": 2 } }),
        &["removed /n/secret: integer for no such property"],
    );
    becomes(
        json!({ "anyOf": [with("a", list("x")), with("a", list("y"))] }),
        json!({ "a": 1, "n": [{ "x": 1, "secret": 3 }, { "y": 2, "secret": 3 }] }),
        json!({ "a": 1, "n": [{ "x": 1 }, { "y": 2 }] }),
        &["removed /n/0/secret: integer for no such property"],
    );
    // One that leaves open what there may be keeps all, here or below.
    let open = json!({ "type": "object", "additionalProperties": true, "properties": { "b": {} } });
    stays(json!({ "anyOf": [a, open] }), value.clone(), &[]);
    stays(json!({ "anyOf": [{ "type": "object" }, a] }), value, &[]);
    stays(
        json!({ "anyOf": [with("a", of("x")), with("b", json!({ "type": "object" }))] }),
        json!({ "a": 1, "b": 2, "n": { "x": 1, "more": 3 } }),
        &[],
    );
}

#[test]
fn unions_in_unions_are_cleaned_as_a_whole() {
    for keyword in ["oneOf", "anyOf"] {
        let mut defs = serde_json::Map::new();
        for level in 0..4 {
            let below = if level == 3 {
                json!({ "type": "object", "properties": { "id": { "type": "integer" } } })
            } else {
                json!({ "$ref": format!("#/$defs/L{}", level + 1) })
            };
            let variant = |index: usize| {
                let name = format!("p{level}{index}");
                json!({ "allOf": [below, { "type": "object", "properties": { (name): { "type": "integer" } } }] })
            };
            let variants: Vec<Value> = (0..4).map(variant).collect();
            defs.insert(format!("L{level}"), json!({ (keyword): variants }));
        }
        let schema = json!({ "type": "array", "items": { "$ref": "#/$defs/L0" }, "$defs": defs });
        let item = |junk: bool| {
            let mut item = json!({ "id": 1, "p00": 1, "p10": 1, "p20": 1, "p30": 1 });
            if junk {
                item["junk"] = json!(1);
            }
            item
        };
        let of = |junk: bool| Value::Array((0..20).map(|_| item(junk)).collect());
        becomes(schema, of(true), of(false), &["removed /0/junk: integer for no such property"]);
    }
}

#[test]
fn conditions_keep_what_the_schemas_declare_that_they_refer_to() {
    let removed = ["removed /junk: integer for no such property"];
    let base = json!({ "type": "object", "properties": { "a": {}, "b": {} } });
    let with = |more: Value, defs: Value| {
        let mut schema = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "$defs": defs });
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        schema
    };
    let value = json!({ "a": "x", "b": "1", "junk": 1 });
    becomes(
        with(
            json!({ "allOf": [{ "if": { "$ref": "#/$defs/Cond" }, "then": { "required": ["a"] } }] }),
            json!({ "Cond": { "properties": { "a": { "const": "x" } } } }),
        ),
        json!({ "a": "x", "junk": 1 }),
        json!({ "a": "x" }),
        &removed,
    );
    let depends = json!({ "dependencies": { "a": { "$ref": "#/$defs/Base" } } });
    let kept = json!({ "a": "x", "b": "1" });
    becomes(with(depends.clone(), json!({ "Base": base })), value.clone(), kept.clone(), &removed);
    // By way of others, and round in a circle.
    let round = json!({ "Base": { "allOf": [{ "$ref": "#/$defs/More" }] }, "More": { "anyOf": [base, { "$ref": "#/$defs/Base" }] } });
    becomes(with(depends.clone(), round), value.clone(), kept, &removed);
    // Nothing is known of what cannot be found.
    stays(with(depends, json!({})), value, &[]);
}

#[test]
fn conditions_keep_what_they_declare_below() {
    let object = |more: Value| json!({ "type": "object", "properties": more });
    let outer = |condition: Value| {
        let address = json!({ "type": "object", "properties": { "street": { "type": "string" } } });
        let mut schema = object(json!({ "address": address, "list": { "type": "array", "items": address } }));
        schema.as_object_mut().unwrap().extend(condition.as_object().unwrap().clone());
        schema
    };
    let zip = json!({ "properties": { "zip": { "type": "string" } } });
    let value =
        json!({ "address": { "street": "x", "zip": 1, "junk": 2 }, "list": [{ "street": 3, "zip": 1, "junk": 2 }] });
    let in_address = json!({ "address": { "street": "x", "zip": 1 }, "list": [{ "street": "3" }] });
    let in_list = json!({ "address": { "street": "x" }, "list": [{ "street": "3", "zip": 1 }] });
    let removed = |place: &str| format!("removed {place}: integer for no such property");
    let street = "converted /list/0/street: integer for string".to_owned();
    let check = |schema: Value, expected: &Value, told: Vec<String>| {
        let told: Vec<&str> = told.iter().map(String::as_str).collect();
        becomes(schema, value.clone(), expected.clone(), &told);
    };
    let of_address = || vec![removed("/address/junk"), street.clone(), removed("/list/0/zip"), removed("/list/0/junk")];
    let of_list = || vec![removed("/address/zip"), removed("/address/junk"), street.clone(), removed("/list/0/junk")];
    // Inside a property, also one that is only required, by a reference, and in a circle.
    for schema in [zip.clone(), json!({ "required": ["zip"] }), json!({ "anyOf": [{}, zip] })] {
        let then = object(json!({ "address": schema }));
        check(outer(json!({ "if": true, "then": then })), &in_address, of_address());
        let depends =
            json!({ "dependentSchemas": { "address": { "$ref": "#/$defs/Then" } }, "$defs": { "Then": then } });
        check(outer(depends), &in_address, of_address());
    }
    // Inside items, beside a union and in it, too.
    for list in [
        json!({ "items": zip }),
        json!({ "prefixItems": [zip] }),
        json!({ "contains": zip }),
        json!({ "items": zip, "anyOf": [{ "minItems": 1 }, { "maxItems": 0 }] }),
        json!({ "anyOf": [{ "minItems": 1 }, { "items": zip }] }),
    ] {
        check(outer(json!({ "if": object(json!({ "list": list })) })), &in_list, of_list());
    }
    // Beside nothing but a reference, and beside nothing but a union.
    let base = json!({ "type": "object", "properties": { "a": {} } });
    let told = ["removed /junk: integer for no such property"];
    let (came, left) = (json!({ "a": 1, "zip": 2, "junk": 3 }), json!({ "a": 1, "zip": 2 }));
    becomes(
        json!({ "$ref": "#/$defs/B", "if": true, "then": zip, "$defs": { "B": base } }),
        came.clone(),
        left.clone(),
        &told,
    );
    becomes(json!({ "allOf": [base], "else": zip }), came.clone(), left.clone(), &told);
    let other = json!({ "type": "object", "properties": { "b": {} }, "required": ["b"] });
    for keyword in ["anyOf", "oneOf"] {
        becomes(json!({ (keyword): [base, other], "then": zip }), came.clone(), left.clone(), &told);
        stays(json!({ (keyword): [base, other], "then": { "patternProperties": { "^z": {} } } }), came.clone(), &[]);
        let nested = json!({ (keyword): [object(json!({ "n": base })), other], "then": object(json!({ "n": zip })) });
        stays(nested, json!({ "n": came }), &[]);
    }
}

#[test]
fn what_other_keywords_name_is_not_removed() {
    let base = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    let with = |more: Value| {
        let mut schema = base.clone();
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        schema
    };
    let told = ["converted /a: string for integer", "removed /junk: integer for no such property"];
    let (came, left) = (json!({ "a": "1", "b": 2, "junk": 3 }), json!({ "a": 1, "b": 2 }));
    for more in [
        json!({ "if": true, "then": { "required": ["b"] } }),
        json!({ "dependentRequired": { "a": ["b"] } }),
        json!({ "dependencies": { "a": ["b"] } }),
    ] {
        becomes(with(more), came.clone(), left.clone(), &told);
    }
    // Others than those that are declared.
    for more in [json!({ "additionalProperties": { "type": "integer" } }), json!({ "unevaluatedProperties": true })] {
        let schema = with(json!({ "if": true, "then": more }));
        becomes(schema, came.clone(), json!({ "a": 1, "b": 2, "junk": 3 }), &told[..1]);
    }
    // In items.
    let list = |contains: Value| json!({ "type": "array", "items": base, "contains": contains });
    becomes(
        list(json!({ "required": ["b"] })),
        json!([{ "a": "1" }, { "b": 1, "junk": 2 }]),
        json!([{ "a": 1 }, { "b": 1 }]),
        &["converted /0/a: string for integer", "removed /1/junk: integer for no such property"],
    );
}

#[test]
fn unevaluated_properties_are_those_that_nothing_else_declares() {
    let integers = json!({ "type": "integer" });
    let variants = json!([
        { "properties": { "a": { "type": "string" } }, "required": ["a"] },
        { "properties": { "b": { "type": "string" } }, "required": ["b"] },
    ]);
    for keyword in ["anyOf", "oneOf"] {
        let schema = json!({ (keyword): variants, "unevaluatedProperties": integers });
        stays(schema.clone(), json!({ "a": "x", "more": 1 }), &[]);
        becomes(
            schema.clone(),
            json!({ "a": 7, "more": 1 }),
            json!({ "a": "7", "more": 1 }),
            &["converted /a: integer for string"],
        );
        let (made, _) = CompiledSchema::new(&schema, Reading::Default).normalise(json!({ "a": "x", "more": 1 }));
        assert_eq!(made, json!({ "a": "x", "more": 1 }));
    }
    let hidden = json!({ "patternProperties": { "^s": { "type": "string" } } });
    stays(
        json!({ "properties": { "a": {} }, "if": true, "then": hidden, "unevaluatedProperties": integers }),
        json!({ "a": 1, "s": "x" }),
        &[],
    );
    // Where nothing else declares properties, and under `additionalProperties`, which does not see what is beside it.
    let told = ["converted /more: string for integer"];
    let (came, left) = (json!({ "a": "x", "more": "1" }), json!({ "a": "x", "more": 1 }));
    let base = json!({ "properties": { "a": { "type": "string" } }, "unevaluatedProperties": integers });
    becomes(base, came.clone(), left.clone(), &told);
    let sealed = json!({ "properties": { "a": {} }, "anyOf": variants, "additionalProperties": integers });
    becomes(sealed, came, left, &told);
}

#[test]
fn what_is_declared_under_a_condition_tells_no_variant() {
    // Of the first it is said in three ways what else there may be.
    let names: serde_json::Map<String, Value> = (0..20).map(|i| (format!("x{i}"), json!({}))).collect();
    let open = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"],
        "if": true, "then": { "properties": names } });
    let typed = json!({ "type": "object", "properties": { "b": { "type": "integer" }, "c": { "type": "integer" }, "x0": { "type": "string" } },
        "required": ["b", "c"] });
    for variants in [json!([open, typed]), json!([typed, open])] {
        for value in [json!({ "b": 1, "c": "x" }), json!({ "b": 1, "c": "x", "x0": "y" })] {
            stays(json!({ "oneOf": variants }), value, &["kept /c: string for integer"]);
        }
        let schema = CompiledSchema::new(&json!({ "oneOf": variants }), Reading::Default);
        assert_eq!(schema.normalise(json!({ "b": 1, "c": "x" })).0, json!({ "b": 1, "c": 0 }));
    }
    // Nor does what is required and absent.
    let required = json!({ "type": "object", "properties": { "a": {} }, "required": ["a", "d", "e", "f"] });
    stays(json!({ "oneOf": [required, typed] }), json!({ "b": 1, "c": "x" }), &["kept /c: string for integer"]);
}

#[test]
fn items_beyond_a_tuple_of_one_part_are_too_many() {
    let both = json!({ "allOf": [{ "prefixItems": [{}, {}] }, { "prefixItems": [{}], "items": false }] });
    stays(both, json!([1, 2]), &["kept : array for array length to be less or equal to 1"]);
}

#[test]
fn intersections_that_cannot_be_merged() {
    let union = |name: &str| {
        json!({
            "anyOf": [
                { "type": "object", "properties": { name: { "type": "integer" } }, "required": [name] },
                { "type": "object", "properties": { format!("{name}2"): { "type": "integer" } }, "required": [format!("{name}2")] },
            ],
        })
    };
    let schema = json!({ "allOf": [union("a"), union("b")] });
    becomes(
        schema.clone(),
        json!({ "a": "1", "b2": 2, "x": 3 }),
        json!({ "a": 1, "b2": 2 }),
        &["removed /x: integer for no such property", "converted /a: string for integer"],
    );
    // One member has a fault; what the other declares is as it would be.
    let (value, told) = repaired(&schema, &json!({ "a": {}, "b": "2" }));
    assert_eq!(value, json!({ "a": {}, "b": 2 }));
    assert!(told.contains(&"converted /b: string for integer".to_owned()), "{told:?}");
    assert!(told.iter().any(|told| told.starts_with("kept")), "{told:?}");
}

#[test]
fn defaults_come_in_beside_faults() {
    becomes(
        json!({
            "type": "object",
            "properties": { "a": { "type": "integer" }, "b": { "type": "integer", "default": 3 }, "c": { "type": "string" } },
            "required": ["a", "c"],
        }),
        json!({ "a": "x" }),
        json!({ "a": "x", "b": 3 }),
        &["kept /a: string for integer", "kept /c: absent for string"],
    );
}

#[test]
fn what_is_converted_and_does_not_fit_then_is_told_twice() {
    let told = ["converted : integer for 'n'", "kept : string for 'n'"];
    becomes(json!({ "enum": ["n"] }), json!(7), json!("7"), &told);
    becomes(json!({ "enum": ["n"], "anyOf": [{}, { "type": "string" }] }), json!(7), json!("7"), &told);
}
