//! The parts of the tasks of 2025-11-25 that the SDK does not read or write.
//!
//! The SDK knows only the tasks of 2026-07-28. Methods of the earlier revision with the same names are renamed before
//! it reads them, so that they arrive unchanged in [`custom requests`](rmcp::ServerHandler::on_custom_request). The
//! server's capabilities are completed after the SDK has written them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use memchr::memmem;
use rmcp::model::{
    CustomResult, ErrorData, InitializeResult, JsonRpcMessage, ProtocolVersion, ServerJsonRpcMessage, ServerResult,
    TASKS_EXTENSION_ID,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// The prefix for the methods of 2025-11-25.
pub(in crate::mcp::server) const PREFIX: &str = "ops/2025-11-25/";

/// The member with the revision of a request that stands alone.
const REVISION: &str = "io.modelcontextprotocol/protocolVersion";

/// The member of `_meta` with the task to which a message belongs.
pub(super) const RELATED: &str = "io.modelcontextprotocol/related-task";

type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// A request of 2025-11-25, with a method that the SDK does not know. `None` if the message stays unchanged.
pub(in crate::mcp::server) fn renamed(message: &[u8]) -> Option<Vec<u8>> {
    // Most messages are none of these.
    if memmem::find(message, b"task").is_none() && memmem::find(message, b"/list").is_none() {
        return None;
    }
    let mut members: Members<'_> = serde_json::from_slice(message).ok()?;
    members.get("id")?;
    let method: Cow<'_, str> = serde_json::from_str(members.get("method")?.get()).ok()?;
    let params = || members.get("params").and_then(|params| serde_json::from_str::<Members<'_>>(params.get()).ok());
    let concerned = match &*method {
        // Some clients write options that they do not set as `null`.
        "tools/call" => params()?.get("task").is_some_and(|task| task.get() != "null"),
        "tools/list" | "tasks/get" | "tasks/cancel" => true,
        _ => false,
    };
    let stands_alone = || {
        let meta = params().and_then(|params| params.get("_meta").map(|meta| meta.get()));
        meta.and_then(|meta| serde_json::from_str::<Members<'_>>(meta).ok())
            .is_some_and(|meta| meta.contains_key(REVISION))
    };
    if !concerned || stands_alone() {
        return None;
    }
    let method = to_raw_value(&format!("{PREFIX}{method}")).ok()?;
    members.insert(Cow::Borrowed("method"), &method);
    serde_json::to_vec(&members).ok()
}

/// Declares tasks in the result of `initialize`, where the SDK has no place for them.
pub(in crate::mcp::server) fn declared(message: ServerJsonRpcMessage, lists: bool) -> ServerJsonRpcMessage {
    match message {
        JsonRpcMessage::Response(mut response) => {
            if let ServerResult::InitializeResult(result) = response.result {
                response.result = capable(result, lists);
            }
            JsonRpcMessage::Response(response)
        }
        other => other,
    }
}

fn capable(mut result: InitializeResult, lists: bool) -> ServerResult {
    // The extension is for revisions without `initialize`.
    let extensions = &mut result.capabilities.extensions;
    if let Some(all) = extensions {
        all.remove(TASKS_EXTENSION_ID);
    }
    *extensions = extensions.take().filter(|all| !all.is_empty());
    if result.protocol_version != ProtocolVersion::V_2025_11_25 {
        return ServerResult::InitializeResult(result);
    }
    let Ok(mut told) = serde_json::to_value(&result) else { return ServerResult::InitializeResult(result) };
    let mut tasks = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
    if lists && let Value::Object(tasks) = &mut tasks {
        tasks.insert("list".to_owned(), json!({}));
    }
    if let Some(Value::Object(capabilities)) = told.get_mut("capabilities") {
        capabilities.insert("tasks".to_owned(), tasks);
    }
    ServerResult::CustomResult(CustomResult(told))
}

/// A result in the form before 2026-07-28.
pub(super) fn legacy(mut result: ServerResult) -> Result<Value, ErrorData> {
    result.strip_result_type_for_legacy_peer();
    serde_json::to_value(&result).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method_of(message: &str) -> Option<String> {
        let renamed = renamed(message.as_bytes())?;
        let value: Value = serde_json::from_slice(&renamed).unwrap();
        Some(value["method"].as_str().unwrap().to_owned())
    }

    #[test]
    fn what_is_renamed() {
        let named = |name: &str| Some(format!("{PREFIX}{name}"));
        for (message, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"a"}}"#, named("tasks/get")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tasks\/cancel","params":{}}"#, named("tasks/cancel")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, named("tools/list")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","task":{}}}"#, named("tools/call")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"task"}}"#, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","task": null }}"#, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"task":1}}}"#, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/result","params":{"taskId":"a"}}"#, None),
            // No request.
            (r#"{"jsonrpc":"2.0","method":"tools/list"}"#, None),
            // A request of 2026-07-28.
            (
                r#"{"id":1,"method":"tasks/get","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
                None,
            ),
            (r#"[{"id":1,"method":"tasks/get"}]"#, None),
            (r#"{"id":1,"method":"tasks/get""#, None),
            (r#"{"id":1,"method":7,"params":"task"}"#, None),
            ("task\u{0}", None),
        ] {
            assert_eq!(method_of(message), expected, "{message}");
        }
    }

    #[test]
    fn what_is_renamed_is_otherwise_as_it_was() {
        let message =
            r#"{"id":1.50,"method":"tools/call","params":{"task":{},"arguments":{"n":12345678901234567890123.0}}}"#;
        let renamed = String::from_utf8(renamed(message.as_bytes()).unwrap()).unwrap();
        assert!(renamed.contains("12345678901234567890123.0") && renamed.contains("1.50"), "{renamed}");
    }
}
