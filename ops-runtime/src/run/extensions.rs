//! What adapters give calls: a value of each type.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use crate::model::body::handover::Bodies;

type Value = Arc<dyn Any + Send + Sync>;

/// Values by their types: what an adapter tells handlers of a call beside what [`Context`](crate::Context) knows.
///
/// ```
/// use ops_runtime::adapter::Extensions;
///
/// let mut extensions = Extensions::default();
/// extensions.insert(7_u8);
/// assert_eq!((extensions.get::<u8>(), extensions.get::<u16>()), (Some(&7), None));
/// ```
// There are few, so that a list does.
#[derive(Clone, Default)]
pub struct Extensions(Vec<Extension>);

#[derive(Clone)]
struct Extension {
    of: TypeId,
    value: Value,
    /// True if calls that the handler makes have it, too.
    inherits: bool,
}

impl Extensions {
    /// Adds a value, in the place of the one of its type if there is one.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        // Bodies are those of one input, whoever gives them.
        let inherits = TypeId::of::<T>() != TypeId::of::<Bodies>();
        self.put(Extension { of: TypeId::of::<T>(), value: Arc::new(value), inherits });
    }

    /// Adds a value for this call alone: those that its handler makes do not have it.
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

    /// What a nested call has: those that it inherits, with its own in the place of those of their types.
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
