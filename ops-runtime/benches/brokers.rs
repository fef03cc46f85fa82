//! Calls over NATS and Redis beside what their crates do alone, and how they grow with workers.
//!
//! ```text
//! tests/peers/install
//! cargo bench -p ops-runtime --no-default-features --features macros,nats,redis --bench brokers
//! ```
//!
//! Starts the servers itself. Peers encode and decode the same JSON as the calls do: `async-nats` by request and reply,
//! Redis by adding to a stream and reading from another. One process calls, its own tasks serve, over connections of their
//! own; each figure is the median of rounds that alternate. Redis' peer answers in the loop that reads, which no worker can
//! whose handlers may wait; another, as NATS' peer, runs a task for each request. Last, processes serve whose handler waits
//! 5 ms, eight at a time; with `--growth` these rows alone are measured. With `--only nats|redis own|peer IN_FLIGHT` it
//! measures that alone, for a profiler.

use std::collections::HashMap;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, join_all};
use ops_runtime::call::nats::{Nats, NatsConfig};
use ops_runtime::call::redis::{Redis, RedisConfig};
use ops_runtime::call::{CallHandler, Remote};
use ops_runtime::{CallError, Context, Registry, operation};
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, oneshot};

/// What is sent there and back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct Order {
    id: u64,
    customer: String,
    lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct Line {
    article: String,
    pieces: u32,
    price: f64,
}

fn order() -> Order {
    let line = |n: u32| Line { article: format!("article {n}"), pieces: n, price: f64::from(n) + 0.99 };
    Order { id: 7, customer: "Ann Example".to_owned(), lines: (1..5).map(line).collect() }
}

/// Gives an order back.
#[operation(namespace = "bench", kind = query)]
async fn confirm(order: Order) -> Order {
    order
}

/// Waits 5 ms, when it is its turn.
#[operation(namespace = "bench", kind = query)]
async fn work(context: Context) -> Result<u32, CallError> {
    let turns = context.state::<Arc<Semaphore>>()?.clone();
    let _turn = turns.acquire_owned().await.map_err(CallError::from_error)?;
    tokio::time::sleep(Duration::from_millis(5)).await;
    Ok(5)
}

fn handler() -> CallHandler {
    let registry = Registry::builder().with_state(Arc::new(Semaphore::new(8))).build();
    registry.register_all([ops_runtime::adapter::Registration::from(Confirm), Work.into()]).unwrap();
    CallHandler::new(registry)
}

/// A child process that ends with its owner.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn server(program: &str, arguments: impl Fn(&str) -> Vec<String>) -> (Process, String) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(program);
    command.args(arguments(&port.to_string())).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}: run tests/peers/install"));
    let address = format!("127.0.0.1:{port}");
    while tokio::net::TcpStream::connect(&address).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (Process(child), address)
}

/// Calls for a while with so many in flight: calls per second, and the median of their times.
async fn measure<F: Future<Output = ()> + Send + 'static>(
    in_flight: usize,
    call: impl Fn() -> F + Clone + Send + 'static,
) -> (f64, Duration) {
    const TIME: Duration = Duration::from_millis(1_500);
    let started = Instant::now();
    let tasks = (0..in_flight).map(|_| {
        let call = call.clone();
        // As in a server: each caller is a task.
        tokio::spawn(async move {
            let mut times = Vec::new();
            while started.elapsed() < TIME {
                let begun = Instant::now();
                call().await;
                times.push(begun.elapsed());
            }
            times
        })
    });
    let mut times: Vec<_> = join_all(tasks).await.into_iter().flat_map(Result::unwrap).collect();
    let seconds = started.elapsed().as_secs_f64();
    times.sort();
    (times.len() as f64 / seconds, times[times.len() / 2])
}

async fn ours(remote: Remote, in_flight: usize) -> (f64, Duration) {
    let call = move || {
        let remote = remote.clone();
        async move {
            let answer = remote.execute::<Confirm>(ConfirmInput { order: order() }).await.unwrap();
            assert_eq!(answer.data.id, 7);
        }
    };
    measure(in_flight, call).await
}

async fn nats_peer(address: &str) -> impl Fn() -> BoxFuture<'static, ()> + Clone + Send + use<> {
    let (caller, worker) = (async_nats::connect(address).await.unwrap(), async_nats::connect(address).await.unwrap());
    let mut requests = worker.queue_subscribe("peer.confirm", "workers".to_owned()).await.unwrap();
    worker.flush().await.unwrap();
    tokio::spawn(async move {
        while let Some(message) = requests.next().await {
            let worker = worker.clone();
            // A task for each, as a worker does that may wait.
            tokio::spawn(async move {
                let order: Order = serde_json::from_slice(&message.payload).unwrap();
                let answer = serde_json::to_vec(&order).unwrap();
                worker.publish(message.reply.unwrap(), answer.into()).await.unwrap();
            });
        }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    move || {
        let caller = caller.clone();
        Box::pin(async move {
            let payload = serde_json::to_vec(&order()).unwrap();
            let answer = caller.request("peer.confirm", payload.into()).await.unwrap();
            let order: Order = serde_json::from_slice(&answer.payload).unwrap();
            assert_eq!(order.id, 7);
        })
    }
}

type Read = Option<Vec<(String, Vec<(String, Vec<String>)>)>>;

async fn read(connection: &mut redis::aio::MultiplexedConnection, key: &str, last: &mut String) -> Vec<Vec<String>> {
    let mut command = redis::cmd("XREAD");
    command.arg("COUNT").arg(512).arg("BLOCK").arg(300).arg("STREAMS").arg(key).arg(&*last);
    // The server ends before the peer does.
    let Ok(read) = command.query_async::<Read>(connection).await else { std::future::pending().await };
    let entries: Vec<_> = read.unwrap_or_default().into_iter().flat_map(|(_, entries)| entries).collect();
    if let Some((id, _)) = entries.last() {
        last.clone_from(id);
    }
    entries.into_iter().map(|(_, fields)| fields).collect()
}

/// The answer to a request as a command.
fn answer(fields: &[String], to: &str) -> redis::Cmd {
    let order: Order = serde_json::from_str(&fields[1]).unwrap();
    let mut command = redis::cmd("XADD");
    command.arg(to).arg("MAXLEN").arg("~").arg(10_000).arg("*");
    command.arg("frame").arg(serde_json::to_string(&order).unwrap()).arg("id").arg(&fields[3]);
    command
}

async fn redis_peer(address: &str, tasks: bool) -> impl Fn() -> BoxFuture<'static, ()> + Clone + Send + use<> {
    let client = redis::Client::open(format!("redis://{address}")).unwrap();
    let connect = || async { client.get_multiplexed_async_connection().await.unwrap() };
    let (mut requests, mut answers, caller, mut worker) =
        (connect().await, connect().await, connect().await, connect().await);
    let [asked, told] = ["requests", "answers"].map(|what| format!("peer:{what}:{tasks}"));
    let (ask, tell) = (asked.clone(), told.clone());
    let waiting: Arc<Mutex<HashMap<u64, oneshot::Sender<String>>>> = Arc::default();
    let answered = waiting.clone();
    tokio::spawn(async move {
        let mut last = "0-0".to_owned();
        loop {
            let mut commands = redis::pipe();
            for fields in read(&mut requests, &asked, &mut last).await {
                if !tasks {
                    commands.add_command(answer(&fields, &tell)).ignore();
                    continue;
                }
                let (mut worker, tell) = (worker.clone(), tell.clone());
                // A task for each, as a worker does that may wait.
                tokio::spawn(async move {
                    let _ = answer(&fields, &tell).query_async::<String>(&mut worker).await;
                });
            }
            if !commands.is_empty() {
                // The server ends before the peer does.
                let Ok(()) = commands.exec_async(&mut worker).await else { return };
            }
        }
    });
    tokio::spawn(async move {
        let mut last = "0-0".to_owned();
        loop {
            for mut fields in read(&mut answers, &told, &mut last).await {
                let id: u64 = fields[3].parse().unwrap();
                if let Some(sender) = answered.lock().unwrap().remove(&id) {
                    let _ = sender.send(fields.swap_remove(1));
                }
            }
        }
    });
    let next = Arc::new(AtomicU64::new(0));
    move || {
        let (mut caller, waiting, ask) = (caller.clone(), waiting.clone(), ask.clone());
        let id = next.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let (sender, receiver) = oneshot::channel();
            waiting.lock().unwrap().insert(id, sender);
            let mut command = redis::cmd("XADD");
            command.arg(&ask).arg("MAXLEN").arg("~").arg(10_000).arg("*");
            command.arg("frame").arg(serde_json::to_string(&order()).unwrap()).arg("id").arg(id);
            let _: String = command.query_async(&mut caller).await.unwrap();
            let order: Order = serde_json::from_str(&receiver.await.unwrap()).unwrap();
            assert_eq!(order.id, 7);
        })
    }
}

fn median<T: Copy + PartialOrd>(mut of: Vec<T>) -> T {
    of.sort_by(|a, b| a.partial_cmp(b).unwrap());
    of[of.len() / 2]
}

/// Rounds of both in turn.
async fn beside<F: Future<Output = ()> + Send + 'static>(
    name: &str,
    aim: f64,
    remote: &Remote,
    peer: impl Fn() -> F + Clone + Send + 'static,
) {
    const ROUNDS: usize = 5;
    for in_flight in [1, 64] {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            others.push(measure(in_flight, peer.clone()).await);
            own.push(ours(remote.clone(), in_flight).await);
        }
        let ratio = median(own.iter().zip(&others).map(|((own, _), (other, _))| own / other).collect());
        let (own_rate, own_time) =
            (median(own.iter().map(|m| m.0).collect()), median(own.iter().map(|m| m.1).collect()));
        let (rate, time) = (median(others.iter().map(|m| m.0).collect()), median(others.iter().map(|m| m.1).collect()));
        println!(
            "| {name} | {in_flight} | {own_rate:.0} | {:.0} | {rate:.0} | {:.0} | {ratio:.2} | {aim} |",
            own_time.as_micros(),
            time.as_micros()
        );
    }
}

async fn connect(transport: &str, address: &str) -> Remote {
    match transport {
        "nats" => Nats::connect(address, NatsConfig::new()).await.unwrap().remote().await.unwrap(),
        _ => redis(address).remote().await.unwrap(),
    }
}

fn redis(address: &str) -> Redis {
    Redis::new(&format!("redis://{address}"), RedisConfig::new()).unwrap()
}

/// A process that serves, until it is killed.
async fn serve(transport: &str, address: &str) {
    match transport {
        "nats" => {
            let nats = Nats::connect(address, NatsConfig::new()).await.unwrap();
            let _worker = nats.serve(handler()).await.unwrap();
            std::future::pending::<()>().await;
        }
        _ => {
            let _worker = redis(address).serve(handler()).await.unwrap();
            std::future::pending::<()>().await;
        }
    }
}

async fn growth(transport: &str, address: &str) {
    let mut rates = Vec::new();
    for workers in [1, 2, 4] {
        let processes: Vec<_> = (0..workers)
            .map(|_| {
                let mut command = Command::new(std::env::current_exe().unwrap());
                Process(command.env("OPS_BENCH_WORKER", format!("{transport} {address}")).spawn().unwrap())
            })
            .collect();
        let remote = connect(transport, address).await;
        while remote.execute::<Work>(WorkInput {}).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // Until the others are there, too.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let call = move || {
            let remote = remote.clone();
            async move { drop(remote.execute::<Work>(WorkInput {}).await.unwrap()) }
        };
        rates.push(measure(256, call).await.0);
        drop(processes);
        // Those that were killed are forgotten first.
        tokio::time::sleep(Duration::from_secs(7)).await;
    }
    let base = rates[0];
    let cells: Vec<_> = rates.iter().map(|rate| format!("{rate:.0} ({:.2})", rate / base)).collect();
    println!("| {transport} | {} |", cells.join(" | "));
}

#[tokio::main]
async fn main() {
    if let Ok(worker) = std::env::var("OPS_BENCH_WORKER") {
        let (transport, address) = worker.split_once(' ').unwrap();
        return serve(transport, address).await;
    }
    let nats_server = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers/.venv/bin/nats-server");
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (_nats, nats_address) = server(nats_server, |port| words(&["--addr", "127.0.0.1", "--port", port])).await;
    let (_redis, redis_address) =
        server("redis-server", |port| words(&["--bind", "127.0.0.1", "--port", port, "--save", ""])).await;

    let arguments: Vec<_> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--only") {
        let [transport, whose, in_flight] = [1, 2, 3].map(|n| arguments[at + n].as_str());
        let in_flight = in_flight.parse().unwrap();
        let address = if transport == "nats" { &nats_address } else { &redis_address };
        let rounds = async |call: &dyn Fn() -> BoxFuture<'static, (f64, Duration)>| {
            for _ in 0..5 {
                let (rate, time) = call().await;
                println!("{rate:.0} calls/s, p50 {} us", time.as_micros());
            }
        };
        match (transport, whose) {
            ("nats", "peer") => {
                let peer = nats_peer(address).await;
                rounds(&|| Box::pin(measure(in_flight, peer.clone()))).await;
            }
            (_, "peer") => {
                let peer = redis_peer(address, false).await;
                rounds(&|| Box::pin(measure(in_flight, peer.clone()))).await;
            }
            ("nats", _) => {
                let nats = Nats::connect(address, NatsConfig::new()).await.unwrap();
                let _worker = nats.serve(handler()).await.unwrap();
                let remote = connect(transport, address).await;
                rounds(&|| Box::pin(ours(remote.clone(), in_flight))).await;
            }
            _ => {
                let _worker = redis(address).serve(handler()).await.unwrap();
                let remote = connect(transport, address).await;
                rounds(&|| Box::pin(ours(remote.clone(), in_flight))).await;
            }
        }
        return;
    }
    if arguments.iter().any(|argument| argument == "--growth") {
        growth("nats", &nats_address).await;
        growth("redis", &redis_address).await;
        return;
    }
    println!("| transport | in flight | calls/s | p50, us | peer, calls/s | p50, us | ratio | aim |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    {
        let nats = Nats::connect(&nats_address, NatsConfig::new()).await.unwrap();
        let worker = nats.serve(handler()).await.unwrap();
        let remote = connect("nats", &nats_address).await;
        beside("NATS", 0.8, &remote, nats_peer(&nats_address).await).await;
        worker.stop().await;
        let worker = redis(&redis_address).serve(handler()).await.unwrap();
        let remote = connect("redis", &redis_address).await;
        beside("Redis", 0.7, &remote, redis_peer(&redis_address, false).await).await;
        beside("Redis, peer with tasks", 0.7, &remote, redis_peer(&redis_address, true).await).await;
        worker.stop().await;
    }
    println!("\n| calls/s with workers that do 8 of 5 ms at a time | 1 | 2 | 4 |\n|---|--:|--:|--:|");
    growth("nats", &nats_address).await;
    growth("redis", &redis_address).await;
}
