//! Counts the open tasks of each caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::model::lock::lock;

/// The number of each caller's tasks that have not ended.
#[derive(Debug, Default, Clone)]
pub(super) struct Open(Arc<Mutex<HashMap<Option<String>, usize>>>);

impl Open {
    /// Counts a task of a caller, until this is dropped. `None` if there are too many.
    pub(super) fn enter(&self, caller: Option<&str>, most: usize) -> Option<Counted> {
        let caller = caller.map(str::to_owned);
        let mut all = self.lock();
        let count = all.get(&caller).copied().unwrap_or(0);
        if count >= most {
            return None;
        }
        all.insert(caller.clone(), count.saturating_add(1));
        Some(Counted { open: self.clone(), caller })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<String>, usize>> {
        lock(&self.0)
    }
}

/// A task that is counted.
pub(super) struct Counted {
    open: Open,
    caller: Option<String>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut all = self.open.lock();
        match all.get_mut(&self.caller) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(all.remove(&self.caller)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_is_counted() {
        let open = Open::default();
        let (ann, unknown) = (open.enter(Some("ann"), 2).unwrap(), open.enter(None, 2).unwrap());
        let second = open.enter(Some("ann"), 2).unwrap();
        assert!(open.enter(Some("ann"), 2).is_none());
        assert!(open.enter(Some("bob"), 2).is_some());
        drop(ann);
        let again = open.enter(Some("ann"), 2).unwrap();
        drop((second, again, unknown));
        assert!(open.lock().is_empty());
    }
}
