//! Bearer tokens and API keys, by themselves and together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ops_runtime::Registry;
use ops_runtime::access::Identity;
use ops_runtime::binding::{Binding, HttpBinding};
use ops_runtime::http::{Auth, HttpClient, HttpConfig};
use ops_runtime::serve::{ApiKeys, BearerTokens, HttpServer, Unauthorized};
use ops_runtime::spec::{OperationKind, OperationSpec};

use crate::access::{ROUTES, secured};
use crate::fixture::{Answer, Server, registry, serve};

fn ann() -> Identity {
    Identity::new("ann").with_scope("pets:read").with_scope("me:read")
}

/// A query, headers, and the status of the response.
type Sent = (&'static str, &'static [&'static str], u16);

async fn me(server: &Server, headers: &[&str]) -> Answer {
    server.send("GET /operations/users/me", headers, "").await
}

#[tokio::test]
async fn bearer_tokens_on_every_route() {
    let tokens = BearerTokens::new()
        .with_token("s3cret", ann())
        .with_token("other", Identity::new("bob"))
        .with_token("", Identity::new("nobody").with_scope("me:read").with_scope("pets:read"));
    let server = serve(HttpServer::new(secured()).with_authenticator(tokens)).await;
    let invalid = Some("Bearer error=\"invalid_token\"");
    let several =
        Some("Bearer error=\"invalid_token\", error_description=\"there are several headers `Authorization`\"");
    // The scope depends on the route.
    let lacking = Some("Bearer error=\"insufficient_scope\", scope=");
    let table: [(&[&str], u16, Option<&str>); 15] = [
        (&[], 401, Some("Bearer")),
        (&["authorization: Bearer s3cret"], 200, None),
        (&["authorization: bEaReR   s3cret  "], 200, None),
        (&["authorization: Bearer other"], 403, lacking),
        (&["authorization: Bearer S3CRET"], 401, invalid),
        (&["authorization: Bearer s3cre"], 401, invalid),
        (&["authorization: Bearer s3cret "], 200, None),
        (&["authorization: Bearer s3cret, Bearer s3cret"], 401, invalid),
        (&["authorization: Bearer"], 401, invalid),
        (&["authorization: Bearer "], 401, invalid),
        (&["authorization: Bearer \u{e9}"], 401, invalid),
        (&["authorization: Bearers3cret"], 401, Some("Bearer")),
        (&["authorization: Basic czNjcmV0"], 401, Some("Bearer")),
        (&["authorization: Bearer s3cret", "authorization: Bearer s3cret"], 401, several),
        (&["authorization: Bearer wrong", "authorization: Bearer s3cret"], 401, several),
    ];
    for route in ROUTES {
        for (headers, status, challenge) in table {
            let answer = server.send(route, headers, "").await;
            let scope = if route.ends_with("/me") { "me:read" } else { "pets:read" };
            let challenge = challenge.map(|start| match start.strip_suffix('=') {
                Some(_) => format!("{start}\"{scope}\""),
                None => start.to_owned(),
            });
            let told = answer.header("www-authenticate");
            assert_eq!((answer.status, told), (status, challenge.as_deref()), "{route} {headers:?}");
            assert!(!answer.body.contains("s3cret"), "{answer:?}");
        }
    }
    // A token in the query is none (RFC 9700, section 4.3.2).
    assert_eq!(server.get("/operations/users/me?access_token=s3cret").await.status, 401);
    // Where nothing is needed, credentials still have to be valid.
    let open = "GET /operations/math/add?input=%7B%22a%22%3A1%7D";
    assert_eq!(server.send(open, &["authorization: Bearer wrong"], "").await.status, 401);
    assert_eq!(server.send(open, &[], "").await.status, 200);
}

#[tokio::test]
async fn api_keys_in_each_place() {
    let table: [(ApiKeys, &[Sent]); 3] = [
        (
            ApiKeys::header("X-Api-Key"),
            &[
                ("", &["x-api-key: s3cret"], 200),
                ("", &["x-api-key: wrong"], 401),
                ("", &["x-api-key:"], 401),
                ("", &["x-api-key: s3cret", "x-api-key: s3cret"], 401),
                ("?X-Api-Key=s3cret", &[], 401),
            ],
        ),
        (
            ApiKeys::query("api_key"),
            &[
                ("?api_key=s3cret", &[], 200),
                ("?a%70i_key=s3cr%65t", &[], 200),
                ("?api_key=wrong", &[], 401),
                ("?api_key", &[], 401),
                ("?api_key=%ff", &[], 401),
                ("?api_key=s3cret&api_key=s3cret", &[], 401),
                ("?API_KEY=s3cret", &[], 401),
                ("", &["api_key: s3cret"], 401),
            ],
        ),
        (
            ApiKeys::cookie("session"),
            &[
                ("", &["cookie: a=b; session=s3cret"], 200),
                ("", &["cookie: a=b", "cookie: session=s3cret"], 200),
                // Browsers send the cookies of other applications as they were set.
                ("", &["cookie: name=Jos\u{e9}; session=s3cret"], 200),
                ("", &["cookie: session=s3cr\u{e9}t"], 401),
                ("", &["cookie: session=wrong"], 401),
                ("", &["cookie: session="], 401),
                ("", &["cookie: session=s3cret; session=s3cret"], 401),
                ("", &["cookie: Session=s3cret"], 401),
                ("?session=s3cret", &[], 401),
            ],
        ),
    ];
    for (keys, requests) in table {
        let server = HttpServer::new(registry()).with_authenticator(keys.with_key("s3cret", ann()).with_key("", ann()));
        let server = serve(server).await;
        for (query, headers, status) in requests {
            let answer = server.send(&format!("GET /operations/users/me{query}"), headers, "").await;
            assert_eq!(answer.status, *status, "{query} {headers:?}: {answer:?}");
            let challenge = answer.header("www-authenticate");
            assert_eq!(challenge.is_some_and(|text| text.starts_with("ApiKey in=\"")), *status == 401);
        }
    }
}

#[tokio::test]
async fn lookups() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let tokens = BearerTokens::new().with_token("known", ann()).with_lookup(move |token| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            match token.as_str() {
                "stored" => Ok(Some(ann())),
                "broken" => Err(Unauthorized::unavailable()),
                _ => Ok(None),
            }
        }
    });
    let server = serve(HttpServer::new(registry()).with_authenticator(tokens)).await;
    for (token, status, lookups) in [("known", 200, 0), ("stored", 200, 1), ("other", 401, 2), ("broken", 503, 3)] {
        let answer = me(&server, &[&format!("authorization: Bearer {token}")]).await;
        assert_eq!((answer.status, asked.load(Ordering::SeqCst)), (status, lookups), "{token}");
        assert_eq!(answer.header("retry-after").is_some(), status == 503);
        assert_eq!(answer.header("www-authenticate").is_some(), status == 401);
    }
    assert_eq!(me(&server, &[]).await.status, 401);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn several_authenticators_are_tried_in_turn() {
    let named = |id: &str| Identity::new(id).with_scope("me:read");
    let server = HttpServer::new(registry())
        .with_authenticator(BearerTokens::new().with_token("one", named("first")))
        .with_authenticator(ApiKeys::header("x-api-key").with_key("two", named("second")))
        .with_authenticator(BearerTokens::new().with_token("three", named("third")).with_lookup(|token| async move {
            if token == "down" { Err(Unauthorized::unavailable()) } else { Ok(None) }
        }));
    let server = serve(server).await;
    let accepted: [(&[&str], &str); 5] = [
        (&["authorization: Bearer one"], "first"),
        (&["x-api-key: two"], "second"),
        // A token that the first does not know may be one of the third.
        (&["authorization: Bearer three"], "third"),
        (&["authorization: Bearer one", "x-api-key: two"], "first"),
        (&["authorization: Bearer one", "x-api-key: wrong"], "first"),
    ];
    for (headers, id) in accepted {
        assert_eq!(me(&server, headers).await.body, format!("\"{id}\""), "{headers:?}");
    }
    // Credentials that are wrong stay wrong, whatever comes beside them.
    let refused: [&[&str]; 5] = [
        &["authorization: Bearer wrong"],
        &["x-api-key: wrong"],
        &["authorization: Bearer wrong", "x-api-key: two"],
        &["authorization: Bearer three", "authorization: Bearer one"],
        &["authorization: Bearer down"],
    ];
    for headers in refused {
        assert_eq!(me(&server, headers).await.status, 401, "{headers:?}");
    }
    assert_eq!(me(&server, &["authorization: Bearer three", "x-api-key: wrong"]).await.body, "\"third\"");
    let none = me(&server, &[]).await;
    assert_eq!(none.header("www-authenticate"), Some("Bearer, ApiKey in=\"header\", name=\"x-api-key\""));
}

/// A registry with an operation of a service that tells which `Authorization` it got.
async fn passing_on() -> Registry {
    let app = axum::Router::new().route(
        "/x",
        axum::routing::get(|headers: axum::http::HeaderMap| async move {
            axum::Json(headers.get("authorization").map(|value| value.to_str().unwrap().to_owned()))
        }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let client = HttpClient::new(HttpConfig::new().with_base_url(url).with_auth(Auth::pass_on())).unwrap();
    let mut spec = OperationSpec::new(OperationKind::Query, "up", "x").unwrap();
    spec.binding = Binding::Http(HttpBinding::new("GET", "/x"));
    let registry = Registry::new();
    registry.register_all(client.bind([spec]).unwrap()).unwrap();
    registry
}

#[tokio::test]
async fn the_token_of_a_request_reaches_the_service_behind() {
    let bearer = BearerTokens::new()
        .with_token("one", ann())
        .with_token("two", Identity::new("bob").with_token("another"))
        .with_lookup(|token| async move { Ok((token == "three").then(|| Identity::new("eve"))) });
    let keys = ApiKeys::header("X-Key").with_key("k3y", Identity::new("kim"));
    let server = HttpServer::new(passing_on().await).with_authenticator(bearer).with_authenticator(keys);
    let server = serve(server).await;
    let table: [(&[&str], u16, &str); 6] = [
        (&["authorization: Bearer one"], 200, "\"Bearer one\""),
        (&["authorization: Bearer two"], 200, "\"Bearer another\""),
        (&["authorization: Bearer three"], 200, "\"Bearer three\""),
        (&["authorization: Bearer one", "x-key: k3y"], 200, "\"Bearer one\""),
        // A key is no token.
        (&["x-key: k3y"], 403, ""),
        (&[], 403, ""),
    ];
    for (headers, status, body) in table {
        let answer = server.send("POST /operations/up/x", headers, "").await;
        assert_eq!(answer.status, status, "{headers:?}: {}", answer.body);
        if status == 200 {
            assert_eq!(answer.body, body);
        } else {
            assert!(
                answer.body.contains("\"code\":\"ACCESS_DENIED\"") && !answer.body.contains("k3y"),
                "{}",
                answer.body
            );
        }
    }
}
