//! Schemas and the types that they become.
#![allow(clippy::unwrap_used)]

#[path = "lowering/defaults.rs"]
mod defaults;
#[path = "lowering/nulls.rs"]
mod nulls;
#[path = "lowering/tables.rs"]
mod tables;
#[path = "lowering/unions.rs"]
mod unions;

use ops_codegen::{Generated, Generator};
use ops_runtime::binding::{Binding, HttpBinding};
use ops_runtime::spec::{Api, Definition, Definitions, OperationSpec};
use serde_json::{Value, json};

fn generate(definitions: Vec<(&str, Value)>, output: Value) -> Generated {
    let definitions = definitions.into_iter().map(|(name, schema)| Definition::from_value(name.to_owned(), schema));
    let mut operation = OperationSpec::query("test.op");
    operation.output = output.into();
    Generator::new().generate(&Api::new(Definitions::new(definitions.collect()), vec![operation]))
}

/// The output type of an operation with this schema.
fn output(schema: Value) -> String {
    let source = generate(vec![("Pet", json!({ "type": "object", "properties": { "id": {} } }))], schema).source;
    let line = source.lines().find_map(|line| line.trim().strip_prefix("type Output = ")).unwrap();
    line.trim_end_matches(';').to_owned()
}

/// Half an access rule refuses every call, in generated code, too.
#[test]
fn half_a_rule_for_a_resource_is_kept() {
    let mut typed = OperationSpec::query("test.typed");
    typed.access.resource_type = Some("pet".into());
    let mut acting = OperationSpec::query("test.acting");
    acting.access.resource_action = Some("sell".into());
    let source = Generator::new().generate(&Api::new(Definitions::EMPTY, vec![typed, acting])).source;
    for rule in [r#"ops::AccessControl::NONE.with_resource("pet", "")"#, r#".with_resource("", "sell")"#] {
        assert!(source.contains(rule), "{rule}: {source}");
    }
}

/// Generated code keeps what the document says about the changes of a stream.
#[test]
fn what_a_stream_changes_is_kept() {
    let read = OperationSpec::subscription("test.read").with_changes(false);
    let source = Generator::new().generate(&Api::new(Definitions::EMPTY, vec![read])).source;
    assert!(source.contains(".with_changes(false)"), "{source}");
    let unsaid = OperationSpec::subscription("test.unsaid");
    let source = Generator::new().generate(&Api::new(Definitions::EMPTY, vec![unsaid])).source;
    assert!(!source.contains("with_changes"), "{source}");
}

#[test]
fn schemas_become_types() {
    let pet = json!({ "$ref": "#/$defs/Pet" });
    for (schema, expected) in [
        (json!(true), "ops::Value"),
        (json!({}), "ops::Value"),
        (json!({ "description": "any" }), "ops::Value"),
        (json!({ "type": "null" }), "()"),
        (json!({ "type": "string" }), "String"),
        (json!({ "type": "string", "format": "date-time" }), "String"),
        (json!({ "type": "boolean" }), "bool"),
        (json!({ "type": "number", "format": "float" }), "f64"),
        (json!({ "type": "integer" }), "i64"),
        (json!({ "type": "integer", "format": "int32" }), "i32"),
        (json!({ "type": "integer", "format": "int32", "maximum": 4_294_967_295_u32 }), "i64"),
        (json!({ "type": "integer", "format": "int32", "exclusiveMaximum": 2_147_483_648_u32 }), "i32"),
        (json!({ "type": "integer", "format": "uint32", "minimum": -1 }), "i64"),
        (json!({ "type": "integer", "format": "uint64" }), "u64"),
        (json!({ "type": "integer", "minimum": 0 }), "i64"),
        (json!({ "type": "integer", "minimum": 0, "maximum": 18_446_744_073_709_551_615_u64 }), "u64"),
        (json!({ "type": "integer", "minimum": -9.223_372_036_854_776e18 }), "i64"),
        (json!({ "type": ["integer", "number"] }), "f64"),
        (json!({ "type": ["string", "null"] }), "Option<String>"),
        (json!({ "type": "string", "nullable": true }), "Option<String>"),
        (json!({ "type": "array" }), "Vec<ops::Value>"),
        (json!({ "items": { "type": "string" } }), "Vec<String>"),
        (json!({ "prefixItems": [{ "type": "string" }, { "type": "integer" }] }), "(String, i64)"),
        (json!({ "prefixItems": [{ "type": "string" }], "items": false }), "(String,)"),
        (json!({ "prefixItems": [{ "type": "string" }], "items": { "type": "string" } }), "Vec<ops::Value>"),
        (json!({ "prefixItems": [{ "type": "string" }], "minItems": 0 }), "Vec<ops::Value>"),
        (json!({ "type": "object" }), "::std::collections::BTreeMap<String, ops::Value>"),
        (json!({ "additionalProperties": { "type": "integer" } }), "::std::collections::BTreeMap<String, i64>"),
        (json!({ "patternProperties": { "^x": { "type": "integer" } } }), "::std::collections::BTreeMap<String, i64>"),
        (
            json!({ "patternProperties": { "^x": { "type": "integer" } }, "required": ["id"] }),
            "::std::collections::BTreeMap<String, ops::Value>",
        ),
        (json!({ "type": "object", "additionalProperties": false }), "OpOutput"),
        (json!({ "properties": { "a": {} } }), "OpOutput"),
        (json!({ "enum": ["a", "b"] }), "OpOutput"),
        (json!({ "enum": ["a", null] }), "Option<OpOutput>"),
        (json!({ "enum": [null] }), "()"),
        (json!({ "enum": [[1], {}] }), "ops::Value"),
        (json!({ "const": 1 }), "OpOutput"),
        (pet.clone(), "Pet"),
        (json!({ "$ref": "#/$defs/Pet", "description": "x" }), "Pet"),
        (json!({ "$ref": "#/$defs/Pet", "nullable": true }), "Option<Pet>"),
        (json!({ "$ref": "#/$defs/None" }), "ops::Value"),
        (json!({ "allOf": [pet] }), "Pet"),
        (json!({ "allOf": [pet, { "description": "x" }] }), "Pet"),
        (json!({ "allOf": [pet, { "properties": { "b": {} } }] }), "OpOutput"),
        (json!({ "$ref": "#/$defs/Pet", "if": {}, "then": { "properties": { "id": { "minLength": 1 } } } }), "Pet"),
        (json!({ "$ref": "#/$defs/Pet", "if": {}, "then": { "properties": { "zip": {} } } }), "OpOutput"),
        (json!({ "allOf": [{ "type": "number" }, { "type": "integer" }] }), "i64"),
        (json!({ "allOf": [{ "type": "string" }, { "type": "integer" }] }), "ops::Value"),
        (json!({ "oneOf": [pet] }), "Pet"),
        (json!({ "oneOf": [pet, { "type": "null" }] }), "Option<Pet>"),
        (json!({ "anyOf": [pet, pet] }), "Pet"),
        (json!({ "anyOf": [pet, {}] }), "OpOutput"),
        (json!({ "oneOf": [{ "title": "Ok", "$ref": "#/$defs/Pet" }, { "title": "Accepted" }] }), "OpOutput"),
        (json!({ "type": "array", "items": { "anyOf": [pet, true] } }), "Vec<OpOutputItem>"),
        (json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }), "OpOutput"),
        (json!({ "anyOf": [{ "type": "string", "format": "uri" }, { "type": "string" }] }), "String"),
        (json!({ "type": "string", "anyOf": [{ "maxLength": 1 }, { "pattern": "x" }] }), "String"),
        (json!({ "type": "string", "not": { "enum": ["a"] }, "if": {}, "then": {} }), "String"),
        (json!({ "type": "fish" }), "ops::Value"),
        (json!({ "type": "array", "items": { "type": "array", "items": pet } }), "Vec<Vec<Pet>>"),
    ] {
        assert_eq!(output(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn names_do_not_hide_what_is_sent() {
    let values = json!({ "enum": ["-createdAt", "createdAt", "+name", "!done"] });
    let object = json!({ "type": "object", "properties": {
        "_id": { "type": "string" }, "id": { "type": "string" }, "$type": { "type": "string" }, "sort": values,
    } });
    let source = generate(Vec::new(), object).source;
    for expected in [
        "    /// `-createdAt` in JSON.\n    MinusCreatedAt,\n    CreatedAt,\n",
        "    /// `+name` in JSON.\n    Name,\n    /// `!done` in JSON.\n    NotDone,\n",
        "    /// `_id` in JSON.\n    pub id: Option<String>,\n    /// `id` in JSON.\n    pub id_2: Option<String>,\n",
        // Nothing else has its name.
        "    pub type_: Option<String>,\n",
    ] {
        assert!(source.contains(expected), "{expected}\n{source}");
    }
    assert!(!source.contains("`$type` in JSON"), "{source}");
}

#[test]
fn what_is_said_beside_a_reference_is_said_of_the_property() {
    let id = || json!({ "$ref": "#/$defs/Id" });
    let with = |key: &str| {
        let mut schema = id();
        schema[key] = true.into();
        schema
    };
    let pet = json!({
        "type": "object", "required": ["id", "secret", "old", "made"],
        "properties": {
            "id": with("readOnly"), "secret": with("writeOnly"), "old": with("deprecated"), "plain": id(),
            "made": { "anyOf": [{ "$ref": "#/$defs/Made" }, { "type": "null" }] },
        },
    });
    let mut operation = OperationSpec::query("test.op");
    operation.input = json!({ "type": "object", "properties": { "body": { "$ref": "#/$defs/Pet" } } }).into();
    operation.output = json!({ "$ref": "#/$defs/Pet" }).into();
    operation.binding = Binding::Http(HttpBinding::new("POST", "/pets"));
    // What a reference leads to may say it, too, and may be null.
    let made = json!({ "type": "string", "readOnly": true });
    let definitions = [("Id", json!({ "type": "string" })), ("Made", made), ("Pet", pet)];
    let definitions = definitions.map(|(name, schema)| Definition::from_value(name.to_owned(), schema));
    let source = Generator::new().generate(&Api::new(Definitions::new(definitions.into()), vec![operation])).source;
    for expected in [
        "    /// Only in answers.\n    pub id: Option<Id>,",
        "    /// Only in answers.\n    pub made: Option<Made>,",
        "    /// Only in requests.\n    pub secret: Option<Id>,",
        "    #[deprecated]\n    pub old: Id,",
        "    pub plain: Option<Id>,",
    ] {
        assert!(source.contains(expected), "{expected}\n{source}");
    }
}

/// The fields of a record that is the output, as the source has them.
fn fields(definitions: Vec<(&str, Value)>, schema: Value) -> Vec<String> {
    let source = generate(definitions, schema).source;
    let (_, record) = source.split_once("pub struct OpOutput {").unwrap_or_else(|| panic!("{source}"));
    let lines = record.lines().take_while(|line| *line != "}").filter_map(|line| line.trim().strip_prefix("pub "));
    lines.map(|line| line.trim_end_matches(',').replace("::std::collections::", "")).collect()
}

#[test]
fn properties_under_a_condition_are_fields() {
    let text = || json!({ "type": "string" });
    let definitions = vec![
        ("Base", json!({ "type": "object", "properties": { "kind": text() } })),
        ("More", json!({ "properties": { "more": text() } })),
        ("Loop", json!({ "$ref": "#/$defs/Loop", "then": { "$ref": "#/$defs/Loop" }, "properties": { "a": text() } })),
    ];
    let conditions = json!({ "allOf": [
        { "$ref": "#/$defs/Base" },
        { "if": { "properties": { "kind": { "const": "a" }, "asked": { "const": 1 } } },
          "then": { "required": ["zip"], "properties": { "zip": text(), "kind": { "minLength": 3 }, "either": text() } },
          "else": { "allOf": [{ "$ref": "#/$defs/More" }], "properties": { "either": { "type": "integer" } } } },
        { "if": true, "then": { "properties": { "other": { "type": "integer" } } } },
        { "dependentSchemas": { "kind": { "if": true, "then": { "properties": { "deep": text() } } } } },
    ] });
    assert_eq!(
        fields(definitions.clone(), conditions),
        [
            "kind: Option<String>",
            "asked: Option<ops::Value>",
            "zip: Option<String>",
            "either: Option<StringOrInteger>",
            "more: Option<String>",
            "other: Option<i64>",
            "deep: Option<String>",
        ]
    );
    // The default of a branch that may not hold is nobody's value.
    let branch = json!({ "type": "object", "properties": { "a": text() },
        "else": { "properties": { "d": { "type": "string", "default": "z" } } } });
    assert_eq!(fields(vec![], branch), ["a: Option<String>", "d: Option<String>"]);
    // Not where the object forbids it, or keeps it by itself.
    let then = json!({ "properties": { "zip": text() } });
    let with = |key: &str, value: Value| {
        let mut schema = json!({ "type": "object", "properties": { "a": text() }, "if": true, "then": then });
        schema[key] = value;
        fields(definitions.clone(), schema)
    };
    assert_eq!(with("additionalProperties", json!(false)), ["a: Option<String>"]);
    assert_eq!(with("additionalProperties", text()), ["a: Option<String>", "extra: BTreeMap<String, String>"]);
    assert_eq!(with("unevaluatedProperties", json!(false)), ["a: Option<String>", "zip: Option<String>"]);
    generate(definitions, json!({ "$ref": "#/$defs/Loop" }));
}

#[test]
fn of_several_limits_the_strictest_is_told() {
    let limited = json!({ "type": "object", "properties": {
        "text": { "allOf": [{ "type": "string", "maxLength": 100 }, { "maxLength": 3, "minLength": 1 }, { "minLength": 2 }] },
        "number": { "allOf": [{ "type": "integer", "minimum": 0, "maximum": 100 }, { "minimum": 10, "maximum": 200 }] },
        "list": { "type": "array", "maxItems": 9, "allOf": [{ "maxItems": 5 }] },
    } });
    let source = generate(Vec::new(), limited).source;
    for expected in ["/// 2 to 3 characters.", "/// 10 to 100.", "/// At most 5 items."] {
        assert!(source.contains(expected), "{expected}: {source}");
    }
}

#[test]
fn undeclared_properties_have_the_type_that_holds_for_all() {
    let integer = || json!({ "type": "integer" });
    let text = || json!({ "type": "string" });
    let extra = |mut schema: Value| {
        schema["properties"] = json!({ "a": {} });
        fields(Vec::new(), schema).pop().unwrap()
    };
    for (schema, expected) in [
        (json!({ "unevaluatedProperties": integer() }), "i64"),
        (json!({ "patternProperties": { "^x": integer() } }), "ops::Value"),
        (json!({ "patternProperties": { "^x": integer() }, "additionalProperties": false }), "i64"),
        (json!({ "patternProperties": { "^x": integer() }, "unevaluatedProperties": false }), "i64"),
        (json!({ "patternProperties": { "^x": integer() }, "additionalProperties": integer() }), "i64"),
        (json!({ "patternProperties": { "^x": integer() }, "additionalProperties": text() }), "ops::Value"),
        (json!({ "patternProperties": { "^x": integer() }, "additionalProperties": true }), "ops::Value"),
        (json!({ "additionalProperties": false, "unevaluatedProperties": integer() }), "none"),
    ] {
        let found = extra(schema.clone());
        let found = found.strip_prefix("extra: BTreeMap<String, ").map_or("none", |found| found.trim_end_matches('>'));
        assert_eq!(found, expected, "{schema}");
    }
}

/// An alias of a tuple refers to the tuple, so its warning is that of the tuple.
#[test]
fn a_tuple_that_holds_itself_by_a_name_is_said() {
    let next = json!({ "anyOf": [{ "$ref": "#/$defs/Name" }, { "type": "null" }] });
    let definitions = vec![
        ("Loop", json!({ "$ref": "#/$defs/Loop" })),
        ("Name", json!({ "$ref": "#/$defs/Pair" })),
        ("Pair", json!({ "prefixItems": [{}, next] })),
    ];
    let output = json!({ "prefixItems": [{ "$ref": "#/$defs/Loop" }, { "$ref": "#/$defs/Name" }] });
    let diagnostics = generate(definitions, output).diagnostics;
    let told: Vec<(&str, &str)> = diagnostics.iter().map(|told| (&*told.pointer, &*told.message)).collect();
    let held = "the definition is part of itself, in a tuple or beside `null`";
    assert_eq!(
        told,
        [("/$defs/Loop", "the definition refers to nothing but itself"), ("/$defs/Name", held), ("/$defs/Pair", held)]
    );
}

/// A schema that is merged with the one around it has itself inside: it is one type, not one for each level.
#[test]
fn a_schema_that_merging_puts_into_itself_is_one_type() {
    let node = || json!({ "$ref": "#/$defs/Node" });
    let more = |name: &str| json!({ "type": "object", "properties": { name: { "type": "integer" } } });
    let definition = json!({ "type": "object", "properties": {
        "children": { "type": "array", "items": { "allOf": [node(), more("weight")] } },
        "next": { "anyOf": [{ "allOf": [node(), more("step")] }, { "type": "null" }] },
        "other": { "oneOf": [{ "allOf": [node(), more("way")], "required": ["way"] }, { "type": "string" }] },
    } });
    let Generated { source, diagnostics, .. } = generate(vec![("Node", definition)], node());
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let types = source.lines().filter(|line| line.starts_with("pub struct Node") || line.starts_with("pub enum Node"));
    assert_eq!(
        types.collect::<Vec<_>>(),
        [
            "pub struct Node {",
            "pub struct NodeChildrenItem {",
            "pub struct NodeNextValue {",
            "pub enum NodeOther {",
            "pub struct NodeChildrenItemNextOtherWithChildren {",
        ]
    );
    let fields = "    pub children: Option<Vec<NodeChildrenItem>>,\n    pub next: Option<NodeNextValue>,\n    \
                  pub other: Option<NodeOther>,\n";
    for expected in [
        format!("pub struct Node {{\n{fields}}}"),
        format!("pub struct NodeChildrenItem {{\n{fields}    pub weight: Option<i64>,\n}}"),
        "pub enum NodeOther {\n    WithChildren(NodeChildrenItemNextOtherWithChildren),\n".to_owned(),
    ] {
        assert!(source.contains(&expected), "{expected}: {source}");
    }
    // What has properties only under a condition is merged, too.
    let more = || json!({ "properties": { "more": { "type": "string" } } });
    for child in [
        json!({ "$ref": "#/$defs/Node", "if": { "required": ["a"] }, "then": more() }),
        json!({ "allOf": [node()], "if": { "required": ["a"] }, "then": more() }),
        json!({ "allOf": [node(), { "dependentSchemas": { "a": more() } }] }),
    ] {
        let definition = json!({ "type": "object", "properties": { "child": child } });
        let Generated { source, diagnostics, .. } = generate(vec![("Node", definition)], node());
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert_eq!(source.matches("pub struct Node").count(), 2, "{source}");
        for expected in [
            "pub struct Node {\n    pub child: Option<NodeChild>,\n}",
            "pub struct NodeChild {\n    pub child: Option<Box<NodeChild>>,\n    pub more: Option<String>,\n}",
        ] {
            assert!(source.contains(expected), "{expected}: {source}");
        }
    }
}

#[test]
fn what_cannot_be_typed_is_said() {
    for (schema, message) in [
        (json!({ "allOf": [{ "type": "string" }, { "type": "integer" }] }), "no value is both string and integer"),
        (json!({ "$ref": "#/$defs/None" }), "`#/$defs/None` refers to no definition"),
        (json!({ "type": "fish" }), "`fish` is no type of JSON Schema"),
        (json!({ "enum": [[1]] }), "`enum` holds values that are not scalars"),
        (json!({ "enum": [1, u64::MAX] }), "`enum` holds an integer that is too large for `i64`"),
        (json!({ "enum": [[1], u64::MAX] }), "`enum` holds values that are not scalars"),
        (json!({ "$ref": "#/$defs/Loop" }), "the definition refers to nothing but itself"),
        (json!({ "$ref": "#/$defs/Pair" }), "the definition is part of itself, in a tuple or beside `null`"),
    ] {
        let next = json!({ "anyOf": [{ "$ref": "#/$defs/Pair" }, { "type": "null" }] });
        let definitions =
            vec![("Loop", json!({ "$ref": "#/$defs/Loop" })), ("Pair", json!({ "prefixItems": [{}, next] }))];
        let diagnostics = generate(definitions, schema).diagnostics;
        assert!(diagnostics.iter().any(|diagnostic| diagnostic.message == message), "{message}: {diagnostics:?}");
    }
}

#[test]
fn hostile_schemas_cost_no_stack_and_little_time() {
    // A chain of aliases, of bases and of fields.
    let number = 3000;
    let name = |i: usize| format!("N{i}");
    let link = |i: usize| json!({ "$ref": format!("#/$defs/N{}", (i + 1) % number) });
    let chains: [&dyn Fn(usize) -> Value; 5] = [
        &link,
        &|i| json!({ "allOf": [link(i), { "properties": { name(i): {} } }] }),
        &|i| json!({ "type": "object", "properties": { "next": link(i) }, "required": ["next"] }),
        &|i| json!({ "anyOf": [link(i), { "type": "string" }] }),
        &|i| json!({ "type": "array", "items": link(i) }),
    ];
    for chain in chains {
        let names: Vec<String> = (0..number).map(name).collect();
        let definitions = names.iter().enumerate().map(|(i, name)| (name.as_str(), chain(i))).collect();
        generate(definitions, link(0));
    }
    // Each definition is twice the one before.
    let double = |i: usize| {
        let next = json!({ "$ref": format!("#/$defs/N{}", i + 1) });
        json!({ "allOf": [next, { "properties": { "x": next } }, { "oneOf": [next, { "required": [name(i)] }] }] })
    };
    let names: Vec<String> = (0..60).map(name).collect();
    let definitions = names.iter().enumerate().map(|(i, name)| (name.as_str(), double(i))).collect();
    generate(definitions, json!({ "$ref": "#/$defs/N0" }));
    // Deeper than anybody can print.
    let mut deep = json!({ "type": "string" });
    for _ in 0..2000 {
        deep = Value::Object([("items".to_owned(), deep)].into_iter().collect());
    }
    assert_eq!(output(deep), "ops::Value");
    // As deep as it can be.
    let mut deep = json!({ "type": "string" });
    for _ in 0..100 {
        deep = json!({ "items": deep });
    }
    let source = generate(Vec::new(), deep).source;
    assert!(source.contains("Vec<ops::Value>") && source.matches("Vec<").count() < 42, "rustc refuses more");
}

/// The module of tools with these schemas of inputs.
fn tools(inputs: &[(&str, Value)]) -> Generated {
    let tool = |(name, schema): &(&str, Value)| json!({ "name": name, "inputSchema": schema });
    let list = json!({ "tools": inputs.iter().map(tool).collect::<Vec<Value>>() });
    let (api, _) = ops_runtime::mcp::read(&list, &ops_runtime::mcp::ReadOptions::new()).unwrap();
    Generator::new().generate(&api)
}

#[test]
fn a_reference_beside_the_properties_of_an_input_is_part_of_it() {
    let base = json!({ "type": "object", "required": ["path"], "properties": { "path": { "type": "string" } } });
    let input = |more: Value| {
        let mut schema = json!({ "type": "object", "$ref": "#/$defs/Base", "$defs": { "Base": base } });
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        schema
    };
    let source = tools(&[
        ("edit", input(json!({ "properties": { "dry": { "type": "boolean" } } }))),
        ("show", input(json!({ "required": ["path"] }))),
    ])
    .source;
    let fields = |name: &str| {
        let (_, record) = source.split_once(&format!("pub struct {name} {{\n")).unwrap_or_else(|| panic!("{source}"));
        let (fields, _) = record.split_once('}').unwrap();
        fields.to_owned()
    };
    let edit = fields("EditInput");
    assert!(edit.contains("pub path: String,") && edit.contains("pub dry: Option<bool>,"), "{edit}");
    assert_eq!(fields("ShowInput").trim(), "pub path: String,");
}

#[test]
fn inputs_are_made_from_what_they_require() {
    let object = |schema: Value| {
        let mut object = json!({ "type": "object" });
        object.as_object_mut().unwrap().extend(schema.as_object().unwrap().clone());
        object
    };
    let source = tools(&[
        ("tick", object(json!({}))),
        ("list", object(json!({ "properties": { "limit": { "type": "integer" } } }))),
        ("show", object(json!({ "required": ["id"], "properties": { "id": { "type": "integer" } } }))),
        ("loop", object(json!({ "required": ["next"], "properties": { "next": { "$ref": "#" } } }))),
    ])
    .source;
    syn::parse_file(&source).unwrap();
    for expected in [
        "ops::table!(super::TickInput, Default, ());",
        "ops::table!(super::ListInput, Default, ());",
        "ops::table!(super::ShowInput);",
        "impl From<i64> for super::ShowInput {",
    ] {
        assert!(source.contains(expected), "{expected}\n{source}");
    }
    // Every type has the conversion from itself.
    let (_, next) = source.split_once("pub next: ").unwrap();
    let (next, _) = next.split_once(',').unwrap();
    let own = next.trim_start_matches("Box<").trim_end_matches('>');
    assert!(!source.contains(&format!("impl From<super::{own}> for super::{own} ")), "{source}");
    assert!(source.contains(&format!("impl super::{own} {{")), "it has a `new` all the same: {source}");
}
