//! The secrets in the requests of a call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderMap;

use super::auth::{Applied, Plan};
use super::settings::Settings;
use crate::CallError;
use crate::model::secrets::{KeepsSecrets, Kept, Secrets};

/// The credentials of a call, with its other secrets.
///
/// It is kept with the response in the meta of the result, so that an error that is made from it later can be redacted.
pub(super) struct Carried {
    pub(super) settings: Arc<Settings>,
    pub(super) plan: Plan,
    /// The headers that the call itself set, which take precedence over all others.
    pub(super) own: HeaderMap,
    /// The tokens that were fetched for the call, including rejected ones.
    applied: Mutex<Vec<Arc<Applied>>>,
    /// The headers of requests after the program's hooks, which may have signed them.
    hooked: Mutex<Vec<HeaderMap>>,
}

impl Carried {
    pub(super) fn new(settings: Arc<Settings>, plan: Plan, own: HeaderMap) -> Arc<Self> {
        Arc::new(Self { settings, plan, own, applied: Mutex::default(), hooked: Mutex::default() })
    }

    /// Fetches the required tokens; `rejected` are the credentials that the server has just rejected.
    pub(super) async fn apply(&self, rejected: Option<&Applied>) -> Result<Arc<Applied>, CallError> {
        let applied = Arc::new(self.plan.apply(&self.settings, rejected).await?);
        lock(&self.applied).push(applied.clone());
        Ok(applied)
    }

    /// Drops the tokens that the server has rejected.
    pub(super) async fn forget(&self, rejected: &Applied) {
        self.plan.forget(&self.settings, rejected).await;
    }

    /// Notes the headers of requests as they were sent.
    pub(super) fn sent(&self, headers: Vec<HeaderMap>) {
        if !headers.is_empty() {
            lock(&self.hooked).extend(headers);
        }
    }

    /// Itself, to be kept with a response.
    pub(super) fn kept(self: &Arc<Self>) -> Kept {
        Kept::by(self.clone())
    }

    pub(super) fn secrets(&self) -> Secrets {
        Secrets::of(self)
    }

    /// The error without the call's secrets.
    pub(super) fn error(&self, error: CallError) -> CallError {
        error.without(&self.secrets())
    }
}

impl KeepsSecrets for Carried {
    fn collect(&self, secrets: &mut Secrets) {
        self.plan.collect(secrets);
        self.settings.base_url.iter().for_each(|url| secrets.add_url(url.as_str()));
        lock(&self.applied).iter().for_each(|applied| applied.collect(secrets));
        let hooked = lock(&self.hooked);
        let all = [&self.settings.headers, &self.own].into_iter().chain(hooked.iter());
        for (name, value) in all.flatten() {
            secrets.add_header(name.as_str(), &String::from_utf8_lossy(value.as_bytes()));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
