//! The same document gives the same bytes, and a longer one gives the same names.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use ops_codegen::Generator;
use ops_runtime::openapi::{ReadOptions, read};
use serde_json::{Value, json};

fn source(document: &Value) -> String {
    let (api, _) = read(document, &ReadOptions::new()).unwrap();
    Generator::new().generate(&api).source
}

fn document() -> Value {
    serde_json::from_str(include_str!("golden/unions.json")).unwrap()
}

/// What the module declares, but for the lines that list it.
fn declarations(source: &str) -> Vec<&str> {
    source.lines().filter(|line| line.starts_with("pub ") || line.starts_with("    pub ")).collect()
}

#[test]
fn what_is_appended_changes_no_name() {
    let mut document = document();
    let before = source(&document);
    let answer = |name: &str| {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        json!({ "200": { "description": "x", "content": { "application/json": { "schema": schema } } } })
    };
    // Names that were given to hoisted types, to inputs and to operations, now wanted by definitions and operations.
    for name in ["ByConstGone", "AllInput", "All", "push", "PUSH", "all_input_body"] {
        document["components"]["schemas"][name] =
            json!({ "type": "object", "properties": { "of": { "type": "string" }, name: { "enum": ["a"] } } });
        document["paths"][format!("/{name}")] = json!({ "get": { "operationId": name, "responses": answer(name) } });
    }
    document["paths"]["/later"] = json!({ "get": { "operationId": "by const", "responses": answer("ByConst") } });
    let after = source(&document);
    let (before, after) = (declarations(&before), declarations(&after));
    assert!(after.len() > before.len() + 12);
    let mut rest = after.iter();
    for line in before {
        assert!(rest.any(|other| *other == line), "`{line}` is gone or out of order");
    }
}

#[test]
fn two_processes_print_the_same() {
    if std::env::var_os("OPS_PRINT").is_some() {
        print!("<<{}>>", source(&document()));
        return;
    }
    let print = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let command = command.args(["two_processes_print_the_same", "--exact", "--nocapture"]).env("OPS_PRINT", "1");
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let start = output.find("<<").unwrap();
        output[start + 2..output.rfind(">>").unwrap()].to_owned()
    };
    let first = print();
    assert!(first.contains("pub enum ByConst"));
    assert!(first == print() && first == source(&document()));
}

#[test]
fn output_names_the_runtime_as_it_is_told() {
    let (api, _) = read(&document(), &ReadOptions::new()).unwrap();
    let source = Generator::new().with_runtime("crate::facade::ops").unwrap().generate(&api).source;
    assert!(source.contains("use crate::facade::ops as ops;") && !source.contains("ops_runtime"));
    for bad in ["", "a b", "x; fn main() {}", "Vec<u8>", "::"] {
        assert!(Generator::new().with_runtime(bad).is_err(), "{bad}");
    }
}
