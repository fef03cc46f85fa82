//! The document of a server: what it says, where it is, and that it does not change by itself.

use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::normalise::Validator;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::serve::HttpServer;
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{CallError, HttpClient, HttpConfig, Operation, Registry, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fixture::{self, serve};

/// Adds two numbers, in another namespace.
#[operation(namespace = "sums", kind = query)]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// The body of the response at a path, and its content type.
async fn get(server: HttpServer, path: &str) -> (u16, String, String) {
    let server = serve(server).await;
    let answer = server.get(path).await;
    (answer.status, answer.header("content-type").unwrap_or_default().to_owned(), answer.body)
}

#[tokio::test]
async fn what_it_says() {
    let (status, kind, body) = get(HttpServer::new(fixture::registry()).with_title("Math"), "/openapi.json").await;
    assert_eq!((status, kind.as_str()), (200, "application/json"));
    let document: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(document["openapi"], "3.1.1");
    assert_eq!(document["info"], json!({ "title": "Math", "version": "1.0.0" }));
    assert_eq!(document["servers"], json!([{ "url": "/" }]));
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(
        paths,
        ["/operations/math/add", "/operations/math/count", "/operations/math/fail", "/operations/users/me"]
    );
    let integer = |more: Value| {
        let mut schema = json!({ "type": "integer", "format": "int64" });
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        schema
    };
    let add = &document["paths"]["/operations/math/add"]["post"];
    let input = json!({
        "type": "object",
        "properties": { "a": integer(json!({})), "b": integer(json!({ "default": 1 })) },
        "required": ["a"],
    });
    assert_eq!(add["requestBody"]["required"], true);
    let given = &add["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(*given, json!({ "$ref": "#/components/schemas/AddInput" }));
    let mut given = document["components"]["schemas"]["AddInput"].clone();
    given.as_object_mut().unwrap().retain(|key, _| key == "type" || key == "properties" || key == "required");
    assert_eq!(given, input);
    assert_eq!(
        add["responses"],
        json!({
            "200": { "description": "OK", "content": { "application/json": { "schema": integer(json!({})) } } },
            "default": { "$ref": "#/components/responses/Problem" },
        })
    );
    assert_eq!(
        (&add["operationId"], &add["x-ops-id"], &add["x-ops-kind"]),
        (&json!("add"), &json!("math.add"), &json!("query"))
    );
    assert_eq!(
        (&add["summary"], add.get("description"), add.get("security")),
        (&json!("Adds two numbers."), None, None)
    );
    let taken = &document["paths"]["/operations/math/fail"]["post"]["responses"]["409"]["content"];
    assert_eq!(
        taken["application/problem+json"]["schema"]["allOf"],
        json!([
            { "$ref": "#/components/schemas/Problem" },
            { "type": "object", "properties": { "code": { "const": "TAKEN" } }, "required": ["code"] },
        ])
    );
    let count = &document["paths"]["/operations/math/count"]["post"]["responses"]["200"]["content"];
    assert_eq!(count["text/event-stream"]["schema"], json!({ "type": "string" }));
    assert_eq!(count["application/x-ndjson"]["schema"], json!({ "type": "array", "items": { "type": "string" } }));
    let me = &document["paths"]["/operations/users/me"]["post"];
    assert_eq!((me.get("requestBody"), &me["security"]), (None, &json!([{ "bearer": ["me:read"] }])));
    let schemes = &document["components"]["securitySchemes"];
    assert_eq!(*schemes, json!({ "bearer": { "type": "http", "scheme": "bearer" } }));
}

#[tokio::test]
async fn it_is_one_document_however_it_is_written() {
    let json = get(HttpServer::new(fixture::registry()), "/openapi.json").await.2;
    let (status, kind, yaml) = get(HttpServer::new(fixture::registry()), "/openapi.yaml").await;
    assert_eq!((status, kind.as_str()), (200, "application/yaml"));
    assert!(yaml.starts_with("openapi: "), "{yaml}");
    assert_eq!(openapi::parse(&yaml).unwrap(), serde_json::from_str::<Value>(&json).unwrap());
    // To the byte, in whatever order operations were registered.
    let other = Registry::new();
    other.register(fixture::Count).unwrap();
    other.register(fixture::Me).unwrap();
    other.register(fixture::Fail).unwrap();
    other.register(fixture::Add).unwrap();
    assert_eq!(get(HttpServer::new(other), "/openapi.json").await.2, json);
}

#[tokio::test]
async fn names_are_told_apart_and_filters_hold() {
    let registry = fixture::registry();
    registry.register(Add).unwrap();
    let document = |server| async { serde_json::from_str::<Value>(&get(server, "/openapi.json").await.2).unwrap() };
    let both = document(HttpServer::new(registry.clone())).await;
    let name = |document: &Value, path: &str| document["paths"][path]["post"]["operationId"].clone();
    assert_eq!(both["info"]["title"], "Operations");
    assert_eq!(name(&both, "/operations/math/add"), "math_add");
    assert_eq!(name(&both, "/operations/sums/add"), "sums_add");
    assert_eq!(name(&both, "/operations/math/fail"), "fail");
    let one = document(HttpServer::new(registry.clone()).with_namespaces(["sums"])).await;
    assert_eq!(one["info"]["title"], "sums");
    assert_eq!(one["paths"].as_object().unwrap().len(), 1);
    assert_eq!(name(&one, "/operations/sums/add"), "add");
    let (status, ..) = get(HttpServer::new(registry).without_document(), "/openapi.json").await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn no_two_operations_have_one_name() {
    let registry = Registry::new();
    let ids = ["pets.list", "user.list", "admin.user_list", "a.get", "a.get_by_get"];
    for (kind, id) in [OperationKind::Mutation; 3].into_iter().chain([OperationKind::Query; 2]).zip(ids) {
        let (namespace, name) = id.split_once('.').unwrap();
        let spec = OperationSpec::new(kind, namespace, name).unwrap();
        let handler = Handler::dynamic(|_: Value, _| async { Ok(json!(null)) });
        registry.register(Registration::new(spec, handler)).unwrap();
    }
    let document: Value = serde_json::from_str(&get(HttpServer::new(registry), "/openapi.json").await.2).unwrap();
    let items = document["paths"].as_object().unwrap().values();
    let operations = items.flat_map(|item| item.as_object().unwrap().values());
    let mut names: Vec<&str> = operations.map(|operation| operation["operationId"].as_str().unwrap()).collect();
    names.sort_unstable();
    let expected = ["get", "get_by_get", "get_by_get_2", "get_by_get_by_get", "pets_list", "user_list", "user_list_2"];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn it_follows_the_registry_and_its_prefix() {
    let registry = Registry::new();
    let server = HttpServer::new(registry.clone()).with_version("7");
    let app = axum::Router::new().nest("/api/v7", server.into_router());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/api/v7/openapi.json", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    let client = HttpClient::new(HttpConfig::new().with_base_url(&*url)).unwrap();
    let mut spec = OperationSpec::new(OperationKind::Query, "own", "document").unwrap();
    spec.binding = ops_runtime::binding::Binding::Http(ops_runtime::binding::HttpBinding::new("GET", ""));
    let own = Registry::new();
    own.register_all(client.bind([spec]).unwrap()).unwrap();
    let empty = own.call("own.document", json!({})).await.unwrap().data;
    assert_eq!((&empty["servers"][0]["url"], &empty["paths"]), (&json!("/api/v7"), &json!({})));
    registry.register(Add).unwrap();
    let later = own.call("own.document", json!({})).await.unwrap().data;
    assert_eq!(later["info"], json!({ "title": "sums", "version": "7" }));
    assert!(later["paths"]["/operations/sums/add"].is_object());
    // Our own reader takes it, without a word.
    let (api, diagnostics) = openapi::read(&later, &ReadOptions::new()).unwrap();
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert_eq!((api.operations[0].id.as_ref(), api.operations[0].kind), ("sums.add", OperationKind::Query));
    serving.abort();
}

/// A value whose type has what OpenAPI leaves to the server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Stored {
    #[schemars(extend("readOnly" = true))]
    id: u64,
    name: String,
}

#[operation(namespace = "shop", http = "POST /stored")]
async fn store(#[input] stored: &Stored) -> Value {
    json!([stored.id, stored.name])
}

/// In OpenAPI, no request has what is `readOnly`. To a function it means nothing.
#[tokio::test]
async fn a_function_is_given_what_its_schema_requires() {
    let properties = json!({ "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" } });
    let pet = json!({ "Pet": { "type": "object", "required": ["id", "name"], "properties": properties } });
    let pet_in = |mut schema: Value| {
        schema["$defs"] = pet.clone();
        Schema::from(schema)
    };
    let reference = json!({ "$ref": "#/$defs/Pet" });
    let body = json!({ "type": "object", "required": ["body"], "properties": { "body": reference } });
    let http = HttpBinding::new("PUT", "/pets").with_bodies(const { &[HttpBody::new("application/json")] });
    let registry = Registry::new();
    for spec in [
        OperationSpec::mutation("shop.add").with_input(pet_in(reference)),
        OperationSpec::mutation("shop.put").with_input(pet_in(body)).with_http(http),
    ] {
        registry.register(Registration::new(spec, Handler::dynamic(|input, _| async { Ok(input) }))).unwrap();
    }
    registry.register(Store).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let document = server.get("/openapi.json").await.json();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Pet"]["properties"]["id"], json!({ "type": "integer" }));
    assert_eq!(schemas["PetInput"]["properties"]["id"], json!({ "type": "integer", "readOnly": true }));
    // Our own client sends what each of them takes.
    let config = HttpConfig::new().with_namespace("shop").with_base_url(format!("http://{}", server.address));
    let client = Registry::new();
    client.register_all(openapi::from_openapi_value(&document, config).unwrap()).unwrap();
    let input = json!({ "body": { "id": 1, "name": "Tom" } });
    assert_eq!(client.call("shop.add", input.clone()).await.unwrap().data, input["body"]);
    assert_eq!(client.call("shop.put", input.clone()).await.unwrap().data, json!({ "body": { "name": "Tom" } }));
    client.call("shop.add", json!({ "body": { "name": "Tom" } })).await.unwrap_err();
    client.call("shop.put", json!({ "body": { "name": "Tom" } })).await.unwrap();
    // A function that is bound to HTTP takes its own type, too.
    assert_eq!(client.call("shop.store", input).await.unwrap().data, json!([1, "Tom"]));
    let own = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    own.add([Store::SPEC]).unwrap();
    assert_eq!(own.call("shop.store", json!({ "id": 1, "name": "Tom" })).await.unwrap().data, json!([1, "Tom"]));
}

#[tokio::test]
async fn a_client_that_has_it_gets_no_copy() {
    let server = serve(HttpServer::new(fixture::registry())).await;
    for (path, kind) in [("/openapi.json", "application/json"), ("/openapi.yaml", "application/yaml")] {
        let all = server.get(path).await;
        let tag = all.header("etag").unwrap().to_owned();
        // The same bytes have the same tag, in each process.
        let digest = ring::digest::digest(&ring::digest::SHA256, all.body.as_bytes());
        let digest: String = digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(tag, format!("\"{digest}\""));
        let length = all.body.len().to_string();
        let head = server.send(&format!("HEAD {path}"), &[], "").await;
        assert_eq!((head.status, head.header("content-length"), head.body.as_str()), (200, Some(length.as_str()), ""));
        assert_eq!((head.header("etag"), head.header("content-type")), (Some(tag.as_str()), Some(kind)));
        let table = [
            (format!("if-none-match: {tag}"), 304),
            (format!("if-none-match: W/{tag}"), 304),
            ("if-none-match: *".to_owned(), 304),
            (format!("if-none-match: \"a\", {tag}"), 304),
            (format!("if-none-match: \"a\"\r\nif-none-match: {tag}"), 304),
            ("if-none-match: \"a\"".to_owned(), 200),
            (format!("if-none-match: {digest}"), 200),
            (format!("if-match: {tag}"), 200),
        ];
        for (line, status) in table {
            for method in ["GET", "HEAD"] {
                let answer = server.send(&format!("{method} {path}"), &[&line], "").await;
                assert_eq!((answer.status, answer.header("etag")), (status, Some(tag.as_str())), "{method} {line}");
                let is_whole = method == "GET" && status == 200;
                assert_eq!(answer.body, if is_whole { all.body.as_str() } else { "" }, "{method} {line}");
            }
        }
    }
    // Other operations are another document.
    let other = Registry::new();
    other.register(ShowPet).unwrap();
    let other = serve(HttpServer::new(other)).await;
    assert_ne!(other.get("/openapi.json").await.header("etag"), server.get("/openapi.json").await.header("etag"));
}

/// A pet, and those that it is with.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Pet {
    name: String,
    friends: Vec<Pet>,
    home: Home,
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Home {
    street: String,
}

/// Shows a pet.
#[operation(namespace = "shop", http = "GET /pets/{id}")]
async fn show_pet(id: u64) -> Pet {
    Pet { name: id.to_string(), friends: Vec::new(), home: Home { street: String::new() } }
}

/// Adds a pet.
#[operation(namespace = "shop", http = "POST /pets")]
async fn add_pet(pet: Pet) -> Pet {
    pet
}

#[tokio::test]
async fn types_have_their_names() {
    let registry = Registry::new();
    registry.register(ShowPet).unwrap();
    registry.register(AddPet).unwrap();
    let document: Value = serde_json::from_str(&get(HttpServer::new(registry), "/openapi.json").await.2).unwrap();
    let pet = json!({ "$ref": "#/components/schemas/Pet" });
    let shown = &document["paths"]["/pets/{id}"]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
    let added = &document["paths"]["/pets"]["post"];
    assert_eq!(*shown, pet);
    assert_eq!(added["requestBody"]["content"]["application/json"]["schema"], pet);
    assert_eq!(added["responses"]["200"]["content"]["application/json"]["schema"], pet);
    let names: Vec<&String> = document["components"]["schemas"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["Home", "Pet", "Problem"]);
    assert_eq!(document["components"]["schemas"]["Pet"]["properties"]["friends"]["items"], pet);
}

/// A thing whose size has a default: it may be left out of an input, and is always in an output.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Thing {
    #[serde(default)]
    size: u32,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Part {
    #[serde(default)]
    name: String,
}

/// Adds a thing.
#[operation(namespace = "shop", http = "POST /things")]
async fn add_thing(thing: Thing) -> Thing {
    thing
}

/// Changes a thing.
#[operation(namespace = "shop", http = "PUT /things/{id}")]
async fn change_thing(id: u64, thing: Thing) -> Vec<Thing> {
    vec![thing; usize::from(id > 0)]
}

#[tokio::test]
async fn a_type_that_takes_other_json_than_it_gives_has_two_names() {
    let registry = Registry::new();
    registry.register(AddThing).unwrap();
    registry.register(ChangeThing).unwrap();
    let document: Value = serde_json::from_str(&get(HttpServer::new(registry), "/openapi.json").await.2).unwrap();
    let names: Vec<&String> = document["components"]["schemas"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["Part", "PartOutput", "Problem", "Thing", "ThingOutput"]);
    let (add, change) = (&document["paths"]["/things"]["post"], &document["paths"]["/things/{id}"]["put"]);
    let name = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    for operation in [add, change] {
        assert_eq!(operation["requestBody"]["content"]["application/json"]["schema"], name("Thing"));
    }
    let given = |operation: &Value| operation["responses"]["200"]["content"]["application/json"]["schema"].clone();
    assert_eq!((given(add), &given(change)["items"]), (name("ThingOutput"), &name("ThingOutput")));
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Thing"]["properties"]["parts"]["items"], name("Part"));
    assert_eq!(schemas["ThingOutput"]["properties"]["parts"]["items"], name("PartOutput"));
}

/// A parcel, which refers to a type whose name is not the same in a URI.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Parcel {
    size: Size,
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Größe (cm)")]
struct Size {
    #[schemars(range(min = 1))]
    width: u32,
}

/// Sends a parcel.
#[operation(namespace = "shop", http = "POST /parcels")]
async fn send_parcel(parcel: Parcel) -> Parcel {
    parcel
}

#[tokio::test]
async fn a_type_may_have_any_name() {
    let registry = Registry::new();
    registry.register(SendParcel).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let document = server.get("/openapi.json").await.json();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Parcel"]["properties"]["size"], json!({ "$ref": "#/components/schemas/Gr__e__cm_" }));
    assert_eq!(schemas["Gr__e__cm_"]["properties"]["width"]["minimum"], 1);
    // Its constraints hold as those of any other type do.
    let send = async |body: &str| server.send("POST /parcels", &["content-type: application/json"], body).await.status;
    assert_eq!(send(r#"{"size":{"width":1}}"#).await, 200);
    assert_eq!(send(r#"{"size":{"width":0}}"#).await, 422);
}

/// Weighs a parcel.
#[operation(namespace = "shop", errors(UnknownDepot = 422, NoRoom = 422, Sent = 409))]
async fn weigh(#[schemars(range(min = 1))] grams: u32) -> Result<u32, CallError> {
    match grams {
        1 => Err(CallError::new("UnknownDepot", "there is no such depot")),
        2 => Err(CallError::new("Sent", "it is gone")),
        grams => Ok(grams),
    }
}

#[tokio::test]
async fn it_admits_failures_of_the_server_beside_declared_ones() {
    let registry = Registry::new();
    registry.register(Weigh).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let document = server.get("/openapi.json").await.json();
    let responses = &document["paths"]["/operations/shop/weigh"]["post"]["responses"];
    let schema = |status: u16| responses[status.to_string()]["content"]["application/problem+json"]["schema"].clone();
    let problem = json!({ "$ref": "#/components/schemas/Problem" });
    let parts = |code: &str| {
        let own = json!({ "type": "object", "properties": { "code": { "const": code } }, "required": ["code"] });
        json!([problem, own])
    };
    // The server itself fails with 422, but not with 409.
    assert_eq!(schema(409), json!({ "allOf": parts("Sent") }));
    let titled = |code: &str| json!({ "allOf": parts(code), "title": code });
    assert_eq!(schema(422), json!({ "anyOf": [titled("UnknownDepot"), titled("NoRoom"), problem] }));
    for (body, status, code) in [
        (r#"{"grams":1}"#, 422, "UnknownDepot"),
        (r#"{"grams":0}"#, 422, "VALIDATION_ERROR"),
        (r#"{"grams":2}"#, 409, "Sent"),
    ] {
        let answer = server.post("/operations/shop/weigh", body).await;
        let sent = answer.problem();
        assert_eq!((answer.status, &sent["code"]), (status, &json!(code)), "{body}");
        let mut schema = schema(status);
        schema["components"] = document["components"].clone();
        let violations = Validator::new(&schema).violations(&sent);
        assert!(violations.is_empty(), "{body}: {violations:?}");
    }
}

#[tokio::test]
async fn it_admits_failures_of_the_server_beside_described_ones() {
    let json_of =
        |schema: Value| json!({ "description": "told", "content": { "application/json": { "schema": schema } } });
    let error =
        || json_of(json!({ "type": "object", "required": ["why"], "properties": { "why": { "type": "string" } } }));
    let filter = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let document = json!({
        "openapi": "3.2.0",
        "info": { "title": "Shop", "version": "1" },
        "paths": { "/find": { "query": {
            "operationId": "find",
            "parameters": [{ "name": "filter", "in": "query", "style": "deepObject", "explode": true, "schema": filter }],
            "responses": {
                "200": json_of(json!({ "type": "string" })),
                "404": { "description": "none" },
                "409": error(),
                "422": error(),
                "5XX": error(),
                "default": error(),
            },
        } } },
    });
    let read = |document: &Value| {
        let (api, _) = openapi::read(document, &ReadOptions::new().with_namespace("shop")).unwrap();
        api.operations.into_iter().next().unwrap()
    };
    let find = read(&document);
    let registry = Registry::new();
    let handler = Handler::dynamic(|_: Value, _| async { Ok(json!("found")) });
    registry.register(Registration::new(find.clone(), handler)).unwrap();
    let shown = serve(HttpServer::new(registry)).await.get("/openapi.json").await.json();
    assert_eq!(shown["openapi"], "3.2.0");
    let item = shown["paths"]["/find"].as_object().unwrap();
    assert_eq!(item.keys().collect::<Vec<_>>(), ["query"]);
    let parameter = &item["query"]["parameters"][0];
    assert_eq!((&parameter["style"], &parameter["explode"]), (&json!("deepObject"), &json!(true)));
    let content = |status: &str| item["query"]["responses"][status]["content"].as_object().unwrap().clone();
    let problem = json!({ "x-ops-implied": true, "schema": { "$ref": "#/components/schemas/Problem" } });
    let table: [(&str, &[&str]); 4] = [
        ("404", &["application/problem+json"]),
        ("422", &["application/json", "application/problem+json"]),
        ("5XX", &["application/json", "application/problem+json"]),
        ("default", &["application/json", "application/problem+json"]),
    ];
    for (status, own) in table {
        let content = content(status);
        assert_eq!(content.keys().collect::<Vec<_>>(), own, "{status}");
        assert_eq!(content["application/problem+json"], problem, "{status}");
    }
    // The server itself does not fail with those.
    for status in ["200", "409"] {
        assert_eq!(content(status).keys().collect::<Vec<_>>(), ["application/json"], "{status}");
    }
    // Our reader takes nothing of it for the operation's own.
    let again = read(&shown);
    assert_eq!(again.http().unwrap().responses, find.http().unwrap().responses);
    let codes = |spec: &OperationSpec| spec.errors.iter().map(|error| error.code.to_string()).collect::<Vec<_>>();
    assert_eq!(codes(&again), codes(&find));
}
