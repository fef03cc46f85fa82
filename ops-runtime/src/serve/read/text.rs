//! Texts in a request: how they are escaped, and what they are called if they can't be read.

use std::borrow::Cow;

use percent_encoding::percent_decode;
use serde_json::{Map, Value, json};

/// How a text is escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escaping {
    /// Not at all: in headers, and in the parts of a multipart body.
    None,
    /// By percent signs: in paths and cookies.
    Percent,
    /// By percent signs, and a plus sign is a space: in queries and forms.
    Form,
}

impl Escaping {
    /// The text without its escapes.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub(crate) fn undo(self, text: &str) -> Result<String, &'static str> {
        self.plain(text).map(Cow::into_owned)
    }

    /// As [`undo`](Self::undo), without a copy of a text that has no escapes.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub(crate) fn plain(self, text: &str) -> Result<Cow<'_, str>, &'static str> {
        if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
            return Ok(text.into());
        }
        let mut bytes = Vec::with_capacity(text.len());
        match self {
            Self::None => return Ok(text.into()),
            Self::Percent => bytes.extend(percent_decode(text.as_bytes())),
            Self::Form => {
                for (at, word) in text.as_bytes().split(|byte| *byte == b'+').enumerate() {
                    bytes.extend((at > 0).then_some(b' '));
                    bytes.extend(percent_decode(word));
                }
            }
        }
        String::from_utf8(bytes).map(Cow::Owned).map_err(|_| "is not UTF-8")
    }
}

/// Why a part of a request is no value of the input, at a JSON pointer into the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) pointer: String,
    pub(crate) message: String,
}

impl Fault {
    /// The fault of a property of the input.
    pub(crate) fn of(property: &str, message: impl Into<String>) -> Self {
        Self { pointer: format!("/{}", crate::pointer::escaped(property)), message: message.into() }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({ "pointer": self.pointer, "message": self.message })
    }
}

/// A name and a value of a query, a form or a cookie: the value still escaped.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) value: String,
    /// True if a parameter has it.
    pub(crate) is_taken: bool,
}

/// The pairs of a query, a form, a cookie, or of the parts of a multipart body.
#[derive(Debug)]
pub(crate) struct Pairs {
    pub(crate) all: Vec<Pair>,
    pub(crate) escaping: Escaping,
}

impl Pairs {
    /// Splits a text at its separators.
    ///
    /// # Errors
    /// If a name is not UTF-8.
    pub(crate) fn split(text: &str, separator: char, escaping: Escaping) -> Result<Self, &'static str> {
        let texts = text.split(separator).map(|pair| if separator == ';' { pair.trim() } else { pair });
        let all = texts.filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok(Pair { name: escaping.undo(name)?, value: value.to_owned(), is_taken: false })
        });
        Ok(Self { all: all.collect::<Result<_, &'static str>>()?, escaping })
    }

    /// Takes the values of a name.
    pub(crate) fn take(&mut self, name: &str) -> Vec<String> {
        self.take_if(|pair| pair.name == name).into_iter().map(|(_, value)| value).collect()
    }

    /// Takes the names and values of all pairs that are meant.
    pub(crate) fn take_if(&mut self, is_meant: impl Fn(&Pair) -> bool) -> Vec<(String, String)> {
        let meant = self.all.iter_mut().filter(|pair| !pair.is_taken && is_meant(pair));
        let taken = meant.map(|pair| {
            pair.is_taken = true;
            (pair.name.clone(), pair.value.clone())
        });
        taken.collect()
    }
}

/// Adds a member that may be there.
pub(crate) fn put(members: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        members.insert(name.to_owned(), value);
    }
}
