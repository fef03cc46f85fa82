//! The operations that the suite calls, and what it can see of their handlers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::call::Remote;
use ops_runtime::content::ContentBlock;
use ops_runtime::envelope::McpMeta;
use ops_runtime::registry::CancelToken;
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{CallError, Context, Operation, Registry, ResponseEnvelope, operation};
use serde_json::{Value, json};

/// How many operations [`registry`] has.
pub(crate) const COUNT: usize = 19;

/// What happens in the handlers of one worker.
#[derive(Default)]
pub(crate) struct Probe {
    alive: AtomicUsize,
    made: AtomicUsize,
    starts: Mutex<HashMap<String, usize>>,
    let_go: CancelToken,
}

impl Probe {
    /// How many handlers are running, or waiting to be dropped.
    pub(crate) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    /// How many items streams have made.
    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }

    /// How often each key was started.
    pub(crate) fn starts(&self) -> HashMap<String, usize> {
        self.starts.lock().unwrap().clone()
    }

    /// Lets handlers that wait end, also those that begin later.
    pub(crate) fn let_go(&self) {
        self.let_go.cancel();
    }

    /// Waits so many milliseconds, or until the test lets handlers end.
    pub(crate) async fn wait(&self, milliseconds: u64) {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(milliseconds)) => {}
            () = self.let_go.cancelled() => {}
        }
    }

    fn enter(self: &Arc<Self>) -> Alive {
        self.alive.fetch_add(1, Ordering::SeqCst);
        Alive(self.clone())
    }
}

/// Counts a handler as long as it lives.
struct Alive(Arc<Probe>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

fn probe(context: &Context) -> Result<&Arc<Probe>, CallError> {
    context.state::<Arc<Probe>>()
}

/// Adds two numbers.
#[operation(namespace = "test", kind = query)]
pub(crate) async fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Gives back what it gets.
#[operation(namespace = "test", kind = query)]
pub(crate) async fn echo(value: Value) -> Value {
    value
}

/// Fails with a code.
#[operation(namespace = "test")]
pub(crate) async fn fail(code: String, message: String) -> Result<(), CallError> {
    Err(CallError::new(code, message).with_details(json!({ "left": 0 })))
}

/// Panics.
#[operation(namespace = "test")]
pub(crate) async fn panics() {
    panic!("on purpose")
}

/// Waits for as long as it is told to, or until the test lets it go, and counts how often each key was started.
#[operation(namespace = "test")]
pub(crate) async fn wait(key: String, milliseconds: u64, context: Context) -> Result<String, CallError> {
    let probe = probe(&context)?;
    *probe.starts.lock().unwrap().entry(key.clone()).or_default() += 1;
    let _alive = probe.enter();
    probe.wait(milliseconds).await;
    Ok(key)
}

/// Calls `test.wait` and waits for it.
#[operation(namespace = "test")]
pub(crate) async fn outer(milliseconds: u64, context: Context) -> Result<String, CallError> {
    let _alive = probe(&context)?.enter();
    let input = WaitInput { key: "nested".to_owned(), milliseconds };
    let inner = context.env().execute::<Wait>(input).await?;
    Ok(format!("outer of {}", inner.data))
}

/// Says what the handler knows of its call.
#[operation(namespace = "test", kind = query)]
pub(crate) async fn about(context: Context) -> Value {
    json!({
        "identity": context.identity(),
        "metadata": context.metadata(),
        "hasDeadline": context.deadline().is_some(),
        "requestId": context.request_id(),
        "parentRequestId": context.parent_request_id(),
    })
}

/// Says what a nested call knows of itself.
#[operation(namespace = "test", kind = query)]
pub(crate) async fn about_nested(context: Context) -> Result<Value, CallError> {
    let nested = context.env().execute::<About>(AboutInput {}).await?.data;
    Ok(json!({ "requestId": context.request_id(), "nested": nested }))
}

/// Adds a number to itself, by `test.add` of another worker.
#[operation(namespace = "test", kind = query)]
pub(crate) async fn twice(n: i64, context: Context) -> Result<i64, CallError> {
    Ok(context.env().execute::<Add>(AddInput { a: n, b: n }).await?.data)
}

/// Makes a registry serve `test.twice`, and call `test.add` by a remote.
pub(crate) fn add_twice(registry: &Registry, remote: &Remote) {
    registry.register_all(remote.bind([Add::SPEC]).unwrap()).unwrap();
    registry.register(Twice).unwrap();
}

/// What `test.twice` fails with while no worker serves `test.add`.
pub(crate) const ADD_IS_NOT_SERVED: &str = "no worker serves the operation now: `test.add`";

/// Gives a text of that many bytes.
#[operation(namespace = "test", kind = query)]
pub(crate) async fn big(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// Needs a scope.
#[operation(namespace = "test", kind = query, scopes("vault:open"))]
pub(crate) async fn secret() -> String {
    "gold".to_owned()
}

/// Needs a scope that nobody has.
#[operation(namespace = "test", kind = query, scopes("vault:never"))]
pub(crate) async fn sealed() -> String {
    "dust".to_owned()
}

/// Counts up, at once.
#[operation(namespace = "test")]
pub(crate) async fn count(to: u64, context: Context) -> Result<impl Stream<Item = u64>, CallError> {
    let probe = probe(&context)?.clone();
    let alive = probe.enter();
    Ok(stream::iter(0..to).map(move |n| {
        let _ = &alive;
        probe.made.fetch_add(1, Ordering::SeqCst);
        n
    }))
}

/// Counts up to a number, and fails.
#[operation(namespace = "test")]
pub(crate) async fn fail_after(items: u64) -> impl Stream<Item = Result<u64, CallError>> {
    stream::iter((0..items).map(Ok).chain([Err(CallError::new("OUT_OF_STOCK", "no more"))]))
}

/// Gives some items, and then stays silent.
#[operation(namespace = "test")]
pub(crate) async fn silent_after(items: u64, context: Context) -> Result<impl Stream<Item = u64>, CallError> {
    let alive = probe(&context)?.enter();
    Ok(stream::iter(0..items).chain(stream::pending()).map(move |n| {
        let _ = &alive;
        n
    }))
}

/// Gives the items of a script, those that are not there being errors; between any two it pauses, if it is told to. At the
/// end it stays silent, if it is told to.
#[operation(namespace = "test")]
pub(crate) async fn script(
    items: Vec<Option<u64>>,
    pauses: bool,
    stays: bool,
    context: Context,
) -> Result<impl Stream<Item = Result<u64, CallError>>, CallError> {
    let alive = probe(&context)?.enter();
    let items = stream::iter(items).then(move |item| async move {
        if pauses {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        item.ok_or_else(|| CallError::new("OUT_OF_STOCK", "no such item").with_details(json!({ "raw": "{\"n\":" })))
    });
    let end = stream::once(async move {
        match (stays, pauses) {
            (true, _) => std::future::pending().await,
            (_, true) => tokio::time::sleep(Duration::from_millis(2)).await,
            _ => {}
        }
        Ok(0)
    });
    Ok(items.chain(end.filter(|_| std::future::ready(false))).map(move |item| {
        let _ = &alive;
        item
    }))
}

/// The operations, with a probe that tells of this worker's handlers.
pub(crate) fn registry(probe: &Arc<Probe>) -> Registry {
    let registry = Registry::builder().with_state(probe.clone()).build();
    registry.register_all([Registration::from(Add), Echo.into(), Fail.into(), Panics.into(), Wait.into()]).unwrap();
    registry.register_all([Registration::from(Outer), About.into(), AboutNested.into(), Secret.into()]).unwrap();
    registry.register_all([Registration::from(Count), FailAfter.into(), SilentAfter.into(), Script.into()]).unwrap();
    registry.register_all([Big.into(), Sealed.into(), declares(), tool(), passes(), shabby()]).unwrap();
    assert_eq!(registry.list().len(), COUNT);
    registry
}

fn spec(kind: OperationKind, name: &str) -> OperationSpec {
    OperationSpec::new(kind, "test", name).unwrap()
}

/// Fails with a text that names a code that the operation declares.
fn declares() -> Registration {
    let mut spec = spec(OperationKind::Mutation, "declares");
    spec.errors = vec![ops_runtime::spec::ErrorDefinition::new("OUT_OF_STOCK")].into();
    Registration::new(spec, Handler::dynamic(|_, _| async { Err("OUT_OF_STOCK: no pets left".into()) }))
}

/// Answers as an MCP tool does that says that it failed.
fn tool() -> Registration {
    let handler = Handler::dynamic(|_, _| async {
        let content = vec![ContentBlock::text("no such city")];
        let data = serde_json::to_value(&content).unwrap();
        Ok(serde_json::to_value(ResponseEnvelope::mcp(data, McpMeta::new(true, content))).unwrap())
    });
    Registration::new(spec(OperationKind::Mutation, "tool"), handler)
}

/// Answers with the envelope that it is given.
fn passes() -> Registration {
    Registration::new(spec(OperationKind::Query, "passes"), Handler::dynamic(|input, _| async { Ok(input) }))
}

/// Has a schema that its result needs to be repaired for.
fn shabby() -> Registration {
    let mut spec = spec(OperationKind::Query, "shabby");
    spec.output = Schema::text(r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#);
    Registration::new(spec, Handler::dynamic(|_, _| async { Ok(json!({ "n": "many", "extra": true })) }))
}
