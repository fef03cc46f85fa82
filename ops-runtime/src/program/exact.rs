//! Whole numbers that JavaScript's numbers cannot represent exactly. Between the host and a program they are strings
//! with a marked prefix.

use serde_json::{Number, Value};

use crate::model::random;

/// The largest number up to which JavaScript's numbers represent every whole number unambiguously.
const SAFE: u64 = (1 << 53) - 1;

/// The mark of one run: random, so that no string in a document can be made to begin with it.
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn new() -> Self {
        Self(format!("{:016x}:", random::number()))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// The value with such numbers replaced by marked strings; `None` if it has none.
    pub(super) fn put(&self, value: &Value) -> Option<Value> {
        let mut pending = vec![value];
        let mut has_one = false;
        while let Some(value) = pending.pop() {
            match value {
                Value::Number(number) => has_one |= is_beyond(number),
                Value::Array(items) => pending.extend(items),
                Value::Object(members) => pending.extend(members.values()),
                _ => {}
            }
        }
        has_one.then(|| {
            let mut marked = value.clone();
            each(&mut marked, |value| {
                if let Value::Number(number) = value
                    && is_beyond(number)
                {
                    *value = Value::String(format!("{}{number}", self.0));
                }
            });
            marked
        })
    }

    /// Replaces marked strings by the numbers.
    pub(super) fn take(&self, value: &mut Value) {
        each(value, |value| {
            let digits = value.as_str().and_then(|text| text.strip_prefix(self.0.as_str()));
            let number = digits.and_then(|digits| {
                digits.parse::<i64>().map(Number::from).or_else(|_| digits.parse::<u64>().map(Number::from)).ok()
            });
            if let Some(number) = number {
                *value = Value::Number(number);
            }
        });
    }
}

fn is_beyond(number: &Number) -> bool {
    number.as_i64().map(i64::unsigned_abs).or_else(|| number.as_u64()).is_some_and(|size| size > SAFE)
}

/// Changes each part of a value that is neither a list nor an object. Uses a list, since a value may be deeply nested.
fn each(value: &mut Value, mut change: impl FnMut(&mut Value)) {
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => pending.extend(members.values_mut()),
            scalar => change(scalar),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_marked_comes_back() {
        let mark = Mark::new();
        for (value, marked) in [
            (json!([9_007_199_254_740_992_i64, { "a": [u64::MAX, i64::MIN, -1] }]), 3),
            (json!({ "a": 9_007_199_254_740_991_i64, "b": 1e300, "c": "9007199254740993", "d": null }), 0),
        ] {
            let put = mark.put(&value);
            assert_eq!(put.as_ref().map_or(0, |put| put.to_string().matches(mark.text()).count()), marked);
            let mut back = put.unwrap_or_else(|| value.clone());
            mark.take(&mut back);
            assert_eq!(back, value);
        }
        let forged = json!(format!("{}x", mark.text()));
        let mut same = forged.clone();
        mark.take(&mut same);
        assert_eq!(same, forged);
    }
}
