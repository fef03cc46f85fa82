//! Typed operations: one call, one result, wherever the operation runs.
//!
//! An [`Operation`] is a named unit of work with an input and an output type: a function of this program or an endpoint
//! of an HTTP API. It is described by data, an [`OperationSpec`], and run by a [`Registry`],
//! whose every result is a [`ResponseEnvelope`]: the data, where it came from, and where it did not match its schema.
//!
#![cfg_attr(
    all(feature = "macros", feature = "registry"),
    doc = r#"
```
use ops_runtime::{Registry, operation};

/// Adds two numbers.
#[operation(namespace = "math", kind = query)]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

# #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
let registry = Registry::new();
registry.register(Add)?;

// By its type, or by its id with any JSON.
assert_eq!(registry.execute::<Add>(AddInput { a: 40, b: 2 }).await?.data, 42);
let input = serde_json::json!({ "a": 40, "b": 2 });
assert_eq!(registry.call("math.add", input).await?.data, 42);
# Ok(()) }
```
"#
)]
//!
//! # Features
//!
//! Without any, the crate is the model alone, with the serde that generated types use.
//!
//! - `macros` (default): the attribute `#[operation]`, and schemas of Rust types
//! - `registry` (default): the registry, its pipeline, JSON Schema validation and the normaliser
//! - `validate` (default): the same as `registry`, which validates in full
//! - `http`: the HTTP client, server-sent events
//! - `websocket`: the call protocol over WebSocket; `metrics`: what is counted about calls
//! - `openapi`: reading OpenAPI documents; with `http`, `from_openapi` and its kin
//! - `mcp-schema`: reading lists of MCP tools, and what changed between two
//! - `mcp-server`: serving a registry as an MCP server
//! - `mcp`, `mcp-http`, `mcp-auth`: the MCP client, for servers that are child processes, at a URL, and with OAuth
//! - `discover`: `Registry::discover`
//! - `chrono`, `uuid`, `url`: the types of formats, for generated code that asks for them
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

#[cfg(feature = "registry")]
pub mod call;
#[cfg(feature = "openapi")]
mod documents;
mod expand;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "mcp-schema")]
pub mod mcp;
mod model;
#[cfg(feature = "registry")]
pub mod normalise;
pub mod record;
#[cfg(feature = "registry")]
mod run;

pub use model::access::{AccessControl, Identity};
pub use model::binding::{
    Binding, HttpBinding, HttpBody, HttpField, HttpFixed, HttpParameter, HttpResponse, Literal, McpBinding, McpOutput,
    ParameterLocation, ParameterStyle, SecurityKind, SecurityRequirement, SecurityScheme, ServerVariable, StatusRange,
};
pub use model::body::Body;
#[cfg(feature = "registry")]
pub use model::body::BodyStream;
pub use model::content::{
    Annotations, ContentBlock, EmbeddedResource, MediaContent, ResourceContent, ResourceLink, TextContent,
};
pub use model::diagnostic::{Diagnostic, Severity};
pub use model::envelope::{
    EventMeta, HttpMeta, LocalMeta, McpMeta, ResponseEnvelope, ResponseMeta, Warning, is_response_envelope,
};
pub use model::error::{CallError, ErrorCode, ErrorDefinition};
pub use model::operation::{Call, Operation, Subscribe};
pub use model::schema::{Definition, Definitions, Schema};
pub use model::spec::{Api, InvalidId, OperationKind, OperationSpec};
pub use model::text::{List, Text};
pub use model::{formats, wire};

#[cfg(feature = "registry")]
pub use model::futures::{BoxFuture, BoxStream};
#[cfg(feature = "registry")]
pub use run::caller::{Caller, Env, Scoped};
#[cfg(feature = "registry")]
pub use run::context::{CallOptions, CancelToken, Context, OutputPolicy};
#[cfg(feature = "registry")]
pub use run::extensions::Extensions;
#[cfg(feature = "registry")]
pub use run::handler::{Endpoint, Handler, Payload, PayloadStream, Registration, Reply, SpecRef};
#[cfg(feature = "registry")]
pub use run::mock;
#[cfg(feature = "registry")]
pub use run::pipeline::EnvelopeStream;
#[cfg(feature = "registry")]
pub use run::progress::{Progress, ProgressSink, ProgressStream};
#[cfg(feature = "registry")]
pub use run::registry::{Registry, RegistryBuilder, RegistryError};

#[cfg(all(feature = "macros", feature = "registry"))]
#[doc = include_str!("expand/operation.md")]
pub use ops_macros::operation;

#[cfg(all(feature = "macros", feature = "registry"))]
#[doc(hidden)]
pub mod __private {
    pub use crate::expand::private::*;
}
#[cfg(feature = "openapi")]
pub use documents::{openapi, source};
#[cfg(feature = "macros")]
#[doc(hidden)]
pub use expand::json_schema;
#[cfg(feature = "http")]
#[doc(no_inline)]
pub use http::sse;
/// Any JSON, as generated types hold it.
pub use serde_json::Value;

#[cfg(feature = "http")]
pub use self::http::{Auth, HttpClient, HttpConfig};
#[cfg(all(feature = "http", feature = "openapi"))]
pub use self::http::{Imported, from_openapi, from_openapi_file, from_openapi_source, from_openapi_url};

/// Includes the operations that `ops-codegen` generated in `build.rs`, by their namespace.
///
/// ```ignore
/// pub mod petstore {
///     ops_runtime::include_operations!("petstore");
/// }
/// ```
#[macro_export]
macro_rules! include_operations {
    ($namespace:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $namespace, ".rs"));
    };
}

/// Gives types of generated code the JSON Schemas of their definitions, for local operations that take or return them.
///
/// Does nothing without the feature `macros`.
#[cfg(feature = "macros")]
#[macro_export]
macro_rules! json_schemas {
    ($namespace:literal, $definitions:path { $($type:ty = $name:literal,)* }) => {$(
        impl $crate::json_schema::JsonSchema for $type {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                $crate::json_schema::schema_name($namespace, $name)
            }
            fn json_schema(generator: &mut $crate::json_schema::SchemaGenerator) -> $crate::json_schema::Schema {
                $crate::json_schema::json_schema(generator, $namespace, $name, $definitions)
            }
        }
    )*};
}

/// Does nothing without the feature `macros`.
#[cfg(not(feature = "macros"))]
#[macro_export]
macro_rules! json_schemas {
    ($namespace:literal, $definitions:path { $($type:ty = $name:literal,)* }) => {};
}
