//! The token of a call's own caller: passed on, or exchanged (RFC 8693).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use axum::{Json, Router};
use futures_util::future::join_all;
use ops_runtime::access::Identity;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{HttpBinding, SecurityKind, SecurityRequirement, SecurityScheme};
use ops_runtime::http::{Auth, HttpClient, HttpConfig, TokenExchange};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{CallError, CallOptions, Context, Registry};
use serde_json::{Value, json};

use crate::server::{Server, serve, spec};

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";
const AUDIENCE: &str = "https://api.test/a b";

/// An authorization server that exchanges tokens, and the service behind it.
#[derive(Clone, Default)]
struct Sts {
    /// The head and the body of each exchange, as they came.
    asked: Arc<Mutex<Vec<(String, String)>>>,
    /// What the service was called with.
    called: Arc<Mutex<Vec<String>>>,
    /// The response in place of the one that is right.
    says: Arc<Mutex<Option<(u16, Value)>>>,
    given: Arc<AtomicUsize>,
    /// How many of the tokens that were given are no longer good.
    revoked: Arc<AtomicUsize>,
}

impl Sts {
    async fn start() -> (Self, String) {
        let sts = Self::default();
        let app = Router::new().route("/token", post(Self::exchange)).route("/x", any(Self::serve));
        let app = app.route("/moved", post(|| async { (StatusCode::TEMPORARY_REDIRECT, [("location", "/token")]) }));
        (sts.clone(), serve(app.with_state(sts)).await)
    }

    async fn exchange(State(sts): State<Self>, request: Request) -> Response {
        let header = |name: &str| request.headers().get(name).map_or("-", |value| value.to_str().unwrap()).to_owned();
        let head = ["authorization", "content-type", "accept", "cookie", "x-own"].map(header).join(" | ");
        let body = axum::body::to_bytes(request.into_body(), 100_000).await.unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        let form: Vec<(String, String)> = url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
        sts.asked.lock().unwrap().push((head, body));
        let field = |name: &str| form.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value);
        tokio::time::sleep(Duration::from_millis(10)).await;
        if let Some((status, says)) = sts.says.lock().unwrap().clone() {
            return (StatusCode::from_u16(status).unwrap(), Json(says)).into_response();
        }
        let subject = field("subject_token");
        // The description repeats the token, as a careless server does.
        let refuse = |code: &str, why: &str| {
            let why = format!("{why}: {subject}");
            (StatusCode::BAD_REQUEST, Json(json!({ "error": code, "error_description": why }))).into_response()
        };
        match (subject.strip_suffix("-expired"), field("audience") == AUDIENCE) {
            (Some(_), true) => refuse("invalid_request", "the subject token has expired"),
            (Some(_), false) => refuse("invalid_grant", "the subject token has expired, and is for another audience"),
            (None, false) => refuse("invalid_target", "the audience is not known"),
            (None, true) => {
                let number = sts.given.fetch_add(1, Ordering::SeqCst) + 1;
                let token = format!("{number}.for-{}", subject.trim_start_matches("hush-"));
                let answer = json!({
                    "access_token": token, "issued_token_type": ACCESS_TOKEN, "token_type": "bearer", "expires_in": 3600
                });
                Json(answer).into_response()
            }
        }
    }

    async fn serve(State(sts): State<Self>, request: Request) -> Response {
        let auth = request.headers().get("authorization").map_or("-", |value| value.to_str().unwrap()).to_owned();
        sts.called.lock().unwrap().push(auth.clone());
        let number = auth.strip_prefix("Bearer ").and_then(|token| token.split_once('.')?.0.parse().ok());
        if number.is_some_and(|number: usize| number <= sts.revoked.load(Ordering::SeqCst)) {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        Json(json!({ "auth": auth })).into_response()
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn called(&self) -> Vec<String> {
        self.called.lock().unwrap().clone()
    }
}

fn client(config: HttpConfig) -> HttpClient {
    let client = HttpClient::new(config).unwrap();
    let binding = |path: &'static str| HttpBinding::new("GET", path);
    let mut scoped = binding("/x");
    let mut requirement = SecurityRequirement::default();
    let kind = SecurityKind::OAuth2 { token_url: Some("https://evil.test/token".into()) };
    requirement.schemes = vec![SecurityScheme::new("login", kind).with_scopes(&["read", "w"])].into();
    scoped.security = vec![requirement].into();
    let specs = [("x", binding("/x")), ("scoped", scoped)];
    client.add(specs.map(|(name, binding)| spec(OperationKind::Query, name, binding))).unwrap();
    client
}

fn by(token: &str) -> CallOptions {
    CallOptions::new().with_identity(Identity::new("any").with_token(token))
}

async fn auth(client: &HttpClient, id: &str, options: CallOptions) -> Result<String, CallError> {
    let answer = client.call_with(id, json!({}), options).await;
    let shown =
        format!("{client:?} {answer:?} {}", answer.as_ref().map_or_else(ToString::to_string, |_| String::new()));
    assert!(!shown.contains("hush-"), "{shown}");
    Ok(answer?.data["auth"].as_str().unwrap().to_owned())
}

fn exchange(url: &str) -> TokenExchange {
    TokenExchange::new(format!("{url}/token")).with_client("gate:way", "hush-s /").with_audience(AUDIENCE)
}

#[tokio::test]
async fn the_callers_own_token_is_passed_on() {
    let (sts, url) = Sts::start().await;
    let client = client(HttpConfig::new().with_base_url(&url).with_auth(Auth::pass_on()));
    assert_eq!(auth(&client, "t.x", by("ann")).await.unwrap(), "Bearer ann");
    assert_eq!(auth(&client, "t.scoped", by("bob")).await.unwrap(), "Bearer bob");
    // What the call itself sets wins, as for all credentials, and then no token is needed.
    let own = CallOptions::new().with_header("Authorization", "Bearer own");
    assert_eq!(auth(&client, "t.x", own).await.unwrap(), "Bearer own");
    // A 401 is not answered by a repetition: there is no other token.
    sts.revoked.store(1, Ordering::SeqCst);
    let error = auth(&client, "t.x", by("1.x")).await.unwrap_err();
    assert_eq!(error.message(), "HTTP 401: Unauthorized");
    assert_eq!(sts.called(), ["Bearer ann", "Bearer bob", "Bearer own", "Bearer 1.x"]);

    for options in [CallOptions::new(), CallOptions::new().with_identity(Identity::new("ann").with_scope("read"))] {
        let error = auth(&client, "t.x", options).await.unwrap_err();
        assert_eq!(error.code().as_str(), "ACCESS_DENIED");
        assert_eq!(
            error.message(),
            "the service is called with the token of the caller, who has none: authenticate with a bearer token"
        );
    }
    // A token that no header can carry is not sent, and not shown.
    let error = auth(&client, "t.x", by("hush-\r\nX: y")).await.unwrap_err();
    assert_eq!(error.code().as_str(), "VALIDATION_ERROR");
    assert_eq!((sts.called().len(), sts.asked()), (4, 0));
}

#[tokio::test]
async fn tokens_of_callers_go_nowhere_but_to_the_base_url() {
    let (sts, url) = Sts::start().await;
    let stranger = Server::start().await;
    for kind in [Auth::pass_on(), Auth::exchange(exchange(&url))] {
        // The document's own server.
        let without = HttpClient::new(HttpConfig::new().with_auth(kind.clone())).unwrap();
        let mut binding = HttpBinding::new("GET", "/echo/x");
        binding.server = Some(stranger.url().into());
        without.add([spec(OperationKind::Query, "x", binding)]).unwrap();
        let error = auth(&without, "t.x", by("hush-ann")).await.unwrap_err();
        assert_eq!(
            error.message(),
            "the token of a caller is sent to the client's base URL only: set it with `HttpConfig::with_base_url`"
        );
        // Another URL for one call.
        let client = client(HttpConfig::new().with_base_url(&url).with_auth(kind.clone()));
        let elsewhere = by("hush-ann").with_base_url(format!("{}/echo", stranger.url()));
        let error = auth(&client, "t.x", elsewhere).await.unwrap_err();
        assert!(error.message().contains("base URL only"), "{error}");
        assert_eq!((sts.called().len(), sts.asked()), (0, 0));
    }

    // A redirect within the origin keeps the token, one to another drops it.
    let home = Server::start().await;
    let config = HttpConfig::new().with_base_url(home.url()).with_auth(Auth::pass_on());
    for (to, expected) in
        [("/echo/x".to_owned(), json!("Bearer ann")), (format!("{}/echo/x", stranger.url()), Value::Null)]
    {
        let client = HttpClient::new(config.clone()).unwrap();
        let mut binding = HttpBinding::new("GET", "");
        binding.path = format!("/to?302,{to}").into();
        client.add([spec(OperationKind::Query, "x", binding)]).unwrap();
        let seen = client.call_with("t.x", json!({}), by("ann")).await.unwrap().data;
        assert_eq!((&seen["uri"], &seen["headers"]["authorization"]), (&json!("/echo/x"), &expected), "{to}");
    }
}

#[tokio::test]
async fn nested_calls_have_the_token_of_the_identity_that_they_are_made_for() {
    let (sts, url) = Sts::start().await;
    let registry = Registry::new();
    let client = HttpClient::new(HttpConfig::new().with_base_url(&url).with_auth(Auth::pass_on())).unwrap();
    let bound = client.bind([spec(OperationKind::Query, "x", HttpBinding::new("GET", "/x"))]).unwrap();
    registry.register_all(bound).unwrap();
    let outer = |input: Value, context: Context| async move {
        let options = match input.as_str() {
            Some(other) => CallOptions::new().with_identity(Identity::new(other)),
            None => CallOptions::new(),
        };
        Ok(context.env().call_with("t.x", json!({}), options).await?.data)
    };
    registry.register(Registration::new(OperationSpec::query("t.outer"), Handler::dynamic(outer))).unwrap();
    let ann = registry.scoped(Identity::new("ann").with_token("ann"));
    assert_eq!(ann.call("t.outer", Value::Null).await.unwrap().data["auth"], "Bearer ann");
    let error = ann.call("t.outer", json!("bob")).await.unwrap_err();
    assert_eq!(error.code().as_str(), "ACCESS_DENIED");
    assert_eq!(sts.called(), ["Bearer ann"]);
}

#[tokio::test]
async fn an_exchange_byte_by_byte() {
    let (sts, url) = Sts::start().await;
    let config = |exchange: TokenExchange| {
        // Nothing of the client's own goes to the token endpoint.
        HttpConfig::new().with_base_url(&url).with_header("X-Own", "hush-own").with_auth(exchange)
    };
    let plain = client(config(exchange(&url)));
    assert_eq!(auth(&plain, "t.x", by("hush-ann&=+%")).await.unwrap(), "Bearer 1.for-ann&=+%");
    assert_eq!(auth(&plain, "t.x", by("hush-ann&=+%")).await.unwrap(), "Bearer 1.for-ann&=+%");
    // Other scopes, other token.
    assert_eq!(auth(&plain, "t.scoped", by("hush-ann&=+%")).await.unwrap(), "Bearer 2.for-ann&=+%");
    let whole = TokenExchange::new(format!("{url}/token"))
        .with_secret_in_body()
        .with_client("id", "hush-2")
        .with_subject_token_type(JWT)
        .with_requested_token_type(ACCESS_TOKEN)
        .with_audience(AUDIENCE)
        .with_audience("second")
        .with_resource("https://api.test/v1?x=1")
        .with_scopes(["only", "these"])
        .with_parameter("actor_token", "a/b");
    assert_eq!(auth(&client(config(whole)), "t.scoped", by("hush-bob")).await.unwrap(), "Bearer 3.for-bob");
    let anonymous = TokenExchange::new(format!("{url}/token")).with_audience(AUDIENCE).with_parameter("client_id", "p");
    assert_eq!(auth(&client(config(anonymous)), "t.x", by("hush-eve")).await.unwrap(), "Bearer 4.for-eve");

    let head = |auth: &str| format!("{auth} | application/x-www-form-urlencoded | application/json | - | -");
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange";
    let kind = |name: &str| format!("urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3A{name}");
    let (access, jwt) = (kind("access_token"), kind("jwt"));
    let ann = format!(
        "{grant}&subject_token=hush-ann%26%3D%2B%25&subject_token_type={access}&audience=https%3A%2F%2Fapi.test%2Fa+b"
    );
    // `gate%3Away:hush-s+%2F`
    let basic = head("Basic Z2F0ZSUzQXdheTpodXNoLXMrJTJG");
    let expected = [
        (basic.clone(), ann.clone()),
        (basic, format!("{ann}&scope=read+w")),
        (
            head("-"),
            format!(
                "{grant}&subject_token=hush-bob&subject_token_type={jwt}&requested_token_type={access}\
                 &audience=https%3A%2F%2Fapi.test%2Fa+b&audience=second&resource=https%3A%2F%2Fapi.test%2Fv1%3Fx%3D1\
                 &scope=only+these&actor_token=a%2Fb&client_id=id&client_secret=hush-2"
            ),
        ),
        (
            head("-"),
            format!(
                "{grant}&subject_token=hush-eve&subject_token_type={access}&audience=https%3A%2F%2Fapi.test%2Fa+b\
                 &client_id=p"
            ),
        ),
    ];
    assert_eq!(*sts.asked.lock().unwrap(), expected);
    assert!(!sts.called().iter().any(|auth| auth.contains("hush")));
}

#[tokio::test]
async fn refusals_are_told_without_secrets_and_not_kept() {
    let (sts, url) = Sts::start().await;
    let config = |exchange: TokenExchange| client(HttpConfig::new().with_base_url(&url).with_auth(exchange));
    let (right, wrong) =
        (config(exchange(&url)), config(TokenExchange::new(format!("{url}/token")).with_audience("b")));
    let expired = |code: &str| {
        format!("the token endpoint does not accept the caller's token (HTTP 400: {code}): it may have expired")
    };
    let table = [
        (&right, "hush-ann-expired", "ACCESS_DENIED", expired("invalid_request")),
        (&wrong, "hush-ann-expired", "ACCESS_DENIED", expired("invalid_grant")),
        (
            &wrong,
            "hush-ann",
            "EXECUTION_ERROR",
            "the token endpoint did not exchange the caller's token: HTTP 400: invalid_target".to_owned(),
        ),
    ];
    for (client, token, code, message) in table {
        let error = auth(client, "t.x", by(token)).await.unwrap_err();
        assert_eq!((error.code().as_str(), error.message()), (code, message.as_str()), "{token}");
    }
    let moved = config(TokenExchange::new(format!("{url}/moved")));
    let error = auth(&moved, "t.x", by("hush-ann")).await.unwrap_err();
    assert_eq!(error.message(), "the token endpoint did not exchange the caller's token: HTTP 307");
    assert_eq!((sts.asked(), sts.called().len()), (3, 0));

    // What no failure leaves behind.
    assert_eq!(auth(&right, "t.x", by("hush-ann")).await.unwrap(), "Bearer 1.for-ann");

    let all = json!({
        "access_token": "hush-new", "issued_token_type": ACCESS_TOKEN, "token_type": "Bearer", "expires_in": 60
    });
    let but = |members: Value| {
        let mut answer = all.clone();
        for (name, value) in members.as_object().unwrap() {
            answer[name] = value.clone();
        }
        answer
    };
    let unusable = "the token endpoint's answer to the exchange cannot be used: ";
    let answers = [
        (
            200,
            json!({ "hush-1": 2 }),
            "it has no `access_token`, it has no `issued_token_type`, its `token_type` is not `Bearer`",
        ),
        (
            200,
            json!("hush-1"),
            "it has no `access_token`, it has no `issued_token_type`, its `token_type` is not `Bearer`",
        ),
        (200, but(json!({ "access_token": "" })), "it has no `access_token`"),
        (200, but(json!({ "access_token": "x".repeat(16_385) })), "its `access_token` is longer than 16 KiB"),
        (200, but(json!({ "token_type": "N_A" })), "its `token_type` is not `Bearer`"),
        (
            200,
            but(json!({ "token_type": "N_A", "issued_token_type": "urn:ietf:params:oauth:token-type:refresh_token" })),
            "its `issued_token_type` is that of a refresh token, its `token_type` is not `Bearer`",
        ),
        (200, but(json!({ "issued_token_type": JWT })), "its `issued_token_type` is not the type that was requested"),
        (500, json!({ "error": "hush-1 with spaces" }), "HTTP 500"),
        (503, json!({ "error": "access_denied" }), "HTTP 503: access_denied"),
        (401, json!({ "error": "invalid_client" }), "HTTP 401: invalid_client"),
    ];
    for (status, answer, why) in answers {
        let asks = if why.contains("requested") {
            exchange(&url).with_requested_token_type(ACCESS_TOKEN)
        } else {
            exchange(&url)
        };
        *sts.says.lock().unwrap() = Some((status, answer));
        let error = auth(&config(asks), "t.x", by("hush-bob")).await.unwrap_err();
        assert_eq!(error.code().as_str(), "EXECUTION_ERROR", "{error}");
        let before = if status == 200 { unusable } else { "the token endpoint did not exchange the caller's token: " };
        assert_eq!(error.message(), format!("{before}{why}"));
    }
    assert_eq!(sts.called(), ["Bearer 1.for-ann"]);
}

#[tokio::test]
async fn a_rejected_token_is_exchanged_once_more() {
    let (sts, url) = Sts::start().await;
    let client = client(HttpConfig::new().with_base_url(&url).with_auth(exchange(&url)));
    assert_eq!(auth(&client, "t.x", by("hush-ann")).await.unwrap(), "Bearer 1.for-ann");
    sts.revoked.store(1, Ordering::SeqCst);
    // Many at once: one of them exchanges.
    let found = join_all((0..8).map(|_| auth(&client, "t.x", by("hush-ann")))).await;
    assert!(found.into_iter().all(|found| found.unwrap() == "Bearer 2.for-ann"));
    assert_eq!(sts.asked(), 2);
    // Once only, if the service takes none at all.
    sts.revoked.store(100, Ordering::SeqCst);
    let error = auth(&client, "t.x", by("hush-ann")).await.unwrap_err();
    assert_eq!((error.message(), sts.asked()), ("HTTP 401: Unauthorized", 3));
    // Rejected there, and expired here: the second fault is told.
    let old = "hush-old";
    sts.revoked.store(0, Ordering::SeqCst);
    let number = sts.asked() + 1;
    assert_eq!(auth(&client, "t.x", by(old)).await.unwrap(), format!("Bearer {number}.for-old"));
    sts.revoked.store(number, Ordering::SeqCst);
    *sts.says.lock().unwrap() = Some((400, json!({ "error": "invalid_request", "error_description": old })));
    let error = auth(&client, "t.x", by(old)).await.unwrap_err();
    assert_eq!(error.code().as_str(), "ACCESS_DENIED");
}

#[tokio::test]
async fn tokens_expire_and_are_exchanged_again() {
    let (sts, url) = Sts::start().await;
    let answer = |token: &str, lifetime: Value| {
        let answer =
            json!({ "access_token": token, "issued_token_type": JWT, "token_type": "Bearer", "expires_in": lifetime });
        *sts.says.lock().unwrap() = Some((200, answer));
    };
    let client = client(HttpConfig::new().with_base_url(&url).with_auth(exchange(&url)));
    answer("long", json!(3_600));
    assert_eq!(auth(&client, "t.x", by("hush-bob")).await.unwrap(), "Bearer long");
    // A token that was just fetched is used, however soon it expires.
    answer("a", json!(0.2));
    assert_eq!(auth(&client, "t.x", by("hush-bob")).await.unwrap(), "Bearer long");
    assert_eq!(auth(&client, "t.x", by("hush-ann")).await.unwrap(), "Bearer a");
    answer("b", Value::Null);
    tokio::time::sleep(Duration::from_millis(250)).await;
    // Without a lifetime it is kept for minutes.
    assert_eq!(auth(&client, "t.x", by("hush-ann")).await.unwrap(), "Bearer b");
    assert_eq!(auth(&client, "t.x", by("hush-ann")).await.unwrap(), "Bearer b");
    assert_eq!(sts.asked(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_caller_gets_the_token_of_another() {
    let (sts, url) = Sts::start().await;
    let client = client(HttpConfig::new().with_base_url(&url).with_auth(exchange(&url)));
    let calls = (0..200).map(|n| {
        let (client, caller) = (client.clone(), n % 20);
        tokio::spawn(async move {
            // Every third call is dropped while it is on its way.
            let call = auth(&client, "t.x", by(&format!("hush-c{caller}")));
            if n % 3 == 0 {
                let _ = tokio::time::timeout(Duration::from_millis(n % 11), call).await;
                return;
            }
            let found = call.await.unwrap();
            assert!(found.ends_with(&format!(".for-c{caller}")), "{caller} got {found}");
        })
    });
    for call in join_all(calls).await {
        call.unwrap();
    }
    // One exchange each: it goes on where the call was dropped in the middle.
    assert_eq!(sts.asked(), 20);
}
