//! The suite over WebSocket: a hub that calls its spokes, and a spoke that calls others through the hub.

#[cfg(feature = "http-server")]
use std::sync::Arc;
use std::time::Duration;

use ops_runtime::access::Identity;
use ops_runtime::call::websocket::{Hub, Listening, WebSocketClient, WebSocketConfig};
use ops_runtime::call::{CallHandler, PeerAuth, Remote};
use ops_runtime::{ErrorCode, Registry};
#[cfg(feature = "http-server")]
use ops_runtime::{registry::CancelToken, serve::HttpServer};
#[cfg(feature = "http-server")]
use serde_json::json;

use crate::harness::{Harness, Working, ann, eventually, limited};
#[cfg(feature = "http-server")]
use crate::operations::COUNT;
use crate::operations::{ADD_IS_NOT_SERVED, Add, AddInput, Twice, TwiceInput, add_twice, registry};
use crate::proxy::Proxy;

/// Small, so that the limit is quickly reached.
const MAX_MESSAGE: usize = 256 << 10;

pub(crate) fn hub() -> Hub {
    Hub::new(CallHandler::new(Registry::new())).with_max_message(MAX_MESSAGE).with_authenticator(|request| async move {
        match request.headers.get("authorization").and_then(|value| value.to_str().ok()) {
            Some("Bearer ann") => Ok(PeerAuth::authenticated(ann())),
            Some("Bearer worker") => Ok(PeerAuth::anonymous().serving(true)),
            _ => Err(axum::http::StatusCode::UNAUTHORIZED),
        }
    })
}

pub(crate) fn config(token: &str) -> WebSocketConfig {
    WebSocketConfig::new().with_bearer(token).with_max_message(MAX_MESSAGE)
}

pub(crate) async fn spoke(url: &str, handler: CallHandler) -> WebSocketClient {
    let config = config("worker").with_handler(handler).trusting_hub();
    // The network may be disturbed just now.
    for _ in 0..100 {
        if let Ok(client) = WebSocketClient::connect(url, config.clone()).await {
            return client;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no connection to the hub");
}

/// The hub calls what spokes serve.
pub(crate) struct ToSpokes {
    hub: Hub,
    server: Listening,
}

#[tokio::test]
async fn a_client_is_told_that_a_hub_is_not_reached_by_its_name() {
    let server = hub().with_hosts(["hub.example.com"]).listen("127.0.0.1:0").await.unwrap();
    let error = WebSocketClient::connect(&server.url(), config("ann")).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::AccessDenied);
    let said = error.to_string();
    assert!(
        said.contains("HTTP 403 Forbidden: no connections by this `Host`") && said.contains("`Hub::with_hosts`"),
        "{said}"
    );
}

#[tokio::test]
async fn anonymous_spokes_serve_if_the_hub_says_so_and_authentication_lets_them_in() {
    let open = || {
        let own = Registry::new();
        own.register(Add).unwrap();
        Hub::new(CallHandler::new(own))
    };
    let hub = || {
        open().with_authenticator(|request| async move {
            match request.headers.get("authorization").and_then(|value| value.to_str().ok()) {
                Some("Bearer guest") => Ok(PeerAuth::anonymous()),
                Some("Bearer ann") => Ok(PeerAuth::authenticated(ann()).serving(false)),
                _ => Err(axum::http::StatusCode::UNAUTHORIZED),
            }
        })
    };
    for (hub, refuses, token, serves) in [
        (open(), false, "guest", false),
        (open().with_anonymous_serving(), false, "guest", true),
        (hub(), true, "guest", false),
        (hub().with_anonymous_serving(), true, "guest", true),
        (hub().with_anonymous_serving(), true, "ann", false),
    ] {
        let server = hub.listen("127.0.0.1:0").await.unwrap();
        let stranger = WebSocketClient::connect(&server.url(), config("mallory")).await;
        assert_eq!(stranger.is_err(), refuses);
        let handler = CallHandler::new(registry(&std::sync::Arc::default()));
        let spoke = WebSocketClient::connect(&server.url(), config(token).with_handler(handler)).await.unwrap();
        // The hub has read by then what was announced before.
        assert_eq!(spoke.remote().execute::<Add>(AddInput { a: 40, b: 2 }).await.unwrap().data, 42);
        assert_eq!(!hub.remote().list().is_empty(), serves, "{token}");
    }
}

impl Harness for ToSpokes {
    const NAME: &'static str = "websocket, hub to spokes";

    type Worker = WebSocketClient;

    async fn start() -> Self {
        let hub = hub();
        Self { server: hub.listen("127.0.0.1:0").await.unwrap(), hub }
    }

    async fn worker(&self, handler: CallHandler) -> WebSocketClient {
        spoke(&self.server.url(), handler).await
    }

    async fn caller(&self) -> Remote {
        self.hub.remote()
    }

    fn identity_of(claimed: Option<Identity>) -> Option<Identity> {
        claimed
    }
}

/// A spoke calls what other spokes serve; the network in between can be disturbed.
pub(crate) struct ThroughHub {
    _server: Listening,
    near: Proxy,
    far: Proxy,
}

impl Harness for ThroughHub {
    const NAME: &'static str = "websocket, through a hub";

    type Worker = WebSocketClient;

    async fn start() -> Self {
        let hub = hub().with_forwarding().with_heartbeat(Duration::from_secs(1));
        let server = hub.listen("127.0.0.1:0").await.unwrap();
        let near = Proxy::start(server.address()).await;
        Self { near, far: Proxy::start(server.address()).await, _server: server }
    }

    async fn worker(&self, handler: CallHandler) -> WebSocketClient {
        spoke(&format!("ws://{}/", self.far.address()), handler).await
    }

    async fn caller(&self) -> Remote {
        let config = config("ann").with_heartbeat(Duration::from_secs(1));
        WebSocketClient::connect(&format!("ws://{}/", self.near.address()), config).await.unwrap().remote()
    }

    async fn disturb(&self, choice: u64) {
        let proxy = if choice.is_multiple_of(2) { &self.near } else { &self.far };
        match choice % 10 {
            0..3 => proxy.cut(),
            3..6 => {
                proxy.stall();
                tokio::time::sleep(Duration::from_millis(choice)).await;
                proxy.resume();
            }
            _ => {}
        }
    }

    fn identity_of(_: Option<Identity>) -> Option<Identity> {
        Some(ann())
    }
}

/// What a connection has become outlives the server that it came by, which does not wait for it.
#[cfg(feature = "http-server")]
#[tokio::test]
async fn a_hub_on_a_route_of_a_server() {
    let hub = hub().with_forwarding();
    let routes = axum::Router::new().route("/ops", hub.clone().into_service());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/ops", listener.local_addr().unwrap());
    let stop = CancelToken::new();
    let server = HttpServer::new(Registry::new()).with_routes(routes).with_cancel(stop.clone());
    let running = tokio::spawn(server.serve_listener(listener));
    let worker = spoke(&url, CallHandler::new(registry(&Arc::default()))).await;
    let caller = WebSocketClient::connect(&url, config("ann")).await.unwrap();
    let add = || async { caller.remote().call("test.add", json!({ "a": 40, "b": 2 })).await };
    eventually("the worker has announced itself", || hub.remote().list().len() == COUNT).await;
    assert_eq!(add().await.unwrap().data, 42);
    stop.cancel();
    limited(async { running.await.unwrap().unwrap() }).await;
    assert_eq!(add().await.unwrap().data, 42);
    worker.stop().await;
}

/// Otherwise, its calls would come back to it through the hub, without end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spoke_does_not_serve_what_it_calls_through_its_hub() {
    limited(async {
        let (hub, calling) = (hub().with_forwarding(), Registry::new());
        let server = hub.listen("127.0.0.1:0").await.unwrap();
        let worker = spoke(&server.url(), CallHandler::new(calling.clone())).await;
        add_twice(&calling, &worker.remote());
        worker.announce();
        let remote = hub.remote();
        let listed = || remote.list().iter().map(|spec| spec.id.to_string()).collect::<Vec<_>>();
        eventually("it is served", || listed().contains(&"test.twice".to_owned())).await;
        assert_eq!(listed(), ["test.twice"]);
        let error = remote.execute::<Twice>(TwiceInput { n: 4 }).await.unwrap_err();
        assert_eq!(error.message(), ADD_IS_NOT_SERVED);
        let adding = spoke(&server.url(), CallHandler::new(registry(&std::sync::Arc::default()))).await;
        eventually("it is told", || worker.remote().list().iter().any(|spec| spec.id == "test.add")).await;
        assert_eq!(remote.execute::<Twice>(TwiceInput { n: 4 }).await.unwrap().data, 8);
        adding.stop().await;
        worker.stop().await;
    })
    .await;
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
