//! Calls by id, and what becomes of failures.

use std::time::Duration;

use ops_runtime::adapter::{Handler, Registration, Reply};
use ops_runtime::serve::{HttpServer, HttpServerOptions};
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{Call, CallError, Context, Operation, Registry, operation};
use serde_json::{Value, json};

use crate::fixture::{registry, serve};

#[tokio::test]
async fn operations_are_reached_by_their_ids() {
    let server = serve(HttpServer::new(registry())).await;
    let answer = server.post("/operations/math/add", r#"{"a":40,"b":2}"#).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "42"));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let table = [
        ("GET /operations/math/add?input=%7B%22a%22:40%7D", "", 200, "41"),
        ("GET /operations/math/add?x=1&input={\"a\":1,\"b\":%202}".trim_end(), "", 400, ""),
        ("HEAD /operations/math/add?input=%7B%22a%22%3A40%7D", "", 200, ""),
        ("POST /operations/m%61th/add", r#"{"a":1}"#, 200, "2"),
        ("GET /healthz", "", 200, r#"{"status":"ok"}"#),
        ("HEAD /healthz", "", 200, ""),
    ];
    for (line, body, status, expected) in table {
        let answer = server.send(line, &["content-type: application/json; charset=utf-8"], body).await;
        assert_eq!(answer.status, status, "{line}: {answer:?}");
        if status == 200 {
            assert_eq!(answer.body, expected, "{line}");
        }
    }
}

#[tokio::test]
async fn the_envelope_is_sent_if_it_is_asked_for() {
    let server = serve(HttpServer::new(registry())).await;
    let accept = "accept: application/json;q=0.9, application/vnd.ops.envelope+json";
    let answer = server.send("GET /operations/math/add?input=%7B%22a%22%3A40%7D", &[accept], "").await;
    assert_eq!(answer.header("content-type"), Some("application/vnd.ops.envelope+json"));
    let envelope = answer.json();
    assert_eq!((&envelope["data"], &envelope["meta"]["source"]), (&json!(41), &json!("local")));
    let refused = "accept: application/vnd.ops.envelope+json;q=0, */*";
    assert_eq!(server.send("GET /operations/math/add?input=%7B%22a%22%3A40%7D", &[refused], "").await.body, "41");
    let rather = "accept: application/json, application/vnd.ops.envelope+json;q=0.1";
    assert_eq!(server.send("GET /operations/math/add?input=%7B%22a%22%3A40%7D", &[rather], "").await.body, "41");
    // Of nothing else that the operation gives.
    let other = "accept: image/png, application/vnd.ops.envelope+json;q=0.1";
    let envelope = server.send("GET /operations/math/add?input=%7B%22a%22%3A40%7D", &[other], "").await;
    assert_eq!(envelope.json()["data"], 41);
}

#[tokio::test]
async fn a_function_reads_the_idempotency_key_of_the_request() {
    static OWN: OperationSpec = OperationSpec::mutation("keys.own");
    static OUTER: OperationSpec = OperationSpec::mutation("keys.outer");
    let registry = Registry::new();
    let own = Handler::dynamic(|_: Value, context: Context| async move { Ok(json!(context.idempotency_key())) });
    // A call that the function makes is another.
    let outer = Handler::dynamic(|_: Value, context: Context| async move {
        let nested = context.env().call("keys.own", json!({})).await?.data;
        Ok(json!([context.idempotency_key(), nested]))
    });
    registry.register(Registration::new(&OWN, own)).unwrap();
    registry.register(Registration::new(&OUTER, outer)).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let send = async |keys: &[&str]| {
        let headers: Vec<&str> = ["content-type: application/json"].into_iter().chain(keys.iter().copied()).collect();
        server.send("POST /operations/keys/outer", &headers, "{}").await
    };
    let longest = format!("idempotency-key: {}", "k".repeat(255));
    let table: [(&[&str], Value); 5] = [
        (&[], json!(null)),
        (&["Idempotency-Key: order 12"], json!("order 12")),
        (&["idempotency-key: k1", "idempotency-key: k1"], json!("k1")),
        (&["idempotency-key:  "], json!(null)),
        (&[longest.as_str()], json!("k".repeat(255))),
    ];
    for (keys, expected) in table {
        assert_eq!(send(keys).await.json(), json!([expected, null]), "{keys:?}");
    }
    // One that the function would not see does not make the request safe to repeat.
    let longer = format!("{longest}k");
    let refused: [&[&str]; 3] =
        [&[longer.as_str()], &["idempotency-key: k1", "idempotency-key: k2"], &["idempotency-key: schl\u{fc}ssel"]];
    for keys in refused {
        let answer = send(keys).await;
        let problem = answer.problem();
        assert_eq!(answer.status, 400, "{keys:?}");
        assert!(problem["detail"].as_str().unwrap().contains("`Idempotency-Key`"), "{problem}");
    }
}

#[tokio::test]
async fn requests_that_are_none() {
    let server = serve(HttpServer::new(registry())).await;
    let json = "content-type: application/json";
    let table: [(&str, &[&str], &str, u16, Value); 16] = [
        ("GET /", &[], "", 404, json!(null)),
        ("GET /operations/math", &[], "", 404, json!(null)),
        ("POST /operations/math/", &[json], "{}", 404, json!(null)),
        ("POST /operations/math/add/more", &[json], "{}", 404, json!(null)),
        ("POST /operations/math/sub", &[json], "{}", 404, json!("OPERATION_NOT_FOUND")),
        ("POST /operations/math/%FF", &[json], "{}", 404, json!(null)),
        ("POST /operations//add", &[json], "{}", 404, json!(null)),
        ("POST /operations/math/../math/add", &[json], "{}", 404, json!(null)),
        ("GET /operations/math/fail", &[], "", 405, json!(null)),
        ("PUT /operations/math/add", &[json], "{}", 405, json!(null)),
        ("POST /operations/math/add", &["content-type: text/plain"], "{}", 415, json!(null)),
        ("POST /operations/math/add", &[], "{}", 415, json!(null)),
        ("POST /operations/math/add", &[json], "{", 400, json!(null)),
        ("POST /operations/math/add", &[json], "{} {}", 400, json!(null)),
        ("GET /operations/math/add?input=1&input=2", &[], "", 400, json!(null)),
        ("GET /operations/math/add?input=%FF", &[], "", 400, json!(null)),
    ];
    for (line, headers, body, status, code) in table {
        let answer = server.send(line, headers, body).await;
        assert_eq!(answer.status, status, "{line} {body}: {answer:?}");
        assert_eq!(answer.problem()["code"], code, "{line}");
    }
    let unknown = server.post("/operations/math/ad", "{}").await.problem()["detail"].clone();
    assert_eq!(unknown, "there is no such operation: did you mean `math.add`?");
    // Without the document, callers are not told which operations there are.
    let silent = serve(HttpServer::new(registry()).without_document()).await;
    assert_eq!(silent.post("/operations/math/ad", "{}").await.problem()["detail"], "there is no such operation");
    let twice = server.get("/operations/math/add?input=1&input=2").await.problem()["detail"].clone();
    assert_eq!(twice, "the parameter `input` cannot be read: it is given more than once");
    assert_eq!(server.send("GET /operations/math/fail", &[], "").await.header("allow"), Some("POST"));
    assert_eq!(server.send("PUT /operations/math/add", &[], "").await.header("allow"), Some("GET, HEAD, POST"));
}

#[tokio::test]
async fn all_violations_are_told_at_once() {
    let server = serve(HttpServer::new(registry())).await;
    let problem = server.post("/operations/math/add", r#"{"b":"x","c":1}"#).await.problem();
    assert_eq!((&problem["status"], &problem["code"]), (&json!(422), &json!("VALIDATION_ERROR")));
    let pointers: Vec<&str> =
        problem["violations"].as_array().unwrap().iter().map(|v| v["pointer"].as_str().unwrap()).collect();
    assert!(pointers.contains(&"/a") && pointers.contains(&"/b"), "{problem}");
    // An empty body, and none, are an input that says nothing.
    for answer in [server.post("/operations/math/add", "{}").await, server.get("/operations/math/add").await] {
        assert_eq!(answer.problem()["violations"][0]["pointer"], "/a");
    }
}

#[tokio::test]
async fn failures_have_the_status_of_their_code_and_show_no_secrets() {
    // Only the slow one takes that long.
    let options = HttpServerOptions::new().with_timeout(Duration::from_secs(2));
    let server = serve(HttpServer::new(registry()).with_options(options)).await;
    let table = [
        ("taken", 409, "TAKEN", "it is taken"),
        // A text that begins with a declared code has it.
        ("text", 409, "TAKEN", "TAKEN: it is taken, says the text"),
        ("undeclared", 400, "ODD", "told to the caller"),
        ("validation", 422, "VALIDATION_ERROR", "not so"),
        ("slow", 504, "TIMEOUT", ""),
        ("panic", 500, "UNKNOWN_ERROR", "the operation failed; the server's log says more of request"),
        ("other", 500, "EXECUTION_ERROR", "the operation failed; the server's log says more of request"),
    ];
    for (how, status, code, detail) in table {
        let answer = server.post("/operations/math/fail", &json!({ "how": how }).to_string()).await;
        let problem = answer.problem();
        assert_eq!((answer.status, &problem["code"]), (status, &json!(code)), "{how}: {answer:?}");
        assert!(problem["detail"].as_str().unwrap().starts_with(detail), "{how}: {problem}");
        assert!(!answer.body.contains("secret") && !answer.body.contains("passwd"), "{how}: {problem}");
    }
    let taken = server.post("/operations/math/fail", r#"{"how":"taken"}"#).await.problem();
    assert_eq!((&taken["title"], &taken["details"]), (&json!("Conflict"), &json!({ "by": "ann" })));
    let exposed = HttpServerOptions::new().with_exposed_errors();
    let server = serve(HttpServer::new(registry()).with_options(exposed)).await;
    let problem = server.post("/operations/math/fail", r#"{"how":"other"}"#).await.problem();
    assert_eq!(problem["detail"], "the secret of a failure: /etc/passwd");
}

#[tokio::test]
async fn a_router_stands_beside_others() {
    use axum::Router;
    use axum::routing::get;
    let server = HttpServer::new(registry()).with_namespaces(["math"]);
    let own = Router::new().route("/hello", get(async || "hello"));
    let app = own.nest("/api", server.into_router()).merge(HttpServer::new(registry()).into_router());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let served = crate::fixture::Server { address, stop: Default::default(), running: None };
    assert_eq!(served.get("/hello").await.body, "hello");
    assert_eq!(served.post("/api/operations/math/add", r#"{"a":1}"#).await.body, "2");
    assert_eq!(served.post("/operations/math/add", r#"{"a":1}"#).await.body, "2");
    assert_eq!(served.post("/api/operations/users/me", "{}").await.status, 404);
    assert_eq!(served.post("/operations/users/me", "{}").await.status, 401);
}

#[tokio::test]
async fn a_caller_beyond_its_limits_learns_when_to_try_again() {
    let registry = registry();
    let fail = |input: Value, _: Context| async move {
        Err(CallError::new(input["code"].as_str().unwrap().to_owned(), "wait").with_details(input["details"].clone()))
    };
    registry.register(Registration::new(OperationSpec::mutation("math.limited"), Handler::dynamic(fail))).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let table = [
        ("TOO_MANY_REQUESTS", json!({ "retryAfter": 0.25 }), 429, Some("1")),
        ("TOO_MANY_REQUESTS", json!({ "retryAfter": 60 }), 429, Some("60")),
        ("TOO_MANY_REQUESTS", json!({ "retryAfter": -1 }), 429, Some("0")),
        ("TOO_MANY_REQUESTS", json!({ "retryAfter": "1\r\nX: y" }), 429, None),
        ("TOO_MANY_REQUESTS", Value::Null, 429, None),
        ("ODD", json!({ "retryAfter": 1 }), 400, None),
    ];
    for (code, details, status, after) in table {
        let input = json!({ "code": code, "details": details }).to_string();
        let answer = server.post("/operations/math/limited", &input).await;
        assert_eq!((answer.status, answer.header("retry-after")), (status, after), "{input}");
        assert_eq!((&answer.problem()["code"], &answer.json()["details"]), (&json!(code), &details));
    }
}

/// Sets a level.
#[operation(namespace = "lamp")]
async fn set(#[schemars(extend("enum" = ["low", "high"]))] level: String) -> String {
    level
}

/// An operation whose schemas are written beside its types.
struct Named;

impl Operation for Named {
    type Input = Value;
    type Output = Value;
    const SPEC: &'static OperationSpec =
        &OperationSpec::query("lamp.named").with_input(Schema::text(r#"{"type":"object","required":["name"]}"#));
}

impl Call for Named {}

#[tokio::test]
async fn a_schema_that_says_more_than_the_type_is_asked() {
    let registry = Registry::new();
    registry.register(Set).unwrap();
    let named = |input: Value, _| async move { Ok(Reply::Value(input)) };
    registry.register(Registration::call::<Named, _, _>(named)).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    for (path, input, status) in [
        ("/operations/lamp/set", r#"{"level":"low"}"#, 200),
        ("/operations/lamp/set", r#"{"level":"foo"}"#, 422),
        ("/operations/lamp/named", r#"{"name":"a"}"#, 200),
        ("/operations/lamp/named", "{}", 422),
    ] {
        let answer = server.post(path, input).await;
        assert_eq!(answer.status, status, "{path} {input}: {answer:?}");
    }
}
