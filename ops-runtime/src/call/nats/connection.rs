//! The connection to the server: its outgoing messages, in order, and its state.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::{Client, Event, ServerError, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::NatsConfig;
use super::subject;
use crate::BoxFuture;
use crate::CallError;
use crate::call::broker::{Outbox, Pace, Queued, until_up};
use crate::call::trouble::Trouble;
use crate::call::{Frame, TransportId, Unsent};
use crate::model::lock::lock;
use crate::model::random::reconnect;
use crate::nats::servers;

/// Limit of unread messages of one subscription; further messages are lost.
const WAITING: usize = 65_536;

/// An outgoing message.
struct Message {
    subject: String,
    reply: Option<String>,
    payload: Bytes,
    /// Of the request of a call only.
    request: Option<Queued>,
}

impl Message {
    fn bytes(&self) -> usize {
        self.subject.len() + self.payload.len() + self.reply.as_ref().map_or(0, String::len)
    }
}

/// A connection.
pub(super) struct Connection {
    pub(super) id: TransportId,
    pub(super) client: Client,
    pub(super) prefix: String,
    pub(super) pace: Pace,
    pub(super) max_announced: usize,
    pub(super) up: watch::Receiver<bool>,
    /// Why `up` is false.
    trouble: Arc<Trouble>,
    /// Counts the connections that were lost, so that users see that one was.
    losses: Arc<AtomicU64>,
    outbox: Arc<Outbox<Message>>,
    _writer: AbortOnDropHandle<()>,
}

impl Connection {
    pub(super) async fn connect(url: &str, config: &NatsConfig) -> Result<Self, CallError> {
        let pace = config.pace();
        let (is_up, up) = watch::channel(true);
        let losses = Arc::new(AtomicU64::new(0));
        let trouble = Arc::new(Trouble::default());
        let (counting, noting, refusals) = (losses.clone(), trouble.clone(), Arc::new(Refusals::default()));
        let options = config
            .access
            .options(url)?
            .connection_timeout(pace.connect_timeout)
            // A server that is silent for that long counts as lost.
            .ping_interval((pace.lost_after / 2).max(Duration::from_millis(100)))
            .subscription_capacity(WAITING)
            .reconnect_delay_callback(reconnect)
            .event_callback(move |event| {
                let (is_up, counting) = (is_up.clone(), counting.clone());
                let (trouble, refusals) = (noting.clone(), refusals.clone());
                async move {
                    match event {
                        Event::Connected => {
                            trouble.clear();
                            is_up.send_replace(true);
                        }
                        Event::Disconnected | Event::Closed => {
                            counting.fetch_add(1, Ordering::Relaxed);
                            is_up.send_replace(false);
                        }
                        Event::SlowConsumer(_) => tracing::warn!("messages are lost because they are read too slowly"),
                        Event::ServerError(error) => refusals.tell(&error),
                        // No server can be reached, or it refuses the connection.
                        Event::ClientError(error) => {
                            let error = CallError::execution(format!("the NATS server can't be used: {error}"));
                            trouble.note("there is no connection to the broker", error);
                        }
                        _ => {}
                    }
                }
            });
        let client = options.connect(servers(url)?).await.map_err(|error| crate::nats::refused(url, &error))?;
        let outbox = Outbox::new();
        let writer = AbortOnDropHandle::new(tokio::spawn(write(client.clone(), outbox.clone())));
        let (prefix, max_announced) = (config.prefix.clone(), config.max_announced);
        let id = TransportId::next();
        Ok(Self { id, client, prefix, pace, max_announced, up, trouble, losses, outbox, _writer: writer })
    }

    /// How often the connection was lost. Counted before `up` changes.
    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }

    /// Waits for a connection, for as long as a call may wait for one.
    pub(super) fn until_up(&self) -> BoxFuture<'static, Result<(), CallError>> {
        until_up(self.up.clone(), self.pace.connect_timeout, self.trouble.clone())
    }

    /// The subject on which a worker listens to a caller. It contains the connection, so that the caller notices a
    /// reconnect.
    pub(super) fn control(&self, worker: &str, number: u64, caller: &str) -> String {
        let connection = self.losses();
        subject::control(&self.prefix, &format!("{worker}.{connection}"), number, caller)
    }

    /// Queues a message.
    pub(super) fn publish(&self, subject: String, reply: Option<String>, payload: impl Into<Bytes>) {
        self.push(Message { subject, reply, payload: payload.into(), request: None });
    }

    fn push(&self, message: Message) {
        let bytes = message.bytes();
        self.outbox.push(message, bytes);
    }

    /// Queues a frame, unless it is too large for the server.
    pub(super) fn send(&self, subject: String, reply: Option<String>, frame: &Frame) -> Result<(), Unsent> {
        let text = self.encode(frame)?;
        self.publish(subject, reply, text);
        Ok(())
    }

    /// Queues the request of a call, unless it is too large for the server.
    pub(super) fn request(
        &self,
        subject: String,
        reply: String,
        frame: &Frame,
        request: Option<Queued>,
    ) -> Result<(), Unsent> {
        let payload = self.encode(frame)?.into();
        self.push(Message { subject, reply: Some(reply), payload, request });
        Ok(())
    }

    fn encode(&self, frame: &Frame) -> Result<String, Unsent> {
        frame.encode_within(self.client.max_payload()).map_err(Unsent::Refused)
    }

    /// True if there is no room for another abort of an unknown request.
    pub(super) fn is_overfull(&self) -> bool {
        self.outbox.is_overfull()
    }

    /// How many bytes wait to be sent.
    pub(super) fn waiting(&self) -> usize {
        self.outbox.bytes()
    }

    pub(super) fn ready(&self) -> Option<BoxFuture<'static, ()>> {
        self.outbox.ready()
    }

    /// Waits until the server has received all that was queued.
    pub(super) async fn delivered(&self) {
        self.outbox.flushed().await;
        // When the connection is closed, what was written may still be lost. An echo shows that everything before it
        // has arrived.
        self.round_trip().await;
    }

    /// Sends a message to itself and waits for it: all that the server sent before has arrived then.
    pub(super) async fn round_trip(&self) {
        let inbox = self.client.new_inbox();
        if let Ok(mut echo) = self.client.subscribe(inbox.clone()).await
            && self.client.publish(inbox, Bytes::new()).await.is_ok()
        {
            echo.next().await;
        }
    }

    pub(super) async fn subscribe(&self, subject: String) -> Result<Subscriber, CallError> {
        self.client.subscribe(subject).await.map_err(|error| refused(&error))
    }

    pub(super) async fn subscribe_as_one(&self, subject: String) -> Result<Subscriber, CallError> {
        self.client.queue_subscribe(subject, "workers".to_owned()).await.map_err(|error| refused(&error))
    }
}

/// What the server has refused, such as a subject that the user's permissions do not allow.
///
/// The client returns no error for it: a message that may not be published is lost, and a subscription that is not allowed
/// stays empty. So the log says it.
#[derive(Default)]
struct Refusals(Mutex<HashSet<String>>);

impl Refusals {
    /// Logs a refusal, once: heartbeats would repeat it for ever.
    fn tell(&self, error: &ServerError) {
        /// Limit of those that are logged, since each may name another subject.
        const MOST: usize = 100;
        let mut told = lock(&self.0);
        if told.len() < MOST && told.insert(error.to_string()) {
            drop(told);
            tracing::warn!(%error, "the NATS server refuses something; check the permissions of the user");
        }
    }
}

/// Passes queued messages to the client, and flushes it so that the queue knows how many bytes are in flight.
async fn write(client: Client, outbox: Arc<Outbox<Message>>) {
    /// How many bytes the client may buffer.
    const UNFLUSHED: usize = 256 << 10;
    let (mut batch, mut held) = (Vec::new(), 0);
    loop {
        outbox.take(&mut batch).await;
        let mut bytes = 0;
        for message in batch.drain(..) {
            bytes += message.bytes();
            let Message { subject, reply, payload, request } = message;
            if request.as_ref().is_some_and(|request| !request.is_wanted()) {
                continue;
            }
            let payload = request.and_then(|request| request.renewed(&payload)).map_or(payload, Bytes::from);
            let published = match reply {
                Some(reply) => client.publish_with_reply(subject, reply, payload).await,
                None => client.publish(subject, payload).await,
            };
            // The requests in it are found to be lost by their callers.
            if let Err(error) = published {
                tracing::warn!(%error, "a message can't be published");
            }
        }
        held += bytes;
        if held >= UNFLUSHED {
            let _ = client.flush().await;
            held = 0;
        }
        outbox.sent(bytes);
    }
}

fn refused(error: &dyn std::error::Error) -> CallError {
    CallError::execution(format!("the NATS server can't be used: {error}"))
}
