//! The length of values as JSON, without writing them.

use serde_json::Value;

/// The length of a value as JSON text in bytes; `None` if it is above `limit`. Work and memory are bounded by the
/// limit.
pub(super) fn size_of(value: &Value, limit: usize) -> Option<usize> {
    let mut size = 0_usize;
    // A list, since recursion could go as deep as the limit.
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        let own = match value {
            Value::Null | Value::Bool(true) => 4,
            Value::Bool(false) => 5,
            Value::Number(number) => number.to_string().len(),
            Value::String(text) => size_of_text(text, limit.saturating_sub(size)),
            Value::Array(items) => around(items.len()),
            Value::Object(members) => around(members.len()).saturating_add(members.len()),
        };
        size = size.saturating_add(own);
        if size > limit {
            return None;
        }
        match value {
            // Each takes a byte at least, so that no more than the limit are pending.
            Value::Array(items) if items.len() <= limit - size => pending.extend(items),
            Value::Object(members) if members.len() <= limit - size => {
                for (name, value) in members {
                    size = size.saturating_add(size_of_text(name, limit.saturating_sub(size)));
                    pending.push(value);
                }
            }
            Value::Array(_) | Value::Object(_) => return None,
            _ => {}
        }
    }
    Some(size).filter(|size| *size <= limit)
}

/// The brackets, and the commas between so many items.
fn around(items: usize) -> usize {
    items.saturating_sub(1).saturating_add(2)
}

/// The length of a text as JSON, with its quotes; more than `limit` if it is longer.
pub(super) fn size_of_text(text: &str, limit: usize) -> usize {
    if text.len() > limit {
        return text.len().saturating_add(2);
    }
    text.bytes().map(size_of_byte).sum::<usize>().saturating_add(2)
}

/// The length of a byte of a text as JSON.
pub(super) fn size_of_byte(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | 0x08 | 0x09 | 0x0a | 0x0c | 0x0d => 2,
        0..=0x1f => 6,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::json::weight_of;

    #[test]
    fn sizes_are_those_of_the_text() {
        let controls: String = (0..0x80).filter_map(char::from_u32).collect();
        let values = [
            json!(null),
            json!([true, false]),
            json!([0, -1, 1.5, 1e300, u64::MAX, i64::MIN, 0.1]),
            json!({}),
            json!([]),
            json!([[], {}, [[]], ""]),
            json!({ "a": 1, "b\"\n": [1, { "": "grüß \u{2028} 😀" }] }),
            json!({ controls.clone(): controls }),
        ];
        for value in values {
            let size = value.to_string().len();
            assert_eq!(size_of(&value, usize::MAX), Some(size), "{value}");
            assert_eq!(size_of(&value, size), Some(size), "{value}");
            for limit in 0..size {
                assert_eq!(size_of(&value, limit), None, "{value} within {limit}");
            }
        }
    }

    #[test]
    fn depth_and_width_do_no_harm() {
        let deep = (0..10_000).fold(json!(1), |inner, _| Value::from(vec![inner]));
        assert_eq!(size_of(&deep, 30_000), Some(20_001));
        assert_eq!(size_of(&deep, 20_000), None);
        assert!(weight_of(&deep) > 20_001);
        // Dropping it would go as deep as it is.
        std::mem::forget(deep);
        let wide = Value::from(vec![0; 100_000]);
        assert_eq!(size_of(&wide, 1_000), None);
        // Memory is not less than the text.
        assert!(weight_of(&wide) > 200_001);
    }
}
