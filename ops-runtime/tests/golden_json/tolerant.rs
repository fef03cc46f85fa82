//! What is read beyond what is written.

use std::fmt::Debug;

use ops_runtime::access::{AccessControl, Identity};
use ops_runtime::content::{Annotations, ContentBlock, ResourceContent};
use ops_runtime::envelope::{HttpMeta, LocalMeta, McpMeta, ResponseMeta, is_response_envelope};
use ops_runtime::record::{from_str, from_value, to_value};
use ops_runtime::spec::OperationSpec;
use ops_runtime::{CallError, ResponseEnvelope};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Checks what `read` is written as.
#[track_caller]
fn becomes<T: DeserializeOwned + Serialize + Debug + PartialEq>(read: Value, written: Value) -> T {
    let value: T = from_value(&read).unwrap();
    assert_eq!(from_str::<T>(&read.to_string()).unwrap(), value);
    assert_eq!(to_value(&value).unwrap(), written);
    assert_eq!(from_value::<T>(&written).unwrap(), value);
    value
}

#[track_caller]
fn refused<T: DeserializeOwned + Debug>(json: Value, pointer: &str, message: &str) {
    let error = from_value::<T>(&json).unwrap_err();
    assert_eq!((error.pointer.as_str(), error.message.as_str()), (pointer, message));
}

#[test]
fn whatever_is_detected_as_an_envelope_is_read_as_one() {
    let metas = [
        json!({ "source": "local", "operationId": "a.b", "timestamp": 15 }),
        json!({ "source": "local", "operationId": "a.b", "timestamp": 1e3 }),
        json!({ "timestamp": 0, "operationId": "", "source": "local" }),
        json!({ "source": "http", "statusCode": 200 }),
        json!({ "source": "http", "statusCode": 200.0, "headers": null, "contentType": null, "setCookie": null }),
        json!({ "source": "http", "statusCode": 200, "headers": { "A": "1", "a": "2" }, "setCookie": [] }),
        json!({ "source": "http", "statusCode": 200, "event": { "type": "tick" } }),
        json!({ "source": "mcp", "isError": false, "content": [], "structuredContent": null, "_meta": null }),
        json!({ "source": "mcp", "isError": true, "content": [
            { "type": "text", "text": "a", "annotations": { "priority": 1.0, "new": null }, "new": { "a": [] } },
            { "type": "audio" },
            { "type": "resource", "resource": { "uri": "a:b", "text": null, "size": 3 } },
        ], "_meta": { "a": [null, 1.50] } }),
    ];
    for meta in metas {
        let envelope = json!({ "data": null, "meta": meta, "warnings": null });
        assert!(is_response_envelope(&envelope), "{envelope}");
        from_value::<ResponseEnvelope<()>>(&envelope).unwrap();
        from_value::<ResponseEnvelope<Option<u8>>>(&envelope).unwrap();
        from_value::<ResponseEnvelope<Value>>(&envelope).unwrap();
    }
}

#[test]
fn what_would_lose_a_member_is_no_envelope() {
    let local = || json!({ "source": "local", "operationId": "a.b", "timestamp": 1 });
    let http = || json!({ "source": "http", "statusCode": 200 });
    let mcp =
        |block: Value| json!({ "source": "mcp", "isError": false, "content": [{ "type": "text", "text": "" }, block] });
    let with = |mut meta: Value, name: &str, value: Value| {
        meta[name] = value;
        meta
    };
    let metas = [
        with(local(), "timestamp", json!(1.5)),
        with(local(), "timestamp", json!(-1)),
        with(local(), "page", json!(2)),
        with(local(), "page", json!(null)),
        with(local(), "statusCode", json!(200)),
        with(http(), "statusCode", json!(200.5)),
        with(http(), "statusCode", json!(70_000)),
        with(http(), "headers", json!({ "a": ["1", "2"] })),
        with(http(), "headers", json!({ "a": null })),
        with(http(), "contentType", json!(["a"])),
        with(http(), "reason", json!("OK")),
        with(http(), "event", json!({ "type": "tick", "id": "", "retry": null })),
        with(http(), "setCookie", json!("a=b")),
        mcp(json!(1)),
        mcp(json!({ "type": "hologram" })),
        mcp(json!({ "type": "text", "text": 7 })),
        with(mcp(json!({ "type": "text" })), "resultType", json!("complete")),
        with(mcp(json!({ "type": "text" })), "_meta", json!([])),
    ];
    for meta in metas {
        let value = json!({ "data": null, "meta": meta });
        assert!(!is_response_envelope(&value), "{value}");
    }
    let warning = json!({ "pointer": "", "expected": "a", "found": "b" });
    for (name, member) in [
        ("page", json!(2)),
        ("page", json!(null)),
        ("warnings", json!({})),
        ("warnings", json!([with(warning.clone(), "at", json!(null))])),
        ("warnings", json!([warning, { "pointer": "" }])),
    ] {
        let value = with(json!({ "data": 1, "meta": local() }), name, member);
        assert!(!is_response_envelope(&value), "{value}");
    }
    assert!(is_response_envelope(&json!({ "data": 1, "meta": local(), "warnings": [warning, warning] })));
    assert!(is_response_envelope(&json!({ "data": 1, "meta": local(), "warnings": [] })));
}

#[test]
fn an_envelope_that_is_none_is_an_error() {
    type Envelope = ResponseEnvelope<Option<u8>>;
    let meta = json!({ "source": "local", "operationId": "a.b", "timestamp": 1 });
    refused::<Envelope>(json!({ "meta": meta }), "", "missing field `data`");
    refused::<Envelope>(json!({ "data": 1 }), "", "missing field `meta`");
    refused::<Envelope>(json!({ "data": 256, "meta": meta }), "/data", "invalid value: integer `256`, expected u8");
    refused::<Envelope>(
        json!({ "data": 1, "meta": {} }),
        "/meta",
        "missing or unknown `source` of ResponseMeta, expected `local`, `http` or `mcp`",
    );
    let unknown = "missing or unknown `source` of ResponseMeta, expected `local`, `http` or `mcp`";
    refused::<Envelope>(json!({ "data": 1, "meta": { "source": "ftp" } }), "/meta", unknown);
    refused::<Envelope>(
        json!({ "data": 1, "meta": { "source": "local" } }),
        "/meta",
        "missing properties `operationId`, `timestamp` of LocalMeta",
    );
    assert!(from_value::<ResponseMeta>(&json!({ "source": 1, "operationId": "a.b", "timestamp": 1 })).is_err());
    assert!(from_value::<HttpMeta>(&json!({ "statusCode": 70_000 })).is_err());
    assert!(from_value::<Envelope>(&json!([1, meta])).is_err());
}

#[test]
fn unknown_members_are_passed_over_and_null_is_absent() {
    becomes::<LocalMeta>(
        json!({ "new": [{}], "operationId": "a.b", "timestamp": 1e3 }),
        json!({ "operationId": "a.b", "timestamp": 1000 }),
    );
    becomes::<HttpMeta>(
        json!({ "statusCode": 200, "headers": null, "event": {}, "ok": true }),
        json!({ "statusCode": 200, "headers": {}, "contentType": "", "event": { "type": "", "id": "" } }),
    );
    becomes::<AccessControl>(
        json!({ "requiredScopes": [], "requiredScopesAny": null, "resourceType": null, "customAuth": "f" }),
        json!({ "requiredScopes": [] }),
    );
    becomes::<Identity>(json!({ "id": "a", "scopes": [], "resources": {} }), json!({ "id": "a", "scopes": [] }));
    becomes::<CallError>(
        json!({ "code": "ABORTED", "message": "", "details": null, "stack": "" }),
        json!({ "code": "ABORTED", "message": "" }),
    );
    becomes::<OperationSpec>(
        json!({
            "name": "b", "namespace": "a", "version": "1", "type": "query", "description": "", "title": null,
            "inputSchema": true, "outputSchema": {}, "accessControl": { "requiredScopes": [] }, "binding": null,
            "timeout": 12.5, "errorSchemas": [], "tags": null, "deprecated": false, "handler": null, "_meta": null,
        }),
        json!({
            "name": "b", "namespace": "a", "version": "1", "type": "query", "description": "",
            "inputSchema": {}, "outputSchema": {}, "accessControl": { "requiredScopes": [] }, "timeout": 12,
        }),
    );
}

#[test]
fn rules_that_got_lost_are_not_no_rules() {
    refused::<AccessControl>(json!({}), "", "missing property `requiredScopes` of AccessControl");
    assert!(from_value::<AccessControl>(&json!({ "requiredScopes": null })).is_err());
}

#[test]
fn an_mcp_answer_is_read_as_servers_send_it() {
    let meta = becomes::<McpMeta>(
        json!({ "content": [], "structuredContent": null, "_meta": null }),
        json!({ "isError": false, "content": [], "structuredContent": null }),
    );
    assert_eq!(meta.structured_content, Some(Value::Null));
    assert_eq!(becomes::<McpMeta>(json!({}), json!({ "isError": false, "content": [] })).structured_content, None);
}

#[test]
fn a_block_that_lacks_something_gets_it() {
    let lacks = [
        (json!({ "type": "text" }), json!({ "type": "text", "text": "" })),
        (
            json!({ "type": "image", "data": "aGk=", "annotations": null }),
            json!({ "type": "image", "data": "aGk=", "mimeType": "application/octet-stream" }),
        ),
        (
            json!({ "type": "audio", "data": null, "mimeType": null }),
            json!({ "type": "audio", "data": "", "mimeType": "audio/octet-stream" }),
        ),
        (
            json!({ "type": "resource", "resource": { "text": "a", "blob": null } }),
            json!({ "type": "resource", "resource": { "uri": "", "text": "a" } }),
        ),
        (json!({ "type": "resource_link" }), json!({ "type": "resource_link", "uri": "", "name": "" })),
    ];
    for (read, written) in lacks {
        becomes::<ContentBlock>(read, written);
    }
}

#[test]
fn an_optional_member_of_a_wrong_type_stays() {
    for block in [
        json!({ "type": "text", "text": "a", "annotations": "loud" }),
        json!({ "type": "text", "text": "a", "annotations": { "audience": ["user", 1], "priority": "high" } }),
        json!({ "type": "resource_link", "uri": "a", "name": "b", "description": ["c"], "mimeType": 1, "size": null }),
        json!({ "type": "resource", "resource": { "uri": "a", "blob": [0, 1], "text": 1, "mimeType": {} } }),
    ] {
        becomes::<ContentBlock>(block.clone(), block);
    }
    // What is set later wins over what stayed.
    let mut block: ContentBlock =
        from_value(&json!({ "type": "text", "text": "a", "annotations": 1, "extra": 2 })).unwrap();
    if let ContentBlock::Text(text) = &mut block {
        text.annotations = Some(Annotations::default());
        text.extra.insert("text".into(), json!("b"));
    }
    assert_eq!(to_value(&block).unwrap(), json!({ "type": "text", "text": "a", "annotations": {}, "extra": 2 }));
}

#[test]
fn what_is_no_block_becomes_text() {
    for value in [
        json!({ "type": "video", "codec": "av1" }),
        json!({ "text": "no type" }),
        json!({ "type": null }),
        json!({ "type": "text", "text": 7 }),
        json!({ "type": "image", "data": "", "mimeType": ["image/png"] }),
        json!({ "type": "resource" }),
        json!({ "type": "resource", "resource": "file:///a" }),
        json!({ "type": "resource", "resource": { "uri": 1 } }),
        json!("text"),
        json!(null),
        json!([1]),
    ] {
        let written = json!({ "type": "text", "text": value.to_string() });
        becomes::<ContentBlock>(value, written);
    }
    assert!(from_value::<ResourceContent>(&json!({ "uri": 1 })).is_err());
    assert!(from_value::<Annotations>(&json!([])).is_err());
}

#[test]
fn a_priority_that_is_no_number_is_not_written() {
    let mut annotations = Annotations::default();
    annotations.priority = Some(f64::NAN);
    assert_eq!(to_value(&annotations).unwrap(), json!({}));
}
