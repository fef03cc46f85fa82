//! What was announced to a peer, so that only changes are announced.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Announcement;
use crate::{OperationKind, OperationSpec, SpecRef, Text};

/// Target size of one part of an announcement, in bytes; a larger spec is a part of its own.
#[cfg(any(feature = "nats", feature = "websocket"))]
const PART: usize = 128 << 10;

/// The specs that a peer was told so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Announced(BTreeMap<Text, Arc<OperationSpec>>);

impl Announced {
    /// All announced specs.
    #[cfg(any(feature = "nats", feature = "redis"))]
    pub(super) fn specs(&self) -> Vec<Arc<OperationSpec>> {
        self.0.values().cloned().collect()
    }

    /// True if an operation was announced.
    #[cfg(feature = "nats")]
    pub(super) fn has(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// The announcement that withdraws all of them.
    #[cfg(any(feature = "nats", feature = "websocket"))]
    pub(super) fn withdrawal(self) -> Announcement {
        Announcement { remove: self.0.into_keys().collect(), ..Announcement::default() }
    }

    /// The announcement of what has changed, given the operations that are served now.
    pub(super) fn change(&mut self, specs: Vec<SpecRef>) -> Announcement {
        let now: BTreeMap<_, _> = specs
            .into_iter()
            .map(|spec| {
                let spec = match spec {
                    SpecRef::Shared(spec) => spec,
                    // The same copy as before, so that it does not count as a change.
                    SpecRef::Static(spec) => match self.0.get(&spec.id) {
                        Some(known) if **known == *spec => known.clone(),
                        _ => Arc::new(spec.clone()),
                    },
                };
                (spec.id.clone(), spec)
            })
            .collect();
        let is_new = |spec: &Arc<OperationSpec>| self.0.get(&spec.id).is_none_or(|known| !Arc::ptr_eq(known, spec));
        let add = now.values().filter(|spec| is_new(spec)).cloned().collect();
        let remove = self.0.keys().filter(|id| !now.contains_key(*id)).cloned().collect();
        self.0 = now;
        Announcement { add, remove, ..Announcement::default() }
    }
}

#[cfg(any(feature = "nats", feature = "websocket"))]
impl Announcement {
    /// Splits an announcement into two; `None` if it has less than two operations.
    #[cfg(feature = "websocket")]
    pub(super) fn halved(&self) -> Option<(Self, Self)> {
        let (removed, all) = (self.remove.len(), self.remove.len() + self.add.len());
        let at = all / 2;
        if at == 0 {
            return None;
        }
        let mut first = Self { more: true, ..self.clone() };
        let (remove, add) = (first.remove.split_off(at.min(removed)), first.add.split_off(at.saturating_sub(removed)));
        Some((first, Self { remove, add, more: self.more, ..Self::default() }))
    }

    /// Splits an announcement into parts that fit into a message of `max_message` bytes.
    pub(super) fn in_parts(self, max_message: usize) -> Vec<Announcement> {
        let largest = max_message / 2;
        let mut parts = vec![Announcement::default()];
        let mut room = PART.min(largest);
        let mut part_for = |size: usize, parts: &mut Vec<Announcement>| {
            if size > room {
                parts.push(Announcement::default());
                room = PART.min(largest);
            }
            room = room.saturating_sub(size);
        };
        for id in self.remove {
            // Its comma counts.
            part_for(serde_json::to_string(&*id).map_or(usize::MAX, |text| text.len() + 1), &mut parts);
            if let Some(part) = parts.last_mut() {
                part.remove.push(id);
            }
        }
        for spec in self.add {
            let size = serde_json::to_string(&*spec).map_or(usize::MAX, |text| text.len());
            let (spec, size) = if size > largest { (Arc::new(bare(&spec)), 1_000) } else { (spec, size) };
            part_for(size, &mut parts);
            if let Some(part) = parts.last_mut() {
                part.add.push(spec);
            }
        }
        if let Some((_, others)) = parts.split_last_mut() {
            others.iter_mut().for_each(|part| part.more = true);
        }
        parts
    }
}

/// A spec that is too large to be sent or kept: without its schemas. They are checked where the operation runs.
#[cfg(any(feature = "nats", feature = "redis", feature = "websocket"))]
pub(super) fn bare(spec: &OperationSpec) -> OperationSpec {
    tracing::debug!(operation = spec.id.as_ref(), "a spec is told or kept without its schemas, for its size");
    let made = OperationSpec::new(OperationKind::Mutation, spec.namespace(), spec.name());
    let mut bare = made.unwrap_or(OperationSpec::query("unknown.unknown"));
    (bare.kind, bare.version, bare.access) = (spec.kind, spec.version.clone(), spec.access.clone());
    (bare.timeout, bare.deprecated) = (spec.timeout, spec.deprecated);
    if spec.kind == OperationKind::Subscription {
        bare.changes = changes_without_binding(spec);
    }
    bare
}

/// The `changes` of a spec whose binding is left out: its HTTP method no longer tells if a stream may change something.
pub(super) fn changes_without_binding(spec: &OperationSpec) -> Option<bool> {
    let streams = spec.kind == OperationKind::Subscription;
    spec.http().filter(|_| streams).map(|_| spec.may_change()).or(spec.changes)
}
