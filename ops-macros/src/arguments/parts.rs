//! What arguments of more than one part say.

use proc_macro2::Span;
use syn::LitStr;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Query,
    Mutation,
    Subscription,
}

pub(crate) struct Resource {
    pub(crate) kind: LitStr,
    pub(crate) action: LitStr,
}

/// When and how often a job of the operation is tried again. Times are in milliseconds.
#[derive(Default)]
pub(crate) struct Retry {
    pub(crate) attempts: u32,
    pub(crate) backoff: Option<u64>,
    pub(crate) max_backoff: Option<u64>,
    pub(crate) factor: Option<u32>,
    pub(crate) deadline: Option<u64>,
    /// Codes that are tried again beside the default ones.
    pub(crate) errors: Vec<ErrorCode>,
}

pub(crate) struct ErrorCode {
    pub(crate) code: String,
    pub(crate) status: Option<u16>,
    pub(crate) span: Span,
}
