//! A digest of an input, which does not depend on the order of members.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::model::hex::hex;

/// How deep members and items are looked into. What is deeper counts as its text, with the order of its members.
const DEPTH: usize = 128;

/// The digest of an input: the same for the same JSON, and different for any other.
///
/// It is made of the text, since a [`Value`] has neither integers of more than 64 bits nor values of any depth.
pub(super) fn digest(input: &RawValue) -> String {
    let mut hasher = Sha256::new();
    add(&mut hasher, input.get(), DEPTH);
    hex(hasher.finalize().get(..16).unwrap_or_default())
}

fn add(hasher: &mut Sha256, text: &str, depth: usize) {
    if add_parts(hasher, text, depth).is_none() {
        part(hasher, b'r', text);
    }
}

/// Adds a value by its parts. `None` if it is too deep or cannot be read: then nothing was added.
fn add_parts(hasher: &mut Sha256, text: &str, depth: usize) -> Option<()> {
    match text.as_bytes().first()? {
        b'{' => {
            let below = depth.checked_sub(1)?;
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            start(hasher, b'o', members.len());
            for (name, value) in members {
                part(hasher, b's', &name);
                add(hasher, value.get(), below);
            }
        }
        b'[' => {
            let below = depth.checked_sub(1)?;
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            start(hasher, b'a', items.len());
            items.iter().for_each(|item| add(hasher, item.get(), below));
        }
        _ => match crate::record::from_str::<Value>(text).ok()? {
            Value::String(text) => part(hasher, b's', &text),
            // Short, and never a prefix of another.
            scalar => {
                let shown = scalar.to_string();
                // A number that its `f64` rounds counts as it stands. No other number is shown like that.
                let is_exact = !scalar.is_number() || shown == text || decimal(&shown) == decimal(text);
                part(hasher, b'v', if is_exact { &shown } else { text });
            }
        },
    }
    Some(())
}

/// The sign of a number, its significant digits, and the exponent of the last of them.
fn decimal(number: &str) -> Option<(bool, String, i64)> {
    let digits = number.strip_prefix('-');
    let (is_negative, number) = (digits.is_some(), digits.unwrap_or(number));
    let (digits, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_end_matches('0');
    let zeros = i64::try_from(all.len().checked_sub(digits.len())?).ok()?;
    let exponent =
        exponent.parse::<i64>().ok()?.checked_add(zeros)?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let digits = digits.trim_start_matches('0');
    Some((is_negative, digits.to_owned(), if digits.is_empty() { 0 } else { exponent }))
}

fn part(hasher: &mut Sha256, kind: u8, text: &str) {
    start(hasher, kind, text.len());
    hasher.update(text);
}

fn start(hasher: &mut Sha256, kind: u8, length: usize) {
    hasher.update([kind]);
    hasher.update((length as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn of(value: Value) -> String {
        digest(&to_raw_value(&value).unwrap())
    }

    fn of_text(text: &str) -> String {
        digest(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn digests() {
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

    /// Jobs that are stored have these digests.
    #[test]
    fn digests_stay_the_same() {
        for (text, expected) in [
            (
                r#"{"b": [1, -2, 0.1, 1e300], "a": {"text": "\u00e4\n", "no": null, "yes": true}, "u": 18446744073709551615}"#,
                "fddfac21cf595e327d6e79d75a02bfd3",
            ),
            // The same number in other words.
            (r#"{"ratio":100000.0}"#, "e151b91f8512f6c73d0e7414934c30df"),
            (r#"{"ratio":1E+5}"#, "e151b91f8512f6c73d0e7414934c30df"),
            (r#"{"ratio":0.0010e8}"#, "e151b91f8512f6c73d0e7414934c30df"),
            (r#"{"big":18446744073709552000}"#, "d58e731d67fddee36342f627dc4be9ee"),
            // The last one counts.
            (r#"{"ratio":1,"ratio":1e5}"#, "e151b91f8512f6c73d0e7414934c30df"),
        ] {
            assert_eq!(of_text(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_are_told_apart() {
        let texts = [
            "18446744073709551616",
            "18446744073709551617",
            "18446744073709551618",
            "-18446744073709551617",
            "340282366920938463463374607431768211455",
            "340282366920938463463374607431768211454",
            "0.1",
            "0.1000000000000000055",
            "1e400",
            "1e401",
            "0",
            "0.0",
            "-0.0",
        ];
        for (number, text) in texts.iter().enumerate() {
            assert_eq!(of_text(&format!(r#"{{"b":1,"a":{text}}}"#)), of_text(&format!(r#"{{"a":{text},"b":1}}"#)));
            for other in texts.iter().skip(number + 1) {
                assert_ne!(of_text(text), of_text(other), "{text} {other}");
            }
        }
    }

    #[test]
    fn values_of_any_depth_are_told_apart() {
        for depth in [1, 127, 128, 129, 500, 50_000] {
            let nested = |inner: &str| format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth));
            assert_ne!(of_text(&nested("1")), of_text(&nested("2")), "{depth}");
            assert_eq!(of_text(&nested("1")), of_text(&nested("1")), "{depth}");
        }
        // Below that, the order of members counts.
        let nested = |depth: usize, inner: &str| of_text(&format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth)));
        let [one, other] = [r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#];
        assert_eq!(nested(127, one), nested(127, other));
        assert_ne!(nested(128, one), nested(128, other));
    }

    /// A part that no reader takes is told apart, too.
    #[test]
    fn texts_that_are_no_values() {
        assert_ne!(of_text(r#"{"a":"\ud800"}"#), of_text(r#"{"a":"\ud801"}"#));
        assert_ne!(of_text(r#"{"a":"\ud800"}"#), of_text(r#"{"a":"\\ud800"}"#));
    }
}
