//! What the transports over a broker share.
//!
//! The broker knows neither callers nor workers, so each side detects failures itself. Workers regularly report to each
//! caller which requests they run (`link.running`). A caller fails a request that no worker has reported for too long
//! ([`Liveness`]), whichever message was lost: the request, the response, or those of a dead worker. A request that a
//! worker reports and no caller waits for is aborted. So the loss of any single message is tolerated, and nothing is
//! kept about a call with an immediate response.

// Each transport uses its part.
#![cfg_attr(not(all(feature = "nats", feature = "redis")), allow(dead_code))]

mod callers;
mod liveness;
mod outbox;
mod queued;
mod workers;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) use callers::{Callers, Post};
pub(super) use liveness::Liveness;
pub(super) use outbox::Outbox;
pub(super) use queued::Queued;
pub(super) use workers::Workers;

use super::Frame;
use super::trouble::Trouble;
use crate::model::lock::lock;
use crate::model::random;
use crate::{BoxFuture, CallError};

/// After how long workers report a request that they have started.
pub(super) const FIRST_WORD: Duration = Duration::from_millis(100);

/// Intervals and timeouts of heartbeats and connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) heartbeat: Duration,
    pub(super) lost_after: Duration,
    /// How long a call waits for a connection.
    pub(super) connect_timeout: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let (heartbeat, lost_after) = (Duration::from_secs(1), Duration::from_secs(5));
        Self { heartbeat, lost_after, connect_timeout: Duration::from_secs(10) }
    }
}

/// The methods of a configuration that set its fields `auth`, `pace` and `max_announced`, with what is given up when it is
/// silent.
macro_rules! broker_setters {
    ($silent:literal) => {
        /// Sets the identity that the workers of this process give to every caller that can reach the broker; anonymous by
        /// default.
        ///
        /// [`PeerAuth::trusted`] believes the identity in each request.
        #[must_use]
        pub fn with_peer_auth(mut self, auth: $crate::call::PeerAuth) -> Self {
            self.auth = auth;
            self
        }

        /// Sets how often workers send heartbeats, with the requests that they run; every second by default.
        #[must_use]
        pub fn with_heartbeat(mut self, interval: std::time::Duration) -> Self {
            self.pace.heartbeat = interval.clamp(std::time::Duration::from_millis(10), $crate::call::LONGEST);
            self
        }

        #[doc = concat!("Sets after how much silence ", $silent, " is given up; 5 s by default. At least three")]
        /// heartbeats.
        #[must_use]
        pub fn with_lost_after(mut self, silence: std::time::Duration) -> Self {
            self.pace.lost_after = silence.min($crate::call::LONGEST);
            self
        }

        /// Sets how long a call waits for a connection; 10 s by default.
        #[must_use]
        pub fn with_connect_timeout(mut self, connect_timeout: std::time::Duration) -> Self {
            self.pace.connect_timeout = connect_timeout.min($crate::call::LONGEST);
            self
        }

        /// Limits the memory for the specs that one worker announces, in bytes; 32 MiB by default. All workers together may
        /// take four times as much. Specs beyond the limit, and any spec above 1 MiB, are kept without their schemas.
        #[must_use]
        pub fn with_max_announced(mut self, bytes: usize) -> Self {
            self.max_announced = bytes;
            self
        }

        pub(super) fn pace(&self) -> $crate::call::broker::Pace {
            let lost_after = self.pace.lost_after.max(self.pace.heartbeat * 3);
            $crate::call::broker::Pace { lost_after, ..self.pace }
        }
    };
}

pub(super) use broker_setters;

/// A unique id for a worker or a caller; valid in subjects and keys.
pub(super) fn unique_id() -> Arc<str> {
    format!("{:016x}", random::number()).into()
}

/// Waits for a connection, for as long as a call may wait for one.
pub(super) fn until_up(
    mut up: tokio::sync::watch::Receiver<bool>,
    connect_timeout: Duration,
    trouble: Arc<Trouble>,
) -> BoxFuture<'static, Result<(), CallError>> {
    Box::pin(async move {
        match tokio::time::timeout(connect_timeout, up.wait_for(|up| *up)).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(trouble.error("there is no connection to the broker")),
        }
    })
}

/// Counts the malformed messages of other processes. These may send any number, so only the first of each kind are logged as
/// warnings.
///
/// The kinds are constants of this program, so that other processes cannot add any.
#[derive(Default)]
pub(super) struct Faults(Mutex<HashMap<&'static str, usize>>);

impl Faults {
    /// Logs a malformed message. `what` says what is wrong, and is the kind; `about` is what is known of the message.
    pub(super) fn tell(&self, what: &'static str, about: Option<&str>) {
        if self.is_among_first(what) {
            tracing::warn!(about, "{what}");
        } else {
            tracing::debug!(about, "{what}");
        }
    }

    /// Counts a message of a kind. Returns `false` if the limit of warnings is exceeded.
    fn is_among_first(&self, what: &'static str) -> bool {
        /// The limit of warnings of each kind.
        const MOST: usize = 100;
        let mut counts = lock(&self.0);
        let count = counts.entry(what).or_default();
        *count = count.saturating_add(1);
        *count <= MOST
    }
}

/// Reads a frame that a broker delivered. If it is malformed, the error has what could be read of its head.
pub(super) fn decode(payload: &[u8]) -> Result<Option<Frame>, super::Malformed> {
    match std::str::from_utf8(payload) {
        Ok(text) => Frame::decode(text),
        Err(_) => {
            Err(super::Malformed { kind: None, request_id: None, message: "the message is no UTF-8 text".to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_faults_of_one_kind_hide_no_other() {
        let faults = Faults::default();
        let first = (0..200).filter(|_| faults.is_among_first("unreadable")).count();
        assert_eq!((first, faults.is_among_first("too long")), (100, true));
    }
}
