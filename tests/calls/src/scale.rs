//! What many of something cost, in bytes each.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::call::websocket::{Hub, WebSocketClient, WebSocketConfig};
use ops_runtime::call::{
    CallHandler, CallRequest, Frame, InProcess, Link, PendingRequests, Remote, Route, Transport, TransportInfo, Unsent,
};
use ops_runtime::spec::{OperationKind, OperationSpec, SpecRef};
use ops_runtime::{CallError, Registry};
use serde_json::{Value, json};

use crate::ours::{Add, AddInput};

/// Memory that the process uses, in bytes.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn report(what: &str, count: usize, before: u64) {
    let bytes = resident().saturating_sub(before);
    println!("{what:<60}{count:>8}{:>10} bytes each", bytes / count as u64);
}

/// An operation that never answers, and a subscription that never gives an item.
fn registry() -> Registry {
    let registry = Registry::new();
    let spec = |kind, name| OperationSpec::new(kind, "bench", name).unwrap();
    let wait = Handler::dynamic(|_: Value, _| std::future::pending());
    let idle = Handler::dynamic_stream(|_: Value, _| async { Ok(stream::pending()) });
    registry.register(Registration::new(spec(OperationKind::Query, "wait"), wait)).unwrap();
    registry.register(Registration::new(spec(OperationKind::Subscription, "idle"), idle)).unwrap();
    registry
}

/// Where requests go that nobody answers.
struct Nowhere;

impl Link for Nowhere {
    fn send(&self, frame: Frame) -> Result<(), Unsent> {
        drop(frame);
        Ok(())
    }
}

/// The same as a transport.
struct Silence(PendingRequests);

impl Transport for Silence {
    fn route(&self, _: &str) -> Result<Route, CallError> {
        Ok(Route::To(self.0.clone()))
    }

    fn spec(&self, _: &str) -> Option<SpecRef> {
        None
    }

    fn list(&self) -> Vec<SpecRef> {
        Vec::new()
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }

    fn info(&self) -> TransportInfo {
        TransportInfo::new("silence")
    }
}

async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Measures each in a process of its own, for what others give back would be used again.
pub async fn run() {
    for part in ["pending", "remote", "both", "subscriptions", "connections"] {
        let program = std::env::current_exe().unwrap();
        assert!(tokio::process::Command::new(program).args(["scale", part]).status().await.unwrap().success());
    }
}

pub async fn part(name: &str) {
    match name {
        "pending" => pending().await,
        "remote" => remote().await,
        "both" => both().await,
        "subscriptions" => subscriptions().await,
        _ => connections().await,
    }
}

const CALLS: usize = 100_000;

async fn pending() {
    // Those of a caller: the table, and the futures.
    let pending = PendingRequests::new(Arc::new(Nowhere));
    let before = resident();
    let calls = (0..CALLS).map(|_| pending.call(CallRequest::new("bench.wait", json!(null))));
    let waiting = tokio::spawn(join_all(calls));
    until(|| pending.in_flight() == CALLS).await;
    report("pending calls of `PendingRequests`", CALLS, before);
    waiting.abort();
    until(|| pending.in_flight() == 0).await;
}

async fn remote() {
    let remote = Remote::new(Silence(PendingRequests::new(Arc::new(Nowhere))));
    let before = resident();
    let calls = (0..CALLS).map(|n| {
        let remote = remote.clone();
        async move { drop(remote.execute::<Add>(AddInput { a: n as i64, b: 1 }).await) }
    });
    let waiting = tokio::spawn(join_all(calls));
    until(|| remote.in_flight() == CALLS).await;
    report("pending calls of `Remote`, typed, with the pipeline", CALLS, before);
    waiting.abort();
    until(|| remote.in_flight() == 0).await;
}

async fn both() {
    // Both sides in one process: with the caller's pipeline, the worker's task and the handler.
    let transport = InProcess::new();
    let worker = transport.serve(CallHandler::new(registry()).with_max_running(CALLS));
    let remote = transport.remote();
    let before = resident();
    let tasks: Vec<_> = (0..CALLS)
        .map(|_| {
            let remote = remote.clone();
            tokio::spawn(async move { drop(remote.call("bench.wait", json!(null)).await) })
        })
        .collect();
    until(|| worker.running() == CALLS).await;
    report("calls in process, both sides with all tasks and handlers", CALLS, before);
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    until(|| remote.in_flight() == 0 && worker.running() == 0).await;
    drop((tasks, worker));
}

async fn subscriptions() {
    // One hub, subscribers over 10 connections.
    const SUBSCRIPTIONS: usize = 10_000;
    let hub = Hub::new(CallHandler::new(registry()));
    let server = hub.listen("127.0.0.1:0").await.unwrap();
    let clients = join_all((0..10).map(|_| WebSocketClient::connect_to(&server))).await;
    let before = resident();
    let mut idle = Vec::new();
    for n in 0..SUBSCRIPTIONS {
        idle.push(clients[n % 10].remote().stream("bench.idle", json!(null)).await.unwrap());
    }
    until(|| hub.running() == SUBSCRIPTIONS).await;
    report("idle subscriptions on one hub, both sides", SUBSCRIPTIONS, before);
    drop(idle);
    until(|| hub.running() == 0).await;
    drop((clients, server));
}

async fn connections() {
    const CLIENTS: usize = 1_000;
    let hub = Hub::new(CallHandler::new(crate::ours::registry()));
    let server = hub.listen("127.0.0.1:0").await.unwrap();
    let before = resident();
    let clients: Vec<_> =
        stream::iter(0..CLIENTS).map(|_| WebSocketClient::connect_to(&server)).buffer_unordered(50).collect().await;
    until(|| hub.peers().len() == CLIENTS).await;
    report("WebSocket clients on one hub, both sides", CLIENTS, before);
    let calls = clients.iter().map(|client| {
        let remote = client.remote();
        async move { remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data }
    });
    assert!(join_all(calls).await.iter().all(|sum| *sum == 2));
    report("the same, after a call of each", CLIENTS, before);
}

/// Connects without ado.
trait Connect: Sized {
    async fn connect_to(server: &ops_runtime::call::websocket::Listening) -> Self;
}

impl Connect for WebSocketClient {
    async fn connect_to(server: &ops_runtime::call::websocket::Listening) -> Self {
        Self::connect(&server.url(), WebSocketConfig::new()).await.unwrap()
    }
}
