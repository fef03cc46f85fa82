//! The HTTP client: runs operations that are bound to HTTP endpoints.
//!
//! An [`HttpClient`] interprets the [`HttpBinding`](crate::HttpBinding) of a spec; operations of generated code and
//! of documents met at run time send the same requests.

mod auth;
mod body;
mod caller;
mod client;
mod config;
mod engine;
mod events;
#[cfg(test)]
mod fake;
#[cfg(feature = "openapi")]
mod fetch;
#[cfg(feature = "openapi")]
mod import;
mod media;
mod path;
mod redirect;
mod request;
mod response;
mod style;

use serde_json::json;

pub use auth::{Auth, Secret};
pub use client::HttpClient;
pub use config::HttpConfig;
pub use engine::RequestBody;
#[cfg(feature = "openapi")]
pub use import::{Imported, from_openapi, from_openapi_file, from_openapi_source, from_openapi_url};
pub use response::{error_body, error_status};

use crate::{CallError, ErrorCode};

/// The error of a value that cannot be sent, at a JSON pointer into the input or the configuration.
fn invalid(pointer: &str, message: impl Into<String>) -> CallError {
    let message = message.into();
    let violation = json!({ "pointer": pointer, "message": message });
    CallError::new(ErrorCode::ValidationError, message).with_details(json!({ "violations": [violation] }))
}

/// The JSON pointer to a property of the input (RFC 6901).
fn pointer(property: &str) -> String {
    format!("/{}", property.replace('~', "~0").replace('/', "~1"))
}
