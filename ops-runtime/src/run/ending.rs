//! How a call ends for its caller, told to a handler that notes it.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::CallError;
use crate::model::lock::lock;

/// What is done when a result has been checked: without an error, or with the one that the caller gets instead.
type Then = Box<dyn FnOnce(Option<&CallError>) + Send>;

/// An extension of a call whose handler notes how it ends. Results are checked after the handler has returned them, and
/// one that fails the check is an error for the caller.
#[derive(Clone, Default)]
pub(crate) struct Ending(Arc<Mutex<Noted>>);

#[derive(Default)]
struct Noted {
    then: Vec<Then>,
    /// Of a subscription: the error of the last item.
    failed: Option<CallError>,
}

impl Ending {
    /// Adds what is done when the result of the call has been checked. It is dropped if the call is dropped before.
    #[cfg(feature = "gateway")]
    pub(crate) fn then(&self, then: impl FnOnce(Option<&CallError>) + Send + 'static) {
        self.noted().then.push(Box::new(then));
    }

    /// The result has been checked.
    #[cold]
    #[inline(never)]
    pub(crate) fn end(self, error: Option<&CallError>) {
        let all = std::mem::take(&mut self.noted().then);
        all.into_iter().for_each(|then| then(error));
    }

    /// An item of a subscription has been checked.
    #[cold]
    pub(crate) fn item(&self, error: Option<&CallError>) {
        self.noted().failed = error.cloned();
    }

    /// The error of the last item of a subscription; `None` if it did not fail.
    #[cfg(feature = "gateway")]
    pub(crate) fn failed(&self) -> Option<CallError> {
        self.noted().failed.clone()
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        lock(&self.0)
    }
}
