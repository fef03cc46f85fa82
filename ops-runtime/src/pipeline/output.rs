//! The end of the pipeline: giving an answer its type, normalising and validating it.

use std::any::Any;

use serde_core::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::handler::Payload;
use crate::record::{self, DecodeError};
use crate::registry::Entry;
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
    let ResponseEnvelope { data, meta, warnings } = envelope;
    let meta = match meta {
        ResponseMeta::Mcp(meta) if meta.is_error => return Err(tool_error(*meta)),
        meta => meta,
    };
    // Which alternative of a union by status it is: the status says, where shapes may not.
    let variant = variant(&entry.spec, &meta);
    let unstructured = unstructured(entry, policy, &meta, &data)?;
    let with = |data, more: Vec<Warning>| {
        let mut envelope = ResponseEnvelope::new(data, meta);
        envelope.warnings = [warnings, more].concat();
        envelope
    };
    let data = match data {
        // Bytes have no schema, and nothing to repair.
        Payload::Body(body) => match as_output(body) {
            Ok(data) => return Ok(with(data, Vec::new())),
            Err(body) => Payload::Value(held(&entry.spec, &body)?),
        },
        data => data,
    };
    match unstructured {
        Some((value, more)) if more.is_empty() => {
            let data = record::from_value(&value).map_err(|error| mismatch(&entry.spec, &error, Payload::Value(value)));
            return data.map(|data| with(data, Vec::new()));
        }
        // Blocks that happen to fit a type are none the less not what was promised.
        Some((value, more)) => return Err(strict(&entry.spec, &more, &value)),
        None => {}
    }
    if policy == OutputPolicy::Repair
        && let Ok(data) = record::with_variant(variant, || decode(&data))
    {
        return Ok(with(data, Vec::new()));
    }
    let raw = data.clone();
    let (value, more) = repair(entry, policy, parse(&entry.spec, data)?)?;
    match record::with_variant(variant, || record::from_value(&value)) {
        Ok(data) => Ok(with(data, more)),
        Err(error) => Err(mismatch(&entry.spec, &error, raw)),
    }
}

/// Normalises an answer whose type is not known to the program.
pub(super) fn dynamic(
    entry: &Entry,
    policy: OutputPolicy,
    envelope: ResponseEnvelope<Payload>,
) -> Result<ResponseEnvelope<Value>, CallError> {
    let ResponseEnvelope { data, meta, mut warnings } = envelope;
    let is_error = matches!(&meta, ResponseMeta::Mcp(meta) if meta.is_error);
    let (value, more) = if let Some(unstructured) = unstructured(entry, policy, &meta, &data)? {
        unstructured
    } else if is_error {
        // What a tool says when it fails is not of the output's type.
        (parse(&entry.spec, data)?, Vec::new())
    } else {
        repair(entry, policy, parse(&entry.spec, data)?)?
    };
    warnings.extend(more);
    let mut envelope = ResponseEnvelope::new(value, meta);
    envelope.warnings = warnings;
    Ok(envelope)
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
            let (value, warnings) = entry.schemas.normalise_output(value)?;
            if warnings.is_empty() {
                return Ok(Some((value, warnings)));
            }
        }
    }
    if entry.spec.output.is_any() {
        return Ok(Some((meta.content_as_json()?, Vec::new())));
    }
    let (blocks, warning) = (meta.content_as_json()?, Warning::new("", "structured content", "content blocks"));
    if policy == OutputPolicy::Strict {
        return Err(strict(&entry.spec, &[warning], &blocks));
    }
    warn(&entry.spec, std::slice::from_ref(&warning));
    Ok(Some((blocks, vec![warning])))
}

/// Checks a value of this process against its schema, for a policy that does not rely on types.
pub(super) fn check_strictly(entry: &Entry, value: &Value) -> Result<(), CallError> {
    match entry.schemas.output_mismatches(value)? {
        warnings if warnings.is_empty() => Ok(()),
        warnings => Err(strict(&entry.spec, &warnings, value)),
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
fn held(spec: &OperationSpec, body: &Body) -> Result<Value, CallError> {
    serde_json::to_value(body)
        .map_err(|error| CallError::execution(format!("the output of `{}` can't be held in JSON: {error}", spec.id)))
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

pub(super) fn parse(spec: &OperationSpec, data: Payload) -> Result<Value, CallError> {
    match data {
        Payload::Value(value) => Ok(value),
        Payload::Body(body) => held(spec, &body),
        Payload::Json(bytes) => record::from_slice(&bytes).map_err(|error| no_json(spec, &bytes, &error)),
        Payload::Raw(text) => {
            record::from_str(text.get()).map_err(|error| no_json(spec, text.get().as_bytes(), &error))
        }
    }
}

fn no_json(spec: &OperationSpec, text: &[u8], error: &DecodeError) -> CallError {
    CallError::execution(format!("the answer to `{}` is not JSON: {error}", spec.id))
        .with_details(json!({ "raw": String::from_utf8_lossy(text) }))
}

/// Normalises a value and validates it; what was amiss is logged, or fails the call if the policy says so.
fn repair(entry: &Entry, policy: OutputPolicy, value: Value) -> Result<(Value, Vec<Warning>), CallError> {
    let raw = (policy == OutputPolicy::Strict).then(|| value.clone());
    let (value, warnings) = entry.schemas.normalise_output(value)?;
    match raw {
        Some(raw) if !warnings.is_empty() => return Err(strict(&entry.spec, &warnings, &raw)),
        _ => {}
    }
    warn(&entry.spec, &warnings);
    Ok((value, warnings))
}

fn warn(spec: &OperationSpec, warnings: &[Warning]) {
    for Warning { pointer, expected, found } in warnings {
        let operation = spec.id.as_ref();
        tracing::warn!(operation, pointer, expected, %found, "a result does not match its schema");
    }
}

fn strict(spec: &OperationSpec, warnings: &[Warning], raw: &Value) -> CallError {
    let message = format!("the output of `{}` does not match its schema", spec.id);
    CallError::new(ErrorCode::ValidationError, message).with_details(json!({ "violations": warnings, "value": raw }))
}

/// The error of an answer that no repair makes fit, which keeps the answer.
fn mismatch(spec: &OperationSpec, error: &DecodeError, raw: Payload) -> CallError {
    let message = format!("the output of `{}` does not fit its type: {error}", spec.id);
    let violation = json!({ "pointer": error.pointer, "message": error.message });
    let raw = match raw {
        Payload::Value(value) => value,
        Payload::Body(body) => serde_json::to_value(body).unwrap_or_default(),
        Payload::Json(bytes) => Value::String(String::from_utf8_lossy(&bytes).into_owned()),
        Payload::Raw(text) => Value::String(text.get().to_owned()),
    };
    CallError::new(ErrorCode::ValidationError, message).with_details(json!({ "violations": [violation], "raw": raw }))
}

fn tool_error(meta: McpMeta) -> CallError {
    let text: Vec<_> = meta.content.iter().filter_map(ContentBlock::as_text).collect();
    let message = if text.is_empty() { "the tool answered with an error".to_owned() } else { text.join("\n") };
    CallError::new(ErrorCode::ToolError, message).with_mcp_meta(meta)
}
