//! The tools of a server, as operations.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::session::{McpServerInfo, Session};
use crate::mcp::{self, ReadOptions};
use crate::{CallError, Diagnostic, SpecRef};

/// How many pages a list of tools may have.
const PAGES: usize = 1000;

/// The tools of a server at some time.
#[derive(Default)]
pub(super) struct Catalog {
    /// How many times the server had been asked for them by then: a higher number is that of a newer list.
    pub(super) number: u64,
    /// What the server says about itself.
    pub(super) info: McpServerInfo,
    /// As the server sent them.
    pub(super) tools: Vec<Value>,
    /// As operations.
    pub(super) operations: Vec<SpecRef>,
    /// The diagnostics from reading them.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The names of those that run only as tasks (2025-11-25).
    pub(super) tasks: HashSet<String>,
}

impl Catalog {
    /// Lists the tools, page by page.
    pub(super) async fn load(session: &Session, namespace: Option<&str>, number: u64) -> Result<Arc<Self>, CallError> {
        let tools = list(session).await?;
        let mut options = ReadOptions::new();
        options.namespace = namespace.map(str::to_owned);
        let list = snapshot(session, &tools);
        let read =
            mcp::read(&list, &options).map_err(|error| CallError::execution(format!("the list of tools: {error}")));
        let (api, mut diagnostics) = read.map_err(|error| session.given.error(error))?;
        if !diagnostics.is_empty() {
            let secrets = session.given.secrets();
            diagnostics = diagnostics.into_iter().map(|diagnostic| secrets.diagnostic(diagnostic)).collect();
        }
        let operations = api.operations.into_iter().map(SpecRef::from).collect();
        let needs_task =
            |tool: &&Value| tool.pointer("/execution/taskSupport").is_some_and(|support| support == "required");
        let name = |tool: &Value| tool.get("name").and_then(Value::as_str).map(str::to_owned);
        let tasks = tools.iter().filter(needs_task).filter_map(name).collect();
        Ok(Arc::new(Self { number, info: session.info.clone(), tools, operations, diagnostics, tasks }))
    }

    /// The operations by their ids.
    pub(super) fn by_id(&self) -> HashMap<&str, &SpecRef> {
        self.operations.iter().map(|spec| (&*spec.id, spec)).collect()
    }
}

/// The tools with the name and the version of their server, as `mcp::read` and snapshots have them.
pub(super) fn snapshot(session: &Session, tools: &[Value]) -> Value {
    let mut server = Map::new();
    for (key, value) in [("name", &session.info.name), ("version", &session.info.version)] {
        if !value.is_empty() {
            server.insert(key.to_owned(), Value::from(value.as_str()));
        }
    }
    json!({ "serverInfo": server, "tools": tools })
}

/// True if a server answers that it does not know the method. Some have a code for that which others use for its
/// parameters.
fn is_unsupported(error: &CallError) -> bool {
    matches!(error.details().get("code").and_then(Value::as_i64), Some(-32601 | -32602))
}

async fn list(session: &Session) -> Result<Vec<Value>, CallError> {
    let server = &session.interceptor.server;
    let (mut tools, mut seen, mut cursor) = (Vec::new(), HashSet::new(), None);
    let mut room = session.max_list;
    for _ in 0..PAGES {
        let mut page = match session.list_tools(cursor, room).await {
            Ok((page, bytes)) => {
                room = room.saturating_sub(bytes);
                page
            }
            // A server without tools need not support listing them. Any other error says nothing about its tools.
            Err(error)
                if session.info.capabilities.get("tools").is_none() && seen.is_empty() && is_unsupported(&error) =>
            {
                return Ok(tools);
            }
            Err(error) => return Err(error),
        };
        match page.get_mut("tools").map(Value::take) {
            Some(Value::Array(page)) => tools.extend(page),
            _ => {
                return Err(CallError::execution(format!(
                    "the MCP server `{server}` sent a list of tools without `tools`"
                )));
            }
        }
        // An empty string is a valid cursor.
        let next = match page.get_mut("nextCursor").map(Value::take) {
            None | Some(Value::Null) => return Ok(tools),
            Some(Value::String(next)) => next,
            Some(_) => {
                return Err(CallError::execution(format!("the MCP server `{server}` sent a cursor that is no text")));
            }
        };
        if !seen.insert(next.clone()) {
            let message = format!("the MCP server `{server}` never ends its list of tools: it sent a cursor twice");
            return Err(CallError::execution(message));
        }
        cursor = Some(next);
    }
    Err(CallError::execution(format!("the list of tools of the MCP server `{server}` has more than {PAGES} pages")))
}
