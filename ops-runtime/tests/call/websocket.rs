//! The suite over WebSocket: a hub that calls its spokes, and a spoke that calls others through the hub.

use ops_runtime::call::websocket::{Hub, Listening, WebSocketClient, WebSocketConfig};
use ops_runtime::call::{CallHandler, Origin, Remote};
use ops_runtime::{Identity, Registry};

use crate::harness::{Harness, Working, ann};

/// Small, so that the limit is quickly reached.
const MAX_MESSAGE: usize = 256 << 10;

pub(crate) fn hub() -> Hub {
    Hub::new(CallHandler::new(Registry::new())).with_max_message(MAX_MESSAGE).with_authentication(
        |request| async move {
            match request.headers.get("authorization").and_then(|value| value.to_str().ok()) {
                Some("Bearer ann") => Ok(Origin::authenticated(ann())),
                Some("Bearer worker") => Ok(Origin::anonymous().serving(true)),
                _ => Err(axum::http::StatusCode::UNAUTHORIZED),
            }
        },
    )
}

pub(crate) fn config(token: &str) -> WebSocketConfig {
    WebSocketConfig::new().with_bearer(token).with_max_message(MAX_MESSAGE)
}

async fn spoke(server: &Listening, handler: CallHandler) -> WebSocketClient {
    let config = config("worker").with_handler(handler).trusting_hub();
    WebSocketClient::connect(&server.url(), config).await.unwrap()
}

/// The hub calls what spokes serve.
pub(crate) struct ToSpokes {
    hub: Hub,
    server: Listening,
}

impl Harness for ToSpokes {
    type Worker = WebSocketClient;

    async fn start() -> Self {
        let hub = hub();
        Self { server: hub.listen("127.0.0.1:0").await.unwrap(), hub }
    }

    async fn worker(&self, handler: CallHandler) -> WebSocketClient {
        spoke(&self.server, handler).await
    }

    async fn caller(&self) -> Remote {
        self.hub.remote()
    }

    fn identity_of(claimed: Option<Identity>) -> Option<Identity> {
        claimed
    }
}

/// A spoke calls what other spokes serve.
pub(crate) struct ThroughHub(Listening);

impl Harness for ThroughHub {
    type Worker = WebSocketClient;

    async fn start() -> Self {
        Self(hub().with_forwarding().listen("127.0.0.1:0").await.unwrap())
    }

    async fn worker(&self, handler: CallHandler) -> WebSocketClient {
        spoke(&self.0, handler).await
    }

    async fn caller(&self) -> Remote {
        WebSocketClient::connect(&self.0.url(), config("ann")).await.unwrap().remote()
    }

    fn identity_of(_: Option<Identity>) -> Option<Identity> {
        Some(ann())
    }
}

impl Working for WebSocketClient {
    fn running(&self) -> usize {
        Self::running(self)
    }

    async fn announce(&self) {
        Self::announce(self);
    }

    async fn stop(self) {
        Self::stop(self).await;
    }

    async fn kill(self) {
        drop(self);
    }
}
