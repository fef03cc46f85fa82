//! OAuth: the user's browser at the loopback address, tokens in a store of one's own, and their renewal.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use futures_util::{StreamExt, stream};
use ops_runtime::CallError;
use ops_runtime::adapter::BoxFuture;
use ops_runtime::http::{HttpEngine, RequestBody, Secret};
use ops_runtime::mcp::{McpClient, McpClients, McpConfig, McpOAuth, McpServerConfig, TokenStore};
use ops_runtime::registry::CancelToken;
use serde_json::{Value, json};
use tower_service::Service;

use crate::peers::{LONG, connect, free_port};

/// An MCP server that is its own authorization server.
#[derive(Clone, Default)]
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<String>>>,
    /// The number of the token that is good.
    pub(crate) good: Arc<Mutex<u32>>,
    pub(crate) oddities: Arc<Mutex<Oddities>>,
}

/// What a server does otherwise.
#[derive(Default)]
pub(crate) struct Oddities {
    /// It refuses without saying where to go.
    pub(crate) has_no_challenge: bool,
    /// The status with which it renews nothing.
    pub(crate) renews_nothing: Option<u16>,
    /// How many requests for metadata get what can't be read.
    pub(crate) is_down: u32,
    /// The secret of registered clients, without which it renews nothing.
    pub(crate) secret: Option<&'static str>,
    /// The scope that it demands of those without a token, instead of `plain`; if it is empty, its metadata list none.
    pub(crate) scope: Option<&'static str>,
    /// How many agreements the call of a tool takes that is named `deep`.
    pub(crate) demands: u32,
    /// It takes calls without a token, too.
    pub(crate) is_public: bool,
    /// Each refresh token is good once.
    pub(crate) rotates: bool,
    /// It sends no tokens, which are good meanwhile, before this is cancelled.
    pub(crate) holds_tokens: Option<CancelToken>,
    /// It pings during calls, and demands another scope for the responses.
    pub(crate) pings: bool,
    /// It asks instead, and its challenge for the answers names this place for its metadata, where there are none.
    pub(crate) place: Option<&'static str>,
    /// It does not say which scope it demands for the tool `deep`.
    pub(crate) names_no_scope: bool,
    /// Its tools change with the first call, after which the token is good no more.
    pub(crate) changes: bool,
    /// The issuer that it pretends to be, in metadata at a place of its own, with its own token endpoint.
    pub(crate) poses_as: Option<String>,
    /// The path of its issuer, whose metadata are at the root of the host nevertheless.
    pub(crate) below: &'static str,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { url, ..Self::default() };
        let router = Router::new().fallback(serve).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|seen| *seen == what).count()
    }
}

fn reply(status: u16, headers: &[(&str, &str)], body: &Value) -> Response<Body> {
    let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap()
}

async fn serve(
    State(server): State<Server>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let answer = answer(&server, &method, &uri, &headers, &body);
    let held = server.oddities.lock().unwrap().holds_tokens.clone().filter(|_| uri.path() == "/token");
    if let Some(held) = held {
        held.cancelled().await;
    }
    answer
}

fn answer(server: &Server, method: &Method, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Response<Body> {
    let (url, form) = (&server.url, String::from_utf8_lossy(body).into_owned());
    let path = uri.path().to_owned();
    let seen = if form.contains("grant_type=refresh_token") { "renewed".to_owned() } else { path.clone() };
    server.seen.lock().unwrap().push(seen);
    let mut oddities = server.oddities.lock().unwrap();
    match path.as_str() {
        _ if oddities.is_down > 0 && path.starts_with("/.well-known") => {
            oddities.is_down -= 1;
            reply(200, &[], &Value::from("too long ".repeat(1 << 18)))
        }
        _ if oddities.place == Some(path.as_str()) => reply(200, &[], &json!({})),
        "/.well-known/oauth-protected-resource/mcp" => {
            let place = if oddities.poses_as.is_some() { "/.well-known/mine" } else { oddities.below };
            let servers = [format!("{url}{place}")];
            let mut metadata = json!({ "resource": format!("{url}/mcp"), "authorization_servers": servers });
            if oddities.scope != Some("") {
                metadata["scopes_supported"] = json!(["plain", "admin"]);
            }
            reply(200, &[], &metadata)
        }
        "/.well-known/mine" => {
            let issuer = oddities.poses_as.as_deref().unwrap();
            let metadata = json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{url}/token"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            });
            reply(200, &[], &metadata)
        }
        "/.well-known/oauth-authorization-server" => {
            let metadata = json!({
                "issuer": format!("{url}{}", oddities.below),
                "authorization_endpoint": format!("{url}/authorize"),
                "token_endpoint": format!("{url}/token"),
                "registration_endpoint": format!("{url}/register"),
                "scopes_supported": ["plain", "admin", "deep"],
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            });
            reply(200, &[], &metadata)
        }
        "/register" => {
            let asked: Value = serde_json::from_slice(body).unwrap();
            assert_eq!(asked["client_name"], "the test");
            let id = format!("dynamic-{}", server.count("/register"));
            let mut client = json!({ "client_id": id, "redirect_uris": asked["redirect_uris"] });
            if let Some(secret) = oddities.secret {
                client["client_secret"] = json!(secret);
            }
            reply(201, &[], &client)
        }
        "/authorize" => {
            let query: BTreeMap<_, _> =
                url::form_urlencoded::parse(uri.query().unwrap().as_bytes()).into_owned().collect();
            assert_eq!(query["code_challenge_method"], "S256");
            let back = format!("{}?code=c0de&state={}", query["redirect_uri"], query["state"]);
            reply(302, &[("location", &back)], &Value::Null)
        }
        "/token" if form.contains("c0de-of-ann") => {
            // Says again all that it was sent.
            let given = headers.get("authorization").map_or("", |given| given.to_str().unwrap());
            let told = json!({ "error": "invalid_client", "error_description": format!("no {given} {form}") });
            reply(400, &[], &told)
        }
        "/token" if form.contains("grant_type=refresh_token") && oddities.renews_nothing.is_some() => {
            reply(oddities.renews_nothing.unwrap(), &[], &json!({ "error": "invalid_client" }))
        }
        "/token" if oddities.secret.is_some() && !headers.contains_key("authorization") => {
            reply(401, &[], &json!({ "error": "invalid_client" }))
        }
        "/token"
            if oddities.rotates
                && form.contains("grant_type=refresh_token")
                && !form.contains(&format!("refresh_token=again-{}", server.good.lock().unwrap())) =>
        {
            server.seen.lock().unwrap().push("used twice".to_owned());
            reply(400, &[], &json!({ "error": "invalid_grant" }))
        }
        "/token" => {
            let mut good = server.good.lock().unwrap();
            *good += 1;
            let (token, again) = (format!("token-{good}"), format!("again-{good}"));
            let answer =
                json!({ "access_token": token, "token_type": "bearer", "expires_in": 3600, "refresh_token": again });
            reply(200, &[], &answer)
        }
        "/mcp" => {
            let good = format!("Bearer token-{}", server.good.lock().unwrap());
            if oddities.is_public && !headers.contains_key("authorization") {
                // A client looks for the metadata without a token, too.
                if *method == Method::POST {
                    server.seen.lock().unwrap().push("anonymous".to_owned());
                }
            } else if headers.get("authorization").is_none_or(|given| given != good.as_str()) {
                let scope = oddities.scope.unwrap_or("plain");
                let scope = if scope.is_empty() { String::new() } else { format!(", scope=\"{scope}\"") };
                let place = format!("{url}/.well-known/oauth-protected-resource/mcp");
                let challenge = format!("Bearer resource_metadata=\"{place}\"{scope}");
                let headers = [("www-authenticate", challenge.as_str())];
                let headers = if oddities.has_no_challenge { &[][..] } else { &headers };
                return reply(401, headers, &Value::Null);
            }
            if *method != Method::POST {
                return reply(405, &[], &Value::Null);
            }
            let message: Value = serde_json::from_slice(body).unwrap();
            if message["params"]["name"] == "deep" && *server.good.lock().unwrap() < oddities.demands {
                server.seen.lock().unwrap().push("too deep".to_owned());
                let scope = if oddities.names_no_scope { "" } else { ", scope=\"deep\"" };
                let challenge = format!("Bearer error=\"insufficient_scope\"{scope}");
                return reply(403, &[("www-authenticate", &challenge)], &Value::Null);
            }
            if message.get("method").is_none() {
                server.seen.lock().unwrap().push("pong".to_owned());
                let place = oddities.place.map(|place| format!(", resource_metadata=\"{url}{place}\""));
                let challenge =
                    format!("Bearer error=\"insufficient_scope\", scope=\"pong\"{}", place.unwrap_or_default());
                return reply(403, &[("www-authenticate", &challenge)], &Value::Null);
            }
            let info = json!({ "name": "safe", "version": "1" });
            let result = match message["method"].as_str().unwrap() {
                "initialize" => {
                    let capabilities = json!({ "tools": { "listChanged": oddities.changes } });
                    json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info })
                }
                "tools/list" => {
                    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
                    json!({ "tools": [tool("open"), tool("deep")] })
                }
                "tools/call" => json!({ "content": [{ "type": "text", "text": "open" }] }),
                "server/discover" => return reply(404, &[], &Value::Null),
                _ => return reply(202, &[], &Value::Null),
            };
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            if message["method"] == "tools/call" && oddities.pings {
                let mut ping = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" });
                if oddities.place.is_some() {
                    ping["method"] = json!("elicitation/create");
                    let schema = json!({ "type": "object", "properties": {} });
                    ping["params"] = json!({ "message": "Which?", "requestedSchema": schema });
                }
                let (server, place) = (server.clone(), oddities.place);
                let events = stream::once(ready(format!("data: {ping}\n\n"))).chain(stream::once(async move {
                    // The refused answer leads to that place only while the call waits.
                    let reached = async {
                        while place.is_some_and(|place| server.count(place) == 0) {
                            tokio::time::sleep(Duration::from_millis(10)).await;
                        }
                    };
                    let _ = tokio::time::timeout(LONG, reached).await;
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    format!("data: {answer}\n\n")
                }));
                let events = Body::from_stream(events.map(Ok::<_, Infallible>));
                return Response::builder().header("content-type", "text/event-stream").body(events).unwrap();
            }
            if message["method"] == "tools/call" && std::mem::take(&mut oddities.changes) {
                *server.good.lock().unwrap() += 1;
                let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
                let events = Body::from(format!("data: {changed}\n\ndata: {answer}\n\n"));
                return Response::builder().header("content-type", "text/event-stream").body(events).unwrap();
            }
            reply(200, &[], &answer)
        }
        _ => reply(404, &[], &Value::Null),
    }
}

/// A store as somebody might write it.
#[derive(Clone, Default)]
pub(crate) struct Drawer(pub(crate) Arc<Mutex<BTreeMap<String, String>>>);

impl Drawer {
    fn done<T: Send + 'static>(value: T) -> BoxFuture<'static, Result<T, CallError>> {
        Box::pin(std::future::ready(Ok(value)))
    }
}

impl TokenStore for Drawer {
    fn load(&self, server: &str) -> BoxFuture<'static, Result<Option<Secret>, CallError>> {
        Self::done(self.0.lock().unwrap().get(server).map(|tokens| Secret::new(tokens.clone())))
    }

    fn save(&self, server: &str, tokens: Secret) -> BoxFuture<'static, Result<(), CallError>> {
        self.0.lock().unwrap().insert(server.to_owned(), tokens.expose().to_owned());
        Self::done(())
    }

    fn clear(&self, server: &str) -> BoxFuture<'static, Result<(), CallError>> {
        self.0.lock().unwrap().remove(server);
        Self::done(())
    }
}

/// What a browser does.
async fn browse(mut url: String) {
    loop {
        let request = Request::get(&url).body(RequestBody::default()).unwrap();
        let response = HttpEngine::new().unwrap().call(request).await.unwrap();
        match response.headers().get("location") {
            Some(location) => url = location.to_str().unwrap().to_owned(),
            None => return assert_eq!(response.status(), 200),
        }
    }
}

async fn open(client: &McpClient) -> Result<Value, CallError> {
    client.call("safe.open", json!({})).await.map(|envelope| envelope.data[0]["text"].clone())
}

#[tokio::test]
async fn tokens_are_got_kept_and_renewed() {
    let server = Server::start().await;
    let store = Drawer::default();
    // The redirect URL has to name a port.
    let port = free_port();
    let asked = Arc::new(Mutex::new(0));
    let counted = asked.clone();
    let oauth = McpOAuth::new(format!("http://127.0.0.1:{port}/callback"))
        .with_client_name("the test")
        .with_store(store.clone())
        .with_loopback(move |url| {
            *counted.lock().unwrap() += 1;
            tokio::spawn(browse(url.to_owned()));
        });
    let url = format!("{}/mcp", server.url);
    let config = McpServerConfig::http(&url).with_namespace("safe").with_oauth(oauth);
    let client = connect(config.clone()).await;
    assert_eq!(open(&client).await.unwrap(), "open");
    assert_eq!((*asked.lock().unwrap(), server.count("/register"), server.count("/token")), (1, 1, 1));
    client.close().await;

    // The next client finds the tokens, and asks nobody.
    assert!(store.0.lock().unwrap()[&url].contains("token-1"));
    let client = connect(config).await;
    assert_eq!(open(&client).await.unwrap(), "open");
    // A token that is good no more is renewed without the user, and the refused call sent again.
    *server.good.lock().unwrap() += 1;
    assert_eq!(open(&client).await.unwrap(), "open");
    assert_eq!((*asked.lock().unwrap(), server.count("renewed")), (1, 1));
    assert!(store.0.lock().unwrap()[&url].contains("token-3"));
    client.close().await;
}

#[tokio::test]
async fn the_user_is_asked_for_one_server_after_the_other() {
    let servers = [Server::start().await, Server::start().await];
    let port = free_port();
    // Each time, the user takes more than half of the time there is.
    let oauth = McpOAuth::new(format!("http://127.0.0.1:{port}/callback"))
        .with_client_name("the test")
        .with_user_timeout(Duration::from_secs(5))
        .with_loopback(|url| {
            let url = url.to_owned();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(2_750)).await;
                browse(url).await;
            });
        });
    let mut config = McpConfig::new();
    for (name, server) in ["one", "two"].into_iter().zip(&servers) {
        let http = McpServerConfig::http(format!("{}/mcp", server.url));
        config = config.with_server(name, http.with_oauth(oauth.clone()));
    }
    let clients = McpClients::connect(&config).await;
    assert!(clients.errors().is_empty(), "{:?}", clients.errors());
    assert_eq!(clients.names(), ["one", "two"]);
    clients.close_all().await;
}

#[tokio::test]
async fn without_anybody_to_ask_the_server_refuses() {
    let server = Server::start().await;
    let config = McpServerConfig::http(format!("{}/mcp", server.url)).with_namespace("safe");
    let error = McpClient::connect(config.clone()).await.unwrap_err();
    assert_eq!(error.details()["statusCode"], 401, "{error:?}");
    let error = McpClient::connect(config.with_oauth(McpOAuth::new("http://127.0.0.1:1/callback"))).await.unwrap_err();
    assert!(error.message().contains("with_prompt"), "{error}");
}

#[tokio::test]
async fn what_is_sent_for_a_token_is_in_no_error() {
    let server = Server::start().await;
    let oauth = McpOAuth::new("http://127.0.0.1:1/callback")
        .with_client("us", Some(Secret::from("cl1ent-s3cret")))
        .with_prompt(|url| async move {
            let url = url::Url::parse(&url).unwrap();
            let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1;
            Ok(format!("http://127.0.0.1:1/callback?code=c0de-of-ann&state={state}"))
        });
    let config = McpServerConfig::http(format!("{}/mcp", server.url)).with_namespace("safe").with_oauth(oauth);
    let error = McpClient::connect(config).await.unwrap_err();
    let told = format!("{error} {error:?}");
    assert_eq!(server.count("/token"), 1, "{told}");
    assert!(told.contains("invalid_client") && told.contains("***"), "{told}");
    // The pair of id and secret, too.
    for secret in ["cl1ent-s3cret", "dXM6Y2wxZW50LXMzY3JldA", "c0de-of-ann"] {
        assert!(!told.contains(secret), "{secret} in {told}");
    }
}
