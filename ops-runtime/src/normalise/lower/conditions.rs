//! What schemas declare under a condition. Whether it holds is not known here, so that what it declares has to stay.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Draft, Lowering, Raw};

/// How many schemas are looked into below the conditions of one schema.
const MAX_CONDITIONS: usize = 256;

impl<'s> Lowering<'s, '_> {
    /// Adds the properties that a schema declares under a condition, in the schemas that it refers to, too.
    #[inline(never)]
    pub(super) fn conditions(&mut self, raw: Raw<'s>, map: &'s Map<String, Value>, draft: &mut Draft<'s>) {
        let mut open = below(raw, map);
        if open.is_empty() {
            return;
        }
        let (mut names, mut hides) = (Vec::new(), false);
        let mut seen = HashSet::new();
        while let Some(raw) = open.pop() {
            let Value::Object(map) = raw.schema else { continue };
            if !seen.insert(raw.address()) {
                continue;
            }
            if seen.len() > MAX_CONDITIONS || !self.affords(0) {
                hides = true;
                break;
            }
            let properties = map.get("properties").and_then(Value::as_object);
            names.extend(properties.into_iter().flatten().map(|(name, _)| name.as_str()));
            hides |= map.contains_key("patternProperties");
            if ["$ref", "$dynamicRef", "$recursiveRef"].iter().any(|key| map.contains_key(*key)) {
                match self.target(raw, map) {
                    Some(target) => open.push(target),
                    None => hides = true,
                }
            }
            let parts = ["allOf", "anyOf", "oneOf"].iter().filter_map(|key| map.get(*key)?.as_array()).flatten();
            open.extend(parts.map(|part| raw.to(part)));
            open.extend(below(raw, map));
        }
        if hides || !names.is_empty() {
            let object = draft.object.get_or_insert_default();
            object.conditional.append(&mut names);
            object.hides |= hides;
        }
    }
}

/// The schemas that apply under a condition of a schema.
fn below<'s>(raw: Raw<'s>, map: &'s Map<String, Value>) -> Vec<Raw<'s>> {
    let mut below = Vec::new();
    for (keyword, schema) in map {
        match (keyword.as_str(), schema) {
            ("if" | "then" | "else", schema) => below.push(raw.to(schema)),
            ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                below.extend(named.values().map(|schema| raw.to(schema)));
            }
            _ => {}
        }
    }
    below
}
