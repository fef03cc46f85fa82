//! Running operations: the registry, the pipeline of a call, and the context of a handler.

#[cfg(any(feature = "http-server", feature = "mcp-server", feature = "websocket"))]
pub(crate) mod accept;
pub(crate) mod attempt;
#[cfg(any(feature = "http-server", feature = "mcp-server"))]
pub(crate) mod authenticator;
pub(crate) mod caller;
pub(crate) mod cancel;
pub(crate) mod context;
pub(crate) mod ending;
pub(crate) mod extensions;
pub(crate) mod fairness;
#[cfg(any(feature = "http-server", feature = "mcp-server"))]
pub(crate) mod filter;
#[cfg(any(feature = "gateway", feature = "program"))]
pub(crate) mod first_items;
pub(crate) mod handler;
#[cfg(any(feature = "http-server", feature = "mcp-server", feature = "websocket"))]
pub(crate) mod host_check;
pub(crate) mod input;
#[cfg(any(feature = "http-server", feature = "mcp-server"))]
pub(crate) mod listen;
pub(crate) mod method;
pub mod mock;
pub(crate) mod payload;
pub(crate) mod pipeline;
#[cfg(feature = "mcp-server")]
pub(crate) mod principal;
pub(crate) mod progress;
pub(crate) mod redact;
pub(crate) mod registry;
pub(crate) mod response;
pub(crate) mod schemas;
pub(crate) mod through;
