//! Numbers.

use serde_core::de::{Error, Expected, Unexpected, Visitor};

use super::{Cursor, Fault};

/// A number that was read. `-0` is not an integer, and neither is one that 64 bits do not hold.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Figure {
    U64(u64),
    I64(i64),
    F64(f64),
}

impl Figure {
    #[inline(always)]
    pub(super) fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self {
            Self::U64(value) => visitor.visit_u64(value),
            Self::I64(value) => visitor.visit_i64(value),
            Self::F64(value) => visitor.visit_f64(value),
        }
    }

    #[cold]
    pub(super) fn invalid_type(self, expected: &dyn Expected) -> Fault {
        let found = match self {
            Self::U64(value) => Unexpected::Unsigned(value),
            Self::I64(value) => Unexpected::Signed(value),
            Self::F64(value) => Unexpected::Float(value),
        };
        Fault::invalid_type(found, expected)
    }
}

/// The powers of ten that an `f64` holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// The integers up to here are exact in an `f64`.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;

impl Cursor<'_> {
    /// Reads a number, at its sign or first digit.
    #[inline]
    pub(crate) fn number(&mut self) -> Result<Figure, Fault> {
        let start = self.at;
        let is_negative = self.peek() == Some(b'-');
        self.at += usize::from(is_negative);
        let first = self.at;
        let mut value = 0_u64;
        while let Some(digit) = self.digit() {
            value = value.wrapping_mul(10).wrapping_add(digit);
            self.at += 1;
        }
        let digits = self.at - first;
        if digits == 0 || (digits > 1 && self.bytes.get(first) == Some(&b'0')) {
            return Err(self.no_number(first, digits));
        }
        if matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            return self.fraction(start, value, digits).map(Figure::F64);
        }
        // Any number of 19 digits fits.
        if digits < 20 {
            if !is_negative {
                return Ok(Figure::U64(value));
            }
            let negative = value.cast_signed().wrapping_neg();
            if negative < 0 && value <= 1 << 63 {
                return Ok(Figure::I64(negative));
            }
        } else if let Some(value) = self.bytes.get(first..self.at).and_then(long) {
            // 20 digits exceed an `i64`.
            return if is_negative { self.float(start).map(Figure::F64) } else { Ok(Figure::U64(value)) };
        }
        self.float(start).map(Figure::F64)
    }

    #[inline(always)]
    fn digit(&self) -> Option<u64> {
        self.peek().map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10).map(u64::from)
    }

    /// The fault of a number that has no digits, or a zero before others.
    #[cold]
    fn no_number(&mut self, first: usize, digits: usize) -> Fault {
        self.at = first;
        if digits > 0 {
            self.at += 1;
            return self.peek_fault("invalid number");
        }
        match self.next() {
            None => self.fault("EOF while parsing a value"),
            Some(_) => self.fault("invalid number"),
        }
    }

    /// Reads the fraction and the exponent of a number behind its integer, which has the value and the number of digits.
    fn fraction(&mut self, start: usize, mut value: u64, mut digits: usize) -> Result<f64, Fault> {
        let mut exponent = 0_i32;
        if self.peek() == Some(b'.') {
            self.at += 1;
            let first = self.at;
            while let Some(digit) = self.digit() {
                value = value.wrapping_mul(10).wrapping_add(digit);
                self.at += 1;
            }
            let places = self.at - first;
            if places == 0 {
                let message = if self.peek().is_some() { "invalid number" } else { "EOF while parsing a value" };
                return Err(self.peek_fault(message));
            }
            digits += places;
            exponent = i32::try_from(places).map_or(i32::MIN, i32::wrapping_neg);
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            let is_negative = self.peek() == Some(b'-');
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            let first = self.at;
            let mut power = 0_i32;
            while let Some(digit) = self.digit() {
                self.at += 1;
                let longer = power.checked_mul(10).zip(i32::try_from(digit).ok());
                match longer.and_then(|(power, digit)| power.checked_add(digit)) {
                    Some(longer) => power = longer,
                    // Out of range whatever follows, which is where `serde_json` says it.
                    None if !is_negative && value != 0 => return Err(self.fault("number out of range")),
                    None => power = i32::MAX,
                }
            }
            if self.at == first {
                return Err(match self.next() {
                    None => self.fault("EOF while parsing a value"),
                    Some(_) => self.fault("invalid number"),
                });
            }
            exponent = exponent.saturating_add(if is_negative { power.wrapping_neg() } else { power });
        }
        // One rounding at most: both factors are exact.
        if digits < 20 && value <= EXACT {
            let power = usize::try_from(exponent.unsigned_abs()).ok().and_then(|power| POWERS.get(power));
            if let Some(power) = power {
                let value = value as f64;
                let value = if exponent < 0 { value / power } else { value * power };
                let is_negative = self.bytes.get(start) == Some(&b'-');
                return Ok(if is_negative { -value } else { value });
            }
        }
        self.float(start)
    }

    /// The number that was read from `start` on, correctly rounded.
    #[inline(never)]
    fn float(&self, start: usize) -> Result<f64, Fault> {
        let text = self.bytes.get(start..self.at).and_then(|text| std::str::from_utf8(text).ok());
        match text.and_then(|text| text.parse().ok()) {
            Some(value) if f64::is_finite(value) => Ok(value),
            _ => Err(self.fault("number out of range")),
        }
    }

    /// Passes over a number, behind its sign.
    #[inline(always)]
    pub(super) fn skip_number(&mut self) -> Result<(), Fault> {
        match self.next() {
            Some(b'0') => {
                if self.digit().is_some() {
                    return Err(self.peek_fault("invalid number"));
                }
            }
            Some(b'1'..=b'9') => self.skip_digits(),
            _ => return Err(self.fault("invalid number")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digit().is_none() {
                return Err(self.peek_fault("invalid number"));
            }
            self.skip_digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if !self.next().is_some_and(|byte| byte.is_ascii_digit()) {
                return Err(self.fault("invalid number"));
            }
            self.skip_digits();
        }
        Ok(())
    }

    #[inline(always)]
    fn skip_digits(&mut self) {
        while self.digit().is_some() {
            self.at += 1;
        }
    }

    /// Reads the digits of an integer of 128 bits, behind its sign.
    pub(super) fn long_integer(&mut self) -> Result<&str, Fault> {
        let start = self.at;
        match self.next() {
            Some(b'0') => {
                if self.digit().is_some() {
                    return Err(self.peek_fault("invalid number"));
                }
            }
            Some(b'1'..=b'9') => self.skip_digits(),
            _ => return Err(self.fault("invalid number")),
        }
        let digits = self.bytes.get(start..self.at).and_then(|digits| std::str::from_utf8(digits).ok());
        digits.ok_or_else(|| self.fault("invalid number"))
    }
}

/// The value of digits, if 64 bits hold it.
#[cold]
fn long(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}
