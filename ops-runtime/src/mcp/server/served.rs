//! The current tools of a registry: made again when it changes, found by name, listed page by page.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwapOption;

use super::name::{Named, Names};
use super::shared::Shared;
use super::tool::Served;
use crate::OperationSpec;
use crate::model::lock::lock;

/// The name of an operation's tool.
pub(super) type Naming = Box<dyn Fn(&OperationSpec) -> String + Send + Sync>;

/// All tools, in the order of their names.
pub(super) struct ServedTools {
    version: u64,
    tools: Vec<Arc<Served>>,
    /// The tools by their former names.
    former: HashMap<String, Arc<Served>>,
}

impl ServedTools {
    fn of(server: &Shared, names: &mut Names) -> Self {
        let Shared { registry, filters, naming, .. } = server;
        let table = registry.table();
        let entries: Vec<_> =
            table.iter().filter(|entry| entry.handler.is_some() && filters.accept(&entry.spec)).collect();
        let operations = entries.iter().map(|entry| {
            let id = &*entry.spec.id;
            (id, naming.as_ref().map_or(Cow::Borrowed(id), |name| Cow::Owned(name(&entry.spec))))
        });
        let given = names.give(&operations.collect::<Vec<_>>());
        let mut former = HashMap::new();
        let served = entries.into_iter().zip(given).map(|(entry, Named { name, former: names })| {
            let tool = Arc::new(Served::new(entry.clone(), name));
            former.extend(names.into_iter().map(|name| (name, tool.clone())));
            tool
        });
        let mut tools: Vec<_> = served.collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Self { version: table.version, tools, former }
    }

    /// The version of the registry from which it was made.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The tool that has this name now, or had it before.
    pub(super) fn find(&self, name: &str) -> Option<&Arc<Served>> {
        let index = self.tools.binary_search_by(|tool| tool.name.as_str().cmp(name));
        index.map_or_else(|_| self.former.get(name), |index| self.tools.get(index))
    }

    /// The tool of an operation.
    #[cfg(feature = "durable")]
    pub(super) fn of_operation(&self, id: &str) -> Option<&Arc<Served>> {
        self.tools.iter().find(|tool| tool.spec().id == id)
    }

    /// All tools, in the order of their names.
    pub(super) fn tools(&self) -> &[Arc<Served>] {
        &self.tools
    }

    /// The tools after that name: a page starts where the last one ended, even if tools were added or removed.
    pub(super) fn after(&self, name: &str) -> &[Arc<Served>] {
        let start = self.tools.partition_point(|tool| tool.name.as_str() <= name);
        self.tools.get(start..).unwrap_or_default()
    }
}

/// The served tools of a registry, kept until the registry changes, and their names, kept until the server ends.
#[derive(Default)]
pub(super) struct Cache {
    served: ArcSwapOption<ServedTools>,
    names: Mutex<Names>,
}

impl Cache {
    /// Looks something up among the current tools.
    pub(super) fn with<T>(&self, server: &Shared, look: impl Fn(&Arc<ServedTools>) -> T) -> T {
        let is_current = |served: &ServedTools| served.version == server.registry.version();
        if let Some(served) = &*self.served.load()
            && is_current(served)
        {
            return look(served);
        }
        let mut names = lock(&self.names);
        let served = match self.served.load_full() {
            // Another thread has made them meanwhile.
            Some(served) if is_current(&served) => served,
            _ => {
                let made = Arc::new(ServedTools::of(server, &mut names));
                self.served.store(Some(made.clone()));
                made
            }
        };
        drop(names);
        look(&served)
    }
}
