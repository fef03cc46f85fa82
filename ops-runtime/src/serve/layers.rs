//! What is around the server's own responses: a program's own routes and layers, compression, and CORS.

use std::sync::Arc;

use axum::Router;

use super::cors;
use super::incoming::Shared;
use super::service::Service;
use crate::run::host_check::Door;

/// Adds a layer of the program's own around a router.
pub(super) type Around = Box<dyn FnOnce(Router) -> Router + Send + Sync>;

/// What is around the server's own responses.
pub(super) struct Layers {
    pub(super) routes: Option<Router>,
    /// The innermost first.
    pub(super) own: Vec<Around>,
    /// The pages of other origins that are allowed by name, if there are any.
    pub(super) pages: Option<Arc<Door>>,
    #[cfg(feature = "http-server-compression")]
    pub(super) compresses: bool,
}

impl Layers {
    pub(super) fn is_nothing(&self) -> bool {
        #[cfg(feature = "http-server-compression")]
        if self.compresses {
            return false;
        }
        self.pages.is_none() && self.routes.is_none() && self.own.is_empty()
    }

    pub(super) fn around(self, shared: Arc<Shared>) -> Router {
        let router = Router::new().fallback_service(Service(shared));
        #[cfg(feature = "http-server-compression")]
        let router = if self.compresses { super::compress::around(router) } else { router };
        let router = match self.pages {
            Some(pages) => cors::around(router, pages),
            None => router,
        };
        let router = match self.routes {
            Some(routes) => routes.merge(router),
            None => router,
        };
        self.own.into_iter().fold(router, |router, around| around(router))
    }
}
