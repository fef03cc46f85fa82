//! Where the programs of models run, and where they are kept while they wait; the names that they call operations by.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::find::View;
use super::gate::Gate;
use crate::BoxFuture;
use crate::program::{Functions, Hold, Journal, JournalStore, Limits, MemoryStore, Sandbox};
use crate::run::principal::Principal;

/// How many programs of models may wait at a time. The oldest gives way.
const WAITING: usize = 1_000;

/// How long a program may wait.
const PATIENCE: Duration = Duration::from_secs(24 * 3_600);

/// Where programs run, and where they are kept while they wait.
pub(super) struct Programs {
    pub(super) sandbox: Sandbox,
    pub(super) store: Arc<dyn JournalStore>,
}

impl Programs {
    pub(super) fn new(limits: Limits, store: Option<Arc<dyn JournalStore>>) -> Self {
        Self { sandbox: Sandbox::new(limits), store: store.unwrap_or_else(|| Arc::new(Recent::default())) }
    }
}

/// Journals in memory: a bounded number, for a bounded time.
#[derive(Default)]
struct Recent {
    journals: MemoryStore,
    /// The oldest first.
    names: Mutex<VecDeque<(String, Instant)>>,
}

impl Recent {
    /// Makes a name the latest; gives those that have to go.
    fn touch(&self, name: &str) -> Vec<String> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.retain(|(known, _)| known != name);
        names.push_back((name.to_owned(), Instant::now()));
        let mut gone = Vec::new();
        while names.len() > WAITING || names.front().is_some_and(|(_, since)| since.elapsed() > PATIENCE) {
            gone.extend(names.pop_front().map(|(name, _)| name));
        }
        gone
    }
}

impl JournalStore for Recent {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Option<Journal>>> {
        self.journals.load(name)
    }

    fn save<'a>(&'a self, name: &'a str, journal: &'a Journal) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            for gone in self.touch(name) {
                self.journals.remove(&gone).await?;
            }
            self.journals.save(name, journal).await
        })
    }

    fn hold<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Hold>> {
        self.journals.hold(name)
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<()>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).retain(|(known, _)| known != name);
        self.journals.remove(name)
    }
}

impl View {
    /// The names by which a program of that caller calls operations.
    pub(super) fn functions(&self, gate: &Gate, principal: &Principal) -> Arc<Functions> {
        if *principal == Principal::Owner {
            return self.functions.get_or_init(|| Arc::new(self.named(|_| true))).clone();
        }
        // What a caller may not call has no name for it, not even in a suggestion.
        let table = gate.registry().table();
        Arc::new(self.named(|id| table.get(id).is_some_and(|entry| principal.sees(&entry.spec))))
    }

    fn named(&self, sees: impl Fn(&str) -> bool) -> Functions {
        let seen = self.names.iter().filter(|(id, _)| sees(id));
        seen.map(|(id, name)| (name.namespace.to_owned(), name.operation.to_owned(), id.to_owned())).collect()
    }

    /// How a program calls an operation.
    pub(super) fn function(&self, id: &str) -> Option<String> {
        self.names.name(id).map(|name| name.to_string())
    }
}
