//! Why a text could not be read.

use std::borrow::Cow;
use std::fmt;

use serde_core::de::{Error, Expected, Unexpected};
use serde_json::Number;

/// The start of the message for a text that is no time of the type. What was found is added where the whole text is known.
pub(in crate::record) const NO_TIME: &str = "expected another form of date or time";

/// Why a text could not be read, and where.
#[derive(Debug)]
pub(crate) struct Fault(Box<Cause>);

#[derive(Debug)]
struct Cause {
    message: Cow<'static, str>,
    /// The number of bytes before the place, if it is known.
    at: Option<usize>,
    is_syntax: bool,
}

impl Fault {
    /// The text is not JSON.
    #[cold]
    pub(super) fn syntax(message: &'static str, at: usize) -> Self {
        Self(Box::new(Cause { message: Cow::Borrowed(message), at: Some(at), is_syntax: true }))
    }

    /// Says where the fault is, if that is not known yet.
    #[cold]
    pub(super) fn or_at(mut self, at: usize) -> Self {
        self.0.at.get_or_insert(at);
        self
    }

    /// What is wrong.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// The number of bytes before the place; 0 if it is not known.
    pub(crate) fn at(&self) -> usize {
        self.0.at.unwrap_or(0)
    }

    /// True if the text is not JSON.
    pub(crate) fn is_syntax(&self) -> bool {
        self.0.is_syntax
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Fault {}

impl Error for Fault {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = if is_of_time::<T>() { format!("{NO_TIME} ({message})") } else { message.to_string() };
        Self(Box::new(Cause { message: Cow::Owned(message), at: None, is_syntax: false }))
    }

    #[cold]
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("invalid type: {}, expected {expected}", Found(found)))
    }

    #[cold]
    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("invalid value: {}, expected {expected}", Found(found)))
    }
}

/// True for the error of `chrono`, which names neither what is expected nor what was found.
fn is_of_time<T>() -> bool {
    // By its name, since the crate is optional.
    std::any::type_name::<T>() == "chrono::format::ParseError"
}

/// What was found, in the words of JSON.
struct Found<'a>(Unexpected<'a>);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Unit => f.write_str("null"),
            Unexpected::Float(value) => match Number::from_f64(value) {
                Some(number) => write!(f, "floating point `{number}`"),
                None => write!(f, "floating point `{value}`"),
            },
            found => found.fmt(f),
        }
    }
}
