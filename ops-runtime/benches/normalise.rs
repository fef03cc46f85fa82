//! What normalising costs under the default policy, in microseconds: the median of many short samples, which a busy machine seldom interrupts.
//!
//! `OPS_CAST_BENCH` names a directory with `NAME.schema.json`, `NAME.clean.json` and `NAME.dirty.json` for the names
//! `obj-1k`, `arr-20k` and `list-1m`; without it payloads of a similar shape are generated. Values to be normalised
//! are copied beforehand, in batches, so that neither copying them nor dropping the results is measured. The whole
//! path includes both, and makes values only of what needs a change.
//!
//! `cargo bench -p ops-runtime --no-default-features --features registry --bench normalise`
#[cfg(not(feature = "registry"))]
fn main() {}

#[cfg(feature = "registry")]
fn main() {
    bench::main();
}

#[cfg(feature = "registry")]
mod bench {
    use std::borrow::Cow;
    use std::hint::black_box;
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    use ops_runtime::normalise::{Change, CompiledSchema, Reading, Repair};
    use ops_runtime::record;
    use serde_json::{Value, json};

    const NAMES: [&str; 3] = ["obj-1k", "arr-20k", "list-1m"];

    pub(crate) fn main() {
        let run = std::env::var("RUN_MS").ok().and_then(|text| text.parse().ok()).unwrap_or(1500);
        let run = Duration::from_millis(run);
        println!("{:8} {:6} {:20} {:>10} {:>10} {:>10}", "payload", "kind", "op", "us", "min", "p90");
        for name in NAMES {
            for kind in ["clean", "dirty"] {
                let (schema, text) = payload(name, kind);
                one(name, kind, &schema, &text, run);
            }
        }
    }

    fn one(name: &str, kind: &str, schema: &Value, text: &str, run: Duration) {
        let compiled = CompiledSchema::new(schema, Reading::Default);
        let value: Value = serde_json::from_str(text).unwrap();
        let (fixed, told) = compiled.repair(value.clone());
        let faults = told.iter().filter(|told| told.change == Change::Kept).count();
        assert_eq!(compiled.check(&fixed), faults == 0, "{name} {kind}: a fault is not told");
        // Both ways give the same, so that their times can be compared.
        let (mended, told_of_text) = repaired(&compiled, text);
        assert_eq!((serde_json::from_str::<Value>(&mended).unwrap(), told_of_text), (fixed, told), "{name} {kind}");
        let print = |op: &str, mut times: Vec<f64>| {
            times.sort_by(f64::total_cmp);
            let (min, median, p90) = (times[0], times[times.len() / 2], times[times.len() * 9 / 10]);
            println!("{name:8} {kind:6} {op:20} {median:10.2} {min:10.2} {p90:10.2}");
        };
        print("serde_json parse", timed(run, || serde_json::from_str::<Value>(text).unwrap()));
        print("parse", timed(run, || record::parse(text.as_bytes()).unwrap()));
        print("pass", timed(run, || compiled.passes(black_box(text.as_bytes()))));
        print("check", timed(run, || compiled.check(black_box(&value))));
        print("normalise", batched(run, &value, |value| compiled.repair(value)));
        print(
            "normalise+check",
            batched(run, &value, |value| {
                let result = compiled.repair(value);
                black_box(compiled.check(&result.0));
                result
            }),
        );
        print("whole path", timed(run, || repaired(&compiled, text)));
        print("whole path, cast", timed(run, || normalised(&compiled, text)));
    }

    /// From text to text, as a result that is passed on: only parts that need a change are made values. What does not
    /// conform is among the repairs.
    fn repaired<'t>(schema: &CompiledSchema, text: &'t str) -> (Cow<'t, str>, Vec<Repair>) {
        schema.repair_text(text).unwrap_or_else(|| {
            let (value, repairs) = schema.repair(record::parse(text.as_bytes()).unwrap());
            (Cow::Owned(serde_json::to_string(&value).unwrap()), repairs)
        })
    }

    /// The same for values that are made up, which are checked after that.
    fn normalised<'t>(schema: &CompiledSchema, text: &'t str) -> (Cow<'t, str>, Vec<Repair>) {
        if let Some((text, repairs)) = schema.normalise_text(text)
            && (repairs.is_empty() || schema.passes(text.as_bytes()))
        {
            return (text, repairs);
        }
        let (value, repairs) = schema.normalise(record::parse(text.as_bytes()).unwrap());
        black_box(schema.check(&value));
        (Cow::Owned(serde_json::to_string(&value).unwrap()), repairs)
    }

    /// Microseconds a call, of many samples.
    fn timed<T>(run: Duration, mut op: impl FnMut() -> T) -> Vec<f64> {
        batched(run, &Value::Null, |_| op())
    }

    /// The same for an operation that takes its value; only the operation itself is on the clock.
    fn batched<T>(run: Duration, value: &Value, mut op: impl FnMut(Value) -> T) -> Vec<f64> {
        let mut samples = Vec::new();
        let mut size = 1;
        let begin = Instant::now();
        let mut warm = false;
        while begin.elapsed() < run || samples.len() < 5 {
            let batch: Vec<Value> = (0..size).map(|_| value.clone()).collect();
            let mut results = Vec::with_capacity(size);
            let start = Instant::now();
            results.extend(batch.into_iter().map(&mut op));
            let spent = start.elapsed();
            black_box(results);
            if spent < Duration::from_micros(50) && size < 1024 {
                size *= 2;
            } else if warm || begin.elapsed() > run / 5 {
                warm = true;
                samples.push(spent.as_secs_f64() * 1e6 / size as f64);
            }
        }
        samples
    }

    fn payload(name: &str, kind: &str) -> (Value, String) {
        let Some(directory) = std::env::var_os("OPS_CAST_BENCH").map(PathBuf::from) else {
            return generated(name, kind == "dirty");
        };
        let read = |end: &str| {
            let path = directory.join(format!("{name}.{end}.json"));
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        (serde_json::from_str(&read("schema")).unwrap(), read(kind))
    }

    /// An issue, a list of orders, a page of events.
    fn generated(name: &str, dirty: bool) -> (Value, String) {
        let (schema, value) = match name {
            "obj-1k" => (issue_schema(), issue(dirty)),
            "arr-20k" => {
                (json!({"type": "array", "items": order_schema()}), (0..110).map(|index| order(index, dirty)).collect())
            }
            _ => (
                json!({"type": "object", "required": ["data"], "properties": {
                    "data": {"type": "array", "items": event_schema()},
                    "next": {"type": ["string", "null"]}
                }}),
                json!({"next": null, "data": (0..6000).map(|index| event(index, dirty)).collect::<Vec<_>>()}),
            ),
        };
        (schema, value.to_string())
    }

    fn issue_schema() -> Value {
        json!({"type": "object", "required": ["id", "title", "state", "user", "labels"], "properties": {
            "id": {"type": "integer"},
            "title": {"type": "string"},
            "state": {"enum": ["open", "closed"]},
            "comments": {"type": "integer", "minimum": 0, "default": 0},
            "user": {"type": "object", "required": ["login"], "properties": {"login": {"type": "string"}, "id": {"type": "integer"}}},
            "labels": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
            "body": {"anyOf": [{"type": "string"}, {"type": "null"}]}
        }})
    }

    fn issue(dirty: bool) -> Value {
        let mut issue = json!({
            "id": 7, "title": "a title of some words", "state": "open", "comments": 3,
            "user": {"login": "somebody", "id": 12}, "labels": [{"name": "bug"}, {"name": "help wanted"}],
            "body": "words of a text ".repeat(40)
        });
        if dirty {
            issue["comments"] = json!("3");
            issue["node_id"] = json!("MDU6");
            issue["user"]["avatar"] = json!("https://example.com/a.png");
        }
        issue
    }

    fn order_schema() -> Value {
        json!({"type": "object", "required": ["id", "sku", "price", "qty", "status"], "properties": {
            "id": {"type": "integer"},
            "sku": {"type": "string", "minLength": 4},
            "price": {"type": "number", "minimum": 0},
            "qty": {"type": "integer", "default": 1},
            "status": {"enum": ["new", "paid", "shipped"]},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "size": {"type": "array", "items": [{"type": "number"}, {"type": "number"}, {"type": "number"}]}
        }})
    }

    fn order(index: u64, dirty: bool) -> Value {
        let mut order = json!({
            "id": index, "sku": format!("SKU-{index}"), "price": 9.5, "qty": 2, "status": "paid",
            "note": "a note of several words", "tags": ["one", "two"], "size": [1, 2, 3.5]
        });
        if dirty {
            order["internal"] = json!(true);
            if index.is_multiple_of(20) {
                order["price"] = json!("n/a");
            }
        }
        order
    }

    fn event_schema() -> Value {
        let variant = |kind: &str, field: &str| json!({"type": "object", "required": ["kind", field], "properties": {"kind": {"const": kind}, field: {"type": "string"}}});
        json!({"type": "object", "required": ["id", "at", "actor", "event"], "properties": {
            "id": {"type": "string"},
            "at": {"type": "integer"},
            "actor": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}},
            "event": {"oneOf": [variant("push", "ref"), variant("issue", "action"), variant("release", "tag")]},
            "tags": {"type": "array", "items": {"type": "string"}}
        }})
    }

    fn event(index: u64, dirty: bool) -> Value {
        let (kind, field) = [("push", "ref"), ("issue", "action"), ("release", "tag")][index as usize % 3];
        let mut event = json!({
            "id": format!("ev_{index}"), "at": 1_700_000_000_000u64 + index,
            "actor": {"id": index, "name": "somebody"}, "event": {"kind": kind, field: "text"}, "tags": ["one", "two"]
        });
        if dirty {
            event["extra"] = json!({"a": 1});
            if index.is_multiple_of(50) {
                event["actor"]["id"] = json!("12");
            }
        }
        event
    }
}
