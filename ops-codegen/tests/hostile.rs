//! Documents whose every string tries to become code, to lie to a reader or to reach a file: `golden/hostile.json`, and
//! `golden/hostile_tools.json` of an MCP server.
//!
//! That the module compiles and says what the document says is checked beside the other golden files.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use ops_codegen::{Builder, Module};
use serde_json::json;
use syn::Item;

const PRINTED: [&str; 2] = [include_str!("golden/hostile.rs"), include_str!("golden/hostile_tools.rs")];

fn module(document: &Path) -> Module {
    Builder::new().document(document).generate().unwrap().remove(0)
}

/// Only items of the kinds that a generator prints, by names of its own making.
fn check(items: &[Item]) {
    for item in items {
        match item {
            Item::Struct(_) | Item::Enum(_) | Item::Type(_) | Item::Impl(_) | Item::Static(_) | Item::Use(_) => {}
            Item::Const(item) => {
                let name = item.ident.to_string();
                assert!(name.chars().all(|c| c == '_' || c.is_ascii_uppercase() || c.is_ascii_digit()), "{name}");
            }
            Item::Fn(item) => assert!(item.sig.ident == "operations" || item.sig.ident == "definitions"),
            Item::Mod(item) => check(&item.content.as_ref().unwrap().1),
            Item::Macro(item) => {
                let path: Vec<String> = item.mac.path.segments.iter().map(|part| part.ident.to_string()).collect();
                assert_eq!(path.first().map(String::as_str), Some("ops"), "{path:?}");
            }
            _ => panic!("an item of another kind"),
        }
    }
}

#[test]
fn nothing_becomes_code() {
    for printed in PRINTED {
        let file = syn::parse_file(printed).unwrap();
        assert!(file.attrs.is_empty());
        check(&file.items);
    }
    // Marks that change what a reader sees, and controls that change what a terminal shows.
    let is_hidden = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    for printed in PRINTED {
        let hidden: Vec<(usize, char)> = printed.char_indices().filter(|(_, c)| is_hidden(*c)).collect();
        assert!(hidden.is_empty(), "{hidden:?}");
    }
}

#[test]
fn references_lead_out_of_no_folder() {
    let module = module(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hostile.json"));
    assert!(!module.generated.source.contains("root:") && !module.generated.source.contains("rust-version"));
    let told: Vec<String> = module.generated.diagnostics.iter().map(ToString::to_string).collect();
    for (at, refused) in
        ["Cargo.toml", "/etc/passwd", "/etc/passwd", "file:///etc/passwd", "example.invalid"].iter().enumerate()
    {
        let place = format!("/properties/r{at}");
        let is_told = |text: &&String| text.contains(&place) && text.contains(refused);
        assert!(told.iter().any(|text| is_told(&text)), "{refused} in {told:#?}");
    }
}

#[test]
fn tools_refer_to_nothing_outside() {
    let module = module(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hostile_tools.json"));
    assert!(!module.generated.source.contains("root:") && !module.generated.source.contains("rust-version"));
    let told: Vec<String> = module.generated.diagnostics.iter().map(ToString::to_string).collect();
    let refused = module.operations.iter().filter(|spec| spec.name().starts_with("reference_")).count();
    assert_eq!(refused, 7);
    for side in ["inputSchema", "outputSchema"] {
        let told =
            told.iter().filter(|text| text.contains(&format!("/{side}/properties/a")) && text.contains("any value"));
        assert_eq!(told.count(), refused, "{side}");
    }
}

#[test]
fn no_title_is_a_path() {
    let folder = std::env::temp_dir().join(format!("ops-hostile-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for title in ["../../etc/passwd", "..", "/root", "a\\..\\b", "\u{0}", "con", "\u{202e}x", "a/b"] {
        let file = folder.join("openapi.json");
        let document = json!({ "openapi": "3.1.0", "info": { "title": title, "version": "1" }, "paths": {} });
        std::fs::write(&file, document.to_string()).unwrap();
        let namespace = module(&file).namespace;
        let is_word = |c: char| c == '_' || c.is_alphanumeric();
        assert!(!namespace.is_empty() && namespace.chars().all(is_word), "{title}: {namespace}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
