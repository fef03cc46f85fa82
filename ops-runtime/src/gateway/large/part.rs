//! Shortened places of a result.

use std::fmt;

/// A shortened place of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// The JSON pointer of the place in the whole result.
    pub pointer: String,
    /// The unit of the counts.
    pub unit: Unit,
    /// Number of elements before the shown ones.
    pub from: usize,
    /// Number of shown elements.
    pub shown: usize,
    /// Number of all elements.
    pub total: usize,
}

/// The elements of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// The items of a list.
    Items,
    /// The members of an object.
    Members,
    /// The characters of a text (Unicode scalar values).
    Characters,
}

impl Part {
    /// Number of elements after the shown ones.
    pub fn rest(&self) -> usize {
        self.total.saturating_sub(self.from).saturating_sub(self.shown)
    }

    /// Where to read on; `None` at the end. An element that cannot be shown at all is skipped.
    pub(super) fn next(&self) -> Option<usize> {
        Some(self.from.saturating_add(self.shown.max(1))).filter(|next| *next < self.total)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            Unit::Items => "items",
            Unit::Members => "members",
            Unit::Characters => "characters",
        };
        // Names are foreign text. Unchanged, they can be passed back.
        match self.pointer.as_str() {
            "" => {}
            pointer if pointer.contains(char::is_control) => write!(f, "{}: ", pointer.escape_debug())?,
            pointer => write!(f, "{pointer}: ")?,
        }
        let (from, shown, total) = (thousands(self.from), thousands(self.shown), thousands(self.total));
        match (self.from, self.shown) {
            (_, 0) => write!(f, "none of {total} {unit} are shown")?,
            (0, _) => write!(f, "{shown} of {total} {unit} are shown")?,
            _ => {
                let last = self.from.saturating_add(self.shown).saturating_sub(1);
                write!(f, "{unit} {from} to {} of {total} are shown, counted from 0", thousands(last))?;
            }
        }
        match self.rest() {
            0 => Ok(()),
            rest => write!(f, ", {} more", thousands(rest)),
        }
    }
}

/// A number with commas between its thousands.
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
