//! Inputs and results are checked against their schemas.

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
