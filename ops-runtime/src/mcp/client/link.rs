//! The connection as it comes and goes: one recovery for all calls that wait for it.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::time::{Instant, sleep};

use super::delay::{STABLE, delay};
use super::session::Session;
use super::{Inner, McpServerInfo, lock};
use crate::{CallError, ErrorCode};

/// How often a recovery tries to connect before the waiting calls fail.
const ATTEMPTS: u32 = 5;

type Recovery = Shared<BoxFuture<'static, Result<Arc<Session>, CallError>>>;

/// The connection of a client.
#[derive(Default)]
pub(super) enum Link {
    Up {
        session: Arc<Session>,
        since: Instant,
        failures: u32,
    },
    /// A recovery is connecting, and all calls wait for it.
    Recovering(Recovery),
    /// A recovery failed; the next call starts another.
    Down {
        failures: u32,
    },
    /// Closed for good.
    #[default]
    Closed,
}

impl Link {
    pub(super) fn up(session: Arc<Session>) -> Self {
        Self::Up { session, since: Instant::now(), failures: 0 }
    }

    /// The connection, if there is one.
    pub(super) fn session(&self) -> Option<Arc<Session>> {
        match self {
            Self::Up { session, .. } => Some(session.clone()),
            _ => None,
        }
    }

    pub(super) fn info(&self) -> McpServerInfo {
        self.session().map(|session| session.info.clone()).unwrap_or_default()
    }
}

/// What a call finds.
enum Now {
    Up(Arc<Session>),
    Recovering(Recovery),
}

impl Inner {
    /// The connection; the next one if it has ended.
    pub(super) async fn session(self: &Arc<Self>) -> Result<Arc<Session>, CallError> {
        let recovery = match self.now()? {
            Now::Up(session) => return Ok(session),
            Now::Recovering(recovery) => recovery,
        };
        recovery.await
    }

    /// The connection, once a recovery that may be going on has ended: it listed the tools at some time before that.
    /// `None` if there is none, so that the next one lists them.
    pub(super) async fn settled(&self) -> Option<Arc<Session>> {
        let recovery = match &*lock(&self.link) {
            Link::Up { session, .. } => return Some(session.clone()),
            Link::Recovering(recovery) => recovery.clone(),
            Link::Down { .. } | Link::Closed => return None,
        };
        recovery.await.ok()
    }

    /// The current connection, or the recovery of one that has ended.
    fn now(self: &Arc<Self>) -> Result<Now, CallError> {
        let mut link = lock(&self.link);
        let failures = match &*link {
            Link::Up { session, .. } if session.is_open() => return Ok(Now::Up(session.clone())),
            Link::Up { since, .. } if since.elapsed() >= STABLE => 0,
            Link::Up { failures, .. } => failures + 1,
            Link::Down { failures } => *failures,
            Link::Closed => return Err(self.closed()),
            Link::Recovering(recovery) => return Ok(Now::Recovering(recovery.clone())),
        };
        // A task of its own: the call that starts it may be dropped, and others wait for it.
        let task = tokio::spawn(recover(self.clone(), failures));
        let recovery =
            task.map(|ended| ended.unwrap_or_else(|error| Err(CallError::from_error(error)))).boxed().shared();
        *link = Link::Recovering(recovery.clone());
        Ok(Now::Recovering(recovery))
    }

    fn closed(&self) -> CallError {
        CallError::execution(format!("the client of the MCP server `{}` is closed", self.name))
    }
}

async fn recover(inner: Arc<Inner>, mut failures: u32) -> Result<Arc<Session>, CallError> {
    let mut failure = inner.closed();
    for _ in 0..ATTEMPTS {
        if failures > 0 {
            sleep(delay(failures)).await;
        }
        if matches!(*lock(&inner.link), Link::Closed) {
            return Err(inner.closed());
        }
        match inner.open().await {
            Ok(session) => {
                let closed = {
                    let mut link = lock(&inner.link);
                    let closed = matches!(*link, Link::Closed);
                    if !closed {
                        *link = Link::Up { session: session.clone(), since: Instant::now(), failures };
                    }
                    closed
                };
                if closed {
                    session.close().await;
                    return Err(inner.closed());
                }
                tracing::info!(server = %inner.name, "connected again");
                return Ok(session);
            }
            Err(error) => {
                tracing::warn!(server = %inner.name, %error, "cannot connect again");
                failures += 1;
                // A server that timed out will likely do so again, and callers have waited long enough.
                let is_slow = error.code() == &ErrorCode::Timeout;
                failure = error;
                if is_slow {
                    break;
                }
            }
        }
    }
    let mut link = lock(&inner.link);
    if !matches!(*link, Link::Closed) {
        *link = Link::Down { failures };
    }
    Err(failure)
}
