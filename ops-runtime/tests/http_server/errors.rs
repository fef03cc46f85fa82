//! Errors of functions at our client: they have their codes there, as a whole response and in the place of an item.

use std::error::Error;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use futures_util::{Stream, StreamExt, stream};
use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::binding::{Binding, HttpBinding, HttpResponse, McpBinding, McpOutput, StatusRange};
use ops_runtime::call::{CallHandler, InProcess};
use ops_runtime::content::ContentBlock;
use ops_runtime::envelope::McpMeta;
use ops_runtime::http::error_of;
use ops_runtime::serve::HttpServer;
use ops_runtime::spec::{ErrorDefinition, OperationKind, OperationSpec, Schema};
use ops_runtime::{
    CallError, Context, ErrorCode, ErrorResponse, HttpClient, HttpConfig, Operation, Registry, ResponseEnvelope,
    operation,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::fixture::{Server, serve};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
struct Reading {
    value: Option<u32>,
    unit: Option<String>,
}

fn reading(value: u32) -> Reading {
    Reading { value: Some(value), unit: None }
}

fn loose() -> CallError {
    CallError::new("Unplugged", "the cable is loose").with_details(json!({ "port": 3 }))
}

#[operation(namespace = "ward", http = "GET /patients/{id}", errors(UnknownPatient = 404))]
async fn patient(id: u64) -> Result<u64, CallError> {
    match id {
        0 => Err(CallError::new("UnknownPatient", "there is no patient 0").with_details(json!({ "by": "ann" }))),
        1 => Err(CallError::new("Odd", "not declared")),
        id => Ok(id),
    }
}

#[operation(namespace = "ward", http = "GET /readings", errors(Unplugged = 503))]
async fn readings() -> impl Stream<Item = Result<Reading, CallError>> {
    stream::iter([Ok(reading(1)), Err(loose()), Ok(reading(2)), Err(CallError::new("Odd", "not declared"))])
}

#[operation(namespace = "ward", http = "GET /counts")]
async fn counts() -> impl Stream<Item = Result<u32, CallError>> {
    stream::iter([Ok(1), Err(CallError::new("TIMEOUT", "too late")), Ok(2)])
}

/// A function whose own details look like a response.
#[operation(namespace = "ward", http = "POST /deliveries", errors(DeliveryRejected = 409))]
async fn deliver(status: u16) -> Result<u64, CallError> {
    let details = json!({ "statusCode": status, "body": { "ok": false } });
    Err(CallError::new("DeliveryRejected", "the carrier refused it").with_details(details))
}

/// A function that answers by any status.
#[operation(namespace = "ward", http = "POST /answers")]
async fn relay(status: u16) -> Result<u64, CallError> {
    Err(ErrorResponse::new(status, json!({ "by": "ann" })).into())
}

/// A function that answers without a body.
#[operation(namespace = "ward", http = "GET /beds")]
async fn beds() -> Result<u64, CallError> {
    Err(ErrorResponse::new(404, Value::Null).into())
}

/// A function whose callers have to log in again.
#[operation(namespace = "ward", http = "GET /rounds", errors(Expired = 401))]
async fn rounds(context: &Context, challenge: Option<String>) -> Result<u64, CallError> {
    if let Some(challenge) = challenge {
        context.set_response_header("www-authenticate", challenge);
    }
    Err(CallError::new("Expired", "the session is over"))
}

/// A function that calls another operation, whose errors it returns in a box.
#[operation(namespace = "ward", http = "GET /visits/{id}", errors(NoVisit = 404))]
async fn visit(context: &Context, id: String) -> Result<u64, Box<dyn Error + Send + Sync>> {
    let far = context.env().call("far.show", json!(id)).await?.data;
    Ok(far.as_u64().ok_or("no number")?)
}

/// Errors of another API.
async fn far(id: Value, _: Context) -> Result<Value, CallError> {
    Err(match id.as_str() {
        Some("late") => CallError::new("TIMEOUT", "too late"),
        Some("own") => ErrorResponse::new(409, json!({ "by": "ann" })).into(),
        Some("no") => CallError::new("NoVisit", "there is none"),
        id => error_of(if id == Some("gone") { 404 } else { 503 }, json!({ "title": "secret" }))
            .with_header("X", "secret"),
    })
}

#[tokio::test]
async fn an_error_in_a_box_is_what_it_was_and_shows_no_more() {
    let registry = registry();
    registry.register(Visit).unwrap();
    let spec = OperationSpec::new(OperationKind::Query, "far", "show").unwrap();
    registry.register(Registration::new(spec, Handler::dynamic(far))).unwrap();
    let error = registry.execute::<Visit>(VisitInput { id: "gone".to_owned() }).await.unwrap_err();
    assert_eq!((error.status(), error.header("X"), error.operation()), (Some(404), Some("secret"), Some("far.show")));
    let server = serve(HttpServer::new(registry)).await;
    for (id, status) in [("late", 504), ("own", 409), ("no", 404), ("gone", 502), ("busy", 502)] {
        let answer = server.get(&format!("/visits/{id}")).await;
        assert_eq!(answer.status, status, "{id}: {answer:?}");
        assert!(!format!("{answer:?}").contains("secret"), "{answer:?}");
    }
}

/// An operation of another process is there, even while no worker serves it.
#[tokio::test]
async fn an_operation_that_no_worker_serves_now_is_unavailable() {
    let transport = InProcess::new();
    let front = Registry::new();
    front.register_all(transport.remote().bind([Patient::SPEC]).unwrap()).unwrap();
    let server = serve(HttpServer::new(front)).await;
    for _ in 0..2 {
        let down = server.get("/patients/7").await;
        assert_eq!((down.status, down.header("retry-after")), (503, Some("1")), "{down:?}");
        let problem = down.problem();
        assert_eq!(problem["code"], "OPERATION_NOT_FOUND");
        assert_eq!(problem["details"], json!({ "retryable": true }));
        let worker = transport.serve(CallHandler::new(registry()));
        let up = server.get("/patients/7").await;
        assert_eq!((up.status, up.json()), (200, json!(7)));
        worker.stop().await;
    }
}

/// Does something, and then calls another operation.
#[operation(namespace = "ward")]
async fn admit(context: &Context) -> Result<u64, CallError> {
    Ok(context.env().execute::<Patient>(PatientInput { id: 7 }).await?.data)
}

/// What the function itself has done may not be done again.
#[tokio::test]
async fn a_call_of_a_function_to_an_operation_that_no_worker_serves_now_is_a_failure() {
    let own = Registry::new();
    own.register_all(InProcess::new().remote().bind([Patient::SPEC]).unwrap()).unwrap();
    own.register(Admit).unwrap();
    // In another process, too.
    let transport = InProcess::new();
    let _worker = transport.serve(CallHandler::new(own.clone()));
    let front = Registry::new();
    front.register_all(transport.remote().bind([Admit::SPEC]).unwrap()).unwrap();
    for registry in [own, front] {
        let server = serve(HttpServer::new(registry)).await;
        let failed = server.post("/operations/ward/admit", "{}").await;
        assert_eq!((failed.status, failed.header("retry-after")), (500, None), "{failed:?}");
        let problem = failed.problem();
        assert_eq!((&problem["code"], &problem["details"]), (&json!("EXECUTION_ERROR"), &Value::Null));
    }
}

#[tokio::test]
async fn a_route_has_the_status_that_the_operation_declares_which_it_calls() {
    async fn route(
        State((own, far)): State<(Registry, HttpClient)>,
        Path((how, id)): Path<(String, u64)>,
    ) -> Result<String, CallError> {
        let input = PatientInput { id };
        let data = match how.as_str() {
            "own" => own.execute::<Patient>(input).await?.data,
            "far" => far.execute::<Patient>(input).await?.data,
            _ => own.execute::<Visit>(VisitInput { id: "no".to_owned() }).await?.data,
        };
        Ok(data.to_string())
    }
    let registry = registry();
    registry.register(Visit).unwrap();
    let mut spec = OperationSpec::new(OperationKind::Query, "far", "show").unwrap();
    spec.errors = vec![ErrorDefinition::new("NoVisit").with_http_status(410)].into();
    registry.register(Registration::new(spec, Handler::dynamic(far))).unwrap();
    let behind = serve(HttpServer::new(registry.clone())).await;
    let routes = Router::new().route("/{how}/{id}", get(route)).with_state((registry, client(&behind)));
    let server = serve(HttpServer::new(Registry::new()).with_routes(routes)).await;
    assert_eq!(server.get("/own/7").await.body, "7");
    for (path, status, code) in [
        ("/own/0", 404, "UnknownPatient"),
        ("/far/0", 404, "UnknownPatient"),
        ("/own/1", 400, "Odd"),
        // As the function declares it, and not the operation that it has called.
        ("/nested/0", 404, "NoVisit"),
    ] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, &answer.problem()["code"]), (status, &json!(code)), "{path}: {answer:?}");
    }
}

/// A tool of another server, which fails.
struct Failing;

impl Endpoint for Failing {
    fn call(
        &self,
        _: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let meta = McpMeta::new(true, vec![ContentBlock::text("no such shelf")]);
        Box::pin(async move { Ok(ResponseEnvelope::mcp(Payload::Value(json!(["no such shelf"])), meta)) })
    }
}

#[tokio::test]
async fn a_tool_that_fails_is_no_success() {
    let mut spec = OperationSpec::new(OperationKind::Mutation, "tools", "move").unwrap();
    spec.binding = Binding::Mcp(McpBinding::new("move", McpOutput::Content));
    let registry = Registry::new();
    registry.register(Registration::new(spec, Handler::endpoint(Failing))).unwrap();
    // In the process, the envelope of a call by id says so.
    let envelope = registry.call("tools.move", json!({})).await.unwrap();
    assert!(envelope.meta.as_mcp().unwrap().is_error);
    let server = serve(HttpServer::new(registry)).await;
    for accept in ["accept: application/json", "accept: application/vnd.ops.envelope+json"] {
        let headers = ["content-type: application/json", accept];
        let answer = server.send("POST /operations/tools/move", &headers, "{}").await;
        let problem = answer.problem();
        assert_eq!((answer.status, &problem["code"]), (502, &json!("TOOL_ERROR")), "{accept}");
        assert_eq!(problem["detail"], "no such shelf", "{accept}");
    }
}

fn registry() -> Registry {
    let registry = Registry::new();
    registry.register_all([Registration::from(Patient), Readings.into(), Counts.into()]).unwrap();
    registry
}

fn client(server: &Server) -> HttpClient {
    HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap()
}

#[tokio::test]
async fn what_a_function_says_of_its_error_is_no_response() {
    let registry = Registry::new();
    registry.register(Deliver).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    for status in [200, 404, 503] {
        let body = json!({ "status": status }).to_string();
        for path in ["/deliveries", "/operations/ward/deliver"] {
            let answer = server.post(path, &body).await;
            let problem = answer.problem();
            assert_eq!((answer.status, &problem["code"]), (409, &json!("DeliveryRejected")), "{path} {status}");
            assert_eq!(problem["details"], json!({ "statusCode": status, "body": { "ok": false } }));
        }
    }
}

#[tokio::test]
async fn what_another_server_says_of_its_error_is_no_response() {
    let details = json!({ "statusCode": 200, "headers": {}, "body": { "ok": false } });
    let problem = json!({ "status": 409, "code": "DeliveryRejected", "detail": "no", "details": details }).to_string();
    let refused =
        move || async move { (StatusCode::CONFLICT, [("content-type", "application/problem+json")], problem) };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let upstream = Router::new().route("/deliveries", post(refused));
    tokio::spawn(async move { axum::serve(listener, upstream).await });
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let gateway = Registry::new();
    gateway.register_all(client.bind([Deliver::SPEC]).unwrap()).unwrap();
    let answer = serve(HttpServer::new(gateway)).await.post("/deliveries", r#"{"status":7}"#).await;
    let problem = answer.problem();
    assert_eq!((answer.status, &problem["code"]), (409, &json!("DeliveryRejected")), "{answer:?}");
    assert_eq!((&problem["detail"], &problem["details"]), (&json!("no"), &details));
}

#[tokio::test]
async fn only_a_status_that_can_end_a_response_is_sent() {
    let registry = Registry::new();
    registry.register(Relay).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    for (status, sent) in [(409, 409), (599, 599), (101, 500), (150, 500), (600, 500), (999, 500), (7, 500)] {
        for path in ["/answers", "/operations/ward/relay"] {
            let answer = server.post(path, &json!({ "status": status }).to_string()).await;
            assert_eq!(answer.status, sent, "{path} {status}: {answer:?}");
            match sent == status {
                true => assert_eq!(
                    (answer.header("content-type"), answer.json()),
                    (Some("application/json"), json!({ "by": "ann" })),
                    "{path}"
                ),
                false => assert_eq!(answer.problem()["code"], "EXECUTION_ERROR", "{path}"),
            }
        }
    }
}

#[tokio::test]
async fn an_error_response_without_a_body_is_empty() {
    let registry = Registry::new();
    registry.register(Beds).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    for path in ["/beds", "/operations/ward/beds"] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.header("content-type"), answer.body.as_str()), (404, None, ""), "{path}");
    }
}

#[tokio::test]
async fn every_401_has_a_challenge() {
    let registry = Registry::new();
    registry.register_all([Registration::from(Relay), Rounds.into()]).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    for (path, challenge) in [
        ("/rounds", "Bearer"),
        ("/operations/ward/rounds", "Bearer"),
        // The function knows its own better.
        ("/rounds?challenge=Login", "Login"),
        ("/operations/ward/rounds?input=%7B%22challenge%22%3A%22Login%22%7D", "Login"),
    ] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some(challenge)), "{path}: {answer:?}");
        assert_eq!(answer.problem()["code"], "Expired", "{path}");
    }
    for path in ["/answers", "/operations/ward/relay"] {
        let answer = server.post(path, r#"{"status":401}"#).await;
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")), "{path}: {answer:?}");
        assert_eq!(answer.json(), json!({ "by": "ann" }), "{path}");
    }
}

#[tokio::test]
async fn a_declared_error_has_its_code_over_http() {
    let server = serve(HttpServer::new(registry())).await;
    let client = client(&server);
    client.add([Patient::SPEC]).unwrap();
    let by_id = client.call("ward.patient", json!({ "id": 0 })).await.unwrap_err();
    for error in [client.execute::<Patient>(PatientInput { id: 0 }).await.unwrap_err(), by_id] {
        assert_eq!((error.code().as_str(), error.message()), ("UnknownPatient", "there is no patient 0"));
        assert_eq!((error.status(), error.is_retryable()), (Some(404), false));
        let details = error.details();
        assert_eq!((&details["statusCode"], &details["body"]["details"]), (&json!(404), &json!({ "by": "ann" })));
        assert!(details["headers"].is_object() && details["contentType"] == "application/problem+json", "{details}");
        assert_eq!(error.to_string(), "ward.patient: UnknownPatient: there is no patient 0");
    }
    let error = client.execute::<Patient>(PatientInput { id: 1 }).await.unwrap_err();
    assert_eq!((error.code(), error.message()), (&ErrorCode::ExecutionError, "HTTP 400: Bad Request"));

    // Who passes it on says no more than its server meant for callers.
    let gateway = Registry::new();
    gateway.register_all(client.bind([Patient::SPEC]).unwrap()).unwrap();
    let answer = serve(HttpServer::new(gateway)).await.get("/patients/0").await;
    let problem = answer.problem();
    assert_eq!((answer.status, &problem["code"]), (404, &json!("UnknownPatient")));
    assert_eq!((&problem["detail"], &problem["details"]), (&json!("there is no patient 0"), &json!({ "by": "ann" })));
}

#[tokio::test]
async fn a_failed_event_is_an_error_item() {
    let server = serve(HttpServer::new(registry())).await;
    let client = client(&server);
    let items = client.subscribe::<Readings>(ReadingsInput {}).await.unwrap();
    let items: Vec<_> = items.map(|item| item.map(|item| item.data)).collect().await;
    assert_eq!(items.len(), 4, "{items:?}");
    assert_eq!((items[0].as_ref().unwrap(), items[2].as_ref().unwrap()), (&reading(1), &reading(2)));
    let error = items[1].as_ref().unwrap_err();
    assert_eq!((error.code().as_str(), error.message()), ("Unplugged", "the cable is loose"));
    assert_eq!((error.status(), &error.details()["body"]["details"]), (Some(503), &json!({ "port": 3 })));
    let error = items[3].as_ref().unwrap_err();
    assert_eq!((error.code(), error.message()), (&ErrorCode::ExecutionError, "not declared"));

    let items = client.subscribe::<Counts>(CountsInput {}).await.unwrap();
    let items: Vec<_> = items.map(|item| item.map(|item| item.data)).collect().await;
    let codes: Vec<_> = items.iter().map(|item| item.as_ref().map_err(|error| error.code().clone())).collect();
    assert_eq!(codes, [Ok(&1), Err(ErrorCode::Timeout), Ok(&2)]);
}

/// The items of a subscription that gives one item and one error, at our client.
async fn items_of(content_type: &str, is_whole: bool, output: Value, item: Value) -> Vec<Result<Value, CallError>> {
    let mut response = HttpResponse::owned(StatusRange::Exact(200), content_type.to_owned());
    response.whole_event = is_whole;
    let mut binding = HttpBinding::owned("GET", "/watch");
    binding.responses = vec![response].into();
    let mut spec = OperationSpec::new(OperationKind::Subscription, "t", "watch").unwrap();
    (spec.binding, spec.output) = (Binding::Http(binding), Schema::from(output));
    let registry = Registry::new();
    let handler = Handler::dynamic_stream(move |_: Value, _| {
        let item = item.clone();
        async move { Ok(stream::iter([Ok(item), Err(loose())])) }
    });
    registry.register(Registration::new(spec.clone(), handler)).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let caller = Registry::new();
    caller.register_all(client(&server).bind([spec]).unwrap()).unwrap();
    let items = caller.stream("t.watch", json!({})).await.unwrap();
    items.map(|item| item.map(|item| item.data)).collect().await
}

#[tokio::test]
async fn a_failed_item_of_any_stream_is_an_error() {
    let event = json!({ "event": "added", "data": "one" });
    for (content_type, is_whole, item) in [
        ("application/x-ndjson", false, json!({ "error": { "status": 503 } })),
        ("application/json-seq", false, json!(7)),
        ("text/event-stream", true, event.clone()),
    ] {
        let items = items_of(content_type, is_whole, json!(true), item.clone()).await;
        assert_eq!((items.len(), items[0].as_ref().unwrap()["error"] == item["error"]), (2, true), "{items:?}");
        let error = items[1].as_ref().unwrap_err();
        assert_eq!((error.code(), error.message()), (&ErrorCode::ExecutionError, "the cable is loose"));
    }
    // Where the document itself describes events of that type, they are items.
    let kind = json!({ "enum": ["added", "error"] });
    let output = json!({ "type": "object", "properties": { "event": kind, "data": { "type": "string" } } });
    let items = items_of("text/event-stream", true, output, event).await;
    assert_eq!(items[1].as_ref().unwrap()["event"], "error", "{items:?}");
}
