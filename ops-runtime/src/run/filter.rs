//! The operations of a registry that a server serves.

use crate::OperationSpec;

/// Accepts or refuses an operation.
type Filter = Box<dyn Fn(&OperationSpec) -> bool + Send + Sync>;

/// Filters of operations, all of which have to accept one. Without filters, all are accepted.
#[derive(Default)]
pub(crate) struct Filters(Vec<Filter>);

impl Filters {
    /// Adds a filter.
    pub(crate) fn add(&mut self, filter: impl Fn(&OperationSpec) -> bool + Send + Sync + 'static) {
        self.0.push(Box::new(filter));
    }

    /// Adds a filter that accepts the operations of these namespaces.
    pub(crate) fn add_namespaces(&mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) {
        let namespaces: Vec<String> = namespaces.into_iter().map(Into::into).collect();
        self.add(move |spec| namespaces.iter().any(|namespace| namespace == spec.namespace()));
    }

    /// True if all filters accept the operation.
    pub(crate) fn accept(&self, spec: &OperationSpec) -> bool {
        self.0.iter().all(|filter| filter(spec))
    }
}
