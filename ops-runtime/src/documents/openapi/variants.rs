//! Variants of unions: those that only add null to the others.

use serde_json::{Map, Value};

use super::document::Node;
use super::null::ANNOTATIONS;
use super::reader::Reader;

impl<'a> Reader<'a> {
    /// The variants of an `anyOf` or `oneOf`.
    pub(super) fn variants(&mut self, at: &Node<'a>, level: usize) -> Value {
        let says_more = at.items().any(|variant| !self.is_only_null(&variant));
        let rewritten = at.items().map(|variant| {
            let is_null = says_more && self.is_only_null(&variant);
            if is_null { self.null_variant(&variant, level) } else { self.rewrite(&variant, level) }
        });
        rewritten.collect()
    }

    /// True if a variant says nothing but `nullable: true`, or YAML's `type: null`. Taken literally, it would accept any
    /// value, so that the other variants would have no meaning.
    fn is_only_null(&self, variant: &Node<'a>) -> bool {
        let Some(members) = variant.value.as_object() else { return false };
        let is_typed = members.get("type").is_some_and(Value::is_null);
        (is_typed || self.is_nullable(variant))
            && members.iter().all(|(key, value)| match key.as_str() {
                "type" => value.is_null(),
                "nullable" | "example" | "examples" => true,
                key => ANNOTATIONS.contains(&key) || key.starts_with("x-"),
            })
    }

    fn null_variant(&mut self, variant: &Node<'a>, level: usize) -> Value {
        let mut out = Map::from_iter([("type".to_owned(), Value::from("null"))]);
        for (key, node) in variant.members() {
            match key {
                "type" => self.note_null(&node),
                key => self.keyword(variant, key, level + 1, &mut out),
            }
        }
        Value::Object(out)
    }

    /// Notes that null was read as the name of a type: in YAML, that name needs quotes.
    pub(super) fn note_null(&mut self, at: &Node<'a>) {
        self.note(at, "`type` has null, which is not text", "it is taken for the type `\"null\"`");
    }
}
