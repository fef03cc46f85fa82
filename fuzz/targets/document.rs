//! The readers of documents and of lists of tools: any text is an `Api` or an error, and an `Api` keeps what it promises.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use ops_runtime::mcp;
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::spec::{Api, Diagnostic, OperationSpec};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    ops_fuzz::mutate_json(data, size, max_size, seed)
});

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let parsed = openapi::parse(text).ok().and_then(|document| {
        let tools = mcp::read(&document, &mcp::ReadOptions::new());
        assert!(tools.is_ok() || !mcp::is_tool_list(&document));
        if let Ok((api, diagnostics)) = &tools {
            check(api, diagnostics);
            assert_eq!(mcp::changes(api, api), [], "what is the same has not changed");
        }
        let read = openapi::read(&document, &ReadOptions::new());
        if let Ok((api, diagnostics)) = &read {
            check(api, diagnostics);
        }
        read.ok()
    });
    // With positions, and with references from one document to another.
    let source = BTreeMap::from([("a/main.json".to_owned(), text.to_owned()), ("a/b".to_owned(), text.to_owned())]);
    let loaded = openapi::load("a/main.json", &source, &ReadOptions::new().with_max_documents(4)).ok();
    assert_eq!(parsed.is_some(), loaded.is_some(), "what is a document is one, wherever it comes from");
    if let Some((api, diagnostics)) = &loaded {
        check(api, diagnostics);
    }
});

fn check(api: &Api, diagnostics: &[Diagnostic]) {
    let mut ids = BTreeSet::new();
    for operation in &api.operations {
        assert!(ids.insert(&operation.id), "`{}` comes twice", operation.id);
    }
    for operation in api.operations.iter().take(8) {
        let json = serde_json::to_string(operation).expect("a spec has JSON");
        let read: OperationSpec = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error} in {json}"));
        assert_eq!(serde_json::to_string(&read).expect("JSON"), json);
    }
    let mut names = BTreeSet::new();
    for definition in api.definitions.as_slice() {
        assert!(names.insert(&definition.name), "`{}` comes twice", definition.name);
    }
    for diagnostic in diagnostics {
        assert!(!diagnostic.message.is_empty());
        assert!(diagnostic.pointer.is_empty() || diagnostic.pointer.starts_with('/'), "{}", diagnostic.pointer);
    }
}
