//! The operations of a shop, as jobs, and their worker.

use std::path::PathBuf;
use std::time::Duration;

use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
use ops_runtime::durable::{Job, Jobs, RetryPolicy, SubmitOptions, Worker, WorkerHandle};
use ops_runtime::{CallError, Context, HttpClient, HttpConfig, Registry, operation};
use payments::{Amount, CreatePayment, PaymentRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

ops_runtime::include_operations!(pub mod payments = "payments");

/// What was done for an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fulfilled {
    /// The id of the payment.
    pub payment: String,
    /// The number of the parcel.
    pub parcel: String,
}

/// Takes the money, prints the label and mails the customer. It may run several times; each step takes effect once.
#[operation(namespace = "shop", kind = mutation, retry(attempts = 10, backoff = "100ms"))]
pub async fn fulfil(context: &Context, order: u64, customer: String, price: String) -> Result<Fulfilled, CallError> {
    let request = PaymentRequest::new(format!("Order {order}"), Amount::new("EUR", price));
    let payment = context.once::<CreatePayment>("charge", request).await?.data.id;
    let parcel = context.once::<Ship>("ship", ShipInput { order, customer: customer.clone() }).await?.data;
    let text = format!("Thank you for {payment}. Your order {order} is on its way as {parcel}.");
    context.once::<Mail>("mail", MailInput { to: customer, text }).await?;
    Ok(Fulfilled { payment, parcel })
}

/// Prints the label of a parcel.
#[operation(namespace = "shop", kind = mutation, retry(attempts = 10, backoff = "100ms"), state(Folder))]
pub async fn ship(context: &Context, order: u64, customer: String) -> Result<String, CallError> {
    let parcel = format!("parcel-{order}");
    context.state::<Folder>()?.write("labels", context, &format!("{parcel} to {customer}"))?;
    Ok(parcel)
}

/// Puts a mail into the outbox.
#[operation(namespace = "shop", kind = mutation, retry(attempts = 10, backoff = "100ms"), state(Folder))]
pub async fn mail(context: &Context, to: String, text: String) -> Result<(), CallError> {
    context.state::<Folder>()?.write("outbox", context, &format!("To: {to}\n\n{text}"))
}

/// The folder of labels and mails. Each is a file named by the key of its job, so a repeated attempt replaces it.
pub struct Folder(pub PathBuf);

impl Folder {
    fn write(&self, kind: &str, context: &Context, text: &str) -> Result<(), CallError> {
        let key = context.idempotency_key().ok_or_else(|| CallError::execution("this runs as a job only"))?;
        let write = || {
            let folder = self.0.join(kind);
            std::fs::create_dir_all(&folder)?;
            // A file that is not complete yet has another name.
            let draft = folder.join(format!(".{key}.{}", std::process::id()));
            std::fs::write(&draft, text)?;
            std::fs::rename(&draft, folder.join(key))
        };
        write().map_err(|error: std::io::Error| CallError::execution(format!("{kind} can't be written: {error}")))
    }

    /// The complete files of a kind.
    pub fn read(&self, kind: &str) -> Vec<String> {
        let Ok(files) = std::fs::read_dir(self.0.join(kind)) else { return Vec::new() };
        let complete = files.flatten().filter(|file| !file.file_name().to_string_lossy().starts_with('.'));
        complete.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect()
    }
}

/// The jobs on a NATS server. A worker that is silent for a second loses its jobs to others.
///
/// Operations generated from a document have no policy of their own, so the payment's is set here.
pub async fn jobs(nats: &str) -> Result<Jobs, CallError> {
    let config = JetStreamConfig::new().with_replicas(1).with_lease(Duration::from_secs(1));
    let patient = RetryPolicy::new(10).with_backoff(Duration::from_millis(100), Duration::from_secs(60));
    Ok(Jobs::new(JetStream::connect(nats, config).await?).with_retry("payments.*", patient))
}

/// Submits an order. A repeated submit gives the same job.
pub async fn submit(jobs: &Jobs, order: u64) -> Result<Job<Fulfil>, CallError> {
    let input = FulfilInput { order, customer: "ann@example.com".into(), price: "10.00".into() };
    jobs.submit::<Fulfil>(input, SubmitOptions::new().with_key(format!("order-{order}"))).await
}

/// Starts a worker for the jobs of a NATS server.
pub async fn work(nats: &str, bank: &str, folder: PathBuf) -> Result<WorkerHandle, Box<dyn std::error::Error>> {
    let registry = Registry::builder().with_state(Folder(folder)).build();
    registry.register(Fulfil)?;
    registry.register(Ship)?;
    registry.register(Mail)?;
    let bank = HttpClient::new(HttpConfig::new().with_base_url(bank))?;
    registry.register_all(bank.bind(payments::operations())?)?;
    Ok(Worker::new(jobs(nats).await?, registry).start())
}
