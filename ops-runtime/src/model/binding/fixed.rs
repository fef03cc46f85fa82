//! Values that an operation sets itself, so that its input does not have them.

use std::borrow::Cow;

use crate::Text;

/// A fixed value in a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// A boolean.
    Bool(bool),
    /// A text.
    Text(Text),
}

impl Literal {
    /// A text in a const.
    pub const fn text(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// The value as JSON.
    #[cfg(any(feature = "http", feature = "http-server"))]
    pub(crate) fn to_value(&self) -> serde_json::Value {
        match self {
            Self::Bool(value) => serde_json::Value::Bool(*value),
            Self::Text(text) => serde_json::Value::String(text.clone().into_owned()),
        }
    }
}

/// A property of a request body that the operation sets itself: no input may hold it.
///
/// An example is the boolean that chooses between one result and a stream of events: the operation that streams always
/// sends `true`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpFixed {
    /// The name of the property.
    pub name: Text,
    /// The value that every request has; `None` if the property is never sent.
    pub value: Option<Literal>,
}

impl HttpFixed {
    /// A property that every request has with this value.
    pub const fn new(name: &'static str, value: Literal) -> Self {
        Self { name: Cow::Borrowed(name), value: Some(value) }
    }

    /// A property that is never sent.
    pub const fn absent(name: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), value: None }
    }
}
