//! Results of tools as callers get them, by type and by id.
#![cfg(all(feature = "registry", feature = "mcp-schema"))]

use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::binding::{McpBinding, McpOutput};
use ops_runtime::content::ContentBlock;
use ops_runtime::registry::OutputPolicy;
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{Call, CallError, Context, ErrorCode, Operation, Registry, ResponseEnvelope, mcp};
use serde_json::{Value, json};

/// A server that always answers the same.
struct Says(Value);

impl Endpoint for Says {
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

/// A tool that gives a list of numbers, wrapped.
struct List;

impl Operation for List {
    type Input = Value;
    type Output = Vec<i64>;
    const SPEC: &'static OperationSpec = &OperationSpec::query("shop.list")
        .with_output(Schema::text(r#"{"type":"array","items":{"type":"integer"}}"#))
        .with_mcp(McpBinding::new("list", McpOutput::Wrapped));
}
impl Call for List {}

/// A tool whose numbers are integers by their format only.
struct Counts;

impl Operation for Counts {
    type Input = Value;
    type Output = Vec<i64>;
    const SPEC: &'static OperationSpec = &OperationSpec::query("shop.counts")
        .with_output(Schema::text(r#"{"type":"array","items":{"type":"number","format":"int64"}}"#))
        .with_mcp(McpBinding::new("counts", McpOutput::Wrapped));
}
impl Call for Counts {}

/// A tool that gives an object, or nothing.
struct Find;

impl Operation for Find {
    type Input = Value;
    type Output = Option<std::collections::BTreeMap<String, i64>>;
    const SPEC: &'static OperationSpec = &OperationSpec::query("shop.find")
        .with_output(Schema::text(r#"{"type":["object","null"],"additionalProperties":{"type":"integer"}}"#))
        .with_mcp(McpBinding::new("find", McpOutput::Structured));
}
impl Call for Find {}

/// A tool without an output schema.
struct Show;

impl Operation for Show {
    type Input = Value;
    type Output = Vec<ContentBlock>;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("shop.show")
        .with_output(Schema::text(r#"{"type":"array","items":{"type":"object"}}"#))
        .with_mcp(McpBinding::new("show", McpOutput::Content));
}
impl Call for Show {}

type Outcome<T> = Result<ResponseEnvelope<T>, CallError>;

async fn call<Op: Call<Input = Value>>(policy: OutputPolicy, result: &Value) -> (Outcome<Op::Output>, Outcome<Value>) {
    let registry = Registry::builder().with_policy(policy).build();
    registry.register(Registration::new(Op::SPEC, Handler::endpoint(Says(result.clone())))).unwrap();
    (registry.execute::<Op>(json!({})).await, registry.call(&Op::SPEC.id, json!({})).await)
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

#[tokio::test]
async fn text_stands_in_for_structured_content_if_it_conforms_as_it_is() {
    for (result, data) in [
        (json!({ "content": [text("[1, 2]")] }), vec![1, 2]),
        (json!({ "content": [text(r#"{"result": [3]}"#)] }), vec![3]),
        (json!({ "content": [text("[1]")], "structuredContent": null }), vec![1]),
        // What was sent is never overruled by text.
        (json!({ "content": [text("[1]")], "structuredContent": { "result": [2] } }), vec![2]),
    ] {
        for policy in [OutputPolicy::Repair, OutputPolicy::Strict] {
            let (typed, dynamic) = call::<List>(policy, &result).await;
            let (typed, dynamic) = (typed.unwrap(), dynamic.unwrap());
            assert_eq!((&typed.data, &dynamic.data), (&data, &json!(data)), "{result}");
            assert!(typed.warnings.is_empty() && dynamic.warnings.is_empty(), "{result}");
            assert_eq!(typed.meta.as_mcp().unwrap().content.len(), 1, "the text stays");
        }
    }
}

#[tokio::test]
async fn what_does_not_conform_is_left_as_content_blocks() {
    let blocks = [
        vec![text("two")],
        vec![text(r#"["1"]"#)],
        vec![text("[1]"), text("[2]")],
        vec![text("[1]"), json!({ "type": "image", "data": "", "mimeType": "image/png" })],
        vec![],
    ];
    for content in blocks.map(Value::from) {
        let result = json!({ "content": content });
        let (typed, dynamic) = call::<List>(OutputPolicy::Repair, &result).await;
        let dynamic = dynamic.unwrap();
        assert_eq!(dynamic.data, content);
        assert_eq!(dynamic.warnings[0].found, "content blocks");
        // Nothing is made up for a type: the error has all that was said.
        let error = typed.unwrap_err();
        assert_eq!((error.code(), &error.details()["raw"]), (&ErrorCode::ValidationError, &content));
        let (typed, dynamic) = call::<List>(OutputPolicy::Strict, &result).await;
        for error in [typed.unwrap_err(), dynamic.unwrap_err()] {
            assert_eq!((error.code(), &error.details()["raw"]), (&ErrorCode::ValidationError, &content));
        }
    }
}

#[tokio::test]
async fn null_is_a_result_where_the_schema_takes_it() {
    let result = json!({ "content": [text("{\"a\": 1}")], "structuredContent": null });
    let (typed, dynamic) = call::<Find>(OutputPolicy::Strict, &result).await;
    assert_eq!((typed.unwrap().data, dynamic.unwrap().data), (None, Value::Null));
}

#[tokio::test]
async fn structured_content_that_does_not_match_is_repaired_with_a_warning() {
    let result = json!({ "content": [], "structuredContent": { "result": [1, "2"] } });
    for policy in [OutputPolicy::Repair, OutputPolicy::Cast] {
        let (typed, dynamic) = call::<List>(policy, &result).await;
        let (typed, dynamic) = (typed.unwrap(), dynamic.unwrap());
        let second = if policy == OutputPolicy::Repair { 2 } else { 0 };
        assert_eq!((typed.data, dynamic.data), (vec![1, second], json!([1, second])));
        assert_eq!((typed.warnings.len(), dynamic.warnings[0].pointer.as_str()), (1, "/1"));
        assert_eq!(typed.meta.as_mcp().unwrap().structured_content, Some(json!({ "result": [1, "2"] })));
    }
    assert!(call::<List>(OutputPolicy::Strict, &result).await.0.is_err());
}

#[tokio::test]
async fn whole_numbers_are_read_as_integers_where_the_schema_has_only_numbers() {
    let result = json!({ "content": [], "structuredContent": { "result": [1, 5.0] } });
    for policy in [OutputPolicy::Repair, OutputPolicy::Cast, OutputPolicy::Strict] {
        let (typed, dynamic) = call::<Counts>(policy, &result).await;
        let (typed, dynamic) = (typed.unwrap(), dynamic.unwrap());
        assert_eq!((typed.data, dynamic.data), (vec![1, 5], json!([1, 5.0])), "{policy:?}");
        assert_eq!((typed.warnings.len(), dynamic.warnings.len()), (0, 0), "{policy:?}");
    }
    let result = json!({ "content": [], "structuredContent": { "result": [5.5] } });
    let error = call::<Counts>(OutputPolicy::Repair, &result).await.0.unwrap_err();
    assert!(error.message().contains("5.5"), "{error}");
}

#[tokio::test]
async fn structured_content_that_nothing_fits_is_an_error_or_kept_and_only_made_up_if_asked_for() {
    let result = json!({ "content": [], "structuredContent": { "result": [1, "two"] } });
    let (typed, dynamic) = call::<List>(OutputPolicy::Repair, &result).await;
    let (error, dynamic) = (typed.unwrap_err(), dynamic.unwrap());
    assert_eq!(error.code(), &ErrorCode::ValidationError);
    assert_eq!(error.details()["raw"], json!([1, "two"]));
    assert_eq!(error.details()["violations"][0]["pointer"], "/1");
    assert_eq!(dynamic.data, json!([1, "two"]));
    assert_eq!((dynamic.warnings.len(), dynamic.warnings[0].pointer.as_str()), (1, "/1"));
    let (typed, dynamic) = call::<List>(OutputPolicy::Cast, &result).await;
    assert_eq!((typed.unwrap().data, dynamic.unwrap().data), (vec![1, 0], json!([1, 0])));
}

#[tokio::test]
async fn a_tool_without_an_output_schema_gives_its_blocks() {
    let content = json!([text("hello"), { "type": "hologram", "depth": 3, "annotations": { "priority": 1 } }]);
    for mut result in [json!({ "content": content }), json!({ "content": content, "structuredContent": null })] {
        let (typed, dynamic) = call::<Show>(OutputPolicy::Strict, &result).await;
        let (typed, dynamic) = (typed.unwrap(), dynamic.unwrap());
        assert_eq!(serde_json::to_value(&typed.data).unwrap(), dynamic.data);
        assert_eq!(typed.data[0], ContentBlock::text("hello"));
        let unknown: Value = serde_json::from_str(typed.data[1].as_text().unwrap()).unwrap();
        assert_eq!(unknown, content[1], "nothing of a kind that is not known is lost");
        let sent = result.as_object_mut().unwrap().remove("structuredContent");
        assert_eq!(typed.meta.as_mcp().unwrap().structured_content, sent);
    }
}

#[tokio::test]
async fn structured_content_without_a_schema_is_the_data_of_a_call_by_id() {
    let blocks = vec![ContentBlock::text("hello")];
    for structured in [json!({ "a": 1 }), json!([1, "two"]), json!("text"), json!(false), json!({ "result": 5 })] {
        let result = json!({ "content": [text("hello")], "structuredContent": structured });
        for policy in [OutputPolicy::Repair, OutputPolicy::Cast, OutputPolicy::Strict] {
            let (typed, dynamic) = call::<Show>(policy, &result).await;
            let (typed, dynamic) = (typed.unwrap(), dynamic.unwrap());
            assert_eq!((&typed.data, &dynamic.data), (&blocks, &structured));
            assert!(typed.warnings.is_empty() && dynamic.warnings.is_empty());
            for meta in [typed.meta.as_mcp().unwrap(), dynamic.meta.as_mcp().unwrap()] {
                assert_eq!((&meta.content, meta.structured_content.as_ref()), (&blocks, Some(&structured)));
            }
        }
    }
    // What a tool says when it fails is in its blocks.
    let result = json!({ "content": [text("no")], "structuredContent": { "why": 1 }, "isError": true });
    let (typed, dynamic) = call::<Show>(OutputPolicy::Repair, &result).await;
    assert_eq!((typed.unwrap_err().code(), dynamic.unwrap().data), (&ErrorCode::ToolError, json!([text("no")])));
}

#[tokio::test]
async fn structured_content_without_a_schema_is_the_same_in_another_process() {
    use ops_runtime::call::{CallHandler, InProcess};

    let result = json!({ "content": [text("hello")], "structuredContent": { "a": 1 } });
    let registry = Registry::new();
    registry.register(Registration::new(Show::SPEC, Handler::endpoint(Says(result.clone())))).unwrap();
    let transport = InProcess::new();
    let worker = transport.serve(CallHandler::new(registry));
    // As it comes, and passed on by a second worker.
    let hub = InProcess::new();
    let passing = hub.serve(CallHandler::new(Registry::new()).with_forwarding(transport.remote()));
    for remote in [transport.remote(), hub.remote()] {
        let dynamic = remote.call("shop.show", json!({})).await.unwrap();
        assert_eq!(dynamic.data, json!({ "a": 1 }));
        let typed = remote.execute::<Show>(json!({})).await.unwrap();
        assert_eq!(typed.data, [ContentBlock::text("hello")]);
        assert_eq!(typed.meta.as_mcp().unwrap().structured_content, Some(json!({ "a": 1 })));
        // By id, once the type is known.
        assert_eq!(remote.call("shop.show", json!({})).await.unwrap().data, json!({ "a": 1 }));
    }
    passing.stop().await;
    worker.stop().await;
}

#[tokio::test]
async fn a_tools_error_is_an_envelope_or_an_error_with_all_of_it() {
    let result = json!({
        "content": [text("no such shelf"), text("try another")],
        "structuredContent": { "result": [1] },
        "isError": true,
        "_meta": { "trace": "x" },
    });
    for policy in [OutputPolicy::Repair, OutputPolicy::Strict] {
        let (typed, dynamic) = call::<List>(policy, &result).await;
        let (typed, dynamic) = (typed.unwrap_err(), dynamic.unwrap());
        assert_eq!((typed.code(), typed.message()), (&ErrorCode::ToolError, "no such shelf\ntry another"));
        assert_eq!((&dynamic.data, dynamic.warnings.len()), (&result["content"], 0));
        for meta in [typed.mcp_meta().unwrap(), dynamic.meta.as_mcp().unwrap()] {
            assert!(meta.is_error);
            assert_eq!(serde_json::to_value(&meta.content).unwrap(), result["content"]);
            assert_eq!(meta.structured_content, Some(json!({ "result": [1] })));
            assert_eq!(meta.meta.as_ref().unwrap()["trace"], "x");
        }
    }
}
