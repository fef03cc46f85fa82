//! The quickstart prints what the README promises.

use std::process::Command;

use ops_tests::program::built;
use serde_json::{Value, json};

#[test]
fn it_prints_an_envelope_of_each_kind() {
    let output = Command::new(built("quickstart")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = |mark: &str| -> Vec<Value> {
        let marked = text.lines().filter_map(|line| line.trim_start().strip_prefix(mark));
        marked.map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (envelopes, errors) = (lines("->"), lines("!!"));
    let sources: Vec<_> = envelopes.iter().map(|e| e["meta"]["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["local", "http", "http", "http", "http", "http", "http", "local"], "{text}");
    assert_eq!(envelopes[1]["data"], envelopes[2]["data"], "by type and by id");
    assert_eq!(envelopes[3]["warnings"][0]["pointer"], "/id");
    assert_eq!((&envelopes[3]["data"]["id"], &envelopes[3]["data"]["price"]), (&json!(2), &json!(12.5)));
    let events: Vec<_> = envelopes[4..7].iter().map(|e| e["meta"]["event"]["id"].as_str().unwrap()).collect();
    assert_eq!(events, ["1", "2", "3"]);
    assert_eq!(envelopes[7]["data"], "Rex costs 267.50 euros");
    let codes: Vec<_> = errors.iter().map(|e| e["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["VALIDATION_ERROR", "EXECUTION_ERROR", "ACCESS_DENIED"]);
    assert_eq!(errors[0]["details"]["raw"], json!({ "id": 3, "status": "sold" }));
}
