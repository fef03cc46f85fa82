//! Numbers, exact if they are integers, in any notation.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Number, Value};

use crate::model::decimal;

/// A number of a schema or a value; integers compare exactly.
#[derive(Clone, Copy, Debug)]
pub(super) enum Num {
    Int(i128),
    Float(f64),
    /// A draft-4 `exclusiveMinimum: true`, which the original compares as the number 1.
    Bool(bool),
}

impl Num {
    pub(super) fn of(number: &Number) -> Self {
        if let Some(int) = number.as_i64() {
            Num::Int(int.into())
        } else if let Some(int) = number.as_u64() {
            Num::Int(int.into())
        } else {
            let float = number.as_f64().unwrap_or(f64::NAN);
            // `2.0` and `1e3` are integers, too.
            let is_integer = (-BEYOND_I64..BEYOND_U64).contains(&float) && is_whole(number);
            if is_integer { Num::Int(float as i128) } else { Num::Float(float) }
        }
    }

    pub(super) fn from_value(value: &Value) -> Option<Self> {
        value.as_number().map(Num::of)
    }

    pub(super) fn as_f64(self) -> f64 {
        match self {
            Num::Int(int) => int as f64,
            Num::Float(float) => float,
            Num::Bool(flag) => f64::from(u8::from(flag)),
        }
    }

    pub(super) fn compare(self, other: Num) -> Option<Ordering> {
        match (self, other) {
            (Num::Int(a), Num::Int(b)) => Some(a.cmp(&b)),
            (a, b) => a.as_f64().partial_cmp(&b.as_f64()),
        }
    }

    /// True if both are the same number. Whole numbers of up to 64 bits are integers, however they are written.
    pub(super) fn is(self, other: Num) -> bool {
        match (self, other) {
            (Num::Int(a), Num::Int(b)) => a == b,
            (Num::Float(a), Num::Float(b)) => a == b,
            _ => false,
        }
    }

    fn at_least(self, bound: Num) -> bool {
        matches!(self.compare(bound), Some(Ordering::Greater | Ordering::Equal))
    }

    fn above(self, bound: Num) -> bool {
        self.compare(bound) == Some(Ordering::Greater)
    }

    /// True if this is a multiple; `exact` takes the remainder of the doubles, as the original does.
    fn is_multiple_of(self, unit: Num, exact: bool) -> bool {
        if let (Num::Int(value), Num::Int(unit)) = (self, unit) {
            return if unit == 0 { !exact } else { value % unit == 0 };
        }
        let unit = unit.as_f64();
        if exact {
            return self.as_f64() % unit == 0.0;
        }
        // A double does not hold all digits of a large integer.
        match self {
            Num::Int(value) => u64::try_from(value.unsigned_abs()).is_ok_and(|value| decimal::divides(value, unit)),
            value => decimal::is_multiple(value.as_f64(), unit),
        }
    }

    /// The sum of this number and a whole one.
    fn plus(self, whole: i8) -> Num {
        match self {
            Num::Int(int) => int.checked_add(whole.into()).map_or(self, Num::Int),
            other => Num::Float(other.as_f64() + f64::from(whole)),
        }
    }

    fn negated(self) -> Num {
        match self {
            Num::Int(int) => int.checked_neg().map_or(self, Num::Int),
            other => Num::Float(-other.as_f64()),
        }
    }

    /// The least multiple of a unit that is not below this number.
    fn up_to_multiple(self, unit: Num) -> Num {
        match (self, unit) {
            (Num::Int(value), Num::Int(unit)) if unit > 0 => {
                let rest = value.rem_euclid(unit);
                if rest == 0 { self } else { value.checked_add(unit - rest).map_or(self, Num::Int) }
            }
            (value, unit) => Num::Float(decimal::up_to_multiple(value.as_f64(), unit.as_f64())),
        }
    }

    /// The bound as a JSON number, for creating a value.
    pub(super) fn to_value(self) -> Value {
        match self {
            Num::Int(int) => match (i64::try_from(int), u64::try_from(int)) {
                (Ok(int), _) => int.into(),
                (_, Ok(int)) => int.into(),
                _ => 0.into(),
            },
            Num::Float(float) => float.into(),
            Num::Bool(flag) => flag.into(),
        }
    }
}

impl fmt::Display for Num {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Num::Int(int) => int.fmt(out),
            Num::Float(float) => float.fmt(out),
            Num::Bool(flag) => flag.fmt(out),
        }
    }
}

/// True for whole numbers, however they are written.
#[inline]
pub(super) fn is_integral(number: &Number) -> bool {
    !number.is_f64() || is_whole(number)
}

// Not inlined, or the compiler calls `trunc` for each number, whole ones included.
#[cold]
#[inline(never)]
fn is_whole(number: &Number) -> bool {
    number.as_f64().is_some_and(|float| float.is_finite() && float.fract() == 0.0)
}

/// 2^63, the first double that an `i64` does not hold.
const BEYOND_I64: f64 = 9_223_372_036_854_775_808.0;
/// 2^64, the first that a `u64` does not hold.
const BEYOND_U64: f64 = 18_446_744_073_709_551_616.0;

/// `1.0` as `1` if that is the same number, so that it decodes into an integer.
pub(crate) fn integer(number: &Number) -> Option<Number> {
    if !number.is_f64() {
        return None;
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    if float.abs() < BEYOND_I64 {
        return Some(Number::from(float as i64));
    }
    (BEYOND_I64..BEYOND_U64).contains(&float).then(|| Number::from(float as u64))
}

#[derive(Clone, Debug, Default)]
pub(super) struct NumberRules {
    pub(super) minimum: Option<Num>,
    pub(super) maximum: Option<Num>,
    pub(super) above: Option<Num>,
    pub(super) below: Option<Num>,
    pub(super) multiple_of: Vec<Num>,
    /// Remainders as the original computes them.
    pub(super) exact: bool,
}

impl NumberRules {
    pub(super) fn is_empty(&self) -> bool {
        self.minimum.is_none()
            && self.maximum.is_none()
            && self.above.is_none()
            && self.below.is_none()
            && self.multiple_of.is_empty()
    }

    /// The steps of a check: schemas that were merged may have any number of units.
    pub(super) fn steps(&self) -> u64 {
        self.multiple_of.len() as u64 / 4
    }

    pub(super) fn check(&self, number: &Number) -> bool {
        let value = Num::of(number);
        self.below.is_none_or(|bound| bound.above(value))
            && self.above.is_none_or(|bound| value.above(bound))
            && self.maximum.is_none_or(|bound| bound.at_least(value))
            && self.minimum.is_none_or(|bound| value.at_least(bound))
            && self.multiple_of.iter().all(|unit| value.is_multiple_of(*unit, self.exact))
    }

    /// A number that fits: zero or the least if possible; `None` if none is found.
    pub(super) fn create(&self, whole: bool) -> Option<Value> {
        let least = self.minimum.or(self.above);
        let most = self.maximum.or(self.below);
        let middle = least.zip(most).map(|(least, most)| Num::Float(f64::midpoint(least.as_f64(), most.as_f64())));
        let zero = least.is_none().then_some(Num::Int(0));
        let upwards = [zero, self.minimum, self.above.map(|bound| bound.plus(1)), middle];
        let downwards = [self.maximum, self.below.map(|bound| bound.plus(-1))];
        let units = || whole.then_some(Num::Int(1)).into_iter().chain(self.multiple_of.iter().copied());
        let up = |number: Num| units().fold(number, Num::up_to_multiple);
        let down = |number: Num| up(number.negated()).negated();
        let candidates = upwards.into_iter().flatten().map(up).chain(downwards.into_iter().flatten().map(down));
        candidates.map(Num::to_value).find(|value| value.as_number().is_some_and(|number| self.check(number)))
    }

    /// A message for each rule that the number breaks; `name` is `number` or `integer`.
    pub(super) fn violations(&self, number: &Number, name: &str, mut say: impl FnMut(String)) {
        let value = Num::of(number);
        if let Some(bound) = self.below.filter(|bound| !bound.above(value)) {
            say(format!("Expected {name} to be less than {bound}"));
        }
        if let Some(bound) = self.above.filter(|bound| !value.above(*bound)) {
            say(format!("Expected {name} to be greater than {bound}"));
        }
        if let Some(bound) = self.maximum.filter(|bound| !bound.at_least(value)) {
            say(format!("Expected {name} to be less or equal to {bound}"));
        }
        if let Some(bound) = self.minimum.filter(|bound| !value.at_least(*bound)) {
            say(format!("Expected {name} to be greater or equal to {bound}"));
        }
        for unit in &self.multiple_of {
            if !value.is_multiple_of(*unit, self.exact) {
                say(format!("Expected {name} to be a multiple of {unit}"));
            }
        }
    }

    /// Both sets of rules.
    pub(super) fn and(&mut self, other: NumberRules) {
        let tighter = |a: Option<Num>, b: Option<Num>, keep: Ordering| match (a, b) {
            (Some(a), Some(b)) => Some(if b.compare(a) == Some(keep) { b } else { a }),
            (a, b) => a.or(b),
        };
        self.minimum = tighter(self.minimum, other.minimum, Ordering::Greater);
        self.above = tighter(self.above, other.above, Ordering::Greater);
        self.maximum = tighter(self.maximum, other.maximum, Ordering::Less);
        self.below = tighter(self.below, other.below, Ordering::Less);
        self.multiple_of.extend(other.multiple_of);
    }
}
