//! Streams: the schemas of their items.

use serde_json::{Map, Value};

use super::document::Node;
use super::media::Content;
use super::reader::Reader;
use super::version::Version;
use crate::model::keywords::is_comment;
use crate::model::media::Media;

/// The fields of a server-sent event.
const FIELDS: &[&str] = &["data", "event", "id", "retry"];

/// How deep the parts of a schema are looked into for the fields of an event.
const MAX_DEPTH: usize = 16;

/// How many parts of a schema are looked into for the fields of an event.
const MAX_VISITED: usize = 2_000;

impl<'a> Reader<'a> {
    /// The schema of one item of a stream; true if that is the whole event, not its data alone.
    pub(super) fn item(&mut self, content: &Content<'a>) -> (Value, bool) {
        let own = content.node.get("itemSchema");
        let is_own = own.is_some();
        let Some(mut node) = own.or_else(|| content.node.get("schema")) else { return (Value::Bool(true), false) };
        // A schema of the whole stream is a list of items: in 3.2 by the standard, for lines of JSON always.
        if !is_own && (content.is_of_texts() || self.version >= Version::V32) {
            let resolved = self.documents.resolve(node.clone()).ok();
            let items = resolved.filter(|list| list.text("type") == Some("array")).and_then(|list| list.get("items"));
            node = items.unwrap_or(node);
        }
        if content.is_of_texts() {
            return (self.part(&node), false);
        }
        let mut fields = Fields::default();
        self.event_fields(&node, &mut fields, 0);
        // Only an item schema is certain to describe events; another one does if nothing else could be meant.
        let is_whole = fields.data && !fields.others && if is_own { fields.event || fields.meta } else { fields.event };
        if !is_whole {
            return (self.part(&node), false);
        }
        (if fields.holds_json { self.event(&node, 0, &mut MAX_VISITED.clone()) } else { self.part(&node) }, true)
    }

    /// Collects the properties of a schema and all its parts.
    fn event_fields(&self, node: &Node<'a>, fields: &mut Fields, depth: usize) {
        let Ok(resolved) = self.documents.resolve(node.clone()) else { return };
        fields.visited += 1;
        if depth > MAX_DEPTH || fields.visited > MAX_VISITED {
            return;
        }
        for (name, property) in resolved.get("properties").iter().flat_map(Node::members) {
            match name {
                "data" => {
                    fields.data = true;
                    fields.holds_json |= self.json_in_data(&property).is_some();
                }
                "event" => fields.event = true,
                name if FIELDS.contains(&name) => fields.meta = true,
                _ => fields.others = true,
            }
        }
        let places = if resolved.key() == node.key() { vec![resolved] } else { vec![resolved, node.clone()] };
        for part in places.iter().flat_map(|place| ["allOf", "anyOf", "oneOf"].map(|key| place.get(key))) {
            part.iter().flat_map(Node::items).for_each(|part| self.event_fields(&part, fields, depth + 1));
        }
    }

    /// The schema of the JSON text in an event's `data`.
    fn json_in_data(&self, data: &Node<'a>) -> Option<Node<'a>> {
        let data = self.documents.resolve(data.clone()).ok()?;
        let media_type = data.text("contentMediaType")?;
        if Media::of(media_type) == Media::Json { data.get("contentSchema") } else { None }
    }

    /// The schema of an event, in which `data` holds the JSON itself instead of its text.
    fn event(&mut self, node: &Node<'a>, depth: usize, budget: &mut usize) -> Value {
        *budget = budget.saturating_sub(1);
        if depth > MAX_DEPTH || *budget == 0 || !node.value.is_object() {
            return self.schema(node);
        }
        let (mut inlined, mut out) = (Map::new(), Map::new());
        if let Some(name) = node.text("$ref") {
            // Everything visited here and below counts together.
            let mut fields = Fields { visited: MAX_VISITED.saturating_sub(*budget), ..Fields::default() };
            self.event_fields(node, &mut fields, depth);
            *budget = MAX_VISITED.saturating_sub(fields.visited);
            let Ok(resolved) = self.documents.resolve(node.clone()) else { return self.schema(node) };
            if !fields.holds_json || resolved.key() == node.key() {
                return self.schema(node);
            }
            // It differs from the definition of that name, so it is written here.
            let Value::Object(target) = self.event(&resolved, depth + 1, budget) else { return self.schema(node) };
            let title = name.rsplit('/').next().unwrap_or_default();
            inlined = target;
            inlined.entry("title").or_insert_with(|| title.into());
        }
        for (key, part) in node.members().filter(|(key, _)| *key != "$ref") {
            let value = match (key, part.value) {
                ("allOf" | "anyOf" | "oneOf", Value::Array(_)) => {
                    part.items().map(|part| self.event(&part, depth + 1, budget)).collect()
                }
                ("properties", Value::Object(_)) => {
                    let mut properties = Map::new();
                    for (name, property) in part.members() {
                        let json = if name == "data" { self.json_in_data(&property) } else { None };
                        properties.insert(name.to_owned(), self.schema(&json.unwrap_or(property)));
                    }
                    Value::Object(properties)
                }
                _ => {
                    self.keyword(node, key, 1, &mut out);
                    continue;
                }
            };
            out.insert(key.to_owned(), value);
        }
        // What stands beside a reference holds as well; words for people go before those of the target.
        if out.keys().any(|key| inlined.contains_key(key) && !is_comment(key)) {
            let mut parts = vec![Value::Object(inlined)];
            if let Some(Value::Array(own)) = out.shift_remove("allOf") {
                parts.extend(own);
            }
            out.insert("allOf".to_owned(), parts.into());
            return Value::Object(out);
        }
        inlined.extend(out);
        Value::Object(inlined)
    }
}

/// The kinds of properties that a schema has.
#[derive(Default)]
struct Fields {
    data: bool,
    event: bool,
    /// `id` or `retry`.
    meta: bool,
    /// A property that no event has.
    others: bool,
    visited: usize,
    /// True if `data` is JSON of a known schema.
    holds_json: bool,
}
