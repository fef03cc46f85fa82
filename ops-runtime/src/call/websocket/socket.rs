//! The sockets of the two libraries as one: axum's of the hub, tungstenite's of the client.

use std::pin::Pin;
use std::task::{Context as Task, Poll};

use axum::extract::ws as served;
use bytes::Bytes;
use futures_core::Stream;
use futures_util::Sink;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite as ts;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// What came from a peer.
pub(super) enum Incoming<T> {
    Text(T),
    Binary(Bytes),
    /// A ping or a pong.
    Heartbeat,
    Close,
}

/// What goes to a peer.
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
    /// It ended as it should.
    pub(super) fn normal(why: &str) -> Self {
        Self { why: why.to_owned(), code: 1000 }
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

impl From<axum::Error> for End {
    fn from(error: axum::Error) -> Self {
        match error.into_inner().downcast::<ts::Error>() {
            Ok(error) => Self::from(*error),
            Err(error) => Self { why: error.to_string(), code: 1002 },
        }
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

/// axum's text, which is no `AsRef<str>`.
pub(super) struct ServedText(served::Utf8Bytes);

impl AsRef<str> for ServedText {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Socket for served::WebSocket {
    type Text = ServedText;

    fn poll_receive(&mut self, task: &mut Task<'_>) -> Poll<Option<Result<Incoming<ServedText>, End>>> {
        Pin::new(self).poll_next(task).map(|message| {
            Some(match message? {
                Ok(served::Message::Text(text)) => Ok(Incoming::Text(ServedText(text))),
                Ok(served::Message::Binary(bytes)) => Ok(Incoming::Binary(bytes)),
                Ok(served::Message::Ping(_) | served::Message::Pong(_)) => Ok(Incoming::Heartbeat),
                Ok(served::Message::Close(_)) => Ok(Incoming::Close),
                Err(error) => Err(error.into()),
            })
        })
    }

    fn poll_ready(&mut self, task: &mut Task<'_>) -> Poll<Result<(), End>> {
        Sink::poll_ready(Pin::new(self), task).map_err(End::from)
    }

    fn send(&mut self, message: Outgoing) -> Result<(), End> {
        let message = match message {
            Outgoing::Text(text) => served::Message::Text(text.into()),
            Outgoing::Ping => served::Message::Ping(Bytes::new()),
            Outgoing::Close(code) => {
                served::Message::Close(Some(served::CloseFrame { code, reason: served::Utf8Bytes::from_static("") }))
            }
        };
        Pin::new(self).start_send(message).map_err(End::from)
    }

    fn poll_flush(&mut self, task: &mut Task<'_>) -> Poll<Result<(), End>> {
        Sink::poll_flush(Pin::new(self), task).map_err(End::from)
    }
}

impl Socket for WebSocketStream<MaybeTlsStream<TcpStream>> {
    type Text = ts::Utf8Bytes;

    fn poll_receive(&mut self, task: &mut Task<'_>) -> Poll<Option<Result<Incoming<ts::Utf8Bytes>, End>>> {
        Pin::new(self).poll_next(task).map(|message| {
            Some(match message? {
                Ok(ts::Message::Text(text)) => Ok(Incoming::Text(text)),
                Ok(ts::Message::Binary(bytes)) => Ok(Incoming::Binary(bytes)),
                Ok(ts::Message::Ping(_) | ts::Message::Pong(_) | ts::Message::Frame(_)) => Ok(Incoming::Heartbeat),
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
