//! Tokens from a function of the program.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use super::secret::Secret;
use crate::model::lock::lock;
use crate::{BoxFuture, CallError};

/// The request to a [`TokenSource`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenRequest {
    /// The name of the scheme in the document, if the operation requires one.
    pub scheme: Option<String>,
    /// The scopes that the operation needs.
    pub scopes: Vec<String>,
    /// True if the server rejected a token.
    pub rejected: bool,
    /// The token that the server rejected, if `rejected` is true.
    ///
    /// A function that keeps a token compares: if it keeps another one by now, an earlier request has renewed it.
    pub rejected_token: Option<Secret>,
}

type Ask = dyn Fn(TokenRequest) -> BoxFuture<'static, Result<Secret, CallError>> + Send + Sync;

/// A function that returns tokens; see [`Auth::token_source`](super::Auth::token_source).
#[derive(Clone)]
pub struct TokenSource(Arc<Ask>);

impl TokenSource {
    pub(super) fn new<F, Fut>(source: F) -> Self
    where
        F: Fn(TokenRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Secret, CallError>> + Send + 'static,
    {
        Self(Arc::new(move |request| Box::pin(source(request))))
    }

    /// A token for a request, which is told of the token that the server has just rejected, or else of one in `noted`.
    pub(super) async fn get(
        &self,
        mut request: TokenRequest,
        rejected: Option<&Secret>,
        noted: &Rejected,
    ) -> Result<Secret, CallError> {
        let purpose = purpose(&request);
        request.rejected_token = rejected.cloned().or_else(|| lock(&noted.0).get(&purpose).cloned());
        request.rejected = request.rejected_token.is_some();
        let told = request.rejected_token.clone();
        // Whatever the function may have sent, to ask it for a token again does no harm.
        let token = (self.0)(request).await.map_err(CallError::certain)?;
        let mut noted = lock(&noted.0);
        // Another may have been noted meanwhile.
        if told.is_some() && noted.get(&purpose) == told.as_ref() {
            noted.remove(&purpose);
        }
        Ok(token)
    }
}

/// What a token is for: the scheme and the scopes.
type Purpose = (Option<String>, Vec<String>);

fn purpose(request: &TokenRequest) -> Purpose {
    (request.scheme.clone(), request.scopes.clone())
}

/// The tokens that the server rejected last, and of which the next request tells a [`TokenSource`].
#[derive(Default)]
pub(super) struct Rejected(Mutex<BTreeMap<Purpose, Secret>>);

impl Rejected {
    pub(super) fn note(&self, request: &TokenRequest, token: &Secret) {
        lock(&self.0).insert(purpose(request), token.clone());
    }
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSource")
    }
}

impl PartialEq for TokenSource {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for TokenSource {}
