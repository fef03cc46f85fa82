//! The registry's table: its entries by id and by operation type.

use std::any::TypeId;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::RegistryError;
use crate::schemas::{DefinitionCache, Schemas};
use crate::{Handler, OperationKind, SpecRef, Text};

/// An operation with its handler and its compiled schemas.
pub(crate) struct Entry {
    pub(crate) spec: SpecRef,
    pub(crate) handler: Option<Handler>,
    pub(crate) schemas: Schemas,
}

impl Entry {
    pub(super) fn new(
        spec: SpecRef,
        handler: Option<Handler>,
        definitions: &DefinitionCache,
    ) -> Result<Self, RegistryError> {
        spec.check_id()?;
        let streams = spec.kind == OperationKind::Subscription;
        if handler.as_ref().and_then(|h| h.streams).is_some_and(|handler| handler != streams) {
            return Err(RegistryError::KindMismatch { id: spec.id.clone().into_owned() });
        }
        let schemas = Schemas::new(&spec, definitions);
        Ok(Self { spec, handler, schemas })
    }

    /// The operation whose types the handler takes, if it stands under that operation's own id: under another it is
    /// another operation, with rules of its own.
    fn operation(&self) -> Option<TypeId> {
        let (operation, spec) = self.handler.as_ref()?.operation?;
        (spec.id == self.spec.id).then_some(operation)
    }
}

/// All entries, by id and, for those whose handler takes an operation's types, by the operation's type.
#[derive(Clone, Default)]
pub(crate) struct Table {
    /// How often it was changed.
    pub(crate) version: u64,
    by_id: BTreeMap<Text, Arc<Entry>>,
    by_type: HashMap<TypeId, Arc<Entry>, BuildHasherDefault<TypeIdHasher>>,
}

impl Table {
    pub(crate) fn get(&self, id: &str) -> Option<&Arc<Entry>> {
        self.by_id.get(id)
    }

    #[inline]
    pub(crate) fn get_type(&self, operation: TypeId) -> Option<&Arc<Entry>> {
        self.by_type.get(&operation)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.by_id.values()
    }

    pub(super) fn add(&mut self, entry: &Arc<Entry>) -> Result<(), RegistryError> {
        let id = &entry.spec.id;
        if self.by_id.contains_key(id) {
            return Err(RegistryError::Duplicate { id: id.clone().into_owned() });
        }
        self.by_id.insert(id.clone(), entry.clone());
        if let Some(operation) = entry.operation() {
            self.by_type.insert(operation, entry.clone());
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<Entry>> {
        let entry = self.by_id.remove(id)?;
        if let Some(operation) = entry.operation() {
            self.by_type.remove(&operation);
        }
        Some(entry)
    }
}

/// Takes a `TypeId` as it is: it is a hash already.
#[derive(Default)]
pub(crate) struct TypeIdHasher(u64);

impl Hasher for TypeIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
