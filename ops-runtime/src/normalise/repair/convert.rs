//! Conversions that lose nothing: the same value, rewritten as the schema asks.
//!
//! The documentation of the module [`normalise`](crate::normalise) lists them, with the reasons.

use serde_json::{Map, Number, Value};

use super::{Fixer, Strip, has_nothing_of, kind};
use crate::normalise::equal::discard;
use crate::normalise::findings::Change;
use crate::normalise::node::{ARRAY, ArrayRules, At, BOOLEAN, Kind, NUMBER, OBJECT, STRING, Types};
use crate::normalise::path::Path;

impl<'a> Fixer<'_, 'a> {
    /// Rewrites a value as its schema asks, if nothing is lost; otherwise it stays unchanged, and is reported.
    pub(super) fn convert(
        &mut self,
        at: At<'a>,
        value: &mut Value,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        let types = self.checker.types(at, 0);
        let expected = self.checker.expectation(at, Some(value));
        // If the kind is right, rewriting the value does not help.
        if types.admits(value) || !self.checker.enter(depth) {
            return self.keep(path, &expected, Some(value));
        }
        let found = kind(Some(value));
        let Some(converted) = self.converted(at, types, value, path.is_root(), depth) else {
            return self.keep(path, &expected, Some(value));
        };
        self.note(path, || expected, found, Change::Converted);
        discard(std::mem::replace(value, converted));
        self.fix(at, value, path, strip, depth + 1)
    }

    /// The same value as one of the types, preferably one that conforms completely.
    fn converted(&self, at: At<'a>, types: Types, value: &mut Value, is_root: bool, depth: u32) -> Option<Value> {
        let scalars: Vec<Value> = scalars(types, value).into_iter().flatten().collect();
        let conforming = scalars.iter().position(|scalar| self.checker.check(at, scalar, depth + 1));
        if let Some(scalar) = scalars.into_iter().nth(conforming.unwrap_or(0)) {
            return Some(scalar);
        }
        if is_root {
            return None;
        }
        match value {
            Value::Array(items) if items.is_empty() && types.has(OBJECT) => Some(Value::Object(Map::new())),
            Value::Object(map) if map.is_empty() && types.has(ARRAY) => Some(Value::Array(Vec::new())),
            Value::Null => None,
            value if types.has(ARRAY) && self.is_item(at, value) => Some(Value::Array(vec![value.take()])),
            _ => None,
        }
        .filter(|empty| match empty {
            Value::Array(items) if !items.is_empty() => true,
            empty => self.checker.check(at, empty, depth + 1),
        })
    }

    /// True if a value is certainly an item of a list, and may be the only one.
    ///
    /// An empty text may stand for no list, as may a flag, such as `false` or `0`, that is no item as it is. `1` is a flag
    /// only if it would become a boolean. An object that has nothing of an item holds several by their numbers, or an error.
    fn is_item(&self, at: At<'a>, value: &Value) -> bool {
        if value.as_str().is_some_and(str::is_empty) {
            return false;
        }
        let Some((at, rules)) = self.list(at) else { return false };
        let Some(rules) = rules else { return true };
        let one = !rules.exact && rules.min.is_none_or(|min| min <= 1) && rules.limit().is_none_or(|limit| limit > 0);
        let is_flag = |types: Types| match value.as_u64() {
            Some(bit) => bit == 0 || bit == 1 && !types.has(STRING),
            None => value.is_boolean(),
        };
        let converts = |types| !is_flag(types) && scalars(types, value).iter().any(Option::is_some);
        let of_kind = |types: Types| types.admits(value) || converts(types);
        let is_one = |item: At<'a>| match value {
            Value::Object(map) => self.found(|fixer| has_nothing_of(fixer.checker, item, map)) == Some(false),
            _ => true,
        };
        let is_item = |node| of_kind(self.checker.types(at.to(node), 0)) && is_one(at.to(node));
        one && rules.item(0).is_none_or(is_item)
    }

    /// The single schema behind a node that accepts lists, and its rules.
    fn list(&self, at: At<'a>) -> Option<(At<'a>, Option<&'a ArrayRules>)> {
        let at = self.checker.follow(at)?;
        match &at.node.kind {
            Kind::Plain(types) if types.has(ARRAY) => Some((at, None)),
            Kind::Typed(typed) if typed.types.has(ARRAY) => Some((at, typed.array.as_ref())),
            Kind::Union(union) => {
                let mut lists = union.variants.iter().filter_map(|node| {
                    let at = self.checker.follow(at.to(node))?;
                    match &at.node.kind {
                        Kind::Plain(types) if types.has(ARRAY) => Some((at, None)),
                        Kind::Typed(typed) if typed.types.has(ARRAY) => Some((at, typed.array.as_ref())),
                        _ => None,
                    }
                });
                lists.next().filter(|_| lists.next().is_none())
            }
            _ => None,
        }
    }
}

/// Up to here, a float holds all whole numbers: 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// A float is what was written if its shortest decimal has no more digits: of more, some may be lost.
const EXACT_DIGITS: usize = 15;

/// The other notations of a scalar, as the requested types.
fn scalars(types: Types, value: &Value) -> [Option<Value>; 2] {
    let found = match value {
        Value::String(text) => {
            let number = if types.has(NUMBER) { number(text).map(Value::Number) } else { None };
            let boolean = match text.as_str() {
                "true" if types.has(BOOLEAN) => Some(Value::Bool(true)),
                "false" if types.has(BOOLEAN) => Some(Value::Bool(false)),
                _ => None,
            };
            [number, boolean]
        }
        Value::Number(number) => {
            let text = if types.has(STRING) { text(number).map(Value::String) } else { None };
            let boolean = match number.as_u64() {
                Some(bit @ 0..=1) if types.has(BOOLEAN) && text.is_none() => Some(Value::Bool(bit == 1)),
                _ => None,
            };
            [text, boolean]
        }
        Value::Bool(flag) => [types.has(STRING).then(|| Value::String(flag.to_string())), None],
        _ => [None, None],
    };
    found.map(|scalar| scalar.filter(|scalar| types.admits(scalar)))
}

/// The text of a number, without an exponent; `None` if it may have come with other digits.
fn text(number: &Number) -> Option<String> {
    let text = number.to_string();
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return Some(text) };
    // `-0` is read as a float, too.
    if float == 0.0 && float.is_sign_negative() {
        return Some("-0".to_owned());
    }
    let is_exact = float.abs() < EXACT && digits(&text).1.len() <= EXACT_DIGITS;
    // Not all that read decimals take `1e-7`.
    is_exact.then(|| if text.contains('e') { float.to_string() } else { text })
}

/// The number in a text; `None` if the text is more than the number.
fn number(text: &str) -> Option<Number> {
    // No number in use is longer, and JSON numbers cannot hold more.
    if text.len() > 40 || !text.ends_with(|last: char| last.is_ascii_digit()) {
        return None;
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
        return None;
    }
    let number: Number = serde_json::from_str(text).ok()?;
    if number.is_i64() || number.is_u64() {
        return Some(number);
    }
    let float: f64 = text.parse().ok()?;
    let written = Number::from_f64(float)?;
    (digits(text) == digits(&written.to_string())).then_some(written)
}

/// The digits of a number without zeros around them, and the power of ten of the last one.
fn digits(text: &str) -> (bool, String, i32) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.trim_start_matches('+').parse().unwrap_or(i32::MAX / 2);
    let negative = mantissa.starts_with('-');
    let (whole, fraction) = mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.trim_start_matches('-');
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0').trim_end_matches('0').to_owned();
    if significant.is_empty() {
        return (negative, significant, 0);
    }
    let dropped = all.len() - all.trim_end_matches('0').len();
    let scale = |length: usize| i32::try_from(length).unwrap_or(i32::MAX / 4);
    (negative, significant, exponent.saturating_sub(scale(fraction.len())).saturating_add(scale(dropped)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_its_text_if_it_holds_all_digits() {
        for (number, expected) in [
            ("7", Some("7")),
            ("18446744073709551615", Some("18446744073709551615")),
            ("-1.50", Some("-1.5")),
            ("-0", Some("-0")),
            ("-0.0", Some("-0")),
            ("0.000123456789012345", Some("0.000123456789012345")),
            ("123456789.012345", Some("123456789.012345")),
            ("0.0000001", Some("0.0000001")),
            ("-2.5e-12", Some("-0.0000000000025")),
            ("1e3", Some("1000.0")),
            ("0.1234567890123456", None),
            ("0.1234567890123456789", None),
            ("12345678901234567890123", None),
        ] {
            let number: Number = serde_json::from_str(number).unwrap();
            assert_eq!(text(&number).as_deref(), expected, "{number}");
        }
    }

    #[test]
    fn a_text_is_a_number_if_the_number_is_all_of_it() {
        let cases = [
            ("7", Some("7")),
            ("-7", Some("-7")),
            ("0", Some("0")),
            ("18446744073709551615", Some("18446744073709551615")),
            ("1.5", Some("1.5")),
            ("1.50", Some("1.5")),
            ("1e3", Some("1000.0")),
            ("12.0", Some("12.0")),
            ("0.1", Some("0.1")),
            ("-0.25e-3", Some("-0.00025")),
            // More digits than a number can hold.
            ("18446744073709551616", None),
            ("0.12345678901234567891", None),
            ("1e400", None),
            // Identifiers, and texts that are not JSON numbers.
            ("007", None),
            ("+7", None),
            (" 7", None),
            ("7 ", None),
            ("1.", None),
            (".5", None),
            ("0x10", None),
            ("", None),
            ("NaN", None),
            ("1,5", None),
        ];
        for (text, expected) in cases {
            assert_eq!(number(text).map(|number| number.to_string()).as_deref(), expected, "{text:?}");
        }
    }
}
