//! The end of the pipeline: normalising a result and validating it.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::misfit;
use crate::model::body::handover::{self, Bodies};
use crate::model::protocol::Missing;
use crate::normalise::{Change, Measure};
use crate::record;
use crate::run::payload::Payload;
use crate::run::registry::Entry;
use crate::run::schemas::{Mended, Shaped, Told};
use crate::{Body, CallError, Handler, OperationSpec, OutputPolicy, ResponseEnvelope, ResponseMeta, Warning};

/// Normalises a result whose type is unknown to the program.
#[inline]
pub(super) fn dynamic(
    entry: &Entry,
    policy: OutputPolicy,
    envelope: ResponseEnvelope<Payload>,
) -> Result<ResponseEnvelope<Value>, CallError> {
    match envelope {
        // The result of a function of this process has no status and no content blocks.
        ResponseEnvelope { data: Payload::Value(data), meta: meta @ ResponseMeta::Local(_), warnings }
            if entry.schemas.output_is_plainly(&data) =>
        {
            Ok(ResponseEnvelope { data, meta, warnings })
        }
        envelope => dynamic_closely(entry, policy, envelope),
    }
}

fn dynamic_closely(
    entry: &Entry,
    policy: OutputPolicy,
    envelope: ResponseEnvelope<Payload>,
) -> Result<ResponseEnvelope<Value>, CallError> {
    let ResponseEnvelope { mut data, meta, mut warnings } = envelope;
    skip(entry, policy, &meta, &mut data, &mut warnings);
    let data = match data {
        Payload::Value(value) if matches!(meta, ResponseMeta::Local(_)) => {
            let Shaped { value, told, .. } = shape_value(entry, policy, Measure::Schema, &meta, value, None)?;
            log(&entry.spec, &meta, &told);
            let more = told.into_iter().map(|told| told.warning).collect();
            return Ok(ResponseEnvelope { data: value, meta, warnings: merged(warnings, more) });
        }
        data => data,
    };
    if policy != OutputPolicy::Cast
        && let Some((expected, found)) = foreign_type(entry, &meta, &data)
    {
        return Err(misfit::foreign_body(&entry.spec, &meta, &expected, &found, data));
    }
    let (value, more) = if let Some(undescribed) = entry.spec.undescribed(&meta) {
        (undescribed.clone(), Vec::new())
    } else if let Some(instead) = instead(entry, policy, &meta, &data)? {
        instead
    } else if meta.is_error() {
        (parse(&meta, data)?, Vec::new())
    } else {
        let Shaped { value, told, .. } = shape(entry, policy, Measure::Schema, &meta, data)?.0;
        log(&entry.spec, &meta, &told);
        (value, if told.is_empty() { Vec::new() } else { told.into_iter().map(|told| told.warning).collect() })
    };
    let warnings = if more.is_empty() { warnings } else { merged(warnings, more) };
    Ok(ResponseEnvelope { data: value, meta, warnings })
}

/// Like [`dynamic`], for a caller that passes the result on: text stays text, and values are made only of the parts
/// that need a change.
pub(super) fn passed_on(
    entry: &Entry,
    policy: OutputPolicy,
    envelope: ResponseEnvelope<Payload>,
) -> Result<ResponseEnvelope<Payload>, CallError> {
    match mend(entry, policy, &envelope)? {
        Some(mended) => Ok(with_text(entry, envelope, mended)),
        None => Ok(dynamic(entry, policy, envelope)?.map(Payload::Value)),
    }
}

/// Like [`conforming`], for a caller that passes the result on.
pub(super) fn conforming_text(
    entry: &Entry,
    policy: OutputPolicy,
    envelope: ResponseEnvelope<Payload>,
) -> Result<ResponseEnvelope<Payload>, CallError> {
    if envelope.warnings.is_empty()
        && let Some(mended) = mend(entry, policy, &envelope)?
        && !mended.told.iter().any(Told::is_kept)
    {
        return Ok(with_text(entry, envelope, mended));
    }
    Ok(conforming(entry, policy, envelope)?.map(Payload::Value))
}

/// A result that is text in the shape of its schema; `None` if that cannot be decided without a value.
fn mend(
    entry: &Entry,
    policy: OutputPolicy,
    envelope: &ResponseEnvelope<Payload>,
) -> Result<Option<Mended>, CallError> {
    let ResponseEnvelope { data, meta, .. } = envelope;
    let Some(text) = data.text() else { return Ok(None) };
    let is_plain_answer = !meta.is_error()
        && (policy == OutputPolicy::Cast || foreign_type(entry, meta, data).is_none())
        && misfit::skipped(&entry.spec, policy, meta, data).is_none()
        && entry.spec.undescribed(meta).is_none()
        && entry.spec.missing(meta, None)?.is_none();
    if is_plain_answer { entry.schemas.mend_output(policy, Measure::Schema, text) } else { Ok(None) }
}

/// The described content types and the actual one, if they cannot be the same. The result of a function has the type
/// that it sets.
pub(super) fn foreign_type(entry: &Entry, meta: &ResponseMeta, data: &Payload) -> Option<(String, String)> {
    let is_own = |handler: &Handler| !handler.is_foreign && !handler.is_stand_in;
    if meta.as_own().is_some() && entry.handler.as_ref().is_some_and(is_own) {
        return None;
    }
    misfit::foreign_type(&entry.spec, meta, data)
}

/// Drops a body of a response for which none is described, with a warning.
pub(super) fn skip(
    entry: &Entry,
    policy: OutputPolicy,
    meta: &ResponseMeta,
    data: &mut Payload,
    warnings: &mut Vec<Warning>,
) {
    if let Some(told) = misfit::skipped(&entry.spec, policy, meta, data) {
        *data = Payload::Value(Value::Null);
        let told = [told];
        log(&entry.spec, meta, &told);
        warnings.extend(told.map(|told| told.warning));
    }
}

/// Replaces the text by a repaired one, and adds the warnings.
fn with_text(entry: &Entry, mut envelope: ResponseEnvelope<Payload>, mended: Mended) -> ResponseEnvelope<Payload> {
    let Mended { text, told } = mended;
    if let Some(text) = text {
        envelope.data = Payload::Json(text.into());
    }
    if !told.is_empty() {
        log(&entry.spec, &envelope.meta, &told);
        let more = told.into_iter().map(|told| told.warning).collect();
        envelope.warnings = merged(envelope.warnings, more);
    }
    envelope
}

/// Like [`dynamic`], for a caller that relies on the schema: a result that stays unrepaired is an error with the value.
pub(super) fn conforming(
    entry: &Entry,
    policy: OutputPolicy,
    envelope: ResponseEnvelope<Payload>,
) -> Result<ResponseEnvelope<Value>, CallError> {
    let envelope = dynamic(entry, policy, envelope)?;
    let is_missing = envelope.warnings.iter().any(|warning| warning.found == Missing::BLOCKS);
    if envelope.warnings.is_empty() || envelope.meta.is_error() || is_missing {
        return Ok(envelope);
    }
    let told = entry.schemas.output_mismatches(&envelope.data)?;
    if told.is_empty() { Ok(envelope) } else { Err(misfit::unfit(&envelope.meta, &told, envelope.data)) }
}

/// Limit of the differences of one result that are logged, each in a line.
const MAX_LOGGED: usize = 20;

/// The replacement for data that a result lacks though the operation promises them.
///
/// It is whatever conforms to the schema without repair, and otherwise the original, since no repair could make a value
/// of the output's type from it.
pub(super) fn instead(
    entry: &Entry,
    policy: OutputPolicy,
    meta: &ResponseMeta,
    data: &Payload,
) -> Result<Option<(Value, Vec<Warning>)>, CallError> {
    let data = if let Payload::Value(data) = data { Some(data) } else { None };
    let Some(missing) = entry.spec.missing(meta, data)? else { return Ok(None) };
    if missing.may_be_null && entry.schemas.output_mismatches(&Value::Null)?.is_empty() {
        return Ok(None);
    }
    for value in missing.candidates {
        if entry.schemas.output_mismatches(&value)?.is_empty() {
            return Ok(Some((entry.schemas.shape_output(policy, Measure::Schema, value)?.value, Vec::new())));
        }
    }
    if entry.spec.output.is_any() {
        return Ok(Some((missing.came, Vec::new())));
    }
    let told = [Told::kept(Warning::new("", missing.expected, missing.found))];
    if policy == OutputPolicy::Strict {
        return Err(misfit::strict(meta, &told, Payload::Value(missing.came)));
    }
    log(&entry.spec, meta, &told);
    Ok(Some((missing.came, told.map(|told| told.warning).to_vec())))
}

/// Checks a value of this process, in which placeholders stand for bodies, against its schema, for a policy that does not rely on
/// types.
pub(super) fn check_strictly(
    entry: &Entry,
    meta: &ResponseMeta,
    value: &Value,
    bodies: &Bodies,
) -> Result<(), CallError> {
    let told = handover::resolving(bodies, || entry.schemas.output_refusals(value)).0?;
    if told.is_empty() {
        return Ok(());
    }
    // The placeholder of a stream stays, as a stream has no JSON.
    let raw = bodies.to_json(value).unwrap_or(Cow::Borrowed(value)).into_owned();
    Err(misfit::strict(meta, &told, Payload::Value(raw)))
}

/// A body as JSON, if JSON was expected.
pub(super) fn held(body: &Body) -> Result<Value, CallError> {
    serde_json::to_value(body)
        .map_err(|error| CallError::execution(format!("the response can't be held in JSON: {error}")).lasting())
}

pub(super) fn parse(meta: &ResponseMeta, data: Payload) -> Result<Value, CallError> {
    let parsed = match &data {
        Payload::Json(bytes) => record::parse(bytes),
        Payload::Raw(text) => record::parse(text.get().as_bytes()),
        Payload::Body(body) => return held(body),
        Payload::Value(_) => Ok(Value::Null),
    };
    if let Payload::Value(value) = data {
        return Ok(value);
    }
    parsed.map_err(|error| misfit::no_json(meta, &error, data))
}

/// A result that needs no check, as a value.
pub(super) fn parsed(envelope: ResponseEnvelope<Payload>) -> Result<ResponseEnvelope<Value>, CallError> {
    let ResponseEnvelope { data, meta, warnings } = envelope;
    Ok(ResponseEnvelope { data: parse(&meta, data)?, meta, warnings })
}

/// Brings a result into the shape of its schema. Differences fail the call if the policy requires that.
///
/// Returns the original text as well, if it was text.
pub(super) fn shape(
    entry: &Entry,
    policy: OutputPolicy,
    measure: Measure,
    meta: &ResponseMeta,
    data: Payload,
) -> Result<(Shaped, Option<Payload>), CallError> {
    let raw = matches!(data, Payload::Json(_) | Payload::Raw(_)).then(|| data.clone());
    let shaped = shape_value(entry, policy, measure, meta, parse(meta, data)?, raw.as_ref())?;
    Ok((shaped, raw))
}

/// Like [`shape`], for a value, and the text from which it was parsed, if any.
fn shape_value(
    entry: &Entry,
    policy: OutputPolicy,
    measure: Measure,
    meta: &ResponseMeta,
    value: Value,
    raw: Option<&Payload>,
) -> Result<Shaped, CallError> {
    // An empty body is held as `null`, and the body `null` as text.
    let is_empty = value.is_null() && raw.is_none() && meta.may_be_empty();
    let mut shaped = entry.schemas.shape_output(policy, measure, value)?;
    if is_empty {
        shaped.of_nothing();
    }
    let came = |value| raw.cloned().unwrap_or(Payload::Value(value));
    if let Some(Warning { expected, found, .. }) = shaped.foreign.as_deref() {
        return Err(misfit::foreign(meta, expected, found, came(shaped.value)));
    }
    if policy == OutputPolicy::Strict && !shaped.told.is_empty() {
        return Err(misfit::strict(meta, &shaped.told, came(shaped.value)));
    }
    Ok(shaped)
}

/// The warnings of the sender of a result, and those of this process, without duplicates.
pub(super) fn merged(mut came: Vec<Warning>, own: Vec<Warning>) -> Vec<Warning> {
    if came.is_empty() || own.is_empty() {
        came.extend(own);
        return came;
    }
    let known: HashSet<(String, String)> = came.iter().map(|w| (w.pointer.clone(), w.expected.clone())).collect();
    came.extend(own.into_iter().filter(|w| !known.contains(&(w.pointer.clone(), w.expected.clone()))));
    came
}

pub(super) fn log(spec: &OperationSpec, meta: &ResponseMeta, told: &[Told]) {
    let operation = spec.id.as_ref();
    // Of a server's text, this logs only names of members.
    for Told { warning: Warning { pointer, expected, found }, change, .. } in told.iter().take(MAX_LOGGED) {
        match change {
            Change::Removed => {
                tracing::debug!(operation, pointer = &*meta.words(pointer), "an undeclared property was removed");
            }
            _ => {
                let (pointer, found) = (meta.words(pointer), meta.words(found));
                tracing::warn!(operation, pointer = &*pointer, expected, %found, "a result does not match its schema");
            }
        }
    }
    let more: usize = told.iter().skip(MAX_LOGGED).map(|told| told.stands_for).sum();
    if more > 0 {
        tracing::warn!(operation, more, "a result does not match its schema in more places");
    }
}
