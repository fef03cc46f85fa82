//! Schemas that contain themselves by what is merged into them: each becomes one type that contains itself.
//!
//! If a property of `Node` is `Node` and something more, the merged schema has that property again, and so on without end. No
//! reference shows this. But each level has the same schema, so one type serves all of a definition.

use serde_json::Value;

use super::condition::is_conditional;
use super::source::refers;
use super::view::is_flat;
use super::{Lowering, Merged, Object, Site};
use crate::names::upper_camel;
use crate::types::{ItemId, Shape, Type};

impl Lowering<'_> {
    /// True if something else may be merged into a schema, and may lead back to it. A schema that only refers to a definition
    /// becomes that one's type. One without any reference leads to nothing but its own parts.
    pub(super) fn merges(&self, schema: &Object) -> bool {
        let has_parts = !is_flat(schema) || ["oneOf", "anyOf"].iter().any(|key| schema.contains_key(*key));
        let merges = is_conditional(schema) || has_parts && self.sole_reference(schema).is_none();
        merges && refers(schema)
    }

    /// Lowers a schema that others are merged into. If it is inside itself, it is the type that is being made.
    pub(super) fn lower_merged(&mut self, schema: &Value, object: &Object, site: &Site) -> Type {
        if let Some(known) = self.merged.get(schema) {
            let (item, place) = (known.item, known.site.clone());
            return Type::Named(self.recurring(item, place, schema, site));
        }
        self.merged.insert(schema.clone(), Merged { site: site.clone(), item: None });
        let lowered = self.shape(schema, site);
        match self.merged.get(schema).and_then(|known| known.item) {
            Some(id) => {
                self.fill(id, lowered, site, Some(object));
                Type::Named(id)
            }
            None => {
                self.merged.remove(schema);
                self.place(lowered, site, object)
            }
        }
    }

    /// The type of a schema that was met before: at a place, and now again at a site.
    fn recurring(&mut self, item: Option<ItemId>, place: Site, schema: &Value, site: &Site) -> ItemId {
        let id = item.unwrap_or_else(|| self.add(Shape::Pending, &place, schema.as_object()));
        let nearest = if site.depth < place.depth { site.clone() } else { place };
        self.name_after(id, &nearest);
        self.merged.insert(schema.clone(), Merged { site: nearest, item: Some(id) });
        id
    }

    /// Names a type after a place. If it may be `null`, that is said of a type inside, which was named after the same place.
    fn name_after(&mut self, id: ItemId, site: &Site) {
        let Some(item) = self.types.items.get_mut(id) else { return };
        item.name = upper_camel(&site.hint);
        let before = std::mem::replace(&mut item.pointer, site.pointer.clone());
        if let Shape::Alias(Type::Option(inner)) = &item.shape
            && let Type::Named(inner) = **inner
            && let Some(inner) = self.types.items.get_mut(inner)
            && inner.pointer == before
        {
            inner.name = upper_camel(&site.inside("value", &[]).hint);
            inner.pointer.clone_from(&site.pointer);
        }
    }
}
