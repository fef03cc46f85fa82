//! Finds what schemas declare under conditions, which then counts as one more member of their views.

use serde_json::Value;

use super::condition::{CONDITIONAL, KEYWORDS, add, into_object, is_conditional};
use super::view::too_many;
use super::{Clash, Lowering, Object, size_of};

impl Lowering<'_> {
    /// True if a schema declares a property only under a condition, beside those of what it refers to.
    pub(super) fn adds_conditionally(&mut self, schema: &Object) -> bool {
        if !is_conditional(schema) {
            return false;
        }
        let view = self.flatten(schema, 0).unwrap_or_default();
        let is_own = |name: &str| view.get("properties").is_some_and(|properties| properties.get(name).is_some());
        let conditional = view.get(CONDITIONAL).and_then(Value::as_object);
        conditional.is_some_and(|conditional| conditional.keys().any(|name| !is_own(name)))
    }

    /// Moves what a schema declares under a condition to a member that is merged as properties are.
    pub(super) fn fold_conditions(&mut self, schema: &mut Object, depth: usize) -> Result<(), Clash> {
        for keyword in KEYWORDS {
            let Some(below) = schema.shift_remove(keyword) else { continue };
            let schemas = match (keyword, below) {
                ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                    named.into_iter().map(|(_, it)| it).collect()
                }
                (_, one) => vec![one],
            };
            for below in schemas.iter().filter_map(Value::as_object) {
                // A condition that cannot be followed declares nothing.
                let Ok(mut view) = self.flatten(below, depth + 1) else { continue };
                let found = [view.shift_remove("properties"), view.shift_remove(CONDITIONAL)];
                for (name, found) in found.into_iter().flatten().filter_map(into_object).flatten() {
                    if !self.spend(size_of(&found)) {
                        return Err(too_many());
                    }
                    // A condition asks whether a property has a value; it may have others.
                    let found = if keyword == "if" { Value::Bool(true) } else { found };
                    let all = schema.entry(CONDITIONAL).or_insert_with(|| Value::Object(Object::new()));
                    add(all, name, found);
                }
            }
        }
        Ok(())
    }
}
