//! Durable calls beside the raw engine: the same servers, the same number in flight, rounds in turn, medians.
//!
//! A job of the raw engine: publish with deduplication, pull, put the result, acknowledge. When the result is stored, its
//! submitter is told by a core message, to which it has one subscription for all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, RetentionPolicy};
use async_nats::jetstream::{self, Context};
use futures_util::StreamExt;
use ops_runtime::durable::jetstream::JetStreamConfig;
use ops_runtime::durable::{Jobs, SubmitOptions, Worker};
use ops_runtime::{Registry, operation};
use tokio::sync::{Semaphore, oneshot};

use crate::servers::Servers;

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
    waiting: Arc<Mutex<HashMap<String, oneshot::Sender<()>>>>,
}

impl Engine for Raw {
    async fn job(&self, number: u64) {
        let (sender, result) = oneshot::channel();
        self.waiting.lock().expect("the table").insert(format!("raw.told.{number}"), sender);
        let message = PublishMessage::build().payload(text(number).into()).message_id(number.to_string());
        let sent = self.context.send_publish(format!("raw.job.{number}"), message).await.expect("a connection");
        sent.await.expect("an acknowledgement");
        result.await.expect("a result");
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
        let results =
            Config { max_age: Duration::from_secs(60), ..stream("RES", "raw.result.*", RetentionPolicy::Limits) };
        worker.create_stream(results).await.expect("a stream");
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
                let worker = worker.clone();
                tokio::spawn(async move {
                    let _place = place;
                    let subject = message.subject.replace("job", "result");
                    let put = worker.publish(subject, message.payload.clone()).await.expect("a connection");
                    put.await.expect("an acknowledgement");
                    message.ack().await.expect("a connection");
                    let told = message.subject.replace("job", "told");
                    worker.client().publish(told, message.payload.clone()).await.expect("a connection");
                });
            }
        });
        let waiting: Arc<Mutex<HashMap<String, oneshot::Sender<()>>>> = Arc::default();
        let mut results = client.subscribe("raw.told.*").await.expect("a subscription");
        let table = waiting.clone();
        tokio::spawn(async move {
            while let Some(result) = results.next().await {
                if let Some(sender) = table.lock().expect("the table").remove(result.subject.as_str()) {
                    let _ = sender.send(());
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

/// Jobs a second with so many in flight, and the median time of one in milliseconds.
async fn round(engine: &impl Engine, in_flight: usize) -> (f64, f64) {
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
    (times.len() as f64 / begun.elapsed().as_secs_f64(), median(times))
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

/// Prints both, and their ratios.
pub(crate) async fn run(count: usize, sync: &str, rounds: usize) {
    let servers = Servers::start(count, sync).await;
    let registry = Registry::new();
    registry.register(Echo).expect("the operation");
    let engine = servers.engine(JetStreamConfig::new()).await;
    let worker = Worker::new(Jobs::new(servers.engine(JetStreamConfig::new()).await), registry);
    let _worker = worker.with_max_running(IN_FLIGHT).start();
    let (ours, raw) = (Ours(Jobs::new(engine)), Raw::start(&servers.url(), count).await);
    let mut numbers = [const { Vec::new() }; 6];
    round(&ours, IN_FLIGHT).await;
    round(&raw, IN_FLIGHT).await;
    for _ in 0..rounds {
        for (place, value) in [(0, round(&ours, IN_FLIGHT).await), (1, round(&raw, IN_FLIGHT).await)] {
            numbers[place].push(value.0);
            numbers[place + 2].push(value.1);
        }
        numbers[4].push(round(&ours, 1).await.1);
        numbers[5].push(round(&raw, 1).await.1);
    }
    let [ours, raw, our_p50, raw_p50, our_one, raw_one] = numbers.map(median);
    println!("{count} servers, sync_interval {sync}, medians of {rounds} rounds");
    println!("| | ours | raw | ratio |\n|---|---|---|---|");
    println!("| jobs/s, {IN_FLIGHT} in flight | {ours:.0} | {raw:.0} | {:.2} |", ours / raw);
    println!("| p50 ms, {IN_FLIGHT} in flight | {our_p50:.2} | {raw_p50:.2} | {:.2} |", our_p50 / raw_p50);
    println!("| p50 ms, one in flight | {our_one:.2} | {raw_one:.2} | {:.2} |", our_one / raw_one);
}
