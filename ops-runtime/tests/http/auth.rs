//! Credentials: where operations ask for them, tokens that are fetched, and what strangers get to see.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use axum::{Json, Router};
use ops_runtime::CallOptions;
use ops_runtime::binding::{
    HttpBinding, HttpParameter, ParameterLocation, SecurityKind, SecurityRequirement, SecurityScheme,
};
use ops_runtime::http::{Auth, ClientCredentials, HttpClient, HttpConfig, TokenRequest};
use ops_runtime::spec::OperationKind;
use serde_json::{Value, json};

use crate::server::{Server, serve, spec};

mod environment;

fn key(name: &'static str, location: ParameterLocation, at: &'static str) -> SecurityScheme {
    SecurityScheme::new(name, SecurityKind::ApiKey { location, name: at.into() })
}

fn bearer(name: &'static str) -> SecurityScheme {
    SecurityScheme::new(name, SecurityKind::Bearer)
}

fn all_of(schemes: Vec<SecurityScheme>) -> SecurityRequirement {
    let mut requirement = SecurityRequirement::default();
    requirement.schemes = schemes.into();
    requirement
}

fn any_of(path: &'static str, requirements: Vec<SecurityRequirement>) -> HttpBinding {
    let mut binding = HttpBinding::new("GET", path);
    binding.security = requirements.into();
    binding
}

async fn seen(config: HttpConfig, binding: HttpBinding) -> Result<Value, ops_runtime::CallError> {
    let client = HttpClient::new(config)?;
    // What the binding does not declare cannot be given.
    let declares = |name: &str| binding.parameters.iter().any(|parameter| parameter.property == name);
    let all = [("k", json!("theirs")), ("sid", json!("theirs")), ("q", json!(1))];
    let input = all.into_iter().filter(|(name, _)| declares(name)).map(|(name, value)| (name.to_owned(), value));
    let input = Value::Object(input.collect());
    client.add([spec(OperationKind::Query, "x", binding)]).unwrap();
    Ok(client.call("t.x", input).await?.data)
}

#[tokio::test]
async fn credentials_go_where_the_operation_asks_for_them() {
    use ParameterLocation::{Cookie, Header, Query};
    let server = Server::start().await;
    let config = || HttpConfig::new().with_base_url(server.url());
    let named = || config().with_credentials("a", Auth::api_key("s&k")).with_credentials("b", Auth::bearer("t"));
    let query = || any_of("/echo/x", vec![all_of(vec![key("a", Query, "k")])]);
    let in_header = || any_of("/echo/x", vec![all_of(vec![key("a", Header, "X-Key")])]);

    assert_eq!(seen(named(), query()).await.unwrap()["uri"], "/echo/x?k=s%26k");
    let mut both = query();
    both.parameters = vec![HttpParameter::query("k"), HttpParameter::query("q")].into();
    assert_eq!(seen(named(), both).await.unwrap()["uri"], "/echo/x?q=1&k=s%26k");
    assert_eq!(seen(named(), in_header()).await.unwrap()["headers"]["x-key"], "s&k");
    let mut cookie = any_of("/echo/x", vec![all_of(vec![key("a", Cookie, "sid")])]);
    cookie.parameters = vec![HttpParameter::cookie("q"), HttpParameter::cookie("sid")].into();
    assert_eq!(seen(named(), cookie).await.unwrap()["headers"]["cookie"], "q=1; sid=s&k");

    // A secret whose scheme says in which form it is sent.
    let secret = || config().with_credentials("a", Auth::secret("u:k")).with_credentials("b", Auth::secret("t"));
    assert_eq!(seen(secret(), query()).await.unwrap()["uri"], "/echo/x?k=u%3Ak");
    assert_eq!(seen(secret(), in_header()).await.unwrap()["headers"]["x-key"], "u:k");
    let in_cookie = any_of("/echo/x", vec![all_of(vec![key("a", Cookie, "sid")])]);
    assert_eq!(seen(secret(), in_cookie).await.unwrap()["headers"]["cookie"], "sid=u:k");
    let basic = any_of("/echo/x", vec![all_of(vec![SecurityScheme::owned("a", SecurityKind::Basic)])]);
    assert_eq!(seen(secret(), basic).await.unwrap()["headers"]["authorization"], "Basic dTpr");
    let token = any_of("/echo/x", vec![all_of(vec![bearer("b")])]);
    assert_eq!(seen(secret(), token).await.unwrap()["headers"]["authorization"], "Bearer t");

    // All schemes of the first requirement that there are credentials for.
    let several = any_of(
        "/echo/x",
        vec![
            all_of(vec![bearer("missing"), bearer("b")]),
            all_of(vec![key("a", Header, "X-Key"), bearer("b")]),
            all_of(vec![bearer("b")]),
        ],
    );
    let headers = seen(named(), several).await.unwrap()["headers"].clone();
    assert_eq!((&headers["x-key"], &headers["authorization"]), (&json!("s&k"), &json!("Bearer t")));

    // Where credentials are optional, those that there are, in whichever order the document lists it; where all may call, none.
    for ways in [vec![all_of(vec![]), all_of(vec![bearer("b")])], vec![all_of(vec![bearer("b")]), all_of(vec![])]] {
        let optional = || any_of("/echo/x", ways.clone());
        assert_eq!(seen(named(), optional()).await.unwrap()["headers"]["authorization"], "Bearer t");
        let default = config().with_auth(Auth::bearer("d"));
        assert_eq!(seen(default, optional()).await.unwrap()["headers"]["authorization"], "Bearer d");
        let unfit = config().with_auth(Auth::api_key("k"));
        assert!(seen(unfit, optional()).await.unwrap()["headers"]["x-api-key"].is_null());
        // Nobody asks for this call.
        assert!(
            seen(config().with_auth(Auth::pass_on()), optional()).await.unwrap()["headers"]["authorization"].is_null()
        );
    }
    let open = any_of("/echo/x", vec![all_of(vec![])]);
    assert!(seen(config().with_auth(Auth::bearer("d")), open).await.unwrap()["headers"]["authorization"].is_null());
    let unknown = any_of("/echo/x", vec![all_of(vec![bearer("c")])]);
    assert!(seen(named(), unknown).await.unwrap()["headers"]["authorization"].is_null());

    // The default ones, where they fit, where nothing is said, and where the document knows nothing like them.
    let default = || config().with_auth(Auth::api_key("d").with_header("X-Own"));
    assert_eq!(seen(default(), in_header()).await.unwrap()["headers"]["x-key"], "d");
    assert_eq!(seen(default(), HttpBinding::new("GET", "/echo/x")).await.unwrap()["headers"]["x-own"], "d");
    assert_eq!(
        seen(default(), any_of("/echo/x", vec![all_of(vec![bearer("c")])])).await.unwrap()["headers"]["x-own"],
        "d"
    );
    let headers = seen(config().with_auth(Auth::bearer("t")), in_header()).await.unwrap()["headers"].clone();
    assert_eq!(headers["authorization"], "Bearer t");

    // A document does not say how the message is read.
    for evil in ["Host", "content-length", "Transfer-Encoding", "a b", "X: y\r\nZ"] {
        let binding = any_of("/echo/x", vec![all_of(vec![key("a", Header, evil)])]);
        assert!(seen(named(), binding).await.is_err(), "{evil}");
    }
}

#[tokio::test]
async fn a_token_in_the_place_of_a_key_is_sent_as_it_is() {
    use ParameterLocation::{Cookie, Header, Query};
    let server = Server::start().await;
    let sent = |location, at| {
        let source = Auth::token_source(|_: TokenRequest| async { Ok("k3y".into()) });
        let config = HttpConfig::new().with_base_url(server.url()).with_credentials("a", source);
        seen(config, any_of("/echo/x", vec![all_of(vec![key("a", location, at)])]))
    };
    assert_eq!(sent(Query, "k").await.unwrap()["uri"], "/echo/x?k=k3y");
    assert_eq!(sent(Cookie, "sid").await.unwrap()["headers"]["cookie"], "sid=k3y");
    assert_eq!(sent(Header, "X-Key").await.unwrap()["headers"]["x-key"], "k3y");
    assert_eq!(sent(Header, "Authorization").await.unwrap()["headers"]["authorization"], "Bearer k3y");
}

#[tokio::test]
async fn keys_do_not_follow_to_strangers() {
    use ParameterLocation::{Cookie, Query};
    let (home, abroad) = (Server::start().await, Server::start().await);
    let config = || {
        let config = HttpConfig::new().with_base_url(home.url());
        config.with_credentials("q", Auth::api_key("hush")).with_credentials("c", Auth::api_key("hush"))
    };
    let binding = |to: String| {
        let mut binding = any_of("/", vec![all_of(vec![key("q", Query, "k"), key("c", Cookie, "sid")])]);
        binding.path = format!("/to?302,{to}").into();
        binding
    };
    // The server redirects to all that comes after the comma, the key included.
    let kept = seen(config(), binding("/echo/x?a=1".to_owned())).await.unwrap();
    assert_eq!((&kept["uri"], &kept["headers"]["cookie"]), (&json!("/echo/x?a=1&k=hush"), &json!("sid=hush")));
    let abroad = format!("{}/echo/x?a=1", abroad.url());
    let lost = seen(config(), binding(abroad)).await.unwrap();
    assert_eq!((&lost["uri"], &lost["headers"]["cookie"]), (&json!("/echo/x?a=1"), &Value::Null));
}

/// The header `Authorization` and the form of a request for a token.
type Question = (Option<String>, String);

/// A token endpoint and what it guards.
#[derive(Clone, Default)]
struct Login {
    asked: Arc<Mutex<Vec<Question>>>,
    given: Arc<AtomicUsize>,
    /// How many tokens are no longer good.
    revoked: Arc<AtomicUsize>,
    lifetime: Option<Value>,
}

impl Login {
    async fn start(lifetime: Option<Value>) -> (Self, String) {
        let login = Self { lifetime, ..Self::default() };
        let app = Router::new().route("/token", post(Self::token)).route("/x", any(Self::guarded));
        let app = app.route(
            "/refused",
            post(|| async {
                (StatusCode::UNAUTHORIZED, Json(json!({ "error": "invalid_client", "error_description": "hush" })))
            }),
        );
        let app = app.route("/moved", post(|| async { (StatusCode::TEMPORARY_REDIRECT, [("location", "/token")]) }));
        (login.clone(), serve(app.with_state(login)).await)
    }

    async fn token(State(login): State<Self>, request: Request) -> Response {
        let auth = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
        let body = axum::body::to_bytes(request.into_body(), 10_000).await.unwrap();
        login.asked.lock().unwrap().push((auth, String::from_utf8(body.to_vec()).unwrap()));
        tokio::time::sleep(Duration::from_millis(20)).await;
        let number = login.given.fetch_add(1, Ordering::SeqCst) + 1;
        let mut answer = json!({ "access_token": format!("t{number}"), "token_type": "bearer" });
        if let Some(lifetime) = login.lifetime {
            answer["expires_in"] = lifetime;
        }
        Json(answer).into_response()
    }

    async fn guarded(State(login): State<Self>, request: Request) -> Response {
        let auth = request.headers().get("authorization").map_or("", |value| value.to_str().unwrap());
        let number: usize = auth.strip_prefix("Bearer t").and_then(|n| n.parse().ok()).unwrap_or(0);
        if number <= login.revoked.load(Ordering::SeqCst) {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        Json(json!({ "auth": auth })).into_response()
    }
}

fn guarded(token_url: Option<String>) -> HttpBinding {
    let kind = SecurityKind::OAuth2 { token_url: token_url.map(Into::into) };
    let scheme = SecurityScheme::new("login", kind).with_scopes(&["read", "w"]);
    let mut binding = any_of("/x", vec![all_of(vec![scheme])]);
    binding.method = "POST".into();
    binding
}

fn client(config: HttpConfig, binding: HttpBinding) -> HttpClient {
    let client = HttpClient::new(config).unwrap();
    client.add([spec(OperationKind::Mutation, "x", binding)]).unwrap();
    client
}

async fn auth(client: &HttpClient) -> Result<String, ops_runtime::CallError> {
    Ok(client.call("t.x", json!({})).await?.data["auth"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn tokens_are_fetched_once_kept_and_renewed() {
    let (login, url) = Login::start(Some(json!("3600"))).await;
    let config =
        HttpConfig::new().with_base_url(&url).with_credentials("login", Auth::client_credentials("id:1", "s /"));
    let client = client(config, guarded(Some("/token".to_owned())));
    let calls = (0..8).map(|_| auth(&client));
    for found in futures_util::future::join_all(calls).await {
        assert_eq!(found.unwrap(), "Bearer t1");
    }
    // `id%3A1:s+%2F`
    let expected = (Some("Basic aWQlM0ExOnMrJTJG".to_owned()), "grant_type=client_credentials&scope=read+w".to_owned());
    assert_eq!(*login.asked.lock().unwrap(), [expected]);

    login.revoked.store(1, Ordering::SeqCst);
    assert_eq!(auth(&client).await.unwrap(), "Bearer t2");
    assert_eq!(auth(&client).await.unwrap(), "Bearer t2");
    // Once only: a server that takes no token at all is not asked for ever.
    login.revoked.store(100, Ordering::SeqCst);
    assert_eq!(auth(&client).await.unwrap_err().message(), "HTTP 401: Unauthorized");
    assert_eq!(login.given.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn tokens_expire() {
    let (login, url) = Login::start(Some(json!(0.08))).await;
    let credentials =
        ClientCredentials::new("id", "s").with_secret_in_body().with_scopes(["only"]).with_parameter("audience", "x y");
    let config = HttpConfig::new().with_base_url(&url).with_auth(credentials.with_token_url(format!("{url}/token")));
    let client = client(config, guarded(None));
    assert_eq!(auth(&client).await.unwrap(), "Bearer t1");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(auth(&client).await.unwrap(), "Bearer t2");
    let form = "grant_type=client_credentials&scope=only&audience=x+y&client_id=id&client_secret=s";
    assert_eq!(login.asked.lock().unwrap()[0], (None, form.to_owned()));
}

#[tokio::test]
async fn a_client_without_a_secret_sends_its_id_only() {
    let (login, url) = Login::start(None).await;
    let credentials = ClientCredentials::new("id 1", "").with_token_url(format!("{url}/token")).with_scopes(["only"]);
    let credentials = credentials.with_parameter("client_assertion", "signed");
    for credentials in [credentials.clone(), credentials.with_secret_in_body()] {
        let config = HttpConfig::new().with_base_url(&url).with_auth(credentials);
        assert!(auth(&client(config, guarded(None))).await.unwrap().starts_with("Bearer t"));
    }
    let form = "grant_type=client_credentials&scope=only&client_assertion=signed&client_id=id+1";
    let expected: Question = (None, form.to_owned());
    assert_eq!(*login.asked.lock().unwrap(), [expected.clone(), expected]);
}

#[tokio::test]
async fn the_secret_goes_to_no_stranger() {
    let (login, url) = Login::start(None).await;
    let (stranger, there) = Login::start(None).await;
    let config =
        |credentials: ClientCredentials| HttpConfig::new().with_base_url(&url).with_credentials("login", credentials);
    let credentials = || ClientCredentials::new("id", "hush");
    let foreign = || guarded(Some(format!("{there}/token")));
    let error = auth(&client(config(credentials()), foreign())).await.unwrap_err();
    // On another port of the host, it may be another service.
    let told = format!(
        "the document would have the client's secret sent to `{there}`, which is not the host and port of the base URL, \
         `{url}`: set the token URL with `with_token_url`, or allow it with `with_token_url_of_document`"
    );
    assert_eq!((error.message(), error.to_string().contains("hush")), (&*told, false));
    let mut without_base = foreign();
    without_base.server = Some(url.clone().into());
    let config_without = HttpConfig::new().with_credentials("login", credentials());
    let error = auth(&client(config_without, without_base)).await.unwrap_err();
    let told = format!(
        "the document would have the client's secret sent to `{there}`, and no base URL says if that is the service: set \
         one with `with_base_url`, or set the token URL with `with_token_url`, or allow it with \
         `with_token_url_of_document`"
    );
    assert_eq!(error.message(), told);
    assert_eq!(stranger.given.load(Ordering::SeqCst), 0);
    assert!(
        auth(&client(config(credentials()), guarded(None))).await.unwrap_err().message().contains("with_token_url")
    );
    assert!(auth(&client(config(credentials()), guarded(Some("ftp://x/".into())))).await.is_err());

    let allowed = credentials().with_token_url_of_document();
    assert_eq!(auth(&client(config(allowed), foreign())).await.unwrap(), "Bearer t1");
    assert_eq!(stranger.given.load(Ordering::SeqCst), 1);
    let set = credentials().with_token_url(format!("{url}/token"));
    assert_eq!(auth(&client(config(set), foreign())).await.unwrap(), "Bearer t1");
    assert_eq!(login.given.load(Ordering::SeqCst), 1);

    let error = auth(&client(config(credentials()), guarded(Some("/refused".into())))).await.unwrap_err();
    assert_eq!(error.message(), "the token endpoint answered HTTP 401: invalid_client");
    let error = auth(&client(config(credentials()), guarded(Some("/moved".into())))).await.unwrap_err();
    assert_eq!(error.message(), "the token endpoint answered HTTP 307");
    assert_eq!(login.given.load(Ordering::SeqCst), 1);
    assert!(HttpClient::new(config(credentials().with_token_url("nowhere"))).is_err());
}

#[tokio::test]
async fn a_relative_token_url_is_one_of_the_api() {
    let (login, url) = Login::start(None).await;
    let (other, there) = Login::start(None).await;
    let at = |server: Option<&String>| {
        let mut binding = guarded(Some("/token".to_owned()));
        binding.server = server.map(|server| server.clone().into());
        binding
    };
    let config = |credentials: ClientCredentials| HttpConfig::new().with_credentials("login", credentials);
    let credentials = || ClientCredentials::new("id", "hush");
    let allowed = || config(credentials().with_token_url_of_document());
    // Without a base URL, the document names the server, too.
    let error = auth(&client(config(credentials()), at(Some(&url)))).await.unwrap_err();
    let told = format!(
        "the document would have the client's secret sent to `{url}`, and no base URL says if that is the service: set one \
         with `with_base_url`, or set the token URL with `with_token_url`, or allow it with `with_token_url_of_document`"
    );
    assert_eq!((error.message(), login.given.load(Ordering::SeqCst)), (&*told, 0));
    assert_eq!(auth(&client(allowed(), at(Some(&url)))).await.unwrap(), "Bearer t1");
    assert_eq!(auth(&client(allowed().with_base_url(&url), at(Some(&there)))).await.unwrap(), "Bearer t2");
    assert_eq!(other.given.load(Ordering::SeqCst), 0);
    // The URL of one call does not say where the API is.
    let options = CallOptions::new().with_base_url(&url);
    let error = client(allowed(), at(None)).call_with("t.x", json!({}), options).await.unwrap_err();
    let told =
        "the document's token URL `/token` is relative: set `with_base_url`, or the token URL with `with_token_url`";
    assert_eq!(error.message(), told);
}

#[tokio::test]
async fn tokens_of_the_users() {
    let (login, url) = Login::start(None).await;
    login.revoked.store(1, Ordering::SeqCst);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let source = Auth::token_source(move |request: TokenRequest| {
        let token = if request.rejected { "t2" } else { "t1" };
        log.lock().unwrap().push((request.scheme, request.scopes.join(" "), request.rejected));
        async move { Ok(token.into()) }
    });
    let client = client(HttpConfig::new().with_base_url(url).with_auth(source), guarded(None));
    assert_eq!(auth(&client).await.unwrap(), "Bearer t2");
    let expected = |rejected| (Some("login".to_owned()), "read w".to_owned(), rejected);
    assert_eq!(*asked.lock().unwrap(), [expected(false), expected(true)]);
}

#[tokio::test]
async fn credentials_for_a_scheme_that_no_operation_names() {
    use ParameterLocation::Header;
    let server = Server::start().await;
    let config = || HttpConfig::new().with_base_url(server.url());
    let asks =
        || any_of("/echo/x", vec![all_of(vec![key("shop_key", Header, "X-Key")]), all_of(vec![bearer("shopAuth")])]);
    let misspelt = || config().with_credentials("shopKey", Auth::api_key("hush"));
    // The call would be refused by the server, and nobody would know why.
    let error = seen(misspelt(), asks()).await.unwrap_err();
    assert_eq!(error.code().as_str(), "VALIDATION_ERROR");
    assert_eq!(
        error.message(),
        "there are credentials for `shopKey`, which no operation names, and none for what `t.x` asks for: did you \
         mean `shop_key`?"
    );
    assert_eq!(error.details()["violations"][0]["pointer"], "/credentials/shopKey");
    let error = seen(config().with_credentials("auth", Auth::bearer("t")), asks()).await.unwrap_err();
    assert!(error.message().ends_with("did you mean `shopAuth`?"), "{error}");

    // Nothing is wrong where others serve, or where the operation is open, asks for nothing, or nothing is set.
    let auth = |found: Value| found["headers"].get("authorization").cloned();
    let both = misspelt().with_auth(Auth::bearer("t"));
    assert_eq!(auth(seen(both, asks()).await.unwrap()), Some(json!("Bearer t")));
    let open = any_of("/echo/x", vec![all_of(vec![bearer("b")]), all_of(vec![])]);
    assert_eq!(auth(seen(misspelt(), open).await.unwrap()), None);
    assert_eq!(auth(seen(misspelt(), any_of("/echo/x", vec![])).await.unwrap()), None);
    assert_eq!(auth(seen(config(), asks()).await.unwrap()), None);

    // Nor where another operation of the client names the scheme.
    let client = HttpClient::new(config().with_credentials("b", Auth::bearer("t"))).unwrap();
    let other = any_of("/echo/y", vec![all_of(vec![bearer("b")])]);
    client.add([spec(OperationKind::Query, "x", asks()), spec(OperationKind::Query, "y", other)]).unwrap();
    assert_eq!(auth(client.call("t.x", json!({})).await.unwrap().data), None);
    assert_eq!(auth(client.call("t.y", json!({})).await.unwrap().data), Some(json!("Bearer t")));
}

#[tokio::test]
async fn a_401_says_which_credentials_are_not_set() {
    let url = serve(Router::new().fallback(any(|| async { StatusCode::UNAUTHORIZED }))).await;
    let config = || HttpConfig::new().with_base_url(&url);
    let told = async |config: HttpConfig, binding| {
        let error = auth(&client(config, binding)).await.unwrap_err();
        error.message().to_owned()
    };
    let plain = "HTTP 401: Unauthorized";
    let lacking = format!("{plain}: no credentials are set for `login`, which the operation asks for");
    assert_eq!(told(config(), guarded(None)).await, lacking);
    assert_eq!(told(config().with_auth(Auth::bearer("t")), guarded(None)).await, plain);
    // A header of the program's own may be a credential.
    for name in ["Authorization", "X-Key"] {
        assert_eq!(told(config().with_header(name, "Bearer t"), guarded(None)).await, plain, "{name}");
    }
    let signing = config().with_before(|request| {
        request.headers.insert("x-signature", 1_u32.into());
        Ok(())
    });
    assert_eq!(told(signing, guarded(None)).await, plain);
    assert_eq!(told(config(), any_of("/x", vec![])).await, plain);
}

#[tokio::test]
async fn what_may_have_been_carried_out_is_not_sent_again() {
    let posts = Arc::new(AtomicUsize::new(0));
    let counted = posts.clone();
    let order = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { (StatusCode::SEE_OTHER, [("location", "/order")]) }
    };
    let app = Router::new().route("/orders", post(order)).route("/order", any(|| async { StatusCode::UNAUTHORIZED }));
    let url = serve(app).await;
    let tokens = Arc::new(AtomicUsize::new(0));
    let source = Auth::token_source(move |_: TokenRequest| {
        let number = tokens.fetch_add(1, Ordering::SeqCst);
        async move { Ok(format!("t{number}").into()) }
    });
    let binding = HttpBinding::new("POST", "/orders");
    let client = client(HttpConfig::new().with_base_url(&url).with_auth(source), binding);
    assert_eq!(client.call("t.x", json!({})).await.unwrap_err().message(), "HTTP 401: Unauthorized");
    assert_eq!(posts.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_call_without_a_new_token_was_not_carried_out() {
    let url = serve(Router::new().fallback(any(|| async { StatusCode::UNAUTHORIZED }))).await;
    let source = Auth::token_source(|request: TokenRequest| async move {
        match request.rejected {
            true => Err(ops_runtime::CallError::new("TIMEOUT", "no token yet")),
            false => Ok("t".into()),
        }
    });
    let client = client(HttpConfig::new().with_base_url(url).with_auth(source), HttpBinding::new("POST", "/x"));
    let error = client.call("t.x", json!({})).await.unwrap_err();
    assert_eq!((error.message(), error.is_retryable()), ("no token yet", true));
}

#[tokio::test]
async fn cookies_of_other_letters_are_sent() {
    use ParameterLocation::Cookie;
    let server = Server::start().await;
    let config = HttpConfig::new().with_base_url(server.url()).with_header("Cookie", "name=\u{fc}; session=1");
    let keyed = any_of("/echo/x", vec![all_of(vec![key("a", Cookie, "sid")])]);
    let sent = seen(config.with_credentials("a", Auth::api_key("k")), keyed).await.unwrap();
    let cookie = sent["headers"]["cookie"].as_str().unwrap();
    assert!(cookie.starts_with("name=\u{fc}; session=1") && cookie.contains("sid=k"), "{cookie}");
}
