//! Overlays of documents: one of ours, and one of the folder in `OPS_SPECS`. The command `tests/corpus` generates from every
//! document.
#![cfg(feature = "overlays")]

#[path = "../../tests/src/corpus/document.rs"]
#[allow(unreachable_pub, reason = "it is public in the library of the tests")]
mod document;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ops_codegen::Builder;
use ops_runtime::openapi::{ReadOptions, load, parse};
use serde_json::Value;

/// The documents of the folder, but for the largest, which take a minute in a debug build.
fn documents(folder: &Path) -> Vec<(PathBuf, Value)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let ending = |path: &PathBuf| path.extension().is_some_and(|e| e == "json" || e == "yaml" || e == "yml");
    let mut paths: Vec<_> = entries.filter(ending).filter(|path| path.metadata().unwrap().len() < 1 << 21).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let value = parse(&std::fs::read_to_string(&path).ok()?).ok()?;
        (document::is_document(&value) && is_whole(&value)).then_some((path, value))
    };
    paths.into_iter().filter_map(read).collect()
}

/// True if the document refers to no other document: the side that is edited by hand has only this one.
fn is_whole(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().all(|(key, value)| {
            let is_local = |target: &str| key != "$ref" || target.starts_with('#');
            value.as_str().is_none_or(is_local) && is_whole(value)
        }),
        Value::Array(items) => items.iter().all(is_whole),
        _ => true,
    }
}

fn is_old(value: &Value) -> bool {
    value["deprecated"] == true
}

/// Removes deprecated operations and parameters, and returns their numbers.
fn edit(document: &mut Value) -> (usize, usize) {
    let (mut operations, mut parameters) = (0, 0);
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for members in paths.into_iter().flat_map(|paths| paths.values_mut()).filter_map(Value::as_object_mut) {
        let before = members.len();
        members.retain(|_, operation| !is_old(operation));
        operations += before - members.len();
        let lists = members.values_mut().filter_map(|operation| operation.get_mut("parameters")?.as_array_mut());
        for list in lists {
            let before = list.len();
            list.retain(|parameter| !is_old(parameter));
            parameters += before - list.len();
        }
    }
    (operations, parameters)
}

/// Compares the modules of a document in two forms: changed by an overlay, which removes deprecated parts and marks all that
/// `old` matches, and edited by hand.
fn compare(document: &Path, mut value: Value, old: &str) -> (usize, usize) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("corpus-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let overlay = folder.join("current.overlay.yaml");
    let actions = format!(
        "  - target: $.paths.*[?@.deprecated == true]\n    remove: true\n\
                   \x20 - target: $.paths.*.*.parameters[?@.deprecated == true]\n    remove: true\n\
                   \x20 - target: $..[?{old}]\n    update: {{ x-old: true }}\n\
                   \x20 - target: $.info\n    update: {{ title: Current }}\n"
    );
    std::fs::write(&overlay, format!("overlay: 1.1.0\nactions:\n{actions}")).unwrap();
    let modules = Builder::new().openapi(document).with_namespace("api").with_overlay(&overlay).generate().unwrap();

    let removed = edit(&mut value);
    let source = BTreeMap::from([("api.json".to_owned(), value.to_string())]);
    let (api, _) = load("api.json", &source, &ReadOptions::new().with_namespace("api")).unwrap();
    let by_hand = Builder::new().api("api", api, Vec::new()).generate().unwrap();
    println!("{}: {} operations and {} parameters are removed", document.display(), removed.0, removed.1);
    assert_eq!(modules[0].operations, by_hand[0].operations);
    assert!(modules[0].generated.source == by_hand[0].generated.source);
    std::fs::remove_dir_all(folder).unwrap();
    removed
}

#[test]
fn an_overlay_removes_what_is_deprecated() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/deprecated.yaml");
    let value = parse(&std::fs::read_to_string(&own).unwrap()).unwrap();
    assert_eq!(compare(&own, value, "@.deprecated"), (1, 2));
    let Some(folder) = std::env::var_os("OPS_SPECS").map(PathBuf::from) else { return };
    let count = |(_, value): &(PathBuf, Value)| {
        let (operations, parameters) = edit(&mut value.clone());
        operations + parameters
    };
    let most = documents(&folder).into_iter().max_by_key(count);
    let Some((document, value)) = most else { return println!("{}: no small documents", folder.display()) };
    let wanted = edit(&mut value.clone());
    // `== true`, since a schema may have a property that is named `deprecated`.
    assert_eq!(compare(&document, value, "@.deprecated == true"), wanted);
}
