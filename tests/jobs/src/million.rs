//! Many keyed calls, as fast as they go: none is lost, none is done twice, and memory is flat.
//!
//! The worker and the submitter are two processes, on one server. Each job has a retention of 20 seconds, so that what has
//! ended goes while others come; so do the keys, which are not used again.

use std::process::Stdio;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt;
use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
use ops_runtime::durable::{Jobs, SubmitOptions, Worker};
use ops_runtime::{Registry, operation};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::Instant;

use crate::servers::Servers;

const IN_FLIGHT: usize = 256;
const RETENTION: Duration = Duration::from_secs(20);
/// How often memory is told.
const EVERY: Duration = Duration::from_secs(10);

/// How often each number was counted by this worker.
static COUNTS: OnceLock<Vec<AtomicU8>> = OnceLock::new();

/// Counts a number.
#[operation(namespace = "million", kind = mutation)]
async fn count(number: u64) -> u64 {
    if let Some(count) = COUNTS.get().and_then(|counts| counts.get(number as usize)) {
        count.fetch_add(1, Ordering::Relaxed);
    }
    number
}

async fn jobs(url: &str) -> Jobs {
    Jobs::new(JetStream::connect(url, JetStreamConfig::new().with_replicas(1)).await.expect("the server"))
}

/// Runs jobs until its input ends, and then says how many numbers it did not count, and how many more than once.
pub(crate) async fn worker(url: &str, many: usize) {
    let counts = COUNTS.get_or_init(|| (0..many).map(|_| AtomicU8::new(0)).collect());
    let registry = Registry::new();
    registry.register(Count).expect("the operation");
    let worker = Worker::new(jobs(url).await, registry).with_max_running(IN_FLIGHT).start();
    println!("ready");
    let _ = BufReader::new(tokio::io::stdin()).lines().next_line().await;
    worker.stop().await;
    let of = |is: fn(u8) -> bool| counts.iter().filter(|count| is(count.load(Ordering::Relaxed))).count();
    println!("{} {}", of(|count| count == 0), of(|count| count > 1));
}

/// The resident memory of a process in megabytes.
fn memory(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1_024.0
}

/// Submits so many, and fails if one is lost or done twice.
pub(crate) async fn run(many: u64) {
    let servers = Servers::start(1, "2m").await;
    let url = servers.url();
    let mut worker = Command::new(std::env::current_exe().expect("this program"));
    worker.arg("counter").arg(&url).arg(many.to_string());
    worker.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut worker = worker.spawn().expect("a process");
    let mut said = BufReader::new(worker.stdout.take().expect("its output")).lines();
    assert_eq!(said.next_line().await.expect("a line").as_deref(), Some("ready"));
    let processes = [std::process::id(), worker.id().expect("its id"), servers.processes()[0]];
    let (jobs, done, begun) = (jobs(&url).await, Arc::new(AtomicU64::new(0)), Instant::now());
    let counting = done.clone();
    println!("| s | jobs | submitter MB | worker MB | server MB |\n|--:|--:|--:|--:|--:|");
    let telling = tokio::spawn(async move {
        loop {
            tokio::time::sleep(EVERY).await;
            let [own, worker, server] = processes.map(memory);
            let (seconds, jobs) = (begun.elapsed().as_secs(), counting.load(Ordering::Relaxed));
            println!("| {seconds} | {jobs} | {own:.0} | {worker:.0} | {server:.0} |");
        }
    });
    let wrong = AtomicU64::new(0);
    let (jobs, counter, failures) = (&jobs, &done, &wrong);
    let call = |number: u64| async move {
        let options = SubmitOptions::new().with_key(number.to_string()).with_retention(RETENTION);
        let job = jobs.submit::<Count>(CountInput { number }, options).await.expect("a job");
        let result = job.result().await.expect("a result").data;
        if result != number || !job.is_new() {
            failures.fetch_add(1, Ordering::Relaxed);
        }
        counter.fetch_add(1, Ordering::Relaxed);
    };
    futures_util::stream::iter(0..many).for_each_concurrent(IN_FLIGHT, call).await;
    let seconds = begun.elapsed().as_secs_f64();
    telling.abort();
    let open = jobs.stats("jobs").await.expect("the numbers of the queue").open;
    drop(worker.stdin.take());
    let counted = said.next_line().await.expect("a line").expect("what it counted");
    let (lost, twice) = counted.split_once(' ').expect("two numbers");
    let (done, wrong) = (done.load(Ordering::Relaxed), wrong.load(Ordering::Relaxed));
    println!(
        "{done} jobs in {seconds:.0} s ({:.0} a second): {lost} lost, {twice} doubled, {wrong} wrong, {open} open",
        done as f64 / seconds
    );
    assert_eq!((done, lost, twice, wrong, open), (many, "0", "0", 0, 0));
}
