//! Size limits of stored errors and metadata, so that the engine can write each record and read it back.
//!
//! A record is one message of the engine, which takes twice the largest input or result. So beside its input, a dead
//! letter has a quarter of that size each for its error, for its history, and for its metadata with the key, the tenant
//! and so on. A job that failed with an error that is not retried has no history, and half of that size for its error.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::durable::record::Marks;
use crate::model::json::is_deeper;
use crate::{CallError, ErrorCode, Identity, RetryPolicy};

/// How deep details and metadata may be nested. Readers of JSON stop at 128 levels, and a record has some itself.
const DEPTH: usize = 64;
/// The longest code of an error, in bytes.
const CODE: usize = 256;
/// Number of bytes that are always kept, however small the limits are.
const LEAST: usize = 1024;

/// Limits of errors as JSON, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// For a job that failed with an error that is not retried.
    pub(super) failed: usize,
    /// For a dead letter.
    pub(super) letter: usize,
    /// For each attempt in the history.
    pub(super) attempt: usize,
    metadata: usize,
}

impl Bounds {
    /// The limits for an engine whose largest input or result has so many bytes.
    pub(super) fn beside(most: usize) -> Self {
        let [failed, letter, attempt] = [most / 2, most / 4, most / 64].map(|share| share.max(LEAST));
        Self { failed, letter, attempt, metadata: letter }
    }

    /// The limits of a step. A step has the id of its own operation, and the metadata of its job, to which the job has added its
    /// trace and its time.
    pub(super) fn of_step(self) -> Self {
        Self { metadata: self.metadata.saturating_add(LEAST), ..self }
    }

    /// Fails if metadata is too large to be stored together with the other fields that the submitter sets.
    pub(super) fn check(&self, metadata: &Map<String, Value>, beside: &Beside<'_>) -> Result<(), CallError> {
        let invalid = |message: String| Err(CallError::new(ErrorCode::ValidationError, message));
        let refused = |why: String| invalid(format!("the metadata is {why}"));
        if metadata.values().any(|value| is_deeper(value, DEPTH)) {
            return refused(format!("nested more than {DEPTH} levels deep"));
        }
        let size: usize = metadata.iter().map(|(name, value)| name.len().saturating_add(size(value))).sum();
        if size > self.metadata {
            return refused(format!("{size} bytes as JSON, and the engine keeps up to {}", self.metadata));
        }
        let all = size.saturating_add(beside.size());
        if all > self.metadata {
            return invalid(format!(
                "the metadata, the operation's id, the key, the tenant, the identity and the codes of the retry policy are \
                 {all} bytes together as JSON, and the engine keeps up to {}",
                self.metadata
            ));
        }
        Ok(())
    }
}

/// The fields of a job of any size, beside its input and its metadata.
pub(super) struct Beside<'a> {
    pub(super) operation: &'a str,
    pub(super) key: Option<&'a str>,
    pub(super) tenant: Option<&'a str>,
    pub(super) identity: Option<&'a Identity>,
    pub(super) retry: Option<&'a RetryPolicy>,
}

impl Beside<'_> {
    /// The number of bytes as JSON.
    fn size(&self) -> usize {
        let texts = [Some(self.operation), self.key, self.tenant].into_iter().flatten().map(escaped).sum::<usize>();
        let json = |value: serde_json::Result<Value>| value.map_or(0, |value| size(&value));
        let identity = self.identity.map_or(0, |identity| json(serde_json::to_value(identity)));
        let retry = self.retry.map_or(0, |retry| json(serde_json::to_value(retry)));
        texts.saturating_add(identity).saturating_add(retry)
    }
}

/// The error, limited to so many bytes as JSON and in depth. Its message says what was left out.
pub(super) fn bounded(error: CallError, most: usize) -> CallError {
    let is_deep = is_deeper(error.details(), DEPTH);
    let details = if is_deep { Cow::Owned(shallow(error.details(), DEPTH)) } else { Cow::Borrowed(error.details()) };
    let whole = size(&details);
    let size = escaped(error.code().as_str()) + escaped(error.message()) + whole;
    if size <= most && !is_deep {
        return error;
    }
    let mut note = String::new();
    if size > most {
        note = format!(" [cut: the error has {size} bytes, and up to {most} are kept]");
    }
    if is_deep {
        note.push_str(&format!(" [cut: details that are nested more than {DEPTH} levels deep]"));
    }
    let code = clipped(error.code().as_str(), CODE);
    let room = most.saturating_sub(note.len() + escaped(code));
    // The message comes first, unless it leaves no room for details such as a status.
    let message = clipped(error.message(), room.saturating_sub(whole.min(room / 2)));
    let details = fitted(&details, room.saturating_sub(escaped(message)));
    let cut = CallError::new(code.to_owned(), format!("{message}{note}")).with_details(details);
    let cut = Marks::of(&error).put_on(cut);
    match error.operation() {
        Some(operation) => cut.with_operation(operation.to_owned()),
        None => cut,
    }
}

/// The value without what is deeper.
fn shallow(value: &Value, levels: usize) -> Value {
    match value {
        Value::Object(_) | Value::Array(_) if levels == 0 => Value::Null,
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), shallow(value, levels - 1))).collect()
        }
        Value::Array(items) => items.iter().map(|item| shallow(item, levels - 1)).collect(),
        scalar => scalar.clone(),
    }
}

/// Number of bytes of a value as JSON; its depth must be limited.
fn size(value: &Value) -> usize {
    match value {
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| escaped(name) + size(value) + 2;
            members.iter().map(member).sum::<usize>() + 2
        }
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::String(text) => escaped(text),
        scalar => scalar.to_string().len(),
    }
}

/// The number of bytes of a text as JSON.
fn escaped(text: &str) -> usize {
    text.bytes().map(of_byte).sum::<usize>() + 2
}

fn of_byte(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..32 => 6,
        _ => 1,
    }
}

/// The longest beginning of a text that has so many bytes as JSON.
fn clipped(text: &str, most: usize) -> &str {
    let mut left = most.saturating_sub(2);
    let mut fits = |byte: &u8| {
        let rest = left.checked_sub(of_byte(*byte));
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let end = text.as_bytes().iter().take_while(|byte| fits(byte)).count();
    text.get(..text.floor_char_boundary(end)).unwrap_or_default()
}

/// As much of a value as fits into so many bytes as JSON: the small members of objects first, the beginning of texts.
fn fitted(value: &Value, most: usize) -> Value {
    if size(value) <= most {
        return value.clone();
    }
    match value {
        Value::String(text) => clipped(text, most).into(),
        Value::Array(items) => {
            let mut left = most.saturating_sub(2);
            let fits = |item: &&Value| {
                let rest = left.checked_sub(size(item) + 1);
                left = rest.unwrap_or(left);
                rest.is_some()
            };
            items.iter().take_while(fits).cloned().collect()
        }
        Value::Object(members) => {
            let mut left = most.saturating_sub(2);
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_cached_key(|(_, value)| size(value));
            let mut kept = Map::new();
            for (name, value) in members {
                let Some(room) = left.checked_sub(escaped(name) + 2).filter(|room| *room > 2) else { continue };
                let value = fitted(value, room);
                left = room.saturating_sub(size(&value));
                kept.insert(name.clone(), value);
            }
            kept.into()
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deep(levels: usize) -> Value {
        (0..levels).fold(json!("x"), |inner, _| json!([inner]))
    }

    fn bytes(error: &CallError) -> usize {
        serde_json::to_vec(error).unwrap().len()
    }

    #[test]
    fn what_fits_is_kept_as_it_is() {
        let error =
            CallError::new("TAKEN", "no").with_details(json!({ "a": [1, "\u{7f}\n\"ä"], "b": deep(DEPTH - 1) }));
        assert_eq!(bounded(error.clone(), 1_000), error);
        let (counted, is) = (size(error.details()), error.details().to_string().len());
        // A comma more for each list.
        assert!((is..is + 2 * DEPTH).contains(&counted), "{counted} {is}");
    }

    #[test]
    fn what_is_too_large_is_cut() {
        let body = json!({ "message": "no", "rows": vec!["row"; 10_000] });
        let details = json!({ "statusCode": 409, "contentType": "application/json", "body": body });
        let error = CallError::execution("HTTP 409: Conflict").with_details(details).with_operation("shop.buy");
        let cut = bounded(error.clone(), 1_000);
        assert!(cut.message().starts_with("HTTP 409: Conflict [cut: the error has "), "{cut}");
        assert_eq!((&cut.details()["statusCode"], &cut.details()["body"]["message"]), (&json!(409), &json!("no")));
        assert_eq!((cut.operation(), cut.code()), (Some("shop.buy"), error.code()));
        for text in ["x", "\"", "\u{1}", "ä", "😀"] {
            let long = text.repeat(5_000);
            for details in [json!(long), json!([long, long]), json!({ "a": long, &long: long, "b": 1 }), json!(null)] {
                for message in ["short", &long] {
                    let error = CallError::new(long.clone(), message.to_owned()).with_details(details.clone());
                    let cut = bounded(error, 2_000);
                    // With the names of its parts.
                    assert!(bytes(&cut) < 2_000 + 50, "{} {cut:?}", bytes(&cut));
                    assert!(cut.message().len() > 50, "{cut:?}");
                    assert_eq!(bounded(cut.clone(), 2_050), cut);
                }
            }
        }
        assert!(bytes(&bounded(CallError::execution("x".repeat(9_000)), 0)) < 200);
    }

    #[test]
    fn what_is_too_deep_is_cut() {
        let error = CallError::execution("no").with_details(json!({ "statusCode": 500, "body": deep(126) }));
        let cut = bounded(error, 10_000);
        assert!(cut.message().starts_with("no [cut: details that are nested"), "{cut}");
        assert_eq!(cut.details()["statusCode"], 500);
        assert!(!is_deeper(cut.details(), DEPTH) && is_deeper(cut.details(), DEPTH - 1));
    }

    #[test]
    fn metadata() {
        let bounds = Bounds::beside(16_384);
        let beside = |key| Beside { operation: "shop.buy", key, tenant: Some("t"), identity: None, retry: None };
        let check = |value: Value, beside| bounds.check(&Map::from_iter([("a".to_owned(), value)]), &beside);
        let of = |value| check(value, beside(None)).map_err(|error| error.to_string());
        assert_eq!(of(json!({ "b": "x".repeat(4_000) })), Ok(()));
        assert!(of(json!({ "b": "x".repeat(4_100) })).unwrap_err().contains("the engine keeps up to 4096"));
        assert_eq!(of(deep(DEPTH)), Ok(()));
        assert!(of(deep(DEPTH + 1)).unwrap_err().contains("nested"));
        // A step has the metadata that its job has added.
        let added = json!({ "b": "x".repeat(4_100) });
        let (of_step, metadata) = (bounds.of_step(), |value: Value| Map::from_iter([("a".to_owned(), value)]));
        assert_eq!(of_step.check(&metadata(added), &beside(None)), Ok(()));
        let error = of_step.check(&metadata(json!("x".repeat(5_200))), &beside(None)).unwrap_err();
        assert!(error.message().ends_with("the engine keeps up to 5120"), "{error}");
        // With what else there is of a job.
        let key = "k".repeat(2_100);
        assert_eq!(check(json!(1), beside(Some(&key))), Ok(()));
        let identity = Identity::new("ann").with_scope(key.clone());
        let retry = RetryPolicy::new(2).with_code(key.clone());
        for more in [
            Beside { operation: &key, ..beside(Some(&key)) },
            Beside { tenant: Some(&key), ..beside(Some(&key)) },
            Beside { identity: Some(&identity), ..beside(Some(&key)) },
            Beside { retry: Some(&retry), ..beside(Some(&key)) },
        ] {
            assert!(check(json!(1), more).unwrap_err().message().contains("together"));
        }
    }
}
