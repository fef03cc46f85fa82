//! The results of handlers, typed or not yet.
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

use crate::model::futures::{BoxFuture, BoxStream};
use crate::record::Finite;
use crate::{Body, CallError, ResponseEnvelope};

/// The result of a handler: plain data, or an envelope that is returned unchanged.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply<T> {
    /// Plain data, to be wrapped.
    Value(T),
    /// An envelope, which is returned unchanged.
    // Boxed, so that plain data are not moved together with room for an envelope.
    Envelope(Box<ResponseEnvelope<T>>),
}

impl<T> From<ResponseEnvelope<T>> for Reply<T> {
    fn from(envelope: ResponseEnvelope<T>) -> Self {
        Self::Envelope(Box::new(envelope))
    }
}

/// The data of a result before it is read into a type.
#[derive(Debug, Clone)]
pub enum Payload {
    /// A JSON value.
    Value(Value),
    /// Unparsed bytes, which may turn out not to be JSON.
    Json(Bytes),
    /// JSON text that is known to be valid: it is passed on unchanged.
    Raw(Box<RawValue>),
    /// Bytes, for an operation whose output is a [`Body`].
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

/// Texts are equal if their bytes are.
impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(a), Self::Value(b)) => a == b,
            (Self::Body(a), Self::Body(b)) => a == b,
            (a, b) => matches!((a.text(), b.text()), (Some(a), Some(b)) if a == b),
        }
    }
}

/// The result of a call before it is read into a type.
pub type PayloadFuture = BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>>;

/// The items of a subscription before they are read into a type.
pub type PayloadStream = BoxStream<'static, Result<ResponseEnvelope<Payload>, CallError>>;

/// The items of a handler of a subscription: a boxed stream of data.
pub type ItemStream<T> = BoxStream<'static, Result<T, CallError>>;

/// A value as JSON.
///
/// # Errors
/// If a part of it cannot be JSON: a stream of bytes, or a number that is not finite. An integer has at most 64 bits.
pub(crate) fn to_value<T: Serialize>(value: &T) -> Result<Value, CallError> {
    crate::record::to_value(value)
        .map_err(|error| CallError::execution(format!("the value can't be written as JSON: {error}")))
}

/// A value as JSON text.
pub(crate) fn to_text<T: Serialize>(value: &T) -> Result<Box<RawValue>, CallError> {
    serde_json::value::to_raw_value(&Finite(value))
        .map_err(|error| CallError::execution(format!("the value can't be written as JSON: {error}")))
}

/// A value as the bytes of JSON text, in the buffer that they were written to: it is not shrunk.
pub(crate) fn to_bytes<T: Serialize>(value: &T) -> Result<Bytes, CallError> {
    serde_json::to_vec(&Finite(value))
        .map(Bytes::from)
        .map_err(|error| CallError::execution(format!("the value can't be written as JSON: {error}")))
}
