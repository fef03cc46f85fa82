//! Results that are too long for a model.

use ops_runtime::gateway::ResultLimits;
use serde_json::{Value, json};

use crate::fixture::{Shop, owner, texts};

/// What `call` is to be called with to read on; `None` at the end.
fn read_on(note: &str) -> Option<Value> {
    let (_, arguments) = note.split_once("`call` ")?;
    Some(serde_json::from_str(arguments).unwrap())
}

#[tokio::test]
async fn a_long_result_is_read_in_parts() {
    let gateway = Shop::new().gateway().with_results(ResultLimits::new().with_max_shown(8_000)).build().await.unwrap();
    let mut client = owner(&gateway).await;
    let mut result = client.call("call", json!({ "id": "shop.listPets" })).await;
    let mut ids = Vec::new();
    loop {
        let parts = texts(&result);
        assert!(parts[0].len() <= 8_000, "{} bytes", parts[0].len());
        let shown: Vec<Value> = serde_json::from_str(parts[0]).unwrap();
        ids.extend(shown.iter().filter_map(|pet| pet["id"].as_u64()));
        let Some(arguments) = parts.get(1).and_then(|note| read_on(note)) else { break };
        result = client.call("call", arguments).await;
    }
    // Each of them once.
    assert_eq!(ids, (0..2_000).collect::<Vec<u64>>());
    let wrong = client.call("call", json!({ "id": "results.read", "input": { "cursor": "x" } })).await;
    assert_eq!(wrong["isError"], true, "{wrong}");
}

#[tokio::test]
async fn what_is_wrong_with_reading_on_is_named() {
    let gateway = Shop::new().gateway().build().await.unwrap();
    let mut client = owner(&gateway).await;
    for (input, told) in [
        (json!({}), "needs the `cursor`"),
        (json!({ "cursr": "x" }), "no `cursr`: did you mean `cursor`?"),
        (json!({ "cursor": "x", "form": 3 }), "no `form`"),
        (json!({ "cursor": "x", "from": -1 }), "`from` of `results.read`"),
        (json!({ "cursor": 5 }), "`cursor` of `results.read`"),
        (json!({ "cursor": "x" }), "no result has this cursor"),
    ] {
        let wrong = client.call("call", json!({ "id": "results.read", "input": input })).await;
        assert!(texts(&wrong)[0].contains(told), "{input}: {wrong}");
        assert_eq!(wrong["isError"], true, "{wrong}");
    }
}
