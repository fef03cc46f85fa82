//! What generated code names, in one place: the public face may change around it. No public API.

#[cfg(feature = "macros")]
pub use super::json_schema;
#[cfg(feature = "registry")]
pub use super::server::{handled, handled_as, handled_stream, not_implemented};
pub use crate::access::AccessControl;
pub use crate::binding::{
    Binding, HttpBinding, HttpBody, HttpField, HttpFixed, HttpParameter, HttpResponse, Literal, McpBinding, McpOutput,
    ParameterLocation, ParameterStyle, SecurityKind, SecurityRequirement, SecurityScheme, ServerVariable, StatusRange,
};
pub use crate::content::ContentBlock;
pub use crate::model::formats;
pub use crate::model::operation::Webhook;
pub use crate::spec::{Definition, Definitions, ErrorDefinition, OperationKind, OperationSpec, RetryPolicy, Schema};
pub use crate::{
    __error_answers as error_answers, __errors as errors, __json_schemas as json_schemas, __methods as methods,
    __names as names, __newtype as newtype, __record as record, __table as table, __tagged as tagged,
    __untagged as untagged, __values as values,
};
pub use crate::{
    Body, Call, CallError, DeclaredError, DeclaresErrors, ErrorResponse, Operation, ResponseEnvelope, Subscribe, record,
};
#[cfg(feature = "registry")]
pub use crate::{
    Caller, Context, Registry,
    adapter::ItemStream,
    registry::{Execute, Open, RegistryError},
};
pub use serde_json::Value;

/// Gives types of generated code the JSON Schemas of their definitions, for local operations that take or return them.
///
/// Does nothing without the feature `macros`.
#[cfg(feature = "macros")]
#[doc(hidden)]
#[macro_export]
macro_rules! __json_schemas {
    ($namespace:literal, $definitions:path { $($type:ty = $name:literal,)* }) => {$(
        impl $crate::__generated::json_schema::JsonSchema for $type {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                $crate::__generated::json_schema::schema_name($namespace, $name)
            }
            fn json_schema(generator: &mut $crate::__generated::json_schema::SchemaGenerator) -> $crate::__generated::json_schema::Schema {
                $crate::__generated::json_schema::json_schema(generator, $namespace, $name, $definitions)
            }
        }
    )*};
}

/// Does nothing without the feature `macros`.
#[cfg(not(feature = "macros"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __json_schemas {
    ($namespace:literal, $definitions:path { $($type:ty = $name:literal,)* }) => {};
}

/// Reads error responses as an enum of those that an operation declares.
///
/// ```
/// use ops_runtime::{DeclaredError, ErrorResponse};
///
/// enum ShowPetError {
///     NotFound(String),
///     Unauthorized,
///     Undeclared(ErrorResponse),
/// }
/// ops_runtime::__generated::errors!(ShowPetError, Undeclared { 404 => NotFound(_), 401 => Unauthorized });
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __errors {
    ($t:ty, $rest:ident { $($status:pat => $variant:ident $(($body:tt))?),* $(,)? }) => {
        impl $crate::DeclaredError for $t {
            #[allow(unused_mut, reason = "not all errors have bodies")]
            fn of(mut response: $crate::ErrorResponse) -> Self {
                let read = match response.status {
                    $($status => $crate::__variant!(response, Self::$variant $(, $body)?),)*
                    #[allow(unreachable_patterns, reason = "a default takes every status")]
                    _ => ::std::option::Option::None,
                };
                match read {
                    ::std::option::Option::Some(error) => error,
                    ::std::option::Option::None => Self::$rest(response),
                }
            }
        }
    };
}

/// The variant for an error response, if its body is as described.
#[doc(hidden)]
#[macro_export]
macro_rules! __variant {
    ($response:ident, $variant:path) => {
        ::std::option::Option::Some($variant)
    };
    ($response:ident, $variant:path, $body:tt) => {
        $crate::__generated::read_body(&mut $response).map($variant)
    };
}

/// The body of an error response as a type, if it is of that type; if not, the response says why.
pub fn read_body<T: serde_core::de::DeserializeOwned>(response: &mut ErrorResponse) -> Option<T> {
    match <T as serde_core::Deserialize>::deserialize(&response.body) {
        Ok(body) => Some(body),
        Err(error) => {
            // Read once more, to say where it differs.
            let placed = record::from_value::<T>(&response.body).err();
            response.unfit = Some(placed.map_or_else(|| error.to_string(), |placed| placed.to_string()));
            None
        }
    }
}

/// Makes the errors that an operation declares those with which its handler answers.
///
/// ```
/// use ops_runtime::{CallError, ErrorResponse};
///
/// enum ShowPetError {
///     NotFound(String),
///     Unauthorized,
///     Undeclared(ErrorResponse),
/// }
/// ops_runtime::__generated::error_answers!(ShowPetError, Undeclared { NotFound(body) = 404, Unauthorized = 401 });
/// assert_eq!(CallError::from(ShowPetError::NotFound("no such pet".into())).status(), Some(404));
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __error_answers {
    ($t:ty, $rest:ident { $($variant:ident $(($body:ident))? = $status:literal),* $(,)? }) => {
        impl $crate::__generated::ErrorAnswer for $t {
            fn answer(self) -> $crate::CallError {
                match self {
                    $(Self::$variant $(($body))? => $crate::__generated::answer_error($status, ($($body)?)),)*
                    Self::$rest(response) => ::std::convert::From::from(response),
                }
            }
        }
        impl ::std::convert::From<$t> for $crate::CallError {
            fn from(error: $t) -> Self {
                $crate::__generated::ErrorAnswer::answer(error)
            }
        }
    };
}

/// A declared error that a handler answers with.
pub trait ErrorAnswer {
    /// The error of the call.
    fn answer(self) -> CallError;
}

/// The error that is answered with a status and a body.
pub fn answer_error<T: serde_core::Serialize>(status: u16, body: T) -> CallError {
    match crate::record::to_value(&body) {
        Ok(body) => ErrorResponse::new(status, body).into(),
        Err(error) => CallError::execution(format!("the body of the error can't be written as JSON: {error}")),
    }
}

/// Declares the trait whose methods run a module's operations.
///
/// Declares nothing without the feature `registry`, which runs operations.
#[cfg(feature = "registry")]
#[doc(hidden)]
#[macro_export]
macro_rules! __methods {
    ($($item:tt)*) => { $($item)* };
}

/// Declares nothing without the feature `registry`.
#[cfg(not(feature = "registry"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __methods {
    ($($item:tt)*) => {};
}

/// The error of [`read_operations`].
pub use serde_json::Error as ReadError;

/// Reads operations that generated code left out, and the definitions that they share.
///
/// # Errors
/// If the text is not what the generator wrote.
pub fn read_operations(json: &str) -> Result<Vec<OperationSpec>, ReadError> {
    use serde_core::Deserialize;
    use serde_core::de::Error;

    let mut value: Value = serde_json::from_str(json)?;
    let mut part =
        |name: &str| value.get_mut(name).map(Value::take).ok_or_else(|| ReadError::custom("a part is missing"));
    let definitions = match part("definitions")? {
        Value::Object(entries) => entries.into_iter().map(|(name, schema)| Definition::from_value(name, schema)),
        _ => return Err(ReadError::custom("the definitions are no object")),
    };
    let definitions = Definitions::new(definitions.collect());
    let mut specs = Vec::<OperationSpec>::deserialize(part("operations")?)?;
    specs.iter_mut().for_each(|spec| spec.definitions = definitions.clone());
    Ok(specs)
}
