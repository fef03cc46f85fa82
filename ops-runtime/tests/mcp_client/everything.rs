//! The server `everything`, over stdio and over streamable HTTP.

use std::time::Duration;

use futures_util::StreamExt;
use ops_runtime::binding::{McpBinding, McpOutput};
use ops_runtime::mcp::{ElicitationAnswer, McpClient, McpServerConfig};
use ops_runtime::registry::Progress;
use ops_runtime::spec::OperationSpec;
use ops_runtime::{Call, CallOptions, ErrorCode, Operation, Registry};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::process::Child;

use crate::peers::{connect, everything_over_http, npm};

/// The server twice: as a child, and at a URL.
async fn both() -> [(Option<Child>, McpServerConfig); 2] {
    let (child, http) = everything_over_http().await;
    let stdio = npm("server-everything", &["stdio"]);
    [(None, stdio), (Some(child), http)].map(|(child, config)| (child, config.with_namespace("everything")))
}

async fn blocks(client: &McpClient, tool: &str, input: Value) -> Value {
    client.call(&format!("everything.{tool}"), input).await.unwrap().data
}

#[tokio::test]
async fn every_kind_of_content_comes_as_it_is() {
    for (_child, config) in both().await {
        let client = connect(config).await;
        assert_eq!(client.server_info().name, "mcp-servers/everything");
        let echo = blocks(&client, "echo", json!({ "message": "héllo\n\"world\"" })).await;
        assert_eq!(echo, json!([{ "type": "text", "text": "Echo: héllo\n\"world\"" }]));
        let image = blocks(&client, "get-tiny-image", json!({})).await;
        assert_eq!((&image[1]["type"], &image[1]["mimeType"]), (&json!("image"), &json!("image/png")));
        let annotated =
            blocks(&client, "get-annotated-message", json!({ "messageType": "error", "includeImage": true })).await;
        assert_eq!(annotated[0]["annotations"], json!({ "audience": ["user", "assistant"], "priority": 1 }));
        assert_eq!(annotated[1]["type"], "image");
        let links = blocks(&client, "get-resource-links", json!({ "count": 2 })).await;
        assert_eq!((&links[1]["type"], &links[1]["name"]), (&json!("resource_link"), &json!("Blob Resource 1")));
        let reference = json!({ "resourceType": "Text", "resourceId": 1 });
        let text = blocks(&client, "get-resource-reference", reference).await;
        assert!(text[1]["resource"]["text"].as_str().unwrap().starts_with("Resource 1"), "{text}");
        let blob = blocks(&client, "get-resource-reference", json!({ "resourceType": "Blob", "resourceId": 1 })).await;
        assert!(blob[1]["resource"]["blob"].is_string(), "{blob}");
        // A default of the schema need not be given.
        assert_eq!(blocks(&client, "get-resource-links", json!({})).await.as_array().unwrap().len(), 4);
        client.close().await;
    }
}

#[derive(Serialize, Deserialize)]
struct Location {
    location: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Weather {
    temperature: f64,
    conditions: String,
    humidity: f64,
}

struct GetStructuredContent;

impl Operation for GetStructuredContent {
    type Input = Location;
    type Output = Weather;
    const SPEC: &'static OperationSpec = &OperationSpec::query("everything.get-structured-content")
        .with_mcp(McpBinding::new("get-structured-content", McpOutput::Structured));
}

impl Call for GetStructuredContent {}

#[tokio::test]
async fn a_typed_call_gives_the_structured_content() {
    for (_child, config) in both().await {
        let client = connect(config).await;
        let input = || Location { location: "Chicago".to_owned() };
        let weather = client.execute::<GetStructuredContent>(input()).await.unwrap();
        assert_eq!((weather.data.temperature, weather.data.conditions.as_str()), (36.0, "Light rain / drizzle"));
        assert_eq!(weather.meta.source(), "mcp");
        let sent = weather.meta.as_mcp().unwrap().structured_content.clone().unwrap();
        assert_eq!(sent, json!({ "temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82 }));

        // The same through a registry, with the other tools met at run time.
        let registry = Registry::new();
        registry.register_all(client.bind([GetStructuredContent::SPEC]).unwrap()).unwrap();
        client.register_all(&registry).unwrap();
        assert_eq!(registry.execute::<GetStructuredContent>(input()).await.unwrap().data.humidity, 82.0);
        let sum = registry.call("everything.get-sum", json!({ "a": 40, "b": 2 })).await.unwrap();
        assert_eq!(sum.data[0]["text"], "The sum of 40 and 2 is 42.");
        assert!(client.diagnostics().is_empty(), "{:?}", client.diagnostics());
        client.close().await;
    }
}

#[tokio::test]
async fn a_long_call_reports_progress_and_can_be_cancelled() {
    for (_child, config) in both().await {
        let client = connect(config).await;
        let id = "everything.trigger-long-running-operation";
        let (sink, progress) = Progress::channel();
        let options = CallOptions::new().with_progress(sink);
        let called = client.call_with(id, json!({ "duration": 1, "steps": 4 }), options);
        let (answer, progress) = tokio::join!(called, progress.collect::<Vec<_>>());
        let text = answer.unwrap().data[0]["text"].as_str().unwrap().to_owned();
        assert!(text.starts_with("Long running operation completed"), "{text}");
        let expected: Vec<_> = (1..=4).map(|n| Progress::new(f64::from(n)).with_total(4.0)).collect();
        assert_eq!(progress, expected);

        let options = CallOptions::new().with_timeout(Duration::from_millis(200));
        let error = client.call_with(id, json!({ "duration": 100, "steps": 2 }), options).await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::Timeout);
        assert_eq!(client.in_flight(), 0);
        client.close().await;
    }
}

#[tokio::test]
async fn errors_say_what_is_wrong() {
    for (_child, config) in both().await {
        let client = connect(config).await;
        let error = client.call("everything.echo", json!({ "message": 7 })).await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::ValidationError);
        assert_eq!(error.details()["violations"][0]["pointer"], "/message");
        // What the schema of the list allows and the server does not.
        let input = json!({ "name": "x", "data": "nowhere:x", "outputType": "resource" });
        let envelope = client.call("everything.gzip-file-as-resource", input).await.unwrap();
        assert!(envelope.meta.as_mcp().unwrap().is_error, "{envelope:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn the_server_may_ask_the_user_and_a_model() {
    for (_child, config) in both().await {
        let config = config
            .with_elicitation(|request| async move { ElicitationAnswer::Accept(request.defaults()) })
            .with_sampling(|params| async move {
                let asked = params["messages"][0]["content"]["text"].as_str().unwrap_or_default().to_owned();
                let content = json!({ "type": "text", "text": format!("I was asked: {asked}") });
                Ok(json!({ "role": "assistant", "content": content, "model": "parrot" }))
            })
            .with_roots(["file:///tmp"]);
        let client = connect(config).await;
        // It adds tools when it knows what the client can do, and says so.
        let end = tokio::time::Instant::now() + crate::peers::LONG;
        while !["elicitation", "sampling"].iter().all(|what| {
            let id = format!("everything.trigger-{what}-request");
            client.operations().iter().any(|operation| operation.id == id)
        }) {
            assert!(tokio::time::Instant::now() < end, "the tools do not come");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let sampled = blocks(&client, "trigger-sampling-request", json!({ "prompt": "why?" })).await;
        assert!(sampled[0]["text"].as_str().unwrap().contains("I was asked: "), "{sampled}");
        let asked = blocks(&client, "trigger-elicitation-request", json!({})).await;
        assert!(asked[0]["text"].as_str().unwrap().contains("✅"), "{asked}");
        client.close().await;
    }
}
