//! Inputs and results are checked against their schemas.

use std::collections::BTreeMap;

use super::*;

#[tokio::test]
async fn wrong_input_lists_every_violation() {
    let registry = Registry::new();
    static SPEC: OperationSpec = OperationSpec::query("demo.two").with_input(Schema::text(
        r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string","maxLength":2}},"required":["a","b"]}"#,
    ));
    registry.register(Registration::new(&SPEC, Handler::dynamic(|v, _| async { Ok(v) }))).unwrap();
    let error = registry.call("demo.two", json!({ "a": "x", "b": "long" })).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ValidationError);
    let violations = error.details()["violations"].as_array().unwrap();
    let pointers: Vec<_> = violations.iter().map(|v| v["pointer"].as_str().unwrap()).collect();
    assert_eq!(pointers, ["/a", "/b"], "{error}");
}

#[tokio::test]
async fn a_typed_input_is_checked_against_constraints_beyond_its_type() {
    let registry = Registry::new();
    registry.register(Registration::call::<Bounded, _, _>(|n, _| async move { Ok(Reply::Value(n + 1)) })).unwrap();
    assert_eq!(registry.execute::<Bounded>(11).await.unwrap_err().code(), &ErrorCode::ValidationError);
    // A typed local result relies on its type, unless the policy is strict.
    assert_eq!(registry.execute::<Bounded>(10).await.unwrap().data, 11);
    let strict = CallOptions::new().with_policy(OutputPolicy::Strict);
    let error = registry.execute_with::<Bounded>(10, strict).await.unwrap_err();
    assert_eq!((error.code(), &error.details()["raw"]), (&ErrorCode::ValidationError, &json!(11)));
}

operation!(Wide: (u128, u8) => (), Call, OperationSpec::query("math.wide").with_input(Schema::text(
    r#"{"type":"array","prefixItems":[{"type":"integer"},{"type":"integer","maximum":9}]}"#,
)));

/// Constraints are checked by a `Value`, which has no room for such an integer.
#[tokio::test]
async fn an_integer_that_is_too_large_to_be_checked_is_an_invalid_input() {
    let registry = Registry::new();
    registry.register(Registration::function::<Wide, _, _>(|_| async { Ok(Reply::Value(())) })).unwrap();
    assert!(registry.execute::<Wide>((u128::from(u64::MAX), 9)).await.is_ok());
    let error = registry.execute::<Wide>((u128::MAX, 9)).await.unwrap_err();
    let violations = json!([{ "pointer": "/0", "message": "number out of range" }]);
    assert_eq!((error.code(), &error.details()["violations"]), (&ErrorCode::ValidationError, &violations));
}

#[tokio::test]
async fn a_misspelt_name_inside_an_input_is_told_with_the_one_that_may_be_meant() {
    let registry = Registry::new();
    static SPEC: OperationSpec = OperationSpec::query("demo.pets").with_input(Schema::text(
        r##"{"type":"object","properties":{"body":{"$ref":"#/$defs/Pet"},"list":{"type":"array","items":{"$ref":"#/$defs/Pet"}}},
            "$defs":{"Pet":{"type":"object","properties":{"name":{"type":"string"},"tag/a":{}},"additionalProperties":false}}}"##,
    ));
    registry.register(Registration::new(&SPEC, Handler::dynamic(|v, _| async { Ok(v) }))).unwrap();
    for (input, pointer, message) in [
        (json!({ "body": { "nmae": "x" } }), "/body/nmae", "unexpected property: did you mean `name`?"),
        (json!({ "list": [{}, { "tag/b": 1 }] }), "/list/1/tag~1b", "unexpected property: did you mean `tag/a`?"),
        (json!({ "body": { "owner": 1 } }), "/body/owner", "unexpected property"),
    ] {
        let error = registry.call("demo.pets", input).await.unwrap_err();
        assert_eq!(error.message(), format!("the input of `demo.pets` is invalid: {pointer}: {message}"));
        assert_eq!(error.details()["violations"], json!([{ "pointer": pointer, "message": message }]));
    }
}

/// The ways to a schema multiply with each level if all variants of a union lead back to it.
#[tokio::test]
async fn a_misspelt_name_is_told_so_at_any_depth_of_a_union() {
    let variant = |index: usize| {
        let mut properties =
            json!({ "t": { "const": format!("k{index}") }, "kids": { "$ref": "#/$defs/Node" }, "colour": {} });
        properties.as_object_mut().unwrap().extend((0..60).map(|other| (format!("p{index}_{other}"), json!({}))));
        json!({ "type": "object", "properties": properties, "required": ["t"], "additionalProperties": false })
    };
    let variants: Vec<Value> = (0..60).map(variant).collect();
    let schema = json!({
        "type": "object",
        "properties": { "body": { "$ref": "#/$defs/Node" } },
        "$defs": { "Node": { "oneOf": variants } },
    });
    let registry = Registry::new();
    let spec = OperationSpec::query("demo.tree").with_input(Schema::from(schema));
    registry.register(Registration::new(spec, Handler::dynamic(|v, _| async { Ok(v) }))).unwrap();
    for depth in [1, 3, 20] {
        let kids = (0..depth).fold(json!({ "t": "k1", "colur": 1 }), |kids, _| json!({ "t": "k1", "kids": kids }));
        let error = registry.call("demo.tree", json!({ "body": kids })).await.unwrap_err();
        let pointer = format!("/body{}/colur", "/kids".repeat(depth));
        let message = "unexpected property: did you mean `colour`?";
        assert_eq!(error.details()["violations"], json!([{ "pointer": pointer, "message": message }]));
    }
}

#[tokio::test]
async fn a_result_that_does_not_match_is_repaired_and_said_so() {
    let registry = Registry::new();
    static SPEC: OperationSpec = OperationSpec::query("demo.dirty").with_output(Schema::text(
        r#"{"type":"object","properties":{"id":{"type":"integer"},"n":{"type":"integer","default":3}},"required":["id"]}"#,
    ));
    let dirty = || async { Ok(json!({ "id": "x", "more": true })) };
    registry.register(Registration::new(&SPEC, Handler::dynamic(move |_, _| dirty()))).unwrap();
    for (policy, id) in [(OutputPolicy::Repair, json!("x")), (OutputPolicy::Cast, json!(0))] {
        let options = CallOptions::new().with_policy(policy);
        let envelope = registry.call_with("demo.dirty", Value::Null, options).await.unwrap();
        assert_eq!(envelope.data, json!({ "id": id, "n": 3 }));
        let told = envelope.warnings.iter().map(|warning| (warning.pointer.as_str(), &*warning.found));
        assert_eq!(told.collect::<Vec<_>>(), [("/id", "string"), ("/more", "boolean")]);
    }
    let strict = CallOptions::new().with_policy(OutputPolicy::Strict);
    let error = registry.call_with("demo.dirty", Value::Null, strict).await.unwrap_err();
    assert_eq!(error.details()["raw"], json!({ "id": "x", "more": true }));
}

#[tokio::test]
async fn strict_tells_of_a_result_in_the_words_of_a_repair() {
    let schema = |more: Value| {
        let mut schema = json!({ "type": "object", "properties": { "n": { "type": "string" }, "x": false } });
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        schema
    };
    let own = schema(json!({ "additionalProperties": false }));
    // Checked by the standard.
    let named = schema(json!({ "propertyNames": { "maxLength": 3 } }));
    for (schema, value, told) in [
        (&own, json!({ "n": "a", "more": true }), ("/more", "no such property", "boolean")),
        (&own, json!({ "n": 1 }), ("/n", "string", "integer")),
        (&own, json!({ "x": 1.5 }), ("/x", "nothing", "number")),
        (&named, json!({ "n": "a", "more": true }), ("/more", "no such name of a property", "boolean")),
    ] {
        let spec = OperationSpec::query("demo.told").with_output(Schema::from(schema.clone()));
        let registry = Registry::builder().with_policy(OutputPolicy::Strict).build();
        registry.register(Registration::new(spec, Handler::dynamic(|value, _| async { Ok(value) }))).unwrap();
        let error = registry.call("demo.told", value.clone()).await.unwrap_err();
        let (pointer, expected, found) = told;
        let message = format!("the response does not match its schema: {pointer}: expected {expected}, found {found}");
        assert_eq!(error.message(), message, "{value} under {schema}");
        let violations = json!([{ "pointer": pointer, "expected": expected, "found": found }]);
        assert_eq!(error.details()["violations"], violations, "{value} under {schema}");
    }
}

/// Without a mapping, a name may be one that the document does not list.
#[tokio::test]
async fn strict_refuses_a_name_that_a_mapping_does_not_list() {
    let pet = |own: &str| {
        let properties = json!({ "kind": { "type": "string" }, (own): {} });
        json!({ "type": "object", "properties": properties, "required": ["kind"] })
    };
    let spec = |id: &'static str, discriminator: Value| {
        let schema = json!({
            "oneOf": [{ "$ref": "#/$defs/Cat" }, { "$ref": "#/$defs/Dog" }],
            "discriminator": discriminator,
            "$defs": { "Cat": pet("lives"), "Dog": pet("barks") },
        });
        OperationSpec::query(id).with_output(Schema::from(schema))
    };
    let registry = Registry::builder().with_policy(OutputPolicy::Strict).build();
    let mapping = json!({ "c": "#/$defs/Cat", "d": "#/$defs/Dog" });
    for spec in [
        spec("demo.mapped", json!({ "propertyName": "kind", "mapping": mapping })),
        spec("demo.named", json!({ "propertyName": "kind" })),
    ] {
        registry.register(Registration::new(spec, Handler::dynamic(|value, _| async { Ok(value) }))).unwrap();
    }
    let pet = |kind: &str| json!({ "kind": kind, "lives": 9 });
    for (id, kind) in [("demo.mapped", "c"), ("demo.mapped", "Cat"), ("demo.named", "Cat"), ("demo.named", "C")] {
        let envelope = registry.call(id, pet(kind)).await.unwrap();
        assert_eq!((envelope.data, envelope.warnings.len()), (pet(kind), 0), "{id} {kind}");
    }
    let told = "the response does not match its schema: /kind: expected one of 'Cat', 'Dog', 'c', 'd', found string";
    let error = registry.call("demo.mapped", pet("C")).await.unwrap_err();
    assert_eq!((error.message(), &error.details()["raw"]), (told, &pet("C")));
    // A repair keeps it, with a warning.
    let repair = CallOptions::new().with_policy(OutputPolicy::Repair);
    let envelope = registry.call_with("demo.mapped", pet("C"), repair).await.unwrap();
    assert_eq!((envelope.data, envelope.warnings.len()), (pet("C"), 1));
}

/// A name that one variant does not describe may be that of another.
#[tokio::test]
async fn strict_accepts_a_name_that_another_variant_lists() {
    let pet = json!({ "type": "object", "properties": { "kind": { "type": "string" } }, "required": ["kind"] });
    let bird = json!({
        "type": "object",
        "properties": { "kind": { "const": "bird" }, "wings": { "type": "integer" } },
        "required": ["kind", "wings"],
    });
    let schema = json!({
        "anyOf": [{ "$ref": "#/$defs/Pet" }, { "$ref": "#/$defs/Bird" }],
        "$defs": {
            "Pet": {
                "oneOf": [{ "$ref": "#/$defs/Cat" }, { "$ref": "#/$defs/Dog" }],
                "discriminator": {
                    "propertyName": "kind",
                    "mapping": { "c": "#/$defs/Cat", "d": "#/$defs/Dog" },
                },
            },
            "Cat": pet,
            "Dog": pet,
            "Bird": bird,
        },
    });
    let spec = OperationSpec::query("demo.several").with_output(Schema::from(schema));
    let registry = Registry::builder().with_policy(OutputPolicy::Strict).build();
    registry.register(Registration::new(spec, Handler::dynamic(|value, _| async { Ok(value) }))).unwrap();
    let bird = json!({ "kind": "bird", "wings": 2 });
    let envelope = registry.call("demo.several", bird.clone()).await.unwrap();
    assert_eq!((envelope.data, envelope.warnings.len()), (bird, 0));
    let told = "the response does not match its schema: /kind: expected one of 'Cat', 'Dog', 'c', 'd', found string";
    let error = registry.call("demo.several", json!({ "kind": "fish", "wings": 2 })).await.unwrap_err();
    assert_eq!(error.message(), told);
}

operation!(Mapped: Value => Value, Call, OperationSpec::query("demo.typed").with_output(Schema::text(
    r##"{"oneOf":[{"$ref":"#/$defs/Cat"},{"$ref":"#/$defs/Dog"}],
        "discriminator":{"propertyName":"kind","mapping":{"c":"#/$defs/Cat","d":"#/$defs/Dog"}},
        "$defs":{
            "Cat":{"type":"object","properties":{"kind":{"type":"string"},"lives":{}},"required":["kind"]},
            "Dog":{"type":"object","properties":{"kind":{"type":"string"},"barks":{}},"required":["kind"]}}}"##,
)));

/// Otherwise, the type of a function's result stands for its schema.
#[tokio::test]
async fn strict_refuses_such_a_name_of_a_function_called_by_type() {
    let registry = Registry::builder().with_policy(OutputPolicy::Strict).build();
    registry.register(Registration::call::<Mapped, _, _>(|pet, _| async move { Ok(Reply::Value(pet)) })).unwrap();
    let pet = |kind: &str| json!({ "kind": kind, "lives": 9 });
    for kind in ["c", "Cat"] {
        assert_eq!(registry.execute::<Mapped>(pet(kind)).await.unwrap().data, pet(kind));
    }
    let told = "the response does not match its schema: /kind: expected one of 'Cat', 'Dog', 'c', 'd', found string";
    let error = registry.execute::<Mapped>(pet("C")).await.unwrap_err();
    assert_eq!((error.message(), &error.details()["raw"]), (told, &pet("C")));
    let repair = CallOptions::new().with_policy(OutputPolicy::Repair);
    assert_eq!(registry.execute_with::<Mapped>(pet("C"), repair).await.unwrap().data, pet("C"));
}

#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Nothing {}

operation!(Ack: Value => Nothing, Call, OperationSpec::query("demo.ack")
    .with_output(Schema::text(r#"{"type":"object","properties":{},"additionalProperties":false}"#)));

#[tokio::test]
async fn another_object_is_no_result_of_an_operation_that_declares_no_properties() {
    let registry = Registry::new();
    registry.register(Registration::new(Ack::SPEC, Handler::dynamic(|value, _| async { Ok(value) }))).unwrap();
    assert_eq!(registry.execute::<Ack>(json!({})).await.unwrap().data, Nothing {});
    assert_eq!(registry.call("demo.ack", json!({})).await.unwrap().data, json!({}));
    let quota = json!({ "error": "quota exceeded", "code": 429 });
    let typed = registry.execute::<Ack>(quota.clone()).await.map(|envelope| envelope.data).unwrap_err();
    let by_id = registry.call("demo.ack", quota.clone()).await.unwrap_err();
    for error in [typed, by_id] {
        assert_eq!((error.code(), &error.details()["raw"]), (&ErrorCode::ValidationError, &quota), "{error}");
    }
}

operation!(Words: Value => BTreeMap<String, String>, Call, OperationSpec::query("demo.words")
    .with_output(Schema::text(r#"{"type":"object","patternProperties":{"^[a-z]{2}$":{"type":"string"}}}"#)));

/// It conforms, since any other name is allowed.
#[tokio::test]
async fn a_map_without_a_name_that_its_patterns_have_is_a_result() {
    let registry = Registry::new();
    registry.register(Registration::new(Words::SPEC, Handler::dynamic(|value, _| async { Ok(value) }))).unwrap();
    let words = json!({ "default": "x" });
    let typed = registry.execute::<Words>(words.clone()).await.unwrap();
    assert_eq!((json!(typed.data), typed.warnings.len()), (words.clone(), 0));
    let by_id = registry.call("demo.words", words).await.unwrap();
    let told = by_id.warnings.iter().map(|warning| (&*warning.pointer, &*warning.expected, &*warning.found));
    assert_eq!(told.collect::<Vec<_>>(), [("/default", "no such property", "string")]);
    assert_eq!(by_id.data, json!({}));
}

#[tokio::test]
async fn a_result_that_conforms_is_not_repaired_into_one_that_does_not() {
    let item = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    let cases = [
        // A default that asks for more, an undeclared property that is counted on.
        (json!({ "properties": { "a": { "default": 1 }, "b": {} }, "dependentRequired": { "a": ["b"] } }), json!({})),
        (json!({ "properties": { "a": {} }, "not": { "maxProperties": 1 } }), json!({ "a": 1, "x": 2 })),
        (
            json!({ "type": "array", "items": item, "contains": { "propertyNames": { "const": "x" }, "minProperties": 1 } }),
            json!([{ "a": 1 }, { "x": 2 }]),
        ),
        // A default that a variant forbids.
        (
            json!({ "properties": { "a": { "default": 1 } }, "oneOf": [
                { "properties": { "b": {} }, "required": ["b"], "additionalProperties": false },
                { "properties": { "c": {} }, "required": ["c"], "additionalProperties": false },
            ] }),
            json!({ "b": 1 }),
        ),
    ];
    for (schema, value) in cases {
        let spec = OperationSpec::query("demo.kept").with_output(Schema::from(schema.clone()));
        let registry = Registry::new();
        registry.register(Registration::new(spec, Handler::dynamic(|value, _| async { Ok(value) }))).unwrap();
        for policy in [OutputPolicy::Repair, OutputPolicy::Cast, OutputPolicy::Strict] {
            let options = CallOptions::new().with_policy(policy);
            let envelope = registry.call_with("demo.kept", value.clone(), options).await.unwrap();
            assert_eq!((envelope.data, envelope.warnings.len()), (value.clone(), 0), "{policy:?} {schema}");
        }
    }
}

#[tokio::test]
async fn a_result_is_checked_however_deep_its_schema_is() {
    // Repairing reads combinations to a depth of 100; what lies deeper is left to the check by the standard.
    let chain = |length: usize| {
        let link = |at: usize| {
            let next = json!({ "$ref": format!("#/$defs/S{}", at + 1) });
            (format!("S{at}"), json!({ "allOf": [next, next] }))
        };
        let last = (format!("S{length}"), json!({ "anyOf": [{ "type": "integer" }, { "const": null }] }));
        (0..length).map(link).chain([last]).collect::<Vec<_>>()
    };
    let own = |chain: Vec<(String, Value)>| {
        let table: serde_json::Map<String, Value> = chain.into_iter().collect();
        OperationSpec::query("demo.deep").with_output(Schema::from(json!({ "$ref": "#/$defs/S0", "$defs": table })))
    };
    let shared = |chain: Vec<(String, Value)>| {
        let table = chain.into_iter().map(|(name, schema)| Definition::from_value(name, schema)).collect();
        let mut spec = OperationSpec::query("demo.deep").with_output(Schema::from(json!({ "$ref": "#/$defs/S0" })));
        spec.definitions = Definitions::new(table);
        spec
    };
    for spec in [own(chain(10)), own(chain(70)), shared(chain(10)), shared(chain(70))] {
        let registry = Registry::new();
        registry.register(Registration::new(spec, Handler::dynamic(|value, _| async { Ok(value) }))).unwrap();
        for policy in [OutputPolicy::Repair, OutputPolicy::Strict] {
            let options = CallOptions::new().with_policy(policy);
            let fits = registry.call_with("demo.deep", json!(7), options.clone()).await.unwrap();
            assert_eq!((fits.data, fits.warnings.len()), (json!(7), 0), "{policy:?}");
            // Asked again, too, when everything is compiled.
            for _ in 0..2 {
                let told = match registry.call_with("demo.deep", json!("x"), options.clone()).await {
                    Ok(envelope) => envelope.warnings.iter().map(|warning| warning.found.to_string()).collect(),
                    Err(error) => vec![error.code().to_string()],
                };
                // Repairing tells a value of another kind only where its own reading knows the kind.
                let is_error = matches!(told.as_slice(), [code] if code == "VALIDATION_ERROR");
                let is_warning = told.iter().any(|found| found == "string") && policy == OutputPolicy::Repair;
                assert!(is_error || is_warning, "{policy:?}: {told:?}");
            }
        }
    }
}
