//! What bodies and responses may be.

use ops_runtime::binding::{HttpBody, HttpField, HttpParameter, HttpResponse, ParameterStyle, StatusRange};
use ops_runtime::spec::OperationKind;
use serde_json::{Value, json};

use super::{Case, bound, giving, with_bodies};

fn response(status: u16, kind: &'static str) -> HttpResponse {
    HttpResponse::new(StatusRange::Exact(status), kind)
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn bytes() -> Value {
    json!({ "type": "string", "format": "binary" })
}

/// An operation with a body of one kind, which it gives back as JSON.
fn body(name: &str, description: &str, kind: &'static str, schema: Value, sample: Value) -> Case {
    let path = format!("/bodies/{name}");
    let case = bound(name, description, ("POST", &path), Vec::new(), [("body", schema)], json!({ "body": sample }));
    with_bodies(case, vec![HttpBody::new(kind)])
}

pub(super) fn cases() -> Vec<Case> {
    let person = || json!({ "$ref": "#/$defs/Person" });
    let ann = || json!({ "name": "Ann", "level": "high", "nick": "A" });
    let form = json!({
        "type": "object",
        "properties": { "name": text(), "tags": { "type": "array", "items": text(), "minItems": 1 }, "age": { "type": "integer" } },
        "required": ["name", "tags", "age"],
    });
    let parts = json!({
        "type": "object",
        "properties": { "name": text(), "file": bytes(), "about": { "$ref": "#/$defs/Person" } },
        "required": ["name", "file", "about"],
    });
    let put = bound(
        "putPerson",
        "A parameter beside a body.",
        ("PUT", "/people/{id}"),
        vec![HttpParameter::path("id")],
        [("id", json!({ "type": "integer" })), ("body", person())],
        json!({ "id": 7, "body": ann() }),
    );
    let mut events = bound(
        "events",
        "The items that it is told, one after the other.",
        ("POST", "/events"),
        Vec::new(),
        [("items", json!({ "type": "array", "items": { "$ref": "#/$defs/Tree" } }))],
        json!({ "items": [{ "name": "a" }, { "name": "b", "children": [] }] }),
    );
    events.spec.kind = OperationKind::Subscription;
    let items = json!([{ "name": "a" }, { "name": "b", "children": [] }]);
    let events = with_bodies(events, vec![HttpBody::new("application/json").with_rest()]);
    let one_of =
        json!({ "oneOf": [{ "title": "Ok", "$ref": "#/$defs/Tree" }, { "title": "Created", "type": "integer" }] });
    vec![
        body("json", "A record.", "application/json", person(), ann()),
        body(
            "patch",
            "JSON of a dialect.",
            "application/merge-patch+json",
            json!({ "type": "object", "additionalProperties": { "type": ["string", "null"] } }),
            json!({ "a": null }),
        ),
        body("plain", "Plain text.", "text/plain", text(), json!("line\nand ü")),
        with_fields(
            "form",
            "A form.",
            "application/x-www-form-urlencoded",
            form,
            vec![HttpField::new("tags").with_style(ParameterStyle::Form, true)],
            json!({ "name": "a&b", "tags": ["x", "y"], "age": 3 }),
        ),
        with_fields(
            "parts",
            "Parts, one of them a file.",
            "multipart/form-data",
            parts,
            vec![HttpField::new("about").with_content_type("application/json")],
            json!({ "name": "a", "file": "AP8=", "about": ann() }),
        ),
        with_bodies(put, vec![HttpBody::new("application/json")]),
        giving(
            body("bytes", "Bytes, which it gives back.", "application/octet-stream", bytes(), json!("AP8=")),
            vec![response(200, "application/octet-stream")],
            bytes(),
            json!("AP8="),
        ),
        giving(
            body("said", "Text, which it gives back.", "text/plain", text(), json!("so")),
            vec![response(200, "text/plain")],
            text(),
            json!("so"),
        ),
        giving(
            body("silence", "It says nothing.", "application/json", person(), ann()),
            vec![HttpResponse::empty(StatusRange::Exact(204))],
            json!({ "type": "null" }),
            json!(null),
        ),
        giving(
            body("created", "A tree or a number: the status says which.", "application/json", one_of.clone(), json!(7)),
            vec![response(200, "application/json").with_variant(0), response(201, "application/json").with_variant(1)],
            one_of,
            json!(7),
        ),
        giving(events, vec![response(200, "text/event-stream")], json!({ "$ref": "#/$defs/Tree" }), items),
        bound(
            "rest",
            "Several properties that are one body.",
            ("POST", "/rest/{id}"),
            vec![HttpParameter::path("id")],
            [("id", json!({ "type": "integer" })), ("a", text()), ("b", json!({ "type": "boolean" }))],
            json!({ "id": 1, "a": "x", "b": true }),
        )
        .with_rest(),
    ]
}

impl Case {
    fn with_rest(self) -> Self {
        with_bodies(self, vec![HttpBody::new("application/json").with_rest()])
    }
}

/// An operation with a body in fields.
fn with_fields(
    name: &str,
    description: &str,
    kind: &'static str,
    schema: Value,
    fields: Vec<HttpField>,
    sample: Value,
) -> Case {
    let mut own = HttpBody::new(kind);
    own.fields = fields.into();
    with_bodies(body(name, description, kind, schema, sample), vec![own])
}
