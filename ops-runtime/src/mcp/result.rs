//! Converts results of tools to envelopes (MCP specification, `CallToolResult`).
//!
//! Nothing that a server sends is lost: `meta` has the whole result, and `data` the operation's output.

use serde_json::{Map, Value, json};

use crate::{CallError, ContentBlock, McpMeta, McpOutput, OperationSpec, Payload, ResponseEnvelope};

/// The envelope of a tool's result, of any revision of the protocol, for endpoints that speak it.
///
/// ```
/// use ops_runtime::mcp;
/// use ops_runtime::adapter::Payload;
/// use ops_runtime::binding::{McpBinding, McpOutput};
/// use ops_runtime::spec::OperationSpec;
/// use serde_json::json;
///
/// let add = OperationSpec::query("calculator.add").with_mcp(McpBinding::new("add", McpOutput::Wrapped));
/// let text = json!({ "type": "text", "text": "5" });
/// let envelope = mcp::decode(&add, json!({ "content": [text], "structuredContent": { "result": 5 } })).unwrap();
/// assert_eq!(envelope.data, Payload::Value(json!(5)));
/// assert_eq!(envelope.meta.as_mcp().unwrap().content[0].as_text(), Some("5"));
/// ```
///
/// The data are the content blocks if the result has `isError`, if the tool has no output schema, or if the structured
/// content that the schema promises is missing; then the pipeline parses the text. An error without any block has its
/// structured content as data. If a tool without an output schema
/// sends structured content, the pipeline returns it for calls by id, and the blocks for typed calls. A member of the
/// wrong kind is read as far as possible: content that is not a list becomes the only block.
///
/// # Errors
/// If the value is not the result of a tool at all; the details have it.
pub fn decode(spec: &OperationSpec, result: Value) -> Result<ResponseEnvelope<Payload>, CallError> {
    let Value::Object(mut result) = result else {
        return Err(malformed(spec, "it is no object", result));
    };
    let is_error = match result.get("isError") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(is_error)) => *is_error,
        Some(_) => return Err(malformed(spec, "`isError` is no boolean", Value::Object(result))),
    };
    if !["content", "isError", "structuredContent"].iter().any(|key| result.contains_key(*key)) {
        return Err(malformed(spec, "it has no `content`", Value::Object(result)));
    }
    let mut meta = McpMeta::new(is_error, blocks(&mut result));
    meta.structured_content = result.shift_remove("structuredContent");
    meta.meta = match result.shift_remove("_meta") {
        Some(Value::Object(meta)) => Some(meta),
        _ => None,
    };
    let output = spec.mcp().map_or(McpOutput::Structured, |mcp| mcp.output);
    let data = match (&meta.structured_content, meta.only_reason()) {
        (Some(structured), _) if !is_error && output != McpOutput::Content => unwrapped(output, structured).clone(),
        (_, Some(reason)) => reason.clone(),
        _ => meta.content_as_json()?,
    };
    Ok(ResponseEnvelope::mcp(Payload::Value(data), meta))
}

/// The output in a structured result.
///
/// A result that is not wrapped, though the schema requires it, is itself the output.
fn unwrapped(output: McpOutput, structured: &Value) -> &Value {
    match structured {
        Value::Object(members) if output == McpOutput::Wrapped => members.get("result").unwrap_or(structured),
        structured => structured,
    }
}

fn blocks(result: &mut Map<String, Value>) -> Vec<ContentBlock> {
    match result.shift_remove("content") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(blocks)) => blocks.into_iter().map(ContentBlock::from).collect(),
        Some(Value::String(text)) => vec![ContentBlock::text(text)],
        Some(block) => vec![ContentBlock::from(block)],
    }
}

fn malformed(spec: &OperationSpec, what: &str, raw: Value) -> CallError {
    let message = format!("the answer to `{}` is not the result of a tool: {what}", spec.id);
    CallError::execution(message).with_details(json!({ "raw": raw }))
}

#[cfg(test)]
mod tests;
