use serde_json::json;

use super::*;
use crate::{Definition, HttpBinding, HttpParameter, McpBinding, McpOutput};

/// The schema as a spec has it, and with another one beside in which nothing that matters differs.
fn pointer(a: &Value, b: &Value) -> Option<String> {
    let spec = |schema: &Value| {
        let mut schema = schema.clone();
        let table = schema.as_object_mut().and_then(|schema| schema.remove("table"));
        let table = table.iter().flat_map(|table| table.as_object().unwrap());
        let table = table.map(|(name, schema)| Definition::from_value(name.clone(), schema.clone())).collect();
        (Schema::from(schema), Definitions::new(table))
    };
    let ((a, of_a), (b, of_b)) = (spec(a), spec(b));
    let found = schemas((&a, &of_a), (&b, &of_b));
    assert_eq!(found.is_some(), schemas((&b, &of_b), (&a, &of_a)).is_some(), "{a:?} {b:?}");
    found
}

#[test]
fn schemas_that_mean_the_same() {
    let node = json!({ "type": "object", "properties": { "next": { "$ref": "#/$defs/Node" } } });
    let other = json!({ "type": "object", "properties": { "next": { "$ref": "#/$defs/Knoten", "title": "?" } } });
    for (a, b) in [
        (json!({}), json!(true)),
        (json!({}), json!({ "title": "Any", "description": "Anything.", "x-order": 1 })),
        (json!({ "type": "integer", "maximum": 10 }), json!({ "maximum": 10.0, "type": ["integer"] })),
        (json!({ "enum": ["a", 1], "required": ["b", "a"] }), json!({ "required": ["a", "b"], "enum": [1.0, "a"] })),
        (
            json!({ "properties": { "title": { "type": "string", "description": "One." } } }),
            json!({ "properties": { "title": { "type": "string", "examples": ["x"] } } }),
        ),
        // Beside the schema, within it, under another name, and in its place.
        (
            json!({ "$ref": "#/$defs/Node", "table": { "Node": node } }),
            json!({ "$ref": "#/$defs/Node", "$defs": { "Node": node } }),
        ),
        (
            json!({ "$ref": "#/$defs/Node", "table": { "Node": node } }),
            json!({ "$ref": "#/$defs/Knoten", "table": { "Knoten": other } }),
        ),
        (
            json!({ "items": { "$ref": "#/$defs/A" }, "table": { "A": { "$ref": "#/$defs/B" }, "B": { "type": "null" } } }),
            json!({ "items": { "type": "null" }, "table": { "C": { "type": "string" } } }),
        ),
        (
            json!({ "$ref": "#/$defs/A~1b/items", "table": { "A/b": { "items": { "type": "null" } } } }),
            json!({ "type": "null" }),
        ),
        (json!({ "$ref": "#/$defs/Gone" }), json!({ "$ref": "#/$defs/Gone" })),
    ] {
        assert_eq!(pointer(&a, &b), None, "{a} {b}");
    }
}

#[test]
fn schemas_that_differ() {
    let tree = |leaf: &str| {
        let tree = json!({ "properties": { "left": { "$ref": "#/$defs/Tree" }, "leaf": { "$ref": "#/$defs/Leaf" } } });
        json!({ "$ref": "#/$defs/Tree", "table": { "Tree": tree, "Leaf": { "type": leaf } } })
    };
    let cycle = json!({ "$ref": "#/$defs/A", "table": { "A": { "$ref": "#/$defs/B" }, "B": { "$ref": "#/$defs/A" } } });
    let part = json!({ "properties": { "x": { "type": "string" }, "y": { "type": "null" } } });
    let part =
        |name: &str| json!({ "items": { "$ref": format!("#/$defs/A/properties/{name}") }, "table": { "A": part } });
    let deep = |mut schema: Value| {
        (0..1000).for_each(|_| schema = json!({ "items": schema }));
        schema
    };
    for (a, b, expected) in [
        (json!({}), json!(false), ""),
        (json!({ "type": "integer" }), json!({ "type": "string" }), "/type"),
        (json!({ "type": ["integer", "null"] }), json!({ "type": "integer" }), "/type"),
        (json!({ "type": "string" }), json!({ "type": "string", "format": "date" }), "/format"),
        (json!({ "default": 1 }), json!({ "default": "1" }), "/default"),
        (json!({ "default": { "title": "a" } }), json!({ "default": { "title": "b" } }), "/default"),
        (json!({ "const": { "description": 1 } }), json!({ "const": {} }), "/const"),
        (json!({ "properties": { "title": {} } }), json!({ "properties": {} }), "/properties/title"),
        (json!({ "properties": {} }), json!({ "properties": { "a/b": {} } }), "/properties/a~1b"),
        (json!({ "required": ["a"] }), json!({ "required": ["a", "b"] }), "/required"),
        (json!({ "anyOf": [{}, { "type": "null" }] }), json!({ "anyOf": [{}, { "type": "string" }] }), "/anyOf/1/type"),
        (json!({ "additionalProperties": false }), json!({ "additionalProperties": true }), "/additionalProperties"),
        (json!({ "additionalProperties": false }), json!({}), "/additionalProperties"),
        (tree("integer"), tree("string"), "#/$defs/Leaf/type"),
        (part("x"), part("y"), "#/$defs/A/properties/x/type"),
        (cycle, json!({ "type": "object" }), ""),
        (json!({ "$ref": "#/$defs/Gone" }), json!({ "type": "object" }), ""),
        (json!({ "$ref": "#/$defs/Gone" }), json!({ "$ref": "#/$defs/A", "$defs": { "A": {} } }), "#/$defs/Gone"),
    ] {
        assert_eq!(pointer(&a, &b).as_deref(), Some(expected), "{a} {b}");
    }
    // Too deep to be told apart: rather an error than an overflow.
    assert!(pointer(&deep(json!({ "type": "string" })), &deep(json!({ "type": "null" }))).is_some());
}

#[test]
fn a_long_chain_of_definitions_overflows_nothing() {
    let table = |last: &str| {
        let mut table: Vec<_> = (0..20_000)
            .map(|n| {
                let next = json!({ "properties": { "next": { "$ref": format!("#/$defs/D{}", n + 1) } } });
                Definition::from_value(format!("D{n}"), next)
            })
            .collect();
        table.push(Definition::from_value("D20000", json!({ "type": last })));
        Definitions::new(table)
    };
    let (schema, a, b) = (Schema::text(r##"{"$ref":"#/$defs/D0"}"##), table("string"), table("null"));
    assert!(schemas((&schema, &a), (&schema, &b)).unwrap().ends_with("D20000/type"));
    assert_eq!(schemas((&schema, &a), (&schema, &table("string"))), None);
}

#[test]
fn specs_that_differ() {
    let http = |method, path| HttpBinding::new(method, path);
    let spec = |http| OperationSpec::query("pets.get").with_http(http);
    const ID: &[HttpParameter] = const { &[HttpParameter::path("id")] };
    const KEY: &[HttpParameter] = const { &[HttpParameter::path("key")] };
    let tool = |name, output| OperationSpec::query("pets.get").with_mcp(McpBinding::new(name, output));
    let text = Schema::text;
    for (one, other, expected) in [
        (OperationSpec::query("a.b"), OperationSpec::mutation("a.b"), vec!["the kind"]),
        (spec(http("GET", "/v1")), spec(http("POST", "/v2")), vec!["the method", "the path"]),
        (spec(http("GET", "/")), OperationSpec::query("a.b"), vec!["the binding"]),
        (
            spec(http("GET", "/").with_parameters(ID)),
            spec(http("GET", "/").with_parameters(KEY)),
            vec!["the parameters"],
        ),
        (
            spec(http("GET", "/").with_server("https://a.example/v1")),
            spec(http("GET", "/").with_server("https://a.example/v2")),
            vec!["the server"],
        ),
        (spec(http("GET", "/").with_server("/v1")), spec(http("GET", "/").with_server("https://a.example/v1")), vec![]),
        (tool("get", McpOutput::Content), tool("find", McpOutput::Content), vec!["the tool"]),
        (tool("get", McpOutput::Content), tool("get", McpOutput::Wrapped), vec!["the binding"]),
        // A hint alone makes no other tool.
        (
            tool("get", McpOutput::Content),
            OperationSpec::mutation("pets.get").with_mcp(McpBinding::new("get", McpOutput::Content)),
            vec![],
        ),
        (
            spec(http("GET", "/")).with_input(text(r#"{"required":["a"]}"#)).with_output(text(r#"{"type":"null"}"#)),
            spec(http("GET", "/")).with_input(text(r#"{"required":["b"]}"#)),
            vec!["the input schema at /required", "the output schema at /type"],
        ),
        (
            spec(http("GET", "/")).with_version("1.0.0").with_description("One."),
            spec(http("GET", "/")).with_version("2.0.0").with_title("Two"),
            vec![],
        ),
    ] {
        assert_eq!(differences(&one, &other), expected, "{one:?} {other:?}");
        assert_eq!(differences(&other, &one).len(), expected.len());
    }
}
