//! Multiples of a number as it is written: 0.3 is a multiple of 0.1, though the doubles nearest to them are not.
//!
//! JSON Schema speaks of the numbers of JSON, which are decimal (Validation, section 6.2.1: `multipleOf` holds if the
//! division gives an integer). A double stands here for the shortest decimal that is read as that double, which is what was
//! written wherever that had no more than 15 digits. So no tolerance is needed, which would take 0.9999999999999998 for a
//! multiple of 0.25.

/// A finite number of 0 or more as `digits * 10^exponent`, with no more than 20 digits; a double has at most 17.
#[derive(Clone, Copy)]
struct Decimal {
    digits: u64,
    exponent: i32,
}

impl Decimal {
    /// The shortest decimal that is read as the absolute value of this double; `None` if it is not finite.
    fn of(float: f64) -> Option<Self> {
        let written = format!("{:e}", float.abs());
        let (mantissa, exponent) = written.split_once('e')?;
        let exponent: i32 = exponent.parse().ok()?;
        let (whole, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{rest}").parse().ok()?;
        Some(Self { digits, exponent: exponent - i32::try_from(rest.len()).ok()? })
    }

    /// True if this divided by `unit` is a whole number; false if `unit` is 0.
    fn is_multiple_of(self, unit: Self) -> bool {
        if unit.digits == 0 {
            return false;
        }
        let shift = self.exponent - unit.exponent;
        if shift >= 0 {
            // Factors below 10^18 each: their product fits. By squares, as a hostile value may be shifted by 600 digits.
            let modulus = u128::from(unit.digits);
            let (mut rest, mut power, mut left) = (u128::from(self.digits) % modulus, 10 % modulus, shift);
            while left > 0 && rest > 0 {
                if left % 2 == 1 {
                    rest = rest * power % modulus;
                }
                power = power * power % modulus;
                left /= 2;
            }
            return rest == 0;
        }
        let scale = u32::try_from(-shift).ok().and_then(|shift| 10_u128.checked_pow(shift));
        match scale.and_then(|scale| u128::from(unit.digits).checked_mul(scale)) {
            Some(unit) => u128::from(self.digits) % unit == 0,
            // The unit is larger than any value of 20 digits.
            None => self.digits == 0,
        }
    }
}

/// True if `value` divided by `unit` is a whole number, both taken as decimals; false if one of them is not finite or `unit`
/// is 0.
pub(crate) fn is_multiple(value: f64, unit: f64) -> bool {
    Decimal::of(value).zip(Decimal::of(unit)).is_some_and(|(value, unit)| value.is_multiple_of(unit))
}

/// True if a whole number divided by `unit` is a whole number, with all its digits; `unit` is taken as a decimal.
#[cfg(feature = "registry")]
pub(crate) fn divides(value: u64, unit: f64) -> bool {
    Decimal::of(unit).is_some_and(|unit| Decimal { digits: value, exponent: 0 }.is_multiple_of(unit))
}

/// The least multiple of `unit` that is not below `value`, as a decimal; the product of doubles where that is not finite.
#[cfg(feature = "registry")]
pub(crate) fn up_to_multiple(value: f64, unit: f64) -> f64 {
    if is_multiple(value, unit) {
        return value;
    }
    let count = (value / unit).ceil();
    let written = || {
        let unit = Decimal::of(unit)?;
        // Beyond 2^53 the doubles lie further apart than the multiples.
        let count = (count.abs() < 9_007_199_254_740_992.0).then_some(count as i64)?;
        format!("{}e{}", i128::from(count) * i128::from(unit.digits), unit.exponent).parse().ok()
    };
    written().unwrap_or(count * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_are_those_of_what_is_written() {
        for (value, unit, expected) in [
            (0.3, 0.1, true),
            (0.1 + 0.2, 0.1, false),
            (19.99, 0.01, true),
            (-19.99, 0.01, true),
            (0.999_999_999_999_999_8, 0.25, false),
            (1.0, 0.25, true),
            (0.0, 0.25, true),
            (-0.0, 0.25, true),
            (2.5e-42, 0.25, false),
            (144_687_938_052_682.16, 0.25, false),
            (144_687_938_052_682.25, 0.25, true),
            (1e308, 0.01, true),
            (1e308, 0.3, false),
            (1.5e308, 0.3, true),
            (7e300, 0.7, true),
            (7e300, 0.9, false),
            (f64::MAX, f64::MAX, true),
            (f64::MAX, f64::MIN_POSITIVE, false),
            (f64::MIN_POSITIVE, f64::MAX, false),
            (5e-324, 5e-324, true),
            (1e-323, 5e-324, true),
            (1.0, 0.0, false),
            (0.0, 0.0, false),
            (f64::INFINITY, 1.0, false),
            (1.0, f64::NAN, false),
        ] {
            assert_eq!(is_multiple(value, unit), expected, "{value:e} of {unit:e}");
        }
    }

    #[cfg(feature = "registry")]
    #[test]
    fn all_digits_of_whole_numbers_count() {
        for (value, unit, expected) in [
            (9_007_199_254_740_993, 1.5, true),
            (9_007_199_254_740_992, 1.5, false),
            (u64::MAX, 0.5, true),
            (u64::MAX, 1e19, false),
            (0, 0.1, true),
            (1, 0.0, false),
        ] {
            assert_eq!(divides(value, unit), expected, "{value} of {unit:e}");
        }
    }

    #[cfg(feature = "registry")]
    #[test]
    fn multiples_are_made_as_they_are_written() {
        for (value, unit, expected) in [
            (0.25, 0.1, 0.3),
            (0.3, 0.1, 0.3),
            (7.0, 2.0, 8.0),
            (-0.25, 0.1, -0.2),
            (1e300, 7.0, 1e300),
            (0.0, 0.1, 0.0),
        ] {
            let made = up_to_multiple(value, unit);
            assert_eq!(made.to_bits() << 1, f64::to_bits(expected) << 1, "{value} of {unit}: {made}");
        }
    }
}
