//! Calls of tools, their results and their errors.

use std::time::Duration;

use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::mcp::{self, McpServer, McpServerOptions};
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{CallError, Context, Registry, ResponseEnvelope, operation};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};

use crate::client::{Client, REVISIONS};
use crate::fixture::{echo, server};

#[tokio::test]
async fn from_the_sdk_s_own_client() {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(far);
    let running = tokio::spawn(server().serve(read, write));
    let client = ().serve(near).await.unwrap();
    let tools = client.list_all_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "math_add"));
    let arguments = json!({ "a": 40, "b": 2 }).as_object().unwrap().clone();
    let result = client.call_tool(CallToolRequestParams::new("math_add").with_arguments(arguments)).await.unwrap();
    assert_eq!(result.content[0].as_text().unwrap().text, "42");
    client.cancel().await.unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn results_are_structured_as_the_revision_allows() {
    let cases = [
        ("math_add", json!({ "a": 40, "b": 2 }), json!({ "result": 42 }), json!(42), "42"),
        (
            "shop_find_pet",
            json!({ "name": "Tom" }),
            json!({ "name": "Tom" }),
            json!({ "name": "Tom" }),
            r#"{"name":"Tom"}"#,
        ),
        ("shop_sell", json!({ "names": ["a"] }), json!({ "result": ["a"] }), json!(["a"]), r#"["a"]"#),
        ("shop_whoami", json!({}), json!({ "result": null }), Value::Null, "null"),
        ("odd_anything", json!({ "x": 1 }), json!({ "x": 1 }), json!({ "x": 1 }), r#"{"x":1}"#),
    ];
    for (tool, arguments, object, any, text) in cases {
        for (revision, structured) in REVISIONS.into_iter().zip([object, any]) {
            let mut client = Client::connect(server(), revision).await;
            let result = client.call(tool, arguments.clone()).await;
            assert_eq!(result.get("structuredContent"), Some(&structured), "{tool}, {revision}: {result}");
            assert_eq!(result["content"], json!([{ "type": "text", "text": text }]), "{tool}, {revision}");
            assert_eq!(result["isError"], false);
        }
    }
}

/// Says whether a pet's owner stays, goes, or is another.
#[operation(namespace = "shop")]
async fn own(owner: Option<Option<String>>) -> u8 {
    owner.map_or(0, |owner| owner.map_or(1, |_| 2))
}

#[tokio::test]
async fn a_null_is_not_an_absent_argument() {
    let registry = Registry::new();
    registry.register(Own).unwrap();
    for revision in REVISIONS {
        let mut client = Client::connect(McpServer::new(registry.clone()), revision).await;
        for (arguments, text) in [(json!({}), "0"), (json!({ "owner": null }), "1"), (json!({ "owner": "Ann" }), "2")] {
            let result = client.call("shop_own", arguments).await;
            assert_eq!(result["content"][0]["text"], text, "{revision}: {result}");
        }
    }
}

/// A tool of another server, which has no output schema.
struct Undeclared(Value);

impl Endpoint for Undeclared {
    fn call(
        &self,
        spec: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let answer = mcp::decode(spec, self.0.clone());
        Box::pin(async move { answer })
    }
}

#[tokio::test]
async fn a_tool_without_an_output_schema_is_served_as_it_is() {
    let text = json!({ "type": "text", "text": "hello" });
    for structured in [Some(json!({ "a": 1 })), Some(json!([1])), None] {
        let mut answer = json!({ "content": [text] });
        answer.as_object_mut().unwrap().extend(structured.clone().map(|value| ("structuredContent".to_owned(), value)));
        for revision in REVISIONS {
            let list = json!({ "tools": [{ "name": "show", "inputSchema": { "type": "object" } }] });
            let (api, _) = mcp::read(&list, &mcp::ReadOptions::new()).unwrap();
            let registry = Registry::new();
            for spec in api.operations {
                registry.register(Registration::new(spec, Handler::endpoint(Undeclared(answer.clone())))).unwrap();
            }
            let name = registry.list()[0].id.replace('.', "_");
            let mut client = Client::connect(McpServer::new(registry), revision).await;
            let listed = client.request("tools/list", json!({})).await["result"]["tools"][0].clone();
            assert_eq!((&listed["name"], listed.get("outputSchema")), (&json!(name), None));
            let result = client.call(&name, json!({})).await;
            assert_eq!(result["content"], json!([text]));
            // What the revision has no room for is in the text alone.
            let fits = |value: &Value| revision >= "2026" || value.is_object();
            assert_eq!(result.get("structuredContent"), structured.as_ref().filter(|value| fits(value)));
        }
    }
}

#[tokio::test]
async fn structured_content_conforms_to_the_schema() {
    for revision in REVISIONS {
        let mut client = Client::connect(server(), revision).await;
        let tools = client.request("tools/list", json!({})).await["result"]["tools"].clone();
        for (tool, arguments) in [
            ("math_add", json!({ "a": 1, "b": 2 })),
            ("math_count", json!({ "to": 3 })),
            ("shop_find_pet", json!({ "name": "Tom" })),
            ("shop_whoami", json!({})),
            ("media_caption", json!({})),
        ] {
            let result = client.call(tool, arguments).await;
            let listed = tools.as_array().unwrap().iter().find(|listed| listed["name"] == tool).unwrap();
            let validator = jsonschema::draft202012::new(&listed["outputSchema"]).unwrap();
            assert!(validator.is_valid(&result["structuredContent"]), "{tool}, {revision}: {result}");
        }
    }
}

#[tokio::test]
async fn an_input_that_is_no_object_is_wrapped() {
    let mut client = Client::connect(server(), REVISIONS[0]).await;
    let result = client.call("odd_pets_list_all", json!({ "input": 7 })).await;
    // The handler gives back a number where an object is promised: nothing is made up in its place.
    let error = &result["_meta"]["ops/error"];
    assert_eq!((&error["code"], &result["isError"]), (&json!("VALIDATION_ERROR"), &json!(true)), "{result}");
    assert_eq!(error["details"]["violations"][0]["found"], "integer", "{result}");
    for arguments in [json!({}), json!({ "input": "7" })] {
        let result = client.call("odd_pets_list_all", arguments).await;
        assert_eq!(result["_meta"]["ops/error"]["code"], "VALIDATION_ERROR", "{result}");
    }
}

#[tokio::test]
async fn no_argument_is_passed_over() {
    let registry = Registry::new();
    registry.register(echo("odd.level", json!({ "type": "string" }), json!({}))).unwrap();
    registry.register(echo("odd.none", json!({ "type": "null" }), json!({}))).unwrap();
    let mut client = Client::connect(McpServer::new(registry), REVISIONS[1]).await;
    for (tool, arguments, expected) in [
        ("odd_level", json!({ "input": "high" }), json!("high")),
        ("odd_none", json!({}), Value::Null),
        (
            "odd_level",
            json!({ "input": "high", "dry_run": true }),
            json!("`dry_run` is not in the input of `odd.level`"),
        ),
        (
            "odd_none",
            json!({ "dry/run": true, "b": 1 }),
            json!("`dry/run` is not in the input of `odd.none`; `b` is not in the input of `odd.none`"),
        ),
    ] {
        let result = client.call(tool, arguments).await;
        let error = &result["_meta"]["ops/error"];
        if result["isError"] == false {
            assert_eq!(result["structuredContent"], expected, "{result}");
            continue;
        }
        assert_eq!((&error["code"], &error["message"]), (&json!("VALIDATION_ERROR"), &expected), "{result}");
        let violations = error["details"]["violations"].as_array().unwrap();
        let place = violations[0]["pointer"].as_str().unwrap();
        assert!(["/dry_run", "/dry~1run"].contains(&place), "{result}");
    }
}

#[tokio::test]
async fn blocks_are_served_as_they_are() {
    for revision in REVISIONS {
        let mut client = Client::connect(server(), revision).await;
        let result = client.call("media_picture", json!({})).await;
        let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
        assert_eq!(result["content"], json!([{ "type": "text", "text": "a dot" }, image]));
        assert_eq!(result.get("structuredContent"), None);
        // Both the blocks that the handler made, and the data that the schema is about.
        let result = client.call("media_caption", json!({})).await;
        assert_eq!(result["content"], json!([{ "type": "audio", "data": "AAAA", "mimeType": "audio/wav" }]));
        assert!(result["structuredContent"].to_string().contains("a beep"), "{result}");
    }
}

#[tokio::test]
async fn errors_tell_what_callers_may_know() {
    for revision in REVISIONS {
        let mut client = Client::connect(server(), revision).await;
        let result = client.call("shop_find_pet", json!({ "name": "Kit" })).await;
        assert_eq!(result["isError"], true);
        assert_eq!(result["content"][0]["text"], "NotFound: there is no Kit\n{\"name\":\"Kit\"}");
        let error = json!({ "code": "NotFound", "message": "there is no Kit", "details": { "name": "Kit" } });
        assert_eq!(result["_meta"]["ops/error"], error);
        assert_eq!(result.get("structuredContent"), None);

        let result = client.call("shop_find_pet", json!({ "name": "" })).await;
        assert_eq!(result["isError"], true, "an input that is invalid is the tool's error");
        assert_eq!(result["_meta"]["ops/error"]["details"]["violations"][0]["pointer"], "/name", "{result}");

        for name in ["panic", "file"] {
            let result = client.call("shop_find_pet", json!({ "name": name })).await;
            assert_eq!(result["isError"], true);
            let text = result.to_string();
            assert!(text.contains("request ") && !text.contains("hunter2") && !text.contains("/etc"), "{text}");
        }
        let error = client.request("tools/call", json!({ "name": "no_such", "arguments": {} })).await["error"].clone();
        assert_eq!((&error["code"], &error["message"]), (&json!(-32602), &json!("Unknown tool: no_such")));
        let error = client.request("tools/call", json!({ "arguments": {} })).await;
        assert!(error.get("error").is_some(), "{error}");
    }
}

#[tokio::test]
async fn messages_are_shown_on_request() {
    let options = McpServerOptions::default().with_exposed_errors();
    let mut client = Client::connect(server().with_options(options), REVISIONS[0]).await;
    let result = client.call("shop_find_pet", json!({ "name": "file" })).await;
    assert_eq!(result["content"][0]["text"], "EXECUTION_ERROR: can't open /etc/secrets");
    let result = client.call("shop_find_pet", json!({ "name": "panic" })).await;
    assert!(!result.to_string().contains("hunter2"), "what a panic says is never shown: {result}");
}

#[tokio::test]
async fn of_an_http_error_the_status_is_shown() {
    let registry = Registry::new();
    let mut spec = OperationSpec::new(OperationKind::Query, "web", "get").unwrap();
    spec.errors = vec![ops_runtime::spec::ErrorDefinition::new("HTTP_404")].into();
    let fail = |input: Value, _| async move {
        let status = &input["status"];
        let details = json!({ "statusCode": status, "headers": { "x-internal": "10.0.0.7" }, "body": { "why": "?" } });
        Err::<Value, _>(CallError::execution(format!("HTTP {status}: {status}")).with_details(details))
    };
    registry.register(Registration::new(spec, Handler::dynamic(fail))).unwrap();
    let mut client = Client::connect(McpServer::new(registry), REVISIONS[0]).await;
    let result = client.call("web_get", json!({ "status": 404 })).await;
    let error = &result["_meta"]["ops/error"];
    assert_eq!(error["message"], "HTTP 404: Not Found");
    assert_eq!(error["details"], json!({ "statusCode": 404, "body": { "why": "?" } }));
    let result = client.call("web_get", json!({ "status": 503 })).await;
    assert_eq!(result["_meta"]["ops/error"]["details"], json!({ "statusCode": 503 }), "{result}");
}

#[tokio::test]
async fn a_call_ends_with_its_deadline() {
    let registry = Registry::new();
    let spec = OperationSpec::new(OperationKind::Query, "slow", "wait").unwrap();
    registry.register(Registration::new(spec, Handler::dynamic(|_, _| std::future::pending()))).unwrap();
    let options = McpServerOptions::default().with_timeout(Duration::from_millis(50));
    assert_eq!(options.clone().with_timeout(None).timeout, None);
    let mut client = Client::connect(McpServer::new(registry).with_options(options), REVISIONS[1]).await;
    let result = client.call("slow_wait", json!({})).await;
    assert_eq!(result["_meta"]["ops/error"]["code"], "TIMEOUT", "{result}");
}

#[tokio::test]
async fn a_handler_reads_the_metadata_of_the_request() {
    let registry = Registry::new();
    let spec = OperationSpec::new(OperationKind::Query, "meta", "get").unwrap();
    let get = |_, context: ops_runtime::Context| async move { Ok(json!(context.metadata())) };
    registry.register(Registration::new(spec, Handler::dynamic(get))).unwrap();
    registry.register(echo("meta.other", json!({}), json!({}))).unwrap();
    for revision in REVISIONS {
        let mut client = Client::connect(McpServer::new(registry.clone()), revision).await;
        let meta = json!({ "traceparent": "00-1-2-01", "progressToken": 1 });
        let params = json!({ "name": "meta_get", "arguments": {}, "_meta": meta });
        let answer = client.request("tools/call", params).await;
        assert_eq!(answer["result"]["structuredContent"], json!({ "traceparent": "00-1-2-01" }), "{answer}");
    }
}

#[tokio::test]
async fn a_call_that_a_tool_makes_is_no_call_of_its_client() {
    let registry = Registry::new();
    let input = Schema::text(r#"{"type":"object","required":["secretAccount"]}"#);
    let post = OperationSpec::mutation("ledger.post").with_input(input);
    registry.register(Registration::new(post, Handler::dynamic(|input, _| async move { Ok(input) }))).unwrap();
    let buy = Handler::dynamic(|_, context| async move {
        let posted = context.env().call("ledger.post", json!({})).await?;
        Ok(posted.data)
    });
    registry.register(Registration::new(OperationSpec::mutation("shop.buy"), buy)).unwrap();
    for revision in REVISIONS {
        let mut client = Client::connect(McpServer::new(registry.clone()), revision).await;
        let result = client.call("shop_buy", json!({ "pet": "Rex" })).await;
        assert_eq!(result["isError"], true, "{revision}: {result}");
        let told = "the operation failed; the server's log says more of request ";
        assert!(result["content"][0]["text"].as_str().unwrap().contains(told), "{revision}: {result}");
        assert!(!result.to_string().contains("secretAccount"), "{revision}: {result}");
        // Its own input is its client's.
        let result = client.call("ledger_post", json!({})).await;
        assert!(result["content"][0]["text"].as_str().unwrap().contains("VALIDATION_ERROR"), "{revision}: {result}");
    }
}
