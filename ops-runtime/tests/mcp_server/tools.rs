//! The list of tools.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ops_runtime::Registry;
use ops_runtime::access::Identity;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::HttpBinding;
use ops_runtime::mcp::{McpServer, McpServerOptions};
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};

use crate::client::{Client, REVISIONS};
use crate::fixture::{echo, registry, server};

pub(crate) async fn names(client: &mut Client) -> Vec<String> {
    let answer = client.request("tools/list", json!({})).await;
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn as_the_golden_files_have_it() {
    for revision in REVISIONS {
        let mut client = Client::connect(server(), revision).await;
        let result = client.request("tools/list", json!({})).await["result"].clone();
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/mcp/tools-{revision}.json"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, serde_json::to_string_pretty(&result).unwrap() + "\n").unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(result, serde_json::from_str::<Value>(&golden).unwrap(), "{revision}");
        // What is listed are schemas, and complete on their own.
        for tool in result["tools"].as_array().unwrap() {
            for schema in [Some(&tool["inputSchema"]), tool.get("outputSchema")].into_iter().flatten() {
                jsonschema::draft202012::new(schema).unwrap_or_else(|error| panic!("{}: {error}", tool["name"]));
            }
            assert_eq!(tool["inputSchema"]["type"], "object");
        }
    }
}

#[tokio::test]
async fn it_says_who_it_is() {
    let options = McpServerOptions::new("shop", "2.0.0").with_instructions("Ask for pets.");
    let mut client = Client::connect(server().with_options(options), REVISIONS[1]).await;
    let result = client.request("server/discover", json!({})).await["result"].clone();
    assert_eq!(result["instructions"], "Ask for pets.", "{result}");
    assert_eq!(result["capabilities"], json!({ "tools": { "listChanged": true } }));
    assert!(result.to_string().contains(r#""name":"shop""#), "{result}");
}

#[tokio::test]
async fn page_by_page() {
    let registry = Registry::new();
    for number in 0..25 {
        registry.register(echo(&format!("many.op{number:02}"), json!({}), json!({}))).unwrap();
    }
    let options = McpServerOptions::default().with_page_size(10);
    for revision in REVISIONS {
        let mut client =
            Client::connect(McpServer::new(registry.clone()).with_options(options.clone()), revision).await;
        let (mut seen, mut pages, mut params) = (Vec::new(), 0, json!({}));
        loop {
            let result = client.request("tools/list", params).await["result"].clone();
            pages += 1;
            seen.extend(result["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()));
            let Some(cursor) = result.get("nextCursor") else { break };
            params = json!({ "cursor": cursor });
        }
        assert_eq!(pages, 3);
        let expected: Vec<_> = (0..25).map(|number| json!(format!("many_op{number:02}"))).collect();
        assert_eq!(seen, expected);
        // The last tool of a page may go; the next page is there still.
        let first = client.request("tools/list", json!({})).await["result"]["nextCursor"].clone();
        let gone = registry.remove("many.op09").unwrap();
        let second = client.request("tools/list", json!({ "cursor": first })).await;
        assert_eq!(second["result"]["tools"][0]["name"], "many_op10");
        registry.register(echo(&gone.id, json!({}), json!({}))).unwrap();
        // An empty cursor is one, and none of ours.
        for cursor in ["", "many_op01"] {
            let error = client.request("tools/list", json!({ "cursor": cursor })).await["error"].clone();
            assert_eq!(error["code"], -32602, "{error}");
        }
    }
}

#[tokio::test]
async fn names_that_clash_are_told_apart() {
    let registry = Registry::new();
    for id in ["a.b_c", "a_b.c", "a.b c", "a.größe"] {
        registry.register(echo(id, json!({}), json!({}))).unwrap();
    }
    let mut client = Client::connect(McpServer::new(registry), REVISIONS[0]).await;
    let names = names(&mut client).await;
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 4);
    for name in &names {
        assert!(name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)), "{name}");
        assert!(client.call(name, json!({ "x": 1 })).await["isError"] == false);
    }
}

#[tokio::test]
async fn a_subscription_reads_if_it_is_requested_by_get() {
    let registry = Registry::new();
    for spec in [
        OperationSpec::subscription("a.follow"),
        OperationSpec::subscription("a.watch").with_http(HttpBinding::new("GET", "/pets")),
        OperationSpec::subscription("b.chat").with_http(HttpBinding::new("POST", "/chat")),
    ] {
        let items = |_, _| async move { Ok(futures_util::stream::empty()) };
        registry.register(Registration::new(spec, Handler::dynamic_stream(items))).unwrap();
    }
    for revision in REVISIONS {
        let mut client = Client::connect(McpServer::new(registry.clone()), revision).await;
        let tools = client.request("tools/list", json!({})).await["result"]["tools"].clone();
        let hints: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool.get("annotations").cloned()).collect();
        let reads = Some(json!({ "readOnlyHint": true }));
        assert_eq!(hints, [None, reads, None], "{tools}");
    }
}

#[tokio::test]
async fn only_its_method_says_that_a_subscription_reads() {
    let registry = Registry::new();
    for spec in [
        OperationSpec::subscription("a.ask").with_http(HttpBinding::new("POST", "/questions")).with_changes(false),
        OperationSpec::subscription("b.find").with_http(HttpBinding::new("QUERY", "/pets")),
        OperationSpec::subscription("c.follow").with_changes(false),
        OperationSpec::subscription("d.purge").with_http(HttpBinding::new("GET", "/purge")).with_changes(true),
    ] {
        let items = |_, _| async move { Ok(futures_util::stream::empty()) };
        registry.register(Registration::new(spec, Handler::dynamic_stream(items))).unwrap();
    }
    let mut client = Client::connect(McpServer::new(registry), REVISIONS[0]).await;
    let tools = client.request("tools/list", json!({})).await["result"]["tools"].clone();
    let hints: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool.get("annotations").cloned()).collect();
    let reads = Some(json!({ "readOnlyHint": true }));
    assert_eq!(hints, [None, reads, None, None], "{tools}");
}

#[tokio::test]
async fn some_of_them() {
    let filtered = server().with_namespaces(["math", "shop"]).with_filter(|spec| !spec.deprecated);
    let mut client = Client::connect(filtered, REVISIONS[0]).await;
    assert_eq!(names(&mut client).await, ["math_add", "math_count", "shop_find_pet", "shop_whoami"]);
    let error = client.request("tools/call", json!({ "name": "media_picture", "arguments": {} })).await;
    assert_eq!(error["error"]["code"], -32602, "{error}");
}

#[tokio::test]
async fn what_the_caller_may_not_run_is_not_there() {
    let identity = Identity::new("ann");
    let mut client = Client::connect(server().with_identity(identity.clone()), REVISIONS[1]).await;
    assert!(!names(&mut client).await.contains(&"shop_sell".to_owned()));
    let result = client.request("tools/list", json!({})).await["result"].clone();
    assert_eq!(result["cacheScope"], "private", "it depends on who asks");
    let denied = client.call("shop_sell", json!({ "names": [] })).await;
    assert_eq!(denied["isError"], true);
    assert_eq!(denied["_meta"]["ops/error"]["code"], "ACCESS_DENIED", "{denied}");
    assert_eq!(client.call("shop_whoami", json!({})).await["content"][0]["text"], "ann");
    let misspelt = json!({ "name": "shop_Sell", "arguments": {} });
    let unknown = client.request("tools/call", misspelt.clone()).await["error"].clone();
    assert!(!unknown["message"].as_str().unwrap().contains("shop_sell"), "{unknown}");
    let identity = identity.with_scope("shop:write");
    let mut client = Client::connect(server().with_identity(identity), REVISIONS[1]).await;
    assert!(names(&mut client).await.contains(&"shop_sell".to_owned()));
    let unknown = client.request("tools/call", misspelt).await["error"].clone();
    assert_eq!(unknown["message"], "Unknown tool: shop_Sell: did you mean `shop_sell`?");
    assert_eq!(client.call("shop_sell", json!({ "names": ["Tom"] })).await["structuredContent"], json!(["Tom"]));
    // The owner may run everything.
    let mut client = Client::connect(McpServer::new(registry()), REVISIONS[0]).await;
    assert_eq!(client.call("shop_sell", json!({ "names": [] })).await["isError"], false);
}

#[tokio::test]
async fn what_is_not_served_is_no_method() {
    for revision in REVISIONS {
        let mut client = Client::connect(server(), revision).await;
        for method in ["prompts/list", "resources/list", "resources/templates/list"] {
            let error = client.request(method, json!({})).await["error"].clone();
            assert_eq!(error["code"], -32601, "{method}: {error}");
        }
    }
}

/// Its schema is a part of a definition, and not the whole.
#[tokio::test]
async fn a_schema_may_be_a_part_of_a_definition() {
    let number = json!({ "type": "integer" });
    let whole = json!({ "type": "object", "properties": { "id": number }, "required": ["id"] });
    let part = json!({ "$ref": "#/$defs/Whole/properties/id", "$defs": { "Whole": whole } });
    let registry = Registry::new();
    registry.register(echo("odd.part", part.clone(), part)).unwrap();
    for (revision, structured) in REVISIONS.into_iter().zip([json!({ "result": 7 }), json!(7)]) {
        let mut client = Client::connect(McpServer::new(registry.clone()), revision).await;
        let tool = client.request("tools/list", json!({})).await["result"]["tools"][0].clone();
        assert_eq!(tool["inputSchema"]["properties"], json!({ "input": number }), "{tool}");
        let result = client.call("odd_part", json!({ "input": 7 })).await;
        assert_eq!((&result["structuredContent"], &result["isError"]), (&structured, &json!(false)), "{result}");
    }
}
