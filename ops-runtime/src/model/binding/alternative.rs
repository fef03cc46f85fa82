//! Finds the schema of one of several content types where the binding does not say which it is: for the items of a stream, and
//! for a body in a spec of an older version.
//!
//! If content types have different schemas, the schema for all is a `oneOf` of these, each once and in the order of the content
//! types. The title of each says the kind of its content type.

use serde_json::Value;

#[cfg(feature = "http")]
use super::{HttpBinding, HttpBody};
use crate::model::media::Media;

#[cfg(feature = "http")]
impl HttpBinding {
    /// The schema of a body of this binding, in the schema of its property. `None` if all bodies share the schema of the
    /// property, or if it is unclear which alternative the body is.
    pub(crate) fn alternative<'s>(&self, body: &HttpBody, property: &'s Value) -> Option<&'s Value> {
        if self.bodies.iter().any(|body| body.variant.is_some()) {
            return body.alternative(property);
        }
        let all = property.get("oneOf")?.as_array()?;
        let at = self.bodies.iter().position(|other| std::ptr::eq(other, body))?;
        let content_types: Vec<&str> = self.bodies.iter().map(|body| &*body.content_type).collect();
        alternative(all, &content_types, at)
    }
}

/// The schema of the content type at a position, among those of all content types. `None` if it is unclear which one that is.
pub(crate) fn alternative<'s>(all: &'s [Value], content_types: &[&str], at: usize) -> Option<&'s Value> {
    let kinds: Vec<Media> = content_types.iter().map(|content_type| Media::of(content_type)).collect();
    // The schema of one content type may have variants of its own, and so may one that all share.
    let is_variant = |schema: &Value| !kinds.iter().any(|kind| is_of(schema, *kind));
    if kinds.len() < 2 || all.iter().any(is_variant) {
        return None;
    }
    let is_each_its_own = all.len() == kinds.len() && all.iter().zip(&kinds).all(|(schema, kind)| is_of(schema, *kind));
    if is_each_its_own {
        return all.get(at);
    }
    let kind = *kinds.get(at)?;
    let mut own = all.iter().filter(|schema| is_of(schema, kind));
    let alike = |kinds: &[Media]| kinds.iter().filter(|other| **other == kind).count();
    match own.clone().count() {
        1 => own.next(),
        count if count == alike(&kinds) => own.nth(alike(kinds.get(..at)?)),
        // Some of them share a schema, so it is unclear which is meant.
        _ => None,
    }
}

/// True if a schema has the title of a kind, which may be numbered.
fn is_of(schema: &Value, kind: Media) -> bool {
    let title = schema.get("title").and_then(Value::as_str).unwrap_or_default();
    let title = title.trim_end_matches(|c: char| c == '_' || c.is_ascii_digit());
    title == kind.title() || title == "Lines" && matches!(kind, Media::Lines | Media::Sequence)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Titles of schemas, content types, and the schema of each.
    type Row<'r> = (&'r [&'r str], &'r [&'r str], &'r [Option<usize>]);

    #[test]
    fn schemas_belong_to_content_types() {
        const FORM: &str = "application/x-www-form-urlencoded";
        let table: [Row; 9] = [
            (&["Json", "Form"], &["application/json", FORM], &[Some(0), Some(1)]),
            (&["Text", "Text_2"], &["application/jsonl", "text/event-stream"], &[Some(0), Some(1)]),
            (&["Json", "Json_2"], &["application/json", "a/b+json"], &[Some(0), Some(1)]),
            // The form shares a schema, and so do two of three kinds of JSON.
            (&["Json", "Multipart"], &["application/json", FORM, "multipart/form-data"], &[Some(0), None, Some(1)]),
            (&["Json", "Json_2"], &["application/json", "a/b+json", "a/c+json"], &[None, None, None]),
            // The variants of one schema for both.
            (&["Cat", "Dog"], &["application/json", FORM], &[None, None]),
            (&["Json", "Dog"], &["application/json", FORM], &[None, None]),
            // The variants of the only one.
            (&["Json", "Form"], &["application/json"], &[None]),
            (&["Json"], &["application/json"], &[None]),
        ];
        for (titles, content_types, expected) in table {
            let all: Vec<Value> = titles.iter().map(|title| json!({ "title": title })).collect();
            for (at, expected) in expected.iter().enumerate() {
                let found = alternative(&all, content_types, at);
                assert_eq!(found, expected.and_then(|expected| all.get(expected)), "{titles:?} {at}");
            }
        }
    }
}
