//! A body that is the rest of the input: the object of all properties that have no other place in the request.

#[cfg(feature = "registry")]
use serde_json::Map;
use serde_json::Value;

use super::{HttpBinding, HttpBody};

impl HttpBinding {
    /// True if a property of the input has a place in the request that is no part of [the rest](HttpBody::with_rest).
    pub(crate) fn places(&self, property: &str) -> bool {
        self.parameters.iter().any(|parameter| parameter.property == property && parameter.fixed.is_none())
            || self.bodies.iter().any(|body| !body.is_rest() && body.property == property)
            || self.content_type.as_deref() == Some(property)
            || self.path.contains(&format!("{{{property}}}"))
    }

    /// The schema of a body by that of the input. `None` if the input's schema does not declare the body.
    pub(crate) fn schema_of_body(&self, body: &HttpBody, input: &Value) -> Option<Value> {
        if !body.is_rest() {
            return input.get("properties")?.get(body.property.as_ref()).cloned();
        }
        let mut schema = input.clone();
        let members = schema.as_object_mut()?;
        if let Some(Value::Object(properties)) = members.get_mut("properties") {
            properties.retain(|name, _| !self.places(name));
        }
        if let Some(Value::Array(required)) = members.get_mut("required") {
            required.retain(|name| name.as_str().is_none_or(|name| !self.places(name)));
        }
        Some(schema)
    }

    /// True if an input must have a body, by the input's schema.
    #[cfg_attr(
        not(any(feature = "http-server", feature = "openapi")),
        allow(dead_code, reason = "only documents are made of it, and compared")
    )]
    pub(crate) fn requires_body(&self, body: &HttpBody, input: &Value) -> bool {
        let mut required =
            input.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        if body.is_rest() {
            required.any(|name| !self.places(name))
        } else {
            required.any(|name| name == body.property)
        }
    }

    /// The rest of an input. `None` if the input has nothing but what has another place.
    #[cfg(feature = "registry")]
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only the client writes bodies"))]
    pub(crate) fn rest_of(&self, input: &Map<String, Value>) -> Option<Map<String, Value>> {
        let rest = input.iter().filter(|(name, _)| !self.places(name));
        let rest: Map<String, Value> = rest.map(|(name, value)| (name.clone(), value.clone())).collect();
        (!rest.is_empty()).then_some(rest)
    }
}

#[cfg(all(test, feature = "registry"))]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::HttpParameter;

    #[test]
    fn the_rest_is_what_has_no_other_place() {
        let binding = HttpBinding::new("POST", "/pets/{id}/{plain}")
            .with_parameters(const { &[HttpParameter::path("id"), HttpParameter::query("q").with_property("query")] })
            .with_bodies(const { &[HttpBody::new("application/json").with_rest()] });
        let [body] = binding.bodies.as_ref() else { panic!("one body") };
        let input = json!({
            "type": "object",
            "properties": { "id": true, "plain": true, "query": true, "q": {}, "name": { "type": "string" } },
            "required": ["id", "name"],
            "$defs": { "A": true },
        });
        let rest = json!({
            "type": "object",
            "properties": { "q": {}, "name": { "type": "string" } },
            "required": ["name"],
            "$defs": { "A": true },
        });
        assert_eq!(binding.schema_of_body(body, &input), Some(rest));
        assert!(binding.requires_body(body, &input) && !binding.requires_body(body, &json!({ "required": ["id"] })));
        let input = json!({ "id": 1, "query": 2, "q": 3, "name": null });
        let rest = binding.rest_of(input.as_object().unwrap());
        assert_eq!(rest.map(Value::Object), Some(json!({ "q": 3, "name": null })));
        assert_eq!(binding.rest_of(json!({ "id": 1 }).as_object().unwrap()), None);
    }
}
