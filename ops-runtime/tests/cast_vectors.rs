//! The compatible reading against recorded vectors of the original.
//!
//! `OPS_CAST_VECTORS` names a directory with `*.jsonl` files; without it the small fixtures of this repository are
//! used. A row holds `schema`, `value` (or `value_absent`), `check_before`, `errors_before`, `cast` (or
//! `cast_absent`, or `throws`), `check_after`, `errors_after` and, of the recorded ones, `idempotent`. Every column of
//! every row is compared, but for the text of `throws`, which is the original's own; a row that lacks a column fails.
#![cfg(feature = "registry")]
#![allow(clippy::unwrap_used)]

#[path = "../../tests/src/corpus/known.rs"]
#[allow(dead_code, unreachable_pub, reason = "the other tests need more of it")]
mod known;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ops_runtime::normalise::{Change, CompiledSchema, Reading, Repair, Violation, cast};
use serde_json::Value;

/// Tags of rows that may differ, because they record behaviour of JavaScript rather than of the original.
const TAGS: [(&str, &str); 2] = [
    ("js-quirk", "names of `Object.prototype`, arrays taken for objects, errors of the language"),
    ("js-undefined", "the result holds `undefined`, which JSON has not"),
];

/// Every row of the recorded vectors (those in `tests/known.txt`) that has such a tag, with exactly the columns in which it
/// differs.
const TAGGED: &[(&str, &str)] = &[
    ("fallback-unknown-0039", ""),
    ("fallback-unknown-0042", ""),
    ("fallback-unknown-0046", ""),
    ("fallback-unknown-0052", ""),
    ("js-quirk-0001", ""),
    ("js-quirk-0002", ""),
    // TypeBox asks whether `toString` is in an object, and every object has it.
    ("js-quirk-0004", "cast check_before errors_before repairs"),
    ("js-quirk-0006", ""),
    ("js-quirk-0007", ""),
    ("js-quirk-0011", ""),
    ("js-quirk-0013", ""),
    ("js-quirk-0015", ""),
    ("object-0094", ""),
    ("random-0581", ""),
    ("random-0671", ""),
    ("random-0698", ""),
    ("union-score-0017", ""),
    ("unknown-0001", ""),
];

fn directory() -> PathBuf {
    match std::env::var_os("OPS_CAST_VECTORS") {
        Some(directory) => Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(directory),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/cast"),
    }
}

fn rows(directory: &Path) -> Vec<Row> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        let (text, is_known) = (std::fs::read_to_string(&file).unwrap(), known::is_known(&file));
        for (at, line) in text.lines().enumerate() {
            let row: Value = serde_json::from_str(line).unwrap();
            let row = Row::read(row, is_known);
            rows.push(row.unwrap_or_else(|error| panic!("{}:{}: {error}", file.display(), at + 1)));
        }
    }
    let ids: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids.len(), rows.len(), "two rows have one id");
    rows
}

/// Pointers and messages.
type Errors = Vec<(String, String)>;

/// What casting gave.
enum Outcome {
    Value { value: Value, check: bool, errors: Errors },
    Absent,
    Throws,
}

/// A row, none of its columns missing.
struct Row {
    id: String,
    tags: Vec<String>,
    schema: Value,
    value: Option<Value>,
    /// Whether the value conforms, and what is wrong with it; `None` where the original throws at the question.
    before: Option<(bool, Errors)>,
    result: Outcome,
    idempotent: Option<bool>,
    /// True for a row of the recorded vectors. Rows of other files may have the same ids.
    is_known: bool,
}

impl Row {
    fn read(row: Value, is_known: bool) -> Result<Self, String> {
        let flag = |name: &str| row[name].as_bool().ok_or_else(|| format!("`{name}` is no boolean"));
        let value = row.get("value").cloned();
        if value.is_some() == (row.get("value_absent") == Some(&Value::Bool(true))) {
            return Err("there is no `value` and no `value_absent`, or both".to_owned());
        }
        let before = match row["check_before"].get("throws") {
            Some(_) => None,
            None => Some((flag("check_before")?, errors_of(&row, "errors_before")?)),
        };
        let results = ["cast", "cast_absent", "throws"].map(|name| row.get(name).is_some());
        let result = match results {
            [true, false, false] => {
                let (check, errors) = (flag("check_after")?, errors_of(&row, "errors_after")?);
                Outcome::Value { value: row["cast"].clone(), check, errors }
            }
            [false, true, false] => Outcome::Absent,
            [false, false, true] => Outcome::Throws,
            _ => return Err("there is not just one of `cast`, `cast_absent` and `throws`".to_owned()),
        };
        let tags = row["tags"].as_array().into_iter().flatten();
        Ok(Self {
            id: row["id"].as_str().ok_or("`id` is no text")?.to_owned(),
            tags: tags.filter_map(Value::as_str).map(str::to_owned).collect(),
            schema: row.get("schema").ok_or("there is no `schema`")?.clone(),
            value,
            before,
            result,
            idempotent: row.get("idempotent").map(|_| flag("idempotent")).transpose()?,
            is_known,
        })
    }
}

/// A column of errors.
fn errors_of(row: &Value, name: &str) -> Result<Errors, String> {
    let list = row[name].as_array().ok_or_else(|| format!("`{name}` is no list"))?;
    let text = |error: &Value, key: &str| error[key].as_str().map(str::to_owned);
    let error = |error: &Value| Some((text(error, "path")?, text(error, "message")?));
    list.iter().map(|one| error(one).ok_or_else(|| format!("`{name}` holds {one}"))).collect()
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
fn errors(violations: &[Violation]) -> Errors {
    violations.iter().take(40).map(|one| (one.pointer.clone(), one.message.clone())).collect()
}

/// What differs between a row and this implementation: the columns, each with what is here.
fn differences(row: &Row) -> BTreeMap<&'static str, String> {
    let mut found = BTreeMap::new();
    let schema = CompiledSchema::new(&row.schema, Reading::Compat);
    let value = row.value.as_ref();
    let violations = value.map_or_else(|| schema.violations_of_absence(), |value| schema.violations(value));
    let is_good = value.map_or(violations.is_empty(), |value| schema.check(value));
    // What the original cannot answer is no for us.
    if is_good != row.before.as_ref().is_some_and(|(is_good, _)| *is_good) {
        found.insert("check_before", is_good.to_string());
    }
    if row.before.as_ref().is_some_and(|(_, expected)| errors(&violations) != *expected) {
        found.insert("errors_before", format!("{violations:?}"));
    }
    let result = cast(&row.schema, row.value.clone(), Reading::Compat);
    match (&row.result, &result.value) {
        (Outcome::Throws, _) => {
            // The node that cannot be cast stays and is told.
            if !result.repairs.iter().any(|repair| repair.change == Change::Kept) {
                found.insert("throws", format!("{:?}", result.value));
            }
        }
        (Outcome::Absent, value) if value.is_some() => _ = found.insert("cast_absent", format!("{value:?}")),
        (Outcome::Absent, _) => {}
        (Outcome::Value { value: expected, check, errors: after }, Some(value)) if same(value, expected) => {
            let violations = schema.violations(value);
            if schema.check(value) != *check {
                found.insert("check_after", schema.check(value).to_string());
            }
            if errors(&violations) != *after {
                found.insert("errors_after", format!("{violations:?}"));
            }
        }
        (Outcome::Value { .. }, value) => _ = found.insert("cast", format!("{value:?}")),
    }
    let again = cast(&row.schema, result.value.clone(), Reading::Compat).value;
    let is_stable = match (&again, &result.value) {
        (Some(again), Some(value)) => same(again, value),
        (again, value) => again.is_none() == value.is_none(),
    };
    if row.idempotent.is_some_and(|expected| expected != is_stable) {
        found.insert("idempotent", format!("{again:?}"));
    }
    // What did not conform was either changed or told, and nothing else was.
    let is_told = row.before.as_ref().is_none_or(|(is_good, _)| !is_good);
    if result.repairs.is_empty() == is_told {
        found.insert("repairs", format!("{:?}", result.repairs));
    }
    if let Some(untold) = untold(value, result.value.as_ref(), &result.repairs, "") {
        found.insert("repairs", format!("nothing tells that {untold} was changed: {:?}", result.repairs));
    }
    found
}

/// The first place that was changed without a repair that tells it: there, or above it.
fn untold(before: Option<&Value>, after: Option<&Value>, repairs: &[Repair], at: &str) -> Option<String> {
    let is_told =
        |kept: bool| repairs.iter().any(|repair| repair.pointer == at && (repair.change == Change::Kept) == kept);
    if is_told(false) {
        return None;
    }
    let deeper = |key: &str| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
    match (before, after) {
        (Some(Value::Array(before)), Some(Value::Array(after))) if before.len() == after.len() => {
            let mut pairs = before.iter().zip(after).enumerate();
            pairs.find_map(|(key, (before, after))| {
                untold(Some(before), Some(after), repairs, &deeper(&key.to_string()))
            })
        }
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let mut keys = before.keys().chain(after.keys());
            keys.find_map(|key| untold(before.get(key), after.get(key), repairs, &deeper(key)))
        }
        (Some(before), Some(after)) if same(before, after) => None,
        (None, None) => None,
        _ => Some(format!("`{at}`")),
    }
}

#[test]
fn agrees_with_the_vectors() {
    let directory = directory();
    let rows = rows(&directory);
    println!("{}: {} rows", directory.display(), rows.len());
    assert!(!rows.is_empty(), "no rows in {}", directory.display());
    let (mut agreed, mut excused, mut failed) = (0, BTreeMap::<&str, Vec<&str>>::new(), Vec::new());
    for row in &rows {
        let found = differences(row);
        let columns = found.keys().copied().collect::<Vec<_>>().join(" ");
        let known = TAGGED.iter().find(|(id, _)| row.is_known && *id == row.id).map(|(_, columns)| *columns);
        match TAGS.iter().find(|(tag, _)| row.tags.iter().any(|have| have == tag)) {
            // Tagged rows of other vectors than the recorded ones may differ for the same reason.
            Some((tag, _)) if !columns.is_empty() && known.is_none_or(|known| known == columns) => {
                excused.entry(tag).or_default().push(&row.id);
            }
            _ if columns == known.unwrap_or_default() => agreed += 1,
            _ => failed.push(format!(
                "{}: differs in {columns:?}, and should in {:?}\n  {found:#?}\n  {} of {:?}",
                row.id,
                known.unwrap_or_default(),
                row.schema,
                row.value
            )),
        }
    }
    println!("{agreed} rows agree");
    if rows.iter().any(|row| row.is_known && TAGGED.iter().any(|(id, _)| *id == row.id)) {
        let lost: Vec<&str> =
            TAGGED.iter().map(|(id, _)| *id).filter(|id| rows.iter().all(|row| row.id != *id)).collect();
        assert!(lost.is_empty(), "no vectors have these ids: {lost:?}");
    }
    for (tag, reason) in TAGS {
        let ids = excused.get(tag).map(Vec::as_slice).unwrap_or_default();
        println!("{} differ, {tag} ({reason}): {}", ids.len(), ids.join(", "));
    }
    assert!(failed.is_empty(), "{} rows differ:\n{}", failed.len(), failed.join("\n"));
    assert_eq!(agreed + excused.values().map(Vec::len).sum::<usize>(), rows.len());
}
