//! JWTs: tokens of another implementation (`jwt.py` writes `jwt.json`), attacks, and keys that are fetched.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ops_runtime::access::Identity;
use ops_runtime::binding::SecurityKind;
use ops_runtime::serve::{Authenticator, BearerTokens, HttpServer, JwtAlgorithm, JwtAuthenticator};
use ops_runtime::{HttpClient, HttpConfig};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use crate::access::{ROUTES, secured};
use crate::fixture::{Answer, Server, registry, serve};

fn vectors() -> Value {
    serde_json::from_str(include_str!("jwt.json")).unwrap()
}

fn ours(tokens: JwtAuthenticator) -> JwtAuthenticator {
    tokens.with_issuer("https://login.example").with_audience("pets")
}

async fn me(server: &Server, token: &str) -> Answer {
    server.send("GET /operations/users/me", &[&format!("authorization: Bearer {token}")], "").await
}

/// Each member of an object with its text.
fn texts(value: &Value) -> impl Iterator<Item = (&str, &str)> {
    value.as_object().unwrap().iter().map(|(name, text)| (name.as_str(), text.as_str().unwrap()))
}

#[tokio::test]
async fn valid_tokens_by_a_set_by_pem_and_by_a_secret() {
    let vectors = vectors();
    let set = serve(
        HttpServer::new(registry()).with_authenticator(ours(JwtAuthenticator::from_jwks(&vectors["jwks"]).unwrap())),
    )
    .await;
    for (name, good) in vectors["good"].as_object().unwrap() {
        let (key, token) = (good["key"].as_str().unwrap(), good["token"].as_str().unwrap());
        assert_eq!(me(&set, token).await.body, "\"ann\"", "{name}");
        for (own, pem) in texts(&vectors["pem"]) {
            let tokens = ours(JwtAuthenticator::from_pem(pem).unwrap());
            let by_pem = serve(HttpServer::new(registry()).with_authenticator(tokens)).await;
            assert_eq!(me(&by_pem, token).await.status, if own == key { 200 } else { 401 }, "{name} by {own}");
        }
    }
    let pkcs1 = ours(JwtAuthenticator::from_pem(vectors["pkcs1"].as_str().unwrap()).unwrap());
    let pkcs1 = serve(HttpServer::new(registry()).with_authenticator(pkcs1)).await;
    assert_eq!(me(&pkcs1, vectors["good"]["RS256"]["token"].as_str().unwrap()).await.status, 200);
    let secret = URL_SAFE_NO_PAD.decode(vectors["secret"].as_str().unwrap()).unwrap();
    let by_secret = ours(JwtAuthenticator::from_secret(&secret).unwrap());
    let by_secret = serve(HttpServer::new(registry()).with_authenticator(by_secret)).await;
    let short = serve(
        HttpServer::new(registry()).with_authenticator(ours(JwtAuthenticator::from_secret(&secret[..48]).unwrap())),
    )
    .await;
    for (name, token) in texts(&vectors["secretly"]) {
        assert_eq!(me(&by_secret, token).await.status, 200, "{name}");
        assert_eq!((me(&set, token).await.status, me(&short, token).await.status), (401, 401), "{name}");
    }
}

#[tokio::test]
async fn invalid_tokens_are_refused_on_every_route() {
    let vectors = vectors();
    let tokens = ours(JwtAuthenticator::from_jwks(&vectors["jwks"]).unwrap());
    let server = serve(HttpServer::new(secured()).with_authenticator(tokens)).await;
    let told = |name: &str| match name {
        "expired" | "expired and for another audience" => "the token has expired",
        "without an end" => "the token has no time at which it expires",
        "not yet valid" => "the token is not valid yet",
        "another audience" | "no audience" => "the token is for another audience",
        "another issuer" => "the token is of another issuer",
        "nobody" => "the token does not say whose it is",
        _ => "",
    };
    for route in ROUTES {
        for (name, token) in texts(&vectors["bad"]) {
            let answer = server.send(route, &[&format!("authorization: Bearer {token}")], "").await;
            let challenge = match told(name) {
                "" => "Bearer error=\"invalid_token\"".to_owned(),
                told => format!("Bearer error=\"invalid_token\", error_description=\"{told}\""),
            };
            assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some(&*challenge)), "{route}: {name}");
        }
        let scopeless = format!("authorization: Bearer {}", vectors["scopeless"].as_str().unwrap());
        assert_eq!(server.send(route, &[&scopeless], "").await.status, 403, "{route}");
        let good = format!("authorization: Bearer {}", vectors["good"]["EdDSA"]["token"].as_str().unwrap());
        assert_eq!(server.send(route, &[&good], "").await.status, 200, "{route}");
    }
    // Each key alone is no secret, either.
    for (own, pem) in texts(&vectors["pem"]) {
        let tokens = ours(JwtAuthenticator::from_pem(pem).unwrap());
        let server = serve(HttpServer::new(registry()).with_authenticator(tokens)).await;
        for (name, token) in texts(&vectors["bad"]).filter(|(name, _)| name.starts_with("HS")) {
            assert_eq!(me(&server, token).await.status, 401, "{name} by {own}");
        }
    }
}

/// No text in the place of a token does more than be refused.
#[tokio::test]
async fn what_is_no_token() {
    let vectors = vectors();
    let server = serve(
        HttpServer::new(registry()).with_authenticator(ours(JwtAuthenticator::from_jwks(&vectors["jwks"]).unwrap())),
    )
    .await;
    let good = vectors["good"]["EdDSA"]["token"].as_str().unwrap();
    for cut in 0..good.len() {
        assert_eq!(me(&server, &good[..cut]).await.status, 401, "{cut}");
    }
    let deep = format!("{}.e30.AA", URL_SAFE_NO_PAD.encode("[".repeat(20_000)));
    let padded = format!("{good}==");
    for token in [".", "..", "...", "a.b.c", "e30.e30.e30", &deep, &padded, &format!("{good}.{good}")] {
        assert_eq!(me(&server, token).await.status, 401, "{}", &token[..token.len().min(60)]);
    }
}

#[tokio::test]
async fn options() {
    let vectors = vectors();
    let jwks = || JwtAuthenticator::from_jwks(&vectors["jwks"]).unwrap();
    let token = |name: &str| vectors["good"][name]["token"].as_str().unwrap().to_owned();
    // A token that names an audience is not for a server without one.
    let server = serve(HttpServer::new(registry()).with_authenticator(jwks())).await;
    assert_eq!(me(&server, &token("EdDSA")).await.status, 401);
    assert_eq!(me(&server, vectors["bad"]["no audience"].as_str().unwrap()).await.status, 200);
    let only = ours(jwks()).with_algorithms([JwtAlgorithm::Es256, JwtAlgorithm::Ps512]);
    let server = serve(HttpServer::new(registry()).with_authenticator(only)).await;
    for (name, status) in [("ES256", 200), ("PS512", 200), ("RS256", 401), ("EdDSA", 401)] {
        assert_eq!(me(&server, &token(name)).await.status, status, "{name}");
    }
    let long = ours(jwks()).with_leeway(Duration::from_secs(3_000_000_000));
    let server = serve(HttpServer::new(registry()).with_authenticator(long)).await;
    assert_eq!(me(&server, vectors["bad"]["expired"].as_str().unwrap()).await.status, 200);
    let named = ours(jwks()).with_identity(|claims| {
        let audience = claims.get("aud")?.as_str()?;
        Some(Identity::new(format!("one of {audience}")).with_scope("me:read"))
    });
    // Beside tokens of another kind.
    let opaque = BearerTokens::new().with_token("opaque", Identity::new("bob").with_scope("me:read"));
    let server = serve(HttpServer::new(registry()).with_authenticator(named).with_authenticator(opaque)).await;
    assert_eq!(me(&server, &token("EdDSA")).await.body, "\"one of pets\"");
    assert_eq!(me(&server, &token("several audiences")).await.status, 401);
    assert_eq!((me(&server, "opaque").await.status, me(&server, "other").await.status), (200, 401));
}

#[test]
fn keys_that_are_none() {
    let vectors = vectors();
    let ed = vectors["pem"]["ed"].as_str().unwrap();
    let private = ed.replace("PUBLIC KEY", "PRIVATE KEY");
    let pem = [
        ("", "the key is not PEM"),
        (&private, "the PEM text has no public key"),
        (vectors["weak"].as_str().unwrap(), "the key is none of"),
        (&ed.replace("MCow", "MC*w"), "the key between the lines"),
        (&ed.replace("MCow", "MCow MCow"), "the key is none of"),
        ("-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----", "the key is none of"),
        ("-----BEGIN ", "the PEM text has no public key"),
    ];
    for (pem, message) in pem {
        let error = JwtAuthenticator::from_pem(pem).unwrap_err();
        assert!(error.message().starts_with(message), "{error}");
    }
    assert!(JwtAuthenticator::from_secret("short").unwrap_err().message().contains("at least 32 bytes"));
    for jwks in [json!({}), json!([]), json!({ "keys": [] }), json!({ "keys": [{ "kty": "oct", "k": "AA" }, 7, null] })]
    {
        assert!(JwtAuthenticator::from_jwks(&jwks).is_err(), "{jwks}");
    }
    for url in ["http://login.example", "http://10.0.0.1/", "file:///etc/passwd", "login.example", ""] {
        assert!(JwtAuthenticator::from_issuer(url).is_err() && JwtAuthenticator::from_jwks_url(url).is_err(), "{url}");
    }
}

/// Keys are documents of others: whatever is changed in one, reading it ends with a key or an error.
#[test]
fn changed_keys() {
    use base64::engine::general_purpose::STANDARD;
    let vectors = vectors();
    for (name, pem) in texts(&vectors["pem"]) {
        let lines: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let der = STANDARD.decode(lines).unwrap();
        let read = |der: &[u8]| {
            let text = STANDARD.encode(der);
            JwtAuthenticator::from_pem(&format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n"))
        };
        assert!(read(&der).is_ok(), "{name}");
        for at in 0..der.len() {
            assert!(read(&der[..at]).is_err(), "{name} up to {at}");
            for byte in [0, 1, 0x30, 0x7f, 0x80, 0x84, 0xff] {
                let mut changed = der.clone();
                changed[at] = byte;
                let _ = read(&changed);
            }
        }
    }
    let members = ["kty", "crv", "kid", "use", "key_ops", "alg", "n", "e", "x", "y", "k"];
    let values =
        [json!(null), json!(7), json!(""), json!("*"), json!("AA"), json!([]), json!({}), json!("x".repeat(100_000))];
    for key in vectors["jwks"]["keys"].as_array().unwrap() {
        for member in members {
            for value in &values {
                let mut changed = key.clone();
                changed[member] = value.clone();
                let _ = JwtAuthenticator::from_jwks(&json!({ "keys": [changed] }));
            }
        }
    }
}

/// An issuer whose key can be changed, and what it has been asked for.
#[derive(Clone)]
struct Issuer(Arc<Inner>);

struct Inner {
    url: String,
    key: Mutex<(Ed25519KeyPair, String)>,
    metadata: Mutex<Option<Value>>,
    jwks: Mutex<Option<Value>>,
    answer: Mutex<&'static str>,
    asked: AtomicUsize,
}

impl Issuer {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = Self(Arc::new(Inner {
            url: format!("http://{}/tenant", listener.local_addr().unwrap()),
            key: Mutex::new((Self::pair(), "k1".to_owned())),
            metadata: Mutex::default(),
            jwks: Mutex::default(),
            answer: Mutex::new("ok"),
            asked: AtomicUsize::new(0),
        }));
        let app = Router::new().fallback(Self::answer).with_state(issuer.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        issuer
    }

    fn pair() -> Ed25519KeyPair {
        let seed = ring::signature::Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new()).unwrap();
        Ed25519KeyPair::from_pkcs8(seed.as_ref()).unwrap()
    }

    fn rotate(&self, id: &str) {
        *self.0.key.lock().unwrap() = (Self::pair(), id.to_owned());
    }

    async fn answer(State(issuer): State<Self>, uri: axum::http::Uri) -> Response {
        let Inner { url, key, metadata, jwks, answer, asked } = &*issuer.0;
        let own = match uri.path() {
            "/.well-known/oauth-authorization-server/tenant" => {
                let own = metadata.lock().unwrap().clone();
                own.unwrap_or_else(|| json!({ "issuer": url, "jwks_uri": format!("{url}/jwks") }))
            }
            "/tenant/jwks" => {
                asked.fetch_add(1, Ordering::SeqCst);
                let (pair, id) = &*key.lock().unwrap();
                let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
                let own = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": x }] });
                jwks.lock().unwrap().clone().unwrap_or(own)
            }
            _ => return StatusCode::NOT_FOUND.into_response(),
        };
        let answer = *answer.lock().unwrap();
        match answer {
            "slow" => {
                tokio::time::sleep(Duration::from_secs(30)).await;
                StatusCode::OK.into_response()
            }
            "broken" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            "text" => "no JSON".into_response(),
            "large" => format!("{}{}", " ".repeat(600 << 10), own).into_response(),
            "elsewhere" => Redirect::temporary(&url.replace("127.0.0.1", "localhost")).into_response(),
            _ => axum::Json(own).into_response(),
        }
    }

    fn token(&self) -> String {
        self.token_with(|_| {})
    }

    fn token_with(&self, change: impl Fn(&mut Value)) -> String {
        let (pair, id) = &*self.0.key.lock().unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut claims = json!({ "iss": self.0.url, "sub": "ann", "scp": ["me:read"], "exp": now + 60 });
        change(&mut claims);
        let header = json!({ "alg": "EdDSA", "kid": id }).to_string();
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims.to_string()));
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(pair.sign(message.as_bytes())))
    }

    fn tokens(&self) -> JwtAuthenticator {
        JwtAuthenticator::from_issuer(&self.0.url).unwrap().with_refresh_interval(Duration::from_secs(2))
    }

    fn asked(&self) -> usize {
        self.0.asked.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn keys_of_an_issuer_are_fetched_once_and_again_when_they_change() {
    let issuer = Issuer::start().await;
    let schemes = issuer.tokens().schemes();
    let url = format!("{}/.well-known/openid-configuration", issuer.0.url);
    assert_eq!(schemes[0].kind, SecurityKind::OpenIdConnect { url: url.into() });
    // The first server may not fetch keys again for an hour, the second not for two seconds.
    let rarely = issuer.tokens().with_refresh_interval(Duration::from_secs(3_600));
    let server = serve(HttpServer::new(registry()).with_authenticator(rarely)).await;
    let second = serve(HttpServer::new(registry()).with_authenticator(issuer.tokens())).await;
    assert_eq!(server.get("/operations/users/me").await.status, 401);
    assert_eq!(me(&server, "no.token.at-all").await.status, 401);
    assert_eq!(issuer.asked(), 0, "nothing is fetched without a token");
    let old = issuer.token();
    let answers = futures_util::future::join_all((0..20).map(|_| me(&server, &old))).await;
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    assert_eq!(issuer.asked(), 1);
    let other = issuer.token_with(|claims| claims["iss"] = "https://login.example".into());
    assert_eq!(me(&server, &other).await.status, 401);
    assert_eq!((me(&second, &old).await.status, issuer.asked()), (200, 2));

    // A new key: too soon, then in time. Tokens of unknown keys do not make it ask more often.
    issuer.rotate("k2");
    let new = issuer.token();
    for _ in 0..20 {
        assert_eq!(me(&server, &new).await.status, 401);
    }
    assert_eq!(issuer.asked(), 2);
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let answers = futures_util::future::join_all((0..20).map(|_| me(&second, &new))).await;
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    assert_eq!((issuer.asked(), me(&second, &old).await.status), (3, 401));

    // Keys that there are serve while the issuer is down.
    *issuer.0.answer.lock().unwrap() = "broken";
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    assert_eq!((me(&second, &old).await.status, me(&second, &new).await.status), (401, 200));
}

#[tokio::test]
async fn an_issuer_that_cannot_be_asked_is_503_and_no_refusal() {
    let vectors = vectors();
    let secret = vectors["secret"].as_str().unwrap();
    let issuer = Issuer::start().await;
    let url = issuer.0.url.clone();
    let far = json!({ "issuer": url, "jwks_uri": "http://10.0.0.1/jwks" });
    let file = json!({ "issuer": url, "jwks_uri": "file:///etc/passwd" });
    let slash = json!({ "issuer": format!("{url}/"), "jwks_uri": format!("{url}/jwks") });
    let oct = json!({ "keys": [{ "kty": "oct", "k": secret }] });
    let table: [(&'static str, Option<Value>, Option<Value>); 12] = [
        ("slow", None, None),
        ("broken", None, None),
        ("text", None, None),
        ("large", None, None),
        ("elsewhere", None, None),
        ("ok", Some(far), None),
        ("ok", Some(file), None),
        ("ok", Some(slash), None),
        ("ok", Some(json!({ "issuer": url })), None),
        ("ok", Some(json!([])), None),
        ("ok", None, Some(json!({ "keys": "none" }))),
        ("ok", None, Some(oct)),
    ];
    for (answer, metadata, jwks) in table {
        *issuer.0.answer.lock().unwrap() = answer;
        *issuer.0.metadata.lock().unwrap() = metadata.clone();
        *issuer.0.jwks.lock().unwrap() = jwks.clone();
        let client = HttpConfig::new().with_timeout(Duration::from_millis(300));
        let tokens = issuer.tokens().with_client(HttpClient::new(client).unwrap());
        let server = serve(HttpServer::new(registry()).with_authenticator(tokens)).await;
        let refused = me(&server, &issuer.token()).await;
        assert_eq!(refused.status, 503, "{answer} {metadata:?} {jwks:?}: {refused:?}");
        assert!(refused.header("retry-after").is_some() && refused.header("www-authenticate").is_none());
        // Nothing of the issuer shows.
        assert!(!refused.body.contains("127.0.0.1") && !refused.body.contains("jwks"), "{refused:?}");
    }
}

/// A client that goes away does not end the fetch that its token began.
#[tokio::test]
async fn a_client_that_goes_away_does_not_keep_others_out() {
    use tokio::io::AsyncWriteExt;
    let issuer = Issuer::start().await;
    let slow = issuer.tokens().with_refresh_interval(Duration::from_secs(3600));
    let server = serve(HttpServer::new(registry()).with_authenticator(slow)).await;
    let request = format!(
        "GET /operations/users/me HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
        issuer.token()
    );
    for _ in 0..10 {
        let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        drop(stream);
    }
    assert_eq!((me(&server, &issuer.token()).await.status, issuer.asked()), (200, 1));
}
