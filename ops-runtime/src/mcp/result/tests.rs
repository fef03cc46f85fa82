//! Results of every form.

use serde_json::{Value, json};

use super::decode;
use crate::{CallError, ErrorCode, McpBinding, McpOutput, OperationSpec, Payload, ResponseEnvelope};

fn decoded(output: McpOutput, result: Value) -> Result<ResponseEnvelope<Payload>, CallError> {
    decode(&OperationSpec::query("shop.count").with_mcp(McpBinding::new("count", output)), result)
}

#[test]
fn where_the_data_stands() {
    use McpOutput::{Content, Structured, Wrapped};
    let text = |text: &str| json!({ "type": "text", "text": text });
    let table = [
        (Content, json!({ "content": [text("1")] }), json!([text("1")])),
        (Content, json!({ "content": [text("1")], "structuredContent": { "a": 1 } }), json!([text("1")])),
        (Structured, json!({ "content": [text("1")], "structuredContent": { "a": 1 } }), json!({ "a": 1 })),
        (Structured, json!({ "structuredContent": [1, 2] }), json!([1, 2])),
        (Structured, json!({ "content": [], "structuredContent": null }), Value::Null),
        (Structured, json!({ "content": [text("{}")] }), json!([text("{}")])),
        (Wrapped, json!({ "content": [], "structuredContent": { "result": [1] } }), json!([1])),
        (Wrapped, json!({ "content": [], "structuredContent": { "result": null } }), Value::Null),
        (Wrapped, json!({ "content": [], "structuredContent": { "count": 1 } }), json!({ "count": 1 })),
        (Wrapped, json!({ "content": [], "structuredContent": 5 }), json!(5)),
        (Structured, json!({ "content": [text("no")], "isError": true }), json!([text("no")])),
        (
            Structured,
            json!({ "content": [text("no")], "structuredContent": { "why": 1 }, "isError": true }),
            json!([text("no")]),
        ),
        (Content, json!({ "content": [], "structuredContent": { "why": 1 }, "isError": true }), json!({ "why": 1 })),
        (Wrapped, json!({ "structuredContent": { "result": 1 }, "isError": true }), json!({ "result": 1 })),
        (Structured, json!({ "content": [], "structuredContent": null, "isError": true }), json!([])),
        // Content that is no list is the only block.
        (Content, json!({ "content": "plain" }), json!([text("plain")])),
        (Content, json!({ "content": text("one") }), json!([text("one")])),
        (Content, json!({ "content": null }), json!([])),
        (Content, json!({ "content": [{ "type": "chart", "x": 1 }] }), json!([text(r#"{"type":"chart","x":1}"#)])),
        (Content, json!({ "content": [7] }), json!([text("7")])),
    ];
    for (output, result, data) in table {
        let envelope = decoded(output, result.clone()).unwrap();
        assert_eq!(envelope.data, Payload::Value(data), "{output:?} {result}");
        let meta = envelope.meta.as_mcp().unwrap();
        assert_eq!(meta.is_error, result["isError"] == true, "{result}");
        assert_eq!(meta.structured_content.as_ref(), result.get("structuredContent"), "{result}");
    }
}

#[test]
fn extensions_are_kept() {
    let result = json!({ "content": [], "_meta": { "trace": 1 }, "resultType": "complete" });
    let envelope = decoded(McpOutput::Content, result).unwrap();
    assert_eq!(envelope.meta.as_mcp().unwrap().meta, json!({ "trace": 1 }).as_object().cloned());
}

#[test]
fn what_is_no_result_is_an_error_that_holds_it() {
    for result in
        [json!(null), json!([]), json!({}), json!({ "toolResult": 1 }), json!({ "content": [], "isError": "yes" })]
    {
        let error = decoded(McpOutput::Content, result.clone()).unwrap_err();
        assert_eq!(error.code(), &ErrorCode::ExecutionError);
        assert_eq!(error.details()["raw"], result, "{error}");
    }
}
