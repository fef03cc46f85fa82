//! Compares the schemas of two versions of a description: which values of one side the other may refuse.
//!
//! Values go from a sender to a receiver: in a request, from a caller that knows the old schemas to a server that checks
//! by the new ones; in a response, from a server that knows the new schemas to a type of the old ones. A change breaks if
//! the receiver may not take what the sender may send. A change that may be a break counts as one.
//!
//! - Properties that no schema declares are assumed not to be sent, unless an object declares none at all.
//! - Types take more than their schemas: new properties, unknown values of an enum, and values outside of limits break
//!   no response. An enum of a single value takes no other.
//! - The parts of `allOf` are compared as one schema.
//!
//! Each pair of definitions is compared once, whatever refers to it, so the work is in proportion to the schemas.

mod apart;
mod compare;
mod merge;
mod object;
mod range;
mod tags;
mod union;
mod view;

pub(in crate::documents) use self::compare::{Comparer, Entry};
pub(in crate::documents) use self::view::{Side, not_null, value, weight};

/// A change at a place in a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::documents) struct Finding {
    /// The place, as a JSON pointer.
    pub(in crate::documents) pointer: String,
    pub(in crate::documents) message: String,
    /// True if the receiver may not take what the sender may send.
    pub(in crate::documents) breaks: bool,
    /// True if a property is gone: code may name it, also if no value is refused.
    pub(in crate::documents) is_gone: bool,
}
