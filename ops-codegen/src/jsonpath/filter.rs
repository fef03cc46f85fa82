//! Filters of queries (RFC 9535, section 2.3.5), and their functions.

use std::cmp::Ordering;

use regex_lite::{Regex, RegexBuilder};
use serde_json::{Number, Value};

use super::evaluate::Steps;
use super::query::Operator;

/// How many bytes a compiled regular expression may have.
const MAX_REGEX: usize = 1 << 16;

/// A regular expression of RFC 9485.
pub(super) fn pattern(text: &str, is_whole: bool) -> Result<Regex, String> {
    // There, a dot is any character but the ends of lines, `\n` and `\r` (section 5.3).
    let (mut out, mut in_class) = (String::with_capacity(text.len() + 8), false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                out.push(c);
                out.extend(chars.next());
                continue;
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '.' if !in_class => {
                out.push_str("[^\\n\\r]");
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    let out = if is_whole { format!("^(?:{out})$") } else { out };
    let built = RegexBuilder::new(&out).size_limit(MAX_REGEX).build();
    built.map_err(|error| format!("`{text}` is no regular expression that is known here: {error}"))
}

/// The result of a comparison; `None` stands for nothing. The steps are spent by the sizes.
pub(super) fn compare(
    left: Option<&Value>,
    operator: Operator,
    right: Option<&Value>,
    steps: &mut Steps,
) -> Option<bool> {
    let equal = |steps: &mut Steps| match (left, right) {
        (Some(left), Some(right)) => is_equal(left, right, steps),
        (left, right) => Some(left.is_none() && right.is_none()),
    };
    let order = match (left, right) {
        (Some(Value::Number(left)), Some(Value::Number(right))) => order(left, right),
        (Some(Value::String(left)), Some(Value::String(right))) => Some(left.cmp(right)),
        _ => None,
    };
    Some(match operator {
        Operator::Equal => equal(steps)?,
        Operator::Unequal => !equal(steps)?,
        Operator::Less => order == Some(Ordering::Less),
        Operator::Greater => order == Some(Ordering::Greater),
        Operator::AtMost => order == Some(Ordering::Less) || equal(steps)?,
        Operator::AtLeast => order == Some(Ordering::Greater) || equal(steps)?,
    })
}

fn is_equal(left: &Value, right: &Value, steps: &mut Steps) -> Option<bool> {
    steps.spend(1)?;
    Some(match (left, right) {
        (Value::Number(left), Value::Number(right)) => order(left, right) == Some(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => {
            let mut equal = left.len() == right.len();
            for (left, right) in left.iter().zip(right) {
                equal = equal && is_equal(left, right, steps)?;
            }
            equal
        }
        (Value::Object(left), Value::Object(right)) => {
            let mut equal = left.len() == right.len();
            for (key, left) in left {
                equal = equal
                    && match right.get(key) {
                        Some(right) => is_equal(left, right, steps)?,
                        None => false,
                    };
            }
            equal
        }
        (left, right) => {
            steps.spend(left.as_str().map_or(0, str::len) / 64)?;
            left == right
        }
    })
}

fn order(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}
