//! The format on the wire: JSON Schemas (draft 2020-12) of everything that leaves the process, as text.
//!
//! Each is complete, with its definitions under `$defs`. They describe the output of writers. Readers accept more:
//! unknown members, `null` for an absent optional member, content blocks of other kinds. The texts are parsed only on
//! use, and unused ones are not part of the program.
//!
//! Schemas can't express some rules. A `structuredContent` that is null differs from an absent one. A spec's schemas
//! include the definitions that they reach, and keep them when the spec is read. The answer of an MCP tool in an error
//! ([`CallError::mcp_meta`](crate::CallError::mcp_meta)) is not part of the error's JSON, unless it was put in the
//! details.
//!
//! ```
//! use ops_runtime::{ResponseEnvelope, wire};
//! use ops_runtime::spec::Schema;
//!
//! let schema = Schema::text(wire::RESPONSE_ENVELOPE_SCHEMA).to_value().unwrap().into_owned();
//! assert_eq!(schema["$ref"], "#/$defs/ResponseEnvelope");
//! assert_eq!(schema["$defs"]["ResponseEnvelope"]["required"][0], "data");
//!
//! let envelope: ResponseEnvelope<Vec<u8>> = serde_json::from_str(
//!     r#"{ "data": [1, 2], "meta": { "source": "local", "operationId": "a.b", "timestamp": 0 } }"#,
//! )
//! .unwrap();
//! assert_eq!(envelope.into_data(), [1, 2]);
//! ```

mod events;
mod operations;
mod results;

use results::definition;

/// The text of a schema with a definition, given with all definitions that it reaches.
macro_rules! schema {
    ($root:ident $($other:ident)*) => {
        concat!(
            r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","$ref":"#/$defs/"##,
            stringify!($root),
            r#"","$defs":{""#,
            stringify!($root),
            r#"":"#,
            definition!($root),
            $(",\"", stringify!($other), "\":", definition!($other),)*
            "}}",
        )
    };
}

/// Schema of a [`ResponseEnvelope`](crate::ResponseEnvelope) around any data.
#[doc(alias = "ResponseEnvelopeSchema")]
pub const RESPONSE_ENVELOPE_SCHEMA: &str =
    schema!(ResponseEnvelope ResponseMeta LocalMeta HttpMeta McpMeta ContentBlock ResourceContent Annotations Warning);

/// Schema of a [`ResponseMeta`](crate::ResponseMeta): one of the three below.
#[doc(alias = "ResponseMetaSchema")]
pub const RESPONSE_META_SCHEMA: &str =
    schema!(ResponseMeta LocalMeta HttpMeta McpMeta ContentBlock ResourceContent Annotations);

/// Schema of the meta of a result of this process.
#[doc(alias = "LocalResponseMetaSchema")]
pub const LOCAL_META_SCHEMA: &str = schema!(LocalMeta);

/// Schema of the meta of an HTTP response.
#[doc(alias = "HTTPResponseMetaSchema")]
pub const HTTP_META_SCHEMA: &str = schema!(HttpMeta);

/// Schema of the meta of an MCP tool's result.
#[doc(alias = "MCPResponseMetaSchema")]
pub const MCP_META_SCHEMA: &str = schema!(McpMeta ContentBlock ResourceContent Annotations);

/// Schema of a [`ContentBlock`](crate::ContentBlock) of the known kinds.
#[doc(alias = "MCPContentBlockSchema")]
pub const CONTENT_BLOCK_SCHEMA: &str = schema!(ContentBlock ResourceContent Annotations);

/// Schema of a [`CallError`](crate::CallError).
pub const CALL_ERROR_SCHEMA: &str = schema!(CallError);

/// Schema of an [`ErrorDefinition`](crate::ErrorDefinition).
#[doc(alias = "ErrorDefinitionSchema")]
pub const ERROR_DEFINITION_SCHEMA: &str = schema!(ErrorDefinition Schema);

/// Schema of an [`AccessControl`](crate::AccessControl).
#[doc(alias = "AccessControlSchema")]
pub const ACCESS_CONTROL_SCHEMA: &str = schema!(AccessControl);

/// Schema of an [`Identity`](crate::Identity).
#[doc(alias = "IdentitySchema")]
pub const IDENTITY_SCHEMA: &str = schema!(Identity);

/// Schema of an [`OperationSpec`](crate::OperationSpec).
#[doc(alias = "OperationSpecSchema")]
pub const OPERATION_SPEC_SCHEMA: &str = schema!(
    OperationSpec Schema RetryPolicy ErrorDefinition AccessControl Binding HttpBinding McpBinding ServerVariable SecurityRequirement
    SecurityScheme HttpParameter HttpBody HttpField HttpFixed HttpResponse
);

/// Schema of the payload of `call.requested`.
///
/// `deadline` is milliseconds since the Unix epoch; `idleTimeout`, of subscriptions, is milliseconds between two items.
pub const CALL_REQUESTED_SCHEMA: &str = schema!(CallRequested Identity);

/// Schema of the payload of `call.responded`: once for a call, once for each item of a subscription.
pub const CALL_RESPONDED_SCHEMA: &str = schema!(
    CallResponded ResponseEnvelope ResponseMeta LocalMeta HttpMeta McpMeta ContentBlock ResourceContent Annotations
    Warning
);

/// Schema of the payload of `call.completed`, the end of a subscription.
pub const CALL_COMPLETED_SCHEMA: &str = schema!(CallCompleted);

/// Schema of the payload of `call.aborted`, which either side may send.
pub const CALL_ABORTED_SCHEMA: &str = schema!(CallAborted);

/// Schema of the payload of `call.error`.
pub const CALL_ERROR_EVENT_SCHEMA: &str = schema!(CallErrorEvent);

/// Schema of a call event on the wire: `type`, `id` (the `requestId`) and one of the five payloads.
#[doc(alias = "CallEventSchema")]
pub const CALL_EVENT_SCHEMA: &str = schema!(
    CallEvent CallRequested CallResponded CallCompleted CallAborted CallErrorEvent Identity ResponseEnvelope
    ResponseMeta LocalMeta HttpMeta McpMeta ContentBlock ResourceContent Annotations Warning
);

/// The definitions in the schema of a content block, sorted by name.
#[cfg(feature = "macros")]
pub(crate) static CONTENT_BLOCK_DEFINITIONS: &[crate::Definition] = &[
    crate::Definition::new("Annotations", definition!(Annotations)),
    crate::Definition::new("ContentBlock", definition!(ContentBlock)),
    crate::Definition::new("ResourceContent", definition!(ResourceContent)),
];

/// Schema of a frame about the link between two peers: see [`call`](crate::call).
pub const LINK_FRAME_SCHEMA: &str = schema!(
    LinkFrame LinkCredit LinkAnnounce LinkRunning OperationSpec Schema RetryPolicy ErrorDefinition AccessControl Binding
    HttpBinding McpBinding ServerVariable SecurityRequirement SecurityScheme HttpParameter HttpBody HttpField HttpFixed
    HttpResponse
);
