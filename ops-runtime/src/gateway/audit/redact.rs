//! Removes what looks like a secret from inputs.

use serde_json::Value;

use crate::model::secrets::NAMES;

/// The replacement for a secret.
const REDACTED: &str = "[redacted]";

/// Members that contain the name of another member, as in `{ "name": "Authorization", "value": ".." }`.
const NAMING: [&str; 4] = ["name", "key", "header", "field"];

/// Members that contain the value for such a name.
const HOLDING: [&str; 4] = ["value", "values", "content", "data"];

/// How deep an input is searched; deeper values are left out.
const MAX_DEPTH: usize = 64;

/// How inputs are written to the audit log.
///
/// A member is replaced (`"[redacted]"`) if its name contains one of these words, in any case and with any separators:
/// `password`, `passwd`, `passphrase`, `secret`, `token`, `key`, `authorization`, `credential`, `cookie`, `session`,
/// `bearer`. So is the value in a pair of such a name and a value, and a text that begins with `Bearer` or `Basic`.
/// Other texts are written unchanged.
///
/// ```
/// use ops_runtime::gateway::AuditInputs;
/// use serde_json::json;
///
/// let inputs = AuditInputs::new().with_redacted(["iban"]);
/// let input = json!({ "to": "ann", "IBAN": "DE89..", "apiKey": "k3y", "auth": "Bearer t0k3n" });
/// let expected = json!({ "to": "ann", "IBAN": "[redacted]", "apiKey": "[redacted]", "auth": "[redacted]" });
/// assert_eq!(inputs.redact(&input), expected);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditInputs {
    /// The size of the longest input that is written, as JSON in bytes. Of a longer one, only the size is written. The
    /// contents of files do not count, since they are not written.
    pub max_bytes: usize,
    names: Vec<String>,
}

impl Default for AuditInputs {
    /// Inputs of up to 4 KiB.
    fn default() -> Self {
        Self { max_bytes: 4_096, names: NAMES.map(str::to_owned).to_vec() }
    }
}

impl AuditInputs {
    /// The default options, which write inputs of up to 4 KiB.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the size of the longest input that is written, as JSON in bytes.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Also redacts members whose names contain one of these words.
    #[must_use]
    pub fn with_redacted<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names.extend(names.into_iter().map(|name| plain(name.as_ref())).filter(|name| !name.is_empty()));
        self
    }

    /// The value without what looks like a secret.
    pub fn redact(&self, value: &Value) -> Value {
        self.value(value, MAX_DEPTH)
    }

    fn value(&self, value: &Value, depth: usize) -> Value {
        let Some(deeper) = depth.checked_sub(1) else { return REDACTED.into() };
        match value {
            Value::String(text) if is_authorization(text) => REDACTED.into(),
            Value::Array(items) => {
                // A pair, as in a list of headers.
                if let [Value::String(name), _] = items.as_slice()
                    && self.is_secret(name)
                {
                    return Value::Array(vec![name.as_str().into(), REDACTED.into()]);
                }
                items.iter().map(|item| self.value(item, deeper)).collect()
            }
            Value::Object(members) => {
                let named =
                    |name: &str| members.get(name).and_then(Value::as_str).is_some_and(|name| self.is_secret(name));
                let is_pair = NAMING.iter().any(|name| named(name));
                let shown = members.iter().map(|(name, value)| {
                    let is_secret = self.is_secret(name) || (is_pair && HOLDING.contains(&name.as_str()));
                    (name.clone(), if is_secret { REDACTED.into() } else { self.value(value, deeper) })
                });
                Value::Object(shown.collect())
            }
            other => other.clone(),
        }
    }

    fn is_secret(&self, name: &str) -> bool {
        let name = plain(name);
        self.names.iter().any(|secret| name.contains(secret.as_str()))
    }
}

/// A name in lower case without separators.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// True for credentials in the form of a header.
fn is_authorization(text: &str) -> bool {
    let scheme = text.trim_start().split(' ').next().unwrap_or_default();
    text.contains(' ') && ["bearer", "basic"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_left_out() {
        let x = "[redacted]";
        let table = [
            (json!({ "PASSWORD": "a", "x": 1 }), json!({ "PASSWORD": x, "x": 1 })),
            (json!({ "user_pass-word": 1 }), json!({ "user_pass-word": x })),
            (json!({ "accessToken": { "deep": ["a"] } }), json!({ "accessToken": x })),
            (json!({ "a": [{ "b": { "X-Api-Key": null } }] }), json!({ "a": [{ "b": { "X-Api-Key": x } }] })),
            (json!({ "ＴＯＫＥＮ": "a" }), json!({ "ＴＯＫＥＮ": "a" })),
            (json!(["Authorization", "abc"]), json!(["Authorization", x])),
            (json!([["cookie", { "a": 1 }], ["Accept", "b"]]), json!([["cookie", x], ["Accept", "b"]])),
            (
                json!({ "headers": [{ "name": "Authorization", "value": "abc" }, { "name": "Accept", "value": "b" }] }),
                json!({ "headers": [{ "name": "Authorization", "value": x }, { "name": "Accept", "value": "b" }] }),
            ),
            (json!({ "value": 1, "key": "secret" }), json!({ "value": x, "key": x })),
            (json!({ "name": "Secret Garden", "price": 5 }), json!({ "name": "Secret Garden", "price": 5 })),
            (json!({ "auth": "bEARER abc" }), json!({ "auth": x })),
            (json!(" Basic dTpw"), json!(x)),
            (json!("Basics"), json!("Basics")),
            (json!({ "text": "the bearer of news" }), json!({ "text": "the bearer of news" })),
            (json!(null), json!(null)),
        ];
        for (input, expected) in table {
            assert_eq!(AuditInputs::new().redact(&input), expected, "{input}");
        }
        let own = AuditInputs::new().with_redacted(["Tax_Id", "", "-"]);
        assert_eq!(own.redact(&json!({ "myTaxID": 7, "id": 8 })), json!({ "myTaxID": x, "id": 8 }));
    }

    #[test]
    fn depth_is_bounded() {
        let deep = (0..1_000).fold(json!({ "password": "hush" }), |inner, _| json!([inner, 1, 2]));
        let shown = AuditInputs::new().redact(&deep).to_string();
        assert!(shown.contains("[redacted]") && !shown.contains("hush") && shown.len() < 1_000);
    }
}
