//! Jobs while workers, servers and submitters are killed.
//!
//! Every job that a submitter noted as acknowledged has to end exactly once, with its result or as a dead letter, and the
//! queues have to be empty at the end. Each run of the handler adds a line to a file: how often a job ran is counted, and
//! told; it may be more than once where a worker or a server died, but each job has one result, which names one run.

use std::collections::{BTreeMap, HashMap};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt;
use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
use ops_runtime::durable::{Job, JobId, JobStatus, Jobs, RetryPolicy, SubmitOptions, Worker};
use ops_runtime::{CallError, Context, Registry, operation};
use tokio::process::{Child, Command};
use tokio::time::{Instant, interval, sleep};

use crate::servers::Servers;

/// The jobs that a submitter submits at a time.
const AT_ONCE: u64 = 16;
/// How many numbers a submitter has for itself.
const OWN: u64 = 1_000_000;
const WORKERS: usize = 3;

static FOLDER: OnceLock<String> = OnceLock::new();

/// Adds a line to a file of all processes.
fn note(folder: &str, file: &str, line: &str) {
    let opened = OpenOptions::new().append(true).create(true).open(Path::new(folder).join(file));
    // One write, which the system does as a whole.
    opened.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).expect("the file of notes");
}

/// Does a little, and notes it. Each seventh fails at its first attempt, each hundredth always.
#[operation(namespace = "sink", kind = mutation)]
async fn sink(context: &Context, number: u64) -> Result<u64, CallError> {
    let attempt = context.attempt();
    if number % 100 == 99 || (number.is_multiple_of(7) && attempt == 1) {
        return Err(CallError::execution("not now"));
    }
    sleep(Duration::from_millis(number % 20)).await;
    note(FOLDER.get().expect("the folder"), "effects", &number.to_string());
    Ok(number)
}

async fn jobs(url: &str) -> Jobs {
    let config = JetStreamConfig::new().with_lease(Duration::from_secs(5));
    loop {
        match JetStream::connect(url, config.clone()).await {
            Ok(engine) => return Jobs::new(engine),
            Err(error) => eprintln!("{error}"),
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Runs jobs until it is killed.
pub(crate) async fn worker(url: &str, folder: &str) {
    FOLDER.get_or_init(|| folder.to_owned());
    let registry = Registry::new();
    registry.register(Sink).expect("the operation");
    let _worker = Worker::new(jobs(url).await, registry).with_max_running(32).start();
    std::future::pending::<()>().await;
}

fn options(number: u64) -> SubmitOptions {
    let retry = RetryPolicy::new(8).with_backoff(Duration::from_millis(100), Duration::from_secs(2));
    let options = SubmitOptions::new().with_key(number.to_string()).with_tenant(format!("t{}", number % 5));
    let options = options.with_retry(retry).with_retention(Duration::from_secs(3_600));
    if number % 10 == 3 { options.with_delay(Duration::from_secs(2)) } else { options }
}

/// Submits jobs until it is killed, each twice, and notes those that were acknowledged.
pub(crate) async fn submitter(url: &str, folder: &str, first: u64) {
    let (jobs, next) = (jobs(url).await, Arc::new(AtomicU64::new(first)));
    let submit = || async {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            for _ in 0..2 {
                match jobs.submit::<Sink>(SinkInput { number }, options(number)).await {
                    Ok(job) => note(folder, "acknowledged", &format!("{number} {}", job.id())),
                    Err(error) => eprintln!("{error}"),
                }
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    futures_util::future::join_all((0..AT_ONCE).map(|_| submit())).await;
}

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn().expect("a process")
}

async fn kill(child: &mut Child) {
    child.kill().await.expect("it ends");
}

/// Runs all of it, and fails if a job was lost.
pub(crate) async fn run(seconds: u64) {
    let folder = std::env::temp_dir().join(format!("ops-jobs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let folder = folder.to_str().expect("text").to_owned();
    let mut servers = Servers::start(3, "always").await;
    let url = servers.url();
    let engine = jobs(&url).await;
    let mut workers: Vec<_> = (0..WORKERS).map(|_| start(&["worker", &url, &folder])).collect();
    let submitter = |run: u64| start(&["submitter", &url, &folder, &(run * OWN).to_string()]);
    let mut submitters = vec![submitter(1), submitter(2)];
    let mut runs = 2;
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut ticks = interval(Duration::from_secs(1));
    let (mut tick, mut down) = (0_u64, None);
    let mut killed = (0, 0, 0);
    while Instant::now() < until {
        ticks.tick().await;
        tick += 1;
        let worker = &mut workers[tick as usize % WORKERS];
        kill(worker).await;
        *worker = start(&["worker", &url, &folder]);
        killed.0 += 1;
        if tick.is_multiple_of(5) {
            runs += 1;
            let place = (runs % 2) as usize;
            kill(&mut submitters[place]).await;
            submitters[place] = submitter(runs);
            killed.2 += 1;
        }
        if tick.is_multiple_of(15) {
            let server = (tick / 15) as usize % 3;
            servers.kill(server);
            killed.1 += 1;
            down = Some((server, tick));
        }
        if let Some((server, since)) = down
            && tick >= since + 3
        {
            servers.restart(server).await;
            down = None;
        }
    }
    if let Some((server, _)) = down {
        servers.restart(server).await;
    }
    for submitter in &mut submitters {
        kill(submitter).await;
    }
    println!("killed: {} workers, {} servers, {} submitters", killed.0, killed.1, killed.2);
    let late = Instant::now() + Duration::from_secs(120);
    let open = loop {
        let stats = engine.stats("jobs").await.expect("the numbers of the queue");
        if stats.open == 0 || Instant::now() > late {
            break stats.open;
        }
        sleep(Duration::from_millis(500)).await;
    };
    let failures = count(&engine, &folder).await + usize::from(open > 0);
    println!("open at the end: {open}");
    for worker in &mut workers {
        kill(worker).await;
    }
    if failures == 0 {
        let _ = std::fs::remove_dir_all(&folder);
    }
    assert_eq!(failures, 0, "jobs were lost, stuck or wrong");
}

/// Compares what was acknowledged with how it ended. Returns how much is wrong.
async fn count(engine: &Jobs, folder: &str) -> usize {
    let read = |file: &str| std::fs::read_to_string(Path::new(folder).join(file)).unwrap_or_default();
    let mut ids = BTreeMap::<u64, JobId>::new();
    let (mut failures, mut repeats) = (0, 0);
    for line in read("acknowledged").lines() {
        // The last line may have been cut off by the death of its writer.
        let Some((number, id)) = line.split_once(' ') else { continue };
        let (Ok(number), Ok(id)) = (number.parse::<u64>(), id.parse()) else { continue };
        match ids.insert(number, id) {
            Some(other) if Some(&other) != ids.get(&number) => failures += 1,
            Some(_) => repeats += 1,
            None => {}
        }
    }
    let mut effects = HashMap::<u64, u64>::new();
    for number in read("effects").lines().filter_map(|line| line.parse().ok()) {
        *effects.entry(number).or_default() += 1;
    }
    let dead: Vec<_> = engine.dead_letters().collect().await;
    let (mut done, mut letters) = (0, 0);
    for (number, id) in &ids {
        let job: Job<Sink> = engine.job(id.clone());
        match job.status().await {
            Ok(JobStatus::Done) => match job.result().await {
                Ok(result) if result.data == *number && effects.contains_key(number) => done += 1,
                other => {
                    failures += 1;
                    println!("{number} {id} ({:?} runs): {other:?}", effects.get(number));
                }
            },
            Ok(JobStatus::Dead(_)) => letters += 1,
            other => {
                failures += 1;
                println!("{number} {id} ({:?} runs): {other:?}", effects.get(number));
            }
        }
    }
    let twice = effects.values().filter(|runs| **runs > 1).count();
    println!("acknowledged: {} jobs, {repeats} of them twice", ids.len());
    println!("done: {done}, dead letters: {letters} ({} in the list)", dead.len());
    println!("effects: {}, jobs that ran more than once: {twice}", effects.values().sum::<u64>());
    failures
}
