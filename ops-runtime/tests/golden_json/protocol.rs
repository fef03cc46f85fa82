//! The schemas as such, and the JSON of call events and transport frames.

use std::collections::BTreeMap;

use ops_runtime::wire;
use serde_json::{Value, json};

use super::golden::{refused, reversed, validator};

#[test]
fn every_schema_is_valid_and_holds_just_what_it_needs() {
    let schemas = [
        wire::RESPONSE_ENVELOPE_SCHEMA,
        wire::RESPONSE_META_SCHEMA,
        wire::LOCAL_META_SCHEMA,
        wire::HTTP_META_SCHEMA,
        wire::MCP_META_SCHEMA,
        wire::CONTENT_BLOCK_SCHEMA,
        wire::CALL_ERROR_SCHEMA,
        wire::ERROR_DEFINITION_SCHEMA,
        wire::ACCESS_CONTROL_SCHEMA,
        wire::IDENTITY_SCHEMA,
        wire::OPERATION_SPEC_SCHEMA,
        wire::CALL_REQUESTED_SCHEMA,
        wire::CALL_RESPONDED_SCHEMA,
        wire::CALL_COMPLETED_SCHEMA,
        wire::CALL_ABORTED_SCHEMA,
        wire::CALL_ERROR_EVENT_SCHEMA,
        wire::CALL_EVENT_SCHEMA,
        wire::LINK_FRAME_SCHEMA,
    ];
    for schema in schemas {
        validator(schema);
        let json: Value = serde_json::from_str(schema).unwrap();
        for name in json["$defs"].as_object().unwrap().keys() {
            let reference = format!("\"#/$defs/{name}\"");
            assert!(schema.contains(&reference), "{name} is not used in {schema}");
        }
        for reference in schema.split("\"#/$defs/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(json["$defs"].get(name).is_some(), "{name} is missing in {schema}");
        }
    }
}

#[test]
fn call_events() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/json/call_event.json");
    let golden: BTreeMap<String, Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let payloads = [
        ("call.requested", wire::CALL_REQUESTED_SCHEMA),
        ("call.responded", wire::CALL_RESPONDED_SCHEMA),
        ("call.completed", wire::CALL_COMPLETED_SCHEMA),
        ("call.aborted", wire::CALL_ABORTED_SCHEMA),
        ("call.error", wire::CALL_ERROR_EVENT_SCHEMA),
    ];
    let event = validator(wire::CALL_EVENT_SCHEMA);
    for (name, json) in &golden {
        event.validate(json).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(json["id"], json["payload"]["requestId"], "{name}");
        let (_, schema) = payloads.iter().find(|(kind, _)| *kind == json["type"]).unwrap();
        assert!(validator(schema).is_valid(&json["payload"]), "{name}");
        // No payload is without its request, whatever the event.
        let mut lost = json.clone();
        lost["payload"].as_object_mut().unwrap().remove("requestId");
        assert!(!event.is_valid(&lost), "{name}");
        for member in ["type", "id", "payload"] {
            let mut lacking = json.clone();
            lacking.as_object_mut().unwrap().remove(member);
            assert!(!event.is_valid(&lacking), "{name} without {member}");
        }
    }
    for (kind, _) in payloads {
        assert!(golden.values().any(|json| json["type"] == kind), "no {kind}");
    }
    let of = |kind: &str, payload: Value| json!({ "type": kind, "id": "1", "payload": payload });
    refused(
        wire::CALL_EVENT_SCHEMA,
        &[
            of("call.lost", json!({ "requestId": "1" })),
            of("call.requested", json!({ "requestId": "1", "operationId": "a.b" })),
            of("call.requested", json!({ "requestId": "1", "operationId": "a.b", "input": 1, "deadline": "soon" })),
            of("call.requested", json!({ "requestId": "1", "operationId": "a.b", "input": 1, "identity": {} })),
            of("call.responded", json!({ "requestId": "1", "output": 7 })),
            of("call.responded", json!({ "requestId": "1", "output": { "data": 7, "meta": { "source": "ftp" } } })),
            of("call.error", json!({ "requestId": "1", "code": "TIMEOUT" })),
        ],
    );
}

fn golden(file: &str) -> BTreeMap<String, Value> {
    let path = format!("{}/tests/golden/json/{file}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Reads and writes frames; members come in any order, and newer versions may add some.
#[cfg(feature = "registry")]
#[test]
fn frames_both_ways() {
    use ops_runtime::call::{CallEvent, Frame};

    let (events, frames) = (golden("call_event.json"), golden("link_frame.json"));
    let link = validator(wire::LINK_FRAME_SCHEMA);
    for (name, json) in &frames {
        link.validate(json).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for (name, json) in events.iter().chain(&frames) {
        let mut newer = json.clone();
        newer["newMember"] = json!([1]);
        newer["payload"]["newMember"] = json!({ "a": null });
        for text in [json.to_string(), reversed(json), newer.to_string(), reversed(&newer)] {
            let frame = Frame::decode(&text).unwrap_or_else(|error| panic!("{name}: {error}")).unwrap();
            let written: Value = serde_json::from_str(&frame.encode().unwrap()).unwrap();
            assert_eq!(written, *json, "{name}");
            assert_eq!(frame.request_id().map(|id| &**id), json["id"].as_str(), "{name}");
        }
        let from_value: Frame = ops_runtime::record::from_value(json).unwrap();
        assert_eq!(serde_json::to_value(&from_value).unwrap(), *json, "{name}");
    }
    for (name, json) in &events {
        let event: CallEvent = ops_runtime::record::from_str(&json.to_string()).unwrap();
        assert_eq!(serde_json::to_value(&event).unwrap(), *json, "{name}");
    }
    // The order of the members is part of what is written: a reader that knows the type first need not keep anything.
    let text = events["requested call"].to_string();
    assert!(
        Frame::decode(&text).unwrap().unwrap().encode().unwrap().starts_with(r#"{"type":"call.requested","id":"r2","#)
    );
}

#[cfg(feature = "registry")]
#[test]
fn what_is_no_frame() {
    use ops_runtime::call::Frame;

    // A newer version may give all members but the type another form.
    let long = format!(r#"{{"type":"link.sing","id":"{}","payload":{{}}}}"#, "i".repeat(1_025));
    for newer in [
        r#"{"type":"link.sing","payload":{}}"#,
        r#"{"payload":{"a":1},"id":"x","type":"call.paused"}"#,
        r#"{"type":"link.sing"}"#,
        r#"{"type":"link.sing","id":7,"payload":[]}"#,
        r#"{"id":{},"type":"link.sing"}"#,
        &long,
    ] {
        assert_eq!(Frame::decode(newer).unwrap(), None, "{newer}");
    }
    let malformed = [
        ("", None, None),
        ("[1]", None, None),
        ("{", None, None),
        (r#"{"id":"r1"}"#, None, Some("r1")),
        (r#"{"type":"call.aborted","id":"r1"}"#, Some("call.aborted"), Some("r1")),
        (r#"{"type":"call.aborted","id":7}"#, Some("call.aborted"), None),
        (r#"{"type":"link.sing","payload":{"#, None, None),
        (r#"{"type":"call.requested","id":"r1","payload":{"requestId":"r1"}}"#, Some("call.requested"), Some("r1")),
        (r#"{"payload":{"requestId":7},"type":"call.aborted","id":"r1"}"#, Some("call.aborted"), Some("r1")),
        (r#"{"type":"call.aborted","id":"r1","payload":{"requestId":"r2"}}"#, Some("call.aborted"), Some("r1")),
        (
            r#"{"type":"call.responded","id":"r1","payload":{"requestId":"r1","output":{"data":1}}}"#,
            Some("call.responded"),
            Some("r1"),
        ),
    ];
    for (text, kind, id) in malformed {
        let error = Frame::decode(text).unwrap_err();
        assert_eq!((error.kind.as_deref(), error.request_id.as_deref()), (kind, id), "{text}: {error}");
    }
}

#[cfg(feature = "registry")]
#[test]
fn ids_have_a_limit() {
    use ops_runtime::call::Frame;

    let requested = |head: &str, id: &str, parent: &str| {
        json!({
            "type": "call.requested", "id": head,
            "payload": { "requestId": id, "operationId": "a.b", "input": 1, "parentRequestId": parent },
        })
    };
    let (most, long) = ("i".repeat(1_024), "i".repeat(1_025));
    for text in [requested(&most, &most, &most).to_string(), reversed(&requested(&most, &most, &most))] {
        assert!(Frame::decode(&text).unwrap().is_some());
    }
    for (json, id) in [
        (requested(&long, &long, "p"), None),
        (requested("1", &long, "p"), Some("1")),
        (requested("1", "1", &long), Some("1")),
    ] {
        for text in [json.to_string(), reversed(&json)] {
            let error = Frame::decode(&text).unwrap_err();
            // The type is known, so that whoever waits is told.
            assert_eq!((error.kind.as_deref(), error.request_id.as_deref()), (Some("call.requested"), id));
            assert!(error.message.contains("more than 1024 bytes"), "{error}");
        }
    }
}

#[cfg(feature = "registry")]
#[test]
fn details_of_errors_are_exact() {
    use ops_runtime::call::Frame;

    let floats: Vec<f64> = (1..2_000).map(|n| 1.0 / f64::from(n) * 1e-5).collect();
    let payload = json!({ "requestId": "1", "code": "X", "message": "", "details": floats });
    let text = json!({ "type": "call.error", "id": "1", "payload": payload }).to_string();
    let frame = Frame::decode(&text).unwrap().unwrap();
    assert!(frame.encode().unwrap().contains(&json!(floats).to_string()));
}

/// What goes with the data of a message is read as values, so its number has a limit, whatever is beside it.
#[cfg(feature = "registry")]
#[test]
fn what_goes_with_the_data_has_a_limit() {
    use ops_runtime::call::Frame;

    let list = |values: usize| format!("[{}0]", "0,".repeat(values));
    let requested = |more: String| {
        let head = r#"{"type":"call.requested","id":"1","payload":{"requestId":"1","operationId":"a.b""#;
        format!("{head},{more}}}}}")
    };
    let (many, half) = (list(400_001), list(200_001));
    let meta = r#""meta":{"source":"local","operationId":"a.b","timestamp":1}"#;
    for allowed in [
        requested(format!(r#""input":{many},"metadata":{{"m":{half}}}"#)),
        requested(format!(r#""input":{many},"output":5"#)),
        format!(
            r#"{{"type":"call.responded","id":"1","payload":{{"requestId":"1","output":{{"data":{many},{meta}}}}}}}"#
        ),
    ] {
        assert!(Frame::decode(&allowed).unwrap().is_some(), "{}", &allowed[..100]);
    }
    for refused in [
        requested(format!(r#""input":1,"metadata":{{"m":{many}}}"#)),
        // Another member that is no part of a request.
        requested(format!(r#""output":5,"input":1,"metadata":{{"m":{many}}}"#)),
        // Parts that come twice.
        requested(format!(r#""input":1,"metadata":{{"m":{many}}},"metadata":{{}}"#)),
        requested(format!(r#""input":1,"metadata":{{"m":{half}}},"metadata":{{"m":{half}}}"#)),
        format!(r#"{{"type":"call.aborted","payload":{{"requestId":"1","metadata":{many}}},"id":"1","payload":{{}}}}"#),
    ] {
        let error = Frame::decode(&refused).unwrap_err();
        assert!(error.message.starts_with("more than 400000 values go with the data"), "{error}");
        assert_eq!(error.request_id.as_deref(), Some("1"));
    }
}
