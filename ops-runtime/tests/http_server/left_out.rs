//! Lists, objects and optional properties of functions that are left out of a request.

use std::collections::{BTreeMap, BTreeSet};

use ops_runtime::binding::{HttpBinding, HttpParameter};
use ops_runtime::serve::HttpServer;
use ops_runtime::{Body, HttpClient, HttpConfig, Operation, Registry, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fixture::serve;
use crate::readings::echo;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Filter {
    name: Option<String>,
    age: Option<u8>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Page {
    from: u32,
}

type Names = Vec<String>;

#[operation(namespace = "shop", http = "GET /pets")]
async fn find(
    tags: BTreeSet<String>,
    names: Names,
    filter: Filter,
    #[input(header = "X-Sizes")] sizes: BTreeSet<u8>,
    #[input(cookie)] seen: Names,
) -> Value {
    json!([tags, names, filter, sizes, seen])
}

#[operation(namespace = "shop", http = "GET /counts")]
async fn count(counts: BTreeMap<String, u8>) -> Value {
    json!(counts)
}

#[operation(namespace = "shop", http = "GET /pages")]
async fn show(page: Page) -> Value {
    json!(page)
}

#[operation(namespace = "shop", http = "PATCH /pets/{id}")]
async fn patch(id: u64, owner: Option<Option<String>>, note: Option<Option<String>>) -> Value {
    let told = |value: Option<Option<String>>| value.map_or_else(|| json!("absent"), |value| json!(value));
    json!([id, told(owner), told(note)])
}

#[operation(namespace = "shop", http = "POST /albums")]
async fn keep(name: String, tags: Vec<String>, sizes: BTreeSet<u8>, notes: Counts, photos: Vec<Body>) -> Value {
    json!([name, tags, sizes, notes, photos.len()])
}

type Counts = BTreeMap<String, u8>;

#[operation(namespace = "shop", http = "POST /letters")]
async fn attach(name: String, files: Option<Vec<Body>>) -> Value {
    json!([name, files.map(|files| files.len())])
}

#[operation(namespace = "shop", http = "GET /usual")]
async fn usual(
    #[input(default = vec![1])] tags: Vec<u8>,
    #[input(header = "X-Sizes", default = vec![2])] sizes: Vec<u8>,
    #[input(cookie, default = BTreeMap::from([("a".to_owned(), 3)]))] seen: Counts,
    #[input(default)] filter: Filter,
) -> Value {
    json!([tags, sizes, seen, filter])
}

#[operation(namespace = "shop", http = "POST /usual")]
async fn usual_parts(
    file: Body,
    #[input(default = vec![9])] tags: Vec<u8>,
    #[input(default = Some(7))] limit: Option<u8>,
    #[input(default)] note: Option<u8>,
) -> Value {
    let _ = file;
    json!([tags, limit, note])
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Order {
    #[serde(default)]
    by: Vec<String>,
    #[serde(default)]
    down: bool,
}

#[operation(namespace = "shop", http = "GET /sorted")]
async fn sort(
    #[input(default)] order: Order,
    #[input(header = "X-Then", default = Order { by: Vec::new(), down: true })] then: Order,
) -> Value {
    json!([order, then])
}

#[operation(namespace = "shop", http = "POST /notes")]
async fn note_parts(
    file: Body,
    #[input(default = Some(Order::default()))] order: Option<Order>,
    #[input(default = Some(String::new()))] note: Option<String>,
) -> Value {
    let _ = file;
    json!([order, note])
}

fn registry() -> Registry {
    let registry = Registry::new();
    registry.register(Find).unwrap();
    registry.register(Count).unwrap();
    registry.register(Show).unwrap();
    registry.register(Patch).unwrap();
    registry.register(Keep).unwrap();
    registry.register(Attach).unwrap();
    registry.register(Usual).unwrap();
    registry.register(UsualParts).unwrap();
    registry.register(Sort).unwrap();
    registry
}

#[tokio::test]
async fn lists_and_objects_that_are_left_out_are_empty() {
    let server = serve(HttpServer::new(registry())).await;
    let nothing = json!([[], [], { "name": null, "age": null }, [], []]);
    let some = json!([["a", "b"], [], { "name": "Rex", "age": null }, [1, 3], []]);
    let answer = server.get("/pets").await;
    assert_eq!((answer.status, answer.json()), (200, nothing.clone()));
    let answer = server.send("GET /pets?tags=b&tags=a&name=Rex", &["x-sizes: 3,1"], "").await;
    assert_eq!((answer.status, answer.json()), (200, some));
    let answer = server.get("/counts").await;
    assert_eq!((answer.status, answer.json()), (200, json!({})));
    // What is there and wrong is still an error.
    assert_eq!(server.get("/pets?age=old").await.status, 422);

    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    client.add([Find::SPEC, Count::SPEC]).unwrap();
    let (tags, sizes) = (BTreeSet::new(), BTreeSet::new());
    let empty = FindInput { tags, names: Vec::new(), filter: Filter::default(), sizes, seen: Vec::new() };
    assert_eq!(client.execute::<Find>(empty).await.unwrap().data, nothing);
    let empty = CountInput { counts: BTreeMap::new() };
    assert_eq!(client.execute::<Count>(empty).await.unwrap().data, json!({}));
}

#[tokio::test]
async fn those_that_cannot_be_empty_are_required() {
    let server = serve(HttpServer::new(registry())).await;
    let problem = server.get("/pages").await.problem();
    assert_eq!(problem["status"], 422);
    assert!(problem["violations"].to_string().contains("page"), "{problem}");
    assert_eq!(server.get("/pages?from=1").await.json(), json!({ "from": 1 }));

    let document = server.get("/openapi.json").await.json();
    for (path, required) in [("/pets", vec![]), ("/counts", vec![]), ("/pages", vec!["page"])] {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap().clone();
        let found = parameters.iter().filter(|own| own["required"] == true).map(|own| own["name"].as_str().unwrap());
        assert_eq!(found.collect::<Vec<_>>(), required, "{path}");
    }
}

/// A list has a part for each item, so that an empty one has none. An object is one part.
#[tokio::test]
async fn lists_beside_files_may_be_left_out() {
    let server = serve(HttpServer::new(registry())).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    client.add([Keep::SPEC, Attach::SPEC]).unwrap();
    let input = |tags: &[&str], sizes: &[u8], photos: Vec<Body>| {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let sizes = sizes.iter().copied().collect();
        KeepInput { name: "x".to_owned(), tags, sizes, notes: Counts::new(), photos }
    };
    let empty = client.execute::<Keep>(input(&[], &[], Vec::new())).await.unwrap().data;
    assert_eq!(empty, json!(["x", [], [], {}, 0]));
    let some = client.execute::<Keep>(input(&["a"], &[2, 1], vec![Body::from("p")])).await.unwrap().data;
    assert_eq!(some, json!(["x", ["a"], [1, 2], {}, 1]));

    assert_eq!(Attach::SPEC.http().unwrap().bodies[0].content_type, "multipart/form-data");
    for (files, told) in [(None, json!(["x", null])), (Some(vec![Body::from("a"), Body::from("b")]), json!(["x", 2]))] {
        let input = AttachInput { name: "x".to_owned(), files };
        assert_eq!(client.execute::<Attach>(input).await.unwrap().data, told);
    }

    let document = server.get("/openapi.json").await.json();
    let body = &document["paths"]["/albums"]["post"]["requestBody"];
    let required = &body["content"]["multipart/form-data"]["schema"]["required"];
    assert_eq!((&body["required"], required), (&json!(true), &json!(["name", "notes"])));
}

/// The server would take it for left out, and use the default.
#[tokio::test]
async fn an_empty_list_beside_a_default_is_refused() {
    let server = serve(HttpServer::new(registry())).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    client.add([Usual::SPEC, UsualParts::SPEC]).unwrap();
    let nothing = json!({ "name": null, "age": null });
    let usual = client.execute::<Usual>(UsualInput::default()).await.unwrap().data;
    assert_eq!(usual, json!([[1], [2], { "a": 3 }, nothing]));
    for (input, place) in [
        (UsualInput { tags: Vec::new(), ..UsualInput::default() }, "tags"),
        (UsualInput { sizes: Vec::new(), ..UsualInput::default() }, "sizes"),
        (UsualInput { seen: Counts::new(), ..UsualInput::default() }, "seen"),
    ] {
        let error = client.execute::<Usual>(input).await.unwrap_err();
        assert_eq!((error.code().as_str(), error.message()), ("VALIDATION_ERROR", &*replaced("an empty", place)));
        assert_eq!(error.details()["violations"][0]["pointer"], format!("/{place}"));
    }
    let parts = |tags: Vec<u8>, limit: Option<u8>| UsualPartsInput { file: Body::from("x"), tags, limit, note: None };
    let told = client.execute::<UsualParts>(parts(vec![1, 2], Some(3))).await.unwrap().data;
    assert_eq!(told, json!([[1, 2], 3, null]));
    for (tags, limit, what, place) in
        [(Vec::new(), Some(3), "an empty", "tags"), (vec![1], None, "`null` for", "limit")]
    {
        let error = client.execute::<UsualParts>(parts(tags, limit)).await.unwrap_err();
        assert_eq!((error.code().as_str(), error.message()), ("VALIDATION_ERROR", &*replaced(what, place)));
        assert_eq!(error.details()["violations"][0]["pointer"], format!("/{place}"));
    }
}

/// `null` is another value than an empty object or text, which may be the default.
#[tokio::test]
async fn a_null_beside_an_empty_default_is_refused() {
    let registry = Registry::new();
    registry.register(NoteParts).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    client.add([NoteParts::SPEC]).unwrap();
    let parts = |order: Option<Order>, note: Option<&str>| NotePartsInput {
        file: Body::from("x"),
        order,
        note: note.map(str::to_owned),
    };
    let told = client.execute::<NoteParts>(parts(Some(Order::default()), Some("a"))).await.unwrap().data;
    assert_eq!(told, json!([{ "by": [], "down": false }, "a"]));
    for (order, note, place) in [(None, Some("a"), "order"), (Some(Order::default()), None, "note")] {
        let error = client.execute::<NoteParts>(parts(order, note)).await.unwrap_err();
        assert_eq!((error.code().as_str(), error.message()), ("VALIDATION_ERROR", &*replaced("`null` for", place)));
        assert_eq!(error.details()["violations"][0]["pointer"], format!("/{place}"));
    }
}

fn replaced(what: &str, place: &str) -> String {
    format!(
        "{what} `{place}` is not written in the request, so the server would use its default: leave it out for the default, or \
         give it a value"
    )
}

/// An object without members has the defaults of its properties, so that it may be the default itself.
#[tokio::test]
async fn an_empty_object_may_be_its_default() {
    let server = serve(HttpServer::new(registry())).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    client.add([Sort::SPEC]).unwrap();
    let usual = json!([{ "by": [], "down": false }, { "by": [], "down": true }]);
    for input in [json!({}), json!({ "order": {} })] {
        assert_eq!(client.call("shop.sort", input.clone()).await.unwrap().data, usual, "{input}");
    }
    let error = client.call("shop.sort", json!({ "then": {} })).await.unwrap_err();
    assert_eq!(error.message(), replaced("an empty", "then"));

    // Of a document, whose lists may have a text as their default.
    let text = json!({ "type": "array", "items": { "type": "string" }, "default": "" });
    let size = json!({ "type": "integer", "default": 20 });
    let page = json!({ "type": "object", "properties": { "size": size }, "default": { "size": 20 } });
    let mut binding = HttpBinding::owned("GET", "/described");
    binding.parameters = ["tags", "page"].map(HttpParameter::query).to_vec().into();
    let registry = Registry::new();
    registry.register(echo("described", binding, json!({ "tags": text, "page": page }))).unwrap();
    let specs = registry.list();
    let server = serve(HttpServer::new(registry)).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    client.add(specs).unwrap();
    let input = json!({ "tags": [], "page": {} });
    assert_eq!(client.call("read.described", input).await.unwrap().data, json!({}));
}

/// In this process and over HTTP, by the type and by hand.
#[tokio::test]
async fn a_null_is_not_an_absent_property() {
    let (registry, server) = (registry(), serve(HttpServer::new(registry())).await);
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    client.add([Patch::SPEC]).unwrap();
    for (owner, body, told) in [
        (None, json!({}), json!([1, "absent", "absent"])),
        (Some(None), json!({ "owner": null }), json!([1, null, "absent"])),
        (Some(Some("Ann".to_owned())), json!({ "owner": "Ann" }), json!([1, "Ann", "absent"])),
    ] {
        let input = PatchInput { owner, ..PatchInput::new(1) };
        assert_eq!(registry.execute::<Patch>(input.clone()).await.unwrap().data, told);
        assert_eq!(client.execute::<Patch>(input).await.unwrap().data, told);
        let answer = server.send("PATCH /pets/1", &["content-type: application/json"], &body.to_string()).await;
        assert_eq!((answer.status, answer.json()), (200, told.clone()));
        let mut by_id = body;
        by_id["id"] = json!(1);
        assert_eq!(client.call("shop.patch", by_id).await.unwrap().data, told);
    }
}
