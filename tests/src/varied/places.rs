//! Where parameters may be, and in which styles.

use ops_runtime::binding::{HttpParameter, ParameterStyle};
use serde_json::{Value, json};

use super::{Case, bound};

fn texts() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn point() -> Value {
    json!({ "$ref": "#/$defs/Point" })
}

pub(super) fn cases() -> Vec<Case> {
    use ParameterStyle::{DeepObject, Form, Json, Label, Matrix, PipeDelimited, Simple, SpaceDelimited};
    let point_of = || json!({ "x": 1, "y": -2 });
    vec![
        bound(
            "pathText",
            "Text in a path.",
            ("GET", "/path/{id}/text"),
            vec![HttpParameter::path("id")],
            [("id", json!({ "type": "string", "minLength": 1 }))],
            json!({ "id": "a b/ü%" }),
        ),
        bound(
            "pathList",
            "A list in a path.",
            ("GET", "/path/{ids}/list"),
            vec![HttpParameter::path("ids")],
            [("ids", json!({ "type": "array", "items": { "type": "integer" }, "minItems": 1 }))],
            json!({ "ids": [3, 4] }),
        ),
        bound(
            "pathLabel",
            "A label.",
            ("GET", "/path/label{ids}"),
            vec![HttpParameter::path("ids").with_style(Label, true)],
            [("ids", json!({ "type": "array", "items": { "type": "integer" }, "minItems": 1 }))],
            json!({ "ids": [3, 4] }),
        ),
        bound(
            "pathMatrix",
            "A matrix.",
            ("GET", "/path/matrix{point}"),
            vec![HttpParameter::path("point").with_style(Matrix, true)],
            [("point", point())],
            json!({ "point": point_of() }),
        ),
        bound(
            "pathObject",
            "An object in a path.",
            ("GET", "/path/{point}/object"),
            vec![HttpParameter::path("point").with_style(Simple, true)],
            [("point", point())],
            json!({ "point": point_of() }),
        ),
        bound(
            "queryForm",
            "Text, a number and a list in a query.",
            ("GET", "/query/form"),
            vec![HttpParameter::query("q"), HttpParameter::query("limit"), HttpParameter::query("tags")],
            [
                ("q", json!({ "type": "string" })),
                ("limit", json!({ "type": "integer", "minimum": 1 })),
                ("tags", texts()),
            ],
            json!({ "q": "a&b=c", "limit": 7, "tags": ["x", "y z"] }),
        ),
        bound(
            "queryComma",
            "A list in one pair.",
            ("GET", "/query/comma"),
            vec![HttpParameter::query("ids").with_style(Form, false)],
            [("ids", json!({ "type": "array", "items": { "type": "integer" }, "minItems": 1 }))],
            json!({ "ids": [1, 2] }),
        ),
        bound(
            "querySpace",
            "A list with spaces.",
            ("GET", "/query/space"),
            vec![HttpParameter::query("ids").with_style(SpaceDelimited, false)],
            [("ids", json!({ "type": "array", "items": { "type": "integer" }, "minItems": 1 }))],
            json!({ "ids": [1, 2] }),
        ),
        bound(
            "queryPipe",
            "A list with pipes.",
            ("GET", "/query/pipe"),
            vec![HttpParameter::query("ids").with_style(PipeDelimited, false)],
            [("ids", json!({ "type": "array", "items": { "type": "integer" }, "minItems": 1 }))],
            json!({ "ids": [1, 2] }),
        ),
        bound(
            "queryDeep",
            "An object by its members.",
            ("GET", "/query/deep"),
            vec![HttpParameter::query("point").with_style(DeepObject, true)],
            [("point", point())],
            json!({ "point": point_of() }),
        ),
        bound(
            "queryJson",
            "JSON in a query.",
            ("GET", "/query/json"),
            vec![HttpParameter::query("point").with_style(Json, false)],
            [("point", point())],
            json!({ "point": point_of() }),
        ),
        bound(
            "headers",
            "A text and a list in headers.",
            ("GET", "/headers"),
            vec![HttpParameter::header("x-trace"), HttpParameter::header("x-ids")],
            [
                ("x-trace", json!({ "type": "string", "pattern": "^[!-~]+$" })),
                ("x-ids", json!({ "type": "array", "items": { "type": "integer" }, "minItems": 1 })),
            ],
            json!({ "x-trace": "t-1", "x-ids": [5, 6] }),
        ),
        bound(
            "cookies",
            "A cookie.",
            ("GET", "/cookies"),
            vec![HttpParameter::cookie("session")],
            [("session", json!({ "type": "integer" }))],
            json!({ "session": 42 }),
        ),
    ]
}
