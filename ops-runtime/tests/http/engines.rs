//! A `reqwest` client of the user's in the place of the built-in engine.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::any;
use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::http::{Auth, HttpClient, HttpConfig, HttpEngine};
use ops_runtime::spec::OperationKind;
use ops_runtime::{CallError, ResponseEnvelope};
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::{Server, get_of, serve, spec};

/// A builder of clients; the built-in engine installs the cryptography that any of them needs.
fn builder() -> reqwest::ClientBuilder {
    HttpEngine::new().unwrap();
    reqwest::Client::builder()
}

async fn call(config: HttpConfig, path: String) -> Result<Value, CallError> {
    let client = HttpClient::new(config)?;
    client.add([spec(OperationKind::Query, "x", get_of(path))]).unwrap();
    client.call("t.x", json!({})).await.map(ResponseEnvelope::into_data)
}

#[tokio::test]
async fn its_proxy_and_headers_are_used() {
    // A proxy gets the whole URL (RFC 9112, section 3.2.2).
    let proxy = Router::new().fallback(any(|request: Request| async move {
        let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        axum::Json(json!([request.uri().to_string(), header("x-own"), header("authorization")]))
    }));
    let proxy = reqwest::Proxy::all(serve(proxy).await).unwrap();
    let own = reqwest::header::HeaderMap::from_iter([("x-own".parse().unwrap(), "1".parse().unwrap())]);
    let client = builder().redirect(Policy::none()).proxy(proxy).default_headers(own).build().unwrap();
    let config = HttpConfig::new().with_base_url("http://nowhere.test/v1").with_auth(Auth::bearer("t"));
    let found = call(config.with_client(client), "/x?a=1".to_owned()).await.unwrap();
    assert_eq!(found, json!(["http://nowhere.test/v1/x?a=1", "1", "Bearer t"]));
}

#[tokio::test]
async fn its_user_agent_is_sent() {
    let server = Server::start().await;
    let own = || builder().redirect(Policy::none());
    let named = || own().user_agent("shop-sync/1.0").build().unwrap();
    let config = || HttpConfig::new().with_base_url(server.url());
    let ours = concat!("ops-runtime/", env!("CARGO_PKG_VERSION"));
    for (config, expected) in [
        (config().with_client(named()), json!("shop-sync/1.0")),
        (config().with_client(named()).with_header("User-Agent", "import/2"), json!("import/2")),
        (config().with_client(own().build().unwrap()), Value::Null),
        (config().with_service(HttpEngine::from(named())), json!("shop-sync/1.0")),
        (config().with_client(named()).with_service(HttpEngine::new().unwrap()), json!(ours)),
        (config().with_service(HttpEngine::new().unwrap()).with_header("User-Agent", "import/2"), json!("import/2")),
        (config(), json!(ours)),
    ] {
        let found = call(config, "/echo/x".to_owned()).await.unwrap();
        assert_eq!(found["headers"]["user-agent"], expected);
    }
}

/// Looks for the address of a host, and never finds one.
struct Endless;

impl Resolve for Endless {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn its_own_timeout_ends_connecting() {
    let soon = Duration::from_millis(20);
    let own = builder().redirect(Policy::none()).no_proxy().connect_timeout(soon).dns_resolver(Arc::new(Endless));
    let config = HttpConfig::new().with_base_url("http://nowhere.test").with_client(own.build().unwrap());
    let error = call(config, "/x".to_owned()).await.unwrap_err();
    let told = "the request to http://nowhere.test failed: no connection was made in time: raise \
                `with_connect_timeout`, or the timeout of your own client";
    assert_eq!((error.code().as_str(), error.message()), ("TIMEOUT", told));
}

#[tokio::test]
async fn redirects_are_followed_by_our_rules() {
    let (one, other) = (Server::start().await, Server::start().await);
    let path = || format!("/to?302,{}/echo/y", other.url());
    let config = |policy: Policy| {
        let client = builder().redirect(policy).build().unwrap();
        HttpConfig::new().with_base_url(one.url()).with_header("X-Key", "hush").with_client(client)
    };
    let found = call(config(Policy::none()), path()).await.unwrap();
    assert_eq!((&found["uri"], found["headers"].get("x-key")), (&json!("/echo/y"), None));
    // A client that follows them itself is not trusted with a second request.
    let error = call(config(Policy::default()), path()).await.unwrap_err();
    assert!(error.message().contains("redirect(reqwest::redirect::Policy::none())"), "{error}");
    assert!(!format!("{error:?}").contains("hush"));
    // Without a redirect, its policy does not matter.
    assert_eq!(call(config(Policy::default()), "/echo/z".to_owned()).await.unwrap()["uri"], "/echo/z");
}

/// What tells the process that it is the one behind a proxy.
const BEHIND: &str = "OPS_TEST_BEHIND_A_PROXY";

#[tokio::test]
async fn a_redirect_to_another_host_goes_through_the_proxy_too() {
    let name = "engines::a_redirect_to_another_host_goes_through_the_proxy_too";
    // A process cannot safely set variables of its own, so this one starts itself with those of a proxy.
    if std::env::var_os(BEHIND).is_none() {
        let proxy = Router::new().fallback(any(|request: Request| async move {
            match request.uri().host() {
                Some("first.test") => (StatusCode::FOUND, [("location", "http://second.test/y")]).into_response(),
                _ => axum::Json(json!(request.uri().to_string())).into_response(),
            }
        }));
        // Its name leads to this machine, whither no server may lead.
        let url = serve(proxy).await.replace("127.0.0.1", "localhost");
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", name, "--nocapture"]).env(BEHIND, "1").env("http_proxy", url);
        for variable in ["HTTP_PROXY", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "REQUEST_METHOD"] {
            again.env_remove(variable);
        }
        let run = tokio::task::spawn_blocking(move || again.output().unwrap()).await.unwrap();
        let said = [run.stdout, run.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(run.status.success() && said[0].contains("1 passed"), "{}", said.join("\n"));
        return;
    }
    let config = HttpConfig::new().with_base_url("http://first.test");
    assert_eq!(call(config, "/x".to_owned()).await.unwrap(), json!("http://second.test/y"));
}

const HEADERS: u8 = 1;

/// A frame of HTTP/2 (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream][..], payload].concat()
}

/// An HTTP/2 server that answers with these frames, by the number of the request and its stream.
async fn http2(answer: fn(usize, u8) -> Vec<u8>) -> String {
    const SETTINGS: u8 = 4;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.read_exact(&mut [0; 24]).await.unwrap();
        socket.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
        let mut requests = 0;
        loop {
            let mut head = [0; 9];
            if socket.read_exact(&mut head).await.is_err() {
                return;
            }
            let [_, high, low, kind, flags, .., stream] = head;
            let mut payload = vec![0; usize::from(high) * 256 + usize::from(low)];
            socket.read_exact(&mut payload).await.unwrap();
            // A request ends with its headers, or with its body.
            if ![0, HEADERS].contains(&kind) || flags & 1 == 0 {
                continue;
            }
            requests += 1;
            socket.write_all(&answer(requests, stream)).await.unwrap();
        }
    });
    url
}

/// Refuses the first request unprocessed, and answers the others with status 200.
fn refusing(number: usize, stream: u8) -> Vec<u8> {
    const RST_STREAM: u8 = 3;
    match number {
        1 => frame(RST_STREAM, 0, stream, &[0, 0, 0, 7]),
        _ => frame(HEADERS, 5, stream, &[0x88]),
    }
}

#[tokio::test]
async fn what_an_http2_server_did_not_process_is_sent_again() {
    const BODY: &[HttpBody] = &[HttpBody::new("application/json")];
    let get = || (get_of("/x"), json!({}));
    let post = || (HttpBinding::new("POST", "/x").with_bodies(BODY), json!({ "body": { "a": 1 } }));
    for (binding, input) in [get(), post()] {
        let own = builder().redirect(Policy::none()).http2_prior_knowledge().build().unwrap();
        let config = HttpConfig::new().with_base_url(http2(refusing).await).with_client(own);
        let client = HttpClient::new(config).unwrap();
        client.add([spec(OperationKind::Mutation, "x", binding)]).unwrap();
        assert_eq!(client.call("t.x", input).await.unwrap().data, Value::Null);
    }
}

#[cfg(feature = "compression")]
#[tokio::test]
async fn a_compressed_response_that_is_cut_off_is_no_success() {
    /// A response with `content-encoding: gzip` (RFC 7541, appendix A), of which only the header comes (RFC 1952, section 2.3).
    fn cut_off(_: usize, stream: u8) -> Vec<u8> {
        let head = [&[0x88_u8, 0x0f, 0x0b, 4][..], b"gzip"].concat();
        [frame(HEADERS, 4, stream, &head), frame(0, 1, stream, &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff])].concat()
    }
    let own = builder().redirect(Policy::none()).http2_prior_knowledge().gzip(true).build().unwrap();
    let client = HttpClient::new(HttpConfig::new().with_base_url(http2(cut_off).await).with_client(own)).unwrap();
    client.add([spec(OperationKind::Mutation, "x", HttpBinding::new("POST", "/x"))]).unwrap();
    let error = client.call("t.x", json!({})).await.unwrap_err();
    assert!(error.message().starts_with("the response broke off: "), "{error}");
}
