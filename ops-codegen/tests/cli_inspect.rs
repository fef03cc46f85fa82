//! `ops inspect` of one operation: all that is required, all that there is, and what could not be read.

mod folder;

use folder::{Folder, SHOP};
use serde_json::{Value, json};

/// A document whose body has its parts in several schemas, and more properties and values than are shown.
fn document() -> String {
    let many = (0..60).map(|n| (format!("field{n:02}"), json!({ "type": "string" })));
    let mut properties: serde_json::Map<String, Value> = many.collect();
    properties.insert("zone".into(), json!({ "enum": (0..60).map(|n| format!("zone-{n}")).collect::<Vec<_>>() }));
    let base =
        json!({ "type": "object", "properties": { "name": { "type": "string" }, "note": { "type": "string" } } });
    let body = json!({ "allOf": [
        { "$ref": "#/components/schemas/Base" },
        { "$ref": "#/components/schemas/Needs" },
        { "type": "object", "properties": properties },
        { "anyOf": [{ "required": ["note"] }, { "required": ["field01"] }] },
    ] });
    let content = json!({ "content": { "application/json": { "schema": body } } });
    let put = json!({ "operationId": "put", "requestBody": content, "responses": { "204": { "description": "x" } },
        "parameters": (0..20).map(|n| json!({ "name": format!("a-long-name-{n}"), "in": "query", "schema": {} })).collect::<Vec<_>>() });
    json!({ "openapi": "3.1.0", "info": { "title": "t", "version": "1" }, "paths": { "/x": { "put": put } },
        "components": { "schemas": { "Base": base, "Needs": { "allOf": [{ "required": ["name", "zone"] }] } } } })
    .to_string()
}

#[test]
fn what_any_part_requires_is_required() {
    let folder = Folder::new("inspect-parts");
    folder.write("x.json", &document());
    let (shown, _) = folder.good(&["inspect", "x.json", "put"]);
    let body: Vec<&str> = shown.lines().filter(|line| line.trim_start().starts_with("body.")).collect();
    // What is required comes first; one of several ways to fill the body requires nothing by itself.
    let required: Vec<bool> = body.iter().map(|line| line.contains(", required")).collect();
    assert!(required.iter().take(2).all(|required| *required) && !required[2..].contains(&true), "{shown}");
    assert!(body[..2].iter().all(|line| line.contains("body.name") || line.contains("body.zone")), "{shown}");
    // What is left out is told.
    assert_eq!(body.len(), 50, "{shown}");
    assert!(shown.contains("\n    and 13 more: `--json` shows all\n"), "{shown}");
    assert!(shown.contains("\"zone-49\" and 10 more: `--json` shows all\n") && !shown.contains("zone-50"), "{shown}");
}

#[test]
fn json_has_all_that_there_is() {
    let folder = Folder::new("inspect-json");
    folder.write("x.json", &document());
    let json = |arguments: &[&str]| -> Value {
        let (shown, _) = folder.good(&[&["inspect", "x.json"], arguments, &["--json"]].concat());
        serde_json::from_str(&shown).unwrap()
    };
    let shown = json(&["put"]);
    let properties = shown["input"]["properties"].as_array().unwrap();
    let named = |name: &str| properties.iter().find(|property| property["name"] == name).unwrap();
    let of_body = properties.iter().filter(|property| property["name"].as_str().unwrap().starts_with("body."));
    assert_eq!((of_body.count(), named("body.zone")["values"].as_array().unwrap().len()), (63, 60));
    assert_eq!([&named("body.name")["required"], &named("body.note")["required"]], [true, false]);
    // As a program can write it.
    assert_eq!(named("a-long-name-1")["rust"], "Option<serde_json::Value>");
    let input = json(&[])["modules"][0]["operations"][0]["input"].as_str().unwrap().to_owned();
    assert!(input.contains("a-long-name-19?: any, ") && input.contains("body?: "), "{input}");
    // For people, it is cut.
    let (table, _) = folder.good(&["inspect", "x.json"]);
    assert!(table.contains("...") && !table.contains("a-long-name-19"), "{table}");
}

/// A condition says nothing about the properties that it tests, and what it brings is optional.
#[test]
fn conditions_describe_no_property_that_is_declared() {
    let folder = Folder::new("inspect-conditions");
    let by_card = json!({
        "if": { "properties": { "method": { "const": "card" } }, "required": ["method"] },
        "then": {
            "properties": { "number": { "type": "string" }, "method": { "description": "card" } },
            "required": ["number", "method"],
        },
    });
    let pay = json!({ "$ref": "#/components/schemas/Pay" });
    let mut beside = by_card.clone();
    beside["$ref"] = pay["$ref"].clone();
    let method = json!({ "enum": ["card", "iban"], "description": "How it is paid." });
    for (name, body) in [("parts", json!({ "allOf": [pay, by_card] })), ("beside", beside)] {
        let content = json!({ "content": { "application/json": { "schema": body } } });
        let put =
            json!({ "operationId": "put", "requestBody": content, "responses": { "204": { "description": "x" } } });
        let document = json!({ "openapi": "3.1.0", "info": { "title": "t", "version": "1" }, "paths": { "/x": { "put": put } },
            "components": { "schemas": { "Pay": { "type": "object", "properties": { "method": method } } } } });
        folder.write("x.json", &document.to_string());
        let (shown, _) = folder.good(&["inspect", "x.json", "put", "--json"]);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let properties = shown["input"]["properties"].as_array().unwrap();
        let named = |name: &str| properties.iter().find(|property| property["name"] == name).unwrap();
        let told = named("body.method");
        assert_eq!(told["values"], json!(["card", "iban"]), "{name}: {told}");
        assert_eq!(told["description"], "How it is paid.", "{name}");
        assert_eq!([&told["required"], &named("body.number")["required"]], [false, false], "{name}");
    }
}

#[test]
fn documents_that_cannot_be_read_are_told_beside_an_operation() {
    let folder = Folder::new("inspect-unread");
    folder.write("apis/shop.yaml", SHOP);
    folder.write("apis/bad.yaml", "a: [");
    for operation in ["shop.showPet", "GET /ping"] {
        let (status, stdout, stderr) = folder.ops(&["inspect", "apis", operation]);
        assert!(status == 3 && stdout.starts_with("shop."), "{status}: {stdout}");
        assert!(stderr.contains("apis/bad.yaml:1:4") && stderr.contains("nothing was made of a file"), "{stderr}");
    }
    // The operation may be in the document that cannot be read.
    folder.fails(3, &["inspect", "apis", "shwPet"], &["apis/bad.yaml:1:4", "no operation `shwPet`", "`showPet`"]);
    let (status, stdout, stderr) = folder.ops(&["inspect", "apis", "ping", "--json"]);
    assert!(status == 3 && stderr.contains("apis/bad.yaml"), "{stderr}");
    assert_eq!(serde_json::from_str::<Value>(&stdout).unwrap()["id"], "shop.ping");
    folder.write("ops.toml", "[documents.all]\npath = \"apis\"\n");
    folder.fails(3, &["inspect", "ops.toml", "ping"], &["apis/bad.yaml:1:4"]);
    folder.remove("apis/bad.yaml");
    folder.good(&["inspect", "apis", "ping"]);
    folder.fails(2, &["inspect", "apis", "shwPet"], &["did you mean `showPet`?"]);
}

#[test]
fn an_operation_has_one_id_everywhere() {
    let folder = Folder::new("inspect-ids");
    for (file, namespace) in [
        ("openapi.yaml", "openapi"),
        ("pet-store.yaml", "pet-store"),
        ("Shop.v2.yaml", "Shop"),
        ("api.github.com.yaml", "api"),
    ] {
        folder.write(file, SHOP);
        let (shown, _) = folder.good(&["inspect", file, "--json"]);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["modules"][0]["operations"][0]["id"], format!("{namespace}.showPet"));
        let id = format!("{namespace}.ping");
        folder.fails(1, &["call", file, &id, "--base-url", "http://127.0.0.1:9"], &[&id]);
        // The name that `ops generate --lang ts` declares.
        let function = format!("ops.{}.addPet", namespace.replace('-', "_"));
        folder.write("program.js", &format!("return {function}({{ body: {{ id: 1, name: 'Rex' }} }})"));
        let (_, said) = folder.good(&["run", "program.js", "--spec", file, "--dry-run"]);
        assert!(said.contains(&format!("would call: {namespace}.addPet ")), "{said}");
    }
}
