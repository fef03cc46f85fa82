//! The fields of forms, and the parts of multipart bodies: how their values are written.

use std::collections::HashMap;

use serde_json::Value;

use super::binding::{covers, is_scalar};
use super::{Comparison, Part};
use crate::documents::change::not_null;
use crate::model::media::{Media, essence};
use crate::{HttpBody, HttpField, ParameterLocation, ParameterStyle, pointer};

impl Comparison<'_> {
    /// Compares how the fields or parts of a body are written, by the old and the new schema of the body.
    pub(super) fn fields(&mut self, old: &HttpBody, new: &HttpBody, old_schema: &Value, new_schema: &Value, at: &str) {
        let parts = part_of(old, &not_null(old_schema, self.old)).zip(part_of(new, &not_null(new_schema, self.new)));
        if let Some((_, is)) = parts.filter(|(was, is)| was != is) {
            self.tell(Part::Request, "body", at, &format!("its part is called `{is}` now"), true);
        }
        let (old_fields, new_fields) = (by_name(old), by_name(new));
        for name in old.fields.iter().chain(new.fields.iter()).map(|field| &*field.name) {
            let (was, is) = (old_fields.get(name).copied(), new_fields.get(name).copied());
            if was == is {
                continue;
            }
            let property = self.bodies.comparer.property(old_schema, new_schema, name);
            // A property that only one version has is told as such. One without an encoding is written by default.
            if property.is_none() && (was.is_none() || is.is_none()) {
                continue;
            }
            if !is_alike(was, is, &property.unwrap_or_default(), Media::of(&old.content_type)) {
                let inside = format!("{at}/properties/{}", pointer::escaped(name));
                let message = "the field is written in another way now";
                self.tell_inside(Part::Request, "body", &inside, at.len(), message, true);
            }
        }
    }
}

/// The name of the part, or of all parts, of a multipart body that is no object.
fn part_of<'b>(body: &'b HttpBody, schema: &Value) -> Option<&'b str> {
    let is_whole = schema.get("type").is_some_and(|kind| kind != "object");
    match body.fields.as_ref() {
        [field] if is_whole && essence(&body.content_type) == "multipart/form-data" => Some(field.name.as_ref()),
        _ => None,
    }
}

fn by_name(body: &HttpBody) -> HashMap<&str, &HttpField> {
    // If several have a name, the client takes the first.
    body.fields.iter().rev().map(|field| (&*field.name, field)).collect()
}

/// True if the new version takes what the old one wrote; a field is `None` if it is written by default.
fn is_alike(was: Option<&HttpField>, is: Option<&HttpField>, property: &Value, media: Media) -> bool {
    let one = property.get("items").unwrap_or(property);
    let is_file = one.get("format").is_some_and(|format| format == "binary");
    let is_nested = one.get("type").is_some_and(|kind| kind == "object" || kind == "array");
    let kind = |field: Option<&HttpField>| field.and_then(|field| field.content_type.as_deref()).map(essence);
    let style = |field: Option<&HttpField>| match field.and_then(|field| field.style) {
        // What stands in one piece is written alike in any style.
        _ if is_file || is_scalar(property, ParameterLocation::Query) => (ParameterStyle::Form, true),
        Some(style) => style,
        None if media == Media::Multipart && is_nested => (ParameterStyle::Json, true),
        None if media == Media::Form && kind(field).is_some_and(|kind| Media::of(&kind) == Media::Json) => {
            (ParameterStyle::Json, true)
        }
        None if is_nested => (ParameterStyle::DeepObject, true),
        None => (ParameterStyle::Form, true),
    };
    let usual = match (is_file, is_nested) {
        (true, _) => "application/octet-stream",
        (_, true) => "application/json",
        _ => "text/plain",
    };
    let takes_type = match (kind(was), kind(is)) {
        // A file may be of any type unless some are named, and a form does not send the types of its fields.
        (_, None) if is_file => true,
        _ if media != Media::Multipart => true,
        (was, is) => {
            let listed = |kinds: Option<String>| kinds.unwrap_or_else(|| usual.to_owned());
            let (was, is) = (listed(was), listed(is));
            let takes = |was: &str| is.split(',').map(str::trim).any(|is| is == was || covers(is, was));
            was.split(',').map(str::trim).all(takes)
        }
    };
    let is_reserved = |field: Option<&HttpField>| field.is_some_and(|field| field.allow_reserved);
    takes_type && style(was) == style(is) && is_reserved(was) == is_reserved(is)
}
