//! What expansions of `#[operation]` name. No public API: it changes together with the macro.

mod generate;
mod http;

use std::fmt::Debug;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

pub use crate::__submit as submit;
pub use crate::access::AccessControl;
pub use crate::adapter::Registration;
pub use crate::binding::{HttpBinding, HttpBody, HttpParameter};
pub use crate::spec::{ErrorDefinition, OperationSpec, RetryPolicy};
pub use crate::{Call, Operation, Subscribe};
pub use generate::{Sink, generate};
pub use http::{ITEMS, Sent, SentAsJson, gives_nothing, is_data, success, type_of_rest};
#[cfg(feature = "discover")]
pub use inventory;
pub use {schemars, serde};

use crate::{CallError, Reply, ResponseEnvelope, Schema};

/// An operation that comes with its handler.
// Not `From<Op> for Registration` in each expansion: an impl that names the type, other than as `Self`, would keep the
// dead-code lint from telling that an operation is never registered.
pub trait Handled: Operation {
    /// The operation with its handler.
    fn registration() -> Registration;
}

impl<Op: Handled> From<Op> for Registration {
    fn from(_: Op) -> Self {
        Op::registration()
    }
}

/// The schema of what an input may be.
pub const fn input_schema<T: Described>() -> Schema {
    Schema::of_type(|| schema_of::<T>(SchemaSettings::draft2020_12().for_deserialize()))
}

/// The schema of what an output will be: a property that only serde's `default` makes optional is always there.
pub const fn output_schema<T: Described>() -> Schema {
    Schema::of_type(|| schema_of::<T>(SchemaSettings::draft2020_12().for_serialize()))
}

/// Compiles if the type can be that of a parameter.
pub const fn is_parameter<T: Parameter>() {}

/// Reads a property that is there: for an `Option<Option<_>>`, `null` is `Some(None)`, and absence is `None`, the default.
///
/// # Errors
/// If the value does not fit the type.
pub fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: serde::Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| settings.meta_schema = None);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// The reply of a handler that gives plain data.
pub fn value<T>(data: T) -> Result<Reply<T>, CallError> {
    Ok(Reply::Value(data))
}

/// The reply of a handler that gives plain data or an error.
pub fn result<T, E: OperationError>(result: Result<T, E>) -> Result<Reply<T>, CallError> {
    result.map(Reply::Value).map_err(E::into_call_error)
}

/// The reply of a handler that makes its own envelope.
pub fn envelope<T>(envelope: ResponseEnvelope<T>) -> Result<Reply<T>, CallError> {
    Ok(envelope.into())
}

/// The reply of a handler that makes its own envelope or gives an error.
pub fn result_envelope<T, E: OperationError>(result: Result<ResponseEnvelope<T>, E>) -> Result<Reply<T>, CallError> {
    result.map(Reply::from).map_err(E::into_call_error)
}

/// The stream of a subscription that may fail before it begins.
pub fn opened<S, E: OperationError>(stream: Result<S, E>) -> Result<S, CallError> {
    stream.map_err(E::into_call_error)
}

/// An error that a handler can return.
// A trait of our own over `Into<CallError>`, for its message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of an operation",
    label = "no `CallError` can be made from `{Self}`",
    note = "for a type of your own: implement `From<{Self}>` for `ops_runtime::CallError`",
    note = "for one of another crate, such as `anyhow::Error`: return `Box<dyn Error + Send + Sync>`, which `?` makes of it"
)]
pub trait OperationError {
    /// The error as callers get it.
    fn into_call_error(self) -> CallError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<CallError>> OperationError for E {
    fn into_call_error(self) -> CallError {
        self.into()
    }
}

/// A type with a schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON Schema",
    note = "a type of your own needs `#[derive(schemars::JsonSchema)]`, of schemars 1",
    note = "for one of another crate, schemars has a feature, such as `chrono04`, `uuid1` and `url2`"
)]
pub trait Described: JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: JsonSchema> Described for T {}

/// A type that a property of an input can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of an operation",
    label = "this type cannot be data",
    note = "a type of your own needs `#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]` (serde, schemars 1)",
    note = "one of another crate needs its feature for serde, and schemars one for it, such as `chrono04`, `uuid1` and `url2`"
)]
pub trait Parameter {}

#[diagnostic::do_not_recommend]
impl<T: Debug + Clone + serde::Serialize + serde::de::DeserializeOwned + JsonSchema + Send + 'static> Parameter for T {}

/// Makes an operation known to `Registry::discover`.
#[cfg(feature = "discover")]
#[doc(hidden)]
#[macro_export]
macro_rules! __submit {
    ($operation:ident) => {
        $crate::__private::inventory::submit!($crate::__private::Discovered(|| $operation.into()));
    };
}

/// Does nothing without the feature `discover`.
#[cfg(not(feature = "discover"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __submit {
    ($operation:ident) => {};
}

/// An operation that is linked into the program.
#[cfg(feature = "discover")]
pub struct Discovered(pub fn() -> Registration);

#[cfg(feature = "discover")]
inventory::collect!(Discovered);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(serde::Serialize, serde::Deserialize, JsonSchema)]
    #[serde(default)]
    struct Page {
        size: u8,
        next: Option<Box<Page>>,
    }

    impl Default for Page {
        fn default() -> Self {
            Self { size: 10, next: None }
        }
    }

    #[test]
    fn schemas_stand_alone() {
        let schema = input_schema::<Page>().to_value().unwrap().into_owned();
        assert_eq!(schema["properties"]["size"]["default"], 10);
        assert!(schema.get("required").is_none() && schema.get("title").is_none() && schema.get("$schema").is_none());
        let schema = output_schema::<Page>().to_value().unwrap().into_owned();
        assert_eq!(schema["required"], json!(["size", "next"]));
        assert_eq!(output_schema::<()>().to_value().unwrap().into_owned(), json!({ "type": "null" }));
        let schema = output_schema::<Vec<Page>>().to_value().unwrap().into_owned();
        assert_eq!(schema["items"]["$ref"], "#/$defs/Page");
        assert!(schema["$defs"]["Page"].is_object());
    }

    #[cfg(feature = "registry")]
    #[test]
    fn types_stand_for_the_schemas_that_they_make() {
        assert!(output_schema::<Page>().is_made() && Schema::make(|| json!(true)).is_made());
        assert!(!Schema::ANY.is_made() && !Schema::text("{}").is_made());
    }
}
