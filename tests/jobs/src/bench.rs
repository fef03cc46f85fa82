//! Durable calls beside the raw engine: the same servers, the same number in flight, rounds in turn, medians.
//!
//! A job of the raw engine: publish with deduplication, pull, put the result into a key-value bucket, acknowledge. When the
//! result is stored, its submitter is told by a core message, to which it has one subscription for all. Inputs and results
//! are the same JSON, and both read and write them by the same types.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, RetentionPolicy};
use async_nats::jetstream::{self, Context, kv};
use bytes::Bytes;
use futures_util::StreamExt;
use ops_runtime::durable::jetstream::JetStreamConfig;
use ops_runtime::durable::{Jobs, SubmitOptions, Worker, WorkerHandle};
use ops_runtime::{Registry, operation};
use tokio::sync::{Semaphore, oneshot};

use crate::servers::{Servers, cpu_of};

const IN_FLIGHT: usize = 64;
const ROUND: Duration = Duration::from_secs(4);

/// Gives back what it gets.
#[operation(namespace = "bench", kind = mutation)]
async fn echo(text: String) -> String {
    text
}

/// One job from its submit to its result.
trait Engine: Clone + Send + Sync + 'static {
    fn job(&self, number: u64) -> impl Future<Output = ()> + Send;
}

#[derive(Clone)]
struct Ours(Jobs);

impl Engine for Ours {
    async fn job(&self, number: u64) {
        let options = SubmitOptions::new().with_key(number.to_string()).with_retention(Duration::from_secs(60));
        let job = self.0.submit::<Echo>(EchoInput { text: text(number) }, options).await.expect("a job");
        assert_eq!(job.result().await.expect("a result").data.len(), 100);
    }
}

#[derive(Clone)]
struct Raw {
    context: Context,
    waiting: Arc<Mutex<HashMap<String, oneshot::Sender<Bytes>>>>,
}

impl Engine for Raw {
    async fn job(&self, number: u64) {
        let (sender, result) = oneshot::channel();
        self.waiting.lock().expect("the table").insert(format!("raw.told.{number}"), sender);
        let input = serde_json::to_vec(&EchoInput { text: text(number) }).expect("JSON");
        let message = PublishMessage::build().payload(input.into()).message_id(number.to_string());
        let sent = self.context.send_publish(format!("raw.job.{number}"), message).await.expect("a connection");
        sent.await.expect("an acknowledgement");
        let result: String = serde_json::from_slice(&result.await.expect("a result")).expect("JSON");
        assert_eq!(result.len(), 100);
    }
}

impl Raw {
    async fn start(url: &str, replicas: usize) -> Self {
        let servers: Vec<&str> = url.split(',').collect();
        let connect = async || async_nats::connect(servers.clone()).await.expect("a server");
        let stream = |name: &str, subject: &str, retention| Config {
            name: name.to_owned(),
            subjects: vec![subject.to_owned()],
            retention,
            num_replicas: replicas,
            ..Config::default()
        };
        let (client, worker) = (connect().await, jetstream::new(connect().await));
        let jobs =
            worker.create_stream(stream("RAW", "raw.job.*", RetentionPolicy::WorkQueue)).await.expect("a stream");
        let bucket = kv::Config {
            bucket: "results".to_owned(),
            max_age: Duration::from_secs(60),
            num_replicas: replicas,
            ..kv::Config::default()
        };
        let results = worker.create_key_value(bucket).await.expect("a bucket");
        let settings = pull::Config {
            durable_name: Some("all".to_owned()),
            ack_policy: AckPolicy::Explicit,
            ..pull::Config::default()
        };
        let consumer = jobs.create_consumer(settings).await.expect("a consumer");
        tokio::spawn(async move {
            let places = Arc::new(Semaphore::new(IN_FLIGHT));
            let messages = consumer.stream().max_messages_per_batch(IN_FLIGHT).messages();
            let mut messages = messages.await.expect("messages");
            while let Some(Ok(message)) = messages.next().await {
                let place = places.clone().acquire_owned().await;
                let (results, client) = (results.clone(), worker.client());
                tokio::spawn(async move {
                    let _place = place;
                    let input: EchoInput = serde_json::from_slice(&message.payload).expect("JSON");
                    let result = Bytes::from(serde_json::to_vec(&input.text).expect("JSON"));
                    let number = message.subject.rsplit('.').next().expect("a number");
                    results.put(number, result.clone()).await.expect("an acknowledgement");
                    message.ack().await.expect("a connection");
                    client.publish(format!("raw.told.{number}"), result).await.expect("a connection");
                });
            }
        });
        let waiting: Arc<Mutex<HashMap<String, oneshot::Sender<Bytes>>>> = Arc::default();
        let mut results = client.subscribe("raw.told.*").await.expect("a subscription");
        let table = waiting.clone();
        tokio::spawn(async move {
            while let Some(result) = results.next().await {
                if let Some(sender) = table.lock().expect("the table").remove(result.subject.as_str()) {
                    let _ = sender.send(result.payload);
                }
            }
        });
        Self { context: jetstream::new(client), waiting }
    }
}

fn text(number: u64) -> String {
    format!("{number:0>100}")
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// What jobs took.
#[derive(Default)]
struct Round {
    /// Milliseconds, of each.
    times: Vec<f64>,
    jobs: u64,
    seconds: f64,
    /// Processor time of this process and of the servers, in microseconds, and the servers' messages.
    own: f64,
    servers: f64,
    messages: f64,
}

/// Runs jobs with so many in flight.
async fn round(servers: &Servers, engine: &impl Engine, in_flight: usize) -> Round {
    let (own, cpu) = (cpu_of(std::process::id()), servers.cpu());
    let messages = servers.messages().await;
    let begun = Instant::now();
    let tasks: Vec<_> = (0..in_flight)
        .map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let mut times = Vec::new();
                while begun.elapsed() < ROUND {
                    let start = Instant::now();
                    engine.job(NUMBER.fetch_add(1, Ordering::Relaxed)).await;
                    times.push(start.elapsed().as_secs_f64() * 1_000.0);
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.expect("a task"));
    }
    Round {
        jobs: times.len() as u64,
        times,
        seconds: begun.elapsed().as_secs_f64(),
        own: (cpu_of(std::process::id()) - own).as_secs_f64() * 1e6,
        servers: (servers.cpu() - cpu).as_secs_f64() * 1e6,
        messages: (servers.messages().await - messages) as f64,
    }
}

/// What is told of a round: jobs a second, the median time of one in milliseconds, and of each job the processor time of
/// this process and of the servers in microseconds, and the servers' messages, received and sent.
fn figures(round: Round) -> [f64; 5] {
    let jobs = round.jobs as f64;
    [jobs / round.seconds, median(round.times), round.own / jobs, round.servers / jobs, round.messages / jobs]
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

/// Runs so many jobs of one engine, 64 at a time, and says what each took: for a profiler.
pub(crate) async fn cost(engine: &str, jobs: u64) {
    let servers = Servers::start(1, "2m").await;
    let (own, cpu) = (cpu_of(std::process::id()), servers.cpu());
    match engine {
        "ours" => {
            let _worker = worker(&servers).await;
            many(&Ours(Jobs::new(servers.engine(JetStreamConfig::new()).await)), jobs).await;
        }
        "raw" => many(&Raw::start(&servers.url(), 1).await, jobs).await,
        _ => panic!("{engine} is no engine: ours or raw"),
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / jobs as f64;
    let (own, cpu) = (each(cpu_of(std::process::id()) - own), each(servers.cpu() - cpu));
    println!("{jobs} jobs: {own:.0} us of the program and {cpu:.0} us of the server for each");
}

async fn many(engine: &impl Engine, jobs: u64) {
    futures_util::stream::iter(0..jobs).for_each_concurrent(IN_FLIGHT, |number| engine.job(number)).await;
}

async fn worker(servers: &Servers) -> WorkerHandle {
    let registry = Registry::new();
    registry.register(Echo).expect("the operation");
    let jobs = Jobs::new(servers.engine(JetStreamConfig::new()).await);
    Worker::new(jobs, registry).with_max_running(IN_FLIGHT).start()
}

const FIGURES: [&str; 5] =
    ["jobs/s", "p50 ms", "CPU of the program, us a job", "CPU of the servers, us a job", "messages a job"];

/// Prints both, and their ratios.
pub(crate) async fn run(count: usize, sync: &str, rounds: usize) {
    let servers = Servers::start(count, sync).await;
    let _worker = worker(&servers).await;
    let engine = servers.engine(JetStreamConfig::new()).await;
    let (ours, raw) = (Ours(Jobs::new(engine)), Raw::start(&servers.url(), count).await);
    round(&servers, &ours, IN_FLIGHT).await;
    round(&servers, &raw, IN_FLIGHT).await;
    println!("{count} servers, sync_interval {sync}, medians of {rounds} rounds");
    println!("| in flight | | ours | raw | ratio |\n|--:|---|--:|--:|--:|");
    for in_flight in [IN_FLIGHT, 1] {
        let (mut our, mut other) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            our.push(figures(round(&servers, &ours, in_flight).await));
            other.push(figures(round(&servers, &raw, in_flight).await));
        }
        for (place, what) in FIGURES.iter().enumerate() {
            let of = |rounds: &[[f64; 5]]| median(rounds.iter().map(|round| round[place]).collect());
            let (our, other) = (of(&our), of(&other));
            println!("| {in_flight} | {what} | {our:.2} | {other:.2} | {:.2} |", our / other);
        }
    }
}
