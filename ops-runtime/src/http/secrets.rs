//! The secrets in the requests of a call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use http::HeaderMap;
use url::Url;

use super::auth::{Applied, Credentials, Plan};
use super::config::Checked;
use super::settings::Settings;
use crate::model::lock::lock;
use crate::model::secrets::{KeepsSecrets, Kept, Secrets};
use crate::{BoxFuture, CallError};

/// How many credentials, and headers of requests, are kept of one call. A subscription may have connections without end, and a
/// server says again only what it was sent lately.
const KEPT: usize = 32;

/// The credentials of a call, with all that is put beside them into its requests.
///
/// It is kept with the response in the meta of the result, so that an error that is made from it later can be redacted.
pub(super) struct Carried {
    pub(super) settings: Arc<Settings>,
    /// All credentials of the client: a server can also repeat those that it got with other calls.
    credentials: Arc<Credentials>,
    pub(super) plan: Plan,
    /// The headers that the call itself set, which take precedence over all others.
    pub(super) own: HeaderMap,
    /// The URL that the call itself set.
    url: Option<Url>,
    /// The last tokens that were fetched for the call, refused ones included.
    applied: Mutex<VecDeque<Arc<Applied>>>,
    /// The headers of the last requests that functions of the user's have seen, and may have signed.
    hooked: Mutex<VecDeque<HeaderMap>>,
}

impl Carried {
    pub(super) fn new(checked: &Checked, plan: Plan, own: HeaderMap, url: Option<Url>) -> Arc<Self> {
        let (settings, credentials) = (checked.settings.clone(), checked.credentials.clone());
        Arc::new(Self { settings, credentials, plan, own, url, applied: Mutex::default(), hooked: Mutex::default() })
    }

    /// Fetches the required tokens; `rejected` are the credentials that the server has just rejected.
    pub(super) fn apply<'a>(&'a self, rejected: Option<&'a Applied>) -> BoxFuture<'a, Result<Arc<Applied>, CallError>> {
        Box::pin(async move {
            let applied = Arc::new(self.plan.apply(&self.settings, rejected).await?);
            keep(&mut lock(&self.applied), applied.clone(), |one, other| one.same_tokens(other));
            Ok(applied)
        })
    }

    /// Gives up the tokens that the server has rejected.
    pub(super) fn forget(&self, rejected: &Applied) {
        self.plan.forget(&self.settings, rejected);
    }

    /// Notes the headers of requests as they were sent.
    pub(super) fn sent(&self, headers: Vec<HeaderMap>) {
        if headers.is_empty() {
            return;
        }
        let mut kept = lock(&self.hooked);
        for headers in headers {
            keep(&mut kept, headers, |one, other| one == other);
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
        self.credentials.collect(secrets);
        self.settings.base_url.iter().chain(&self.url).for_each(|url| secrets.add_url(url.as_str()));
        lock(&self.applied).iter().for_each(|applied| applied.collect(secrets));
        let hooked = lock(&self.hooked);
        let all = [&self.settings.headers, &self.own].into_iter().chain(hooked.iter());
        for (name, value) in all.flatten() {
            secrets.add_header(name.as_str(), &String::from_utf8_lossy(value.as_bytes()));
        }
    }
}

/// Keeps an item as the newest one, once. The oldest goes if there are too many.
fn keep<T>(kept: &mut VecDeque<T>, item: T, is_same: impl Fn(&T, &T) -> bool) {
    kept.retain(|kept| !is_same(kept, &item));
    if kept.len() >= KEPT {
        kept.pop_front();
    }
    kept.push_back(item);
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use http::HeaderValue;

    use super::*;
    use crate::http::HttpConfig;
    use crate::http::fake::{Fake, respond};

    #[test]
    fn what_is_kept_of_many_connections_is_bounded() {
        let config = HttpConfig::new().with_service(Fake(|_| respond(200, &[], b"")));
        let checked = Checked::new(config).unwrap();
        let carried = Carried::new(&checked, Plan::default(), HeaderMap::new(), None);
        let signed = |number: usize| {
            let value = HeaderValue::from_str(&format!("signature-{number:03}")).unwrap();
            HeaderMap::from_iter([(http::header::AUTHORIZATION, value)])
        };
        let hidden = |number: usize| carried.secrets().text(&format!("no signature-{number:03}")).into_owned();
        for number in 0..1_000 {
            carried.apply(None).now_or_never().unwrap().unwrap();
            // The first request is the same each time, and the one that it is redirected to has a new signature.
            carried.sent(vec![signed(0), signed(number)]);
            assert_eq!([hidden(0), hidden(number)], ["no ***", "no ***"], "{number}");
        }
        assert_eq!((lock(&carried.applied).len(), lock(&carried.hooked).len()), (1, KEPT));
        assert_eq!(hidden(500), "no signature-500");
    }
}
