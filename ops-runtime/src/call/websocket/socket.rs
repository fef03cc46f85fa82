//! The socket of either end: text messages, and the reason for the end.

use std::pin::Pin;
use std::task::{Context as Task, Poll};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::Sink;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite as ts;

/// Number of bytes of a ping or a pong before its payload: two, and the mask of a client.
const CONTROL: usize = 6;

/// A message from a peer.
pub(super) enum Incoming<T> {
    Text(T),
    Binary(Bytes),
    /// A ping or a pong, with the bytes of its frame. It may come between two parts of a message.
    Heartbeat(usize),
    Close,
}

/// A message to a peer.
pub(super) enum Outgoing {
    Text(String),
    Ping,
    Close(u16),
}

/// Why a connection has ended, and the code to close it with.
#[derive(Debug)]
pub(super) struct End {
    pub(super) why: String,
    pub(super) code: u16,
}

impl End {
    /// A normal end.
    pub(super) fn normal(why: &str) -> Self {
        Self { why: why.to_owned(), code: 1000 }
    }

    /// The peer has sent too many malformed messages.
    pub(super) fn hopeless() -> Self {
        Self { why: "the peer sent too many messages that can't be read".to_owned(), code: 1008 }
    }
}

impl From<ts::Error> for End {
    fn from(error: ts::Error) -> Self {
        let code = match error {
            ts::Error::Capacity(_) => 1009,
            ts::Error::Utf8(_) => 1007,
            _ => 1002,
        };
        Self { why: error.to_string(), code }
    }
}

/// A WebSocket.
pub(super) trait Socket: Send {
    type Text: AsRef<str>;

    fn poll_receive(&mut self, task: &mut Task<'_>) -> Poll<Option<Result<Incoming<Self::Text>, End>>>;
    fn poll_ready(&mut self, task: &mut Task<'_>) -> Poll<Result<(), End>>;
    fn send(&mut self, message: Outgoing) -> Result<(), End>;
    fn poll_flush(&mut self, task: &mut Task<'_>) -> Poll<Result<(), End>>;
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Socket for WebSocketStream<S> {
    type Text = ts::Utf8Bytes;

    fn poll_receive(&mut self, task: &mut Task<'_>) -> Poll<Option<Result<Incoming<ts::Utf8Bytes>, End>>> {
        Pin::new(self).poll_next(task).map(|message| {
            Some(match message? {
                Ok(ts::Message::Text(text)) => Ok(Incoming::Text(text)),
                Ok(ts::Message::Binary(bytes)) => Ok(Incoming::Binary(bytes)),
                Ok(ts::Message::Ping(said) | ts::Message::Pong(said)) => Ok(Incoming::Heartbeat(CONTROL + said.len())),
                Ok(ts::Message::Frame(_)) => Ok(Incoming::Heartbeat(0)),
                Ok(ts::Message::Close(_)) => Ok(Incoming::Close),
                Err(error) => Err(error.into()),
            })
        })
    }

    fn poll_ready(&mut self, task: &mut Task<'_>) -> Poll<Result<(), End>> {
        Sink::poll_ready(Pin::new(self), task).map_err(End::from)
    }

    fn send(&mut self, message: Outgoing) -> Result<(), End> {
        let message = match message {
            Outgoing::Text(text) => ts::Message::Text(text.into()),
            Outgoing::Ping => ts::Message::Ping(Bytes::new()),
            Outgoing::Close(code) => ts::Message::Close(Some(ts::protocol::CloseFrame {
                code: code.into(),
                reason: ts::Utf8Bytes::from_static(""),
            })),
        };
        Pin::new(self).start_send(message).map_err(End::from)
    }

    fn poll_flush(&mut self, task: &mut Task<'_>) -> Poll<Result<(), End>> {
        Sink::poll_flush(Pin::new(self), task).map_err(End::from)
    }
}
