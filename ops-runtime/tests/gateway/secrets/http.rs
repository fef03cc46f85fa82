//! The gateway over HTTP, as callers without a client of ours find it.

use std::collections::BTreeMap;

use axum::Router;
use ops_runtime::access::{AccessControl, Identity};
use ops_runtime::gateway::Gateway;
use ops_runtime::http::{Auth, HttpClient, HttpConfig};
use ops_runtime::serve::{BearerTokens, JwtAuthenticator};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::secret;

/// A response with its head, as text.
async fn ask(address: &str, request: &str, token: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!("{request} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n");
    let body = if request.starts_with("POST") {
        "content-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    } else {
        "\r\n"
    };
    stream.write_all(format!("{head}connection: close\r\n{body}").as_bytes()).await.unwrap();
    let mut text = Vec::new();
    stream.read_to_end(&mut text).await.unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

async fn listen(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// What the HTTP server of a gateway answers, by what it was asked.
pub(crate) async fn answers(gateway: &Gateway, ids: &[String]) -> BTreeMap<String, String> {
    let tokens = BearerTokens::new().with_token(secret("caller"), Identity::new("ann"));
    let server = gateway.http_server().with_authenticator(tokens).with_metrics(AccessControl::NONE);
    #[cfg(feature = "docs-page")]
    let server = server.with_docs();
    let address = listen(server.into_router()).await;
    let mut answers = BTreeMap::new();
    for id in ids {
        let (namespace, name) = id.split_once('.').unwrap();
        let request = format!("POST /operations/{namespace}/{name}");
        let answer = ask(&address, &request, &secret("caller")).await;
        assert!(answer.starts_with("HTTP/1.1 50") || name == "names", "{request}: {answer}");
        answers.insert(request, answer);
    }
    for request in
        ["GET /openapi.json", "GET /openapi.yaml", "GET /docs", "GET /metrics", "GET /fails", "POST /nowhere"]
    {
        let answer = ask(&address, request, &secret("caller")).await;
        // The path of all the APIs is none's.
        let expected = if request.ends_with("nowhere") || request.ends_with("fails") { "404" } else { "200" };
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{request}: {answer}");
        answers.insert(request.to_owned(), answer);
    }
    answers
}

/// What a server answers whose keys for tokens cannot be fetched from there.
pub(crate) async fn without_keys(gateway: &Gateway, base: &str) -> String {
    // A token with the header and the claims that one has, and no signature that fits.
    const TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImEifQ.eyJzdWIiOiJhbm4ifQ.aHVu";
    let client = HttpConfig::new().with_base_url(base).with_auth(Auth::bearer(secret("jwks")));
    let keys = JwtAuthenticator::from_jwks_url(format!("{base}/fails")).unwrap();
    let keys = keys.with_client(HttpClient::new(client).unwrap());
    let address = listen(gateway.http_server().with_authenticator(keys).into_router()).await;
    let answer = ask(&address, "POST /operations/bearer/fails", TOKEN).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    answer
}
