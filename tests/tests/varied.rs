//! Forty varied operations served by our server, and called by the client that was generated from its document.
//!
//! The document is in `tests/fixtures/varied/varied.json`, to be seen when it changes: `UPDATE_GOLDEN=1 cargo test -p
//! ops-tests --test varied` writes it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use futures_util::StreamExt;
use ops_runtime::access::Identity;
use ops_runtime::http::Auth;
use ops_runtime::registry::CancelToken;
use ops_runtime::serve::{BearerTokens, HttpServer};
use ops_runtime::spec::OperationKind;
use ops_runtime::{HttpClient, HttpConfig, Operation};
use ops_tests::varied::{self, Case};
use serde_json::{Value, json};

/// The operations of the server's document.
pub mod api {
    ops_runtime::include_operations!("varied");
}

/// A served registry, and where it is.
struct Server {
    url: String,
    stop: CancelToken,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn serve() -> Server {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, stop) = (format!("http://{}", listener.local_addr().unwrap()), CancelToken::new());
    let tokens = BearerTokens::new().with_token(varied::TOKEN, Identity::new("tester").with_scope("varied"));
    let server = HttpServer::new(varied::registry().unwrap()).with_title("Varied").with_authenticator(tokens);
    tokio::spawn(server.with_cancel(stop.clone()).serve_listener(listener));
    Server { url, stop }
}

/// The input of the client for what the server's operation takes: it has all that is a body as `body`.
fn input(case: &Case) -> Value {
    let sample = case.sample.as_object().unwrap();
    let Some(http) = case.spec.http() else { return json!({ "body": sample }) };
    if !http.bodies.iter().any(ops_runtime::binding::HttpBody::is_rest) {
        return case.sample.clone();
    }
    let is_placed = |name: &String| http.parameters.iter().any(|own| own.property == *name);
    let (placed, rest): (Vec<_>, Vec<_>) = sample.clone().into_iter().partition(|(name, _)| is_placed(name));
    let mut input: serde_json::Map<String, Value> = placed.into_iter().collect();
    input.insert("body".into(), Value::Object(rest.into_iter().collect()));
    Value::Object(input)
}

/// Calls an operation by its generated types.
macro_rules! call {
    ($client:expr, $name:ident, $case:expr) => {{
        let input: <api::$name as Operation>::Input = serde_json::from_value(input($case)).unwrap();
        let envelope = $client.execute::<api::$name>(input).await;
        let envelope = envelope.unwrap_or_else(|error| panic!("{}: {error} {}", $case.spec.id, error.details()));
        assert!(envelope.warnings.is_empty(), "{}: {:?}", $case.spec.id, envelope.warnings);
        serde_json::to_value(&envelope.data).unwrap()
    }};
}

#[tokio::test]
async fn a_generated_client_calls_them_all() {
    let server = serve().await;
    let config = HttpConfig::new().with_base_url(&*server.url).with_auth(Auth::bearer(varied::TOKEN));
    let client = HttpClient::new(config).unwrap();
    let cases = varied::cases();
    let mut called = BTreeSet::new();
    macro_rules! all {
        ($($name:ident)*) => {
            $(
                let spec = <api::$name as Operation>::SPEC;
                let case = cases.iter().find(|case| case.spec.name() == spec.name()).unwrap();
                assert_eq!(spec.kind, case.spec.kind, "{}", spec.id);
                assert_eq!(call!(client, $name, case), case.given, "{}", spec.id);
                called.insert(spec.name().to_owned());
            )*
        };
    }
    all! {
        Anything Both Cookies Created Either Form Headers Json List Map Moment Nothing Number Parts Patch
        PathLabel PathList PathMatrix PathObject PathText Plain PutPerson QueryComma QueryDeep QueryForm QueryJson
        QueryPipe QuerySpace Rest Said Silence Text Truth Whole Choice Record Nested Union
    }
    let sent = ops_runtime::Body::from(vec![0_u8, 255]);
    let back = client.execute::<api::Bytes>(sent).await.unwrap().data;
    assert_eq!(back.bytes(64).await.unwrap(), [0_u8, 255][..]);
    called.insert("bytes".to_owned());
    let case = cases.iter().find(|case| case.spec.kind == OperationKind::Subscription).unwrap();
    let items: Vec<_> = client
        .subscribe::<api::Events>(serde_json::from_value::<api::EventsInput>(input(case)).unwrap())
        .await
        .unwrap()
        .collect()
        .await;
    let items: Vec<Value> = items.into_iter().map(|item| serde_json::to_value(item.unwrap().data).unwrap()).collect();
    assert_eq!(Value::Array(items), case.given);
    called.insert(case.spec.name().to_owned());
    let all: BTreeSet<String> = cases.iter().map(|case| case.spec.name().to_owned()).collect();
    assert_eq!((called.len(), called), (40, all));
}

#[tokio::test]
async fn the_document_is_the_one_that_the_client_is_from() {
    let server = serve().await;
    let (host, path) = (server.url.strip_prefix("http://").unwrap(), "/openapi.json");
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let document: Value = serde_json::from_str(body).unwrap();
    let pretty = format!("{}\n", serde_json::to_string_pretty(&document).unwrap());
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/varied/varied.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &pretty).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&golden).unwrap(), pretty, "UPDATE_GOLDEN=1 writes it anew");
}
