//! What results become where their schemas name things freely, describe what only requests have, or ask for much work.
#![cfg(feature = "registry")]
#![allow(clippy::unwrap_used)]

#[path = "call/log.rs"]
mod log;

use ops_runtime::Registry;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::normalise::{Change, CompiledDefinitions, CompiledSchema, Reading, Validator};
use ops_runtime::spec::{OperationSpec, Schema};
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
