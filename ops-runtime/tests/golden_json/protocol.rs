//! The schemas as such, and those of the call events, which are JSON only so far.

use std::collections::BTreeMap;

use ops_runtime::wire;
use serde_json::{Value, json};

use super::golden::{refused, validator};

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
