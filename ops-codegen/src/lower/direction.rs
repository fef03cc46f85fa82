//! The effect of a type's direction on its properties: requests send it, responses contain it, or both.

use super::alias::shorten_aliases;
use super::order::reached;
use super::roots::{Nulls, Roots};
use crate::types::{Default, Field, Shape, Type, Types};

/// The directions of one type.
#[derive(Debug, Clone, Copy)]
struct Sides {
    /// An input reaches it.
    sent: bool,
    /// An output or an error reaches it.
    received: bool,
    /// A body or a parameter of a request reaches it, whose schema may serve both directions.
    ///
    /// Only there `readOnly` matters for requests: the input schema of a tool describes nothing else.
    shared: bool,
    /// Callers may need to send `null`.
    explicit: bool,
}

/// Adapts the properties of each record to its directions.
///
/// Callers set the values of requests. So a default is only documented there, and `readOnly` properties are not fields.
pub(super) fn fit_directions(types: &mut Types, roots: &mut Roots) {
    unite_nulls(types, roots);
    shorten_aliases(types);
    let sides = sides(types, roots);
    for (id, sides) in sides.into_iter().enumerate() {
        let Some(Shape::Record(record)) = types.items.get_mut(id).map(|item| &mut item.shape) else { continue };
        let mut fields = std::mem::take(&mut record.fields);
        fields.retain(|field| !field.read_only || !sides.shared || sides.received);
        fields.iter_mut().for_each(|field| fit_field(types, sides, field));
        if let Some(Shape::Record(record)) = types.items.get_mut(id).map(|item| &mut item.shape) {
            record.fields = fields;
        }
    }
}

/// The directions of each type.
fn sides(types: &Types, roots: &Roots) -> Vec<Sides> {
    let of = |type_: &Type| match type_ {
        Type::Named(id) => types.get(*id).map(|item| &item.shape),
        _ => None,
    };
    let (mut shared, mut explicit) = (Vec::new(), Vec::new());
    for root in &roots.operations {
        // The input itself is no schema of the document: its properties are the parameters and the body.
        if let (true, Some(Shape::Record(input))) = (root.is_http, of(&root.input)) {
            shared.extend(input.fields.iter().map(|field| &field.type_));
        }
        match (&root.nulls, of(&root.input)) {
            (Nulls::Everywhere, _) => explicit.push(&root.input),
            (Nulls::In(bodies), Some(Shape::Record(input))) => {
                let bodies = input.fields.iter().filter(|field| bodies.contains(&field.json));
                explicit.extend(bodies.map(|field| &field.type_));
            }
            _ => {}
        }
    }
    let sent = reached(types, roots.operations.iter().map(|root| &root.input));
    let received = reached(types, roots.received());
    let (shared, explicit) = (reached(types, shared), reached(types, explicit));
    let each = sent.into_iter().zip(received).zip(shared.into_iter().zip(explicit));
    each.map(|((sent, received), (shared, explicit))| Sides { sent, received, shared, explicit }).collect()
}

fn fit_field(types: &Types, sides: Sides, field: &mut Field) {
    // `readOnly` properties cannot be required in requests, nor `writeOnly` ones in responses.
    if field.read_only && sides.shared || field.write_only && sides.received {
        field.required = false;
    }
    if !sides.shared && !sides.received {
        field.read_only = false;
    }
    field.default = match std::mem::replace(&mut field.default, Default::None) {
        Default::Raw(value) if value.is_null() && !field.required => Default::None,
        // Nothing follows from its absence in a response, which need not have it.
        Default::Raw(value) if field.write_only && sides.received => Default::Told(value),
        // A response may lack a property that a request requires.
        Default::Raw(value) if sides.sent && !(field.required && sides.received) => Default::Told(value),
        other => other,
    };
    // Without a default it is set anyway; this lets types that are otherwise alike be one.
    field.given = field.required && sides.sent && matches!(field.default, Default::Raw(_));
    if !field.required && !matches!(field.default, Default::Raw(_)) && !sides.explicit {
        field.type_ = without_null(types, std::mem::replace(&mut field.type_, Type::Value));
    }
}

/// The type of an optional property's value, without `null`.
pub(super) fn without_null(types: &Types, mut type_: Type) -> Type {
    while let Type::Option(inner) = types.resolve(&type_) {
        type_ = (**inner).clone();
    }
    type_
}

/// Merges two levels of `null` into one, where a name hides the inner one.
fn unite_nulls(types: &mut Types, roots: &mut Roots) {
    let takes_null: Vec<bool> = (0..types.items.len()).map(|id| types.takes_null(&Type::Named(id))).collect();
    let all = types.items.iter_mut().flat_map(|item| item.shape.types_mut()).chain(roots.types_mut());
    all.for_each(|type_| unite(type_, &takes_null));
}

fn unite(type_: &mut Type, takes_null: &[bool]) {
    match type_ {
        Type::Option(inner) => {
            unite(inner, takes_null);
            let is_twice = match &**inner {
                Type::Option(_) | Type::Value | Type::Unit => true,
                Type::Named(id) => takes_null.get(*id) == Some(&true),
                _ => false,
            };
            if is_twice {
                *type_ = std::mem::replace(inner, Type::Value);
            }
        }
        Type::List(inner) | Type::Map(inner) => unite(inner, takes_null),
        Type::Tuple(items) => items.iter_mut().for_each(|item| unite(item, takes_null)),
        _ => {}
    }
}
