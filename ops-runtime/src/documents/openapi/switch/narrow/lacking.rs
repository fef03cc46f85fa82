//! Variants of a body that cannot have the boolean, as closed objects and texts cannot.

use serde_json::Value;

use super::{Look, MAX_DEPTH, MAX_VISITED, Narrower, parts};
use crate::HttpBinding;

impl Narrower<'_> {
    /// True if a body has variants that cannot have the boolean, and others that have it.
    pub(in super::super) fn is_partial(&self, input: &Value, http: &HttpBinding, name: &str) -> bool {
        let property = http.bodies.first().map(|body| body.property.as_ref());
        let body = property.and_then(|name| input.get("properties")?.get(name));
        body.is_some_and(|body| self.has_lacking(body, name, &mut 0, 0))
    }

    fn has_lacking(&self, schema: &Value, name: &str, visited: &mut usize, depth: usize) -> bool {
        *visited += 1;
        if depth > MAX_DEPTH || *visited > MAX_VISITED || !self.spend(1) {
            return false;
        }
        let mut unions = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(*key)?.as_array());
        let target = schema.get("$ref").and_then(|reference| self.definition(reference));
        unions.any(|variants| !self.lacking(variants, name).is_empty())
            || target.is_some_and(|target| self.has_lacking(target, name, visited, depth + 1))
            || ["allOf", "anyOf", "oneOf"]
                .iter()
                .flat_map(|key| parts(schema, key))
                .any(|part| self.has_lacking(part, name, visited, depth + 1))
    }

    /// True for each variant that cannot have the boolean, if another one has it; empty if there are none.
    pub(super) fn lacking(&self, variants: &[Value], name: &str) -> Vec<bool> {
        let has = |variant: &Value| {
            let mut look = Look { wish: "", name: Some(name.to_owned()), visited: 0 };
            self.switch(variant, &mut look, 0).is_some()
        };
        let mut visited = 0;
        // One part may be closed, and another one have it.
        let lacks = |variant: &Value| !self.may_have(variant, name, &mut visited, 0) && !has(variant);
        let lacking: Vec<bool> = variants.iter().map(lacks).collect();
        let mut others = variants.iter().zip(&lacking).filter(|(_, lacks)| !**lacks);
        if lacking.contains(&true) && others.any(|(variant, _)| has(variant)) { lacking } else { Vec::new() }
    }

    /// True if a value of a schema can have the boolean, as far as its kind and closed objects tell. For null, the
    /// operation sends an object.
    fn may_have(&self, schema: &Value, name: &str, visited: &mut usize, depth: usize) -> bool {
        *visited += 1;
        if depth > MAX_DEPTH || *visited > MAX_VISITED || !self.spend(1) {
            return true;
        }
        let takes = match (schema.get("type"), schema.get("const"), schema.get("enum")) {
            (Some(Value::String(kind)), ..) => kind == "object" || kind == "null",
            (Some(Value::Array(kinds)), ..) => {
                kinds.iter().any(|kind| kind == "object") || kinds.iter().all(|kind| kind == "null")
            }
            (_, Some(value), _) => value.is_object() || value.is_null(),
            (_, _, Some(Value::Array(values))) => values.iter().any(|value| value.is_object() || value.is_null()),
            _ => true,
        };
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
            && schema.get("patternProperties").is_none()
            && schema.get("properties").is_none_or(|properties| properties.get(name).is_none());
        if !takes || is_closed {
            return false;
        }
        let target = schema.get("$ref").and_then(|reference| self.definition(reference));
        target.is_none_or(|target| self.may_have(target, name, visited, depth + 1))
            && parts(schema, "allOf").all(|part| self.may_have(part, name, visited, depth + 1))
            && ["anyOf", "oneOf"].iter().all(|key| {
                let mut variants = parts(schema, key).peekable();
                variants.peek().is_none() || variants.any(|part| self.may_have(part, name, visited, depth + 1))
            })
    }
}
