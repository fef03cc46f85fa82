//! Strings: lengths, patterns and the formats of the compatible reading.

use std::sync::LazyLock;

use super::budget::Budget;
use super::pattern::{Found, Pattern};
use crate::Body;
use crate::model::body::handover::{self, Length};
use crate::model::cut::{MAX_NAME, cut};

/// The rules of a string.
#[derive(Debug, Default)]
pub(super) struct StringRules {
    pub(super) min: Option<i64>,
    pub(super) max: Option<i64>,
    pub(super) patterns: Vec<Pattern>,
    pub(super) format: Option<Format>,
    /// Lengths in UTF-16 code units, as the original counts them, instead of characters.
    pub(super) utf16: bool,
    /// True if the string stands for bytes, whose number is its length.
    pub(super) is_bytes: bool,
}

/// The `format` of a string.
#[derive(Debug)]
pub(super) struct Format {
    pub(super) name: Box<str>,
    pub(super) matcher: Matcher,
}

/// What a format demands.
#[derive(Debug)]
pub(super) enum Matcher {
    /// Nothing is checked, but no value is made up for it.
    Annotation,
    Known(&'static Pattern),
    /// A name that the original does not know, so that no string conforms.
    Unknown,
}

impl StringRules {
    pub(super) fn check(&self, text: &str, budget: &Budget) -> bool {
        budget.spend(of_text(text))
            && self.check_by(text, || self.patterns.iter().all(|pattern| pattern.is_in(text, budget)))
    }

    pub(super) fn check_without_patterns(&self, text: &str) -> bool {
        self.check_by(text, || true)
    }

    #[inline]
    fn check_by(&self, text: &str, patterns: impl FnOnce() -> bool) -> bool {
        match self.bytes(text) {
            Some(length) => !self.is_body_short(length) && !self.is_body_long(length),
            None => self.length(text) && patterns() && self.format_matches(text),
        }
    }

    fn length(&self, text: &str) -> bool {
        self.longer(text) && self.shorter(text)
    }

    fn longer(&self, text: &str) -> bool {
        // A character has one to four bytes, so most strings need no counting.
        self.min.is_none_or(|min| {
            let bytes = as_i64(text.len());
            bytes >= min && (bytes >= min.saturating_mul(4) || self.count(text) >= min)
        })
    }

    fn shorter(&self, text: &str) -> bool {
        self.max.is_none_or(|max| as_i64(text.len()) <= max || self.count(text) <= max)
    }

    fn count(&self, text: &str) -> i64 {
        as_i64(if self.utf16 { text.encode_utf16().count() } else { text.chars().count() })
    }

    fn format_matches(&self, text: &str) -> bool {
        match self.format.as_ref().map(|format| &format.matcher) {
            None | Some(Matcher::Annotation) => true,
            // These pass through a text once.
            Some(Matcher::Known(pattern)) => pattern.matches(text),
            Some(Matcher::Unknown) => false,
        }
    }

    /// How many bytes a text stands for; `None` if it is text. Bytes have no characters that a pattern could be about.
    fn bytes(&self, text: &str) -> Option<Length> {
        let given = handover::length_of(text);
        given.or_else(|| self.is_bytes.then(|| Some(Body::length_of_text(text) as u64)))
    }

    fn is_body_short(&self, length: Length) -> bool {
        let min = self.min.and_then(|min| u64::try_from(min).ok());
        min.zip(length).is_some_and(|(min, length)| length < min)
    }

    fn is_body_long(&self, length: Length) -> bool {
        let max = self.max.and_then(|max| u64::try_from(max).ok());
        max.zip(length).is_some_and(|(max, length)| length > max)
    }

    /// A message for each rule that the string breaks. Of a pattern that is not looked for, as the steps ran out, there is
    /// none.
    pub(super) fn violations(&self, text: &str, budget: &Budget) -> Vec<String> {
        let mut messages = Vec::new();
        let mut say = |message| messages.push(message);
        if let Some(length) = self.bytes(text) {
            if let Some(min) = self.min.filter(|_| self.is_body_short(length)) {
                say(format!("Expected no fewer than {min} bytes"));
            }
            if let Some(max) = self.max.filter(|_| self.is_body_long(length)) {
                say(format!("Expected no more than {max} bytes"));
            }
            return messages;
        }
        if let Some(min) = self.min.filter(|_| !self.longer(text)) {
            say(format!("Expected string length greater or equal to {min}"));
        }
        if let Some(max) = self.max.filter(|_| !self.shorter(text)) {
            say(format!("Expected string length less or equal to {max}"));
        }
        for pattern in &self.patterns {
            let source = cut(&pattern.source, MAX_NAME);
            match pattern.look(text, budget) {
                Found::Yes | Found::Ended => {}
                Found::No => say(format!("Expected string to match '{source}'")),
                Found::TooLong => say(format!("Expected string to match '{source}', which takes too long to find out")),
            }
        }
        if let Some(format) = self.format.as_ref().filter(|_| !self.format_matches(text)) {
            say(match format.matcher {
                Matcher::Unknown => format!("Unknown format '{}'", cut(&format.name, MAX_NAME)),
                _ => format!("Expected string to match '{}' format", format.name),
            });
        }
        messages
    }

    /// The string created by default; none can be made up to match a pattern or a format.
    pub(super) fn create(&self) -> Option<String> {
        if !self.patterns.is_empty() || self.format.is_some() {
            return None;
        }
        let min = usize::try_from(self.min.unwrap_or(0)).unwrap_or(0);
        (min <= MAX_CREATED).then(|| " ".repeat(min))
    }
}

/// The steps for reading a text once: only a long one takes longer than a step.
pub(super) fn of_text(text: &str) -> u64 {
    text.len() as u64 / 256
}

/// The longest string or array that is made up.
pub(super) const MAX_CREATED: usize = 1 << 16;

fn as_i64(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Formats for which the default reading makes up no value (an empty string would not conform).
pub(super) fn has_structure(format: &str) -> bool {
    matches!(
        format,
        "date-time"
            | "date"
            | "time"
            | "duration"
            | "email"
            | "idn-email"
            | "hostname"
            | "idn-hostname"
            | "ipv4"
            | "ipv6"
            | "uri"
            | "iri"
            | "url"
            | "uuid"
    )
}

/// The formats that the compatible reading knows.
pub(super) fn registered(format: &str) -> Option<&'static Pattern> {
    static FORMATS: LazyLock<[(&str, Pattern); 7]> = LazyLock::new(|| {
        [
            ("date-time", r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$"),
            ("date", r"^\d{4}-\d{2}-\d{2}$"),
            ("time", r"^\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?$"),
            ("email", r"^[^@\s]+@[^@\s]+\.[^@\s]+$"),
            ("uuid", r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"),
            ("uri", r"^[A-Za-z][A-Za-z0-9+.-]*:[^\s]+$"),
            ("ipv4", r"^(25[0-5]|2[0-4]\d|1?\d?\d)(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}$"),
        ]
        .map(|(name, source)| (name, Pattern::new(source, true)))
    });
    FORMATS.iter().find(|(name, _)| *name == format).map(|(_, pattern)| pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_the_compatible_reading() {
        for (format, text, expected) in [
            ("ipv4", "1.2.3.4", true),
            ("ipv4", "1.2.3.256", false),
            ("ipv4", "1.2.3", false),
            ("ipv4", "1.2.3.4.", false),
            ("ipv4", "1.2.3.4.5", false),
            ("email", "a@b.c", true),
            ("email", "a@b", false),
            ("uuid", "00000000-0000-0000-0000-000000000000", true),
        ] {
            assert_eq!(registered(format).map(|pattern| pattern.matches(text)), Some(expected), "{format} on {text}");
        }
    }
}
