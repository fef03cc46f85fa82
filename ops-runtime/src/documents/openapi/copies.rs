//! Schemas that several operations share without a name: written once if they are large.
//!
//! A parameter, a response or a path item may be shared by `$ref`, and the schema in it then belongs to every operation
//! that refers to it. Each gets a copy while that is cheap, so that its types are called after it.

use std::collections::HashMap;

use serde_json::Value;

use super::document::Node;
use super::pointer::reference_to;
use super::reader::Reader;
use super::text::weight;

/// A shared schema of more bytes is a definition.
const LARGE: usize = 16 << 10;

/// A shared schema of fewer bytes is always copied: a reference is as long.
const SMALL: usize = 64;

/// How many bytes copies may have in any description, and how many more for each byte that it has.
const COPIED: (usize, usize) = (4 << 20, 8);

/// How many bytes the operations of any description may have, and how many more for each byte that it has.
const SPECS: (usize, usize) = (1 << 20, 16);

/// The copies that were made, and the room for more.
pub(super) struct Copies {
    /// The weights of shared schemas, by the keys of their places.
    weights: HashMap<usize, usize>,
    /// The operation that is read; parts that lie outside of it are shared.
    pub(super) operation: Option<usize>,
    room: usize,
    /// How many bytes the operations may still have.
    pub(super) specs: usize,
}

impl Copies {
    pub(super) fn new(bytes: usize) -> Self {
        let room = |(least, each): (usize, usize)| bytes.saturating_mul(each).saturating_add(least);
        Self { weights: HashMap::new(), operation: None, room: room(COPIED), specs: room(SPECS) }
    }
}

impl<'a> Reader<'a> {
    /// The schema of a part of an operation: a definition if it is large and others share it.
    pub(super) fn part(&mut self, node: &Node<'a>) -> Value {
        let is_own = self.copies.operation.is_none_or(|operation| node.path.passes(operation));
        if is_own || node.value.get("$ref").is_some() {
            return self.schema(node);
        }
        let weight = *self.copies.weights.entry(node.key()).or_insert_with(|| weight(node.value));
        if weight > LARGE || weight > SMALL && weight > self.copies.room {
            return reference_to(&self.define(node));
        }
        self.copies.room = self.copies.room.saturating_sub(weight);
        self.schema(node)
    }
}
