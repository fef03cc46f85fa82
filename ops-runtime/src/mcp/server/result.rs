//! Results and errors of operations as results of tools.

use rmcp::model::{CallToolResult, ContentBlock as Block, MetaObject};
use serde_core::Deserialize;
use serde_json::{Map, Value, json};

use super::tool::{Output, Served, Structure};
use crate::call::RequestId;
use crate::{CallError, ContentBlock, ErrorCode, OperationSpec, ResponseEnvelope, ResponseMeta, Warning};

/// The result of a call that succeeded.
pub(super) fn success(tool: &Served, structure: Structure, envelope: ResponseEnvelope<Value>) -> CallToolResult {
    let ResponseEnvelope { data, meta, warnings } = envelope;
    let mut result = match meta {
        // Another server's answer, or one that a handler made: its blocks are the answer.
        ResponseMeta::Mcp(meta) => {
            let mut result = CallToolResult::success(meta.content.iter().map(block).collect());
            result.is_error = Some(meta.is_error);
            result.structured_content = match tool.output {
                Output::Object | Output::Other if !meta.is_error => tool.structured(data, structure),
                _ => meta.structured_content.filter(|value| structure == Structure::Any || value.is_object()),
            };
            result.meta = meta.meta.map(MetaObject);
            result
        }
        _ if tool.output == Output::Blocks => CallToolResult::success(blocks(data)),
        _ => {
            let mut result = CallToolResult::success(vec![Block::text(text(&data))]);
            result.structured_content = tool.structured(data, structure);
            result
        }
    };
    if !warnings.is_empty() {
        note(&mut result, "ops/warnings", warnings.iter().map(warning).collect());
    }
    result
}

/// The result of a subscription: its items, `text` being their JSON, and whether there would have been more.
pub(super) fn collected(
    tool: &Served,
    structure: Structure,
    items: Vec<Value>,
    text: String,
    truncated: bool,
) -> CallToolResult {
    let mut result = CallToolResult::success(vec![Block::text(text)]);
    if truncated {
        let count = items.len();
        result.content.push(Block::text(format!("Stopped after {count} items; there may be more.")));
        note(&mut result, "ops/truncated", Value::Bool(true));
    }
    result.structured_content = tool.structured(Value::Array(items), structure);
    result
}

/// The result of a call that failed: what the caller may know of the error, as text and for programs.
pub(super) fn failure(error: &CallError) -> CallToolResult {
    let mut text = error.to_string();
    if !error.details().is_null() {
        text.push('\n');
        text.push_str(&error.details().to_string());
    }
    // What another server's tool said when it failed is said as it was.
    let content = error.mcp_meta().map(|meta| meta.content.iter().map(block).collect());
    let mut result = CallToolResult::error(content.unwrap_or_else(|| vec![Block::text(text)]));
    note(&mut result, "ops/error", serde_json::to_value(error).unwrap_or_default());
    result
}

/// What a caller may know of an error.
///
/// Errors with a code of the operation's own are meant for callers, and those of the registry hold nothing else. The
/// failure of a handler or of what it called may hold anything: it goes to the log, and the caller gets a number to
/// find it there. Of an HTTP error the status is told, and the body if the operation declares that status.
pub(super) fn public(error: CallError, spec: &OperationSpec, request: &RequestId, expose: bool) -> CallError {
    match error.code() {
        ErrorCode::ValidationError => {
            // A result that does not match its schema is in the details.
            let violations = error.details().get("violations").map(|violations| json!({ "violations": violations }));
            error.with_details(violations.unwrap_or_default())
        }
        ErrorCode::ExecutionError | ErrorCode::UnknownError | ErrorCode::OperationNotFound => {
            tracing::error!(operation = spec.id.as_ref(), %request, %error, "the call of a tool failed");
            if let Some(status) = error.details().get("statusCode").and_then(Value::as_u64) {
                return http(&error, spec, status);
            }
            if expose && error.code() == &ErrorCode::ExecutionError {
                return error.with_details(Value::Null);
            }
            let message = format!("the operation failed; the server's log says more of request {request}");
            CallError::new(error.code().clone(), message)
        }
        _ => error,
    }
}

fn http(error: &CallError, spec: &OperationSpec, status: u64) -> CallError {
    let code = format!("HTTP_{status}");
    let declared =
        spec.errors.iter().any(|e| e.code == code || e.http_status.is_some_and(|own| u64::from(own) == status));
    let mut details = Map::from_iter([("statusCode".to_owned(), json!(status))]);
    if let (true, Some(body)) = (declared, error.details().get("body")) {
        details.insert("body".to_owned(), body.clone());
    }
    // The words of the status alone, whatever the message says.
    let reason = u16::try_from(status).ok().and_then(|status| http::StatusCode::from_u16(status).ok());
    let reason = reason.and_then(|status| status.canonical_reason());
    let message = reason.map_or_else(|| format!("HTTP {status}"), |reason| format!("HTTP {status}: {reason}"));
    CallError::execution(message).with_details(details)
}

/// The text that mirrors data: a string as it is, all else as JSON.
pub(super) fn text(data: &Value) -> String {
    data.as_str().map_or_else(|| data.to_string(), str::to_owned)
}

fn note(result: &mut CallToolResult, key: &str, value: Value) {
    result.meta.get_or_insert_with(MetaObject::new).insert(key.to_owned(), value);
}

fn warning(warning: &Warning) -> Value {
    json!({ "pointer": warning.pointer, "expected": warning.expected, "found": warning.found })
}

fn blocks(data: Value) -> Vec<Block> {
    match data {
        Value::Array(items) => items.into_iter().map(|item| block(&ContentBlock::from(item))).collect(),
        other => vec![Block::text(text(&other))],
    }
}

/// A block as the SDK has it, which does not know all members that ours keeps; one that it can't read at all is sent
/// as text.
fn block(block: &ContentBlock) -> Block {
    if let ContentBlock::Text(text) = block
        && text.annotations.is_none()
        && text.extra.is_empty()
    {
        return Block::text(&text.text);
    }
    let json = serde_json::to_value(block).unwrap_or_default();
    Block::deserialize(&json).unwrap_or_else(|_| Block::text(json.to_string()))
}
