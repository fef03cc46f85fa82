//! What results become where their schemas name things freely, describe what only requests have, or ask for much work.
#![cfg(feature = "registry")]
#![allow(clippy::unwrap_used)]

#[path = "call/log.rs"]
mod log;

use bytes::Bytes;
use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::normalise::{Change, CompiledDefinitions, CompiledSchema, Reading, Validator};
use ops_runtime::registry::OutputPolicy;
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{CallError, Context, ErrorCode, Registry, ResponseEnvelope};
use serde_json::{Map, Value, json};

fn compiled(schema: &Value) -> CompiledSchema {
    CompiledSchema::new(schema, Reading::Default)
}

/// The schema with these definitions as its own, and with a table of them.
fn with_definitions(schema: &Value, definitions: &Value) -> [CompiledSchema; 2] {
    let mut whole = schema.clone();
    whole["$defs"] = definitions.clone();
    let table = definitions.clone();
    let table = CompiledDefinitions::new(Reading::Default, move |name| table.get(name).cloned());
    [compiled(&whole), CompiledSchema::with_definitions(schema, &table)]
}

/// What a repair does to a value, and to its text where that can be mended; both tell the same.
fn repair(schema: &CompiledSchema, value: &Value) -> (Value, Vec<String>) {
    let (repaired, told) = schema.repair(value.clone());
    if let Some((text, told_of_text)) = schema.repair_text(&value.to_string()) {
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), repaired);
        assert_eq!(told_of_text, told);
    }
    (repaired, told.iter().map(ToString::to_string).collect())
}

/// A reference has the name of its definition as it is, or percent-encoded. A name may look as if it were encoded.
#[test]
fn references_find_definitions_of_any_name() {
    let definitions =
        json!({ "Größe": { "type": "integer" }, "a%41": { "type": "boolean" }, "b/c d": { "type": "string" } });
    for (reference, fitting) in [
        ("#/$defs/Größe", json!(1)),
        ("#/$defs/Gr%C3%B6%C3%9Fe", json!(1)),
        ("#/$defs/a%41", json!(true)),
        ("#/$defs/a%2541", json!(true)),
        ("#/$defs/b~1c d", json!("x")),
        ("#/$defs/b~1c%20d", json!("x")),
    ] {
        let schema = json!({ "$ref": reference });
        let [own, shared] = with_definitions(&schema, &definitions);
        let validator = Validator::new(&json!({ "$ref": reference, "$defs": definitions }));
        for value in [json!(1), json!(true), json!("x")] {
            let checked = [own.check(&value), shared.check(&value), validator.check(&value)];
            assert_eq!(checked, [value == fitting; 3], "{reference}: {value}");
        }
    }
}

/// A response need not have what only requests have: nothing stands for it, whoever says that it is so.
#[test]
fn what_only_requests_have_is_not_filled_in() {
    let schema = json!({
        "type": "object",
        "required": ["id", "password", "or null"],
        "properties": {
            "id": { "type": "integer" },
            "role": { "type": "string", "default": "user" },
            "group": { "$ref": "#/$defs/Plain" },
            "password": { "type": "string", "writeOnly": true, "default": "changeme" },
            "mail": { "type": "boolean", "writeOnly": true, "default": true },
            "by reference": { "$ref": "#/$defs/Secret" },
            "by two": { "$ref": "#/$defs/Alias" },
            "beside": { "$ref": "#/$defs/Plain", "writeOnly": true },
            "or null": { "anyOf": [{ "$ref": "#/$defs/Alias" }, { "type": "null" }] },
            "by a part": { "allOf": [{ "$ref": "#/$defs/Plain" }, { "writeOnly": true }] },
        },
    });
    let definitions = json!({
        "Plain": { "type": "string", "default": "p" },
        "Secret": { "type": "string", "writeOnly": true, "default": "s" },
        "Alias": { "$ref": "#/$defs/Secret" },
    });
    for schema in with_definitions(&schema, &definitions) {
        let filled = json!({ "id": 1, "role": "user", "group": "p" });
        assert_eq!(repair(&schema, &json!({ "id": 1 })), (filled.clone(), vec![]));
        assert_eq!(schema.normalise(json!({ "id": 1 })), (filled.clone(), vec![]));
        assert_eq!(schema.clean(json!({ "id": 1 })), filled);
        // Nothing is left to do, so that the text passes as it is.
        assert!(schema.passes(filled.to_string().as_bytes()));
        // What came stays, and `null` is nothing.
        let came = json!({ "id": 1, "role": "user", "group": "q", "mail": false, "by reference": "x", "beside": "y" });
        assert_eq!(repair(&schema, &came), (came.clone(), vec![]));
        let (value, told) = repair(&schema, &json!({ "id": 1, "role": "user", "group": "p", "mail": null }));
        assert_eq!((value, told), (filled, vec!["/mail: expected boolean, found null".to_owned()]));
    }
}

/// What a map holds is never required, so `null` is no value of it where it may not be.
#[test]
fn null_is_no_entry_of_a_map() {
    let labels = |schema: Value| json!({ "type": "object", "properties": { "labels": schema } });
    let came = json!({ "labels": { "a": "x", "b": null, "c": null, "d": "y" } });
    let left = json!({ "labels": { "a": "x", "d": "y" } });
    let told = ["/labels/b: expected string, found null", "/labels/c: expected string, found null"];
    for schema in [
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        json!({ "type": "object", "additionalProperties": { "$ref": "#/$defs/Text" } }),
        json!({ "type": "object", "patternProperties": { "^[a-z]$": { "type": "string" } } }),
    ] {
        let [own, shared] = with_definitions(&labels(schema), &json!({ "Text": { "type": "string" } }));
        for schema in [own, shared] {
            assert_eq!(repair(&schema, &came), (left.clone(), told.map(str::to_owned).to_vec()));
            // Nothing is made up in its place.
            let (value, repairs) = schema.normalise(came.clone());
            assert_eq!(value, left);
            assert!(repairs.iter().all(|repair| repair.change == Change::Converted), "{repairs:?}");
        }
    }
    // Only what is around it is written anew.
    let maps = compiled(&labels(json!({ "type": "object", "additionalProperties": { "type": "number" } })));
    let (text, _) = maps.repair_text(r#"{"labels": {"a": 1.50, "b": null, "c": 2.0}}"#).unwrap();
    assert_eq!(text, r#"{"labels": {"a": 1.50, "c": 2.0}}"#);
    // Where it may be, it stays; and where a property has to be there, its absence would be another fault.
    for schema in [
        json!({ "additionalProperties": { "type": ["string", "null"] } }),
        json!({ "additionalProperties": true }),
        json!({ "additionalProperties": {} }),
    ] {
        assert_eq!(repair(&compiled(&labels(schema)), &came), (came.clone(), vec![]));
    }
    let needed = compiled(
        &json!({ "additionalProperties": { "type": "string" }, "properties": { "a": { "type": "string" } }, "required": ["a"] }),
    );
    assert_eq!(repair(&needed, &json!({ "a": null })).0, json!({ "a": null }));
}

/// However many entries a map has, numbers in it stay as they were written.
#[test]
fn large_maps_stay_as_they_were_written() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" }, "balances": {
        "type": "object", "additionalProperties": { "type": "number" },
    } } });
    let schema = compiled(&schema);
    let entries = |last: &str| {
        let each = (0..200).map(|index| format!(r#""{index}": 123456789012345678901234.10"#));
        each.chain([last.to_owned()]).collect::<Vec<_>>().join(",")
    };
    let text = |n: &str, last: &str| format!(r#"{{"balances": {{{}}}, "n": {n}}}"#, entries(last));
    let fitting = text("1", r#""x": 1.10"#);
    assert!(schema.passes(fitting.as_bytes()));
    let to_mend = text("\"1\"", r#""x": 1.10"#);
    let (mended, told) = schema.repair_text(&to_mend).unwrap();
    assert_eq!((&*mended, told.len()), (fitting.as_str(), 1));
    // Of two entries with one name the last one counts, so that both are not passed on.
    for twice in [r#""3": 7"#, r#""150": 7"#] {
        assert!(!schema.passes(text("1", twice).as_bytes()));
        let given = text("1", twice);
        let (mended, _) = schema.repair_text(&given).unwrap();
        assert_eq!(mended.matches(twice.split(':').next().unwrap()).count(), 1, "{mended}");
    }
}

/// A writer that holds numbers as doubles writes large ones with an exponent.
#[test]
fn large_integers_are_written_as_integers() {
    let schema = compiled(&json!({ "type": "object", "properties": { "id": { "type": "integer" } } }));
    for (came, left) in [
        ("9.3e18", "9300000000000000000"),
        ("9.223372036854775808e18", "9223372036854775808"),
        ("1.8446744073709549568e19", "18446744073709549568"),
        ("-9.2e18", "-9200000000000000000"),
        ("7e0", "7"),
        // Beyond 64 bits there is no integer to write.
        ("1.8446744073709551616e19", "1.8446744073709552e+19"),
        ("-9.3e18", "-9.3e+18"),
    ] {
        let (value, told) = schema.repair(serde_json::from_str(&format!(r#"{{"id": {came}}}"#)).unwrap());
        let written = value["id"].to_string();
        assert_eq!(written.replace("e+", "e"), left.replace("e+", "e"), "{came}");
        assert!(told.is_empty());
    }
}

/// Looking for all that a schema has, or comparing with all that an enum has, counts for each node of the value.
#[test]
fn large_schemas_cost_steps() {
    let properties = |count: usize, schema: Value| -> Map<String, Value> {
        (0..count).map(|index| (format!("p{index}"), schema.clone())).collect()
    };
    let required = |count: usize| {
        let all = properties(count, json!({ "type": "string" }));
        let names: Vec<&String> = all.keys().collect();
        json!({ "type": "array", "items": { "type": "object", "required": names, "properties": all } })
    };
    let defaults = |count: usize| {
        let all = properties(count, json!({ "type": "string", "default": 1 }));
        json!({ "type": "array", "items": { "type": "object", "properties": all } })
    };
    let variants = |count: usize| {
        let variant = |name: &str| json!({ "type": "object", "required": [name], "properties": properties(count, json!({ "type": "string" })) });
        json!({ "type": "array", "items": { "anyOf": [variant("x"), variant("y")] } })
    };
    let schemas: [(&dyn Fn(usize) -> Value, bool); 3] = [(&required, true), (&defaults, false), (&variants, false)];
    for (schema, is_listed) in schemas {
        let steps = |count: usize| compiled(&schema(count)).steps(&json!(vec![json!({}); 100]));
        let ((listed, repaired, _), (more_listed, more_repaired, most)) = (steps(100), steps(1_600));
        assert!(!is_listed || more_listed > 3 * listed, "{listed}, {more_listed}");
        assert!(more_repaired > 3 * repaired && more_repaired <= most, "{repaired}, {more_repaired}, {most}");
    }
    // What would take too many is ended, and that is told.
    let (_, told) = compiled(&required(20_000)).repair(json!(vec![json!({}); 2_000]));
    assert!(told[0].expected.contains("steps per node"), "{}", told[0]);
    // A text with such values is left to the value, which says so.
    let many = compiled(&json!({ "type": "array", "items": { "enum": (0..50_000).collect::<Vec<_>>() } }));
    let few = vec![49_999; 5];
    assert!(many.passes(serde_json::to_string(&few).unwrap().as_bytes()));
    assert!(!many.passes(serde_json::to_string(&vec![49_999; 20_000]).unwrap().as_bytes()));
}

/// A rule of another kind than its variant asks nothing, and does not come into force for the variants beside it.
#[test]
fn rules_of_other_kinds_ask_nothing_of_a_union() {
    let strings = json!({ "type": "array", "items": { "type": "string" }, "maxLength": 3 });
    let counts = json!({ "type": "integer", "required": ["a"], "additionalProperties": false });
    for (variants, value) in [
        (json!([strings, { "type": "string" }]), json!("abcd")),
        (json!([{ "type": "string", "minimum": 0 }, { "type": "integer" }]), json!(-5)),
        (json!([{ "type": "string", "maxItems": 1 }, { "type": "array" }]), json!([1, 2])),
        (json!([counts, { "type": "object" }]), json!({ "b": 1 })),
    ] {
        for keyword in ["anyOf", "oneOf"] {
            let union = json!({ (keyword): variants });
            let schema = compiled(&union);
            assert!(Validator::new(&union).check(&value) && schema.check(&value), "{union}");
            assert_eq!(repair(&schema, &value), (value.clone(), vec![]), "{union}");
            assert_eq!(schema.normalise(value.clone()), (value.clone(), vec![]), "{union}");
        }
    }
    let union = json!({ "anyOf": [{ "type": "string", "minimum": 0, "maxLength": 2 }, { "type": "integer" }] });
    assert!(!compiled(&union).check(&json!("abc")) && compiled(&union).check(&json!(-1)));
}

#[test]
fn whole_numbers_of_schemas_are_exact_however_they_are_written() {
    for (schema, conforms, breaks) in [
        (json!({ "const": 9007199254740992.0 }), json!(9_007_199_254_740_992_u64), json!(9_007_199_254_740_993_u64)),
        (json!({ "maximum": 9007199254740992.0 }), json!(9_007_199_254_740_992_u64), json!(9_007_199_254_740_993_u64)),
        (json!({ "exclusiveMinimum": -9007199254740992.0 }), json!(0), json!(-9_007_199_254_740_993_i64)),
        (json!({ "multipleOf": 2.0 }), json!(9_007_199_254_740_994_u64), json!(9_007_199_254_740_993_u64)),
        // 6,004,799,503,160,662 times as much.
        (json!({ "multipleOf": 1.5 }), json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64)),
        (json!({ "maximum": 1e19 }), json!(9_999_999_999_999_999_999_u64), json!(10_000_000_000_000_000_001_u64)),
    ] {
        assert!(compiled(&schema).check(&conforms) && !compiled(&schema).check(&breaks), "{schema}");
        assert!(Validator::new(&schema).check(&conforms) && !Validator::new(&schema).check(&breaks), "{schema}");
    }
}

/// So many are too many, though not so few as the next whole number.
#[test]
fn an_upper_limit_with_a_fraction_is_the_whole_number_below() {
    for (keyword, conforms, breaks) in [
        ("maxItems", json!([1, 2]), json!([1, 2, 3])),
        ("maxLength", json!("ab"), json!("abc")),
        ("maxProperties", json!({ "a": 1, "b": 2 }), json!({ "a": 1, "b": 2, "c": 3 })),
        ("minItems", json!([1, 2, 3]), json!([1, 2])),
        ("minLength", json!("abc"), json!("ab")),
        ("minProperties", json!({ "a": 1, "b": 2, "c": 3 }), json!({ "a": 1, "b": 2 })),
    ] {
        let schema = json!({ (keyword): 2.5 });
        assert!(compiled(&schema).check(&conforms) && !compiled(&schema).check(&breaks), "{keyword}");
        assert!(Validator::new(&schema).check(&conforms) && !Validator::new(&schema).check(&breaks), "{keyword}");
    }
}

/// Work for an enum is bounded, too: beyond that, its numbers are taken as they are.
#[test]
fn the_numbers_of_an_enum_are_checked_as_far_as_a_schema_may_be_large() {
    let units = vec![json!({ "multipleOf": 2 }); 20_000];
    let schema = |numbers: i64| json!({ "enum": (1..=numbers).collect::<Vec<_>>(), "allOf": units });
    let small = compiled(&schema(4));
    assert!(small.problems().is_empty() && small.check(&json!(4)) && !small.check(&json!(3)));
    let large = compiled(&schema(60_000));
    assert!(large.problems().len() == 1 && large.check(&json!(3)) && !large.check(&json!(60_001)));
}

/// What stands beside listed objects and lists is checked by the standard.
#[tokio::test]
async fn rules_beside_listed_objects_and_lists() {
    for (schema, conforms, breaks) in [
        (
            json!({ "enum": [{ "k": 1 }, { "k": 2, "z": 1 }], "required": ["z"], "properties": { "k": {} } }),
            r#"{"k":2,"z":1}"#,
            r#"{"k":1}"#,
        ),
        (json!({ "enum": [[1], [1, 2]], "minItems": 2 }), "[1,2]", "[1]"),
    ] {
        let spec = || OperationSpec::query("demo.gives").with_output(Schema::from(schema.clone()));
        for policy in [OutputPolicy::Strict, OutputPolicy::Repair] {
            let call = async |text| {
                let registry = Registry::builder().with_policy(policy).build();
                registry.register(Registration::new(spec(), Handler::endpoint(Gives(text)))).unwrap();
                registry.call("demo.gives", json!({})).await
            };
            let given = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            let envelope = call(conforms).await.unwrap();
            assert_eq!((envelope.data, envelope.warnings), (given(conforms), vec![]), "{schema}");
            match call(breaks).await {
                Ok(envelope) => {
                    assert!(policy == OutputPolicy::Repair && envelope.data == given(breaks), "{schema}");
                    assert_eq!(envelope.warnings.len(), 1, "{schema}");
                }
                Err(error) => {
                    assert!(policy == OutputPolicy::Strict && *error.code() == ErrorCode::ValidationError, "{error}");
                }
            }
        }
    }
}

/// Gives the same text to every call.
struct Gives(&'static str);

impl Endpoint for Gives {
    fn call(
        &self,
        spec: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let envelope = ResponseEnvelope::local(Payload::Json(Bytes::from_static(self.0.as_bytes())), spec.id.clone());
        Box::pin(async move { Ok(envelope) })
    }
}

/// JSON that no value can hold is no text that is not JSON.
#[tokio::test]
async fn json_that_a_value_cannot_hold_is_told_as_such() {
    for (text, message) in [
        (r#"{"x":"\ud83d"}"#, "the response has a text with half of a character: /x: unexpected end of hex escape"),
        (
            r#"{"x":"\ude00"}"#,
            "the response has a text with half of a character: /x: lone leading surrogate in hex escape",
        ),
        // What else is wrong comes first.
        (r#"{"x":"\ud83d", oops"#, "the response is not JSON: /x: unexpected end of hex escape at line 1 column 16"),
        (r#"{"x":1e400}"#, "the response has a number beyond the range of a double: /x: number out of range"),
        ("oops", "the response is not JSON: expected value at line 1 column 1"),
    ] {
        let registry = Registry::new();
        let spec = OperationSpec::query("demo.gives").with_output(Schema::from(json!({ "type": "object" })));
        registry.register(Registration::new(spec, Handler::endpoint(Gives(text)))).unwrap();
        let error = registry.call("demo.gives", json!({})).await.unwrap_err();
        assert_eq!(error.message(), message, "{text}");
    }
}

/// `readOnly` counts where a schema serves requests and responses: within the bodies and parameters of HTTP.
#[tokio::test]
async fn only_requests_lack_what_the_server_sets() {
    let pet = json!({
        "type": "object",
        "required": ["id", "name"],
        "properties": { "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" } },
    });
    let whole = json!({ "type": "object", "required": ["id", "body"], "properties": { "id": { "readOnly": true }, "body": pet } });
    let http = || HttpBinding::new("POST", "/").with_bodies(const { &[HttpBody::new("application/json")] });
    let filter = json!({ "type": "object", "required": ["id"], "properties": { "id": { "readOnly": true } } });
    let filtered = json!({ "type": "object", "properties": { "filter": filter, "body": pet } });
    let referred = json!({ "$ref": "#/$defs/Input", "$defs": { "Input": whole } });
    let of_type = Schema::make(|| {
        let body = json!({ "type": "object", "required": ["id"], "properties": { "id": { "readOnly": true } } });
        json!({ "type": "object", "required": ["body"], "properties": { "body": body } })
    });
    for (spec, input, is_right) in [
        (OperationSpec::query("demo.t").with_input(Schema::from(pet.clone())), json!({ "name": "x" }), false),
        (OperationSpec::query("demo.t").with_input(Schema::from(pet.clone())), json!({ "name": "x", "id": 1 }), true),
        (
            OperationSpec::query("demo.t").with_input(Schema::from(whole.clone())),
            json!({ "id": 1, "body": { "name": "x" } }),
            false,
        ),
        (
            OperationSpec::mutation("demo.t").with_input(Schema::from(whole.clone())).with_http(http()),
            json!({ "id": 1, "body": { "name": "x" } }),
            true,
        ),
        // A parameter itself is sent.
        (
            OperationSpec::mutation("demo.t").with_input(Schema::from(whole)).with_http(http()),
            json!({ "body": { "name": "x" } }),
            false,
        ),
        // What is in it counts as in a body, also if there is no body.
        (
            OperationSpec::mutation("demo.t").with_input(Schema::from(filtered.clone())).with_http(http()),
            json!({ "filter": {}, "body": { "name": "x" } }),
            true,
        ),
        (
            OperationSpec::query("demo.t")
                .with_input(Schema::from(filtered.clone()))
                .with_http(HttpBinding::new("GET", "/")),
            json!({ "filter": {} }),
            true,
        ),
        (OperationSpec::query("demo.t").with_input(Schema::from(filtered)), json!({ "filter": {} }), false),
        (
            OperationSpec::mutation("demo.t").with_input(Schema::from(referred.clone())).with_http(http()),
            json!({ "body": { "id": 1, "name": "x" } }),
            false,
        ),
        (
            OperationSpec::mutation("demo.t").with_input(Schema::from(referred)).with_http(http()),
            json!({ "id": 1, "body": { "name": "x" } }),
            true,
        ),
        // A type takes what it requires.
        (OperationSpec::mutation("demo.t").with_input(of_type.clone()).with_http(http()), json!({ "body": {} }), false),
        (OperationSpec::mutation("demo.t").with_input(of_type).with_http(http()), json!({ "body": { "id": 1 } }), true),
    ] {
        let registry = Registry::new();
        registry.register(Registration::new(spec, Handler::dynamic(|value, _| async { Ok(value) }))).unwrap();
        let result = registry.call("demo.t", input.clone()).await;
        let code = result.as_ref().err().map(CallError::code);
        assert_eq!(code, (!is_right).then_some(&ErrorCode::ValidationError), "{input}");
    }
}

/// What is not checked of inputs is logged, once.
#[tokio::test]
async fn problems_of_inputs_are_logged() {
    let (log, _guard) = log::Log::start();
    let input = json!({ "type": "object", "properties": { "name": { "type": "string", "pattern": "[z-a]" } } });
    let spec = OperationSpec::query("demo.named").with_input(Schema::from(input));
    let registry = Registry::new();
    registry.register(Registration::new(spec, Handler::dynamic(|value, _| async { Ok(value) }))).unwrap();
    for _ in 0..2 {
        registry.call("demo.named", json!({ "name": "x" })).await.unwrap();
    }
    let told = log.with("demo.named");
    assert!(told.len() == 1 && told[0].contains("`[z-a]` is a pattern that cannot be read"), "{told:?}");
}
