//! Equality of JSON values: numbers as numbers, objects without regard to order.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use serde_json::Value;

use super::budget::Budget;
use super::number::Num;

/// How deep values are compared, hashed and copied.
pub(super) const MAX_VALUE_DEPTH: u32 = 256;

/// True if two values are the same JSON value; false if they are nested too deeply.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    equal_at(a, b, MAX_VALUE_DEPTH)
}

fn equal_at(a: &Value, b: &Value, depth: u32) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Num::of(a).is(Num::of(b)),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_at(a, b, depth)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal_at(a, b, depth)))
        }
        (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => false,
        (a, b) => a == b,
    }
}

fn hash(value: &Value, state: &RandomState, depth: u32) -> u64 {
    let mut hasher = state.build_hasher();
    match value {
        Value::Null => 0u8.hash(&mut hasher),
        Value::Bool(flag) => flag.hash(&mut hasher),
        // 1 and 1.0 are equal; -0.0 and 0 too. Large integers that lie close together are one and the same double.
        Value::Number(number) => match Num::of(number) {
            Num::Int(int) => int.hash(&mut hasher),
            other => other.as_f64().to_bits().hash(&mut hasher),
        },
        Value::String(text) => text.hash(&mut hasher),
        Value::Array(_) | Value::Object(_) if depth == 0 => {}
        Value::Array(items) => items.iter().for_each(|item| hasher.write_u64(hash(item, state, depth - 1))),
        Value::Object(map) => {
            let sum = map
                .iter()
                .fold(0u64, |sum, (key, value)| sum.wrapping_add(state.hash_one((key, hash(value, state, depth - 1)))));
            hasher.write_u64(sum);
        }
    }
    hasher.finish()
}

/// The positions of the elements that equal an earlier one; only scalars if `scalars`.
pub(super) fn repeated(items: &[Value], scalars: bool) -> Vec<usize> {
    let state = RandomState::new();
    let mut seen: HashMap<u64, Vec<&Value>> = HashMap::new();
    let mut repeated = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if scalars && matches!(item, Value::Array(_) | Value::Object(_)) {
            continue;
        }
        let same = seen.entry(hash(item, &state, MAX_VALUE_DEPTH)).or_default();
        if same.iter().any(|other| equal(item, other)) {
            repeated.push(index);
        } else {
            same.push(item);
        }
    }
    repeated
}

/// True if no element equals another; false, too, if there are not enough steps to find out.
pub(super) fn distinct(items: &[Value], budget: &Budget) -> bool {
    let pays = || budget.spend(items.iter().map(weight).sum::<usize>() as u64 / 4);
    !budget.is_dry() && pays() && repeated(items, false).is_empty()
}

/// A copy, or `None` if the value is nested too deeply to be copied.
pub(crate) fn copy(value: &Value) -> Option<Value> {
    copy_at(value, MAX_VALUE_DEPTH)
}

fn copy_at(value: &Value, depth: u32) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    Some(match value {
        Value::Array(items) => items.iter().map(|item| copy_at(item, depth)).collect::<Option<_>>()?,
        Value::Object(map) => Value::Object(
            map.iter().map(|(key, value)| Some((key.clone(), copy_at(value, depth)?))).collect::<Option<_>>()?,
        ),
        scalar => scalar.clone(),
    })
}

/// About how much memory a value takes, in units of a scalar.
pub(super) fn weight(value: &Value) -> usize {
    let mut weight = 0;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        weight += 1;
        match value {
            Value::String(text) => weight += text.len() / 32,
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.values()),
            _ => {}
        }
    }
    weight
}

/// Drops a value without recursing further than values are parsed.
pub(super) fn discard(value: Value) {
    discard_at(value, MAX_VALUE_DEPTH / 2);
}

fn discard_at(value: Value, depth: u32) {
    let Some(depth) = depth.checked_sub(1) else { return dismantle(value) };
    match value {
        Value::Array(items) => items.into_iter().for_each(|item| discard_at(item, depth)),
        Value::Object(map) => map.into_iter().for_each(|(_, value)| discard_at(value, depth)),
        _ => {}
    }
}

fn dismantle(value: Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn large_integers_differ_in_their_hashes() {
        let state = RandomState::new();
        let hashes: HashSet<u64> = (0..1000).map(|id| hash(&json!((1_u64 << 63) + id), &state, 1)).collect();
        assert_eq!(hashes.len(), 1000);
    }

    #[test]
    fn equal_numbers_have_one_hash() {
        let state = RandomState::new();
        let numbers =
            ["0", "-0", "-0.0", "1", "1.0", "10e-1", "18446744073709551615", "18446744073709551616", "2e19", "0.5"];
        let numbers: Vec<Value> = numbers.iter().map(|number| serde_json::from_str(number).unwrap()).collect();
        for (at, one) in numbers.iter().enumerate() {
            for (other_at, other) in numbers.iter().enumerate() {
                let group = |at: usize| [0, 0, 0, 1, 1, 1, 2, 3, 4, 5].get(at).copied();
                assert_eq!(equal(one, other), group(at) == group(other_at), "{one} and {other}");
                assert_eq!(
                    hash(one, &state, 1) == hash(other, &state, 1),
                    group(at) == group(other_at),
                    "{one}, {other}"
                );
            }
        }
    }
}
