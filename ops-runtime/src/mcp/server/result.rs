//! Converts results and errors of operations to results of tools.

use rmcp::model::{CallToolResult, ContentBlock as Block, MetaObject};
use serde_core::Deserialize;
use serde_json::{Value, json};

use super::tool::{Output, Served, StructuredContent};
use crate::{CallError, ContentBlock, ResponseEnvelope, ResponseMeta, Warning};

/// The result of a call that succeeded.
pub(super) fn success(
    tool: &Served,
    structure: StructuredContent,
    envelope: ResponseEnvelope<Value>,
) -> CallToolResult {
    let ResponseEnvelope { data, meta, warnings } = envelope;
    let mut result = match meta {
        // Another server's result, or one that a handler made: its blocks are the result.
        ResponseMeta::Mcp(meta) => {
            let mut result = CallToolResult::success(meta.content.iter().map(block).collect());
            result.is_error = Some(meta.is_error);
            result.structured_content = match tool.output {
                Output::Object | Output::Other if !meta.is_error => tool.structured(data, structure),
                _ => meta.structured_content.filter(|value| structure == StructuredContent::Any || value.is_object()),
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

/// The result of a subscription: its items, and those that failed.
///
/// If any failed, the result is an error that has the text of each failure and that of the items.
/// `ops/errors` in its `_meta` holds the failures, each with its `index` among all items.
pub(super) fn collected(tool: &Served, structure: StructuredContent, all: Items) -> CallToolResult {
    let Items { items, text, errors, complete } = all;
    let count = items.len();
    let mut result = match errors.split_first() {
        None => {
            let mut result = CallToolResult::success(vec![Block::text(text)]);
            result.structured_content = tool.structured(Value::Array(items), structure);
            result
        }
        Some(((_, first), others)) => {
            let mut result = failure(first);
            result.content.extend(others.iter().flat_map(|(_, error)| failure(error).content));
            if count > 0 {
                result.content.push(Block::text(text));
            }
            note(&mut result, "ops/errors", errors.iter().map(|(index, error)| failed_item(*index, error)).collect());
            result
        }
    };
    if !complete {
        result.content.push(Block::text(format!("Stopped after {count} items; there may be more.")));
        note(&mut result, "ops/truncated", Value::Bool(true));
    }
    result
}

fn failed_item(index: usize, error: &CallError) -> Value {
    let mut json = serde_json::to_value(error).unwrap_or_default();
    if let Value::Object(members) = &mut json {
        members.insert("index".to_owned(), json!(index));
    }
    json
}

/// An error as text, with its details.
pub(super) fn error_text(error: &CallError) -> String {
    // Without what `Display` adds: the texts of another server are for the operator of this one.
    let mut text = error.plain();
    if !error.details().is_null() {
        text.push('\n');
        text.push_str(&error.details().to_string());
    }
    text
}

/// The result of a failed call: the part of the error that the caller may see, as text and for programs.
pub(super) fn failure(error: &CallError) -> CallToolResult {
    // The content of another server's failed tool is passed on; without any, the error's own text says why.
    let content: Vec<Block> = error.mcp_meta().into_iter().flat_map(|meta| &meta.content).map(block).collect();
    let content = if content.is_empty() { vec![Block::text(error_text(error))] } else { content };
    let mut result = CallToolResult::error(content);
    note(&mut result, "ops/error", serde_json::to_value(error).unwrap_or_default());
    result
}

/// The text form of data: a string unchanged, everything else as JSON.
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

/// A block in the form of the SDK, which knows fewer members than ours; an unknown one is sent as text.
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

/// The items of a subscription.
pub(super) struct Items {
    pub(super) items: Vec<Value>,
    /// Their JSON, as a list.
    pub(super) text: String,
    /// The failed items, each with its index among all. An error need not be the last item.
    pub(super) errors: Vec<(usize, CallError)>,
    /// True if these are all items.
    pub(super) complete: bool,
}

impl Items {
    /// Adds an item, with its JSON.
    pub(super) fn push(&mut self, item: Value, json: &str) {
        if !self.items.is_empty() {
            self.text.push(',');
        }
        self.text.push_str(json);
        self.items.push(item);
    }
}
