//! Known secrets and their holders: from a list, or by a lookup of the user.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use http::HeaderValue;
use sha2::{Digest, Sha256};

use crate::model::unauthorized::Unauthorized;
use crate::{BoxFuture, Identity};

type Lookup = dyn Fn(String) -> BoxFuture<'static, Result<Option<Identity>, Unauthorized>> + Send + Sync;

/// The holders of secrets.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// By digests, so that the time of a lookup reveals nothing about a secret, and no secret stays in memory.
    holders: HashMap<[u8; 32], Identity>,
    lookup: Option<Arc<Lookup>>,
}

impl Known {
    pub(super) fn add(&mut self, secret: &str, holder: Identity) {
        self.holders.insert(Sha256::digest(secret).into(), holder);
    }

    /// Adds a secret that requests carry in a header. Logs a warning if none can.
    pub(super) fn add_in_header(&mut self, secret: &str, holder: Identity) {
        self.add_sent(secret, holder, unsendable(secret));
    }

    /// Adds a secret that requests carry in a cookie. Logs a warning if none can.
    pub(super) fn add_in_cookie(&mut self, secret: &str, holder: Identity) {
        self.add_sent(secret, holder, unsendable_in_cookie(secret));
    }

    fn add_sent(&mut self, secret: &str, holder: Identity, unsendable: Option<&str>) {
        if let Some(why) = unsendable {
            tracing::warn!("no request can carry the secret of the caller `{}`: it {why}", holder.id);
        }
        self.add(secret, holder);
    }

    pub(super) fn set_lookup<F, Fut, I>(&mut self, lookup: F)
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<I, Unauthorized>> + Send + 'static,
        I: Into<Option<Identity>>,
    {
        self.lookup = Some(Arc::new(move |secret| {
            let found = lookup(secret);
            Box::pin(async move { found.await.map(Into::into) })
        }));
    }

    /// Finds the identity that a secret belongs to; an unknown secret is refused.
    pub(super) fn find(
        &self,
        secret: String,
        refused: Unauthorized,
    ) -> BoxFuture<'static, Result<Option<Identity>, Unauthorized>> {
        if secret.is_empty() {
            return Box::pin(async { Err(refused) });
        }
        let digest: [u8; 32] = Sha256::digest(&secret).into();
        if let Some(holder) = self.holders.get(&digest).cloned() {
            return Box::pin(async { Ok(Some(holder)) });
        }
        let found = self.lookup.as_ref().map(|lookup| lookup(secret));
        Box::pin(async move {
            match found {
                Some(found) => found.await?.map_or(Err(refused), |holder| Ok(Some(holder))),
                None => Err(refused),
            }
        })
    }
}

/// Why no header can have a secret; `None` if it can. A request is read without the blanks around a value.
fn unsendable(secret: &str) -> Option<&'static str> {
    if secret.trim_end_matches(['\r', '\n']) != secret {
        // Editors end files with one, so a secret that is read from a file often has it.
        return Some("ends with a line break: trim it");
    }
    if secret.trim_matches([' ', '\t']) != secret {
        return Some("begins or ends with a blank: trim it");
    }
    if secret.is_empty() {
        return Some("is empty");
    }
    HeaderValue::from_bytes(secret.as_bytes()).is_err().then_some("has a character that a header cannot carry")
}

/// Why no cookie can have a secret; `None` if it can.
fn unsendable_in_cookie(secret: &str) -> Option<&'static str> {
    unsendable(secret).or_else(|| secret.contains(';').then_some("has a semicolon, which ends a cookie"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_that_no_request_can_have() {
        for (secret, why) in [
            ("s3cret", None),
            ("two words", None),
            ("s3cret\n", Some("ends with a line break: trim it")),
            ("s3cret\r\n", Some("ends with a line break: trim it")),
            (" s3cret", Some("begins or ends with a blank: trim it")),
            ("s3\ncret", Some("has a character that a header cannot carry")),
            ("", Some("is empty")),
        ] {
            assert_eq!(unsendable(secret), why, "{secret:?}");
            assert_eq!(unsendable_in_cookie(secret), why, "{secret:?}");
        }
        let ends = Some("has a semicolon, which ends a cookie");
        assert_eq!((unsendable("s3;cret"), unsendable_in_cookie("s3;cret")), (None, ends));
    }
}
