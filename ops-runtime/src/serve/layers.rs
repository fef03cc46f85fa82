//! What is around the server's own responses: a program's own routes and layers, compression, and CORS.

use std::sync::Arc;

use axum::Router;
use http::HeaderValue;
use http::request::Parts;
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, Any, CorsLayer};

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
    pub(super) cors: Option<CorsLayer>,
    #[cfg(feature = "http-server-compression")]
    pub(super) compresses: bool,
}

impl Layers {
    pub(super) fn is_nothing(&self) -> bool {
        #[cfg(feature = "http-server-compression")]
        if self.compresses {
            return false;
        }
        self.cors.is_none() && self.routes.is_none() && self.own.is_empty()
    }

    pub(super) fn around(self, shared: Arc<Shared>) -> Router {
        let router = Router::new().fallback_service(Service(shared));
        #[cfg(feature = "http-server-compression")]
        let router = if self.compresses { router.layer(super::compress::layer()) } else { router };
        let router = match self.cors {
            Some(cors) => router.layer(cors),
            None => router,
        };
        let router = match self.routes {
            Some(routes) => routes.merge(router),
            None => router,
        };
        self.own.into_iter().fold(router, |router, around| around(router))
    }
}

/// The permissions for pages of other origins that are allowed by name; `None` unless an origin is.
pub(super) fn cors(door: &Door) -> Option<CorsLayer> {
    let door = door.clone();
    door.has_origins().then(|| {
        let is_named = move |origin: &HeaderValue, _: &Parts| origin.to_str().is_ok_and(|origin| door.lists(origin));
        CorsLayer::new()
            .allow_origin(AllowOrigin::predicate(is_named))
            .allow_methods(AllowMethods::mirror_request())
            .allow_headers(AllowHeaders::mirror_request())
            // All of them, functions' own included. Requests have no cookies, with which `*` would mean no header.
            .expose_headers(Any)
    })
}
