//! How a server ends, and layers of the program's own around it.

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use ops_runtime::registry::CancelToken;
use ops_runtime::serve::{HttpServer, HttpServerOptions};
use ops_runtime::{Registry, operation};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use crate::fixture::{Server, registry, serve};

/// Told when `slow` has begun.
static BEGUN: Notify = Notify::const_new();

#[operation(namespace = "t", http = "GET /slow")]
async fn slow() -> String {
    BEGUN.notify_one();
    tokio::time::sleep(Duration::from_millis(300)).await;
    "done".to_owned()
}

/// A signal of the program ends the server when its requests are answered; the program's own handle is left alone.
#[tokio::test]
async fn a_future_begins_the_shutdown() {
    let registry = Registry::new();
    registry.register(Slow).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, own) = (listener.local_addr().unwrap(), CancelToken::new());
    let (end, ended) = oneshot::channel::<()>();
    let shutdown = async {
        let _ = ended.await;
    };
    let server = HttpServer::new(registry).with_cancel(own.clone()).with_shutdown(shutdown);
    let running = tokio::spawn(server.serve_listener(listener));
    let client = Server { address, stop: CancelToken::new(), running: None };
    let asked = tokio::spawn(async move { client.get("/slow").await });
    timeout(Duration::from_secs(20), BEGUN.notified()).await.unwrap();
    end.send(()).unwrap();
    timeout(Duration::from_secs(10), running).await.unwrap().unwrap().unwrap();
    assert_eq!(asked.await.unwrap().body, "\"done\"");
    assert!(TcpStream::connect(address).await.is_err() && !own.is_cancelled());
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let bound = TcpListener::bind(address).await.unwrap_err();
    let error = HttpServer::new(Registry::new()).serve(address.to_string()).await.unwrap_err();
    assert_eq!(error.kind(), bound.kind());
    assert_eq!(error.to_string(), format!("cannot listen on {address}: {bound}"));
}

#[tokio::test]
async fn a_token_is_cancelled_when_a_future_ends() {
    let (token, other) = (CancelToken::new(), CancelToken::new());
    let waiting = other.clone();
    token.cancel_when(async move { waiting.cancelled().await });
    tokio::task::yield_now().await;
    assert!(!token.is_cancelled());
    other.cancel();
    timeout(Duration::from_secs(10), token.cancelled()).await.unwrap();
}

#[tokio::test]
async fn layers_are_around_all_and_the_limits_stay() {
    let refuse = from_fn(async |request: Request, next: Next| -> Response {
        if request.headers().contains_key("x-refuse") {
            return StatusCode::TOO_MANY_REQUESTS.into_response();
        }
        next.run(request).await
    });
    let mark = |name: &'static str| {
        from_fn(async move |request: Request, next: Next| {
            let mut response = next.run(request).await;
            let order = response.headers().get("x-order").map_or("", |value| value.to_str().unwrap()).to_owned() + name;
            response.headers_mut().insert("x-order", HeaderValue::from_str(&order).unwrap());
            response
        })
    };
    let with_layers = |options: HttpServerOptions| {
        let routes = Router::new().route("/own", get(async || "own"));
        let server = HttpServer::new(registry()).with_options(options).with_routes(routes);
        serve(server.with_layer(mark("a")).with_layer(mark("b")).with_layer(refuse.clone()))
    };
    let server = with_layers(HttpServerOptions::new()).await;
    for path in ["/own", "/healthz", "/operations/math/add?input=%7B%22a%22:1%7D", "/nothing"] {
        let answer = server.get(path).await;
        assert_eq!(answer.header("x-order"), Some("ab"), "{path}: {answer:?}");
        assert_eq!(server.send(&format!("GET {path}"), &["x-refuse: 1"], "").await.status, 429, "{path}");
    }
    // A head that does not come ends its connection.
    let server = with_layers(HttpServerOptions::new().with_head_timeout(Duration::from_millis(200))).await;
    assert_eq!(server.text(b"GET / HTTP/1.1\r\n").await, "");
}
