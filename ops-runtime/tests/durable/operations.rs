//! The operations that the suite runs as jobs, and what it can see of their handlers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ops_runtime::access::Identity;
use ops_runtime::registry::Progress;
use ops_runtime::{CallError, CallOptions, Context, Registry, operation};
use serde_json::{Value, json};

/// What happens in the handlers of a case.
#[derive(Default)]
pub(crate) struct Probe {
    alive: AtomicUsize,
    /// When handlers have started, and in which jobs, by the names that they were given.
    starts: Mutex<HashMap<String, Vec<(Instant, String)>>>,
    open: tokio::sync::watch::Sender<bool>,
}

impl Probe {
    /// How many handlers run.
    pub(crate) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    /// How often handlers with that name have started.
    pub(crate) fn starts(&self, name: &str) -> usize {
        self.starts.lock().unwrap().get(name).map_or(0, Vec::len)
    }

    /// The jobs in which handlers with that name have started.
    pub(crate) fn jobs(&self, name: &str) -> Vec<String> {
        self.starts.lock().unwrap().get(name).into_iter().flatten().map(|(_, job)| job.clone()).collect()
    }

    /// When handlers with that name have started.
    pub(crate) fn times(&self, name: &str) -> Vec<Instant> {
        self.starts.lock().unwrap().get(name).into_iter().flatten().map(|(at, _)| *at).collect()
    }

    /// Lets those through who wait in `test.gate`.
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    fn enter(self: &Arc<Self>, name: &str, job: &str) -> Alive {
        self.alive.fetch_add(1, Ordering::SeqCst);
        self.starts.lock().unwrap().entry(name.to_owned()).or_default().push((Instant::now(), job.to_owned()));
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

fn enter(context: &Context, name: &str) -> Result<Alive, CallError> {
    Ok(context.state::<Arc<Probe>>()?.enter(name, context.idempotency_key().unwrap_or_default()))
}

/// Fails the first attempts.
fn fail_first(context: &Context, fails: Option<u32>, code: Option<String>) -> Result<(), CallError> {
    if context.attempt() > fails.unwrap_or_default() {
        return Ok(());
    }
    let code = code.unwrap_or_else(|| "EXECUTION_ERROR".to_owned());
    Err(CallError::new(code, format!("attempt {} fails", context.attempt())))
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

/// Works for a time, fails the first attempts, and gives the number of the attempt that did not.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn work(
    context: &Context,
    name: String,
    fails: Option<u32>,
    code: Option<String>,
    millis: Option<u64>,
) -> Result<u32, CallError> {
    let _alive = enter(context, &name)?;
    tokio::time::sleep(Duration::from_millis(millis.unwrap_or_default())).await;
    fail_first(context, fails, code)?;
    Ok(context.attempt())
}

/// As `work`, with a policy of its own.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn patient(context: &Context, fails: u32) -> Result<u32, CallError> {
    fail_first(context, Some(fails), None)?;
    Ok(context.attempt())
}

/// Fails with `BUSY`, which its own policy repeats: five attempts in all.
#[operation(
    namespace = "test",
    kind = mutation,
    retry(attempts = 5, backoff = "20ms", max_backoff = "40ms", errors(BUSY)),
    errors(BUSY)
)]
pub(crate) async fn stubborn(context: &Context, fails: u32) -> Result<u32, CallError> {
    fail_first(context, Some(fails), Some("BUSY".into()))?;
    Ok(context.attempt())
}

/// Always fails, and is given up by its own policy after some time.
#[operation(
    namespace = "test",
    kind = mutation,
    retry(attempts = 1_000, backoff = "50ms", factor = 1, deadline = "3s")
)]
pub(crate) async fn hasty(context: &Context, name: String) -> Result<u32, CallError> {
    let _alive = enter(context, &name)?;
    fail_first(context, Some(u32::MAX), None)?;
    Ok(context.attempt())
}

/// Waits for a step that is stubborn, and for one that is hasty.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn delegates(context: &Context, name: String) -> Result<(u32, String), CallError> {
    let attempt = context.once::<Stubborn>("stubborn", StubbornInput { fails: 4 }).await?.data;
    let code = match context.once::<Hasty>("hasty", HastyInput { name }).await {
        Ok(_) => String::new(),
        Err(error) => error.code().to_string(),
    };
    Ok((attempt, code))
}

/// As `work`, in another queue.
#[operation(namespace = "slow", kind = mutation)]
pub(crate) async fn render(context: &Context, name: String) -> Result<u32, CallError> {
    let _alive = enter(context, &name)?;
    Ok(context.attempt())
}

/// Waits until the probe is opened.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn gate(context: &Context, name: String) -> Result<u32, CallError> {
    let _alive = enter(context, &name)?;
    let mut open = context.state::<Arc<Probe>>()?.open.subscribe();
    open.wait_for(|open| *open).await.map_err(|error| CallError::execution(error.to_string()))?;
    Ok(context.attempt())
}

/// Never ends.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn hang(context: &Context, name: String) -> Result<u32, CallError> {
    let _alive = enter(context, &name)?;
    std::future::pending().await
}

/// Holds its thread, so that nobody can drop it before.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn block(context: &Context, name: String, millis: u64) -> Result<u32, CallError> {
    let _alive = enter(context, &name)?;
    tokio::task::block_in_place(|| std::thread::sleep(Duration::from_millis(millis)));
    Ok(context.attempt())
}

/// Blocks a thread that is there for this.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn compute(context: &Context, name: String, millis: u64) -> Result<u32, CallError> {
    let _alive = enter(context, &name)?;
    let computed = tokio::task::spawn_blocking(move || std::thread::sleep(Duration::from_millis(millis)));
    computed.await.map_err(|error| CallError::execution(error.to_string()))?;
    Ok(context.attempt())
}

/// Panics the first attempts.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn panics(context: &Context, times: u32) -> u32 {
    assert!(context.attempt() > times, "as it should");
    context.attempt()
}

/// Takes what is in the vault.
#[operation(namespace = "test", kind = mutation, scopes("vault:open"))]
pub(crate) async fn vault(context: &Context) -> Option<String> {
    context.identity().map(|identity| identity.id.clone())
}

/// Takes what is in the vault by a step, whose caller need not be allowed to.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn errand(context: &Context) -> Result<Option<String>, CallError> {
    Ok(context.once::<Vault>("vault", VaultInput {}).await?.data)
}

/// Takes what is in the vault, in the first attempts with an identity that is not allowed to.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn guess(context: &Context, fails: u32) -> Result<Option<String>, CallError> {
    let scope = if context.attempt() > fails { "vault:open" } else { "vault:see" };
    let options = CallOptions::new().with_identity(Identity::new("till").with_scope(scope));
    Ok(context.env().execute_with::<Vault>(VaultInput {}, options).await?.data)
}

/// Sends another on an errand, with metadata of so many bytes.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn sends(context: &Context, whom: String, bytes: u32) -> Result<Option<String>, CallError> {
    let text = "x".repeat(bytes as usize);
    let options = CallOptions::new().with_identity(Identity::new(whom)).with_metadata("text", text);
    Ok(context.env().execute_with::<Errand>(ErrandInput {}, options).await?.data)
}

/// What a handler knows of its job.
#[operation(namespace = "test", kind = query)]
pub(crate) async fn who(context: &Context, nested: bool) -> Result<Value, CallError> {
    if nested {
        return Ok(context.env().execute::<Who>(WhoInput { nested: false }).await?.data);
    }
    Ok(json!({
        "identity": context.identity().map(|identity| &identity.id),
        "attempt": context.attempt(),
        "key": context.idempotency_key(),
        "metadata": context.metadata(),
        "deadline": context.deadline().map(|at| at.saturating_duration_since(Instant::now()).as_secs()),
    }))
}

/// Reports so many times.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn report(context: &Context, times: u32) -> Result<u32, CallError> {
    let mut open = context.state::<Arc<Probe>>()?.open.subscribe();
    open.wait_for(|open| *open).await.map_err(|error| CallError::execution(error.to_string()))?;
    for time in 1..=times {
        context.report(Progress::new(f64::from(time)).with_total(f64::from(times)));
    }
    Ok(times)
}

/// Charges by a step, keeps a label by another, and fails the first attempts after that.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn order(context: &Context, name: String, fails: u32) -> Result<Value, CallError> {
    let _alive = enter(context, &name)?;
    let charge = WorkInput { name: format!("{name}-charge"), fails: Some(1), code: None, millis: None };
    let charged = context.once::<Work>("charge", charge).await?.data;
    let label = format!("{name}-label");
    let attempt = context.attempt();
    let label = context
        .step("label", || async move {
            drop(enter(context, &label)?);
            Ok(attempt)
        })
        .await?;
    fail_first(context, Some(fails), None)?;
    Ok(json!({ "charged": charged, "label": label, "attempt": attempt }))
}

/// Ships a parcel by a step and a closure, which are named after it if it is told to.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn ship(context: &Context, parcel: String, named: bool) -> Result<Value, CallError> {
    let name = if named { parcel.as_str() } else { "parcel" };
    let label = context.step(name, || std::future::ready(Ok(format!("label of {parcel}")))).await?;
    let charge = WorkInput { name: "charge".into(), fails: None, code: None, millis: None };
    let charged = context.once::<Work>(name, charge).await?.data;
    Ok(json!({ "label": label, "charged": charged }))
}

/// Has two steps of one name.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn twice(context: &Context, how: String) -> Result<Vec<i64>, CallError> {
    let step = |value: i64| context.step("n", move || std::future::ready(Ok(value)));
    match how.as_str() {
        "steps" => Ok(vec![step(1).await?, step(2).await?]),
        "side by side" => {
            let slow = context.step("n", || async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(1)
            });
            let (first, second) = futures_util::future::join(slow, step(2)).await;
            Ok(vec![first?, second?])
        }
        "operations" => {
            let first = context.once::<Add>("n", AddInput { a: 1, b: 0 }).await?.data;
            Ok(vec![first, context.once::<Add>("n", AddInput { a: 1, b: 0 }).await?.data])
        }
        _ => {
            let failed = context.step("n", || std::future::ready(Err::<i64, _>(CallError::new("BUSY", "full")))).await;
            Ok(vec![i64::from(failed.is_err()), step(2).await?])
        }
    }
}

/// Ships two parcels by calls, and fails the first attempt after that.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn parcels(context: &Context, named: bool) -> Result<Vec<Value>, CallError> {
    let mut shipped = Vec::new();
    for parcel in ["a", "b"] {
        shipped.push(context.env().execute::<Ship>(ShipInput { parcel: parcel.into(), named }).await?.data);
    }
    fail_first(context, Some(1), None)?;
    Ok(shipped)
}

/// Books by a closure, unless all is full.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn book(context: &Context, full: bool) -> Result<String, CallError> {
    let booked = if full { Err(CallError::new("BUSY", "all is full")) } else { Ok("booked".to_owned()) };
    context.step("book", || std::future::ready(booked)).await
}

/// Calls twice, fails the first attempts after that, and tells what came of each call.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn persists(context: &Context, fails: u32) -> Result<Vec<String>, CallError> {
    let mut told = Vec::new();
    for full in [true, false] {
        told.push(match context.env().execute::<Book>(BookInput { full }).await {
            Ok(booked) => booked.data,
            Err(error) => error.code().as_str().to_owned(),
        });
    }
    fail_first(context, Some(fails), None)?;
    Ok(told)
}

/// A step whose input is another in each attempt.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn fickle(context: &Context) -> Result<i64, CallError> {
    let sum = context.once::<Add>("add", AddInput { a: i64::from(context.attempt()), b: 0 }).await?.data;
    fail_first(context, Some(1), None)?;
    Ok(sum)
}

/// Waits for a step of the same kind, down to zero.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn nest(context: &Context, depth: u32) -> Result<u32, CallError> {
    match depth.checked_sub(1) {
        None => Ok(0),
        Some(depth) => Ok(1 + context.once::<Nest>("below", NestInput { depth }).await?.data),
    }
}

/// Waits for steps side by side.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn fan(context: &Context, name: String, steps: u32) -> Result<u32, CallError> {
    let _alive = enter(context, &name)?;
    let step = |number: u32| {
        let input = WorkInput { name: format!("{name}-step"), fails: None, code: None, millis: Some(20) };
        async move { context.once::<Work>(&number.to_string(), input).await }
    };
    let done = futures_util::future::try_join_all((0..steps).map(step)).await?;
    Ok(done.into_iter().map(|envelope| envelope.data).sum())
}

/// Waits for a step that waits for the probe.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn waits(context: &Context, name: String) -> Result<u32, CallError> {
    let _alive = enter(context, &name)?;
    Ok(context.once::<Gate>("gate", GateInput { name: format!("{name}-gate") }).await?.data)
}

/// Has another wait for a step.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn delays(context: &Context, whom: String, name: String) -> Result<u32, CallError> {
    let options = CallOptions::new().with_identity(Identity::new(whom));
    Ok(context.env().execute_with::<Waits>(WaitsInput { name }, options).await?.data)
}

/// Leaves a task behind that waits for a step.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn leaves(context: &Context, name: String) -> Result<(), CallError> {
    let context = context.clone();
    let gate = format!("{name}-gate");
    tokio::spawn(async move { context.once::<Gate>("gate", GateInput { name: gate }).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(())
}

/// Fails with as large and as deep an error as it is told.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn loud(
    context: &Context,
    name: String,
    code: String,
    bytes: u32,
    levels: u32,
    padding: Option<String>,
) -> Result<(), CallError> {
    let _alive = enter(context, &name)?;
    let _ = padding;
    let nested = (0..levels).fold(json!("x"), |inner, _| json!([inner]));
    let details = json!({ "statusCode": 503, "nested": nested, "body": "x".repeat(bytes as usize) });
    Err(CallError::new(code, format!("attempt {} fails", context.attempt())).with_details(details))
}

/// Works, and gives a number that JSON does not have, or has a step that does.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn divides(context: &Context, name: String, in_step: bool) -> Result<f64, CallError> {
    let _alive = enter(context, &name)?;
    match in_step {
        true => context.step("quotient", || std::future::ready(Ok(f64::NAN))).await,
        false => Ok(f64::NAN),
    }
}

/// A step that fails for good.
#[operation(namespace = "test", kind = mutation)]
pub(crate) async fn refused(context: &Context, name: String) -> Result<u32, CallError> {
    let charge = WorkInput { name, fails: Some(9), code: Some("CARD_DECLINED".into()), millis: None };
    Ok(context.once::<Work>("charge", charge).await?.data)
}

/// A registry with all of these.
pub(crate) fn registry(probe: &Arc<Probe>) -> Registry {
    let registry = Registry::builder().with_state(probe.clone()).build();
    registry.register(Add).unwrap();
    registry.register(Echo).unwrap();
    registry.register(Work).unwrap();
    registry.register(Patient).unwrap();
    registry.register(Stubborn).unwrap();
    registry.register(Hasty).unwrap();
    registry.register(Delegates).unwrap();
    registry.register(Render).unwrap();
    registry.register(Gate).unwrap();
    registry.register(Hang).unwrap();
    registry.register(Block).unwrap();
    registry.register(Compute).unwrap();
    registry.register(Panics).unwrap();
    registry.register(Vault).unwrap();
    registry.register(Errand).unwrap();
    registry.register(Guess).unwrap();
    registry.register(Sends).unwrap();
    registry.register(Who).unwrap();
    registry.register(Report).unwrap();
    registry.register(Order).unwrap();
    registry.register(Ship).unwrap();
    registry.register(Twice).unwrap();
    registry.register(Parcels).unwrap();
    registry.register(Book).unwrap();
    registry.register(Persists).unwrap();
    registry.register(Fickle).unwrap();
    registry.register(Nest).unwrap();
    registry.register(Fan).unwrap();
    registry.register(Waits).unwrap();
    registry.register(Delays).unwrap();
    registry.register(Leaves).unwrap();
    registry.register(Loud).unwrap();
    registry.register(Divides).unwrap();
    registry.register(Refused).unwrap();
    registry
}

/// The input of `test.work` that only has a name.
pub(crate) fn named(name: &str) -> WorkInput {
    WorkInput { name: name.to_owned(), fails: None, code: None, millis: None }
}

/// The input of `test.work` that fails the first attempts.
pub(crate) fn failing(name: &str, fails: u32) -> WorkInput {
    WorkInput { fails: Some(fails), ..named(name) }
}
