//! `Registry::discover`.

use ops_runtime::{Registry, operation};
use serde_json::json;

mod private {
    use super::operation;

    #[operation(namespace = "discovery")]
    async fn hidden(n: u8) -> u8 {
        n
    }
}

#[test]
fn operations_in_fn_bodies_are_operations() {
    #[operation(namespace = "discovery")]
    async fn local() {}
    let _ = Local;
}

#[tokio::test]
async fn everything_linked_in_is_found() {
    let registry = crate::with_all_state();
    registry.discover().unwrap();
    assert_eq!(registry.call("discovery.hidden", json!({ "n": 3 })).await.unwrap().into_data(), json!(3));
    assert!(registry.spec("discovery.local").is_some());
    // A spec without a handler is not a registration.
    assert!(registry.spec("shop.Adopt").is_none());
    let error = Registry::new().discover().unwrap_err();
    assert!(error.to_string().contains("state"), "{error}");
}
