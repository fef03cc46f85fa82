//! The registry's table: its entries by id and by operation type.

use std::any::TypeId;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use serde_json::{Value, json};

use super::{RegistryError, difference};
use crate::model::body::handover::{self, Bodies};
use crate::model::lock::{read, write};
use crate::run::handler::{InputForm, Typed};
use crate::run::schemas::{DefinitionCache, Schemas};
use crate::{Binding, CallError, Context, Handler, OperationKind, OperationSpec, ResponseMeta, SpecRef, Text};

/// An extension of a call by a caller that follows the schema, as models do: a member of the input that the operation's
/// type would ignore is misspelt, and refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exact;

/// An operation with its handler and its compiled schemas.
pub(crate) struct Entry {
    pub(crate) spec: SpecRef,
    pub(crate) handler: Option<Handler>,
    pub(crate) schemas: Schemas,
    /// The operation's own timeout; `None` if it has none, or if its handler applies it.
    pub(crate) timeout: Option<Duration>,
    /// The differences to the specs of types that were called by this entry.
    compared: RwLock<Vec<(TypeId, Arc<[String]>)>>,
}

impl Entry {
    pub(crate) fn new(
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
        let timeout = spec.timeout.filter(|_| handler.as_ref().is_none_or(|handler| !handler.keeps_time));
        let entry = Self { spec, handler, schemas, timeout, compared: RwLock::default() };
        match entry.typed() {
            // Code for the types of one version, registered with the description of another.
            Some(own) if own.spec.id == entry.spec.id && !entry.says_nothing() && !entry.stands_for(&own) => {
                let described = difference::described(&entry.spec, None);
                let code = difference::described(own.spec, Some(own.name));
                Err(entry.conflict(described, code, &entry.differences(&own)))
            }
            _ => Ok(entry),
        }
    }

    /// True if the handler's results may be another server's.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        self.handler.as_ref().is_some_and(|handler| handler.is_foreign)
    }

    /// Marks the handler's result as another server's, if it may be one.
    #[inline]
    pub(crate) fn disown(&self, meta: &mut ResponseMeta) {
        if self.is_foreign() {
            meta.disown();
        }
    }

    fn typed(&self) -> Option<Typed> {
        self.handler.as_ref()?.operation
    }

    /// The differences between this operation and a type's own spec with the same id; empty if it can stand for the
    /// type's.
    fn differences(&self, own: &Typed) -> Arc<[String]> {
        if self.takes_any(own.spec) {
            return Arc::default();
        }
        let known = read(&self.compared);
        if let Some((_, differences)) = known.iter().find(|(known, _)| *known == own.operation) {
            return differences.clone();
        }
        drop(known);
        let differences: Arc<[String]> = self.compare(own.spec).into();
        write(&self.compared).push((own.operation, differences.clone()));
        differences
    }

    /// True if the entry has no description that could differ: its code takes any JSON, and promises nothing.
    fn takes_any(&self, own: &OperationSpec) -> bool {
        let streams = own.kind == OperationKind::Subscription;
        // An endpoint follows the spec, and typed code its types.
        let is_dynamic = |handler: &Handler| handler.streams == Some(streams) && handler.operation.is_none();
        self.handler.as_ref().is_some_and(is_dynamic) && self.says_nothing()
    }

    /// True if the spec describes nothing but its id.
    fn says_nothing(&self) -> bool {
        self.spec.binding == Binding::Local && self.spec.input.is_any() && self.spec.output.is_any()
    }

    fn compare(&self, own: &OperationSpec) -> Vec<String> {
        let differences = difference::differences_of_type(&self.spec, own);
        // What a server lists is current, and may have changed in a way that breaks no caller.
        #[cfg(feature = "mcp-schema")]
        if let (false, SpecRef::Shared(live)) = (differences.is_empty(), &self.spec)
            && crate::documents::tools::is_served_by(own, live)
        {
            return Vec::new();
        }
        differences
    }

    /// Checks an input against its schema; the error also has what its handler would refuse.
    ///
    /// # Errors
    /// A `VALIDATION_ERROR` that lists the violations.
    #[inline]
    pub(crate) fn check_input(&self, input: &Value, context: &Context) -> Result<(), CallError> {
        let checked = match context.extension::<Bodies>() {
            None => self.schemas.check_input(&self.spec, input),
            Some(bodies) => handover::resolving(bodies, || self.schemas.check_input(&self.spec, input)).0,
        };
        checked.map_err(|error| match self.check_by_handler(input, context) {
            Err(more) => with_more(error, &more, input),
            Ok(()) => error,
        })
    }

    /// For a caller that is [`Exact`], checks that code which takes types ignores no member of an input. Other code of
    /// this process gets the whole input. The code of another process may take types, so its schema decides.
    #[inline]
    pub(crate) fn check_members(&self, input: &Value, context: &Context) -> Result<(), CallError> {
        if context.extension::<Exact>().is_some() { self.check_exactly(input) } else { Ok(()) }
    }

    /// Like [`check_members`](Self::check_members), for a caller that is known to be [`Exact`].
    pub(crate) fn check_exactly(&self, input: &Value) -> Result<(), CallError> {
        let may_ignore =
            |handler: &Handler| handler.operation.is_some() || handler.erased.input_form() == InputForm::Either;
        match self.handler.as_ref().is_some_and(may_ignore) {
            true => self.schemas.check_members(&self.spec, input),
            false => Ok(()),
        }
    }

    /// Checks what the schema does not express, for example if a request can be made from the input.
    pub(crate) fn check_by_handler(&self, input: &Value, context: &Context) -> Result<(), CallError> {
        self.check_members(input, context)?;
        match &self.handler {
            Some(handler) => {
                let check = AssertUnwindSafe(|| handler.erased.check(&self.spec, input, context));
                // Foreign code, like handlers: a panic fails only this call.
                catch_unwind(check).unwrap_or_else(|_| {
                    Err(CallError::execution(format!("the check of an input of `{}` panicked", self.spec.id)))
                })
            }
            None => Ok(()),
        }
    }

    /// Checks that the entry may run calls of a type.
    ///
    /// # Errors
    /// An `OPERATION_NOT_FOUND` that describes both specs if they differ.
    #[inline]
    pub(crate) fn check_type(&self, own: &Typed) -> Result<(), CallError> {
        if std::ptr::eq(&*self.spec, own.spec) { Ok(()) } else { self.check_content(own) }
    }

    fn check_content(&self, own: &Typed) -> Result<(), CallError> {
        let differences = self.differences(own);
        if differences.is_empty() {
            return Ok(());
        }
        let called = difference::described(own.spec, Some(own.name));
        Err(difference::refused(&own.spec.id, &self.describe(), &called, &differences))
    }

    /// True if the entry may run calls of a type.
    pub(super) fn stands_for(&self, own: &Typed) -> bool {
        std::ptr::eq(&*self.spec, own.spec) || self.differences(own).is_empty()
    }

    fn describe(&self) -> String {
        difference::described(&self.spec, self.typed().map(|typed| typed.name))
    }

    fn conflict(&self, registered: String, other: String, differences: &[String]) -> RegistryError {
        let id = self.spec.id.clone().into_owned();
        RegistryError::Differs { id, registered, other, differences: differences.to_vec() }
    }

    /// The error of adding another entry with the same id.
    fn refuse(&self, other: &Self) -> RegistryError {
        let differences = difference::differences(&self.spec, &other.spec);
        if differences.is_empty() {
            let id = self.spec.id.clone().into_owned();
            return match (&self.handler, &other.handler) {
                // A client's repeated registration is its own.
                (Some(one), Some(two))
                    if one.is_remote() && two.is_remote() && !Arc::ptr_eq(&one.erased, &two.erased) =>
                {
                    RegistryError::DuplicateClient { id }
                }
                _ => RegistryError::Duplicate { id },
            };
        }
        self.conflict(self.describe(), other.describe(), &differences)
    }

    /// The operation whose types the handler takes, if it is registered with that operation's own id: with another id
    /// it is a different operation, with rules of its own.
    fn operation(&self) -> Option<TypeId> {
        let Typed { operation, spec, .. } = self.typed()?;
        (spec.id == self.spec.id).then_some(operation)
    }
}

/// All entries, by id, and by type if the handler takes an operation's types.
#[derive(Clone, Default)]
pub(crate) struct Table {
    /// Number of changes.
    pub(crate) version: u64,
    by_id: BTreeMap<Text, Arc<Entry>>,
    by_type: HashMap<TypeId, Arc<Entry>, BuildHasherDefault<TypeIdHasher>>,
    /// For a client that runs each type by its own spec: the called ones that are not there by id.
    own: HashMap<TypeId, Arc<Entry>, BuildHasherDefault<TypeIdHasher>>,
}

impl Table {
    pub(crate) fn get(&self, id: &str) -> Option<&Arc<Entry>> {
        self.by_id.get(id)
    }

    #[inline]
    pub(crate) fn get_type(&self, operation: TypeId) -> Option<&Arc<Entry>> {
        self.by_type.get(&operation)
    }

    /// The entry for calls of a type whose code takes any JSON; it has to be [checked](Entry::check_type).
    #[inline]
    pub(crate) fn get_own(&self, own: &Typed) -> Option<&Arc<Entry>> {
        self.own.get(&own.operation).or_else(|| self.by_id.get(&own.spec.id))
    }

    /// Adds an entry that is found only by calls of the type.
    pub(super) fn add_own(&mut self, own: &Typed, entry: &Arc<Entry>) {
        self.own.insert(own.operation, entry.clone());
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.by_id.values()
    }

    pub(super) fn add(&mut self, entry: &Arc<Entry>) -> Result<(), RegistryError> {
        let id = &entry.spec.id;
        if let Some(there) = self.by_id.get(id) {
            return Err(there.refuse(entry));
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

/// Uses a `TypeId` as its own hash, which it is.
#[derive(Default)]
pub(crate) struct TypeIdHasher(u64);

impl Hasher for TypeIdHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Adds violations of another error to an error of the input's schema.
///
/// Those are added that are at places which the input has and the error does not list yet: a misspelt member, for example,
/// beside the missing one.
fn with_more(error: CallError, more: &CallError, input: &Value) -> CallError {
    let place = |violation: &Value| violation.get("pointer").and_then(Value::as_str).map(str::to_owned);
    let mut all = error.violations().to_vec();
    let places: Vec<_> = all.iter().map(place).collect();
    let is_new = |violation: &&Value| {
        let place = place(violation);
        place.as_ref().is_some_and(|at| !at.is_empty() && input.pointer(at).is_some()) && !places.contains(&place)
    };
    let new: Vec<Value> = more.violations().iter().filter(is_new).cloned().collect();
    if new.is_empty() {
        return error;
    }
    let told = new.iter().filter_map(|violation| violation.get("message")?.as_str());
    let message = std::iter::once(error.message()).chain(told).collect::<Vec<_>>().join("; ");
    all.extend(new);
    CallError::new(error.code().clone(), message).with_details(json!({ "violations": all }))
}
