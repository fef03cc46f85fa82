//! The settings of a client, checked.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use tokio::sync::Semaphore;
use url::Url;

use super::Destinations;
use super::engine::{Engine, Led};
use super::hooks::Hooks;
use super::reconnect::Reconnect;
use super::retry::Retry;
use super::server::Variables;

/// A checked configuration, without credentials, since fetching them needs it.
pub(super) struct Settings {
    /// The only namespace whose operations are run.
    pub(super) namespace: Option<String>,
    pub(super) base_url: Option<Url>,
    pub(super) headers: HeaderMap,
    pub(super) server_variables: Variables,
    pub(super) timeout: Option<Duration>,
    pub(super) idle_timeout: Option<Duration>,
    pub(super) max_response: usize,
    pub(super) max_line: Option<usize>,
    pub(super) max_event: Option<usize>,
    pub(super) redirects: usize,
    pub(super) bodies_to_other_origins: bool,
    pub(super) destinations: Destinations,
    /// The engines for hosts to which servers lead; `None` with a service of your own.
    pub(super) led: Option<Led>,
    pub(super) retry: Option<Arc<Retry>>,
    pub(super) reconnect: Option<Reconnect>,
    pub(super) idempotency_keys: bool,
    pub(super) trace_context: bool,
    pub(super) hooks: Hooks,
    pub(super) in_flight: Option<Arc<Semaphore>>,
    pub(super) engine: Arc<dyn Engine>,
}
