//! What a handler has said of an HTTP response so far.

use std::sync::{Arc, Mutex};

use crate::HttpMeta;
use crate::model::lock::lock;

/// What a handler has said of a response so far. An HTTP server makes one for each request, and reads it when the call has ended.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "http-server"), allow(dead_code, reason = "only an HTTP server makes one"))]
pub(crate) struct ResponseParts(Arc<Mutex<HttpMeta>>);

impl ResponseParts {
    /// A response of which nothing was said; its status is 0.
    #[cfg(feature = "http-server")]
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(HttpMeta::new(0, ""))))
    }

    /// The status that was set; 0 if none was.
    #[cfg(feature = "http-server")]
    pub(crate) fn status(&self) -> u16 {
        self.with(|said| said.status_code)
    }

    /// What was said, of which nothing is left.
    #[cfg(feature = "http-server")]
    pub(crate) fn take(&self) -> HttpMeta {
        self.with(std::mem::take)
    }

    pub(super) fn with<T>(&self, what: impl FnOnce(&mut HttpMeta) -> T) -> T {
        what(&mut lock(&self.0))
    }
}
