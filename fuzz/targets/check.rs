//! Checking and listing: any value under any schema, in a number of steps that the value's size bounds.
//!
//! An input has a `schema` and a `value`, as those of the target `normalise` do.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use ops_runtime::normalise::{CompiledSchema, Reading, Validator};
use serde_json::Value;

/// How many entries a list of violations has at most: 1,000, how many more there are, and that the check was ended.
const MOST_LISTED: usize = 1002;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    ops_fuzz::mutate_json(data, size, max_size, seed)
});

fuzz_target!(|input: &[u8]| {
    let Ok(parts) = serde_json::from_slice::<Value>(input) else { return };
    let (Some(schema), Some(value)) = (parts.get("schema"), parts.get("value")) else { return };
    one(schema, value);
    // The same many times over: the steps are bounded by the size, whatever the schema.
    let list = serde_json::json!({ "type": "array", "items": schema, "$defs": schema.get("$defs") });
    one(&list, &Value::Array(vec![value.clone(); 20]));
});

fn one(schema: &Value, value: &Value) {
    let validator = Validator::new(schema);
    let (fits, violations) = (validator.check(value), validator.violations(value));
    assert_eq!(fits, violations.is_empty(), "{value} under {schema}: {violations:?}");
    assert!(violations.len() <= MOST_LISTED, "{value} under {schema}: {} violations", violations.len());
    let (steps, most) = validator.steps(value);
    assert!(steps <= most, "{value} under {schema} takes {steps} steps of {most}");
    for reading in [Reading::Default, Reading::Compat] {
        let compiled = CompiledSchema::new(schema, reading);
        let (fits, violations) = (compiled.check(value), compiled.violations(value));
        assert_eq!(fits, violations.is_empty(), "{value} under {schema}: {violations:?} ({reading:?})");
        assert!(violations.len() <= MOST_LISTED, "{value} under {schema}: {} violations", violations.len());
        let (listing, repairing, most) = compiled.steps(value);
        assert!(listing <= most && repairing <= most, "{value} under {schema}: {listing}, {repairing} of {most} steps");
    }
}
