//! What generated code names, in one place: the public face may change around it. No public API.

#[cfg(feature = "macros")]
pub use super::json_schema;
pub use crate::access::AccessControl;
pub use crate::binding::{
    Binding, HttpBinding, HttpBody, HttpField, HttpFixed, HttpParameter, HttpResponse, Literal, McpBinding, McpOutput,
    ParameterLocation, ParameterStyle, SecurityKind, SecurityRequirement, SecurityScheme, ServerVariable, StatusRange,
};
pub use crate::content::ContentBlock;
pub use crate::model::formats;
pub use crate::spec::{Definition, Definitions, ErrorDefinition, OperationKind, OperationSpec, Schema};
pub use crate::{
    __json_schemas as json_schemas, __names as names, __newtype as newtype, __record as record, __table as table,
    __tagged as tagged, __untagged as untagged, __values as values,
};
pub use crate::{Body, Call, Operation, ResponseEnvelope, Subscribe, record};
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
