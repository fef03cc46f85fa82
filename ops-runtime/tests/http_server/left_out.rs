//! Lists and objects of functions that are left out of a request.

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

fn registry() -> Registry {
    let registry = Registry::new();
    registry.register(Find).unwrap();
    registry.register(Count).unwrap();
    registry.register(Show).unwrap();
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
