//! The registry: operations, and the handlers that run them.
//!
//! ```
//! use ops_runtime::{Call, Operation, Registry};
//! use ops_runtime::adapter::{Registration, Reply};
//! use ops_runtime::spec::OperationSpec;
//!
//! struct Double;
//! impl Operation for Double {
//!     type Input = i64;
//!     type Output = i64;
//!     const SPEC: &'static OperationSpec = &OperationSpec::query("math.double");
//! }
//! impl Call for Double {}
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = Registry::new();
//! registry.register(Registration::call::<Double, _, _>(|n, _| async move { Ok(Reply::Value(2 * n)) }))?;
//! assert_eq!(registry.execute::<Double>(21).await?.data, 42);
//! # Ok(()) }
//! ```

mod difference;
mod entry;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Notify;

pub(crate) use difference::check_served;
pub(crate) use entry::{Entry, Exact, Table};

use crate::run::handler::Typed;
use crate::run::schemas::DefinitionCache;
use crate::{CallError, Handler, IntoRegistration, OutputPolicy, Registration, SpecRef, Text};

/// The operations, and the handlers that run them.
///
/// A clone is the same registry. Reads take no lock. A change replaces the table as a whole, so running calls go on
/// with the handlers that they have.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

/// A weak reference to a registry, for values that the registry itself holds.
#[cfg_attr(not(feature = "mcp"), allow(dead_code, reason = "only clients whose operations change hold registries"))]
pub(crate) struct WeakRegistry(std::sync::Weak<Inner>);

#[cfg_attr(not(feature = "mcp"), allow(dead_code, reason = "only clients whose operations change hold registries"))]
impl WeakRegistry {
    pub(crate) fn upgrade(&self) -> Option<Registry> {
        self.0.upgrade().map(Registry)
    }
}

struct Inner {
    table: ArcSwap<Table>,
    state: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    policy: OutputPolicy,
    definitions: DefinitionCache,
    changed: Notify,
}

/// Builds a registry.
#[derive(Default)]
pub struct RegistryBuilder {
    state: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    policy: OutputPolicy,
}

impl fmt::Debug for RegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryBuilder").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl RegistryBuilder {
    /// Adds application state, which handlers access as `context.state::<T>()`; one value per type.
    #[must_use]
    pub fn with_state<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        self.state.insert(TypeId::of::<T>(), Arc::new(state));
        self
    }

    /// Sets what happens to results that do not match their schema.
    #[must_use]
    pub fn with_policy(mut self, policy: OutputPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Makes the registry.
    pub fn build(self) -> Registry {
        Registry(Arc::new(Inner {
            table: ArcSwap::default(),
            state: self.state,
            policy: self.policy,
            definitions: DefinitionCache::default(),
            changed: Notify::new(),
        }))
    }
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A builder, to set application state or another policy.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// Adds an operation with its handler.
    ///
    /// # Errors
    /// If the id is taken or invalid, if the handler does not fit the operation, or if state that it declares is
    /// missing. If the id is taken by a different operation, [`RegistryError::Differs`] describes both.
    pub fn register(&self, registration: impl IntoRegistration) -> Result<(), RegistryError> {
        self.register_all([registration])
    }

    /// Adds operations with their handlers: all of them, or none.
    ///
    /// # Errors
    /// Those of [`register`](Self::register), for the first that cannot be added.
    pub fn register_all<R: IntoRegistration>(
        &self,
        registrations: impl IntoIterator<Item = R>,
    ) -> Result<(), RegistryError> {
        let entries = registrations
            .into_iter()
            .map(|registration| self.entry(registration.into_registration()))
            .collect::<Result<Vec<_>, _>>()?;
        self.change(|table| entries.iter().try_for_each(|entry| table.add(entry)))
    }

    /// Adds an operation, or replaces the one with the same id.
    ///
    /// # Errors
    /// Those of [`register`](Self::register), except for a taken id.
    pub fn replace(&self, registration: impl IntoRegistration) -> Result<(), RegistryError> {
        let entry = self.entry(registration.into_registration())?;
        self.change(|table| {
            table.remove(&entry.spec.id);
            table.add(&entry)
        })
    }

    /// Adds an operation without a handler, which is to be added later.
    ///
    /// # Errors
    /// If the id is taken or invalid.
    pub fn register_spec(&self, spec: impl Into<SpecRef>) -> Result<(), RegistryError> {
        let entry = Arc::new(Entry::new(spec.into(), None, &self.0.definitions)?);
        self.change(|table| table.add(&entry))
    }

    /// Adds the handler of an operation.
    ///
    /// # Errors
    /// If there is no such operation, if it has a handler, or if the handler does not fit.
    pub fn register_handler(&self, id: &str, handler: Handler) -> Result<(), RegistryError> {
        self.change(|table| {
            let spec = table.get(id).ok_or_else(|| RegistryError::NotFound { id: id.to_owned() })?;
            if spec.handler.is_some() {
                return Err(RegistryError::Duplicate { id: id.to_owned() });
            }
            let entry = Arc::new(Entry::new(spec.spec.clone(), Some(handler.clone()), &self.0.definitions)?);
            table.remove(id);
            table.add(&entry)
        })
    }

    /// Removes an operation; running calls go on.
    pub fn remove(&self, id: &str) -> Option<SpecRef> {
        let mut removed = None;
        let changed = self.change(|table| {
            removed = table.remove(id).map(|entry| entry.spec.clone());
            // Without a change, no waiter is notified.
            removed.as_ref().map(|_| ()).ok_or_else(|| RegistryError::NotFound { id: id.to_owned() })
        });
        debug_assert_eq!(changed.is_ok(), removed.is_some());
        removed
    }

    /// The operation with this id.
    pub fn spec(&self, id: &str) -> Option<SpecRef> {
        self.0.table.load().get(id).map(|entry| entry.spec.clone())
    }

    /// The handler of the operation with this id.
    pub fn handler(&self, id: &str) -> Option<Handler> {
        self.0.table.load().get(id)?.handler.clone()
    }

    /// All operations, in the order of their ids.
    pub fn list(&self) -> Vec<SpecRef> {
        self.0.table.load().iter().map(|entry| entry.spec.clone()).collect()
    }

    /// The version of the table of operations. It grows with every change, so what was derived from the table is valid
    /// while the version stays the same.
    pub fn version(&self) -> u64 {
        self.0.table.load().version
    }

    /// Waits until the table's version differs from this one, and returns the new version.
    ///
    /// ```
    /// # use ops_runtime::Registry;
    /// # use ops_runtime::spec::OperationSpec;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = Registry::new();
    /// let version = registry.version();
    /// registry.register_spec(OperationSpec::query("math.add"))?;
    /// assert!(registry.changed(version).await > version);
    /// # Ok(()) }
    /// ```
    pub async fn changed(&self, version: u64) -> u64 {
        loop {
            let mut notified = std::pin::pin!(self.0.changed.notified());
            // Registered before the table is read, so that no change in between is missed.
            notified.as_mut().enable();
            let now = self.version();
            if now != version {
                return now;
            }
            notified.await;
        }
    }

    /// A weak reference to the registry.
    #[cfg_attr(not(feature = "mcp"), allow(dead_code, reason = "only clients whose operations change hold registries"))]
    pub(crate) fn downgrade(&self) -> WeakRegistry {
        WeakRegistry(Arc::downgrade(&self.0))
    }

    pub(crate) fn state<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.state.get(&TypeId::of::<T>())?.downcast_ref()
    }

    #[inline]
    pub(crate) fn policy(&self) -> OutputPolicy {
        self.0.policy
    }

    /// The current table; hold it no longer than it takes to start a call.
    #[inline]
    pub(crate) fn table(&self) -> arc_swap::Guard<Arc<Table>> {
        self.0.table.load()
    }

    /// Makes sure that calls of a type are run by its own spec, or by an equivalent one: for clients, whose endpoint
    /// runs any operation. `bind` makes the registration with the handler.
    pub(crate) fn admit(
        &self,
        own: &Typed,
        bind: impl FnOnce() -> Result<Registration, CallError>,
    ) -> Result<(), CallError> {
        if self.table().get_own(own).is_some_and(|entry| entry.stands_for(own)) {
            return Ok(());
        }
        let entry = self.entry(bind()?)?;
        // Calls by id do not find it: their operations must not depend on what was called before.
        let added = self.change(|table| {
            table.add_own(own, &entry);
            Ok(())
        });
        Ok(added?)
    }

    /// Removes the operations for which this is false, in one change. Returns how many are left.
    pub(crate) fn retain(&self, mut keeps: impl FnMut(&SpecRef) -> bool) -> usize {
        let mut left = 0;
        // The change cannot fail.
        let _ = self.change(|table| {
            let removed: Vec<Text> =
                table.iter().filter(|entry| !keeps(&entry.spec)).map(|entry| entry.spec.id.clone()).collect();
            removed.iter().for_each(|id| drop(table.remove(id)));
            left = table.len();
            Ok(())
        });
        left
    }

    /// Removes operations, and adds or replaces others, as one change. An operation that cannot be registered is left
    /// out, and `refused` is called with the error.
    #[cfg(feature = "mcp")]
    pub(crate) fn exchange(
        &self,
        removed: &[&str],
        added: impl IntoIterator<Item = Registration>,
        mut refused: impl FnMut(RegistryError),
    ) {
        let made = added.into_iter().map(|registration| self.entry(registration));
        let entries: Vec<Arc<Entry>> = made.filter_map(|entry| entry.map_err(&mut refused).ok()).collect();
        if removed.is_empty() && entries.is_empty() {
            return;
        }
        let changed = self.change(|table| {
            removed.iter().for_each(|id| drop(table.remove(id)));
            entries.iter().try_for_each(|entry| {
                table.remove(&entry.spec.id);
                table.add(entry)
            })
        });
        if let Err(error) = changed {
            refused(error);
        }
    }

    /// Makes an entry for [`replace_all`](Self::replace_all).
    #[cfg(feature = "gateway")]
    pub(crate) fn make_entry(&self, spec: SpecRef, handler: Option<Handler>) -> Result<Arc<Entry>, RegistryError> {
        Ok(Arc::new(Entry::new(spec, handler, &self.0.definitions)?))
    }

    /// Replaces all entries by these, which have different ids.
    #[cfg(feature = "gateway")]
    pub(crate) fn replace_all(&self, entries: impl IntoIterator<Item = Arc<Entry>>) {
        let entries: Vec<Arc<Entry>> = entries.into_iter().collect();
        // The change cannot fail: there is nothing yet that could conflict.
        let _ = self.change(|table| {
            let version = table.version;
            *table = Table::default();
            table.version = version;
            entries.iter().try_for_each(|entry| table.add(entry))
        });
    }

    fn entry(&self, registration: Registration) -> Result<Arc<Entry>, RegistryError> {
        let Registration { spec, handler, requires } = registration;
        if let Some((_, state)) = requires.iter().find(|(id, _)| !self.0.state.contains_key(id)) {
            return Err(RegistryError::MissingState { id: spec.id.clone().into_owned(), state });
        }
        Ok(Arc::new(Entry::new(spec, Some(handler), &self.0.definitions)?))
    }

    /// Replaces the table by a changed copy, unless the change fails.
    fn change(&self, mut change: impl FnMut(&mut Table) -> Result<(), RegistryError>) -> Result<(), RegistryError> {
        let mut result = Ok(());
        // Runs again if another thread was faster, hence `FnMut`.
        self.0.table.rcu(|table| {
            let mut changed = Table::clone(table);
            changed.version += 1;
            result = change(&mut changed);
            if result.is_ok() { Arc::new(changed) } else { table.clone() }
        });
        if result.is_ok() {
            self.0.changed.notify_waiters();
        }
        result
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.list().iter().map(|spec| spec.id.clone()).collect();
        f.debug_tuple("Registry").field(&ids).finish()
    }
}

/// The errors of a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistryError {
    /// The id, or the handler of the operation, is already registered.
    Duplicate {
        /// The id.
        id: String,
    },
    /// The operation is already registered for another client: most likely another server or account of the same API.
    DuplicateClient {
        /// The id.
        id: String,
    },
    /// Another operation is registered with this id: most likely another version of an API in the same namespace.
    Differs {
        /// The id.
        id: String,
        /// A description of the registered operation.
        registered: String,
        /// A description of the operation that was to be added.
        other: String,
        /// The differences, such as `the path` or `the output schema at /properties/id`.
        differences: Vec<String>,
    },
    /// There is no such operation.
    NotFound {
        /// The id.
        id: String,
    },
    /// The id is not `namespace.name`.
    InvalidId(crate::InvalidId),
    /// The handler declares application state that the registry was built without.
    MissingState {
        /// The id of the operation.
        id: String,
        /// The type of the state.
        state: &'static str,
    },
    /// The handler streams and the operation doesn't, or the other way round.
    KindMismatch {
        /// The id of the operation.
        id: String,
    },
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate { id } => {
                write!(f, "`{id}` is registered already: use `replace` to put another in its place")
            }
            Self::DuplicateClient { id } => write!(
                f,
                "`{id}` is registered already, with a client: for another server or account of the same API, use a registry \
                 for each, or keep the other client in the state and call by `context.through(..)`; `replace` puts a client \
                 in the place of the one that is there",
            ),
            Self::Differs { id, registered, other, differences } => write!(
                f,
                "`{id}` is {registered}, and can't be {other}, too: they differ in {}; generate them into two \
                 namespaces, or use a registry for each",
                differences.join(", "),
            ),
            Self::NotFound { id } => write!(f, "`{id}` is not registered: register its spec first"),
            Self::InvalidId(error) => error.fmt(f),
            Self::MissingState { id, state } => {
                write!(f, "`{id}` needs state of type `{state}`: build the registry with `.with_state(..)`")
            }
            Self::KindMismatch { id } => {
                write!(f, "the handler of `{id}` does not fit: a subscription's gives a stream, any other's one result")
            }
        }
    }
}

impl std::error::Error for RegistryError {}

/// An `EXECUTION_ERROR`, so that `?` converts it in a function that builds a registry and returns `CallError`.
impl From<RegistryError> for CallError {
    fn from(error: RegistryError) -> Self {
        Self::from_error(error)
    }
}

impl From<crate::InvalidId> for RegistryError {
    fn from(error: crate::InvalidId) -> Self {
        Self::InvalidId(error)
    }
}
