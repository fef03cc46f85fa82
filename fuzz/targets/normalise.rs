//! The normaliser: any value under any schema, in both readings.
//!
//! An input has a `schema` and a `value`, as the vectors in `tests/fixtures/cast` do.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use ops_runtime::normalise::{Change, CompiledSchema, Reading, Repair, cast};
use serde_json::Value;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    ops_fuzz::mutate_json(data, size, max_size, seed)
});

fuzz_target!(|input: &[u8]| {
    let Ok(parts) = serde_json::from_slice::<Value>(input) else { return };
    let Some(schema) = parts.get("schema") else { return };
    for reading in [Reading::Default, Reading::Compat] {
        let compiled = CompiledSchema::new(schema, reading);
        if let Some(value) = parts.get("value") {
            one(&compiled, schema, value, reading);
        }
        cast(schema, None, reading);
        compiled.violations_of_absence();
    }
});

fn one(compiled: &CompiledSchema, schema: &Value, value: &Value, reading: Reading) {
    let fits = compiled.check(value);
    let violations = compiled.violations(value);
    assert!(!fits || violations.is_empty(), "{value} fits {schema} and has {violations:?}");
    let (made, repairs) = compiled.cast(value.clone());
    if fits {
        // Where the original throws, that is told.
        let untouched = repairs.iter().all(|repair| repair.change == Change::Kept && reading == Reading::Compat);
        assert!(made == *value && untouched, "{value} fits {schema}, became {made}: {repairs:?} ({reading:?})");
    }
    let all_mended = |repairs: &[Repair]| repairs.iter().all(|repair| repair.change != Change::Kept);
    // The original makes up values that do not fit, where no value would.
    let promises = reading == Reading::Default;
    if promises && all_mended(&repairs) {
        assert!(compiled.check(&made), "{value} became {made}, which does not fit {schema}");
    }
    let (made, repairs) = compiled.normalise(value.clone());
    if promises && all_mended(&repairs) {
        assert!(compiled.check(&made), "{value} became {made}, which does not fit {schema}, normalised");
    }
    if compiled.passes(value.to_string().as_bytes()) {
        let left_alone = (value.clone(), Vec::new());
        let is_left_alone = fits && compiled.repair(value.clone()) == left_alone && (made, repairs) == left_alone;
        assert!(is_left_alone, "{value} passes {schema} as text");
    }
    if reading == Reading::Default {
        let (made, repairs) = compiled.repair(value.clone());
        let invented = repairs.iter().any(|repair| repair.change == Change::MadeUp);
        assert!(!invented, "{value} under {schema}: {repairs:?}");
        assert!(!all_mended(&repairs) || compiled.check(&made), "{value} became {made}, which does not fit {schema}");
    }
}
