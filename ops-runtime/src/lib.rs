//! Typed operations: one call, one result, wherever the operation runs.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod access;
mod binding;
mod content;
mod diagnostic;
mod envelope;
mod error;
mod operation;
mod schema;
mod spec;
mod text;

#[cfg(feature = "registry")]
pub mod normalise;
#[cfg(feature = "openapi")]
pub mod openapi;
pub mod record;
#[cfg(feature = "openapi")]
pub mod source;

pub use access::{AccessControl, Identity};
pub use binding::{
    Binding, HttpBinding, HttpBody, HttpParameter, HttpResponse, ParameterLocation, ParameterStyle, StatusRange,
};
pub use content::{
    Annotations, ContentBlock, EmbeddedResource, MediaContent, ResourceContent, ResourceLink, TextContent,
};
pub use diagnostic::{Diagnostic, Severity};
pub use envelope::{
    EventMeta, HttpMeta, LocalMeta, McpMeta, ResponseEnvelope, ResponseMeta, Warning, is_response_envelope,
};
pub use error::{CallError, ErrorCode, ErrorDefinition};
pub use operation::{Call, Operation, Subscribe};
pub use schema::{Definition, Definitions, Schema};
pub use spec::{Api, InvalidId, OperationKind, OperationSpec};
pub use text::{List, Text};

/// Any JSON, as generated types hold it.
pub use serde_json::Value;
