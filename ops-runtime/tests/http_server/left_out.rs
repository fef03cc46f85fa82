//! Lists, objects and optional properties of functions that are left out of a request.

use std::collections::{BTreeMap, BTreeSet};

use ops_runtime::serve::HttpServer;
use ops_runtime::{HttpClient, HttpConfig, Operation, Registry, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fixture::serve;

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

fn registry() -> Registry {
    let registry = Registry::new();
    registry.register(Find).unwrap();
    registry.register(Count).unwrap();
    registry.register(Show).unwrap();
    registry.register(Patch).unwrap();
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
