//! Calls a second with many callers, and how long one call takes with one.

use std::future::Future;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, join_all};
use ops_runtime::call::{CallHandler, InProcess, Remote};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::ours::{self, AddInput, Order, SendBackInput};
use crate::peers;

/// Starts a server as a process of its own; it ends when its input does.
async fn server(which: &str) -> (Child, String) {
    let program = std::env::current_exe().unwrap();
    let mut child =
        Command::new(program).args(["serve", which]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
    (child, line.trim().to_owned())
}

/// The CPU seconds that a process has used.
fn cpu(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<_> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    // User and system time, in hundredths of a second.
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// One call, of a number.
type Subject = Arc<dyn Fn(i64) -> BoxFuture<'static, ()> + Send + Sync>;

/// Calls of a client, of which each call has a clone.
fn subject<C, F>(client: C, call: impl Fn(C, i64) -> F + Send + Sync + 'static) -> Subject
where
    C: Clone + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    Arc::new(move |n| Box::pin(call(client.clone(), n)))
}

async fn our_add(remote: &Remote, n: i64) {
    assert_eq!(remote.execute::<ours::Add>(AddInput { a: n, b: 1 }).await.unwrap().data, n + 1);
}

/// Calls a second, and CPU microseconds of a call on both sides, which a busy machine changes less.
async fn throughput(call: &Subject, callers: i64, time: Duration, server: Option<&str>) -> (f64, f64) {
    let used = || cpu("self") + server.map_or(0.0, cpu);
    let (started, before) = (Instant::now(), used());
    let tasks = (0..callers).map(|n| {
        let call = call.clone();
        tokio::spawn(async move {
            let mut done = 0;
            while started.elapsed() < time {
                // Looking at the clock is not what is measured.
                for _ in 0..16 {
                    call(n).await;
                    done += 1;
                }
            }
            done
        })
    });
    let done: i64 = join_all(tasks).await.into_iter().map(Result::unwrap).sum();
    (done as f64 / started.elapsed().as_secs_f64(), (used() - before) * 1e6 / done as f64)
}

/// Microseconds of a call with nothing else going on: the median, and that of the slowest of a hundred.
async fn latency(call: &Subject, time: Duration) -> (f64, f64) {
    let (started, call) = (Instant::now(), call.clone());
    let mut times = tokio::spawn(async move {
        let mut times = Vec::new();
        while started.elapsed() < time {
            let before = Instant::now();
            call(1).await;
            times.push(before.elapsed().as_secs_f64() * 1e6);
        }
        times
    })
    .await
    .unwrap();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// For how long one row is measured by itself.
const LONG: Duration = Duration::from_secs(3);

/// Compares all, or measures one row with so many callers.
pub async fn run(only: Option<(&str, i64)>) {
    let transport = InProcess::new();
    let _worker = transport.serve(CallHandler::new(ours::registry()));
    let local = transport.remote();
    // A server ends with its handle.
    let servers = join_all(["ours", "jsonrpsee", "tarpc", "tonic"].map(server)).await;
    let [(_, ours), (_, jsonrpsee), (_, tarpc), (_, tonic)] = &servers[..] else { panic!("four servers") };
    let remote = ours::connect(ours).await;
    let jsonrpsee = Arc::new(peers::jsonrpsee::connect(jsonrpsee).await);
    let (tarpc, tonic) = (peers::tarpc::connect(tarpc).await, peers::tonic::connect(tonic).await);
    let processes: Vec<String> = servers.iter().map(|(child, _)| child.id().unwrap().to_string()).collect();
    let server_of = |name: &str| {
        let of = ["websocket", "jsonrpsee", "tarpc", "tonic"].iter().position(|peer| name.starts_with(peer));
        of.map(|of| &*processes[of])
    };
    let subjects: Vec<(&str, Subject)> = vec![
        ("in process, add", subject(local, |local, n| async move { our_add(&local, n).await })),
        ("websocket, add", subject(remote.clone(), |remote, n| async move { our_add(&remote, n).await })),
        (
            "jsonrpsee, add",
            subject(jsonrpsee.clone(), |client, n| async move {
                assert_eq!(peers::jsonrpsee::add(&client, n, 1).await, n + 1);
            }),
        ),
        (
            "tarpc, add",
            subject(tarpc.clone(), |client, n| async move {
                assert_eq!(peers::tarpc::add(&client, n, 1).await, n + 1);
            }),
        ),
        (
            "tonic, add",
            subject(tonic.clone(), |client, n| async move {
                assert_eq!(peers::tonic::add(client, n, 1).await, n + 1);
            }),
        ),
        (
            "websocket, 1 KB",
            subject(remote, |remote, _| async move {
                let input = SendBackInput { order: Order::sample() };
                assert_eq!(remote.execute::<ours::SendBack>(input).await.unwrap().data.id, 7);
            }),
        ),
        (
            "jsonrpsee, 1 KB",
            subject(jsonrpsee, |client, _| async move {
                assert_eq!(peers::jsonrpsee::send_back(&client, Order::sample()).await.id, 7);
            }),
        ),
        (
            "tarpc, 1 KB",
            subject(tarpc, |client, _| async move {
                assert_eq!(peers::tarpc::send_back(&client, Order::sample()).await.id, 7);
            }),
        ),
        (
            "tonic, 1 KB",
            subject(tonic, |client, _| async move {
                assert_eq!(peers::tonic::send_back(client, peers::tonic::Order::sample()).await.id, 7);
            }),
        ),
    ];
    if let Some((name, callers)) = only {
        let (_, call) = subjects.iter().find(|(subject, _)| *subject == name).expect("the name of a row");
        if callers == 1 {
            let (median, slowest) = latency(call, LONG).await;
            println!("{name:<18}{median:>12.1} us, p99 {slowest:>8.1} us");
        } else {
            let (calls, cpu) = throughput(call, callers, LONG, server_of(name)).await;
            println!("{name:<18}{calls:>12.0} calls/s, {cpu:>8.2} us of processors each");
        }
        return;
    }
    const ROUNDS: usize = 5;
    let time = Duration::from_millis(700);
    let mut results = vec![Vec::new(); subjects.len()];
    // Interleaved, so that a busy moment of the machine hits all alike.
    for _ in 0..ROUNDS {
        for ((name, call), results) in subjects.iter().zip(&mut results) {
            let (one, slowest) = latency(call, time / 2).await;
            let (few, few_cpu) = throughput(call, 64, time, server_of(name)).await;
            let (many, many_cpu) = throughput(call, 1024, time, server_of(name)).await;
            results.push([few, few_cpu, many, many_cpu, one, slowest]);
        }
    }
    let columns = ["64: calls/s", "CPU us", "1024: calls/s", "CPU us", "1: p50 us", "p99 us"];
    println!("{:<18}{}", "callers", columns.map(|column| format!("{column:>15}")).concat());
    for ((name, _), results) in subjects.iter().zip(results) {
        let median = |column: usize| {
            let mut values: Vec<f64> = results.iter().map(|row| row[column]).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let decimals = [0, 2, 0, 2, 1, 1];
        let row = std::array::from_fn::<_, 6, _>(|at| format!("{:>15.*}", decimals[at], median(at))).concat();
        println!("{name:<18}{row}");
    }
}
