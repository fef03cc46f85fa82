//! What is behind one server and was not made for it: APIs that share paths, markup, credentials of other servers.

use ops_runtime::access::Identity;
use ops_runtime::adapter::{BoxFuture, Handler, Registration};
use ops_runtime::binding::{
    Binding, HttpBinding, HttpBody, HttpFixed, HttpParameter, HttpResponse, Literal, SecurityKind, SecurityRequirement,
    SecurityScheme, StatusRange,
};
use ops_runtime::openapi::from_openapi_value;
use ops_runtime::serve::{Authenticator, BearerTokens, HttpServer, Unauthorized};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{ErrorResponse, HttpConfig, Registry};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::fixture::{Server, registry, serve};

/// A registry of operations at these places, each of which answers its own id.
fn at(places: &[(&str, &str, &str)]) -> Registry {
    let registry = Registry::new();
    for (id, method, path) in places {
        let (namespace, name) = id.split_once('.').unwrap();
        let mut spec = OperationSpec::new(OperationKind::Mutation, namespace, name).unwrap();
        spec.binding = Binding::Http(HttpBinding::owned((*method).to_owned(), (*path).to_owned()));
        let id = (*id).to_owned();
        let answer = Handler::dynamic(move |_: Value, _| {
            let id = id.clone();
            async move { Ok(json!(id)) }
        });
        registry.register(Registration::new(spec, answer)).unwrap();
    }
    registry
}

#[tokio::test]
async fn no_api_answers_for_another() {
    let places = [("a.wipe", "DELETE", "/items"), ("b.wipe", "DELETE", "/items"), ("b.list", "GET", "/items")];
    let registry = at(&places);
    let server = serve(HttpServer::new(registry.clone())).await;
    let answer = server.send("DELETE /items", &[], "").await;
    assert_eq!(answer.status, 404, "{answer:?}");
    let told = answer.problem()["detail"].as_str().unwrap().to_owned();
    assert!(told.ends_with("/operations/a/wipe, /operations/b/wipe"), "{told}");
    for (id, path) in [("a.wipe", "/operations/a/wipe"), ("b.wipe", "/operations/b/wipe")] {
        assert_eq!(server.post(path, "").await.json(), id);
    }
    assert_eq!(server.get("/items").await.json(), "b.list");
    let document = server.get("/openapi.json").await.json();
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths, ["/operations/a/wipe", "/items", "/operations/b/wipe"]);
    assert_eq!(document["paths"]["/operations/b/wipe"]["post"]["x-ops-id"], "b.wipe");
    // The path is one's own again when the other has gone.
    registry.remove("a.wipe").unwrap();
    assert_eq!(server.send("DELETE /items", &[], "").await.json(), "b.wipe");
}

#[tokio::test]
async fn markup_has_no_scripts() {
    let kinds = [
        ("text/html", Some("sandbox")),
        ("text/html; charset=utf-8", Some("sandbox")),
        ("image/svg+xml", Some("sandbox")),
        ("application/xhtml+xml", Some("sandbox")),
        ("text/xml", Some("sandbox")),
        ("text/xsl", Some("sandbox")),
        ("text/plain,text/html", Some("sandbox")),
        ("x-unknown/thing", Some("sandbox")),
        ("text/plain", None),
        ("image/png", None),
        ("application/json", None),
        ("application/pdf", None),
    ];
    for (kind, expected) in kinds {
        let mut spec = OperationSpec::new(OperationKind::Query, "a", "page").unwrap();
        let mut binding = HttpBinding::owned("GET", "/page");
        binding.responses = vec![HttpResponse::new(StatusRange::Exact(200), kind)].into();
        spec.binding = Binding::Http(binding);
        let registry = Registry::new();
        let page = Handler::dynamic(|_: Value, _| async { Ok(json!("aGk=")) });
        registry.register(Registration::new(spec, page)).unwrap();
        let answer = serve(HttpServer::new(registry)).await.get("/page").await;
        assert_eq!((answer.status, answer.header("content-security-policy")), (200, expected), "{kind}: {answer:?}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
}

/// A router of a server, which does not know where it listens.
async fn routed(router: axum::Router) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    Server { address, stop: Default::default(), running: None }
}

#[tokio::test]
async fn pages_of_others_reach_no_router() {
    let server = routed(HttpServer::new(registry()).with_origins(["https://app.example"]).into_router()).await;
    let own = format!("origin: http://localhost:{}", server.address.port());
    let host = format!("localhost:{}", server.address.port());
    for (headers, status) in [
        (vec![], 200),
        (vec![own.as_str()], 200),
        (vec!["origin: https://app.example"], 200),
        (vec!["origin: https://api.example", "sec-fetch-site: same-origin"], 200),
        (vec!["origin: https://evil.example"], 403),
        (vec!["origin: https://evil.example", "sec-fetch-site: cross-site"], 403),
        (vec!["origin: null"], 403),
        (vec![own.as_str(), "sec-fetch-site: same-site"], 403),
    ] {
        let more: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let request = format!(
            "POST /operations/math/add HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 7\r\n{more}\r\n{{\"a\":1}}"
        );
        assert_eq!(server.raw(request.as_bytes()).await.status, status, "{headers:?}");
    }
}

/// One server at two paths has a document at each, whose tags differ.
#[tokio::test]
async fn each_prefix_has_a_document() {
    let router = HttpServer::new(registry()).into_router();
    let server = routed(axum::Router::new().nest("/a", router.clone()).nest("/b", router)).await;
    let tag = async |path: &str| {
        let answer = server.get(path).await;
        answer.header("etag").unwrap().to_owned()
    };
    for name in ["openapi.json", "openapi.yaml"] {
        let tags = [tag(&format!("/a/{name}")).await, tag(&format!("/b/{name}")).await];
        for (at, prefix) in ["/a", "/b", "/a"].into_iter().enumerate() {
            for (other, known) in tags.iter().enumerate() {
                let is_own = at % 2 == other;
                let answer =
                    server.send(&format!("GET {prefix}/{name}"), &[&format!("if-none-match: {known}")], "").await;
                assert_eq!(answer.status, if is_own { 304 } else { 200 }, "{prefix}/{name} {known}");
                if !is_own {
                    let document = ops_runtime::openapi::parse(&answer.body).unwrap();
                    assert_eq!(document["servers"], json!([{ "url": prefix }]), "{name}");
                }
            }
        }
    }
}

/// A registry of operations at these places that give back their inputs. Each takes a body of one type.
fn told_apart(all: Vec<(&str, HttpBinding, HttpBody, &str)>) -> HttpServer {
    let registry = Registry::new();
    for (name, mut binding, body, kind) in all {
        binding.bodies = vec![body].into();
        let mut spec = OperationSpec::new(OperationKind::Mutation, "t", name).unwrap();
        spec.input = json!({ "type": "object", "properties": { "body": { "type": kind } } }).into();
        spec.binding = Binding::Http(binding);
        let echo = Handler::dynamic(|input: Value, _| async move { Ok(input) });
        registry.register(Registration::new(spec, echo)).unwrap();
    }
    HttpServer::new(registry)
}

#[tokio::test]
async fn the_type_of_a_body_tells_operations_apart() {
    let fixed = const { &[HttpFixed::new("stream", Literal::Bool(true))] };
    let takes = |kind: &str| format!("the operation takes a body of type {kind}");
    let (of_json, of_text) = (takes("application/json"), takes("text/plain"));
    for (json_name, text_name, types) in [
        ("first", "second", format!("{of_json}, or {of_text}")),
        ("second", "first", format!("{of_text}, or {of_json}")),
    ] {
        let place = || HttpBinding::owned("POST", "/say");
        let server = serve(told_apart(vec![
            (json_name, place(), HttpBody::new("application/json").with_fixed(fixed), "object"),
            (text_name, place(), HttpBody::new("text/plain"), "string"),
        ]))
        .await;
        let say = async |kind: &str, body: &str| {
            let answer = server.send("POST /say", &[&format!("content-type: {kind}")], body).await;
            (answer.status, answer.json())
        };
        let input = say("application/json", r#"{"stream":true,"q":1}"#).await;
        assert_eq!(input, (200, json!({ "body": { "q": 1 } })), "{json_name}");
        assert_eq!(say("text/plain", "hi").await, (200, json!({ "body": "hi" })), "{json_name}");
        // What is wrong is said by the operation that takes the type.
        let (status, problem) = say("application/json", r#"{"stream":false}"#).await;
        let violation = json!([{ "pointer": "/body/stream", "message": "is always `true`" }]);
        assert_eq!((status, &problem["violations"]), (422, &violation), "{json_name}");
        let (status, problem) = say("application/json", "{").await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(status == 400 && detail.starts_with("the body is not JSON: "), "{json_name}: {problem}");
        let (status, problem) = say("image/png", "x").await;
        assert_eq!((status, &problem["detail"]), (415, &json!(types)), "{json_name}");
    }
}

#[tokio::test]
async fn a_body_that_one_operation_cannot_read_may_be_meant_for_another() {
    let place = |action: Literal| {
        let mut binding = HttpBinding::owned("POST", "/do");
        binding.parameters = vec![HttpParameter::query("action").with_fixed(action)].into();
        binding
    };
    for (lines, text) in [("first", "second"), ("second", "first")] {
        let server = serve(told_apart(vec![
            (lines, place(const { Literal::text("lines") }), HttpBody::new("application/x-ndjson"), "array"),
            (text, place(const { Literal::text("text") }), HttpBody::new("application/x-ndjson"), "string"),
        ]))
        .await;
        let kind = ["content-type: application/x-ndjson"];
        let answer = server.send("POST /do?action=text", &kind, "no JSON").await;
        assert_eq!((answer.status, answer.json()), (200, json!({ "body": "no JSON" })), "{lines}");
        let answer = server.send("POST /do?action=lines", &kind, "no JSON").await;
        let detail = answer.problem()["detail"].as_str().unwrap().to_owned();
        assert!(answer.status == 400 && detail.starts_with("a line of the body is not JSON: "), "{lines}: {detail}");
    }
}

#[tokio::test]
async fn the_own_paths_say_what_they_take() {
    let server = serve(HttpServer::new(registry())).await;
    for (line, allowed) in [
        ("POST /healthz", "GET, HEAD"),
        ("DELETE /openapi.json", "GET, HEAD"),
        ("PUT /operations/math/add", "GET, HEAD, POST"),
        ("GET /operations/math/count", ""),
    ] {
        let answer = server.send(line, &[], "").await;
        if allowed.is_empty() {
            assert_ne!(answer.status, 405, "{line}");
        } else {
            assert_eq!((answer.status, answer.header("allow")), (405, Some(allowed)), "{line}");
        }
    }
}

fn secured(scheme: SecurityScheme) -> Registry {
    let mut spec = OperationSpec::new(OperationKind::Query, "shop", "list").unwrap();
    let mut binding = HttpBinding::owned("GET", "/list");
    let mut way = SecurityRequirement::new(&[]);
    way.schemes = vec![scheme].into();
    binding.security = vec![way].into();
    spec.binding = Binding::Http(binding);
    let registry = Registry::new();
    let refused =
        Handler::dynamic(|_: Value, _| async { Err(ErrorResponse::new(401, json!({ "why": "theirs" })).into()) });
    registry.register(Registration::new(spec, refused)).unwrap();
    registry
}

#[tokio::test]
async fn the_document_names_credentials_that_count() {
    let kind = SecurityKind::ApiKey { location: ops_runtime::binding::ParameterLocation::Header, name: "X-Key".into() };
    let key = SecurityScheme::new("shopKey", kind);
    let tokens = || BearerTokens::new().with_token("t", Identity::new("ann"));
    let security = |document: &Value| document["paths"]["/list"]["get"]["security"].clone();
    let document = |server| async move { serve(server).await.get("/openapi.json").await.json() };
    let told = document(HttpServer::new(secured(key.clone())).with_authenticator(tokens())).await;
    assert_eq!(security(&told), json!([{ "bearer": [] }]));
    assert_eq!(told["components"]["securitySchemes"].as_object().unwrap().keys().collect::<Vec<_>>(), ["bearer"]);
    // Who looks for what nobody knows may look for the key.
    let closure = |_: &http::request::Parts| async { Ok(Identity::new("ann")) };
    let told = document(HttpServer::new(secured(key)).with_authenticator(closure)).await;
    assert_eq!(security(&told), json!([{ "shopKey": [] }]));
    let oauth = SecurityScheme::new("login", SecurityKind::OAuth2 { token_url: None });
    let told = document(HttpServer::new(secured(oauth)).with_authenticator(tokens())).await;
    assert_eq!(security(&told), json!([{ "login": [] }]));
}

/// A registry with an operation that is forwarded to the server of a document, which asks for a credential.
fn forwarded(scheme: &Value) -> Registry {
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Shop", "version": "1" },
        "servers": [{ "url": "https://shop.example.com" }],
        "paths": { "/list": { "get": { "operationId": "list", "security": [{ "login": [] }], "responses": {} } } },
        "components": { "securitySchemes": { "login": scheme } },
    });
    let registry = Registry::new();
    let config = HttpConfig::new().with_namespace("shop");
    registry.register_all(from_openapi_value(&document, config).unwrap()).unwrap();
    registry
}

/// Accepts only tokens that are exchanged below the URL of the server itself.
struct OwnLogin;

impl OwnLogin {
    fn kind() -> SecurityKind {
        SecurityKind::OAuth2 { token_url: Some("/token".into()) }
    }
}

impl Authenticator for OwnLogin {
    fn authenticate(&self, _: &http::request::Parts) -> BoxFuture<'static, Result<Option<Identity>, Unauthorized>> {
        Box::pin(async { Ok(None) })
    }

    fn schemes(&self) -> Vec<SecurityScheme> {
        vec![SecurityScheme::owned("own", Self::kind())]
    }

    fn is_exact(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn the_document_leads_to_no_path_of_another_server() {
    let told = async |server: HttpServer| serve(server).await.get("/openapi.json").await.json();
    let schemes = |document: &Value| document["components"]["securitySchemes"].clone();
    let tokens = || BearerTokens::new().with_token("t", Identity::new("ann"));
    let oauth =
        |url: &str| json!({ "type": "oauth2", "flows": { "clientCredentials": { "tokenUrl": url, "scopes": {} } } });
    let oidc = json!({ "type": "openIdConnect", "openIdConnectUrl": "/oidc" });
    let (absolute, bare) = ("https://id.example.com/token", json!({ "type": "oauth2", "flows": {} }));
    let with_url = "/oauth/token?audience=https://api.example.com";
    let of_oauth = |url: &'static str| SecurityKind::OAuth2 { token_url: Some(url.into()) };
    for (kind, scheme, published) in [
        (of_oauth(absolute), oauth(absolute), oauth(absolute)),
        (of_oauth("/oauth/token"), oauth("/oauth/token"), bare.clone()),
        (of_oauth(with_url), oauth(with_url), bare.clone()),
        (SecurityKind::OpenIdConnect { url: "/oidc".into() }, oidc, json!({ "type": "http", "scheme": "bearer" })),
    ] {
        let server = HttpServer::new(forwarded(&scheme)).with_authenticator(tokens());
        assert_eq!(schemes(&told(server).await), json!({ "login": published }));
        // A URL of an operation that is carried out here is one of this server.
        let own = SecurityScheme::owned("login", kind);
        let server = HttpServer::new(secured(own)).with_authenticator(tokens());
        assert_eq!(schemes(&told(server).await), json!({ "login": scheme }));
    }
    // So is that of its authenticator, which callers need in place of what the other server asks for.
    let key = json!({ "type": "apiKey", "in": "header", "name": "X-Key" });
    for (scheme, published) in [
        (key, json!({ "own": oauth("/token") })),
        (oauth("/token"), json!({ "login": oauth("/token") })),
        (oauth("/oauth/token"), json!({ "login": bare })),
    ] {
        let server = HttpServer::new(forwarded(&scheme)).with_authenticator(OwnLogin);
        assert_eq!(schemes(&told(server).await), published);
    }
}

#[tokio::test]
async fn a_401_says_how_to_authenticate() {
    let token = SecurityScheme::new("token", SecurityKind::Bearer);
    let server =
        HttpServer::new(secured(token)).with_authenticator(BearerTokens::new().with_token("t", Identity::new("a")));
    let answer = serve(server).await.send("GET /list", &["authorization: Bearer t"], "").await;
    assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")), "{answer:?}");
    assert_eq!(answer.json(), json!({ "why": "theirs" }));
}
