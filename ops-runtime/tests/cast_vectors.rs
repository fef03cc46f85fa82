//! The compatible reading against recorded vectors of the original.
//!
//! `OPS_CAST_VECTORS` names a directory with `*.jsonl` files; without it the small fixtures of this repository are
//! used. A row holds `schema`, `value` (or `value_absent`), `check_before`, `errors_before`, `cast` (or
//! `cast_absent`, or `throws`), `check_after` and `errors_after`.
#![cfg(feature = "registry")]

use std::path::{Path, PathBuf};

use ops_runtime::normalise::{CompiledSchema, Reading, Violation, cast};
use serde_json::Value;

/// Behaviour of JavaScript rather than of the original.
const SKIPPED: [&str; 3] = ["js-quirk", "js-undefined", "js-number"];

/// Rows that are different here on purpose, each with its reason.
const EXCEPTIONS: [(&str, &str); 0] = [];

fn directory() -> PathBuf {
    match std::env::var_os("OPS_CAST_VECTORS") {
        Some(directory) => directory.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/cast"),
    }
}

fn rows(directory: &Path) -> Vec<Value> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        rows.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    rows
}

/// Equal as JSON: numbers as numbers, keys in any order.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// The first 40 violations in the form of the columns.
fn errors(violations: &[Violation]) -> Vec<(String, String)> {
    violations.iter().take(40).map(|one| (one.pointer.clone(), one.message.clone())).collect()
}

fn column(row: &Value, name: &str) -> Option<Vec<(String, String)>> {
    let text = |error: &Value, key: &str| error[key].as_str().unwrap_or("").to_owned();
    Some(row[name].as_array()?.iter().map(|error| (text(error, "path"), text(error, "message"))).collect())
}

/// What differs between a row and this implementation.
fn differences(row: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let schema = CompiledSchema::new(&row["schema"], Reading::Compat);
    let value = row.get("value");
    let violations = value.map_or_else(|| schema.violations_of_absence(), |value| schema.violations(value));
    match (row["check_before"].as_bool(), value) {
        (Some(expected), Some(value)) if schema.check(value) != expected => found.push("check before".to_owned()),
        (Some(expected), None) if violations.is_empty() != expected => found.push("check before".to_owned()),
        (None, Some(value)) if schema.check(value) => found.push("check before throws in the original".to_owned()),
        _ => {}
    }
    if column(row, "errors_before").is_some_and(|expected| errors(&violations) != expected) {
        found.push(format!("errors before: {violations:?}"));
    }
    let result = cast(&row["schema"], value.cloned(), Reading::Compat);
    if row.get("throws").is_some() {
        // The node that cannot be cast stays and is told.
        if !result.repairs.iter().any(|repair| repair.kept) {
            found.push(format!("did not throw but gave {:?}", result.value));
        }
        return found;
    }
    let agrees = match (&result.value, row.get("cast")) {
        (Some(value), Some(expected)) => same(value, expected),
        (value, expected) => value.is_none() == expected.is_none(),
    };
    if !agrees {
        found.push(format!("cast: {:?}", result.value));
    }
    if let Some(value) = result.value.as_ref().filter(|_| agrees) {
        if row["check_after"].as_bool().is_some_and(|expected| schema.check(value) != expected) {
            found.push("check after".to_owned());
        }
        let violations = schema.violations(value);
        if column(row, "errors_after").is_some_and(|expected| errors(&violations) != expected) {
            found.push(format!("errors after: {violations:?}"));
        }
    }
    // What did not conform was either changed or told, and nothing else was.
    if result.repairs.is_empty() != (row["check_before"] == Value::Bool(true)) {
        found.push(format!("repairs: {:?}", result.repairs));
    }
    found
}

#[test]
fn agrees_with_the_vectors() {
    let directory = directory();
    let rows = rows(&directory);
    println!("{}: {} rows", directory.display(), rows.len());
    assert!(!rows.is_empty(), "no rows in {}", directory.display());
    let (mut compared, mut failed) = (0, 0);
    for row in &rows {
        let id = row["id"].as_str().unwrap_or("?");
        let tags = row["tags"].as_array().map(Vec::as_slice).unwrap_or_default();
        let skipped = tags.iter().any(|tag| SKIPPED.iter().any(|skipped| tag == skipped));
        if skipped || EXCEPTIONS.iter().any(|(known, _)| *known == id) {
            continue;
        }
        compared += 1;
        let found = differences(row);
        if !found.is_empty() {
            failed += 1;
            println!("{id}: {}\n  {row}", found.join("; "));
        }
    }
    println!("{compared} rows compared, {failed} differ");
    assert_eq!(failed, 0, "rows that differ");
}
