//! The engine on NATS `JetStream`: one server, and a cluster of three. Each case has a prefix of its own.

use std::sync::atomic::{AtomicUsize, Ordering};

use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
use ops_runtime::durable::record::{Ended, Outcome, Stored};
use tokio::sync::OnceCell;

use crate::harness::{Harness, LEASE, MAX_SIZE, Set, attempts, eventually};
use crate::operations::{Waits, WaitsInput};
use crate::servers::Servers;

/// Jobs on so many servers, which all cases share.
pub(crate) struct JetStreamHarness<const SERVERS: usize> {
    prefix: String,
}

async fn servers(count: usize) -> &'static Servers {
    static ONE: OnceCell<Servers> = OnceCell::const_new();
    static THREE: OnceCell<Servers> = OnceCell::const_new();
    let servers = if count == 1 { &ONE } else { &THREE };
    servers.get_or_init(|| Servers::start(count, "2m")).await
}

/// Removes what the case has left: with all of them, the servers would have a thousand groups to keep.
impl<const SERVERS: usize> Drop for JetStreamHarness<SERVERS> {
    fn drop(&mut self) {
        let names = ["schedules", "queue-jobs", "queue-slow"].map(|name| format!("{}-{name}", self.prefix));
        // Not in the threads of the case, which end now.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let url = servers(SERVERS).await.url();
                let client = async_nats::connect(url.split(',').collect::<Vec<_>>()).await.unwrap();
                for name in names {
                    // Some cases use no queue, or one.
                    let _ = async_nats::jetstream::new(client.clone()).delete_stream(name).await;
                }
            });
        });
    }
}

impl<const SERVERS: usize> Harness for JetStreamHarness<SERVERS> {
    type Engine = JetStream;

    async fn start() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        servers(SERVERS).await;
        Self { prefix: format!("case{}", NEXT.fetch_add(1, Ordering::Relaxed)) }
    }

    async fn engine(&self) -> JetStream {
        let config = JetStreamConfig::new().with_prefix(&self.prefix).with_lease(LEASE).with_lanes(2);
        servers(SERVERS).await.engine(config.with_max_input(MAX_SIZE).with_max_result(MAX_SIZE)).await
    }
}

/// A worker that has heard nothing of a cancellation learns of it by its lease, and cancels the steps.
pub(crate) async fn cancelled_without_a_notice() {
    let set = Set::<JetStreamHarness<1>>::start().await;
    let worker = set.worker().await;
    let job = set.jobs.submit::<Waits>(WaitsInput { name: "a".into() }, attempts(1)).await.unwrap();
    eventually("its step runs", || set.probe.starts("a-gate") == 1).await;
    let Stored::Open { job: record, .. } = job.stored().await.unwrap() else { panic!("it is open") };
    let cancelled = Ended::new(&record, record.submitted, 0, Outcome::Cancelled);
    let client = async_nats::connect(servers(1).await.url()).await.unwrap();
    let subject = format!("{}.queue.{}.end.done", set.harness.prefix, job.id());
    let text = serde_json::to_vec(&cancelled).unwrap();
    async_nats::jetstream::new(client).publish(subject, text.into()).await.unwrap().await.unwrap();
    eventually("both handlers are dropped", || set.probe.alive() == 0).await;
    assert!(!job.cancel().await.unwrap());
    set.settled().await;
    worker.drain().await;
}
