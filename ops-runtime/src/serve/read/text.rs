//! Texts in a request: their escaping, and the errors of unreadable ones.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::COOKIE;
use percent_encoding::{CONTROLS, percent_decode, percent_encode};
use serde_json::{Map, Value, json};

use crate::model::separators::separators;

/// How a text is escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escaping {
    /// Not at all: in headers, and in the parts of a multipart body.
    None,
    /// By percent signs: in paths and cookies.
    Percent,
    /// Only what no cookie can hold, by percent signs: in cookies whose syntax is that of cookies themselves (OpenAPI 3.2,
    /// section 4.12.3). Other percent signs are part of the text.
    Cookie,
    /// By percent signs, and a plus sign is a space: in queries and forms.
    Form,
}

impl Escaping {
    /// The unescaped text.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub(crate) fn undo(self, text: &str) -> Result<String, &'static str> {
        self.plain(text).map(Cow::into_owned)
    }

    /// Like [`undo`](Self::undo), without copying a text that has no escapes.
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
            Self::Cookie => undo_cookie(text.as_bytes(), &mut bytes),
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

/// Undoes what a cookie cannot hold, and nothing else.
fn undo_cookie(text: &[u8], bytes: &mut Vec<u8>) {
    let mut rest = text;
    while let Some((first, others)) = rest.split_first() {
        let escaped = rest.get(..3).filter(|_| *first == b'%');
        let byte = escaped.and_then(|escaped| percent_decode(escaped).next());
        rest = match byte {
            Some(byte) if !holds(byte) => {
                bytes.push(byte);
                rest.get(3..).unwrap_or_default()
            }
            _ => {
                bytes.push(*first);
                others
            }
        };
    }
}

/// True if a cookie can hold a byte (RFC 6265, section 4.1.1).
fn holds(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\')
}

/// How many values a text may become at most: each comma, colon and bracket of JSON is one, and so is each pair of a form.
pub(crate) fn nodes(text: &[u8]) -> usize {
    text.iter().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{' | b'&' | b';')).count()
}

/// Upper bound of the values in JSON: characters inside of a string do not count. Text that is not UTF-8 may have an
/// encoding in which a quotation mark is something else.
pub(crate) fn nodes_of_json(text: &[u8]) -> usize {
    if std::str::from_utf8(text).is_ok() { separators(text) } else { nodes(text) }
}

/// An error in a part of a request, with a JSON pointer into the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) pointer: String,
    pub(crate) message: String,
}

impl Fault {
    /// The error of a property of the input.
    pub(crate) fn of(property: &str, message: impl Into<String>) -> Self {
        Self { pointer: format!("/{}", crate::pointer::escaped(property)), message: message.into() }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({ "pointer": self.pointer, "message": self.message })
    }
}

/// The reason why a body cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The endpoint does not accept that content type.
    Type(String),
    /// The text is not JSON, or not valid in its charset.
    Text(String),
    /// Its values are invalid.
    Faults(Vec<Fault>),
    /// There is no room for the values in it.
    Full,
}

impl From<Vec<Fault>> for Unread {
    fn from(faults: Vec<Fault>) -> Self {
        Self::Faults(faults)
    }
}

/// A name and a value of a query, a form or a cookie; the value is still escaped.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) value: String,
    /// True if a parameter has read it.
    pub(crate) is_taken: bool,
}

/// The pairs of a query, a form, a cookie, or of the parts of a multipart body.
#[derive(Debug)]
pub(crate) struct Pairs {
    pub(crate) all: Vec<Pair>,
    pub(crate) escaping: Escaping,
}

impl Pairs {
    /// The pairs of a query or a form.
    ///
    /// # Errors
    /// If a name is not UTF-8.
    pub(crate) fn split(text: &str, escaping: Escaping) -> Result<Self, &'static str> {
        let all = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok(Pair { name: escaping.undo(name)?, value: value.to_owned(), is_taken: false })
        });
        Ok(Self { all: all.collect::<Result<_, &'static str>>()?, escaping })
    }

    /// The cookies of a request. Browsers send all cookies of a host, including those of other applications, which may
    /// be any bytes. They are escaped, so that the error of invalid UTF-8 concerns only a cookie that is read. A name for
    /// which `is_whole` is true is not unescaped: its percent signs are its own.
    pub(crate) fn cookies(headers: &HeaderMap, is_whole: impl Fn(&str) -> bool) -> Self {
        let texts = headers.get_all(COOKIE).iter().map(|value| percent_encode(value.as_bytes(), CONTROLS).to_string());
        let mut all = Vec::new();
        for text in texts {
            for pair in text.split(';').map(str::trim).filter(|pair| !pair.is_empty()) {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                let undone = if is_whole(name) { None } else { Escaping::Percent.undo(name).ok() };
                let name = undone.unwrap_or_else(|| name.to_owned());
                all.push(Pair { name, value: value.to_owned(), is_taken: false });
            }
        }
        Self { all, escaping: Escaping::Percent }
    }

    /// Removes and returns the values of a name.
    pub(crate) fn take(&mut self, name: &str) -> Vec<String> {
        self.take_if(|pair| pair.name == name).into_iter().map(|(_, value)| value).collect()
    }

    /// Removes and returns the names and values of all matching pairs.
    pub(crate) fn take_if(&mut self, is_meant: impl Fn(&Pair) -> bool) -> Vec<(String, String)> {
        let meant = self.all.iter_mut().filter(|pair| !pair.is_taken && is_meant(pair));
        let taken = meant.map(|pair| {
            pair.is_taken = true;
            (pair.name.clone(), pair.value.clone())
        });
        taken.collect()
    }
}

/// Adds an optional member.
pub(crate) fn put(members: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        members.insert(name.to_owned(), value);
    }
}
