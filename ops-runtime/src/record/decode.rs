//! Decoding with errors that say where.

use std::borrow::Cow;
use std::fmt;

use serde_core::Serialize;
use serde_core::de::{DeserializeOwned, Error};
use serde_json::Value;

use super::finite::Finite;
use super::json::{Cursor, Fault, NO_TIME};
use super::{pointer, variant};

/// The characters of a message that are kept.
const MESSAGE: usize = 500;
/// The characters of a pointer that are kept.
const POINTER: usize = 1024;
/// The characters of a value that are shown.
const FOUND: usize = 100;

/// Why a JSON text or value is not one of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeError {
    /// The JSON pointer of the value that is wrong; of missing properties, of the object that lacks them.
    pub pointer: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.pointer, self.message)
        }
    }
}

impl std::error::Error for DecodeError {}

/// The place that a decoded value is written to. For a value of type `T`, it is an `Option<T>`.
///
/// Only these functions are compiled for each type. Code that tries several ways to read a value takes the place as a `dyn`,
/// and is compiled once.
pub(crate) trait Destination {
    /// Reads a JSON text.
    fn read_text(&mut self, text: Cursor<'_>) -> Result<(), Fault>;

    /// Reads a JSON value.
    fn read_value(&mut self, value: &Value) -> Result<(), serde_json::Error>;
}

impl<T: DeserializeOwned> Destination for Option<T> {
    fn read_text(&mut self, text: Cursor<'_>) -> Result<(), Fault> {
        *self = Some(read(text)?);
        Ok(())
    }

    fn read_value(&mut self, value: &Value) -> Result<(), serde_json::Error> {
        *self = Some(T::deserialize(value)?);
        Ok(())
    }
}

/// Makes a place, has a function decode a value into it, and returns the value.
pub(crate) fn decoded<T: DeserializeOwned>(
    decode: impl FnOnce(&mut dyn Destination) -> Result<(), DecodeError>,
) -> Result<T, DecodeError> {
    let mut value: Option<T> = None;
    decode(&mut value)?;
    value.ok_or_else(|| DecodeError { pointer: String::new(), message: "nothing was read".to_owned() })
}

/// Decodes a JSON text.
///
/// # Errors
///
/// When `text` is no JSON, or not a `T`.
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, DecodeError> {
    read(Cursor::new(text)).map_err(|fault| locate(text, &fault))
}

/// Like [`from_slice`], into a place.
pub(crate) fn slice_into(text: &[u8], place: &mut dyn Destination) -> Result<(), DecodeError> {
    place.read_text(Cursor::new(text)).map_err(|fault| locate(text, &fault))
}

fn read<T: DeserializeOwned>(mut cursor: Cursor<'_>) -> Result<T, Fault> {
    let value = T::deserialize(&mut cursor)?;
    cursor.end()?;
    Ok(value)
}

/// Decodes a JSON text.
///
/// # Errors
///
/// When `text` is no JSON, or not a `T`.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, DecodeError> {
    read(Cursor::of_str(text)).map_err(|fault| locate(text.as_bytes(), &fault))
}

/// Like [`from_str`], into a place.
#[cfg(feature = "registry")]
pub(crate) fn str_into(text: &str, place: &mut dyn Destination) -> Result<(), DecodeError> {
    place.read_text(Cursor::of_str(text)).map_err(|fault| locate(text.as_bytes(), &fault))
}

/// Reads a JSON text into a tree of values: the same as decoding a [`Value`], but faster.
///
/// # Errors
///
/// When `text` is no JSON.
pub fn parse(text: &[u8]) -> Result<Value, DecodeError> {
    let mut cursor = Cursor::new(text);
    let value = cursor.tree().and_then(|value| cursor.end().map(|()| value));
    value.map_err(|fault| locate(text, &fault))
}

/// Decodes a JSON value.
///
/// # Errors
///
/// When `value` is not a `T`.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, DecodeError> {
    decoded(|place| value_into(value, place))
}

/// Like [`from_value`], into a place.
pub(crate) fn value_into(value: &Value, place: &mut dyn Destination) -> Result<(), DecodeError> {
    variant::attempt(|| place.read_value(value)).or_else(|error| {
        // A value has no positions to find the pointer by; its text has.
        match serde_json::to_vec(value) {
            Ok(text) => slice_into(&text, place),
            Err(_) => Err(DecodeError { pointer: String::new(), message: error.to_string() }),
        }
    })
}

/// Encodes a value as JSON.
///
/// # Errors
///
/// When a `Serialize` of the caller's own fails, a map has keys that are no strings, or a number is not finite.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, serde_json::Error> {
    serde_json::to_value(Finite(value))
}

/// Finds the pointer of a fault by its position, and of one in a buffered value by what its message says.
#[cold]
fn locate(text: &[u8], fault: &Fault) -> DecodeError {
    // A syntax error points behind the byte that is wrong, which closes or separates nothing.
    let offset = fault.at().saturating_sub(usize::from(fault.is_syntax()));
    let message = fault.message();
    let (pointer, message) = match split_below(message) {
        Some((below, message)) => (pointer::of_container(text, offset) + &below.replace("~2", ":"), message),
        None => (pointer::of_value(text, offset), message),
    };
    let message =
        if message.starts_with(NO_TIME) { with_found(message, text, &pointer) } else { Cow::Borrowed(message) };
    // Names and texts of the input are in both.
    DecodeError { pointer: cut(&pointer, POINTER), message: cut(&message, MESSAGE) }
}

/// A message about the value at a pointer, with this value.
fn with_found<'m>(message: &'m str, text: &[u8], pointer: &str) -> Cow<'m, str> {
    match parse(text).ok().as_ref().and_then(|value| value.pointer(pointer)) {
        Some(found) => Cow::Owned(format!("{message}, found {}", cut(&found.to_string(), FOUND))),
        None => Cow::Borrowed(message),
    }
}

/// The beginning of a text that is too long to be told.
fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Says in an error in which part of a buffered value it is: a position in the text tells only where the buffer was.
#[cold]
pub(super) fn below<E: Error>(step: &str, error: &E) -> E {
    let message = error.to_string();
    let mut pointer = String::new();
    pointer::push(&mut pointer, step);
    let (deeper, message) = split_below(&message).unwrap_or(("", &message));
    // Every level copies the message, which may quote a long string.
    let end = message.char_indices().nth(MESSAGE).map_or(message.len(), |(end, _)| end);
    let message = message.get(..end).unwrap_or(message);
    // A colon ends the pointer.
    E::custom(format_args!("in {}{deeper}: {message}", pointer.replace(':', "~2")))
}

/// Takes apart what [`below`] put together.
fn split_below(message: &str) -> Option<(&str, &str)> {
    let pointer = message.strip_prefix("in ").filter(|pointer| pointer.starts_with('/'))?;
    pointer.split_once(": ")
}
