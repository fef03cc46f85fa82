//! Typed operations: one call, one result, wherever the operation runs.
//!
//! An [`Operation`] is a named unit of work with an input and an output type: a function of this program, an endpoint
//! of an HTTP API, a tool of an MCP server, or an operation of another process. An [`OperationSpec`] describes it. A
//! [`Registry`] runs it. Every result is a [`ResponseEnvelope`]: the data, its source, and warnings about values that
//! did not match the schema.
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
//! Three things have the name "call": [`Call`] marks an operation with one result, [`Caller::call`] runs an operation by
//! its id, and the module [`call`](mod@call) is the protocol between processes.
//!
//! # Features
//!
//! Without any feature, the crate has only the model, and the serde implementation for generated types.
//!
//! - `macros` (default): the attribute `#[operation]`, and schemas of Rust types
//! - `registry` (default): the registry, its pipeline, JSON Schema validation and the normaliser
//! - `http`: the HTTP client, server-sent events; `compression`: compressed responses for it
//! - `webhooks`: verifying the signatures of webhooks, reading their payloads
//! - `websocket`, `nats`, `redis`: the call protocol over WebSocket, NATS and Redis; `tls`: `wss://` and `rediss://`, and
//!   private certificate authorities; `nkeys`: accounts of NATS servers
//! - `metrics`: metrics of calls, requests and jobs
//! - `openapi`: reading OpenAPI documents; with `http`, `from_openapi` and similar functions
//! - `mcp-schema`: reading and comparing lists of MCP tools
//! - `mcp-server`: serving a registry as an MCP server
//! - `http-server`: serving a registry over HTTP; `jwt`: JWTs as its tokens;
//!   `docs-page`: its documentation page; `http-server-compression`: its compressed responses
//! - `mcp`, `mcp-http`, `mcp-auth`: the MCP client, for servers that are child processes, at a URL, and with OAuth
//! - `typescript`: operations as TypeScript, for models and for people
//! - `program`: running JavaScript programs of models in a sandbox
//! - `gateway`: any number of operations behind the few tools of a model, with a policy, limits and an audit log
//! - `durable`: jobs, which are calls that survive callers and workers; `jetstream`: jobs stored by NATS servers
//! - `discover`: `Registry::discover`
//! - `search`: finding operations by words
//! - `chrono`, `uuid`, `url`: the types of formats, for generated code that asks for them
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

#[cfg(feature = "registry")]
pub mod call;
#[cfg(feature = "openapi")]
mod documents;
#[cfg(feature = "durable")]
pub mod durable;
mod expand;
#[cfg(feature = "gateway")]
pub mod gateway;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "mcp-schema")]
pub mod mcp;
mod model;
#[cfg(any(feature = "jetstream", feature = "nats"))]
mod nats;
#[cfg(feature = "registry")]
pub mod normalise;
#[doc(hidden)]
pub mod pointer;
#[cfg(feature = "program")]
pub mod program;
#[doc(hidden)]
pub mod record;
#[cfg(feature = "registry")]
mod run;
#[cfg(feature = "search")]
pub mod search;
#[cfg(test)]
#[path = "../../tests/src/seeded.rs"]
mod seeded;
#[cfg(feature = "http-server")]
pub mod serve;
#[cfg(any(
    feature = "http",
    all(feature = "tls", any(feature = "jetstream", feature = "nats", feature = "redis", feature = "websocket"))
))]
mod tls;
#[cfg(feature = "typescript")]
pub mod typescript;
#[cfg(feature = "webhooks")]
pub mod webhooks;

pub use model::body::Body;
pub use model::envelope::ResponseEnvelope;
pub use model::error::{CallError, DeclaredError, DeclaresErrors, ErrorCode, ErrorResponse};
#[doc(hidden)]
pub use model::glob;
#[cfg(any(feature = "registry", feature = "mcp-schema", feature = "openapi", feature = "typescript"))]
#[doc(hidden)]
pub use model::keywords;
#[cfg(any(feature = "openapi", feature = "registry"))]
#[doc(hidden)]
pub use model::nearest;
pub use model::operation::{Call, Operation, Subscribe};
pub use model::{access, binding, content, envelope, wire};
#[cfg(feature = "registry")]
pub use run::caller::Caller;
#[cfg(feature = "registry")]
pub use run::context::{CallOptions, Context};
#[cfg(feature = "registry")]
pub use run::mock;
#[cfg(feature = "registry")]
pub use run::registry::Registry;

#[cfg(feature = "http")]
pub use self::http::{HttpClient, HttpConfig};

/// Operations as data: their specs, the schemas of their inputs and outputs, and the diagnostics of reading them.
///
/// ```
/// use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
///
/// const SHOW: OperationSpec = OperationSpec::query("shop.show").with_output(Schema::text(r#"{"type":"string"}"#));
/// assert_eq!((SHOW.namespace(), SHOW.name(), SHOW.kind), ("shop", "show", OperationKind::Query));
/// assert_eq!(SHOW.output.to_value()?["type"], "string");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub mod spec {
    pub use crate::model::diagnostic::{Diagnostic, Severity};
    pub use crate::model::error::ErrorDefinition;
    pub use crate::model::retry::RetryPolicy;
    pub use crate::model::schema::{Definition, Definitions, Schema};
    #[cfg(any(feature = "openapi", feature = "registry"))]
    pub use crate::model::spec::check_pattern;
    #[cfg(any(feature = "openapi", feature = "registry"))]
    #[doc(hidden)]
    pub use crate::model::spec::may_name_a_method;
    pub use crate::model::spec::{Api, InvalidId, OperationKind, OperationSpec};
    #[cfg(feature = "registry")]
    pub use crate::model::spec_ref::SpecRef;
    pub use crate::model::text::{List, Text};
    pub use crate::model::text_list::TextList;
    #[doc(inline)]
    pub use crate::pointer;
}

/// The parts of a registry: its builder, policies, scoped callers, and the futures and streams of its calls.
///
/// ```
/// use ops_runtime::Registry;
/// use ops_runtime::registry::OutputPolicy;
///
/// struct Pool;
///
/// let registry = Registry::builder().with_policy(OutputPolicy::Strict).with_state(Pool).build();
/// assert!(registry.list().is_empty());
/// ```
#[cfg(feature = "registry")]
pub mod registry {
    pub use crate::model::policy::OutputPolicy;
    pub use crate::run::caller::{Env, Scoped};
    pub use crate::run::cancel::CancelToken;
    pub use crate::run::method::{Execute, Open};
    pub use crate::run::pipeline::{CallFuture, EnvelopeStream, Execution, Opening};
    pub use crate::run::progress::{Progress, ProgressSink, ProgressStream};
    pub use crate::run::registry::{RegistryBuilder, RegistryError};
    pub use crate::run::through::Through;
}

/// Building blocks for adapters: handlers, endpoints, and the types that they take and return.
///
/// ```
/// use ops_runtime::Registry;
/// use ops_runtime::adapter::{Handler, Registration};
/// use ops_runtime::spec::OperationSpec;
/// use serde_json::{Value, json};
///
/// static ECHO: OperationSpec = OperationSpec::query("demo.echo");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Registry::new();
/// registry.register(Registration::new(&ECHO, Handler::dynamic(|input: Value, _| async { Ok(input) })))?;
/// assert_eq!(registry.call("demo.echo", json!(7)).await?.data, 7);
/// # Ok(()) }
/// ```
#[cfg(feature = "registry")]
pub mod adapter {
    pub use crate::model::body::BodyStream;
    pub use crate::model::body::handover::Bodies;
    pub use crate::model::futures::{BoxFuture, BoxStream};
    pub use crate::run::extensions::Extensions;
    pub use crate::run::handler::{Endpoint, Handler, IntoRegistration, Registration};
    pub use crate::run::payload::{ItemStream, Payload, PayloadFuture, PayloadStream, Reply};
}

/// OpenAPI documents at run time: reading them, and calling their operations without generated code.
///
/// ```
/// use ops_runtime::openapi::{ReadOptions, parse, read};
///
/// # fn main() -> Result<(), ops_runtime::spec::Diagnostic> {
/// let text = "
/// openapi: 3.1.0
/// info: { title: Shop, version: 1.0.0 }
/// paths: { /pets: { get: { operationId: listPets, responses: { '204': { description: None are there. } } } } }
/// ";
/// let (api, diagnostics) = read(&parse(text)?, &ReadOptions::new())?;
/// assert_eq!(api.operations[0].name(), "listPets");
/// assert!(diagnostics.is_empty());
/// # Ok(()) }
/// ```
#[cfg(feature = "openapi")]
pub mod openapi {
    #[doc(inline)]
    pub use crate::documents::openapi::*;
    pub use crate::documents::source::{FileSource, Source, SourceError};
    #[cfg(feature = "http")]
    pub use crate::http::import::{
        Imported, fetch, from_openapi, from_openapi_file, from_openapi_source, from_openapi_url, from_openapi_value,
    };
}

#[cfg(all(feature = "macros", feature = "registry"))]
#[doc = include_str!("expand/operation.md")]
pub use ops_macros::operation;

#[cfg(all(feature = "macros", feature = "registry"))]
#[doc(hidden)]
pub mod __private {
    pub use crate::expand::private::*;
}

#[doc(hidden)]
pub mod __generated {
    pub use crate::expand::generated::*;
}

// Inside the crate, names of the model and the pipeline are used from the root, wherever they are public.
use names::*;

#[allow(unused_imports, reason = "each combination of features names some of them")]
mod names {
    pub(crate) use crate::access::{AccessControl, CallPolicy, Decision, Identity};
    pub(crate) use crate::binding::{
        Binding, HttpBinding, HttpBody, HttpField, HttpFixed, HttpParameter, HttpResponse, Literal, McpBinding,
        McpOutput, ParameterLocation, ParameterStyle, SecurityKind, SecurityRequirement, SecurityScheme,
        ServerVariable, StatusRange,
    };
    pub(crate) use crate::content::{
        Annotations, ContentBlock, EmbeddedResource, MediaContent, ResourceContent, ResourceLink, TextContent,
    };
    pub(crate) use crate::envelope::{
        EventMeta, HttpMeta, LocalMeta, McpMeta, ResponseMeta, Warning, is_response_envelope,
    };
    pub(crate) use crate::model::formats;
    pub(crate) use crate::spec::*;
    #[cfg(feature = "registry")]
    pub(crate) use crate::{adapter::*, registry::*};
    pub(crate) use serde_json::Value;
}

/// Includes the operations that `ops-codegen` generated in `build.rs`, by their namespace.
///
/// ```ignore
/// pub mod petstore {
///     ops_runtime::include_operations!("petstore");
/// }
/// // The same in one line.
/// ops_runtime::include_operations!(pub mod petstore = "petstore");
/// ```
///
/// If `Builder::build` did not generate the namespace, the error lists those that it did; without a `build.rs`, the
/// error says so. To include a file that something else wrote, use `include!(concat!(env!("OUT_DIR"), "/own.rs"))`.
#[macro_export]
macro_rules! include_operations {
    ($namespace:literal) => {
        // The build script sets these, if it is one of `ops-codegen`.
        #[allow(unexpected_cfgs)]
        const _: () = {
            #[cfg(all(ops_modules, not(ops_module = $namespace)))]
            compile_error!(concat!(
                "there is no module `",
                $namespace,
                "`: `build.rs` generated ",
                env!("OPS_MODULES")
            ));
        };
        include!(concat!(
            env!(
                "OUT_DIR",
                "the package has no `build.rs`: `include_operations!` includes what one generates by `ops_codegen::Builder`"
            ),
            "/",
            $namespace,
            ".rs"
        ));
    };
    ($(#[$attribute:meta])* $visibility:vis mod $name:ident = $namespace:literal) => {
        $(#[$attribute])*
        #[doc = concat!("The operations of `", $namespace, "`, generated by `build.rs`.")]
        $visibility mod $name {
            $crate::include_operations!($namespace);
        }
    };
}
