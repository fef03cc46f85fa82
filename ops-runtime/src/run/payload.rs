//! What handlers answer, typed or not yet.
//!
//! ```
//! use ops_runtime::adapter::Payload;
//! use ops_runtime::ResponseEnvelope;
//! use serde_json::json;
//!
//! let answer = ResponseEnvelope::local(Payload::Value(json!({ "name": "Rex" })), "shop.pet");
//! assert_eq!(answer.data, Payload::Value(json!({ "name": "Rex" })));
//! ```

use bytes::Bytes;
use serde_core::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::futures::BoxStream;
use crate::record::Finite;
use crate::{Body, CallError, ResponseEnvelope};

/// What a handler answers: plain data, or an envelope of its own that passes as it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply<T> {
    /// Plain data, to be wrapped.
    Value(T),
    /// An envelope, to be passed on.
    Envelope(ResponseEnvelope<T>),
}

/// The data of an answer before it is given a type.
#[derive(Debug, Clone)]
pub enum Payload {
    /// A JSON value.
    Value(Value),
    /// JSON that nobody has parsed yet, so that it may turn out to be none.
    Json(Bytes),
    /// JSON text that is known to be JSON: it is passed on as it is.
    Raw(Box<RawValue>),
    /// Bytes as they come, for an operation whose output is a [`Body`].
    Body(Body),
}

impl Payload {
    /// The JSON text, if it is text.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Json(text) => Some(text),
            Self::Raw(text) => Some(text.get().as_bytes()),
            Self::Value(_) | Self::Body(_) => None,
        }
    }
}

/// Texts are equal if they are the same to the byte.
impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(a), Self::Value(b)) => a == b,
            (Self::Body(a), Self::Body(b)) => a == b,
            (a, b) => matches!((a.text(), b.text()), (Some(a), Some(b)) if a == b),
        }
    }
}

/// The items of a subscription before they are given a type.
pub type PayloadStream = BoxStream<'static, Result<ResponseEnvelope<Payload>, CallError>>;

/// The items that a handler of a subscription gives: a boxed stream of data.
pub type ItemStream<T> = BoxStream<'static, Result<T, CallError>>;

/// A value as JSON.
///
/// # Errors
/// If a part of it has no JSON: a stream of bytes, or a number that is not finite.
pub(crate) fn to_value<T: Serialize>(value: &T) -> Result<Value, CallError> {
    crate::record::to_value(value)
        .map_err(|error| CallError::execution(format!("the value can't be written as JSON: {error}")))
}

/// A value as JSON text.
pub(crate) fn to_text<T: Serialize>(value: &T) -> Result<Box<RawValue>, CallError> {
    serde_json::value::to_raw_value(&Finite(value))
        .map_err(|error| CallError::execution(format!("the value can't be written as JSON: {error}")))
}

/// A value as the bytes of JSON text, in the piece of memory that they were written to: it is not cut to size.
pub(crate) fn to_bytes<T: Serialize>(value: &T) -> Result<Bytes, CallError> {
    serde_json::to_vec(&Finite(value))
        .map(Bytes::from)
        .map_err(|error| CallError::execution(format!("the value can't be written as JSON: {error}")))
}
