//! The attacks, by what is attacked.

use crate::Case;

mod calls;
pub(crate) use calls::registry;
mod documents;
mod http;
mod mcp;
mod values;

/// All of them.
pub(crate) fn all() -> Vec<Case> {
    [documents::CASES, http::CASES, mcp::CASES, &calls::cases(), values::CASES].concat()
}
