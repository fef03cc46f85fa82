//! Chapter 7: durable jobs. `jobs` keeps them in this process; `jobs nats://127.0.0.1:4222` on a NATS server.

use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
use ops_runtime::durable::{Jobs, SubmitOptions, Worker};
use tutorial::{Charge, Ship, ShipInput, bank, registry};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let jobs = match std::env::args().nth(1) {
        Some(url) => Jobs::new(JetStream::connect(&url, JetStreamConfig::new().with_replicas(1)).await?),
        None => Jobs::in_memory(),
    };
    let registry = registry(&bank::start().await?)?;
    registry.register(Charge)?;
    registry.register(Ship)?;
    let worker = Worker::new(jobs.clone(), registry).start();

    // A second submit with the same key returns the same job.
    let input = || ShipInput { customer: "ann".into(), kilograms: 2.0 };
    let first = jobs.submit::<Ship>(input(), SubmitOptions::new().with_key("parcel-12")).await?;
    let again = jobs.submit::<Ship>(input(), SubmitOptions::new().with_key("parcel-12")).await?;
    println!("one job: {}", first.id() == again.id());
    println!("{}", first.result().await?.data);
    worker.stop().await;
    Ok(())
}
