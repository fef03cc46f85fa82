//! Keys that stand more than once in an object of a JSON text, whose parser keeps the last value and tells nothing.

use std::collections::HashSet;
use std::fmt;

use serde_core::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::pointer;
use super::short::short;
use crate::model::cut;
use crate::model::diagnostic::{MOST, MOST_POINTER};
use crate::{Diagnostic, Severity};

/// Adds a warning for each key of a JSON text that stands more than once in its object. The text was parsed before.
pub(super) fn keys(text: &str, diagnostics: &mut Vec<Diagnostic>) {
    let mut keys = Keys { diagnostics, pointer: String::new(), told: 0 };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // A text that is not JSON is told by the parser of values.
    let _ = (&mut keys).deserialize(&mut deserializer);
    let more = keys.told;
    diagnostics.extend(Diagnostic::more(Severity::Warning, more));
}

/// Reads a value for nothing but the keys in it.
struct Keys<'d> {
    diagnostics: &'d mut Vec<Diagnostic>,
    /// The pointer of the current value.
    pointer: String,
    /// How many warnings there are.
    told: usize,
}

impl Keys<'_> {
    /// Warns of the key that the pointer leads to.
    fn warn(&mut self, key: &str) {
        self.told += 1;
        if self.told > MOST {
            return;
        }
        let pointer = match cut::start(&self.pointer, MOST_POINTER) {
            whole if whole.len() == self.pointer.len() => whole.to_owned(),
            start => format!("{}/...", start.rsplit_once('/').map_or("", |(above, _)| above)),
        };
        let message = format!("the key `{}` stands here more than once", short(key));
        self.diagnostics.push(Diagnostic::warning(pointer, message).with_help("the last was taken"));
    }
}

impl<'de> DeserializeSeed<'de> for &mut Keys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let length = self.pointer.len();
        let mut at = 0_usize;
        loop {
            pointer::push(&mut self.pointer, &at.to_string());
            let item = items.next_element_seed(&mut *self)?;
            self.pointer.truncate(length);
            if item.is_none() {
                return Ok(());
            }
            at += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let length = self.pointer.len();
        let mut known = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            pointer::push(&mut self.pointer, &key);
            if known.contains(&key) {
                self.warn(&key);
            }
            known.insert(key);
            members.next_value_seed(&mut *self)?;
            self.pointer.truncate(length);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<(String, String)> {
        let mut diagnostics = Vec::new();
        keys(text, &mut diagnostics);
        diagnostics.into_iter().map(|diagnostic| (diagnostic.pointer, diagnostic.message)).collect()
    }

    #[test]
    fn each_repeated_key_is_named() {
        let text = r#"{ "a": [1, -2.5, true, null, { "b/c": 1, "x": "b/c", "b\u002fc": { "d": 1, "d": 2 } }], "b": {}, "a": 3 }"#;
        let key = |name: &str| format!("the key `{name}` stands here more than once");
        assert_eq!(
            told(text),
            [("/a/4/b~1c".to_owned(), key("b/c")), ("/a/4/b~1c/d".to_owned(), key("d")), ("/a".to_owned(), key("a"))]
        );
        assert!(told(r#"{ "a": { "a": 1, "b": [{ "a": 2 }, { "a": 3 }] }, "b": 1 }"#).is_empty());
    }

    #[test]
    fn warnings_and_pointers_are_bounded() {
        let many = format!("{{{}\"a\": 1}}", "\"a\": 1,".repeat(MOST + 4));
        let all = told(&many);
        assert_eq!((all.len(), all[MOST].1.as_str()), (MOST + 1, "there are 4 more, which are not shown"));
        let long = format!("{{\"{0}\": {{\"b\": 1, \"b\": 2}}}}", "n".repeat(MOST_POINTER));
        assert_eq!(told(&long)[0].0, "/...");
    }
}
