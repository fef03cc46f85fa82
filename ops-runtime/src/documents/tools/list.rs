//! The forms of lists of tools: an answer of a server, or a snapshot.

use serde_json::{Map, Value};

use crate::Diagnostic;

/// The name of a server in answers of the stateless protocol (2026-07-28).
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// A list of tools, and the facts about its server.
pub(super) struct ToolList<'v> {
    /// The JSON pointer to the tools.
    pub(super) pointer: &'static str,
    pub(super) tools: &'v [Value],
    /// The server's `serverInfo`.
    server: Option<&'v Map<String, Value>>,
    /// The JSON pointer to the cursor of the next page, if the server has more tools.
    next: Option<&'static str>,
}

impl<'v> ToolList<'v> {
    /// Finds the tools in a value: a snapshot, the result of `tools/list` or the whole answer, or the bare list.
    pub(super) fn of(value: &'v Value) -> Result<Self, Diagnostic> {
        let result = value.get("result").filter(|result| result.is_object());
        let (holder, pointer, next) = match (value, result) {
            (Value::Array(tools), _) => return Ok(Self { pointer: "", tools, server: None, next: None }),
            (_, Some(result)) if value.get("tools").is_none() => (result, "/result/tools", "/result/nextCursor"),
            _ => (value, "/tools", "/nextCursor"),
        };
        let has_more = holder.get("nextCursor").is_some_and(Value::is_string);
        if let (None, Some(error)) = (result, value.get("error")) {
            let message = error.get("message").and_then(Value::as_str).unwrap_or("it does not say why");
            let error =
                Diagnostic::error("/error", format!("not a list of tools, but an error of the server: {message}"));
            return Err(error.with_help("take the snapshot again with `ops snapshot`"));
        }
        match holder.get("tools") {
            Some(Value::Array(tools)) => {
                let server = server(value).or_else(|| server(holder));
                Ok(Self { pointer, tools, server, next: has_more.then_some(next) })
            }
            Some(_) => Err(Diagnostic::error(pointer, "not a list of tools: `tools` is not a list")),
            None => {
                let error = Diagnostic::error("", "not a list of tools: it has no member `tools`");
                Err(error.with_help("a snapshot of a server's tools is written by `ops snapshot`"))
            }
        }
    }

    /// The error if the list is only one page of the server's: code that takes it for all of them misses the others.
    pub(super) fn page(&self) -> Option<Diagnostic> {
        let error = Diagnostic::error(self.next?, "the list has further pages, whose tools are not in it");
        Some(error.with_help("take the snapshot with `ops snapshot`, which reads all pages"))
    }

    /// The name that the server gives itself.
    pub(super) fn server_name(&self) -> Option<&'v str> {
        self.text("name")
    }

    /// The version of the server.
    pub(super) fn server_version(&self) -> Option<&'v str> {
        self.text("version")
    }

    fn text(&self, key: &str) -> Option<&'v str> {
        self.server?.get(key)?.as_str().filter(|text| !text.trim().is_empty())
    }
}

fn server(value: &Value) -> Option<&Map<String, Value>> {
    let info = value.get("serverInfo").or_else(|| value.get("_meta")?.get(SERVER_INFO));
    info.and_then(Value::as_object)
}

/// True if a JSON value is a list of tools in one of the forms that [`read`](super::read) takes.
///
/// ```
/// use ops_runtime::mcp::is_tool_list;
/// use serde_json::json;
///
/// let tool = json!({ "name": "add", "inputSchema": { "type": "object" } });
/// assert!(is_tool_list(&json!([tool])));
/// assert!(is_tool_list(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [tool] } })));
/// assert!(!is_tool_list(&json!({ "tools": [{ "type": "function" }] })));
/// ```
pub fn is_tool_list(value: &Value) -> bool {
    let is_tool = |tool: &Value| {
        let has = |key: &str| tool.get(key).is_some();
        tool.get("name").is_some_and(Value::is_string) && has("inputSchema") && !has("namespace")
    };
    match ToolList::of(value) {
        // The list of a server without tools.
        Ok(list) if list.tools.is_empty() => list.server.is_some(),
        Ok(list) => list.tools.iter().any(is_tool),
        Err(_) => false,
    }
}
