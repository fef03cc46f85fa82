//! Connections to the server, with reconnecting, and the one task that writes.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, RedisWrite, ServerErrorKind, Value};
use tokio::sync::Mutex;

use super::keys::{FRAME, FROM};
use super::server::{Made, Server};
use crate::CallError;
use crate::call::broker::{Outbox, Queued};
use crate::call::{CallEvent, Frame, RequestId};
use crate::model::random::reconnect;

/// How long a blocking read waits.
pub(super) const BLOCK: Duration = Duration::from_millis(500);

/// A connection, made when it is needed. A clone is the same.
#[derive(Clone)]
pub(super) struct Connection(Arc<Inner>);

struct Inner {
    server: Server,
    timeout: Duration,
    connection: Mutex<Option<Made>>,
}

impl Connection {
    /// A connection that is closed when a response takes longer than `timeout`, beyond the time that a read blocks.
    pub(super) fn new(server: &Server, timeout: Duration) -> Self {
        Self(Arc::new(Inner { server: server.clone(), timeout, connection: Mutex::default() }))
    }

    async fn connection(&self) -> RedisResult<Made> {
        let mut connection = self.0.connection.lock().await;
        if let Some(connection) = &*connection {
            return Ok(connection.clone());
        }
        let made = self.0.server.connect(self.0.timeout, self.0.timeout + BLOCK).await?;
        Ok(connection.insert(made).clone())
    }

    /// Runs commands, once; they may have been run even if that fails.
    pub(super) async fn run<T: FromRedisValue>(&self, commands: &Pipeline) -> RedisResult<T> {
        let result = match self.connection().await {
            Ok(mut made) => commands.query_async(&mut made.connection).await,
            Err(error) => Err(error),
        };
        self.check(&result).await;
        result
    }

    /// Runs commands, once, each with a result of its own: a command that the server refuses hides no other.
    pub(super) async fn each<T: FromRedisValue>(&self, commands: &mut Pipeline) -> RedisResult<Vec<RedisResult<T>>> {
        let results = self.run::<Vec<RedisResult<T>>>(commands.ignore_errors()).await?;
        if results.iter().any(|result| result.as_ref().is_err_and(is_lost)) {
            self.lose().await;
        }
        Ok(results)
    }

    /// Runs one command, once.
    pub(super) async fn command<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        let result = match self.connection().await {
            Ok(mut made) => command.query_async(&mut made.connection).await,
            Err(error) => Err(error),
        };
        self.check(&result).await;
        result
    }

    async fn check<T>(&self, result: &RedisResult<T>) {
        if result.as_ref().is_err_and(is_lost) {
            self.lose().await;
        }
    }

    /// Drops the connection, so that another is made.
    async fn lose(&self) {
        self.0.connection.lock().await.take();
    }
}

/// True if an error is about the connection, not about a command.
///
/// A connection to a server that has become a replica is lost, too. A failover may leave it open, and the server refuses
/// every write. A new connection may reach the new primary.
pub(super) fn is_lost(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Server(kind) => kind == ServerErrorKind::ReadOnly,
        ErrorKind::Extension | ErrorKind::UnexpectedReturnType | ErrorKind::Parse => false,
        _ => true,
    }
}

/// True if the server cannot respond now, but may be able to later.
pub(super) fn may_pass(error: &RedisError) -> bool {
    let states = ["LOADING", "BUSY", "TRYAGAIN", "MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS", "MISCONF"];
    is_lost(error) || error.code().is_some_and(|code| states.contains(&code))
}

/// True if a key has another type: it is another program's.
pub(super) fn is_foreign(error: &RedisError) -> bool {
    error.code() == Some("WRONGTYPE")
}

pub(super) fn refused(error: &RedisError) -> CallError {
    if is_foreign(error) {
        let message = "the Redis server can't be used: a key with our prefix is of another type, so that it is not ours; \
                       choose another prefix (`RedisConfig::with_prefix`) or remove it";
        return CallError::execution(message);
    }
    // Its detail may contain what was sent, unless it is about a connection that could not be made.
    let why = match (error.category(), error.code()) {
        (category, None) if error.is_io_error() => error.detail().unwrap_or(category).to_owned(),
        (category, None) => category.to_owned(),
        ("", Some(code)) => code.to_owned(),
        (category, Some(code)) => format!("{category} ({code})"),
    };
    CallError::execution(format!("the Redis server can't be used: {why}"))
}

/// A message to be written.
pub(super) enum Message {
    /// A request, for the workers of the operation. Tried once, if its caller still waits for the response.
    Request { key: String, text: String, request: Queued },
    /// A frame for a caller or a worker, retried until it arrives; with the subscription that it gives credit to, if
    /// any, and how often the server has refused it.
    Frame { key: String, text: String, to: Arc<str>, number: u64, credit: Option<RequestId>, refused: u32 },
    /// Withdraws a request that no worker need start any more. Retried until the server has done it, unless the server
    /// refuses it for another reason than that it has become a replica.
    Withdraw { key: String, entry: String },
}

impl Message {
    fn bytes(&self) -> usize {
        match self {
            Self::Request { key, text, .. } | Self::Frame { key, text, .. } => key.len() + text.len(),
            Self::Withdraw { key, entry } => key.len() + entry.len(),
        }
    }

    /// True if it is a request that its caller has given up meanwhile.
    fn is_over(&self) -> bool {
        matches!(self, Self::Request { request, .. } if !request.is_wanted())
    }
}

/// The outcome of writing a message.
pub(super) enum Told {
    /// It is in the stream, with this entry id.
    Stored(String),
    /// There is no such stream, so there is no reader.
    Nobody,
    /// The server refuses it.
    Refused(CallError),
    /// It may be there or not.
    Lost,
}

impl Told {
    fn by(answer: RedisResult<Value>) -> Self {
        match answer {
            Ok(Value::BulkString(entry)) => String::from_utf8(entry).map_or(Self::Lost, Self::Stored),
            Ok(_) => Self::Nobody,
            Err(error) => {
                tracing::warn!(error = error.category(), code = error.code(), "the server refuses a message");
                Self::Refused(refused(&error))
            }
        }
    }
}

/// The request of a refused frame, if its caller can be sent an error in its place.
pub(super) fn unanswered(text: &str) -> Option<RequestId> {
    /// Limit of the bytes of that error; a larger one is not replaced by another error.
    const SHORT: usize = 16 << 10;
    match Frame::decode(text) {
        Ok(Some(Frame::Event(CallEvent::Error { request_id, .. }))) if text.len() > SHORT => Some(request_id),
        Ok(Some(Frame::Event(
            CallEvent::Responded { request_id, .. }
            | CallEvent::ItemError { request_id, .. }
            | CallEvent::Completed { request_id },
        ))) => Some(request_id),
        _ => None,
    }
}

/// How often a refused error is retried, and after how long at first: a server whose memory is full has more in a
/// moment, since the response that was too large is gone.
const TRIES: u32 = 5;
const AGAIN: Duration = Duration::from_millis(250);

/// Queues a refused message again after a while, if it is an error that its caller waits for.
pub(super) fn push_later(outbox: &Arc<Outbox<Message>>, mut message: Message) {
    let Message::Frame { text, refused, .. } = &mut message else { return };
    let tries = *refused;
    if tries >= TRIES || !matches!(Frame::decode(text), Ok(Some(Frame::Event(CallEvent::Error { .. })))) {
        return;
    }
    *refused += 1;
    let outbox = outbox.clone();
    tokio::spawn(async move {
        tokio::time::sleep(AGAIN * 2_u32.pow(tries)).await;
        push(&outbox, message);
    });
}

/// Queues a message.
pub(super) fn push(outbox: &Outbox<Message>, message: Message) {
    let bytes = message.bytes();
    outbox.push(message, bytes);
}

/// Approximate number of bytes written at a time, so that a write ends within the connection's timeout even if the
/// network is slow.
const PART: usize = 1 << 20;

/// The smallest such number, after timeouts.
const LEAST: usize = 4 << 10;

/// Writes what is queued: all of it at once, or in parts.
pub(super) async fn write(
    line: Connection,
    outbox: Arc<Outbox<Message>>,
    from: Arc<str>,
    max_waiting: usize,
    told: impl Fn(Message, Told),
) {
    let (mut taken, mut batch, mut numbers) = (Vec::new(), Vec::new(), 0_u64..);
    let mut most = PART;
    loop {
        outbox.take(&mut taken).await;
        batch.extend(numbers.by_ref().zip(taken.drain(..)));
        let mut attempts = 0;
        // A request may have arrived, and would be started twice. Repeated frames are recognised by their numbers, and to
        // withdraw a request twice does no harm.
        let is_request = |(_, message): &(u64, Message)| matches!(message, Message::Request { .. });
        while !batch.is_empty() {
            let (count, bytes) = part(&batch, most);
            // A server that stands still gives callers the time to give their requests up.
            let over = batch.extract_if(..count, |(_, message)| message.is_over());
            let spared: Vec<usize> = over.map(|(_, message)| message.bytes()).collect();
            if !spared.is_empty() {
                outbox.sent(spared.iter().sum());
                continue;
            }
            let mut pipeline = Pipeline::with_capacity(count);
            for (number, message) in batch.iter().take(count) {
                add(&mut pipeline, message, *number, &from, max_waiting);
            }
            match line.each::<Value>(&mut pipeline).await {
                Ok(answers) => {
                    most = most.saturating_mul(2).min(PART);
                    let (mut again, mut left) = (Vec::new(), 0);
                    for (message, answer) in batch.drain(..count).zip(answers) {
                        // The next connection may reach the new primary.
                        if answer.as_ref().is_err_and(is_lost) && !is_request(&message) {
                            left += message.1.bytes();
                            again.push(message);
                        } else {
                            told(message.1, Told::by(answer));
                        }
                    }
                    outbox.sent(bytes - left);
                    outbox.reached(again.is_empty());
                    if again.is_empty() {
                        attempts = 0;
                    } else {
                        again.append(&mut batch);
                        batch = again;
                        tokio::time::sleep(reconnect(attempts)).await;
                        attempts += 1;
                    }
                }
                Err(error) => {
                    tracing::debug!(error = error.category(), "messages can't be written now");
                    most = (most.min(bytes) / 2).max(LEAST);
                    outbox.reached(false);
                    let lost: Vec<_> = batch.extract_if(..count, |message| is_request(message)).collect();
                    outbox.sent(lost.iter().map(|(_, message)| message.bytes()).sum());
                    lost.into_iter().for_each(|(_, message)| told(message, Told::Lost));
                    tokio::time::sleep(reconnect(attempts)).await;
                    attempts += 1;
                }
            }
        }
    }
}

/// How many of the messages are written at once, and their bytes: up to `most` bytes, or one message.
fn part(batch: &[(u64, Message)], most: usize) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0_usize);
    for (_, message) in batch {
        let more = bytes + message.bytes();
        if count > 0 && more > most {
            break;
        }
        (count, bytes) = (count + 1, more);
    }
    (count, bytes)
}

fn add(pipeline: &mut Pipeline, message: &Message, number: u64, from: &str, max_waiting: usize) {
    // Allocated at once: a growing command would be copied again and again.
    let mut command = Cmd::with_capacity(12, message.bytes() + from.len() + 128);
    // A stream that does not exist has no reader, and would never be removed.
    match message {
        Message::Request { key, text, request } => {
            let renewed = request.renewed(text.as_bytes());
            command.arg("XADD").arg(key).arg("NOMKSTREAM").arg("MAXLEN").arg("~").arg(max_waiting);
            command.arg("*").arg(FRAME).arg(renewed.as_deref().unwrap_or(text)).arg(FROM).arg(from);
        }
        Message::Frame { key, text, number: of_request, .. } => {
            command.arg("XADD").arg(key).arg("NOMKSTREAM").arg("*").arg(FRAME).arg(text).arg(FROM);
            command.write_arg_fmt(format_args!("{from} {number} {of_request}"));
        }
        Message::Withdraw { key, entry } => drop(command.arg("XDEL").arg(key).arg(entry)),
    }
    pipeline.add_command(command);
}
