//! Answers of another server that are passed on: byte for byte where they conform, and mended where they do not.

use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{Binding, HttpBinding, HttpResponse, StatusRange};
use ops_runtime::serve::HttpServer;
use ops_runtime::spec::{Definition, Definitions, ErrorDefinition, OperationKind, OperationSpec, Schema};
use ops_runtime::{ErrorResponse, HttpClient, HttpConfig, Registry};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::fixture::{Server, serve};

/// A server that answers each request with the same body; its address.
async fn upstream(content_type: &'static str, body: &'static [u8]) -> String {
    answering("200 OK", content_type, body).await
}

/// The same, with a status. There is no header of the content type if that is empty.
async fn answering(status: &'static str, content_type: &'static str, body: &'static [u8]) -> String {
    let header = if content_type.is_empty() { String::new() } else { format!("content-type: {content_type}\r\n") };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let head = format!("HTTP/1.1 {status}\r\n{header}x-internal-host: db01\r\nconnection: close\r\n");
            let head = format!("{head}content-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&[head.as_bytes(), body].concat()).await;
        }
    });
    format!("http://{address}")
}

/// An operation whose success is of this type and has this schema.
fn list(content_type: &'static str, schema: &Value) -> OperationSpec {
    let mut spec = OperationSpec::new(OperationKind::Query, "pets", "list").unwrap();
    spec.output = Schema::from(schema.clone());
    let mut binding = HttpBinding::owned("GET", "/pets");
    binding.responses = vec![HttpResponse::new(StatusRange::Exact(200), content_type)].into();
    spec.binding = Binding::Http(binding);
    spec
}

/// A server that passes on what another answers, which is to have this schema.
async fn gateway(schema: &Value, sent: &'static str) -> Server {
    let url = upstream("application/json", sent.as_bytes()).await;
    passing_on(list("application/json", schema), url).await
}

/// A server that passes on what another answers.
async fn passing_on(spec: OperationSpec, url: String) -> Server {
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let registry = Registry::new();
    registry.register_all(client.bind([spec]).unwrap()).unwrap();
    serve(HttpServer::new(registry)).await
}

#[tokio::test]
async fn text_stays_text() {
    let schema = json!({"type": "object", "required": ["pets"], "properties": {
        "pets": {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {
            "id": {"type": "integer"}, "price": {"type": "number"}, "name": {"type": "string"}
        }}},
        "next": {"type": "string"}
    }});
    for (sent, received, warnings) in [
        // As it came: spaces, escapes, the notation of numbers, the order.
        (
            r#"{ "next" :"\u0041", "pets":[{"price":1.50, "id":1}] }"#,
            r#"{ "next" :"\u0041", "pets":[{"price":1.50, "id":1}] }"#,
            json!(null),
        ),
        // Three faults at once: only their places change.
        (
            r#"{ "next" :null, "pets":[{"price":1.50, "_links": {}, "id":"1"}, {"id" : 2e0, "price":1E2 }] }"#,
            r#"{"pets":[{"price":1.50, "id":1}, {"id" : 2, "price":1E2 }] }"#,
            json!([
                {"pointer": "/next", "expected": "string", "found": "null"},
                {"pointer": "/pets/0/id", "expected": "integer", "found": "string"},
                {"pointer": "/pets/0/_links", "expected": "no such property", "found": "object"},
            ]),
        ),
    ] {
        let server = gateway(&schema, sent).await;
        let answer = server.get("/pets").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, received), "{answer:?}");
        let envelope = server.send("GET /pets", &["accept: application/vnd.ops.envelope+json"], "").await;
        assert!(envelope.body.contains(received), "{envelope:?}");
        assert_eq!(envelope.json()["warnings"], warnings, "{sent}");
    }
    // What can't be mended is no answer of a server that promises this schema.
    let answer = gateway(&schema, r#"{"pets": [{"id": "one", "x": 1}]}"#).await.get("/pets").await;
    assert_eq!(answer.status, 500, "{answer:?}");
    assert_eq!(answer.problem()["code"], "VALIDATION_ERROR");
}

#[tokio::test]
async fn bytes_by_the_schema_stay_bytes() {
    let schema = json!({ "type": "string", "format": "binary" });
    // "caf\u{e9}" in Latin-1, which is no UTF-8.
    let (sent, received) = (b"caf\xE9", "caf\u{fffd}");
    for (described, came) in [
        ("text/csv", "text/csv; charset=iso-8859-1"),
        ("text/*", "text/plain"),
        ("application/xml", "application/xml"),
        ("*/*", "application/vnd.shop"),
    ] {
        let server = passing_on(list(described, &schema), upstream(came, sent).await).await;
        let answer = server.get("/pets").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(came)), "{described}");
        assert_eq!((answer.header("content-length"), answer.body.as_str()), (Some("4"), received), "{described}");
        // By the envelope, they are a value.
        let envelope = server.send("GET /pets", &["accept: application/vnd.ops.envelope+json"], "").await;
        assert!(envelope.body.contains("\"Y2Fm6Q==\""), "{envelope:?}");
    }
    // A handler gives them as a value, too.
    for (described, told) in [("text/csv", "text/csv"), ("*/*", "application/octet-stream")] {
        let handler = Handler::dynamic(|_: Value, _| async { Ok(json!("Y2Fm6Q==")) });
        let registry = Registry::new();
        registry.register(Registration::new(list(described, &schema), handler)).unwrap();
        let answer = serve(HttpServer::new(registry)).await.get("/pets").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(told)), "{answer:?}");
        assert_eq!((answer.header("content-length"), answer.body.as_str()), (Some("4"), received), "{answer:?}");
    }
}

/// An operation whose document declares errors of these statuses, without content.
fn refusing(range: StatusRange, code: &'static str) -> OperationSpec {
    describing(HttpResponse::empty(range), code)
}

/// An operation whose document declares errors as this response describes them.
fn describing(response: HttpResponse, code: &'static str) -> OperationSpec {
    let mut spec = list("application/json", &json!({}));
    if let Binding::Http(binding) = &mut spec.binding {
        binding.responses.to_mut().push(response);
    }
    spec.errors = vec![ErrorDefinition::new(code)].into();
    spec
}

#[tokio::test]
async fn the_body_of_a_declared_error_is_passed_on_even_if_it_is_not_described() {
    let ranges = [
        (StatusRange::Exact(403), "HTTP_403"),
        (StatusRange::Class(4), "HTTP_4XX"),
        (StatusRange::Default, "HTTP_ERROR"),
    ];
    for (range, code) in ranges {
        for response in
            [HttpResponse::empty(range), HttpResponse::new(range, "application/json"), HttpResponse::new(range, "*/*")]
        {
            for (came, sent, received) in [
                ("application/json", r#"{"message":"nope"}"#, Some("application/json")),
                ("application/problem+json", r#"{"title":"nope"}"#, Some("application/problem+json")),
                ("text/plain; charset=utf-8", "nope", Some("text/plain; charset=utf-8")),
                ("text/html", "<p>nope</p>", Some("text/html")),
                ("application/vnd.shop", "nope", Some("application/vnd.shop")),
                ("", "nope", Some("text/plain")),
                ("", r#"{"message":"nope"}"#, Some("application/json")),
                ("application/json", "", None),
            ] {
                let url = answering("403 Forbidden", came, sent.as_bytes()).await;
                let server = passing_on(describing(response.clone(), code), url).await;
                let answer = server.get("/pets").await;
                assert_eq!((answer.status, answer.body.as_str()), (403, sent), "{response:?} {came}: {answer:?}");
                assert_eq!(answer.header("content-type"), received, "{response:?} {came}: {answer:?}");
                assert_eq!(answer.header("x-internal-host"), None, "{response:?} {came}: {answer:?}");
            }
        }
    }
    // The document knows the type of a JSON text, or of a text without a type, more precisely.
    for (described, came, sent) in
        [("application/problem+json", "application/json", r#"{"title":"nope"}"#), ("text/csv", "", "no,pe")]
    {
        let url = answering("403 Forbidden", came, sent.as_bytes()).await;
        let spec = describing(HttpResponse::new(StatusRange::Exact(403), described), "HTTP_403");
        let answer = passing_on(spec, url).await.get("/pets").await;
        assert_eq!((answer.status, answer.body.as_str()), (403, sent), "{answer:?}");
        assert_eq!(answer.header("content-type"), Some(described), "{answer:?}");
    }
    // What is not declared is not shown.
    let url = answering("409 Conflict", "application/json", br#"{"message":"nope"}"#).await;
    let answer = passing_on(refusing(StatusRange::Exact(403), "HTTP_403"), url).await.get("/pets").await;
    assert_eq!((answer.status, &answer.problem()["details"]), (502, &json!({ "statusCode": 409 })), "{answer:?}");
    // A function keeps to its own description.
    let handler = Handler::dynamic(|_: Value, _| async { Err(ErrorResponse::new(403, json!("nope")).into()) });
    let registry = Registry::new();
    registry.register(Registration::new(refusing(StatusRange::Exact(403), "HTTP_403"), handler)).unwrap();
    let answer = serve(HttpServer::new(registry)).await.get("/pets").await;
    assert_eq!((answer.status, answer.header("content-type"), answer.body.as_str()), (403, None, ""), "{answer:?}");
}

#[tokio::test]
async fn a_range_of_statuses_declares_no_redirect_and_nothing_about_credentials() {
    let sent = r#"{"message":"nope"}"#;
    for (range, code, status, received) in [
        // The credentials are those of the gateway, and the redirect is without its target.
        (StatusRange::Class(4), "HTTP_4XX", "401 Unauthorized", None),
        (StatusRange::Class(4), "HTTP_4XX", "407 Proxy Authentication Required", None),
        (StatusRange::Class(3), "HTTP_3XX", "302 Found", None),
        (StatusRange::Default, "HTTP_ERROR", "401 Unauthorized", None),
        (StatusRange::Default, "HTTP_ERROR", "407 Proxy Authentication Required", None),
        (StatusRange::Default, "HTTP_ERROR", "302 Found", None),
        (StatusRange::Default, "HTTP_ERROR", "400 Bad Request", Some(400)),
        (StatusRange::Default, "HTTP_ERROR", "599 Odd", Some(599)),
        // A document may declare any status by itself.
        (StatusRange::Exact(401), "HTTP_401", "401 Unauthorized", Some(401)),
        (StatusRange::Exact(302), "HTTP_302", "302 Found", Some(302)),
    ] {
        let url = answering(status, "application/json", sent.as_bytes()).await;
        let answer = passing_on(refusing(range, code), url).await.get("/pets").await;
        if let Some(received) = received {
            assert_eq!((answer.status, answer.body.as_str()), (received, sent), "{code} {status}: {answer:?}");
            continue;
        }
        let came: u16 = status[..3].parse().unwrap();
        assert_eq!(answer.status, 502, "{code} {status}: {answer:?}");
        assert_eq!(answer.problem()["details"], json!({ "statusCode": came }), "{code} {status}: {answer:?}");
        assert_eq!(answer.header("www-authenticate"), None, "{code} {status}: {answer:?}");
    }
}

#[tokio::test]
async fn a_range_of_statuses_declares_no_page_where_an_object_is_described() {
    let page = "<h1>Traceback</h1> /srv/app/db.py, host db01";
    let object = json!({ "type": "object", "properties": { "message": { "type": "string" } } });
    let text = json!({ "anyOf": [{ "$ref": "#/$defs/Error" }, { "type": "string" }] });
    for (range, code, schema, is_shown) in [
        (StatusRange::Class(5), "HTTP_5XX", json!({ "$ref": "#/$defs/Error" }), false),
        (StatusRange::Default, "HTTP_ERROR", json!({ "$ref": "#/$defs/Error" }), false),
        (StatusRange::Default, "HTTP_ERROR", text, true),
        // As of a response that is described without content.
        (StatusRange::Default, "HTTP_ERROR", json!({ "type": "null" }), true),
        (StatusRange::Exact(503), "HTTP_503", json!({ "$ref": "#/$defs/Error" }), true),
    ] {
        let spec = || {
            let mut spec = describing(HttpResponse::new(range, "application/json"), code);
            spec.definitions = Definitions::new(vec![Definition::from_value("Error", object.clone())]);
            spec.errors = vec![ErrorDefinition::new(code).with_schema(Schema::from(schema.clone()))].into();
            spec
        };
        let url = answering("503 Service Unavailable", "text/html", page.as_bytes()).await;
        let answer = passing_on(spec(), url).await.get("/pets").await;
        if is_shown {
            assert_eq!((answer.status, answer.body.as_str()), (503, page), "{code} {schema}: {answer:?}");
        } else {
            let details = json!({ "statusCode": 503 });
            assert_eq!((answer.status, &answer.problem()["details"]), (502, &details), "{code} {schema}: {answer:?}");
        }
        // An object is what is described.
        let url = answering("503 Service Unavailable", "application/json", br#"{"message":"later"}"#).await;
        let answer = passing_on(spec(), url).await.get("/pets").await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (503, r#"{"message":"later"}"#),
            "{code} {schema}: {answer:?}"
        );
    }
}
