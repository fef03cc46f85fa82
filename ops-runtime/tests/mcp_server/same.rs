//! One input, sent by type, by id, as an MCP tool and through the call protocol: the server gets the same bytes.

use futures_util::StreamExt;
use ops_runtime::binding::{
    HttpBinding, HttpBody, HttpField, HttpFixed, HttpParameter, HttpResponse, Literal, StatusRange,
};
use ops_runtime::call::{CallHandler, InProcess};
use ops_runtime::http::{HttpClient, HttpConfig};
use ops_runtime::mcp::McpServer;
use ops_runtime::openapi::from_openapi;
use ops_runtime::spec::{Definition, OperationSpec, Schema};
use ops_runtime::{Body, Call, Operation, Registry, Subscribe};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::client::{Client, REVISIONS};

const DOCUMENT: &str = r##"
openapi: 3.1.0
info: { title: ai, version: "1" }
paths:
  /find/{kind}?beta=a%2Fb:
    get:
      operationId: find
      parameters:
        - { name: kind, in: path, required: true, schema: { type: string } }
        - { name: tags, in: query, schema: { type: array, items: { type: string } } }
        - { name: limit, in: query, schema: { type: integer, default: 20 } }
        - { name: X-Trace, in: header, schema: { type: string } }
        - { name: theme, in: cookie, schema: { type: string } }
      responses: { "200": { $ref: "#/components/responses/Done" } }
  /chat:
    post:
      operationId: chat
      requestBody: { required: true, content: { application/json: { schema: { $ref: "#/components/schemas/Chat" } } } }
      responses:
        "200": { description: "", content: { application/json: { schema: {} }, text/event-stream: { schema: {} } } }
  /form:
    post:
      operationId: form
      requestBody: { content: { application/x-www-form-urlencoded: { schema: { $ref: "#/components/schemas/Item" } } } }
      responses: { "200": { $ref: "#/components/responses/Done" } }
  /upload:
    post:
      operationId: upload
      requestBody: { content: { multipart/form-data: { schema: { $ref: "#/components/schemas/Upload" } } } }
      responses: { "200": { $ref: "#/components/responses/Done" } }
  /attach:
    post:
      operationId: attach
      requestBody:
        content: { multipart/form-data: { schema: { type: array, items: { type: string, format: binary } } } }
      responses: { "200": { $ref: "#/components/responses/Done" } }
  /lines:
    post:
      operationId: lines
      requestBody:
        content: { application/x-ndjson: { schema: { type: array, items: { $ref: "#/components/schemas/Item" } } } }
      responses: { "200": { $ref: "#/components/responses/Done" } }
components:
  responses: { Done: { description: "", content: { application/json: { schema: {} } } } }
  schemas:
    Item:
      type: object
      required: [id]
      properties:
        id: { type: integer, readOnly: true }
        name: { type: string, default: none }
        size: { type: number, default: 1.5 }
    Chat:
      type: object
      required: [model]
      properties:
        model: { type: string }
        id: { type: string, readOnly: true }
        stream: { type: boolean, default: true }
        temperature: { type: number, default: 1 }
        items: { type: array, items: { $ref: "#/components/schemas/Item" } }
    Upload:
      type: object
      properties:
        title: { type: string }
        id: { type: integer, readOnly: true }
        file: { type: string, format: binary }
"##;

/// Gives each request as it comes, and answers in JSON or events, whatever is asked for.
async fn record() -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (requests, recorded) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Some(request) = answer(stream).await {
                let _ = requests.send(request);
            }
        }
    });
    (url, recorded)
}

async fn answer(mut stream: TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let whole = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let head = text.find("\r\n\r\n")? + 4;
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        (bytes.len() >= head + length.unwrap_or(0)).then(|| text.into_owned())
    };
    let request = loop {
        if let Some(request) = whole(&bytes) {
            break request;
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await.ok()? {
            0 => return None,
            read => bytes.extend_from_slice(&piece[..read]),
        }
    };
    let (kind, body) = if request.contains("accept: text/event-stream") {
        ("text/event-stream", "data: {}\n\n")
    } else {
        ("application/json", "{}")
    };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n");
    stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.ok()?;
    // A boundary is new each time.
    let boundary = request.split_once("boundary=").and_then(|(_, rest)| rest.lines().next()).map(str::to_owned);
    Some(boundary.map_or_else(|| request.clone(), |boundary| request.replace(&boundary, "BOUNDARY")))
}

const DONE: &[HttpResponse] = &[HttpResponse::new(StatusRange::Exact(200), "application/json")];
const EVENTS: &[HttpResponse] = &[HttpResponse::new(StatusRange::Exact(200), "text/event-stream")];
const ITEM: &str =
    r#"{"type":"object","properties":{"id":{"type":"integer","readOnly":true},"name":{},"size":{"maximum":2}}}"#;

/// A record that leaves out what is not set, as generated types do.
macro_rules! typed {
    ($name:ident { $($(#[$attribute:meta])* $field:ident: $t:ty),* $(,)? }) => {
        #[derive(Debug, Default, Serialize, Deserialize)]
        struct $name { $(#[serde(default, skip_serializing_if = "Option::is_none")] $(#[$attribute])* $field: Option<$t>,)* }
    };
}

typed!(FindInput {
    kind: String,
    tags: Vec<String>,
    limit: i64,
    #[serde(rename = "X-Trace")]
    trace: String,
    theme: String,
});
typed!(Item { id: i64, name: String, size: f64 });
typed!(Chat { model: String, id: String, temperature: f64, items: Vec<Item>, });
typed!(Upload { title: String, id: i64, file: Body });
typed!(Whole { body: Chat });
typed!(Form { body: Item });
typed!(Parts { body: Upload });
typed!(Files { body: Vec<Body>, });
typed!(Lines { body: Vec<Item>, });

macro_rules! operation {
    ($name:ident: $kind:ident, $spec:expr, $input:ty, $body:literal, $http:expr) => {
        struct $name;

        impl Operation for $name {
            type Input = $input;
            type Output = Value;
            const SPEC: &'static OperationSpec = &$spec
                .with_input(Schema::text(concat!(r#"{"type":"object","properties":{"body":"#, $body, "}}")))
                .with_definitions(const { &[Definition::new("Chat", CHAT), Definition::new("Item", ITEM)] })
                .with_http($http);
        }

        impl $kind for $name {}
    };
}

const CHAT: &str = r##"{"properties":{"id":{"readOnly":true},"items":{"items":{"$ref":"#/$defs/Item"}}}}"##;

operation!(Find: Call, OperationSpec::query("ai.find"), FindInput, "{}",
    HttpBinding::new("GET", "/find/{kind}?beta=a%2Fb").with_responses(DONE).with_parameters(const { &[
        HttpParameter::path("kind"), HttpParameter::query("tags"), HttpParameter::query("limit"),
        HttpParameter::header("X-Trace"), HttpParameter::cookie("theme"),
    ] }));
operation!(Chatting: Call, OperationSpec::mutation("ai.chat"), Whole, r##"{"$ref":"#/$defs/Chat"}"##,
    HttpBinding::new("POST", "/chat").with_responses(DONE).with_bodies(const { &[
        HttpBody::new("application/json").with_fixed(const { &[HttpFixed::new("stream", Literal::Bool(false))] }),
    ] }));
operation!(ChatStream: Subscribe, OperationSpec::subscription("ai.chat_stream"), Whole, r##"{"$ref":"#/$defs/Chat"}"##,
    HttpBinding::new("POST", "/chat").with_responses(EVENTS).with_bodies(const { &[
        HttpBody::new("application/json").with_fixed(const { &[HttpFixed::new("stream", Literal::Bool(true))] }),
    ] }));
operation!(Sheet: Call, OperationSpec::mutation("ai.form"), Form, r##"{"$ref":"#/$defs/Item"}"##,
    HttpBinding::new("POST", "/form").with_responses(DONE)
        .with_bodies(const { &[HttpBody::new("application/x-www-form-urlencoded")] }));
operation!(Uploading: Call, OperationSpec::mutation("ai.upload"), Parts,
    r#"{"properties":{"id":{"readOnly":true},"file":{"type":"string","format":"binary"}}}"#,
    HttpBinding::new("POST", "/upload").with_responses(DONE)
        .with_bodies(const { &[HttpBody::new("multipart/form-data")] }));
operation!(Attaching: Call, OperationSpec::mutation("ai.attach"), Files,
    r#"{"type":"array","items":{"type":"string","format":"binary"}}"#,
    HttpBinding::new("POST", "/attach").with_responses(DONE).with_bodies(const { &[
        HttpBody::new("multipart/form-data").with_fields(const { &[HttpField::new("file")] }),
    ] }));
operation!(Writing: Call, OperationSpec::mutation("ai.lines"), Lines, r##"{"type":"array","items":{"$ref":"#/$defs/Item"}}"##,
    HttpBinding::new("POST", "/lines").with_responses(DONE)
        .with_bodies(const { &[HttpBody::new("application/x-ndjson")] }));

/// All ways to the server.
struct Ways {
    client: HttpClient,
    registry: Registry,
    typed_far: InProcess,
    far: InProcess,
    tools: Vec<Client>,
    recorded: mpsc::UnboundedReceiver<String>,
}

impl Ways {
    async fn new() -> Self {
        let (url, recorded) = record().await;
        let config = || HttpConfig::new().with_namespace("ai").with_base_url(&url);
        let client = HttpClient::new(config()).unwrap();
        let typed = Registry::new();
        let specs = [
            Find::SPEC,
            Chatting::SPEC,
            ChatStream::SPEC,
            Sheet::SPEC,
            Uploading::SPEC,
            Attaching::SPEC,
            Writing::SPEC,
        ];
        typed.register_all(client.bind(specs).unwrap()).unwrap();
        let registry = Registry::new();
        registry.register_all(from_openapi(DOCUMENT, config()).unwrap()).unwrap();
        let (typed_far, far) = (InProcess::new(), InProcess::new());
        std::mem::forget((typed_far.serve(CallHandler::new(typed)), far.serve(CallHandler::new(registry.clone()))));
        let mut tools = Vec::new();
        for revision in REVISIONS {
            tools.push(Client::connect(McpServer::new(registry.clone()), revision).await);
        }
        Self { client, registry, typed_far, far, tools, recorded }
    }

    async fn next(&mut self) -> String {
        tokio::time::timeout(crate::client::PATIENCE, self.recorded.recv()).await.unwrap().unwrap()
    }

    /// Sends by id in all ways, and compares with what was sent by type.
    async fn compare(&mut self, id: &str, input: &Value, expected: &str, ends: &str) {
        assert!(expected.ends_with(ends), "{id}: {expected:?} ends with {ends:?}");
        if id.ends_with("_stream") {
            let mut items = self.registry.stream(id, input.clone()).await.unwrap();
            assert_eq!(items.next().await.unwrap().unwrap().data, json!({}));
            assert_eq!(self.next().await, expected, "{id} by id");
            let mut items = self.far.remote().stream(id, input.clone()).await.unwrap();
            assert_eq!(items.next().await.unwrap().unwrap().data, json!({}));
        } else {
            assert_eq!(self.registry.call(id, input.clone()).await.unwrap().data, json!({}));
            assert_eq!(self.next().await, expected, "{id} by id");
            assert_eq!(self.far.remote().call(id, input.clone()).await.unwrap().data, json!({}));
        }
        assert_eq!(self.next().await, expected, "{id} through the protocol");
        for at in 0..self.tools.len() {
            let result = self.tools[at].call(&id.replace('.', "_"), input.clone()).await;
            assert!(result.get("isError") != Some(&json!(true)), "{result}");
            assert_eq!(self.next().await, expected, "{id} as a tool");
        }
        assert!(self.recorded.try_recv().is_err(), "one request a call");
    }

    /// Runs an operation in all ways.
    async fn run<Op: Call>(&mut self, typed: impl Fn() -> Op::Input, input: Value, ends: &str) {
        self.client.execute::<Op>(typed()).await.unwrap();
        let expected = self.next().await;
        self.typed_far.remote().execute::<Op>(typed()).await.unwrap();
        assert_eq!(self.next().await, expected, "typed, through the protocol");
        self.compare(&Op::SPEC.id, &input, &expected, ends).await;
    }
}

#[tokio::test]
async fn all_ways_send_the_same_bytes() {
    let mut ways = Ways::new().await;
    let text = |text: &str| Some(text.to_owned());
    let find = || FindInput {
        kind: text("a/b ü"),
        tags: Some(vec!["x".into(), "y&z".into()]),
        limit: None,
        trace: text("t-1"),
        theme: text("dark"),
    };
    let input = json!({ "kind": "a/b ü", "tags": ["x", "y&z"], "X-Trace": "t-1", "theme": "dark" });
    ways.run::<Find>(find, input, "\r\n\r\n").await;
    ways.run::<Find>(|| FindInput { kind: text("k"), ..FindInput::default() }, json!({ "kind": "k" }), "\r\n\r\n")
        .await;

    let item = |name: &str| Item { id: Some(7), name: text(name), size: None };
    let chat = || Whole {
        body: Some(Chat { model: text("m"), id: text("never"), temperature: Some(0.5), items: Some(vec![item("a")]) }),
    };
    let chat_input =
        || json!({ "body": { "model": "m", "id": "never", "temperature": 0.5, "items": [{ "id": 7, "name": "a" }] } });
    let body = |stream: bool| {
        format!("\r\n\r\n{{\"model\":\"m\",\"temperature\":0.5,\"items\":[{{\"name\":\"a\"}}],\"stream\":{stream}}}")
    };
    ways.run::<Chatting>(chat, chat_input(), &body(false)).await;
    let small = || Whole { body: Some(Chat { model: text("m"), ..Chat::default() }) };
    ways.run::<Chatting>(small, json!({ "body": { "model": "m" } }), "\r\n\r\n{\"model\":\"m\",\"stream\":false}")
        .await;

    let mut items = ways.client.subscribe::<ChatStream>(chat()).await.unwrap();
    assert_eq!(items.next().await.unwrap().unwrap().data, json!({}));
    let expected = ways.next().await;
    ways.compare("ai.chat_stream", &chat_input(), &expected, &body(true)).await;

    ways.run::<Sheet>(
        || Form { body: Some(item("a b&c")) },
        json!({ "body": { "id": 7, "name": "a b&c" } }),
        "\r\n\r\nname=a%20b%26c",
    )
    .await;

    let upload = || Parts { body: Some(Upload { title: text("t"), id: Some(7), file: Some(Body::from("hi")) }) };
    let part = "--BOUNDARY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\nhi\r\n";
    let title = "--BOUNDARY\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nt\r\n";
    let input = json!({ "body": { "title": "t", "id": 7, "file": "aGk=" } });
    ways.run::<Uploading>(upload, input, &format!("\r\n\r\n{title}{part}--BOUNDARY--\r\n")).await;
    let files = || Files { body: Some(vec![Body::from("hi"), Body::from("hi")]) };
    let expected = format!("\r\n\r\n{part}{part}--BOUNDARY--\r\n");
    ways.run::<Attaching>(files, json!({ "body": ["aGk=", "aGk="] }), &expected).await;

    let lines = || Lines { body: Some(vec![item("a"), item("b")]) };
    let input = json!({ "body": [{ "id": 7, "name": "a" }, { "id": 7, "name": "b" }] });
    ways.run::<Writing>(lines, input, "\r\n\r\n{\"name\":\"a\"}\n{\"name\":\"b\"}\n").await;
}

#[tokio::test]
async fn the_bytes_of_a_request() {
    let mut ways = Ways::new().await;
    let find = FindInput { kind: Some("a/b ü".into()), limit: Some(5), ..FindInput::default() };
    ways.client.execute::<Find>(find).await.unwrap();
    let request = ways.next().await;
    assert_eq!(request.lines().next(), Some("GET /find/a%2Fb%20%C3%BC?beta=a%2Fb&limit=5 HTTP/1.1"));
    // A caller by id may send what the typed call cannot, in the order that it likes, but nothing undeclared.
    ways.registry.call("ai.chat", json!({ "body": { "temperature": 1, "model": "m", "more": [null] } })).await.unwrap();
    assert!(
        ways.next().await.ends_with("\r\n\r\n{\"temperature\":1,\"model\":\"m\",\"more\":[null],\"stream\":false}")
    );
    for (id, input, pointer) in [
        ("ai.chat", json!({ "body": { "model": "m", "stream": true } }), "/body/stream"),
        ("ai.find", json!({ "kind": "k", "Limit": 5 }), "/Limit"),
    ] {
        let error = ways.registry.call(id, input.clone()).await.unwrap_err();
        assert_eq!(error.details()["violations"][0]["pointer"], pointer);
        let far = ways.far.remote().call(id, input.clone()).await.unwrap_err();
        assert_eq!((far.code(), far.details()), (error.code(), error.details()));
        let result = ways.tools[0].call(&id.replace('.', "_"), input).await;
        assert_eq!(result["isError"], true, "{result}");
    }
    assert!(ways.recorded.try_recv().is_err(), "nothing is sent");
}

#[tokio::test]
async fn what_a_type_can_hold_is_sent() {
    let mut ways = Ways::new().await;
    // `size` has a maximum of 2.
    let sheet = || Form { body: Some(Item { size: Some(3.5), ..Item::default() }) };
    ways.client.execute::<Sheet>(sheet()).await.unwrap();
    assert!(ways.next().await.ends_with("\r\n\r\nsize=3.5"));
    ways.client.add([Sheet::SPEC]).unwrap();
    let by_id = ways.client.call("ai.form", json!({ "body": { "size": 3.5 } })).await.unwrap_err();
    assert_eq!(by_id.code().as_str(), "VALIDATION_ERROR");
    assert!(ways.recorded.try_recv().is_err(), "a call by id is checked");
}
