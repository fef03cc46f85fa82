//! Specs and bindings.

use std::time::Duration;

use ops_runtime::access::AccessControl;
use ops_runtime::binding::{
    Binding, HttpBinding, HttpBody, HttpFixed, HttpParameter, HttpResponse, Literal, McpBinding, McpOutput,
    ParameterStyle, StatusRange,
};
use ops_runtime::record::{from_value, to_value};
use ops_runtime::spec::{Definition, ErrorDefinition, OperationKind, OperationSpec, RetryPolicy, Schema};
use ops_runtime::wire;
use serde_json::json;

use super::golden::{check, refused};

const FIXED: &[HttpFixed] = &[
    HttpFixed::new("stream", Literal::text("on")),
    HttpFixed::new("raw", Literal::Bool(false)),
    HttpFixed::absent("no"),
];

const LIST: HttpBinding =
    HttpBinding::new("POST", "/pets/{petId}/toys")
        .with_server("https://pets.example/v1")
        .with_parameters(
            const {
                &[
                    HttpParameter::path("petId"),
                    HttpParameter::path("label").with_style(ParameterStyle::Label, true),
                    HttpParameter::path("matrix").with_style(ParameterStyle::Matrix, false),
                    HttpParameter::query("tags"),
                    HttpParameter::query("csv").with_style(ParameterStyle::Form, false).with_reserved(),
                    HttpParameter::query("space").with_style(ParameterStyle::SpaceDelimited, false),
                    HttpParameter::query("pipe").with_style(ParameterStyle::PipeDelimited, true),
                    HttpParameter::query("deep").with_style(ParameterStyle::DeepObject, true),
                    HttpParameter::query("filter").with_style(ParameterStyle::Json, false),
                    HttpParameter::header("X-Trace").with_property("trace"),
                    HttpParameter::cookie("session"),
                    HttpParameter::query("watch").with_fixed(Literal::Bool(true)),
                ]
            },
        )
        .with_bodies(
            const {
                &[
                    HttpBody::new("application/json"),
                    HttpBody::new("text/plain").with_property("text").with_fixed(FIXED),
                ]
            },
        )
        .with_responses(
            const {
                &[
                    HttpResponse::new(StatusRange::Exact(200), "application/json"),
                    HttpResponse::empty(StatusRange::Exact(204)),
                    HttpResponse::new(StatusRange::Class(4), "application/problem+json"),
                    HttpResponse::empty(StatusRange::Default),
                ]
            },
        );

static DEFINITIONS: &[Definition] = &[
    Definition::new("Pet", r##"{"type":"object","properties":{"parent":{"$ref":"#/$defs/Pet"}}}"##),
    Definition::new("Problem", r#"{"type":"string"}"#),
    Definition::new("Unused", "true"),
];

/// As generated code writes it: its schemas refer to a table.
static MOST: OperationSpec = OperationSpec::subscription("petstore.toys.list/all")
    .with_version("2.1.0")
    .with_title("Toys")
    .with_description("All toys of a pet.")
    .with_tags(&["pets", "toys"])
    .with_input(Schema::text(r#"{"properties":{"petId":{"type":"string"}},"type":"object"}"#))
    .with_output(Schema::text(r##"{"$ref":"#/$defs/Pet"}"##))
    .with_errors(const { &[ErrorDefinition::new("GONE").with_schema(Schema::text(r##"{"$ref":"#/$defs/Problem"}"##))] })
    .with_access(AccessControl::NONE.with_scopes(&["pets:read"]))
    .with_http(LIST)
    .with_definitions(DEFINITIONS)
    .with_timeout(Duration::from_millis(1500))
    .with_deprecated();

#[test]
fn specs() {
    // What is read holds its definitions in its schemas, so the golden value is what was read from the static's JSON.
    let mut most: OperationSpec = from_value(&to_value(&MOST).unwrap()).unwrap();
    assert_eq!(most.definitions.as_slice(), []);
    assert_eq!(most.output.to_value().unwrap()["$defs"]["Pet"]["type"], "object");
    assert_eq!(most.output.to_value().unwrap()["$defs"].as_object().unwrap().len(), 1);
    assert_eq!(most.errors[0].schema.to_value().unwrap()["$defs"]["Problem"], json!({ "type": "string" }));
    assert_eq!((most.id.as_ref(), most.http()), ("petstore.toys.list/all", Some(&LIST)));
    assert_eq!((most.kind, most.timeout, &most.access), (MOST.kind, MOST.timeout, &MOST.access));
    most.meta = json!({ "summary": "toys", "x-rank": 1 }).as_object().cloned();
    check(
        "operation_spec.json",
        wire::OPERATION_SPEC_SCHEMA,
        &[
            ("least", OperationSpec::query("math.double")),
            ("mutation", OperationSpec::mutation("math.set")),
            ("tool", OperationSpec::query("math.add").with_mcp(McpBinding::new("add", McpOutput::Structured))),
            ("most", most),
        ],
    );
    let least = || to_value(&OperationSpec::query("math.double")).unwrap();
    let required =
        ["name", "namespace", "version", "type", "description", "inputSchema", "outputSchema", "accessControl"];
    for member in required {
        let mut lacking = least();
        lacking.as_object_mut().unwrap().remove(member);
        let error = from_value::<OperationSpec>(&lacking).unwrap_err();
        assert!(error.message.contains(&format!("`{member}`")), "{error}");
        refused(wire::OPERATION_SPEC_SCHEMA, &[lacking]);
    }
    for (member, value) in [
        ("namespace", json!("a.b")),
        ("namespace", json!("")),
        ("name", json!("")),
        ("type", json!("QUERY")),
        ("binding", json!({ "type": "carrier pigeon" })),
        ("binding", json!({ "type": "http", "method": "GET" })),
        ("binding", json!({ "type": "mcp", "tool": "a" })),
        ("binding", json!({ "type": "mcp", "tool": "a", "output": "text" })),
        ("accessControl", json!({})),
    ] {
        let mut wrong = least();
        wrong[member] = value;
        assert!(from_value::<OperationSpec>(&wrong).is_err(), "{wrong}");
        refused(wire::OPERATION_SPEC_SCHEMA, &[wrong]);
    }
}

#[test]
fn what_is_no_spec_is_not_written() {
    assert!(to_value(&OperationSpec::query("no-namespace")).is_err());
    assert!(to_value(&OperationSpec::query("a.b").with_input(Schema::text("{"))).is_err());
}

#[test]
fn a_short_timeout_does_not_become_none() {
    let json = to_value(&OperationSpec::query("a.b").with_timeout(Duration::from_micros(1))).unwrap();
    assert_eq!(json["timeout"], 1);
    let json = to_value(&OperationSpec::query("a.b").with_timeout(Duration::MAX)).unwrap();
    assert_eq!(json["timeout"], u64::MAX);
}

#[test]
fn a_retry_policy_is_read_back() {
    const SPEC: OperationSpec = OperationSpec::query("a.b")
        .with_retry(const { &RetryPolicy::new(5).with_codes(&["BUSY"]).with_deadline(Duration::from_secs(3600)) });
    let json = to_value(&SPEC).unwrap();
    let text = json!({
        "attempts": 5, "firstDelay": 1000, "maxDelay": 300_000, "factor": 2, "codes": ["BUSY"], "deadline": 3_600_000,
    });
    assert_eq!(json["retry"], text);
    assert_eq!(from_value::<OperationSpec>(&json).unwrap(), SPEC);
    let mut least = json.clone();
    least["retry"] = json!({ "attempts": 2 });
    assert_eq!(from_value::<OperationSpec>(&least).unwrap().retry(), Some(&RetryPolicy::new(2)));
    least["retry"] = json!(null);
    assert_eq!(from_value::<OperationSpec>(&least).unwrap().retry(), None);
    least["retry"] = json!({ "backoff": 5 });
    assert!(from_value::<OperationSpec>(&least).is_err());
    refused(wire::OPERATION_SPEC_SCHEMA, &[least]);
}

#[test]
fn a_subscription_may_say_if_it_changes_something() {
    for changes in [false, true] {
        let spec = OperationSpec::subscription("a.b").with_http(HttpBinding::new("POST", "/b")).with_changes(changes);
        let json = to_value(&spec).unwrap();
        assert_eq!(json["changes"], changes);
        assert_eq!(from_value::<OperationSpec>(&json).unwrap(), spec);
        assert_eq!(spec.may_change(), changes);
    }
    let mut json = to_value(&OperationSpec::subscription("a.b")).unwrap();
    assert_eq!(json.get("changes"), None);
    json["changes"] = json!("no");
    assert!(from_value::<OperationSpec>(&json).is_err());
    refused(wire::OPERATION_SPEC_SCHEMA, &[json]);
}

/// The spec of an operation without a policy has two words for it, of 640 bytes.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_retry_policy_is_behind_a_pointer() {
    assert!(size_of::<OperationSpec>() <= 640, "{} bytes", size_of::<OperationSpec>());
    println!("a spec has {} bytes, a policy {}", size_of::<OperationSpec>(), size_of::<RetryPolicy>());
}

#[test]
fn bindings() {
    check(
        "binding.json",
        "{}",
        &[
            ("local", Binding::Local),
            ("least", Binding::Http(HttpBinding::new("GET", "/"))),
            ("most", Binding::Http(LIST)),
            ("mcp", Binding::Mcp(McpBinding::new("pets/list", McpOutput::Wrapped))),
        ],
    );
    check(
        "status_range.json",
        "{}",
        &[("exact", StatusRange::Exact(204)), ("class", StatusRange::Class(5)), ("default", StatusRange::Default)],
    );
    for status in [json!("2X"), json!("XX"), json!(""), json!("all"), json!("70000"), json!(200)] {
        assert!(from_value::<StatusRange>(&status).is_err(), "{status}");
    }
    assert_eq!(from_value::<StatusRange>(&json!("4xx")).unwrap(), StatusRange::Class(4));
}

#[test]
fn kinds_and_schemas() {
    check(
        "operation_kind.json",
        r#"{"type":"string"}"#,
        &[
            ("query", OperationKind::Query),
            ("mutation", OperationKind::Mutation),
            ("subscription", OperationKind::Subscription),
        ],
    );
    check(
        "schema.json",
        "{}",
        &[
            ("any", Schema::ANY),
            ("none", Schema::text("false")),
            ("reference", Schema::text(r##"{ "$ref": "#/$defs/Pet" }"##)),
            ("made", Schema::make(|| json!({ "type": "string" }))),
        ],
    );
    assert!(from_value::<Schema>(&json!(true)).unwrap().is_any());
}
