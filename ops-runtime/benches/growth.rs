//! How cost grows with size: operations of a registry, bytes of an answer, callers of a hub.
//!
//! Prints the rows of a table, a cost for each of four sizes, of which each is four times the one before. What is measured
//! is interleaved, so that a slow moment of the machine meets all sizes alike; the median counts. `tests/bench/growth`
//! runs this and adds the rows of the generator and of brokers.
//!
//! `cargo bench -p ops-runtime --all-features --bench growth`

use std::hint::black_box;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, join_all};
use ops_runtime::adapter::{Endpoint, Handler, Payload, Registration};
use ops_runtime::call::websocket::{Hub, WebSocketClient, WebSocketConfig};
use ops_runtime::call::{CallHandler, Remote};
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{Call, CallError, Context, Operation, Registry, ResponseEnvelope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How many times each of the sizes is the least.
const STEPS: [usize; 4] = [1, 4, 16, 64];

/// How often each size is measured.
const ROUNDS: usize = 15;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    id: u64,
    sku: String,
    price: f64,
    tags: Vec<String>,
}

struct Orders;

impl Operation for Orders {
    type Input = Value;
    type Output = Vec<Order>;
    const SPEC: &'static OperationSpec = &OperationSpec::query("growth.orders").with_output(Schema::text(
        r#"{"type":"array","items":{"type":"object","required":["id","sku","price","tags"],"properties":{
            "id":{"type":"integer"},"sku":{"type":"string"},"price":{"type":"number"},
            "tags":{"type":"array","items":{"type":"string"}}}}}"#,
    ));
}

impl Call for Orders {}

/// An endpoint whose every answer is one JSON text, like the body that a remote server sends.
struct Answers(bytes::Bytes);

impl Endpoint for Answers {
    fn call(
        &self,
        _: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let answer = ResponseEnvelope::local(Payload::Json(self.0.clone()), "growth.orders");
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// A registry whose operation answers with about so many bytes.
fn answering(bytes: usize) -> Registry {
    let order = |id: u64| Order { id, sku: format!("SKU-{id:06}"), price: 9.5, tags: vec!["one".into(), "two".into()] };
    let one = serde_json::to_string(&order(0)).unwrap().len() + 1;
    let orders: Vec<Order> = (0..(bytes / one) as u64).map(order).collect();
    let text = serde_json::to_vec(&orders).unwrap();
    let registry = Registry::new();
    registry.register(Registration::new(Orders::SPEC, Handler::endpoint(Answers(text.into())))).unwrap();
    registry
}

/// A registry of so many operations.
fn holding(operations: usize) -> Registry {
    let registry = Registry::new();
    let all = (0..operations).map(|n| {
        let spec = OperationSpec::new(OperationKind::Query, "growth", &format!("operation{n}")).unwrap();
        Registration::new(spec, Handler::dynamic(async |input, _| Ok(input)))
    });
    registry.register_all(all).unwrap();
    registry
}

/// The seconds that each of the subjects takes, each called often enough to be timed.
async fn measure<S: AsyncFn()>(subjects: &[S]) -> [f64; 4] {
    let mut times: [Vec<f64>; 4] = Default::default();
    for round in 0..=ROUNDS {
        for (subject, times) in subjects.iter().zip(&mut times) {
            let (start, mut calls) = (Instant::now(), 0_u32);
            while start.elapsed() < Duration::from_millis(20) || calls < 2 {
                subject().await;
                calls += 1;
            }
            // The first one only warms up.
            if round > 0 {
                times.push(start.elapsed().as_secs_f64() / f64::from(calls));
            }
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

fn row(what: &str, from: &str, unit: &str, scale: f64, times: [f64; 4]) {
    let cells = times.map(|time| format!("{:.3}", time * scale));
    println!("| {what} | {from} | {unit} | {} |", cells.join(" | "));
}

/// A hub, and so many connections to it.
async fn callers(count: usize) -> (ops_runtime::call::websocket::Listening, Vec<(WebSocketClient, Remote)>) {
    let registry = Registry::new();
    registry
        .register(Registration::new(
            OperationSpec::query("growth.echo"),
            Handler::dynamic(async |input: Value, _| Ok(input)),
        ))
        .unwrap();
    let hub = Hub::new(CallHandler::new(registry)).listen("127.0.0.1:0").await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..count {
        let client = WebSocketClient::connect(&hub.url(), WebSocketConfig::new()).await.unwrap();
        let remote = client.remote();
        clients.push((client, remote));
    }
    (hub, clients)
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let registries = STEPS.map(|step| holding(step * 250));
    let lookups: Vec<_> = registries
        .iter()
        .zip(STEPS)
        .map(|(registry, step)| {
            let ids: Vec<String> = (0..64).map(|n| format!("growth.operation{}", n * 37 % (step * 250))).collect();
            async move || ids.iter().for_each(|id| drop(black_box(registry.spec(id))))
        })
        .collect();
    row("look up an operation by its id", "250 operations", "ns", 1e9 / 64.0, measure(&lookups).await);
    let lists: Vec<_> = registries.iter().map(|registry| async move || drop(black_box(registry.list()))).collect();
    row("list all operations", "250 operations", "us", 1e6, measure(&lists).await);

    let answers = STEPS.map(|step| answering(step * 10_000));
    let typed: Vec<_> = answers
        .iter()
        .map(|registry| async move || assert!(!registry.execute::<Orders>(json!({})).await.unwrap().data.is_empty()))
        .collect();
    row("a typed answer", "10 KB", "us", 1e6, measure(&typed).await);
    let by_id: Vec<_> = answers
        .iter()
        .map(|registry| async move || drop(black_box(registry.call("growth.orders", json!({})).await.unwrap())))
        .collect();
    row("an answer by id", "10 KB", "us", 1e6, measure(&by_id).await);

    let mut hubs = Vec::new();
    for step in STEPS {
        hubs.push(callers(step * 4).await);
    }
    let calls: Vec<_> = hubs
        .iter()
        .map(|(_, clients)| {
            async move || {
                let calls = clients.iter().map(|(_, remote)| remote.call("growth.echo", json!(1)));
                join_all(calls).await.into_iter().for_each(|answer| drop(answer.unwrap()));
            }
        })
        .collect();
    row("a call of each caller of a hub", "4 callers", "us", 1e6, measure(&calls).await);
}
