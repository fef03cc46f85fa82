//! What adapters give calls: a value of each type.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

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
pub struct Extensions(Vec<(TypeId, Value)>);

impl Extensions {
    /// Adds a value, in the place of the one of its type if there is one.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.put(TypeId::of::<T>(), Arc::new(value));
    }

    fn put(&mut self, of: TypeId, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == of) {
            Some((_, known)) => *known = value,
            None => self.0.push((of, value)),
        }
    }

    /// The value of that type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        let (_, value) = self.0.iter().find(|(of, _)| *of == TypeId::of::<T>())?;
        value.downcast_ref()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These, but for the one of that type.
    pub(crate) fn without<T: 'static>(mut self) -> Self {
        self.0.retain(|(of, _)| *of != TypeId::of::<T>());
        self
    }

    /// These, with others in the place of those of their types.
    pub(crate) fn with(mut self, others: Self) -> Self {
        others.0.into_iter().for_each(|(of, value)| self.put(of, value));
        self
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.0.len())
    }
}
