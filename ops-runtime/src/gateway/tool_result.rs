//! The arguments and the results of the gateway's own tools.

use serde_json::{Map, Value, json};

use crate::normalise::integer;
use crate::{CallError, ContentBlock, ErrorCode, McpMeta, Payload, ResponseEnvelope};

/// The error of an invalid argument.
pub(super) fn wrong(what: impl Into<String>) -> CallError {
    CallError::new(ErrorCode::ValidationError, what.into())
}

/// Removes arguments of these names that say nothing: models also write `null`, an empty text or an empty list for what
/// they leave out.
pub(super) fn drop_unsaid(input: &mut Map<String, Value>, names: &[&str]) {
    input.retain(|name, value| !names.contains(&name.as_str()) || !says_nothing(value));
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// An argument that has to be a string.
pub(super) fn text_of<'a>(input: &'a Map<String, Value>, name: &str) -> Result<&'a str, CallError> {
    input.get(name).and_then(Value::as_str).ok_or_else(|| wrong(format!("`{name}` has to be a text")))
}

/// A non-negative integer, also one that is written as `20.0`, which JSON Schema allows. `None` for any other value.
pub(super) fn whole(value: &Value) -> Option<usize> {
    let number = value.as_number()?;
    let number = integer(number).unwrap_or_else(|| number.clone());
    number.as_u64().and_then(|number| usize::try_from(number).ok())
}

/// A tool result with a text.
pub(super) fn answer(is_error: bool, text: String) -> ResponseEnvelope<Payload> {
    blocks(is_error, vec![ContentBlock::text(text)])
}

/// A tool result with content blocks.
pub(super) fn blocks(is_error: bool, content: Vec<ContentBlock>) -> ResponseEnvelope<Payload> {
    ResponseEnvelope::mcp(Payload::Value(Value::Null), McpMeta::new(is_error, content))
}

/// The result of a call that failed with this code. Programs find the code in the same place as for the tool of an operation.
pub(super) fn failed(code: &ErrorCode, content: Vec<ContentBlock>) -> ResponseEnvelope<Payload> {
    let mut meta = McpMeta::new(true, content);
    meta.meta = Some(Map::from_iter([("ops/error".to_owned(), json!({ "code": code.as_str() }))]));
    ResponseEnvelope::mcp(Payload::Value(Value::Null), meta)
}
