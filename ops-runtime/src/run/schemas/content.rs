//! Checks a body by the schema of the content type that the input names; a match with the schema of another one is not enough.

use std::sync::OnceLock;

use serde_json::Value;

use super::demand::Given;
use super::side::Side;
use crate::model::body::handover;
use crate::model::media::{Media, essence};
use crate::normalise::{Violation, Violations};
use crate::{CallError, HttpBinding, HttpBody, OperationSpec, Schema};

/// True if an input can name one of several content types that have schemas of their own.
pub(super) fn may_be_named(spec: &OperationSpec) -> bool {
    let has_own = |http: &HttpBinding| http.bodies.iter().any(|body| body.variant.is_some());
    spec.http().is_some_and(|http| http.content_type.is_some() && has_own(http))
}

/// The schema of each content type of a body, made on first use.
#[derive(Default)]
pub(super) struct Contents(OnceLock<Vec<Option<Side>>>);

impl Contents {
    /// Adds the violations of the schema of the content type that an input names. They replace the body's violations of the
    /// schema for all content types. `whole` is the schema of the input.
    pub(super) fn check(
        &self,
        whole: &Side,
        spec: &OperationSpec,
        input: &Value,
        found: &mut Violations,
    ) -> Result<(), CallError> {
        let Some(http) = spec.http() else { return Ok(()) };
        let named = http.content_type.as_deref().and_then(|property| input.get(property)?.as_str());
        let Some(body) = named.and_then(|named| http.body_as(named)) else { return Ok(()) };
        // `null` may mean that there is no body, and a body of bytes has no JSON value to check.
        let is_aside = |value: &Value| value.as_str().is_some_and(|text| handover::length_of(text).is_some());
        let value = input.get(body.property.as_ref()).filter(|value| !value.is_null() && !is_aside(value));
        let sides =
            || http.bodies.iter().zip(self.sides(whole, http)).filter_map(|(body, side)| Some((body, side.as_ref()?)));
        let own = sides().find(|(other, _)| std::ptr::eq(*other, body));
        let Some((value, (_, own))) = value.zip(own) else { return Ok(()) };
        let Violations { list, more, .. } = own.faults(value)?;
        if list.is_empty() {
            return Ok(());
        }
        let takes = |(other, side): &(&HttpBody, &Side)| {
            other.property == body.property && side.faults(value).is_ok_and(|faults| faults.list.is_empty())
        };
        let fitting: Vec<&HttpBody> = sides().filter(takes).map(|(other, _)| other).collect();
        // An input cannot choose between content types that differ only in parameters, so a match with any of them is enough.
        if fitting.iter().any(|other| is_alike(other, body)) {
            return Ok(());
        }
        // Of content types that differ only in parameters, the input can name only the first.
        let is_first = |other: &&HttpBody| {
            let first = http.bodies.iter().find(|first| is_alike(first, other));
            first.is_some_and(|first| std::ptr::eq(first, *other))
        };
        let message = body.mismatch(fitting.into_iter().find(is_first));
        let at = body.pointer();
        let is_of_body =
            |pointer: &str| pointer.strip_prefix(&*at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        found.list.retain(|known| !is_of_body(&known.pointer));
        found.list.push(Violation { pointer: at.clone(), message });
        found.list.extend(list.into_iter().map(|own| Violation { pointer: format!("{at}{}", own.pointer), ..own }));
        found.more += more;
        Ok(())
    }

    /// The schema of each body of the binding. `None` for a body that has no check of its own.
    fn sides(&self, whole: &Side, http: &HttpBinding) -> &[Option<Side>] {
        self.0.get_or_init(|| match whole.schema.to_value() {
            Ok(input) => http.bodies.iter().map(|body| content(whole, body, &input)).collect(),
            Err(_) => Vec::new(),
        })
    }
}

fn content(whole: &Side, body: &HttpBody, input: &Value) -> Option<Side> {
    let mut schema = body.alternative(input.get("properties")?.get(body.property.as_ref())?)?.clone();
    // A body of lines that is described as a text may also be a list.
    if Media::of(&body.content_type).is_lines() && schema.get("type").is_some_and(|kind| kind == "string") {
        return None;
    }
    if let (Some(own), Some(definitions)) = (schema.as_object_mut(), input.get("$defs")) {
        own.insert("$defs".to_owned(), definitions.clone());
    }
    let Side { other_side, given, definitions, shared, .. } = whole;
    // The body is a property of the input, so what is `Below` for the input may be `Anywhere` in the body.
    let given = if *given == Given::Nowhere { Given::Nowhere } else { Given::Anywhere };
    Some(Side::new(Schema::from(schema), (*other_side, given), definitions.clone(), shared.clone()))
}

/// True if the content types of two bodies differ in parameters at most.
fn is_alike(one: &HttpBody, other: &HttpBody) -> bool {
    essence(&one.content_type) == essence(&other.content_type)
}
