//! Webhooks of a document as types: what a service sends is read as its document describes it, and checked as the results
//! of calls are.
#![allow(clippy::unwrap_used)]

use axum::http::HeaderMap;
use ops_runtime::ErrorCode;
use ops_runtime::registry::OutputPolicy;
use ops_runtime::webhooks::{self, WebhookVerifier};
use orders::webhooks::{Delivered, NewOrder, StockChanged};
use serde_json::json;

/// What the document becomes.
pub mod orders {
    ops_runtime::include_operations!("orders");
}

#[test]
fn a_verified_request_is_its_type() {
    let body = br#"{"id":7,"lines":[{"name":"apple","count":2}],"more":true}"#;
    let mut headers = HeaderMap::new();
    let signature = "0da9516f896fca45905e9dbec1bf42a128cf1e62b36a02a7fa3db9f25e646358";
    headers.insert("x-signature", signature.parse().unwrap());
    let verifier = WebhookVerifier::new("X-Signature", "s3cr3t").unwrap();
    verifier.verify(&headers, body).unwrap();
    assert!(verifier.verify(&headers, b"{}").is_err(), "it is the signature of another body");

    let order = webhooks::decode::<NewOrder>(body).unwrap();
    let orders::Order { id, lines, priority } = order.data;
    // The default is filled in, and what only responses have is there.
    assert_eq!((id, priority), (7, 3));
    assert_eq!(lines, [orders::Line { name: "apple".into(), count: 2 }]);
    assert_eq!((order.warnings, order.meta.source()), (Vec::new(), "local"));
    let delivered = webhooks::decode::<Delivered>(br#"{ "at": "noon" }"#).unwrap().data;
    assert_eq!((delivered.at.as_str(), delivered.tries), ("noon", 1));
}

#[test]
fn what_does_not_fit_is_repaired_and_told_or_an_error() {
    let told = |warnings: &[ops_runtime::envelope::Warning]| -> Vec<String> {
        warnings.iter().map(|warning| warning.pointer.clone()).collect()
    };
    // Two faults that convert.
    let body = br#"{"id":"7","lines":{"name":"apple","count":2}}"#;
    let order = webhooks::decode::<NewOrder>(body).unwrap();
    assert_eq!((order.data.id, order.data.lines.len()), (7, 1));
    assert_eq!(told(&order.warnings), ["/id", "/lines"]);
    let error = webhooks::decode_with::<NewOrder>(body, OutputPolicy::Strict).unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ValidationError);

    // One that converts, and two that do not.
    let body = br#"{"id":"7","lines":[{"name":"apple"},{"count":[]}]}"#;
    let error = webhooks::decode::<NewOrder>(body).unwrap_err();
    assert_eq!((error.code(), error.operation()), (&ErrorCode::ValidationError, Some("orders.newOrder")));
    assert!(error.message().starts_with("the webhook's payload does not fit its type: "), "{error}");
    assert_eq!(error.details()["raw"], json!({ "id": "7", "lines": [{ "name": "apple" }, { "count": [] }] }));
    let cast = webhooks::decode_with::<NewOrder>(body, OutputPolicy::Cast).unwrap();
    assert_eq!(cast.data.lines[1], orders::Line { name: String::new(), count: 0 });
    assert!(cast.warnings.len() >= 2, "{:?}", cast.warnings);

    // What is no JSON, what is of another kind, and what has nothing of a type whose properties are all optional.
    for (body, message) in [
        (&b"a=1&b=2"[..], "the webhook's payload is not JSON: "),
        (b"", "the webhook's payload is not JSON: "),
        (b"[]", "the webhook's payload is not what it should be: expected object, found array"),
        (b"{\"error\":\"no\"}", "the webhook's payload is not what it should be: "),
    ] {
        let error = webhooks::decode::<StockChanged>(body).unwrap_err();
        assert!(error.message().starts_with(message), "{error}");
        assert_eq!(error.code(), &ErrorCode::ValidationError);
    }
    assert_eq!(webhooks::decode::<StockChanged>(br#"{"pears":1}"#).unwrap().data.pears, Some(1));
}
