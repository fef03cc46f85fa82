//! Who may find and call what, and how often.

use std::time::Duration;

use ops_runtime::access::Identity;
use ops_runtime::gateway::{CallerLimits, Rate};
use serde_json::json;

use crate::client::{Client, REVISIONS};
use crate::fixture::{Shop, owner, text, texts};

#[tokio::test]
async fn a_caller_finds_what_it_may_call() {
    let shop = Shop::new();
    for (identity, sees) in [(Identity::new("ann").with_scope("books:read"), true), (Identity::new("bob"), false)] {
        let gateway = shop.gateway().with_identity(identity).build().await.unwrap();
        let mut client = Client::connect(gateway.owned_mcp_server(), REVISIONS[0]).await;
        let found = client.call("search", json!({ "query": "add up what was sold" })).await;
        assert_eq!(text(&found).contains("books.total"), sees, "{found}");
        let described = client.call("describe", json!({ "id": "books.total" })).await;
        assert_eq!(described["isError"], json!(!sees), "{described}");
        let called = client.call("call", json!({ "id": "books.total" })).await;
        assert_eq!(text(&called) == "1200", sees, "{called}");
        assert!(!text(&called).contains("Adds up"), "{called}");
    }
}

#[tokio::test]
async fn a_caller_has_limits() {
    let limits = CallerLimits::new().with_rate(Rate::new(2, Duration::from_secs(60)));
    let gateway = Shop::new().gateway().with_limits(limits).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let show = json!({ "id": "shop.showPet", "input": { "petId": 7 } });
    for told in ["{\"id\":7", "{\"id\":7", "TOO_MANY_REQUESTS"] {
        let result = client.call("call", show.clone()).await;
        assert!(texts(&result)[0].starts_with(told), "{told}: {result}");
    }
    // Looking costs nothing.
    assert_eq!(client.call("search", json!({ "query": "pet" })).await["isError"], false);
}
