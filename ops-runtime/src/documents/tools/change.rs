//! The changes between two lists of tools, and which of them break callers.
//!
//! The caller follows the old list, the server the new one. A change breaks if the new schema may refuse an input that
//! fits the old one, or if an output that fits the new schema may not fit the type that was generated from the old one.

use std::collections::BTreeMap;
use std::fmt;

use crate::documents::change::{Comparer, Side, value};
use crate::model::text::readable;
use crate::{Api, McpOutput, OperationSpec, Schema};

/// How many places of a tool's schemas are compared.
const BUDGET: usize = 20_000;

/// Something that changed between two lists of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The name of the tool.
    pub tool: String,
    /// The place in the tool, as a JSON pointer, which continues behind a `$ref`.
    pub pointer: String,
    /// The change, as a sentence about the place.
    pub message: String,
    /// True if a caller that was written for the old list may fail.
    pub breaks: bool,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.breaks { "breaking" } else { "change" };
        write!(f, "{word}: `{}`", readable(&self.tool, 200))?;
        if !self.pointer.is_empty() {
            write!(f, " {}", readable(&self.pointer, 1_000))?;
        }
        write!(f, ": {}", readable(&self.message, 1_000))
    }
}

/// The changes from one list of tools to another, in the order of their names.
///
/// Operations are matched by their names; their servers and namespaces do not matter.
///
/// ```
/// use ops_runtime::mcp::{self, ReadOptions};
/// use serde_json::json;
///
/// let list = |required: &[&str]| {
///     let schema = json!({ "type": "object", "properties": { "a": { "type": "number" } }, "required": required });
///     let list = json!({ "tools": [{ "name": "double", "inputSchema": schema }] });
///     mcp::read(&list, &ReadOptions::new()).unwrap().0
/// };
/// let changes = mcp::changes(&list(&[]), &list(&["a"]));
/// assert_eq!(changes[0].to_string(), "breaking: `double` /inputSchema/properties/a: it is required now");
/// assert!(mcp::changes(&list(&["a"]), &list(&[])).iter().all(|change| !change.breaks));
/// ```
pub fn changes(old: &Api, new: &Api) -> Vec<Change> {
    let by_name = |api: &'_ Api| -> BTreeMap<String, OperationSpec> {
        api.operations.iter().map(|spec| (spec.name().to_owned(), spec.clone())).collect()
    };
    // All operations of an API share its definitions.
    let is_same = match (old.operations.first(), new.operations.first()) {
        (Some(old), Some(new)) => old.definitions == new.definitions,
        _ => false,
    };
    let (old, mut new) = (by_name(old), by_name(new));
    let mut changes = Vec::new();
    for (name, old) in &old {
        match new.remove(name) {
            Some(new) => changes.extend(compared(old, &new, is_same)),
            None => changes.push(change(name, "", "the tool is gone", true)),
        }
    }
    changes.extend(new.keys().map(|name| change(name, "", "the tool is new", false)));
    changes.sort_by(|a, b| a.tool.cmp(&b.tool));
    changes
}

/// The changes from one description of a tool to another.
pub fn tool_changes(old: &OperationSpec, new: &OperationSpec) -> Vec<Change> {
    compared(old, new, old.definitions == new.definitions)
}

/// True if both are the same tool of a server, and what changed from one to the other breaks no caller.
#[cfg(feature = "registry")]
pub(crate) fn is_served_by(own: &OperationSpec, live: &OperationSpec) -> bool {
    let is_same_tool = matches!((own.mcp(), live.mcp()), (Some(own), Some(live)) if own == live);
    is_same_tool && !tool_changes(own, live).iter().any(|change| change.breaks)
}

/// The changes, if it is known that the definitions are the same or not.
fn compared(old: &OperationSpec, new: &OperationSpec, same_definitions: bool) -> Vec<Change> {
    let name = old.name();
    let mut changes = Vec::new();
    if old.kind != new.kind {
        let (old, new) = (format!("{:?}", old.kind).to_lowercase(), format!("{:?}", new.kind).to_lowercase());
        changes.push(change(name, "/annotations", &format!("it was a {old} and is a {new} now"), false));
    }
    if old.title != new.title {
        changes.push(change(name, "/title", "the title changed", false));
    }
    if old.description != new.description {
        changes.push(change(name, "/description", "the description changed", false));
    }
    let mut compare = |side, old_schema: &Schema, new_schema: &Schema, pointer: &str| {
        if old_schema == new_schema && same_definitions {
            return;
        }
        let mut comparer = Comparer::new(side, &old.definitions, &new.definitions, BUDGET);
        let entries = comparer.compare(&value(old_schema), &value(new_schema), pointer);
        let found = comparer.findings(entries).into_iter();
        changes.extend(found.map(|found| change(name, &found.pointer, &found.message, found.breaks)));
    };
    compare(Side::Input, &old.input, &new.input, "/inputSchema");
    let place = |spec: &OperationSpec| spec.mcp().map(|tool| tool.output);
    match (place(old), place(new)) {
        (Some(McpOutput::Content), Some(McpOutput::Content)) => {}
        (Some(McpOutput::Content), _) => {
            let message = "it has an output schema now, beside its content blocks";
            changes.push(change(name, "/outputSchema", message, false));
        }
        (Some(_), Some(McpOutput::Content)) => {
            changes.push(change(name, "/outputSchema", "it has no output schema any more", true));
        }
        (old_place, new_place) if old_place != new_place => {
            changes.push(change(name, "/outputSchema", "the output stands in another place of the result", true));
        }
        (Some(McpOutput::Wrapped), _) => {
            compare(Side::Output, &old.output, &new.output, "/outputSchema/properties/result");
        }
        _ => compare(Side::Output, &old.output, &new.output, "/outputSchema"),
    }
    changes
}

fn change(tool: &str, pointer: &str, message: &str, breaks: bool) -> Change {
    Change { tool: tool.to_owned(), pointer: pointer.to_owned(), message: message.to_owned(), breaks }
}

#[cfg(test)]
mod tests;
