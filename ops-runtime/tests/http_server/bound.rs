//! Operations at the paths of their bindings: which is meant, what it answers, and what other clients may send.

use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{
    Binding, HttpBinding, HttpBody, HttpFixed, HttpParameter, HttpResponse, Literal, ParameterStyle, StatusRange,
};
use ops_runtime::http::error_of;
use ops_runtime::openapi::{ReadOptions, read};
use ops_runtime::serve::HttpServer;
use ops_runtime::spec::{ErrorDefinition, OperationKind, OperationSpec, Schema};
use ops_runtime::{CallError, Registry};
use serde_json::{Value, json};

use crate::fixture::{Server, serve};

/// A binding, what its handler answers, the headers of a request, and the response: its status, content type and body.
type Row = (HttpBinding, Answers, &'static [&'static str], u16, Option<&'static str>, &'static str);

type Answers = fn(Value) -> Result<Value, CallError>;

async fn served(specs: Vec<(OperationSpec, Answers)>) -> Server {
    let registry = Registry::new();
    for (spec, answer) in specs {
        registry
            .register(Registration::new(spec, Handler::dynamic(move |input, _| async move { answer(input) })))
            .unwrap();
    }
    serve(HttpServer::new(registry)).await
}

fn spec(name: &str, binding: HttpBinding, properties: Value) -> OperationSpec {
    let mut spec = OperationSpec::new(OperationKind::Mutation, "t", name).unwrap();
    spec.input = Schema::from(json!({ "type": "object", "properties": properties, "additionalProperties": false }));
    spec.binding = Binding::Http(binding);
    spec
}

const ECHO: Answers = Ok;

#[tokio::test]
async fn what_other_clients_send_is_understood() {
    let integers = json!({ "type": "array", "items": { "type": "integer" } });
    let mut binding = HttpBinding::owned("GET", "/search");
    binding.parameters = vec![
        HttpParameter::query("ids").with_style(ParameterStyle::Form, false),
        HttpParameter::query("tags"),
        HttpParameter::query("pipes").with_style(ParameterStyle::PipeDelimited, false),
        HttpParameter::query("filter").with_style(ParameterStyle::DeepObject, true),
        HttpParameter::query("one"),
        HttpParameter::header("X-List"),
    ]
    .into();
    let properties = json!({
        "ids": integers, "tags": { "type": "array", "items": { "type": "string" } }, "pipes": integers,
        "filter": { "type": "object", "properties": { "in": integers, "text": { "type": "string" } } },
        "one": { "type": "string" }, "X-List": integers,
    });
    let server = served(vec![(spec("search", binding, properties), ECHO)]).await;
    let table = [
        ("", json!({})),
        ("ids=1,2", json!({ "ids": [1, 2] })),
        ("ids=1%2C2", json!({ "ids": [1, 2] })),
        ("ids=1&ids=2,3", json!({ "ids": [1, 2, 3] })),
        ("ids=", json!({ "ids": [""] })),
        ("tags=a%2Cb&tags=c+d%2B", json!({ "tags": ["a,b", "c d+"] })),
        ("pipes=1|2", json!({ "pipes": [1, 2] })),
        ("pipes=1%7c2", json!({ "pipes": [1, 2] })),
        ("filter[in][]=1&filter[in][]=2&filter[text]=x", json!({ "filter": { "in": [1, 2], "text": "x" } })),
        ("filter%5Bin%5D=1&filter[in]=2", json!({ "filter": { "in": [1, 2] } })),
        ("filter[in][1]=1&filter[in][0]=2", json!({ "filter": { "in": [2, 1] } })),
        ("one=7&utm_source=x&other", json!({ "one": "7" })),
        ("one", json!({ "one": "" })),
        ("on%65=%31", json!({ "one": "1" })),
    ];
    for (query, expected) in table {
        let answer = server.get(&format!("/search?{query}")).await;
        match answer.status {
            200 => assert_eq!(answer.json(), expected, "{query}"),
            // What is no integer comes in as it is, and is a violation.
            _ => assert_eq!((answer.status, query), (422, "ids="), "{answer:?}"),
        }
    }
    let listed = server.send("GET /search", &["x-list: 1, 2", "X-LIST: 3"], "").await;
    assert_eq!(listed.json(), json!({ "X-List": [1, 2, 3] }));
    // Two faults, and one of the schema, in one problem.
    let wrong = server.get("/search?one=1&one=2&ids=x&filter[text]=1&filter[text][a]=2&pipes=%FF").await;
    let violations = wrong.problem()["violations"].clone();
    let pointers: Vec<&str> = violations.as_array().unwrap().iter().map(|v| v["pointer"].as_str().unwrap()).collect();
    assert_eq!(pointers, ["/pipes", "/filter", "/one", "/ids/0"], "{violations}");
}

#[tokio::test]
async fn bodies_by_their_types() {
    let mut binding = HttpBinding::owned("POST", "/notes");
    binding.bodies = vec![
        HttpBody::new("application/json"),
        HttpBody::new("application/x-www-form-urlencoded"),
        HttpBody::new("text/*"),
    ]
    .into();
    binding.content_type = Some("contentType".into());
    let body =
        json!({ "anyOf": [{ "type": "string" }, { "type": "object", "properties": { "n": { "type": "integer" } } }] });
    let server =
        served(vec![(spec("notes", binding, json!({ "body": body, "contentType": { "type": "string" } })), ECHO)])
            .await;
    let post = async |kind: &str, body: &str| {
        let kind = format!("content-type: {kind}");
        server
            .send(
                "POST /notes",
                if kind.ends_with(": ") { &[] } else { std::slice::from_ref(&kind) }
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .as_slice(),
                body,
            )
            .await
    };
    let json = post("Application/JSON;charset=UTF-8", "\u{feff}{\"n\":7}").await;
    assert_eq!(json.json(), json!({ "body": { "n": 7 }, "contentType": "application/json" }));
    let form = post("application/x-www-form-urlencoded", "n=7").await;
    assert_eq!(form.json()["body"], json!({ "n": 7 }));
    let text = post("text/csv; charset=iso-8859-1", "a;b").await;
    assert_eq!(text.json(), json!({ "body": "a;b", "contentType": "text/csv; charset=iso-8859-1" }));
    // A text is one value, however many commas it has; as JSON it is many.
    let commas = ",".repeat(1_200_000);
    assert_eq!(post("text/csv", &commas).await.json()["body"], commas);
    assert_eq!(post("application/json", &commas).await.status, 413);
    for (kind, body, status) in [
        ("image/png", "x", 415),
        ("", "x", 415),
        ("application/jsonp", "{}", 415),
        ("text/plain; charset=nonsense", "x", 415),
        ("application/json", "{\"n\":7", 400),
        ("application/json", "{\"n\":\"x\"}", 422),
    ] {
        let answer = post(kind, body).await;
        assert_eq!(answer.status, status, "{kind}: {answer:?}");
        answer.problem();
    }
}

#[tokio::test]
async fn operations_of_one_path_are_told_apart() {
    let plain = HttpBinding::new("POST", "/chat").with_bodies(
        const { &[HttpBody::new("application/json").with_fixed(const { &[HttpFixed::absent("stream")] })] },
    );
    let stream = HttpBinding::new("POST", "/chat")
        .with_bodies(
            const {
                &[HttpBody::new("application/json")
                    .with_fixed(const { &[HttpFixed::new("stream", Literal::Bool(true))] })]
            },
        )
        .with_responses(const { &[HttpResponse::new(StatusRange::Exact(200), "text/event-stream")] });
    let list = HttpBinding::new("GET", "/do")
        .with_parameters(const { &[HttpParameter::query("action").with_fixed(Literal::text("list"))] });
    let show = HttpBinding::new("GET", "/do")
        .with_parameters(const { &[HttpParameter::query("action").with_fixed(Literal::text("show"))] });
    let body = json!({ "body": { "type": "object" } });
    let registry = Registry::new();
    let named = |name: &'static str| Handler::dynamic(move |input: Value, _| async move { Ok(json!([name, input])) });
    for (name, binding, properties) in
        [("plain", plain, body.clone()), ("list", list, json!({})), ("show", show, json!({}))]
    {
        registry.register(Registration::new(spec(name, binding, properties), named(name))).unwrap();
    }
    let mut streamed = spec("stream", stream, body);
    streamed.kind = OperationKind::Subscription;
    let handler = Handler::dynamic_stream(|input: Value, _| async { Ok(futures_util::stream::iter([Ok(input)])) });
    registry.register(Registration::new(streamed, handler)).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let json = "content-type: application/json";
    let table: [(&str, &[&str], &str, &str); 7] = [
        ("POST /chat", &[json], r#"{"q":1}"#, r#"["plain",{"body":{"q":1}}]"#),
        ("POST /chat", &[json], r#"{"q":1,"stream":false}"#, r#"["plain",{"body":{"q":1}}]"#),
        ("POST /chat", &[json], r#"{"q":1,"stream":true}"#, "id: 1\ndata: {\"body\":{\"q\":1}}\n\n: [DONE]\n\n"),
        (
            "POST /chat",
            &[json, "accept: text/event-stream"],
            r#"{"q":1,"stream":true}"#,
            "id: 1\ndata: {\"body\":{\"q\":1}}\n\n: [DONE]\n\n",
        ),
        ("POST /chat", &[json, "accept: text/event-stream"], r#"{"q":1}"#, r#"["plain",{"body":{"q":1}}]"#),
        ("GET /do?action=show", &[], "", r#"["show",{}]"#),
        ("GET /do?action=list", &[], "", r#"["list",{}]"#),
    ];
    for (line, headers, body, expected) in table {
        assert_eq!(server.send(line, headers, body).await.body, expected, "{line} {body}");
    }
    assert_eq!(server.get("/do?action=other").await.status, 422);
}

#[tokio::test]
async fn of_two_operations_the_one_that_is_meant_says_what_is_wrong() {
    let binding = |fixed: &'static [HttpFixed]| {
        let mut binding = HttpBinding::owned("POST", "/chat");
        binding.bodies = vec![HttpBody::new("application/json").with_fixed(fixed)].into();
        binding.parameters = vec![HttpParameter::query("filter").with_style(ParameterStyle::Json, false)].into();
        binding
    };
    let properties = json!({ "filter": { "type": "object" }, "body": { "type": "object" } });
    let absent = const { &[HttpFixed::absent("stream")] };
    let wanted = const { &[HttpFixed::new("stream", Literal::Bool(true))] };
    let server = served(vec![
        (spec("plain", binding(absent), properties.clone()), ECHO),
        (spec("stream", binding(wanted), properties), ECHO),
    ])
    .await;
    let violations = async |path: &str, body: &str| {
        let answer = server.post(path, body).await;
        assert_eq!(answer.status, 422, "{answer:?}");
        answer.problem()["violations"].clone()
    };
    for body in [r#"{"q":1}"#, r#"{"q":1,"stream":true}"#] {
        let told = violations("/chat?filter=%7Boops", body).await;
        assert_eq!((told.as_array().map(Vec::len), &told[0]["pointer"]), (Some(1), &json!("/filter")), "{body}");
    }
    let told = violations("/chat", r#"{"q":1,"stream":"yes"}"#).await;
    let message = "is not part of this operation, or is always `true`";
    assert_eq!(told, json!([{ "pointer": "/body/stream", "message": message }]));
}

#[tokio::test]
async fn a_type_of_body_that_one_operation_does_not_take_may_be_meant_for_another() {
    let (json, form) = ("content-type: application/json", "content-type: application/x-www-form-urlencoded");
    let integer = json!({ "type": "object", "properties": { "q": { "type": "integer" } } });
    for (of_json, of_form) in [("first", "second"), ("second", "first")] {
        let a = HttpBinding::new("POST", "/do")
            .with_parameters(const { &[HttpParameter::query("action").with_fixed(Literal::text("a"))] })
            .with_bodies(const { &[HttpBody::new("application/json")] });
        let b = HttpBinding::new("POST", "/do")
            .with_parameters(const { &[HttpParameter::query("action").with_fixed(Literal::text("b"))] })
            .with_bodies(const { &[HttpBody::new("application/x-www-form-urlencoded")] });
        let server = served(vec![
            (spec(of_json, a, json!({ "body": integer })), ECHO),
            (spec(of_form, b, json!({ "body": integer })), ECHO),
        ])
        .await;
        for (line, kind, body, status) in [
            ("POST /do?action=a", json, r#"{"q":1}"#, 200),
            ("POST /do?action=b", form, "q=1", 200),
            ("POST /do?action=a", form, "q=1", 415),
            ("POST /do?action=b", json, r#"{"q":1}"#, 415),
            ("POST /do?action=c", json, r#"{"q":1}"#, 422),
            ("POST /do?action=c", form, "q=1", 422),
        ] {
            let answer = server.send(line, &[kind], body).await;
            assert_eq!(answer.status, status, "{of_json} {line} {kind}: {answer:?}");
            match status {
                200 => assert_eq!(answer.json(), json!({ "body": { "q": 1 } }), "{line}"),
                422 => {
                    let message = match of_json {
                        "first" => "is always `\"a\"`, or is always `\"b\"`",
                        _ => "is always `\"b\"`, or is always `\"a\"`",
                    };
                    let expected = json!([{ "pointer": "/action", "message": message }]);
                    assert_eq!(answer.problem()["violations"], expected, "{line}");
                }
                _ => {}
            }
        }
    }
}

#[tokio::test]
async fn accept_chooses_between_a_result_and_a_stream() {
    let binding = |kind: &'static str| {
        let mut binding = HttpBinding::owned("GET", "/feed");
        binding.responses = vec![HttpResponse::new(StatusRange::Exact(200), kind)].into();
        binding
    };
    let registry = Registry::new();
    let plain = Handler::dynamic(|_: Value, _| async { Ok(json!("plain")) });
    registry.register(Registration::new(spec("plain", binding("application/json"), json!({})), plain)).unwrap();
    let mut streamed = spec("stream", binding("text/event-stream"), json!({}));
    streamed.kind = OperationKind::Subscription;
    let handler =
        Handler::dynamic_stream(|_: Value, _| async { Ok(futures_util::stream::iter([Ok(json!("stream"))])) });
    registry.register(Registration::new(streamed, handler)).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    for (accept, expected) in [
        ("*/*", "plain"),
        ("application/json", "plain"),
        ("text/event-stream", "stream"),
        ("application/json, text/event-stream", "stream"),
        ("application/json, text/event-stream;q=0.1", "plain"),
        ("application/json;q=0.1, text/event-stream;q=0.2", "stream"),
        ("text/event-stream;q=0.5, */*;q=0.1", "stream"),
        ("text/event-stream;q=0.5, */*;q=0.6", "plain"),
        ("text/event-stream;q=0", "plain"),
    ] {
        let answer = server.send("GET /feed", &[&format!("accept: {accept}")], "").await;
        assert!(answer.body.contains(expected), "{accept}: {answer:?}");
        assert_eq!(answer.header("vary"), Some("accept"), "{accept}");
    }
}

#[tokio::test]
async fn responses_are_as_the_binding_says() {
    let responses = |list: Vec<HttpResponse>| {
        let mut binding = HttpBinding::owned("POST", "/x");
        binding.responses = list.into();
        binding
    };
    let ok = |kind: &'static str| HttpResponse::new(StatusRange::Exact(200), kind);
    let created = HttpResponse::new(StatusRange::Exact(201), "application/vnd.x+json");
    let table: Vec<Row> = vec![
        (responses(vec![]), |_| Ok(json!([1])), &[], 200, Some("application/json"), "[1]"),
        (responses(vec![created.clone()]), |_| Ok(json!([1])), &[], 201, Some("application/vnd.x+json"), "[1]"),
        (responses(vec![HttpResponse::empty(StatusRange::Exact(204))]), |_| Ok(json!(null)), &[], 204, None, ""),
        (responses(vec![ok("text/plain")]), |_| Ok(json!("ü")), &[], 200, Some("text/plain; charset=utf-8"), "ü"),
        // In the charset that is described, if it has all that is to be said.
        (
            responses(vec![ok("text/plain; charset=latin1")]),
            |_| Ok(json!("ü")),
            &[],
            200,
            Some("text/plain; charset=latin1"),
            "\u{fffd}",
        ),
        (
            responses(vec![ok("text/plain; charset=latin1")]),
            |_| Ok(json!("あ")),
            &[],
            200,
            Some("text/plain; charset=utf-8"),
            "あ",
        ),
        (
            responses(vec![ok("application/json; charset=latin1")]),
            |_| Ok(json!("ü")),
            &[],
            200,
            Some("application/json"),
            "\"ü\"",
        ),
        (responses(vec![ok("application/pdf")]), |_| Ok(json!("aGk=")), &[], 200, Some("application/pdf"), "hi"),
        (
            responses(vec![ok("text/csv"), ok("application/json")]),
            |_| Ok(json!("a,b")),
            &[],
            200,
            Some("application/json"),
            "\"a,b\"",
        ),
        (
            responses(vec![ok("text/csv"), ok("application/json")]),
            |_| Ok(json!("a,b")),
            &["accept: text/csv, */*;q=0.1"],
            200,
            Some("text/csv"),
            "a,b",
        ),
        (
            responses(vec![ok("text/csv"), ok("application/json")]),
            |_| Ok(json!([1])),
            &["accept: text/csv"],
            200,
            Some("application/json"),
            "[1]",
        ),
        (responses(vec![ok("*/*")]), |_| Ok(json!("x")), &[], 200, Some("application/json"), "\"x\""),
        // A handler may say by which of the described responses it answers.
        (
            responses(vec![ok("application/json"), created]),
            |_| {
                Ok(
                    json!({ "data": [2], "meta": { "source": "http", "statusCode": 201, "headers": { "x-secret": "1" }, "contentType": "application/vnd.x+json" } }),
                )
            },
            &[],
            201,
            Some("application/vnd.x+json"),
            "[2]",
        ),
        // A status without content has none, whatever is described for its class.
        (
            responses(vec![HttpResponse::new(StatusRange::Class(2), "application/json")]),
            |_| {
                Ok(
                    json!({ "data": null, "meta": { "source": "http", "statusCode": 204, "headers": {}, "contentType": "" } }),
                )
            },
            &[],
            204,
            None,
            "",
        ),
    ];
    for (at, (binding, answer, headers, status, kind, body)) in table.into_iter().enumerate() {
        let server = served(vec![(spec("x", binding, json!({})), answer)]).await;
        let answer = server.send("POST /x", headers, "").await;
        assert_eq!(
            (answer.status, answer.header("content-type"), answer.body.as_str()),
            (status, kind, body),
            "row {at}"
        );
        assert_eq!(answer.header("x-secret"), None);
    }
}

#[tokio::test]
async fn described_errors_are_sent_as_they_are() {
    let mut described = spec(
        "x",
        HttpBinding::new("GET", "/x").with_responses(
            const {
                &[
                    HttpResponse::new(StatusRange::Exact(200), "application/json"),
                    HttpResponse::new(StatusRange::Exact(404), "application/problem+json"),
                ]
            },
        ),
        json!({ "q": { "type": "integer" } }),
    );
    let mut declared = vec![ErrorDefinition::owned("HTTP_404")];
    declared[0].http_status = Some(404);
    described.errors = declared.into();
    described.binding = match described.binding {
        Binding::Http(mut http) => {
            http.parameters = vec![HttpParameter::query("q")].into();
            Binding::Http(http)
        }
        other => other,
    };
    let server = served(vec![(described, |input| {
        Err(match input["q"].as_i64() {
            Some(status) => error_of(u16::try_from(status).unwrap(), json!({ "title": "told", "secret": 1 })),
            None => CallError::execution("secret"),
        })
    })])
    .await;
    let found = server.get("/x?q=404").await;
    assert_eq!((found.status, found.json()), (404, json!({ "title": "told", "secret": 1 })));
    assert_eq!(found.header("content-type"), Some("application/problem+json"));
    for (query, status) in [("?q=503", 502), ("?q=401", 502), ("", 500)] {
        let answer = server.get(&format!("/x{query}")).await;
        assert_eq!(answer.status, status, "{query}");
        assert!(!answer.body.contains("secret"), "{answer:?}");
        answer.problem();
    }
    // A call by id does not get the response itself: the details of the problem have what callers may see of it.
    for (status, details) in [
        (404, json!({ "statusCode": 404, "body": { "title": "told", "secret": 1 } })),
        (503, json!({ "statusCode": 503 })),
    ] {
        let answer = server.post("/operations/t/x", &json!({ "q": status }).to_string()).await;
        assert_eq!((answer.status, &answer.problem()["details"]), (502, &details));
    }
}

/// A document's own operations are served where it says, whatever its dialect.
#[tokio::test]
async fn a_document_is_served_as_it_reads() {
    let document = json!({
        "openapi": "3.0.3",
        "info": { "title": "Pets", "version": "1" },
        "paths": { "/pets/{petId}": {
            "parameters": [{ "name": "petId", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 1 } }],
            "put": {
                "operationId": "putPet",
                "requestBody": { "required": true, "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } } },
                "responses": { "200": { "description": "", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } } } },
            },
        } },
        "components": { "schemas": { "Pet": {
            "type": "object", "required": ["name"],
            "properties": { "name": { "type": "string" }, "tag": { "type": "string", "nullable": true } },
        } } },
    });
    let (api, _) = read(&document, &ReadOptions::new().with_namespace("pets")).unwrap();
    let put = api.operations.into_iter().next().unwrap();
    let server = served(vec![(put, |input| Ok(input["body"].clone()))]).await;
    let json = &["content-type: application/json"];
    let answer = server.send("PUT /pets/7", json, r#"{"name":"Rex","tag":null}"#).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "name": "Rex", "tag": null })));
    let wrong = server.send("PUT /pets/0", json, r#"{"tag":7}"#).await;
    let violations = wrong.problem()["violations"].clone();
    let pointers: Vec<&str> = violations.as_array().unwrap().iter().map(|v| v["pointer"].as_str().unwrap()).collect();
    assert!(["/petId", "/body/name", "/body/tag"].iter().all(|pointer| pointers.contains(pointer)), "{violations}");
    assert_eq!(
        server.send("PUT /pets/x", json, r#"{"name":"Rex"}"#).await.problem()["violations"][0]["pointer"],
        "/petId"
    );
    assert_eq!(
        server.post("/operations/pets/putPet", r#"{"petId":7,"body":{"name":"Rex"}}"#).await.json(),
        json!({ "name": "Rex" })
    );
}
