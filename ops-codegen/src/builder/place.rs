//! The places in a document of the generator's diagnostics: the generator knows only definitions and operations.

use ops_runtime::spec::pointer::{self, unescaped};
use std::borrow::Cow;
use std::collections::HashMap;

use ops_runtime::binding::McpOutput;
use ops_runtime::openapi::{self, locate};
use ops_runtime::spec::{Diagnostic, OperationSpec};
use serde_json::{Map, Value};

/// Gives the generator's diagnostics a document, and, if the document has the place, a pointer, line and column in it.
///
/// A definition lies at the document's usual place; one from another place, such as another file, keeps its name. The text
/// is that of the file if there is no other.
pub(super) fn place(diagnostics: &mut [Diagnostic], operations: &[OperationSpec], document: &str, text: Option<&str>) {
    let ours = || diagnostics.iter().filter(|diagnostic| diagnostic.document.is_none());
    if ours().next().is_none() {
        return;
    }
    let text = text.map_or_else(|| std::fs::read_to_string(document).unwrap_or_default().into(), Cow::Borrowed);
    let is_list = operations.iter().any(|spec| spec.mcp().is_some());
    let list = if is_list { openapi::parse(&text).ok() } else { None };
    let by_id: HashMap<&str, &OperationSpec> = operations.iter().map(|spec| (spec.id.as_ref(), spec)).collect();
    let tools = list.as_ref().and_then(Tools::of);
    let candidates: Vec<Vec<String>> = ours()
        .map(|diagnostic| match (&list, &tools) {
            (Some(_), Some(tools)) => tools.place(&diagnostic.pointer, &by_id).into_iter().collect(),
            (Some(_), None) => Vec::new(),
            (None, _) => candidates(&diagnostic.pointer, &by_id),
        })
        .collect();
    let all: Vec<&str> = candidates.iter().flatten().map(String::as_str).collect();
    let mut positions = locate(&text, &all).into_iter();
    let ours = diagnostics.iter_mut().filter(|diagnostic| diagnostic.document.is_none());
    for (diagnostic, candidates) in ours.zip(candidates) {
        diagnostic.document = Some(document.to_owned());
        let mut found = candidates.into_iter().zip(positions.by_ref()).collect::<Vec<_>>().into_iter();
        if let Some((pointer, Some(position))) = found.find(|(_, position)| position.is_some()) {
            diagnostic.pointer = pointer;
            diagnostic.position = Some(position);
        }
    }
}

/// Gives the generator's diagnostics pointers into a document that is a value, if it has their places.
pub(super) fn place_in_value(diagnostics: &mut [Diagnostic], operations: &[OperationSpec], document: &Value) {
    let by_id: HashMap<&str, &OperationSpec> = operations.iter().map(|spec| (spec.id.as_ref(), spec)).collect();
    for diagnostic in diagnostics {
        let places = candidates(&diagnostic.pointer, &by_id);
        if let Some(pointer) = places.into_iter().find(|pointer| document.pointer(pointer).is_some()) {
            diagnostic.pointer = pointer;
        }
    }
}

/// A list of tools, and their place in it.
struct Tools<'v> {
    root: &'static str,
    tools: &'v [Value],
    /// The first tool of each name.
    by_name: HashMap<&'v str, usize>,
    /// The first tool that defines each name.
    by_definition: HashMap<&'v str, (usize, &'static str)>,
}

impl<'v> Tools<'v> {
    fn of(list: &'v Value) -> Option<Self> {
        let root =
            ["/tools", "/result/tools", ""].into_iter().find(|root| list.pointer(root).is_some_and(Value::is_array))?;
        let tools = list.pointer(root)?.as_array()?;
        let (mut by_name, mut by_definition) = (HashMap::new(), HashMap::new());
        for (at, tool) in tools.iter().enumerate() {
            if let Some(name) = tool.get("name").and_then(Value::as_str) {
                by_name.entry(name).or_insert(at);
            }
            for table in
                ["/inputSchema/$defs", "/inputSchema/definitions", "/outputSchema/$defs", "/outputSchema/definitions"]
            {
                for name in tool.pointer(table).and_then(Value::as_object).into_iter().flat_map(Map::keys) {
                    by_definition.entry(name.as_str()).or_insert((at, table));
                }
            }
        }
        Some(Self { root, tools, by_name, by_definition })
    }

    /// The place of a pointer of the generator, or the nearest place around it.
    fn place(&self, pointer: &str, operations: &HashMap<&str, &OperationSpec>) -> Option<String> {
        let (at, mut inside, least) = self.inside(pointer, operations)?;
        let tool = self.tools.get(at)?;
        // Parts that were rewritten are reported at the part around them.
        while inside.len() > least && tool.pointer(&inside).is_none() {
            inside.truncate(inside.rfind('/').unwrap_or(0));
        }
        Some(format!("{}/{at}{inside}", self.root))
    }

    /// The tool of a pointer of the generator, the pointer inside it, and how much of that pointer certainly exists.
    fn inside(&self, pointer: &str, operations: &HashMap<&str, &OperationSpec>) -> Option<(usize, String, usize)> {
        if let Some(definition) = pointer.strip_prefix("/$defs/") {
            let name = definition.split('/').next().unwrap_or(definition);
            let (at, table) = self.by_definition.get(&*unescaped(name))?;
            return Some((*at, format!("{table}/{definition}"), table.len() + 1 + name.len()));
        }
        let rest = pointer.strip_prefix("/operations/")?;
        let (id, rest) = rest.split_once('/').unwrap_or((rest, ""));
        let binding = operations.get(&*unescaped(id)).and_then(|spec| spec.mcp())?;
        let at = *self.by_name.get(binding.tool.as_ref())?;
        let (side, rest) = rest.split_once('/').map_or((rest, ""), |(side, rest)| (side, rest));
        let gap = if rest.is_empty() { "" } else { "/" };
        let inside = match (side, binding.output) {
            ("input", _) => format!("/inputSchema{gap}{rest}"),
            ("output", McpOutput::Wrapped) => format!("/outputSchema/properties/result{gap}{rest}"),
            ("output", _) => format!("/outputSchema{gap}{rest}"),
            _ => String::new(),
        };
        Some((at, inside, 0))
    }
}

/// The possible places of a generator's pointer in a document, the likeliest first.
fn candidates(pointer: &str, operations: &HashMap<&str, &OperationSpec>) -> Vec<String> {
    if let Some(rest) = pointer.strip_prefix("/$defs/") {
        let name = rest.split('/').next().unwrap_or(rest);
        let roots = ["/components/schemas/", "/definitions/"];
        return [rest, name].iter().flat_map(|rest| roots.map(|root| format!("{root}{rest}"))).collect();
    }
    if let Some(rest) = pointer.strip_prefix("/webhooks/") {
        let name = rest.split('/').next().unwrap_or(rest);
        return vec![format!("/webhooks/{name}")];
    }
    let Some(rest) = pointer.strip_prefix("/operations/") else { return Vec::new() };
    let escaped = rest.split('/').next().unwrap_or(rest);
    let id = unescaped(escaped);
    let http = operations.get(&*id).and_then(|spec| spec.http());
    http.map(|http| {
        let path = pointer::escaped(&http.path);
        format!("/paths/{path}/{}", http.method.to_lowercase())
    })
    .into_iter()
    .collect()
}
