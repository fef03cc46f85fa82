//! What a typed local call costs over awaiting its handler: `cargo bench -p ops-runtime --bench execute`.
//!
//! Prints nanoseconds, the median of interleaved runs; `within` is `execute` for a handler that takes a context. For
//! instructions, `tests/bench/instructions` runs this program under callgrind with `--only NAME COUNT`;
//! `tests/allocations.rs` counts the allocations.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context as Task, Poll, Waker};
use std::time::{Duration, Instant};

use ops_runtime::adapter::{Registration, Reply};
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{Call, CallError, Operation, Registry};
use serde_json::json;

struct Add;

struct AddInput {
    a: i64,
    b: i64,
}

const fn spec(id: &'static str) -> OperationSpec {
    OperationSpec::query(id)
        .with_input(Schema::text(r#"{"type":"array","prefixItems":[{"type":"integer"},{"type":"integer"}]}"#))
        .with_output(Schema::text(r#"{"type":"integer"}"#))
        .with_timeout(Duration::from_secs(5))
}

impl Operation for Add {
    type Input = (i64, i64);
    type Output = i64;
    const SPEC: &'static OperationSpec = &spec("bench.add");
}

impl Call for Add {}

/// The same operation, whose handler takes a context.
struct AddWithin;

impl Operation for AddWithin {
    type Input = (i64, i64);
    type Output = i64;
    const SPEC: &'static OperationSpec = &spec("bench.addWithin");
}

impl Call for AddWithin {}

async fn add(input: AddInput) -> Result<Reply<i64>, CallError> {
    Ok(Reply::Value(black_box(input.a) + input.b))
}

/// Runs a future that never waits; no executor's costs are counted.
fn run<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Task::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the handler waited"),
    }
}

fn direct(n: i64) -> i64 {
    match run(add(AddInput { a: black_box(n), b: 1 })) {
        Ok(Reply::Value(sum)) => sum,
        _ => 0,
    }
}

fn typed<Op: Call<Input = (i64, i64), Output = i64>>(registry: &Registry, n: i64) -> i64 {
    run(registry.execute::<Op>((black_box(n), 1))).map_or(0, |envelope| envelope.data)
}

fn dynamic(registry: &Registry, n: i64) -> i64 {
    run(registry.call("bench.add", json!([n, 1]))).map_or(0, |envelope| envelope.data.as_i64().unwrap_or(0))
}

/// A program to be measured.
type Subject<'a> = (&'static str, Box<dyn Fn(i64) -> i64 + 'a>);

fn main() {
    let registry = Registry::new();
    registry
        .register_all(vec![
            Registration::function::<Add, _, _>(|(a, b)| add(AddInput { a, b })),
            Registration::call::<AddWithin, _, _>(|(a, b), _| add(AddInput { a, b })),
        ])
        .expect("nothing else is registered");
    let subjects: [Subject<'_>; 4] = [
        ("direct", Box::new(direct)),
        ("execute", Box::new(|n| typed::<Add>(&registry, n))),
        ("within", Box::new(|n| typed::<AddWithin>(&registry, n))),
        ("call", Box::new(|n| dynamic(&registry, n))),
    ];
    for (_, subject) in &subjects {
        assert_eq!(subject(41), 42);
    }
    let arguments: Vec<_> = std::env::args().collect();
    match arguments.iter().position(|argument| argument == "--only") {
        Some(at) => only(&subjects, &arguments[at + 1], arguments[at + 2].parse().expect("a count")),
        None => compare(&subjects),
    }
}

fn only(subjects: &[Subject<'_>], name: &str, count: i64) {
    let (_, subject) = subjects.iter().find(|(subject, _)| *subject == name).expect("a subject's name");
    for n in 0..count {
        black_box(subject(n));
    }
}

fn compare(subjects: &[Subject<'_>]) {
    const CALLS: i64 = 100_000;
    const ROUNDS: usize = 41;
    let mut times = vec![Vec::new(); subjects.len()];
    for _ in 0..ROUNDS {
        for (times, (_, subject)) in times.iter_mut().zip(subjects) {
            let started = Instant::now();
            for n in 0..CALLS {
                black_box(subject(n));
            }
            times.push(started.elapsed().as_secs_f64() * 1e9 / CALLS as f64);
        }
    }
    println!("{:<10}{:>12}{:>14}", "", "median ns", "over direct");
    let mut base = 0.0;
    for (times, (name, _)) in times.iter_mut().zip(subjects) {
        times.sort_by(f64::total_cmp);
        let median = times[ROUNDS / 2];
        if *name == "direct" {
            base = median;
        }
        println!("{name:<10}{median:>12.1}{:>14.1}", median - base);
    }
}
