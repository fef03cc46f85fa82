//! The current tools of a registry: made again when it changes, found by name, listed page by page.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::name::Names;
use super::shared::Shared;
use super::tool::Served;
use crate::OperationSpec;

/// The name of an operation's tool.
pub(super) type Naming = Box<dyn Fn(&OperationSpec) -> String + Send + Sync>;

/// All tools, in the order of their names.
pub(super) struct ServedTools {
    version: u64,
    tools: Vec<Arc<Served>>,
}

impl ServedTools {
    fn of(server: &Shared) -> Self {
        let Shared { registry, filters, naming, .. } = server;
        let table = registry.table();
        let mut names = Names::default();
        let served = table.iter().filter(|entry| entry.handler.is_some() && filters.accept(&entry.spec)).map(|entry| {
            let named = naming.as_ref().map(|name| name(&entry.spec));
            Arc::new(Served::new(entry.clone(), names.give(named.as_deref().unwrap_or(&entry.spec.id))))
        });
        let mut tools: Vec<_> = served.collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Self { version: table.version, tools }
    }

    /// The version of the registry from which it was made.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn find(&self, name: &str) -> Option<&Arc<Served>> {
        let index = self.tools.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok()?;
        self.tools.get(index)
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

/// The served tools of a registry, kept until the registry changes.
#[derive(Default)]
pub(super) struct Cache(ArcSwapOption<ServedTools>);

impl Cache {
    /// Looks something up among the current tools.
    pub(super) fn with<T>(&self, server: &Shared, look: impl Fn(&Arc<ServedTools>) -> T) -> T {
        if let Some(served) = &*self.0.load()
            && served.version == server.registry.version()
        {
            return look(served);
        }
        // Two threads may both make one; they are equal.
        let served = Arc::new(ServedTools::of(server));
        self.0.store(Some(served.clone()));
        look(&served)
    }
}
