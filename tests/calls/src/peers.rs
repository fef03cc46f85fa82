//! The same operations by others.

pub mod jsonrpsee;
pub mod tarpc;
pub mod tonic;
