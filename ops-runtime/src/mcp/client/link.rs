//! The state of the connection, and one recovery for all calls that wait for it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use serde_json::Value;
use tokio::task::{AbortHandle, JoinError};
use tokio::time::{Instant, sleep, timeout_at};

use super::Inner;
use super::delay::{STABLE, delay};
use super::session::{Session, timed_out};
use crate::model::lock::lock;
use crate::{CallError, ErrorCode};

/// The longest delay before an attempt to connect for which calls wait: during a longer one, they fail at once.
const PATIENCE: Duration = Duration::from_secs(1);

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
    Recovering {
        recovery: Recovery,
        task: AbortHandle,
        since: Instant,
        failures: u32,
    },
    /// A recovery failed; the first call after the delay starts another.
    Down {
        failures: u32,
        since: Instant,
        error: CallError,
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

    /// Notes that a recovery has ended without a word: its task has panicked, or has gone with its runtime.
    fn notice(&mut self) {
        if let Self::Recovering { task, since, failures, .. } = self
            && task.is_finished()
        {
            let error = CallError::execution("the last attempt broke off before its end");
            // The next call may come much later, when there is nothing left to wait for.
            *self = Self::Down { failures: failures.saturating_add(1), since: *since, error };
        }
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

    /// The connection for a call that has used up its time then. A recovery goes on.
    pub(super) async fn session_until(self: &Arc<Self>, until: Option<Instant>) -> Result<Arc<Session>, CallError> {
        let Some(until) = until else { return self.session().await };
        timeout_at(until, self.session()).await.unwrap_or_else(|_| {
            let total = self.config.total_timeout;
            Err(timed_out(&self.name, "could not be connected to again", total, "with_total_timeout"))
        })
    }

    /// The connection, once a recovery that may be going on has ended: it listed the tools at some time before that.
    /// `None` if there is none, so that the next one lists them.
    pub(super) async fn settled(&self) -> Option<Arc<Session>> {
        let recovery = match &*lock(&self.link) {
            Link::Up { session, .. } => return Some(session.clone()),
            Link::Recovering { recovery, .. } => recovery.clone(),
            Link::Down { .. } | Link::Closed => return None,
        };
        recovery.await.ok()
    }

    /// The current connection, or the recovery of one that has ended.
    fn now(self: &Arc<Self>) -> Result<Now, CallError> {
        let mut link = lock(&self.link);
        link.notice();
        let (failures, since, error) = match &*link {
            Link::Up { session, .. } if session.is_open() => return Ok(Now::Up(session.clone())),
            Link::Up { since, .. } if since.elapsed() >= STABLE => (0, *since, None),
            Link::Up { since, failures, .. } => (failures + 1, *since, None),
            Link::Down { failures, since, error } => (*failures, *since, Some(error)),
            Link::Closed => return Err(self.closed()),
            Link::Recovering { recovery, .. } => return Ok(Now::Recovering(recovery.clone())),
        };
        let wait = pause(failures).saturating_sub(since.elapsed());
        if wait > PATIENCE {
            return Err(self.down(error, wait));
        }
        // A task of its own: the call that starts it may be dropped, and others wait for it.
        let recovering = tokio::spawn(recover(self.clone(), failures, wait));
        let (task, name) = (recovering.abort_handle(), self.name.clone());
        let broken_off = move |error: JoinError| {
            let message = format!("connecting again to the MCP server `{name}` broke off: {error}");
            Err(CallError::execution(message))
        };
        let recovery = recovering.map(|ended| ended.unwrap_or_else(broken_off)).boxed().shared();
        *link = Link::Recovering { recovery: recovery.clone(), task, since: Instant::now(), failures };
        Ok(Now::Recovering(recovery))
    }

    fn closed(&self) -> CallError {
        CallError::execution(format!("the client of the MCP server `{}` is closed", self.name))
    }

    /// The error of a call while it is too soon to connect again: why the last attempt failed, and when the next may be made.
    fn down(&self, error: Option<&CallError>, wait: Duration) -> CallError {
        let (code, why, mut details) = match error {
            Some(error) => (error.code().clone(), error.message(), error.details().clone()),
            None => (ErrorCode::ExecutionError, "its connections end as soon as they are made", Value::Null),
        };
        if details.is_null() {
            details = Value::Object(serde_json::Map::new());
        }
        if let Some(details) = details.as_object_mut() {
            details.insert("retryAfter".to_owned(), wait.as_secs_f64().into());
        }
        let message = format!("the MCP server `{}` is down, and is tried again in {wait:.0?}: {why}", self.name);
        CallError::new(code, message).with_details(details)
    }
}

/// The delay before an attempt to connect, after so many failures.
fn pause(failures: u32) -> Duration {
    if failures == 0 { Duration::ZERO } else { delay(failures) }
}

/// Connects again after that time, and retries as long as the delay is short.
async fn recover(inner: Arc<Inner>, mut failures: u32, mut wait: Duration) -> Result<Arc<Session>, CallError> {
    let error = loop {
        sleep(wait).await;
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
                failures = failures.saturating_add(1);
                wait = pause(failures);
                // A server that timed out is likely to do so again, and callers have waited long enough.
                if error.code() == &ErrorCode::Timeout || wait > PATIENCE {
                    break error;
                }
            }
        }
    };
    let mut link = lock(&inner.link);
    if !matches!(*link, Link::Closed) {
        *link = Link::Down { failures, since: Instant::now(), error: error.clone() };
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_delay_begins_with_the_recovery_that_broke_off() {
        let recovering = tokio::spawn(std::future::pending::<()>());
        let task = recovering.abort_handle();
        let recovery = std::future::pending::<Result<Arc<Session>, CallError>>().boxed().shared();
        let mut link = Link::Recovering { recovery, task, since: Instant::now(), failures: 9 };
        link.notice();
        assert!(matches!(link, Link::Recovering { .. }), "it goes on");
        recovering.abort();
        assert!(recovering.await.unwrap_err().is_cancelled());
        // Nobody calls for a long time.
        tokio::time::advance(Duration::from_secs(3600)).await;
        link.notice();
        let Link::Down { failures, since, .. } = &link else { panic!("it has broken off") };
        assert_eq!(*failures, 10);
        assert!(pause(*failures) <= since.elapsed(), "the next call tries at once");
    }
}
