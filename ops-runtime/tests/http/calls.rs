//! What a server sees, and what becomes of its answers.

use ops_runtime::binding::{HttpBinding, HttpBody, HttpParameter, HttpResponse, ParameterStyle, StatusRange};
use ops_runtime::http::{Auth, HttpClient, HttpConfig, RequestBody};
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{Call, Caller, Operation, Registry, ResponseEnvelope};
use serde_json::{Value, json};

use crate::server::{Server, get_of, spec};

const UPDATE: HttpBinding = HttpBinding::new("PUT", "/echo/{id}/notes#full")
    .with_parameters(
        const {
            &[
                HttpParameter::path("id"),
                HttpParameter::query("tags"),
                HttpParameter::query("filter").with_style(ParameterStyle::DeepObject, true),
                HttpParameter::header("X-Trace"),
                HttpParameter::cookie("theme"),
            ]
        },
    )
    .with_bodies(const { &[HttpBody::new("application/json")] })
    .with_responses(const { &[HttpResponse::new(StatusRange::Exact(200), "application/json")] });

struct Update;

impl Operation for Update {
    type Input = Value;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("t.update").with_http(UPDATE);
}

impl Call for Update {}

fn input() -> Value {
    json!({
        "id": "a/b ü", "tags": ["x", "y&z"], "filter": { "from": 1 }, "X-Trace": "t-1", "theme": "dark",
        "body": { "text": "hi" },
    })
}

fn check(envelope: &ResponseEnvelope<Value>) {
    let seen = &envelope.data;
    assert_eq!(seen["method"], "PUT");
    assert_eq!(seen["uri"], "/echo/a%2Fb%20%C3%BC/notes?tags=x&tags=y%26z&filter%5Bfrom%5D=1");
    assert_eq!(seen["body"], r#"{"text":"hi"}"#);
    let headers = &seen["headers"];
    assert_eq!(headers["x-trace"], "t-1");
    assert_eq!(headers["cookie"], "theme=dark");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["content-length"], "13");
    assert_eq!(headers["accept"], "application/json");
    assert_eq!(headers["authorization"], "Bearer t0k");
    let meta = envelope.meta.as_http().unwrap();
    assert_eq!((meta.status_code, meta.content_type.as_str()), (200, "application/json"));
    assert!(meta.headers.contains_key("date"));
}

#[tokio::test]
async fn every_way_to_call_sends_the_same_request() {
    let server = Server::start().await;
    let config = HttpConfig::new().with_base_url(server.url()).with_auth(Auth::bearer("t0k"));
    let client = HttpClient::new(config).unwrap();

    check(&client.execute::<Update>(input()).await.unwrap());
    client.add([Update::SPEC]).unwrap();
    check(&client.call("t.update", input()).await.unwrap());

    let registry = Registry::new();
    registry.register_all(client.bind([Update::SPEC]).unwrap()).unwrap();
    check(&registry.execute::<Update>(input()).await.unwrap());
    check(&registry.call("t.update", input()).await.unwrap());

    async fn through(caller: &impl Caller) -> ResponseEnvelope<Value> {
        caller.execute::<Update>(input()).await.unwrap()
    }
    check(&through(&client).await);
}

#[tokio::test]
async fn answers_of_all_kinds() {
    let server = Server::start().await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(server.url())).unwrap();
    let specs = ["text", "bytes", "empty"].map(|name| spec(OperationKind::Query, name, get_of(format!("/{name}"))));
    client.add(specs).unwrap();
    for (name, expected) in [("t.text", json!("plain text")), ("t.bytes", json!("AJ+Slg==")), ("t.empty", json!(null))]
    {
        assert_eq!(client.call(name, json!({})).await.unwrap().data, expected, "{name}");
    }
}

#[tokio::test]
async fn bodies_of_all_kinds() {
    let server = Server::start().await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(server.url())).unwrap();
    let table = [
        ("application/x-www-form-urlencoded", json!({ "a": "b c", "d": [1, 2] }), "a=b%20c&d=1&d=2"),
        ("text/plain", json!("just text"), "just text"),
        ("application/octet-stream", json!("aGk="), "hi"),
        ("application/vnd.api+json", json!(0), "0"),
    ];
    for (content_type, value, expected) in table {
        let mut binding = HttpBinding::new("POST", "/echo/x");
        let mut body = HttpBody::new("");
        body.content_type = content_type.into();
        binding.bodies = vec![body].into();
        let name = content_type.replace('/', ".");
        client.add([spec(OperationKind::Mutation, &name, binding)]).unwrap();
        let seen = client.call(&format!("t.{name}"), json!({ "body": value })).await.unwrap().data;
        assert_eq!((&seen["body"], &seen["headers"]["content-type"]), (&json!(expected), &json!(content_type)));
    }
    client.add([spec(OperationKind::Mutation, "nothing", HttpBinding::new("POST", "/echo/x"))]).unwrap();
    let seen = client.call("t.nothing", json!({})).await.unwrap().data;
    assert_eq!((&seen["body"], &seen["headers"]["content-length"]), (&json!(""), &json!("0")));
    assert!(seen["headers"].get("content-type").is_none());
}

const FORM: &str = "application/x-www-form-urlencoded";

const SEND: HttpBinding = HttpBinding::new("POST", "/echo/x")
    .with_bodies(const { &[HttpBody::new("application/json").with_variant(0), HttpBody::new(FORM).with_variant(1)] })
    .with_content_type("contentType")
    .with_responses(const { &[HttpResponse::new(StatusRange::Exact(200), "application/json")] });

/// An operation with two content types, each with a schema of its own.
struct SendNote;

impl Operation for SendNote {
    type Input = Value;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("t.send").with_http(SEND).with_input(Schema::text(
        r#"{
            "type": "object",
            "properties": {
                "body": {
                    "oneOf": [
                        { "title": "Json", "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } },
                        { "title": "Form", "type": "object", "required": ["b"], "properties": { "b": { "type": "string" } } }
                    ]
                },
                "contentType": { "type": "string", "enum": ["application/json", "application/x-www-form-urlencoded"] }
            }
        }"#,
    ));
}

impl Call for SendNote {}

#[tokio::test]
async fn a_body_is_of_the_content_type_in_which_it_is_sent() {
    let server = Server::start().await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(server.url())).unwrap();
    client.add([SendNote::SPEC]).unwrap();
    let (json_body, form_body) = (json!({ "a": 1 }), json!({ "b": "x" }));
    let input = |body: &Value, kind: Option<&str>| match kind {
        Some(kind) => json!({ "body": body, "contentType": kind }),
        None => json!({ "body": body }),
    };
    for (body, named, sent, expected) in [
        (&json_body, None, "application/json", r#"{"a":1}"#),
        (&json_body, Some("application/json"), "application/json", r#"{"a":1}"#),
        (&form_body, None, FORM, "b=x"),
        (&form_body, Some(FORM), FORM, "b=x"),
    ] {
        let typed = client.execute::<SendNote>(input(body, named)).await.unwrap().data;
        let by_id = client.call("t.send", input(body, named)).await.unwrap().data;
        for seen in [typed, by_id] {
            assert_eq!((&seen["headers"]["content-type"], &seen["body"]), (&json!(sent), &json!(expected)));
        }
    }
    for (body, named, other) in [(&form_body, "application/json", FORM), (&json_body, FORM, "application/json")] {
        let message = format!(
            "the body does not match the schema of `{named}`, but that of `{other}`: choose that content type, or change the body"
        );
        let whole = json!({ "pointer": "/body", "message": message });
        let by_id = client.call("t.send", input(body, Some(named))).await.unwrap_err();
        assert_eq!(by_id.code().as_str(), "VALIDATION_ERROR");
        assert_eq!(by_id.details()["violations"][0], whole, "{named}");
        // A misspelt member is reported, too.
        let mut both = input(body, Some(named));
        both["contenttype"] = json!("x");
        let both = client.call("t.send", both).await.unwrap_err();
        let violations = both.details()["violations"].as_array().unwrap();
        let pointers: Vec<&str> = violations.iter().map(|violation| violation["pointer"].as_str().unwrap()).collect();
        assert_eq!((&violations[0], pointers.last()), (&whole, Some(&"/contenttype")), "{violations:?}");
    }
    // A call by type is not checked: a type can hold values that the document does not know.
    for (body, named, sent) in [
        (json!({ "a": "new" }), "application/json", r#"{"a":"new"}"#),
        (form_body, "application/json", r#"{"b":"x"}"#),
        (json_body, FORM, "a=1"),
    ] {
        let seen = client.execute::<SendNote>(input(&body, Some(named))).await.unwrap().data;
        assert_eq!((&seen["headers"]["content-type"], &seen["body"]), (&json!(named), &json!(sent)));
    }
    let by_id = client.call("t.send", input(&json!({ "a": "new" }), Some("application/json"))).await.unwrap_err();
    assert_eq!(by_id.details()["violations"][0]["pointer"], "/body");
}

/// A service of the user's that answers by itself.
#[derive(Clone)]
struct Canned;

impl tower_service::Service<http::Request<RequestBody>> for Canned {
    type Response = http::Response<axum::body::Body>;
    type Error = std::io::Error;
    type Future = std::future::Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<RequestBody>) -> Self::Future {
        std::future::ready(match request.uri().path() {
            "/fails" => Err(std::io::Error::other("the cable is cut")),
            path => Ok(http::Response::new(format!("{} {path}", request.method()).into())),
        })
    }
}

#[tokio::test]
async fn a_service_of_the_users() {
    let client = HttpClient::new(HttpConfig::new().with_base_url("https://nowhere.test").with_service(Canned)).unwrap();
    let get = |name: &str| spec(OperationKind::Query, name, get_of(format!("/{name}")));
    client.add([get("hello"), get("fails")]).unwrap();
    assert_eq!(client.call("t.hello", json!({})).await.unwrap().data, "GET /hello");
    let error = client.call("t.fails", json!({})).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "t.fails: EXECUTION_ERROR: the request to https://nowhere.test failed: the cable is cut"
    );
}

/// Two versions of an API in one namespace.
macro_rules! get_pet {
    ($name:ident, $path:literal, $parameter:literal) => {
        struct $name;
        impl Operation for $name {
            type Input = Value;
            type Output = Value;
            const SPEC: &'static OperationSpec = &OperationSpec::query("t.pet").with_http(
                HttpBinding::new("GET", $path).with_parameters(const { &[HttpParameter::query($parameter)] }),
            );
        }
        impl Call for $name {}
    };
}

get_pet!(FirstPet, "/echo/v1/pet", "id");
get_pet!(SecondPet, "/echo/v2/pet", "key");

#[tokio::test]
async fn a_client_runs_each_type_by_its_own_spec() {
    let server = Server::start().await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(server.url())).unwrap();
    for _ in 0..2 {
        let first = client.execute::<FirstPet>(json!({ "id": 1 })).await.unwrap().data;
        let second = client.execute::<SecondPet>(json!({ "key": 2 })).await.unwrap().data;
        assert_eq!((&first["uri"], &second["uri"]), (&json!("/echo/v1/pet?id=1"), &json!("/echo/v2/pet?key=2")));
    }
    // What a call by id finds does not depend on the types that were called before.
    let error = client.call("t.pet", json!({ "id": 3 })).await.unwrap_err();
    assert_eq!(error.code().as_str(), "OPERATION_NOT_FOUND");
    assert!(
        error.message().contains("`t.pet`") && error.message().contains("`client.add(t::operations())`"),
        "{error}"
    );
    assert!(client.list().is_empty());
    client.add([FirstPet::SPEC]).unwrap();
    assert_eq!(client.call("t.pet", json!({ "id": 3 })).await.unwrap().data["uri"], "/echo/v1/pet?id=3");
    let misspelt = client.call("t.pets", json!({})).await.unwrap_err();
    assert!(misspelt.message().contains("`t.pet`") && !misspelt.message().contains("add("), "{misspelt}");
    assert_eq!(client.list().len(), 1);
    let error = client.add([SecondPet::SPEC]).unwrap_err().to_string();
    assert!(error.contains("`GET /echo/v1/pet`") && error.contains("`GET /echo/v2/pet`"), "{error}");

    // A registry has one of the two, and runs the other by neither.
    let registry = Registry::new();
    registry.register_all(client.bind([FirstPet::SPEC]).unwrap()).unwrap();
    assert_eq!(registry.execute::<FirstPet>(json!({ "id": 1 })).await.unwrap().data["uri"], "/echo/v1/pet?id=1");
    let error = registry.execute::<SecondPet>(json!({ "key": 2 })).await.unwrap_err();
    assert!(error.message().contains("`GET /echo/v1/pet`") && error.message().contains("SecondPet`"), "{error}");
    assert!(registry.register_all(client.bind([SecondPet::SPEC]).unwrap()).is_err());
}
