//! The end of the pipeline: giving an answer its type, normalising and validating it.

use std::any::Any;
use std::collections::HashSet;

use serde_core::de::DeserializeOwned;
use serde_json::Value;

use super::misfit;
use crate::normalise::Change;
use crate::record::{self, DecodeError};
use crate::run::payload::Payload;
use crate::run::registry::Entry;
use crate::run::schemas::{NONE_OF_THEM, NOTHING_DECLARED, Shaped, Told};
use crate::{
    Body, CallError, ContentBlock, ErrorCode, McpMeta, McpOutput, OperationSpec, OutputPolicy, ResponseEnvelope,
    ResponseMeta, Warning,
};

/// Gives an answer the operation's output type, repairing it only if it does not fit as it came.
pub(super) fn typed<T: DeserializeOwned + 'static>(
    entry: &Entry,
    policy: OutputPolicy,
    envelope: ResponseEnvelope<Payload>,
) -> Result<ResponseEnvelope<T>, CallError> {
    let ResponseEnvelope { mut data, meta, warnings } = envelope;
    let meta = match meta {
        ResponseMeta::Mcp(meta) if meta.is_error => return Err(tool_error(*meta)),
        meta => meta,
    };
    if policy != OutputPolicy::Cast
        && let Some((expected, found)) = misfit::foreign_type(&entry.spec, &meta, &data)
    {
        return Err(misfit::foreign(&meta, &expected, &found, data));
    }
    // A type knows no more of such a tool than its content blocks.
    if let (Some(_), Some(meta)) = (undeclared(&entry.spec, &meta), meta.as_mcp()) {
        data = Payload::Value(meta.content_as_json()?);
    }
    // Which alternative of a union by status it is: the status says, where shapes may not.
    let variant = variant(&entry.spec, &meta);
    let unstructured = unstructured(entry, policy, &meta, &data)?;
    let with = |data, meta, more: Vec<Warning>| {
        let mut envelope = ResponseEnvelope::new(data, meta);
        envelope.warnings = merged(warnings, more);
        envelope
    };
    let data = match data {
        // Bytes have no schema, and nothing to repair.
        Payload::Body(body) => match as_output(body) {
            Ok(data) => return Ok(with(data, meta, Vec::new())),
            Err(body) => Payload::Value(held(&body)?),
        },
        data => data,
    };
    match unstructured {
        Some((value, more)) if more.is_empty() => {
            return match record::from_value(&value) {
                Ok(data) => Ok(with(data, meta, Vec::new())),
                Err(error) => Err(misfit::mismatch(&meta, &error, &[], Payload::Value(value))),
            };
        }
        // Blocks that happen to fit a type are none the less not what was promised.
        Some((value, more)) => {
            let told: Vec<_> = more.into_iter().map(Told::kept).collect();
            return Err(misfit::strict(&meta, &told, Payload::Value(value)));
        }
        None => {}
    }
    if policy != OutputPolicy::Strict
        && let Ok(output) = record::with_variant(variant, || decode(&data))
    {
        let takes_anything = || record::from_slice::<T>(b"{}").is_ok();
        if policy == OutputPolicy::Cast
            || !entry.schemas.output_may_be_foreign(takes_anything)
            || !misfit::has_nothing_of(&entry.schemas, &data)
        {
            return Ok(with(output, meta, Vec::new()));
        }
        return Err(misfit::foreign(&meta, NOTHING_DECLARED, NONE_OF_THEM, data));
    }
    let (shaped, raw) = shape(entry, policy, &meta, data)?;
    if shaped.has_ended {
        return Err(misfit::strict(&meta, &shaped.told, raw.unwrap_or(Payload::Value(shaped.value))));
    }
    match record::with_variant(variant, || record::from_value(&shaped.value)) {
        Ok(data) => {
            // What a type does not declare it skips, whether anything else was amiss or not.
            let told = shaped.told.into_iter().filter(|told| told.change != Change::Removed);
            Ok(with(data, meta, told.map(|told| told.warning).collect()))
        }
        Err(error) => Err(misfit::mismatch(&meta, &error, &shaped.told, raw.unwrap_or(Payload::Value(shaped.value)))),
    }
}

/// Normalises an answer whose type is not known to the program.
pub(super) fn dynamic(
    entry: &Entry,
    policy: OutputPolicy,
    envelope: ResponseEnvelope<Payload>,
) -> Result<ResponseEnvelope<Value>, CallError> {
    let ResponseEnvelope { data, meta, warnings } = envelope;
    let is_error = matches!(&meta, ResponseMeta::Mcp(meta) if meta.is_error);
    if policy != OutputPolicy::Cast
        && let Some((expected, found)) = misfit::foreign_type(&entry.spec, &meta, &data)
    {
        return Err(misfit::foreign(&meta, &expected, &found, data));
    }
    let (value, more) = if let Some(structured) = undeclared(&entry.spec, &meta) {
        // No schema says what it is.
        (structured.clone(), Vec::new())
    } else if let Some(unstructured) = unstructured(entry, policy, &meta, &data)? {
        unstructured
    } else if is_error {
        // What a tool says when it fails is not of the output's type.
        (parse(&meta, data)?, Vec::new())
    } else {
        let Shaped { value, told, .. } = shape(entry, policy, &meta, data)?.0;
        (value, if told.is_empty() { Vec::new() } else { told.into_iter().map(|told| told.warning).collect() })
    };
    let warnings = if more.is_empty() { warnings } else { merged(warnings, more) };
    Ok(ResponseEnvelope { data: value, meta, warnings })
}

/// As [`dynamic`], for a caller that holds the result to the schema: what stays as it came is an error with the value.
#[cfg(feature = "mcp-server")]
pub(super) fn conforming(
    entry: &Entry,
    policy: OutputPolicy,
    envelope: ResponseEnvelope<Payload>,
) -> Result<ResponseEnvelope<Value>, CallError> {
    let envelope = dynamic(entry, policy, envelope)?;
    let is_error = matches!(&envelope.meta, ResponseMeta::Mcp(meta) if meta.is_error);
    let is_of_blocks = envelope.warnings.iter().any(|warning| warning.found == BLOCKS);
    if envelope.warnings.is_empty() || is_error || is_of_blocks {
        return Ok(envelope);
    }
    let told = entry.schemas.output_mismatches(&envelope.data)?;
    if told.is_empty() { Ok(envelope) } else { Err(misfit::unfit(&envelope.meta, &told, envelope.data)) }
}

/// How many differences of one result are logged, each in a line.
const MAX_LOGGED: usize = 20;

/// What is found where a tool left its structured content out.
const BLOCKS: &str = "content blocks";

impl McpMeta {
    /// The content blocks as JSON, as they are the data of a tool without an output schema.
    pub(crate) fn content_as_json(&self) -> Result<Value, CallError> {
        serde_json::to_value(&self.content)
            .map_err(|error| CallError::execution(format!("the content of a tool's answer is no JSON: {error}")))
    }
}

/// The structured content of a tool that has no output schema: the data of a call by id.
///
/// Told by the meta, which holds what was sent wherever the result has been since.
fn undeclared<'m>(spec: &OperationSpec, meta: &'m ResponseMeta) -> Option<&'m Value> {
    let (McpOutput::Content, false) = (spec.mcp()?.output, meta.as_mcp()?.is_error) else { return None };
    // Some servers say so of what they leave out.
    meta.as_mcp()?.structured_content.as_ref().filter(|structured| !structured.is_null())
}

/// What stands in the place of the structured content that a tool left out though its schema promises it.
///
/// That is its text, if it is JSON that conforms to the schema without repair, and otherwise its content blocks, of which
/// no repair could make a value of the output's type.
fn unstructured(
    entry: &Entry,
    policy: OutputPolicy,
    meta: &ResponseMeta,
    data: &Payload,
) -> Result<Option<(Value, Vec<Warning>)>, CallError> {
    let (Some(tool), Some(meta)) = (entry.spec.mcp(), meta.as_mcp()) else { return Ok(None) };
    if meta.is_error || tool.output == McpOutput::Content {
        return Ok(None);
    }
    let is_absent = match &meta.structured_content {
        // Some servers say so of what they leave out.
        Some(Value::Null) => {
            tool.output == McpOutput::Wrapped || !entry.schemas.output_mismatches(&Value::Null)?.is_empty()
        }
        Some(_) => false,
        // An envelope from another process may hold what was made of the text there.
        None => *data == Payload::Value(meta.content_as_json()?),
    };
    if !is_absent {
        return Ok(None);
    }
    if let [ContentBlock::Text(block)] = meta.content.as_slice()
        && let Ok(value) = record::from_str::<Value>(&block.text)
    {
        let inner = value.get("result").filter(|_| tool.output == McpOutput::Wrapped).cloned();
        for value in inner.into_iter().chain([value]) {
            if entry.schemas.output_mismatches(&value)?.is_empty() {
                return Ok(Some((entry.schemas.shape_output(policy, value)?.value, Vec::new())));
            }
        }
    }
    if entry.spec.output.is_any() {
        return Ok(Some((meta.content_as_json()?, Vec::new())));
    }
    let (blocks, warning) = (meta.content_as_json()?, Warning::new("", "structured content", BLOCKS));
    let told = Told::kept(warning);
    if policy == OutputPolicy::Strict {
        return Err(misfit::strict(&ResponseMeta::Mcp(Box::new(meta.clone())), &[told], Payload::Value(blocks)));
    }
    log(&entry.spec, std::slice::from_ref(&told));
    Ok(Some((blocks, vec![told.warning])))
}

/// Checks a value of this process against its schema, for a policy that does not rely on types.
pub(super) fn check_strictly(entry: &Entry, meta: &ResponseMeta, value: &Value) -> Result<(), CallError> {
    match entry.schemas.output_mismatches(value)? {
        told if told.is_empty() => Ok(()),
        told => Err(misfit::strict(meta, &told, Payload::Value(value.clone()))),
    }
}

/// A body as the output, if that is what the operation gives.
fn as_output<T: 'static>(body: Body) -> Result<T, Body> {
    let mut slot = Some(body);
    let output = (&mut slot as &mut dyn Any).downcast_mut::<Option<T>>().and_then(Option::take);
    match (output, slot) {
        (Some(output), _) => Ok(output),
        (None, body) => Err(body.unwrap_or_default()),
    }
}

/// A body as JSON, where one came that nobody asked for.
fn held(body: &Body) -> Result<Value, CallError> {
    serde_json::to_value(body)
        .map_err(|error| CallError::execution(format!("the response can't be held in JSON: {error}")))
}

/// Which alternative of the output's `oneOf` an answer is, if its status says so.
fn variant(spec: &OperationSpec, meta: &ResponseMeta) -> Option<u16> {
    let (binding, meta) = (spec.http()?, meta.as_http()?);
    binding.response(meta.status_code, &meta.content_type)?.variant
}

fn decode<T: DeserializeOwned>(data: &Payload) -> Result<T, DecodeError> {
    match data {
        Payload::Json(bytes) => record::from_slice(bytes),
        Payload::Raw(text) => record::from_str(text.get()),
        Payload::Value(value) => record::from_value(value),
        Payload::Body(body) => record::from_value(&serde_json::to_value(body).unwrap_or_default()),
    }
}

pub(super) fn parse(meta: &ResponseMeta, data: Payload) -> Result<Value, CallError> {
    let parsed = match &data {
        Payload::Json(bytes) => record::from_slice(bytes),
        Payload::Raw(text) => record::from_str(text.get()),
        Payload::Body(body) => return held(body),
        Payload::Value(_) => Ok(Value::Null),
    };
    if let Payload::Value(value) = data {
        return Ok(value);
    }
    parsed.map_err(|error| misfit::no_json(meta, &error, data))
}

/// Brings an answer into the shape of its schema; what was amiss is logged, or fails the call if the policy says so.
///
/// Beside it is the answer as it came, where that is text: a value that does not do stays as it came by itself.
fn shape(
    entry: &Entry,
    policy: OutputPolicy,
    meta: &ResponseMeta,
    data: Payload,
) -> Result<(Shaped, Option<Payload>), CallError> {
    let raw = matches!(data, Payload::Json(_) | Payload::Raw(_)).then(|| data.clone());
    let shaped = entry.schemas.shape_output(policy, parse(meta, data)?)?;
    if let Some(Warning { expected, found, .. }) = shaped.foreign.as_deref() {
        return Err(misfit::foreign(meta, expected, found, raw.unwrap_or(Payload::Value(shaped.value))));
    }
    if policy == OutputPolicy::Strict && !shaped.told.is_empty() {
        return Err(misfit::strict(meta, &shaped.told, raw.unwrap_or(Payload::Value(shaped.value))));
    }
    if !shaped.told.is_empty() {
        log(&entry.spec, &shaped.told);
    }
    Ok((shaped, raw))
}

/// The warnings that came with an answer, and those of this process: what stays as it came is told by each, but once.
fn merged(mut came: Vec<Warning>, own: Vec<Warning>) -> Vec<Warning> {
    if came.is_empty() || own.is_empty() {
        came.extend(own);
        return came;
    }
    let known: HashSet<(String, String)> = came.iter().map(|w| (w.pointer.clone(), w.expected.clone())).collect();
    came.extend(own.into_iter().filter(|w| !known.contains(&(w.pointer.clone(), w.expected.clone()))));
    came
}

fn log(spec: &OperationSpec, told: &[Told]) {
    let operation = spec.id.as_ref();
    for Told { warning: Warning { pointer, expected, found }, change, .. } in told.iter().take(MAX_LOGGED) {
        match change {
            Change::Removed => tracing::debug!(operation, pointer, "an undeclared property was removed"),
            _ => tracing::warn!(operation, pointer, expected, %found, "a result does not match its schema"),
        }
    }
    let more: usize = told.iter().skip(MAX_LOGGED).map(|told| told.stands_for).sum();
    if more > 0 {
        tracing::warn!(operation, more, "a result does not match its schema in more places");
    }
}

fn tool_error(meta: McpMeta) -> CallError {
    let text: Vec<_> = meta.content.iter().filter_map(ContentBlock::as_text).collect();
    let message = if text.is_empty() { "the tool answered with an error".to_owned() } else { text.join("\n") };
    CallError::new(ErrorCode::ToolError, message).with_mcp_meta(meta)
}
