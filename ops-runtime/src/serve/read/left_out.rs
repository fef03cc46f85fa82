//! The lists and objects of a function of which a request has nothing if they are empty.

use serde_json::Value;

use super::shape::Shape;
use crate::model::media::Media;
use crate::{HttpBinding, HttpBody, HttpParameter, OperationSpec, ParameterLocation};

/// The required lists and objects of a function that may be left out of a request, with the empty value of each.
///
/// An empty list or object is not written in a query, a header or a cookie, nor is an empty list among the parts of a body, and
/// such a type can be empty. An operation of a document says itself what it requires.
pub(in crate::serve) fn left_out(spec: &OperationSpec, binding: &HttpBinding) -> Vec<(String, Value)> {
    of(spec, binding, &Shape::of_input(spec))
}

/// The same for an input of this shape.
pub(super) fn of(spec: &OperationSpec, binding: &HttpBinding, input: &Shape) -> Vec<(String, Value)> {
    if !spec.input.is_made() {
        return Vec::new();
    }
    let empty = |name: &str| input.requires(name).then(|| input.property(name).empty()).flatten();
    let may_be = |own: &&HttpParameter| own.location != ParameterLocation::Path && own.fixed.is_none();
    let parameters = binding.parameters.iter().filter(may_be).map(|own| &*own.property);
    let parameters = parameters.filter_map(|name| Some((name.to_owned(), empty(name)?)));
    let has_parts = |body: &HttpBody| body.is_rest() && Media::of(&body.content_type) == Media::Multipart;
    let rest = if binding.bodies.iter().any(has_parts) { input.names() } else { Vec::new() };
    let rest = rest.into_iter().filter(|name| !binding.places(name));
    // An object is one part, of JSON.
    let lists = rest.filter_map(|name| Some((name.to_owned(), empty(name).filter(Value::is_array)?)));
    parameters.chain(lists).collect()
}
