//! Declarations of schemas under a condition. It is unknown here if the condition holds, so the declarations have to
//! stay.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::conditional::Conditional;
use super::limits::parts;
use super::{Draft, Lowering, Raw, references};

/// How many schemas are looked into below the conditions of one schema.
const MAX_CONDITIONS: usize = 256;

impl<'s> Lowering<'s, '_> {
    /// Adds what a schema declares under a condition, in the schemas that it refers to, too. Of a schema that is itself
    /// under a condition, this is all that it declares.
    #[inline(never)]
    pub(super) fn conditions(&mut self, raw: Raw<'s>, map: &'s Map<String, Value>, draft: &mut Draft<'s>) {
        let mut found = Conditional::default();
        let mut open = if raw.is_conditional { vec![raw] } else { found.conditions(raw, map) };
        let mut seen = HashSet::new();
        while let Some(raw) = open.pop() {
            let Value::Object(map) = raw.schema else { continue };
            if !seen.insert(raw.address()) {
                continue;
            }
            if seen.len() > MAX_CONDITIONS || !self.affords(0) || !self.holds(parts(map)) {
                found.hides = true;
                break;
            }
            found.declared(raw, map);
            let references = references(map);
            if references > 0 {
                found.hides |= references > 1;
                match self.target(raw, map) {
                    Some(target) => open.push(target),
                    None => found.hides = true,
                }
            }
            let members = ["allOf", "anyOf", "oneOf"].iter().filter_map(|key| map.get(*key)?.as_array()).flatten();
            open.extend(members.map(|member| raw.to(member)));
            open.extend(found.conditions(raw, map));
        }
        let Conditional { mut properties, mut items, hides } = found;
        if hides || !properties.is_empty() {
            let object = draft.object.get_or_insert_default();
            object.conditional.append(&mut properties);
            object.hides |= hides;
        }
        if !items.is_empty() {
            draft.array.get_or_insert_default().conditional.append(&mut items);
        }
    }
}
