//! Running operations: the registry, the pipeline of a call, and what a handler is given.

pub(crate) mod caller;
pub(crate) mod context;
pub(crate) mod extensions;
pub(crate) mod handler;
pub(crate) mod method;
pub mod mock;
pub(crate) mod pace;
pub(crate) mod payload;
pub(crate) mod pipeline;
pub(crate) mod progress;
pub(crate) mod registry;
pub(crate) mod schemas;
pub(crate) mod shown;
