//! Lists of tools, and what becomes of them.
#![cfg(feature = "mcp-schema")]

use ops_runtime::binding::McpOutput;
use ops_runtime::mcp::{self, ReadOptions};
use ops_runtime::spec::{Api, OperationKind, OperationSpec, Severity};
use serde_json::{Value, json};

fn read(list: &Value) -> (Api, Vec<String>) {
    let (api, diagnostics) = mcp::read(list, &ReadOptions::new().with_namespace("shop")).unwrap();
    (api, diagnostics.iter().map(|d| format!("{} {}", d.pointer, d.message)).collect())
}

/// The operation of a tool with these members, in a list on its own.
#[track_caller]
fn tool(members: &Value) -> OperationSpec {
    let mut tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
    tool.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let (api, diagnostics) = read(&json!({ "tools": [tool] }));
    assert_eq!(diagnostics, Vec::<String>::new());
    api.operations.into_iter().next().unwrap()
}

fn output(members: &Value) -> (McpOutput, Value) {
    let spec = tool(members);
    (spec.mcp().unwrap().output, spec.output.to_value().unwrap().into_owned())
}

fn definitions(api: &Api) -> Vec<(String, Value)> {
    let definitions = api.definitions.as_slice().iter();
    definitions.map(|d| (d.name.to_string(), d.schema.to_value().unwrap().into_owned())).collect()
}

#[test]
fn every_form_of_a_list_is_read() {
    let tool = json!({ "name": "a.b/c d", "inputSchema": { "type": "object" } });
    let server = json!({ "name": "Pet Shop.v2", "version": "3.1" });
    for (list, id, version) in [
        (json!({ "tools": [tool], "serverInfo": server }), "pet_shop_v2.a.b/c d", "3.1"),
        (
            json!({ "tools": [tool], "_meta": { "io.modelcontextprotocol/serverInfo": server } }),
            "pet_shop_v2.a.b/c d",
            "3.1",
        ),
        (json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [tool], "ttlMs": 5 } }), "api.a.b/c d", "1.0.0"),
        (json!([tool]), "api.a.b/c d", "1.0.0"),
    ] {
        assert!(mcp::is_tool_list(&list), "{list}");
        let (api, diagnostics) = mcp::read(&list, &ReadOptions::new()).unwrap();
        let [spec] = api.operations.as_slice() else { panic!("{list}") };
        assert_eq!((spec.id.as_ref(), spec.version.as_ref(), diagnostics), (id, version, Vec::new()));
        assert_eq!((spec.name(), spec.mcp().unwrap().tool.as_ref()), ("a.b/c d", "a.b/c d"));
    }
    for (list, pointer) in [
        (json!({ "openapi": "3.1.0" }), ""),
        (json!({ "tools": {} }), "/tools"),
        (json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32601, "message": "no" } }), "/error"),
        (json!(null), ""),
    ] {
        assert!(!mcp::is_tool_list(&list), "{list}");
        let error = mcp::read(&list, &ReadOptions::new()).unwrap_err();
        assert_eq!((error.severity, error.pointer.as_str()), (Severity::Error, pointer), "{error}");
    }
}

#[test]
fn what_a_tool_says_of_itself() {
    let spec = tool(&json!({ "title": "T", "description": " Does it. ", "annotations": { "readOnlyHint": true } }));
    assert_eq!(
        (spec.kind, spec.title.as_deref(), spec.description.as_ref()),
        (OperationKind::Query, Some("T"), "Does it.")
    );
    assert_eq!(spec.access.required_scopes.len(), 0);
    let spec = tool(&json!({ "annotations": { "title": "Old", "readOnlyHint": "yes", "idempotentHint": true } }));
    assert_eq!((spec.kind, spec.title.as_deref()), (OperationKind::Mutation, Some("Old")));
}

#[test]
fn outputs_are_found() {
    let x = json!({ "type": "array", "items": { "type": "integer" } });
    let wrapper = json!({ "type": "object", "properties": { "result": x }, "required": ["result"] });
    let with = |key: &str, value: Value| {
        let mut wrapper = wrapper.clone();
        wrapper[key] = value;
        json!({ "outputSchema": wrapper })
    };
    for members in [
        json!({ "outputSchema": wrapper }),
        with("x-fastmcp-wrap-result", json!(true)),
        with("additionalProperties", json!(false)),
        with("title", json!("countOutput")),
        with("$schema", json!("http://json-schema.org/draft-07/schema#")),
        json!({ "outputSchema": { "type": "object", "properties": { "result": x }, "x-fastmcp-wrap-result": true } }),
    ] {
        assert_eq!(output(&members), (McpOutput::Wrapped, x.clone()), "{members}");
    }
    for members in [
        with("required", json!([])),
        with("properties", json!({ "result": x, "more": {} })),
        with("additionalProperties", json!(true)),
        json!({ "outputSchema": { "type": "array", "items": {} } }),
        json!({ "outputSchema": { "type": ["string", "null"] } }),
    ] {
        assert_eq!(output(&members).0, McpOutput::Structured, "{members}");
    }
    assert_eq!(output(&json!({})).0, McpOutput::Content);
    assert_eq!(output(&json!({ "outputSchema": null })).0, McpOutput::Content);
    assert_eq!(output(&json!({ "outputSchema": true })), (McpOutput::Structured, json!({})));
}

#[test]
fn arguments_are_an_object() {
    for (schema, expected) in [
        (json!({}), json!({ "type": "object" })),
        (json!(true), json!({ "type": "object" })),
        (json!({ "properties": { "a": {} } }), json!({ "type": "object", "properties": { "a": {} } })),
        (json!({ "anyOf": [{ "required": ["a"] }] }), json!({ "anyOf": [{ "required": ["a"] }] })),
    ] {
        let spec = tool(&json!({ "inputSchema": schema }));
        assert_eq!(spec.input.to_value().unwrap().into_owned(), expected);
    }
}

#[test]
fn dialects_become_2020_12() {
    let spec = tool(&json!({ "inputSchema": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "at": { "type": "array", "items": [{ "type": "number" }, { "type": "number" }], "additionalItems": false },
            "much": { "type": "integer", "minimum": 0, "exclusiveMinimum": true },
            "self": { "$ref": "#/definitions/Pet" },
            "$meta": {},
            "x-loc-lat": { "type": "number" },
            "same": { "$ref": "#/properties/at/items/0" },
        },
        "additionalProperties": false,
        "definitions": { "Pet": { "type": "string" } },
    } }));
    let pair = json!({ "type": "array", "items": false, "prefixItems": [{ "type": "number" }, { "type": "number" }] });
    assert_eq!(
        spec.input.to_value().unwrap().into_owned(),
        json!({
            "type": "object",
            "properties": {
                "at": pair,
                "much": { "type": "integer", "exclusiveMinimum": 0 },
                "self": { "$ref": "#/$defs/Pet" },
                "$meta": {},
                "x-loc-lat": { "type": "number" },
                "same": { "$ref": "#/$defs/at_items_0" },
            },
            "additionalProperties": false,
        })
    );
    let names: Vec<_> = spec.definitions.as_slice().iter().map(|d| d.name.as_ref()).collect();
    assert_eq!(names, ["Pet", "at_items_0"]);
}

#[test]
fn definitions_that_mean_the_same_are_one() {
    let schema = |pet: Value, toy: Value| {
        json!({
            "type": "object",
            "properties": { "pet": { "$ref": "#/$defs/Pet" } },
            "$defs": { "Pet": pet, "Toy": toy },
        })
    };
    let pet = json!({ "properties": { "toy": { "$ref": "#/$defs/Toy" } } });
    let text = json!({ "type": "string" });
    let (api, diagnostics) = read(&json!([
        { "name": "first", "inputSchema": schema(pet.clone(), text.clone()) },
        { "name": "same-again", "inputSchema": schema(pet.clone(), text.clone()), "outputSchema": schema(text.clone(), text.clone()) },
        { "name": "other-toy", "inputSchema": schema(pet.clone(), json!({ "type": "number" })) },
        { "name": "third", "inputSchema": schema(pet.clone(), json!({ "type": "number" })) },
    ]));
    assert_eq!(diagnostics, Vec::<String>::new());
    let pet_of = |toy: &str| json!({ "properties": { "toy": { "$ref": format!("#/$defs/{toy}") } } });
    assert_eq!(
        definitions(&api),
        [
            ("Pet", pet_of("Toy")),
            ("Toy", text.clone()),
            ("other_toy_Pet", pet_of("other_toy_Toy")),
            ("other_toy_Toy", json!({ "type": "number" })),
            ("same_again_Pet", text),
        ]
        .map(|(name, schema)| (name.to_owned(), schema))
    );
    let refers = |at: usize| api.operations[at].input.to_value().unwrap()["properties"]["pet"]["$ref"].clone();
    assert_eq!(
        [refers(0), refers(1), refers(2), refers(3)],
        ["#/$defs/Pet", "#/$defs/Pet", "#/$defs/other_toy_Pet", "#/$defs/other_toy_Pet"]
    );
}

/// A mapping that leads nowhere, or a reference that was not converted, is the same in each tool.
#[test]
fn definitions_with_broken_references_are_one() {
    let tools = ["first", "second", "third"].map(|name| {
        let mapping = json!({ "cat": "Cat", "dog": "#/components/schemas/Dog" });
        let tag = json!({ "propertyName": "kind", "mapping": mapping });
        let pet = json!({ "anyOf": [{ "$ref": "#/$defs/Cat" }, { "type": "string" }], "discriminator": tag });
        let properties = json!({ "pet": { "$ref": "#/$defs/Pet" } });
        let definitions = json!({ "Cat": { "type": "object" }, "Pet": pet });
        json!({ "name": name, "inputSchema": { "type": "object", "properties": properties, "$defs": definitions } })
    });
    let (api, _) = read(&json!(tools));
    let mut names: Vec<_> = definitions(&api).into_iter().map(|(name, _)| name).collect();
    names.sort();
    assert_eq!(names, ["Cat", "Pet"]);
}

/// A server may paste the schema of a class, with its definitions, into a property.
#[test]
fn definitions_inside_of_properties_are_those_of_their_tool() {
    let tool = |name: &str, op: Value| {
        let condition = json!({ "properties": { "op": { "$ref": "#/$defs/Op" } } });
        let filter = json!({ "$ref": "#/$defs/Cond", "$defs": { "Cond": condition, "Op": op } });
        json!({ "name": name, "inputSchema": { "type": "object", "properties": { "filter": filter } } })
    };
    let (words, number) = (json!({ "enum": ["eq", "ne"] }), json!({ "type": "integer" }));
    let (api, diagnostics) = read(&json!([tool("first", words.clone()), tool("second", number.clone())]));
    assert_eq!(diagnostics, Vec::<String>::new());
    let condition = |op: &str| json!({ "properties": { "op": { "$ref": format!("#/$defs/{op}") } } });
    assert_eq!(
        definitions(&api),
        [("Cond", condition("Op")), ("Op", words), ("second_Cond", condition("second_Op")), ("second_Op", number),]
            .map(|(name, schema)| (name.to_owned(), schema))
    );
    let filter = |at: usize| api.operations[at].input.to_value().unwrap()["properties"]["filter"].clone();
    assert_eq!(
        [filter(0), filter(1)],
        ["Cond", "second_Cond"].map(|name| json!({ "$ref": format!("#/$defs/{name}") }))
    );
}

/// The author of one tool has no say about the arguments of another.
#[test]
fn no_reference_leads_into_another_tool() {
    let tool = |name: &str, definitions: Value| {
        let properties = json!({
            "to": { "$ref": "address.json" },
            "all": { "$ref": "https://example.com/all" },
            "pet": { "oneOf": [{ "$ref": "#/$defs/Cat" }], "discriminator": { "propertyName": "kind", "mapping": { "dog": "Dog" } } },
        });
        let mut schema = json!({ "type": "object", "properties": properties, "$defs": definitions });
        schema["$defs"]["Cat"] = json!({ "type": "object" });
        json!({ "name": name, "inputSchema": schema })
    };
    let address = |kind: &str| json!({ "address": { "$id": "address.json", "type": kind } });
    let mut first = tool("first", address("object"));
    first["inputSchema"]["$self"] = json!("https://example.com/all");
    first["inputSchema"]["components"] = json!({ "schemas": { "Dog": { "type": "object" } } });
    let (api, told) = read(&json!([first, tool("second", address("string")), tool("third", json!({}))]));
    let input = |at: usize| api.operations[at].input.to_value().unwrap().into_owned();
    let properties = |at: usize| {
        let mut schema = input(at);
        // A schema that refers to itself as a whole is a definition.
        if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/")) {
            schema = api.definitions.get(name).unwrap().schema.to_value().unwrap().into_owned();
        }
        schema["properties"].take()
    };
    let kind = |at: usize| {
        let reference = properties(at)["to"]["$ref"].as_str().unwrap().strip_prefix("#/$defs/").unwrap().to_owned();
        api.definitions.get(&reference).unwrap().schema.to_value().unwrap()["type"].clone()
    };
    assert_eq!([kind(0), kind(1)], ["object", "string"]);
    assert_eq!(properties(2)["to"], json!({}));
    for at in [1, 2] {
        assert_eq!(properties(at)["all"], json!({}));
        assert_eq!(properties(at)["pet"]["discriminator"], json!({ "propertyName": "kind" }));
    }
    assert!(told.iter().all(|told| !told.starts_with("/0/")) && told.len() == 5, "{told:?}");
}

#[test]
fn schemas_that_hold_themselves() {
    let tree = json!({ "type": "object", "properties": { "children": { "type": "array", "items": { "$ref": "#" } } } });
    let wrapped = json!({
        "type": "object",
        "properties": { "result": { "$ref": "#/$defs/Node" } },
        "required": ["result"],
        "$defs": { "Node": { "properties": { "next": { "$ref": "#/$defs/Node" } } } },
    });
    let (api, diagnostics) = read(&json!([{ "name": "grow.tree", "inputSchema": tree, "outputSchema": wrapped }]));
    assert_eq!(diagnostics, Vec::<String>::new());
    let [spec] = api.operations.as_slice() else { panic!() };
    assert_eq!(spec.input.to_value().unwrap()["$ref"], "#/$defs/grow_tree_input");
    assert_eq!(spec.output.to_value().unwrap()["$ref"], "#/$defs/Node");
    let names: Vec<_> = definitions(&api).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["Node", "grow_tree_input"]);
}

#[test]
fn what_cannot_be_read_costs_itself_alone() {
    let good = json!({ "type": "object" });
    let network = json!({ "type": "object", "properties": { "a": { "$ref": "https://schemas.example/a.json#/b" } } });
    let (api, diagnostics) = read(&json!({ "result": { "tools": [
        7,
        { "inputSchema": good },
        { "name": "", "inputSchema": good },
        { "name": "good", "inputSchema": good },
        { "name": "good", "inputSchema": good },
        { "name": "no schema" },
        { "name": "odd", "inputSchema": 5, "outputSchema": "text" },
        { "name": "network", "inputSchema": network },
        { "name": "nowhere", "inputSchema": good, "outputSchema": { "$ref": "#/$defs/Gone" } },
    ] } }));
    let ids: Vec<_> = api.operations.iter().map(|spec| spec.id.as_ref()).collect();
    assert_eq!(ids, ["shop.good", "shop.no schema", "shop.odd", "shop.network", "shop.nowhere"]);
    assert_eq!(
        diagnostics,
        [
            "/result/tools/0 a tool without a name",
            "/result/tools/1 a tool without a name",
            "/result/tools/2 a tool without a name",
            "/result/tools/4 a second tool is called `good`",
            "/result/tools/5 the tool `no schema` has no `inputSchema`",
            "/result/tools/6/inputSchema a schema is a number, not an object",
            "/result/tools/6/outputSchema a schema is text, not an object",
            "/result/tools/7/inputSchema/properties/a `https://schemas.example/a.json` is another document, and there is no source to read it from",
            "/result/tools/8/outputSchema `#/$defs/Gone` does not exist",
        ]
    );
    let any = api.operations[3].input.to_value().unwrap()["properties"]["a"].clone();
    assert_eq!(any, json!({}));
}

#[test]
fn a_page_is_not_the_whole_list() {
    let tool = json!({ "name": "t", "inputSchema": {} });
    let (api, told) = read(&json!({ "result": { "tools": [tool], "nextCursor": "x" } }));
    assert_eq!(api.operations.len(), 1);
    assert_eq!(told, ["/result/nextCursor the list has further pages, whose tools are not in it"]);
    assert_eq!(read(&json!({ "tools": [tool], "nextCursor": null })).1, Vec::<String>::new());
}

#[test]
fn what_a_text_repeats_is_told() {
    let text = "tools:\n- {name: a, name: b, inputSchema: {}}\n";
    let source = std::collections::BTreeMap::from([("x.yaml".to_owned(), text.to_owned())]);
    let (api, diagnostics) = mcp::load("x.yaml", &source, &ReadOptions::new()).unwrap();
    assert_eq!(api.operations[0].name(), "b");
    let [told] = diagnostics.as_slice() else { panic!("{diagnostics:?}") };
    assert_eq!((told.pointer.as_str(), told.position.map(|(line, _)| line)), ("/tools/0/name", Some(2)));
    assert!(told.message.contains("more than once") && told.document.as_deref() == Some("x.yaml"), "{told}");
}

#[test]
fn diagnostics_say_where_in_the_text() {
    let text = "{\n \"serverInfo\": {\"name\": \"S\"},\n \"tools\": [\n  {\"inputSchema\": {}}\n ]\n}\n";
    let source = std::collections::BTreeMap::from([("dir/x.json".to_owned(), text.to_owned())]);
    let (api, diagnostics) = mcp::load("dir/x.json", &source, &ReadOptions::new()).unwrap();
    assert!(api.operations.is_empty());
    assert_eq!((diagnostics[0].position, diagnostics[0].document.as_deref()), (Some((4, 3)), Some("dir/x.json")));
    let error = mcp::load("dir/y.json", &source, &ReadOptions::new()).unwrap_err();
    assert_eq!(error.document.as_deref(), Some("dir/y.json"));
}

/// What such a reference means depends on the tool that it is in.
#[test]
fn a_recursive_reference_leads_to_the_root_of_its_own_tool() {
    let tool = |name: &str, property: &str| {
        let node = json!({ "type": "object", "properties": { "next": { "$recursiveRef": "#" } } });
        let properties = json!({ property: { "$ref": "#/$defs/Node" } });
        json!({ "name": name, "inputSchema": { "type": "object", "properties": properties, "$defs": { "Node": node } } })
    };
    let (api, _) = read(&json!({ "tools": [tool("first", "alpha"), tool("second", "beta")] }));
    let next = definitions(&api).into_iter().filter_map(|(_, schema)| schema.pointer("/properties/next/$ref").cloned());
    assert_eq!(next.collect::<Vec<Value>>(), [json!("#/$defs/first_input"), json!("#/$defs/second_input")]);
}
