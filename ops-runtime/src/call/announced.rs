//! What was announced to a peer, so that only changes are said.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Announcement;
use crate::{OperationSpec, SpecRef, Text};

/// What a peer was told so far.
#[derive(Debug, Default)]
pub(super) struct Announced(BTreeMap<Text, Arc<OperationSpec>>);

impl Announced {
    /// All that was announced.
    #[cfg(any(feature = "nats", feature = "redis"))]
    pub(super) fn specs(&self) -> Vec<Arc<OperationSpec>> {
        self.0.values().cloned().collect()
    }

    /// Takes all of it back.
    #[cfg(any(feature = "nats", feature = "websocket"))]
    pub(super) fn withdrawal(self) -> Announcement {
        Announcement { remove: self.0.into_keys().collect(), ..Announcement::default() }
    }

    /// What has to be said, now that these operations are served.
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
