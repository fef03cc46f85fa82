//! Snapshots of a server's tools: the file to commit and to generate code from.

use serde_json::{Map, Value, json};

use super::list::ToolList;
use super::{ReadOptions, read};
use crate::{Api, Diagnostic};

/// The tools of a server as it sent them, in a form that is easy to commit and to compare.
///
/// ```
/// use ops_runtime::mcp::Snapshot;
/// use serde_json::json;
///
/// let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
/// let snapshot = Snapshot::of(&json!({ "tools": [tool("b"), tool("a")], "ttlMs": 5 }))?;
/// assert_eq!(snapshot.tools()[0]["name"], "a");
/// assert!(snapshot.to_string().ends_with("}\n"));
/// # Ok::<(), ops_runtime::spec::Diagnostic>(())
/// ```
///
/// Its text holds the tools, sorted by name and otherwise unchanged, and the server's name and versions: nothing that
/// changes from day to day. Each tool is complete, including unknown members.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot(Map<String, Value>);

impl Snapshot {
    /// The snapshot of tools as a server sent them.
    pub fn new(server: &str, version: &str, protocol_version: &str, mut tools: Vec<Value>) -> Self {
        // Stable, so that the first of two tools with one name stays first.
        tools.sort_by(|a, b| name(a).cmp(name(b)));
        let mut members = Map::new();
        if !protocol_version.is_empty() {
            members.insert("protocolVersion".to_owned(), protocol_version.into());
        }
        members.insert("serverInfo".to_owned(), json!({ "name": server, "version": version }));
        members.insert("tools".to_owned(), tools.into());
        Self(members)
    }

    /// The snapshot of a list of tools in any of the forms that [`read`] takes, such as the text of another snapshot.
    ///
    /// # Errors
    /// If the value is none of them, or one of several pages of `tools/list`: a snapshot has all tools.
    pub fn of(list: &Value) -> Result<Self, Diagnostic> {
        let found = ToolList::of(list)?;
        if let Some(page) = found.page() {
            return Err(page);
        }
        let protocol = list.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let (server, version) = (found.server_name(), found.server_version());
        Ok(Self::new(server.unwrap_or_default(), version.unwrap_or_default(), protocol, found.tools.to_vec()))
    }

    /// The tools, sorted by name.
    pub fn tools(&self) -> &[Value] {
        self.0.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// Reads the tools into operations.
    ///
    /// # Errors
    /// Those of [`read`].
    pub fn read(&self, options: &ReadOptions) -> Result<(Api, Vec<Diagnostic>), Diagnostic> {
        read(&Value::Object(self.0.clone()), options)
    }
}

/// The text of the file: JSON in lines, with one at its end.
impl std::fmt::Display for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = serde_json::to_string_pretty(&self.0).map_err(|_| std::fmt::Error)?;
        writeln!(f, "{text}")
    }
}

fn name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_holds_what_stays() {
        let tool = |name: &str, at: u32| json!({ "name": name, "x-unknown": { "z": at, "a": [] }, "inputSchema": {} });
        let answer = json!({
            "result": {
                "tools": [tool("b", 1), tool("a", 2), tool("b", 3)],
                "ttlMs": 100,
                "cacheScope": "private",
                "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1", "icons": [] } },
            },
            "id": 7,
        });
        let snapshot = Snapshot::of(&answer).unwrap();
        let text = snapshot.to_string();
        let value: Value = serde_json::from_str(&text).unwrap();
        let tools = json!([tool("a", 2), tool("b", 1), tool("b", 3)]);
        assert_eq!(value, json!({ "serverInfo": { "name": "s", "version": "1" }, "tools": tools }));
        // Members keep the server's order, which is that of a type's fields.
        assert!(text.find("\"z\"") < text.find("\"a\": []"), "{text}");
        // The text of a snapshot is that snapshot.
        assert_eq!(Snapshot::of(&value).unwrap().to_string(), text);
        assert_eq!(snapshot.read(&ReadOptions::new()).unwrap().0.operations.len(), 2);
    }

    #[test]
    fn a_page_is_no_snapshot() {
        let page = |cursor: Value| json!({ "tools": [{ "name": "a", "inputSchema": {} }], "nextCursor": cursor });
        let error = Snapshot::of(&json!({ "result": page("x".into()) })).unwrap_err();
        assert_eq!(error.pointer, "/result/nextCursor");
        assert!(error.message.contains("further pages"), "{error}");
        assert!(Snapshot::of(&page(Value::Null)).is_ok());
    }
}
