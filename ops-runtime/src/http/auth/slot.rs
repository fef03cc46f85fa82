//! The place of one token, and the one request for it, for which all wait who need the token.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::Shared;
use tokio::runtime::Handle;
use tracing::Instrument;

use super::secret::Secret;
use crate::{BoxFuture, CallError};

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

/// The place of one token. A clone is the same place.
#[derive(Clone, Default)]
pub(super) struct Slot(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    token: Option<Token>,
    /// The request for the next token, while there is one.
    fetching: Option<Fetching>,
}

/// The result of a request for a token. It is `None` if the runtime that the request ran in has ended, or if it panicked:
/// who waits then makes a request of his own.
type Fetching = Shared<BoxFuture<'static, Option<Result<Secret, CallError>>>>;

impl Slot {
    /// The token that is here, or the one that is fetched; `rejected` is the token that the server rejected.
    ///
    /// A token is fetched in a task of its own. A call with a short deadline does not end what others wait for, and the calls
    /// after it find the token.
    ///
    /// # Errors
    /// Those of the request for the token, for all who wait for it.
    pub(super) async fn valid<F>(&self, rejected: Option<&Secret>, fetch: impl Fn() -> F) -> Result<Secret, CallError>
    where
        F: Future<Output = Result<Token, CallError>> + Send + 'static,
    {
        let fetching = {
            let mut state = lock(&self.0);
            if let Some(token) = state.token.as_ref().filter(|token| token.is_valid(rejected)) {
                return Ok(token.value.clone());
            }
            state.token = None;
            state.fetching.get_or_insert_with(|| self.begin(fetch())).clone()
        };
        match fetching.clone().await {
            Some(fetched) => fetched,
            None => {
                self.lose(&fetching);
                keep(Arc::downgrade(&self.0), fetch()).await
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

    fn begin(&self, fetch: impl Future<Output = Result<Token, CallError>> + Send + 'static) -> Fetching {
        let fetched = keep(Arc::downgrade(&self.0), fetch);
        match Handle::try_current() {
            Ok(runtime) => runtime.spawn(fetched.in_current_span()).map(Result::ok).boxed().shared(),
            // Without a runtime there are no tasks: those who wait move the request on.
            Err(_) => AssertUnwindSafe(fetched).catch_unwind().map(Result::ok).boxed().shared(),
        }
    }

    /// Gives up a request that will have no result.
    fn lose(&self, lost: &Fetching) {
        let mut state = lock(&self.0);
        if state.fetching.as_ref().is_some_and(|own| own.ptr_eq(lost)) {
            state.fetching = None;
        }
    }

    /// True if this is the same place.
    #[cfg(test)]
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Fetches a token, and puts it into its place if that is still there.
async fn keep(
    place: Weak<Mutex<State>>,
    fetch: impl Future<Output = Result<Token, CallError>>,
) -> Result<Secret, CallError> {
    let fetched = fetch.await;
    let value = fetched.as_ref().map(|token| token.value.clone()).map_err(Clone::clone);
    if let Some(place) = place.upgrade() {
        let mut state = lock(&place);
        state.fetching = None;
        state.token = fetched.ok();
    }
    value
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
