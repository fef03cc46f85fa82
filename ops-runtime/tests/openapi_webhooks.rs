//! Webhooks and callbacks of documents: what the API sends, as specs whose output is the payload.
#![cfg(feature = "openapi")]
#![allow(clippy::unwrap_used)]

use ops_runtime::openapi::{ReadOptions, read};
use ops_runtime::spec::{Api, Diagnostic};
use serde_json::{Value, json};

fn parsed(document: &Value) -> (Api, Vec<Diagnostic>) {
    read(document, &ReadOptions::new().with_namespace("shop")).unwrap()
}

fn sends(schema: Value) -> Value {
    json!({ "requestBody": { "content": { "application/json": { "schema": schema } } }, "responses": {} })
}

/// The name and the schema of each webhook.
fn webhooks(api: &Api) -> Vec<(&str, Value)> {
    api.webhooks.iter().map(|spec| (spec.name(), spec.output.to_value().unwrap().into_owned())).collect()
}

#[test]
fn webhooks_and_callbacks_are_read() {
    let (text, order) = (json!({ "type": "string" }), json!({ "$ref": "#/components/schemas/Order" }));
    let calls_back = |schema: &Value| {
        json!({ "responses": { "204": { "description": "x" } }, "callbacks": {
            "done": { "{$request.body#/url}": { "post": sends(schema.clone()) }, "x-own": 1 },
            "shared": { "$ref": "#/components/callbacks/Shared" },
        } })
    };
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Shop", "version": "2.1" },
        "paths": { "/a": { "put": calls_back(&text), "post": calls_back(&order) } },
        "webhooks": {
            "newOrder": { "summary": "Ordered", "post": sends(order.clone()), "delete": sends(text.clone()) },
            "aside": { "$ref": "#/components/pathItems/Aside" },
            "form": { "post": { "requestBody": { "content": { "application/x-www-form-urlencoded": {} } } } },
            "ping": { "get": { "responses": {} } },
            "lost": { "$ref": "#/nowhere" },
            "odd": 7,
            "x-own": { "post": sends(text.clone()) },
        },
        "components": {
            "schemas": { "Order": { "type": "object" } },
            "pathItems": { "Aside": { "post": { "requestBody": { "$ref": "#/components/requestBodies/Order" }, "deprecated": true } } },
            "requestBodies": { "Order": { "content": { "application/vnd.order+json": { "schema": order } } } },
            "callbacks": { "Shared": { "{$url}": { "post": sends(json!(true)) } } },
        },
    });
    let (api, diagnostics) = parsed(&document);
    let reference = json!({ "$ref": "#/$defs/Order" });
    assert_eq!(
        webhooks(&api),
        [
            ("newOrder", reference.clone()),
            ("newOrder_2", text.clone()),
            ("aside", reference.clone()),
            ("done", text),
            // One that two operations share is there once.
            ("shared", json!({})),
            ("post_a_done", reference),
        ]
    );
    assert_eq!(api.webhooks[0].title.as_deref(), Some("Ordered"));
    assert!(api.webhooks[2].deprecated && api.webhooks[0].version == "2.1");
    assert_eq!(api.webhooks[3].definitions, api.definitions);
    assert_eq!(api.operations.len(), 2);
    let told: Vec<_> = diagnostics.iter().map(|told| (told.pointer.as_str(), told.message.as_str())).collect();
    for (pointer, message) in [
        ("/webhooks/form/post/requestBody", "the webhook `form` does not send JSON"),
        ("/webhooks/ping/get", "the webhook `ping` sends no content"),
        ("/webhooks/lost", "`#/nowhere` does not exist"),
        ("/webhooks/odd", "this webhook is a number, not an object"),
    ] {
        assert!(told.contains(&(pointer, message)), "{pointer}: {told:#?}");
    }
}

#[test]
fn what_stands_beside_a_reference_counts() {
    let text = json!({ "type": "string" });
    let document = json!({
        "openapi": "3.2.0",
        "info": { "title": "Shop", "version": "1" },
        "paths": { "/a": { "get": { "responses": { "204": {} }, "callbacks": {
            "done": { "{$url}": { "$ref": "#/components/pathItems/Alias", "summary": "Done" } },
        } } } },
        "webhooks": {
            "sold": { "$ref": "#/components/pathItems/Alias", "summary": "Sold", "put": sends(json!({ "type": "integer" })) },
            "moved": { "additionalOperations": { "MOVE": sends(text.clone()) }, "fetch": {}, "post": 7 },
        },
        "components": { "pathItems": {
            "Alias": { "$ref": "#/components/pathItems/Target", "description": "Long.", "delete": sends(text.clone()) },
            "Target": { "post": sends(text.clone()), "put": sends(json!(true)), "summary": "Hidden" },
        } },
    });
    let (api, diagnostics) = parsed(&document);
    let texts: Vec<_> = api.webhooks.iter().map(|spec| (spec.name(), spec.title.as_deref())).collect();
    let sold = Some("Sold");
    assert_eq!(
        texts,
        [
            ("sold", sold),
            ("sold_2", sold),
            ("sold_3", sold),
            ("moved", None),
            ("done", Some("Done")),
            ("get_a_done", Some("Done")),
            ("get_a_done_2", Some("Done")),
        ]
    );
    let outputs: Vec<_> = webhooks(&api).into_iter().map(|(_, schema)| schema).take(4).collect();
    assert_eq!(outputs, [json!({ "type": "integer" }), text.clone(), text.clone(), text]);
    assert_eq!(&*api.webhooks[0].description, "Long.");
    let told: Vec<_> = diagnostics.iter().map(|told| (told.pointer.as_str(), told.message.as_str())).collect();
    for (pointer, message) in [
        ("/components/pathItems/Target/put", "`PUT sold` stands here twice"),
        ("/webhooks/moved/fetch", "`fetch` is not a method"),
        ("/webhooks/moved/post", "`POST moved` is a number, not an object"),
    ] {
        assert!(told.contains(&(pointer, message)), "{pointer}: {told:#?}");
    }
}

/// Many of 5,000 webhooks are there, and a diagnostic says how many are not.
fn assert_told(api: &Api, diagnostics: &[Diagnostic]) {
    let count = api.webhooks.len();
    let told = format!("{} webhooks were left out", 5_000 - count);
    assert!(count > 500 && diagnostics.iter().any(|diagnostic| diagnostic.message == told), "{count}");
}

#[test]
fn hostile_webhooks_cost_what_they_say() {
    // Many names of one request, each a copy of a large schema.
    let wide: serde_json::Map<String, Value> =
        (0..200).map(|at| (format!("p{at}"), json!({ "type": "string" }))).collect();
    let names: serde_json::Map<String, Value> =
        (0..5_000).map(|at| (format!("w{at}"), json!({ "$ref": "#/components/pathItems/P" }))).collect();
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "x", "version": "1" }, "webhooks": names,
        "components": { "pathItems": { "P": { "post": sends(json!({ "type": "object", "properties": wide })) } } },
    });
    let outputs = |api: &Api| webhooks(api).iter().map(|(_, schema)| schema.to_string().len()).sum::<usize>();
    let (api, diagnostics) = parsed(&document);
    assert_told(&api, &diagnostics);
    assert!(outputs(&api) < 20 * document.to_string().len() + (1 << 20), "{}", outputs(&api));
    // Requests of their own that share a body.
    let names: serde_json::Map<String, Value> = (0..5_000)
        .map(|at| (format!("w{at}"), json!({ "post": { "requestBody": { "$ref": "#/components/requestBodies/B" } } })))
        .collect();
    let body = sends(json!({ "type": "object", "properties": wide }))["requestBody"].clone();
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "x", "version": "1" }, "webhooks": names,
        "components": { "requestBodies": { "B": body } },
    });
    let (api, _) = parsed(&document);
    // When there is no room for more copies, they refer to one definition.
    assert_eq!(api.webhooks.len(), 5_000);
    assert!(outputs(&api) < 20 * document.to_string().len() + (1 << 20), "{}", outputs(&api));
    // Many names of many members, and many operations with one callback of many addresses.
    let aside: serde_json::Map<String, Value> = (0..3_000).map(|at| (format!("x-{at}"), json!(1))).collect();
    let names: serde_json::Map<String, Value> =
        (0..3_000).map(|at| (format!("w{at}"), json!({ "$ref": "#/components/pathItems/P" }))).collect();
    let paths: serde_json::Map<String, Value> = (0..3_000)
        .map(|at| {
            (
                format!("/{at}"),
                json!({ "get": { "responses": {}, "callbacks": { "c": { "$ref": "#/components/callbacks/C" } } } }),
            )
        })
        .collect();
    let addresses: serde_json::Map<String, Value> =
        (0..3_000).map(|at| (format!("a{at}"), json!({ "post": sends(json!({ "type": "string" })) }))).collect();
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "x", "version": "1" }, "webhooks": names, "paths": paths,
        "components": { "pathItems": { "P": aside }, "callbacks": { "C": addresses } },
    });
    let (api, diagnostics) = parsed(&document);
    assert_eq!(api.webhooks.len(), 3_000);
    assert!(diagnostics.iter().any(|told| told.message == "webhooks share more than 10000 requests"));
    // Many callbacks of their own that share a request.
    let callback = |at: usize| json!({ "$ref": "#/components/pathItems/P", "summary": at.to_string() });
    let own: serde_json::Map<String, Value> = (0..3_000).map(|at| (format!("a{at}"), callback(at))).collect();
    let many: serde_json::Map<String, Value> =
        ["get", "put", "post", "delete"].map(|method| (method.to_owned(), sends(json!(true)))).into_iter().collect();
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
        "paths": { "/a": { "get": { "responses": {}, "callbacks": { "c": own } } } },
        "components": { "pathItems": { "P": many } },
    });
    let (api, diagnostics) = parsed(&document);
    assert!((1_000..10_000).contains(&api.webhooks.len()), "{}", api.webhooks.len());
    assert!(diagnostics.iter().any(|told| told.message == "webhooks share more than 10000 requests"));
    // Names and shapes that are none.
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "x", "version": "1" },
        "paths": { "/a": { "get": { "responses": {}, "callbacks": { "a": [], "b": { "$ref": "#/paths/~1a/get/callbacks/b" }, "c": { "d": { "$ref": "#/x" } } } } } },
        "webhooks": { "": { "post": sends(json!({})) }, "a": { "post": [] }, "b": { "post": sends(json!({ "$ref": "#/webhooks/b" })) } },
    });
    let (api, diagnostics) = parsed(&document);
    assert!(api.webhooks.iter().all(|spec| spec.check_id().is_ok()) && !diagnostics.is_empty());
    let document = json!({ "openapi": "3.1.0", "info": { "title": "x", "version": "1" }, "webhooks": [1] });
    assert!(read(&document, &ReadOptions::new()).is_err(), "nothing is described");
}
