//! Jobs while something fails all the time.
//!
//! - `kill`: a worker is killed every second, a submitter every 5 s and a server every 15 s.
//! - `network`: servers, workers and submitters are cut off from each other for 6 s of each 10, in turn by broken connections,
//!   by silence to both sides, by silence to one, and by delays; a worker is killed every 5 s.
//! - `disk`: the disk of a server is full for 8 s of each 20, then those of all three, in turn; a worker is killed every 5 s. A server whose disk
//!   was full is started again, as `JetStream` ends there for good.
//! - `clock`: the clocks of a worker and of a submitter jump by an hour or a day every 4 s; a worker is killed every 3 s. At least
//!   one job must have run while a clock was wrong.
//!
//! Every job that a submitter noted as acknowledged has to end exactly once, with its result or as a dead letter, and the
//! queues have to be empty at the end. Of the jobs that do not always fail, at most 1 % may become dead letters, and none if only
//! clocks jump. Each run of the handler adds a line to a file: how often a job ran is counted, and
//! told; it may be more than once where a worker or a server failed, but each job has one result, which names one run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
use ops_runtime::durable::{Job, JobId, JobStatus, Jobs, RetryPolicy, SubmitOptions, Worker};
use ops_runtime::{CallError, Context, Registry, operation};
use tokio::process::{Child, Command};
use tokio::time::{Instant, interval, sleep};

use crate::disk::Disks;
use crate::network::Network;
use crate::servers::{Servers, Settings};

/// The jobs that a submitter submits at a time.
const AT_ONCE: u64 = 16;
/// How many numbers a submitter has for itself.
const OWN: u64 = 1_000_000;
const WORKERS: usize = 3;
const SERVERS: usize = 3;

/// How long it may take until all jobs have ended.
const SETTLES: Duration = Duration::from_secs(120);

static FOLDER: OnceLock<String> = OnceLock::new();

/// Adds a line to a file of all processes.
fn note(folder: &str, file: &str, line: &str) {
    let opened = OpenOptions::new().append(true).create(true).open(Path::new(folder).join(file));
    // One write, which the system does as a whole.
    opened.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).expect("the file of notes");
}

/// The time by the clock of this process, in seconds since 1970.
fn clock() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock after 1970").as_secs()
}

/// Works for a few milliseconds, and notes its number and the time. Each seventh job fails at its first attempt, each hundredth
/// always.
#[operation(namespace = "sink", kind = mutation)]
async fn sink(context: &Context, number: u64) -> Result<u64, CallError> {
    let attempt = context.attempt();
    if number % 100 == 99 || (number.is_multiple_of(7) && attempt == 1) {
        return Err(CallError::execution("not now"));
    }
    sleep(Duration::from_millis(number % 20)).await;
    note(FOLDER.get().expect("the folder"), "effects", &format!("{number} {}", clock()));
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
    match number % 10 {
        3 => options.with_delay(Duration::from_secs(2)),
        // Much longer than it takes, and much shorter than clocks jump.
        4 => options.with_timeout(Duration::from_secs(1_500)),
        _ => options,
    }
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

/// Starts this program as a process of its own, with a clock that a file sets if there is one.
fn start(arguments: &[&str], clock: Option<&Clock>) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    if let Some(clock) = clock {
        // How long something takes is measured by another clock, which nobody sets.
        command.env("LD_PRELOAD", &clock.library).env("FAKETIME_TIMESTAMP_FILE", &clock.file);
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
    command.spawn().expect("a process")
}

async fn kill(child: &mut Child) {
    child.kill().await.expect("it ends");
}

/// A clock of processes that can be set.
struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    fn new(folder: &str) -> Self {
        let libraries = std::fs::read_dir("/usr/lib").expect("a folder").filter_map(Result::ok);
        let library =
            libraries.map(|entry| entry.path().join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
        let clock = Self {
            library: library.expect("libfaketime is missing: run tests/peers/install"),
            file: Path::new(folder).join("clock"),
        };
        clock.set(0);
        clock
    }

    /// Sets the clock so many seconds forward, or back.
    fn set(&self, seconds: i64) {
        // At once: who reads it half written would have another time.
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}")).expect("the clock");
        std::fs::rename(new, &self.file).expect("the clock");
    }
}

/// What takes part, and what disturbs it.
struct Field {
    folder: String,
    servers: Servers,
    /// Where workers and submitters find the servers.
    urls: [String; 2],
    workers: Vec<Child>,
    submitters: Vec<Child>,
    /// How many submitters there were.
    runs: u64,
    network: Option<Network>,
    disks: Option<Disks>,
    clock: Option<Clock>,
    /// Workers, submitters and servers.
    killed: [usize; 3],
    /// A server that is down, or whose disk is full, or all servers.
    down: Vec<usize>,
}

impl Field {
    async fn start(fault: &str, folder: String) -> Self {
        let (mut network, mut disks, mut clock) = (None, None, None);
        let servers = match fault {
            "network" => {
                let (between, servers) = Network::start("always").await;
                network = Some(between);
                servers
            }
            "disk" => {
                let mounted = disks.insert(Disks::mount(Path::new(&folder), SERVERS));
                let stores = || Settings { stores: mounted.stores(), ..Settings::new(SERVERS, "always") };
                Servers::with(stores).await
            }
            "clock" => {
                clock = Some(Clock::new(&folder));
                Servers::start(SERVERS, "always").await
            }
            "kill" => Servers::start(SERVERS, "always").await,
            _ => panic!("{fault} is no fault: kill, network, disk or clock"),
        };
        let urls = network.as_ref().map_or_else(|| [servers.url(), servers.url()], Network::urls);
        // The streams are there before anything fails.
        let mut field = Self {
            folder,
            servers,
            urls,
            workers: Vec::new(),
            submitters: Vec::new(),
            runs: 0,
            network,
            disks,
            clock,
            killed: [0; 3],
            down: Vec::new(),
        };
        for index in 0..WORKERS {
            let worker = field.worker(index);
            field.workers.push(worker);
        }
        for _ in 0..2 {
            let submitter = field.submitter();
            field.submitters.push(submitter);
        }
        field
    }

    fn worker(&self, index: usize) -> Child {
        start(&["worker", &self.urls[0], &self.folder], self.clock.as_ref().filter(|_| index == 0))
    }

    fn submitter(&mut self) -> Child {
        self.runs += 1;
        let clock = self.clock.as_ref().filter(|_| self.runs.is_multiple_of(2));
        start(&["submitter", &self.urls[1], &self.folder, &(self.runs * OWN).to_string()], clock)
    }

    async fn kill_worker(&mut self, tick: u64) {
        let index = tick as usize % WORKERS;
        kill(&mut self.workers[index]).await;
        self.workers[index] = self.worker(index);
        self.killed[0] += 1;
    }

    async fn kill_submitter(&mut self) {
        let place = (self.runs % 2) as usize;
        kill(&mut self.submitters[place]).await;
        self.submitters[place] = self.submitter();
        self.killed[1] += 1;
    }

    fn kill_server(&mut self, index: usize) {
        self.servers.kill(index);
        self.killed[2] += 1;
    }

    /// Starts the servers that are down, with disks that are not full.
    async fn up(&mut self) {
        for index in std::mem::take(&mut self.down) {
            if let Some(disks) = &self.disks {
                disks.free(index);
                self.kill_server(index);
            }
            self.servers.restart(index).await;
        }
    }

    /// What fails in that second.
    async fn second(&mut self, fault: &str, tick: u64) {
        match fault {
            "kill" => {
                self.kill_worker(tick).await;
                if tick.is_multiple_of(5) {
                    self.kill_submitter().await;
                }
                if tick.is_multiple_of(15) {
                    let index = (tick / 15) as usize % SERVERS;
                    self.kill_server(index);
                    self.down = vec![index];
                } else if tick % 15 == 3 {
                    self.up().await;
                }
            }
            "network" => {
                let network = self.network.as_ref().expect("proxies");
                if tick.is_multiple_of(10) {
                    println!("{tick} s: {}", network.disturb(tick / 10 - 1));
                } else if tick % 10 == 6 {
                    network.heal();
                }
                if tick % 5 == 3 {
                    self.kill_worker(tick / 5).await;
                }
            }
            "disk" => {
                if tick % 20 == 5 {
                    // One, all, the next.
                    let round = (tick / 20) as usize;
                    let one = round / 2 % SERVERS;
                    self.down = if round.is_multiple_of(2) { vec![one] } else { (0..SERVERS).collect() };
                    let disks = self.disks.as_ref().expect("disks");
                    self.down.iter().for_each(|index| disks.fill(*index));
                    println!("{tick} s: the disks of {:?} are full", self.down);
                } else if tick % 20 == 13 {
                    self.up().await;
                }
                if tick % 5 == 3 {
                    self.kill_worker(tick / 5).await;
                }
            }
            _ => {
                if tick.is_multiple_of(4) {
                    let seconds = [3_600, -3_600, 86_400, 0][(tick / 4) as usize % 4];
                    self.clock.as_ref().expect("a clock").set(seconds);
                    println!("{tick} s: a clock is {seconds:+} s wrong");
                }
                if tick % 3 == 2 {
                    self.kill_worker(tick / 3).await;
                }
            }
        }
    }

    /// Ends what disturbs and who submits. Returns how many jobs are open when no more end.
    async fn settle(&mut self, engine: &Jobs) -> u64 {
        if let Some(network) = &self.network {
            network.heal();
        }
        self.up().await;
        for submitter in &mut self.submitters {
            kill(submitter).await;
        }
        let [workers, submitters, servers] = self.killed;
        println!("killed: {workers} workers, {servers} servers, {submitters} submitters");
        let begun = Instant::now();
        loop {
            let open = engine.stats("jobs").await.map_or(u64::MAX, |stats| stats.open);
            if open == 0 || begun.elapsed() > SETTLES {
                println!("open at the end: {open}, after {:.0} s", begun.elapsed().as_secs_f64());
                return open;
            }
            sleep(Duration::from_millis(500)).await;
        }
    }
}

/// Lets that fail for so many seconds, and fails if a job was lost.
pub(crate) async fn run(fault: &str, seconds: u64) {
    let folder = std::env::temp_dir().join(format!("ops-jobs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let folder = folder.to_str().expect("text").to_owned();
    let began = clock();
    let mut field = Field::start(fault, folder.clone()).await;
    // It looks on, and is not disturbed.
    let engine = jobs(&field.servers.url()).await;
    let mut ticks = interval(Duration::from_secs(1));
    ticks.tick().await;
    for tick in 1..=seconds {
        ticks.tick().await;
        field.second(fault, tick).await;
    }
    let open = field.settle(&engine).await;
    let failures = count(&engine, &folder, fault, began).await + usize::from(open > 0);
    for worker in &mut field.workers {
        kill(worker).await;
    }
    drop(field);
    if failures == 0 {
        let _ = std::fs::remove_dir_all(&folder);
    }
    assert_eq!(failures, 0, "jobs were lost, stuck or wrong");
}

/// Compares the acknowledged jobs with how they ended. `began` is the start of the test by its clock. Returns the number of
/// failures.
async fn count(engine: &Jobs, folder: &str, fault: &str, began: u64) -> usize {
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
    // A time outside of this range is from a clock that has jumped: half an hour is less than any jump.
    let (times, mut has_jumped) = (began - 1_800..=clock() + 1_800, false);
    for line in read("effects").lines() {
        let Some((number, time)) = line.split_once(' ') else { continue };
        let (Ok(number), Ok(time)) = (number.parse(), time.parse()) else { continue };
        *effects.entry(number).or_default() += 1;
        has_jumped |= !times.contains(&time);
    }
    if fault == "clock" && !has_jumped {
        failures += 1;
        println!("no job ran with a clock that is wrong: is `libfaketime` loaded?");
    }
    let mut listed = HashSet::new();
    let mut list = engine.dead_letters();
    while let Some(letter) = list.next().await {
        match letter {
            Ok(letter) => _ = listed.insert(letter.job.id),
            Err(error) => {
                failures += 1;
                println!("the list of dead letters ends early: {error}");
            }
        }
    }
    let (mut done, mut letters, mut unlucky) = (0, 0, 0);
    for (number, id) in &ids {
        let job: Job<Sink> = engine.job(id.clone());
        match job.status().await {
            Ok(JobStatus::Done) => match job.result().await {
                Ok(result) if result.data == *number && effects.contains_key(number) && !listed.contains(id) => {
                    done += 1;
                }
                other => {
                    failures += 1;
                    println!("{number} {id} ({:?} runs): {other:?}", effects.get(number));
                }
            },
            // Others that are dead lost too many workers, or their time: by a wrong clock.
            Ok(JobStatus::Dead(error)) if fault == "clock" && number % 100 != 99 => {
                failures += 1;
                println!("{number} {id} ({:?} runs) is dead: {error}", effects.get(number));
            }
            Ok(JobStatus::Dead(_)) if listed.contains(id) => {
                letters += 1;
                unlucky += usize::from(number % 100 != 99);
            }
            other => {
                failures += 1;
                println!("{number} {id} ({:?} runs): {other:?}", effects.get(number));
            }
        }
    }
    let twice = effects.values().filter(|runs| **runs > 1).count();
    println!("acknowledged: {} jobs, {repeats} of them twice", ids.len());
    println!(
        "done: {done}, dead letters: {letters}, {unlucky} of which do not always fail ({} in the list)",
        listed.len()
    );
    println!("effects: {}, jobs that ran more than once: {twice}", effects.values().sum::<u64>());
    if ids.is_empty() {
        println!("nothing was acknowledged");
        failures += 1;
    }
    // A death takes an attempt of the jobs that it interrupts, and hardly any job meets eight of them. All others are done.
    if unlucky * 100 > ids.len() {
        println!("more than 1 % of the jobs are dead letters though they do not always fail");
        failures += unlucky;
    }
    failures
}
