//! Known secrets and their holders: from a list, or by a lookup of the user.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

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
