//! Who may call what: on every route, streams included.

use http::request::Parts;
use ops_runtime::Registry;
use ops_runtime::access::{AccessControl, Identity};
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{HttpBinding, HttpParameter, SecurityKind, SecurityRequirement, SecurityScheme};
use ops_runtime::serve::{HttpServer, Unauthorized};
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};

use crate::fixture::{registry, serve};

const READ: SecurityScheme = SecurityScheme::new("oauth", SecurityKind::Bearer).with_scopes(&["pets:read"]);
static SECURED: OperationSpec = OperationSpec::query("pets.list").with_http(
    HttpBinding::new("GET", "/pets").with_security(const { &[SecurityRequirement::new(const { &[READ] })] }),
);
static STREAM: OperationSpec = OperationSpec::subscription("pets.watch").with_http(
    HttpBinding::new("GET", "/pets/events").with_security(const { &[SecurityRequirement::new(const { &[READ] })] }),
);

/// The ways to an operation that needs an identity: by path, by id, streams.
pub(crate) const ROUTES: [&str; 9] = [
    "GET /pets",
    "HEAD /pets",
    "GET /pets/events",
    "GET /operations/pets/list",
    "POST /operations/pets/list",
    "GET /operations/pets/watch",
    "POST /operations/pets/watch",
    "GET /operations/users/me",
    "POST /operations/users/me",
];

/// Operations that need `pets:read` or `me:read`, beside those that need nothing.
pub(crate) fn secured() -> Registry {
    let registry = registry();
    registry.register(Registration::new(&SECURED, Handler::dynamic(|_: Value, _| async { Ok(json!([])) }))).unwrap();
    let stream = Handler::dynamic_stream(|_: Value, _| async { Ok(futures_util::stream::iter([Ok(json!(1))])) });
    registry.register(Registration::new(&STREAM, stream)).unwrap();
    registry
}

fn authenticate(parts: &Parts) -> impl Future<Output = Result<Option<Identity>, Unauthorized>> + Send + use<> {
    let token = parts.headers.get("authorization").map(|token| token.to_str().unwrap_or_default().to_owned());
    async move {
        match token.as_deref() {
            None => Ok(None),
            Some("Bearer reader") => Ok(Some(Identity::new("ann").with_scope("pets:read").with_scope("me:read"))),
            Some("Bearer nothing") => Ok(Some(Identity::new("bob"))),
            Some(_) => Err(Unauthorized::challenge("Bearer error=\"invalid_token\"")),
        }
    }
}

#[tokio::test]
async fn every_route_asks_for_what_the_operation_needs() {
    let server = serve(HttpServer::new(secured()).with_authenticator(authenticate)).await;
    for route in ROUTES {
        let none = server.send(route, &[], "").await;
        assert_eq!((none.status, none.header("www-authenticate")), (401, Some("Bearer")), "{route}");
        let wrong = server.send(route, &["authorization: Bearer wrong"], "").await;
        assert_eq!(
            (wrong.status, wrong.header("www-authenticate")),
            (401, Some("Bearer error=\"invalid_token\"")),
            "{route}"
        );
        let without = server.send(route, &["authorization: Bearer nothing"], "").await;
        assert_eq!(without.status, 403, "{route}: {without:?}");
        if !route.starts_with("HEAD") {
            let (problem, scope) = (without.problem(), if route.contains("pets") { "pets:read" } else { "me:read" });
            assert_eq!(
                (&problem["code"], &problem["details"]),
                (&json!("ACCESS_DENIED"), &json!({ "requiredScopes": [scope] })),
                "{route}"
            );
            let detail = "the credentials do not have what the operation asks for: it needs all of the scopes";
            assert_eq!(problem["detail"], format!("{detail} {scope}"));
        }
        let reader = server.send(route, &["authorization: Bearer reader"], "").await;
        assert_eq!(reader.status, 200, "{route}: {reader:?}");
    }
    // What needs nothing takes anybody, but not credentials that are wrong.
    assert_eq!(server.post("/operations/math/add", r#"{"a":1}"#).await.body, "2");
    let wrong = server.send("GET /operations/math/add?input=1", &["authorization: Bearer wrong"], "").await;
    assert_eq!(wrong.status, 401);
    assert_eq!(server.get("/healthz").await.status, 200);
    let me = server.send("GET /operations/users/me", &["authorization: Bearer reader"], "").await;
    assert_eq!(me.body, "\"ann\"");
}

/// A token is asked for with other scopes only if they are known to help.
#[tokio::test]
async fn a_challenge_names_scopes_that_are_missing() {
    static ANY: OperationSpec = OperationSpec::query("any.of")
        .with_access(AccessControl::NONE.with_scopes(&["me:read"]).with_scopes_any(&["a", "b"]));
    static RIGHT: OperationSpec = OperationSpec::query("right.to")
        .with_access(AccessControl::NONE.with_scopes(&["me:read"]).with_resource("pet", "feed"));
    let registry = Registry::new();
    for spec in [&ANY, &RIGHT] {
        registry.register(Registration::new(spec, Handler::dynamic(|_: Value, _| async { Ok(json!(1)) }))).unwrap();
    }
    let server = serve(HttpServer::new(registry).with_authenticator(authenticate)).await;
    for (path, needs) in [
        ("any/of", "all of the scopes me:read, and one of the scopes a, b"),
        ("right/to", "all of the scopes me:read, and the right to feed pet"),
    ] {
        let refused = server.send(&format!("GET /operations/{path}"), &["authorization: Bearer reader"], "").await;
        let challenge = Some("Bearer error=\"insufficient_scope\"");
        assert_eq!((refused.status, refused.header("www-authenticate")), (403, challenge), "{path}");
        let detail = format!("the credentials do not have what the operation asks for: it needs {needs}");
        assert_eq!(refused.problem()["detail"], detail);
    }
}

#[tokio::test]
async fn scopes_are_told_only_if_the_document_lists_them() {
    let server = HttpServer::new(secured()).with_authenticator(authenticate).without_document();
    let server = serve(server).await;
    let without = server.send("GET /pets", &["authorization: Bearer nothing"], "").await;
    assert_eq!(without.header("www-authenticate"), Some("Bearer error=\"insufficient_scope\""));
    assert!(without.status == 403 && !without.body.contains("pets:read"), "{without:?}");
}

/// A path that means an operation which the caller may not run means no other.
#[tokio::test]
async fn a_less_specific_path_is_no_way_around() {
    static SHOW: OperationSpec = OperationSpec::query("pets.show")
        .with_http(HttpBinding::new("GET", "/{pets}").with_parameters(const { &[HttpParameter::path("pets")] }));
    let registry = secured();
    registry.register(Registration::new(&SHOW, Handler::dynamic(|input: Value, _| async { Ok(input) }))).unwrap();
    let server = serve(HttpServer::new(registry).with_authenticator(authenticate)).await;
    assert_eq!(server.get("/cats").await.json(), json!({ "pets": "cats" }));
    for path in ["/pets", "/%70ets"] {
        assert_eq!(server.get(path).await.status, 401, "{path}");
    }
}

#[tokio::test]
async fn without_an_authenticator_only_open_operations_run() {
    let server = serve(HttpServer::new(secured())).await;
    for route in ["GET /pets", "GET /pets/events", "POST /operations/users/me", "POST /operations/pets/watch"] {
        let refused = server.send(route, &["authorization: Bearer reader"], "").await;
        assert_eq!((refused.status, refused.body.contains("has no authenticator")), (401, true), "{route}");
    }
    assert_eq!(server.post("/operations/math/add", r#"{"a":1}"#).await.status, 200);
}

#[tokio::test]
async fn a_refused_caller_sends_no_body() {
    let server = serve(HttpServer::new(secured()).with_authenticator(authenticate)).await;
    // The body never comes.
    let request =
        "POST /operations/users/me HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 1000\r\n\r\n";
    assert_eq!(server.raw(request.as_bytes()).await.status, 401);
}

#[tokio::test]
async fn pages_of_other_origins_and_names_are_refused() {
    let server = serve(HttpServer::new(registry())).await;
    let with =
        |host: &str, more: &str| format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{more}\r\n");
    let own = format!("localhost:{}", server.address.port());
    assert_eq!(server.raw(with(&own, "").as_bytes()).await.status, 200);
    for host in ["evil.example", "127.0.0.1.evil.example", ""] {
        assert_eq!(server.raw(with(host, "").as_bytes()).await.status, 403, "{host}");
    }
    let foreign = server.raw(with("localhost", "origin: https://evil.example\r\n").as_bytes()).await;
    assert_eq!((foreign.status, foreign.header("access-control-allow-origin")), (403, None));
    let preflight = "OPTIONS /operations/math/add HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\norigin: https://app.example\r\naccess-control-request-method: POST\r\naccess-control-request-headers: content-type\r\n\r\n";
    let closed = server.raw(preflight.as_bytes()).await;
    assert_eq!((closed.status, closed.header("access-control-allow-origin")), (403, None));

    let open = serve(HttpServer::new(registry()).with_origins(["https://app.example"])).await;
    let allowed = open.raw(preflight.as_bytes()).await;
    assert_eq!((allowed.status, allowed.header("access-control-allow-origin")), (200, Some("https://app.example")));
    assert_eq!(allowed.header("access-control-allow-credentials"), None);
    let other = open.raw(preflight.replace("app.example", "evil.example").as_bytes()).await;
    assert_eq!(other.header("access-control-allow-origin"), None);
    // Who is let in may read the answer, however the origin is written.
    let origins = ["http://dev.example:*", "https://App.example:443/"];
    let open = serve(HttpServer::new(registry()).with_origins(origins)).await;
    for (origin, is_allowed) in [
        ("http://dev.example:3000", true),
        ("http://dev.example", true),
        ("https://app.example", true),
        ("https://dev.example:3000", false),
        ("https://app.example:444", false),
    ] {
        let allowed = is_allowed.then_some(origin);
        let answer = open.raw(preflight.replace("https://app.example", origin).as_bytes()).await;
        assert_eq!(answer.header("access-control-allow-origin"), allowed, "{origin}");
        let answer = open.raw(with("localhost", &format!("origin: {origin}\r\n")).as_bytes()).await;
        let status = if is_allowed { 200 } else { 403 };
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (status, allowed), "{origin}");
        // With all of its headers, those of functions among them.
        assert_eq!(answer.header("access-control-expose-headers"), Some("*"), "{origin}");
    }
    let named = serve(HttpServer::new(registry()).with_hosts(["api.example.com"])).await;
    assert_eq!(named.raw(with("api.example.com", "").as_bytes()).await.status, 200);
    assert_eq!(named.raw(with("localhost", "").as_bytes()).await.status, 403);
}

#[tokio::test]
async fn an_operation_may_have_the_method_options() {
    let registry = registry();
    let spec = OperationSpec::query("t.options").with_http(HttpBinding::new("OPTIONS", "/options"));
    let asked = Handler::dynamic(|_: Value, _| async { Ok(json!("asked")) });
    registry.register(Registration::new(spec, asked)).unwrap();
    let server = serve(HttpServer::new(registry).with_origins(["https://app.example"])).await;
    let (origin, page) = ("origin: https://app.example", Some("https://app.example"));
    let table: [(&[&str], &str, Option<&str>); 4] = [
        (&[], "\"asked\"", None),
        (&[origin], "\"asked\"", page),
        (&["access-control-request-method: OPTIONS"], "\"asked\"", None),
        (&[origin, "access-control-request-method: OPTIONS"], "", page),
    ];
    for (headers, body, allowed) in table {
        let answer = server.send("OPTIONS /options", headers, "").await;
        let found = (answer.status, answer.body.as_str(), answer.header("access-control-allow-origin"));
        assert_eq!(found, (200, body, allowed), "{headers:?}");
    }
    assert_eq!(server.send("OPTIONS /nothing", &[], "").await.status, 404);
    assert_eq!(server.send("OPTIONS /operations/math/add", &[], "").await.status, 405);
}
