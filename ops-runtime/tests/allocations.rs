//! A typed local call allocates its handler's future, and nothing else.
#![cfg(feature = "registry")]

use std::future::Future;
use std::pin::pin;
use std::task::{Context as Task, Poll, Waker};
use std::time::Duration;

use ops_runtime::adapter::{Registration, Reply};
use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::normalise::{CompiledSchema, Reading};
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{Call, CallOptions, Operation, Registry};

struct Add;

impl Operation for Add {
    type Input = (i64, i64);
    type Output = i64;
    const SPEC: &'static OperationSpec = &OperationSpec::query("math.add")
        .with_input(Schema::text(r#"{"type":"array","prefixItems":[{"type":"integer"},{"type":"integer"}]}"#))
        .with_output(Schema::text(r#"{"type":"integer"}"#))
        .with_timeout(Duration::from_secs(5));
}

impl Call for Add {}

/// The same at a path.
struct AddOverHttp;

impl Operation for AddOverHttp {
    type Input = (i64, i64);
    type Output = i64;
    const SPEC: &'static OperationSpec = &OperationSpec::query("math.addOverHttp")
        .with_input(Schema::text(r#"{"type":"array","prefixItems":[{"type":"integer"},{"type":"integer"}]}"#))
        .with_output(Schema::text(r#"{"type":"integer"}"#))
        .with_http(HttpBinding::new("POST", "/sums").with_bodies(const { &[HttpBody::new("application/json")] }));
}

impl Call for AddOverHttp {}

/// Runs a future that never waits.
fn run<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Task::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the handler waited"),
    }
}

#[test]
fn one_allocation_a_call() {
    one_allocation::<Add>();
    one_allocation::<AddOverHttp>();
}

fn one_allocation<Op: Call<Input = (i64, i64), Output = i64>>() {
    let registry = Registry::new();
    registry.register(Registration::call::<Op, _, _>(|(a, b), _| async move { Ok(Reply::Value(a + b)) })).unwrap();
    // The first call compiles what it needs of the schemas.
    assert_eq!(run(registry.execute::<Op>((1, 2))).unwrap().data, 3);
    let counted = allocation_counter::measure(|| {
        assert_eq!(run(registry.execute::<Op>((1, 2))).unwrap().data, 3);
    });
    assert_eq!(counted.count_total, 1, "{}", Op::SPEC.id);
    // A deadline that no handler waits for needs no timer.
    let counted = allocation_counter::measure(|| {
        let options = CallOptions::new().with_timeout(Duration::from_secs(1));
        assert_eq!(run(registry.execute_with::<Op>((1, 2), options)).unwrap().data, 3);
    });
    assert_eq!(counted.count_total, 1, "{}", Op::SPEC.id);
}

/// A result that conforms is checked where it lies: whatever its size, next to nothing is allocated beside it.
#[test]
fn a_text_that_passes_takes_no_memory() {
    let schema = serde_json::json!({"type": "array", "items": {
        "type": "object",
        "required": ["id", "name"],
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": "string"},
            "kind": {"enum": ["a", "b"]},
            "tags": {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}},
            "any": {}
        }
    }});
    let schema = CompiledSchema::new(&schema, Reading::Default);
    let item = r#"{"id": 7, "name": "a \"name\"", "kind": "b", "tags": {"x": "y", "z": "\n"}, "any": [{"a": [1, 2.5]}, null]}"#;
    for items in [10, 10_000] {
        let text = format!("[{}]", vec![item; items].join(","));
        let counted = allocation_counter::measure(|| assert!(schema.passes(text.as_bytes())));
        assert!(counted.bytes_total < 2_000, "{items}: {counted:?}");
        let counted = allocation_counter::measure(|| {
            let (mended, repairs) = schema.repair_text(&text).unwrap();
            assert!(mended.len() == text.len() && repairs.is_empty());
        });
        assert!(counted.bytes_total < 2_000, "mended, {items}: {counted:?}");
    }
}

/// Items that must differ are copied only if something may be removed or filled in.
#[test]
fn different_items_that_stay_are_not_copied() {
    let schema = serde_json::json!({"type": "array", "uniqueItems": true, "items": {
        "type": "object",
        "required": ["id", "tags"],
        "properties": {
            "id": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "kind": {"type": "string"},
            "more": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}
        }
    }});
    let schema = CompiledSchema::new(&schema, Reading::Default);
    let item = |id: i64| serde_json::json!({"id": id, "tags": ["x", "y"], "more": {"a": 2}});
    let items = serde_json::Value::from_iter((0..1_000).map(item));
    let (mut came, expected) = (Some(items.clone()), items);
    let counted = allocation_counter::measure(|| {
        let (repaired, told) = schema.repair(came.take().unwrap());
        assert!(told.is_empty());
        came = Some(repaired);
    });
    assert_eq!(came, Some(expected));
    // Two to weigh each, and one to find equal ones. Only the last are kept until all are compared.
    assert!(counted.count_total < 3_100 && counted.count_max < 1_100, "{counted:?}");
}
