//! Results that say nothing of what their schema declares: no empty result and no list of one item is made of them.

use serde::{Deserialize, Serialize};

use super::accepted::Echo;
use super::*;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    id: Option<i64>,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Page {
    data: Option<Row>,
    note: Option<String>,
    items: Option<Vec<Row>>,
    tags: Option<Vec<String>>,
    numbers: Option<Vec<i64>>,
    flags: Option<Vec<bool>>,
    #[serde(default)]
    status: String,
}

operation!(Show: Value => Page, Call, OperationSpec::query("pages.show").with_output(Schema::text(
    r#"{"type":"object","properties":{
        "data":{"type":"object","properties":{"id":{"type":"integer"}}},
        "note":{"type":["string","null"]},
        "items":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"}}}},
        "tags":{"type":"array","items":{"type":"string"}},
        "numbers":{"type":"array","items":{"type":"integer"}},
        "flags":{"type":"array","items":{"type":"boolean"}},
        "status":{"type":"string","default":"active"}}}"#,
)));

/// The data of a result, or the message of the error.
fn told<T>(result: &Result<T, CallError>) -> Result<&T, &str> {
    result.as_ref().map_err(CallError::message)
}

/// The results of a call by type and of one by id. A result that is a value and one that is text give the same.
async fn both(policy: OutputPolicy, result: &Value) -> (Result<Page, CallError>, Result<Value, CallError>) {
    let mut outcomes = Vec::new();
    for handler in [Handler::dynamic(|value, _| async { Ok(value) }), Handler::endpoint(Echo)] {
        let registry = Registry::builder().with_policy(policy).build();
        registry.register(Registration::new(Show::SPEC, handler)).unwrap();
        let typed = registry.execute::<Show>(result.clone()).await.map(|envelope| envelope.data);
        outcomes.push((typed, registry.call("pages.show", result.clone()).await.map(|envelope| envelope.data)));
    }
    let (text, value) = (outcomes.pop().unwrap(), outcomes.pop().unwrap());
    assert_eq!((told(&text.0), told(&text.1)), (told(&value.0), told(&value.1)), "{result}");
    text
}

#[tokio::test]
async fn an_error_object_with_a_property_that_is_null_is_no_result() {
    for result in [
        json!({ "error": "not found" }),
        json!({ "data": null, "error": "not found" }),
        json!({ "error": "not found", "items": null, "data": null }),
        json!({ "data": null, "error": null, "code": 404 }),
    ] {
        for policy in [OutputPolicy::Repair, OutputPolicy::Strict] {
            let (typed, by_id) = both(policy, &result).await;
            for error in [typed.unwrap_err(), by_id.unwrap_err()] {
                assert_eq!((error.code(), &error.details()["raw"]), (&ErrorCode::ValidationError, &result), "{error}");
                assert!(error.message().ends_with("found an object with none of them"), "{policy:?}: {error}");
            }
        }
    }
    // Here nothing else was sent, or `null` is what the schema has.
    for (result, expected) in [
        (json!({}), json!({ "status": "active" })),
        (json!({ "data": null }), json!({ "status": "active" })),
        (json!({ "data": null, "error": null }), json!({ "status": "active" })),
        (json!({ "note": null, "error": "x" }), json!({ "note": null, "status": "active" })),
        (json!({ "data": { "id": null }, "error": "x" }), json!({ "data": {}, "status": "active" })),
    ] {
        let (typed, by_id) = both(OutputPolicy::Repair, &result).await;
        assert_eq!(by_id.unwrap(), expected, "{result}");
        let data = expected.get("data").map(|_| Row::default());
        assert_eq!(Page { status: String::new(), ..typed.unwrap() }, Page { data, ..Page::default() }, "{result}");
    }
}

#[tokio::test]
async fn a_list_is_not_made_of_what_is_no_item() {
    for member in [
        // What languages without lists write for one with gaps, and errors.
        json!({ "items": { "3": { "id": 1 }, "7": { "id": 2 } } }),
        json!({ "items": { "error": "quota" } }),
        // What stands for no list.
        json!({ "tags": false }),
        json!({ "tags": 0 }),
        json!({ "tags": "" }),
        json!({ "numbers": "" }),
        json!({ "numbers": false }),
        json!({ "flags": 0 }),
        json!({ "flags": 1 }),
    ] {
        let (typed, by_id) = both(OutputPolicy::Repair, &member).await;
        let error = typed.unwrap_err();
        assert_eq!((error.code(), &error.details()["raw"]), (&ErrorCode::ValidationError, &member), "{error}");
        let mut expected = member.clone();
        expected["status"] = json!("active");
        assert_eq!(by_id.unwrap(), expected);
    }
    for (member, expected) in [
        (json!({ "items": { "id": 1, "more": 2 } }), json!({ "items": [{ "id": 1 }], "status": "active" })),
        (json!({ "tags": "a" }), json!({ "tags": ["a"], "status": "active" })),
        (json!({ "tags": 7 }), json!({ "tags": ["7"], "status": "active" })),
        (json!({ "tags": 1 }), json!({ "tags": ["1"], "status": "active" })),
        (json!({ "flags": false }), json!({ "flags": [false], "status": "active" })),
        (json!({ "numbers": "7" }), json!({ "numbers": [7], "status": "active" })),
        (json!({ "numbers": 0 }), json!({ "numbers": [0], "status": "active" })),
    ] {
        let (typed, by_id) = both(OutputPolicy::Repair, &member).await;
        assert_eq!(by_id.unwrap(), expected, "{member}");
        let page: Page = serde_json::from_value(expected).unwrap();
        assert_eq!(Page { status: "active".to_owned(), ..typed.unwrap() }, page, "{member}");
    }
}
