//! The operations that a peer has announced, within limits.

// Each transport uses its part.
#![cfg_attr(not(all(feature = "nats", feature = "redis", feature = "websocket")), allow(dead_code))]

use std::collections::BTreeMap;
use std::sync::Arc;

use super::budget::written;
use super::own_specs::bare;
use crate::{OperationSpec, Text};

/// Limit of the operations that one peer may announce.
const MAX_OPERATIONS: usize = 20_000;

/// Limit of one spec in memory, in bytes; a larger one is kept without its schemas.
const MAX_SPEC: usize = 1 << 20;

/// Limit of a spec without its schemas, in bytes; a larger one is not kept.
const MAX_BARE: usize = 16 << 10;

/// Default memory limit for the specs of one peer, in bytes.
pub(super) const MAX_ANNOUNCED: usize = 32 << 20;

/// The operations that a peer serves.
#[derive(Default)]
pub(super) struct Heard {
    specs: BTreeMap<Text, (Arc<OperationSpec>, usize)>,
    bytes: usize,
    /// True if it was logged that a limit was reached.
    told: bool,
}

impl Heard {
    /// Adds an operation, with its schemas, without them, or not at all: specs with schemas may take up to `limit`
    /// bytes, and `take` may allow less.
    pub(super) fn add(
        &mut self,
        spec: Arc<OperationSpec>,
        limit: usize,
        take: impl Fn(usize) -> bool,
    ) -> Option<Arc<OperationSpec>> {
        let before = self.specs.get(&spec.id).map(|(_, bytes)| *bytes);
        if before.is_none() && self.specs.len() >= MAX_OPERATIONS {
            self.tell();
            return None;
        }
        let others = self.bytes - before.unwrap_or(0);
        let mut kept = (weight(&spec), spec);
        if kept.0 > MAX_SPEC || others.saturating_add(kept.0) > limit || !take(kept.0) {
            self.tell();
            let spec = bare(&kept.1);
            kept = (weight(&spec), Arc::new(spec));
            if kept.0 > MAX_BARE || !take(kept.0) {
                return None;
            }
        }
        let (bytes, spec) = kept;
        self.bytes = others + bytes;
        self.specs.insert(spec.id.clone(), (spec.clone(), bytes));
        Some(spec)
    }

    fn tell(&mut self) {
        if !std::mem::replace(&mut self.told, true) {
            tracing::warn!(
                "a peer announces more than is kept: some operations are kept without schemas, or not at all"
            );
        }
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<OperationSpec>> {
        let (removed, bytes) = self.specs.remove(id)?;
        self.bytes -= bytes;
        Some(removed)
    }

    /// Their approximate memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn get(&self, id: &str) -> Option<&Arc<OperationSpec>> {
        self.specs.get(id).map(|(spec, _)| spec)
    }

    /// All of them, in the order of their ids.
    pub(super) fn specs(&self) -> impl Iterator<Item = &Arc<OperationSpec>> {
        self.specs.values().map(|(spec, _)| spec)
    }
}

/// Approximate memory of a spec.
fn weight(spec: &OperationSpec) -> usize {
    size_of::<OperationSpec>().saturating_add(written(spec).memory)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{HttpBinding, OperationKind, Schema};

    fn spec(name: &str, bytes: usize) -> Arc<OperationSpec> {
        let mut spec = OperationSpec::new(OperationKind::Query, "a", name).unwrap();
        spec.input = Schema::from(json!({ "description": "x".repeat(bytes) }));
        Arc::new(spec)
    }

    /// The HTTP method tells it, but a spec that is too large loses its binding, so `changes` keeps it.
    #[test]
    fn what_is_too_large_may_change_as_much_as_before() {
        const RUN: OperationSpec = OperationSpec::subscription("a.run").with_http(HttpBinding::new("POST", "/runs"));
        const FOLLOW: OperationSpec = OperationSpec::subscription("a.follow");
        const PURGE: OperationSpec = FOLLOW.with_changes(true);
        for (mut spec, may_change) in [(RUN, true), (RUN.with_changes(false), false), (FOLLOW, false), (PURGE, true)] {
            spec.input = Schema::from(json!({ "description": "x".repeat(200_000) }));
            let kept = Heard::default().add(Arc::new(spec), 100_000, |_| true).unwrap();
            assert_eq!((kept.http(), kept.may_change()), (None, may_change), "{}", kept.id);
        }
    }

    #[test]
    fn what_is_too_large_loses_its_schemas() {
        let mut heard = Heard::default();
        let all = |_| true;
        assert_eq!(heard.add(spec("b", 10), 100_000, all).unwrap(), spec("b", 10));
        let kept = heard.add(spec("c", 200_000), 100_000, all).unwrap();
        assert_eq!(serde_json::to_value(&kept.input).unwrap(), json!({}));
        assert!(heard.bytes() < 10_000);
        // Again and again, it takes no more.
        let before = heard.bytes();
        for _ in 0..10 {
            heard.add(spec("b", 10), 100_000, all);
        }
        assert_eq!(heard.bytes(), before);
        assert!(heard.add(spec("d", 10), 100_000, |_| false).is_none());
        assert!(heard.add(spec(&"n".repeat(MAX_BARE), 10), 100_000, all).is_some());
        assert!(heard.add(spec(&"n".repeat(MAX_BARE), MAX_SPEC), 100_000, all).is_none());
        for (id, known) in [("a.b", true), ("a.c", true), ("a.d", false)] {
            assert_eq!(heard.remove(id).is_some(), known);
        }
    }
}
