//! The server over streamable HTTP.

use axum::Router;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Request, Response, StatusCode, header};
use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use http_body_util::Full;
use ops_runtime::Registry;
use ops_runtime::access::Identity;
use ops_runtime::binding::{Binding, HttpBinding};
use ops_runtime::http::{Auth, HttpClient, HttpConfig};
use ops_runtime::mcp::{McpBody, McpServer, McpServerOptions, McpService, Unauthorized};
use ops_runtime::registry::CancelToken;
use ops_runtime::serve::ApiKeys;
use ops_runtime::spec::{OperationKind, OperationSpec};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tower_service::Service;

use crate::client::{PATIENCE, REVISIONS};
use crate::fixture::{echo, registry, server};
use crate::log::Log;
use crate::streams::{endless, soon};

/// Users by their tokens.
pub(crate) fn authenticated(server: McpServer) -> McpService {
    server.into_service().with_authenticator(|request: &Parts| {
        let token = request.headers.get(header::AUTHORIZATION).and_then(|token| token.to_str().ok()).map(str::to_owned);
        async move {
            match token.as_deref() {
                Some("Bearer ann") => Ok(Identity::new("ann").with_scope("shop:write")),
                Some("Bearer bob") => Ok(Identity::new("bob")),
                Some("Bearer unchecked") => Err(Unauthorized::unavailable()),
                _ => Err(Unauthorized::challenge(r#"Bearer resource_metadata="https://shop.example/meta""#)),
            }
        }
    })
}

/// One request to the service, without a network.
pub(crate) struct Ask {
    service: McpService,
    revision: &'static str,
    headers: Vec<(&'static str, String)>,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    headers: axum::http::HeaderMap,
    pub(crate) text: String,
}

impl Ask {
    pub(crate) fn new(service: &McpService, revision: &'static str) -> Self {
        Self { service: service.clone(), revision, headers: vec![("host", "localhost:8000".into())] }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    /// Sends a message, and gives the response as soon as it begins.
    async fn post(mut self, headers: Vec<(&'static str, String)>, message: &Value) -> Response<McpBody> {
        let mut request = Request::post("/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        for (name, value) in headers.iter().chain(&self.headers) {
            request = request.header(*name, value);
        }
        self.service.call(request.body(Body::from(message.to_string())).unwrap()).await.unwrap()
    }

    /// Sends a request or a notification, and gives the response as soon as it begins.
    pub(crate) async fn open(self, method: &str, mut params: Value) -> Response<McpBody> {
        let mut headers = Vec::new();
        if method != "initialize" {
            headers.push(("mcp-protocol-version", self.revision.to_owned()));
        }
        if self.revision >= "2026-07-28" {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(self.revision);
            let capabilities = &mut params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
            if capabilities.is_null() {
                *capabilities = json!({});
            }
            headers.push(("mcp-method", method.to_owned()));
            if let Some(name) = params["name"].as_str().or_else(|| params["taskId"].as_str()) {
                headers.push(("mcp-name", name.to_owned()));
            }
        }
        let id = (!method.starts_with("notifications/")).then_some(1);
        let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        if let Some(id) = id {
            message["id"] = json!(id);
        }
        self.post(headers, &message).await
    }

    pub(crate) async fn send(self, method: &str, params: Value) -> Answer {
        let (parts, body) = self.open(method, params).await.into_parts();
        let mut text = String::new();
        let mut body = Body::new(body).into_data_stream();
        while let Some(bytes) = tokio::time::timeout(PATIENCE, body.next()).await.expect("in time") {
            text.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
        }
        Answer { status: parts.status, headers: parts.headers, text }
    }

    /// Answers a request of the server.
    pub(crate) async fn respond(self, id: &Value, result: Value) -> StatusCode {
        let headers = vec![("mcp-protocol-version", self.revision.to_owned())];
        self.post(headers, &json!({ "jsonrpc": "2.0", "id": id, "result": result })).await.status()
    }

    /// Begins a session, and gives its id.
    pub(crate) async fn initialize(self) -> String {
        self.initialize_with(json!({})).await
    }

    /// Begins a session of a client that can do so much, and gives its id.
    pub(crate) async fn initialize_with(self, capabilities: Value) -> String {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": self.revision, "capabilities": capabilities, "clientInfo": info });
        let answer = self.send("initialize", params).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        answer.headers["mcp-session-id"].to_str().unwrap().to_owned()
    }
}

impl Answer {
    /// The last message of a JSON or an event stream answer.
    pub(crate) fn message(&self) -> Value {
        let mut data = self.text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        let last = data.rfind(|data| !data.is_empty()).unwrap_or(&self.text);
        serde_json::from_str(last).unwrap_or_else(|_| panic!("{}", self.text))
    }
}

#[tokio::test]
async fn mounted_in_axum() {
    let registry = registry();
    let cancel = CancelToken::new();
    let service = McpServer::new(registry.clone()).into_service().with_cancel(cancel.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let app = Router::new().route_service("/mcp", service);
    let stop = cancel.clone();
    let serving = tokio::spawn(async move {
        axum::serve(listener, app).with_graceful_shutdown(async move { stop.cancelled().await }).await
    });
    // The client of the SDK takes the process's cryptography provider, which a client of ours installs.
    HttpClient::new(HttpConfig::new()).unwrap();
    let transport =
        StreamableHttpClientTransport::from_config(StreamableHttpClientTransportConfig::with_uri(url.as_str()));
    let client = ().serve(transport).await.unwrap();
    assert_eq!(client.list_all_tools().await.unwrap().len(), 8);
    let arguments = json!({ "a": 40, "b": 2 }).as_object().unwrap().clone();
    let result = client.call_tool(CallToolRequestParams::new("math_add").with_arguments(arguments)).await.unwrap();
    assert_eq!(result.content[0].as_text().unwrap().text, "42");
    // A registry that has changed is there at once.
    registry.register(echo("new.one", json!({}), json!({}))).unwrap();
    assert_eq!(client.list_all_tools().await.unwrap().len(), 9);
    // A shutdown waits for no client.
    cancel.cancel();
    tokio::time::timeout(PATIENCE, serving).await.expect("in time").unwrap().unwrap();
}

#[tokio::test]
async fn who_calls_is_asked_every_time() {
    let service = authenticated(server());
    for revision in REVISIONS {
        let answer = Ask::new(&service, revision).send("tools/list", json!({})).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        let challenge = r#"Bearer resource_metadata="https://shop.example/meta""#;
        assert_eq!(answer.headers["www-authenticate"], challenge);
        let unchecked = Ask::new(&service, revision).with("authorization", "Bearer unchecked");
        let answer = unchecked.send("tools/list", json!({})).await;
        assert_eq!(
            (answer.status, &answer.headers["retry-after"]),
            (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().unwrap())
        );
        assert!(!answer.headers.contains_key("www-authenticate"));
    }
    let sell = json!({ "name": "shop_sell", "arguments": { "names": ["Tom"] } });
    let ask = |token| Ask::new(&service, REVISIONS[1]).with("authorization", token);
    let message = ask("Bearer ann").send("tools/call", sell.clone()).await.message();
    assert_eq!(message["result"]["structuredContent"], json!(["Tom"]), "{message}");
    let message = ask("Bearer bob").send("tools/call", sell.clone()).await.message();
    assert_eq!(message["result"]["_meta"]["ops/error"]["code"], "ACCESS_DENIED", "{message}");
    let list = ask("Bearer bob").send("tools/list", json!({})).await.message();
    assert!(!list.to_string().contains("shop_sell") && list["result"]["cacheScope"] == "private");
    let whoami = json!({ "name": "shop_whoami", "arguments": {} });
    assert_eq!(ask("Bearer bob").send("tools/call", whoami).await.message()["result"]["structuredContent"], "bob");
}

#[tokio::test]
async fn a_stranger_may_run_what_is_open() {
    let service = server().into_service();
    let ask = || Ask::new(&service, REVISIONS[1]);
    let message = ask().send("tools/call", json!({ "name": "shop_whoami", "arguments": {} })).await.message();
    assert_eq!(message["result"]["structuredContent"], Value::Null, "{message}");
    let sell = json!({ "name": "shop_sell", "arguments": { "names": [] } });
    let message = ask().send("tools/call", sell).await.message();
    assert_eq!(message["result"]["_meta"]["ops/error"]["code"], "ACCESS_DENIED", "{message}");
    let list = ask().send("tools/list", json!({})).await.message()["result"].clone();
    assert!(!list.to_string().contains("shop_sell"));
    assert_eq!((&list["cacheScope"], &list["ttlMs"]), (&json!("public"), &json!(60_000)));
}

#[tokio::test]
async fn a_session_belongs_to_who_began_it() {
    let service = authenticated(server());
    let ask = |token| Ask::new(&service, REVISIONS[0]).with("authorization", token);
    let session = ask("Bearer ann").initialize().await;
    let list = ask("Bearer ann").with("mcp-session-id", &session).send("tools/list", json!({})).await;
    assert!(list.text.contains("shop_sell"), "{}", list.text);
    let stolen = ask("Bearer bob").with("mcp-session-id", &session).send("tools/list", json!({})).await;
    let unknown = ask("Bearer bob").with("mcp-session-id", "no-such-session").send("tools/list", json!({})).await;
    assert_eq!((stolen.status, &stolen.text), (StatusCode::NOT_FOUND, &unknown.text));
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    // It is still there.
    let list = ask("Bearer ann").with("mcp-session-id", &session).send("tools/list", json!({})).await;
    assert_eq!(list.status, StatusCode::OK);
}

#[tokio::test]
async fn pages_of_other_hosts_are_refused() {
    let service = server().into_service();
    let status = async |service: &McpService, host: &str, origin: Option<&str>| {
        let mut ask = Ask::new(service, REVISIONS[1]).with("host", host);
        if let Some(origin) = origin {
            ask = ask.with("origin", origin);
        }
        ask.send("tools/list", json!({})).await.status
    };
    for (host, origin, expected) in [
        ("localhost:8000", None, StatusCode::OK),
        ("[::1]:8000", Some("http://[::1]:3000"), StatusCode::OK),
        ("127.0.0.1", Some("http://localhost:3000"), StatusCode::OK),
        ("evil.example", None, StatusCode::FORBIDDEN),
        ("localhost:8000", Some("http://evil.example"), StatusCode::FORBIDDEN),
        ("localhost:8000", Some("null"), StatusCode::FORBIDDEN),
    ] {
        assert_eq!(status(&service, host, origin).await, expected, "{host}, {origin:?}");
    }
    let (hosts, origins) = (["api.example"], ["https://app.example:443"]);
    let service = || server().into_service();
    for (order, service) in [
        service().with_hosts(hosts).with_origins(origins),
        service().with_origins(origins).with_hosts(hosts),
        service().with_origins(origins).with_any_host().with_hosts(hosts),
    ]
    .into_iter()
    .enumerate()
    {
        for (host, origin, expected) in [
            ("api.example", Some("https://app.example"), StatusCode::OK),
            ("api.example", Some("https://api.example"), StatusCode::OK),
            ("localhost", None, StatusCode::FORBIDDEN),
            ("api.example", Some("http://localhost"), StatusCode::FORBIDDEN),
            ("api.example", Some("https://evil.example"), StatusCode::FORBIDDEN),
        ] {
            assert_eq!(status(&service, host, origin).await, expected, "{order}: {host}, {origin:?}");
        }
    }
    // Clients leave out a default port.
    let named = service().with_hosts(["api.example:443", "b.example:81"]);
    for (host, origin, expected) in [
        ("api.example", None, StatusCode::OK),
        ("api.example:443", Some("https://api.example"), StatusCode::OK),
        ("api.example", Some("https://api.example:444"), StatusCode::FORBIDDEN),
        ("b.example:81", None, StatusCode::OK),
        ("b.example", None, StatusCode::FORBIDDEN),
    ] {
        assert_eq!(status(&named, host, origin).await, expected, "{host}, {origin:?}");
    }
    let service = service().with_origins(origins).with_any_host();
    for (origin, expected) in [
        ("https://app.example", StatusCode::OK),
        ("https://evil.example", StatusCode::FORBIDDEN),
        ("https://any.example", StatusCode::FORBIDDEN),
    ] {
        assert_eq!(status(&service, "any.example", Some(origin)).await, expected, "{origin}");
    }
    // Before anything else of the request is looked at.
    let service = authenticated(server());
    for (host, expected) in [("localhost", StatusCode::UNAUTHORIZED), ("evil.example", StatusCode::FORBIDDEN)] {
        assert_eq!(status(&service, host, None).await, expected, "{host}");
    }
}

/// A foreign name that was made to stand for the server's address has pages whose origin is the host, too.
#[tokio::test]
async fn a_server_of_any_host_has_no_pages_and_says_so() {
    let (log, _guard) = Log::start();
    let service = server().into_service().with_any_host();
    let ask = || Ask::new(&service, REVISIONS[1]).with("host", "any.example").with("origin", "https://any.example");
    for ask in [ask(), ask().with("sec-fetch-site", "same-origin")] {
        let refused = ask.send("tools/list", json!({})).await;
        let told = "the server is not reached by that name, or from that page";
        assert_eq!((refused.status, refused.text.as_str()), (StatusCode::FORBIDDEN, told));
    }
    let warning = " message=a request of a page is refused: allow its origin (`with_origins`) or its host \
                   (`with_hosts`)";
    assert_eq!(log.with("is refused"), [warning, warning]);
}

#[tokio::test]
async fn a_request_that_does_not_name_the_server_is_told_to() {
    let service = server().into_service();
    for (hosts, told) in [
        (0, "the request does not name the server: send the header `Host` with the server's name"),
        (2, "the header `Host` came twice, or is not ASCII: send it once, with the server's name"),
    ] {
        let request = (0..hosts).fold(Request::post("/mcp"), |request, _| request.header("host", "localhost"));
        let answer = service.clone().call(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
        let text = axum::body::to_bytes(Body::new(answer.into_body()), 1000).await.unwrap();
        assert_eq!(text, told);
    }
}

#[tokio::test]
async fn a_request_without_credentials_is_refused() {
    let whoever = |request: &Parts| {
        let user = request.headers.get("x-user").and_then(|user| user.to_str().ok()).map(Identity::new);
        async move { Ok(user) }
    };
    let service = server().into_service().with_authenticator(whoever);
    let call = json!({ "name": "shop_whoami", "arguments": {} });
    let refused = Ask::new(&service, REVISIONS[1]).send("tools/call", call.clone()).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert_eq!(refused.headers["www-authenticate"], "Bearer");
    let known = Ask::new(&service, REVISIONS[1]).with("x-user", "ann").send("tools/call", call).await.message();
    assert_eq!(known["result"]["structuredContent"], "ann", "{known}");
    // It is asked for what the authenticator takes.
    let keys = ApiKeys::header("X-Key").with_key("k3y", Identity::new("ann"));
    let service = server().into_service().with_authenticator(keys);
    let refused = Ask::new(&service, REVISIONS[1]).send("tools/call", json!({ "name": "shop_whoami" })).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert_eq!(refused.headers["www-authenticate"], "ApiKey in=\"header\", name=\"X-Key\"");
}

#[tokio::test]
async fn pages_that_are_let_in_may_read() {
    let service =
        server().into_service().with_origins(["https://app.example:443"]).with_authenticator(|request: &Parts| {
            let known = request.headers.contains_key("authorization");
            async move { if known { Ok(Identity::new("ann")) } else { Err(Unauthorized::bearer()) } }
        });
    let ask = async |method: &str, origin: &str, more: &[(&str, &str)]| {
        let mut request = axum::http::Request::builder().method(method).uri("/mcp").header("host", "localhost");
        request = request.header("origin", origin);
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        let answer = service.clone().call(request.body(axum::body::Body::empty()).unwrap()).await.unwrap();
        let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        (answer.status().as_u16(), header("access-control-allow-origin"), header("access-control-allow-headers"))
    };
    let wanted = [
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization, content-type, mcp-protocol-version"),
    ];
    let app = Some("https://app.example".to_owned());
    // Browsers send no credentials when they ask.
    assert_eq!(ask("OPTIONS", "https://app.example", &wanted).await, (204, app.clone(), Some(wanted[1].1.to_owned())));
    // What is refused may be read as well: it says how to authenticate.
    assert_eq!(ask("POST", "https://app.example", &[]).await, (401, app, None));
    for origin in ["https://evil.example", "http://app.example", "null", "http://localhost:3000"] {
        let (status, allowed, _) = ask("OPTIONS", origin, &wanted).await;
        assert!(status != 204 && allowed.is_none(), "{origin}: {status}");
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_its_call() {
    let (server, begun, dropped) = endless(false);
    let service = server.into_service();
    let call = json!({ "name": "demo_run", "arguments": {} });
    let mut asking = Box::pin(Ask::new(&service, REVISIONS[1]).send("tools/call", call));
    tokio::select! {
        answer = &mut asking => panic!("{}", answer.text),
        () = soon(&begun) => {}
    }
    drop(asking);
    soon(&dropped).await;
}

#[tokio::test]
async fn requests_are_bounded() {
    let service = server().with_options(McpServerOptions::default().with_max_body(1000)).into_service();
    let big = json!({ "name": "odd_anything", "arguments": { "x": "x".repeat(2000) } });
    let roomy = server().with_options(McpServerOptions::default().with_max_body(10_000)).into_service();
    for (service, status) in [(roomy, StatusCode::OK), (service, StatusCode::PAYLOAD_TOO_LARGE)] {
        assert_eq!(Ask::new(&service, REVISIONS[1]).send("tools/call", big.clone()).await.status, status);
    }
    // By what is made of it, too, which a text with as many commas is not.
    let options = McpServerOptions::default().with_max_bodies(64 << 10);
    let service = server().with_options(options).into_service();
    let ask = async |x: Value| {
        let call = json!({ "name": "odd_anything", "arguments": { "x": x } });
        Ask::new(&service, REVISIONS[1]).send("tools/call", call).await.status
    };
    assert_eq!(ask(json!(vec![0; 1000])).await, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(ask(json!(",:[{\"".repeat(1000))).await, StatusCode::OK);
}

/// Each HTTP server has its own type of body, and a piece of a body may consist of several parts.
#[tokio::test]
async fn a_body_of_any_type_is_read() {
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": REVISIONS[0], "capabilities": {}, "clientInfo": info });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string();
    let length = message.len();
    for (most, status) in [(length, StatusCode::OK), (length - 1, StatusCode::PAYLOAD_TOO_LARGE)] {
        let (begin, end) = message.split_at(10);
        let [begin, end] = [begin, end].map(|part| Bytes::copy_from_slice(part.as_bytes()));
        let request = Request::post("/mcp")
            .header("host", "localhost:8000")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Full::new(begin.chain(end)))
            .unwrap();
        let options = McpServerOptions::default().with_max_body(most);
        let response = server().with_options(options).into_service().call(request).await.unwrap();
        assert_eq!(response.status(), status, "{most}");
    }
}

#[tokio::test]
async fn the_token_of_each_request_reaches_the_service_behind() {
    let app = Router::new().route(
        "/x",
        axum::routing::get(|headers: axum::http::HeaderMap| async move {
            axum::Json(json!({ "auth": headers["authorization"].to_str().unwrap() }))
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
    // Each token of a user is another; one has none.
    let service = McpServer::new(registry).into_service().with_authenticator(|request: &Parts| {
        let token =
            request.headers[header::AUTHORIZATION].to_str().unwrap().strip_prefix("Bearer ").unwrap().to_owned();
        async move {
            let ann = Identity::new("ann");
            Ok(if token == "none" { ann } else { ann.with_token(token) })
        }
    });
    let call = json!({ "name": "up_x", "arguments": {} });
    for revision in REVISIONS {
        let ask = |token: &str| Ask::new(&service, revision).with("authorization", &format!("Bearer {token}"));
        let session = if revision < "2026-07-28" { Some(ask("first").initialize().await) } else { None };
        let said = async |token: &str| {
            let mut ask = ask(token);
            if let Some(session) = &session {
                ask = ask.with("mcp-session-id", session);
            }
            ask.send("tools/call", call.clone()).await.message()["result"].clone()
        };
        for token in ["first", "second", "first"] {
            assert_eq!(
                said(token).await["content"][0]["text"],
                format!("{{\"auth\":\"Bearer {token}\"}}"),
                "{revision}"
            );
        }
        let refused = said("none").await.to_string();
        assert!(refused.contains("ACCESS_DENIED") && !refused.contains("first"), "{refused}");
    }
}
