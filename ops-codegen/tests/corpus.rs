//! Overlays of a real document, of a folder: `OPS_SPECS`, or the fixtures. The command `tests/corpus` generates from every one
//! of them.
#![cfg(feature = "overlays")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ops_codegen::Builder;
use ops_runtime::openapi::{ReadOptions, load};

fn documents() -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/openapi");
    let folder = std::env::var_os("OPS_SPECS").map_or(fixtures, PathBuf::from);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let ending = |path: &PathBuf| path.extension().is_some_and(|e| e == "json" || e == "yaml" || e == "yml");
    let mut documents: Vec<_> = entries.filter(ending).collect();
    documents.sort();
    documents
}

/// The document with the most that is deprecated by an overlay that removes it, and the same document edited by hand.
#[test]
fn an_overlay_of_a_large_document() {
    // The largest take a minute in a debug build.
    let small = documents().into_iter().filter(|path| path.metadata().unwrap().len() < 1 << 21);
    let old = |path: &PathBuf| std::fs::read_to_string(path).unwrap().matches("deprecated").count();
    let document = small.max_by_key(old).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("corpus-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let overlay = folder.join("current.overlay.yaml");
    let actions = "  - target: $.paths.*[?@.deprecated == true]\n    remove: true\n\
                   \x20 - target: $.paths.*.*.parameters[?@.deprecated == true]\n    remove: true\n\
                   \x20 - target: $..[?@.deprecated]\n    update: { x-old: true }\n\
                   \x20 - target: $.info\n    update: { title: Current }\n";
    std::fs::write(&overlay, format!("overlay: 1.1.0\nactions:\n{actions}")).unwrap();
    let modules = Builder::new().openapi(&document).with_namespace("api").with_overlay(&overlay).generate().unwrap();

    let mut value = ops_runtime::openapi::parse(&std::fs::read_to_string(&document).unwrap()).unwrap();
    let is_old = |value: &serde_json::Value| value["deprecated"] == true;
    let mut removed = 0;
    for path in value["paths"].as_object_mut().unwrap().values_mut() {
        let members = path.as_object_mut().unwrap();
        let before = members.len();
        members.retain(|_, operation| !is_old(operation));
        removed += before - members.len();
        for parameters in members.values_mut().filter_map(|operation| operation.get_mut("parameters")) {
            parameters.as_array_mut().unwrap().retain(|parameter| !is_old(parameter));
        }
    }
    let source = BTreeMap::from([("api.json".to_owned(), value.to_string())]);
    let (api, _) = load("api.json", &source, &ReadOptions::new().with_namespace("api")).unwrap();
    let by_hand = Builder::new().api("api", api, Vec::new()).generate().unwrap();
    println!("{}: {removed} operations are removed", document.display());
    assert_eq!(modules[0].operations, by_hand[0].operations);
    assert!(modules[0].generated.source == by_hand[0].generated.source);
    std::fs::remove_dir_all(folder).unwrap();
}
