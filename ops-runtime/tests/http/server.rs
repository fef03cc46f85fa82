//! The server that the tests call: it tells what it saw, and misbehaves on request.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures_util::{StreamExt, stream};
use ops_runtime::binding::HttpBinding;
use ops_runtime::spec::{OperationKind, OperationSpec, Text};
use serde_json::json;
use tokio::net::TcpSocket;
use tokio::sync::Notify;

/// A server on a port of its own.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Told when the client has gone away from `/endless`.
    pub(crate) gone: Arc<Notify>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let gone = Arc::new(Notify::new());
        let notify = gone.clone();
        let app = Router::new()
            .route("/echo/{*rest}", any(echo))
            .route("/text", get(|| async { "plain text" }))
            .route("/bytes", get(|| async { Bytes::from_static(&[0, 159, 146, 150]) }))
            .route("/empty", any(|| async { StatusCode::NO_CONTENT }))
            .route(
                "/large",
                get(|| async {
                    Body::from_stream(stream::repeat(Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 4096]))))
                }),
            )
            .route("/conflict", any(|| async { (StatusCode::CONFLICT, axum_json(&json!({ "by": "ann" }))) }))
            .route("/silent", get(|| async { std::future::pending::<()>().await }))
            .route(
                "/halfway",
                get(|| async {
                    Body::from_stream(
                        stream::once(async { Ok::<_, Infallible>(Bytes::from_static(b"{")) }).chain(stream::pending()),
                    )
                }),
            )
            .route("/to", any(redirect))
            .route("/events", get(events))
            .route("/endless", get(move || endless(notify.clone())));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, gone }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Serves an app on a port of its own, and gives its URL.
pub(crate) async fn serve(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

/// What a call to a server that says nothing ends with. `call` gets the server's URL.
///
/// On a busy machine, the time of a call may be up before the server has its request. Then it is called again, at another
/// server.
pub(crate) async fn unanswered<T>(call: impl AsyncFn(String) -> T) -> T {
    for _ in 0..20 {
        let asked = Arc::new(AtomicBool::new(false));
        let tell = asked.clone();
        let silent = move || {
            tell.store(true, Ordering::SeqCst);
            std::future::pending::<()>()
        };
        let ended = call(serve(Router::new().fallback(any(silent))).await).await;
        if asked.load(Ordering::SeqCst) {
            return ended;
        }
    }
    panic!("the server never had the request");
}

/// A socket that has a port, but does not listen: connections to its address are refused, and no other socket gets it.
pub(crate) fn closed_port() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// An operation `t.name` that is bound to a path of the server.
pub(crate) fn spec(kind: OperationKind, name: &str, binding: HttpBinding) -> OperationSpec {
    let mut spec = OperationSpec::new(kind, "t", name).unwrap();
    spec.binding = ops_runtime::binding::Binding::Http(binding);
    spec
}

/// `GET` of a path.
pub(crate) fn get_of(path: impl Into<Text>) -> HttpBinding {
    let mut binding = HttpBinding::new("GET", "");
    binding.path = path.into();
    binding
}

fn axum_json(value: &serde_json::Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// Answers with the request.
async fn echo(request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers: serde_json::Map<_, _> =
        parts.headers.iter().map(|(name, value)| (name.to_string(), text(value).into())).collect();
    axum_json(&json!({
        "method": parts.method.as_str(),
        "uri": parts.uri.to_string(),
        "headers": headers,
        "body": String::from_utf8_lossy(&body),
    }))
}

/// Redirects to where the query says: `status,URL`.
async fn redirect(request: Request) -> Response {
    let (status, to) = request.uri().query().and_then(|query| query.split_once(',')).unwrap();
    let status = StatusCode::from_u16(status.parse().unwrap()).unwrap();
    (status, [(header::LOCATION, to.to_owned())]).into_response()
}

fn event_stream(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// Events in pieces of as many bytes as the query says, one piece a packet if it can be.
async fn events(request: Request) -> Response {
    let size: usize = request.uri().query().unwrap().parse().unwrap();
    let text = "\u{feff}: hi\r\nid: 1\r\ndata: {\"say\":\"grüß\"}\r\n\r\ndata: not json\r\rdata: {\"say\":\r\ndata: \"b\"}\n\n\
                data: [DONE]\n\ndata: {}\n\n";
    let pieces: Vec<_> = text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
    let pieces = stream::iter(pieces).then(|piece| async {
        tokio::task::yield_now().await;
        Ok::<_, Infallible>(piece)
    });
    // The stream stays open: it is `[DONE]` that ends it.
    event_stream(Body::from_stream(pieces.chain(stream::pending())))
}

struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Counts for ever.
async fn endless(gone: Arc<Notify>) -> Response {
    let guard = OnDrop(gone);
    let events = stream::iter(0_u64..).then(move |n| {
        let _guard = &guard;
        async move {
            tokio::time::sleep(Duration::from_millis(16)).await;
            Ok::<_, Infallible>(Bytes::from(format!("data: {n}\n\n")))
        }
    });
    event_stream(Body::from_stream(events))
}
