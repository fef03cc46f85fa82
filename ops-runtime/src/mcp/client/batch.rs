//! Batches: several messages in one text, which servers may send up to the revision 2025-03-26.

use std::fmt;

use serde_core::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// How many messages a batch may have.
const MAX: usize = 1000;

/// What the error of a batch with too many messages begins with.
const TOO_MANY: &str = "too many messages";

/// The messages of a batch, each as it came. `None` if the text is no batch.
///
/// # Errors
/// If it has too many messages.
pub(super) fn unpack(text: &str) -> Result<Option<Vec<String>>, TooMany> {
    if !text.starts_with('[') {
        return Ok(None);
    }
    match serde_json::from_str::<Batch>(text) {
        Ok(Batch(messages)) => Ok(Some(messages)),
        Err(error) if error.is_data() && error.to_string().starts_with(TOO_MANY) => Err(TooMany),
        Err(_) => Ok(None),
    }
}

/// The error of a batch of too many messages.
#[derive(Debug)]
pub(super) struct TooMany;

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a batch of more than {MAX} messages")
    }
}

struct Batch(Vec<String>);

impl<'de> Deserialize<'de> for Batch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Messages;
        impl<'de> Visitor<'de> for Messages {
            type Value = Batch;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Batch, A::Error> {
                let mut messages = Vec::new();
                while let Some(message) = list.next_element::<&RawValue>()? {
                    if messages.len() == MAX {
                        return Err(A::Error::custom(TOO_MANY));
                    }
                    messages.push(message.get().to_owned());
                }
                Ok(Batch(messages))
            }
        }
        deserializer.deserialize_seq(Messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lists_are_taken_apart() {
        assert_eq!(unpack(r#"{"id":1}"#).unwrap(), None);
        assert_eq!(unpack("[1, 2").unwrap(), None);
        assert_eq!(unpack("[]").unwrap(), Some(Vec::new()));
        let messages = unpack(r#"[{"id":1}, {"id": 2}]"#).unwrap().unwrap();
        assert_eq!(messages, [r#"{"id":1}"#, r#"{"id": 2}"#]);
        let many = |count: usize| format!("[{}]", vec!["{}"; count].join(","));
        assert_eq!(unpack(&many(MAX)).unwrap().unwrap().len(), MAX);
        assert_eq!(unpack(&many(MAX + 1)).unwrap_err().to_string(), "a batch of more than 1000 messages");
    }
}
