//! The lowering: any definitions become a module that is Rust, and nothing but what a module should hold.
//!
//! An input is an OpenAPI document, or an object of schemas: the definitions of an API whose one operation takes and
//! gives them all.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use ops_codegen::Generator;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Api, Definition, Definitions, OperationSpec};
use serde_json::{Map, Value, json};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    ops_fuzz::mutate_json(data, size, max_size, seed)
});

fuzz_target!(|input: &[u8]| {
    let Ok(value) = serde_json::from_slice::<Value>(input) else { return };
    let api = match &value {
        Value::Object(document) if document.contains_key("openapi") || document.contains_key("swagger") => {
            match openapi::read(&value, &ReadOptions::new()) {
                Ok((api, _)) => api,
                Err(_) => return,
            }
        }
        Value::Object(schemas) => api(schemas.get("$defs").and_then(Value::as_object).unwrap_or(schemas)),
        _ => return,
    };
    let generated = Generator::new().generate(&api);
    assert_eq!(generated.source, Generator::new().generate(&api).source);
    let file = syn::parse_file(&generated.source).expect("what is printed is Rust");
    assert!(file.attrs.is_empty(), "a module body has no inner attributes");
    check(&file.items);
});

fn api(schemas: &Map<String, Value>) -> Api {
    let reference = |name: &String| {
        let name = name.replace('~', "~0").replace('/', "~1");
        (name.clone(), json!({ "$ref": format!("#/$defs/{name}") }))
    };
    let all: Map<String, Value> = schemas.keys().map(reference).collect();
    let definitions = schemas.iter().map(|(name, schema)| Definition::from_value(name.clone(), schema.clone()));
    let mut operation = OperationSpec::mutation("fuzz.all");
    operation.input =
        json!({ "type": "object", "properties": { "body": { "type": "object", "properties": all } } }).into();
    operation.output = json!({ "type": "object", "properties": all }).into();
    Api::new(Definitions::new(definitions.collect()), vec![operation])
}

/// No item is of a kind that the generator does not print.
fn check(items: &[syn::Item]) {
    for item in items {
        match item {
            syn::Item::Struct(_) | syn::Item::Enum(_) | syn::Item::Type(_) | syn::Item::Use(_) => {}
            syn::Item::Impl(_) | syn::Item::Static(_) | syn::Item::Const(_) => {}
            syn::Item::Fn(item) => {
                let name = item.sig.ident.to_string();
                assert!(name == "operations" || name == "definitions", "a function `{name}`");
            }
            syn::Item::Mod(item) => check(item.content.as_ref().map_or(&[], |(_, items)| items)),
            syn::Item::Macro(item) => {
                let path = &item.mac.path;
                assert!(path.segments.len() > 1 && item.ident.is_none(), "a macro of the document's");
            }
            _ => panic!("an item of another kind"),
        }
    }
}
