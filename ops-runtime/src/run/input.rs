//! Reading inputs into the types of operations.
//!
//! In JSON Schema, an integer is any number without a fraction, however it is written (2020-12 Validation, section
//! 6.1.1), but serde does not accept `2.0` as an integer. So an input that does not match its type is read again with
//! whole numbers written as integers.
//!
//! ```
//! use ops_runtime::{Registry, operation};
//! use serde_json::json;
//!
//! /// Twice a number.
//! #[operation(namespace = "math")]
//! async fn double(n: i64) -> i64 {
//!     2 * n
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = Registry::new();
//! registry.register(Double)?;
//! assert_eq!(registry.call("math.double", json!({ "n": 21.0 })).await?.into_data(), 42);
//! # Ok(()) }
//! ```

use serde_core::Serialize;
use serde_core::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::body::handover;
use crate::model::error::violation;
use crate::normalise::integer;
use crate::record::{self, DecodeError, Destination};
use crate::run::payload::{Payload, to_text, to_value};
use crate::{CallError, OperationSpec};

/// An input of any type.
///
/// Only these functions are compiled for each type. Code that does more with an input takes it as a `dyn`, and is compiled
/// once.
pub(crate) trait AnyInput {
    /// The input as JSON.
    fn to_value(&self) -> Result<Value, CallError>;

    /// The input as JSON text.
    fn to_text(&self) -> Result<Box<RawValue>, CallError>;

    /// The [place](record::place) of the number for which writing the input failed with this error. `None` if there is none.
    fn place(&self, error: &str) -> Option<String>;
}

impl<T: Serialize> AnyInput for T {
    fn to_value(&self) -> Result<Value, CallError> {
        to_value(self)
    }

    fn to_text(&self) -> Result<Box<RawValue>, CallError> {
        to_text(self)
    }

    fn place(&self, error: &str) -> Option<String> {
        record::place(self, error)
    }
}

/// The error of an input that does not match the operation's type.
pub(crate) fn invalid(spec: &OperationSpec, error: &DecodeError) -> CallError {
    let message = format!("the input of `{}` is invalid: {error}", spec.id);
    CallError::invalid(message, vec![violation(&error.pointer, &error.message)])
}

/// The error of a typed input that cannot be written as JSON; it has the place of a number that JSON cannot represent, or
/// that is too large for a [`Value`].
#[cold]
pub(crate) fn unwritten(spec: &OperationSpec, input: &dyn AnyInput, error: CallError) -> CallError {
    // A stream in it is not the cause, and could not be written either.
    let Some(pointer) = handover::scoped(|| input.place(error.message())).0 else { return error };
    let message = error.message().rsplit(": ").next().unwrap_or_default().to_owned();
    invalid(spec, &DecodeError { pointer, message })
}

/// An input that is a JSON value or JSON text, as a value.
pub(crate) fn value(spec: &OperationSpec, input: Payload) -> Result<Value, CallError> {
    match input {
        Payload::Value(value) => Ok(value),
        Payload::Json(text) => record::parse(&text).map_err(|error| invalid(spec, &error)),
        Payload::Raw(text) => record::parse(text.get().as_bytes()).map_err(|error| invalid(spec, &error)),
        Payload::Body(body) => to_value(&body),
    }
}

/// Reads an input that is a JSON value or JSON text.
pub(crate) fn read<T: DeserializeOwned>(input: &Payload) -> Result<T, DecodeError> {
    record::decoded(|place| payload_into(input, place))
}

/// Reads an input that is JSON text.
#[cfg_attr(not(feature = "durable"), allow(dead_code, reason = "only jobs keep their input as text"))]
pub(crate) fn read_text<T: DeserializeOwned>(text: &str) -> Result<T, DecodeError> {
    record::decoded(|place| text_into(text, place))
}

/// Reads an input that is a JSON value.
pub(crate) fn read_value<T: DeserializeOwned>(value: &Value) -> Result<T, DecodeError> {
    record::decoded(|place| value_into(value, place))
}

fn payload_into(input: &Payload, place: &mut dyn Destination) -> Result<(), DecodeError> {
    match input {
        Payload::Json(text) => {
            record::slice_into(text, place).or_else(|error| again(record::parse(text).ok(), error, place))
        }
        Payload::Raw(text) => text_into(text.get(), place),
        Payload::Value(value) => value_into(value, place),
        Payload::Body(body) => to_value(body).map_or_else(
            |error| Err(DecodeError { pointer: String::new(), message: error.to_string() }),
            |value| record::value_into(&value, place),
        ),
    }
}

fn text_into(text: &str, place: &mut dyn Destination) -> Result<(), DecodeError> {
    record::str_into(text, place).or_else(|error| again(record::parse(text.as_bytes()).ok(), error, place))
}

/// Reads a value into a place: an input, or an output whose schema allows `2.0` where its type is an integer.
pub(crate) fn value_into(value: &Value, place: &mut dyn Destination) -> Result<(), DecodeError> {
    // Both attempts know which success the status selected.
    record::attempt(|| record::value_into(value, place)).or_else(|error| again(Some(value.clone()), error, place))
}

/// Reads an input again with its whole numbers as integers; the first error stays if there are none or that does not
/// help.
#[cold]
fn again(input: Option<Value>, first: DecodeError, place: &mut dyn Destination) -> Result<(), DecodeError> {
    match input.map(whole) {
        Some((input, true)) => record::value_into(&input, place).map_err(|_| first),
        _ => Err(first),
    }
}

/// The value with each number that has no fraction as an integer, and whether any number was changed.
fn whole(mut value: Value) -> (Value, bool) {
    let mut changed = false;
    let mut stack = vec![&mut value];
    while let Some(value) = stack.pop() {
        match value {
            Value::Number(number) => {
                if let Some(whole) = integer(number) {
                    (*number, changed) = (whole, true);
                }
            }
            Value::Array(items) => stack.extend(items),
            Value::Object(members) => stack.extend(members.values_mut()),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
    (value, changed)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Order {
        count: u8,
        price: f64,
        note: Option<String>,
    }

    fn texts(text: &str) -> [Payload; 3] {
        let raw = serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        [Payload::Json(text.to_owned().into()), Payload::Raw(raw), Payload::Value(serde_json::from_str(text).unwrap())]
    }

    #[test]
    fn an_integer_is_a_number_without_a_fraction() {
        for text in [r#"{"count":2.0,"price":3}"#, r#"{"count":2,"price":3.0}"#, r#"{"count":20e-1,"price":3.0}"#] {
            for input in texts(text) {
                assert_eq!(read::<Order>(&input), Ok(Order { count: 2, price: 3.0, note: None }), "{text}");
            }
        }
    }

    #[test]
    fn the_first_error_stays() {
        for (text, pointer, says) in [
            (r#"{"count":2.5,"price":3.0}"#, "/count", "2.5"),
            (r#"{"count":256.0,"price":3.0}"#, "/count", "256.0"),
            (r#"{"count":2.0,"price":3.0,"note":1.0}"#, "/count", "2.0"),
            (r#"{"count":2,"price":"3.0"}"#, "/price", "string"),
            (r#"{"count":1e300,"price":3.0}"#, "/count", "1e+300"),
        ] {
            for input in texts(text) {
                let error = read::<Order>(&input).unwrap_err();
                assert!(error.pointer == pointer && error.message.contains(says), "{text}: {error}");
            }
        }
    }
}
