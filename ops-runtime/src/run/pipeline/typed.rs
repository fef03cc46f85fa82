//! The end of a call by type: reading a result into the operation's type.
//!
//! [`typed`] is compiled for the output of each operation, so it has only what needs the type: the place that [`read`] fills.

use std::any::Any;

use serde_core::de::DeserializeOwned;
use serde_json::Value;

use super::misfit;
use super::output::{foreign_type, held, instead, log, merged, shape, skip};
use crate::normalise::{self, Change, Measure};
use crate::record::{self, DecodeError, Destination, Doubts};
use crate::run::input;
use crate::run::payload::Payload;
use crate::run::registry::Entry;
use crate::run::schemas::{Mended, NONE_OF_THEM, NOTHING_DECLARED, Shaped, Told};
use crate::{Body, CallError, OperationSpec, OutputPolicy, ResponseEnvelope, ResponseMeta, Warning};

/// Reads a result into the output type of an operation, `own`; it is repaired only if it does not match.
///
/// The entry may have no description of the operation, such as that of a recording.
pub(super) fn typed<T: DeserializeOwned + 'static>(
    entry: &Entry,
    own: &OperationSpec,
    policy: OutputPolicy,
    envelope: ResponseEnvelope<Payload>,
) -> Result<ResponseEnvelope<T>, CallError> {
    let mut output: Option<T> = None;
    filled(read(entry, own, policy, envelope, &mut output), output)
}

/// The place for the output of an operation of any type.
pub(super) trait Output: Destination + Any {
    /// The function that tells if the type can be read from `{}`.
    fn takes_anything(&self) -> fn() -> bool;
}

impl<T: DeserializeOwned + 'static> Output for Option<T> {
    fn takes_anything(&self) -> fn() -> bool {
        || record::from_slice::<T>(b"{}").is_ok()
    }
}

/// The envelope that [`read`] has returned, with the data that it has put into the place `output`.
pub(super) fn filled<T>(
    read: Result<ResponseEnvelope<()>, CallError>,
    output: Option<T>,
) -> Result<ResponseEnvelope<T>, CallError> {
    read?.try_map(|()| output.ok_or_else(|| CallError::execution("nothing was read")))
}

/// Like [`typed`], but puts the data into the place `output`.
pub(super) fn read(
    entry: &Entry,
    own: &OperationSpec,
    policy: OutputPolicy,
    envelope: ResponseEnvelope<Payload>,
    output: &mut dyn Output,
) -> Result<ResponseEnvelope<()>, CallError> {
    let Prepared { data, meta, warnings, variant, instead } = prepare(entry, own, policy, envelope)?;
    let with = |meta, more: Vec<Warning>| {
        let mut envelope = ResponseEnvelope::new((), meta);
        envelope.warnings = merged(warnings, more);
        envelope
    };
    if let Some(value) = instead {
        return match record::value_into(&value, output) {
            Ok(()) => Ok(with(meta, Vec::new())),
            Err(error) => Err(misfit::mismatch(&meta, &error, &[], Payload::Value(value))),
        };
    }
    let data = match data {
        // Bytes have no schema, and nothing to repair.
        Payload::Body(body) => match (output as &mut dyn Any).downcast_mut::<Option<Body>>() {
            Some(output) => {
                *output = Some(body);
                return Ok(with(meta, Vec::new()));
            }
            None => Payload::Value(held(&body)?),
        },
        data => data,
    };
    let takes_anything = output.takes_anything();
    let mut is_foreign = false;
    if policy != OutputPolicy::Strict
        && let (Ok(()), doubts) = record::with_variant(variant, || record::strictly(|| decode(&data, output)))
    {
        is_foreign = may_be_another(entry, policy, &data, variant, takes_anything);
        if !is_foreign {
            let is_doubted = policy == OutputPolicy::Repair && doubts != Doubts::default();
            let more = if is_doubted { doubted(entry, &meta, data, variant, doubts, output)? } else { Vec::new() };
            return Ok(with(meta, more));
        }
    }
    let repairing = Repairing { entry, policy, meta: &meta, variant, takes_anything, is_foreign };
    // What the type accepts stays as received. Only a type that accepts less needs a result that the schema accepts.
    let mut kept = None;
    if policy != OutputPolicy::Strict
        && let Some(data) = copied(&data)
    {
        match repairing.read(Measure::Type, data, output) {
            Ok(Ok(told)) => return Ok(with(meta, told)),
            Ok(Err(unread)) => kept = Some(unread.told),
            // This is no result of the operation. The code below finds that once more.
            Err(_) => {}
        }
    }
    match repairing.read(Measure::Schema, data, output)? {
        Ok(told) => Ok(with(meta, told)),
        Err(unread) => {
            let Unread { error, told, raw } = *unread;
            let told = match kept {
                Some(kept) => misfit::causes(kept, told, &error),
                None => told,
            };
            log(&entry.spec, &meta, &told);
            Err(misfit::mismatch(&meta, &error, &told, raw))
        }
    }
}

/// A success before it is read into a type.
struct Prepared {
    data: Payload,
    meta: ResponseMeta,
    warnings: Vec<Warning>,
    /// The alternative of a union by status: the status decides, since shapes may be ambiguous.
    variant: Option<u16>,
    /// What stands in the place of data that are missing. It is read as it is.
    instead: Option<Value>,
}

/// The first part of [`read`], which does not need the place.
fn prepare(
    entry: &Entry,
    own: &OperationSpec,
    policy: OutputPolicy,
    envelope: ResponseEnvelope<Payload>,
) -> Result<Prepared, CallError> {
    let ResponseEnvelope { mut data, meta, mut warnings } = envelope;
    let meta = meta.of_success()?;
    skip(entry, policy, &meta, &mut data, &mut warnings);
    if policy != OutputPolicy::Cast
        && let Some((expected, found)) = foreign_type(entry, &meta, &data)
    {
        return Err(misfit::foreign_body(&entry.spec, &meta, &expected, &found, data));
    }
    // The type covers only the described responses.
    if let Some(described) = entry.spec.described(&meta)? {
        data = Payload::Value(described);
    }
    let variant = own.variant_of(&meta);
    let instead = match instead(entry, policy, &meta, &data)? {
        Some((value, more)) if more.is_empty() => Some(value),
        // A response that matches a type by chance is still not the promised one.
        Some((value, more)) => {
            let told: Vec<_> = more.into_iter().map(Told::kept).collect();
            return Err(misfit::strict(&meta, &told, Payload::Value(value)));
        }
        None => None,
    };
    Ok(Prepared { data, meta, warnings, variant, instead })
}

/// True if a result that a type can read may be another variant, with an error that can be repaired: it has nothing in common
/// with its schema. `takes_anything` tells if the type can be read from `{}`.
fn may_be_another(
    entry: &Entry,
    policy: OutputPolicy,
    data: &Payload,
    variant: Option<u16>,
    takes_anything: fn() -> bool,
) -> bool {
    policy != OutputPolicy::Cast
        && entry.schemas.output_may_be_foreign(takes_anything)
        && misfit::has_nothing_of(&entry.schemas, data, variant)
}

/// The warnings for a result that was decoded with doubts. If a variant failed that may know the constants of the result, the
/// result is repaired and decoded again; if that succeeds, it replaces the first output.
///
/// # Errors
/// If an object without a tag is an error object, which has nothing in common with the schema.
fn doubted(
    entry: &Entry,
    meta: &ResponseMeta,
    data: Payload,
    variant: Option<u16>,
    doubts: Doubts,
    output: &mut dyn Output,
) -> Result<Vec<Warning>, CallError> {
    // If constants are in doubt, everything that is wrong with them counts. Without a tag, the type has read the rest.
    let measure = if doubts.is_unknown { Measure::Schema } else { Measure::Type };
    let mut shaped = match shape(entry, OutputPolicy::Repair, measure, meta, data) {
        Ok((shaped, _)) => shaped,
        Err(error) if doubts.is_untagged => return Err(error),
        Err(_) => return Ok(Vec::new()),
    };
    let is_repaired = shaped.told.iter().any(|told| !matches!(told.change, Change::Kept | Change::Removed));
    // If this fails, the first output stays. It is strict, because a variant that declares less would drop properties.
    let mut read_again =
        || record::with_variant(variant, || record::strictly(|| input::value_into(&shaped.value, output)).0);
    let is_read_again = doubts.is_unknown && is_repaired && !shaped.has_ended && read_again().is_ok();
    if !is_read_again {
        // The type has the rest as received.
        shaped.told.retain(Told::is_kept);
    }
    log(&entry.spec, meta, &shaped.told);
    Ok(unless_removed(shaped.told))
}

/// What is known of a result that does not match its type.
struct Repairing<'a> {
    entry: &'a Entry,
    policy: OutputPolicy,
    meta: &'a ResponseMeta,
    variant: Option<u16>,
    takes_anything: fn() -> bool,
    /// True if the type could read it, but it may be another variant.
    is_foreign: bool,
}

/// A result that a type did not read although it was repaired.
struct Unread {
    error: DecodeError,
    told: Vec<Told>,
    /// The result as it came.
    raw: Payload,
}

impl Repairing<'_> {
    /// Repairs a result and reads it into the place. Returns the warnings.
    fn read(
        &self,
        measure: Measure,
        data: Payload,
        output: &mut dyn Output,
    ) -> Result<Result<Vec<Warning>, Box<Unread>>, CallError> {
        let &Repairing { entry, meta, variant, .. } = self;
        // What can be repaired as text need not become a value first.
        if !self.is_foreign
            && let Some(Mended { text, told }) = self.mended_text(measure, &data)?
            && let Ok(()) = record::with_variant(variant, || match &text {
                Some(text) if !is_as_it_came(&told) => record::str_into(text, output),
                _ => decode(&data, output),
            })
        {
            log(&entry.spec, meta, &told);
            return Ok(Ok(unless_removed(told)));
        }
        let (Shaped { value, told, .. }, raw) = self.repaired(measure, data)?;
        let is_read = is_as_it_came(&told)
            && raw.as_ref().is_some_and(|raw| record::with_variant(variant, || decode(raw, output)).is_ok());
        if !is_read {
            // What is repaired may still have whole numbers as `2.0`, which a `number` of an integer format allows.
            let read = record::with_variant(variant, || input::value_into(&value, output));
            if let Err(error) = read {
                return Ok(Err(Box::new(Unread { error, told, raw: raw.unwrap_or(Payload::Value(value)) })));
            }
        }
        log(&entry.spec, meta, &told);
        Ok(Ok(unless_removed(told)))
    }

    /// A result as text that matches its type or schema. `None` if a value is needed to tell.
    fn mended_text(&self, measure: Measure, data: &Payload) -> Result<Option<Mended>, CallError> {
        match data.text() {
            Some(text) if self.policy != OutputPolicy::Strict => {
                self.entry.schemas.mend_output(self.policy, measure, text)
            }
            _ => Ok(None),
        }
    }

    /// A result, repaired by its type or schema, and the result as it came if that was text.
    fn repaired(&self, measure: Measure, data: Payload) -> Result<(Shaped, Option<Payload>), CallError> {
        let &Repairing { entry, policy, meta, .. } = self;
        let (shaped, raw) = shape(entry, policy, measure, meta, data)?;
        if shaped.has_ended {
            return Err(misfit::strict(meta, &shaped.told, raw.unwrap_or(Payload::Value(shaped.value))));
        }
        if policy != OutputPolicy::Cast
            && entry.schemas.output_may_be_foreign(self.takes_anything)
            && entry.schemas.output_has_nothing_of(&shaped.value, self.variant)
        {
            let raw = raw.unwrap_or(Payload::Value(shaped.value));
            return Err(misfit::foreign(meta, NOTHING_DECLARED, NONE_OF_THEM, raw));
        }
        Ok((shaped, raw))
    }
}

/// A copy of a result. `None` if it is nested too deep.
fn copied(data: &Payload) -> Option<Payload> {
    match data {
        Payload::Value(value) => normalise::copy(value).map(Payload::Value),
        data => Some(data.clone()),
    }
}

/// True if nothing was repaired. A type skips undeclared properties by itself, and a variant of a union is told by all that
/// came: a variant without its undeclared properties may look like another one.
fn is_as_it_came(told: &[Told]) -> bool {
    told.iter().all(|told| told.change == Change::Removed)
}

/// Removed properties are no warnings: a type skips properties that it does not declare anyway.
fn unless_removed(told: Vec<Told>) -> Vec<Warning> {
    told.into_iter().filter(|told| told.change != Change::Removed).map(|told| told.warning).collect()
}

fn decode(data: &Payload, place: &mut dyn Destination) -> Result<(), DecodeError> {
    match data {
        Payload::Json(bytes) => record::slice_into(bytes, place),
        Payload::Raw(text) => record::str_into(text.get(), place),
        Payload::Value(value) => record::value_into(value, place),
        Payload::Body(body) => record::value_into(&serde_json::to_value(body).unwrap_or_default(), place),
    }
}
