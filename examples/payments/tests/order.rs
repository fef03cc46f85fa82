//! The worker of the order is killed at every message that it sends to the NATS server and to the payment service.
//!
//! A proxy counts the messages. At one of them the test kills the worker; then the message is lost, or it still arrives.
//! Another worker finishes the order. This is repeated for each message until the order is done before the number is
//! reached. What the servers know of a worker changes only with these messages, so no other moment of its death makes a
//! difference to them.
//!
//! Then two faults at once, for a sample of pairs: a response of the payment service is lost, and the second worker is
//! killed, too.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../src/bin/order/bank.rs"]
pub mod bank;
#[path = "order/gate.rs"]
mod gate;
#[path = "../src/bin/order/nats.rs"]
pub mod nats;
#[path = "../src/bin/order/shop.rs"]
pub mod shop;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bank::Bank;
use gate::{Gate, Point};
use shop::{Folder, Fulfil, Fulfilled, jobs, submit, work};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The number of servers. Most of the time is spent waiting for leases to end.
const PLACES: usize = 8;
/// The number of pairs of deaths.
const PAIRS: u64 = 24;
const LIMIT: Duration = Duration::from_secs(60);

/// What goes wrong with an order.
#[derive(Debug, Clone)]
struct Faults {
    /// At which message each worker is killed, in turn.
    deaths: Vec<Point>,
    /// How many responses of the payment service each worker does not get.
    losses: u64,
}

/// A NATS server and a payment service.
struct Place {
    folder: PathBuf,
    nats: String,
    bank: Bank,
    bank_url: String,
    _server: Child,
}

impl Place {
    async fn start(number: usize) -> Self {
        let folder = std::env::temp_dir().join(format!("order-test-{}-{number}", std::process::id()));
        let (server, nats) = nats::start(&folder.join("nats")).await.unwrap();
        let (bank, bank_url) = Bank::start().await.unwrap();
        Self { folder, nats, bank, bank_url, _server: server }
    }

    /// Runs an order with these faults. Returns how many workers were killed before it was done.
    async fn run(&self, order: u64, faults: &Faults) -> usize {
        let folder = self.folder.join(order.to_string());
        let jobs = jobs(&self.nats).await.unwrap();
        let job = submit(&jobs, order).await.unwrap();
        let mut killed = 0;
        for point in &faults.deaths {
            let gate = Arc::new(Gate::new(*point, faults.losses));
            let (nats, url) = (gate.open(&self.nats, "nats").await, gate.open(&self.bank_url, "http").await);
            let mut worker = worker(&nats, &url, &folder);
            let is_reached = tokio::select! {
                biased;
                () = gate.reached() => true,
                done = timeout(LIMIT, job.result()) => {
                    done.unwrap_or_else(|_| panic!("{faults:?}: the order is stuck")).unwrap();
                    false
                }
            };
            worker.kill().await.unwrap();
            gate.release().await;
            if !is_reached {
                break;
            }
            killed += 1;
        }
        let last = work(&self.nats, &self.bank_url, folder.clone()).await.unwrap();
        self.check(order, &job, &folder, faults).await;
        last.stop().await;
        for _ in 0..600 {
            if jobs.stats("jobs").await.unwrap().open == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let stats = jobs.stats("jobs").await.unwrap();
        assert_eq!((stats.open, stats.dead), (0, 0), "{faults:?}: jobs that are left");
        killed
    }

    /// Checks that the order is done, and that each of its effects is there once.
    async fn check(&self, order: u64, job: &ops_runtime::durable::Job<Fulfil>, folder: &Path, faults: &Faults) {
        let result = timeout(LIMIT, job.result()).await.unwrap_or_else(|_| panic!("{faults:?}: the order is stuck"));
        let done = result.unwrap_or_else(|error| panic!("{faults:?}: {error:?}")).data;
        let payment = done.payment.clone();
        assert_eq!(done, Fulfilled { payment: payment.clone(), parcel: format!("parcel-{order}") });
        assert_eq!(self.bank.payments(order), 1, "{faults:?}: how often the money was taken");
        let folder = Folder(folder.to_owned());
        assert_eq!(folder.read("labels"), [format!("parcel-{order} to ann@example.com")], "{faults:?}");
        let text = format!("Thank you for {payment}. Your order {order} is on its way as parcel-{order}.");
        assert_eq!(folder.read("outbox"), [format!("To: ann@example.com\n\n{text}")], "{faults:?}");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn worker(nats: &str, bank: &str, folder: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_order"));
    command.args(["worker", nats, bank]).arg(folder).kill_on_drop(true).spawn().unwrap()
}

/// Runs orders at all places side by side, until `next` gives no faults. `done` gets how many workers were killed.
async fn run_all(
    places: &[Arc<Place>],
    next: impl FnMut() -> Option<Faults> + Send + 'static,
    done: impl FnMut(&Faults, usize) + Send + 'static,
) {
    static ORDER: AtomicU64 = AtomicU64::new(1);
    let (next, done) = (Arc::new(Mutex::new(next)), Arc::new(Mutex::new(done)));
    let runs = places.iter().cloned().map(|place| {
        let (next, done) = (next.clone(), done.clone());
        tokio::spawn(async move {
            loop {
                let faults = (next.lock().unwrap())();
                let Some(faults) = faults else { return };
                let killed = place.run(ORDER.fetch_add(1, Ordering::Relaxed), &faults).await;
                (done.lock().unwrap())(&faults, killed);
            }
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn charged_once() {
    let mut places = Vec::new();
    for number in 0..PLACES {
        places.push(Arc::new(Place::start(number).await));
    }

    // Each message, lost and arriving.
    let end = Arc::new(AtomicU64::new(u64::MAX));
    let killed: Arc<Mutex<BTreeSet<(u64, bool)>>> = Arc::default();
    let (mut number, limit) = (1, end.clone());
    let next = move || {
        number += 1;
        let point = Point { message: number / 2, arrives: number % 2 == 1 };
        (point.message < limit.load(Ordering::SeqCst)).then(|| Faults { deaths: vec![point], losses: 0 })
    };
    let (limit, deaths) = (end.clone(), killed.clone());
    run_all(&places, next, move |faults, killed| {
        let point = faults.deaths[0];
        if killed == 1 {
            deaths.lock().unwrap().insert((point.message, point.arrives));
        } else {
            limit.fetch_min(point.message, Ordering::SeqCst);
        }
    })
    .await;
    let (end, killed) = (end.load(Ordering::SeqCst), killed.lock().unwrap().clone());
    println!("the order takes {end} messages; its worker was killed {} times", killed.len());
    // Four jobs are each taken, ended and acknowledged, and there is a request.
    assert!(end > 12, "{end} messages are too few");
    let points = (1..end).flat_map(|message| [(message, false), (message, true)]);
    let missing: Vec<_> = points.filter(|point| !killed.contains(point)).collect();
    assert!(missing.is_empty(), "not killed at {missing:?}");

    // Two deaths, and responses that are lost. Steps that have no common factor with the ends meet all kinds of pairs.
    let mut pair = 0;
    let next = move || {
        pair += 1;
        let point =
            |step: u64| Point { message: 1 + pair * step % end, arrives: (pair * step / end).is_multiple_of(2) };
        (pair <= PAIRS).then(|| Faults { deaths: vec![point(7), point(11)], losses: 1 })
    };
    let deaths = Arc::new(AtomicU64::new(0));
    let counted = deaths.clone();
    let count = move |_: &Faults, killed: usize| {
        counted.fetch_add(killed as u64, Ordering::SeqCst);
    };
    run_all(&places, next, count).await;
    let deaths = deaths.load(Ordering::SeqCst);
    println!("{PAIRS} orders with lost responses: {deaths} workers were killed");
    assert!(deaths > PAIRS, "{deaths} deaths in {PAIRS} orders are too few");
    let requests: usize = places.iter().map(|place| place.bank.requests()).sum();
    println!("the payment service got {requests} requests");
}
