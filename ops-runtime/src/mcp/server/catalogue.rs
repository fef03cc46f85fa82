//! The tools of a registry as they stand: made when the registry has changed, found by name, listed page by page.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::name::Names;
use super::tool::Served;
use crate::{OperationSpec, Registry};

/// Which operations are served.
pub(super) type Filter = Box<dyn Fn(&OperationSpec) -> bool + Send + Sync>;

/// All tools, in the order of their names.
pub(super) struct Catalogue {
    version: u64,
    tools: Vec<Arc<Served>>,
}

impl Catalogue {
    fn of(registry: &Registry, filters: &[Filter]) -> Self {
        let table = registry.table();
        let mut names = Names::default();
        let served = table
            .iter()
            .filter(|entry| entry.handler.is_some() && filters.iter().all(|filter| filter(&entry.spec)))
            .map(|entry| Arc::new(Served::new(entry.clone(), names.give(&entry.spec.id))));
        let mut tools: Vec<_> = served.collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Self { version: table.version, tools }
    }

    /// The state of the registry that it was made of.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn find(&self, name: &str) -> Option<&Arc<Served>> {
        let index = self.tools.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok()?;
        self.tools.get(index)
    }

    /// All tools, in the order of their names.
    pub(super) fn tools(&self) -> &[Arc<Served>] {
        &self.tools
    }

    /// The tools after that name: a page goes on where the last one ended, whatever has come or gone since.
    pub(super) fn after(&self, name: &str) -> &[Arc<Served>] {
        let start = self.tools.partition_point(|tool| tool.name.as_str() <= name);
        self.tools.get(start..).unwrap_or_default()
    }
}

/// The catalogue of a registry, kept until the registry changes.
#[derive(Default)]
pub(super) struct Cache(ArcSwapOption<Catalogue>);

impl Cache {
    /// Looks something up in the catalogue as it is now.
    pub(super) fn with<T>(&self, registry: &Registry, filters: &[Filter], look: impl Fn(&Arc<Catalogue>) -> T) -> T {
        if let Some(catalogue) = &*self.0.load()
            && catalogue.version == registry.version()
        {
            return look(catalogue);
        }
        // Two threads may both make one; they are alike.
        let catalogue = Arc::new(Catalogue::of(registry, filters));
        self.0.store(Some(catalogue.clone()));
        look(&catalogue)
    }
}
