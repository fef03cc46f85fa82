//! A configuration, checked.

use std::sync::{Arc, Mutex};

use http::HeaderMap;
use http::header::{CONNECTION, COOKIE, USER_AGENT};
use tokio::sync::Semaphore;

use super::HttpConfig;
use crate::CallError;
use crate::http::HttpEngine;
use crate::http::address::parse_url;
use crate::http::auth::{Credentials, take_credentials};
use crate::http::engine::{Connecting, Custom, Led};
use crate::http::invalid;
use crate::http::per_call::{frames, header};
use crate::http::server::Variables;
use crate::http::settings::Settings;

/// A configuration that was checked.
pub(in crate::http) struct Checked {
    pub(in crate::http) settings: Arc<Settings>,
    pub(in crate::http) credentials: Arc<Credentials>,
}

impl Checked {
    pub(in crate::http) fn new(config: HttpConfig) -> Result<Self, CallError> {
        let mut auth = config.auth;
        let mut base_url = config.base_url.as_deref().map(parse_url).transpose()?;
        if let Some(url) = &mut base_url {
            let own = take_credentials(url)?;
            auth = auth.or(own);
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &config.headers {
            let (name, value) = header(name, value)?;
            // A connection may be closed after each response.
            if frames(&name) && name != CONNECTION {
                let message = format!("the header `{name}` frames the message, and cannot be set for a client");
                return Err(invalid("/headers", message));
            }
            if name == USER_AGENT {
                headers.insert(name, value);
            } else {
                headers.append(name, value);
            }
        }
        let is_cookie = |name: &str| name.eq_ignore_ascii_case(COOKIE.as_str());
        let cookies = config.headers.iter().filter(|(name, _)| is_cookie(name)).map(|(_, value)| value.as_str());
        let cookies: Vec<&str> = cookies.collect();
        if !cookies.is_empty() {
            // All cookies of a request are one header (RFC 6265, section 5.4).
            let (name, value) = header(COOKIE.as_str(), &cookies.join("; "))?;
            headers.insert(name, value);
        }
        let connecting = Connecting {
            timeout: config.connect_timeout,
            #[cfg(feature = "compression")]
            compression: config.compression,
        };
        #[cfg(feature = "compression")]
        if config.engine.is_some() && !connecting.compression.is_empty() {
            let message = "`with_compression` configures the built-in engine: decode responses in the client or \
                           service of your own";
            return Err(invalid("/compression", message));
        }
        let led = config.engine.is_none().then(|| Led::new(config.destinations.clone(), connecting.clone()));
        let engine = match config.engine {
            Some(engine) => engine,
            None => Arc::new(Custom(Mutex::new(HttpEngine::connecting(&connecting)?))),
        };
        let credentials = Arc::new(Credentials::new(auth, config.credentials, config.environment)?);
        let settings = Settings {
            // In the form of the reader of documents.
            namespace: config.namespace.map(|name| name.replace('.', "_")).filter(|name| !name.is_empty()),
            base_url,
            headers,
            server_variables: Variables::new(config.server_variables),
            timeout: config.timeout,
            idle_timeout: config.idle_timeout,
            max_response: config.max_response,
            max_line: config.max_line,
            max_event: config.max_event,
            redirects: config.redirects,
            bodies_to_other_origins: config.bodies_to_other_origins,
            destinations: config.destinations,
            led,
            retry: config.retry.map(Arc::new),
            reconnect: config.reconnect,
            idempotency_keys: config.idempotency_keys,
            trace_context: config.trace_context,
            hooks: config.hooks,
            // At least one, or nothing would ever be sent.
            in_flight: config.max_in_flight.map(|n| Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS)))),
            engine,
        };
        Ok(Self { settings: Arc::new(settings), credentials })
    }
}
