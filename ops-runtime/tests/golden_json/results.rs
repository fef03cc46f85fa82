//! Envelopes, metas, content blocks and errors.

use ops_runtime::access::{AccessControl, Identity};
use ops_runtime::content::{Annotations, ContentBlock, EmbeddedResource, ResourceContent, ResourceLink, TextContent};
use ops_runtime::envelope::{EventMeta, HttpMeta, LocalMeta, McpMeta, ResponseMeta, Warning};
use ops_runtime::spec::{ErrorDefinition, Schema};
use ops_runtime::{CallError, ErrorCode, ResponseEnvelope, wire};
use serde_json::{Map, Value, json};

use super::golden::{check, refused};

fn members(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A `LocalMeta` has no constructor of its own: the time is that of the call.
fn local() -> LocalMeta {
    match ResponseEnvelope::local((), "math.double").meta {
        ResponseMeta::Local(mut meta) => {
            meta.timestamp = 1_700_000_000_123;
            meta
        }
        _ => unreachable!(),
    }
}

fn http_most() -> HttpMeta {
    let mut meta = HttpMeta::new(201, "application/json; charset=utf-8");
    meta.headers.insert("content-type".into(), "application/json; charset=utf-8".into());
    meta.headers.insert("vary".into(), "accept, origin".into());
    meta.set_cookie = vec!["a=1; Path=/".into(), "b=2".into()];
    meta
}

fn http_retried() -> HttpMeta {
    let mut meta = HttpMeta::new(200, "application/json").with_header("etag", "7");
    meta.retries = Some(2);
    meta
}

fn http_event() -> HttpMeta {
    let mut meta = HttpMeta::new(200, "text/event-stream");
    meta.event = Some(EventMeta::new("message", "42"));
    meta
}

fn mcp_most() -> McpMeta {
    let mut meta = McpMeta::new(true, vec![ContentBlock::text("no such city")]);
    meta.structured_content = Some(json!({ "result": [1, "two", null] }));
    meta.meta = Some(members(json!({ "progressToken": 7 })));
    meta
}

fn mcp_null() -> McpMeta {
    let mut meta = McpMeta::new(false, vec![]);
    meta.structured_content = Some(Value::Null);
    meta
}

#[test]
fn metas() {
    check("local_meta.json", "{}", &[("only", local())]);
    let http = [
        ("least", HttpMeta::new(204, "")),
        ("most", http_most()),
        ("event", http_event()),
        ("retried", http_retried()),
    ];
    check("http_meta.json", "{}", &http);
    let mcp = [("least", McpMeta::new(false, vec![])), ("most", mcp_most()), ("structured null", mcp_null())];
    check("mcp_meta.json", "{}", &mcp);

    let metas: Vec<(&str, ResponseMeta)> = vec![
        ("local", local().into()),
        ("http", HttpMeta::new(204, "").into()),
        ("http with everything", http_most().into()),
        ("http event", http_event().into()),
        ("mcp", McpMeta::new(false, vec![]).into()),
        ("mcp with everything", mcp_most().into()),
        ("mcp with structured null", mcp_null().into()),
    ];
    check("response_meta.json", wire::RESPONSE_META_SCHEMA, &metas);
    check("response_meta.json", r#"{"required":["source"]}"#, &metas);
    let schemas =
        [("local", wire::LOCAL_META_SCHEMA), ("http", wire::HTTP_META_SCHEMA), ("mcp", wire::MCP_META_SCHEMA)];
    for (source, schema) in schemas {
        for (_, meta) in &metas {
            let json = serde_json::to_value(meta).unwrap();
            assert_eq!(super::golden::validator(schema).is_valid(&json), meta.source() == source, "{json}");
        }
    }
    refused(
        wire::RESPONSE_META_SCHEMA,
        &[
            json!(null),
            json!({}),
            json!({ "source": "carrier pigeon" }),
            json!({ "source": "local", "operationId": "a.b" }),
            json!({ "source": "local", "operationId": 1, "timestamp": 1 }),
            json!({ "source": "http", "statusCode": "200", "headers": {}, "contentType": "" }),
            json!({ "source": "http", "statusCode": 200, "headers": { "a": ["b"] }, "contentType": "" }),
            json!({ "source": "http", "statusCode": 200, "headers": {}, "contentType": "", "event": { "id": "1" } }),
            json!({ "source": "mcp", "isError": false }),
            json!({ "source": "mcp", "isError": false, "content": [{ "type": "video" }] }),
        ],
    );
}

#[test]
fn envelopes() {
    let mut warned = ResponseEnvelope::http(json!({ "id": 0 }), http_most());
    warned.warnings = vec![
        Warning::new("/id", "integer", "string"),
        Warning::new("", "no property `secret`", "object"),
        Warning::new("/a~1b/0", "string", "absent"),
    ];
    check(
        "response_envelope.json",
        wire::RESPONSE_ENVELOPE_SCHEMA,
        &[
            ("local", ResponseEnvelope::new(json!([1, "two", { "three": null }]), local())),
            ("null", ResponseEnvelope::new(Value::Null, local())),
            ("http with warnings", warned),
            ("event", ResponseEnvelope::http(json!("tick"), http_event())),
            ("mcp", ResponseEnvelope::mcp(json!([{ "text": "no such city", "type": "text" }]), mcp_most())),
            ("mcp with structured null", ResponseEnvelope::mcp(Value::Null, mcp_null())),
        ],
    );
    check("unit_envelope.json", wire::RESPONSE_ENVELOPE_SCHEMA, &[("unit", ResponseEnvelope::new((), local()))]);
    let meta = json!({ "source": "local", "operationId": "a.b", "timestamp": 1 });
    refused(
        wire::RESPONSE_ENVELOPE_SCHEMA,
        &[
            json!([]),
            json!({ "meta": meta }),
            json!({ "data": 1 }),
            json!({ "data": 1, "meta": {} }),
            json!({ "data": 1, "meta": meta, "warnings": null }),
            json!({ "data": 1, "meta": meta, "warnings": [{ "pointer": "" }] }),
        ],
    );
}

#[test]
fn content_blocks() {
    let mut annotations = Annotations::default();
    annotations.audience = Some(vec!["user".into(), "assistant".into()]);
    annotations.priority = Some(0.25);
    annotations.last_modified = Some("2025-06-18T00:00:00Z".into());
    annotations.extra = members(json!({ "colour": "red" }));
    let mut important = Annotations::default();
    important.priority = Some(1.0);

    let mut text = TextContent::default();
    text.text = "héllo\n".into();
    text.annotations = Some(annotations.clone());
    text.extra = members(json!({ "_meta": { "a": [1, 2.5] }, "new": null }));

    let ContentBlock::Image(mut image) = ContentBlock::image("aGk=", "image/png") else { unreachable!() };
    image.annotations = Some(important.clone());
    image.extra = members(json!({ "width": 16 }));

    let mut page = ResourceContent::default();
    page.uri = "file:///a.txt".into();
    page.mime_type = Some("text/plain".into());
    page.text = Some("a".into());
    page.extra = members(json!({ "_meta": {} }));
    let mut blob = ResourceContent::default();
    blob.uri = "file:///a.bin".into();
    blob.blob = Some("AAE=".into());
    let mut bare = ResourceContent::default();
    bare.uri = "x:y".into();
    let embedded = |resource: &ResourceContent, annotations| {
        let mut block = EmbeddedResource::default();
        block.resource = resource.clone();
        block.annotations = annotations;
        ContentBlock::Resource(block)
    };
    let mut link = ResourceLink::default();
    link.uri = "file:///b".into();
    link.name = "b".into();
    let short = link.clone();
    link.description = Some("the letter b".into());
    link.mime_type = Some("text/plain".into());
    link.annotations = Some(Annotations::default());
    link.extra = members(json!({ "size": 3, "title": "B" }));

    check("resource_content.json", "{}", &[("text", page.clone()), ("blob", blob.clone()), ("bare", bare.clone())]);
    check(
        "annotations.json",
        "{}",
        &[("none", Annotations::default()), ("most", annotations), ("important", important.clone())],
    );
    check(
        "content_block.json",
        wire::CONTENT_BLOCK_SCHEMA,
        &[
            ("text", ContentBlock::text("hello")),
            ("text with everything", ContentBlock::Text(text)),
            ("image", ContentBlock::image("", "image/png")),
            ("image with everything", ContentBlock::Image(image)),
            ("audio", ContentBlock::audio("AAAA", "audio/wav")),
            ("resource text", embedded(&page, Some(important))),
            ("resource blob", embedded(&blob, None)),
            ("resource bare", embedded(&bare, None)),
            ("link", ContentBlock::ResourceLink(short)),
            ("link with everything", ContentBlock::ResourceLink(link)),
            ("unknown kind", ContentBlock::text(r#"{"codec":"av1","type":"video"}"#)),
        ],
    );
    refused(
        wire::CONTENT_BLOCK_SCHEMA,
        &[
            json!("text"),
            json!({ "type": "text" }),
            json!({ "text": "a" }),
            json!({ "type": "video", "text": "a" }),
            json!({ "type": "image", "data": "" }),
            json!({ "type": "resource", "resource": {} }),
            json!({ "type": "resource_link", "uri": "a" }),
            json!({ "type": "text", "text": "a", "annotations": { "priority": "high" } }),
        ],
    );
}

#[test]
fn errors() {
    check(
        "call_error.json",
        wire::CALL_ERROR_SCHEMA,
        &[
            ("least", CallError::new("TIMEOUT", "")),
            ("domain", CallError::new("OUT_OF_STOCK", "no pets left").with_details(json!({ "left": 0 }))),
            ("empty details", CallError::execution("HTTP 500").with_details(json!({}))),
            ("tool", CallError::new(ErrorCode::ToolError, "no").with_mcp_meta(mcp_most()).with_details(json!(["no"]))),
        ],
    );
    refused(wire::CALL_ERROR_SCHEMA, &[json!("no"), json!({ "code": "A" }), json!({ "code": 1, "message": "" })]);
    check(
        "error_code.json",
        r#"{"type":"string"}"#,
        &[("standard", ErrorCode::OperationNotFound), ("domain", ErrorCode::Domain("OUT_OF_STOCK".into()))],
    );
    check(
        "error_definition.json",
        wire::ERROR_DEFINITION_SCHEMA,
        &[
            ("least", ErrorDefinition::new("GONE")),
            (
                "most",
                ErrorDefinition::new("OUT_OF_STOCK")
                    .with_description("No pets left.")
                    .with_http_status(409)
                    .with_schema(Schema::text(r#"{ "type": "object" }"#)),
            ),
            ("never", ErrorDefinition::new("NEVER").with_schema(Schema::text("false"))),
        ],
    );
    refused(wire::ERROR_DEFINITION_SCHEMA, &[json!({ "code": "A", "description": "", "schema": 1 }), json!({})]);
}

#[test]
fn access() {
    let scopes = &["a:read", "b"];
    check(
        "access_control.json",
        wire::ACCESS_CONTROL_SCHEMA,
        &[
            ("none", AccessControl::NONE),
            ("most", AccessControl::NONE.with_scopes(scopes).with_scopes_any(scopes).with_resource("pet", "feed")),
        ],
    );
    let half = |member: &str| json!({ "requiredScopes": [], member: "pet" });
    let wrong = [json!({}), json!({ "requiredScopes": "a" }), half("resourceType"), half("resourceAction")];
    refused(wire::ACCESS_CONTROL_SCHEMA, &wrong);
    check(
        "identity.json",
        wire::IDENTITY_SCHEMA,
        &[
            ("least", Identity::new("ann")),
            (
                "most",
                Identity::new("bob").with_scope("a:read").with_resource("pet:7", "feed").with_resource("pet:7", "pat"),
            ),
        ],
    );
    refused(wire::IDENTITY_SCHEMA, &[json!({ "id": "a" }), json!({ "id": 1, "scopes": [] })]);
}
