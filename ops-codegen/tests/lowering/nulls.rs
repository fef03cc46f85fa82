//! `null` beside the variants of a union, and as a value of one of them.

use ops_codegen::Generator;
use ops_runtime::binding::{Binding, HttpBinding, HttpBody, HttpResponse, StatusRange};
use ops_runtime::spec::{Api, Definition, Definitions, OperationSpec};
use serde_json::{Value, json};

use super::unions::lines;
use super::{fields, generate, output};

fn to(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// An object of these types whose property `kind` is a constant.
fn kind(kind: &str, types: Value) -> Value {
    json!({ "type": types, "required": ["kind"], "properties": { "kind": { "const": kind }, kind: {} } })
}

/// The module of a request that changes a resource.
fn change(definitions: Vec<(&str, Value)>) -> String {
    let definitions = definitions.into_iter().map(|(name, schema)| Definition::from_value(name.to_owned(), schema));
    let mut operation = OperationSpec::mutation("test.op");
    operation.input = json!({ "type": "object", "properties": { "body": to("Edit") } }).into();
    let bodies = const { &[HttpBody::new("application/json")] };
    operation.binding = Binding::Http(HttpBinding::new("PATCH", "/a").with_bodies(bodies));
    Generator::new().generate(&Api::new(Definitions::new(definitions.collect()), vec![operation])).source
}

/// In a request that changes a resource, `null` clears a property, and an absent property stays as it is.
#[test]
fn a_change_may_clear_what_a_variant_may_be() {
    let address =
        json!({ "type": ["object", "null"], "required": ["street"], "properties": { "street": { "type": "string" } } });
    let shop = json!({ "type": "object", "required": ["shop"], "properties": { "shop": { "type": "string" } } });
    let edit = json!({ "type": "object", "properties": {
        "to": { "oneOf": [to("Address"), to("Shop")] },
        "at": to("Place"),
        "size": { "anyOf": [{ "type": ["string", "null"] }, { "type": "integer" }] },
        "mode": { "anyOf": [{ "enum": ["fast", null] }, { "type": "boolean" }] },
        "list": { "type": "array", "items": to("Place") },
    } });
    // A union in a union.
    let place = json!({ "oneOf": [to("Either"), { "type": "integer" }] });
    let either = json!({ "anyOf": [to("Address"), { "type": "boolean" }] });
    let source =
        change(vec![("Address", address), ("Edit", edit), ("Either", either), ("Place", place), ("Shop", shop)]);
    assert_eq!(
        lines(&source, "struct Edit"),
        [
            "pub to: Option<Option<AddressValueOrShop>>,",
            "pub at: Option<Option<Place>>,",
            "pub size: Option<Option<StringOrInteger>>,",
            "pub mode: Option<Option<EditMode>>,",
            "pub list: Option<Vec<Option<Place>>>,",
        ],
        "{source}"
    );
    assert_eq!(lines(&source, "enum AddressValueOrShop"), ["Address(AddressValue),", "Shop(Shop),"]);
    assert_eq!(lines(&source, "enum StringOrInteger"), ["String(String),", "Integer(i64),"]);
    assert_eq!(lines(&source, "enum EditMode"), ["Variant(EditModeVariant),", "Boolean(bool),"]);
    assert_eq!(lines(&source, "enum Place"), ["Either(Either),", "Integer(i64),"]);
    assert_eq!(lines(&source, "enum Either"), ["Address(AddressValue),", "Boolean(bool),"]);
}

#[test]
fn a_change_may_clear_what_a_reference_lets_be_null() {
    let (text, integer) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    let edit = json!({ "type": "object", "properties": {
        "a": { "anyOf": [to("Nil"), text, integer] },
        "b": { "anyOf": [text, { "allOf": [to("Null")] }] },
        // A variant that is any JSON takes `null` itself.
        "c": { "anyOf": [text, {}] },
        "d": { "anyOf": [integer, to("Any"), { "type": "null" }] },
        "e": { "anyOf": [text, integer] },
    } });
    let source = change(vec![
        ("Any", json!({})),
        ("Edit", edit),
        ("Nil", json!({ "type": "null" })),
        ("Null", json!({ "enum": [null] })),
    ]);
    assert_eq!(
        lines(&source, "struct Edit"),
        [
            "pub a: Option<Option<StringOrInteger>>,",
            "pub b: Option<Option<String>>,",
            "pub c: Option<EditC>,",
            "pub d: Option<IntegerOrAny>,",
            "pub e: Option<StringOrInteger>,",
        ],
        "{source}"
    );
    for slot in [
        "Nullable<Option<super::StringOrInteger>>",
        "Nullable<Option<String>>",
        "Nullable<super::EditC>",
        "Nullable<super::IntegerOrAny>",
        "Optional<super::StringOrInteger>",
    ] {
        assert!(source.contains(slot), "{slot}: {source}");
    }
}

/// In a union of successes, the status tells which variant a `null` is, so the variant stays an `Option`.
#[test]
fn a_success_keeps_its_null() {
    let responses = const {
        &[
            HttpResponse::new(StatusRange::Exact(200), "application/json").with_variant(0),
            HttpResponse::new(StatusRange::Exact(201), "application/json").with_variant(1),
        ]
    };
    let text = json!({ "title": "Created", "type": "string" });
    let shown = |kind: &str, types: Value, title: &str| {
        let mut schema = self::kind(kind, types);
        schema["title"] = title.into();
        schema
    };
    let (null, object) = (json!(["object", "null"]), json!("object"));
    for (successes, expected) in [
        (json!([{ "title": "Ok", "type": ["string", "null"] }, text]), ["Ok_(Option<String>),", "Created(String),"]),
        (
            json!([shown("a", null, "Ok"), shown("b", object, "Created")]),
            ["Ok_(Option<OpOutputOk>),", "Created(OpOutputCreated),"],
        ),
    ] {
        let mut operation = OperationSpec::query("test.op");
        operation.output = json!({ "oneOf": successes }).into();
        operation.binding = Binding::Http(HttpBinding::new("GET", "/a").with_responses(responses));
        let source = Generator::new().generate(&Api::new(Definitions::EMPTY, vec![operation])).source;
        assert_eq!(lines(&source, "enum OpOutput"), expected, "{source}");
        assert!(source.contains("type Output = OpOutput;"), "{source}");
    }
}

#[test]
fn null_is_said_once() {
    let text = || json!({ "type": ["string", "null"] });
    for (schema, expected) in [
        (json!({ "anyOf": [text(), { "type": "integer" }] }), "Option<OpOutput>"),
        (json!({ "anyOf": [text(), { "type": "integer" }, { "type": "null" }] }), "Option<OpOutput>"),
        // The variants differ only in `null`.
        (json!({ "anyOf": [text(), { "type": "string", "format": "date" }] }), "Option<String>"),
        (json!({ "anyOf": [{ "type": "string", "format": "date" }, text()] }), "Option<String>"),
        (json!({ "type": ["string", "null"], "anyOf": [{}, { "enum": ["a", "b"] }] }), "Option<OpOutput>"),
    ] {
        assert_eq!(output(schema.clone()), expected, "{schema}");
    }
    let union = json!({ "anyOf": [text(), { "type": "integer" }] });
    let object = json!({ "type": "object", "required": ["a"], "properties": { "a": union, "b": union } });
    assert_eq!(fields(Vec::new(), object), ["a: Option<StringOrInteger>", "b: Option<StringOrInteger>"]);
}

/// `null` has no tag, but all other values of the union have one.
#[test]
fn a_union_with_a_tag_may_be_null() {
    let variants = |one: Value, other: Value| json!([kind("a", one), kind("b", other)]);
    let bare = || json!({ "properties": { "kind": { "const": "a" } }, "required": ["kind"] });
    let others = || json!({ "properties": { "kind": { "const": "b" } }, "required": ["kind"] });
    let (object, nullable) = (|| json!("object"), || json!(["object", "null"]));
    for (schema, is_nullable) in [
        (json!({ "oneOf": variants(object(), object()) }), false),
        (json!({ "oneOf": variants(nullable(), object()) }), true),
        (json!({ "oneOf": variants(nullable(), nullable()) }), true),
        (json!({ "oneOf": [bare(), others()], "type": "object" }), false),
        (json!({ "oneOf": [bare(), others()], "type": ["object", "null"] }), true),
        (json!({ "oneOf": [bare(), others()], "type": "object", "nullable": true }), true),
        (json!({ "oneOf": [kind("a", object()), kind("b", object()), to("Nil")] }), true),
    ] {
        let source = generate(vec![("Nil", json!({ "type": "null" }))], schema.clone()).source;
        assert_eq!(
            lines(&source, "enum OpOutput"),
            ["A(OpOutputA),", "B(OpOutputB),", "Other(ops::Value),"],
            "{schema}: {source}"
        );
        assert!(source.contains("ops::tagged!(super::OpOutput[\"kind\"] {"), "{schema}: {source}");
        assert_eq!(source.contains("type Output = Option<OpOutput>;"), is_nullable, "{schema}: {source}");
    }
    // The tags are names of definitions.
    let union = json!({ "oneOf": [to("A"), to("B")], "discriminator": { "propertyName": "kind" } });
    let definitions = vec![("A", kind("a", nullable())), ("B", kind("b", object())), ("Any", union)];
    let source = generate(definitions, json!({ "type": "array", "items": to("Any") })).source;
    assert_eq!(lines(&source, "enum Any"), ["A(AValue),", "B(B),", "Other(ops::Value),"], "{source}");
    assert!(source.contains("type Output = Vec<Option<Any>>;"), "{source}");
}
