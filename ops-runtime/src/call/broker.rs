//! What the transports over a broker share.
//!
//! Between a caller and a worker is a broker that knows neither, so each looks after itself. Workers say from time to time
//! what they run (`link.running`), to each caller; a caller fails what nobody names for too long ([`Liveness`]), whatever may
//! have been lost: the request, its worker or the answer. What a worker names and nobody waits for, is aborted. So no
//! single message has to arrive, and nothing is kept about a call that is answered at once.

// Each transport uses its part.
#![cfg_attr(not(all(feature = "nats", feature = "redis")), allow(dead_code))]

mod callers;
mod liveness;
mod outbox;
mod workers;

use std::sync::Arc;
use std::time::Duration;

pub(super) use callers::{Callers, Post};
pub(super) use liveness::Liveness;
pub(super) use outbox::Outbox;
pub(super) use workers::Workers;

use super::Frame;
use super::directory::gone;
use crate::model::random;
use crate::{BoxFuture, CallError};

/// How often workers name requests that they have just started.
pub(super) const FIRST_WORD: Duration = Duration::from_millis(100);

/// How often participants say that they are there, and when they are given up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) heartbeat: Duration,
    pub(super) lost_after: Duration,
    /// How long a call waits for a connection.
    pub(super) patience: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let (heartbeat, lost_after) = (Duration::from_secs(1), Duration::from_secs(5));
        Self { heartbeat, lost_after, patience: Duration::from_secs(10) }
    }
}

/// An id that nobody else has, for a worker or a caller; fit for subjects and keys.
pub(super) fn unique_id() -> Arc<str> {
    format!("{:016x}", random::number()).into()
}

/// Waits until there is a connection, as long as the patience lasts.
pub(super) fn until_up(
    mut up: tokio::sync::watch::Receiver<bool>,
    patience: Duration,
) -> BoxFuture<'static, Result<(), CallError>> {
    Box::pin(async move {
        match tokio::time::timeout(patience, up.wait_for(|up| *up)).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(gone("there is no connection to the broker")),
        }
    })
}

/// How long to wait before connecting again: soon at first, then longer, with some chance in it.
pub(super) fn backoff(attempts: usize) -> Duration {
    let doubled = 2_u32.saturating_pow(u32::try_from(attempts).unwrap_or(u32::MAX).min(6));
    random::jitter(Duration::from_millis(50) * doubled)
}

/// Reads a frame that a broker delivered; what can't be read is told by its head.
pub(super) fn decode(payload: &[u8]) -> Result<Option<Frame>, super::Malformed> {
    match std::str::from_utf8(payload) {
        Ok(text) => Frame::decode(text),
        Err(_) => {
            Err(super::Malformed { kind: None, request_id: None, message: "the message is no UTF-8 text".to_owned() })
        }
    }
}
