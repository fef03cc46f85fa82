//! A toy adapter: descriptions such as `add(a: number, b: number) -> number`, one a line, become operations.

use ops_runtime::spec::{Api, Definition, Definitions, Diagnostic, OperationKind, OperationSpec};
use serde_json::{Map, Value, json};

/// Reads a description. A line that is none is left out, and a diagnostic says so.
///
/// `name(..) -> type` is an operation, `type Name(..)` a definition; `#` starts a comment.
pub(crate) fn read(text: &str, namespace: &str) -> (Api, Vec<Diagnostic>) {
    let (mut definitions, mut operations, mut diagnostics) = (Vec::new(), Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let read = match line.strip_prefix("type ") {
            _ if line.is_empty() => continue,
            Some(rest) => definition(rest).map(|definition| definitions.push(definition)),
            None => operation(line, namespace).map(|operation| operations.push(operation)),
        };
        if read.is_none() {
            let diagnostic = Diagnostic::warning(format!("/{number}"), format!("`{line}` is no operation and no type"));
            diagnostics.push(diagnostic.with_help("the line is left out"));
        }
    }
    // `Api::new` gives every operation the table that its schemas refer to.
    (Api::new(Definitions::new(definitions), operations), diagnostics)
}

fn operation(line: &str, namespace: &str) -> Option<OperationSpec> {
    let (head, output) = line.split_once("->")?;
    let (name, fields) = head.trim().strip_suffix(')')?.split_once('(')?;
    let mut spec = OperationSpec::new(OperationKind::Query, namespace, name.trim()).ok()?;
    spec.input = object(fields)?.into();
    spec.output = schema(output)?.into();
    Some(spec)
}

fn definition(rest: &str) -> Option<Definition> {
    let (name, fields) = rest.trim().strip_suffix(')')?.split_once('(')?;
    Some(Definition::from_value(name.trim().to_owned(), object(fields)?))
}

/// The schema of `a: number, b?: text`: an object.
fn object(fields: &str) -> Option<Value> {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in fields.split(',').filter(|field| !field.trim().is_empty()) {
        let (name, kind) = field.split_once(':')?;
        let name = name.trim();
        if !name.ends_with('?') {
            required.push(name);
        }
        properties.insert(name.trim_end_matches('?').to_owned(), schema(kind)?);
    }
    Some(json!({ "type": "object", "properties": properties, "required": required }))
}

/// The schema of a type: `number`, `text`, `bytes`, a list such as `[text]`, or the name of a definition.
fn schema(kind: &str) -> Option<Value> {
    let kind = kind.trim();
    if let Some(item) = kind.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Some(json!({ "type": "array", "items": schema(item)? }));
    }
    Some(match kind {
        "" => return None,
        "number" => json!({ "type": "number" }),
        "text" => json!({ "type": "string" }),
        // A `Body`, which an endpoint may stream.
        "bytes" => json!({ "type": "string", "format": "binary" }),
        name => json!({ "$ref": format!("#/$defs/{name}") }),
    })
}
