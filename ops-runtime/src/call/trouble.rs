//! Why there is no connection, for the log and for the errors of calls that wait for one.

use std::sync::{Mutex, MutexGuard};

use super::directory::gone;
use crate::model::lock::lock;
use crate::{CallError, ErrorCode};

/// Why the last attempt failed; nothing if it succeeded.
#[derive(Default)]
pub(super) struct Trouble(Mutex<Option<CallError>>);

impl Trouble {
    fn last(&self) -> MutexGuard<'_, Option<CallError>> {
        lock(&self.0)
    }

    /// Notes why an attempt has failed. A warning says `what` has failed and why, unless the attempt before has failed for
    /// the same reason.
    pub(super) fn note(&self, what: &'static str, error: CallError) {
        let before = self.last().replace(error.clone());
        if before.is_some_and(|before| before.message() == error.message()) {
            tracing::debug!(%error, "{what}");
        } else {
            tracing::warn!(%error, "{what}");
        }
    }

    /// Notes that an attempt has succeeded.
    pub(super) fn clear(&self) {
        self.last().take();
    }

    /// The error of a call that has waited for a connection in vain. It says why there is none, if that is known.
    pub(super) fn error(&self, what: &'static str) -> CallError {
        match &*self.last() {
            Some(last) => {
                let why = format!("{what}: {}", last.message());
                match last.code() {
                    // It is this process that is refused, and not who has called it.
                    ErrorCode::AccessDenied => CallError::new(ErrorCode::AccessDenied, why).refusing_program(),
                    _ => gone(why),
                }
            }
            None => gone(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients of a server do not see it as their own.
    #[test]
    fn a_refusal_is_that_of_this_process() {
        let trouble = Trouble::default();
        trouble.note("no connection", CallError::new(ErrorCode::AccessDenied, "the hub refuses"));
        let refused = trouble.error("no connection");
        assert_eq!(refused, CallError::new(ErrorCode::AccessDenied, "no connection: the hub refuses"));
        assert!(refused.refuses_program());
        trouble.clear();
        assert!(!trouble.error("no connection").refuses_program());
    }
}
