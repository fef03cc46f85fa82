//! A digest of an input, which does not depend on the order of members.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::model::hex::hex;

/// The digest of a value: the same for values that are the same JSON.
pub(super) fn digest(value: &Value) -> String {
    let mut hasher = Sha256::new();
    add(&mut hasher, value);
    hex(hasher.finalize().get(..16).unwrap_or_default())
}

fn add(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            start(hasher, b'o', members.len());
            for (name, value) in members {
                start(hasher, b's', name.len());
                hasher.update(name);
                add(hasher, value);
            }
        }
        Value::Array(items) => {
            start(hasher, b'a', items.len());
            items.iter().for_each(|item| add(hasher, item));
        }
        Value::String(text) => {
            start(hasher, b's', text.len());
            hasher.update(text);
        }
        // Short, and never a prefix of another.
        scalar => {
            let text = scalar.to_string();
            start(hasher, b'v', text.len());
            hasher.update(text);
        }
    }
}

fn start(hasher: &mut Sha256, kind: u8, length: usize) {
    hasher.update([kind]);
    hasher.update((length as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn digests() {
        let of = |value: Value| digest(&value);
        assert_eq!(of(json!({ "a": 1, "b": [2] })), of(json!({ "b": [2], "a": 1 })));
        for (a, b) in [
            (json!({ "a": 1 }), json!({ "a": "1" })),
            (json!(["a", "b"]), json!(["ab"])),
            (json!([["a"], "b"]), json!([["a", "b"]])),
            (json!(null), json!("null")),
            (json!({}), json!([])),
        ] {
            assert_ne!(of(a.clone()), of(b.clone()), "{a} {b}");
        }
    }
}
