//! A body that should be the value of a property, and came as an object that holds this property.

use serde_json::{Map, Value};

use super::{Fault, Request};

/// The fault of such a body. `None` if no property is the body, or if its value may have a property of the same name.
pub(in crate::serve) fn wrapped(request: &Request<'_>, input: &Map<String, Value>) -> Option<Fault> {
    let bodies = request.binding.bodies.iter().filter(|body| !body.is_rest());
    let name = bodies.map(|body| &*body.property).find(|name| {
        let holds_it = input.get(*name).is_some_and(|body| body.get(*name).is_some());
        let value = request.shapes.input.property(name);
        holds_it && !value.names().contains(name) && !value.has_others() && !value.has_patterns()
    })?;
    Some(Fault::of(name, format!("the body itself is `{name}`: send the value without an object around it")))
}
