//! A tool as it is listed, and the conversion of its arguments to the operation's input, and of the output to its
//! result.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{JsonObject, MetaObject, ProtocolVersion, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::schema::{self, Kind};
use crate::documents::tools::WRAPPED;
use crate::model::spec::reads;
use crate::pointer;
use crate::run::registry::Entry;
use crate::run::schemas::{published_input, undeclared};
use crate::{CallError, ErrorCode, McpOutput, OperationKind, OperationSpec};

/// What a revision of the protocol allows as structured content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StructuredContent {
    /// An object: before 2026-07-28.
    Object,
    /// Any JSON.
    Any,
}

impl StructuredContent {
    pub(super) fn of(revision: Option<&ProtocolVersion>) -> Self {
        // Revisions are dates, so their text is in order.
        match revision {
            Some(revision) if revision.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => Self::Any,
            _ => Self::Object,
        }
    }
}

/// How the arguments of a tool, always an object, become the input of its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    /// They are the input.
    Object,
    /// Their property `input` is.
    Wrapped,
    /// There is none: the operation takes `null`.
    Nothing,
}

/// How the output of an operation becomes the result of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    /// Structured content without a schema, where the revision allows the value.
    Undeclared,
    /// Structured content that is an object.
    Object,
    /// Structured content of another kind: if only objects are allowed, it is the property `result` of an object.
    Other,
    /// The content blocks of the result, and the structured content beside them.
    Blocks,
}

/// An operation that is served.
pub(super) struct Served {
    pub(super) entry: Arc<Entry>,
    pub(super) name: String,
    pub(super) output: Output,
    input: Input,
    /// For the two values of [`StructuredContent`].
    object: Tool,
    any: Tool,
}

impl Served {
    pub(super) fn new(entry: Arc<Entry>, name: String) -> Self {
        let spec = &*entry.spec;
        let (input, input_schema) = input(spec);
        let (output, output_schema) = output(spec);
        let mut any = Tool::new_with_raw(name.clone(), description(spec), input_schema);
        any.title = spec.title.as_ref().map(|title| title.clone().into_owned());
        any.annotations = annotations(spec);
        any.meta = Some(MetaObject(Map::from_iter([("ops/id".to_owned(), json!(spec.id))])));
        let mut object = any.clone();
        any.output_schema = output_schema.clone().map(Arc::new);
        object.output_schema = output_schema.map(|schema| match output {
            Output::Other => Arc::new(schema::wrap(schema, "result", Some(WRAPPED))),
            _ => Arc::new(schema),
        });
        Self { entry, name, output, input, object, any }
    }

    pub(super) fn spec(&self) -> &OperationSpec {
        &self.entry.spec
    }

    /// The tool in the form of that revision.
    pub(super) fn tool(&self, structure: StructuredContent) -> &Tool {
        match structure {
            StructuredContent::Object => &self.object,
            StructuredContent::Any => &self.any,
        }
    }

    pub(super) fn is_stream(&self) -> bool {
        self.spec().kind == OperationKind::Subscription
    }

    /// The input in the arguments of a call.
    pub(super) fn input_of(&self, arguments: Option<JsonObject>) -> Result<Value, CallError> {
        let mut arguments = arguments.unwrap_or_default();
        let (input, known) = match self.input {
            Input::Object => return Ok(Value::Object(arguments)),
            Input::Nothing => (Value::Null, &[][..]),
            Input::Wrapped => (arguments.remove("input").ok_or_else(|| self.missing())?, &["input"][..]),
        };
        if arguments.is_empty() {
            return Ok(input);
        }
        let left: Vec<String> = arguments.keys().map(|name| format!("/{}", pointer::escaped(name))).collect();
        Err(undeclared(&self.spec().id, &left, known))
    }

    fn missing(&self) -> CallError {
        let message = format!("the input of `{}` is invalid: the argument `input` is missing", self.spec().id);
        let violation = json!({ "pointer": "", "message": "\"input\" is a required property" });
        CallError::new(ErrorCode::ValidationError, message).with_details(json!({ "violations": [violation] }))
    }

    /// The structured content of a result, if the revision allows it.
    pub(super) fn structured(&self, data: Value, structure: StructuredContent) -> Option<Value> {
        match (self.output, structure) {
            (Output::Blocks, _) => None,
            (Output::Other, StructuredContent::Object) => Some(json!({ "result": data })),
            (_, StructuredContent::Object) => data.is_object().then_some(data),
            (_, StructuredContent::Any) => Some(data),
        }
    }
}

fn description(spec: &OperationSpec) -> Option<Cow<'static, str>> {
    match (spec.description.as_ref(), spec.deprecated) {
        ("", false) => None,
        ("", true) => Some(Cow::Borrowed("Deprecated.")),
        (_, false) => Some(spec.description.clone()),
        (text, true) => Some(Cow::Owned(format!("Deprecated. {text}"))),
    }
}

/// The hints of a tool, from what the operation may change and from its HTTP method. A stream is read-only only if the method
/// says so. Without hints, clients assume the worst.
fn annotations(spec: &OperationSpec) -> Option<ToolAnnotations> {
    let hints = ToolAnnotations::new();
    let method = spec.http().map(|http| &*http.method);
    // RFC 9110, section 9.2.2.
    let idempotent = matches!(method, Some("PUT" | "DELETE"));
    match spec.kind {
        // `changes` alone is no proof: the documents of our servers say of each function that streams that it changes nothing.
        OperationKind::Subscription if method.is_none_or(|method| !reads(method)) => None,
        _ if !spec.may_change() => Some(hints.read_only(true)),
        OperationKind::Mutation if idempotent => Some(hints.read_only(false).idempotent(true)),
        OperationKind::Mutation => Some(hints.read_only(false)),
        _ => None,
    }
}

/// A schema of an operation, with its definitions, in the form for tools; `None` if it accepts everything.
fn declared(spec: &OperationSpec, schema: Result<Value, serde_json::Error>) -> Option<Map<String, Value>> {
    match schema {
        Ok(Value::Object(schema)) if !schema.is_empty() => Some(schema::inline_root(schema)),
        Ok(_) => None,
        Err(error) => {
            let operation = spec.id.as_ref();
            tracing::warn!(operation, %error, "a schema is not JSON: the tool is served without it");
            None
        }
    }
}

fn input(spec: &OperationSpec) -> (Input, Map<String, Value>) {
    let nothing = || Map::from_iter([("type".to_owned(), json!("object"))]);
    let schema = published_input(spec).map_or_else(|| spec.input_schema(), Ok);
    let Some(schema) = declared(spec, schema) else { return (Input::Object, nothing()) };
    match schema::kind(&schema) {
        Kind::Object | Kind::MaybeObject => (Input::Object, schema::typed_as_object(schema)),
        Kind::Null => (Input::Nothing, nothing()),
        Kind::Other => (Input::Wrapped, schema::wrap(schema, "input", None)),
    }
}

fn output(spec: &OperationSpec) -> (Output, Option<Map<String, Value>>) {
    // A tool of another server that has no output schema is served without one.
    let is_undeclared = spec.mcp().is_some_and(|tool| tool.output == McpOutput::Content);
    if is_undeclared || is_blocks(spec) {
        return (Output::Blocks, None);
    }
    let schema = declared(spec, spec.output_schema());
    if spec.kind == OperationKind::Subscription {
        return (Output::Other, Some(schema::list_of(schema)));
    }
    match schema {
        None => (Output::Undeclared, None),
        Some(schema) if schema::kind(&schema) == Kind::Object => {
            (Output::Object, Some(schema::typed_as_object(schema)))
        }
        Some(schema) => (Output::Other, Some(schema)),
    }
}

/// True if an operation returns content blocks, to be served as such.
fn is_blocks(spec: &OperationSpec) -> bool {
    spec.kind != OperationKind::Subscription
        && spec.output.to_value().is_ok_and(|schema| {
            schema.pointer("/items/$ref").and_then(Value::as_str) == Some(crate::model::content::BLOCK_REFERENCE)
        })
}
