//! Token URLs of a document that are relative to the API.

use url::{ParseError, Url};

use super::Plan;

impl Plan {
    /// The plan with relative token URLs joined to `api`, the URL of the API. Without that URL, they stay relative.
    ///
    /// The origin of the URL does not make it trustworthy: a document may name any server. That is checked before a secret is
    /// sent.
    pub(in crate::http) fn below(mut self, api: impl Fn() -> Option<Url>) -> Self {
        for url in self.steps.iter_mut().filter_map(|step| step.token_url.as_mut()) {
            if Url::parse(url) == Err(ParseError::RelativeUrlWithoutBase)
                && let Some(absolute) = api().and_then(|api| api.join(url).ok())
            {
                *url = absolute.into();
            }
        }
        self
    }
}
