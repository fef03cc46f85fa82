//! Where in a document the places are that the generator speaks of: it knows definitions and operations only.

use ops_runtime::openapi::{self, locate};
use ops_runtime::{Diagnostic, McpOutput, OperationSpec};
use serde_json::Value;

/// Gives the generator's diagnostics the document, and pointer, line and column in it where the document has the place.
///
/// A definition is where documents keep theirs; one that comes from elsewhere, such as another file, keeps its name.
pub(super) fn place(diagnostics: &mut [Diagnostic], operations: &[OperationSpec], document: &str) {
    let ours = || diagnostics.iter().filter(|diagnostic| diagnostic.document.is_none());
    if ours().next().is_none() {
        return;
    }
    let text = std::fs::read_to_string(document).unwrap_or_default();
    let is_list = operations.iter().any(|spec| spec.mcp().is_some());
    let list = if is_list { openapi::parse(&text).ok() } else { None };
    let candidates: Vec<Vec<String>> = ours()
        .map(|diagnostic| match &list {
            Some(list) => in_list(list, &diagnostic.pointer, operations).into_iter().collect(),
            None => candidates(&diagnostic.pointer, operations),
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

/// The place in a list of tools that a pointer of the generator means, or what holds it.
fn in_list(list: &Value, pointer: &str, operations: &[OperationSpec]) -> Option<String> {
    let root =
        ["/tools", "/result/tools", ""].into_iter().find(|root| list.pointer(root).is_some_and(Value::is_array))?;
    let tools = list.pointer(root)?.as_array()?;
    let mut rest = pointer.to_owned();
    let found = loop {
        let place = tools.iter().enumerate().find_map(|(at, tool)| {
            let inside = inside(tool, &rest, operations)?;
            tool.pointer(&inside).map(|_| format!("{root}/{at}{inside}"))
        });
        match (place, rest.rfind('/')) {
            (Some(place), _) => break place,
            // What was rewritten stands further out.
            (None, Some(end)) if end > 0 => rest.truncate(end),
            (None, _) => return None,
        }
    };
    Some(found)
}

/// Where a pointer of the generator leads inside a tool.
fn inside(tool: &Value, pointer: &str, operations: &[OperationSpec]) -> Option<String> {
    if let Some(definition) = pointer.strip_prefix("/$defs/") {
        let places = ["inputSchema", "outputSchema"].into_iter().flat_map(|side| {
            ["$defs", "definitions"].into_iter().map(move |table| format!("/{side}/{table}/{definition}"))
        });
        return places.into_iter().find(|place| tool.pointer(place).is_some());
    }
    let rest = pointer.strip_prefix("/operations/")?;
    let (id, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let id = id.replace("~1", "/").replace("~0", "~");
    let binding = operations.iter().find(|spec| spec.id == id).and_then(OperationSpec::mcp)?;
    if tool.get("name").and_then(Value::as_str) != Some(binding.tool.as_ref()) {
        return None;
    }
    let (side, rest) = rest.split_once('/').map_or((rest, String::new()), |(side, rest)| (side, format!("/{rest}")));
    Some(match (side, binding.output) {
        ("input", _) => format!("/inputSchema{rest}"),
        ("output", McpOutput::Wrapped) => format!("/outputSchema/properties/result{rest}"),
        ("output", _) => format!("/outputSchema{rest}"),
        _ => String::new(),
    })
}

/// The places in a document that a pointer of the generator may mean, the likeliest first.
fn candidates(pointer: &str, operations: &[OperationSpec]) -> Vec<String> {
    if let Some(rest) = pointer.strip_prefix("/$defs/") {
        let name = rest.split('/').next().unwrap_or(rest);
        let roots = ["/components/schemas/", "/definitions/"];
        return [rest, name].iter().flat_map(|rest| roots.map(|root| format!("{root}{rest}"))).collect();
    }
    let Some(rest) = pointer.strip_prefix("/operations/") else { return Vec::new() };
    let escaped = rest.split('/').next().unwrap_or(rest);
    let id = escaped.replace("~1", "/").replace("~0", "~");
    let http = operations.iter().find(|spec| spec.id == id).and_then(OperationSpec::http);
    http.map(|http| {
        let path = http.path.replace('~', "~0").replace('/', "~1");
        format!("/paths/{path}/{}", http.method.to_lowercase())
    })
    .into_iter()
    .collect()
}
