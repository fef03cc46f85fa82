//! The place of one token, and the one request for it, for which all wait who need the token.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::Shared;
use tokio::runtime::Handle;
use tokio::time;
use tracing::Instrument;

use super::secret::Secret;
use super::token::TIMEOUT;
use crate::model::lock::lock;
use crate::model::secrets::Secrets;
use crate::{BoxFuture, CallError};

/// How long a request for a token is waited for: a little longer than it may take, so that its own error comes first.
const MAX_WAIT: Duration = TIMEOUT.saturating_add(Duration::from_secs(2));

/// A token with its expiry.
pub(super) struct Token {
    pub(super) value: Secret,
    pub(super) expires: Option<Instant>,
}

impl Token {
    /// True if the token is valid as far as is known; `rejected` is the token that the server rejected.
    fn is_valid(&self, rejected: Option<&Secret>) -> bool {
        self.expires.is_none_or(|expires| expires > Instant::now())
            && rejected.is_none_or(|rejected| *rejected != self.value)
    }
}

/// A request for a token. All kinds of requests have this one type, so that the code of [`Slot`] is compiled once.
pub(super) type Fetch = BoxFuture<'static, Result<Token, CallError>>;

/// The place of one token. A clone is the same place.
#[derive(Clone, Default)]
pub(super) struct Slot(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    token: Option<Token>,
    /// The request for the next token, while there is one.
    fetching: Option<Fetching>,
    /// The number of the last request.
    last: u64,
}

/// A request for a token, for which all wait who need it.
#[derive(Clone)]
struct Fetching {
    /// Tells it from those before and after it.
    number: u64,
    /// When to wait no longer. `None` if those who wait move the request on.
    until: Option<time::Instant>,
    /// The result; `None` if the runtime that the request ran in has ended, or if it panicked.
    result: Shared<BoxFuture<'static, Option<Result<Secret, CallError>>>>,
}

impl Fetching {
    /// True if it has taken too long. A runtime that no thread runs at present does not even end it by its timeout.
    fn is_overdue(&self) -> bool {
        self.until.is_some_and(|until| until <= time::Instant::now())
    }

    /// Waits for the result. `None` if there is none in time: those who wait then make requests of their own.
    async fn result(&self) -> Option<Result<Secret, CallError>> {
        let result = self.result.clone();
        match self.until {
            // Without a runtime there are no timers.
            Some(until) if Handle::try_current().is_ok() => time::timeout_at(until, result).await.ok().flatten(),
            _ => result.await,
        }
    }
}

impl Slot {
    /// The token that is here, or the one that is fetched; `rejected` is the token that the server rejected.
    ///
    /// A token is fetched in a task of its own. A call with a short deadline does not end what others wait for, and the calls
    /// after it find the token.
    ///
    /// # Errors
    /// Those of the request for the token, for all who wait for it.
    pub(super) async fn valid(
        &self,
        rejected: Option<&Secret>,
        fetch: &(dyn Fn() -> Fetch + Sync),
    ) -> Result<Secret, CallError> {
        let fetching = {
            let mut state = lock(&self.0);
            if let Some(token) = state.token.as_ref().filter(|token| token.is_valid(rejected)) {
                return Ok(token.value.clone());
            }
            state.token = None;
            match state.fetching.clone().filter(|fetching| !fetching.is_overdue()) {
                Some(fetching) => fetching,
                None => {
                    state.last = state.last.wrapping_add(1);
                    let begun = self.begin(state.last, fetch());
                    state.fetching.insert(begun).clone()
                }
            }
        };
        match fetching.result().await {
            Some(fetched) => fetched,
            None => {
                lock(&self.0).lose(fetching.number);
                keep(Arc::downgrade(&self.0), fetching.number, fetch()).await
            }
        }
    }

    /// Gives up the token if it is still the one that the server rejected.
    pub(super) fn forget(&self, rejected: &Secret) {
        let mut state = lock(&self.0);
        if state.token.as_ref().is_some_and(|token| token.value == *rejected) {
            state.token = None;
        }
    }

    /// Adds the token that is here.
    pub(super) fn collect(&self, secrets: &mut Secrets) {
        lock(&self.0).token.iter().for_each(|token| secrets.add(token.value.expose()));
    }

    fn begin(&self, number: u64, fetch: Fetch) -> Fetching {
        let fetched = keep(Arc::downgrade(&self.0), number, fetch);
        let (until, result) = match Handle::try_current() {
            Ok(runtime) => {
                let task = runtime.spawn(fetched.in_current_span());
                (time::Instant::now().checked_add(MAX_WAIT), task.map(Result::ok).boxed())
            }
            // Without a runtime there are no tasks: those who wait move the request on.
            Err(_) => (None, AssertUnwindSafe(fetched).catch_unwind().map(Result::ok).boxed()),
        };
        Fetching { number, until, result: result.shared() }
    }

    /// True if this is the same place.
    #[cfg(test)]
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl State {
    /// Gives up a request that has ended, or that will have no result, unless another has taken its place.
    fn lose(&mut self, number: u64) {
        if self.fetching.as_ref().is_some_and(|own| own.number == number) {
            self.fetching = None;
        }
    }
}

/// Fetches a token, and puts it into its place if that is still there.
async fn keep(place: Weak<Mutex<State>>, number: u64, fetch: Fetch) -> Result<Secret, CallError> {
    let fetched = fetch.await;
    let value = fetched.as_ref().map(|token| token.value.clone()).map_err(Clone::clone);
    if let Some(place) = place.upgrade() {
        let mut state = lock(&place);
        state.lose(number);
        // A request that was given up may end after the one that took its place.
        if state.token.is_none() {
            state.token = fetched.ok();
        }
    }
    value
}

#[cfg(test)]
mod tests;
