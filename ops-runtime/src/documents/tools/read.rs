//! Lists of tools to operations.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::list::ToolList;
use super::{ReadOptions, WRAPPED};
use crate::documents::openapi;
use crate::documents::openapi::standalone::{self, Standalone};
use crate::documents::source::Source;
use crate::{
    Api, Binding, Definitions, Diagnostic, McpBinding, McpOutput, OperationKind, OperationSpec, Schema, Severity, Text,
};

/// Reads the list of tools at a location.
///
/// # Errors
/// If there is no such document, or if it is not a list of tools.
pub fn load(location: &str, source: &dyn Source, options: &ReadOptions) -> Result<(Api, Vec<Diagnostic>), Diagnostic> {
    let text = source.read(location, location).map_err(|error| Diagnostic::error("", error.message));
    let place = |mut diagnostics: Vec<Diagnostic>, text: &str| {
        let pointers: Vec<&str> = diagnostics.iter().map(|diagnostic| diagnostic.pointer.as_str()).collect();
        let positions = if pointers.is_empty() { Vec::new() } else { openapi::locate(text, &pointers) };
        for (diagnostic, position) in diagnostics.iter_mut().zip(positions) {
            diagnostic.position = diagnostic.position.or(position);
            diagnostic.document = Some(location.to_owned());
        }
        diagnostics
    };
    let text = text.map_err(|error| error.with_document(location))?;
    let mut options = options.clone();
    let read = openapi::parse_with_diagnostics(&text).and_then(|(value, mut told)| {
        if options.namespace.is_none() && ToolList::of(&value)?.server_name().is_none() {
            options.namespace = Some(openapi::namespace(Some(location), None));
        }
        let (api, diagnostics) = read(&value, &options)?;
        told.extend(diagnostics);
        Ok((api, told))
    });
    match read {
        Ok((api, diagnostics)) => Ok((api, place(diagnostics, &text))),
        Err(error) => Err(place(vec![error.clone()], &text).pop().unwrap_or(error)),
    }
}

/// Reads a list of tools: a snapshot, the result of `tools/list` or the whole answer, or the bare list.
///
/// # Errors
/// If the value is none of these.
pub fn read(list: &Value, options: &ReadOptions) -> Result<(Api, Vec<Diagnostic>), Diagnostic> {
    let list = ToolList::of(list)?;
    let namespace = match options.namespace.as_deref().map(|name| name.replace('.', "_")) {
        Some(namespace) if !namespace.is_empty() => namespace,
        _ => openapi::namespace(None, list.server_name()),
    };
    let mut diagnostics = Vec::new();
    if let Some(page) = list.page() {
        diagnostics.push(Diagnostic { severity: Severity::Warning, ..page });
    }
    let tools = tools(&list, &namespace, &mut diagnostics);
    let mut given = Vec::new();
    for tool in &tools {
        given.extend(tool.input.as_ref().map(|input| standalone(tool, "inputSchema", input, "")));
        given.extend(tool.output.as_ref().map(|(output, part)| standalone(tool, "outputSchema", output, part)));
    }
    let mut read = standalone::read(&given);
    diagnostics.append(&mut read.diagnostics);
    let mut schemas = read.schemas.into_iter();
    let operations = tools.into_iter().map(|tool| {
        let Tool { mut spec, input, output, .. } = tool;
        let input = input.and_then(|_| schemas.next()).unwrap_or_else(|| json!({}));
        spec.input = Schema::from(arguments(input));
        spec.output = Schema::from(output.and_then(|_| schemas.next()).unwrap_or_else(content));
        spec
    });
    let operations = operations.collect();
    Diagnostic::bound(&mut diagnostics);
    Ok((Api::new(Definitions::new(read.definitions), operations), diagnostics))
}

/// How many characters of the server's version are kept.
const LONGEST_VERSION: usize = 200;

/// A tool before its schemas are read.
struct Tool<'v> {
    pointer: String,
    name: &'v str,
    spec: OperationSpec,
    input: Option<&'v Value>,
    /// The output schema, and the part of it that describes the output.
    output: Option<(&'v Value, &'static str)>,
}

fn standalone<'v>(tool: &Tool<'v>, key: &str, value: &'v Value, part: &'static str) -> Standalone<'v> {
    let side = key.trim_end_matches("Schema");
    let (name, pointer) = (format!("{}_{side}", tool.name), format!("{}/{key}", tool.pointer));
    Standalone { owner: tool.name, name, pointer, value, part }
}

fn tools<'v>(list: &ToolList<'v>, namespace: &str, diagnostics: &mut Vec<Diagnostic>) -> Vec<Tool<'v>> {
    let mut names = BTreeSet::new();
    let mut tools = Vec::new();
    for (at, value) in list.tools.iter().enumerate() {
        let pointer = format!("{}/{at}", list.pointer);
        let named = value.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let Some(name) = named else {
            let warning = Diagnostic::warning(pointer, "a tool without a name");
            diagnostics.push(warning.with_help("it was left out: nobody could call it"));
            continue;
        };
        if !names.insert(name) {
            let warning = Diagnostic::warning(pointer, format!("a second tool is called `{name}`"));
            diagnostics.push(warning.with_help("it was left out"));
            continue;
        }
        match tool(value, name, pointer.clone(), namespace, list.server_version(), diagnostics) {
            Some(tool) => tools.push(tool),
            None => {
                let warning =
                    Diagnostic::warning(pointer, format!("`{namespace}.{name}` is not the id of an operation"));
                diagnostics.push(warning.with_help("it was left out"));
            }
        }
    }
    tools
}

fn tool<'v>(
    value: &'v Value,
    name: &'v str,
    pointer: String,
    namespace: &str,
    version: Option<&str>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Tool<'v>> {
    let annotations = value.get("annotations");
    let reads = annotations.and_then(|hints| hints.get("readOnlyHint")) == Some(&Value::Bool(true));
    let kind = if reads { OperationKind::Query } else { OperationKind::Mutation };
    let mut spec = OperationSpec::new(kind, namespace, name).ok()?;
    let text = |value: Option<&Value>| {
        let text = value.and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        text.map(|text| Text::Owned(text.to_owned()))
    };
    spec.title = text(value.get("title")).or_else(|| text(annotations?.get("title")));
    let description = text(value.get("description")).or_else(|| spec.title.clone());
    spec.description = description.unwrap_or_default();
    if let Some(version) = version {
        // All tools repeat it, so it is cut.
        spec.version = Text::Owned(version.chars().take(LONGEST_VERSION).collect());
    }
    let present = |key: &str| value.get(key).filter(|schema| !schema.is_null());
    let input = present("inputSchema");
    if input.is_none() {
        let note = Diagnostic::note(&pointer, format!("the tool `{name}` has no `inputSchema`"));
        diagnostics.push(note.with_help("it takes any arguments"));
    }
    let output = present("outputSchema").map(|schema| (schema, if wraps(schema) { "/properties/result" } else { "" }));
    let place = match output {
        None => McpOutput::Content,
        Some((_, "")) => McpOutput::Structured,
        Some(_) => McpOutput::Wrapped,
    };
    spec.binding = Binding::Mcp(McpBinding::owned(name.to_owned(), place));
    Some(Tool { pointer, name, spec, input, output })
}

/// True if an output schema only wraps the output in the property `result`.
fn wraps(schema: &Value) -> bool {
    let has = |key: &str| schema.get(key).is_some();
    let Some(Value::Object(properties)) = schema.get("properties") else { return false };
    if !properties.contains_key("result") {
        return false;
    }
    if schema.get(WRAPPED) == Some(&Value::Bool(true)) {
        return true;
    }
    let is_required = schema.get("required").is_some_and(|names| *names == json!(["result"]));
    let is_closed = matches!(schema.get("additionalProperties"), None | Some(Value::Bool(false)));
    let says_more = ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "const", "enum"];
    properties.len() == 1
        && is_required
        && is_closed
        && matches!(schema.get("type"), None | Some(Value::String(_)))
        && !says_more.into_iter().any(has)
}

/// The schema of arguments, which are an object even if the tool does not say so.
fn arguments(schema: Value) -> Value {
    let mut schema = match schema {
        Value::Object(schema) => schema,
        Value::Bool(false) => return Value::Bool(false),
        _ => Map::new(),
    };
    let says = ["type", "$ref", "allOf", "anyOf", "oneOf"].iter().any(|key| schema.contains_key(*key));
    if !says {
        schema.shift_insert(0, "type".to_owned(), "object".into());
    }
    Value::Object(schema)
}

/// The schema of content blocks, with only what a client relies on.
fn content() -> Value {
    json!({ "type": "array", "items": { "type": "object" } })
}
