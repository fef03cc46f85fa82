//! Type-keyed extensions of a call: at most one value of each type.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use crate::model::body::handover::Bodies;

type Value = Arc<dyn Any + Send + Sync>;

/// Values by type, which an adapter passes to handlers beside the fields of [`Context`](crate::Context).
///
/// ```
/// use ops_runtime::adapter::Extensions;
///
/// let mut extensions = Extensions::default();
/// extensions.insert(7_u8);
/// assert_eq!((extensions.get::<u8>(), extensions.get::<u16>()), (Some(&7), None));
/// ```
// There are few, so a list is enough.
#[derive(Clone, Default)]
pub struct Extensions(Vec<Extension>);

#[derive(Clone)]
struct Extension {
    of: TypeId,
    value: Value,
    /// True if calls that the handler makes inherit it.
    inherits: bool,
}

impl Extensions {
    /// Adds a value; it replaces an earlier one of its type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        // Bodies belong to one input.
        let inherits = TypeId::of::<T>() != TypeId::of::<Bodies>();
        self.put(Extension { of: TypeId::of::<T>(), value: Arc::new(value), inherits });
    }

    /// Adds a value for this call only: calls that its handler makes do not inherit it.
    pub(crate) fn insert_own<T: Send + Sync + 'static>(&mut self, value: T) {
        self.put(Extension { of: TypeId::of::<T>(), value: Arc::new(value), inherits: false });
    }

    /// Removes the value of that type.
    pub(crate) fn remove<T: 'static>(&mut self) {
        self.0.retain(|known| known.of != TypeId::of::<T>());
    }

    fn put(&mut self, extension: Extension) {
        match self.0.iter_mut().find(|known| known.of == extension.of) {
            Some(known) => *known = extension,
            None => self.0.push(extension),
        }
    }

    /// The value of that type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.iter().find(|known| known.of == TypeId::of::<T>())?.value.downcast_ref()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values of a nested call: those that it inherits, replaced by its own of the same type.
    pub(crate) fn nested(mut self, own: Self) -> Self {
        self.0.retain(|known| known.inherits);
        own.0.into_iter().for_each(|extension| self.put(extension));
        self
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.0.len())
    }
}
